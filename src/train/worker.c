/* The training loop, written once: batch, pull, forward and backward, push. Every strategy and every device
 * goes through here. */
#include "worker.h"

#include <math.h>

#include "clip.h"

/* What is done between two clock readings, and how much of it was waiting. */
struct stopwatch {
    double at, waited;
};

static double lap_ms(struct stopwatch *watch, const struct member *member, double now, double *wait_ms) {
    const double waited = member->waited_s - watch->waited;
    const double took = now - watch->at - waited;
    *wait_ms += waited * 1e3;
    *watch = (struct stopwatch){.at = now, .waited = member->waited_s};
    return took * 1e3;
}

/* A fault put in on purpose, at the place where a device would fail or hang. */
static int meet_fault(struct worker *worker, long step) {
    const struct training_settings *settings = &worker->training->settings;
    const char *name = settings->roster->members[worker->index].name;
    switch (faults_at(&settings->faults, worker->index, step)) {
    case FAULT_NONE:
        return OK;
    case FAULT_FAIL:
        return error_set(&worker->error, ERROR_DEVICE, "%s failed at step %ld, as --fail asked", name, step);
    case FAULT_STALL:
        while (!world_stopped(settings->world) &&
               atomic_load(&settings->roster->members[worker->index].active) &&
               !atomic_load(&worker->training->ending))
            world_sleep(settings->world, 0.01);
    }
    return error_set(&worker->error, ERROR_PEER, "%s stalled at step %ld, as --stall asked", name, step);
}

static void be_slow(const struct worker *worker, double began_s) {
    const struct training_settings *settings = &worker->training->settings;
    const double factor = settings->slowness ? settings->slowness[worker->index] : 1.0;
    if (factor > 1.0) world_sleep(settings->world, (world_now(settings->world) - began_s) * (factor - 1.0));
}

/* What a step's computation came to, and when the worker had waited for it. */
struct meeting {
    struct outcome outcome;
    double from_s, at_s; /* world time when it began to wait, and when it was done */
    bool later;          /* in push, which waits for the device itself */
};

/* A worker that steps by itself vectors on its own device queues the step behind the gradient, and waits once
 * for both. Not where the host has to see the gradient before. */
static bool may_meet_later(const struct worker *worker) {
    const struct training *training = worker->training;
    const struct training_settings *settings = &training->settings;
    const struct device *device = store_own_device(settings->store, worker->index);
    return training->traits->steps_own && settings->compute.meet && device &&
           (training->traits->own_moments || store_shares_memory(settings->store, device)) &&
           settings->clip <= 0.0f && (!settings->slowness || settings->slowness[worker->index] <= 1.0);
}

static int meet(struct worker *worker, struct meeting *meeting) {
    const struct training_settings *settings = &worker->training->settings;
    if (!settings->compute.meet) return OK;
    if (!meeting->later) meeting->from_s = world_now(settings->world);
    worker->by_itself = true;
    RETURN_IF(settings->compute.meet(settings->compute.self, worker->index, meeting->later, &meeting->outcome,
                                     &worker->error));
    worker->by_itself = false;
    meeting->at_s = world_now(settings->world);
    return OK;
}

static int check_loss(struct worker *worker, const struct gradient *gradient, float loss) {
    const struct training_settings *settings = &worker->training->settings;
    if (isfinite(loss)) return OK;
    return error_set(&worker->error, ERROR_DIVERGED,
                     "%s: the loss is %s at step %ld, learning rate %g (a smaller rate may help)",
                     settings->roster->members[worker->index].name, isnan(loss) ? "nan" : "infinite",
                     gradient->step + 1, (double)store_rate(settings->store, gradient->version[0]));
}

static int compute_gradient(struct worker *worker, struct gradient *gradient, const struct feed *feed,
                            struct meeting *meeting) {
    struct training *training = worker->training;
    const struct training_settings *settings = &training->settings;
    const struct store *store = settings->store;
    float *slab = worker->slabs[gradient->slot];
    for (int s = 0; s < store->settings.shards; s++) gradient->version[s] = worker->side.version[s];
    gradient->values = slab;
    gradient->examples = feed->number == NO_BATCH ? 0 : settings->dealer->stream.batch;
    if (feed->number == NO_BATCH) return OK;
    RETURN_IF(meet_fault(worker, worker->side.step + 1));
    const double began_s = settings->slowness ? world_now(settings->world) : 0.0;
    worker->by_itself = true;
    RETURN_IF(settings->compute.run(settings->compute.self, worker->index, feed->buffer, worker->side.weights,
                                    slab, &meeting->outcome.loss, &worker->error));
    worker->by_itself = false;
    meeting->later = may_meet_later(worker);
    if (meeting->later) return OK;
    RETURN_IF(meet(worker, meeting));
    be_slow(worker, began_s);
    RETURN_IF(check_loss(worker, gradient, meeting->outcome.loss));
    if (settings->clip <= 0.0f) return OK;
    return gradient_clip(store->settings.layout, store_own_device(store, worker->index), slab, settings->clip,
                         &worker->error);
}

static void move_ms(double *from, double *to, double seconds) {
    const double ms = seconds * 1e3 < *from ? seconds * 1e3 : *from;
    if (ms <= 0.0) return;
    *from -= ms;
    *to += ms;
}

/* Where the worker waited once for what a device did of several phases, each gets its part of that wait:
 * until the device was through with what pull had queued, and until the gradient was there. */
static void share_out(struct log_row *row, const struct meeting *meeting, bool queued) {
    const struct outcome *outcome = &meeting->outcome;
    const double waited_s = meeting->at_s - meeting->from_s;
    if (!outcome->timed) return;
    if (meeting->later) move_ms(&row->push_ms, &row->compute_ms, waited_s - outcome->computed_s);
    if (queued) move_ms(&row->compute_ms, &row->pull_ms, waited_s - outcome->begun_s);
}

static void count_step(struct worker *worker, const struct log_row *row) {
    struct worker_totals *totals = &worker->totals;
    totals->input_s += row->input_ms / 1e3;
    totals->pull_s += row->pull_ms / 1e3;
    totals->compute_s += row->compute_ms / 1e3;
    totals->push_s += row->push_ms / 1e3;
    totals->wait_s += row->wait_ms / 1e3;
    if (row->examples == 0) return;
    if (totals->steps == 0) totals->first_loss = row->loss;
    totals->steps++;
    totals->examples += row->examples;
    totals->loss_sum += (double)row->loss;
    totals->loss_steps++;
    totals->last_loss = row->loss;
}

/* Who was given up for lost meanwhile must not touch the store any more. */
static int begin_exchange(struct worker *worker) {
    struct roster *roster = worker->training->settings.roster;
    if (roster_enter(roster, worker->index)) return OK;
    return error_set(&worker->error, ERROR_PEER, "%s came back after it was given up for lost",
                     roster->members[worker->index].name);
}

/* Of one that was not waited for before push, which has waited since. */
static int finish_computation(struct worker *worker, const struct gradient *gradient,
                              struct meeting *meeting) {
    RETURN_IF(meet(worker, meeting));
    feeder_give_back(&worker->feeder);
    return check_loss(worker, gradient, meeting->outcome.loss);
}

/* Input comes before pull: while this worker gets its batch, the others arrive. */
static int take_step(struct worker *worker, bool *paused) {
    struct training *training = worker->training;
    const struct training_settings *settings = &training->settings;
    struct worker_side *side = &worker->side;
    struct roster *roster = settings->roster;
    const struct member *member = &roster->members[worker->index];
    struct log_row row = {.worker = worker->index, .step = side->step + 1};

    struct stopwatch watch = {.at = worker->accounted_s, .waited = member->waited_s};
    roster_phase(roster, worker->index, PHASE_INPUT);
    atomic_store_explicit(&roster->members[worker->index].step, row.step, memory_order_relaxed);
    struct feed feed;
    worker->by_itself = true;
    RETURN_IF(feeder_take(&worker->feeder, &feed, &worker->error));
    worker->by_itself = false;
    *paused = feed.pause;
    if (feed.pause) {
        feeder_give_back(&worker->feeder);
        return OK;
    }
    watch.waited = member->waited_s; /* waiting for the feeder is input, too */
    row.input_ms = lap_ms(&watch, member, roster_phase(roster, worker->index, PHASE_PULL), &row.wait_ms);
    RETURN_IF(begin_exchange(worker));
    side->queued = false;
    RETURN_IF(strategy_take_all(side, &worker->error));
    roster_alone(roster, worker->index);
    row.pull_ms = lap_ms(&watch, member, roster_phase(roster, worker->index, PHASE_COMPUTE), &row.wait_ms);
    struct gradient *gradient = store_gradient(settings->store, worker->index, side->step);
    struct meeting meeting = {0};
    RETURN_IF(compute_gradient(worker, gradient, &feed, &meeting));
    if (!meeting.later) feeder_give_back(&worker->feeder);
    row.compute_ms = lap_ms(&watch, member, roster_phase(roster, worker->index, PHASE_PUSH), &row.wait_ms);
    if (meeting.later) meeting.from_s = watch.at;
    row.examples = gradient->examples;
    RETURN_IF(begin_exchange(worker));
    RETURN_IF(strategy_send_all(side, gradient, &worker->error));
    roster_alone(roster, worker->index);
    if (meeting.later) RETURN_IF(finish_computation(worker, gradient, &meeting));
    side->step++;
    row.loss = meeting.outcome.loss;
    row.push_ms = lap_ms(&watch, member, world_now(settings->world), &row.wait_ms);
    share_out(&row, &meeting, side->queued);
    worker->accounted_s = watch.at;
    row.time_s = settings->seconds_before + watch.at - training->started_s - training->paused_s;
    if (row.examples > 0) {
        int epoch = 0;
        dealer_place(settings->dealer, worker->index, feed.number, &epoch, &row.batch, &row.batches);
        row.epoch = epoch + 1;
        row.batch++;
        row.learning_rate = store_rate(settings->store, gradient->version[0]);
    }
    count_step(worker, &row);
    worker->rows[gradient->slot] = row;
    store_release(settings->store, gradient);
    return OK;
}

/* The last holder has let go of a gradient: its row is complete. Runs on a worker's or a server's thread. */
void training_finished(void *argument, struct gradient *gradient) {
    struct training *training = argument;
    struct log *log = training->settings.log;
    struct log_row *row = &training->workers[gradient->worker].rows[gradient->slot];
    if (!log || row->examples == 0 || !log_wants(log, row->step)) return;
    row->staleness = atomic_load(&gradient->staleness);
    row->version = atomic_load(&gradient->applied_version);
    row->read_version = gradient->version[0];
    while (!log_put(log, row) && !world_stopped(training->settings.world)) {
        atomic_store(&training->log_full, true);
        event_post(&training->bell);
        world_sleep(training->settings.world, 1e-4);
    }
}

/* What a worker does at a border is time of training, too: waking up is waiting, coming to rest is exchange.
 */
static void account_for_waking(struct worker *worker) {
    const double now = world_now(worker->training->settings.world);
    worker->totals.wait_s += now - worker->training->went_s;
    worker->accounted_s = now;
}

static void account_for_resting(struct worker *worker, double waited_s) {
    const double now = world_now(worker->training->settings.world);
    worker->totals.wait_s += waited_s;
    worker->totals.pull_s += now - worker->accounted_s - waited_s;
    worker->accounted_s = now;
}

/* Steps until the dealer says pause, then sees its last gradients applied. */
static int run_segment(struct worker *worker) {
    struct training *training = worker->training;
    struct roster *roster = training->settings.roster;
    const struct member *member = &roster->members[worker->index];
    bool paused = false;
    account_for_waking(worker);
    feeder_begin(&worker->feeder);
    double waited_s = member->waited_s;
    while (!paused && !world_stopped(training->settings.world)) {
        waited_s = member->waited_s;
        RETURN_IF(take_step(worker, &paused));
    }
    roster_phase(roster, worker->index, PHASE_PULL);
    RETURN_IF(begin_exchange(worker));
    RETURN_IF(strategy_rest_all(&worker->side, &worker->error));
    RETURN_IF(store_drain(training->settings.store, worker->index, &worker->error));
    roster_alone(roster, worker->index);
    account_for_resting(worker, member->waited_s - waited_s);
    return OK;
}

/* A copy that is only read by this worker's device is there; one that is stepped is where the worker's other
 * own vectors are, which is there too when the shards live on devices. */
static int open_own_weights(struct worker *worker) {
    const struct training_settings *settings = &worker->training->settings;
    const struct store *store = settings->store;
    const struct device *device = settings->devices ? &settings->devices[worker->index] : NULL;
    void *block = NULL;
    if (!device || store->home_count > 0 || !training_copies_to(store, worker->training->traits, device))
        return store_own_vector(store, worker->index, &worker->own_weights, "a worker's weights",
                                &worker->error);
    RETURN_IF(device->backend->allocate(device, &block,
                                        settings->store->settings.layout->floats * sizeof(float),
                                        "a worker's weights", &worker->error));
    worker->own_weights = block;
    worker->side.device = device;
    return OK;
}

static int open_worker(struct worker *worker) {
    const struct training_settings *settings = &worker->training->settings;
    const struct store *store = settings->store;
    if (settings->compute.open)
        RETURN_IF(settings->compute.open(settings->compute.self, worker->index, &worker->error));
    if (worker->training->traits->own_weights) RETURN_IF(open_own_weights(worker));
    worker->side.weights = worker->own_weights ? worker->own_weights : settings->store->weights;
    for (int m = 0; m < 2 && worker->training->traits->own_moments; m++) {
        if (!settings->store->moments[m]) continue;
        RETURN_IF(store_own_vector(store, worker->index, &worker->own_moments[m],
                                   "a worker's optimizer state", &worker->error));
        worker->side.moments[m] = worker->own_moments[m];
    }
    if (worker->training->traits->own_moments && settings->store->average) {
        RETURN_IF(store_own_vector(store, worker->index, &worker->own_average, "a worker's average",
                                   &worker->error));
        worker->side.average = worker->own_average;
    }
    for (int i = 0; i < worker->slab_count; i++)
        RETURN_IF(
            store_own_vector(store, worker->index, &worker->slabs[i], "a worker's gradient", &worker->error));
    return OK;
}

/* Its device failed, or its peer is gone, or something else. Only the first two can be a loss: a wait that
 * gave up, or a loss that is not a number, is everybody's. A worker that fails is still awaited: nobody may
 * go on as if it had left, the world is stopped instead. */
static void end_worker(struct worker *worker, int code) {
    struct training *training = worker->training;
    struct roster *roster = training->settings.roster;
    if (code == OK) {
        roster_leave(roster, worker->index, PHASE_DONE);
    } else if ((code == ERROR_DEVICE || worker->by_itself) && training_spares(training, worker->index) &&
               roster_expel(roster, worker->index)) {
        training_lose(training, worker->index, &worker->error);
    } else if (!roster_expelled(roster, worker->index)) {
        roster_phase(roster, worker->index, PHASE_FAILED);
        training_fail(training, worker->index);
    }
}

void worker_body(void *argument) {
    struct worker *worker = argument;
    struct training *training = worker->training;
    struct roster *roster = training->settings.roster;
    int code = open_worker(worker);
    if (code == OK) {
        roster_phase(roster, worker->index, PHASE_PAUSED);
        event_post(&training->bell);
    }
    for (uint64_t segment = 1; code == OK; segment++) {
        roster_phase(roster, worker->index, PHASE_PAUSED);
        if (event_wait(&training->go, segment, INFINITY) != WAIT_DONE || atomic_load(&training->ending))
            break;
        code = run_segment(worker);
        if (code == OK) {
            roster_phase(roster, worker->index, PHASE_PAUSED);
            atomic_store(&worker->pauses, (long)segment);
            event_post(&training->bell);
        }
    }
    end_worker(worker, code);
}
