/* See tested.h. */
#include "tested.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../data/standardize.h"
#include "../record/progress.h"
#include "units.h"

/* A crop, a split or a file that differs makes other examples of it: the figures are not those of training.
 */
static void say_differs(const char *trained, const struct choice *choice) {
    struct choice own;
    struct progress progress;
    struct error ignored = {0};
    if (!trained) return;
    if (plugin_choose(&own, &dataset_kind, trained, &ignored) == OK && dataset_same(&own, choice)) return;
    progress_open(&progress, stderr, false);
    progress_warn(&progress, "evaluated on %s, but the network was trained on %s", choice->text, trained);
}

void tested_say_changed(const struct safetensors *checkpoint, const char *who, const char *dataset,
                        double validation, const char *slice, long examples) {
    const char *trained = safetensors_text(checkpoint, "dataset");
    const char *part = safetensors_text(checkpoint, "data-slice");
    const long then = (long)checkpoint_number(checkpoint, "train_examples", examples);
    const double held = checkpoint_real(checkpoint, "validation", 0.0);
    const bool same = trained && strcmp(trained, dataset) == 0 && strcmp(part ? part : "all", slice) == 0;
    struct progress progress;
    progress_open(&progress, stderr, false);
    if (same && validation > held + 1e-9)
        progress_warn(
            &progress,
            "%.200s held out %g for validation, and %g is held out now: what was trained on is among "
            "what the epochs are judged by",
            who, held, validation);
    else if (same && fabs(held - validation) <= 1e-9 && then >= 1 && then != examples && examples != 0)
        progress_warn(
            &progress,
            "%.200s was trained on %ld examples, the training part of %.200s has %ld now: what was trained "
            "on may be among what is tested",
            who, then, dataset, examples);
}

/* What was typed has nothing held out. */
static void say_changed(const struct restored *restored, const struct choice *choice, bool typed,
                        const struct dataset *dataset) {
    const char *slice = safetensors_text(&restored->content, "data-slice");
    tested_say_changed(&restored->content, "the network", choice->text,
                       typed ? 0.0 : checkpoint_real(&restored->content, "validation", 0.0),
                       typed || !slice ? "all" : slice, dataset->train.count);
}

/* What is wrong with a data set that nobody typed is wrong with the checkpoint that names it. */
static int choose(struct choice *choice, const struct restored *restored,
                  const struct tested_settings *settings, struct error *error) {
    const char *trained = safetensors_text(&restored->content, "dataset");
    struct error why = {0};
    if (settings->dataset[0]) return plugin_choose(choice, &dataset_kind, settings->dataset, error);
    if (plugin_choose(choice, &dataset_kind, trained ? trained : "", &why) == OK) return OK;
    return error_set(error, ERROR_FILE, "%s: %s; --dataset=NAME says what to test on", settings->checkpoint,
                     why.words);
}

/* What training held out of its data set is no part of what it trained on, nor what other slices had. */
static int hold_out(struct dataset *dataset, const struct restored *restored,
                    const struct tested_settings *settings, struct error *error) {
    const double share = checkpoint_real(&restored->content, "validation", 0.0);
    struct error why = {0};
    const char *slice = safetensors_text(&restored->content, "data-slice");
    if (settings->dataset[0]) return OK;
    const int code = share > 0.0 ? dataset_hold_out(dataset, share, &why) : OK;
    if (code == OK && dataset_slice(dataset, slice ? slice : "all", &why) == OK) return OK;
    return error_set(error, ERROR_FILE, "%s: %s", settings->checkpoint, why.words);
}

static int check(const struct tested *tested, const struct restored *restored, struct error *error) {
    const struct dataset *dataset = &tested->dataset;
    RETURN_IF(dataset_expect(dataset, &restored->shape, restored->task, restored->classes, error));
    RETURN_IF(dataset_expect_names(dataset, safetensors_text(&restored->content, "class_names"),
                                   safetensors_text(&restored->content, "feature_names"), error));
    const struct codes codes = columns_codes(&restored->columns);
    if (!codes_equal(&dataset->codes, &codes))
        return error_set(error, ERROR_USAGE,
                         "%s: found %d columns of categories with %d codes, expected %d with %d, what the "
                         "network was trained on",
                         dataset->name, dataset->codes.columns, dataset->codes.vocabulary, codes.columns,
                         codes.vocabulary);
    if (tested->examples->count > 0) return OK;
    return error_set(
        error, ERROR_USAGE,
        "--part=validation: there are no such examples, as the training held none out (--validation)");
}

/* *out = rows[count][width] in the units `there`, of the network, where they have the units `here`. */
static int change_units(const float *rows, int count, int width, const struct units *here,
                        const struct units *there, float **out, struct error *error) {
    const size_t numbers = (size_t)count * (size_t)width;
    RETURN_IF(memory_array(out, numbers, "numbers in other units", error));
    for (size_t i = 0, c = 0; i < numbers; i++, c = (c + 1) % (size_t)width)
        (*out)[i] = here->deviation ? rows[i] * here->deviation[c] + here->mean[c] : rows[i];
    if (there->deviation) standardize_apply(*out, count, width, there->mean, there->deviation);
    return OK;
}

/* Values in the units of the network, which are those of the data set that it was trained on. */
static int match_values(struct tested *tested, const struct units *units, struct error *error) {
    struct examples *examples = tested->examples;
    const struct units *own = &tested->dataset.units;
    if (tested->dataset.task != TASK_VALUES || units_equal(own, units, examples->outputs)) return OK;
    RETURN_IF(change_units(examples->targets, examples->count, examples->outputs, own, units,
                           &tested->targets, error));
    examples->targets = tested->targets;
    return OK;
}

/* Features likewise. Where they have no units there or here, the settings of the data set say so. */
static int match_features(struct tested *tested, const struct restored *restored, struct error *error) {
    struct examples *examples = tested->examples;
    const struct units own = {.mean = tested->dataset.mean, .deviation = tested->dataset.deviation},
                       there = {.mean = restored->mean, .deviation = restored->deviation};
    if (!own.deviation || !there.deviation || !examples->floats || examples->checked ||
        units_equal(&own, &there, examples->features))
        return OK;
    RETURN_IF(change_units(examples->floats, examples->count, examples->features, &own, &there,
                           &tested->features, error));
    examples->floats = tested->features;
    return OK;
}

int tested_open(struct tested *tested, const struct restored *restored,
                const struct tested_settings *settings, struct error *error) {
    struct choice choice = {0};
    *tested = (struct tested){.part = settings->part};
    struct examples *const parts[] = {&tested->dataset.test, &tested->dataset.train,
                                      &tested->dataset.validation};
    tested->examples = parts[settings->part];
    RETURN_IF(choose(&choice, restored, settings, error));
    RETURN_IF(
        dataset_open(&tested->dataset, &choice, settings->data_dir[0] ? settings->data_dir : NULL, error));
    progress_warn_of(tested->dataset.notice);
    RETURN_IF(hold_out(&tested->dataset, restored, settings, error));
    RETURN_IF(check(tested, restored, error));
    say_differs(safetensors_text(&restored->content, "dataset"), &choice);
    say_changed(restored, &choice, settings->dataset[0] != '\0', &tested->dataset);
    RETURN_IF(match_features(tested, restored, error));
    return match_values(tested, &restored->units, error);
}

void tested_close(struct tested *tested) {
    memory_free(tested->targets);
    memory_free(tested->features);
    dataset_close(&tested->dataset);
}
