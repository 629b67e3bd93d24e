/* The page of one run, section by section. */
#include <math.h>
#include <string.h>
#include "../base/memory.h"
#include "../record/sentence.h"
#include "page.h"

static const struct facts *run_of(const struct report *report) {
    return &report->runs[0];
}

static bool has_summary(const struct report *report) {
    return run_of(report)->has_summary;
}

static bool has_epochs(const struct report *report) {
    return run_of(report)->epochs.count > 0;
}

static bool has_steps(const struct report *report) {
    return run_of(report)->steps.rows > 0;
}

static bool has_workers(const struct report *report) {
    return run_of(report)->summary.workers > 0 || has_steps(report);
}

/* --- at a glance --- */

static void write_tiles(struct html *html, const struct summary *summary) {
    char number[NUMBER_BYTES];
    html_put(html, "<div class=\"tiles\">\n");
    page_tile(html, number_percent(summary->test_accuracy, 2, number), "test accuracy");
    page_tile(html, number_seconds(summary->train_seconds, number), "of training");
    page_tile(html, number_text(summary->epochs, number), summary->epochs > 1.0 ? "epochs" : "epoch");
    page_tile(html, number_text(summary->examples_per_s, number), "examples per second");
    page_tile(html, number_percent(summary->compute_share, 0, number),
              "of the workers' time spent computing");
    page_tile(html, number_text(summary->staleness.mean, number), "mean staleness of a gradient, in updates");
    html_put(html, "</div>\n");
}

/* Of a run that has no summary. */
static void write_known(struct html *html, const struct facts *facts) {
    char number[NUMBER_BYTES];
    html_put(html, "<div class=\"tiles\">\n");
    if (facts->epochs.count > 0) {
        const struct epoch_row *last = &facts->epochs.rows[facts->epochs.count - 1];
        page_tile(html, number_percent(last->test_accuracy, 2, number), "test accuracy so far");
        page_tile(html, number_text(last->epoch, number), "epochs so far");
        page_tile(html, number_seconds(last->time_s, number), "until the end of the last one");
    }
    if (facts->steps.rows > 0)
        page_tile(html, number_seconds(facts->steps.end_s, number), "until the last step");
    html_put(html, "</div>\n");
}

static void write_missing(struct html *html, const struct facts *facts) {
    const long unreadable = facts->epochs.unreadable + facts->steps.unreadable;
    if (!facts->has_summary)
        html_element(html, "p class=\"note\"",
                     "There is no summary.json: the run goes on, was killed, or failed. The page shows what "
                     "its tables have so far.");
    if (facts->epochs.count == 0)
        html_element(html, "p class=\"note\"",
                     "epochs.csv has no epoch or is not there: the page has no curves.");
    if (facts->steps.rows == 0)
        html_element(html, "p class=\"note\"",
                     "steps.csv has no step or is not there (--log-every=0 writes none): the page shows "
                     "neither time over the run, nor single steps, nor histograms of staleness.");
    if (unreadable > 0)
        html_element(html, "p class=\"note\"", "%ld row%s of the tables could not be read and %s left out.",
                     unreadable, unreadable == 1 ? "" : "s", unreadable == 1 ? "is" : "are");
}

static int write_glance(struct html *html, const struct report *report, struct error *error) {
    const struct facts *facts = run_of(report);
    char sentence[SENTENCE_BYTES];
    (void)error;
    if (facts->has_summary)
        write_tiles(html, &facts->summary);
    else
        write_known(html, facts);
    if (facts_sentence(facts, sentence, sizeof sentence)[0])
        html_element(html, "p class=\"why\"", "%s", sentence);
    write_missing(html, facts);
    return OK;
}

/* --- curves --- */

enum { TRAIN, TEST, VALIDATION, BATCHES, KINDS };

/* The mean loss of the steps in each bin of time. */
static int curve_of_steps(struct curve *curve, const struct step_facts *steps, struct error *error) {
    RETURN_IF(memory_array(&curve->x, FACTS_BINS, "a curve", error));
    RETURN_IF(memory_array(&curve->y, FACTS_BINS, "a curve", error));
    for (int b = 0; b < FACTS_BINS; b++) {
        if (steps->losses[b] == 0) continue;
        curve->x[curve->count] = fmin((b + 0.5) * steps->bin_s, steps->end_s);
        curve->y[curve->count++] = steps->loss[b] / (double)steps->losses[b];
    }
    return OK;
}

static bool has_validation(const struct facts *facts) {
    for (int i = 0; i < facts->epochs.count; i++)
        if (isfinite(facts->epochs.rows[i].validation_loss)) return true;
    return false;
}

/* All of them, with nothing to draw yet. */
static void name_curves(struct curve curves[KINDS], bool validation, bool batches) {
    curves[TRAIN] = (struct curve){.label = "training, mean of the epoch", .colour = 1};
    curves[TEST] = (struct curve){.label = "test", .colour = 0};
    curves[VALIDATION] = (struct curve){.label = "validation", .colour = 2, .again = !validation};
    curves[BATCHES] = (struct curve){
        .label = "training, as the batches come", .colour = 1, .faint = true, .again = !batches};
}

static void write_chart(struct html *html, struct curve curves[KINDS], const char *title, bool logarithmic,
                        const char *x_title) {
    const struct chart chart = {
        .title = title, .x_title = x_title, .logarithmic = logarithmic, .curves = curves, .count = KINDS};
    chart_curves(html, &chart);
    for (int i = 0; i < KINDS; i++) curve_free(&curves[i]);
}

static int write_loss(struct html *html, const struct facts *facts, epoch_value *x, const char *x_title,
                      struct error *error) {
    struct curve curves[KINDS];
    name_curves(curves, true, true);
    int code = curve_of_epochs(&curves[TRAIN], facts, x, value_train_loss, error);
    if (code == OK) code = curve_of_epochs(&curves[TEST], facts, x, value_test_loss, error);
    if (code == OK) code = curve_of_epochs(&curves[VALIDATION], facts, x, value_validation_loss, error);
    if (code == OK && x == value_seconds) code = curve_of_steps(&curves[BATCHES], &facts->steps, error);
    write_chart(html, curves, "Loss", true, x_title);
    return code;
}

static int write_accuracy(struct html *html, const struct facts *facts, epoch_value *x, const char *x_title,
                          struct error *error) {
    struct curve curves[KINDS];
    name_curves(curves, true, true);
    int code = curve_of_epochs(&curves[TEST], facts, x, value_test_accuracy, error);
    if (code == OK) code = curve_of_epochs(&curves[VALIDATION], facts, x, value_validation_accuracy, error);
    write_chart(html, curves, "Accuracy, %", false, x_title);
    return code;
}

static int write_curves(struct html *html, const struct report *report, struct error *error) {
    const struct facts *facts = run_of(report);
    struct curve curves[KINDS];
    name_curves(curves, has_validation(facts), facts->steps.rows > 0);
    chart_legend(html, curves, KINDS);
    html_put(html, "<div class=\"charts\">\n");
    RETURN_IF(write_loss(html, facts, value_epoch, "epoch", error));
    RETURN_IF(write_loss(html, facts, value_seconds, "seconds of training", error));
    RETURN_IF(write_accuracy(html, facts, value_epoch, "epoch", error));
    RETURN_IF(write_accuracy(html, facts, value_seconds, "seconds of training", error));
    html_put(html, "</div>\n");
    return OK;
}

/* --- time --- */

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

static void write_name(struct html *html, const struct facts *facts, int worker) {
    char name[80];
    html_put(html, "<div class=\"name\"><b>");
    html_text(html, facts_worker(facts, worker, name, sizeof name));
    html_put(html, "</b>");
    if (worker < facts->summary.workers && facts->workers[worker].lost) html_put(html, "<span>lost</span>");
    html_put(html, "</div>\n");
}

static void say_more(struct html *html, int count) {
    if (count > LANES_MOST)
        html_element(html, "p class=\"quiet\"", "And %d more workers, which are not drawn.",
                     count - LANES_MOST);
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
    static const struct column columns[] = {
        {"worker", true},   {"steps", false},          {"computing", false},
        {"batches", false}, {"weights", false},        {"gradients", false},
        {"waiting", false}, {"mean staleness", false}, {"highest", false}};
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

/* The summary is about the last part of a run that was resumed, the tables are about all of it. */
static bool was_resumed(const struct facts *facts) {
    long steps = 0;
    for (int w = 0; w < facts->summary.workers; w++) steps += facts->workers[w].steps;
    return facts->summary.workers > 0 && steps < facts->summary.steps;
}

static int write_time(struct html *html, const struct report *report, struct error *error) {
    const struct facts *facts = run_of(report);
    const int count = worker_count(facts);
    double seconds[PARTS];
    (void)error;
    if (was_resumed(facts))
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

static bool has_waits(const struct report *report) {
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

static int write_waits(struct html *html, const struct report *report, struct error *error) {
    static const struct column columns[] = {{"who", true},    {"waited", false},    {"mostly at", true},
                                            {"there", false}, {"mostly for", true}, {"for it", false}};
    const struct facts *facts = run_of(report);
    char number[NUMBER_BYTES];
    (void)error;
    html_element(html, "p class=\"quiet\"",
                 "A wait counts for whoever came last. Of each worker, the place and the one that it waited "
                 "for longest; pauses at the end of epochs included.");
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
    if (has_matrix(facts)) write_matrix(html, facts);
    return OK;
}

/* --- steps --- */

void write_steps_note(struct html *html) {
    html_put(html, "The number of a step stands where it computes; between epochs there is none. "
                   "<code>--from=SECONDS</code> <code>--length=SECONDS</code> shows another stretch.</p>\n");
}

void write_steps(struct html *html, const struct facts *facts) {
    const struct stretch *stretch = &facts->stretch;
    for (int w = 0; w < facts->steps.count && w < LANES_MOST; w++) {
        html_put(html, "<div class=\"lane-box\">");
        write_name(html, facts, w);
        chart_steps(html, stretch, w);
        html_put(html, "</div>\n");
    }
    chart_seconds_axis(html, stretch->from_s, stretch->length_s);
    say_more(html, facts->steps.count);
    if (stretch->count == 0) html_element(html, "p class=\"note\"", "No step lies in this stretch.");
    if (stretch->left_out > 0)
        html_element(html, "p class=\"note\"",
                     "The stretch that was asked for has %ld steps; the picture ends after %d.",
                     stretch->left_out + stretch->count, FACTS_STRETCH);
}

static int write_stretch(struct html *html, const struct report *report, struct error *error) {
    char from[NUMBER_BYTES], length[NUMBER_BYTES];
    const struct stretch *stretch = &run_of(report)->stretch;
    (void)error;
    html_put(html, "<p class=\"quiet\">");
    html_say(html, "%s of the run, from %s on. ", number_seconds(stretch->length_s, length),
             number_seconds(stretch->from_s, from));
    write_steps_note(html);
    chart_parts(html);
    write_steps(html, run_of(report));
    return OK;
}

/* --- staleness --- */

static double highest_share(const struct step_facts *steps) {
    double most = 0.0;
    for (int w = 0; w < steps->count; w++) {
        long sum = 0;
        for (int i = 0; i < FACTS_STALE; i++) sum += steps->workers[w].stale[i];
        for (int i = 0; i < FACTS_STALE && sum > 0; i++)
            most = fmax(most, (double)steps->workers[w].stale[i] / (double)sum);
    }
    return most;
}

static bool is_stale(const struct step_facts *steps) {
    for (int w = 0; w < steps->count; w++)
        if (steps->workers[w].stale_max > 0) return true;
    return false;
}

static void write_histogram(struct html *html, const struct facts *facts, int worker, double most) {
    const struct worker_steps *of = &facts->steps.workers[worker];
    char name[80], mean[NUMBER_BYTES];
    long sum = 0;
    for (int i = 0; i < FACTS_STALE; i++) sum += of->stale[i];
    html_put(html, "<figure><div class=\"name\"><b>");
    html_text(html, facts_worker(facts, worker, name, sizeof name));
    html_put(html, "</b><span>");
    html_say(html, "mean %s, at most %ld",
             number_text(sum > 0 ? of->stale_sum / (double)sum : (double)NAN, mean), of->stale_max);
    html_put(html, "</span></div>\n");
    chart_staleness(html, &facts->steps, worker, most);
    html_put(html, "</figure>\n");
}

enum { SHARDS_MOST = 32 };

static void write_shards(struct html *html, const struct summary *summary) {
    static const struct column columns[] = {
        {"shard", true}, {"mean", false}, {"median", false}, {"99 %", false}, {"highest", false}};
    html_put(html, "<figure class=\"below\"><figcaption>By shard</figcaption>\n");
    struct table table = table_begin(html, columns, sizeof columns / sizeof *columns);
    for (int s = 0; s < summary->shards_here && s < SHARDS_MOST; s++) {
        const struct summary_staleness *of = &summary->shard_staleness[s];
        table_row(&table);
        table_cell(&table, "shard %d", s);
        table_cell(&table, "%.2f", of->mean);
        table_cell(&table, "%ld", of->p50);
        table_cell(&table, "%ld", of->p99);
        table_cell(&table, "%ld", of->max);
    }
    table_end(&table);
    html_put(html, "</figure>\n");
}

static int write_staleness(struct html *html, const struct report *report, struct error *error) {
    const struct facts *facts = run_of(report);
    const double most = highest_share(&facts->steps);
    char share[NUMBER_BYTES];
    (void)error;
    if (!is_stale(&facts->steps)) {
        html_element(html, "p", "Every gradient was applied to the weights that it was computed on.");
        return OK;
    }
    html_element(html, "p class=\"quiet\"",
                 "Updates between reading the weights and applying the gradient, the most over the shards. "
                 "The highest bar of all is %s of its worker's gradients.%s",
                 number_percent(most, 1, share),
                 facts->steps.stale_width > 1 ? " Each bar stands for several numbers of updates, and is "
                                                "labelled with the first of them."
                                              : "");
    html_put(html, "<div class=\"small\">\n");
    for (int w = 0; w < facts->steps.count && w < LANES_MOST; w++)
        if (facts->steps.workers[w].rows > 0) write_histogram(html, facts, w, most);
    html_put(html, "</div>\n");
    say_more(html, facts->steps.count);
    if (facts->summary.shards_here > 1) write_shards(html, &facts->summary);
    return OK;
}

/* --- losses --- */

static void write_lost_workers(struct html *html, const struct facts *facts) {
    const struct summary *summary = &facts->summary;
    if (summary->lost_workers == 0) return;
    html_put(html, "<li>");
    html_say(html, "%d worker%s lost", summary->lost_workers, summary->lost_workers == 1 ? "" : "s");
    const char *before = ": ";
    for (int w = 0; w < summary->workers; w++) {
        if (!facts->workers[w].lost) continue;
        html_say(html, "%s%s", before, facts->workers[w].name);
        before = ", ";
    }
    html_say(html, ". Nobody computed the %ld batch%s in hand.", summary->lost_batches,
             summary->lost_batches == 1 ? "" : "es");
    html_put(html, "</li>\n");
}

static int write_losses(struct html *html, const struct report *report, struct error *error) {
    const struct facts *facts = run_of(report);
    const struct summary *summary = &facts->summary;
    char some[NUMBER_BYTES], all[NUMBER_BYTES];
    const bool none = !summary->faults[0] && summary->lost_workers == 0 && summary->lost_updates == 0 &&
                      summary->dropped == 0 && !summary->interrupted;
    (void)error;
    if (none) {
        html_element(html, "p", "None: no worker, no update and no gradient was lost, and no fault put in.");
        return OK;
    }
    html_put(html, "<ul>\n");
    if (summary->faults[0]) html_element(html, "li", "Faults put in: %s", summary->faults);
    write_lost_workers(html, facts);
    if (summary->lost_updates > 0)
        html_element(html, "li", "Another worker overwrote %s of %s updates.",
                     number_text((double)summary->lost_updates, some),
                     number_text((double)summary->updates, all));
    if (summary->dropped > 0)
        html_element(html, "li", "%s gradients came too late and were dropped.",
                     number_text((double)summary->dropped, some));
    if (summary->interrupted)
        html_element(html, "li", "A signal ended the run; --resume=%s continues it.", facts->folder);
    html_put(html, "</ul>\n");
    return OK;
}

/* --- what it was --- */

static int write_what(struct html *html, const struct report *report, struct error *error) {
    (void)error;
    write_settings(html, run_of(report));
    return OK;
}

static bool has_settings(const struct report *report) {
    return run_of(report)->setting_count > 0;
}

static int write_again(struct html *html, const struct report *report, struct error *error) {
    RETURN_IF(write_command(html, run_of(report), error));
    write_command_note(html, run_of(report));
    return OK;
}

const struct section one_run_sections[] = {
    {"glance", "At a glance", NULL, write_glance},
    {"curves", "What it learnt", has_epochs, write_curves},
    {"time", "Where the time went", has_workers, write_time},
    {"waits", "Who waited for whom", has_waits, write_waits},
    {"steps", "Step by step", has_steps, write_stretch},
    {"staleness", "How old gradients were", has_steps, write_staleness},
    {"losses", "Faults and losses", has_summary, write_losses},
    {"settings", "What was run", has_settings, write_what},
    {"repeat", "How to repeat it", has_settings, write_again},
    {0},
};
