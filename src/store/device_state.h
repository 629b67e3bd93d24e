/* Private to src/store: shards and the devices in whose memory they live.
 *
 * Each verb queues its work on the calling thread's queue of the shard's device; a CPU does it at once.
 * Before a version is stamped, the thread waits for that work (home_finish), so a version is never ahead
 * of the weights. Nobody waits for what a worker's device reads: the read is on the same queue as the
 * computation that needs it, and marks order writes under the shard's lock after the reads under it
 * (queue_order.c). So a worker synchronizes with its device once per step: when the gradient is ready, or,
 * where the worker steps by itself, when the step is done. The store remembers what fails on a device
 * (store_check), because verbs return no errors. */
#ifndef TRAINER_STORE_DEVICE_STATE_H
#define TRAINER_STORE_DEVICE_STATE_H

#include "store.h"

/* Steps a slice of the shard, in the memory of `device`, as update number `number`. Of `slice` the caller
 * gives what is stepped, with what, and whether it is racy; the rest is filled in from shard and span.
 * worker: on whose thread, beside others that step the shard or copies of it; -1: by who has it to itself. */
void home_step(struct shard *shard, const struct device *device, struct update_slice *slice, float rate,
               long number, int worker);
/* A vector of what is a worker's own, as far as [begin, end) goes where the shard lives: itself, or what it
 * was brought to. */
const float *home_bring(struct shard *shard, int worker, const float *values, size_t begin, size_t end);
/* Queued on the home's queue: copies floats to or from where the shard lives. */
void home_queue_copy(const struct shard *shard, float *out, const float *in, size_t floats);
/* Copies floats of the shard to the memory of `to` (NULL: the host's): from a device's memory to another's
 * queued on that one's queue, else complete. */
void home_copy(const struct shard *shard, const struct device *to, float *out, const float *in,
               size_t floats);
void home_finish(struct store *store, const struct device *device);
/* Remembers the first failure. */
void home_remember(struct store *store, int code, const struct error *error);

/* queue_order.c: the marks of a shard; close is safe without. Errors: ERROR_DEVICE. */
int home_open_order(struct shard *shard, struct error *error);
void home_close_order(struct shard *shard);
/* What the calling thread queues next at home comes after all reads under the lock, which it holds. */
void home_await_reads(struct shard *shard);
/* The worker's thread has queued the step of its share. */
void home_stepped(struct shard *shard, int worker);

/* undo.c: what the last round is undone from. close is safe without. Errors: ERROR_DEVICE: memory. */
int undo_open(struct shard *shard, struct error *error);
void undo_close(struct shard *shard);
/* On the thread that steps the `share`-th share next, which is [begin, end). */
void undo_keep(struct shard *shard, int share, size_t begin, size_t end);

/* device_state.c, called by store_open and store_close: the homes, their vectors, and the host's copies. */
int store_open_vectors(struct store *store, struct error *error);
void store_close_vectors(struct store *store);

/* collective.c: the group, when the mean of a round is to be made by one. */
int store_open_group(struct store *store, struct error *error);
void store_close_group(struct store *store);
/* Whether the group makes the mean of what is contributed now: every worker has contributed a gradient, of as
 * many examples each. All who ask before the round is over get the same answer. */
bool group_takes(const struct shard *shard);
/* On the worker's thread: the mean of what is contributed, of the whole slice, in the `mean` of the shard's
 * home.
 */
void group_mean(struct shard *shard, int worker);

#endif
