/* Private to src/store: steps of whole matrices, for optimizers that have a `matrix` (Muon).
 *
 * A matrix is a range of at least two dimensions, seen as [all but the last, the last]. Its step is made
 * orthogonal, which takes products of the whole: so a shard has all of it, and one thread steps it. Which
 * ranges are matrices is decided once, when the store is opened. The rest is stepped weight by weight. */
#ifndef TRAINER_STORE_MATRICES_H
#define TRAINER_STORE_MATRICES_H

#include "store.h"

/* What a thread needs to step matrices, in the memory of one device; one thread uses it at a time. */
struct matrix_room;

/* Rooms for what each worker and each shard steps. Does nothing where the optimizer has no `matrix`. Errors:
 * ERROR_USAGE: a shard has a part of a matrix; ERROR_DEVICE: memory, a product that a device cannot do. */
int store_open_matrices(struct store *store, struct error *error);
void store_close_matrices(struct store *store); /* safe on a half-open one */

/* Whether the optimizer steps this range as a matrix. */
bool store_is_matrix(const struct store *store, const struct range *range);

/* Steps span->matrix by the slice's gradients with what else it says; `update` has rate and average of this
 * step. Queued on the device, but for one wait for the norm. Errors: ERROR_DEVICE, ERROR_DIVERGED. */
int matrix_step(struct matrix_room *room, const struct span *span, const struct matrix_rule *rule,
                const struct update *update, const struct update_slice *slice, struct error *error);

#endif
