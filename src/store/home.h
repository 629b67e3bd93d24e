/* Private to src/store: shards whose vectors live in a device's memory, where the processor cannot step them
 * itself. Each verb queues what there is to do on the calling thread's queue and waits until it is done, so
 * that a version is never ahead of the weights. What fails there is remembered by the store (store_check),
 * because verbs return no errors. */
#ifndef TRAINER_STORE_HOME_H
#define TRAINER_STORE_HOME_H

#include "store.h"

/* Windows of these vectors, in the memory of `device`, stepped with `gradient` (of the whole layout, there
 * too), as update number `number`; racy: with the shard's witness. */
void home_step(struct shard *shard, const struct device *device, const struct copies *vectors,
               const float *gradient, size_t begin, size_t end, float rate, long number, bool racy);
/* A vector of what is a worker's own, as far as [begin, end) goes where the shard lives: itself, or what it
 * was brought to. */
const float *home_bring(struct shard *shard, int worker, const float *values, size_t begin, size_t end);
/* out[begin..end) = the sum of weight[i] * values[i][begin..end), all where the shard lives; count may be 0.
 */
void home_mean(struct shard *shard, const float *const *values, const float *weight, int count, size_t begin,
               size_t end, float *out);
/* Copies floats of the shard to the memory of `to` (NULL: the host's). */
void home_copy(const struct shard *shard, const struct device *to, float *out, const float *in,
               size_t floats);
void home_finish(struct store *store, const struct device *device);

/* store.c's, beside open and close: vectors where they are to be, and the host's copies of them. */
int store_open_vectors(struct store *store, struct error *error);
void store_close_vectors(struct store *store);

/* The store's own vectors, where this shard lives. */
static inline struct copies shard_vectors(const struct shard *shard) {
    const struct store *store = shard->store;
    if (shard->home) return shard->home->vectors;
    return (struct copies){.weights = store->weights,
                           .moments = {store->moments[0], store->moments[1]},
                           .average = store->average};
}

#endif
