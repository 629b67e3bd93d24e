/* See lanes.h. A lane's thread has the cores of its device and no others, so what it starts has them too, and
 * a run on it is the same as on a machine of so many cores. */
#include "lanes.h"

#include <math.h>
#include <stdio.h>

#include "../base/memory.h"

struct lane {
    struct shared_lanes *shared; /* borrowed */
    struct world_thread *thread;
    int number;
};

/* What the lanes share. */
struct shared_lanes {
    const struct lane_work *work;
    struct lock lock;   /* around take and ended */
    struct event ended; /* posted after each */
};

int lanes_open_none(struct lanes *lanes, struct error *error) {
    *lanes = (struct lanes){0};
    return world_open_threads(&lanes->world, error);
}

int lanes_open(struct lanes *lanes, const struct config *config, struct error *error) {
    const struct device_settings settings = config_device_settings(config);
    bool shared;
    RETURN_IF(lanes_open_none(lanes, error));
    return devices_open(config->devices, &settings, &lanes->devices, &lanes->count, &shared, error);
}

void lanes_close(struct lanes *lanes) {
    devices_close(lanes->devices, lanes->count);
    world_close(lanes->world);
    *lanes = (struct lanes){0};
}

void lanes_settings(const struct lanes *lanes, int lane, struct config *config) {
    const struct device *device = &lanes->devices[lane];
    snprintf(config->devices, sizeof config->devices, "%s", device->name);
    if (!device_apart(device)) config->threads = device->threads;
}

void lanes_hold(struct shared_lanes *shared) {
    lock_take(&shared->lock);
}

void lanes_release(struct shared_lanes *shared) {
    lock_release(&shared->lock);
}

void lanes_tell(struct shared_lanes *shared) {
    event_post(&shared->ended);
}

uint64_t lanes_told(const struct shared_lanes *shared) {
    return atomic_load(&shared->ended.count);
}

/* The next job, or false. An end of another one that comes between the question and the wait is counted
 * already. The wait needs no deadline of its own: each run that it waits for has its deadlines. */
static bool take(struct shared_lanes *shared, int *job) {
    while (true) {
        const uint64_t seen = lanes_told(shared);
        lanes_hold(shared);
        const enum lane_answer answer = shared->work->take(shared->work->self, job);
        lanes_release(shared);
        if (answer != LANE_WAIT) return answer == LANE_TAKE;
        event_wait(&shared->ended, seen + 1, INFINITY);
    }
}

static void run_lane(void *argument) {
    const struct lane *lane = argument;
    struct shared_lanes *shared = lane->shared;
    const struct lane_work *work = shared->work;
    int job = 0;
    while (take(shared, &job)) {
        struct error failure = {0};
        work->work(work->self, lane->number, job, &failure);
        lanes_hold(shared);
        work->ended(work->self, job, &failure);
        lanes_release(shared);
        lanes_tell(shared);
    }
    lanes_tell(shared);
}

static int start_and_join(const struct lanes *lanes, struct lane *lane, struct shared_lanes *shared,
                          struct error *error) {
    int code = OK;
    for (int i = 0; i < lanes->count && code == OK; i++) {
        lane[i] = (struct lane){.shared = shared, .number = i};
        code = world_spawn(lanes->world, lanes->devices[i].name, &lanes->devices[i].cores, run_lane, &lane[i],
                           &lane[i].thread, error);
    }
    if (code == OK && shared->work->serve) shared->work->serve(shared->work->self, shared);
    for (int i = 0; i < lanes->count; i++) world_join(lane[i].thread);
    return code;
}

int lanes_run(const struct lanes *lanes, const struct lane_work *work, struct error *error) {
    struct lane *lane = NULL;
    struct shared_lanes *shared = NULL;
    int code = memory_array(&lane, lanes->count, "the lanes", error);
    if (code == OK) code = memory_array(&shared, 1, "the lanes", error);
    if (code == OK) {
        shared->work = work;
        lock_open(&shared->lock, lanes->world);
        event_open(&shared->ended, lanes->world);
        code = start_and_join(lanes, lane, shared, error);
    }
    memory_free(shared);
    memory_free(lane);
    return code;
}
