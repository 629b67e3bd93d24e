/* See ensemble.h. */
#include "ensemble.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../data/stream.h"
#include "../graph/model.h"
#include "../infer/tested.h"
#include "../report/facts.h"
#include "../run/folder.h"
#include "../run/run.h"
#include "data.h"
#include "vary.h"

int ensemble_add(struct ensemble_settings *settings, const char *text, struct error *error) {
    if (settings->typed_count == MEMBERS_TYPED)
        return error_set(error, ERROR_USAGE, "--member=%.100s: expected at most %d members with settings",
                         text, MEMBERS_TYPED);
    snprintf(settings->typed[settings->typed_count++], MEMBER_TEXT_BYTES, "%s", text);
    return OK;
}

/* --- the settings of a member --- */

/* "model=cnn optimizer.rate=0.1": what of them is typed, in *seeded whether the seed is. */
static int apply_typed(struct typed *typed, const char *text, bool *seeded, struct error *error) {
    const char *names[VARY_MOST], *values[VARY_MOST];
    char words[MEMBER_TEXT_BYTES];
    char *rest = words;
    int count = 0;
    snprintf(words, sizeof words, "%s", text);
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        char *equals = strchr(word, '=');
        if (word[0] == '\0') continue;
        if (equals == NULL || equals == word || count == VARY_MOST)
            return error_set(error, ERROR_USAGE,
                             "--member=%.200s: expected up to %d of NAME=VALUE, with blanks "
                             "between",
                             text, VARY_MOST);
        *equals = '\0';
        names[count] = word;
        values[count++] = equals + 1;
        *seeded = *seeded || strcmp(word, "seed") == 0;
    }
    return vary_apply_all(typed, names, values, count, error);
}

/* Each has the next seed, so that they differ; with --data-sharding=split each has a slice of the data. */
static int member_typed(const struct ensemble_run *run, int member, struct typed *typed,
                        struct error *error) {
    const struct ensemble_settings *settings = &run->settings;
    struct config *config = &typed->value;
    bool seeded = false;
    *typed = settings->run;
    if (settings->typed_count > 0) RETURN_IF(apply_typed(typed, ensemble_typed(run, member), &seeded, error));
    if (!seeded) config->seed += member;
    typed->given.seed = true;
    if (config->data_sharding != SHARDING_SPLIT) return OK;
    config->data_sharding = SHARDING_SHARED;
    snprintf(config->data_slice, sizeof config->data_slice, "%d/%d", member + 1, run->count);
    typed->given.data_slice = true;
    return OK;
}

/* All of them can be had, and learn from one data set: else they could not be asked together. */
static int check_members(const struct ensemble_run *run, struct error *error) {
    struct typed *typed = NULL;
    char first[sizeof typed->value.dataset], dataset[sizeof first];
    int code = OK;
    RETURN_IF(memory_array(&typed, 1, "settings", error));
    for (int m = 0; m < run->count && code == OK; m++) {
        code = member_typed(run, m, typed, error);
        if (code == OK) code = vary_check(typed, m == 0 ? first : dataset, sizeof first, error);
        if (code == OK && m > 0 && strcmp(dataset, first) != 0)
            code = error_set(error, ERROR_USAGE,
                             "found the data set %.200s, expected %.200s as the first one", dataset, first);
        if (code != OK) error_prefix(error, "member %d: ", m + 1);
    }
    memory_free(typed);
    return code;
}

/* --- its folder --- */

static int member_folder(const struct ensemble_run *run, int member, char path[PATH_BYTES],
                         struct error *error) {
    char name[32];
    snprintf(name, sizeof name, "%d", member + 1);
    return file_join(path, run->out, name, error);
}

static int claim_folder(struct ensemble_run *run, struct error *error) {
    const struct config *config = &run->settings.run.value;
    struct choice model;
    snprintf(run->out, sizeof run->out, "%s", config->out);
    if (!run->out[0]) {
        RETURN_IF(plugin_choose(&model, &model_kind, config->model, error));
        RETURN_IF(folder_name(run->out, model.plugin->name, "ensemble", error));
        RETURN_IF(file_make_new_folder(run->out, error));
    }
    RETURN_IF(file_make_folder(run->out, error));
    RETURN_IF(file_hold(&run->hold, run->out, error));
    RETURN_IF(folder_check_free(run->out, "an ensemble", error));
    RETURN_IF(ensemble_save(run, error));
    return ensemble_write(run, error);
}

static int open_folder(struct ensemble_run *run, struct error *error) {
    const char *resume = run->settings.run.value.resume;
    if (!run->resumed) return claim_folder(run, error);
    snprintf(run->out, sizeof run->out, "%s", resume);
    RETURN_IF(file_hold(&run->hold, run->out, error));
    return ensemble_read(run, error);
}

/* Of the scores: by what the first member learns, as all do. */
static int choose_metric(struct ensemble_run *run, struct error *error) {
    struct typed *typed = NULL;
    struct dataset *dataset = NULL;
    RETURN_IF(memory_array(&typed, 1, "settings", error));
    int code = memory_array(&dataset, 1, "a data set", error);
    if (code == OK) code = member_typed(run, 0, typed, error);
    if (code == OK) code = data_open(dataset, &typed->value, error);
    if (code == OK) run->metric = metric_of(dataset->task);
    if (code == OK && dataset->task == TASK_LABELS)
        code =
            error_set(error, ERROR_USAGE, "ensemble: found the labels of %.200s, expected classes or values",
                      typed->value.dataset);
    if (dataset) dataset_close(dataset);
    memory_free(dataset);
    memory_free(typed);
    return code;
}

int ensemble_begin(struct ensemble_run *run, const struct ensemble_settings *settings, struct error *error) {
    *run = (struct ensemble_run){.settings = *settings, .resumed = settings->run.value.resume[0] != '\0'};
    if (run->resumed) RETURN_IF(ensemble_load(&run->settings, settings->run.value.resume, error));
    settings = &run->settings;
    RETURN_IF(lanes_open(&run->lanes, &settings->run.value, error));
    run->count = settings->members > 0       ? settings->members
                 : settings->typed_count > 0 ? settings->typed_count
                                             : run->lanes.count;
    if (run->count < settings->typed_count)
        return error_set(error, ERROR_USAGE, "--members=%d: expected at least the %d that --member says",
                         run->count, settings->typed_count);
    RETURN_IF(memory_array(&run->members, run->count, "the members", error));
    RETURN_IF(memory_array(&run->typed, run->lanes.count, "settings", error));
    for (int m = 0; m < run->count; m++)
        run->members[m] = (struct ensemble_member){.seconds = (double)NAN, .score = (double)NAN};
    RETURN_IF(check_members(run, error));
    RETURN_IF(choose_metric(run, error));
    return open_folder(run, error);
}

void ensemble_end(struct ensemble_run *run) {
    file_release(run->hold);
    lanes_close(&run->lanes);
    memory_free(run->members);
    memory_free(run->typed);
    ensemble_result_free(&run->result);
    *run = (struct ensemble_run){0};
}

/* --- training --- */

static bool has_ended(const struct ensemble_member *member) {
    return member->done || member->failure.code != OK;
}

static enum lane_answer take(void *self, int *job) {
    struct ensemble_run *run = self;
    while (run->next < run->count && has_ended(&run->members[run->next])) run->next++;
    if (world_interrupted() || run->stopped.code != OK || run->next == run->count) return LANE_END;
    *job = run->next++;
    return LANE_TAKE;
}

/* One that was under way when the ensemble was killed goes on. */
static int goes_on(struct config *config, struct error *error) {
    char checkpoint[PATH_BYTES];
    RETURN_IF(file_join(checkpoint, config->out, FOLDER_CHECKPOINT, error));
    config->resume[0] = '\0';
    if (file_exists(checkpoint)) snprintf(config->resume, sizeof config->resume, "%s", config->out);
    return OK;
}

static void work(void *self, int lane, int job, struct error *failure) {
    struct ensemble_run *run = self;
    struct ensemble_member *member = &run->members[job];
    struct typed *typed = &run->typed[lane];
    struct run_result result = {0};
    int code = member_typed(run, job, typed, failure);
    if (code == OK) code = member_folder(run, job, typed->value.out, failure);
    if (code == OK) code = goes_on(&typed->value, failure);
    if (code != OK) return;
    lanes_settings(&run->lanes, lane, &typed->value);
    typed->value.quiet = true;
    member->found = typed->value.resume[0] && !run->resumed;
    if (typed->value.resume[0]) typed->given.weights = false; /* it has its own by now */
    if (run_train_here(typed, &result, failure) == OK) member->took = result.summary.train_seconds;
    run_result_free(&result);
}

/* One that was interrupted is still to be trained. */
static void ended(void *self, int job, const struct error *failure) {
    struct ensemble_run *run = self;
    struct ensemble_member *member = &run->members[job];
    if (failure->code == ERROR_INTERRUPTED) return;
    if (member->found)
        progress_warn(&run->progress, "member %d of %d: %.300s/%d had a run, which it went on with", job + 1,
                      run->count, run->out, job + 1);
    member->failure = *failure;
    member->done = failure->code == OK;
    if (member->done) member->seconds = member->took;
    if (!member->done)
        progress_say(&run->progress, "member %d of %d: %s", job + 1, run->count, member->failure.words);
    else
        progress_say(&run->progress, "member %d of %d: trained in %.3g s", job + 1, run->count,
                     member->seconds);
    if (run->stopped.code == OK) ensemble_write(run, &run->stopped);
}

/* --- what they say together --- */

static int test_all(struct ensemble_run *run, struct error *error) {
    const struct config *config = &run->settings.run.value;
    struct ensemble ensemble = {0};
    struct tested tested = {0};
    const struct tested_settings test = {
        .checkpoint = run->out, .dataset = "", .data_dir = config->data_dir, .part = TESTED_TEST};
    int code = ensemble_open(&ensemble, run->out, config->kernels == KERNELS_REFERENCE, error);
    if (code == OK) code = tested_open(&tested, &ensemble.members[0], &test, error);
    if (code == OK) code = ensemble_evaluate(&ensemble, tested.examples, &run->result, error);
    for (int m = 0, asked = 0; m < run->count && code == OK; m++)
        if (run->members[m].done) run->members[m].score = run->result.member[asked++];
    tested_close(&tested);
    ensemble_close(&ensemble);
    return code;
}

int ensemble_train(struct ensemble_run *run, struct error *error) {
    const struct lane_work lane_work = {.take = take, .work = work, .ended = ended, .self = run};
    int done = 0;
    world_catch_interrupts();
    progress_open(&run->progress, stderr, run->settings.run.value.quiet);
    const int code = lanes_run(&run->lanes, &lane_work, error);
    progress_clear(&run->progress);
    RETURN_IF(code);
    if (run->stopped.code != OK) return error_set(error, run->stopped.code, "%s", run->stopped.words);
    for (int m = 0; m < run->count; m++) done += run->members[m].done;
    if (world_interrupted())
        return error_set(
            error, ERROR_INTERRUPTED,
            "interrupted: %d of %d members are trained; go on with: trainer ensemble --resume=%s", done,
            run->count, TEXT_WORD(run->out));
    if (done == 0) return error_set(error, run->members[0].failure.code, "%s", run->members[0].failure.words);
    RETURN_IF(test_all(run, error));
    return ensemble_write(run, error);
}

/* Returns out. */
static const char *score_text(const struct ensemble_run *run, double score, char out[METRIC_BYTES]) {
    return metric_text(run->metric, score, out);
}

static void print_together(const struct ensemble_run *run, const struct page *page, double best) {
    char of_best[METRIC_BYTES], of_all[METRIC_BYTES], words[400];
    const struct ensemble_result *result = &run->result;
    score_text(run, best, of_best);
    score_text(run, result->score, of_all);
    if (run->metric == METRIC_ACCURACY)
        snprintf(words, sizeof words,
                 "The best member has %s of the test part right, all together %s by the mean of their "
                 "probabilities, %.2f %% by vote.",
                 of_best, of_all, 100 * result->vote);
    else
        snprintf(words, sizeof words,
                 "On the test part the best member has an %s of %s, the mean of all values one of %s.",
                 metric_rows[run->metric].words, of_best, of_all);
    fputc('\n', page->file);
    page_words(page, 0, 0, words);
}

int ensemble_print(const struct ensemble_run *run, const struct page *page, struct error *error) {
    char folder[PATH_BYTES];
    int best_member = -1;
    double best = (double)NAN;
    char score[METRIC_BYTES];
    fprintf(page->file, "member  %8s  seconds  settings\n", metric_rows[run->metric].words);
    for (int m = 0; m < run->count; m++) {
        const struct ensemble_member *member = &run->members[m];
        const char *settings = ensemble_typed(run, m);
        if (member->done)
            fprintf(page->file, "%6d  %8s  %7.3g%s", m + 1, score_text(run, member->score, score),
                    member->seconds, settings[0] ? "  " : "");
        else
            fprintf(page->file, "%6d  %8s  %7s  ", m + 1, "failed", "");
        page_words(page, 27, 27, member->done ? settings : member->failure.words);
        if (!member->done || (best_member >= 0 && !metric_better(run->metric, member->score, best))) continue;
        best = member->score;
        best_member = m;
    }
    print_together(run, page, best);
    if (best_member >= 0) RETURN_IF(member_folder(run, best_member, folder, error));
    if (best_member >= 0) RETURN_IF(facts_print_sentence(folder, "Member", best_member + 1, page, error));
    fprintf(page->file, "\nensemble.csv and all members are in %s\n", run->out);
    return OK;
}
