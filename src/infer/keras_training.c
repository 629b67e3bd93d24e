/* See keras_training.h. What a step there is, and how states differ: src/imports/keras_optimizer.c. */
#include "keras_training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"

static const char *name_of(const struct keras_training *training) {
    return training->optimizer.plugin->name;
}

static bool is_named(const struct keras_training *training, const char *name) {
    return strcmp(name_of(training), name) == 0;
}

/* 0 where it has no such setting. */
static double setting(const struct keras_training *training, const char *name) {
    const struct choice *choice = &training->optimizer;
    const struct option *row = option_find(choice->plugin->options, name);
    char text[64] = "0";
    if (row) option_text(row, choice_settings(choice), text, sizeof text);
    return strtod(text, NULL);
}

/* --- what is left out --- */

static void leave(struct keras_training *training, const char *what) {
    struct text text = {
        .bytes = training->words, .room = sizeof training->words, .used = strlen(training->words)};
    text_item(&text, ", ", "%s", what);
}

/* Why nothing of it can be said there; NULL: it can. */
static const char *obstacle(const struct keras_training *training, const struct restored *restored,
                            const struct layout *layout, enum keras_reader reader) {
    static const char *const known[] = {"sgd", "momentum", "nesterov", "adam", "adagrad"};
    bool is_known = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        is_known = is_known || is_named(training, known[i]);
    if (!is_known) return "the optimizer's state, which Keras has no exact counterpart of";
    if (reader == KERAS_SECOND && setting(training, "weight-decay") > 0.0)
        return "the optimizer's state, as its weight-decay is in .keras alone";
    if (checkpoint_has(&restored->content, "average", layout))
        return "the optimizer's state, which is of the weights without --average";
    if (restored->units.deviation) return "the optimizer's state, which is of values in other units";
    for (int i = 0; i < layout->count; i++)
        if (layout->ranges[i].kind == RANGE_TRAINABLE &&
            fabsf(layout->ranges[i].rate_multiplier - 1.0f) > 0.0f)
            return "the optimizer's state, as weights have rates of their own";
    if (reader == KERAS_THIRD && is_named(training, "adagrad") && setting(training, "epsilon") > 1e-6)
        return "the optimizer's state, as adagrad's epsilon is above 1e-6";
    return NULL;
}

/* What there is beside it, and is not said. */
static void leave_rest(struct keras_training *training, const struct restored *restored,
                       const struct layout *layout) {
    static const char *const names[] = {"schedule", "decay", "clip", "label-smoothing", "freeze"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = safetensors_text(&restored->content, names[i]);
        char what[80];
        if (!text || strcmp(text, "0") == 0 || strcmp(text, "none") == 0 || strcmp(text, "constant") == 0)
            continue;
        snprintf(what, sizeof what, "--%s=%.50s", names[i], text);
        leave(training, what);
    }
    bool frozen = false;
    for (int i = 0; i < layout->count; i++) frozen = frozen || layout->ranges[i].kind == RANGE_FROZEN;
    if (frozen) leave(training, "that weights are frozen");
    for (int i = 0; setting(training, "weight-decay") > 0.0 && i < layout->count; i++)
        if (layout->ranges[i].kind == RANGE_TRAINABLE && layout->ranges[i].shape.rank < 2) {
            leave(training, "that weight-decay is not for biases, scales and shifts");
            return;
        }
}

/* --- the state --- */

static const char *loss_of(const struct restored *restored) {
    const char *asked = safetensors_text(&restored->content, "loss");
    switch (restored->task) {
    case TASK_LABELS:
        return "binary_crossentropy";
    case TASK_VALUES:
        return asked && strcmp(asked, "mae") == 0 ? "mean_absolute_error" : "mean_squared_error";
    case TASK_CLASSES:
    case TASKS:
        break;
    }
    return "sparse_categorical_crossentropy";
}

static int load_slot(struct keras_training *training, const struct restored *restored, const char *path,
                     int slot, const struct layout *layout, struct error *error) {
    const struct optimizer *optimizer = optimizer_of(&training->optimizer);
    char prefix[64];
    float *values;
    snprintf(prefix, sizeof prefix, "%s:", optimizer->moment_names[slot]);
    RETURN_IF(memory_array(&training->slot[slot], layout->floats, "the optimizer's state", error));
    values = training->slot[slot];
    RETURN_IF(checkpoint_load(path, &restored->content, prefix, layout, false, values, error));
    for (size_t i = 0; strcmp(training->class_name, "SGD") == 0 && i < layout->floats; i++)
        values[i] *= -(float)training->rate;
    return OK;
}

static int load(struct keras_training *training, const struct restored *restored, const char *path,
                const struct layout *layout, struct error *error) {
    const bool adam = is_named(training, "adam"), adagrad = is_named(training, "adagrad");
    training->rate = setting(training, "rate");
    training->updates = (long)checkpoint_number(&restored->content, "version", 0);
    training->loss = loss_of(restored);
    training->class_name = adagrad                                           ? "Adagrad"
                           : adam && setting(training, "weight-decay") > 0.0 ? "AdamW"
                           : adam                                            ? "Adam"
                                                                             : "SGD";
    training->slot_name[0] = adagrad ? "accumulator" : adam ? "m" : "momentum";
    training->slot_name[1] = "v";
    training->slots = optimizer_of(&training->optimizer)->moments;
    if (!adam && !adagrad && !(setting(training, "momentum") > 0.0)) training->slots = 0;
    for (int slot = 0; slot < training->slots; slot++)
        RETURN_IF(load_slot(training, restored, path, slot, layout, error));
    training->there = true;
    return OK;
}

int keras_training_open(struct keras_training *training, const struct restored *restored, const char *path,
                        enum keras_reader reader, struct error *error) {
    const char *text = safetensors_text(&restored->content, "optimizer");
    const struct layout *layout = &restored->evaluator.pass[EVALUATE_WHOLE].network.graph.layout;
    struct error why = {0};
    *training = (struct keras_training){0};
    if (!text || checkpoint_number(&restored->content, "version", 0) <= 0) return OK;
    if (plugin_choose(&training->optimizer, &optimizer_kind, text, &why) != OK)
        return error_set(error, ERROR_FILE, "%s: %s", path, why.words);
    const struct optimizer *optimizer = optimizer_of(&training->optimizer);
    if (optimizer->moments > 0 && !checkpoint_has(&restored->content, optimizer->moment_names[0], layout))
        return OK; /* a model's file */
    const char *reason = obstacle(training, restored, layout, reader);
    if (reason) {
        leave(training, reason);
        return OK;
    }
    leave_rest(training, restored, layout);
    return load(training, restored, path, layout, error);
}

void keras_training_close(struct keras_training *training) {
    for (int slot = 0; slot < KERAS_SLOTS; slot++) memory_free(training->slot[slot]);
    *training = (struct keras_training){0};
}

/* --- as it is said there --- */

static void put_settings(struct json_writer *json, const struct keras_training *training,
                         enum keras_reader reader) {
    const double weight_decay = setting(training, "weight-decay"), epsilon = setting(training, "epsilon");
    json_text(json, "name", name_of(training));
    json_float(json, "learning_rate", training->rate);
    if (weight_decay > 0.0) json_float(json, "weight_decay", weight_decay);
    if (strcmp(training->class_name, "SGD") == 0) {
        json_float(json, "momentum", setting(training, "momentum"));
        json_bool(json, "nesterov", is_named(training, "nesterov"));
    } else if (is_named(training, "adam")) {
        json_float(json, "beta_1", setting(training, "beta1"));
        json_float(json, "beta_2", setting(training, "beta2"));
        json_float(json, "epsilon", epsilon);
    } else {
        json_float(json, "epsilon", reader == KERAS_SECOND ? epsilon : epsilon * epsilon); /* in the root */
    }
}

void keras_training_put(struct json_writer *json, const struct keras_training *training,
                        enum keras_reader reader) {
    static const char *const others[] = {"loss_weights", "metrics", "weighted_metrics"};
    const bool third = reader == KERAS_THIRD;
    json_open(json, third ? "optimizer" : "optimizer_config", '{');
    if (third) json_text(json, "module", "keras.optimizers");
    json_text(json, "class_name", training->class_name);
    json_open(json, "config", '{');
    put_settings(json, training, reader);
    json_close(json, '}');
    if (third) json_real(json, "registered_name", (double)NAN);
    json_close(json, '}');
    json_text(json, "loss", training->loss);
    for (int i = 0; i < 3; i++) json_real(json, others[i], (double)NAN);
}
