/* Rows of a comparison. Speeds are compared by the ratio of their means: the runs come repeat by repeat, so
 * both means are over the same minutes of the machine. */
#include "rows.h"

#include <math.h>
#include <string.h>

void row_open(struct bench_row *row, int wanted) {
    *row = (struct bench_row){.wanted = wanted,
                              .speedup_one = NAN,
                              .speedup_one_sd = NAN,
                              .speedup_all = NAN,
                              .speedup_all_sd = NAN,
                              .score_apart = NAN,
                              .updates_ratio = NAN,
                              .waited_at_share = NAN,
                              .waited_for_share = NAN};
}

static void add_waits(struct bench_row *row, struct wait_sums *sums, const struct run_result *result) {
    struct spent spent = {.waited_at_share = row->waited_at_share, .waited_for_share = row->waited_for_share};
    waits_add(sums, result->workers, result->summary.workers);
    waits_longest(sums, &spent);
    row->waited_at = spent.waited_at;
    row->waited_at_share = spent.waited_at_share;
    row->waited_for = spent.waited_for;
    row->waited_for_share = spent.waited_for_share;
}

static void add_summary(struct bench_row *row, const struct summary *summary) {
    row->finished++;
    statistic_add(&row->examples_per_s, summary->examples_per_s);
    statistic_add(&row->train_seconds, summary->train_seconds);
    statistic_add(&row->target_s, summary->target_s);
    row->metric = summary->metric;
    statistic_add(&row->test_score, summary->test_score);
    statistic_add(&row->test_cost, summary->test_cost);
    statistic_add(&row->final_cost, summary->final_cost);
    statistic_add(&row->staleness_mean, summary->staleness.mean);
    statistic_add(&row->staleness_p99, (double)summary->staleness.p99);
    if (summary->staleness.max > row->staleness_max) row->staleness_max = summary->staleness.max;
    statistic_add(&row->compute_share, summary->compute_share);
    statistic_add(&row->input_share, summary->input_share);
    statistic_add(&row->pull_share, summary->pull_share);
    statistic_add(&row->push_share, summary->push_share);
    statistic_add(&row->wait_share, summary->wait_share);
    statistic_add(&row->updates, (double)summary->updates);
    statistic_add(&row->lost_updates, (double)summary->lost_updates);
    statistic_add(&row->dropped, (double)summary->dropped);
    row->lost_workers += summary->lost_workers;
    statistic_add(&row->bytes_moved, (double)summary->bytes_moved);
}

void row_add_run(struct bench_row *row, struct wait_sums *sums, const struct run_result *result) {
    add_summary(row, &result->summary);
    add_waits(row, sums, result);
}

void row_add_failure(struct bench_row *row, const struct error *failure) {
    row->failed++;
    if (row->failure != OK) return;
    row->failure = failure->code;
    memcpy(row->failure_words, failure->words, sizeof row->failure_words);
}

static double ratio_of(const struct statistic *a, const struct statistic *b) {
    return statistic_mean(a) / statistic_mean(b);
}

/* Of a ratio of independent means, to first order. */
static double ratio_deviation(const struct statistic *a, const struct statistic *b) {
    return ratio_of(a, b) *
           hypot(statistic_deviation(a) / statistic_mean(a), statistic_deviation(b) / statistic_mean(b));
}

void rows_set_beside(struct bench_row *rows, int count) {
    const struct bench_row *one = &rows[0], *all = count > 1 && rows[1].baseline ? &rows[1] : NULL;
    for (int i = 0; i < count; i++) {
        struct bench_row *row = &rows[i];
        row->speedup_one = ratio_of(&row->examples_per_s, &one->examples_per_s);
        row->speedup_one_sd = ratio_deviation(&row->examples_per_s, &one->examples_per_s);
        row->updates_ratio = ratio_of(&row->updates, &one->updates);
        row->score_apart = 100 * (statistic_mean(&row->test_score) - statistic_mean(&one->test_score));
        if (!all) continue;
        row->speedup_all = ratio_of(&row->examples_per_s, &all->examples_per_s);
        row->speedup_all_sd = ratio_deviation(&row->examples_per_s, &all->examples_per_s);
    }
}
