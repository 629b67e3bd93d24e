/* Private to src/store: shards whose vectors live in a device's memory, where the processor cannot step them
 * itself. Each verb queues what there is to do on the calling thread's queue of that device. Whoever stamps a
 * version waits before (home_finish), so that a version is never ahead of the weights. What a worker's device
 * reads is not waited for: it comes by the queue that computes on it, and who writes under the shard's lock
 * comes after those who have read under it, by marks (order.c). So worker and device meet once a step, when
 * the gradient is there, or, where a worker steps by itself, when the step is done. What fails there is
 * remembered by the store (store_check), because verbs return no errors. */
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
void home_scale(struct shard *shard, float *values, size_t begin, size_t end, float factor);
/* Queued on the home's queue: copies floats to or from where the shard lives. */
void home_queue_copy(const struct shard *shard, float *out, const float *in, size_t floats);
/* Copies floats of the shard to the memory of `to` (NULL: the host's): from a device's memory to another's
 * queued on that one's queue, else complete. */
void home_copy(const struct shard *shard, const struct device *to, float *out, const float *in,
               size_t floats);
void home_finish(struct store *store, const struct device *device);
/* Remembers the first failure. */
void home_remember(struct store *store, int code, const struct error *error);

/* order.c: the marks of a shard that lives on a device; close is safe without. Errors: ERROR_DEVICE. */
int home_open_order(struct shard *shard, struct error *error);
void home_close_order(struct shard *shard);
/* What the calling thread queues next at home comes after all reads under the lock, which it holds. */
void home_follow_reads(struct shard *shard);
/* The calling thread has queued the step of that share. */
void home_stepped(struct shard *shard, int share);

/* store.c's, beside open and close: vectors where they are to be, and the host's copies of them. */
int store_open_vectors(struct store *store, struct error *error);
void store_close_vectors(struct store *store);

/* collective.c: the group, when the mean of a round is to be made by one. */
int store_open_group(struct store *store, struct error *error);
void store_close_group(struct store *store);
/* Whether the group makes the mean of what is laid now: every worker has laid a gradient, of as many examples
 * each. All who ask before the round is over get the same answer. */
bool group_takes(const struct shard *shard);
/* The mean of what is laid, of the whole window, in the `mean` of the shard's home. */
void group_mean(struct shard *shard);

/* The store's own vectors, where this shard lives. */
static inline struct copies shard_vectors(const struct shard *shard) {
    const struct store *store = shard->store;
    if (shard->home) return shard->home->vectors;
    return (struct copies){.weights = store->weights,
                           .moments = {store->moments[0], store->moments[1]},
                           .average = store->average};
}

#endif
