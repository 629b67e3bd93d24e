/* A run: opens what a training needs, coordinates it from boundary to boundary, and closes in reverse order.
 *
 * The calling thread is the coordinator. While workers run it only looks in now and then: takes rows out of
 * the log, draws the progress, and asks for a pause when it was interrupted or a checkpoint is due. While
 * they are paused the store is its own. */
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/text.h"
#include "../engine/threads.h"
#include "open.h"

static bool is_interrupted(const struct run *run) {
    const struct embedding *embedding = run->embedding;
    return (!run->silent && world_interrupted()) || (run->crew.asked && run->crew.asked(run->members)) ||
           (embedding && atomic_load(embedding->stop));
}

static void show_progress(struct run *run) {
    const double total = (double)sampler_total(&run->sampler) * stream_unit(&run->sampler.stream);
    const double updates = (double)(store_version(&run->store) - run->segment_version);
    const double done = (double)run->segment_examples + updates * run_examples_per_update(run);
    const double most = total * fmin(run->epoch + 1, run->setup.config.epochs) / run->setup.config.epochs;
    const double seconds = run->clock ? run_real_now(run) : training_seconds(&run->training);
    const int epoch = run->epoch < run->setup.config.epochs ? run->epoch + 1 : run->epoch;
    progress_show(&run->progress, fmin(done, most), total, seconds, epoch, run->setup.config.epochs,
                  log_epoch_loss(&run->log, epoch));
}

/* Mostly the steps in hand are over at once, and there is nothing to say. */
static void say_interrupted(struct run *run) {
    const double now = run_real_now(run);
    if (run->interrupted_s <= 0.0) run->interrupted_s = now;
    if (run->told_interrupt || now - run->interrupted_s < 1.0) return;
    run->told_interrupt = true;
    progress_say(&run->progress,
                 "interrupted: waiting for the steps in hand (interrupt again to end at once)");
}

static void say_notices(struct run *run) {
    char words[GROUP_LINE_BYTES];
    while (run->crew.notice && run->crew.notice(run->members, words, sizeof words))
        progress_say(&run->progress, "%s", words);
}

/* Workers are alike, but for their devices. */
static void say_recording(struct run *run) {
    struct recording_facts facts;
    char words[300];
    for (int w = 0; w < run->workers && !run->told_recording && run->crew.recording; w++) {
        if (!run->crew.recording(run->members, w, &facts)) continue;
        run->told_recording = true;
        if (facts.nodes > 0)
            snprintf(words, sizeof words, "recorded: a step is one graph of %d nodes", facts.nodes);
        else
            snprintf(words, sizeof words, "not recorded: %s", facts.why);
        lines_describe(&run->lines, "%s", words);
    }
}

/* Programs are made, and on GPUs measured, before the clock of the training starts. */
static int await_start(struct run *run, struct error *error) {
    const double until = world_now(run->world) + run->setup.config.start_timeout_s;
    int starting = 0;
    while ((starting = training_starting(&run->training, run_look_s(run))) >= 0) {
        say_notices(run);
        if (is_interrupted(run)) say_interrupted(run);
        if (world_now(run->world) > until)
            return error_set(error, ERROR_DEVICE, "%s did not start within %g s (--start-timeout)",
                             run->roster.members[starting].name, run->setup.config.start_timeout_s);
    }
    return OK;
}

/* Whom another part has lost, whose slice goes on without it, is lost here, too. */
static void give_up_lost(struct run *run) {
    for (int w = 0; run->crew.lost && w < run->workers; w++)
        if (run->crew.lost(run->members, w)) training_give_up(&run->training, w);
}

/* Workers wait for who is gone, or for the word that it is. */
static void watch(struct run *run) {
    struct error gone = {0};
    if (run->crew.watch && run->crew.watch(run->members, &gone) != OK) training_stop(&run->training, &gone);
}

/* Lets the workers go and looks in now and then, until all are paused or one has failed. */
static int run_segment(struct run *run, struct error *error) {
    const double every = run->setup.config.checkpoint_every_s;
    if (run->crew.go) RETURN_IF(run->crew.go(run->members, error));
    run->segment_examples = run_examples(run);
    run->segment_version = store_version(&run->store);
    training_go(&run->training);
    while (!training_wait(&run->training, run_look_s(run))) {
        give_up_lost(run);
        watch(run);
        const double now = world_now(run->world);
        say_notices(run);
        say_recording(run);
        const bool due = every > 0.0 && now - run->checkpoint_s > every;
        const bool joins = run->crew.joining && run->crew.joining(run->members);
        if (is_interrupted(run) || due || joins) sampler_stop(&run->sampler);
        if (is_interrupted(run)) say_interrupted(run);
        if (!atomic_exchange(&run->training.log_full, false) && now < run->drained_s + run_drain_s(run))
            continue;
        run_drain(run);
        show_progress(run);
        run->drained_s = now;
    }
    say_notices(run);
    say_recording(run);
    run_drain(run);
    const double now = world_now(run->world);
    if (now < run->drained_s + run_drain_s(run)) return OK;
    show_progress(run); /* epochs may be so short that no look falls into them */
    run->drained_s = now;
    return OK;
}

static int test_on(struct run *run, const struct examples *examples, const char *what,
                   struct evaluation *result, struct error *error) {
    float *weights = store_tested(&run->store);
    if (run->evaluators.count > 0)
        RETURN_IF(evaluators_run(&run->evaluators, examples, weights, result, error));
    else
        RETURN_IF(evaluator_run(&run->evaluator, examples, weights, result, error));
    if (isfinite(result->cost)) return OK;
    return error_set(error, ERROR_DIVERGED, "the loss on the %s part is %s after %.1f epochs", what,
                     isnan(result->cost) ? "nan" : "infinite", run_epochs(run));
}

/* The validation part, where there is one, is what the best epoch is chosen by; the test part never, and with
 * --no-test it is not looked at. */
static int test(struct run *run, struct error *error) {
    const struct dataset *dataset = &run->setup.dataset;
    run->validated = (struct evaluation){.score = (double)NAN, .cost = (double)NAN};
    if (dataset->validation.count > 0)
        RETURN_IF(test_on(run, &dataset->validation, "validation", &run->validated, error));
    run->tested = (struct evaluation){.score = (double)NAN, .cost = (double)NAN};
    for (enum metric m = 0; m < METRICS; m++) run->tested.value[m] = (double)NAN;
    if (!run->setup.config.test) return OK;
    return test_on(run, &dataset->test, "test", &run->tested, error);
}

static int finish_epoch(struct run *run, struct error *error) {
    double sum = 0.0, steps = 0.0;
    const double seconds = training_seconds(&run->training);
    const long long examples = run_examples(run);
    training_take_loss(&run->training, &sum, &steps);
    RETURN_IF(test(run, error));
    const double took = seconds - run->epoch_s + run->begun.seconds;
    const long long had = examples - run->epoch_examples + run->begun.examples;
    sum += run->begun.loss_sum;
    steps += run->begun.batches;
    const struct epoch_row row = {.epoch = run->epoch + 1,
                                  .time_s = run->seconds_before + seconds,
                                  .train_loss = steps > 0.0 ? sum / steps : (double)NAN,
                                  .metric = run_metric(run),
                                  .test_loss = run->tested.cost,
                                  .test_score = run->tested.score,
                                  .validation_loss = run->validated.cost,
                                  .validation_score = run->validated.score,
                                  .examples_per_s = took > 0.0 ? (double)had / took : 0.0};
    run->epoch_s = seconds;
    run->epoch_examples = examples;
    run->begun = (struct begun_epoch){0};
    run->epoch++;
    if (row.test_score > run->highest || (run->highest_epoch == 0 && !isnan(row.test_score))) {
        run->highest = row.test_score;
        run->highest_epoch = row.epoch;
    }
    if (isnan(run->target_s) && run->tested.score >= run->setup.config.target_accuracy) {
        run->target_s = row.time_s;
        run_tell_target(run, &row);
    }
    run_tell_epoch(run, &row, took, examples);
    return run_keep_best(run, error);
}

static int note_leaver(struct run *run, int worker, long steps, struct error *error) {
    char words[200];
    const struct member *member = &run->roster.members[worker];
    snprintf(words, sizeof words, "%s after %ld steps, as it was asked to", member->name,
             member->earlier + steps);
    progress_say(&run->progress, "left: %s", words);
    run_tell_event(run, EVENT_LEFT, worker, words);
    return sampler_leave(&run->sampler, worker, steps, error);
}

/* Says who was lost or has left, and assigns what the lost would have been assigned to those who are left. */
static int note_losses(struct run *run, struct error *error) {
    for (int w = 0; w < run->workers; w++) {
        long step = 0;
        const char *words = NULL;
        if (run->lost[w] || !training_lost(&run->training, w, &step, &words)) continue;
        run->lost[w] = true;
        if (training_left(&run->training, w, &step)) {
            RETURN_IF(note_leaver(run, w, step, error));
            continue;
        }
        progress_warn(&run->progress, "lost: %s; the others go on%s", words,
                      run->setup.config.data_sharding == SHARDING_SPLIT
                          ? ", and nobody sees its slice of the data any more"
                          : "");
        run_tell_event(run, EVENT_LOST, w, words);
        RETURN_IF(sampler_lose(&run->sampler, w, step, error));
    }
    if (roster_active_workers(&run->roster) > 0 || is_interrupted(run)) return OK;
    sampler_take_lost(&run->sampler); /* nobody went on without it */
    RETURN_IF(run_keep(run, error));
    return error_set(error, ERROR_PEER, "every worker was lost or has left");
}

/* --stop-after, or all of its epochs. */
static int last_epoch(const struct run *run) {
    const struct config *config = &run->setup.config;
    return config->stop_after > 0 && config->stop_after < config->epochs ? config->stop_after
                                                                         : config->epochs;
}

/* Complete; of a run that is to have fewer, all that it has. */
static int epochs_done(const struct run *run) {
    const double done = run->resumes ? checkpoint_real(&run->checkpoint, "epochs_done", 0.0) : 0.0;
    return (int)fmax(floor(done), run->epoch);
}

static int coordinate(struct run *run, struct error *error) {
    const int last = last_epoch(run);
    run->stopped_early = run_is_stale(run);
    if (run->stopped_early && run->nothing_left)
        progress_say(
            &run->progress,
            "the best epoch is %d epochs ago, and --early-stop=%d ends the run there: nothing is changed; "
            "a larger --early-stop=N goes on",
            run->epoch - run->best.epoch, run->setup.config.early_stop);
    else if (run->epoch == run->setup.config.epochs && epochs_done(run) > run->setup.config.epochs)
        progress_say(
            &run->progress,
            "%d epochs are done already, more than --epochs=%d%s; --epochs=N with a larger N goes on",
            epochs_done(run), run->setup.config.epochs, run->nothing_left ? ", and nothing is changed" : "");
    else if (run->epoch == run->setup.config.epochs)
        progress_say(&run->progress, "%d of %d epochs are done already%s; --epochs=N with a larger N goes on",
                     epochs_done(run), run->setup.config.epochs,
                     run->nothing_left ? ", and nothing is changed" : "");
    while (run->epoch < last && !run->interrupted && !run->stopped_early) {
        RETURN_IF(run_change_phase(run, error));
        sampler_set_limit(&run->sampler, run->epoch);
        RETURN_IF(run_segment(run, error));
        if (training_failed(&run->training)) return training_end(&run->training, error);
        run->apart = run->crew.fetch && run->crew.fetch(run->members, error) != OK;
        if (run->apart) return error->code;
        give_up_lost(run);
        RETURN_IF(store_fetch(&run->store, error));
        RETURN_IF(note_losses(run, error));
        RETURN_IF(run_divide_rest(run, error));
        run->interrupted =
            is_interrupted(run) && !sampler_reached(&run->sampler, run->setup.config.epochs - 1);
        while (run->epoch < run->setup.config.epochs && sampler_reached(&run->sampler, run->epoch))
            RETURN_IF(finish_epoch(run, error));
        if (run->epoch < last && !run->interrupted) RETURN_IF(run_let_in(run, error));
        run->stopped_early = run_is_stale(run);
        const double every = run->setup.config.checkpoint_every_s;
        if (every > 0.0 && world_now(run->world) - run->checkpoint_s > every && !run_is_hopeless(run))
            RETURN_IF(run_keep(run, error));
    }
    return OK;
}

static int ask_model(struct run *run, float *weights, int **said, float **probabilities,
                     struct error *error) {
    const struct dataset *dataset = &run->setup.dataset;
    const struct examples *test = &dataset->test;
    RETURN_IF(memory_array(said, test->count, "predictions", error));
    RETURN_IF(memory_array(probabilities, (long)test->count * dataset->classes, "predictions", error));
    return evaluator_predict(&run->evaluator, test, weights, *probabilities, *said, error);
}

/* What the model says of each test example is asked only where it is a class, somebody wants to know, and
 * nobody has interrupted, who would have to wait. Everything is kept by now: what fails here ends nothing. */
static void tell_end(struct run *run, const struct summary *summary) {
    float *weights = store_tested(&run->store), *probabilities = NULL;
    int *said = NULL;
    struct error why = {0};
    bool knows = telling_wants_said(&run->telling) && run->tested.examples > 0 && !run->interrupted &&
                 run->setup.dataset.task == TASK_CLASSES;
    if (knows && ask_model(run, weights, &said, &probabilities, &why) != OK) {
        knows = false;
        progress_warn(&run->progress, "%s; the training goes on without predictions", why.words);
    }
    const struct output_end end = {.summary = summary,
                                   .weights = weights,
                                   .said = knows ? said : NULL,
                                   .probabilities = knows ? probabilities : NULL};
    telling_end(&run->telling, &end);
    memory_free(said);
    memory_free(probabilities);
}

static void say_best(struct run *run) {
    char best[METRIC_BYTES], test[METRIC_BYTES], tested[METRIC_BYTES + 16] = "";
    if (!isnan(run->best.test_score))
        snprintf(tested, sizeof tested, " (test %s)",
                 metric_text(run_metric(run), run->best.test_score, test));
    lines_fit(&run->lines, "%sbest by validation: epoch %d, %s%s, in %s/checkpoint/best",
              run->stopped_early ? "ended early; " : "", run->best.epoch,
              metric_figure(run_metric(run), run->best.score, best), tested, run->setup.config.out);
}

/* The tests once more, by views. */
static int test_by_views(struct run *run, struct error *error) {
    const enum views views = (enum views)run->setup.config.views;
    struct evaluation seen;
    run->viewed = (double)NAN;
    if (views == VIEWS_PLAIN || run->tested.examples == 0 || run->interrupted) return OK;
    RETURN_IF(evaluator_run_views(&run->evaluator, &run->setup.dataset.test, store_tested(&run->store), views,
                                  &seen, error));
    run->viewed = seen.score;
    return OK;
}

static int finish(struct run *run, struct run_result *result, struct error *error) {
    if (run->interrupted || run->epoch == run->epochs_before) RETURN_IF(test(run, error));
    RETURN_IF(run_check_diverged(run, error));
    RETURN_IF(test_by_views(run, error));
    run_drain(run);
    RETURN_IF(run_keep(run, error));
    RETURN_IF(run_keep_model(run, error));
    result->summary = run_summary(run);
    RETURN_IF(run_describe(run, result, error));
    RETURN_IF(run_totals(run, result, error));
    run_judge(run, &result->summary);
    const struct summary *summary = &result->summary;
    char options[RESUMED_WITH_BYTES];
    tell_end(run, summary);
    result->summary.test_value = NULL; /* which goes with the run */
    progress_clear(&run->progress);
    if (run->best.epoch > 0) say_best(run);
    run_say_verdict(run, summary);
    run_say_missed_faults(run);
    run_say_missed_target(run);
    if (run->interrupted && run->silent)
        return error_set(error, ERROR_INTERRUPTED, "stopped after %lld examples, as was asked",
                         summary->examples);
    const bool own = run->setup.own_dataset || run->setup.own_strategy;
    const char *how = run->crew.elsewhere ? "to go on, start all processes again, the leader with --resume="
                      : own               ? "this program goes on with the setting resume="
                                          : "go on with: trainer --resume=";
    if (run->interrupted)
        return error_set(error, ERROR_INTERRUPTED, "interrupted after %lld examples; %s%s%s",
                         summary->examples, how, TEXT_WORD(run->setup.config.out),
                         own || run->crew.elsewhere ? "" : run_resumed_with(run, options));
    return OK;
}

/* What a run that was over before had ended with. */
static int look_back(struct run *run, struct run_result *result, struct error *error) {
    RETURN_IF(test(run, error));
    result->config = run->setup.config;
    result->summary = (struct summary){.metric = run_metric(run),
                                       .test_score = run->tested.score,
                                       .test_cost = run->tested.cost,
                                       .views_score = (double)NAN,
                                       .final_cost = run->cost_before,
                                       .train_seconds = run->seconds_before};
    run_say_missed_faults(run);
    return OK;
}

/* From the model that was kept, or the checkpoint, where the optimizer's state goes along: what other
 * programs read is what `trainer export` would write. */
static int export_model(struct run *run, struct error *error) {
    const struct config *config = &run->setup.config;
    char model[PATH_BYTES];
    if (!config->export_to[0]) return OK;
    RETURN_IF(file_join(model, config->out, "model.safetensors", error));
    const struct format *format = NULL;
    RETURN_IF(export_format(&format, config->export_to, error));
    struct error why = {0};
    const int code = export_write(format->trains ? config->out : model, config->export_to, false, true, &why);
    if (code != OK)
        return error_set(error, code,
                         "%s; the run is kept: trainer export --checkpoint=%.200s FILE writes it", why.words,
                         config->out);
    lines_fit(&run->lines, "the network is in %s, too", config->export_to);
    return OK;
}

/* Coordinates from the first epoch to the last. */
static int coordinate_all(struct run *run, struct run_result *result, struct error *error) {
    run->examples_before = run->epoch_examples = run_examples(run);
    if (run->resumes) run->begun = resume_begun(&run->checkpoint);
    run->steps_before = run->resumes ? (long)checkpoint_number(&run->checkpoint, "steps", 0) : 0;
    run->version_before = run->phase_version = store_version(&run->store);
    run->phase_examples = run->examples_before;
    run->cost_before = run->resumes ? checkpoint_real(&run->checkpoint, "final_cost", NAN) : (double)NAN;
    run->checkpoint_s = world_now(run->world);
    run->target_s = run->resumes ? resume_target(&run->checkpoint, run->setup.config.target_accuracy) : NAN;
    run->has_checkpoint = run->folder_state == FOLDER_RESUMED;
    run->checkpoint_update = store_updates(&run->store);
    RETURN_IF(await_start(run, error));
    run->began_s = run->told_s = world_now(run->world);
    if (run->resumes) run_tell_event(run, EVENT_RESUMED, -1, run->setup.config.resume);
    int code = coordinate(run, error);
    if (code == OK) code = run->nothing_left ? look_back(run, result, error) : finish(run, result, error);
    if (code == OK) return export_model(run, error); /* what was learnt is kept, whatever becomes of it */
    if (code == ERROR_INTERRUPTED) return code;
    run_keep_rest(run, code, result, error);
    run_sum_up_failed(run, result);
    return code;
}

/* The state that it would begin with. */
static int keep_first(struct run *run, struct run_result *result, struct error *error) {
    result->summary.updates = store_updates(&run->store);
    if (run->fresh[0]) return error_set(error, ERROR_FILE, "%s: %s", run->setup.config.weights, run->fresh);
    run->target_s = run->cost_before = (double)NAN;
    RETURN_IF(await_start(run, error));
    RETURN_IF(run_keep(run, error));
    return run_keep_model(run, error);
}

/* Opens a run, does with it what is to be done, and closes it. */
static int run_through(const struct typed *typed, const struct crew *crew, struct world *world,
                       const struct embedding *embedding,
                       int (*go)(struct run *, struct run_result *, struct error *),
                       struct run_result *result, struct error *error) {
    struct run *run = NULL;
    const bool silent = embedding && !embedding->as_program;
    const bool quiet = silent || typed->value.quiet;
    *result = (struct run_result){0};
    RETURN_IF(memory_array(&run, 1, "the run", error));
    run->crew = *crew;
    run->world = world;
    run->embedding = embedding;
    run->silent = silent;
    run->imports = go == keep_first;
    progress_open(&run->progress, silent ? NULL : stderr, quiet);
    lines_open(&run->lines, quiet ? NULL : stdout, &run->progress);
    int code = typed->value.simulate[0] ? world_open_threads(&run->clock, error) : OK;
    if (code == OK) code = run_open(run, typed, error);
    if (code == OK) code = go(run, result, error);
    if (run->crew.finish && run->members) run->crew.finish(run->members, error, &result->summary);
    lines_close(&run->lines, code != OK);
    run_close(run);
    world_close(run->clock);
    result->abandoned = run->training.abandoned;
    if (!result->abandoned) memory_free(run);
    return code;
}

/* The same in this process alone, in a world of its own. */
static int run_through_here(const struct typed *typed, const struct embedding *embedding,
                            int (*go)(struct run *, struct run_result *, struct error *),
                            struct run_result *result, struct error *error) {
    struct world *world = NULL;
    *result = (struct run_result){0};
    RETURN_IF(run_open_world(&world, &typed->value, error));
    const int code = run_through(typed, &threads_crew, world, embedding, go, result, error);
    if (!result->abandoned) world_close(world);
    return code;
}

int run_train(const struct typed *typed, const struct crew *crew, struct world *world,
              struct run_result *result, struct error *error) {
    world_catch_interrupts();
    return run_through(typed, crew, world, NULL, coordinate_all, result, error);
}

int run_train_embedded(const struct typed *typed, const struct embedding *embedding,
                       struct run_result *result, struct error *error) {
    if (!embedding || embedding->as_program) world_catch_interrupts();
    return run_through_here(typed, embedding, coordinate_all, result, error);
}

int run_train_here(const struct typed *typed, struct run_result *result, struct error *error) {
    return run_train_embedded(typed, NULL, result, error);
}

int run_keep_first(const struct typed *typed, long *updates, struct error *error) {
    struct run_result result;
    const int code = run_through_here(typed, NULL, keep_first, &result, error);
    *updates = result.summary.updates;
    return code;
}

void run_result_free(struct run_result *result) {
    memory_free(result->workers);
    memory_free(result->joins);
    memory_free(result->waited_for);
    memory_free(result->member_names);
    memory_free(result->shard_staleness);
    memory_free(result->devices);
    memory_free(result->shard_bytes);
    memory_free(result->server_bytes);
    *result = (struct run_result){0};
}
