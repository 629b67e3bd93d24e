/* Forward passes over whole sets. The last batch is padded with its last example; the copies are not
 * counted. */
#include "evaluate.h"

#include <math.h>

#include "../base/memory.h"
#include "../device/copy.h"
#include "../device/gather.h"

static const int batches[EVALUATE_SIZES] = {1, EVALUATE_FEW, EVALUATE_BATCH};

static int open_network(struct evaluator *evaluator, enum evaluator_size size, struct error *error) {
    struct evaluator_pass *pass = &evaluator->pass[size];
    struct network_settings own = evaluator->settings;
    own.batch = pass->batch = batches[size];
    return network_open(&pass->network, &own, error);
}

int evaluator_open(struct evaluator *evaluator, const struct network_settings *settings,
                   const struct device *device, struct error *error) {
    *evaluator = (struct evaluator){
        .settings = *settings, .device = *device, .classes = settings->classes, .task = settings->task};
    evaluator->settings.training = evaluator->settings.mixed = false;
    return open_network(evaluator, EVALUATE_WHOLE, error);
}

/* What all sizes share. */
static int enter(struct evaluator *evaluator, struct error *error) {
    const struct device *device = &evaluator->device;
    if (evaluator->entered) return OK;
    evaluator->entered = true;
    device->backend->enter(device);
    RETURN_IF(memory_array(&evaluator->index, EVALUATE_BATCH, "a batch's numbers", error));
    RETURN_IF(memory_array(&evaluator->losses, EVALUATE_BATCH, "a batch's losses", error));
    RETURN_IF(memory_array(&evaluator->outputs, EVALUATE_BATCH * (size_t)evaluator->classes,
                           "a batch's outputs", error));
    RETURN_IF(memory_array(&evaluator->predicted, EVALUATE_BATCH, "a batch's predictions", error));
    if (!device_apart(device)) return OK;
    return device_array(device, &evaluator->weights,
                        evaluator->pass[EVALUATE_WHOLE].network.graph.layout.floats, "weights to evaluate",
                        error);
}

static int make_ready(struct evaluator *evaluator, enum evaluator_size size, struct error *error) {
    struct evaluator_pass *pass = &evaluator->pass[size];
    RETURN_IF(enter(evaluator, error));
    if (pass->arena) return OK;
    if (pass->batch == 0) RETURN_IF(open_network(evaluator, size, error));
    const node fetches[] = {pass->network.losses, pass->network.predicted, pass->network.outputs};
    RETURN_IF(program_compile(&pass->program, &pass->network.graph, fetches, 3, &evaluator->device, error));
    return arena_open(&pass->arena, pass->program, error);
}

int evaluator_compile(struct evaluator *evaluator, struct error *error) {
    return make_ready(evaluator, EVALUATE_WHOLE, error);
}

void evaluator_close(struct evaluator *evaluator) {
    for (int size = 0; size < EVALUATE_SIZES; size++) {
        arena_close(evaluator->pass[size].arena);
        program_close(evaluator->pass[size].program);
        network_close(&evaluator->pass[size].network);
    }
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
                       evaluator->pass[EVALUATE_WHOLE].network.graph.layout.floats * sizeof *weights, error);
}

/* Runs examples first .. first+count-1. */
static int run_batch(struct evaluator *evaluator, const struct evaluator_pass *pass,
                     const struct examples *examples, int first, int count, float *weights,
                     struct error *error) {
    const struct device *device = &evaluator->device;
    const struct network *network = &pass->network;
    for (int i = 0; i < pass->batch; i++) evaluator->index[i] = first + (i < count ? i : count - 1);
    const struct indices indices = {.count = pass->batch, .index = evaluator->index};
    RETURN_IF(device_gather(device, examples, &indices, arena_address(pass->arena, network->x), error));
    if (examples->labels || examples->targets)
        RETURN_IF(device_gather_labels(device, examples, &indices,
                                       arena_address(pass->arena, network->labels), error));
    else if (evaluator->task == TASK_CLASSES)
        RETURN_IF(arena_write(pass->arena, network->labels, no_labels,
                              (size_t)pass->batch * sizeof *no_labels, error));
    return program_run(pass->program, pass->arena, weights, NULL, error);
}

/* What a batch came to, of which `count` examples count. */
static int read_batch(const struct evaluator *evaluator, const struct evaluator_pass *pass, int count,
                      float *outputs, int *predicted, struct error *error) {
    const struct network *network = &pass->network;
    RETURN_IF(arena_read(pass->arena, network->outputs, outputs,
                         (size_t)count * (size_t)evaluator->classes * sizeof *outputs, error));
    if (!predicted) return OK;
    return arena_read(pass->arena, network->predicted, predicted, (size_t)count * sizeof *predicted, error);
}

int evaluator_begin(struct evaluator *evaluator, float *weights, float **there, struct error *error) {
    RETURN_IF(make_ready(evaluator, EVALUATE_WHOLE, error));
    return send_weights(evaluator, weights, there, error);
}

static int count_from(const struct examples *examples, int first) {
    const int left = examples->count - first;
    return left < EVALUATE_BATCH ? left : EVALUATE_BATCH;
}

int evaluator_batch(struct evaluator *evaluator, const struct examples *examples, int first, float *there,
                    struct error *error) {
    const struct evaluator_pass *pass = &evaluator->pass[EVALUATE_WHOLE];
    const int count = count_from(examples, first);
    RETURN_IF(run_batch(evaluator, pass, examples, first, count, there, error));
    RETURN_IF(arena_read(pass->arena, pass->network.losses, evaluator->losses,
                         (size_t)count * sizeof *evaluator->losses, error));
    return read_batch(evaluator, pass, count, evaluator->outputs, evaluator->predicted, error);
}

int evaluation_open(struct evaluation_sum *sum, const struct evaluator *evaluator,
                    const struct examples *examples, struct error *error) {
    sum->examples = examples;
    sum->cost = 0.0;
    return figures_open(&sum->figures, evaluator->task, evaluator->classes, evaluator->units, examples->count,
                        error);
}

void evaluation_add(struct evaluation_sum *sum, const struct evaluator *evaluator, int first) {
    const int count = count_from(sum->examples, first);
    for (int i = 0; i < count; i++) sum->cost += (double)evaluator->losses[i];
    figures_add(&sum->figures, sum->examples, first, count, evaluator->outputs, evaluator->predicted);
}

int evaluation_end(struct evaluation_sum *sum, struct evaluation *result, struct error *error) {
    const int count = sum->examples->count;
    *result = (struct evaluation){.examples = count, .cost = sum->cost / (count > 0 ? count : 1)};
    const int code = figures_end(&sum->figures, sum->examples, result->value, error);
    result->score = result->value[metric_of(sum->figures.task)];
    return code;
}

void evaluation_close(struct evaluation_sum *sum) {
    figures_close(&sum->figures);
}

int evaluator_run(struct evaluator *evaluator, const struct examples *examples, float *weights,
                  struct evaluation *result, struct error *error) {
    struct evaluation_sum sum = {0};
    RETURN_IF(evaluator_begin(evaluator, weights, &weights, error));
    int code = evaluation_open(&sum, evaluator, examples, error);
    for (int first = 0; first < examples->count && code == OK; first += EVALUATE_BATCH) {
        code = evaluator_batch(evaluator, examples, first, weights, error);
        if (code == OK) evaluation_add(&sum, evaluator, first);
    }
    if (code == OK) code = evaluation_end(&sum, result, error);
    evaluation_close(&sum);
    return code;
}

static void give_units(const struct evaluator *evaluator, float *outputs, int count) {
    const struct units *units = &evaluator->units;
    if (!units->deviation) return;
    for (int i = 0; i < count; i++, outputs += evaluator->classes)
        for (int o = 0; o < evaluator->classes; o++)
            outputs[o] = outputs[o] * units->deviation[o] + units->mean[o];
}

/* For so many examples alone. */
static enum evaluator_size size_for(int count) {
    return count == 1 ? EVALUATE_ONE : count <= EVALUATE_FEW ? EVALUATE_SOME : EVALUATE_WHOLE;
}

int evaluator_outputs(struct evaluator *evaluator, const struct examples *examples, float *weights,
                      float *outputs, int *predicted, struct error *error) {
    const enum evaluator_size size = size_for(examples->count);
    const struct evaluator_pass *pass = &evaluator->pass[size];
    RETURN_IF(make_ready(evaluator, size, error));
    RETURN_IF(send_weights(evaluator, weights, &weights, error));
    for (int first = 0; first < examples->count; first += pass->batch) {
        const int left = examples->count - first, count = left < pass->batch ? left : pass->batch;
        float *to = outputs + (size_t)first * (size_t)evaluator->classes;
        RETURN_IF(run_batch(evaluator, pass, examples, first, count, weights, error));
        RETURN_IF(read_batch(evaluator, pass, count, to, predicted ? predicted + first : NULL, error));
    }
    return OK;
}

int evaluator_predict(struct evaluator *evaluator, const struct examples *examples, float *weights,
                      float *outputs, int *predicted, struct error *error) {
    RETURN_IF(evaluator_outputs(evaluator, examples, weights, outputs, predicted, error));
    give_units(evaluator, outputs, examples->count);
    return OK;
}

/* --- views --- */

const char *const views_titles[] = {"", "Flip", "Flip+Shift"};

int views_check(enum views views, enum task task, const struct examples *examples, struct error *error) {
    const bool images = examples->bytes && examples->augment.height > 0;
    if (views == VIEWS_PLAIN || (task == TASK_CLASSES && examples->labels && images)) return OK;
    return error_set(
        error, ERROR_USAGE,
        "--views: found examples that are only scaled, expected images with a class each that the "
        "data set cuts out or standardizes");
}

struct view_share {
    struct augment_view view;
    float share;
};

/* sum[examples->count][classes] += each view's share of what the network says. */
static int add_views(struct evaluator *evaluator, const struct examples *examples, float *weights,
                     enum views views, float *own, float *sum, struct error *error) {
    static const struct view_share flip[] = {{{0, 0, 0}, 0.5f}, {{1, 0, 0}, 0.5f}, {{0, 0, 0}, 0.0f}},
                                   shift[] = {{{0, 0, 0}, 0.25f},    {{1, 0, 0}, 0.25f},
                                              {{0, -1, -1}, 0.125f}, {{1, -1, -1}, 0.125f},
                                              {{0, 1, 1}, 0.125f},   {{1, 1, 1}, 0.125f},
                                              {{0, 0, 0}, 0.0f}};
    const size_t outputs = (size_t)examples->count * (size_t)evaluator->classes;
    struct examples seen = *examples;
    for (const struct view_share *view = views == VIEWS_FLIP ? flip : shift; view->share > 0.0f; view++) {
        seen.augment.view = view->view;
        RETURN_IF(evaluator_outputs(evaluator, &seen, weights, own, NULL, error));
        for (size_t i = 0; i < outputs; i++) sum[i] += view->share * own[i];
    }
    return OK;
}

static int largest(const float *row, int count) {
    int best = 0;
    for (int c = 1; c < count; c++) best = row[c] > row[best] ? c : best;
    return best;
}

/* The cost is of the smallest probability a float can have, where a class got none at all. */
static int judge_views(const struct evaluator *evaluator, const struct examples *examples, const float *said,
                       struct evaluation *result, struct error *error) {
    struct figures figures = {0};
    double cost = 0.0;
    int code =
        figures_open(&figures, evaluator->task, evaluator->classes, evaluator->units, examples->count, error);
    for (int i = 0; i < examples->count && code == OK; i++) {
        const float *row = said + (size_t)i * (size_t)evaluator->classes;
        const int best = largest(row, evaluator->classes);
        cost -= log(fmax((double)row[examples->labels[i]], 1e-38));
        figures_add(&figures, examples, i, 1, row, &best);
    }
    *result = (struct evaluation){.examples = examples->count,
                                  .cost = cost / (examples->count > 0 ? examples->count : 1)};
    if (code == OK) code = figures_end(&figures, examples, result->value, error);
    result->score = result->value[metric_of(evaluator->task)];
    figures_close(&figures);
    return code;
}

int evaluator_run_views(struct evaluator *evaluator, const struct examples *examples, float *weights,
                        enum views views, struct evaluation *result, struct error *error) {
    const size_t outputs = (size_t)examples->count * (size_t)evaluator->classes;
    float *own = NULL, *sum = NULL;
    if (views == VIEWS_PLAIN) return evaluator_run(evaluator, examples, weights, result, error);
    RETURN_IF(views_check(views, evaluator->task, examples, error));
    int code = memory_array(&own, outputs, "what a view says", error);
    if (code == OK) code = memory_array(&sum, outputs, "what the views say", error);
    if (code == OK) code = add_views(evaluator, examples, weights, views, own, sum, error);
    if (code == OK) code = judge_views(evaluator, examples, sum, result, error);
    memory_free(own);
    memory_free(sum);
    return code;
}
