/* A thread for each device takes batches; see evaluators.h. */
#include "evaluators.h"

#include "../base/memory.h"

/* What the threads share. */
struct shared {
    struct evaluators *all;
    const struct examples *examples; /* NULL: they only compile */
    float *weights;
    struct evaluation_sum sum; /* only whose turn it is touches it */
    _Atomic int next;          /* batch that nobody has taken yet */
    _Atomic int added;         /* batches in the sum */
    _Atomic bool failed;
    struct event turn; /* posted when `added` or `failed` has changed */
};

struct lane {
    struct shared *shared;
    struct evaluator *evaluator;
    struct world_thread *thread;
    int batch; /* in hand */
    int code;
    struct error error;
};

static bool is_its_turn(void *argument) {
    const struct lane *lane = argument;
    return atomic_load(&lane->shared->added) == lane->batch || atomic_load(&lane->shared->failed);
}

/* Adds the batch in hand when those before it are in the sum. */
static int add_in_turn(struct lane *lane) {
    struct shared *shared = lane->shared;
    const double deadline = world_now(shared->all->world) + EVALUATORS_WAIT_S;
    const enum wait_result result = event_wait_until(&shared->turn, is_its_turn, lane, deadline);
    if (result == WAIT_STOPPED)
        return error_set(&lane->error, ERROR_DEVICE, "evaluation: the run was stopped");
    if (result == WAIT_TIMEOUT)
        return error_set(&lane->error, ERROR_DEVICE,
                         "evaluation: batch %d was not done within %d s, and %s waits for it",
                         atomic_load(&shared->added), EVALUATORS_WAIT_S, lane->evaluator->device.name);
    if (atomic_load(&shared->failed)) return OK;
    evaluation_add(&shared->sum, lane->evaluator, lane->batch * EVALUATE_BATCH);
    atomic_store(&shared->added, lane->batch + 1);
    event_post(&shared->turn);
    return OK;
}

static int take_batches(struct lane *lane) {
    struct shared *shared = lane->shared;
    const struct examples *examples = shared->examples;
    float *there = NULL;
    RETURN_IF(evaluator_begin(lane->evaluator, shared->weights, &there, &lane->error));
    for (;;) {
        lane->batch = atomic_fetch_add(&shared->next, 1);
        if (lane->batch * EVALUATE_BATCH >= examples->count || atomic_load(&shared->failed)) return OK;
        RETURN_IF(
            evaluator_batch(lane->evaluator, examples, lane->batch * EVALUATE_BATCH, there, &lane->error));
        RETURN_IF(add_in_turn(lane));
    }
}

static void lane_body(void *argument) {
    struct lane *lane = argument;
    const struct device *device = &lane->evaluator->device;
    device->backend->enter(device);
    lane->code =
        lane->shared->examples ? take_batches(lane) : evaluator_compile(lane->evaluator, &lane->error);
    if (lane->code == OK) return;
    atomic_store(&lane->shared->failed, true);
    event_post(&lane->shared->turn);
}

/* A thread for each evaluator, all of which have ended when this returns. */
static int run_lanes(struct shared *shared, struct error *error) {
    const struct evaluators *all = shared->all;
    struct lane *lanes = NULL;
    RETURN_IF(memory_array(&lanes, all->count, "threads that evaluate", error));
    event_open(&shared->turn, all->world);
    int code = OK, started = 0;
    for (; started < all->count && code == OK; started++) {
        struct lane *lane = &lanes[started];
        const struct device *device = &all->each[started].device;
        *lane = (struct lane){.shared = shared, .evaluator = &all->each[started]};
        code = world_spawn(all->world, "evaluate", device->pinned ? &device->cores : NULL, lane_body, lane,
                           &lane->thread, error);
    }
    if (code != OK) {
        atomic_store(&shared->failed, true);
        event_post(&shared->turn);
    }
    for (int i = 0; i < started; i++) world_join(lanes[i].thread);
    for (int i = 0; i < started && code == OK; i++)
        if (lanes[i].code != OK) {
            code = lanes[i].code;
            *error = lanes[i].error;
        }
    memory_free(lanes);
    return code;
}

int evaluators_open(struct evaluators *all, struct world *world, const struct network_settings *settings,
                    const struct units *units, const struct device *devices, int count, struct error *error) {
    *all = (struct evaluators){.world = world};
    RETURN_IF(memory_array(&all->each, count, "evaluators", error));
    for (; all->count < count; all->count++) {
        RETURN_IF(evaluator_open(&all->each[all->count], settings, &devices[all->count], error));
        all->each[all->count].units = *units;
    }
    struct shared shared = {.all = all};
    return run_lanes(&shared, error);
}

void evaluators_close(struct evaluators *all) {
    for (int i = 0; i < all->count; i++) evaluator_close(&all->each[i]);
    memory_free(all->each);
    *all = (struct evaluators){0};
}

int evaluators_run(struct evaluators *all, const struct examples *examples, float *weights,
                   struct evaluation *result, struct error *error) {
    struct shared shared = {.all = all, .examples = examples, .weights = weights};
    int code = evaluation_open(&shared.sum, &all->each[0], examples, error);
    if (code == OK) code = run_lanes(&shared, error);
    if (code == OK) code = evaluation_end(&shared.sum, result, error);
    evaluation_close(&shared.sum);
    return code;
}
