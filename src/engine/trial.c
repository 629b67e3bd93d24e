/* See trial.h. */
#include "trial.h"

#include "../base/memory.h"
#include "../device/copy.h"
#include "../device/gather.h"
#include "replica.h"

static int set_weights(struct trial *trial, const struct layout *layout, struct error *error) {
    float *initial = NULL;
    RETURN_IF(memory_array(&initial, layout->floats, "first weights", error));
    layout_initialize(layout, 1, initial);
    const int code =
        device_copy(trial->device, trial->weights, NULL, initial, layout->floats * sizeof *initial, error);
    memory_free(initial);
    return code;
}

static int set_batch(struct trial *trial, const struct network *network, const struct examples *examples,
                     struct error *error) {
    const int batch = network->graph.nodes[network->x].shape.dims[0];
    int *index = NULL;
    RETURN_IF(memory_array(&index, batch, "numbers of examples", error));
    for (int i = 0; i < batch; i++) index[i] = i % examples->count;
    const struct indices indices = {.count = batch, .index = index};
    int code =
        device_gather(trial->device, examples, &indices, arena_address(trial->arena, network->x), error);
    if (code == OK)
        code = device_gather_labels(trial->device, examples, &indices,
                                    arena_address(trial->arena, network->labels), error);
    if (code == OK) code = trial->device->backend->finish(trial->device, error);
    memory_free(index);
    return code;
}

int trial_open(struct trial *trial, const struct network *network, const struct device *device,
               const struct examples *examples, struct error *error) {
    const struct layout *layout = &network->graph.layout;
    *trial = (struct trial){.device = device, .floats = layout->floats};
    device->backend->enter(device);
    RETURN_IF(replica_compile(&trial->program, network, device, error));
    RETURN_IF(arena_open(&trial->arena, trial->program, error));
    RETURN_IF(device_array(device, &trial->weights, layout->floats, "weights of a trial", error));
    RETURN_IF(device_array(device, &trial->gradients, layout->floats, "gradients of a trial", error));
    RETURN_IF(set_weights(trial, layout, error));
    return set_batch(trial, network, examples, error);
}

void trial_close(struct trial *trial) {
    if (trial->gradients) trial->device->backend->release(trial->device, trial->gradients);
    if (trial->weights) trial->device->backend->release(trial->device, trial->weights);
    arena_close(trial->arena);
    program_close(trial->program);
    *trial = (struct trial){0};
}

int trial_run(const struct trial *trial, struct error *error) {
    RETURN_IF(program_run(trial->program, trial->arena, trial->weights, trial->gradients, error));
    return trial->device->backend->finish(trial->device, error);
}

int trial_time(struct trial *trial, const struct world *world, double *seconds, struct error *error) {
    return program_time(trial->program, trial->arena, trial->weights, trial->gradients, world, seconds,
                        error);
}

int trial_sum(struct trial *trial, struct error *error) {
    const struct device *device = trial->device;
    const float *const sum[] = {trial->gradients, trial->weights};
    RETURN_IF(device->backend->vectors->mean(device, sum, NULL, 2, 0, trial->floats, 1.0f, trial->gradients,
                                             error));
    return device->backend->finish(device, error);
}
