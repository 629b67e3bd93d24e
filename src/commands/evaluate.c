/* trainer evaluate: accuracy and cost of a trained network on its test set, or on another data set. */
#include <stdio.h>
#include <string.h>

#include "../config/config.h"
#include "../data/dataset.h"
#include "../infer/restore.h"
#include "../outputs/progress.h"
#include "command.h"

struct evaluate_settings {
    char checkpoint[PATH_BYTES], dataset[1024], data_dir[PATH_BYTES];
    int part, kernels;
};

enum part { PART_TEST, PART_TRAIN, PART_VALIDATION };

static const struct option rows[] = {
    OPTION_ROW(TEXT, "checkpoint", struct evaluate_settings, checkpoint, .value = "PATH",
               .help = "folder of a run, or a .safetensors file that it wrote; must be given"),
    OPTION_ROW(TEXT, "dataset", struct evaluate_settings, dataset, .value = "NAME",
               .help = "data set to test on (default: the one of the training)"),
    OPTION_ROW(TEXT, "data-dir", struct evaluate_settings, data_dir, .value = "DIR",
               .help = "look for data sets here first"),
    OPTION_ROW(CHOICE, "part", struct evaluate_settings, part, .fallback = "test",
               .choices = "test|train|validation",
               .help = "which of its examples; validation: those that --validation held out of the training"),
    OPTION_ROW(CHOICE, "kernels", struct evaluate_settings, kernels, .fallback = "auto",
               .choices = "auto|reference", .help = "reference: only the plain kernels, without libraries"),
    {0},
};

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

static int evaluate_on(struct restored *restored, const struct dataset *dataset, const struct choice *choice,
                       enum part part, struct error *error) {
    const struct examples *const parts[] = {&dataset->test, &dataset->train, &dataset->validation};
    static const char *const names[] = {"Test", "Train", "Validation"};
    const struct examples *examples = parts[part];
    const char *name = names[part];
    struct evaluation result;
    if (!shape_equal(&dataset->shape, &restored->shape) || dataset->classes != restored->classes) {
        char have[64], want[64];
        return error_set(
            error, ERROR_USAGE,
            "%s: examples %s in %d classes, expected %s in %d classes, what the network was trained on",
            dataset->name, shape_text(&dataset->shape, have, sizeof have), dataset->classes,
            shape_text(&restored->shape, want, sizeof want), restored->classes);
    }
    if (examples->count == 0)
        return error_set(
            error, ERROR_USAGE,
            "--part=validation: there are no such examples, as the training held none out (--validation)");
    say_differs(safetensors_text(&restored->content, "dataset"), choice);
    RETURN_IF(evaluator_run(&restored->evaluator, examples, restored->weights, &result, error));
    printf("Examples: %d\n%s-Accuracy: %.4f\n%s-Cost: %.4f\n", result.examples, name, result.accuracy, name,
           result.cost);
    return OK;
}

/* What is wrong with a data set that nobody typed is wrong with the checkpoint that names it. */
static int choose_dataset(struct choice *choice, const struct evaluate_settings *settings, const char *text,
                          struct error *error) {
    struct error why = {0};
    if (settings->dataset[0]) return plugin_choose(choice, &dataset_kind, text, error);
    if (plugin_choose(choice, &dataset_kind, text, &why) == OK) return OK;
    return error_set(error, ERROR_FILE, "%s: %s; --dataset=NAME says what to test on", settings->checkpoint,
                     why.words);
}

/* What training held out of its data set is no part of what it trained on. */
static int hold_out(struct dataset *dataset, const struct restored *restored,
                    const struct evaluate_settings *settings, struct error *error) {
    const double share = checkpoint_real(&restored->content, "validation", 0.0);
    struct error why = {0};
    if (settings->dataset[0] || !(share > 0.0)) return OK;
    if (dataset_hold_out(dataset, share, &why) == OK) return OK;
    return error_set(error, ERROR_FILE, "%s: %s", settings->checkpoint, why.words);
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    (void)arguments, (void)argument_count;
    const struct evaluate_settings *settings = settings_given;
    struct restored restored = {0};
    struct dataset dataset = {0};
    struct choice choice = {0};
    if (!settings->checkpoint[0]) return error_set(error, ERROR_USAGE, "evaluate: expected --checkpoint=DIR");
    int code = restored_open(&restored, settings->checkpoint, settings->kernels == KERNELS_REFERENCE, error);
    if (code == OK) {
        const char *text =
            settings->dataset[0] ? settings->dataset : safetensors_text(&restored.content, "dataset");
        code = choose_dataset(&choice, settings, text ? text : "", error);
    }
    if (code == OK)
        code = dataset_open(&dataset, &choice, settings->data_dir[0] ? settings->data_dir : NULL, error);
    if (code == OK) code = hold_out(&dataset, &restored, settings, error);
    if (code == OK) code = evaluate_on(&restored, &dataset, &choice, (enum part)settings->part, error);
    dataset_close(&dataset);
    restored_close(&restored);
    return code;
}

const struct command command_evaluate = {
    .plugin = {.name = "evaluate",
               .help = "test a trained network: accuracy and cost",
               .options = rows,
               .settings_bytes = sizeof(struct evaluate_settings)},
    .examples = "trainer --dataset=digits --out=runs/digits\ntrainer evaluate --checkpoint=runs/digits\n",
    .run = run,
};
