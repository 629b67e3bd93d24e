/* The strategies of a run, one after the other, as --strategy has them:
 *
 *     async-lockfree until epoch 3; ssp:bound=1 until 90%; sync
 *
 * A *phase* is one strategy and what ends it. All but the last have `until` and a condition, which is looked
 * at where an epoch ends:
 *
 *     epoch N       N epochs of the run are complete
 *     accuracy A    the validation part is classified that well or better; also "0.9" and "90%" alone
 *     plateau N     N epochs in a row, of this phase, without a better one by the validation part
 *
 * Semicolons and `until` inside double quotes belong to a strategy's settings. */
#ifndef TRAINER_STORE_PHASES_H
#define TRAINER_STORE_PHASES_H

#include "strategy.h"

enum until { UNTIL_END, UNTIL_EPOCH, UNTIL_ACCURACY, UNTIL_PLATEAU };

struct strategy_phase {
    struct choice strategy;
    enum until until;
    int epochs;      /* of UNTIL_EPOCH and UNTIL_PLATEAU */
    double accuracy; /* of UNTIL_ACCURACY, in (0, 1] */
};

enum { PHASES_MOST = 8 };

struct phases {
    int count;
    struct strategy_phase list[PHASES_MOST];
};

/* Errors: ERROR_USAGE: an unknown strategy or setting, a condition that is none, that is missing or that the
 * last phase has; with several phases the words say in which one, and at which character it begins. */
int phases_parse(struct phases *phases, const char *text, struct error *error);
/* The same, of a text that nobody needs read. */
int phases_check(const char *text, struct error *error);
/* One phase, of a strategy that a program brings. */
void phases_of(struct phases *phases, const struct choice *strategy);
/* Whether such a text has several. */
bool phases_several(const char *text);
/* Whether a condition is looked at on the validation part. */
bool phases_validate(const struct phases *phases);

/* How a run goes on while all pause, under which of its strategies and from where: for those who have other
 * shards of it. */
struct phase_change {
    int phase;           /* of phases.list */
    long version;        /* updates that all shards have had */
    long schedule_ahead; /* as in store_settings */
    int workers;         /* that the schedule counts with */
    long total;          /* places in the stream that the whole training goes over (sampler.h) */
};

/* Of the epochs that a run has been through, what a condition is about. */
struct phase_facts {
    int epochs;      /* complete */
    int better;      /* the best one by the validation part, from 1, or the last before the phase, if later */
    double accuracy; /* of the validation part after the last one; NAN: it was not looked at */
};

/* Whether the phase is over. */
bool phase_is_over(const struct strategy_phase *phase, const struct phase_facts *facts);
/* "epoch 3", "accuracy 0.9", "plateau 3", as it can be typed; "" of the last phase. Returns out. */
enum { PHASE_WORDS_BYTES = 40 };
const char *phase_words(const struct strategy_phase *phase, char out[PHASE_WORDS_BYTES]);

#endif
