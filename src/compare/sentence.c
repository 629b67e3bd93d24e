/* What matters most about a strategy, in one sentence. Every clause has a threshold, so that a row without
 * surprises gets a short one; a speed within the spread of the runs is given with that spread instead of a
 * verdict. */
#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "../outputs/digits.h"

/* Shares of the time, speeds apart, updates and points from which on they are worth a word. */
static const double wait_matters = 0.2, exchange_matters = 0.2, speed_matters = 0.05, staleness_matters = 0.5,
                    points_matter = 0.5, updates_matter = 0.25;
/* Shares of the waiting that make it "mostly" and "all but" at one place or for one member. */
static const double mostly = 0.6, all_but = 0.9;

struct words {
    char *out;
    size_t bytes, used;
    const char *between; /* what stands before the next clause */
};

__attribute__((format(printf, 2, 3))) static void add(struct words *words, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = vsnprintf(words->out + words->used, words->bytes - words->used, format, arguments);
    va_end(arguments);
    if (count > 0) words->used += (size_t)count;
    if (words->used >= words->bytes) words->used = words->bytes - 1;
}

static void begin_clause(struct words *words) {
    if (words->used > 0) add(words, "%s", words->between);
    words->between = "; ";
}

/* --- speed --- */

enum standing { SLOWER, SAME, FASTER, UNCLEAR };

static enum standing standing(double ratio, double deviation) {
    if (fabs(ratio - 1.0) <= speed_matters) return SAME;
    if (fabs(ratio - 1.0) <= deviation) return UNCLEAR;
    return ratio > 1.0 ? FASTER : SLOWER;
}

static void add_speed(struct words *words, double ratio, double deviation, const char *whom) {
    switch (standing(ratio, deviation)) {
    case SLOWER:
        add(words, "slower than %s (%.2f times its speed)", whom, ratio);
        return;
    case SAME:
        add(words, "about as fast as %s (%.2f times)", whom, ratio);
        return;
    case FASTER:
        add(words, "%.2f times as fast as %s", ratio, whom);
        return;
    case UNCLEAR:
        add(words, "%.2f +- %.2f times as fast as %s", ratio, deviation, whom);
        return;
    }
}

static void add_speeds(struct words *words, const struct bench_row *row) {
    begin_clause(words);
    if (isnan(row->speedup_one)) {
        char speed[DIGITS_BYTES];
        digits_thousands(speed, statistic_mean(&row->examples_per_s));
        add(words, "%s examples/s", speed);
        return;
    }
    const enum standing one = standing(row->speedup_one, row->speedup_one_sd);
    const enum standing all = standing(row->speedup_all, row->speedup_all_sd);
    add_speed(words, row->speedup_one, row->speedup_one_sd, "one device");
    if (one == SLOWER) words->between = ": "; /* where the time goes is why */
    if (isnan(row->speedup_all)) return;
    if (one == all && one == SLOWER) {
        add(words, " and than one with all cores (%.2f)", row->speedup_all);
        return;
    }
    if (one == all && one == SAME) {
        add(words, " and as one with all cores (%.2f)", row->speedup_all);
        return;
    }
    add(words, one == all || one == UNCLEAR || all == UNCLEAR ? " and " : ", but ");
    add_speed(words, row->speedup_all, row->speedup_all_sd, "one with all cores");
}

/* --- where the time goes --- */

static void add_waiting(struct words *words, const struct bench_row *row) {
    if (!(statistic_mean(&row->wait_share) > wait_matters)) return;
    const bool at = row->waited_at && row->waited_at_share > mostly;
    const bool for_whom = row->waited_for && row->waited_for_share > mostly;
    const bool all_there = at && row->waited_at_share > all_but;
    begin_clause(words);
    add(words, "%.0f %% of the time waits", 100 * statistic_mean(&row->wait_share));
    if (all_there) add(words, " at %s", row->waited_at);
    if (for_whom) add(words, ", mostly for %s", row->waited_for);
    if (at && !all_there) add(words, "%s at %s", for_whom ? " and" : ", mostly", row->waited_at);
}

static void add_exchange(struct words *words, const struct bench_row *row) {
    const double share = statistic_mean(&row->pull_share) + statistic_mean(&row->push_share);
    if (!(share > exchange_matters)) return;
    begin_clause(words);
    add(words, "%.0f %% of the time exchanges weights and gradients", 100 * share);
}

/* --- what it costs --- */

static void add_staleness(struct words *words, const struct bench_row *row) {
    const double mean = statistic_mean(&row->staleness_mean);
    if (!(mean > staleness_matters)) return;
    begin_clause(words);
    add(words, "a gradient is %.1f updates old on average, %ld at most", mean, row->staleness_max);
}

static void add_accuracy(struct words *words, const struct bench_row *row) {
    const double apart = row->accuracy_apart;
    if (!(fabs(apart) > points_matter)) return;
    begin_clause(words);
    add(words, "%.1f points %s one worker", fabs(apart), apart < 0 ? "below" : "above");
    if (fabs(row->updates_ratio - 1.0) > updates_matter)
        add(words, ", with %.2f times as many updates", row->updates_ratio);
}

static void add_target(struct words *words, const struct bench_row *row) {
    if (row->target_s.count == row->finished) return;
    begin_clause(words);
    if (row->target_s.count == 0)
        add(words, "never reaches the target accuracy");
    else
        add(words, "reaches the target accuracy in %ld of %d runs", row->target_s.count, row->finished);
}

/* A mean of a few is no whole number. */
static void count_text(char out[DIGITS_BYTES], double mean) {
    digits_thousands(out, mean);
    if (mean < 9.5) snprintf(out, DIGITS_BYTES, "%.2g", mean);
}

static void add_losses(struct words *words, const struct bench_row *row) {
    char some[DIGITS_BYTES], all[DIGITS_BYTES];
    if (statistic_mean(&row->lost_updates) > 0.0) {
        count_text(some, statistic_mean(&row->lost_updates));
        digits_thousands(all, statistic_mean(&row->updates));
        begin_clause(words);
        add(words, "%s of %s updates lost", some, all);
    }
    if (statistic_mean(&row->dropped) > 0.0) {
        count_text(some, statistic_mean(&row->dropped));
        begin_clause(words);
        add(words, "%s gradients dropped", some);
    }
    if (row->lost_workers == 0) return;
    begin_clause(words);
    add(words, "%d worker%s lost in %d run%s", row->lost_workers, row->lost_workers == 1 ? "" : "s",
        row->finished, row->finished == 1 ? "" : "s");
}

static void add_failures(struct words *words, const struct bench_row *row) {
    if (row->finished == row->wanted) return;
    begin_clause(words);
    if (row->failed > 0)
        add(words, "failed in %d of %d runs: %s", row->failed, row->wanted, row->failure_words);
    else if (row->finished > 0)
        add(words, "only %d of %d runs", row->finished, row->wanted);
    else
        add(words, "not run");
}

const char *bench_sentence(const struct bench_row *row, double target_accuracy, char *out, size_t bytes) {
    struct words words = {.out = out, .bytes = bytes, .between = "; "};
    out[0] = '\0';
    if (row->finished > 0 && !row->baseline) {
        add_speeds(&words, row);
        add_waiting(&words, row);
        add_exchange(&words, row);
        words.between = "; ";
        add_staleness(&words, row);
        add_accuracy(&words, row);
        if (!isnan(target_accuracy)) add_target(&words, row);
        add_losses(&words, row);
    }
    add_failures(&words, row);
    return out;
}
