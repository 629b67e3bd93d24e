/* What a run keeps: its checkpoints, the last and the best one, and the model; also when it fails. */
#include "../base/text.h"
#include "open.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

long long run_examples(const struct run *run) {
    const struct sampler *sampler = &run->sampler;
    return (long long)(sampler_position(sampler) - sampler->in_flight) * stream_unit(&sampler->stream);
}

double run_epochs(const struct run *run) {
    const double times = run->setup.config.data_sharding == SHARDING_ALL ? run->workers : 1;
    return (double)run_examples(run) / (times * run->setup.dataset.train.count);
}

/* To the example: what a batch is may be another thing when it goes on. */
static bool keeps_place(const struct run *run) {
    const struct config *config = &run->setup.config;
    return run->sizes || (config->batch_total > 0 && config->data_sharding == SHARDING_SHARED);
}

/* After a failure the losses of the steps that are taken back are in it, too. */
static struct begun_epoch begun_of(const struct run *run) {
    struct begun_epoch begun = run->begun;
    double sum, batches;
    training_loss(&run->training, &sum, &batches);
    begun.loss_sum += sum;
    begun.batches += batches;
    begun.seconds += training_seconds(&run->training) - run->epoch_s;
    begun.examples += run_examples(run) - run->epoch_examples;
    return begun;
}

static struct standing standing_of(struct run *run, const long *own) {
    const long position = sampler_position(&run->sampler);
    run_count_steps(run);
    return (struct standing){.position = sampler_batches(&run->sampler, position),
                             .place = keeps_place(run) ? position * stream_unit(&run->sampler.stream) : -1,
                             .workers = run->workers,
                             .own = run->setup.config.data_sharding != SHARDING_SHARED ? own : NULL,
                             .epochs_done = run_epochs(run),
                             .final_cost = run_final_cost(run),
                             .version = store_version(&run->store),
                             .updates = store_updates(&run->store),
                             .examples = run_examples(run),
                             .steps = run_steps(run),
                             .test_score = run->tested.examples > 0 ? run->tested.score : (double)NAN,
                             .best = run->best,
                             .steps_of = run->steps_of,
                             .steps_count = run->steps_count,
                             .phase_ends = run->phase_ends,
                             .phases_over = run->next_phase,
                             .strategy = run->setup.choices.strategy.text,
                             .schedule_ahead = run->store.settings.schedule_ahead,
                             .target_accuracy = run->setup.config.target_accuracy,
                             .target_s = run->target_s,
                             .redone_updates = run->redone_updates,
                             .begun = begun_of(run),
                             .train_seconds = run->seconds_before + training_seconds(&run->training)};
}

static int write_state(const struct run *run, const struct standing *standing, enum checkpoint_which which,
                       struct error *error) {
    struct resume_texts texts = {0};
    int code = resume_texts_make(&texts, &run->setup.config, OPTION_SAVED | OPTION_RESUMED,
                                 &run->setup.dataset, standing, error);
    const struct snapshot snapshot = {
        .state = &run->store.kept, .texts = texts.entries, .text_count = texts.count};
    if (code == OK)
        code = checkpoint_write(run->setup.config.out, which, &run->setup.network.graph.layout, &snapshot,
                                error);
    resume_texts_free(&texts);
    return code;
}

/* The weights alone. The same run leaves the same bytes: what depends on the clock is in summary.json. */
int run_write_model(const struct run *run, const float *weights, const struct standing *standing,
                    struct error *error) {
    struct standing timeless = *standing;
    struct resume_texts texts = {0};
    char path[PATH_BYTES];
    timeless.train_seconds = timeless.test_score = timeless.target_s = (double)NAN;
    timeless.best = (struct best_epoch){0};
    timeless.redone_updates = 0;
    RETURN_IF(file_join(path, run->setup.config.out, "model.safetensors", error));
    int code =
        resume_texts_make(&texts, &run->setup.config, OPTION_SAVED, &run->setup.dataset, &timeless, error);
    if (code == OK)
        code =
            model_write(path, &run->setup.network.graph.layout, weights, texts.entries, texts.count, error);
    resume_texts_free(&texts);
    return code;
}

/* Calls `write` with where the run stands. */
static int with_standing(struct run *run,
                         int (*write)(struct run *run, const struct standing *standing, struct error *error),
                         struct error *error) {
    long *own = NULL;
    RETURN_IF(memory_array(&own, run->workers, "positions", error));
    for (int w = 0; w < run->workers; w++) own[w] = sampler_own(&run->sampler, w);
    struct standing standing = standing_of(run, own);
    struct text so_far = text_growing(error);
    run_strategies_text(run, &so_far);
    int code = text_end(&so_far);
    standing.strategies = so_far.bytes;
    if (code == OK) code = write(run, &standing, error);
    memory_free(so_far.bytes);
    memory_free(own);
    return code;
}

static int write_last(struct run *run, const struct standing *standing, struct error *error) {
    RETURN_IF(write_state(run, standing, CHECKPOINT_LAST, error));
    run->has_checkpoint = true;
    run->checkpoint_update = standing->updates;
    char words[64];
    snprintf(words, sizeof words, "update %ld", standing->updates);
    run_tell_event(run, EVENT_CHECKPOINT, -1, words);
    if (!run->replaces) return OK;
    run->replaces = false;
    return folder_remove_earlier(run->setup.config.out, error);
}

int run_keep(struct run *run, struct error *error) {
    const int code = run_keeps(run) ? with_standing(run, write_last, error) : OK;
    run->checkpoint_s = world_now(run->world);
    return code;
}

static int write_model(struct run *run, const struct standing *standing, struct error *error) {
    return run_write_model(run, store_tested(&run->store), standing, error);
}

int run_keep_model(struct run *run, struct error *error) {
    return run_keeps(run) ? with_standing(run, write_model, error) : OK;
}

/* --- the best epoch --- */

static int write_best(struct run *run, const struct standing *standing, struct error *error) {
    return write_state(run, standing, CHECKPOINT_BEST, error);
}

static bool is_better(const struct run *run) {
    const struct evaluation *now = &run->validated;
    const struct best_epoch *best = &run->best;
    const enum metric metric = run_metric(run);
    if (now->examples == 0 || best->epoch == 0) return now->examples > 0;
    return !metric_better(metric, best->score, now->score) &&
           (metric_better(metric, now->score, best->score) || now->cost < best->loss);
}

int run_keep_best(struct run *run, struct error *error) {
    const struct evaluation *now = &run->validated;
    const enum metric metric = run_metric(run);
    const bool better = is_better(run);
    if (better)
        run->best = (struct best_epoch){
            .epoch = run->epoch, .score = now->score, .loss = now->cost, .test_score = run->tested.score};
    run_look_at_phase(run); /* before anything is kept, which is to say what comes next */
    if (!better) return OK;
    char words[80], figure[METRIC_BYTES];
    snprintf(words, sizeof words, "epoch %d, %s of the validation part", run->epoch,
             metric_figure(metric, now->score, figure));
    run_tell_event(run, EVENT_BEST, -1, words);
    if (run->replaces) RETURN_IF(run_keep(run, error)); /* which removes the best of the run before */
    return run_keeps(run) ? with_standing(run, write_best, error) : OK;
}

bool run_is_stale(const struct run *run) {
    const int patience = run->setup.config.early_stop;
    return patience > 0 && run->best.epoch > 0 && run->epoch - run->best.epoch >= patience;
}

/* --- after a failure --- */

/* Where each gradient is applied by itself, nobody applied the batches in the workers' hands: as many are
 * assigned again. A worker that was lost before took its own along. */
static void take_in_hand(struct run *run) {
    for (int w = 0; w < run->workers; w++)
        if (!run->lost[w]) sampler_take_in_hand(&run->sampler, w, training_steps(&run->training, w));
}

/* Where all step together, whoever waited for the one that failed had pushed a gradient that nobody applied:
 * what was assigned and counted ends with the last round that all took. */
static void take_back(struct run *run) {
    const struct traits *traits = run_traits(run);
    if (!traits->rounds || !traits->merged) {
        take_in_hand(run);
        return;
    }
    run->taken_back = true;
    run->rounds_most = store_version(&run->store) - run->phase_version;
    sampler_take_back(&run->sampler, run->rounds_most);
}

bool run_settle_store(struct run *run, long most) {
    struct error ignored = {0};
    struct store *store = &run->store;
    const struct traits *traits = run_traits(run);
    const long here = store_version(store);
    if (run->training.abandoned || training_serve_rest(&run->training, &ignored) != OK) return false;
    if (traits->rounds && traits->merged && store_undo(store, here < most ? here : most, &ignored) != OK)
        return false;
    return store_check(store, &ignored) == OK && store_fetch(store, &ignored) == OK;
}

static bool has_learnt(const struct run *run) {
    return store_version(&run->store) > run->version_before;
}

/* Slices of other parameter servers come along as long as these are there. */
static void keep_what_is_left(struct run *run) {
    struct error ignored = {0};
    const struct crew *crew = &run->crew;
    if (!(training_failed(&run->training) || run->apart) || run_is_hopeless(run)) return;
    if (!run_settle_store(run, LONG_MAX) || !has_learnt(run)) return;
    if (crew->fetch_rest && crew->fetch_rest(run->members, &ignored) != OK) return;
    if (!has_learnt(run)) return; /* it may have been taken back */
    sampler_take_lost(&run->sampler);
    take_back(run);
    run_keep(run, &ignored);
}

const char *run_resumed_with(const struct run *run, char out[RESUMED_WITH_BYTES]) {
    const struct config *config = &run->setup.config;
    struct text text = text_into(out, RESUMED_WITH_BYTES);
    text_add(&text, "%s%s", config->simulate[0] ? " --simulate=" : "", config->simulate);
    text_add(&text, "%s%s", config->slow[0] ? " --slow=" : "", config->slow);
    if (config->simulate[0] && text.used + strlen(config->devices) + 20 < RESUMED_WITH_BYTES)
        text_add(&text, " --devices=%s", config->devices);
    return out;
}

static void say_rest(const struct run *run, struct text *words) {
    const struct config *config = &run->setup.config;
    char options[RESUMED_WITH_BYTES];
    if (run->has_checkpoint && run->crew.elsewhere)
        text_add(words,
                 "; to go on from update %ld, start all processes again, the leader with --resume=%.200s",
                 run->checkpoint_update, TEXT_WORD(config->out));
    else if (run->has_checkpoint)
        text_add(words, "; go on from update %ld with: trainer --resume=%.200s%s", run->checkpoint_update,
                 TEXT_WORD(config->out), run_resumed_with(run, options));
    else if (run->best.epoch > 0)
        text_add(words, "; its best epoch, %d, is in %.200s/checkpoint/best", run->best.epoch, config->out);
    else if (run->resumes)
        text_add(words, "; %.200s, which it went on from, is as it was", config->resume);
    else if (run->replaces)
        text_add(words, "; the earlier run in %.200s stays", config->out);
    else
        text_add(words, "; there is no checkpoint yet%s",
                 config->checkpoint_every_s > 0.0 ? " (--checkpoint-every=SECONDS)" : "");
}

int run_keep_rest(struct run *run, int code, struct run_result *result, struct error *error) {
    struct text words = {.bytes = error->words, .room = sizeof error->words, .used = strlen(error->words)};
    struct text rest = text_into(result->rest, sizeof result->rest);
    if (code != ERROR_DEVICE && code != ERROR_PEER && code != ERROR_DIVERGED) return code;
    if (code != ERROR_DIVERGED) keep_what_is_left(run);
    run_drain(run);
    const bool goes_on = code == ERROR_PEER && run->crew.elsewhere && run->setup.config.restart_wait_s > 0.0;
    if (!run_keeps(run) || goes_on) return code; /* which its next session says */
    say_rest(run, &rest);
    text_add(&words, "%s", result->rest);
    return code;
}
