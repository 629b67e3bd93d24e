/* Shares: how many examples of a round each worker computes (--share). A round has workers * batch of them,
 * whatever the shares are; where workers may be missing, as many of these as are there.
 *
 *   even      as many each
 *   auto      by measured speed (paces.h); what that comes to is then written as weights
 *   3,1       by these weights, one for each worker */
#ifndef TRAINER_ENGINE_SHARES_H
#define TRAINER_ENGINE_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include "../base/error.h"

enum { SHARES_BYTES = 1024 }; /* of the text, at most */

bool shares_are_even(const char *text);     /* it says "even" */
bool shares_are_measured(const char *text); /* it says "auto" */
/* Whether it is any of the three. Errors: ERROR_USAGE. */
int shares_check(const char *text, int *weights, struct error *error); /* *weights: how many; 0: none */

/* sizes[workers] = multiples of `microbatches`, one at least, which are workers * batch together: in the
 * proportion of the weights as far as whole numbers allow, the largest remainders rounded up. Errors:
 * ERROR_USAGE: another number of weights; text is neither "even" nor weights. */
int shares_cut(const char *text, int workers, int batch, int microbatches, int *sizes, struct error *error);
/* The same of `total` examples, a multiple of the micro-batches and at least one of them for each worker;
 * "even": in equal parts as far as that goes, the first ones larger. there[workers]: who is, and divides
 * them; the others have 0. NULL: all are. */
int shares_divide(const char *text, int workers, const bool *there, int total, int microbatches, int *sizes,
                  struct error *error);
/* Whether all are `batch`. */
bool shares_equal(const int *sizes, int workers, int batch);
/* The text that stands for these sizes, in text[bytes]. Errors: ERROR_USAGE: no room. */
int shares_write(const int *sizes, int workers, char *text, size_t bytes, struct error *error);

#endif
