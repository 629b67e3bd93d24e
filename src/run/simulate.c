/* --simulate: what it cannot be combined with. What measures would find that nothing takes time in the
 * simulated world, and a GPU says itself, in real time, when it has done something. */
#include <math.h>
#include <string.h>

#include "../engine/faults.h"
#include "setup.h"

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

int setup_check_simulated(const struct config *config, struct step_time *step_time, struct error *error) {
    RETURN_IF(step_time_parse(step_time, config->simulate, error));
    step_time->seed = (uint64_t)config->seed;
    if (step_time->mean_s <= 0.0) return OK;
    RETURN_IF(check_longest(config, step_time, error));
    if (strcmp(config->share, "auto") == 0)
        return error_set(
            error, ERROR_USAGE,
            "--simulate=%s: found --share=auto, which measures the workers, expected even or weights, "
            "as in --share=3,1",
            config->simulate);
    if (strcmp(config->place, "auto") == 0)
        return error_set(
            error, ERROR_USAGE,
            "--simulate=%s: found --place=auto, which measures the devices, expected which layers lie "
            "where, as in --place='conv*=cpu:0,dense*=cpu:1'",
            config->simulate);
    if (!config->explain) return OK;
    return error_set(error, ERROR_USAGE,
                     "--simulate=%s: found --explain, which measures a device, expected one of the two",
                     config->simulate);
}

int setup_check_simulated_devices(const struct setup *setup, struct error *error) {
    for (int d = 0; setup->config.simulate[0] && d < setup->device_count * setup->group; d++)
        if (device_apart(&setup->devices[d]))
            return error_set(error, ERROR_USAGE, "--simulate=%s: found %s, expected CPU devices alone",
                             setup->config.simulate, setup->devices[d].name);
    return OK;
}
