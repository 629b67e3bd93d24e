/* The stream: position -> epoch and place in it -> the seeded permutation of that epoch. Nothing is
 * stored, so anyone can compute any batch in any order, and a run resumes from a number. */
#include "stream.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include "../base/rng.h"

static const uint64_t PURPOSE = 0x73747265616dULL; /* "stream": unrelated to other uses of the seed */

static const uint64_t AUGMENT_PURPOSE = 0x6175676d656e74ULL; /* "augment": unrelated to the order */

/* Workers that go through examples of their own get permutations of their own. */
static uint64_t worker_seed(const struct stream *stream, int worker) {
    return stream->sharding == SHARDING_SHARED ? stream->seed : rng_mix(stream->seed, (uint64_t)worker + 1);
}

/* What a worker goes through in an epoch, by number: example i is `first + stride * i`. */
static int stride_of(const struct stream *stream) {
    return stream->sharding == SHARDING_SPLIT ? stream->workers : 1;
}

static int first_of(const struct stream *stream, int worker) {
    return stream->sharding == SHARDING_SPLIT ? worker : 0;
}

/* The block at a place of an epoch's order, of `examples` in all. */
static uint32_t block_at(uint64_t key, uint32_t examples, uint32_t block, uint32_t place) {
    const uint32_t whole = examples / block;
    return place < whole ? rng_permute(key, whole, place) : place;
}

static uint32_t window_most(const struct stream *stream) {
    const uint64_t most = (uint64_t)STREAM_WINDOW * (uint64_t)stream->block;
    return most < INT32_MAX ? (uint32_t)most : INT32_MAX;
}

/* The window that a place of an epoch is in: examples [begin, begin + count). */
struct window {
    uint32_t number, begin, count;
};

static struct window window_at(const struct stream *stream, uint32_t examples, uint32_t place) {
    const uint32_t most = window_most(stream), number = place / most, begin = number * most;
    return (struct window){number, begin, examples - begin < most ? examples - begin : most};
}

static uint32_t window_blocks(const struct stream *stream, const struct window *window) {
    return (window->count - 1) / (uint32_t)stream->block + 1;
}

/* The example at a place of the epoch whose key this is. */
static uint32_t pick(const struct stream *stream, uint64_t key, uint32_t examples, uint32_t place) {
    if (stream->block == 0) return rng_permute(key, examples, place);
    const uint32_t block = (uint32_t)stream->block;
    const struct window window = window_at(stream, examples, place);
    const uint32_t inside = rng_permute(rng_mix(key, window.number + 1), window.count, place - window.begin);
    return block * block_at(key, examples, block, window.number * STREAM_WINDOW + inside / block) +
           inside % block;
}

/* Where a batch begins. */
struct position {
    uint64_t base, epoch; /* base: of the epochs' keys */
    uint32_t place;       /* in the epoch */
};

static struct position position_of(const struct stream *stream, int worker, long number) {
    const int examples = stream_epoch_examples(stream, worker);
    assert(number >= 0 && examples > 0);
    const uint64_t position = (uint64_t)number * (uint64_t)stream_unit(stream);
    return (struct position){.base = rng_mix(worker_seed(stream, worker), PURPOSE),
                             .epoch = position / (uint64_t)examples,
                             .place = (uint32_t)(position % (uint64_t)examples)};
}

void stream_batch(const struct stream *stream, int worker, long number, int *index) {
    const uint32_t examples = (uint32_t)stream_epoch_examples(stream, worker);
    const int stride = stride_of(stream), first = first_of(stream, worker),
              size = stream_size(stream, worker);
    struct position at = position_of(stream, worker, number);
    for (int filled = 0; filled < size; at.epoch++, at.place = 0) {
        const uint64_t key = rng_mix(at.base, at.epoch);
        for (; filled < size && at.place < examples; filled++, at.place++)
            index[filled] = first + stride * (int)pick(stream, key, examples, at.place);
    }
}

/* --- what is read ahead, and what was used --- */

/* Another window than the one that is gone through, of the epoch that is `epochs` later. */
struct other {
    struct window window;
    int epochs;
};

typedef struct other choose_window(const struct stream *stream, uint32_t examples,
                                   const struct window *window);

static struct other window_behind(const struct stream *stream, uint32_t examples,
                                  const struct window *window) {
    const uint32_t end = window->begin + window->count;
    return (struct other){window_at(stream, examples, end == examples ? 0 : end), end == examples};
}

static struct other window_before(const struct stream *stream, uint32_t examples,
                                  const struct window *window) {
    const bool first = window->begin == 0;
    return (struct other){window_at(stream, examples, (first ? examples : window->begin) - 1),
                          first ? -1 : 0};
}

/* How many of another window's blocks belong to the first `count` examples of this one. */
static uint32_t share(uint32_t count, const struct window *window, uint32_t blocks) {
    return (uint32_t)(((uint64_t)count * blocks + window->count - 1) / window->count);
}

/* first[] = where the blocks from `from` on, up to `end`, of a window begin; returns how many these are. */
static int list_blocks(const struct stream *stream, int worker, uint64_t key, const struct window *window,
                       uint32_t from, uint32_t end, int *first) {
    const uint32_t examples = (uint32_t)stream_epoch_examples(stream, worker),
                   block = (uint32_t)stream->block;
    for (uint32_t b = from; b < end; b++)
        *first++ = first_of(stream, worker) +
                   stride_of(stream) *
                       (int)(block * block_at(key, examples, block, window->number * STREAM_WINDOW + b));
    return (int)(end - from);
}

/* The batch's share of the blocks of the windows that are chosen by its own ones. There are none before the
 * first. */
static int list_share(const struct stream *stream, int worker, long number, choose_window *choose,
                      int *first) {
    const uint32_t examples = (uint32_t)stream_epoch_examples(stream, worker);
    const int room = stream_size(stream, worker) + STREAM_WINDOW;
    struct position at = position_of(stream, worker, number);
    int count = 0;
    for (uint32_t left = (uint32_t)stream_size(stream, worker), part; left > 0; left -= part) {
        const struct window window = window_at(stream, examples, at.place);
        const struct other other = choose(stream, examples, &window);
        const uint32_t from = at.place - window.begin, blocks = window_blocks(stream, &other.window);
        part = window.count - from < left ? window.count - from : left;
        const uint32_t begin = share(from, &window, blocks), most = begin + (uint32_t)(room - count);
        uint32_t end = share(from + part, &window, blocks);
        if (end > most) end = most;
        const int64_t epoch = (int64_t)at.epoch + other.epochs;
        if (epoch >= 0)
            count += list_blocks(stream, worker, rng_mix(at.base, (uint64_t)epoch), &other.window, begin, end,
                                 first + count);
        at.place += part;
        if (at.place == examples) at = (struct position){at.base, at.epoch + 1, 0};
    }
    return count;
}

int stream_soon_room(int size) {
    return 2 * (size + STREAM_WINDOW) + STREAM_WINDOW;
}

void stream_soon(const struct stream *stream, int worker, long number, struct soon *soon, int *first) {
    *soon = (struct soon){.first = first, .length = stride_of(stream) * stream->block};
    if (stream->block == 0) return;
    if (number == 0) {
        const struct position at = position_of(stream, worker, 0);
        const struct window window =
            window_at(stream, (uint32_t)stream_epoch_examples(stream, worker), at.place);
        soon->count = list_blocks(stream, worker, rng_mix(at.base, at.epoch), &window, 0,
                                  window_blocks(stream, &window), first);
    }
    soon->count += list_share(stream, worker, number, window_behind, first + soon->count);
    soon->used = list_share(stream, worker, number, window_before, first + soon->count);
}

void stream_keys(const struct stream *stream, int worker, long number, uint64_t *key) {
    const uint64_t base = rng_mix(worker_seed(stream, worker), AUGMENT_PURPOSE);
    const uint64_t position = (uint64_t)number * (uint64_t)stream_unit(stream);
    for (int i = 0; i < stream_size(stream, worker); i++) key[i] = rng_mix(base, position + (uint64_t)i);
}

void stream_next(const struct stream *stream, int worker, long number, int *index, uint64_t *key) {
    struct stream single = *stream;
    const long behind = number * stream_unit(stream) + stream_size(stream, worker);
    single.batch = 1;
    single.sizes = NULL;
    stream_batch(&single, worker, behind, index);
    stream_keys(&single, worker, behind, key);
}

/* Its place, and that of the batch behind it, can be counted; so can its epoch. */
static bool has(const struct stream *stream, int worker, long number) {
    if (worker < 0 || worker >= stream->workers || stream_epoch_examples(stream, worker) < 1) return false;
    const int unit = stream_unit(stream);
    if (number < 0 || number >= LONG_MAX / unit - 2) return false;
    return number * unit / stream_epoch_examples(stream, worker) < INT_MAX - 1;
}

int stream_check(const struct stream *stream, int worker, long number, const char *peer,
                 struct error *error) {
    if (has(stream, worker, number)) return OK;
    return error_set(error, ERROR_PEER, "%s: batch %ld for worker %d of %d, which %d examples do not have",
                     peer, number, worker, stream->workers, stream->examples);
}

int stream_epoch_examples(const struct stream *stream, int worker) {
    if (stream->sharding != SHARDING_SPLIT) return stream->examples;
    return (stream->examples - worker + stream->workers - 1) / stream->workers;
}

long stream_epoch_end(const struct stream *stream, int worker, int epoch) {
    const long examples = (epoch + 1L) * stream_epoch_examples(stream, worker);
    return (examples + stream_unit(stream) - 1) / stream_unit(stream);
}
