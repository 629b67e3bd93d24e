/* Which worker gets which batch, and where all stop. See sampler.h; rounds: sampler_rounds.c; those who come
 * and go: sampler_members.c; how far a run is: sampler_progress.c. */
#include "../base/memory.h"
#include "sampler_rounds.h"

/* --- parts of a round --- */

void sampler_take_widths(struct sampler *sampler, const int *sizes) {
    sampler->whole = sampler->dividing = 0;
    for (int w = 0; w < sampler->stream.workers; w++) {
        sampler->sizes[w] = sampler->widths[w] = sizes[w];
        sampler->whole += sizes[w];
        sampler->dividing += sizes[w] > 0;
    }
}

static int open_widths(struct sampler *sampler, struct error *error) {
    const int *sizes = sampler->stream.sizes;
    if (!sizes) return OK;
    RETURN_IF(memory_array(&sampler->sizes, sampler->stream.workers, "the sampler's sizes", error));
    RETURN_IF(memory_array(&sampler->widths, sampler->stream.workers, "the sampler's sizes", error));
    sampler_take_widths(sampler, sizes);
    sampler->stream.sizes = sampler->sizes;
    return OK;
}

void sampler_hear_size(struct sampler *sampler, int worker, int examples) {
    if (sampler->sizes && sampler->sizes[worker] != examples) sampler->sizes[worker] = examples;
}

void sampler_find_total(struct sampler *sampler, long from) {
    const long end = shared(sampler) ? stream_epoch_end(&sampler->stream, 0, sampler->epochs - 1) : 0;
    const long round = sampler->sizes ? sampler->whole : sampler->stream.workers;
    const long grid = sampler->sizes ? from : 0;
    sampler->total = end;
    if (sampler->fills && sampler->rounds && end > grid)
        sampler->total = grid + up(end - grid, round) * round;
}

int sampler_open(struct sampler *sampler, const struct stream *stream, bool rounds, int epochs, long base,
                 const long *done, struct error *error) {
    *sampler = (struct sampler){.stream = *stream, .rounds = rounds, .epochs = epochs, .base = base};
    RETURN_IF(open_widths(sampler, error));
    RETURN_IF(memory_array(&sampler->lines, stream->workers, "the sampler's lines", error));
    for (int w = 0; w < stream->workers; w++) sampler->lines[w].base = done ? done[w] : 0;
    if (rounds && !shared(sampler)) { /* in rounds all go on from the same place */
        long sum = 0;
        for (int w = 0; w < stream->workers; w++) sum += sampler->lines[w].base;
        for (int w = 0; w < stream->workers; w++) sampler->lines[w].base = sum / stream->workers;
    }
    sampler_find_total(sampler, base);
    atomic_store(&sampler->cursor, base);
    RETURN_IF(
        memory_array(&sampler->generations, (size_t)stream->workers + 1, "the sampler's generations", error));
    sampler->generations[0] = (struct sampler_generation){.lost = -1, .fresh = base};
    atomic_store(&sampler->generation_count, 1);
    return OK;
}

void sampler_close(struct sampler *sampler) {
    for (int e = 0; e < atomic_load(&sampler->generation_count); e++)
        memory_free(sampler->generations[e].again);
    memory_free(sampler->generations);
    memory_free(sampler->lines);
    memory_free(sampler->sizes);
    memory_free(sampler->widths);
    sampler->generations = NULL;
    sampler->lines = NULL;
    sampler->sizes = sampler->widths = NULL;
    atomic_store(&sampler->generation_count, 0);
}

void sampler_fill(struct sampler *sampler) {
    sampler->fills = true;
    sampler_find_total(sampler, sampler->base);
}

void sampler_hear_total(struct sampler *sampler, long total) {
    sampler->total = total;
}

/* Whether this round may be assigned. A round that any worker was assigned must be assigned to all, since
 * no worker can finish it without the others: a stop only forbids to open another. `opened` carries the
 * stop in its sign, so that the two are looked at as one. */
static bool may_assign(struct sampler *sampler, long round) {
    if (round >= atomic_load(&sampler->limit)) return false;
    long opened = atomic_load(&sampler->opened);
    while (opened >= 0 && round >= opened)
        if (atomic_compare_exchange_weak(&sampler->opened, &opened, round + 1)) return true;
    return opened >= 0 || round < ~opened;
}

static bool next_of_round(struct sampler *sampler, int worker, long *number) {
    struct sampler_line *line = &sampler->lines[worker];
    const long round = atomic_load(&line->done);
    if (!may_assign(sampler, round)) return false;
    atomic_store(&line->done, round + 1);
    if (!shared(sampler)) {
        *number = line->base + round;
        return true;
    }
    const struct sampler_piece piece = sampler_piece_of(sampler, worker, round);
    *number = piece.number < sampler->total ? piece.number : NO_BATCH;
    if (*number != NO_BATCH) sampler_hear_size(sampler, worker, (int)piece.width);
    return true;
}

void sampler_give_back(struct sampler *sampler, int worker, long number) {
    struct sampler_line *line = &sampler->lines[worker];
    if (sampler->rounds) return;
    atomic_fetch_sub(&line->done, 1);
    if (!shared(sampler)) return;
    line->back_width = sampler_size_now(sampler, worker);
    atomic_store(&line->back, number + 1);
    atomic_fetch_add(&sampler->given_back, line->back_width);
}

/* What was given back, for whoever asks first. */
static bool take_given_back(struct sampler *sampler, int worker, long *number) {
    for (int w = 0; w < sampler->stream.workers && atomic_load(&sampler->given_back) > 0; w++) {
        const long back = atomic_exchange(&sampler->lines[w].back, 0);
        if (back == 0) continue;
        const long width = sampler->lines[w].back_width;
        atomic_fetch_sub(&sampler->given_back, width);
        sampler_hear_size(sampler, worker, (int)width);
        *number = back - 1;
        return true;
    }
    return false;
}

bool sampler_next(struct sampler *sampler, int worker, long *number) {
    struct sampler_line *line = &sampler->lines[worker];
    if (atomic_load(&line->gone)) return false;
    if (sampler->rounds) return next_of_round(sampler, worker, number);
    if (atomic_load(&sampler->stopping)) return false;
    if (!shared(sampler)) {
        *number = sampler_own(sampler, worker);
        if (*number >= atomic_load(&line->limit)) return false;
        atomic_fetch_add(&line->done, 1);
        return true;
    }
    if (take_given_back(sampler, worker, number)) {
        atomic_fetch_add(&line->done, 1);
        return true;
    }
    const long limit = atomic_load(&sampler->limit);
    *number = atomic_load(&sampler->cursor);
    const long width = sampler_width_of(sampler, worker);
    while (*number < limit && !atomic_compare_exchange_weak(&sampler->cursor, number, *number + width)) {
    }
    if (*number >= limit) return false;
    sampler_hear_size(sampler, worker, (int)width);
    atomic_fetch_add(&line->done, 1);
    return true;
}

void sampler_stop(struct sampler *sampler) {
    long opened = atomic_load(&sampler->opened);
    atomic_store(&sampler->stopping, true);
    while (opened >= 0 && !atomic_compare_exchange_weak(&sampler->opened, &opened, ~opened)) {
    }
}

/* Rounds until all numbers before `end` are assigned, and all that are handed out again. */
static long rounds_until(const struct sampler *sampler, long end) {
    const int e = atomic_load(&sampler->generation_count) - 1;
    const struct sampler_generation *generation = &sampler->generations[e];
    const long left = end > generation->fresh ? end - generation->fresh : 0;
    const long again = sampler->widths ? 0 : generation->again_count; /* in the same rounds */
    return generation->from + sampler_rounds_again(sampler, e) +
           up(again + left, sampler_round_numbers(sampler, e));
}

/* Own batches before the first round, of all that are there. */
static long round_base(const struct sampler *sampler) {
    int w = 0;
    while (w < sampler->stream.workers - 1 && atomic_load(&sampler->lines[w].gone)) w++;
    return sampler->lines[w].base;
}

void sampler_set_limit(struct sampler *sampler, int epoch) {
    const int workers = sampler->stream.workers;
    atomic_store(&sampler->stopping, false);
    atomic_store(&sampler->opened, sampler_rounds_opened(sampler));
    if (shared(sampler)) {
        const long end = stream_epoch_end(&sampler->stream, 0, epoch);
        atomic_store(&sampler->limit, sampler->rounds ? rounds_until(sampler, end) : end);
    } else if (sampler->rounds) {
        atomic_store(&sampler->limit, sampler_longest_own(sampler, epoch) - round_base(sampler));
    } else {
        for (int w = 0; w < workers; w++)
            atomic_store(&sampler->lines[w].limit, stream_epoch_end(&sampler->stream, w, epoch));
    }
}

void sampler_bar(struct sampler *sampler, int worker) {
    atomic_store(&sampler->lines[worker].gone, true);
}
