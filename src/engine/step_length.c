/* How long a step computes: for as long as it does, or as it is to. */
#include <math.h>

#include "worker.h"

/* Seconds since the step began to compute, without those that weights and gradient were on their way. */
static double find_computed(const struct worker *worker, double since_s, double *wire_s) {
    const struct training_settings *settings = &worker->training->settings;
    const struct compute *compute = &settings->compute;
    const double took_s = world_now(settings->world) - since_s;
    if (!compute->computed) return took_s;
    *wire_s = fmax(took_s - compute->computed(compute->self, worker->index), 0.0);
    return took_s - *wire_s;
}

void worker_take_time(struct worker *worker, double since_s, long step, double *wire_s) {
    const struct training_settings *settings = &worker->training->settings;
    const double factor = settings->slowness ? settings->slowness[worker->index] : 1.0;
    if (factor <= 1.0 && !settings->compute.computed && settings->step_time.mean_s <= 0.0) return;
    const double computed_s = find_computed(worker, since_s, wire_s);
    if (settings->step_time.mean_s > 0.0) { /* a part of another size than --batch takes so much longer */
        const struct stream *stream = &settings->sampler->stream;
        const double parts = (double)stream_size(stream, worker->index) / stream->batch;
        world_sleep(settings->world,
                    factor * parts * step_time_of(&settings->step_time, worker->index, step));
    } else if (factor > 1.0) {
        slowed_sleep(&worker->slowed, settings->world, computed_s, factor);
    }
}
