/* A list of strategies, each with its settings: the value of --strategies. */
#ifndef TRAINER_TRAIN_STRATEGY_LIST_H
#define TRAINER_TRAIN_STRATEGY_LIST_H

#include "../base/error.h"

enum { STRATEGY_TEXT_BYTES = 512 };

struct strategy_list {
    char (*texts)[STRATEGY_TEXT_BYTES]; /* [count] */
    int count;
};

/* Parses "all" (every variant of every registered one) or "a,b:x=1,y=2,c": a piece with a '=' before any ':'
 * belongs to the strategy before it. Each may be several, one after the other (src/store/phases.h). Errors:
 * ERROR_USAGE: unknown, or wrongly set. */
int strategy_list_parse(struct strategy_list *list, const char *text, struct error *error);
void strategy_list_free(struct strategy_list *list); /* safe on a zeroed one */

#endif
