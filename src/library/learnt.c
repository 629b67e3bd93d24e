/* What a training has left: its weights by name, and predictions with them. */
#include <string.h>
#include "../base/memory.h"
#include "../formats/checkpoint.h"
#include "../graph/model.h"
#include "training.h"

void learnt_forget(struct learnt *learnt) {
    evaluator_close(&learnt->evaluator);
    devices_close(learnt->devices, 1);
    memory_free(learnt->ordered);
    memory_free(learnt->weights);
    memory_free(learnt->layout.ranges);
    memory_free(learnt->units.mean);
    memory_free(learnt->units.deviation);
    *learnt = (struct learnt){0};
}

static int copy_floats(float **out, const float *from, size_t count, struct error *error) {
    RETURN_IF(memory_array(out, count, "what was learnt", error));
    memcpy(*out, from, count * sizeof **out);
    return OK;
}

/* All that is needed of the run, which is about to close. */
static int keep(struct learnt *learnt, const struct output_scene *scene, const float *weights,
                struct error *error) {
    const struct layout *layout = &scene->graph->layout;
    const struct config *config = scene->config;
    const struct dataset *dataset = scene->dataset;
    RETURN_IF(plugin_choose(&learnt->model, &model_kind, config->model, error));
    enum loss loss;
    RETURN_IF(loss_choose(&loss, (enum loss)config->loss, config->label_smoothing, dataset->task,
                          config->dataset, error));
    learnt->settings = (struct network_settings){.model = &learnt->model,
                                                 .shape = dataset->shape,
                                                 .codes = dataset->codes,
                                                 .classes = dataset->classes,
                                                 .task = dataset->task,
                                                 .loss = loss,
                                                 .seed = (uint64_t)config->seed,
                                                 .shards = 1};
    if (dataset->units.deviation) {
        const size_t count = (size_t)dataset->classes;
        RETURN_IF(copy_floats(&learnt->units.mean, dataset->units.mean, count, error));
        RETURN_IF(copy_floats(&learnt->units.deviation, dataset->units.deviation, count, error));
    }
    learnt->layout = *layout;
    learnt->layout.ranges = NULL;
    RETURN_IF(memory_array(&learnt->layout.ranges, layout->count, "what was learnt", error));
    memcpy(learnt->layout.ranges, layout->ranges, (size_t)layout->count * sizeof *layout->ranges);
    return copy_floats(&learnt->weights, weights, layout->floats, error);
}

int learnt_keep(struct learnt *learnt, const struct output_scene *scene, const float *weights,
                struct error *error) {
    learnt_forget(learnt);
    const int code = keep(learnt, scene, weights, error);
    if (code != OK) learnt_forget(learnt);
    return code;
}

/* --- weights --- */

const char *trainer_training_weight(const struct trainer_training *training, int i,
                                    struct trainer_shape *shape, const float **values) {
    const struct learnt *learnt = &training->learnt;
    if (!learnt->weights || i < 0 || i >= learnt->layout.count) return NULL;
    const struct range *range = &learnt->layout.ranges[i];
    *shape = (struct trainer_shape){.rank = range->shape.rank};
    for (int axis = 0; axis < MAX_RANK; axis++) shape->dims[axis] = range->shape.dims[axis];
    *values = learnt->weights + range->begin;
    return range->name;
}

static int nothing_learnt(struct error *error) {
    return error_set(error, ERROR_USAGE, "nothing is learnt yet, expected trainer_training_run before");
}

int trainer_training_save(const struct trainer_training *training, const char *path,
                          struct trainer_error *error) {
    const struct learnt *learnt = &training->learnt;
    struct error why = {0};
    if (learnt->weights)
        model_write(path, &learnt->layout, learnt->weights, NULL, 0, &why);
    else
        nothing_learnt(&why);
    return library_tell(&why, error);
}

/* --- predictions --- */

/* The layout of the training may have the weights in another order (--shard-by=round-robin). */
static int order(struct learnt *learnt, struct error *error) {
    const struct layout *to = &learnt->evaluator.pass[EVALUATE_WHOLE].network.graph.layout;
    RETURN_IF(memory_array(&learnt->ordered, to->floats, "what was learnt", error));
    for (int i = 0; i < to->count; i++) {
        const struct range *range = &to->ranges[i], *from = layout_find(&learnt->layout, range->name);
        if (!from) return error_set(error, ERROR_INTERNAL, "%s was not learnt", range->name);
        memcpy(learnt->ordered + range->begin, learnt->weights + from->begin, range->floats * sizeof(float));
    }
    return OK;
}

static int open_evaluator(struct learnt *learnt, struct error *error) {
    const struct device_settings settings = {0};
    int count = 0;
    bool shared = false;
    RETURN_IF(devices_open("cpu:0", &settings, &learnt->devices, &count, &shared, error));
    RETURN_IF(evaluator_open(&learnt->evaluator, &learnt->settings, learnt->devices, error));
    RETURN_IF(evaluator_compile(&learnt->evaluator, error));
    learnt->evaluator.units = learnt->units;
    return order(learnt, error);
}

static int predict(struct learnt *learnt, const float *features, int count, float *said,
                   struct error *error) {
    const struct examples examples = {.count = count,
                                      .features = (int)shape_count(&learnt->settings.shape),
                                      .floats = features,
                                      .scale = 1.0f};
    if (!learnt->weights) return nothing_learnt(error);
    if (count < 0) return error_set(error, ERROR_USAGE, "%d examples to predict, expected 0 or more", count);
    if (!learnt->ordered) {
        const int code = open_evaluator(learnt, error);
        if (code != OK) {
            evaluator_close(&learnt->evaluator);
            devices_close(learnt->devices, 1);
            memory_free(learnt->ordered);
            learnt->devices = NULL;
            learnt->ordered = NULL;
            return code;
        }
    }
    learnt->devices->backend->enter(learnt->devices);
    return evaluator_predict(&learnt->evaluator, &examples, learnt->ordered, said, NULL, error);
}

int trainer_training_predict(struct trainer_training *training, const float *features, int count, float *said,
                             struct trainer_error *error) {
    struct error why = {0};
    predict(&training->learnt, features, count, said, &why);
    return library_tell(&why, error);
}

int trainer_training_outputs(const struct trainer_training *training) {
    return training->learnt.weights ? training->learnt.settings.classes : 0;
}

int trainer_training_features(const struct trainer_training *training) {
    return training->learnt.weights ? (int)shape_count(&training->learnt.settings.shape) : 0;
}
