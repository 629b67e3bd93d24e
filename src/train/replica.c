/* A worker's replica: batches gathered into its arena, forward and backward run there. */
#include "replica.h"

#include "../base/memory.h"

static int open_replica(void *self, int worker, struct error *error) {
    struct replicas *replicas = self;
    struct replica *replica = &replicas->replicas[worker];
    const struct network *network = replicas->network;
    const struct device *device = &replicas->devices[worker];
    node *fetches = NULL;
    void *block = NULL;
    device->backend->enter(device);
    RETURN_IF(memory_zeroed(&block, (size_t)network->gradient_count + 1, sizeof(node), "fetches", error));
    fetches = block;
    fetches[0] = network->loss;
    int count = 1;
    for (int i = 0; i < network->gradient_count; i++)
        if (network->gradients[i] != NONE) fetches[count++] = network->gradients[i];
    const int code = program_compile(&replica->program, &network->graph, fetches, count, device, error);
    memory_free(fetches);
    if (code != OK) return code;
    RETURN_IF(arena_open(&replica->arena, replica->program, error));
    replica->x = arena_address(replica->arena, network->x);
    replica->labels = arena_address(replica->arena, network->labels);
    replica->step = network->step == NONE ? NULL : arena_address(replica->arena, network->step);
    replica->loss = arena_address(replica->arena, network->loss);
    return OK;
}

static int load_replica(void *self, int worker, long number, const int *index, struct error *error) {
    const struct replicas *replicas = self;
    const struct replica *replica = &replicas->replicas[worker];
    const struct device *device = &replicas->devices[worker];
    (void)error;
    device->backend->gather(device, replicas->examples, index, replicas->batch, replica->x);
    device->backend->gather_labels(device, replicas->examples, index, replicas->batch, replica->labels);
    if (replica->step) *replica->step = (int)number;
    return OK;
}

static int run_replica(void *self, int worker, float *weights, float *gradient, float *loss,
                       struct error *error) {
    const struct replicas *replicas = self;
    const struct replica *replica = &replicas->replicas[worker];
    RETURN_IF(program_run(replica->program, replica->arena, weights, gradient, error));
    *loss = *replica->loss;
    return OK;
}

int replicas_open(struct replicas *replicas, const struct network *network, const struct device *devices,
                  int count, const struct examples *examples, int batch, struct error *error) {
    void *block = NULL;
    *replicas = (struct replicas){
        .network = network, .devices = devices, .examples = examples, .count = count, .batch = batch};
    RETURN_IF(memory_zeroed(&block, (size_t)count, sizeof(struct replica), "replicas", error));
    replicas->replicas = block;
    return OK;
}

void replicas_close(struct replicas *replicas) {
    for (int i = 0; replicas->replicas && i < replicas->count; i++) {
        arena_close(replicas->replicas[i].arena);
        program_close(replicas->replicas[i].program);
    }
    memory_free(replicas->replicas);
    *replicas = (struct replicas){0};
}

struct compute replicas_compute(struct replicas *replicas) {
    return (struct compute){.open = open_replica, .load = load_replica, .run = run_replica, .self = replicas};
}
