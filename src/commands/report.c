/* trainer report: a page about what runs left in their folders. */
#include <math.h>
#include <stdio.h>

#include "../base/memory.h"
#include "../formats/checkpoint.h"
#include "../infer/tested.h"
#include "../report/collection.h"
#include "../report/confused.h"
#include "../report/looks_for.h"
#include "../report/report.h"
#include "../run/folder.h"
#include "command.h"

struct report_settings {
    char out[PATH_BYTES], data_dir[PATH_BYTES];
    bool confusion, confusion_given, replace;
    double from_s, length_s, target_accuracy;
};

static const struct option rows[] = {
    OPTION_ROW(TEXT, "out", struct report_settings, out, .value = "FILE",
               .help = "the page (default report.html in the folder of the run or of the comparison, for "
                       "several folders in the current one)"),
    OPTION_ROW(REAL, "from", struct report_settings, from_s, .least = 0, .most = 1e9, .unit = "s",
               .help = "the timeline begins after this much training (default: with the first step)"),
    OPTION_ROW(REAL, "length", struct report_settings, length_s, .least = 1e-6, .most = 1e9, .unit = "s",
               .help = "so much of the training is in the timeline (default: some steps of each worker)"),
    OPTION_ROW(REAL, "target-accuracy", struct report_settings, target_accuracy, .least = 0, .most = 1,
               .help = "of several runs: the test accuracy to which the seconds are counted (default: one "
                       "that all runs reach)"),
    OPTION_ROW(FLAG, "confusion", struct report_settings, confusion, .fallback = "1",
               .given = offsetof(struct report_settings, confusion_given),
               .help = "of one run: leave out what a test of its network shows: what it confuses, which "
                       "examples are wrong, and its filters"),
    OPTION_ROW(TEXT, "data-dir", struct report_settings, data_dir, .value = "DIR",
               .help = "look for the run's data set here first"),
    OPTION_ROW(FLAG, "replace", struct report_settings, replace,
               .help = "replace what is there, even if it is not a page of trainer"),
    {0},
};

static int collect(struct collection *collection, const char *const *folders, int count,
                   struct error *error) {
    for (int i = 0; i < count; i++) {
        char folder[PATH_BYTES];
        checkpoint_run(folders[i], folder);
        RETURN_IF(collection_add(collection, folder, error));
    }
    collection_part_labels(collection);
    return OK;
}

static int choose_path(char path[PATH_BYTES], const struct report_settings *settings,
                       const char *const *folders, int count, struct error *error) {
    char folder[PATH_BYTES];
    snprintf(path, PATH_BYTES, "%s", settings->out[0] ? settings->out : "report.html");
    if (settings->out[0] || count > 1) return OK;
    checkpoint_run(folders[0], folder);
    return file_join(path, folder, "report.html", error);
}

/* --- the network of a run --- */

/* What it says of the test examples, and its first layer. */
struct again {
    struct restored restored;
    struct tested tested;
    int *said;            /* [test examples] owned */
    float *probabilities; /* [test examples][classes] owned */
    struct confused confused;
    struct looks_for looks_for;
    struct report_section sections[2];
    int count; /* of the sections */
};

static void again_close(struct again *again) {
    looks_for_close(&again->looks_for);
    confused_close(&again->confused);
    memory_free(again->said);
    memory_free(again->probabilities);
    tested_close(&again->tested);
    restored_close(&again->restored);
}

static int test_again(struct again *again, const char *folder, const struct report_settings *settings,
                      struct error *error) {
    const struct tested_settings test = {
        .checkpoint = folder, .dataset = "", .data_dir = settings->data_dir, .part = TESTED_TEST};
    if (again->restored.task != TASK_CLASSES)
        return settings->confusion_given
                   ? error_set(error, ERROR_USAGE, "%s: the network says no classes to be confused", folder)
                   : OK;
    RETURN_IF(tested_open(&again->tested, &again->restored, &test, error));
    const struct dataset *dataset = &again->tested.dataset;
    const long examples = again->tested.examples->count;
    RETURN_IF(memory_array(&again->said, examples, "what the network says", error));
    RETURN_IF(memory_array(&again->probabilities, examples * dataset->classes, "probabilities", error));
    RETURN_IF(evaluator_predict(&again->restored.evaluator, again->tested.examples, again->restored.weights,
                                again->probabilities, again->said, error));
    const struct answers answers = {.said = again->said, .probabilities = again->probabilities};
    RETURN_IF(confused_open(&again->confused, dataset, &answers, error));
    again->sections[again->count++] = confused_section(&again->confused);
    return OK;
}

/* Needs no data set. */
static int look(struct again *again, struct error *error) {
    const struct restored *restored = &again->restored;
    int seen[3];
    bool there = false;
    if (!restored_seen(restored, seen)) return OK;
    RETURN_IF(looks_for_open(&again->looks_for, seen, &restored->evaluator.pass[EVALUATE_WHOLE].network.graph,
                             restored->weights, &there, error));
    if (there) again->sections[again->count++] = looks_for_section(&again->looks_for);
    return OK;
}

/* Unless it was asked for by name, a page without it is better than none. */
static int go_without(const struct report_settings *settings, const char *what, int code,
                      const struct error *why, struct error *error) {
    if (code == OK) return OK;
    if (settings->confusion_given || code == ERROR_DEVICE) return error_set(error, code, "%s", why->words);
    fprintf(stderr, "trainer: the page is made without %s: %s\n", what, why->words);
    return OK;
}

static int again_open(struct again *again, const char *folder, const struct report_settings *settings,
                      struct error *error) {
    struct error why = {0};
    int code = restored_open(&again->restored, folder, false, &why);
    if (code != OK) return go_without(settings, "mistakes and filters", code, &why, error);
    code = test_again(again, folder, settings, &why);
    RETURN_IF(go_without(settings, "the mistakes of the network", code, &why, error));
    return look(again, error);
}

static int write_page(const char *path, struct report *report, const struct report_settings *settings,
                      struct error *error) {
    struct again again = {0};
    int code = OK;
    if (settings->confusion_given && settings->confusion && report->count > 1)
        return error_set(error, ERROR_USAGE, "report: --confusion is about one run, found %d", report->count);
    if (settings->confusion && report->count == 1)
        code = again_open(&again, report->runs[0].folder, settings, error);
    report->more = again.sections;
    report->more_count = again.count;
    if (code == OK) code = report_write(path, report, error);
    again_close(&again);
    return code;
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    const struct report_settings *settings = settings_given;
    struct collection collection = {.list = FOLDER_COMPARISON};
    char path[PATH_BYTES];
    if (argument_count == 0)
        return error_set(error, ERROR_USAGE, "report: expected the folder of a run, or several");
    int code = choose_path(path, settings, arguments, argument_count, error);
    if (code == OK) code = collect(&collection, arguments, argument_count, error);
    if (code == OK && !settings->replace) code = report_check_free(path, error);
    struct report report = {.runs = collection.runs,
                            .count = collection.count,
                            .sweep = &collection.sweep,
                            .from_s = settings->from_s,
                            .length_s = settings->length_s,
                            .target_accuracy = settings->target_accuracy};
    if (code == OK) code = write_page(path, &report, settings, error);
    if (code == OK) printf("The report is in %s\n", path);
    collection_free(&collection);
    return code;
}

const struct command command_report = {
    .plugin = {.name = "report",
               .help = "make a page about a run, or about several side by side",
               .options = rows,
               .settings_bytes = sizeof(struct report_settings)},
    .arguments = "DIR...",
    .examples = "trainer --dataset=digits --out=runs/digits\n"
                "trainer report runs/digits\n"
                "# without testing its network again\n"
                "trainer report runs/digits --no-confusion\n"
                "# two milliseconds of it, step by step\n"
                "trainer report runs/digits --from=0.001 --length=0.002\n"
                "# side by side: two runs, or all of a comparison\n"
                "trainer --dataset=digits --strategy=ssp --out=runs/ssp\n"
                "trainer report runs/digits runs/ssp --out=both.html\n"
                "trainer bench --strategies=sync,ssp --epochs=5 --repeats=2 --out=runs/bench\n"
                "trainer report runs/bench\n",
    .completes = "FILE",
    .run = run,
};
