/* See batch_time.h. A batch that is computed again and again without anything in between takes less time than
 * one of a training: its caches are warm, and the threads of a group have not gone to sleep. So the worker
 * here has replica, store and stream as in training, of which nothing remains. */
#include "batch_time.h"

#include <math.h>
#include <stdlib.h>

#include "../base/finite.h"
#include "../base/memory.h"
#include "../store/store.h"
#include "clip.h"
#include "replica.h"

enum { WARM_BATCHES = 2, LEAST_BATCHES = 3, MOST_BATCHES = 500 };
static const double seconds_of_batches = 0.5, rest_most_s = 0.1;

struct rehearsal {
    const struct batch_work *work;
    const struct device *device; /* the worker's first */
    const struct groups *groups;
    struct choice optimizer; /* with learning rate 0 */
    struct roster roster;    /* of one worker */
    struct store store;
    struct replicas replicas;
    struct compute compute;
    struct stream stream;
    int *index;    /* [batch + 1] */
    uint64_t *key; /* [batch + 1] */
    float *gradient;
    double seconds[MOST_BATCHES];
    int batches;
    bool abandoned; /* a device of the group hangs, and may still use all of this */
    struct error error;
};

/* --- a batch --- */

static int build_batch(struct rehearsal *r, long number) {
    const struct stream *stream = &r->stream;
    const struct indices indices = {.count = stream->batch, .index = r->index, .key = r->key};
    stream_batch(stream, 0, number, r->index);
    stream_keys(stream, 0, number, r->key);
    stream_next(stream, 0, number, &r->index[stream->batch], &r->key[stream->batch]);
    return r->compute.load(r->compute.self, 0, 0, number, &indices, &r->error);
}

/* What worker.c does in its phase of computing. The gradient is looked at only because that takes time. */
static int compute_batch(struct rehearsal *r) {
    const struct layout *layout = &r->work->network->graph.layout;
    const struct device *own = store_own_device(&r->store, 0);
    struct outcome outcome;
    float loss = 0.0f;
    RETURN_IF(r->compute.run(r->compute.self, 0, 0, r->store.weights, r->gradient, &loss, &r->error));
    RETURN_IF(r->compute.synchronize(r->compute.self, 0, false, &outcome, &r->error));
    if (!device_apart(own)) (void)all_finite(r->gradient, layout->floats);
    if (r->work->clip <= 0.0f) return OK;
    return gradient_clip(layout, own, r->gradient, r->work->clip, &r->error);
}

static int step_weights(struct rehearsal *r) {
    const struct gradient gradient = {.values = r->gradient, .examples = r->stream.batch};
    shard_apply(&r->store.shards[0], &gradient);
    return store_check(&r->store, &r->error);
}

static int take_batches(struct rehearsal *r) {
    struct world *world = r->work->world;
    const double factor = fmax(r->work->slowness, 1.0);
    double end = 0.0;
    for (long number = 0; r->batches < LEAST_BATCHES || (r->batches < MOST_BATCHES && world_now(world) < end);
         number++) {
        if (number == WARM_BATCHES) end = world_now(world) + seconds_of_batches;
        if (world_interrupted())
            return error_set(&r->error, ERROR_INTERRUPTED, "interrupted while devices were measured");
        const double began = world_now(world);
        RETURN_IF(build_batch(r, number));
        const double built = world_now(world);
        RETURN_IF(compute_batch(r));
        const double took = world_now(world) - built, input = r->work->with_input ? built - began : 0.0;
        if (factor > 1.0) world_sleep(world, fmin(took * (factor - 1.0), rest_most_s));
        if (number >= WARM_BATCHES) r->seconds[r->batches++] = input + took * factor;
        RETURN_IF(step_weights(r));
    }
    return OK;
}

/* --- open and close --- */

static int open_store(struct rehearsal *r) {
    const struct batch_work *work = r->work;
    struct optimizer_common *common = (void *)r->optimizer.settings;
    r->optimizer = *work->optimizer;
    common->rate = 0.0;
    RETURN_IF(roster_open(&r->roster, work->world, 1, 0, work->timeout_s, &r->error));
    const struct store_settings settings = {.layout = &work->network->graph.layout,
                                            .roster = &r->roster,
                                            .shards = 1,
                                            .strategy = work->strategy,
                                            .optimizer = &r->optimizer,
                                            .schedule = work->schedule,
                                            .total_updates = 1,
                                            .devices = r->device,
                                            .on_devices = work->on_devices && device_apart(r->device),
                                            .average = work->average};
    RETURN_IF(store_open(&r->store, &settings, &r->error));
    layout_initialize(settings.layout, work->seed, r->store.host.vector[0].at);
    store_begin_average(&r->store);
    RETURN_IF(store_send(&r->store, &r->error));
    return store_own_vector(&r->store, 0, &r->gradient, "a worker's gradient", &r->error);
}

static int open_stream(struct rehearsal *r) {
    const struct batch_work *work = r->work;
    const int batch = r->replicas.batch * work->microbatches;
    r->stream =
        (struct stream){.seed = work->seed, .examples = work->examples->count, .batch = batch, .workers = 1};
    RETURN_IF(memory_array(&r->index, batch + 1, "numbers of examples", &r->error));
    return memory_array(&r->key, batch + 1, "keys of examples", &r->error);
}

static int open_all(struct rehearsal *r) {
    const struct batch_work *work = r->work;
    RETURN_IF(open_store(r));
    RETURN_IF(replicas_open(&r->replicas, work->network, r->device, 1, work->examples, work->microbatches, 1,
                            &r->error));
    r->replicas.groups = r->groups;
    r->replicas.store = &r->store;
    r->compute = replicas_compute(&r->replicas);
    RETURN_IF(open_stream(r));
    return r->compute.open(r->compute.self, 0, &r->error);
}

static void close_all(struct rehearsal *r) {
    r->abandoned = !replicas_close(&r->replicas);
    if (r->abandoned) return;
    memory_free(r->key);
    memory_free(r->index);
    store_own_vector_free(&r->store, 0, r->gradient);
    store_close(&r->store);
    roster_close(&r->roster);
}

static void rehearse(void *argument) {
    struct rehearsal *r = argument;
    r->device->backend->enter(r->device);
    if (open_all(r) == OK) take_batches(r);
    close_all(r);
}

static int compare_seconds(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int run(struct rehearsal *r, struct error *error) {
    const struct cores *cores = r->device->pinned ? &r->device->cores : NULL;
    struct world_thread *thread = NULL;
    RETURN_IF(world_spawn(r->work->world, "batch time", cores, rehearse, r, &thread, error));
    world_join(thread);
    return r->error.code == OK ? OK : error_set(error, r->error.code, "%s", r->error.words);
}

int batch_time(const struct batch_work *work, const struct device *device, const struct groups *groups,
               double *seconds, bool *abandoned, struct error *error) {
    struct rehearsal *r = NULL;
    *abandoned = false;
    RETURN_IF(memory_array(&r, 1, "a rehearsal", error));
    r->work = work;
    r->device = groups ? groups->devices : device;
    r->groups = groups;
    int code = run(r, error);
    if (code == OK && r->abandoned)
        code = error_set(error, ERROR_PEER, "a device of %s's group did not end", r->device->name);
    if (code == OK) {
        qsort(r->seconds, (size_t)r->batches, sizeof *r->seconds, compare_seconds);
        *seconds = r->seconds[r->batches / 2];
    }
    *abandoned = r->abandoned;
    if (!r->abandoned) memory_free(r);
    return code;
}
