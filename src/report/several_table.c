/* Several runs at a glance: a row per group, and what has to be said of single runs. */
#include <math.h>
#include <string.h>
#include "several.h"

/* "96.73", or of several runs "96.73 ± 0.20" */
static const char *mean_text(const struct statistic *statistic, const char *format, char out[64]) {
    char deviation[32];
    const double mean = statistic_mean(statistic), spread = statistic_deviation(statistic);
    snprintf(out, 64, "-");
    if (!isfinite(mean)) return out;
    int used = snprintf(out, 40, format, mean);
    snprintf(deviation, sizeof deviation, format, spread);
    if (isfinite(spread) && used < 40)
        snprintf(out + used, 64 - (size_t)used, " \xC2\xB1\xC2\xA0%s", deviation);
    return out;
}

/* A column for each metric; "-" in those that the group is not judged by. */
static void write_scores(struct table *table, const struct report *report, const struct group *group) {
    enum metric metrics[METRICS];
    const int count = metrics_of_report(report, metrics);
    char words[FIGURE_BYTES];
    for (int m = 0; m < count; m++) {
        const char *format = metric_rows[metrics[m]].share ? "%.2f" : "%.4g";
        table_cell(table, "%s", metrics[m] == group->metric ? mean_text(&group->score, format, words) : "-");
    }
}

static void write_row(struct table *table, const struct report *report, int first, double target) {
    const struct group group = group_of(report, first, target);
    char words[FIGURE_BYTES];
    table_row(table);
    table_cell(table, "%s", report->runs[first].label);
    table_cell(table, "%d", group.runs);
    write_scores(table, report, &group);
    table_cell(table, "%s", seconds_text(&group.seconds, words));
    if (isfinite(target)) table_cell(table, "%s", target_text(&group, words));
    table_cell(table, "%s", speed_text(&group.speed, words));
    table_cell(table, "%s", mean_text(&group.waiting, "%.0f", words));
    table_cell(table, "%s", mean_text(&group.staleness, "%.2f", words));
}

enum { COLUMNS = 7 + METRICS, HEAD_BYTES = 64, NOTES_MOST = 12 };

static int score_columns(const struct report *report, char heads[METRICS][HEAD_BYTES],
                         struct column columns[METRICS]) {
    enum metric metrics[METRICS];
    const int count = metrics_of_report(report, metrics);
    for (int m = 0; m < count; m++) {
        const struct metric_row *row = &metric_rows[metrics[m]];
        snprintf(heads[m], HEAD_BYTES, "%s%s", row->words, row->share ? ",\xC2\xA0%" : "");
        columns[m] = (struct column){heads[m], false};
    }
    return count;
}

static void write_rows(struct html *html, const struct report *report, double target) {
    char to_target[HEAD_BYTES], heads[METRICS][HEAD_BYTES], number[NUMBER_BYTES];
    struct column columns[COLUMNS] = {{"run", true}, {"runs", false}};
    int count = 2 + score_columns(report, heads, columns + 2);
    snprintf(to_target, sizeof to_target, "time to %s", number_percent(target, 1, number));
    columns[count++] = (struct column){"training", false};
    if (isfinite(target)) columns[count++] = (struct column){to_target, false};
    columns[count++] = (struct column){"examples/s", false};
    columns[count++] = (struct column){"waiting,\xC2\xA0%", false};
    columns[count++] = (struct column){"staleness", false};
    struct table table = table_begin(html, columns, count);
    for (int i = 0; i < report->count; i = group_end(report, i)) write_row(&table, report, i, target);
    table_end(&table);
}

static bool are_tested(const struct report *report) {
    for (int i = 0; i < report->count; i++)
        if (!isfinite(report->runs[i].epochs.best_score)) return false;
    return true;
}

static void write_explanation(struct html *html, const struct report *report, double target) {
    enum metric metrics[METRICS];
    const int count = metrics_of_report(report, metrics);
    html_put(html, "<p class=\"quiet\">");
    for (int m = 0; m < count; m++)
        html_say(html, "%s%s", m == 0 ? "" : m == count - 1 ? " and " : ", ", metric_rows[metrics[m]].title);
    html_put(html,
             " %s of the test set; waiting, of the workers' time; "
             "staleness, the mean. Of several runs, the mean and the standard deviation.",
             count == 1 ? "is that" : "are those");
    if (isfinite(target) && !isfinite(report->target_accuracy))
        html_put(html,
                 " The accuracy to be reached is one that all runs reach%s; "
                 "<code>--target-accuracy=A</code> says another.",
                 are_tested(report) ? "" : " that were tested");
    html_put(html, "</p>\n");
    if (!same_dataset(report))
        html_element(
            html, "p class=\"note\"",
            "The runs were tested on different data sets, so how well they did does not compare, and "
            "there is no race to one accuracy.");
}

/* --- single runs --- */

/* "ssp", or of a group "ssp, run 2" */
static void say_run(struct html *html, const struct report *report, int run) {
    int first = run;
    while (first > 0 && report->runs[first - 1].group == report->runs[run].group) first--;
    html_say(html, "%s", report->runs[run].label);
    if (group_end(report, first) > first + 1) html_say(html, ", run %d", run - first + 1);
}

static void begin_note(struct html *html, const struct report *report, int run, int *written) {
    const char *before = (*written)++ == 0 ? "<ul>\n<li>" : "<li>";
    html_put(html, "%s", before);
    say_run(html, report, run);
}

/* What has to be known of a run that is compared; *written: notes so far. */
static void write_notes_of(struct html *html, const struct report *report, int run, int *written) {
    const struct facts *facts = &report->runs[run];
    const struct verdict *verdict = &facts->summary.verdict;
    const char *const words[] = {verdict->diverged, verdict->learnt_nothing};
    char number[NUMBER_BYTES];
    if (!facts->has_summary) {
        begin_note(html, report, run, written);
        if (facts->failure)
            html_say(html, " failed: %s.", facts->failure);
        else
            html_put(html, " has no summary.json: it is still running, was killed or failed.");
        html_put(html, "</li>\n");
    }
    if (facts->summary.interrupted) {
        begin_note(html, report, run, written);
        html_say(html, " was interrupted after %s", number_text(facts_epochs(facts), number));
        if (facts_epochs_wanted(facts) > 0) html_say(html, " of %d", facts_epochs_wanted(facts));
        html_put(html, " epochs.</li>\n");
    }
    if (facts_resumed(facts)) {
        begin_note(html, report, run, written);
        html_put(html, " was resumed: its examples/s, waiting and staleness are of its last part.</li>\n");
    }
    for (int i = 0; i < 2; i++) {
        if (!words[i][0]) continue;
        begin_note(html, report, run, written);
        html_say(html, ": %s.", words[i]);
        html_put(html, "</li>\n");
    }
}

static void write_simulated(struct html *html, const struct report *report) {
    int simulated = 0, known = 0; /* one that failed does not say */
    for (int i = 0; i < report->count; i++) {
        simulated += report->runs[i].summary.simulated;
        known += report->runs[i].has_summary;
    }
    if (simulated == 0) return;
    if (simulated == known)
        html_element(html, "p class=\"note\"", "Simulated: all times and speeds on this page are virtual.");
    else
        html_element(html, "p class=\"note\"",
                     "%d of %d runs are simulated (--simulate): their times and speeds are virtual, and no "
                     "match for those of the others.",
                     simulated, report->count);
}

int write_several_table(struct html *html, const struct report *report, struct error *error) {
    const double target = target_of(report);
    int written = 0;
    (void)error;
    write_rows(html, report, target);
    write_explanation(html, report, target);
    write_simulated(html, report);
    for (int i = 0; i < report->count && written < NOTES_MOST; i++) write_notes_of(html, report, i, &written);
    if (written > 0) html_put(html, "</ul>\n");
    return OK;
}
