/* Who gets which batch, and where everyone stops. See dealer.h. */
#include "dealer.h"

#include "../base/memory.h"

static bool shared(const struct dealer *dealer) {
    return dealer->stream.sharding == SHARDING_SHARED;
}

static long up(long a, long b) {
    return (a + b - 1) / b;
}

/* Own batches of the worker that goes on longest until the end of an epoch. */
static long longest_own(const struct dealer *dealer, int epoch) {
    long most = 0;
    for (int w = 0; w < dealer->stream.workers; w++) {
        const long end = stream_epoch_end(&dealer->stream, w, epoch);
        if (end > most) most = end;
    }
    return most;
}

int dealer_open(struct dealer *dealer, const struct stream *stream, bool rounds, int epochs, long base,
                const long *done, struct error *error) {
    void *block = NULL;
    *dealer = (struct dealer){.stream = *stream, .rounds = rounds, .epochs = epochs, .base = base};
    RETURN_IF(memory_zeroed(&block, (size_t)stream->workers, sizeof(struct dealer_line), "the dealer's lines",
                            error));
    dealer->lines = block;
    for (int w = 0; w < stream->workers; w++) dealer->lines[w].base = done ? done[w] : 0;
    if (rounds && !shared(dealer)) { /* in rounds all go on from the same place */
        long sum = 0;
        for (int w = 0; w < stream->workers; w++) sum += dealer->lines[w].base;
        for (int w = 0; w < stream->workers; w++) dealer->lines[w].base = sum / stream->workers;
    }
    dealer->total = shared(dealer) ? stream_epoch_end(stream, 0, epochs - 1) : 0;
    atomic_store(&dealer->cursor, base);
    RETURN_IF(memory_zeroed(&block, (size_t)stream->workers + 1, sizeof(struct dealer_era),
                            "the dealer's eras", error));
    dealer->eras = block;
    dealer->eras[0] = (struct dealer_era){.lost = -1, .fresh = base};
    atomic_store(&dealer->era_count, 1);
    return OK;
}

void dealer_close(struct dealer *dealer) {
    for (int e = 0; e < atomic_load(&dealer->era_count); e++) memory_free(dealer->eras[e].again);
    memory_free(dealer->eras);
    memory_free(dealer->lines);
    dealer->eras = NULL;
    dealer->lines = NULL;
    atomic_store(&dealer->era_count, 0);
}

/* --- rounds --- */

/* Workers that take part in era `e`, and how many of them stand before `worker`. */
static int era_workers(const struct dealer *dealer, int e) {
    return dealer->stream.workers - e;
}

static int era_rank(const struct dealer *dealer, int e, int worker) {
    int rank = worker;
    for (int i = 1; i <= e; i++) rank -= dealer->eras[i].lost < worker;
    return rank;
}

/* The number dealt to a worker in a round of no later era than that of its loss. */
static long number_of(const struct dealer *dealer, int worker, long round) {
    int e = atomic_load(&dealer->era_count) - 1;
    while (dealer->eras[e].from > round) e--;
    const struct dealer_era *era = &dealer->eras[e];
    const long k = (round - era->from) * era_workers(dealer, e) + era_rank(dealer, e, worker);
    return k < era->again_count ? era->again[k] : era->fresh + k - era->again_count;
}

/* Numbers that the newest era has dealt, when all its rounds before `round` are dealt. */
static long dealt_before(const struct dealer *dealer, long round) {
    const int e = atomic_load(&dealer->era_count) - 1;
    return (round - dealer->eras[e].from) * era_workers(dealer, e);
}

static long rounds_opened(const struct dealer *dealer) {
    const long opened = atomic_load(&dealer->opened);
    return opened < 0 ? ~opened : opened;
}

/* Whether this round may be dealt. One that anybody was dealt, all must be dealt, since nobody can finish it
 * without the others: a stop only forbids to open another. `opened` carries the stop in its sign, so that the
 * two are looked at as one. */
static bool may_deal(struct dealer *dealer, long round) {
    if (round >= atomic_load(&dealer->limit)) return false;
    long opened = atomic_load(&dealer->opened);
    while (opened >= 0 && round >= opened)
        if (atomic_compare_exchange_weak(&dealer->opened, &opened, round + 1)) return true;
    return opened >= 0 || round < ~opened;
}

static bool next_of_round(struct dealer *dealer, int worker, long *number) {
    struct dealer_line *line = &dealer->lines[worker];
    const long round = atomic_load(&line->done);
    if (!may_deal(dealer, round)) return false;
    atomic_store(&line->done, round + 1);
    *number = shared(dealer) ? number_of(dealer, worker, round) : line->base + round;
    if (shared(dealer) && *number >= dealer->total) *number = NO_BATCH;
    return true;
}

bool dealer_next(struct dealer *dealer, int worker, long *number) {
    struct dealer_line *line = &dealer->lines[worker];
    if (atomic_load(&line->gone)) return false;
    if (dealer->rounds) return next_of_round(dealer, worker, number);
    if (atomic_load(&dealer->stopping)) return false;
    if (!shared(dealer)) {
        *number = dealer_own(dealer, worker);
        if (*number >= atomic_load(&line->limit)) return false;
        atomic_fetch_add(&line->done, 1);
        return true;
    }
    const long limit = atomic_load(&dealer->limit);
    *number = atomic_load(&dealer->cursor);
    while (*number < limit && !atomic_compare_exchange_weak(&dealer->cursor, number, *number + 1)) {
    }
    if (*number >= limit) return false;
    atomic_fetch_add(&line->done, 1);
    return true;
}

void dealer_stop(struct dealer *dealer) {
    long opened = atomic_load(&dealer->opened);
    atomic_store(&dealer->stopping, true);
    while (opened >= 0 && !atomic_compare_exchange_weak(&dealer->opened, &opened, ~opened)) {
    }
}

/* Rounds until all numbers before `end` are dealt, and all that are dealt anew. */
static long rounds_until(const struct dealer *dealer, long end) {
    const int e = atomic_load(&dealer->era_count) - 1;
    const struct dealer_era *era = &dealer->eras[e];
    const long left = era->again_count + (end > era->fresh ? end - era->fresh : 0);
    return era->from + up(left, era_workers(dealer, e));
}

void dealer_set_limit(struct dealer *dealer, int epoch) {
    const int workers = dealer->stream.workers;
    atomic_store(&dealer->stopping, false);
    atomic_store(&dealer->opened, rounds_opened(dealer));
    if (shared(dealer)) {
        const long end = stream_epoch_end(&dealer->stream, 0, epoch);
        atomic_store(&dealer->limit, dealer->rounds ? rounds_until(dealer, end) : end);
    } else if (dealer->rounds) {
        atomic_store(&dealer->limit, longest_own(dealer, epoch) - dealer->lines[0].base);
    } else {
        for (int w = 0; w < workers; w++)
            atomic_store(&dealer->lines[w].limit, stream_epoch_end(&dealer->stream, w, epoch));
    }
}

void dealer_bar(struct dealer *dealer, int worker) {
    atomic_store(&dealer->lines[worker].gone, true);
}

/* What the lost worker was dealt after the round that it had in hand is dealt anew, after what already had to
 * be. */
static int begin_era(struct dealer *dealer, int worker, long step, struct error *error) {
    const int count = atomic_load(&dealer->era_count);
    const struct dealer_era *before = &dealer->eras[count - 1];
    struct dealer_era *era = &dealer->eras[count];
    const long from = rounds_opened(dealer), dealt = dealt_before(dealer, from);
    const long past = dealt < before->again_count ? dealt : before->again_count;
    const long fresh = before->fresh + dealt - past; /* past the end, when the last round had empty ones */
    void *block = NULL;
    RETURN_IF(memory_zeroed(&block, (size_t)(before->again_count + from - step), sizeof(long),
                            "what is dealt anew", error));
    *era = (struct dealer_era){
        .from = from, .lost = worker, .again = block, .fresh = fresh < dealer->total ? fresh : dealer->total};
    for (long i = past; i < before->again_count; i++) era->again[era->again_count++] = before->again[i];
    for (long round = step; round < from; round++) {
        const long number = number_of(dealer, worker, round);
        if (number < dealer->total) era->again[era->again_count++] = number;
    }
    atomic_store(&dealer->era_count, count + 1);
    return OK;
}

int dealer_lose(struct dealer *dealer, int worker, long step, struct error *error) {
    const bool eras = shared(dealer) && dealer->rounds;
    if (step > 0) dealer->in_flight += eras ? 1 : atomic_load(&dealer->lines[worker].done) - (step - 1);
    return eras ? begin_era(dealer, worker, step, error) : OK;
}

long dealer_own(const struct dealer *dealer, int worker) {
    return dealer->lines[worker].base + atomic_load(&dealer->lines[worker].done);
}

long dealer_position(const struct dealer *dealer) {
    if (shared(dealer) && !dealer->rounds) return atomic_load(&dealer->cursor);
    if (shared(dealer)) {
        const struct dealer_era *era = &dealer->eras[atomic_load(&dealer->era_count) - 1];
        const long position = era->fresh - era->again_count + dealt_before(dealer, rounds_opened(dealer));
        return position < dealer->total ? position : dealer->total;
    }
    long sum = 0;
    for (int w = 0; w < dealer->stream.workers; w++) sum += dealer_own(dealer, w);
    return sum;
}

bool dealer_reached(const struct dealer *dealer, int epoch) {
    if (shared(dealer)) return dealer_position(dealer) >= stream_epoch_end(&dealer->stream, 0, epoch);
    for (int w = 0; w < dealer->stream.workers; w++)
        if (!atomic_load(&dealer->lines[w].gone) &&
            dealer_own(dealer, w) < stream_epoch_end(&dealer->stream, w, epoch))
            return false;
    return true;
}

long dealer_total(const struct dealer *dealer) {
    if (shared(dealer)) return dealer->total;
    long sum = 0;
    for (int w = 0; w < dealer->stream.workers; w++)
        sum += dealer->rounds ? longest_own(dealer, dealer->epochs - 1)
                              : stream_epoch_end(&dealer->stream, w, dealer->epochs - 1);
    return sum;
}

long dealer_updates(const struct dealer *dealer, bool merged) {
    return merged ? up(dealer_total(dealer), dealer->stream.workers) : dealer_total(dealer);
}

void dealer_place(const struct dealer *dealer, int worker, long number, int *epoch, long *place,
                  long *batches) {
    const long long examples = stream_epoch_examples(&dealer->stream, worker);
    const int e = (int)((long long)number * dealer->stream.batch / examples);
    const long begin = e > 0 ? stream_epoch_end(&dealer->stream, worker, e - 1) : 0;
    *epoch = e;
    *place = number - begin;
    *batches = stream_epoch_end(&dealer->stream, worker, e) - begin;
}
