/* --simulate: the world of a run, and what is otherwise in the simulated one; what it cannot be combined
 * with. What measures would find that nothing takes time there, and a GPU says itself, in real time, when it
 * has done something. */
#include <math.h>
#include <string.h>

#include "../engine/faults.h"
#include "open.h"

/* Of a worker whose step takes as long as --timeout, all others would think that it hangs. */
static int check_longest(const struct config *config, const struct step_time *step_time,
                         struct error *error) {
    struct faults faults;
    double longest_s = step_time->mean_s;
    RETURN_IF(faults_parse(&faults, config->fail, config->stall, config->slow, error));
    for (int i = 0; i < faults.slow_count; i++)
        longest_s = fmax(longest_s, faults.slow[i].factor * step_time->mean_s);
    if (longest_s < config->timeout_s) return OK;
    return error_set(
        error, ERROR_USAGE,
        "--simulate=%s: found a step of %g s, expected less than --timeout=%g, after which a worker is "
        "taken for lost",
        config->simulate, longest_s, config->timeout_s);
}

static int refuse(const struct config *config, const char *found, const char *expected, struct error *error) {
    return error_set(error, ERROR_USAGE, "--simulate=%s: found %s, expected %s", config->simulate, found,
                     expected);
}

int setup_check_simulated(const struct config *config, struct step_time *step_time, struct error *error) {
    RETURN_IF(step_time_parse(step_time, config->simulate, error));
    step_time->seed = (uint64_t)config->seed;
    if (step_time->mean_s <= 0.0) return OK;
    RETURN_IF(check_longest(config, step_time, error));
    if (strcmp(config->place, "auto") == 0)
        return refuse(config, "--place=auto, which measures the devices",
                      "which layers lie where, as in --place='conv*=cpu:0,dense*=cpu:1'", error);
    if (!config->explain) return OK;
    return refuse(config, "--explain, which measures a device", "one of the two", error);
}

int setup_check_simulated_devices(const struct setup *setup, struct error *error) {
    for (int d = 0; setup->config.simulate[0] && d < setup->device_count * setup->group; d++)
        if (device_apart(&setup->devices[d]))
            return error_set(error, ERROR_USAGE, "--simulate=%s: found %s, expected CPU devices alone",
                             setup->config.simulate, setup->devices[d].name);
    return OK;
}

/* --- a run --- */

int run_open_world(struct world **out, const struct config *config, struct error *error) {
    return config->simulate[0] ? world_open_simulated(out, (uint64_t)config->seed, error)
                               : world_open_threads(out, error);
}

/* The world is opened before the checkpoint is read; and real and virtual times, or those of two kinds of
 * steps, have no sum. */
int run_check_simulated(const struct run *run, const struct typed *typed, struct error *error) {
    const char *saved = safetensors_text(&run->checkpoint, "simulate"), *now = typed->value.simulate;
    const char *path = typed->value.resume;
    if (!saved) saved = "";
    if (strcmp(saved, now) == 0) return OK;
    if (!saved[0])
        return error_set(error, ERROR_USAGE, "--simulate=%s: the run in %.200s is none that is simulated",
                         now, path);
    if (!now[0])
        return error_set(error, ERROR_USAGE,
                         "--resume=%.200s: the run is simulated, expected --simulate=%.60s, too", path,
                         saved);
    return error_set(error, ERROR_USAGE, "--simulate=%s: the run in %.200s has %.60s, expected that", now,
                     path, saved);
}

/* How often the coordinator looks for an interrupt, and how often it empties the log. The latter takes a core
 * away from a worker. In a simulated run it does both once per step: workers never run beside it, and any
 * other time would be many steps, or none. */
enum { LOOK_MS = 20, DRAIN_MS = 100 };

double run_look_s(const struct run *run) {
    return run->step_time.mean_s > 0.0 ? run->step_time.mean_s : LOOK_MS / 1e3;
}

double run_drain_s(const struct run *run) {
    return run->step_time.mean_s > 0.0 ? 0.0 : DRAIN_MS / 1e3;
}

/* Whoever looks on, waits in real time. */
double run_real_now(const struct run *run) {
    return world_now(run->clock ? run->clock : run->world);
}
