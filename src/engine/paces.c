/* See paces.h. A batch of half the size takes more than half the time, so one measurement at even shares is
 * not enough: the next ones are at the shares that were found, and the best of all that were measured is
 * taken. */
#include "paces.h"

#include <math.h>

#include "../base/memory.h"
#include "../device/groups.h"
#include "shares.h"

enum { PASSES = 4 };

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
    settings.batch = m->size / m->batch.microbatches;
    RETURN_IF(network_open(&m->network, &settings, &m->error));
    if (work->groups) RETURN_IF(open_group(m));
    return batch_time(&m->batch, &work->devices[m->worker], work->groups ? &m->groups : NULL, &m->seconds,
                      &m->abandoned, &m->error);
}

static void measure_body(void *argument) {
    struct measured *m = argument;
    const double slowness = m->work->slowness ? m->work->slowness[m->worker] : 1.0;
    if (measure(m) == OK) m->seconds *= slowness;
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

/* --- from pass to pass --- */

/* Seconds of a batch of no examples, and of each example. At least half of the time goes with the size: what
 * is measured has noise, and two sizes may be near each other. */
static void line_of(const struct pace *pace, double *constant, double *each) {
    const double mean = pace->seconds[1] / pace->count[1];
    const double apart = pace->count[1] - pace->count[0];
    *each = mean;
    if (pace->count[0] > 0.0 && fabs(apart) > 0.0) *each = (pace->seconds[1] - pace->seconds[0]) / apart;
    if (!(*each >= mean / 2.0)) *each = mean / 2.0;
    if (*each > mean) *each = mean;
    *constant = (mean - *each) * pace->count[1];
}

void paces_level(const struct pace *pace, int workers, double total, double *parts) {
    double ahead = total, speeds = 0.0, constant, each;
    for (int w = 0; w < workers; w++) {
        line_of(&pace[w], &constant, &each);
        ahead += constant / each;
        speeds += 1.0 / each;
    }
    for (int w = 0; w < workers; w++) {
        line_of(&pace[w], &constant, &each);
        parts[w] = (ahead / speeds - constant) / each;
        if (!(parts[w] > 0.0)) parts[w] = 0.0;
    }
}

/* Whole weights, fine enough for shares_cut. */
static int cut(const struct paces_work *work, const double *parts, int *sizes, struct error *error) {
    char text[SHARES_BYTES];
    double sum = 0.0;
    for (int w = 0; w < work->workers; w++) sum += parts[w];
    for (int w = 0; w < work->workers; w++) sizes[w] = 1 + (int)(1e6 * parts[w] / sum);
    RETURN_IF(shares_write(sizes, work->workers, text, sizeof text, error));
    return shares_cut(text, work->workers, work->size, work->batch.microbatches, sizes, error);
}

/* Seconds of a round with these sizes: those of the slowest. */
static int pass(const struct paces_work *work, const int *sizes, struct measured *m, struct pace *pace,
                double *slowest, bool *abandoned, struct error *error) {
    for (int w = 0; w < work->workers; w++)
        m[w] = (struct measured){.work = work, .worker = w, .size = sizes[w]};
    RETURN_IF(measure_all(m, work->workers, abandoned, error));
    *slowest = 0.0;
    for (int w = 0; w < work->workers; w++) {
        pace[w].count[0] = pace[w].count[1];
        pace[w].seconds[0] = pace[w].seconds[1];
        pace[w].count[1] = (double)sizes[w];
        pace[w].seconds[1] = m[w].seconds;
        *slowest = fmax(*slowest, m[w].seconds);
    }
    return OK;
}

/* A clock that stands still has measured nothing: then shares stay even. */
static bool all_took_time(const struct pace *pace, int workers) {
    for (int w = 0; w < workers; w++)
        if (!(pace[w].seconds[1] > 0.0)) return false;
    return true;
}

struct settling {
    struct measured *m; /* [workers], as all here */
    struct pace *pace;
    double *parts;
    int *tried;
};

static int settle(const struct paces_work *work, struct settling *s, int *sizes, bool *abandoned,
                  struct error *error) {
    double least = INFINITY, slowest;
    for (int w = 0; w < work->workers; w++) sizes[w] = s->tried[w] = work->size;
    for (int i = 0; i < PASSES; i++) {
        RETURN_IF(pass(work, s->tried, s->m, s->pace, &slowest, abandoned, error));
        if (!all_took_time(s->pace, work->workers)) return OK;
        for (int w = 0; slowest < least && w < work->workers; w++) sizes[w] = s->tried[w];
        least = fmin(least, slowest);
        paces_level(s->pace, work->workers, (double)work->size * work->workers, s->parts);
        RETURN_IF(cut(work, s->parts, s->tried, error));
    }
    return OK;
}

int paces_settle(const struct paces_work *work, int *sizes, bool *abandoned, struct error *error) {
    struct settling s = {0};
    int code = memory_array(&s.m, work->workers, "paces", error);
    if (code == OK) code = memory_array(&s.pace, work->workers, "paces", error);
    if (code == OK) code = memory_array(&s.parts, work->workers, "paces", error);
    if (code == OK) code = memory_array(&s.tried, work->workers, "paces", error);
    if (code == OK) code = settle(work, &s, sizes, abandoned, error);
    if (*abandoned) return code; /* what hangs may still use them */
    memory_free(s.tried);
    memory_free(s.parts);
    memory_free(s.pace);
    memory_free(s.m);
    return code;
}
