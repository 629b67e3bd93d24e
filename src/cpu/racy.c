/* Racy steps and copies: the one place where two threads may touch the same weights at the same time, on
 * purpose.
 *
 * This file alone is compiled without the thread sanitizer. What may go wrong: two workers that step the
 * same line at the same time both read the old value, and the update that is written first is lost; a
 * reader may see a slice partly before and partly after an update. Single floats are never torn: they are
 * aligned, and the machine loads and stores them whole. How many updates are lost is measured: every
 * update also adds 1 to the shard's witness line, in the same loop, so updates minus witness is the number
 * lost on one line. With atomic steps the change of a weight is one atomic addition, and no update of a
 * weight is lost; moments can still be overwritten.
 *
 * Weights go through a small private buffer, a block at a time, so that optimizers never see shared
 * memory. In the simulated world a block is one cache line, with a scheduling point between reading and
 * writing, so updates are lost there too, the same ones for the same seed. */
#include "../base/memory.h"
#include "cpu.h"

enum { RACY_BLOCK = 256 }; /* floats between reading and writing in the real world: 1 KB */

static void racy_copy(float *restrict to, const float *restrict from, size_t floats) {
    for (size_t i = 0; i < floats; i++) to[i] = from[i];
}

static void add_atomically(float *weight, float change) {
    float seen, sum;
    __atomic_load(weight, &seen, __ATOMIC_RELAXED);
    do sum = seen + change;
    while (!__atomic_compare_exchange(weight, &seen, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static void count_atomically(double *witness) {
    double seen, sum;
    __atomic_load(witness, &seen, __ATOMIC_RELAXED);
    do sum = seen + 1.0;
    while (!__atomic_compare_exchange(witness, &seen, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* Steps one block of the slice. With `witness`, it adds 1 to that line in the same breath. */
static void racy_block(const struct update *update, const struct update_slice *slice, size_t begin,
                       size_t end, double *witness) {
    const struct state *state = slice->state;
    const size_t floats = end - begin;
    _Alignas(64) float weights[RACY_BLOCK], before[RACY_BLOCK], average[RACY_BLOCK];
    _Alignas(64) float moments[UPDATE_MOMENTS][RACY_BLOCK];
    float *const shared = state->vector[0].at, *moment[UPDATE_MOMENTS];
    const double seen = witness ? *witness : 0.0;
    /* The next block is asked for now, and at once for writing: its lines are likely in another worker's
     * cache. */
    for (size_t i = end; i < end + floats; i += LINE_FLOATS) __builtin_prefetch(shared + i, 1);
    racy_copy(weights, shared + begin, floats);
    if (slice->atomic) racy_copy(before, weights, floats);
    for (int m = 0; m < update->moments; m++) {
        moment[m] = moments[m];
        racy_copy(moments[m], state->vector[1 + m].at + begin, floats);
    }
    if (slice->average) racy_copy(average, slice->average + begin, floats);
    world_yield(slice->world);
    cpu_step(update, floats, weights, moment, slice->gradients[0] + begin, slice->average ? average : NULL);
    if (slice->atomic)
        for (size_t i = 0; i < floats; i++) add_atomically(shared + begin + i, weights[i] - before[i]);
    else
        racy_copy(shared + begin, weights, floats);
    for (int m = 0; m < update->moments; m++) racy_copy(state->vector[1 + m].at + begin, moments[m], floats);
    if (slice->average) racy_copy(slice->average + begin, average, floats);
    if (witness && slice->atomic)
        count_atomically(witness);
    else if (witness)
        *witness = seen + 1.0;
}

void cpu_update_racy(const struct update *update, const struct update_slice *slice) {
    const size_t block = world_is_simulated(slice->world) ? LINE_FLOATS : RACY_BLOCK, end = slice->end;
    for (size_t at = slice->begin; at < end; at += block) {
        const size_t stop = end - at < block ? end : at + block;
        racy_block(update, slice, at, stop, stop == end ? slice->witness : NULL);
    }
}

void cpu_copy_racy(float *out, const float *in, size_t floats, struct world *world) {
    const size_t block = world_is_simulated(world) ? LINE_FLOATS : floats;
    for (size_t at = 0; at < floats; at += block) {
        racy_copy(out + at, in + at, floats - at < block ? floats - at : block);
        world_yield(world);
    }
}
