/* What runs, and in which order. The baselines are one worker with the default strategy: it shares with no
 * other worker, so it is plain training. */
#include "compare.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../device/device.h"
#include "../engine/shares.h"
#include "../record/digits.h"
#include "../record/progress.h"
#include "folder.h"
#include "../run/folder.h"
#include "../run/setup.h"
#include "rows.h"

enum { FOLDER_MOST = 200 };

struct contender {
    struct typed typed;
    char folder[FOLDER_BYTES]; /* below settings.out */
    char device[80];           /* of a baseline, "cpu:0 x1" */
    struct wait_sums waits;
};

/* --- who runs --- */

/* A folder's name: what is not a letter, digit or one of "._=-" becomes "-". */
static void make_folder_name(char out[FOLDER_BYTES], const char *text) {
    size_t used = 0;
    for (; text[used] && used < FOLDER_MOST; used++)
        out[used] =
            (char)(isalnum((unsigned char)text[used]) || strchr("._=", text[used]) ? text[used] : '-');
    out[used] = '\0';
}

static void add_contender(struct comparison *comparison, const char *name, const char *devices, int workers,
                          int threads) {
    struct contender *contender = &comparison->contenders[comparison->bench.count];
    struct bench_row *row = &comparison->rows[comparison->bench.count++];
    contender->typed = comparison->typed;
    make_folder_name(contender->folder, name);
    row_open(row, comparison->bench.repeats);
    row->devices = devices;
    row->workers = workers;
    row->threads = threads;
    snprintf(row->name, sizeof row->name, "%s", name);
}

/* One healthy worker on the first device; with a prefetcher beside it only where the strategies have them
 * too. */
static void add_baseline(struct comparison *comparison, const char *name, int threads, bool spare_cores) {
    struct contender *contender = &comparison->contenders[comparison->bench.count];
    struct config *settings = &contender->typed.value;
    snprintf(contender->device, sizeof contender->device, "%s x%d", comparison->first, threads);
    add_contender(comparison, name, contender->device, 1, threads);
    comparison->rows[comparison->bench.count - 1].baseline = true;
    snprintf(settings->devices, sizeof settings->devices, "%s", comparison->first);
    settings->threads = threads;
    settings->group = 0;
    snprintf(settings->share, sizeof settings->share, "even");
    settings->schedule_pipeline = PIPELINE_NONE;
    settings->place[0] = settings->fail[0] = settings->stall[0] = settings->slow[0] = '\0';
    if (settings->prefetch == PREFETCH_AUTO && !spare_cores) settings->prefetch = 0;
}

/* Faults are for the strategies; that all are there is found out before the baselines run. */
static int check_faults(const struct setup *setup, const struct config *settings, struct error *error) {
    const int workers = setup->device_count;
    struct faults faults;
    char(*names)[GROUP_NAME_BYTES] = NULL;
    const char **list = NULL;
    RETURN_IF(faults_parse(&faults, settings->fail, settings->stall, settings->slow, error));
    int code = memory_array(&names, workers, "device names", error);
    if (code == OK) code = memory_array(&list, workers, "device names", error);
    for (int w = 0; w < workers && code == OK; w++) {
        setup_worker_name(setup, w, names[w]);
        list[w] = names[w];
    }
    if (code == OK) code = faults_check(&faults, list, workers, INT_MAX, error);
    memory_free((void *)list);
    memory_free(names);
    return code;
}

static void name_devices(struct comparison *comparison, const struct setup *setup) {
    const int workers = setup->device_count;
    struct text text = text_into(comparison->devices, sizeof comparison->devices);
    const char *devices = setup->config.devices;
    int named = strchr(devices, '-') != NULL && strlen(devices) + 20 < text.room ? workers : 0;
    if (named > 0) text_add(&text, "%s x%d", devices, setup->devices[0].threads);
    for (char name[GROUP_NAME_BYTES]; named < workers; named++) {
        setup_worker_name(setup, named, name);
        if (text.room - text.used < strlen(name) + 35) break;
        text_item(&text, ", ", "%s x%d", name, setup->devices[named].threads);
    }
    if (named < workers) text_add(&text, ", ... %d in all", workers);
    snprintf(comparison->first, sizeof comparison->first, "%s", setup->devices[0].name);
}

/* --share is for those strategies that can have it: the others have even shares. */
static bool takes_shares(const char *strategy) {
    struct error ignored = {0};
    struct phases *phases = NULL;
    bool takes = memory_array(&phases, 1, "a list of strategies", &ignored) == OK &&
                 phases_parse(phases, strategy, &ignored) == OK;
    for (int p = 0; takes && p < phases->count; p++) {
        const struct choice *choice = &phases->list[p].strategy;
        takes = strategy_traits(strategy_of(choice), choice_settings(choice))->weighs;
    }
    memory_free(phases);
    return takes;
}

/* A second baseline has all cores; for a device with cores of its own there is no such thing, and for one
 * that has them all already it would be the first one again. */
static void add_contenders(struct comparison *comparison, const struct setup *setup) {
    const struct device *devices = setup->devices;
    const int threads = devices[0].threads, workers = setup->device_count;
    struct cores all;
    int computing = 0;
    world_cores(&all);
    for (int d = 0; d < workers * setup->group; d++) computing += devices[d].threads;
    name_devices(comparison, setup);
    comparison->bench.threads = threads;
    add_baseline(comparison, "one device", threads, all.count > computing);
    /* In virtual time more threads are no faster. */
    if (!device_apart(&devices[0]) && all.count > threads && !comparison->typed.value.simulate[0]) {
        comparison->bench.cores = all.count;
        add_baseline(comparison, "one device, all cores", all.count, false);
    }
    for (int i = 0; i < comparison->list.count; i++) {
        struct config *settings = &comparison->contenders[comparison->bench.count].typed.value;
        add_contender(comparison, comparison->list.texts[i], comparison->devices, workers, threads);
        snprintf(settings->strategy, sizeof settings->strategy, "%s", comparison->list.texts[i]);
        const bool shares = takes_shares(settings->strategy);
        if (!shares) snprintf(settings->share, sizeof settings->share, "even");
        comparison->rows[comparison->bench.count - 1].may_share =
            shares && workers > 1 && shares_are_even(settings->share) && !settings->simulate[0];
    }
}

static int check_folders(const struct comparison *comparison, struct error *error) {
    for (int i = 0; i < comparison->bench.count; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(comparison->contenders[i].folder, comparison->contenders[j].folder) == 0)
                return error_set(error, ERROR_USAGE, "--strategies: \"%s\" is there twice",
                                 comparison->rows[i].name);
    return OK;
}

static void describe_bench(struct comparison *comparison) {
    const struct config *settings = &comparison->config;
    struct bench *bench = &comparison->bench;
    bench->simulated = comparison->simulated;
    /* A comparison with faults must not look like one without. */
    faults_text(comparison->faults, settings->fail, settings->stall, settings->slow);
    bench->model = settings->model;
    bench->dataset = settings->dataset;
    bench->optimizer = settings->optimizer;
    bench->schedule = settings->schedule;
    bench->devices = comparison->devices;
    bench->faults = comparison->faults;
    bench->epochs = settings->epochs;
    bench->batch = settings->batch_total > 0 ? settings->batch_total : settings->batch;
    bench->batch_of = settings->batch_total > 0 ? "in all" : "per worker";
    bench->seed = settings->seed;
    bench->target_accuracy = settings->target_accuracy;
    bench->rows = comparison->rows;
}

/* A strategy that ends by the validation part would hold one out for itself, and train on fewer examples than
 * the others. */
static int check_validation(const struct comparison *comparison, struct error *error) {
    struct phases *phases = NULL;
    int code = memory_array(&phases, 1, "a list of strategies", error);
    for (int i = 0; code == OK && i < comparison->list.count; i++) {
        const char *text = comparison->list.texts[i];
        code = phases_parse(phases, text, error);
        if (code == OK && phases_validate(phases) && !(comparison->config.validation > 0.0))
            code = error_set(error, ERROR_USAGE,
                             "--strategies: \"%.200s\" is judged by a validation part, expected "
                             "--validation=0.1 or so, for all that are compared",
                             text);
    }
    memory_free(phases);
    return code;
}

/* Whether all runs can be had: plug-ins, devices, places, faults; and the devices' names for the rows. */
static int look_at(struct comparison *comparison, struct setup *setup, struct error *error) {
    struct config *config = &comparison->typed.value;
    struct step_time step_time;
    int weights = 0;
    RETURN_IF(shares_check(config->share, &weights, error));
    RETURN_IF(config_begin(&comparison->config, &comparison->typed, error));
    RETURN_IF(setup_check_simulated(&comparison->config, &step_time, error));
    step_time_words(&step_time, comparison->simulated, sizeof comparison->simulated);
    setup->config = comparison->config;
    RETURN_IF(setup_choose(setup, 1, false, error));
    RETURN_IF(check_validation(comparison, error));
    comparison->folder_named = config->out[0];
    if (!comparison->folder_named)
        RETURN_IF(folder_name(config->out, setup->choices.model.plugin->name, "bench", error));
    RETURN_IF(setup_open_devices(setup, error));
    RETURN_IF(setup_check_simulated_devices(setup, error));
    setup->embedded = true;                                            /* the first run says it */
    if (setup->group > 1) RETURN_IF(setup_open_network(setup, error)); /* with --place */
    RETURN_IF(check_faults(setup, config, error));
    add_contenders(comparison, setup);
    return check_folders(comparison, error);
}

int compare_open(struct comparison *comparison, const struct typed *typed, const char *wanted, int repeats,
                 struct error *error) {
    struct setup *setup = NULL;
    *comparison = (struct comparison){.typed = *typed, .bench = {.repeats = repeats}};
    if (typed->value.seed + repeats - 1 > SEED_MOST)
        return error_set(error, ERROR_USAGE, "--seed=%ld: expected at most %ld with --repeats=%d",
                         typed->value.seed, SEED_MOST - repeats + 1, repeats);
    RETURN_IF(strategy_list_parse(&comparison->list, wanted, error));
    const int most = comparison->list.count + 2;
    RETURN_IF(memory_array(&comparison->contenders, most, "contenders", error));
    RETURN_IF(memory_array(&comparison->rows, most, "rows", error));
    RETURN_IF(memory_array(&setup, 1, "what a comparison starts from", error));
    const int code = look_at(comparison, setup, error);
    setup_close(setup);
    memory_free(setup);
    describe_bench(comparison);
    return code;
}

void compare_close(struct comparison *comparison) {
    bench_runs_close(&comparison->runs);
    memory_free(comparison->rows);
    memory_free(comparison->contenders);
    strategy_list_free(&comparison->list);
    *comparison = (struct comparison){0};
}

/* --- the runs --- */

static void show_next(struct progress *progress, const struct comparison *comparison, const char *name,
                      long seed, long long began) {
    char words[800];
    struct text text = text_into(words, sizeof words);
    const int total = comparison->bench.count * comparison->bench.repeats, ended = comparison->ended;
    const long long passed = world_utc_seconds() - began;
    text_add(&text, "run %d of %d: %s, seed %ld", ended + 1, total, name, seed);
    if (passed > 2 && ended > 0) text_add(&text, ", about %lld s left", passed * (total - ended) / ended);
    progress_status(progress, words);
}

static void show_ended(struct progress *progress, const struct comparison *comparison, const char *name,
                       long seed, const struct run_result *result, const struct error *failure) {
    const int total = comparison->bench.count * comparison->bench.repeats;
    const struct summary *summary = &result->summary;
    char speed[DIGITS_BYTES], score[METRIC_BYTES];
    digits_thousands(speed, summary->examples_per_s);
    if (failure->code != OK)
        progress_say(progress, "run %d of %d: %s, seed %ld: failed: %s", comparison->ended, total, name, seed,
                     failure->words);
    else if (!progress->terminal)
        progress_say(progress, "run %d of %d: %s, seed %ld: %s examples/s, %s %s", comparison->ended, total,
                     name, seed, speed, metric_rows[summary->metric].words,
                     metric_text(summary->metric, summary->test_score, score));
}

static int write_list(const struct comparison *comparison, struct error *error) {
    char path[PATH_BYTES];
    struct file_new file = {0};
    RETURN_IF(file_join(path, comparison->typed.value.out, FOLDER_COMPARISON, error));
    RETURN_IF(file_create(&file, path, error));
    for (int i = 0; i < comparison->bench.count; i++)
        fprintf(file.stream, "%s %d\n", comparison->contenders[i].folder, comparison->bench.repeats);
    const int code = file_commit(&file, error);
    file_abandon(&file);
    return code;
}

/* Once the first run is over: what cannot even start leaves what was there before. */
static int open_folder(struct comparison *comparison, struct progress *progress, struct error *error) {
    const char *out = comparison->typed.value.out;
    char path[PATH_BYTES], first[FOLDER_BYTES + 16];
    bool earlier = false;
    snprintf(first, sizeof first, "%s/1", comparison->contenders[0].folder);
    RETURN_IF(file_make_folder(out, error));
    RETURN_IF(compare_remove_earlier(out, first, &earlier, error));
    if (earlier) progress_say(progress, "%s had an earlier comparison, which this one replaces", out);
    RETURN_IF(write_list(comparison, error));
    RETURN_IF(file_join(path, out, "runs.csv", error));
    return bench_runs_open(&comparison->runs, path, error);
}

static int write_run(struct comparison *comparison, struct progress *progress, const char *name, int repeat,
                     long seed, const struct run_result *result, const struct error *failure,
                     struct error *error) {
    if (!comparison->runs.file) RETURN_IF(open_folder(comparison, progress, error));
    return bench_runs_add(&comparison->runs, name, repeat, seed,
                          failure->code == OK ? &result->summary : NULL, failure, error);
}

/* One run of one contender; *failure is what went wrong in it. */
static int run_one(struct comparison *comparison, int index, int repeat, struct progress *progress,
                   struct error *failure, struct error *error) {
    struct contender *contender = &comparison->contenders[index];
    struct bench_row *row = &comparison->rows[index];
    struct config *settings = &contender->typed.value;
    struct run_result result;
    char below[FOLDER_BYTES + 16];
    const long seed = settings->seed = comparison->typed.value.seed + repeat - 1;
    snprintf(below, sizeof below, "%s/%d", contender->folder, repeat);
    RETURN_IF(file_join(settings->out, comparison->typed.value.out, below, error));
    run_train_here(&contender->typed, &result, failure);
    const bool cannot_start = failure->code != OK && failure->code != ERROR_DIVERGED &&
                              failure->code != ERROR_PEER && comparison->ended == 0;
    if (failure->code == ERROR_INTERRUPTED || cannot_start) {
        run_result_free(&result);
        return error_set(error, failure->code, "%s", failure->words);
    }
    comparison->ended++;
    if (failure->code == OK) {
        row_add_run(row, &contender->waits, &result);
    } else {
        row_add_failure(row, failure);
    }
    show_ended(progress, comparison, row->name, seed, &result, failure);
    const int code = write_run(comparison, progress, row->name, repeat, seed, &result, failure, error);
    run_result_free(&result);
    return code;
}

static int run_all(struct comparison *comparison, struct progress *progress, struct error *first,
                   struct error *error) {
    const long long began = world_utc_seconds();
    for (int repeat = 1; repeat <= comparison->bench.repeats; repeat++)
        for (int i = 0; i < comparison->bench.count; i++) {
            struct error failure = {0};
            if (world_interrupted()) return error_set(error, ERROR_INTERRUPTED, "interrupted");
            show_next(progress, comparison, comparison->rows[i].name,
                      comparison->typed.value.seed + repeat - 1, began);
            RETURN_IF(run_one(comparison, i, repeat, progress, &failure, error));
            if (failure.code == OK || first->code != OK) continue;
            error_set(first, failure.code, "%s", failure.words);
            error_prefix(first, "%s, repeat %d: ", comparison->rows[i].name, repeat);
        }
    return OK;
}

/* One of its own: a new one, or the one that was named, where there is neither a run nor a comparison yet. */
static int claim_folder(struct comparison *comparison, struct error *error) {
    const struct config *settings = &comparison->typed.value;
    char path[PATH_BYTES];
    if (!comparison->folder_named) return file_make_new_folder(comparison->typed.value.out, error);
    RETURN_IF(file_join(path, settings->out, FOLDER_COMPARISON, error));
    if (!file_exists(path)) return folder_check_free(settings->out, "a comparison", error);
    if (settings->replace) return OK;
    return error_set(error, ERROR_FILE, "%.300s has a comparison: --replace starts anew", settings->out);
}

/* What has ended stays in the folder, so that a new comparison there takes its place. */
static int say_interrupted(const struct comparison *comparison, struct error *error) {
    error_set(error, ERROR_INTERRUPTED, "interrupted after %d of %d runs", comparison->ended,
              comparison->bench.count * comparison->bench.repeats);
    if (comparison->ended == 0) return error->code;
    const size_t used = strlen(error->words);
    snprintf(error->words + used, sizeof error->words - used,
             "; a comparison cannot be resumed: --out=%.300s --replace starts it anew",
             comparison->typed.value.out);
    return error->code;
}

int compare_run(struct comparison *comparison, struct error *error) {
    struct error stopped = {0}, first = {0};
    struct progress progress;
    char path[PATH_BYTES];
    world_catch_interrupts();
    RETURN_IF(claim_folder(comparison, error));
    progress_open(&progress, stderr, comparison->typed.value.quiet);
    for (int i = 0; i < comparison->bench.count; i++) {
        struct config *settings = &comparison->contenders[i].typed.value;
        settings->quiet = true;
        settings->replace = true;           /* what is below the comparison's folder goes with it */
        settings->checkpoint_every_s = 0.0; /* writing one in the middle would be measured too */
        if (!comparison->contenders[i].typed.given.outputs) /* one page is for all of them: trainer report */
            snprintf(settings->outputs, sizeof settings->outputs, "csv");
    }
    const int code = run_all(comparison, &progress, &first, &stopped);
    progress_clear(&progress);
    if (comparison->ended == 0 && !comparison->folder_named)
        file_remove_empty(comparison->typed.value.out, 0);
    if (comparison->ended == 0 && code != ERROR_INTERRUPTED)
        return error_set(error, code, "%s", stopped.words);
    rows_set_beside(comparison->rows, comparison->bench.count);
    if (comparison->ended > 0) {
        RETURN_IF(bench_runs_finish(&comparison->runs, error));
        RETURN_IF(file_join(path, comparison->typed.value.out, "bench.csv", error));
        RETURN_IF(bench_write(path, &comparison->bench, error));
    }
    if (code == ERROR_INTERRUPTED) return say_interrupted(comparison, error);
    if (code != OK) return error_set(error, code, "%s", stopped.words);
    return first.code != OK ? error_set(error, first.code, "%s", first.words) : OK;
}
