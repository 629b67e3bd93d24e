/* What ends a run that diverges: a loss, or a gradient where the loss is none, that is not finite; and a loss
 * that has been hopeless for too long. */
#include <math.h>

#include "../base/finite.h"
#include "worker.h"

int worker_check_loss(struct worker *worker, long step, double rate, float loss) {
    const struct training_settings *settings = &worker->training->settings;
    const char *name = settings->roster->members[worker->index].name;
    if (!isfinite(loss))
        return error_set(&worker->error, ERROR_DIVERGED,
                         "%s: the loss is %s at step %ld, learning rate %g (a smaller rate may help)", name,
                         isnan(loss) ? "nan" : "infinite", step, rate);
    const double first = (double)(worker->totals.steps > 0 ? worker->totals.first_loss : loss);
    const bool hopeless = training_is_hopeless(settings, first, (double)loss);
    worker->hopeless_steps = hopeless ? worker->hopeless_steps + 1 : 0;
    if (worker->hopeless_steps < HOPELESS_STEPS) return OK;
    return error_set(&worker->error, ERROR_DIVERGED,
                     "%s: the loss is %.4g at step %ld, over %g times what it began with for %d steps in a "
                     "row, learning rate %g (a smaller rate may help)",
                     name, (double)loss, step, HOPELESS_TIMES, HOPELESS_STEPS, rate);
}

/* The range of the layout with the first value that is not finite. */
static const struct range *find_not_finite(const struct layout *layout, const float *values) {
    for (int r = 0; r < layout->count; r++)
        if (!all_finite(values + layout->ranges[r].begin, layout->ranges[r].floats))
            return &layout->ranges[r];
    return NULL;
}

/* What a device with memory of its own has computed is looked at there, by the step itself. */
int worker_check_gradient(struct worker *worker, const struct gradient *gradient, long step) {
    const struct training_settings *settings = &worker->training->settings;
    const struct layout *layout = settings->store->settings.layout;
    if (device_apart(store_own_device(settings->store, worker->index))) return OK;
    if (all_finite(gradient->values, layout->floats)) return OK;
    const struct range *range = find_not_finite(layout, gradient->values);
    return error_set(&worker->error, ERROR_DIVERGED,
                     "%s: the gradient of %s is not finite at step %ld and was not applied, learning rate %g "
                     "(a smaller rate may help)",
                     settings->roster->members[worker->index].name, range ? range->name : "the weights", step,
                     (double)store_rate(settings->store, gradient->version[0]));
}
