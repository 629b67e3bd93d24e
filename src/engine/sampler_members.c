/* Who is lost, leaves or joins, and what is handed out anew then. See sampler.h. */
#include "../base/memory.h"
#include "sampler_rounds.h"

/* What the lost worker was assigned after the round that it had in hand is handed out again, after what
 * already had to be. */
static int begin_generation(struct sampler *sampler, int worker, long step, struct error *error) {
    const int count = atomic_load(&sampler->generation_count);
    const struct sampler_generation *before = &sampler->generations[count - 1];
    struct sampler_generation *generation = &sampler->generations[count];
    const long from = sampler_rounds_opened(sampler);
    const struct sampler_reach reach = sampler_reach_of(sampler, from);
    *generation = (struct sampler_generation){
        .from = from, .lost = worker, .fresh = reach.fresh < sampler->total ? reach.fresh : sampler->total};
    RETURN_IF(memory_array(&generation->again, before->again_count + (step < from ? from - step : 0),
                           "what is handed out again", error));
    for (long i = reach.past; i < before->again_count; i++)
        generation->again[generation->again_count++] = before->again[i];
    for (long round = step; round < from; round++) {
        const struct sampler_piece piece = sampler_piece_of(sampler, worker, round);
        if (piece.number != NO_BATCH && piece.number < sampler->total)
            generation->again[generation->again_count++] = piece;
    }
    atomic_store(&sampler->generation_count, count + 1);
    return OK;
}

int sampler_lose(struct sampler *sampler, int worker, long step, struct error *error) {
    const bool generations = shared(sampler) && sampler->rounds;
    const bool waited =
        generations && step > sampler_rounds_opened(sampler); /* for a round that nobody has begun */
    if (step > 0 && !waited)
        sampler->in_flight += (generations ? 1 : atomic_load(&sampler->lines[worker].done) - (step - 1)) *
                              sampler_size_now(sampler, worker);
    return generations ? begin_generation(sampler, worker, step, error) : OK;
}

int sampler_leave(struct sampler *sampler, int worker, long steps, struct error *error) {
    return shared(sampler) && sampler->rounds ? begin_generation(sampler, worker, steps, error) : OK;
}

void sampler_take_back(struct sampler *sampler, long rounds) {
    if (atomic_load(&sampler->generation_count) > 1 || sampler->generations[0].again_count > 0 ||
        rounds >= sampler_rounds_opened(sampler))
        return;
    atomic_store(&sampler->opened, rounds);
    for (int w = 0; w < sampler->stream.workers; w++) atomic_store(&sampler->lines[w].done, rounds);
}

void sampler_take_lost(struct sampler *sampler) {
    if (!shared(sampler)) return;
    atomic_fetch_add(&sampler->given_back, sampler->in_flight);
    sampler->in_flight = 0;
}

/* In rounds a worker may have been assigned none. */
static long numbers_of(const struct sampler *sampler, int worker, long begin, long end) {
    long numbers = 0;
    if (!sampler->rounds) return (end - begin) * sampler_size_now(sampler, worker);
    for (long round = begin; round < end; round++) {
        const struct sampler_piece piece = sampler_piece_of(sampler, worker, round);
        if (piece.number != NO_BATCH && piece.number < sampler->total) numbers += piece.width;
    }
    return numbers;
}

void sampler_take_in_hand(struct sampler *sampler, int worker, long steps) {
    struct sampler_line *line = &sampler->lines[worker];
    const bool generations = shared(sampler) && sampler->rounds; /* a round that is open counts for all */
    const long end = generations ? sampler_rounds_opened(sampler) : atomic_load(&line->done);
    if (end <= steps) return;
    if (shared(sampler)) atomic_fetch_add(&sampler->given_back, numbers_of(sampler, worker, steps, end));
    atomic_store(&line->done, steps);
}

/* In rounds all go on from the same place: the mean of those that are there. */
static void level_own(struct sampler *sampler) {
    long sum = 0, count = 0;
    for (int w = 0; w < sampler->stream.workers; w++) {
        if (atomic_load(&sampler->lines[w].gone)) continue;
        sum += sampler->lines[w].base;
        count++;
    }
    for (int w = 0; w < sampler->stream.workers && count > 0; w++)
        if (!atomic_load(&sampler->lines[w].gone)) sampler->lines[w].base = sum / count;
}

static void count_anew(struct sampler_line *line) {
    line->base += atomic_load(&line->done);
    atomic_store(&line->done, 0);
}

/* Those that are gone were so before the first round. The last generation assigns `again`, which is its own
 * from now on, and then the stream from `fresh` on. */
static void begin_rounds(struct sampler *sampler, struct sampler_piece *again, long again_count, long fresh) {
    const int workers = sampler->stream.workers;
    int count = 1;
    for (int e = 0; e < atomic_load(&sampler->generation_count); e++)
        memory_free(sampler->generations[e].again);
    sampler->generations[0] = (struct sampler_generation){.lost = -1, .fresh = fresh};
    for (int w = 0; w < workers; w++)
        if (atomic_load(&sampler->lines[w].gone))
            sampler->generations[count++] = (struct sampler_generation){.lost = w, .fresh = fresh};
    sampler->generations[count - 1].again = again;
    sampler->generations[count - 1].again_count = again_count;
    atomic_store(&sampler->generation_count, count);
    atomic_store(&sampler->opened, 0);
}

void sampler_change(struct sampler *sampler, bool rounds) {
    const int workers = sampler->stream.workers;
    const long position = sampler_position(sampler);
    for (int w = 0; w < workers; w++)
        if (!atomic_load(&sampler->lines[w].gone)) count_anew(&sampler->lines[w]);
    begin_rounds(sampler, NULL, 0, position);
    atomic_store(&sampler->cursor, position);
    atomic_store(&sampler->stopping, false);
    sampler->base = position;
    sampler->rounds = rounds;
    sampler_find_total(sampler, position);
    if (rounds && !shared(sampler)) level_own(sampler);
}

bool sampler_may_join(struct sampler *sampler, int worker) {
    _Atomic long *back = &sampler->lines[worker].back;
    if (atomic_load(back) == 0) return true;
    for (int w = 0; w < sampler->stream.workers; w++) {
        if (atomic_load(&sampler->lines[w].back) != 0) continue;
        sampler->lines[w].back_width = sampler->lines[worker].back_width;
        atomic_store(&sampler->lines[w].back, atomic_exchange(back, 0));
        return true;
    }
    return false;
}

/* All steps are counted from 0 again, and what was to be handed out anew still is. */
static int begin_anew(struct sampler *sampler, struct error *error) {
    const struct sampler_generation *before =
        &sampler->generations[atomic_load(&sampler->generation_count) - 1];
    const bool generations = sampler->rounds && shared(sampler);
    struct sampler_reach reach = {0};
    struct sampler_piece *again = NULL;
    long count = 0;
    if (generations) {
        reach = sampler_reach_of(sampler, sampler_rounds_opened(sampler));
        count = before->again_count - reach.past;
        RETURN_IF(memory_array(&again, count, "what is handed out again", error));
        for (long i = 0; i < count; i++) again[i] = before->again[reach.past + i];
    }
    for (int w = 0; w < sampler->stream.workers; w++) count_anew(&sampler->lines[w]);
    if (generations)
        begin_rounds(sampler, again, count, reach.fresh < sampler->total ? reach.fresh : sampler->total);
    return OK;
}

int sampler_join(struct sampler *sampler, int worker, struct error *error) {
    const bool gone = atomic_exchange(&sampler->lines[worker].gone, false);
    const int code = begin_anew(sampler, error);
    if (code != OK) atomic_store(&sampler->lines[worker].gone, gone);
    return code;
}

int sampler_divide(struct sampler *sampler, const int *sizes, int batch, struct error *error) {
    RETURN_IF(begin_anew(sampler, error));
    sampler_take_widths(sampler, sizes);
    sampler->stream.batch = batch;
    sampler_find_total(sampler, sampler->generations[atomic_load(&sampler->generation_count) - 1].fresh);
    return OK;
}
