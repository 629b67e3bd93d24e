/* Private to src/store: the verbs of shards whose vectors live in a device's memory, where the processor
 * cannot step them itself. Each queues what there is to do on the calling thread's queue and waits until it
 * is done, so that a version is never ahead of the weights. What fails there is remembered by the store
 * (store_check), because verbs return no errors. */
#ifndef TRAINER_STORE_HOME_H
#define TRAINER_STORE_HOME_H

#include "store.h"

/* Windows of these vectors stepped with `gradient` (of the whole layout, in the same memory), as update
 * number `number`; racy: with the shard's witness. */
void home_step(struct shard *shard, const struct copies *vectors, const float *gradient, size_t begin,
               size_t end, float rate, long number, bool racy);
/* store->mean[begin..end) = the sum of weight[i] * values[i][begin..end); count may be 0. */
void home_mean(struct store *store, const float *const *values, const float *weight, int count, size_t begin,
               size_t end, float *out);
/* Copies floats from the store's memory to that of `to` (NULL: the store's own). */
void home_copy(struct store *store, const struct device *to, float *out, const float *in, size_t floats);
void home_finish(struct store *store);

/* store.c's, beside open and close: the host's copies, and the memory of a round's mean. */
int store_open_host(struct store *store, struct error *error);
void store_close_host(struct store *store);

/* The store's own vectors. */
static inline struct copies store_vectors(const struct store *store) {
    return (struct copies){.weights = store->weights,
                           .moments = {store->moments[0], store->moments[1]},
                           .average = store->average};
}

#endif
