/* What is read first of a run, and what went wrong in it. */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "../record/sentence.h"
#include "one_run.h"

/* "3", or of a run that was interrupted "1.61 of 50" */
static const char *epochs_text(const struct facts *facts, char out[64]) {
    char number[NUMBER_BYTES];
    const int wanted = facts_epochs_wanted(facts);
    number_text(facts_epochs(facts), number);
    snprintf(out, 64, "%s", number);
    if (facts->summary.interrupted && wanted > 0) snprintf(out, 64, "%s of %d", number, wanted);
    return out;
}

/* "95.12 %", "test accuracy so far" */
static void write_score(struct html *html, const char *when, enum metric metric, double value) {
    char number[NUMBER_BYTES], plain[METRIC_BYTES], words[64];
    const char *text =
        metric_rows[metric].share ? number_percent(value, 2, number) : metric_text(metric, value, plain);
    snprintf(words, sizeof words, "test %s%s", metric_rows[metric].words, when);
    page_tile(html, text, words);
}

/* What is only known of the last part of a run that was resumed says so. */
static void write_tiles(struct html *html, const struct facts *facts) {
    const struct summary *summary = &facts->summary;
    const bool part = facts_resumed(facts), one = facts_epochs(facts) == 1.0 && !summary->interrupted;
    char number[NUMBER_BYTES], epochs[64];
    html_put(html, "<div class=\"tiles\">\n");
    write_score(html, "", summary->metric, summary->test_score);
    page_tile(html, number_seconds(summary->train_seconds, number), "of training");
    page_tile(html, epochs_text(facts, epochs), one ? "epoch" : "epochs");
    page_tile(html, number_text(summary->examples_per_s, number),
              part ? "examples per second, in its last part" : "examples per second");
    page_tile(html, number_percent(summary->compute_share, 0, number),
              part ? "of the workers' time in its last part spent computing"
                   : "of the workers' time spent computing");
    page_tile(html, number_text(summary->staleness.mean, number),
              part ? "mean staleness of a gradient, in updates, in its last part"
                   : "mean staleness of a gradient, in updates");
    html_put(html, "</div>\n");
}

/* Of a run that has no summary. */
static void write_known(struct html *html, const struct facts *facts) {
    char number[NUMBER_BYTES];
    html_put(html, "<div class=\"tiles\">\n");
    if (facts->epochs.count > 0) {
        const struct epoch_row *last = &facts->epochs.rows[facts->epochs.count - 1];
        write_score(html, " so far", last->metric, last->test_score);
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
                     "There is no summary.json: the run is still running, was killed or failed, or it was "
                     "imported and "
                     "has not been trained since. The page shows what its tables have so far.");
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

/* What the run warned of at its end. */
static void write_verdict(struct html *html, const struct summary *summary) {
    const char *const verdicts[] = {summary->verdict.diverged, summary->verdict.learnt_nothing};
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
        if (verdicts[i][0])
            html_element(html, "p class=\"note\"", "%c%s.", toupper((unsigned char)verdicts[i][0]),
                         verdicts[i] + 1);
}

/* "20ms"; "": it was not. */
static const char *simulated_as(const struct facts *facts) {
    const char *as = facts_setting(facts, "simulate");
    return as ? as : "";
}

static void write_simulated(struct html *html, const struct facts *facts) {
    const char *as = simulated_as(facts);
    if (as[0])
        html_element(html, "p class=\"note\"",
                     "Simulated, with --simulate=%s: all times on this page are virtual.", as);
}

static void write_interrupted(struct html *html, const struct facts *facts) {
    char epochs[64], command[COMMAND_BYTES];
    struct text text = text_into(command, sizeof command);
    if (!facts->summary.interrupted) return;
    html_put(html, "<p class=\"note\">");
    html_say(html, "The run was interrupted after %s epochs. ", epochs_text(facts, epochs));
    command_resume(&text, facts);
    html_element(html, "code", "%s", command);
    html_put(html, " continues it.</p>\n");
}

/* "2 cores, ...": 2. 0: the words are others. */
static int cores_of(const char *machine) {
    char *end = NULL;
    const long cores = strtol(machine, &end, 10);
    return strncmp(end, " core", 5) == 0 && cores > 0 && cores <= INT_MAX ? (int)cores : 0;
}

/* CPU devices of one process whose threads are more than its cores. */
static void write_shared_cores(struct html *html, const struct facts *facts) {
    const struct summary *summary = &facts->summary;
    const int cores = cores_of(summary->machine), threads = summary->threads > 0 ? summary->threads : 1;
    int cpus = 0;
    for (int w = 0; w < summary->workers; w++)
        for (const char *at = facts->workers[w].device; (at = strstr(at, "cpu:")) != NULL; at++) cpus++;
    if (summary->cluster_workers > 0 || cores == 0 || summary->simulated) return;
    if (cpus < 2 || (long)cpus * threads <= cores) return;
    html_put(html, "<p class=\"note\">");
    html_say(html, "%d CPU devices of %d thread%s shared the machine's %d core%s: ", cpus, threads,
             threads == 1 ? "" : "s", cores, cores == 1 ? "" : "s");
    html_put(html, "they took turns, and a worker's times include waiting for a core.</p>\n");
}

static void write_servers(struct html *html, const struct summary *summary) {
    char words[300] = "";
    struct text text = text_into(words, sizeof words);
    sentence_servers(&text, summary->server_bytes, summary->servers);
    if (words[0])
        html_element(html, "p class=\"quiet\"", "%c%s.", toupper((unsigned char)words[0]), words + 1);
}

int write_glance(struct html *html, const struct report *report, struct error *error) {
    const struct facts *facts = run_of(report);
    char sentence[SENTENCE_BYTES];
    (void)error;
    if (facts->has_summary)
        write_tiles(html, facts);
    else
        write_known(html, facts);
    if (facts_sentence(facts, sentence, sizeof sentence)[0])
        html_element(html, "p class=\"why\"", "%s%s", facts_resumed(facts) ? "In its last part: " : "",
                     sentence);
    if (facts->has_summary) {
        write_simulated(html, facts);
        write_servers(html, &facts->summary);
        write_verdict(html, &facts->summary);
        write_interrupted(html, facts);
        write_shared_cores(html, facts);
    }
    write_missing(html, facts);
    return OK;
}

/* --- faults and losses --- */

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
    if (summary->lost_workers == 1 && summary->lost_batches == 1)
        html_say(html, ". Its unfinished batch was lost.");
    else
        html_say(html, ". %ld unfinished batch%s lost.", summary->lost_batches,
                 summary->lost_batches == 1 ? " was" : "es were");
    html_put(html, "</li>\n");
}

static void write_joined_workers(struct html *html, const struct facts *facts) {
    const struct summary *summary = &facts->summary;
    char updates[NUMBER_BYTES];
    if (summary->join_count == 0) return;
    html_put(html, "<li>");
    html_say(html, "%d worker%s joined", summary->join_count, summary->join_count == 1 ? "" : "s");
    for (int j = 0; j < summary->join_count; j++) {
        const struct summary_join *join = &summary->joins[j];
        html_say(html, "%s", j == 0 ? ": " : ", ");
        if (join->worker < summary->workers)
            html_say(html, "%s", facts->workers[join->worker].name);
        else
            html_say(html, "worker %d", join->worker);
        html_say(html, " after %s update%s", number_text((double)join->update, updates),
                 join->update == 1 ? "" : "s");
    }
    html_put(html, ".</li>\n");
}

int write_losses(struct html *html, const struct report *report, struct error *error) {
    const struct facts *facts = run_of(report);
    const struct summary *summary = &facts->summary;
    char some[NUMBER_BYTES], all[NUMBER_BYTES];
    const bool none = !summary->faults[0] && summary->lost_workers == 0 && summary->lost_updates == 0 &&
                      summary->redone_updates == 0 && summary->dropped == 0 && summary->join_count == 0 &&
                      !summary->interrupted;
    (void)error;
    if (none) {
        html_element(html, "p",
                     "None: no worker, no update and no gradient was lost, and there was no injected fault.");
        return OK;
    }
    html_put(html, "<ul>\n");
    if (summary->faults[0]) html_element(html, "li", "Injected faults: %s", summary->faults);
    write_lost_workers(html, facts);
    write_joined_workers(html, facts);
    if (summary->lost_updates > 0)
        html_element(html, "li", "Another worker overwrote %s of %s updates.",
                     number_text((double)summary->lost_updates, some),
                     number_text((double)summary->updates, all));
    if (summary->redone_updates > 0)
        html_element(html, "li", "%s update%s since a checkpoint %s lost with a process, and made again.",
                     number_text((double)summary->redone_updates, some),
                     summary->redone_updates == 1 ? "" : "s", summary->redone_updates == 1 ? "was" : "were");
    if (summary->dropped > 0)
        html_element(html, "li", "%s gradients came too late and were dropped.",
                     number_text((double)summary->dropped, some));
    if (summary->interrupted) html_element(html, "li", "The run was interrupted.");
    html_put(html, "</ul>\n");
    return OK;
}
