/* See paces.h. A batch of half the size takes more than half the time, so one measurement at even shares is
 * not enough: the next ones are at the shares that were found so far. Each has noise; the shares are those of
 * the lines through all of them. */
#include "paces.h"

#include <math.h>

#include "../base/memory.h"
#include "../device/groups.h"
#include "shares.h"

/* A worker that is measured beside the others. */
struct measured {
    const struct paces_work *work;
    int worker;
    int size;
    struct network network; /* for so many */
    struct batch_work batch;
    struct groups groups;
    struct device *devices; /* [groups.size] of its group */
    double seconds;
    bool abandoned;
    struct error error;
};

/* --- a pass: all at once --- */

/* Its own group, as if there were no other. */
static int open_group(struct measured *m) {
    struct groups *groups = &m->groups;
    *groups = *m->work->groups;
    RETURN_IF(memory_array(&m->devices, groups->size, "a group's devices", &m->error));
    for (int d = 0; d < groups->size; d++)
        m->devices[d] = *groups_device(groups->devices, groups->workers, groups->size, m->worker, d);
    groups->devices = m->devices;
    groups->workers = 1;
    return OK;
}

static int measure(struct measured *m) {
    const struct paces_work *work = m->work;
    struct network_settings settings = *work->network;
    m->batch = work->batch;
    m->batch.network = &m->network;
    m->batch.slowness = work->slowness ? work->slowness[m->worker] : 0.0;
    settings.batch = m->size / m->batch.microbatches;
    RETURN_IF(network_open(&m->network, &settings, &m->error));
    if (work->groups) RETURN_IF(open_group(m));
    return batch_time(&m->batch, &work->devices[m->worker], work->groups ? &m->groups : NULL, &m->seconds,
                      &m->abandoned, &m->error);
}

static void measure_body(void *argument) {
    struct measured *m = argument;
    measure(m);               /* an error is m->error */
    if (m->abandoned) return; /* a device that hangs may still use what it was given */
    network_close(&m->network);
    memory_free(m->devices);
    m->devices = NULL;
}

/* The words of the first that fails. */
static int measure_all(struct measured *m, int workers, bool *abandoned, struct error *error) {
    int begun = 0, code = OK;
    struct world_thread **thread = NULL;
    RETURN_IF(memory_array(&thread, workers, "threads", error));
    for (; begun < workers && code == OK; begun++)
        code =
            world_spawn(m->work->batch.world, "a pace", NULL, measure_body, &m[begun], &thread[begun], error);
    for (int w = 0; w < workers; w++) {
        if (thread[w]) world_join(thread[w]);
        *abandoned = *abandoned || m[w].abandoned;
        if (code == OK && m[w].error.code != OK)
            code = error_set(error, m[w].error.code, "%s", m[w].error.words);
    }
    memory_free((void *)thread);
    return code;
}

/* --- what is made of them --- */

/* At least half of the time goes with the size: what is measured has noise, and sizes may be near each
 * other. */
struct pace paces_line(const struct measurements *m) {
    double count = 0.0, seconds = 0.0, along = 0.0, apart = 0.0;
    for (int i = 0; i < m->passes; i++) {
        count += m->count[i] / m->passes;
        seconds += m->seconds[i] / m->passes;
    }
    for (int i = 0; i < m->passes; i++) {
        along += (m->count[i] - count) * (m->seconds[i] - seconds);
        apart += (m->count[i] - count) * (m->count[i] - count);
    }
    const double mean = seconds / count;
    const double each = apart > 0.0 ? fmin(fmax(along / apart, mean / 2.0), mean) : mean;
    return (struct pace){seconds - each * count, each};
}

/* A clock that stands still has measured nothing. */
static bool all_took_time(const struct pace *paces, int workers, const bool *there) {
    for (int w = 0; w < workers; w++)
        if ((!there || there[w]) && !(paces[w].each_s > 0.0)) return false;
    return true;
}

/* With the seconds T that all take together, worker w computes (T - constant) / each examples. As weights,
 * millionths of the whole, and one at least. */
int paces_cut(const struct pace *paces, int workers, const bool *there, int total, int microbatches,
              int *sizes, struct error *error) {
    char text[SHARES_BYTES];
    double ahead = total, speeds = 0.0;
    if (!all_took_time(paces, workers, there))
        return shares_divide("even", workers, there, total, microbatches, sizes, error);
    for (int w = 0; w < workers; w++) {
        if (there && !there[w]) continue;
        ahead += paces[w].constant_s / paces[w].each_s;
        speeds += 1.0 / paces[w].each_s;
    }
    for (int w = 0; w < workers; w++) {
        sizes[w] = 1;
        if (there && !there[w]) continue;
        const double part = (ahead / speeds - paces[w].constant_s) / paces[w].each_s / total;
        sizes[w] = 1 + (int)(1e6 * fmin(fmax(part, 0.0), 1.0));
    }
    RETURN_IF(shares_write(sizes, workers, text, sizeof text, error));
    return shares_divide(text, workers, there, total, microbatches, sizes, error);
}

/* --- from pass to pass --- */

struct settling {
    struct measured *m; /* [workers], as all here */
    struct measurements *measurements;
    struct pace *paces;
    int *tried;
};

static int pass(const struct paces_work *work, struct settling *s, bool *abandoned, struct error *error) {
    for (int w = 0; w < work->workers; w++)
        s->m[w] = (struct measured){.work = work, .worker = w, .size = s->tried[w]};
    RETURN_IF(measure_all(s->m, work->workers, abandoned, error));
    for (int w = 0; w < work->workers; w++) {
        struct measurements *measurements = &s->measurements[w];
        measurements->count[measurements->passes] = (double)s->tried[w];
        measurements->seconds[measurements->passes++] = s->m[w].seconds;
        s->paces[w] = paces_line(measurements);
    }
    return OK;
}

static int settle(const struct paces_work *work, struct settling *s, int *sizes, bool *abandoned,
                  struct error *error) {
    for (int w = 0; w < work->workers; w++) s->tried[w] = work->size;
    for (int i = 0; i < PACES_PASSES; i++) {
        RETURN_IF(pass(work, s, abandoned, error));
        RETURN_IF(paces_cut(s->paces, work->workers, NULL, work->workers * work->size,
                            work->batch.microbatches, s->tried, error));
    }
    for (int w = 0; w < work->workers; w++) sizes[w] = s->tried[w];
    return OK;
}

/* Half of a batch, then all of it. */
static int measure_twice(const struct paces_work *work, struct settling *s, struct pace *paces,
                         bool *abandoned, struct error *error) {
    const int parts = work->batch.microbatches, half = work->size / parts / 2 * parts;
    for (int i = half > 0 ? 0 : 1; i < 2; i++) {
        for (int w = 0; w < work->workers; w++) s->tried[w] = i == 0 ? half : work->size;
        RETURN_IF(pass(work, s, abandoned, error));
    }
    for (int w = 0; w < work->workers; w++) paces[w] = s->paces[w];
    return OK;
}

static int open_settling(struct settling *s, int workers, struct error *error) {
    RETURN_IF(memory_array(&s->m, workers, "paces", error));
    RETURN_IF(memory_array(&s->measurements, workers, "paces", error));
    RETURN_IF(memory_array(&s->paces, workers, "paces", error));
    return memory_array(&s->tried, workers, "paces", error);
}

static void close_settling(struct settling *s, bool abandoned) {
    memory_free(s->tried);
    memory_free(s->paces);
    memory_free(s->measurements);
    if (!abandoned) memory_free(s->m); /* else what hangs may still use it */
}

int paces_settle(const struct paces_work *work, int *sizes, bool *abandoned, struct error *error) {
    struct settling s = {0};
    int code = open_settling(&s, work->workers, error);
    if (code == OK) code = settle(work, &s, sizes, abandoned, error);
    close_settling(&s, *abandoned);
    return code;
}

int paces_measure(const struct paces_work *work, struct pace *paces, bool *abandoned, struct error *error) {
    struct settling s = {0};
    int code = open_settling(&s, work->workers, error);
    if (code == OK) code = measure_twice(work, &s, paces, abandoned, error);
    close_settling(&s, *abandoned);
    return code;
}
