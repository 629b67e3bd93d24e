/* Whether a run that is to go on has anything left to do. One that was killed behind its last checkpoint has:
 * its folder has no model and no summary yet, or those of where it was interrupted before. */
#include <math.h>
#include <string.h>

#include "../base/json.h"
#include "../base/memory.h"
#include "open.h"

enum { SUMMARY_BYTES = 1 << 24 };

static bool has_its_model(const struct run *run, long long examples) {
    struct error ignored = {0};
    struct safetensors model = {0};
    char path[PATH_BYTES];
    const bool is = file_join(path, run->setup.config.out, "model.safetensors", &ignored) == OK &&
                    safetensors_read(path, &model, &ignored) == OK &&
                    checkpoint_number(&model, "examples", 0) == examples;
    safetensors_free(&model);
    return is;
}

/* Or none: not every run writes one. */
static bool has_its_summary(const struct run *run, long long examples) {
    struct error ignored = {0};
    struct json json = {0};
    char path[PATH_BYTES], *text = NULL;
    size_t bytes = 0;
    if (file_join(path, run->setup.config.out, "summary.json", &ignored) != OK) return false;
    if (!file_exists(path)) return true;
    bool is = file_read_plain(path, SUMMARY_BYTES, &text, &bytes, &ignored) == OK &&
              json_parse(&json, text, bytes, &ignored) == OK;
    const struct json_value *value = is ? json_member(&json, json.values, "examples") : NULL;
    is = value && value->kind == JSON_NUMBER && value->number == (double)examples;
    json_free(&json);
    memory_free(text);
    return is;
}

bool run_is_over(const struct run *run) {
    const struct config *config = &run->setup.config;
    if (!run->resumes || run->crew.elsewhere || strcmp(config->resume, config->out) != 0) return false;
    if (!sampler_reached(&run->sampler, config->epochs - 1) && !run_is_stale(run)) return false;
    const long long examples = checkpoint_number(&run->checkpoint, "examples", 0);
    return has_its_model(run, examples) && has_its_summary(run, examples);
}

int run_check_epochs(const struct run *run, bool typed, struct error *error) {
    const struct config *config = &run->setup.config;
    const double done = run->resumes ? checkpoint_real(&run->checkpoint, "epochs_done", 0.0) : 0.0;
    if (run->led || run->folder_state == FOLDER_RESUMED || floor(done) <= config->epochs) return OK;
    if (!typed)
        return error_set(error, ERROR_FILE, "%.200s: epochs_done=%g: expected at most its epochs, %d",
                         config->resume, done, config->epochs);
    return error_set(error, ERROR_USAGE, "--epochs=%d: %.200s has done %.0f epochs, expected as many or more",
                     config->epochs, config->resume, floor(done));
}
