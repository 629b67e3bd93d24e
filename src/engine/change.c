/* Another strategy in the middle of a run, while all are paused: it begins as it would in a run that is
 * resumed there. Steps and rounds are counted from 0 again, nobody has weights yet, and what the shards had
 * for the strategy before is gone. What a worker computes on is changed by its own thread, when the next
 * segment begins: so a worker that was lost, whose thread may hang still, keeps what it uses. */
#include "worker.h"

int training_open_strategy(struct training *training, struct error *error) {
    const struct training_settings *settings = &training->settings;
    if (!training->strategy->open) return OK;
    for (int s = 0; s < settings->store->settings.shards; s++)
        RETURN_IF(training->strategy->open(&settings->store->shards[s], settings->strategy->settings, error));
    return OK;
}

void training_close_strategy(struct training *training) {
    const struct store *store = training->settings.store;
    for (int s = 0; store && training->strategy->close && s < store->settings.shards; s++)
        training->strategy->close(&store->shards[s]);
}

int training_change(struct training *training, bool go_on, struct error *error) {
    struct roster *roster = training->settings.roster;
    for (int w = 0; w < roster->workers; w++) {
        struct worker *worker = &training->workers[w];
        struct member *member = &roster->members[w];
        if (!atomic_load(&member->active)) continue; /* its steps are counted if it comes again */
        member->earlier += worker->side.step;
        worker->counted = training->changes + 1;
        atomic_store(&member->step, 0);
    }
    training_close_strategy(training);
    training->strategy = strategy_of(training->settings.strategy);
    training->traits = strategy_traits(training->strategy, training->settings.strategy->settings);
    training->settings.go_on = go_on;
    training->changes++;
    return training_open_strategy(training, error);
}

/* A copy that is only read by this worker's device is there; one that is stepped is where the worker's other
 * own vectors are, which is there too when the shards live on devices. */
int worker_open_own(struct worker *worker) {
    const struct training_settings *settings = &worker->training->settings;
    struct store *store = settings->store;
    const struct traits *traits = worker->traits;
    const struct device *device = settings->devices ? &settings->devices[worker->index] : NULL;
    struct worker_side *side = &worker->side;
    side->weights = store->weights;
    side->device = store_own_device(store, worker->index);
    if (!traits->own_weights) return OK;
    if (traits->own_moments || !device || device_same_memory(device, side->device)) {
        RETURN_IF(store_own_state(store, worker->index, traits->own_moments, &side->own, &worker->error));
        side->weights = side->own.vector[0].at;
        store->workers[worker->index].own = &side->own;
        return OK;
    }
    RETURN_IF(device_array(device, &worker->there, store->settings.layout->floats, "a worker's weights",
                           &worker->error));
    side->weights = worker->there;
    side->device = device;
    return OK;
}

void worker_close_own(struct worker *worker) {
    if (!worker->training) return; /* it was never opened */
    struct store *store = worker->training->settings.store;
    const struct device *device = worker->side.device;
    if (worker->there) device->backend->release(device, worker->there);
    store_own_state_free(store, worker->index, &worker->side.own);
    worker->there = NULL;
    worker->side.own = (struct state){0};
    store->workers[worker->index].own = NULL;
}

static bool owns_alike(const struct traits *a, const struct traits *b) {
    return a->own_weights == b->own_weights && a->own_moments == b->own_moments;
}

int worker_change(struct worker *worker) {
    struct training *training = worker->training;
    const struct compute *compute = &training->settings.compute;
    struct store *store = training->settings.store;
    struct worker_slots *slots = &store->workers[worker->index];
    struct worker_side *side = &worker->side;
    if (worker->changes == training->changes) return OK;
    if (worker->counted != training->changes) /* so its steps are there still for who comes in its place */
        return error_set(&worker->error, ERROR_PEER, "lost while all were paused");
    const bool alike = owns_alike(worker->traits, training->traits);
    worker->changes = training->changes;
    worker->traits = training->traits;
    side->strategy = training->strategy;
    side->step = 0;
    for (int s = 0; s < store->settings.shards; s++) side->version[s] = -1;
    slots->own_written = slots->own_behind = false;
    if (!alike) worker_close_own(worker);
    if (!alike) RETURN_IF(worker_open_own(worker));
    return compute->change ? compute->change(compute->self, worker->index, &worker->error) : OK;
}
