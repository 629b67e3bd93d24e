/* A bounded queue of many writers and one reader. Source: D. Vyukov, "Bounded MPMC queue", 1024cores.net. */
#include "trace.h"

#include <stdatomic.h>
#include <stdint.h>
#include "../base/memory.h"

enum { CELLS = 1 << 15 };

struct trace {
    struct cell {
        _Atomic uint64_t sequence; /* n: free for the n-th span; n + 1: it is there */
        struct trace_span span;
    } * cells; /* [CELLS] */
    long first, every;
    _Alignas(64) _Atomic uint64_t tail; /* next to write */
    _Alignas(64) uint64_t head;         /* next to read; the reader's own */
    _Atomic long left_out;
};

int trace_open(struct trace **out, long first, long every, struct error *error) {
    struct trace *trace = NULL;
    RETURN_IF(memory_array(out, 1, "the trace", error));
    trace = *out;
    trace->first = first;
    trace->every = every;
    RETURN_IF(memory_array(&trace->cells, CELLS, "the trace", error));
    for (uint64_t i = 0; i < CELLS; i++) atomic_init(&trace->cells[i].sequence, i);
    return OK;
}

void trace_close(struct trace *trace) {
    if (trace) memory_free(trace->cells);
    memory_free(trace);
}

bool trace_wants(const struct trace *trace, long step) {
    return trace && step > 0 && (step <= trace->first || (trace->every > 0 && step % trace->every == 0));
}

void trace_put(struct trace *trace, const struct trace_span *span) {
    uint64_t at = atomic_load_explicit(&trace->tail, memory_order_relaxed);
    while (true) {
        struct cell *cell = &trace->cells[at % CELLS];
        const uint64_t sequence = atomic_load_explicit(&cell->sequence, memory_order_acquire);
        if (sequence == at) {
            if (!atomic_compare_exchange_weak(&trace->tail, &at, at + 1)) continue;
            cell->span = *span;
            atomic_store_explicit(&cell->sequence, at + 1, memory_order_release);
            return;
        }
        if (sequence < at) { /* full */
            atomic_fetch_add_explicit(&trace->left_out, 1, memory_order_relaxed);
            return;
        }
        at = atomic_load_explicit(&trace->tail, memory_order_relaxed);
    }
}

bool trace_take(struct trace *trace, struct trace_span *span) {
    struct cell *cell = &trace->cells[trace->head % CELLS];
    if (atomic_load_explicit(&cell->sequence, memory_order_acquire) != trace->head + 1) return false;
    *span = cell->span;
    atomic_store_explicit(&cell->sequence, trace->head + CELLS, memory_order_release);
    trace->head++;
    return true;
}

long trace_left_out(const struct trace *trace) {
    return atomic_load(&trace->left_out);
}
