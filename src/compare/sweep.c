/* What a sweep does, from its settings to the test of the best run. */
#include "sweep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../formats/checkpoint.h"
#include "../graph/model.h"
#include "../infer/tested.h"
#include "../run/folder.h"
#include "../run/run.h"
#include "data.h"

/* What is held out where nothing was said. */
static const double usual_validation = 0.1;

int sweep_folder(const struct sweep *sweep, int run, char path[PATH_BYTES], struct error *error) {
    char name[32];
    snprintf(name, sizeof name, "%d", run + 1);
    return file_join(path, sweep->out, name, error);
}

/* --- opening --- */

int sweep_typed(const struct sweep *sweep, int run, struct typed *typed, struct error *error) {
    const char *names[VARY_MOST], *values[VARY_MOST];
    *typed = sweep->settings.run;
    for (int v = 0; v < sweep->variation_count; v++) {
        names[v] = sweep->variations[v].name;
        values[v] = sweep->runs[run].values[v];
    }
    return vary_apply_all(typed, names, values, sweep->variation_count, error);
}

/* Before the first one begins. */
static int check_runs(const struct sweep *sweep, struct error *error) {
    struct typed *typed = NULL;
    int code = OK;
    RETURN_IF(memory_array(&typed, 1, "settings", error));
    for (int i = 0; i < sweep->count && code == OK; i++) {
        code = sweep_typed(sweep, i, typed, error);
        if (code == OK) code = vary_check(typed, NULL, 0, error);
    }
    memory_free(typed);
    return code == OK ? OK : error_prefix(error, "--vary: ");
}

static int open_variations(struct sweep *sweep, struct error *error) {
    const struct vary_texts *texts = &sweep->settings.varied;
    if (texts->count == 0)
        return error_set(error, ERROR_USAGE, "sweep: expected --vary=NAME=VALUES, what the runs differ in");
    for (int i = 0; i < texts->count; i++) {
        struct variation *variation = &sweep->variations[sweep->variation_count++];
        RETURN_IF(variation_open(variation, texts->text[i], &sweep->settings.run, error));
        for (int other = 0; other < i; other++)
            if (strcmp(sweep->variations[other].name, variation->name) == 0)
                return error_set(error, ERROR_USAGE, "--vary=%s: varied twice, expected once",
                                 variation->name);
        if (strcmp(variation->name, "epochs") == 0 && sweep->settings.method == SWEEP_HALVING)
            return error_set(error, ERROR_USAGE,
                             "--vary=epochs: expected none with --method=halving, which "
                             "has rungs of epochs");
    }
    return OK;
}

/* By what the runs are judged; the data set is opened to see what it has to learn. */
static int choose_metric(struct sweep *sweep, const struct config *config, struct error *error) {
    static const char *const names[METRICS] = {
        [METRIC_ACCURACY] = "validation_accuracy", [METRIC_RMSE] = "validation_rmse"};
    struct dataset *dataset = NULL;
    RETURN_IF(memory_array(&dataset, 1, "a data set", error));
    int code = data_open(dataset, config, error);
    if (code == OK) sweep->score = metric_of(dataset->task);
    if (code == OK) code = data_fingerprint(dataset, &sweep->data, error);
    dataset_close(dataset);
    memory_free(dataset);
    RETURN_IF(code);
    const int wanted = sweep->settings.metric;
    const bool loss = wanted == SWEEP_LOSS;
    sweep->metric_name = loss ? "validation_loss" : names[sweep->score];
    sweep->lower = loss || metric_rows[sweep->score].lower;
    if (loss || wanted == SWEEP_AUTO || (wanted == SWEEP_RMSE) == (sweep->score == METRIC_RMSE)) return OK;
    return error_set(error, ERROR_USAGE,
                     "--metric: %.200s has no such metric, expected %s or validation_loss", config->dataset,
                     sweep->metric_name);
}

/* A new one, or the one that was named, where there is nothing yet. */
static int claim_folder(struct sweep *sweep, struct error *error) {
    if (!sweep->settings.run.value.out[0])
        RETURN_IF(file_make_new_folder(sweep->out, error));
    else
        RETURN_IF(file_make_folder(sweep->out, error));
    RETURN_IF(file_hold(&sweep->hold, sweep->out, error));
    RETURN_IF(folder_check_free(sweep->out, "a sweep", error));
    RETURN_IF(sweep_save(sweep, error));
    return sweep_write(sweep, error);
}

static int open_folder(struct sweep *sweep, struct error *error) {
    if (!sweep->resumed) return claim_folder(sweep, error);
    RETURN_IF(file_hold(&sweep->hold, sweep->out, error));
    return sweep_read(sweep, error);
}

static int open_lanes(struct sweep *sweep, const struct config *config, struct error *error) {
    const bool none = strcmp(config->devices, "none") == 0;
    if (none && !sweep->settings.listen[0])
        return error_set(error, ERROR_USAGE,
                         "--devices=none: expected --listen too, or nobody would compute");
    RETURN_IF(none ? lanes_open_none(&sweep->lanes, error) : lanes_open(&sweep->lanes, config, error));
    RETURN_IF(memory_array(&sweep->typed, none ? 1 : sweep->lanes.count, "settings", error));
    return sweep_host_open(sweep, error);
}

static int open_all(struct sweep *sweep, struct config *config, struct error *error) {
    struct typed *typed = &sweep->settings.run;
    RETURN_IF(config_begin(config, typed, error));
    if (typed->given.validation && !(typed->value.validation > 0.0))
        return error_set(error, ERROR_USAGE, "--validation=0: expected a part to judge the runs by");
    if (!typed->given.validation) typed->value.validation = usual_validation;
    typed->given.validation = true;
    RETURN_IF(open_variations(sweep, error));
    RETURN_IF(sweep_draw(sweep, (uint64_t)config->seed, error));
    RETURN_IF(check_runs(sweep, error));
    sweep_make_rungs(sweep, config->epochs);
    RETURN_IF(choose_metric(sweep, config, error));
    RETURN_IF(open_lanes(sweep, config, error));
    snprintf(sweep->out, sizeof sweep->out, "%s", sweep->resumed ? typed->value.resume : typed->value.out);
    if (!sweep->out[0]) {
        struct choice model;
        RETURN_IF(plugin_choose(&model, &model_kind, config->model, error));
        RETURN_IF(folder_name(sweep->out, model.plugin->name, "sweep", error));
    }
    return open_folder(sweep, error);
}

int sweep_open(struct sweep *sweep, const struct sweep_settings *settings, struct error *error) {
    struct config *config = NULL;
    *sweep = (struct sweep){.settings = *settings, .resumed = settings->run.value.resume[0] != '\0'};
    if (sweep->resumed) RETURN_IF(sweep_load(&sweep->settings, settings->run.value.resume, error));
    RETURN_IF(memory_array(&config, 1, "settings", error));
    const int code = open_all(sweep, config, error);
    memory_free(config);
    return code;
}

void sweep_close(struct sweep *sweep) {
    file_release(sweep->hold);
    sweep_host_close(sweep->host);
    lanes_close(&sweep->lanes);
    memory_free(sweep->typed);
    for (int i = 0; i < sweep->count; i++) {
        for (int v = 0; sweep->runs[i].values && v < sweep->variation_count; v++)
            memory_free(sweep->runs[i].values[v]);
        memory_free(sweep->runs[i].values);
    }
    memory_free(sweep->runs);
    for (int v = 0; v < sweep->variation_count; v++) variation_close(&sweep->variations[v]);
    *sweep = (struct sweep){0};
}

/* --- running --- */

enum lane_answer sweep_take(void *self, int *run) {
    struct sweep *sweep = self;
    if (world_interrupted() || sweep->stopped.code != OK) return LANE_END;
    const enum lane_answer answer = sweep_next(sweep, run);
    if (answer != LANE_TAKE) return answer;
    sweep->runs[*run].status = SWEEP_RUNNING;
    sweep_write(sweep, &sweep->stopped);
    return answer;
}

int sweep_settle(struct typed *typed, const char *folder, int stop_after, struct error *error) {
    struct config *config = &typed->value;
    char checkpoint[PATH_BYTES];
    config->quiet = true;
    config->test = false;
    config->stop_after = stop_after;
    config->resume[0] = '\0';
    if (!typed->given.outputs) /* one page is for all of them: trainer report */
        snprintf(config->outputs, sizeof config->outputs, "csv");
    snprintf(config->out, sizeof config->out, "%s", folder);
    RETURN_IF(file_join(checkpoint, folder, FOLDER_CHECKPOINT, error));
    if (!file_exists(checkpoint)) return OK;
    snprintf(config->resume, sizeof config->resume, "%s", config->out);
    typed->given.weights = false; /* it has its own by now */
    return OK;
}

static void work(void *self, int lane, int run, struct error *failure) {
    struct sweep *sweep = self;
    struct typed *typed = &sweep->typed[lane];
    struct run_result result = {0};
    char folder[PATH_BYTES];
    int code = sweep_typed(sweep, run, typed, failure);
    if (code == OK) code = sweep_folder(sweep, run, folder, failure);
    if (code == OK) code = sweep_settle(typed, folder, sweep->rung_epochs[sweep->runs[run].rungs], failure);
    if (code != OK) return;
    lanes_settings(&sweep->lanes, lane, &typed->value);
    run_train_here(typed, &result, failure);
    run_result_free(&result);
}

/* What the run has come to, from its checkpoint: the same after a run as after a sweep that was killed. */
static int read_run(struct sweep *sweep, int number, struct error *error) {
    struct sweep_run *run = &sweep->runs[number];
    struct safetensors content = {0};
    char path[PATH_BYTES], score[64];
    RETURN_IF(sweep_folder(sweep, number, path, error));
    RETURN_IF(checkpoint_read(path, &content, error));
    snprintf(score, sizeof score, "best_%s",
             strcmp(sweep->metric_name, "validation_loss") == 0 ? "loss" : metric_rows[sweep->score].name);
    const double epochs = checkpoint_real(&content, "epochs", 0.0);
    run->epochs = (int)fmin(epochs, floor(checkpoint_real(&content, "epochs_done", 0.0) + 1e-6));
    run->best_epoch = (int)checkpoint_number(&content, "best_epoch", 0);
    run->metric = run->best_epoch > 0 ? checkpoint_real(&content, score, (double)NAN) : (double)NAN;
    run->seconds = round(1e3 * checkpoint_real(&content, "train_seconds", (double)NAN)) / 1e3;
    safetensors_free(&content);
    return OK;
}

/* Any lane may take it again. */
static void give_back(struct sweep *sweep, int number) {
    struct sweep_run *run = &sweep->runs[number];
    run->status = run->rungs > 0 ? SWEEP_STOPPED : SWEEP_WAITING;
    if (sweep->stopped.code == OK) sweep_write(sweep, &sweep->stopped);
}

static void note_end(struct sweep *sweep, int number, const struct error *failure) {
    struct sweep_run *run = &sweep->runs[number];
    struct error why = *failure;
    const int target = sweep->rung_epochs[run->rungs];
    if (why.code == OK) read_run(sweep, number, &why);
    if (why.code != OK) {
        run->status = SWEEP_FAILED;
        snprintf(run->reason, sizeof run->reason, "%s", why.words);
        return;
    }
    run->at_rung[run->rungs++] = run->metric;
    run->status = target == 0 || run->epochs < target ? SWEEP_FINISHED : SWEEP_STOPPED;
}

static void say_end(struct sweep *sweep, int number) {
    const struct sweep_run *run = &sweep->runs[number];
    char words[400], figure[METRIC_BYTES];
    struct text text = text_into(words, sizeof words);
    for (int v = 0; v < sweep->variation_count; v++)
        text_item(&text, " ", "%s=%s", sweep->variations[v].name, run->values[v]);
    if (run->status == SWEEP_FAILED)
        progress_say(&sweep->progress, "run %d of %d: %s: %s", number + 1, sweep->count, words, run->reason);
    else
        progress_say(&sweep->progress, "run %d of %d: %s: %s after %d epoch%s", number + 1, sweep->count,
                     words,
                     sweep->settings.metric == SWEEP_LOSS
                         ? (snprintf(figure, sizeof figure, "loss %.6g", run->metric), figure)
                         : metric_figure(sweep->score, run->metric, figure),
                     run->epochs, run->epochs == 1 ? "" : "s");
}

bool sweep_lose(struct sweep *sweep, int number, const struct error *why) {
    struct sweep_run *run = &sweep->runs[number];
    struct error failure = {0};
    if (why->code != ERROR_INTERRUPTED) run->lost++;
    if (run->lost < SWEEP_LOST_MOST) {
        give_back(sweep, number);
        return true;
    }
    error_set(&failure, ERROR_PEER, "lost with %d machines, the last time: %.300s", run->lost, why->words);
    sweep_ended(sweep, number, &failure);
    return false;
}

void sweep_stop(struct sweep *sweep, int number, const struct error *why) {
    if (sweep->stopped.code == OK) sweep->stopped = *why;
    give_back(sweep, number);
}

void sweep_ended(void *self, int run, const struct error *failure) {
    struct sweep *sweep = self;
    if (failure->code == ERROR_INTERRUPTED) {
        give_back(sweep, run);
        return;
    }
    note_end(sweep, run, failure);
    say_end(sweep, run);
    if (sweep->stopped.code == OK) sweep_write(sweep, &sweep->stopped);
}

/* The one use of the test part. */
static int test_best(struct sweep *sweep, int best, struct error *error) {
    struct restored *restored = NULL;
    struct tested tested = {0};
    struct evaluation result;
    char folder[PATH_BYTES], path[PATH_BYTES];
    RETURN_IF(sweep_folder(sweep, best, folder, error));
    RETURN_IF(file_join(path, folder, FOLDER_BEST, error));
    RETURN_IF(memory_array(&restored, 1, "the best network", error));
    const struct config *config = &sweep->settings.run.value;
    const struct tested_settings test = {
        .checkpoint = path, .dataset = "", .data_dir = config->data_dir, .part = TESTED_TEST};
    int code = restored_open(restored, path, config->kernels == KERNELS_REFERENCE, error);
    if (code == OK) code = tested_open(&tested, restored, &test, error);
    if (code == OK)
        code = evaluator_run(&restored->evaluator, tested.examples, restored->weights, &result, error);
    if (code == OK) sweep->runs[best].test = result.score;
    tested_close(&tested);
    restored_close(restored);
    memory_free(restored);
    return code == OK ? sweep_write(sweep, error) : code;
}

static int count_done(const struct sweep *sweep) {
    int done = 0;
    for (int i = 0; i < sweep->count; i++)
        done += sweep->runs[i].status == SWEEP_FINISHED || sweep->runs[i].status == SWEEP_FAILED ||
                (sweep->runs[i].status == SWEEP_STOPPED && sweep->rungs > 1);
    return done;
}

int sweep_do(struct sweep *sweep, struct error *error) {
    const struct lane_work lane_work = {.take = sweep_take,
                                        .work = work,
                                        .ended = sweep_ended,
                                        .serve = sweep->host ? sweep_host_serve : NULL,
                                        .self = sweep};
    world_catch_interrupts();
    progress_open(&sweep->progress, stderr, sweep->settings.run.value.quiet);
    const int code = lanes_run(&sweep->lanes, &lane_work, error);
    progress_clear(&sweep->progress);
    RETURN_IF(code);
    if (sweep->stopped.code != OK) return error_set(error, sweep->stopped.code, "%s", sweep->stopped.words);
    if (world_interrupted())
        return error_set(error, ERROR_INTERRUPTED,
                         "interrupted: %d of %d runs have ended; go on with: trainer sweep --resume=%s",
                         count_done(sweep), sweep->count, TEXT_WORD(sweep->out));
    const int best = sweep_best(sweep);
    if (best < 0)
        return error_set(error, ERROR_DIVERGED, "no run of the sweep ended well; the first one: %s",
                         sweep->runs[0].reason);
    return isnan(sweep->runs[best].test) ? test_best(sweep, best, error) : OK;
}
