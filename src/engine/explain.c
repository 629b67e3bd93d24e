/* A network's program for a device, run and explained. */
#include "explain.h"

#include "../base/memory.h"
#include "trial.h"

enum { LEAST_RUNS = 3 };
static const double seconds_of_runs = 1.0;

struct explained {
    const struct network *network;
    const struct device *device;
    const struct examples *examples;
    int batch, microbatches; /* batch: examples of a micro-batch */
    struct world *world;
    FILE *file;
    struct trial trial;
    double *seconds; /* [instructions] */
    struct error error;
};

/* A device that records does so at the second run. */
static int say_recording(const struct explained *explained, struct error *error) {
    struct recording_facts facts;
    RETURN_IF(trial_run(&explained->trial, error));
    RETURN_IF(trial_run(&explained->trial, error));
    if (!arena_recording(explained->trial.arena, &facts)) return OK;
    if (facts.nodes > 0)
        fprintf(explained->file, "recorded: a run is one graph of %d nodes\n", facts.nodes);
    else
        fprintf(explained->file, "not recorded: %s\n", facts.why);
    return OK;
}

static int explain(struct explained *explained) {
    struct trial *trial = &explained->trial;
    const struct world *world = explained->world;
    struct error *error = &explained->error;
    RETURN_IF(trial_open(trial, explained->network, explained->device, explained->examples, error));
    RETURN_IF(
        memory_array(&explained->seconds, program_instructions(trial->program), "times of a step", error));
    const double end = world_now(world) + seconds_of_runs;
    for (int run = 0; run < LEAST_RUNS || world_now(world) < end; run++)
        RETURN_IF(trial_time(trial, world, explained->seconds, error));
    fprintf(explained->file, "%s, batch %d", explained->device->name,
            explained->batch * explained->microbatches);
    if (explained->microbatches > 1)
        fprintf(explained->file, ", of which one of %d micro-batches of %d", explained->microbatches,
                explained->batch);
    fprintf(explained->file, ":\n");
    program_explain(trial->program, explained->seconds, explained->file);
    RETURN_IF(say_recording(explained, error));
    fflush(explained->file);
    return OK;
}

static void explain_body(void *argument) {
    struct explained *explained = argument;
    explain(explained);
    memory_free(explained->seconds);
    trial_close(&explained->trial);
}

int explain_network(const struct network *network, const struct device *device,
                    const struct examples *examples, int microbatches, struct world *world, FILE *file,
                    struct error *error) {
    struct explained explained = {.network = network,
                                  .device = device,
                                  .examples = examples,
                                  .batch = network->graph.nodes[network->x].shape.dims[0],
                                  .microbatches = microbatches,
                                  .world = world,
                                  .file = file};
    struct world_thread *thread = NULL;
    RETURN_IF(world_spawn(world, "explain", device->pinned ? &device->cores : NULL, explain_body, &explained,
                          &thread, error));
    world_join(thread);
    return explained.error.code == OK ? OK
                                      : error_set(error, explained.error.code, "%s", explained.error.words);
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
