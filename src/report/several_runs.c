/* The page of several runs side by side. Runs of one contender are a group: one colour, one row. */
#include <math.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/statistic.h"
#include "../base/text.h"
#include "../record/sentence.h"
#include "page.h"

enum { GROUPS_DRAWN = 12 };

/* The runs of a group: from `first` to before the next group's. */
static int group_end(const struct report *report, int first) {
    int end = first + 1;
    while (end < report->count && report->runs[end].group == report->runs[first].group) end++;
    return end;
}

/* "96.73", or of several runs "96.73 ± 0.20" */
static const char *mean_text(const struct statistic *statistic, const char *format, char out[64]) {
    char deviation[32];
    const double mean = statistic_mean(statistic), spread = statistic_deviation(statistic);
    snprintf(out, 64, "-");
    if (!isfinite(mean)) return out;
    int used = snprintf(out, 40, format, mean);
    snprintf(deviation, sizeof deviation, format, spread);
    if (isfinite(spread) && used < 40)
        snprintf(out + used, 64 - (size_t)used, "\xC2\xA0\xC2\xB1\xC2\xA0%s", deviation);
    return out;
}

/* The same of times, in the unit of the mean: "10.1 ± 0.5 ms" */
static const char *seconds_text(const struct statistic *seconds, char out[64]) {
    const double mean = statistic_mean(seconds), spread = statistic_deviation(seconds);
    const double unit = mean < 0.9995e-3 ? 1e-6 : mean < 0.9995 ? 1e-3 : 1.0;
    if (!isfinite(spread) || mean >= 99.95) return number_seconds(mean, out);
    snprintf(out, 64, "%.3g\xC2\xA0\xC2\xB1\xC2\xA0%.2g\xC2\xA0%s", mean / unit, spread / unit,
             unit < 1e-3  ? "\xC2\xB5s"
             : unit < 1.0 ? "ms"
                          : "s");
    return out;
}

/* --- the table --- */

struct group {
    struct statistic accuracy, seconds, speed, waiting, staleness, target_s;
    int runs;
};

static struct group group_of(const struct report *report, int first, double target) {
    struct group group = {0};
    const int end = group_end(report, first);
    for (int i = first; i < end; i++) {
        const struct facts *facts = &report->runs[i];
        group.runs++;
        statistic_add(&group.target_s, facts_target_s(facts, target));
        if (!facts->has_summary) continue;
        statistic_add(&group.accuracy, 100 * facts->summary.test_accuracy);
        statistic_add(&group.seconds, facts->summary.train_seconds);
        statistic_add(&group.speed, facts->summary.examples_per_s);
        statistic_add(&group.waiting, 100 * facts->summary.wait_share);
        statistic_add(&group.staleness, facts->summary.staleness.mean);
    }
    return group;
}

/* What was asked for; else the highest accuracy that all runs reach, rounded down a little. */
static double target_of(const struct report *report) {
    double least = INFINITY;
    if (isfinite(report->target_accuracy)) return report->target_accuracy;
    for (int i = 0; i < report->count; i++)
        if (isfinite(report->runs[i].epochs.best_accuracy))
            least = fmin(least, report->runs[i].epochs.best_accuracy);
    return isfinite(least) ? floor(200 * least + 1e-9) / 200 : (double)NAN;
}

static const char *target_text(const struct group *group, char out[64]) {
    struct text text = text_into(out, 64);
    char words[64];
    if (group->target_s.count == 0) return "never";
    text_add(&text, "%s", seconds_text(&group->target_s, words));
    if (group->target_s.count < group->runs)
        text_add(&text, " (%ld of %d)", group->target_s.count, group->runs);
    return out;
}

static void write_row(struct table *table, const struct report *report, int first, double target) {
    const struct group group = group_of(report, first, target);
    char words[64], number[NUMBER_BYTES];
    table_row(table);
    table_cell(table, "%s", report->runs[first].label);
    table_cell(table, "%d", group.runs);
    table_cell(table, "%s", mean_text(&group.accuracy, "%.2f", words));
    table_cell(table, "%s", seconds_text(&group.seconds, words));
    table_cell(table, "%s", target_text(&group, words));
    table_cell(table, "%s", number_text(statistic_mean(&group.speed), number));
    table_cell(table, "%s", mean_text(&group.waiting, "%.0f", words));
    table_cell(table, "%s", mean_text(&group.staleness, "%.2f", words));
}

static int write_table(struct html *html, const struct report *report, struct error *error) {
    const double target = target_of(report);
    char to_target[64], number[NUMBER_BYTES];
    (void)error;
    snprintf(to_target, sizeof to_target, "time to %s", number_percent(target, 1, number));
    const struct column columns[] = {
        {"run", true},      {"runs", false},       {"accuracy,\xC2\xA0%", false}, {"training", false},
        {to_target, false}, {"examples/s", false}, {"waiting,\xC2\xA0%", false},  {"staleness", false}};
    struct table table = table_begin(html, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < report->count; i = group_end(report, i)) write_row(&table, report, i, target);
    table_end(&table);
    html_put(html, "<p class=\"quiet\">Accuracy is that of the test set; waiting, of the workers' time; "
                   "staleness, the mean. Of several runs, the mean and the standard deviation.");
    if (isfinite(target) && !isfinite(report->target_accuracy))
        html_put(html, " The accuracy to be reached is one that all runs reach; "
                       "<code>--target-accuracy=A</code> says another.");
    html_put(html, "</p>\n");
    return OK;
}

/* --- curves --- */

static int write_chart(struct html *html, const struct report *report, struct curve *curves,
                       const struct chart *like, epoch_value *x, epoch_value *y, struct error *error) {
    int code = OK;
    for (int i = 0; i < report->count && code == OK; i++)
        code = curve_of_epochs(&curves[i], &report->runs[i], x, y, error);
    struct chart chart = *like;
    chart.curves = curves;
    chart.count = report->count;
    if (code == OK) chart_curves(html, &chart);
    for (int i = 0; i < report->count; i++) {
        memory_free(curves[i].x);
        memory_free(curves[i].y);
        curves[i].x = curves[i].y = NULL;
    }
    return code;
}

static int write_charts(struct html *html, const struct report *report, struct curve *curves,
                        struct error *error) {
    const double target = target_of(report);
    const struct chart accuracy[] = {{.title = "Test accuracy, %",
                                      .x_title = "seconds of training",
                                      .marked = isfinite(target),
                                      .mark = 100 * target},
                                     {.title = "Test accuracy, %", .x_title = "epoch"}};
    static const struct chart loss[] = {
        {.title = "Training loss", .x_title = "seconds of training", .logarithmic = true},
        {.title = "Training loss", .x_title = "epoch", .logarithmic = true}};
    RETURN_IF(write_chart(html, report, curves, &accuracy[0], value_seconds, value_test_accuracy, error));
    RETURN_IF(write_chart(html, report, curves, &accuracy[1], value_epoch, value_test_accuracy, error));
    RETURN_IF(write_chart(html, report, curves, &loss[0], value_seconds, value_train_loss, error));
    return write_chart(html, report, curves, &loss[1], value_epoch, value_train_loss, error);
}

static int write_curves(struct html *html, const struct report *report, struct error *error) {
    struct curve *curves = NULL;
    int colour = -1;
    RETURN_IF(memory_array(&curves, report->count, "curves", error));
    for (int i = 0; i < report->count; i++) {
        const bool again = i > 0 && report->runs[i].group == report->runs[i - 1].group;
        if (!again) colour++;
        curves[i] = (struct curve){.label = report->runs[i].label, .colour = colour, .again = again};
    }
    chart_legend(html, curves, report->count);
    html_put(html, "<div class=\"charts\">\n");
    const int code = write_charts(html, report, curves, error);
    html_put(html, "</div>\n");
    memory_free(curves);
    return code;
}

static bool has_epochs(const struct report *report) {
    for (int i = 0; i < report->count; i++)
        if (report->runs[i].epochs.count > 0) return true;
    return false;
}

/* --- bars --- */

/* Bars of one figure, as long as it is large. */
static void write_bars(struct html *html, const struct report *report, const char *title, double target,
                       bool of_target) {
    double most = 0.0;
    int colour = 0;
    char words[64], number[NUMBER_BYTES];
    for (int i = 0; i < report->count; i = group_end(report, i)) {
        const struct group group = group_of(report, i, target);
        const double value = statistic_mean(of_target ? &group.target_s : &group.speed);
        if (isfinite(value)) most = fmax(most, value);
    }
    html_put(html, "<figure>");
    html_element(html, "figcaption", "%s", title);
    for (int i = 0; i < report->count; i = group_end(report, i), colour++) {
        const struct group group = group_of(report, i, target);
        const double value = statistic_mean(of_target ? &group.target_s : &group.speed);
        html_put(html, "<div class=\"name\"><b>");
        html_text(html, report->runs[i].label);
        html_put(html, "</b><span>");
        if (!isfinite(value))
            html_say(html, "%s", of_target ? "never" : "-");
        else if (of_target)
            html_say(html, "%s", target_text(&group, words));
        else
            html_say(html, "%s", number_text(value, number));
        html_put(html, "</span></div>\n");
        chart_bar(html, isfinite(value) && most > 0.0 ? value / most : 0.0, colour % 7);
    }
    html_put(html, "</figure>\n");
}

static int write_speed(struct html *html, const struct report *report, struct error *error) {
    const double target = target_of(report);
    char title[80], number[NUMBER_BYTES];
    (void)error;
    html_put(html, "<div class=\"charts pair\">\n");
    write_bars(html, report, "Examples per second", target, false);
    snprintf(title, sizeof title, "Time until %s of the test set are right",
             number_percent(target, 1, number));
    if (isfinite(target)) write_bars(html, report, title, target, true);
    html_put(html, "</div>\n");
    return OK;
}

/* --- time --- */

static bool has_summary(const struct report *report) {
    for (int i = 0; i < report->count; i++)
        if (report->runs[i].has_summary) return true;
    return false;
}

/* Means over the runs of the group. */
static int group_shares(const struct report *report, int first, double shares[PARTS]) {
    int counted = 0;
    for (int p = 0; p < PARTS; p++) shares[p] = 0.0;
    for (int i = first; i < group_end(report, first); i++) {
        const struct summary *summary = &report->runs[i].summary;
        if (!report->runs[i].has_summary || !(summary->compute_share >= 0.0)) continue;
        shares[PART_INPUT] += fmax(summary->input_share, 0.0);
        shares[PART_PULL] += fmax(summary->pull_share, 0.0);
        shares[PART_COMPUTE] += summary->compute_share;
        shares[PART_PUSH] += fmax(summary->push_share, 0.0);
        shares[PART_WAIT] += fmax(summary->wait_share, 0.0);
        counted++;
    }
    return counted;
}

static int write_time(struct html *html, const struct report *report, struct error *error) {
    char sentence[SENTENCE_BYTES];
    double shares[PARTS];
    (void)error;
    chart_parts(html);
    for (int i = 0; i < report->count; i = group_end(report, i)) {
        const bool several = group_end(report, i) > i + 1;
        html_put(html, "<div class=\"lane-box\"><div class=\"name\"><b>");
        html_text(html, report->runs[i].label);
        html_put(html, "</b></div>\n");
        if (group_shares(report, i, shares) > 0) chart_shares(html, shares);
        if (facts_sentence(&report->runs[i], sentence, sizeof sentence)[0])
            html_element(html, "p class=\"quiet\"", "%s%s", several ? "The first run: " : "", sentence);
        html_put(html, "</div>\n");
    }
    return OK;
}

/* --- steps --- */

static bool has_steps(const struct report *report) {
    for (int i = 0; i < report->count; i++)
        if (report->runs[i].steps.rows > 0) return true;
    return false;
}

static int write_stretches(struct html *html, const struct report *report, struct error *error) {
    int drawn = 0, left_out = 0;
    (void)error;
    html_put(html,
             "<p class=\"quiet\">The same stretch of each run; where one was repeated, of its first run. ");
    write_steps_note(html);
    chart_parts(html);
    for (int i = 0; i < report->count; i = group_end(report, i)) {
        if (report->runs[i].steps.rows == 0) continue;
        if (drawn == GROUPS_DRAWN) {
            left_out++;
            continue;
        }
        html_element(html, "h3", "%s", report->runs[i].label);
        write_steps(html, &report->runs[i]);
        drawn++;
    }
    if (left_out > 0) html_element(html, "p class=\"quiet\"", "And %d more, which are not drawn.", left_out);
    return OK;
}

/* --- settings --- */

/* Of the options a run was given, and of what it ran on. */
static const char *value_of(const struct facts *facts, const char *name) {
    const char *value = facts_setting(facts, name);
    return !value ? "not known" : !value[0] ? "none" : value;
}

/* The run of the first group that stands where this one stands in its own: runs of a comparison differ by
 * their seeds, but in each group alike. */
static const struct facts *counterpart(const struct report *report, int run) {
    int first = run;
    while (first > 0 && report->runs[first - 1].group == report->runs[run].group) first--;
    const int place = run - first, count = group_end(report, 0);
    return &report->runs[place < count ? place : 0];
}

static bool differs(const struct report *report, const char *name) {
    for (int i = 1; i < report->count; i++)
        if (strcmp(value_of(counterpart(report, i), name), value_of(&report->runs[i], name)) != 0)
            return true;
    return false;
}

static bool was_before(const struct report *report, int run, const char *name) {
    for (int i = 0; i < run; i++)
        if (strcmp(value_of(&report->runs[i], name), value_of(&report->runs[run], name)) == 0) return true;
    return false;
}

/* Each value, with the groups that have it in one of their runs. */
static void write_values(struct html *html, const struct report *report, const char *name) {
    for (int i = 0; i < report->count; i++) {
        const char *value = value_of(&report->runs[i], name), *before = "";
        int said = -1;
        if (was_before(report, i, name)) continue;
        html_put(html, "<dd><b>");
        html_text(html, value);
        html_put(html, "</b> <span class=\"quiet\">");
        for (int j = i; j < report->count; j++) {
            const struct facts *facts = &report->runs[j];
            if (facts->group == said || strcmp(value_of(facts, name), value) != 0) continue;
            html_say(html, "%s%s", before, facts->label);
            before = " \xC2\xB7 ";
            said = facts->group;
        }
        html_put(html, "</span></dd>\n");
    }
}

/* What all groups have; where their runs differ, one value after the other. */
static void write_common(struct html *html, const struct report *report, const char *name) {
    const char *before = "";
    html_put(html, "<dd>");
    for (int i = 0; i < group_end(report, 0); i++) {
        if (was_before(report, i, name)) continue;
        html_say(html, "%s%s", before, value_of(&report->runs[i], name));
        before = ", ";
    }
    html_put(html, "</dd>");
}

static int write_differences(struct html *html, const struct report *report, struct error *error) {
    const struct facts *first = &report->runs[0];
    bool any = false;
    (void)error;
    html_put(html, "<dl>\n");
    for (int i = 0; i < first->setting_count; i++) {
        const char *name = first->settings[i].name;
        if (!differs(report, name)) continue;
        html_put(html, "<div>");
        html_element(html, "dt", "%s", name);
        write_values(html, report, name);
        html_put(html, "</div>\n");
        any = true;
    }
    if (!any) html_put(html, "<div><dt>nothing</dt><dd>All settings are the same.</dd></div>\n");
    html_put(html, "</dl>\n");
    html_element(html, "h3", "The same in all runs");
    html_put(html, "<dl>\n");
    for (int i = 0; i < first->setting_count; i++) {
        if (differs(report, first->settings[i].name)) continue;
        html_put(html, "<div>");
        html_element(html, "dt", "%s", first->settings[i].name);
        write_common(html, report, first->settings[i].name);
        html_put(html, "</div>\n");
    }
    html_put(html, "</dl>\n");
    return OK;
}

static bool has_settings(const struct report *report) {
    return report->runs[0].setting_count > 0;
}

static int write_again(struct html *html, const struct report *report, struct error *error) {
    for (int i = 0; i < report->count; i = group_end(report, i)) {
        if (report->runs[i].setting_count == 0) continue;
        html_element(html, "h3", "%s", report->runs[i].label);
        RETURN_IF(write_command(html, &report->runs[i], error));
    }
    write_command_note(html, &report->runs[0]);
    return OK;
}

const struct section several_runs_sections[] = {
    {"table", "At a glance", NULL, write_table},
    {"curves", "What they learnt", has_epochs, write_curves},
    {"speed", "How fast", has_summary, write_speed},
    {"time", "Where the time went", has_summary, write_time},
    {"steps", "Step by step", has_steps, write_stretches},
    {"settings", "What differs", has_settings, write_differences},
    {"repeat", "How to repeat them", has_settings, write_again},
    {0},
};
