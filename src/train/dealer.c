/* Who gets which batch, and where everyone stops. See dealer.h. */
#include "dealer.h"

#include <limits.h>

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
    return OK;
}

void dealer_close(struct dealer *dealer) {
    memory_free(dealer->lines);
    dealer->lines = NULL;
}

static bool next_of_round(struct dealer *dealer, int worker, long *number) {
    struct dealer_line *line = &dealer->lines[worker];
    const long round = line->done;
    if (worker == 0 && atomic_load(&dealer->stopping)) {
        /* Others may have asked for round + 1 already; round + 2 they cannot ask for before worker 0 has
         * arrived at this one. */
        if (round + 2 < atomic_load(&dealer->limit)) atomic_store(&dealer->limit, round + 2);
    }
    if (round >= atomic_load(&dealer->limit)) return false;
    line->done++;
    *number = shared(dealer) ? dealer->base + round * dealer->stream.workers + worker : line->base + round;
    if (shared(dealer) && *number >= dealer->total) *number = NO_BATCH;
    return true;
}

bool dealer_next(struct dealer *dealer, int worker, long *number) {
    if (dealer->rounds) return next_of_round(dealer, worker, number);
    if (atomic_load(&dealer->stopping)) return false;
    struct dealer_line *line = &dealer->lines[worker];
    if (!shared(dealer)) {
        *number = line->base + line->done;
        if (*number >= line->limit) return false;
        line->done++;
        return true;
    }
    const long limit = atomic_load(&dealer->limit);
    *number = atomic_load(&dealer->cursor);
    while (*number < limit && !atomic_compare_exchange_weak(&dealer->cursor, number, *number + 1)) {
    }
    return *number < limit;
}

void dealer_stop(struct dealer *dealer) {
    atomic_store(&dealer->stopping, true);
}

void dealer_set_limit(struct dealer *dealer, int epoch) {
    const int workers = dealer->stream.workers;
    atomic_store(&dealer->stopping, false);
    if (shared(dealer)) {
        const long end = stream_epoch_end(&dealer->stream, 0, epoch);
        atomic_store(&dealer->limit, dealer->rounds ? up(end - dealer->base, workers) : end);
    } else if (dealer->rounds) {
        atomic_store(&dealer->limit, longest_own(dealer, epoch) - dealer->lines[0].base);
    } else {
        for (int w = 0; w < workers; w++)
            dealer->lines[w].limit = stream_epoch_end(&dealer->stream, w, epoch);
    }
}

long dealer_own(const struct dealer *dealer, int worker) {
    return dealer->lines[worker].base + dealer->lines[worker].done;
}

long dealer_position(const struct dealer *dealer) {
    const int workers = dealer->stream.workers;
    if (shared(dealer)) {
        const long position =
            dealer->rounds ? dealer->base + dealer->lines[0].done * workers : atomic_load(&dealer->cursor);
        return position < dealer->total ? position : dealer->total;
    }
    long sum = 0;
    for (int w = 0; w < workers; w++) sum += dealer_own(dealer, w);
    return sum;
}

bool dealer_reached(const struct dealer *dealer, int epoch) {
    if (shared(dealer)) return dealer_position(dealer) >= stream_epoch_end(&dealer->stream, 0, epoch);
    for (int w = 0; w < dealer->stream.workers; w++)
        if (dealer_own(dealer, w) < stream_epoch_end(&dealer->stream, w, epoch)) return false;
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

long dealer_updates(const struct dealer *dealer) {
    return dealer->rounds ? up(dealer_total(dealer), dealer->stream.workers) : dealer_total(dealer);
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
