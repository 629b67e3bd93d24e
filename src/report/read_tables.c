/* epochs.csv and steps.csv, in one pass and in memory that does not depend on their length: where a table
 * of bins is full, each two of them become one. */
#include <math.h>
#include <string.h>
#include "../base/memory.h"
#include "facts.h"
#include "rows.h"

static const double seconds_most = 1e9, steps_most = 1e15;

/* --- epochs --- */

enum { EPOCH, TIME, TRAIN_LOSS, TEST_LOSS, SPEED, VALIDATION_LOSS, TEST_SCORE, VALIDATION_SCORE, NAMES };

/* By the name of its score a table says what the run was judged by. */
static const struct epoch_names {
    enum metric metric;
    const char *names[NAMES + 1];
} epoch_tables[] = {
    {METRIC_ACCURACY,
     {"epoch", "time_s", "train_loss", "test_loss", "examples_per_s", "validation_loss", "test_accuracy",
      "validation_accuracy", NULL}},
    {METRIC_RMSE,
     {"epoch", "time_s", "train_loss", "test_loss", "examples_per_s", "validation_loss", "test_rmse",
      "validation_rmse", NULL}},
};

static int open_epochs(struct rows *rows, enum metric *metric, const char *path, struct error *error) {
    struct error ignored = {0};
    *metric = epoch_tables[1].metric;
    if (rows_open(rows, path, epoch_tables[1].names, &ignored) == OK) return OK;
    *metric = epoch_tables[0].metric;
    return rows_open(rows, path, epoch_tables[0].names, error);
}

static struct epoch_row epoch_of(const double *values, enum metric metric) {
    return (struct epoch_row){.epoch = (int)values[EPOCH],
                              .time_s = values[TIME],
                              .train_loss = values[TRAIN_LOSS],
                              .metric = metric,
                              .test_loss = values[TEST_LOSS],
                              .test_score = values[TEST_SCORE],
                              .examples_per_s = values[SPEED],
                              .validation_loss = values[VALIDATION_LOSS],
                              .validation_score = values[VALIDATION_SCORE]};
}

int epochs_read(struct facts *facts, const char *path, struct error *error) {
    struct epoch_facts *epochs = &facts->epochs;
    struct rows rows;
    struct epoch_row last = {0};
    long read = 0, every = 1;
    RETURN_IF(open_epochs(&rows, &epochs->metric, path, error));
    int code = memory_array(&epochs->rows, FACTS_EPOCHS + 1, "the epochs", error);
    while (code == OK && rows_next(&rows)) {
        if (!(rows.values[EPOCH] >= 0 && rows.values[EPOCH] <= 1e9) || !isfinite(rows.values[TIME])) continue;
        last = epoch_of(rows.values, epochs->metric);
        if (isnan(epochs->best_score) || metric_better(epochs->metric, last.test_score, epochs->best_score))
            epochs->best_score = last.test_score;
        if (read++ % every != 0) continue;
        epochs->rows[epochs->count++] = last;
        if (epochs->count < FACTS_EPOCHS) continue;
        for (int i = 0; 2 * i < epochs->count; i++) epochs->rows[i] = epochs->rows[2 * i];
        epochs->count /= 2;
        every *= 2;
    }
    if (epochs->count > 0 && epochs->rows[epochs->count - 1].epoch != last.epoch)
        epochs->rows[epochs->count++] = last;
    epochs->unreadable = rows.unreadable;
    rows_close(&rows);
    return code;
}

/* --- steps --- */

enum { END, WORKER, STEP, LOSS, INPUT, PULL, COMPUTE, PUSH, WAIT, STALENESS, UPDATE, DEVICE };
static const char *const step_names[] = {"time_s",  "worker",     "step",    "loss",    "input_ms",
                                         "pull_ms", "compute_ms", "push_ms", "wait_ms", "staleness",
                                         "update",  "device=",    NULL};

/* A row of numbers that may be drawn. */
static bool is_step(const double *values) {
    bool fine = values[END] >= 0 && values[END] <= seconds_most && values[WORKER] >= 0 &&
                values[WORKER] < FACTS_WORKERS && values[STEP] >= 1 && values[STEP] <= steps_most &&
                values[STALENESS] >= 0 && values[STALENESS] <= steps_most;
    for (int p = 0; p < PARTS; p++)
        fine = fine && values[INPUT + p] >= 0 && values[INPUT + p] <= 1e3 * seconds_most;
    return fine;
}

static int have_worker(struct step_facts *steps, int worker, const char *device, struct error *error) {
    if (worker >= steps->count) {
        RETURN_IF(memory_grow(&steps->workers, steps->count, worker + 1, "the steps of a worker", error));
        steps->count = worker + 1;
    }
    struct worker_steps *of = &steps->workers[worker];
    if (of->rows == 0) snprintf(of->device, sizeof of->device, "%s", device);
    return OK;
}

static void join_time(struct step_facts *steps) {
    for (int w = 0; w < steps->count; w++) {
        double(*seconds)[PARTS] = steps->workers[w].seconds;
        for (int b = 0; b < FACTS_BINS; b++)
            for (int p = 0; p < PARTS; p++) {
                const double sum = 2 * b + 1 < FACTS_BINS ? seconds[2 * b][p] + seconds[2 * b + 1][p] : 0.0;
                seconds[b][p] = sum;
            }
    }
    for (int b = 0; b < FACTS_BINS; b++) {
        const bool both = 2 * b + 1 < FACTS_BINS;
        steps->loss[b] = both ? steps->loss[2 * b] + steps->loss[2 * b + 1] : 0.0;
        steps->losses[b] = both ? steps->losses[2 * b] + steps->losses[2 * b + 1] : 0;
    }
    steps->bin_s *= 2;
}

/* The time from begin to end, divided among the bins that it lies in. */
static void add_span(const struct step_facts *steps, struct worker_steps *of, int part, double begin,
                     double end) {
    int bin = (int)(fmax(begin, 0.0) / steps->bin_s);
    for (; bin < FACTS_BINS && bin * steps->bin_s < end; bin++) {
        const double from = fmax(begin, bin * steps->bin_s), to = fmin(end, (bin + 1) * steps->bin_s);
        if (to > from) of->seconds[bin][part] += to - from;
    }
}

static double step_ms(const double *values) {
    double sum = 0.0;
    for (int p = 0; p < PARTS; p++) sum += values[INPUT + p];
    return sum;
}

static void add_times(struct step_facts *steps, struct worker_steps *of, const double *values) {
    while (values[END] >= FACTS_BINS * steps->bin_s) join_time(steps);
    double at = values[END] - 1e-3 * step_ms(values);
    for (int p = 0; p < PARTS; p++) {
        const double next = at + 1e-3 * values[INPUT + p];
        add_span(steps, of, p, at, next);
        at = next;
    }
    const int bin = (int)(values[END] / steps->bin_s);
    if (isfinite(values[LOSS]) && bin < FACTS_BINS) {
        steps->loss[bin] += values[LOSS];
        steps->losses[bin]++;
    }
    steps->begin_s = fmin(steps->begin_s, fmax(values[END] - 1e-3 * step_ms(values), 0.0));
    steps->end_s = fmax(steps->end_s, values[END]);
}

static void add_staleness(struct step_facts *steps, struct worker_steps *of, const double *values) {
    if (values[UPDATE] == 0.0) {
        steps->dropped++;
        return;
    }
    stale_add(&of->stale, (long)values[STALENESS]);
}

static int add_step(struct step_facts *steps, const struct rows *rows, struct error *error) {
    const double *values = rows->values;
    const int worker = (int)values[WORKER];
    RETURN_IF(have_worker(steps, worker, rows->cells[DEVICE], error));
    struct worker_steps *of = &steps->workers[worker];
    const long step = (long)values[STEP];
    if (of->rows == 0 || step < of->first_step) of->first_step = step;
    if (step > of->last_step) of->last_step = step;
    of->rows++;
    steps->rows++;
    if (of->rows <= FACTS_FIRST_STEPS) of->first_s = fmax(of->first_s, values[END]);
    add_times(steps, of, values);
    add_staleness(steps, of, values);
    return OK;
}

int steps_read(struct facts *facts, const char *path, struct error *error) {
    struct step_facts *steps = &facts->steps;
    struct rows rows;
    int code = OK;
    *steps = (struct step_facts){.begin_s = INFINITY, .bin_s = 1e-5};
    RETURN_IF(rows_open(&rows, path, step_names, error));
    while (code == OK && rows_next(&rows)) {
        if (is_step(rows.values))
            code = add_step(steps, &rows, error);
        else
            rows.unreadable++;
    }
    for (int w = 0; w < steps->count; w++) {
        const struct worker_steps *of = &steps->workers[w];
        if (3 * of->rows < 2 * (of->last_step - of->first_step)) steps->sampled = true;
    }
    steps->unreadable = rows.unreadable;
    rows_close(&rows);
    return code;
}

/* --- a stretch --- */

double facts_first_s(const struct facts *facts) {
    double longest = 0.0, shortest = INFINITY;
    for (int w = 0; w < facts->steps.count; w++) {
        const struct worker_steps *of = &facts->steps.workers[w];
        if (of->rows < FACTS_FIRST_STEPS && facts->steps.count > 1) continue;
        longest = fmax(longest, of->first_s - facts->steps.begin_s);
        shortest = fmin(shortest, of->first_s - facts->steps.begin_s);
    }
    if (facts->steps.rows == 0) return 0.0;
    return shortest < INFINITY ? fmin(longest, 12 * shortest) : facts->steps.end_s - facts->steps.begin_s;
}

static struct stretch_step step_of(const double *values) {
    struct stretch_step step = {.worker = (int)values[WORKER],
                                .step = (long)values[STEP],
                                .staleness = (long)values[STALENESS],
                                .end_s = values[END]};
    for (int p = 0; p < PARTS; p++) step.ms[p] = values[INPUT + p];
    return step;
}

/* Where there are too many steps, the stretch ends with the last one that is drawn. */
static void shorten(struct stretch *stretch) {
    double end = stretch->from_s;
    if (stretch->left_out == 0) return;
    for (int i = 0; i < stretch->count; i++) end = fmax(end, stretch->steps[i].end_s);
    stretch->length_s = fmin(stretch->length_s, end - stretch->from_s);
}

int facts_read_stretch(struct facts *facts, double from_s, double length_s, struct error *error) {
    struct stretch *stretch = &facts->stretch;
    char path[PATH_BYTES];
    struct rows rows;
    RETURN_IF(file_join(path, facts->folder, "steps.csv", error));
    stretch->from_s = from_s;
    stretch->length_s = stretch->asked_s = length_s;
    if (facts->steps.rows == 0) return OK;
    RETURN_IF(rows_open(&rows, path, step_names, error));
    int code = memory_array(&stretch->steps, FACTS_STRETCH, "the steps of a stretch", error);
    while (code == OK && rows_next(&rows)) {
        const double *values = rows.values;
        const double begin = values[END] - 1e-3 * step_ms(values);
        if (!is_step(values) || values[END] <= from_s || begin >= from_s + length_s) continue;
        if (stretch->count < FACTS_STRETCH)
            stretch->steps[stretch->count++] = step_of(values);
        else
            stretch->left_out++;
    }
    shorten(stretch);
    rows_close(&rows);
    return code;
}
