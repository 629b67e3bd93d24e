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

/* --- parts of a round --- */

static void take_widths(struct sampler *sampler, const int *sizes) {
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
    take_widths(sampler, sizes);
    sampler->stream.sizes = sampler->sizes;
    return OK;
}

void sampler_hear_size(struct sampler *sampler, int worker, int examples) {
    if (sampler->sizes && sampler->sizes[worker] != examples) sampler->sizes[worker] = examples;
}

/* Where the training ends that goes on from number `from`. */
static void find_total(struct sampler *sampler, long from) {
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
    find_total(sampler, base);
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
    find_total(sampler, sampler->base);
}

void sampler_hear_total(struct sampler *sampler, long total) {
    sampler->total = total;
}

/* --- rounds --- */

/* Numbers that a batch of this worker takes. */
static long width_of(const struct sampler *sampler, int worker) {
    return sampler->widths ? sampler->widths[worker] : 1;
}

/* In a round of generation `e`: who takes part and stands before `worker`; how many take part. */
static int members_before(const struct sampler *sampler, int e, int worker) {
    int members = worker;
    for (int i = 1; i <= e; i++) members -= sampler->generations[i].lost < worker;
    return members;
}

static int members_of(const struct sampler *sampler, int e) {
    return members_before(sampler, e, sampler->stream.workers);
}

/* The same of the numbers that they take. */
static long numbers_before(const struct sampler *sampler, int e, int worker) {
    if (!sampler->widths) return members_before(sampler, e, worker);
    long numbers = 0;
    for (int w = 0; w < worker; w++) numbers += width_of(sampler, w);
    for (int i = 1; i <= e; i++) {
        const int lost = sampler->generations[i].lost;
        if (lost < worker) numbers -= width_of(sampler, lost);
    }
    return numbers;
}

static long round_numbers(const struct sampler *sampler, int e) {
    return numbers_before(sampler, e, sampler->stream.workers);
}

/* Rounds with which generation `e` begins, of what is handed out anew alone. */
static long rounds_again(const struct sampler *sampler, int e) {
    const int members = members_of(sampler, e); /* none, once all are lost */
    return sampler->widths && members > 0 ? up(sampler->generations[e].again_count, members) : 0;
}

/* What is assigned to a worker in a round of no later generation than that of its loss; number NO_BATCH:
 * nothing. */
static struct sampler_piece piece_of(const struct sampler *sampler, int worker, long round) {
    int e = atomic_load(&sampler->generation_count) - 1;
    while (sampler->generations[e].from > round) e--;
    const struct sampler_generation *generation = &sampler->generations[e];
    const long r = round - generation->from, first = rounds_again(sampler, e);
    if (r < first) {
        const long i = r * members_of(sampler, e) + members_before(sampler, e, worker);
        return i < generation->again_count ? generation->again[i] : (struct sampler_piece){NO_BATCH, 0};
    }
    const long k = (r - first) * round_numbers(sampler, e) + numbers_before(sampler, e, worker);
    if (sampler->widths) return (struct sampler_piece){generation->fresh + k, width_of(sampler, worker)};
    return k < generation->again_count
               ? generation->again[k]
               : (struct sampler_piece){generation->fresh + k - generation->again_count, 1};
}

/* How far the newest generation is when all its rounds before `round` are assigned. */
struct reach {
    long past;  /* of what it hands out anew, so many are assigned */
    long owed;  /* and so many numbers are not */
    long fresh; /* where the stream goes on; past the end, when the last round had empty ones */
};

static struct reach reach_of(const struct sampler *sampler, long round) {
    const int e = atomic_load(&sampler->generation_count) - 1;
    const struct sampler_generation *generation = &sampler->generations[e];
    const long rounds = round - generation->from, first = rounds_again(sampler, e);
    const long assigned = rounds * (sampler->widths ? members_of(sampler, e) : round_numbers(sampler, e));
    struct reach reach = {.past = assigned < generation->again_count ? assigned : generation->again_count,
                          .fresh = generation->fresh};
    for (long i = reach.past; i < generation->again_count; i++) reach.owed += generation->again[i].width;
    if (!sampler->widths)
        reach.fresh += assigned - reach.past;
    else if (rounds > first)
        reach.fresh += (rounds - first) * round_numbers(sampler, e);
    return reach;
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
    if (!shared(sampler)) {
        *number = line->base + round;
        return true;
    }
    const struct sampler_piece piece = piece_of(sampler, worker, round);
    *number = piece.number < sampler->total ? piece.number : NO_BATCH;
    if (*number != NO_BATCH) sampler_hear_size(sampler, worker, (int)piece.width);
    return true;
}

/* Numbers that the batch takes which this worker was assigned last. */
static long size_now(const struct sampler *sampler, int worker) {
    return sampler->sizes ? sampler->sizes[worker] : 1;
}

void sampler_give_back(struct sampler *sampler, int worker, long number) {
    struct sampler_line *line = &sampler->lines[worker];
    if (sampler->rounds) return;
    atomic_fetch_sub(&line->done, 1);
    if (!shared(sampler)) return;
    line->back_width = size_now(sampler, worker);
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
    const long width = width_of(sampler, worker);
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
    return generation->from + rounds_again(sampler, e) + up(again + left, round_numbers(sampler, e));
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
    const long from = rounds_opened(sampler);
    const struct reach reach = reach_of(sampler, from);
    *generation = (struct sampler_generation){
        .from = from, .lost = worker, .fresh = reach.fresh < sampler->total ? reach.fresh : sampler->total};
    RETURN_IF(memory_array(&generation->again, before->again_count + (step < from ? from - step : 0),
                           "what is handed out again", error));
    for (long i = reach.past; i < before->again_count; i++)
        generation->again[generation->again_count++] = before->again[i];
    for (long round = step; round < from; round++) {
        const struct sampler_piece piece = piece_of(sampler, worker, round);
        if (piece.number != NO_BATCH && piece.number < sampler->total)
            generation->again[generation->again_count++] = piece;
    }
    atomic_store(&sampler->generation_count, count + 1);
    return OK;
}

int sampler_lose(struct sampler *sampler, int worker, long step, struct error *error) {
    const bool generations = shared(sampler) && sampler->rounds;
    const bool waited = generations && step > rounds_opened(sampler); /* for a round that nobody has begun */
    if (step > 0 && !waited)
        sampler->in_flight += (generations ? 1 : atomic_load(&sampler->lines[worker].done) - (step - 1)) *
                              size_now(sampler, worker);
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

void sampler_take_lost(struct sampler *sampler) {
    if (!shared(sampler)) return;
    atomic_fetch_add(&sampler->given_back, sampler->in_flight);
    sampler->in_flight = 0;
}

/* In rounds a worker may have been assigned none. */
static long numbers_of(const struct sampler *sampler, int worker, long begin, long end) {
    long numbers = 0;
    if (!sampler->rounds) return (end - begin) * size_now(sampler, worker);
    for (long round = begin; round < end; round++) {
        const struct sampler_piece piece = piece_of(sampler, worker, round);
        if (piece.number != NO_BATCH && piece.number < sampler->total) numbers += piece.width;
    }
    return numbers;
}

void sampler_take_in_hand(struct sampler *sampler, int worker, long steps) {
    struct sampler_line *line = &sampler->lines[worker];
    const bool generations = shared(sampler) && sampler->rounds; /* a round that is open counts for all */
    const long end = generations ? rounds_opened(sampler) : atomic_load(&line->done);
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
    find_total(sampler, position);
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
    struct reach reach = {0};
    struct sampler_piece *again = NULL;
    long count = 0;
    if (generations) {
        reach = reach_of(sampler, rounds_opened(sampler));
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
    take_widths(sampler, sizes);
    sampler->stream.batch = batch;
    find_total(sampler, sampler->generations[atomic_load(&sampler->generation_count) - 1].fresh);
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
        const long from = sampler->generations[atomic_load(&sampler->generation_count) - 1].from;
        const long opened = rounds_opened(sampler);
        const struct reach reach = reach_of(sampler, opened);
        const long position = reach.fresh - reach.owed;
        const bool whole = position <= sampler->total || (sampler->stream.sizes && opened == from);
        return (whole ? position : end_of_last(sampler, position)) - atomic_load(&sampler->given_back);
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
    return sampler->rounds && reach_of(sampler, rounds_opened(sampler)).past < generation->again_count;
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

/* Of parts of different sizes, so many make as much of a round as they are of its workers. */
long sampler_updates_of(const struct sampler *sampler, long numbers, int batches_in_one) {
    if (!sampler->sizes) return up(numbers, batches_in_one);
    return up(numbers * sampler->dividing, (long)sampler->whole * batches_in_one);
}

long sampler_updates(const struct sampler *sampler, int batches_in_one) {
    return sampler_updates_of(sampler, sampler_total(sampler), batches_in_one);
}

long sampler_batches(const struct sampler *sampler, long numbers) {
    return sampler->stream.sizes ? up(numbers, sampler->stream.batch) : numbers;
}

void sampler_place(const struct sampler *sampler, int worker, long number, int *epoch, long *place,
                   long *batches) {
    const long long examples = stream_epoch_examples(&sampler->stream, worker);
    long long e = (long long)number * stream_unit(&sampler->stream) / examples;
    if (e >= sampler->epochs) e = sampler->epochs - 1; /* the rest of the last round */
    const long begin =
        e > 0 ? sampler_batches(sampler, stream_epoch_end(&sampler->stream, worker, (int)e - 1)) : 0;
    *epoch = (int)e;
    *batches = sampler_batches(sampler, stream_epoch_end(&sampler->stream, worker, (int)e)) - begin;
    *place = sampler_batches(sampler, number) - begin;
    if (*place >= *batches) *place = *batches - 1;
}
