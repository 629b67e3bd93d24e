/* See sentence.h. */
#include "sentence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "digits.h"

/* Updates from which on staleness is worth a word. */
static const double staleness_matters = 0.5;
/* Shares of the waiting that make it "mostly" and "all but" at one place or for one member. */
static const double mostly = 0.6, all_but = 0.9;
/* Of one run: shares of the time, and how much larger the largest shard is than the smallest. */
static const double share_matters = 0.05, size_matters = 0.05;
/* A slowest worker is worth a word when its steps take so many times as long as those of the fastest, and
 * both have made so many of them, in so many seconds. */
static const double slowness_matters = 1.5, seconds_matter = 0.2;
enum { STEPS_MATTER = 20 };

/* --- whom the workers waited for --- */

/* Of more names than there is room for, those with the most seconds stay: what is left out can only make a
 * share smaller. */
static void add_wait(struct waits *waits, const char *name, double seconds) {
    int i = 0, least = 0;
    while (i < WAITS && waits->names[i][0] && strcmp(waits->names[i], name) != 0) i++;
    for (int other = 1; i == WAITS && other < WAITS; other++)
        if (waits->seconds[other] < waits->seconds[least]) least = other;
    if (i == WAITS && waits->seconds[least] >= seconds) return;
    if (i == WAITS) waits->seconds[i = least] = 0.0;
    snprintf(waits->names[i], sizeof waits->names[i], "%s", name);
    waits->seconds[i] += seconds;
}

static int longest(const struct waits *waits) {
    int best = 0;
    for (int i = 1; i < WAITS; i++)
        if (waits->seconds[i] > waits->seconds[best]) best = i;
    return best;
}

/* What a worker says is only where and for whom it waited longest, its pauses included: the shares are lower
 * bounds. */
void waits_add(struct wait_sums *sums, const struct worker_result *workers, int count) {
    for (int w = 0; w < count; w++) {
        const struct worker_result *worker = &workers[w];
        sums->seconds += fmax(worker->wait_s, fmax(worker->waited_at_s, worker->waited_for_s));
        if (worker->waited_at) add_wait(&sums->at, worker->waited_at, worker->waited_at_s);
        if (worker->waited_for[0]) add_wait(&sums->whom, worker->waited_for, worker->waited_for_s);
    }
}

void waits_longest(const struct wait_sums *sums, struct spent *spent) {
    if (!(sums->seconds > 0.0)) return;
    const int at = longest(&sums->at), whom = longest(&sums->whom);
    spent->waited_at = sums->at.names[at];
    spent->waited_at_share = sums->at.seconds[at] / sums->seconds;
    spent->waited_for = sums->whom.names[whom];
    spent->waited_for_share = sums->whom.seconds[whom] / sums->seconds;
}

/* --- clauses --- */

/* Behind the name of the server where "the server, for its own gradient to be applied" names it, too; else
 * NULL.
 */
static const char *behind_server(const struct spent *spent) {
    static const char place[] = "the server", member[] = "server ";
    const bool same = strncmp(spent->waited_at, place, sizeof place - 1) == 0 &&
                      strncmp(spent->waited_for, member, sizeof member - 1) == 0;
    return same ? spent->waited_at + sizeof place - 1 : NULL;
}

static void add_place(struct text *words, const struct spent *spent) {
    const bool all_there = spent->waited_at_share > all_but;
    const bool for_whom = spent->waited_for && spent->waited_for_share > mostly;
    const char *how_much = all_there ? "nearly all" : "mostly",
               *behind = for_whom ? behind_server(spent) : NULL;
    if (behind)
        text_add(words, ", %s at %s%s", how_much, spent->waited_for, behind);
    else if (for_whom && all_there)
        text_add(words, ", %s at %s, mostly for %s", how_much, spent->waited_at, spent->waited_for);
    else if (for_whom)
        text_add(words, ", mostly for %s and at %s", spent->waited_for, spent->waited_at);
    else
        text_add(words, ", %s at %s", how_much, spent->waited_at);
}

bool sentence_waiting(struct text *words, const char *before, const struct spent *spent, double least) {
    if (!(spent->wait_share > least)) return false;
    const bool at = spent->waited_at && spent->waited_at_share > mostly;
    const bool for_whom = spent->waited_for && spent->waited_for_share > mostly;
    text_item(words, before, "waiting takes %.0f %% of the time", 100 * spent->wait_share);
    if (at)
        add_place(words, spent);
    else if (for_whom)
        text_add(words, ", mostly for %s", spent->waited_for);
    if (spent->says_longest && spent->waited_at && !at && !for_whom)
        text_add(words, ", %.0f %% of that at %s", 100 * spent->waited_at_share, spent->waited_at);
    return true;
}

bool sentence_exchange(struct text *words, const char *before, const struct spent *spent, double least) {
    if (!(spent->exchange_share > least)) return false;
    text_item(words, before, "exchanging weights and gradients takes %.0f %% of the time",
              100 * spent->exchange_share);
    return true;
}

static bool add_input(struct text *words, const char *before, const struct spent *spent, double least) {
    if (!(spent->input_share > least)) return false;
    text_item(words, before, "getting batches takes %.0f %% of the time", 100 * spent->input_share);
    return true;
}

void sentence_staleness(struct text *words, const struct spent *spent) {
    if (!(spent->staleness_mean > staleness_matters)) return;
    text_item(words, "; ", "a gradient is %.1f updates old on average, %ld at most", spent->staleness_mean,
              spent->staleness_max);
}

void sentence_pipeline(struct text *words, double idle, double idle_equal) {
    if (!(idle_equal > 0.0) || isnan(idle)) return;
    text_item(
        words, "; ",
        "while it computes, the stages of the pipeline idle %.1f %% of the time, equal ones would %.1f %%",
        100 * idle, 100 * idle_equal);
}

/* A mean of a few is no whole number; of one run, a few are. */
static void count_text(char out[DIGITS_BYTES], double mean) {
    digits_thousands(out, mean);
    if (mean < 9.5) snprintf(out, DIGITS_BYTES, "%.2g", mean);
}

void sentence_losses(struct text *words, const struct spent *spent) {
    char some[DIGITS_BYTES], all[DIGITS_BYTES];
    if (spent->lost_updates > 0.0) {
        count_text(some, spent->lost_updates);
        digits_thousands(all, spent->updates);
        text_item(words, "; ", "%s of %s updates lost", some, all);
    }
    if (spent->dropped > 0.0) {
        count_text(some, spent->dropped);
        text_item(words, "; ", "%s gradient%s dropped", some, strcmp(some, "1") == 0 ? "" : "s");
    }
}

/* Whoever holds most is waited for by all that is exchanged with it. */
static void add_sizes(struct text *words, const char *what, const long long *bytes, int count) {
    double least = INFINITY, most = 0.0, all = 0.0;
    for (int i = 0; i < count; i++) {
        least = fmin(least, (double)bytes[i]);
        most = fmax(most, (double)bytes[i]);
        all += (double)bytes[i];
    }
    if (count < 2 || !(most > (1.0 + size_matters) * least)) return;
    text_item(words, "; ", "of %d %s the largest holds %.1f %% of the weights, the smallest %.1f %%", count,
              what, 100 * most / all, 100 * least / all);
}

static bool add_unfinished(struct text *words, const char *before, const struct summary *summary) {
    if (!(summary->unfinished_share > share_matters)) return false;
    text_item(words, before, "%.0f %% of the time went into steps that did not end",
              100 * summary->unfinished_share);
    return true;
}

static double step_s(const struct worker_result *worker) {
    return worker->compute_s / (double)worker->steps;
}

/* Where nobody waits for a slow worker, no waiting tells of it. Of short runs chance says too much. */
static bool add_slowest(struct text *words, const char *before, const struct summary *summary) {
    const struct worker_result *slow = NULL, *fast = NULL;
    for (int w = 0; w < summary->workers; w++) {
        const struct worker_result *worker = &summary->per_worker[w];
        if (worker->lost || worker->steps < STEPS_MATTER || worker->compute_s < seconds_matter) continue;
        if (!slow || step_s(worker) > step_s(slow)) slow = worker;
        if (!fast || step_s(worker) < step_s(fast)) fast = worker;
    }
    if (!slow || !(step_s(slow) > slowness_matters * step_s(fast))) return false;
    text_item(words, before, "a step of %s takes %.1f times as long as one of %s", slow->name,
              step_s(slow) / step_s(fast), fast->name);
    return true;
}

enum { SERVERS_NAMED = 8 };

void sentence_servers(struct text *words, const long long *bytes, int count) {
    char digits[DIGITS_BYTES];
    if (count < 2) return;
    text_add(words, "bytes per server: ");
    for (int i = 0; i < count && i < SERVERS_NAMED; i++) {
        digits_thousands(digits, (double)bytes[i]);
        text_add(words, "%s%s", i == 0 ? "" : i == count - 1 ? " and " : ", ", digits);
    }
    if (count > SERVERS_NAMED) text_add(words, ", ... (%d servers)", count);
    text_add(words, ", the largest %.2f times the mean", summary_imbalance(bytes, count));
}

/* --- a run --- */

static struct spent spent_by(const struct summary *summary) {
    return (struct spent){.wait_share = summary->wait_share,
                          .exchange_share = summary->pull_share + summary->push_share,
                          .input_share = summary->input_share,
                          .says_longest = true,
                          .staleness_mean = summary->staleness.mean,
                          .staleness_max = summary->staleness.max,
                          .updates = (double)summary->updates,
                          .lost_updates = (double)summary->lost_updates,
                          .dropped = (double)summary->dropped};
}

const char *sentence_of_run(const struct summary *summary, char *out, size_t bytes) {
    struct text words = text_into(out, bytes);
    struct wait_sums sums = {0};
    struct spent spent = spent_by(summary);
    char speed[DIGITS_BYTES];
    if (!summary->per_worker || !(summary->examples_per_s > 0.0)) return out;
    waits_add(&sums, summary->per_worker, summary->workers);
    waits_longest(&sums, &spent);
    digits_thousands(speed, summary->examples_per_s);
    text_add(&words, "%s examples/s%s, computing takes %.0f %% of the time", speed,
             summary->simulated ? " of virtual time" : "", 100 * summary->compute_share);
    const char *before = "; slower than it could be: ";
    if (sentence_waiting(&words, before, &spent, share_matters)) before = "; ";
    if (sentence_exchange(&words, before, &spent, share_matters)) before = "; ";
    if (add_input(&words, before, &spent, share_matters)) before = "; ";
    if (add_unfinished(&words, before, summary)) before = "; ";
    add_slowest(&words, before, summary);
    sentence_pipeline(&words, summary->pipeline_idle, summary->pipeline_idle_equal);
    sentence_staleness(&words, &spent);
    sentence_losses(&words, &spent);
    if (summary->lost_workers > 0)
        text_item(&words, "; ", "%d worker%s lost", summary->lost_workers,
                  summary->lost_workers == 1 ? "" : "s");
    if (summary->join_count > 0)
        text_item(&words, "; ", "%d worker%s joined", summary->join_count,
                  summary->join_count == 1 ? "" : "s");
    add_sizes(&words, "servers", summary->server_bytes, summary->servers);
    if (summary->servers < 2 || summary->shards > summary->servers)
        add_sizes(&words, "shards", summary->shard_bytes, summary->shards);
    text_add(&words, ".");
    return out;
}
