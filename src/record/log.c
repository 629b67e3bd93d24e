/* Workers only copy a row into their ring. A ring is a bounded queue of one writer and one reader, so two
 * counters, each written by one side alone, are all it needs. */
#include "log.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include "../base/memory.h"
#include "output.h"

struct log_ring {
    _Alignas(CACHE_LINE) _Atomic size_t put;   /* rows put so far; written by the writer */
    _Alignas(CACHE_LINE) _Atomic size_t taken; /* rows taken so far; written by the reader */
    size_t next, end;                          /* private to the reader: of the drain in hand */
    struct log_row *rows; /* [log->rows]; row n lies at n modulo log->rows; the first ring owns all */
};

/* Most rows in a ring and in all rings together, and the fewest in a ring of very many workers. */
enum { RING_ROWS = 4096, ALL_ROWS = 1 << 18, LEAST_ROWS = 256, BATCH_ROWS = 256 };

int log_open(struct log *log, int workers, struct telling *telling, struct error *error) {
    *log = (struct log){.workers = workers, .rows = RING_ROWS, .telling = telling};
    while (log->rows > LEAST_ROWS && log->rows * (long)workers > ALL_ROWS) log->rows /= 2;
    const size_t rings = (size_t)workers, rows = (size_t)log->rows;
    struct log_row *all = NULL;
    RETURN_IF(memory_array(&log->batch, BATCH_ROWS, "the rows of the log", error));
    RETURN_IF(memory_array(&log->rings, rings, "the rings of the log", error));
    RETURN_IF(memory_array(&all, rings * rows, "the rows of the log", error));
    for (size_t i = 0; i < rings; i++) log->rings[i].rows = all + i * rows;
    return OK;
}

bool log_wants(const struct log *log, long step) {
    return telling_wants(log->telling, step);
}

bool log_put(struct log *log, const struct log_row *row) {
    assert(row->worker >= 0 && row->worker < log->workers);
    struct log_ring *ring = &log->rings[row->worker];
    const size_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);
    const size_t rows = (size_t)log->rows;
    if (put - atomic_load_explicit(&ring->taken, memory_order_acquire) == rows) return false;
    ring->rows[put & (rows - 1)] = *row;
    atomic_store_explicit(&ring->put, put + 1, memory_order_release);
    return true;
}

/* The ring whose next row is the oldest, or NULL when all rows of this drain are taken. */
static struct log_ring *oldest(const struct log *log) {
    const size_t mask = (size_t)log->rows - 1;
    struct log_ring *best = NULL;
    for (int i = 0; i < log->workers; i++) {
        struct log_ring *ring = &log->rings[i];
        if (ring->next == ring->end) continue;
        if (!best || ring->rows[ring->next & mask].time_s < best->rows[best->next & mask].time_s) best = ring;
    }
    return best;
}

static void count_loss(struct log *log, const struct log_row *row) {
    if (row->epoch > log->epoch) {
        log->epoch = row->epoch;
        log->loss_sum = log->loss_examples = 0.0;
    }
    if (row->epoch < log->epoch) return;
    log->loss_sum += (double)row->loss * row->examples;
    log->loss_examples += row->examples;
}

double log_epoch_loss(const struct log *log, int epoch) {
    return epoch == log->epoch && log->loss_examples > 0.0 ? log->loss_sum / log->loss_examples : (double)NAN;
}

void log_drain(struct log *log) {
    for (int i = 0; i < log->workers; i++) {
        struct log_ring *ring = &log->rings[i];
        ring->next = atomic_load_explicit(&ring->taken, memory_order_relaxed);
        ring->end = atomic_load_explicit(&ring->put, memory_order_acquire);
    }
    int count = 0;
    for (struct log_ring *ring; (ring = oldest(log)) != NULL;) {
        count_loss(log, &ring->rows[ring->next & ((size_t)log->rows - 1)]);
        log->batch[count++] = ring->rows[ring->next & ((size_t)log->rows - 1)];
        ring->next++;
        atomic_store_explicit(&ring->taken, ring->next, memory_order_release);
        if (count < BATCH_ROWS) continue;
        telling_steps(log->telling, log->batch, count);
        count = 0;
    }
    if (count > 0) telling_steps(log->telling, log->batch, count);
}

void log_close(struct log *log) {
    if (log->rings) memory_free(log->rings->rows);
    memory_free(log->rings);
    memory_free(log->batch);
    *log = (struct log){0};
}
