/* Training, as trainer.h has it: the run of `trainer train`, with a program around it. */
#include <string.h>
#include "../base/memory.h"
#include "../base/subnormal.h"
#include "training.h"

_Static_assert((int)TRAINER_VALUES == (int)TASK_VALUES, "trainer.h has the tasks of loss.h");

int trainer_training_open(struct trainer_training **training, struct trainer_error *error) {
    struct error why = {0};
    *training = NULL;
    if (memory_array(training, 1, "a training", &why) == OK)
        option_defaults(run_options, &(*training)->typed);
    return library_tell(&why, error);
}

void trainer_training_close(struct trainer_training *training) {
    if (!training || training->hangs) return;
    learnt_forget(&training->learnt);
    memory_free(training);
}

void trainer_training_as_program(struct trainer_training *training) {
    training->as_program = true;
}

void library_take_settings(struct trainer_training *training, const struct typed *typed) {
    training->typed = *typed;
}

static bool is_among(const char *const *names, const char *name) {
    while (*names && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

static int set(struct trainer_training *training, const char *name, const char *value, struct error *error) {
    static const char *const of_programs[] = {"resume", "replace", "explain", "quiet", "print-every", NULL};
    struct typed *typed = &training->typed;
    const struct option *row = option_find(run_options, name);
    if (row && row->group && strcmp(row->group, "Cluster") == 0)
        return error_set(error, ERROR_USAGE, "%s: a setting of the program `trainer` alone", row->name);
    if (row && !training->as_program && is_among(of_programs, row->name))
        return error_set(error, ERROR_USAGE, "%s: expected trainer_training_as_program before", row->name);
    RETURN_IF(option_set(run_options, typed, "setting", name, value, error));
    return row->typed ? row->typed(typed, (char *)typed + row->offset, row->bytes, error) : OK;
}

int trainer_training_set(struct trainer_training *training, const char *name, const char *value,
                         struct trainer_error *error) {
    struct error why = {0};
    set(training, name, value, &why);
    return library_tell(&why, error);
}

void trainer_training_watch(struct trainer_training *training, const struct trainer_watcher *watcher) {
    training->watcher = *watcher;
}

void trainer_training_stop(struct trainer_training *training) {
    atomic_store(&training->stop, true);
}

enum { OWN_DATA, OWN_STRATEGY, OWN };

/* own[OWN]: room for what the program brings. */
static int run(struct trainer_training *training, struct choice *own, struct run_result *result,
               struct error *error) {
    const struct embedding embedding = {.as_program = training->as_program,
                                        .dataset = training->own_data ? &own[OWN_DATA] : NULL,
                                        .strategy = training->own_strategy ? &own[OWN_STRATEGY] : NULL,
                                        .output = &library_output,
                                        .self = training,
                                        .stop = &training->stop};
    if (training->own_data && training->typed.given.dataset)
        return error_set(error, ERROR_USAGE, "dataset: found data of the program too, expected one of them");
    if (training->own_strategy && training->typed.given.strategy)
        return error_set(error, ERROR_USAGE, "strategy: found %s of the program too, expected one of them",
                         training->strategy.name);
    if (!training->as_program && !training->typed.value.out[0] &&
        (training->typed.given.outputs || training->typed.value.export_to[0]))
        return error_set(error, ERROR_USAGE, "%s: found no out, expected the folder of the run",
                         training->typed.given.outputs ? "outputs" : "export");
    library_choose_data(training, &own[OWN_DATA]);
    if (training->own_strategy) library_choose_strategy(training, &own[OWN_STRATEGY]);
    learnt_forget(&training->learnt);
    struct config *config = &training->typed.value;
    const bool replaces = config->replace;
    if (training->wrote[0] && strcmp(training->wrote, config->out) == 0) config->replace = true;
    const int code = run_train_embedded(&training->typed, &embedding, result, error);
    config->replace = replaces;
    if (code == OK || code == ERROR_INTERRUPTED)
        snprintf(training->wrote, sizeof training->wrote, "%s", config->out);
    return code;
}

static void give(struct trainer_result *out, const struct summary *summary) {
    *out = (struct trainer_result){.test_score = summary->test_score,
                                   .test_loss = summary->test_cost,
                                   .final_loss = summary->final_cost,
                                   .seconds = summary->train_seconds,
                                   .examples_per_s = summary->examples_per_s,
                                   .updates = summary->updates,
                                   .examples = summary->examples};
}

int trainer_training_run(struct trainer_training *training, struct trainer_result *result,
                         struct trainer_error *error) {
    const uint64_t mode = subnormals_mode(); /* of the caller's thread */
    struct error why = {0};
    struct run_result ran = {0};
    struct choice *own = NULL;
    if (training->runs) {
        error_set(&why, ERROR_USAGE, "the training runs already, expected its end before");
        return library_tell(&why, error);
    }
    training->runs = true;
    subnormals_flush();
    int code = memory_array(&own, OWN, "what the program brings", &why);
    if (code == OK) code = run(training, own, &ran, &why);
    atomic_store(&training->stop, false);
    if (training->as_program) run_print_results(code, &ran);
    if (result && (code == OK || code == ERROR_INTERRUPTED)) give(result, &ran.summary);
    training->hangs = training->hangs || ran.abandoned;
    if (!training->hangs) memory_free(own);
    run_result_free(&ran);
    subnormals_set(mode);
    training->runs = false;
    return library_tell(&why, error);
}
