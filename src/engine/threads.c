/* See threads.h. training.c owns the threads; this is what they compute with. */
#include "threads.h"

#include <stdio.h>

#include "replica.h"

struct threads {
    const struct crew_site *site;
    struct replicas replicas;
};

static int open_threads(void **self, const void *settings, const struct crew_site *site, int *workers,
                        struct error *error) {
    struct threads *threads = NULL;
    (void)settings;
    RETURN_IF(memory_array(&threads, 1, "the workers", error));
    *self = threads;
    threads->site = site;
    *workers = site->device_count;
    return OK;
}

static void member(const void *self, int worker, struct crew_member *member) {
    const struct threads *threads = self;
    const struct crew_site *site = threads->site;
    const struct device *device = &site->devices[worker];
    groups_name(site->devices, site->device_count, site->groups ? site->groups->size : 1, worker,
                member->device);
    snprintf(member->name, sizeof member->name, "worker %d (%s)", worker, member->device);
    member->cores = device->pinned ? &device->cores : NULL;
}

static int compute(void *self, struct compute *compute, struct error *error) {
    struct threads *threads = self;
    const struct crew_site *site = threads->site;
    RETURN_IF(replicas_open(&threads->replicas, site->network, site->devices, site->device_count,
                            &site->dataset->train, site->config->microbatches, site->prefetch + 1, error));
    threads->replicas.groups = site->groups;
    threads->replicas.store = site->store;
    threads->replicas.traits = site->traits;
    const int *sizes = site->sampler->stream.sizes;
    for (int w = 0; sizes && w < site->device_count; w++)
        replicas_resize(&threads->replicas, w, site->network_settings, sizes[w]);
    *compute = replicas_compute(&threads->replicas);
    return OK;
}

/* Line `told` of what there is to say of a replica, once it is known; false: there is none. */
static bool say_replica(const struct threads *threads, int worker, char *words, size_t bytes) {
    const struct replica *replica = &threads->replicas.replicas[worker];
    const char *name = threads->site->devices[worker].name;
    if (!replica->group) {
        if (replica->told > 0 || !replica->soft[0]) return false;
        snprintf(words, bytes, "%s has no kernel for %s: the CPU computes it", name, replica->soft);
        return true;
    }
    const char *line = group_line(replica->group, replica->told);
    if (line) snprintf(words, bytes, "%s", line);
    return line != NULL;
}

/* What runs where, once it is known, which a device says when its program is made. Groups are alike. */
static bool notice(void *self, char *words, size_t bytes) {
    struct threads *threads = self;
    for (int w = 0; w < (threads->site->groups ? 1 : threads->replicas.count); w++) {
        struct replica *replica = &threads->replicas.replicas[w];
        if (!atomic_load(&replica->opened) || !say_replica(threads, w, words, bytes)) continue;
        replica->told++;
        return true;
    }
    return false;
}

static int change(void *self, const struct phase_change *change, struct error *error) {
    struct threads *threads = self;
    (void)change, (void)error;
    /* Before the first segment it is the same, and workers may be reading it. */
    if (threads->replicas.traits != threads->site->traits) threads->replicas.traits = threads->site->traits;
    return OK;
}

static bool recording(const void *self, int worker, struct recording_facts *facts) {
    const struct threads *threads = self;
    return replicas_recording(&threads->replicas, worker, facts);
}

static void totals(const void *self, struct crew_totals *totals) {
    const struct threads *threads = self;
    *totals = (struct crew_totals){0};
    replicas_idle(&threads->replicas, &totals->idle, &totals->idle_equal);
}

static bool close_threads(void *self) {
    struct threads *threads = self;
    if (threads && !replicas_close(&threads->replicas)) return false;
    memory_free(threads);
    return true;
}

const struct crew threads_crew = {.parts = 1,
                                  .open = open_threads,
                                  .member = member,
                                  .compute = compute,
                                  .notice = notice,
                                  .change = change,
                                  .recording = recording,
                                  .totals = totals,
                                  .close = close_threads};
