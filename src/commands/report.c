/* trainer report: a page about what runs left in their folders. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../formats/checkpoint.h"
#include "../infer/tested.h"
#include "../report/confused.h"
#include "../report/looks_for.h"
#include "../report/report.h"
#include "../run/folder.h"
#include "command.h"

enum { LIST_BYTES = 1 << 20, NAME_BYTES = 208, RUNS_MOST = 1000 };

struct report_settings {
    char out[PATH_BYTES], data_dir[PATH_BYTES];
    bool confusion;
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
    OPTION_ROW(FLAG, "confusion", struct report_settings, confusion,
               .help = "of one run: test its network again, and show what it confuses and which examples are "
                       "wrong"),
    OPTION_ROW(TEXT, "data-dir", struct report_settings, data_dir, .value = "DIR",
               .help = "for --confusion: look for data sets here first"),
    {0},
};

/* The runs of all folders, read one after the other. */
struct collection {
    struct facts *runs; /* [count] owned */
    int count, groups;
};

static void collection_free(struct collection *collection) {
    for (int i = 0; i < collection->count; i++) facts_free(&collection->runs[i]);
    memory_free(collection->runs);
}

/* steps.csv is large: of a group only the first run has it read. */
static int add_run(struct collection *collection, const char *folder, const char *label, bool first,
                   struct error *error) {
    if (collection->count == RUNS_MOST)
        return error_set(error, ERROR_USAGE, "report: expected at most %d runs", RUNS_MOST);
    RETURN_IF(memory_grow(&collection->runs, collection->count, collection->count + 1, "the runs", error));
    struct facts *facts = &collection->runs[collection->count++];
    RETURN_IF(facts_read(facts, folder, first ? FACTS_ALL : FACTS_CURVES, error));
    collection->groups += first;
    facts->group = collection->groups;
    snprintf(facts->label, sizeof facts->label, "%s", label);
    return OK;
}

/* --- comparisons --- */

/* The strategy as it was typed, where the name of the folder is made from it; else that of a baseline, in
 * which blanks and commas became dashes. */
static void name_contender(struct facts *facts, const char *folder) {
    const char *strategy = facts_setting(facts, "strategy");
    bool same = strategy != NULL && strlen(strategy) == strlen(folder);
    for (size_t i = 0; same && folder[i]; i++)
        same = strategy[i] == folder[i] || (folder[i] == '-' && !isalnum((unsigned char)strategy[i]));
    snprintf(facts->label, sizeof facts->label, "%s", same ? strategy : folder);
    for (char *c = facts->label; !same && *c; c++) {
        if (c[0] == '-' && c[1] == '-') *c = ',';
        if (*c == '-') *c = ' ';
    }
}

/* A line of the list, "sync 3": the runs sync/1 to sync/3, as far as they are there. */
static int add_contender(struct collection *collection, const char *folder, const char *line,
                         struct error *error) {
    char name[NAME_BYTES], run[PATH_BYTES], path[PATH_BYTES];
    int repeats = 0;
    bool first = true;
    if (sscanf(line, "%207s %d", name, &repeats) != 2 || strchr(name, '/') || name[0] == '.') return OK;
    for (int n = 1; n <= repeats && n <= RUNS_MOST; n++) {
        snprintf(run, sizeof run, "%s/%d", name, n);
        RETURN_IF(file_join(path, folder, run, error));
        if (!facts_there(path)) continue;
        RETURN_IF(add_run(collection, path, "", first, error));
        name_contender(&collection->runs[collection->count - 1], name);
        first = false;
    }
    return OK;
}

static int add_comparison(struct collection *collection, const char *folder, const char *list,
                          struct error *error) {
    char *text = NULL;
    size_t bytes = 0;
    const int before = collection->count;
    int code = file_read_plain(list, LIST_BYTES, &text, &bytes, error);
    char *rest = text;
    for (char *line; code == OK && (line = strsep(&rest, "\n")) != NULL;)
        code = add_contender(collection, folder, line, error);
    memory_free(text);
    if (code == OK && collection->count == before)
        return error_set(error, ERROR_FILE, "%s: a comparison without a run", folder);
    return code;
}

/* --- folders --- */

/* Its last part, unless that is no name. */
static const char *label_of(const char *folder) {
    const char *slash = strrchr(folder, '/');
    return slash && slash[1] && slash[1] != '.' ? slash + 1 : folder;
}

static int add_folder(struct collection *collection, const char *folder, struct error *error) {
    char list[PATH_BYTES];
    RETURN_IF(file_join(list, folder, FOLDER_COMPARISON, error));
    if (file_exists(list)) return add_comparison(collection, folder, list, error);
    return add_run(collection, folder, label_of(folder), true, error);
}

/* Runs of the same name in other folders are told apart by their paths. */
static void part_labels(struct collection *collection) {
    for (int i = 0; i < collection->count; i++)
        for (int j = i + 1; j < collection->count; j++) {
            struct facts *a = &collection->runs[i], *b = &collection->runs[j];
            if (a->group == b->group || strcmp(a->label, b->label) != 0) continue;
            snprintf(b->label, sizeof b->label, "%s", b->folder);
        }
}

static int collect(struct collection *collection, const char *const *folders, int count,
                   struct error *error) {
    for (int i = 0; i < count; i++) {
        char folder[PATH_BYTES];
        checkpoint_run(folders[i], folder);
        RETURN_IF(add_folder(collection, folder, error));
    }
    part_labels(collection);
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

/* The network of a run, tested again. */
struct again {
    struct restored restored;
    struct tested tested;
    int *said;            /* [test examples] owned */
    float *probabilities; /* [test examples][classes] owned */
    struct confused confused;
    struct looks_for looks_for;
    bool looks; /* for something that can be shown */
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
    RETURN_IF(restored_open(&again->restored, folder, false, error));
    RETURN_IF(tested_open(&again->tested, &again->restored, &test, error));
    const struct dataset *dataset = &again->tested.dataset;
    const long examples = again->tested.examples->count;
    RETURN_IF(memory_array(&again->said, examples, "what the network says", error));
    RETURN_IF(memory_array(&again->probabilities, examples * dataset->classes, "probabilities", error));
    RETURN_IF(evaluator_predict(&again->restored.evaluator, again->tested.examples, again->restored.weights,
                                again->probabilities, again->said, error));
    const struct answers answers = {.said = again->said, .probabilities = again->probabilities};
    RETURN_IF(confused_open(&again->confused, dataset, &answers, error));
    return looks_for_open(&again->looks_for, dataset, &again->restored.evaluator.network.graph,
                          again->restored.weights, &again->looks, error);
}

/* With the sections that --confusion asks for. */
static int write_page(const char *path, struct report *report, const struct report_settings *settings,
                      struct error *error) {
    struct again again = {0};
    struct report_section sections[2];
    int code = OK;
    if (settings->confusion && report->count > 1)
        return error_set(error, ERROR_USAGE, "report: --confusion is about one run, found %d", report->count);
    if (settings->confusion) {
        code = test_again(&again, report->runs[0].folder, settings, error);
        sections[0] = confused_section(&again.confused);
        sections[1] = looks_for_section(&again.looks_for);
        report->more = sections;
        report->more_count = again.looks ? 2 : 1;
    }
    if (code == OK) code = report_write(path, report, error);
    again_close(&again);
    return code;
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    const struct report_settings *settings = settings_given;
    struct collection collection = {0};
    char path[PATH_BYTES];
    if (argument_count == 0)
        return error_set(error, ERROR_USAGE, "report: expected the folder of a run, or several");
    int code = collect(&collection, arguments, argument_count, error);
    if (code == OK) code = choose_path(path, settings, arguments, argument_count, error);
    struct report report = {.runs = collection.runs,
                            .count = collection.count,
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
                "# with the test examples that its network gets wrong\n"
                "trainer report runs/digits --confusion\n"
                "# ten milliseconds of it, step by step\n"
                "trainer report runs/digits --from=0.5 --length=0.01\n"
                "# side by side: two runs, or all of a comparison\n"
                "trainer --dataset=digits --strategy=ssp --out=runs/ssp\n"
                "trainer report runs/digits runs/ssp --out=both.html\n"
                "trainer bench --strategies=sync,ssp --epochs=5 --repeats=2 --out=runs/bench\n"
                "trainer report runs/bench\n",
    .completes = "FILE",
    .run = run,
};
