/* What a sweep varies: --vary=NAME=VALUES. NAME is an option of training, or a setting of a plug-in behind a
 * dot (optimizer.rate). VALUES is a list, "32,64,128", whose separator is '|' where there is one, as values
 * may have commas; or a range, "0.1..0.9" or "log:0.001..1", of which "/5" at its end makes five values. */
#ifndef TRAINER_COMPARE_VARY_H
#define TRAINER_COMPARE_VARY_H

#include "../config/config.h"

enum { VARY_MOST = 16, VARY_TEXT_BYTES = 1024, VARY_NAME_BYTES = 96, VARY_VALUES = 10000 };

/* As they were typed. */
struct vary_texts {
    char text[VARY_MOST][VARY_TEXT_BYTES];
    int count;
};
/* Adds one. Errors: ERROR_USAGE: too many. */
int vary_add(struct vary_texts *texts, const char *text, struct error *error);

struct variation {
    char name[VARY_NAME_BYTES];
    char **values; /* [count] owned, as they are typed; count 0: the range */
    int count;
    double least, most; /* of a range */
    bool logarithmic, whole;
};

/* Parses a text. base: what the name belongs to: the plug-ins that were chosen. Errors: ERROR_USAGE: no such
 * option or setting, one that cannot be varied, no values. */
int variation_open(struct variation *variation, const char *text, const struct typed *base,
                   struct error *error);
void variation_close(struct variation *variation); /* safe on a zeroed one */

/* A value, owned by the caller (memory_free); of a range a number of four digits between its ends. `unit`: 0
 * to below 1, where it is among all of them. */
int variation_value(const struct variation *variation, double unit, char **value, struct error *error);

/* Gives a setting its value, as if it had been typed: "batch", or "optimizer.rate", of the optimizer that was
 * typed or that the model trains well with. Errors: ERROR_USAGE. */
int vary_apply(struct typed *typed, const char *name, const char *value, struct error *error);
/* The same of several, [count]; what has no dot goes first, since it decides what the others belong to. */
int vary_apply_all(struct typed *typed, const char *const *names, const char *const *values, int count,
                   struct error *error);
/* Whether plug-ins and settings can be chosen so. dataset[bytes]: the data set then, as it could be typed;
 * NULL: nobody wants to know. Errors: ERROR_USAGE. */
int vary_check(const struct typed *typed, char *dataset, size_t bytes, struct error *error);

#endif
