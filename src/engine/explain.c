/* A network's program for a device, run and explained. */
#include "explain.h"

#include "../base/memory.h"
#include "../device/copy.h"
#include "../device/gather.h"
#include "../program/program.h"
#include "replica.h"

enum { LEAST_RUNS = 3 };
static const double seconds_of_runs = 1.0;

/* All of it is thrown away again. */
struct trial {
    const struct network *network;
    const struct device *device;
    const struct examples *examples;
    int batch, microbatches; /* batch: examples of a micro-batch */
    struct world *world;
    FILE *file;
    struct program *program;
    struct arena *arena;
    float *weights, *gradients; /* [layout.floats] on the device */
    float *initial;             /* [layout.floats] in the host's memory */
    double *seconds;            /* [steps] */
    int *index;                 /* [batch] */
    struct error error;
};

static int open_trial(struct trial *trial) {
    const struct device *device = trial->device;
    const size_t floats = trial->network->graph.layout.floats;
    struct error *error = &trial->error;
    device->backend->enter(device);
    RETURN_IF(replica_compile(&trial->program, trial->network, device, error));
    RETURN_IF(arena_open(&trial->arena, trial->program, error));
    RETURN_IF(device_array(device, &trial->weights, floats, "weights to explain with", error));
    RETURN_IF(device_array(device, &trial->gradients, floats, "gradients to explain with", error));
    RETURN_IF(memory_array(&trial->initial, floats, "first weights", error));
    RETURN_IF(memory_array(&trial->seconds, (size_t)program_instructions(trial->program), "times of a step",
                           error));
    RETURN_IF(memory_array(&trial->index, trial->batch, "numbers of examples", error));
    return OK;
}

static void close_trial(struct trial *trial) {
    memory_free(trial->index);
    memory_free(trial->initial);
    memory_free(trial->seconds);
    if (trial->gradients) trial->device->backend->release(trial->device, trial->gradients);
    if (trial->weights) trial->device->backend->release(trial->device, trial->weights);
    arena_close(trial->arena);
    program_close(trial->program);
}

static int run_trial(struct trial *trial) {
    const struct device *device = trial->device;
    const struct network *network = trial->network;
    for (int i = 0; i < trial->batch; i++) trial->index[i] = i % trial->examples->count;
    layout_initialize(&network->graph.layout, 1, trial->initial);
    RETURN_IF(device_copy(device, trial->weights, NULL, trial->initial,
                          network->graph.layout.floats * sizeof *trial->initial, &trial->error));
    const struct indices indices = {.count = trial->batch, .index = trial->index};
    RETURN_IF(device_gather(device, trial->examples, &indices, arena_address(trial->arena, network->x),
                            &trial->error));
    RETURN_IF(device_gather_labels(device, trial->examples, &indices,
                                   arena_address(trial->arena, network->labels), &trial->error));
    const double end = world_now(trial->world) + seconds_of_runs;
    for (int run = 0; run < LEAST_RUNS || world_now(trial->world) < end; run++)
        RETURN_IF(program_time(trial->program, trial->arena, trial->weights, trial->gradients, trial->world,
                               trial->seconds, &trial->error));
    fprintf(trial->file, "%s, batch %d", device->name, trial->batch * trial->microbatches);
    if (trial->microbatches > 1)
        fprintf(trial->file, ", of which one of %d micro-batches of %d", trial->microbatches, trial->batch);
    fprintf(trial->file, ":\n");
    program_explain(trial->program, trial->seconds, trial->file);
    fflush(trial->file);
    return OK;
}

static void trial_body(void *argument) {
    struct trial *trial = argument;
    if (open_trial(trial) == OK) run_trial(trial);
    close_trial(trial);
}

int explain_network(const struct network *network, const struct device *device,
                    const struct examples *examples, int microbatches, struct world *world, FILE *file,
                    struct error *error) {
    struct trial trial = {.network = network,
                          .device = device,
                          .examples = examples,
                          .batch = network->graph.nodes[network->x].shape.dims[0],
                          .microbatches = microbatches,
                          .world = world,
                          .file = file};
    struct world_thread *thread = NULL;
    RETURN_IF(world_spawn(world, "explain", device->pinned ? &device->cores : NULL, trial_body, &trial,
                          &thread, error));
    world_join(thread);
    return trial.error.code == OK ? OK : error_set(error, trial.error.code, "%s", trial.error.words);
}

struct group_trial {
    const struct groups *groups;
    const struct network *network;
    FILE *file;
    struct error error;
};

static void group_trial_body(void *argument) {
    struct group_trial *trial = argument;
    group_explain(trial->groups, trial->network, trial->file, &trial->error);
}

int explain_group(const struct groups *groups, const struct network *network, struct world *world, FILE *file,
                  struct error *error) {
    struct group_trial trial = {.groups = groups, .network = network, .file = file};
    struct world_thread *thread = NULL;
    RETURN_IF(world_spawn(world, "explain", NULL, group_trial_body, &trial, &thread, error));
    world_join(thread);
    return trial.error.code == OK ? OK : error_set(error, trial.error.code, "%s", trial.error.words);
}
