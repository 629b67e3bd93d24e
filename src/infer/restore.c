/* From a checkpoint file to a network that can run. */
#include "restore.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../config/config.h"
#include "../data/augment.h"
#include "../graph/model.h"
#include "units.h"

static int missing(const char *path, const char *name, struct error *error) {
    return error_set(error, ERROR_FILE,
                     "%s: no usable \"%s\" among its texts; expected a checkpoint or model of this program",
                     path, name);
}

/* Splits the text of that name, "a\tb\tc", into names[count], which point into *block. */
static int split_names(const struct restored *restored, const char *path, const char *name, int count,
                       char ***names, char **block, struct error *error) {
    RETURN_IF(memory_text(block, safetensors_text(&restored->content, name), error));
    RETURN_IF(memory_array(names, count, "names", error));
    char *at = *block;
    for (int i = 0; i < count; i++) {
        (*names)[i] = at;
        char *end = strchr(at, '\t');
        if ((end != NULL) != (i < count - 1)) return missing(path, name, error);
        if (end) *end = '\0';
        at = end ? end + 1 : at;
    }
    return OK;
}

static int read_shape(struct restored *restored, const char *path, struct error *error) {
    const long long classes = checkpoint_number(&restored->content, "classes", 0);
    if (!checkpoint_shape(&restored->content, &restored->shape)) return missing(path, "shape", error);
    if (classes < 1 || classes > 1000000) return missing(path, "classes", error);
    restored->features = (int)shape_count(&restored->shape);
    restored->classes = (int)classes;
    return OK;
}

static int read_reals(struct restored *restored, const char *path, const char *name, int count,
                      float **values, struct error *error) {
    const char *text = safetensors_text(&restored->content, name);
    if (!text) return OK;
    RETURN_IF(memory_array(values, count, name, error));
    return checkpoint_reals(text, *values, count) ? OK : missing(path, name, error);
}

/* How rows are brought to mean 0 and deviation 1; both are there, or none. */
static int read_spread(struct restored *restored, const char *path, struct error *error) {
    RETURN_IF(read_reals(restored, path, "mean", restored->features, &restored->mean, error));
    RETURN_IF(read_reals(restored, path, "deviation", restored->features, &restored->deviation, error));
    if (!restored->mean != !restored->deviation)
        return missing(path, restored->mean ? "deviation" : "mean", error);
    for (int i = 0; restored->deviation && i < restored->features; i++)
        if (!(restored->deviation[i] > 0.0f)) return missing(path, "deviation", error);
    return OK;
}

/* What raw features are multiplied by, which is no more than a unit. */
static int read_scale(struct restored *restored, const char *path, struct error *error) {
    const bool there = safetensors_text(&restored->content, "scale") != NULL;
    restored->scale = there ? (float)checkpoint_real(&restored->content, "scale", 0.0) : 1.0f;
    return restored->scale > 0.0f && isfinite(restored->scale) ? OK : missing(path, "scale", error);
}

/* What is cut out of an image must be what the network is given. */
static int read_image(struct restored *restored, const char *path, struct error *error) {
    const char *text = safetensors_text(&restored->content, "image");
    struct augment *augment = &restored->augment;
    if (!text) return OK;
    if (!augment_from_text(augment, text) ||
        restored->features != augment->rows * augment->columns * augment->channels)
        return missing(path, "image", error);
    return OK;
}

static int read_fit(struct restored *restored, const char *path, struct error *error) {
    const char *text = safetensors_text(&restored->content, "fit");
    if (!text) return OK;
    for (enum picture_fit fit = PICTURE_CROP; fit < PICTURE_FITS; fit++)
        if (strcmp(text, picture_fits[fit]) == 0) restored->fit = fit;
    return restored->fit != PICTURE_NONE ? OK : missing(path, "fit", error);
}

static int read_dataset(struct restored *restored, const char *path, struct error *error) {
    const char *classes = safetensors_text(&restored->content, "class_names");
    const char *features = safetensors_text(&restored->content, "feature_names");
    if (!classes) return missing(path, "class_names", error);
    RETURN_IF(split_names(restored, path, "class_names", restored->classes, &restored->class_names,
                          &restored->blocks[0], error));
    if (features)
        RETURN_IF(split_names(restored, path, "feature_names", restored->features, &restored->feature_names,
                              &restored->blocks[1], error));
    RETURN_IF(read_scale(restored, path, error));
    restored->light.whole = checkpoint_real(&restored->content, "light", (double)NAN);
    restored->light.border = checkpoint_real(&restored->content, "light_border", (double)NAN);
    RETURN_IF(read_image(restored, path, error));
    RETURN_IF(read_fit(restored, path, error));
    RETURN_IF(read_spread(restored, path, error));
    return units_read(&restored->units, &restored->content, path, restored->classes, error);
}

/* What it was trained with; a file of a program that knew but classes names neither. */
static int read_loss(struct restored *restored, const char *path, enum loss *loss, struct error *error) {
    const char *task = safetensors_text(&restored->content, "task");
    const char *asked = safetensors_text(&restored->content, "loss");
    struct config config = {0};
    struct error why = {0};
    if (task && !task_named(&restored->task, task)) return missing(path, "task", error);
    int code = asked ? option_set(config_options, &config, path, "loss", asked, &why) : OK;
    if (code == OK) code = loss_choose(loss, (enum loss)config.loss, 0.0, restored->task, path, &why);
    return code == OK ? OK : error_set(error, ERROR_FILE, "%s", why.words);
}

/* Of another data set, or of an earlier version: numbers, then, of classes, a label of which nothing is
 * known.
 */
static int make_columns(struct restored *restored, struct error *error) {
    struct columns *columns = &restored->columns;
    const int numbers = restored_numbers(restored), all = numbers + (restored->task == TASK_CLASSES);
    RETURN_IF(columns_open(columns, all, error));
    columns->named = restored->feature_names != NULL && numbers == restored->features;
    for (int c = 0; c < all; c++) {
        const char *name = columns->named && c < numbers ? restored->feature_names[c] : "";
        RETURN_IF(memory_text(&columns->at[c].name, name, error));
        columns->at[c].role = c < numbers ? COLUMN_NUMBER : COLUMN_LABEL;
    }
    return OK;
}

/* How rows of a table become examples. The values of the label are the classes. */
static int read_columns(struct restored *restored, const char *path, struct error *error) {
    const char *text = safetensors_text(&restored->content, "columns");
    struct columns *columns = &restored->columns;
    int label = 0, number;
    if (!text) {
        RETURN_IF(make_columns(restored, error));
    } else if (!columns_read(columns, text, error) || columns_features(columns) != restored->features ||
               restored_numbers(restored) != restored->features) {
        return error->code != OK ? error->code : missing(path, "columns", error);
    }
    while (label < columns->count && columns->at[label].role != COLUMN_LABEL) label++;
    for (int c = 0; label < columns->count && c < restored->classes; c++) {
        RETURN_IF(categories_add(&columns->at[label].values, restored->class_names[c], 0, &number, error));
        if (number != c) return missing(path, "class_names", error);
    }
    return OK;
}

static int open_parts(struct restored *restored, const char *path, bool reference_only, struct error *error) {
    const struct device_settings settings = {.reference_only = reference_only};
    int count = 0;
    bool shared = false;
    RETURN_IF(checkpoint_read(path, &restored->content, error));
    const char *model = safetensors_text(&restored->content, "model");
    if (!model) return missing(path, "model", error);
    RETURN_IF(plugin_choose(&restored->model, &model_kind, model, error));
    RETURN_IF(read_shape(restored, path, error));
    RETURN_IF(read_dataset(restored, path, error));
    enum loss loss = LOSS_AUTO;
    RETURN_IF(read_loss(restored, path, &loss, error));
    RETURN_IF(read_columns(restored, path, error));
    RETURN_IF(devices_open("cpu:0", &settings, &restored->devices, &count, &shared, error));
    const struct network_settings network = {.model = &restored->model,
                                             .shape = restored->shape,
                                             .codes = columns_codes(&restored->columns),
                                             .classes = restored->classes,
                                             .task = restored->task,
                                             .loss = loss,
                                             .shards = 1};
    RETURN_IF(evaluator_open(&restored->evaluator, &network, &restored->devices[0], error));
    restored->evaluator.units = restored->units;
    const struct layout *layout = &restored->evaluator.pass[EVALUATE_WHOLE].network.graph.layout;
    const char *prefix = checkpoint_has(&restored->content, "average", layout) ? "average:" : "";
    RETURN_IF(checkpoint_fits(path, &restored->content, prefix, layout, false, error));
    RETURN_IF(memory_array(&restored->weights, layout->floats, "the weights", error));
    return checkpoint_load(path, &restored->content, prefix, layout, false, restored->weights, error);
}

int restored_open(struct restored *restored, const char *path, bool reference_only, struct error *error) {
    struct error why = {0};
    *restored = (struct restored){0};
    const int code = open_parts(restored, path, reference_only, &why);
    if (code == ERROR_USAGE) /* of a setting that nobody typed: the file has it */
        return error_set(error, ERROR_FILE, "%s: %s", path, why.words);
    return code == OK ? OK : error_set(error, code, "%s", why.words);
}

/* Only pictures have a light, or something that is cut out of them. */
bool restored_seen(const struct restored *restored, int seen[3]) {
    const struct augment none = {0};
    const bool pictures = isfinite(restored->light.whole) || restored->augment.rows > 0;
    return pictures && light_size(seen, &restored->shape, &none);
}

int restored_numbers(const struct restored *restored) {
    const struct augment *augment = &restored->augment;
    return augment->height > 0 ? augment->height * augment->width * augment->channels : restored->features;
}

void restored_close(struct restored *restored) {
    evaluator_close(&restored->evaluator);
    devices_close(restored->devices, 1);
    memory_free(restored->weights);
    memory_free((void *)restored->class_names);
    memory_free((void *)restored->feature_names);
    memory_free(restored->mean);
    memory_free(restored->deviation);
    columns_close(&restored->columns);
    memory_free(restored->units.mean);
    memory_free(restored->units.deviation);
    memory_free(restored->blocks[0]);
    memory_free(restored->blocks[1]);
    safetensors_free(&restored->content);
    *restored = (struct restored){0};
}
