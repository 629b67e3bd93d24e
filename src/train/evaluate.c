/* Forward passes over whole sets. The last batch is filled up with its last example, which is then not
 * counted. */
#include "evaluate.h"

#include <string.h>

#include "../base/memory.h"

int evaluator_open(struct evaluator *evaluator, const struct network_settings *settings,
                   const struct device *device, struct error *error) {
    struct network_settings own = *settings;
    void *block = NULL;
    *evaluator = (struct evaluator){.device = *device, .batch = EVALUATE_BATCH};
    own.batch = EVALUATE_BATCH;
    own.training = false;
    RETURN_IF(network_open(&evaluator->network, &own, error));
    const node fetches[] = {evaluator->network.losses, evaluator->network.predicted,
                            evaluator->network.probabilities};
    device->backend->enter(&evaluator->device);
    RETURN_IF(program_compile(&evaluator->program, &evaluator->network.graph, fetches, 3, &evaluator->device,
                              error));
    RETURN_IF(arena_open(&evaluator->arena, evaluator->program, error));
    RETURN_IF(memory_zeroed(&block, EVALUATE_BATCH, sizeof(int), "a batch's numbers", error));
    evaluator->index = block;
    return OK;
}

void evaluator_close(struct evaluator *evaluator) {
    arena_close(evaluator->arena);
    program_close(evaluator->program);
    network_close(&evaluator->network);
    memory_free(evaluator->index);
    *evaluator = (struct evaluator){0};
}

/* Runs examples first .. first+count-1. */
static int run_batch(struct evaluator *evaluator, const struct examples *examples, int first, int count,
                     float *weights, struct error *error) {
    const struct device *device = &evaluator->device;
    const struct network *network = &evaluator->network;
    int *labels = arena_address(evaluator->arena, network->labels);
    for (int i = 0; i < evaluator->batch; i++) evaluator->index[i] = first + (i < count ? i : count - 1);
    const struct picks picks = {.count = evaluator->batch, .index = evaluator->index};
    RETURN_IF(device->backend->gather(device, examples, &picks, arena_address(evaluator->arena, network->x),
                                      error));
    if (examples->labels)
        RETURN_IF(device->backend->gather_labels(device, examples, &picks, labels, error));
    else
        memset(labels, 0, (size_t)evaluator->batch * sizeof *labels);
    return program_run(evaluator->program, evaluator->arena, weights, NULL, error);
}

int evaluator_run(struct evaluator *evaluator, const struct examples *examples, float *weights,
                  struct evaluation *result, struct error *error) {
    const float *losses = arena_address(evaluator->arena, evaluator->network.losses);
    const int *predicted = arena_address(evaluator->arena, evaluator->network.predicted);
    double cost = 0.0;
    int right = 0;
    for (int first = 0; first < examples->count; first += evaluator->batch) {
        const int left = examples->count - first, count = left < evaluator->batch ? left : evaluator->batch;
        RETURN_IF(run_batch(evaluator, examples, first, count, weights, error));
        for (int i = 0; i < count; i++) {
            cost += (double)losses[i];
            right += predicted[i] == examples->labels[first + i];
        }
    }
    const double all = examples->count > 0 ? (double)examples->count : 1.0;
    *result = (struct evaluation){.examples = examples->count, .accuracy = right / all, .cost = cost / all};
    return OK;
}

int evaluator_predict(struct evaluator *evaluator, const struct examples *examples, float *weights,
                      float *probabilities, struct error *error) {
    const struct network *network = &evaluator->network;
    const float *from = arena_address(evaluator->arena, network->probabilities);
    const size_t classes = (size_t)network->graph.nodes[network->probabilities].shape.dims[1];
    for (int first = 0; first < examples->count; first += evaluator->batch) {
        const int left = examples->count - first, count = left < evaluator->batch ? left : evaluator->batch;
        RETURN_IF(run_batch(evaluator, examples, first, count, weights, error));
        memcpy(probabilities + (size_t)first * classes, from, (size_t)count * classes * sizeof(float));
    }
    return OK;
}
