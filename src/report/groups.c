/* Groups of runs: what they come to, in words. See several.h. */
#include <math.h>
#include <string.h>
#include "several.h"

int group_end(const struct report *report, int first) {
    int end = first + 1;
    while (end < report->count && report->runs[end].group == report->runs[first].group) end++;
    return end;
}

struct group group_of(const struct report *report, int first, double target) {
    struct group group = {0};
    const int end = group_end(report, first);
    group.metric = metric_of_run(&report->runs[first]);
    for (int i = first; i < end; i++) {
        const struct facts *facts = &report->runs[i];
        group.runs++;
        group.tested += isfinite(facts->epochs.best_score);
        statistic_add(&group.target_s, facts_target_s(facts, target));
        if (!facts->has_summary) continue;
        statistic_add(&group.score, metric_scale(facts->summary.metric) * facts->summary.test_score);
        statistic_add(&group.seconds, facts->summary.train_seconds);
        statistic_add(&group.speed, facts->summary.examples_per_s);
        statistic_add(&group.waiting, 100 * facts->summary.wait_share);
        statistic_add(&group.staleness, facts->summary.staleness.mean);
    }
    return group;
}

static const char *dataset_of(const struct facts *facts) {
    const char *dataset = facts_setting(facts, "dataset");
    return dataset ? dataset : "";
}

bool same_dataset(const struct report *report) {
    const char *first = "";
    for (int i = 0; i < report->count; i++) {
        const char *dataset = dataset_of(&report->runs[i]);
        if (dataset[0] && first[0] && strcmp(dataset, first) != 0) return false;
        if (dataset[0]) first = dataset;
    }
    return true;
}

enum metric metric_of_run(const struct facts *facts) {
    return facts->has_summary ? facts->summary.metric : facts->epochs.metric;
}

int metrics_of_report(const struct report *report, enum metric metrics[METRICS]) {
    bool there[METRICS] = {false};
    int count = 0;
    for (int i = 0; i < report->count; i++) {
        const struct facts *facts = &report->runs[i];
        const enum metric metric = metric_of_run(facts);
        if (there[metric] || !(facts->has_summary || facts->epochs.count > 0)) continue;
        there[metric] = true;
        metrics[count++] = metric;
    }
    if (count == 0) metrics[count++] = METRIC_ACCURACY;
    return count;
}

double target_of(const struct report *report) {
    double least = INFINITY;
    enum metric metrics[METRICS];
    const bool one = metrics_of_report(report, metrics) == 1;
    if (!same_dataset(report) || !one || !metric_rows[metrics[0]].share) return (double)NAN;
    if (isfinite(report->target_accuracy)) return report->target_accuracy;
    for (int i = 0; i < report->count; i++)
        if (isfinite(report->runs[i].epochs.best_score))
            least = fmin(least, report->runs[i].epochs.best_score);
    return isfinite(least) ? floor(200 * least + 1e-9) / 200 : (double)NAN;
}

/* --- figures --- */

/* To two digits, but to no more than `decimals`: "140", "53,000", "0.52". */
static const char *deviation_text(double deviation, int decimals, char out[NUMBER_BYTES]) {
    if (deviation < 9.95) {
        snprintf(out, NUMBER_BYTES, "%.*f", deviation >= 0.995 && decimals > 1 ? 1 : decimals, deviation);
    } else {
        const double unit = pow(10, floor(log10(deviation)) - 1);
        number_text(unit * round(deviation / unit), out);
    }
    return out;
}

static const char *unit_text(double unit) {
    return unit < 1e-3 ? "\xC2\xB5s" : unit < 1.0 ? "ms" : "s";
}

const char *seconds_text(const struct statistic *seconds, char out[FIGURE_BYTES]) {
    const double mean = statistic_mean(seconds), spread = statistic_deviation(seconds);
    const double unit = mean < 0.9995e-3 ? 1e-6 : mean < 0.9995 ? 1e-3 : 1.0, value = mean / unit;
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    char text[NUMBER_BYTES], deviation[NUMBER_BYTES];
    if (!isfinite(spread))
        snprintf(out, FIGURE_BYTES, "%s", number_seconds(mean, text));
    else if (mean >= 99.95)
        snprintf(out, FIGURE_BYTES, "%s \xC2\xB1\xC2\xA0%s", number_seconds(mean, text),
                 number_seconds(spread, deviation));
    else
        snprintf(out, FIGURE_BYTES, "%.*f \xC2\xB1\xC2\xA0%s\xC2\xA0%s", decimals, value,
                 deviation_text(spread / unit, decimals, deviation), unit_text(unit));
    return out;
}

const char *speed_text(const struct statistic *speed, char out[FIGURE_BYTES]) {
    const double spread = statistic_deviation(speed);
    char text[NUMBER_BYTES], deviation[NUMBER_BYTES];
    number_text(statistic_mean(speed), text);
    snprintf(out, FIGURE_BYTES, "%s", text);
    if (isfinite(spread))
        snprintf(out, FIGURE_BYTES, "%s \xC2\xB1\xC2\xA0%s", text, deviation_text(spread, 0, deviation));
    return out;
}

const char *target_text(const struct group *group, char out[FIGURE_BYTES]) {
    struct text text = text_into(out, FIGURE_BYTES);
    char words[FIGURE_BYTES];
    if (group->target_s.count == 0) return group->tested > 0 ? "never" : "-";
    text_add(&text, "%s", seconds_text(&group->target_s, words));
    if (group->target_s.count < group->runs)
        text_add(&text, " (%ld of %d)", group->target_s.count, group->runs);
    return out;
}
