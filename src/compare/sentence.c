/* What matters most about a strategy, in one sentence. Every clause has a threshold, so a row without
 * surprises gets a short sentence; a speed whose spread is large, by the runs of either side, is given with
 * that spread; one within its spread without a verdict. */
#include "bench.h"

#include <math.h>
#include <string.h>
#include "../base/text.h"
#include "../record/digits.h"
#include "../record/sentence.h"

/* Shares of the time, speeds apart, updates and points from which on they are worth a word. */
static const double wait_matters = 0.2, exchange_matters = 0.2, speed_matters = 0.05, points_matter = 0.5,
                    updates_matter = 0.25;
/* Of a ratio of speeds: a deviation from which on the ratio alone would say more than the runs do. */
static const double spread_matters = 0.1;
/* Of the waiting, as the words "mostly for" have it. */
static const double wait_is_for_one = 0.6;

/* --- speed --- */

enum standing { SLOWER, SAME, FASTER, UNCLEAR };

static bool is_spread(double ratio, double deviation) {
    return deviation > spread_matters * ratio;
}

static enum standing standing(double ratio, double deviation) {
    if (fabs(ratio - 1.0) <= speed_matters) return is_spread(ratio, deviation) ? UNCLEAR : SAME;
    if (fabs(ratio - 1.0) <= deviation) return UNCLEAR;
    return ratio > 1.0 ? FASTER : SLOWER;
}

/* "1.75", or "1.75 +- 0.49" */
static void add_ratio(struct text *words, double ratio, double deviation, bool spread) {
    text_add(words, "%.2f", ratio);
    if (spread) text_add(words, " +- %.2f", deviation);
}

static void add_speed(struct text *words, double ratio, double deviation, const char *whom) {
    const enum standing found = standing(ratio, deviation);
    const bool spread = is_spread(ratio, deviation);
    switch (found) {
    case SLOWER:
        text_add(words, "slower than %s (", whom);
        add_ratio(words, ratio, deviation, spread);
        text_add(words, " times its speed)");
        return;
    case SAME:
        text_add(words, "about as fast as %s (%.2f times)", whom, ratio);
        return;
    case FASTER:
    case UNCLEAR:
        add_ratio(words, ratio, deviation, spread || found == UNCLEAR);
        text_add(words, " times as fast as %s", whom);
        return;
    }
}

/* Whether it is slower than one device. */
static bool add_speeds(struct text *words, const struct bench_row *row) {
    if (isnan(row->speedup_one)) {
        char speed[DIGITS_BYTES];
        digits_thousands(speed, statistic_mean(&row->examples_per_s));
        text_add(words, "%s examples/s", speed);
        return false;
    }
    const enum standing one = standing(row->speedup_one, row->speedup_one_sd);
    const enum standing all = standing(row->speedup_all, row->speedup_all_sd);
    add_speed(words, row->speedup_one, row->speedup_one_sd, "one device");
    if (isnan(row->speedup_all)) return one == SLOWER;
    if (one == all && one == SLOWER) {
        text_add(words, " and than one with all cores (");
        add_ratio(words, row->speedup_all, row->speedup_all_sd,
                  is_spread(row->speedup_all, row->speedup_all_sd));
        text_add(words, ")");
    } else if (one == all && one == SAME) {
        text_add(words, " and as one with all cores (%.2f)", row->speedup_all);
    } else {
        text_add(words, one == all || one == UNCLEAR || all == UNCLEAR ? " and " : ", but ");
        add_speed(words, row->speedup_all, row->speedup_all_sd, "one with all cores");
    }
    return one == SLOWER;
}

/* --- where the time goes --- */

static struct spent spent_by(const struct bench_row *row) {
    return (struct spent){.wait_share = statistic_mean(&row->wait_share),
                          .exchange_share =
                              statistic_mean(&row->pull_share) + statistic_mean(&row->push_share),
                          .waited_at = row->waited_at,
                          .waited_at_share = row->waited_at_share,
                          .waited_for = row->waited_for,
                          .waited_for_share = row->waited_for_share,
                          .staleness_mean = statistic_mean(&row->staleness_mean),
                          .staleness_max = row->staleness_max,
                          .updates = statistic_mean(&row->updates),
                          .lost_updates = statistic_mean(&row->lost_updates),
                          .dropped = statistic_mean(&row->dropped)};
}

/* Where all wait for one, it could have less to do. */
static void add_advice(struct text *words, const struct bench_row *row) {
    if (!row->may_share || !row->waited_for || !(row->waited_for_share > wait_is_for_one)) return;
    text_item(words, "; ", "--share=auto would give it fewer examples");
}

/* --- what it costs --- */

static void add_accuracy(struct text *words, const struct bench_row *row) {
    const double apart = row->score_apart;
    if (!metric_rows[row->metric].share || !(fabs(apart) > points_matter)) return;
    text_item(words, "; ", "%.1f points %s one worker", fabs(apart), apart < 0 ? "below" : "above");
    if (fabs(row->updates_ratio - 1.0) > updates_matter)
        text_add(words, ", with %.2f times as many updates", row->updates_ratio);
}

static void add_target(struct text *words, const struct bench_row *row) {
    if (row->target_s.count == row->finished) return;
    if (row->target_s.count == 0)
        text_item(words, "; ", "never reaches the target accuracy");
    else
        text_item(words, "; ", "reaches the target accuracy in %ld of %d runs", row->target_s.count,
                  row->finished);
}

static void add_losses(struct text *words, const struct bench_row *row, const struct spent *spent) {
    sentence_losses(words, spent);
    if (row->lost_workers == 0) return;
    text_item(words, "; ", "%d worker%s lost in %d run%s", row->lost_workers,
              row->lost_workers == 1 ? "" : "s", row->finished, row->finished == 1 ? "" : "s");
}

static void add_failures(struct text *words, const struct bench_row *row) {
    if (row->finished == row->wanted) return;
    if (row->failed > 0)
        text_item(words, "; ", "failed in %d of %d runs: %s", row->failed, row->wanted, row->failure_words);
    else if (row->finished > 0)
        text_item(words, "; ", "only %d of %d runs", row->finished, row->wanted);
    else
        text_item(words, "; ", "not run");
}

const char *bench_sentence(const struct bench_row *row, double target_accuracy, char *out, size_t bytes) {
    struct text words = text_into(out, bytes);
    const struct spent spent = spent_by(row);
    if (row->finished > 0 && !row->baseline) {
        const char *before = add_speeds(&words, row) ? ": " : "; "; /* where the time goes is why */
        const bool waits = sentence_waiting(&words, before, &spent, wait_matters);
        if (waits) before = "; ";
        if (waits) add_advice(&words, row);
        sentence_exchange(&words, before, &spent, exchange_matters);
        sentence_staleness(&words, &spent);
        add_accuracy(&words, row);
        if (!isnan(target_accuracy)) add_target(&words, row);
        add_losses(&words, row, &spent);
    }
    add_failures(&words, row);
    return out;
}
