/* trainer evaluate: accuracy and cost of a trained network on its test set, or on another data set. */
#include <math.h>
#include <stdio.h>

#include "../config/config.h"
#include "../infer/ensemble.h"
#include "../infer/tested.h"
#include "command.h"

struct evaluate_settings {
    char checkpoint[PATH_BYTES], dataset[1024], data_dir[PATH_BYTES];
    int part, views, kernels;
};

static const struct option rows[] = {
    OPTION_ROW(
        TEXT, "checkpoint", struct evaluate_settings, checkpoint, .value = "PATH",
        .help = "folder of a run or of an ensemble, or a .safetensors file that a run wrote; must be given"),
    OPTION_ROW(TEXT, "dataset", struct evaluate_settings, dataset, .value = "NAME",
               .help = "data set to test on (default: the one of the training)"),
    OPTION_ROW(TEXT, "data-dir", struct evaluate_settings, data_dir, .value = "DIR",
               .help = "look for data sets here first"),
    OPTION_ROW(CHOICE, "part", struct evaluate_settings, part, .fallback = "test",
               .choices = "test|train|validation",
               .help = "which of its examples; validation: those that --validation held out of the training"),
    OPTION_ROW(
        CHOICE, "views", struct evaluate_settings, views, .fallback = "plain", .choices = VIEWS_CHOICES,
        .help = "also the accuracy where each image is seen so often and the probabilities are averaged; "
                "flip: mirrored, too; flip+shift: these also moved by a pixel"),
    OPTION_ROW(CHOICE, "kernels", struct evaluate_settings, kernels, .fallback = "auto",
               .choices = "auto|reference", .help = "reference: only the plain kernels, without libraries"),
    {0},
};

static const char *const names[] = {"Test", "Train", "Validation"}; /* of the parts */

static void print_metrics(const char *name, const double value[METRICS]) {
    char words[METRIC_BYTES];
    for (enum metric m = 0; m < METRICS; m++)
        if (!isnan(value[m]))
            printf("%s-%s: %s\n", name, metric_rows[m].title, metric_plain(m, value[m], words));
}

/* Each member by itself, then all of them. */
static int evaluate_all(struct ensemble *ensemble, const struct tested *tested, struct error *error) {
    struct ensemble_result result;
    const char *name = names[tested->part];
    char words[METRIC_BYTES];
    const int code = ensemble_evaluate(ensemble, tested->examples, &result, error);
    if (code == OK) {
        printf("Examples: %d\n", tested->examples->count);
        for (int m = 0; m < ensemble->count; m++)
            printf("Member-%d: %s\n", m + 1, metric_plain(result.metric, result.member[m], words));
        print_metrics(name, result.value);
        if (result.metric == METRIC_ACCURACY)
            printf("%s-Accuracy: %.4f\n%s-Accuracy-By-Vote: %.4f\n%s-Cost: %.4f\n", name, result.score, name,
                   result.vote, name, result.cost);
    }
    ensemble_result_free(&result);
    return code;
}

static int evaluate_views(struct restored *restored, const struct tested *tested, enum views views,
                          struct error *error) {
    const char *name = names[tested->part], *by = views_titles[views];
    struct evaluation result;
    char words[METRIC_BYTES];
    RETURN_IF(evaluator_run_views(&restored->evaluator, tested->examples, restored->weights, views, &result,
                                  error));
    printf("%s-Accuracy-By-%s: %s\n%s-Cost-By-%s: %.4f\n", name, by,
           metric_plain(METRIC_ACCURACY, result.score, words), name, by, result.cost);
    return OK;
}

static int evaluate_on(struct ensemble *ensemble, const struct tested *tested, enum views views,
                       struct error *error) {
    struct restored *restored = &ensemble->members[0];
    const char *name = names[tested->part];
    struct evaluation result;
    if (ensemble->listed && views != VIEWS_PLAIN)
        return error_set(error, ERROR_USAGE, "--views: found an ensemble, expected a single network");
    if (ensemble->listed) return evaluate_all(ensemble, tested, error);
    RETURN_IF(evaluator_run(&restored->evaluator, tested->examples, restored->weights, &result, error));
    printf("Examples: %d\n", result.examples);
    print_metrics(name, result.value);
    printf("%s-Cost: %.4f\n", name, result.cost);
    return views == VIEWS_PLAIN ? OK : evaluate_views(restored, tested, views, error);
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    (void)arguments, (void)argument_count;
    const struct evaluate_settings *settings = settings_given;
    struct ensemble ensemble = {0};
    struct tested tested = {0};
    if (!settings->checkpoint[0]) return error_set(error, ERROR_USAGE, "evaluate: expected --checkpoint=DIR");
    const struct tested_settings test = {.checkpoint = settings->checkpoint,
                                         .dataset = settings->dataset,
                                         .data_dir = settings->data_dir,
                                         .part = (enum tested_part)settings->part};
    int code = ensemble_open(&ensemble, settings->checkpoint, settings->kernels == KERNELS_REFERENCE, error);
    if (code == OK) code = tested_open(&tested, &ensemble.members[0], &test, error);
    if (code == OK) code = evaluate_on(&ensemble, &tested, (enum views)settings->views, error);
    tested_close(&tested);
    ensemble_close(&ensemble);
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
