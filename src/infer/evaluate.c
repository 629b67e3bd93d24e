/* Forward passes over whole sets. The last batch is padded with its last example; the copies are not
 * counted. */
#include "evaluate.h"

#include "../base/memory.h"
#include "../device/copy.h"
#include "../device/gather.h"

int evaluator_open(struct evaluator *evaluator, const struct network_settings *settings,
                   const struct device *device, struct error *error) {
    struct network_settings own = *settings;
    *evaluator = (struct evaluator){
        .device = *device, .batch = EVALUATE_BATCH, .classes = settings->classes, .task = settings->task};
    own.batch = EVALUATE_BATCH;
    own.training = own.mixed = false;
    return network_open(&evaluator->network, &own, error);
}

int evaluator_compile(struct evaluator *evaluator, struct error *error) {
    const struct device *device = &evaluator->device;
    const node fetches[] = {evaluator->network.losses, evaluator->network.predicted,
                            evaluator->network.outputs};
    device->backend->enter(&evaluator->device);
    RETURN_IF(program_compile(&evaluator->program, &evaluator->network.graph, fetches, 3, &evaluator->device,
                              error));
    RETURN_IF(arena_open(&evaluator->arena, evaluator->program, error));
    RETURN_IF(memory_array(&evaluator->index, EVALUATE_BATCH, "a batch's numbers", error));
    RETURN_IF(memory_array(&evaluator->losses, EVALUATE_BATCH, "a batch's losses", error));
    RETURN_IF(memory_array(&evaluator->outputs, EVALUATE_BATCH * (size_t)evaluator->classes,
                           "a batch's outputs", error));
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
    memory_free(evaluator->outputs);
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
    RETURN_IF(device_gather(device, examples, &indices, arena_address(evaluator->arena, network->x), error));
    if (examples->labels || examples->targets)
        RETURN_IF(device_gather_labels(device, examples, &indices,
                                       arena_address(evaluator->arena, network->labels), error));
    else if (evaluator->task == TASK_CLASSES)
        RETURN_IF(arena_write(evaluator->arena, network->labels, no_labels, sizeof no_labels, error));
    return program_run(evaluator->program, evaluator->arena, weights, NULL, error);
}

/* What a batch came to, of which `count` examples count. */
static int read_batch(struct evaluator *evaluator, int count, float *outputs, int *predicted,
                      struct error *error) {
    const struct network *network = &evaluator->network;
    RETURN_IF(arena_read(evaluator->arena, network->outputs, outputs,
                         (size_t)count * (size_t)evaluator->classes * sizeof *outputs, error));
    if (!predicted) return OK;
    return arena_read(evaluator->arena, network->predicted, predicted, (size_t)count * sizeof *predicted,
                      error);
}

static int add_batches(struct evaluator *evaluator, const struct examples *examples, float *weights,
                       struct figures *figures, double *cost, struct error *error) {
    const struct network *network = &evaluator->network;
    for (int first = 0; first < examples->count; first += evaluator->batch) {
        const int left = examples->count - first, count = left < evaluator->batch ? left : evaluator->batch;
        RETURN_IF(run_batch(evaluator, examples, first, count, weights, error));
        RETURN_IF(arena_read(evaluator->arena, network->losses, evaluator->losses,
                             (size_t)count * sizeof *evaluator->losses, error));
        RETURN_IF(read_batch(evaluator, count, evaluator->outputs, evaluator->predicted, error));
        for (int i = 0; i < count; i++) *cost += (double)evaluator->losses[i];
        figures_add(figures, examples, first, count, evaluator->outputs, evaluator->predicted);
    }
    return OK;
}

int evaluator_run(struct evaluator *evaluator, const struct examples *examples, float *weights,
                  struct evaluation *result, struct error *error) {
    struct figures figures = {0};
    double cost = 0.0;
    RETURN_IF(send_weights(evaluator, weights, &weights, error));
    int code =
        figures_open(&figures, evaluator->task, evaluator->classes, evaluator->units, examples->count, error);
    if (code == OK) code = add_batches(evaluator, examples, weights, &figures, &cost, error);
    *result = (struct evaluation){.examples = examples->count,
                                  .cost = cost / (examples->count > 0 ? examples->count : 1)};
    if (code == OK) code = figures_end(&figures, examples, result->value, error);
    result->score = result->value[metric_of(evaluator->task)];
    figures_close(&figures);
    return code;
}

static void give_units(const struct evaluator *evaluator, float *outputs, int count) {
    const struct units *units = &evaluator->units;
    if (!units->deviation) return;
    for (int i = 0; i < count; i++, outputs += evaluator->classes)
        for (int o = 0; o < evaluator->classes; o++)
            outputs[o] = outputs[o] * units->deviation[o] + units->mean[o];
}

int evaluator_outputs(struct evaluator *evaluator, const struct examples *examples, float *weights,
                      float *outputs, int *predicted, struct error *error) {
    RETURN_IF(send_weights(evaluator, weights, &weights, error));
    for (int first = 0; first < examples->count; first += evaluator->batch) {
        const int left = examples->count - first, count = left < evaluator->batch ? left : evaluator->batch;
        float *to = outputs + (size_t)first * (size_t)evaluator->classes;
        RETURN_IF(run_batch(evaluator, examples, first, count, weights, error));
        RETURN_IF(read_batch(evaluator, count, to, predicted ? predicted + first : NULL, error));
    }
    return OK;
}

int evaluator_predict(struct evaluator *evaluator, const struct examples *examples, float *weights,
                      float *outputs, int *predicted, struct error *error) {
    RETURN_IF(evaluator_outputs(evaluator, examples, weights, outputs, predicted, error));
    give_units(evaluator, outputs, examples->count);
    return OK;
}
