/* The page of several runs side by side: its sections. */
#include <math.h>
#include <string.h>
#include "../base/memory.h"
#include "../record/sentence.h"
#include "several.h"

enum { GROUPS_DRAWN = 12 };

/* --- curves --- */

/* metric: of the runs whose curves are drawn; METRICS: all. */
static int write_chart(struct html *html, const struct report *report, struct curve *curves,
                       const struct chart *like, enum metric metric, epoch_value *x, epoch_value *y,
                       struct error *error) {
    int code = OK;
    for (int i = 0; i < report->count && code == OK; i++) {
        const struct facts *facts = &report->runs[i];
        code = curve_of_epochs(&curves[i], facts, x, y, error);
        if (metric != METRICS && metric != metric_of_run(facts)) curves[i].count = 0;
    }
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

/* The last second and the last epoch of all runs. */
static void furthest(const struct report *report, double *seconds, double *epochs) {
    for (int i = 0; i < report->count; i++) {
        const struct epoch_facts *of = &report->runs[i].epochs;
        if (of->count == 0) continue;
        *seconds = fmax(*seconds, of->rows[of->count - 1].time_s);
        *epochs = fmax(*epochs, of->rows[of->count - 1].epoch);
    }
}

/* Runs that are judged by another metric have charts of their own. */
static int write_scores(struct html *html, const struct report *report, struct curve *curves,
                        enum metric metric, double seconds, double epochs, struct error *error) {
    const struct metric_row *row = &metric_rows[metric];
    const double target = target_of(report);
    char title[64];
    snprintf(title, sizeof title, "Test %s%s", row->words, row->share ? ", %" : "");
    const struct chart score[] = {
        {.title = title,
         .x_title = "seconds of training",
         .percent = row->share,
         .x_most = seconds,
         .marked = isfinite(target),
         .mark = 100 * target},
        {.title = title, .x_title = "epoch", .percent = row->share, .whole = true, .x_most = epochs}};
    RETURN_IF(write_chart(html, report, curves, &score[0], metric, value_seconds, value_test_score, error));
    return write_chart(html, report, curves, &score[1], metric, value_epoch, value_test_score, error);
}

static int write_charts(struct html *html, const struct report *report, struct curve *curves,
                        struct error *error) {
    double seconds = 0.0, epochs = 0.0;
    enum metric metrics[METRICS];
    const int count = metrics_of_report(report, metrics);
    furthest(report, &seconds, &epochs);
    const struct chart loss[] = {
        {.title = "Training loss", .x_title = "seconds of training", .logarithmic = true, .x_most = seconds},
        {.title = "Training loss", .x_title = "epoch", .logarithmic = true, .whole = true, .x_most = epochs}};
    for (int m = 0; m < count; m++)
        RETURN_IF(write_scores(html, report, curves, metrics[m], seconds, epochs, error));
    RETURN_IF(write_chart(html, report, curves, &loss[0], METRICS, value_seconds, value_train_loss, error));
    return write_chart(html, report, curves, &loss[1], METRICS, value_epoch, value_train_loss, error);
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
    char words[FIGURE_BYTES];
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
        if (of_target)
            html_say(html, "%s", target_text(&group, words));
        else if (!isfinite(value))
            html_put(html, "-");
        else
            html_say(html, "%s", speed_text(&group.speed, words));
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

/* Of all runs of the group, where bench.csv says something of them; else of its first one. */
static void write_sentence(struct html *html, const struct report *report, int first) {
    const struct facts *facts = &report->runs[first];
    const int runs = group_end(report, first) - first;
    char sentence[SENTENCE_BYTES];
    if (facts->sentence) {
        if (!facts->sentence[0]) return;
        html_element(html, "p class=\"quiet\"", "%d run%s: %s.", runs, runs == 1 ? "" : "s", facts->sentence);
        return;
    }
    if (facts_sentence(facts, sentence, sizeof sentence)[0])
        html_element(html, "p class=\"quiet\"", "%s%s%s", runs > 1 ? "The first run: " : "",
                     facts_resumed(facts) ? "In its last part: " : "", sentence);
}

static int write_time(struct html *html, const struct report *report, struct error *error) {
    double shares[PARTS];
    (void)error;
    chart_parts(html);
    for (int i = 0; i < report->count; i = group_end(report, i)) {
        html_put(html, "<div class=\"lane-box\"><div class=\"name\"><b>");
        html_text(html, report->runs[i].label);
        html_put(html, "</b></div>\n");
        if (group_shares(report, i, shares) > 0) chart_shares(html, shares);
        write_sentence(html, report, i);
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

/* A run whose first step comes later than the others' stretch has one of its own. */
static void write_offset(struct html *html, const struct report *report, const struct stretch *stretch) {
    double first = INFINITY;
    char number[NUMBER_BYTES];
    for (int i = 0; i < report->count; i++)
        if (report->runs[i].stretch.length_s > 0.0) first = fmin(first, report->runs[i].stretch.from_s);
    if (stretch->from_s > first)
        html_element(html, "p class=\"note\"",
                     "Its first step began later than those of others: this "
                     "picture begins after %s of training.",
                     number_seconds(stretch->from_s, number));
}

static int write_stretches(struct html *html, const struct report *report, struct error *error) {
    int drawn = 0, left_out = 0;
    (void)error;
    html_put(html,
             "<p class=\"quiet\">The same seconds of training of each run; where one was repeated, of its "
             "first run. ");
    write_steps_note(html);
    chart_parts(html);
    for (int i = 0; i < report->count; i = group_end(report, i)) {
        if (report->runs[i].steps.rows == 0) continue;
        if (drawn == GROUPS_DRAWN) {
            left_out++;
            continue;
        }
        html_element(html, "h3", "%s", report->runs[i].label);
        write_offset(html, report, &report->runs[i].stretch);
        write_steps(html, &report->runs[i]);
        drawn++;
    }
    if (left_out > 0) html_element(html, "p class=\"quiet\"", "And %d more, which are not drawn.", left_out);
    return OK;
}

/* --- repeat --- */

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
    {"sweep", "The sweep", has_sweep, write_sweep},
    {"table", "At a glance", NULL, write_several_table},
    {"curves", "What they learnt", has_epochs, write_curves},
    {"speed", "How fast", has_summary, write_speed},
    {"time", "Where the time went", has_summary, write_time},
    {"steps", "Step by step", has_steps, write_stretches},
    {"settings", "What differs", has_settings, write_differences},
    {"repeat", "How to repeat them", has_settings, write_again},
    {0},
};
