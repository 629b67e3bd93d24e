/* Where the time went, in words: one run's closing sentence, and the clauses that it shares with a row of a
 * comparison. Every clause has a threshold, so that a run without surprises gets a short one. */
#ifndef TRAINER_RECORD_SENTENCE_H
#define TRAINER_RECORD_SENTENCE_H

#include "../base/text.h"
#include "summary.h"

enum { WAITS = 32 };

/* Seconds of waiting, by where or by whom. */
struct waits {
    char names[WAITS][96];
    double seconds[WAITS];
};

/* Of the workers of one run, or of several. */
struct wait_sums {
    struct waits at, whom;
    double seconds;
};

/* What a clause can be about: of one run, or means over several. Texts are borrowed. */
struct spent {
    double wait_share, exchange_share, input_share; /* of the workers' time */
    /* Where and for whom most of the waiting was, each with its share of all waiting; NULL: nobody waited. */
    const char *waited_at, *waited_for;
    double waited_at_share, waited_for_share;
    bool says_longest; /* where the longest waiting was is said even if it is not most of it */
    double staleness_mean;
    long staleness_max;
    double updates, lost_updates, dropped;
};

/* Adds what the workers of a run waited. */
void waits_add(struct wait_sums *sums, const struct worker_result *workers, int count);
/* Fills in where and for whom; the texts point into `sums`. Leaves both as they are when nobody waited. */
void waits_longest(const struct wait_sums *sums, struct spent *spent);

/* Clauses, each after `before` unless it is the first of the text; the first two say whether they had
 * something to say: a share above `least`. */
bool sentence_waiting(struct text *words, const char *before, const struct spent *spent, double least);
bool sentence_exchange(struct text *words, const char *before, const struct spent *spent, double least);
void sentence_staleness(struct text *words, const struct spent *spent);
/* "while it computes, the stages of the pipeline idle 8.1 % of the time, equal ones would 5.9 %"; nothing
 * without one. */
void sentence_pipeline(struct text *words, double idle, double idle_equal);
void sentence_losses(struct text *words, const struct spent *spent);

/* The closing sentence of a run, from its summary with all but the texts of its settings. "": it made no
 * step. Returns out[bytes]. */
enum { SENTENCE_BYTES = 1000 };
const char *sentence_of_run(const struct summary *summary, char *out, size_t bytes);

/* Adds "bytes per server: 5,248 and 896, the largest 1.71 times the mean"; nothing for fewer than two. */
void sentence_servers(struct text *words, const long long *bytes, int count);

#endif
