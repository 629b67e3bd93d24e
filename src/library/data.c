/* A program's own examples as a data set: its arrays where they are, or what its function fills in. */
#include <stdint.h>
#include <string.h>
#include "../base/finite.h"
#include "../base/memory.h"
#include "training.h"

enum { NUMBERS_MOST = 1 << 20 };

struct own_settings {
    struct dataset_common common;
    const struct trainer_training *training;
};

static size_t label_bytes(const struct dataset *dataset) {
    return dataset->task == TASK_CLASSES ? sizeof(int) : (size_t)dataset->classes * sizeof(float);
}

/* memory[2]: features and labels, of the data set's own. */
static int own_memory(void **memory, const struct dataset *dataset, const struct examples *examples,
                      struct error *error) {
    const size_t count = (size_t)examples->count;
    RETURN_IF(
        memory_zeroed(&memory[0], count * (size_t)examples->features, sizeof(float), "features", error));
    return memory_zeroed(&memory[1], count, label_bytes(dataset), "labels", error);
}

static int read_all(void **memory, const struct dataset *dataset, const struct trainer_examples *own,
                    size_t features, const char *what, struct error *error) {
    float *floats = memory[0];
    char *labels = memory[1];
    for (int i = 0; i < own->count; i++) {
        const char *wrong = own->read(own->argument, i, floats + (size_t)i * features,
                                      labels + (size_t)i * label_bytes(dataset));
        if (wrong) return error_set(error, ERROR_FILE, "%s: example %d: %s", what, i, wrong);
    }
    return OK;
}

/* What a run reads of a part, by the whole: labels that are classes, numbers that are finite. */
static int check(const struct dataset *dataset, const struct examples *examples, const char *what,
                 struct error *error) {
    const size_t features = (size_t)examples->features, wanted = (size_t)dataset->classes;
    for (size_t i = 0; i < (size_t)examples->count; i++) {
        const float *targets = examples->targets ? examples->targets + i * wanted : NULL;
        if (examples->labels && (examples->labels[i] < 0 || examples->labels[i] >= dataset->classes))
            return error_set(error, ERROR_USAGE, "%s: example %zu: found class %d, expected 0 to %d", what, i,
                             examples->labels[i], dataset->classes - 1);
        if (!all_finite(examples->floats + i * features, features) ||
            (targets && !all_finite(targets, wanted)))
            return error_set(error, ERROR_USAGE, "%s: example %zu: found a number that is not finite", what,
                             i);
        for (size_t k = 0; targets && dataset->task == TASK_LABELS && k < wanted; k++)
            if (!(targets[k] <= 0.0f && targets[k] >= 0.0f) && !(targets[k] <= 1.0f && targets[k] >= 1.0f))
                return error_set(error, ERROR_USAGE, "%s: example %zu: found the label %g, expected 0 or 1",
                                 what, i, (double)targets[k]);
    }
    return OK;
}

static int open_part(struct dataset *dataset, struct examples *examples, const struct trainer_examples *own,
                     void **memory, const char *what, struct error *error) {
    const size_t features = shape_count(&dataset->shape);
    examples->count = own->count;
    examples->features = (int)features;
    examples->scale = 1.0f;
    if (own->read) {
        RETURN_IF(own_memory(memory, dataset, examples, error));
        RETURN_IF(read_all(memory, dataset, own, features, what, error));
    }
    examples->floats = memory[0] ? memory[0] : own->features;
    dataset_label(dataset, examples, memory[1] ? memory[1] : own->labels);
    return check(dataset, examples, what, error);
}

static int own_open(struct dataset *dataset, const void *settings, const char *const *folders,
                    struct error *error) {
    const struct trainer_training *training = ((const struct own_settings *)settings)->training;
    const struct trainer_data *data = &training->data;
    (void)folders;
    dataset->shape = shape_in(data->shape);
    dataset->task = (enum task)data->task;
    RETURN_IF(dataset_class_names(dataset, NULL, data->outputs, error));
    dataset->borrowed = !data->train.read;
    RETURN_IF(open_part(dataset, &dataset->train, &data->train, dataset->blocks, "the training part", error));
    if (data->test.count > 0)
        return open_part(dataset, &dataset->test, &data->test, dataset->blocks + 2, "the test part", error);
    dataset->test = dataset->train;
    return OK;
}

static const struct option own_options[] = {DATASET_COMMON_ROWS, {0}};
static const struct dataset_plugin own_dataset = {.plugin = {.name = EMBEDDED_DATASET,
                                                             .help = "the examples of a program",
                                                             .options = own_options,
                                                             .settings_bytes = sizeof(struct own_settings)},
                                                  .open = own_open};

void library_choose_data(struct trainer_training *training, struct choice *choice) {
    const struct own_settings settings = {.training = training};
    choice->plugin = &own_dataset.plugin;
    memcpy(choice->settings, &settings, sizeof settings);
    snprintf(choice->text, sizeof choice->text, "%s", own_dataset.plugin.name);
}

static int check_part(const struct trainer_examples *examples, const char *what, struct error *error) {
    if (examples->count > 0 && (examples->read || (examples->features && examples->labels))) return OK;
    return error_set(
        error, ERROR_USAGE,
        "%s: found %d examples, %s features and %s labels, expected 1 or more, and both arrays or "
        "a function",
        what, examples->count, examples->features ? "with" : "without",
        examples->labels ? "with" : "without");
}

static int check_data(const struct trainer_data *data, struct error *error) {
    const int least = data->task == TRAINER_CLASSES ? 2 : 1;
    double features = 1;
    bool right = data->shape.rank >= 1 && data->shape.rank < MAX_RANK;
    for (int axis = 0; right && axis < data->shape.rank; axis++) {
        right = data->shape.dims[axis] >= 1;
        features *= data->shape.dims[axis];
    }
    if (!right || features > INT32_MAX) {
        const struct shape shape = shape_in(data->shape);
        char words[100] = "";
        if (shape.rank >= 0 && shape.rank <= MAX_RANK) shape_text(&shape, words, sizeof words);
        return error_set(
            error, ERROR_USAGE,
            "examples: found the shape %s of %d dimensions, expected 1 to %d, each 1 or more, and "
            "at most %d numbers",
            words, data->shape.rank, MAX_RANK - 1, INT32_MAX);
    }
    if (data->task < TRAINER_CLASSES || data->task > TRAINER_VALUES)
        return error_set(error, ERROR_USAGE, "examples: task %d, expected 0 to 2", (int)data->task);
    if (data->outputs < least || data->outputs > NUMBERS_MOST)
        return error_set(error, ERROR_USAGE, "examples: found %d outputs, expected %d to %d", data->outputs,
                         least, NUMBERS_MOST);
    RETURN_IF(check_part(&data->train, "the examples to train on", error));
    return data->test.count != 0 ? check_part(&data->test, "the examples to test on", error) : OK;
}

int trainer_training_data(struct trainer_training *training, const struct trainer_data *data,
                          struct trainer_error *error) {
    struct error why = {0};
    if (check_data(data, &why) == OK) {
        training->data = *data;
        training->own_data = true;
    }
    return library_tell(&why, error);
}
