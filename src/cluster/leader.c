/* Where the run in the folder stands decides how the next session begins. See leader.h. */
#include "leader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../run/folder.h"
#include "../run/resume.h"

/* --- the run that is in the folder --- */

/* Through its epochs, or stopped early, with its model: one that was killed before still has to write that.
 */
static bool is_over(const struct safetensors *checkpoint, const struct config *saved,
                    const struct typed *typed) {
    const int stop = typed->value.stop_after;
    const int last = stop > 0 && stop < saved->epochs ? stop : saved->epochs;
    const double done = checkpoint_real(checkpoint, "epochs_done", 0.0);
    const struct best_epoch best = resume_best(checkpoint);
    char model[PATH_BYTES];
    struct error ignored = {0};
    const bool stale = saved->early_stop > 0 && best.epoch > 0 && done - best.epoch >= saved->early_stop;
    return (stale || done >= last) &&
           file_join(model, typed->value.out, "model.safetensors", &ignored) == OK && file_exists(model);
}

struct comparison {
    const struct typed *typed;
    struct error *error;
};

/* A setting of the run in the folder, with what was typed now. */
static int compare_row(void *argument, const struct option *row, const char *saved) {
    const struct comparison *comparison = argument;
    const struct option *typed = option_find(run_options, row->name);
    const char *folder = comparison->typed->value.out;
    char value[CONFIG_VALUE_BYTES];
    bool given;
    memcpy(&given, (const char *)comparison->typed + typed->given, sizeof given);
    option_text(typed, comparison->typed, value, sizeof value);
    if (!given || strcmp(value, saved) == 0) return OK;
    return error_set(comparison->error, ERROR_USAGE,
                     "--%s=%.100s: found --restart-wait and a run in %.100s that has %.100s, expected the "
                     "command that it was started with (--resume=%.100s changes settings)",
                     row->name, value, folder, saved, folder);
}

static int take_up(struct typed *typed, const struct safetensors *checkpoint, struct error *error) {
    const struct config_source source = resume_source(checkpoint, typed->value.out);
    const struct comparison comparison = {typed, error};
    struct typed *nothing = NULL;
    RETURN_IF(resume_check(checkpoint, typed->value.out, error));
    RETURN_IF(memory_array(&nothing, 2, "the settings of a run", error));
    option_defaults(run_options, &nothing[0]);
    struct config *saved = &nothing[1].value;
    int code = config_settle(saved, &nothing[0], &source, OPTION_SAVED, ERROR_FILE, error);
    if (code == OK && !is_over(checkpoint, saved, typed)) {
        code = config_each(saved, OPTION_SAVED, compare_row, (void *)&comparison);
        memcpy(typed->value.resume, typed->value.out, sizeof typed->value.resume);
        typed->given.resume = true;
        typed->given.weights = false; /* which it began with */
        typed->value.weights[0] = '\0';
    }
    memory_free(nothing);
    return code;
}

/* What --resume would be typed for; a run that is over stays as it is, and is refused. */
static int find_run(struct typed *typed, struct error *error) {
    struct safetensors checkpoint = {0};
    char path[PATH_BYTES];
    struct config *config = &typed->value;
    if (config->replace)
        return error_set(error, ERROR_USAGE,
                         "--replace and --restart-wait: expected one of them, a run that is there goes or "
                         "goes on");
    if (config->resume[0] && (!config->out[0] || strcmp(config->out, config->resume) == 0))
        return OK; /* that run goes on, the first time and later */
    if (!config->out[0])
        return error_set(
            error, ERROR_USAGE,
            "--restart-wait=%g: expected --out=FOLDER too, from whose checkpoint the run goes on",
            config->restart_wait_s);
    RETURN_IF(file_join(path, config->out, FOLDER_CHECKPOINT, error));
    if (!file_exists(path)) return OK;
    int code = checkpoint_read(config->out, &checkpoint, error);
    if (code == OK) code = take_up(typed, &checkpoint, error);
    safetensors_free(&checkpoint);
    return code;
}

/* --- its sessions --- */

int leader_session(const struct members_settings *settings, struct run_result *result, struct error *error) {
    const struct cluster_session *session = settings->session;
    const struct crew crew = members_crew(settings);
    struct typed *typed = NULL;
    if (session->typed->value.restart_wait_s <= 0.0)
        return run_train(session->typed, &crew, session->world, result, error);
    RETURN_IF(memory_array(&typed, 1, "the settings of a session", error));
    *typed = *session->typed;
    int code = find_run(typed, error);
    if (code == OK) code = run_train(typed, &crew, session->world, result, error);
    if (!result->abandoned) memory_free(typed);
    return code;
}

static int train(void *argument, struct cluster_session *session, bool *abandoned, struct error *error) {
    const struct members_settings settings = {.cluster = session->cluster, .session = session};
    struct run_result *result = argument;
    run_result_free(result);
    leader_session(&settings, result, error);
    *abandoned = result->abandoned;
    return error->code;
}

int leader_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                 struct run_result *result, struct error *error) {
    bool abandoned;
    *result = (struct run_result){0};
    return sessions_train(typed, cluster, world, train, result, &abandoned, error);
}
