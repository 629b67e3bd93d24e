/* Forward passes over whole sets. The last batch is padded with its last example; the copies are not
 * counted. */
#include "evaluate.h"

#include "../base/memory.h"
#include "../device/copy.h"

int evaluator_open(struct evaluator *evaluator, const struct network_settings *settings,
                   const struct device *device, struct error *error) {
    struct network_settings own = *settings;
    *evaluator = (struct evaluator){.device = *device, .batch = EVALUATE_BATCH};
    own.batch = EVALUATE_BATCH;
    own.training = own.mixed = false;
    RETURN_IF(network_open(&evaluator->network, &own, error));
    const node fetches[] = {evaluator->network.losses, evaluator->network.predicted,
                            evaluator->network.outputs};
    device->backend->enter(&evaluator->device);
    RETURN_IF(program_compile(&evaluator->program, &evaluator->network.graph, fetches, 3, &evaluator->device,
                              error));
    RETURN_IF(arena_open(&evaluator->arena, evaluator->program, error));
    RETURN_IF(memory_array(&evaluator->index, EVALUATE_BATCH, "a batch's numbers", error));
    RETURN_IF(memory_array(&evaluator->losses, EVALUATE_BATCH, "a batch's losses", error));
    RETURN_IF(memory_array(&evaluator->predicted, EVALUATE_BATCH, "a batch's predictions", error));
    if (!device_apart(device)) return OK;
    return device_array(device, &evaluator->weights, evaluator->network.graph.layout.floats,
                        "weights to evaluate", error);
}

void evaluator_close(struct evaluator *evaluator) {
    arena_close(evaluator->arena);
    program_close(evaluator->program);
    network_close(&evaluator->network);
    memory_free(evaluator->index);
    memory_free(evaluator->losses);
    memory_free(evaluator->predicted);
    if (evaluator->weights) evaluator->device.backend->release(&evaluator->device, evaluator->weights);
    *evaluator = (struct evaluator){0};
}

static const int no_labels[EVALUATE_BATCH];

/* Where the device has them. */
static int send_weights(const struct evaluator *evaluator, float *weights, float **there,
                        struct error *error) {
    *there = evaluator->weights ? evaluator->weights : weights;
    if (*there == weights) return OK;
    return device_copy(&evaluator->device, *there, NULL, weights,
                       evaluator->network.graph.layout.floats * sizeof *weights, error);
}

/* Runs examples first .. first+count-1. */
static int run_batch(struct evaluator *evaluator, const struct examples *examples, int first, int count,
                     float *weights, struct error *error) {
    const struct device *device = &evaluator->device;
    const struct network *network = &evaluator->network;
    for (int i = 0; i < evaluator->batch; i++) evaluator->index[i] = first + (i < count ? i : count - 1);
    const struct indices indices = {.count = evaluator->batch, .index = evaluator->index};
    RETURN_IF(device->backend->gather(device, examples, &indices, arena_address(evaluator->arena, network->x),
                                      error));
    if (examples->labels)
        RETURN_IF(device->backend->gather_labels(device, examples, &indices,
                                                 arena_address(evaluator->arena, network->labels), error));
    else
        RETURN_IF(arena_write(evaluator->arena, network->labels, no_labels, sizeof no_labels, error));
    return program_run(evaluator->program, evaluator->arena, weights, NULL, error);
}

int evaluator_run(struct evaluator *evaluator, const struct examples *examples, float *weights,
                  struct evaluation *result, struct error *error) {
    const struct network *network = &evaluator->network;
    const size_t batch = (size_t)evaluator->batch;
    double cost = 0.0;
    int right = 0;
    RETURN_IF(send_weights(evaluator, weights, &weights, error));
    for (int first = 0; first < examples->count; first += evaluator->batch) {
        const int left = examples->count - first, count = left < evaluator->batch ? left : evaluator->batch;
        RETURN_IF(run_batch(evaluator, examples, first, count, weights, error));
        RETURN_IF(arena_read(evaluator->arena, network->losses, evaluator->losses,
                             batch * sizeof *evaluator->losses, error));
        RETURN_IF(arena_read(evaluator->arena, network->predicted, evaluator->predicted,
                             batch * sizeof *evaluator->predicted, error));
        for (int i = 0; i < count; i++) {
            cost += (double)evaluator->losses[i];
            right += evaluator->predicted[i] == examples->labels[first + i];
        }
    }
    const double all = examples->count > 0 ? (double)examples->count : 1.0;
    *result = (struct evaluation){.examples = examples->count, .accuracy = right / all, .cost = cost / all};
    return OK;
}

int evaluator_predict(struct evaluator *evaluator, const struct examples *examples, float *weights,
                      float *probabilities, int *predicted, struct error *error) {
    const struct network *network = &evaluator->network;
    const size_t classes = (size_t)network->graph.nodes[network->outputs].shape.dims[1];
    RETURN_IF(send_weights(evaluator, weights, &weights, error));
    for (int first = 0; first < examples->count; first += evaluator->batch) {
        const int left = examples->count - first, count = left < evaluator->batch ? left : evaluator->batch;
        RETURN_IF(run_batch(evaluator, examples, first, count, weights, error));
        RETURN_IF(arena_read(evaluator->arena, network->outputs,
                             probabilities + (size_t)first * classes,
                             (size_t)count * classes * sizeof *probabilities, error));
        if (predicted)
            RETURN_IF(arena_read(evaluator->arena, network->predicted, predicted + first,
                                 (size_t)count * sizeof *predicted, error));
    }
    return OK;
}
