/* See probe.h. */
#include "probe.h"

#include "../base/memory.h"

static int load(struct probe *probe, const struct compute *compute, struct error *error) {
    const int batch = probe->replicas.batch * probe->replicas.microbatches;
    int *index = NULL;
    RETURN_IF(memory_array(&index, batch, "a batch's numbers", error));
    for (int i = 0; i < batch; i++) index[i] = i;
    const struct indices indices = {.count = batch, .index = index};
    int code = compute->load(compute->self, 0, 0, 0, &indices, error);
    if (code == OK) code = probe->device.backend->finish(&probe->device, error);
    memory_free(index);
    return code;
}

int probe_open(struct probe *probe, const struct network *network, const struct device *device,
               const struct examples *train, int microbatches, struct error *error) {
    *probe = (struct probe){.device = *device};
    RETURN_IF(replicas_open(&probe->replicas, network, &probe->device, 1, train, microbatches, 1, error));
    const struct compute compute = replicas_compute(&probe->replicas);
    RETURN_IF(compute.open(compute.self, 0, error));
    RETURN_IF(load(probe, &compute, error));
    return memory_array(&probe->gradient, network->graph.layout.floats, "a gradient", error);
}

bool probe_is_open(const struct probe *probe) {
    return probe->gradient != NULL;
}

int probe_run(struct probe *probe, float *weights, struct error *error) {
    const struct compute compute = replicas_compute(&probe->replicas);
    struct outcome outcome;
    float loss = 0.0f;
    RETURN_IF(compute.run(compute.self, 0, 0, weights, probe->gradient, &loss, error));
    return compute.synchronize(compute.self, 0, false, &outcome, error);
}

void probe_close(struct probe *probe) {
    replicas_close(&probe->replicas);
    memory_free(probe->gradient);
    *probe = (struct probe){0};
}
