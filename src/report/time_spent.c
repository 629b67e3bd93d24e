/* Where the workers' time went, and for whom they waited. */
#include <string.h>
#include "one_run.h"

/* Of the summary, else of the steps that are known. */
static void seconds_of(const struct facts *facts, int worker, double seconds[PARTS]) {
    for (int p = 0; p < PARTS; p++) seconds[p] = 0.0;
    if (worker < facts->summary.workers) {
        const struct worker_result *of = &facts->workers[worker];
        seconds[PART_INPUT] = of->input_s;
        seconds[PART_PULL] = of->pull_s;
        seconds[PART_COMPUTE] = of->compute_s;
        seconds[PART_PUSH] = of->push_s;
        seconds[PART_WAIT] = of->wait_s;
        return;
    }
    for (int b = 0; worker < facts->steps.count && b < FACTS_BINS; b++)
        for (int p = 0; p < PARTS; p++) seconds[p] += facts->steps.workers[worker].seconds[b][p];
}

static int worker_count(const struct facts *facts) {
    return facts->summary.workers > facts->steps.count ? facts->summary.workers : facts->steps.count;
}

static void write_over_time(struct html *html, const struct facts *facts) {
    const int count = facts->steps.count;
    html_element(html, "h3", "Over the run");
    html_element(
        html, "p class=\"quiet\"", "%s",
        facts->steps.sampled
            ? "Not every step has a row in steps.csv: the picture shows the shares of those that have."
            : "What is blank belongs to no step: there a worker waits until all have ended their "
              "epoch.");
    for (int w = 0; w < count && w < LANES_MOST; w++) {
        html_put(html, "<div class=\"lane-box\">");
        write_name(html, facts, w);
        chart_time(html, &facts->steps, w);
        html_put(html, "</div>\n");
    }
    chart_seconds_axis(html, 0.0, facts->steps.end_s);
    say_more(html, count);
}

static void write_worker_table(struct html *html, const struct facts *facts) {
    static const struct column columns[] = {{"worker", true},
                                            {"steps", false},
                                            {"computing", false},
                                            {"getting the batch", false},
                                            {"taking weights", false},
                                            {"giving gradients", false},
                                            {"waiting for others", false},
                                            {"mean staleness", false},
                                            {"max staleness", false}};
    char number[NUMBER_BYTES];
    struct table table = table_begin(html, columns, sizeof columns / sizeof *columns);
    for (int w = 0; w < facts->summary.workers; w++) {
        const struct worker_result *of = &facts->workers[w];
        table_row(&table);
        table_cell(&table, "%s%s", of->name, of->lost ? ", lost" : "");
        table_cell(&table, "%s", number_text((double)of->steps, number));
        table_cell(&table, "%s", number_seconds(of->compute_s, number));
        table_cell(&table, "%s", number_seconds(of->input_s, number));
        table_cell(&table, "%s", number_seconds(of->pull_s, number));
        table_cell(&table, "%s", number_seconds(of->push_s, number));
        table_cell(&table, "%s", number_seconds(of->wait_s, number));
        table_cell(&table, "%s", number_text(of->staleness_mean, number));
        table_cell(&table, "%s", number_text((double)of->staleness_max, number));
    }
    table_end(&table);
}

int write_time_spent(struct html *html, const struct report *report, struct error *error) {
    const struct facts *facts = run_of(report);
    const int count = worker_count(facts);
    double seconds[PARTS];
    (void)error;
    if (facts_resumed(facts))
        html_element(html, "p class=\"note\"",
                     "The run was resumed: bars and table are of its last part, the picture over the run of "
                     "all parts.");
    chart_parts(html);
    for (int w = 0; w < count && w < LANES_MOST; w++) {
        seconds_of(facts, w, seconds);
        html_put(html, "<div class=\"lane-box\">");
        write_name(html, facts, w);
        chart_shares(html, seconds);
        html_put(html, "</div>\n");
    }
    say_more(html, count);
    if (facts->summary.workers > 0) write_worker_table(html, facts);
    if (facts->steps.rows > 0) write_over_time(html, facts);
    return OK;
}

/* --- waiting --- */

bool has_waits(const struct report *report) {
    const struct facts *facts = run_of(report);
    for (int w = 0; w < facts->summary.workers; w++)
        if (facts->workers[w].waited_at || facts->workers[w].waited_for[0]) return true;
    return false;
}

enum { MATRIX_MOST = 12 }; /* columns that a page has room for */

/* Who waited for whom is a matrix of workers and members, where it is known and can be read. */
static bool has_matrix(const struct facts *facts) {
    const struct summary *summary = &facts->summary;
    bool all = summary->members >= 2 && summary->members <= MATRIX_MOST;
    for (int w = 0; w < summary->workers; w++) all = all && facts->workers[w].waited_for_each;
    return all;
}

/* "worker 1 (cpu:1)" above a column: its first two words. */
static const char *short_name(const char *name, char out[40]) {
    snprintf(out, 40, "%s", name);
    char *bracket = strstr(out, " (");
    if (bracket) *bracket = '\0';
    return out;
}

static void write_matrix(struct html *html, const struct facts *facts) {
    const struct summary *summary = &facts->summary;
    struct column columns[MATRIX_MOST + 1] = {{"waited for", true}};
    char names[MATRIX_MOST][40], number[NUMBER_BYTES];
    for (int m = 0; m < summary->members; m++)
        columns[m + 1] = (struct column){short_name(summary->member_names[m], names[m]), false};
    html_put(html, "<figure class=\"below\"><figcaption>A row per worker, a column per member that it waited "
                   "for</figcaption>\n");
    struct table table = table_begin(html, columns, summary->members + 1);
    for (int w = 0; w < summary->workers; w++) {
        table_row(&table);
        table_cell(&table, "%s", facts->workers[w].name);
        for (int m = 0; m < summary->members; m++) {
            const double seconds = facts->workers[w].waited_for_each[m];
            table_cell(&table, "%s", seconds > 0.0 ? number_seconds(seconds, number) : "-");
        }
    }
    table_end(&table);
    html_put(html, "</figure>\n");
}

int write_waits(struct html *html, const struct report *report, struct error *error) {
    static const struct column columns[] = {{"who", true},        {"waited", false},
                                            {"mostly at", true},  {"time there", false},
                                            {"mostly for", true}, {"time for it", false}};
    const struct facts *facts = run_of(report);
    char number[NUMBER_BYTES];
    (void)error;
    html_element(html, "p class=\"quiet\"",
                 "Each wait is charged to whoever arrived last. The table shows where, and for whom, each "
                 "worker waited longest, including the end of each epoch.");
    struct table table = table_begin(html, columns, sizeof columns / sizeof *columns);
    for (int w = 0; w < facts->summary.workers; w++) {
        const struct worker_result *of = &facts->workers[w];
        table_row(&table);
        table_cell(&table, "%s", of->name);
        table_cell(&table, "%s", number_seconds(of->wait_s, number));
        table_cell(&table, "%s", of->waited_at ? of->waited_at : "-");
        table_cell(&table, "%s", number_seconds(of->waited_at_s, number));
        table_cell(&table, "%s", of->waited_for[0] ? of->waited_for : "-");
        table_cell(&table, "%s", number_seconds(of->waited_for_s, number));
    }
    table_end(&table);
    if (has_matrix(facts))
        write_matrix(html, facts);
    else if (facts->summary.members > MATRIX_MOST)
        html_element(html, "p class=\"quiet\"",
                     "There is no table of each worker and each of %d members, as it would have more than %d "
                     "columns%s.",
                     facts->summary.members, MATRIX_MOST,
                     facts->workers[0].waited_for_each ? ": summary.json has it (waited_for_each)" : "");
    return OK;
}
