/* What was asked for and never came: faults, which make a run look more robust than it is, and the accuracy
 * that was to be reached. */
#include <math.h>
#include <stdio.h>

#include "open.h"

/* "--fail=worker:1@step:50" */
static void name_fault(const struct fault *fault, char *out, size_t bytes) {
    const char *option = fault->kind == FAULT_FAIL ? "fail" : "stall";
    if (!fault->server)
        snprintf(out, bytes, "--%s=worker:%d@step:%ld", option, fault->member, fault->step);
    else if (fault->member < 0)
        snprintf(out, bytes, "--%s=server", option);
    else
        snprintf(out, bytes, "--%s=server:%d", option, fault->member);
}

/* Why it did not come, in out[bytes]; false: it came. Whoever comes to a fault is lost, or the run ends
 * there.
 */
static bool missed(const struct run *run, const struct fault *fault, char *out, size_t bytes) {
    long lost_step = 0;
    const char *words = NULL;
    if (fault->server) { /* from its first gradient on */
        snprintf(out, bytes, "there was no step to take");
        return run_steps(run) == run->steps_before;
    }
    const long steps = training_totals(&run->training, fault->member)->steps;
    if (training_lost(&run->training, fault->member, &lost_step, &words)) {
        lost_step += run->roster.members[fault->member].earlier;
        snprintf(out, bytes, "that worker was lost at step %ld", lost_step);
        return lost_step != fault->step;
    }
    snprintf(out, bytes, "that worker took %ld step%s", steps, steps == 1 ? "" : "s");
    return steps < fault->step;
}

void run_say_missed_faults(struct run *run) {
    const struct faults *faults = &run->training.settings.faults;
    for (int i = 0; i < faults->count; i++) {
        char name[64], why[64];
        if (!missed(run, &faults->list[i], why, sizeof why)) continue;
        name_fault(&faults->list[i], name, sizeof name);
        progress_warn(&run->progress, "%s was never reached: %s", name, why);
    }
}

void run_say_missed_target(struct run *run) {
    const struct config *config = &run->setup.config;
    if (isnan(config->target_accuracy) || !isnan(run->target_s) || run->highest_epoch == 0) return;
    if (run->interrupted || config->quiet) return; /* broken off, it may still come there */
    progress_warn(&run->progress, "--target-accuracy=%g was never reached: the best was %.4f, in epoch %d",
                  config->target_accuracy, run->highest, run->highest_epoch);
}
