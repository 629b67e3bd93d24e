/* See ways.h. */
#include "ways.h"

#include <math.h>
#include <stdio.h>

#include "../base/memory.h"
#include "../device/copy.h"

enum { FEW_BYTES = CACHE_LINE, MANY_BYTES = 1 << 20, ROUNDS = 12 };
static const double asleep_s = 3e-4; /* so long after its last message a receiver sleeps */

struct way_trial {
    const struct device *from, *to;
    struct world *world;
    double patience_s;
    struct event sent, taken;
    void *source, *target;   /* [MANY_BYTES] on each */
    double began_s;          /* of the round under way */
    double copying_s, all_s; /* the least so far: until the copy was made; until the receiver ran */
    struct error error, error_of_receiver;
};

static int not_measured(const struct way_trial *trial, enum wait_result result, struct error *error) {
    char how[40] = "the run was stopped";
    if (result == WAIT_TIMEOUT) snprintf(how, sizeof how, "gave up after %g s", trial->patience_s);
    return error_set(error, ERROR_PEER, "from %s to %s, measuring how long bytes take: %s", trial->from->name,
                     trial->to->name, how);
}

static int send_round(struct way_trial *trial, size_t bytes) {
    struct world *world = trial->world;
    if (world_interrupted())
        return error_set(&trial->error, ERROR_INTERRUPTED, "interrupted while devices were measured");
    world_sleep(world, asleep_s);
    trial->began_s = world_now(world);
    RETURN_IF(device_copy(trial->to, trial->target, trial->from, trial->source, bytes, &trial->error));
    trial->copying_s = fmin(trial->copying_s, world_now(world) - trial->began_s);
    event_post(&trial->sent);
    const uint64_t count = atomic_load(&trial->sent.count);
    const enum wait_result result = event_wait(&trial->taken, count, world_now(world) + trial->patience_s);
    return result == WAIT_DONE ? OK : not_measured(trial, result, &trial->error);
}

static void receiver_body(void *argument) {
    struct way_trial *trial = argument;
    trial->to->backend->enter(trial->to);
    for (uint64_t n = 1; n <= 2 * ROUNDS; n++) {
        const enum wait_result result =
            event_wait(&trial->sent, n, world_now(trial->world) + trial->patience_s);
        if (result != WAIT_DONE) {
            not_measured(trial, result, &trial->error_of_receiver);
            return;
        }
        trial->all_s = fmin(trial->all_s, world_now(trial->world) - trial->began_s);
        event_post(&trial->taken);
    }
}

/* The least seconds of so many bytes. */
static int send_rounds(struct way_trial *trial, size_t bytes) {
    trial->copying_s = trial->all_s = INFINITY;
    for (int round = 0; round < ROUNDS; round++) RETURN_IF(send_round(trial, bytes));
    return OK;
}

static int send_all(struct way_trial *trial, struct balance_way *way) {
    RETURN_IF(send_rounds(trial, FEW_BYTES));
    const double few_s = trial->copying_s;
    way->wake_s = fmax(0.0, trial->all_s - few_s);
    RETURN_IF(send_rounds(trial, MANY_BYTES));
    way->byte_s = fmax(0.0, trial->copying_s - few_s) / (MANY_BYTES - FEW_BYTES);
    way->copy_s = fmax(0.0, few_s - FEW_BYTES * way->byte_s);
    return OK;
}

static int open_trial(struct way_trial *trial) {
    const struct device *from = trial->from, *to = trial->to;
    to->backend->enter(to);
    RETURN_IF(device_array_of(to, &trial->target, MANY_BYTES, "bytes to measure with", &trial->error));
    from->backend->enter(from);
    return device_array_of(from, &trial->source, MANY_BYTES, "bytes to measure with", &trial->error);
}

static void close_trial(struct way_trial *trial) {
    if (trial->source) trial->from->backend->release(trial->from, trial->source);
    if (trial->target) trial->to->backend->release(trial->to, trial->target);
}

static int measure_between(struct way_trial *trial, struct balance_way *way) {
    const struct device *to = trial->to;
    struct world_thread *receiver = NULL;
    RETURN_IF(open_trial(trial));
    RETURN_IF(world_spawn(trial->world, "way", to->pinned ? &to->cores : NULL, receiver_body, trial,
                          &receiver, &trial->error));
    const int code = send_all(trial, way);
    for (int i = 0; i < 2 * ROUNDS && code != OK; i++) event_post(&trial->sent); /* it need not wait */
    world_join(receiver);
    if (code != OK || trial->error_of_receiver.code == OK) return code;
    return error_set(&trial->error, trial->error_of_receiver.code, "%s", trial->error_of_receiver.words);
}

struct sender {
    struct way_trial *trial;
    struct balance_way *way;
};

static void sender_body(void *argument) {
    const struct sender *sender = argument;
    measure_between(sender->trial, sender->way);
    close_trial(sender->trial);
}

static int measure(const struct device *from, const struct device *to, struct world *world, double timeout_s,
                   struct balance_way *way, struct error *error) {
    struct way_trial trial = {.from = from, .to = to, .world = world, .patience_s = timeout_s};
    const struct sender sender = {&trial, way};
    struct world_thread *thread = NULL;
    event_open(&trial.sent, world);
    event_open(&trial.taken, world);
    RETURN_IF(world_spawn(world, "way", from->pinned ? &from->cores : NULL, sender_body, (void *)&sender,
                          &thread, error));
    world_join(thread);
    return trial.error.code == OK ? OK : error_set(error, trial.error.code, "%s", trial.error.words);
}

int ways_measure(const struct device *devices, int count, struct world *world, double timeout_s,
                 struct balance_way *ways, struct error *error) {
    for (int from = 0; from < count; from++)
        for (int to = 0; to < count; to++) {
            struct balance_way *way = &ways[from * count + to];
            *way = (struct balance_way){0};
            if (from != to) RETURN_IF(measure(&devices[from], &devices[to], world, timeout_s, way, error));
        }
    return OK;
}
