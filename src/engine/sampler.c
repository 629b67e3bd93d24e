/* Which worker gets which batch, and where all stop. See sampler.h. */
#include "sampler.h"

#include "../base/memory.h"

static bool shared(const struct sampler *sampler) {
    return sampler->stream.sharding == SHARDING_SHARED;
}

static long up(long a, long b) {
    return (a + b - 1) / b;
}

/* Own batches, until the end of an epoch, of the worker that has the most. */
static long longest_own(const struct sampler *sampler, int epoch) {
    long most = 0;
    for (int w = 0; w < sampler->stream.workers; w++) {
        const long end = stream_epoch_end(&sampler->stream, w, epoch);
        if (end > most) most = end;
    }
    return most;
}

int sampler_open(struct sampler *sampler, const struct stream *stream, bool rounds, int epochs, long base,
                 const long *done, struct error *error) {
    *sampler = (struct sampler){.stream = *stream, .rounds = rounds, .epochs = epochs, .base = base};
    RETURN_IF(memory_array(&sampler->lines, stream->workers, "the sampler's lines", error));
    for (int w = 0; w < stream->workers; w++) sampler->lines[w].base = done ? done[w] : 0;
    if (rounds && !shared(sampler)) { /* in rounds all go on from the same place */
        long sum = 0;
        for (int w = 0; w < stream->workers; w++) sum += sampler->lines[w].base;
        for (int w = 0; w < stream->workers; w++) sampler->lines[w].base = sum / stream->workers;
    }
    sampler->total = shared(sampler) ? stream_epoch_end(stream, 0, epochs - 1) : 0;
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
    sampler->generations = NULL;
    sampler->lines = NULL;
    atomic_store(&sampler->generation_count, 0);
}

/* --- rounds --- */

/* Numbers that a batch of this worker takes. */
static long width_of(const struct sampler *sampler, int worker) {
    return sampler->stream.sizes ? sampler->stream.sizes[worker] : 1;
}

/* In a round of generation `e`: numbers of those who take part and stand before `worker`; of all of them. */
static long numbers_before(const struct sampler *sampler, int e, int worker) {
    long numbers = worker;
    if (sampler->stream.sizes) numbers = 0;
    for (int w = 0; sampler->stream.sizes && w < worker; w++) numbers += width_of(sampler, w);
    for (int i = 1; i <= e; i++) {
        const int lost = sampler->generations[i].lost;
        if (lost < worker) numbers -= width_of(sampler, lost);
    }
    return numbers;
}

static long round_numbers(const struct sampler *sampler, int e) {
    return numbers_before(sampler, e, sampler->stream.workers);
}

/* The number assigned to a worker in a round of no later generation than that of its loss. */
static long number_of(const struct sampler *sampler, int worker, long round) {
    int e = atomic_load(&sampler->generation_count) - 1;
    while (sampler->generations[e].from > round) e--;
    const struct sampler_generation *generation = &sampler->generations[e];
    const long k =
        (round - generation->from) * round_numbers(sampler, e) + numbers_before(sampler, e, worker);
    return k < generation->again_count ? generation->again[k]
                                       : generation->fresh + k - generation->again_count;
}

/* Numbers that the newest generation has assigned, when all its rounds before `round` are assigned. */
static long assigned_before(const struct sampler *sampler, long round) {
    const int e = atomic_load(&sampler->generation_count) - 1;
    return (round - sampler->generations[e].from) * round_numbers(sampler, e);
}

static long rounds_opened(const struct sampler *sampler) {
    const long opened = atomic_load(&sampler->opened);
    return opened < 0 ? ~opened : opened;
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
    *number = shared(sampler) ? number_of(sampler, worker, round) : line->base + round;
    if (shared(sampler) && *number >= sampler->total) *number = NO_BATCH;
    return true;
}

void sampler_give_back(struct sampler *sampler, int worker, long number) {
    struct sampler_line *line = &sampler->lines[worker];
    if (sampler->rounds) return;
    atomic_fetch_sub(&line->done, 1);
    if (!shared(sampler)) return;
    atomic_store(&line->back, number + 1);
    atomic_fetch_add(&sampler->given_back, 1);
}

/* A number that was given back, for whoever asks first. */
static bool take_given_back(struct sampler *sampler, long *number) {
    for (int w = 0; w < sampler->stream.workers && atomic_load(&sampler->given_back) > 0; w++) {
        const long back = atomic_exchange(&sampler->lines[w].back, 0);
        if (back == 0) continue;
        atomic_fetch_sub(&sampler->given_back, 1);
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
    if (take_given_back(sampler, number)) {
        atomic_fetch_add(&line->done, 1);
        return true;
    }
    const long limit = atomic_load(&sampler->limit);
    *number = atomic_load(&sampler->cursor);
    const long width = width_of(sampler, worker);
    while (*number < limit && !atomic_compare_exchange_weak(&sampler->cursor, number, *number + width)) {
    }
    if (*number >= limit) return false;
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
    const long left = generation->again_count + (end > generation->fresh ? end - generation->fresh : 0);
    return generation->from + up(left, round_numbers(sampler, e));
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
    atomic_store(&sampler->opened, rounds_opened(sampler));
    if (shared(sampler)) {
        const long end = stream_epoch_end(&sampler->stream, 0, epoch);
        atomic_store(&sampler->limit, sampler->rounds ? rounds_until(sampler, end) : end);
    } else if (sampler->rounds) {
        atomic_store(&sampler->limit, longest_own(sampler, epoch) - round_base(sampler));
    } else {
        for (int w = 0; w < workers; w++)
            atomic_store(&sampler->lines[w].limit, stream_epoch_end(&sampler->stream, w, epoch));
    }
}

void sampler_bar(struct sampler *sampler, int worker) {
    atomic_store(&sampler->lines[worker].gone, true);
}

/* What the lost worker was assigned after the round that it had in hand is handed out again, after what
 * already had to be. */
static int begin_generation(struct sampler *sampler, int worker, long step, struct error *error) {
    const int count = atomic_load(&sampler->generation_count);
    const struct sampler_generation *before = &sampler->generations[count - 1];
    struct sampler_generation *generation = &sampler->generations[count];
    const long from = rounds_opened(sampler), assigned = assigned_before(sampler, from);
    const long past = assigned < before->again_count ? assigned : before->again_count;
    const long fresh = before->fresh + assigned - past; /* past the end, when the last round had empty ones */
    *generation = (struct sampler_generation){
        .from = from, .lost = worker, .fresh = fresh < sampler->total ? fresh : sampler->total};
    RETURN_IF(memory_array(&generation->again, before->again_count + (step < from ? from - step : 0),
                           "what is handed out again", error));
    for (long i = past; i < before->again_count; i++)
        generation->again[generation->again_count++] = before->again[i];
    for (long round = step; round < from; round++) {
        const long number = number_of(sampler, worker, round);
        if (number < sampler->total) generation->again[generation->again_count++] = number;
    }
    atomic_store(&sampler->generation_count, count + 1);
    return OK;
}

int sampler_lose(struct sampler *sampler, int worker, long step, struct error *error) {
    const bool generations = shared(sampler) && sampler->rounds;
    const bool waited = generations && step > rounds_opened(sampler); /* for a round that nobody has begun */
    if (step > 0 && !waited)
        sampler->in_flight += (generations ? 1 : atomic_load(&sampler->lines[worker].done) - (step - 1)) *
                              width_of(sampler, worker);
    return generations ? begin_generation(sampler, worker, step, error) : OK;
}

int sampler_leave(struct sampler *sampler, int worker, long steps, struct error *error) {
    return shared(sampler) && sampler->rounds ? begin_generation(sampler, worker, steps, error) : OK;
}

void sampler_take_back(struct sampler *sampler, long rounds) {
    if (atomic_load(&sampler->generation_count) > 1 || sampler->generations[0].again_count > 0 ||
        rounds >= rounds_opened(sampler))
        return;
    atomic_store(&sampler->opened, rounds);
    for (int w = 0; w < sampler->stream.workers; w++) atomic_store(&sampler->lines[w].done, rounds);
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
static void begin_rounds(struct sampler *sampler, long *again, long again_count, long fresh) {
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
    if (rounds && !shared(sampler)) level_own(sampler);
}

bool sampler_may_join(struct sampler *sampler, int worker) {
    _Atomic long *back = &sampler->lines[worker].back;
    if (atomic_load(back) == 0) return true;
    for (int w = 0; w < sampler->stream.workers; w++) {
        if (atomic_load(&sampler->lines[w].back) != 0) continue;
        atomic_store(&sampler->lines[w].back, atomic_exchange(back, 0));
        return true;
    }
    return false;
}

int sampler_join(struct sampler *sampler, int worker, struct error *error) {
    const struct sampler_generation *before =
        &sampler->generations[atomic_load(&sampler->generation_count) - 1];
    const long assigned = sampler->rounds ? assigned_before(sampler, rounds_opened(sampler)) : 0;
    const long past = assigned < before->again_count ? assigned : before->again_count;
    const long owed = before->again_count - past, fresh = before->fresh + assigned - past;
    long *again = NULL;
    if (sampler->rounds && shared(sampler)) {
        RETURN_IF(memory_array(&again, owed, "what is handed out again", error));
        for (long i = 0; i < owed; i++) again[i] = before->again[past + i];
    }
    atomic_store(&sampler->lines[worker].gone, false);
    for (int w = 0; w < sampler->stream.workers; w++) count_anew(&sampler->lines[w]);
    if (sampler->rounds && shared(sampler))
        begin_rounds(sampler, again, owed, fresh < sampler->total ? fresh : sampler->total);
    return OK;
}

long sampler_own(const struct sampler *sampler, int worker) {
    return sampler->lines[worker].base + atomic_load(&sampler->lines[worker].done);
}

/* Where the last round ends, which goes over the total to `position`: whose part would begin behind the total
 * was assigned nothing. */
static long end_of_last(const struct sampler *sampler, long position) {
    const int e = atomic_load(&sampler->generation_count) - 1;
    const long begin = position - round_numbers(sampler, e);
    if (!sampler->stream.sizes) return sampler->total;
    for (int w = 0; w < sampler->stream.workers; w++) {
        const long at = begin + numbers_before(sampler, e, w);
        if (at >= sampler->total) return at;
    }
    return position;
}

long sampler_position(const struct sampler *sampler) {
    if (shared(sampler) && !sampler->rounds)
        return atomic_load(&sampler->cursor) - atomic_load(&sampler->given_back);
    if (shared(sampler)) {
        const struct sampler_generation *generation =
            &sampler->generations[atomic_load(&sampler->generation_count) - 1];
        const long assigned = assigned_before(sampler, rounds_opened(sampler));
        const long position = generation->fresh - generation->again_count + assigned;
        return position <= sampler->total || (sampler->stream.sizes && assigned == 0)
                   ? position
                   : end_of_last(sampler, position);
    }
    long sum = 0;
    for (int w = 0; w < sampler->stream.workers; w++) sum += sampler_own(sampler, w);
    return sum;
}

/* Whether something is to be handed out again: then batches before the position are missing, and later ones
 * are there. */
static bool owes_batches(const struct sampler *sampler) {
    const struct sampler_generation *generation =
        &sampler->generations[atomic_load(&sampler->generation_count) - 1];
    return sampler->rounds && assigned_before(sampler, rounds_opened(sampler)) < generation->again_count;
}

bool sampler_reached(const struct sampler *sampler, int epoch) {
    if (shared(sampler) && owes_batches(sampler)) return false;
    if (shared(sampler)) return sampler_position(sampler) >= stream_epoch_end(&sampler->stream, 0, epoch);
    for (int w = 0; w < sampler->stream.workers; w++)
        if (!atomic_load(&sampler->lines[w].gone) &&
            sampler_own(sampler, w) < stream_epoch_end(&sampler->stream, w, epoch))
            return false;
    return true;
}

long sampler_total(const struct sampler *sampler) {
    if (shared(sampler)) return sampler->total;
    long sum = 0;
    for (int w = 0; w < sampler->stream.workers; w++)
        sum += sampler->rounds ? longest_own(sampler, sampler->epochs - 1)
                               : stream_epoch_end(&sampler->stream, w, sampler->epochs - 1);
    return sum;
}

long sampler_updates(const struct sampler *sampler, int batches_in_one) {
    return up(sampler_batches(sampler, sampler_total(sampler)), batches_in_one);
}

long sampler_batches(const struct sampler *sampler, long numbers) {
    return sampler->stream.sizes ? up(numbers, sampler->stream.batch) : numbers;
}

void sampler_place(const struct sampler *sampler, int worker, long number, int *epoch, long *place,
                   long *batches) {
    const long long examples = stream_epoch_examples(&sampler->stream, worker);
    const int e = (int)((long long)number * stream_unit(&sampler->stream) / examples);
    const long begin =
        e > 0 ? sampler_batches(sampler, stream_epoch_end(&sampler->stream, worker, e - 1)) : 0;
    *epoch = e;
    *batches = sampler_batches(sampler, stream_epoch_end(&sampler->stream, worker, e)) - begin;
    *place = sampler_batches(sampler, number) - begin;
    if (*place >= *batches) *place = *batches - 1;
}
