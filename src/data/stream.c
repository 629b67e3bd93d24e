/* The stream: position -> epoch and place in it -> the seeded permutation of that epoch. Nothing is
 * stored, so anyone can compute any batch in any order, and a run resumes from a number. */
#include "stream.h"

#include <assert.h>
#include "../base/rng.h"

static const uint64_t PURPOSE = 0x73747265616dULL; /* "stream": unrelated to other uses of the seed */

static const uint64_t AUGMENT_PURPOSE = 0x6175676d656e74ULL; /* "augment": unrelated to the order */

/* Workers that go through examples of their own get permutations of their own. */
static uint64_t worker_seed(const struct stream *stream, int worker) {
    return stream->sharding == SHARDING_SHARED ? stream->seed : rng_mix(stream->seed, (uint64_t)worker + 1);
}

void stream_batch(const struct stream *stream, int worker, long number, int *index) {
    const int examples = stream_epoch_examples(stream, worker);
    assert(number >= 0 && examples > 0);
    const uint64_t base = rng_mix(worker_seed(stream, worker), PURPOSE);
    const uint64_t position = (uint64_t)number * (uint64_t)stream->batch;
    uint64_t epoch = position / (uint64_t)examples;
    uint32_t place = (uint32_t)(position % (uint64_t)examples);
    const int stride = stream->sharding == SHARDING_SPLIT ? stream->workers : 1;
    const int first = stream->sharding == SHARDING_SPLIT ? worker : 0;
    for (int filled = 0; filled < stream->batch; epoch++, place = 0) {
        const uint64_t key = rng_mix(base, epoch);
        for (; filled < stream->batch && place < (uint32_t)examples; filled++, place++)
            index[filled] = first + stride * (int)rng_permute(key, (uint32_t)examples, place);
    }
}

void stream_keys(const struct stream *stream, int worker, long number, uint64_t *key) {
    const uint64_t base = rng_mix(worker_seed(stream, worker), AUGMENT_PURPOSE);
    const uint64_t position = (uint64_t)number * (uint64_t)stream->batch;
    for (int i = 0; i < stream->batch; i++) key[i] = rng_mix(base, position + (uint64_t)i);
}

void stream_next(const struct stream *stream, int worker, long number, int *index, uint64_t *key) {
    struct stream single = *stream;
    single.batch = 1;
    stream_batch(&single, worker, (number + 1) * stream->batch, index);
    stream_keys(&single, worker, (number + 1) * stream->batch, key);
}

int stream_epoch_examples(const struct stream *stream, int worker) {
    if (stream->sharding != SHARDING_SPLIT) return stream->examples;
    return (stream->examples - worker + stream->workers - 1) / stream->workers;
}

long stream_epoch_end(const struct stream *stream, int worker, int epoch) {
    const long examples = (epoch + 1L) * stream_epoch_examples(stream, worker);
    return (examples + stream->batch - 1) / stream->batch;
}
