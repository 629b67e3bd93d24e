/* The log of steps. Workers only copy a row into their ring; the coordinator formats and writes. A ring is a
 * bounded queue of one writer and one reader, so two counters, each written by one side alone, are all it
 * needs. */
#include "log.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>
#include "../base/file.h"
#include "../base/memory.h"
#include "digits.h"
#include "table.h"

struct log_ring {
    _Alignas(CACHE_LINE) _Atomic size_t put;   /* rows put so far; written by the writer */
    _Alignas(CACHE_LINE) _Atomic size_t taken; /* rows taken so far; written by the reader */
    size_t next, end;                          /* private to the reader: of the drain in hand */
    struct log_row *rows; /* [log->rows]; row n lies at n modulo log->rows; the first ring owns all */
};

/* Most rows in a ring and in all rings together, and the fewest in a ring of very many workers. */
enum { RING_ROWS = 4096, ALL_ROWS = 1 << 18, LEAST_ROWS = 256, DEVICE_BYTES = 64 };

static const char header[] = "time_s,worker,device,epoch,step,loss,learning_rate,examples,"
                             "input_ms,pull_ms,compute_ms,push_ms,wait_ms,staleness,update\n";

static int csv_failed(const struct log *log, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: the log of steps cannot be written: %s", log->csv_path,
                     strerror(errno));
}

/* What cannot be written whole is cut off: a disk that fills leaves no half row. */
static int csv_flush(struct log *log, struct error *error) {
    if (fflush(log->csv) == 0 && !ferror(log->csv)) {
        log->csv_flushed = log->csv_bytes;
        return OK;
    }
    const int code = csv_failed(log, error);
    __fpurge(log->csv);
    if (ftruncate(fileno(log->csv), (off_t)log->csv_flushed) != 0) return code; /* a pipe has no end to cut */
    return code;
}

int log_rewind(const char *csv_path, double time_s, long long *csv_bytes, struct error *error) {
    return table_rewind(csv_path, header, 0, time_s, csv_bytes, error);
}

static int csv_open(struct log *log, const char *path, long long bytes, struct error *error) {
    if (strlen(path) >= sizeof log->csv_path)
        return error_set(error, ERROR_FILE, "%.100s...: a path of %zu bytes, expected at most %zu", path,
                         strlen(path), sizeof log->csv_path - 1);
    strncpy(log->csv_path, path, sizeof log->csv_path - 1);
    RETURN_IF((bytes > 0 ? file_append : file_overwrite)(&log->csv, path, error));
    log->csv_bytes = log->csv_flushed = bytes;
    if (bytes > 0) return OK;
    fputs(header, log->csv);
    log->csv_bytes = sizeof header - 1;
    return csv_flush(log, error);
}

int log_open(struct log *log, int workers, const char *const *devices, const char *csv_path,
             long long csv_bytes, int log_every, int print_every, struct lines *lines, struct error *error) {
    *log = (struct log){.workers = workers,
                        .rows = RING_ROWS,
                        .devices = devices,
                        .log_every = csv_path ? log_every : 0,
                        .print_every = lines ? print_every : 0,
                        .lines = lines};
    while (log->rows > LEAST_ROWS && log->rows * (long)workers > ALL_ROWS) log->rows /= 2;
    const size_t rings = (size_t)workers, rows = (size_t)log->rows;
    struct log_row *all = NULL;
    RETURN_IF(memory_array(&log->rings, rings, "the rings of the log", error));
    RETURN_IF(memory_array(&all, rings * rows, "the rows of the log", error));
    for (size_t i = 0; i < rings; i++) log->rings[i].rows = all + i * rows;
    RETURN_IF(memory_array(&log->printed, rings, "the printed lines of the log", error));
    return csv_path ? csv_open(log, csv_path, csv_bytes, error) : OK;
}

static bool is_due(int every, long step) {
    return every > 0 && step % every == 0;
}

bool log_wants(const struct log *log, long step) {
    return is_due(log->log_every, step) || is_due(log->print_every, step);
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

static void write_row(struct log *log, const struct log_row *row) {
    char line[16 * DIGITS_BYTES + DEVICE_BYTES], *out = digits_fixed(line, row->time_s, 6);
    *out++ = ',';
    out = digits_whole(out, row->worker);
    *out++ = ',';
    const size_t device = strnlen(log->devices[row->worker], DEVICE_BYTES - 1);
    memcpy(out, log->devices[row->worker], device);
    out += device;
    *out++ = ',';
    out = digits_whole(out, row->epoch);
    *out++ = ',';
    out = digits_whole(out, row->step);
    *out++ = ',';
    out = digits_real(out, (double)row->loss);
    *out++ = ',';
    out = digits_real(out, (double)row->learning_rate);
    *out++ = ',';
    out = digits_whole(out, row->examples);
    const double times[] = {row->input_ms, row->pull_ms, row->compute_ms, row->push_ms, row->wait_ms};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        *out++ = ',';
        out = digits_fixed(out, times[i], 6);
    }
    *out++ = ',';
    out = digits_whole(out, row->staleness);
    *out++ = ',';
    out = digits_whole(out, row->version);
    *out++ = '\n';
    fwrite(line, 1, (size_t)(out - line), log->csv);
    log->csv_bytes += out - line;
}

/* The line of the reference programs; its "Step" is the number of updates that the weights have had. A
 * gradient that was dropped made none: the line has those before it, and says so at its end. */
static void print_row(struct log *log, const struct log_row *row) {
    struct log_printed *last = &log->printed[row->worker];
    const long steps = row->step - last->step;
    const double average_ms = steps > 0 ? (row->time_s - last->time_s) * 1000 / (double)steps : 0;
    *last = (struct log_printed){.time_s = row->time_s, .step = row->step};
    char worker[32] = "";
    if (log->workers > 1) snprintf(worker, sizeof worker, "Worker %d: ", row->worker);
    lines_say(log->lines, "%sStep: %ld,  Epoch: %2d,  Batch: %3ld of %3ld,  Cost: %.4f,  AvgTime: %3.2fms%s",
              worker, row->version > 0 ? row->version : row->read_version, row->epoch, row->batch,
              row->batches, (double)row->loss, average_ms, row->version > 0 ? "" : ",  dropped");
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

int log_drain(struct log *log, struct error *error) {
    for (int i = 0; i < log->workers; i++) {
        struct log_ring *ring = &log->rings[i];
        ring->next = atomic_load_explicit(&ring->taken, memory_order_relaxed);
        ring->end = atomic_load_explicit(&ring->put, memory_order_acquire);
    }
    bool wrote = false;
    for (struct log_ring *ring; (ring = oldest(log)) != NULL;) {
        const struct log_row *row = &ring->rows[ring->next & ((size_t)log->rows - 1)];
        if (log->csv && is_due(log->log_every, row->step)) {
            write_row(log, row);
            wrote = true;
        }
        if (log->lines && is_due(log->print_every, row->step)) print_row(log, row);
        ring->next++;
        atomic_store_explicit(&ring->taken, ring->next, memory_order_release);
    }
    if (log->lines) lines_flush(log->lines);
    return wrote ? csv_flush(log, error) : OK;
}

int log_finish(struct log *log, struct error *error) {
    RETURN_IF(log_drain(log, error));
    if (!log->csv) return OK;
    RETURN_IF(csv_flush(log, error));
    /* EINVAL, ENOTSUP: a pipe or a device has nothing to sync. */
    if (fsync(fileno(log->csv)) != 0 && errno != EINVAL && errno != ENOTSUP) return csv_failed(log, error);
    FILE *csv = log->csv;
    log->csv = NULL;
    return fclose(csv) != 0 ? csv_failed(log, error) : OK;
}

void log_close(struct log *log) {
    if (log->csv) fclose(log->csv);
    memory_free(log->printed);
    if (log->rings) memory_free(log->rings->rows);
    memory_free(log->rings);
    *log = (struct log){0};
}
