/* --simulate of a run: what it cannot be combined with. What measures would find that nothing takes time in
 * the simulated world, and a GPU says itself, in real time, when it has done something. */
#include <math.h>
#include <string.h>

#include "open.h"

int run_check_simulated(struct run *run, const struct faults *faults, struct error *error) {
    const struct config *config = &run->setup.config;
    double longest_s;
    RETURN_IF(step_time_parse(&run->step_time, config->simulate, error));
    run->step_time.seed = (uint64_t)config->seed;
    if (run->step_time.mean_s <= 0.0) return OK;
    longest_s = run->step_time.mean_s;
    for (int i = 0; i < faults->slow_count; i++)
        longest_s = fmax(longest_s, faults->slow[i].factor * run->step_time.mean_s);
    if (longest_s >= config->timeout_s)
        return error_set(
            error, ERROR_USAGE,
            "--simulate=%s: found a step of %g s, expected less than --timeout=%g, after which a "
            "worker is taken for lost",
            config->simulate, longest_s, config->timeout_s);
    if (strcmp(config->share, "auto") == 0)
        return error_set(error, ERROR_USAGE,
                         "--simulate=%s: found --share=auto, which measures the workers, expected even or "
                         "weights, as in --share=3,1",
                         config->simulate);
    if (strcmp(config->place, "auto") == 0)
        return error_set(
            error, ERROR_USAGE,
            "--simulate=%s: found --place=auto, which measures the devices, expected which layers "
            "lie where, as in --place='conv*=cpu:0,dense*=cpu:1'",
            config->simulate);
    if (!config->explain) return OK;
    return error_set(error, ERROR_USAGE,
                     "--simulate=%s: found --explain, which measures a device, expected one of the two",
                     config->simulate);
}

int run_check_simulated_devices(const struct run *run, struct error *error) {
    const struct setup *setup = &run->setup;
    for (int d = 0; run->step_time.mean_s > 0.0 && d < setup->device_count * setup->group; d++)
        if (device_apart(&setup->devices[d]))
            return error_set(error, ERROR_USAGE, "--simulate=%s: found %s, expected CPU devices alone",
                             setup->config.simulate, setup->devices[d].name);
    return OK;
}
