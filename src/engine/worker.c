/* The training loop, written once: batch, pull, forward and backward, push. Every strategy and every device
 * goes through here. */
#include "worker.h"

#include <math.h>

#include "clip.h"
#include "step_clock.h"

/* In this part of the run, under earlier strategies. */
static long steps_earlier(const struct worker *worker) {
    return worker->training->settings.roster->members[worker->index].earlier;
}

/* The same, and in earlier parts of the run. */
static long steps_before(const struct worker *worker) {
    const long *before = worker->training->settings.steps_before;
    return steps_earlier(worker) + (before ? before[worker->index] : 0);
}

/* A fault put in on purpose, at the place where a device would fail or hang: its step counts from the start
 * of this part. */
static int inject_fault(struct worker *worker, long step) {
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

/* A step on its way through the loop. */
struct step_taken {
    struct log_row row;
    struct step_clock clock;
    struct feed feed;
    struct gradient *gradient;
    struct device_wait wait;
};

/* A worker that steps by itself vectors on its own device queues the step behind the gradient, and waits once
 * for both. Not where the host has to see the gradient before. */
static bool may_synchronize_later(const struct worker *worker) {
    const struct training *training = worker->training;
    const struct training_settings *settings = &training->settings;
    const struct device *device = store_own_device(settings->store, worker->index);
    return worker->traits->steps_own && settings->compute.synchronize && device_apart(device) &&
           (worker->traits->own_moments || store_shares_memory(settings->store, device)) &&
           settings->clip <= 0.0f && (!settings->slowness || settings->slowness[worker->index] <= 1.0);
}

/* A worker that is alone, on a device that also has the weights: nobody but the device itself waits for what
 * it computes, so the host need not. Not where it has to see the gradient, or where push waits anyhow. */
static int go_ahead(struct worker *worker) {
    const struct training *training = worker->training;
    const struct training_settings *settings = &training->settings;
    const struct compute *compute = &settings->compute;
    const struct device *device = store_own_device(settings->store, worker->index);
    const bool alone = settings->roster->workers == 1 && settings->roster->count == 1;
    worker->ahead = false;
    if (!alone || !worker->traits->rounds || worker->traits->steps_own || !compute->go_ahead ||
        !device_apart(device) || !store_shares_memory(settings->store, device) || settings->clip > 0.0f ||
        (settings->slowness && settings->slowness[worker->index] > 1.0))
        return OK;
    return compute->go_ahead(compute->self, worker->index, &worker->ahead, &worker->error);
}

static int synchronize(struct worker *worker, struct device_wait *wait) {
    const struct training_settings *settings = &worker->training->settings;
    if (!settings->compute.synchronize) return OK;
    if (!wait->later) wait->from_s = world_now(settings->world);
    worker->by_itself = true;
    RETURN_IF(settings->compute.synchronize(settings->compute.self, worker->index, wait->later,
                                            &wait->outcome, &worker->error));
    worker->by_itself = false;
    wait->at_s = world_now(settings->world);
    return OK;
}

/* The number of its step, of all parts of the run. */
static long step_of(const struct worker *worker, const struct gradient *gradient) {
    return steps_before(worker) + gradient->step + 1;
}

static int check_gradients_loss(struct worker *worker, const struct gradient *gradient, float loss) {
    return worker_check_loss(worker, step_of(worker, gradient),
                             (double)store_rate(worker->training->settings.store, gradient->version[0]),
                             loss);
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
    const struct sampler *sampler = worker->training->settings.sampler;
    const double counts = (double)row->examples / (sampler->sizes ? sampler->whole : sampler->stream.batch);
    totals->loss_sum += (double)row->loss * counts;
    totals->loss_steps += counts;
    totals->last_loss = row->loss;
}

static bool wants_row(const struct training *training, const struct log_row *row) {
    const struct log *log = training->settings.log;
    return log && row->examples > 0 && log_wants(log, row->step);
}

static void put_row(struct training *training, const struct log_row *row) {
    while (!log_put(training->settings.log, row) && !world_stopped(training->settings.world)) {
        atomic_store(&training->log_full, true);
        event_post(&training->bell);
        world_sleep(training->settings.world, 1e-4);
    }
}

/* The row of the step is complete by this, or by what becomes of its gradient. */
static int heard(struct worker *worker, float loss) {
    struct unheard *unheard = &worker->unheard;
    struct log_row *row = &unheard->row;
    unheard->waits = false;
    row->loss = loss;
    RETURN_IF(worker_check_loss(worker, row->step, (double)row->learning_rate, loss));
    count_step(worker, row);
    if (unheard->applied && wants_row(worker->training, row)) put_row(worker->training, row);
    if (!unheard->applied) worker->rows[unheard->slot].loss = loss;
    return OK;
}

/* Waits for the step before. */
static int hear(struct worker *worker, struct device_wait *wait) {
    const struct training_settings *settings = &worker->training->settings;
    const struct compute *compute = &settings->compute;
    struct unheard *unheard = &worker->unheard;
    if (!unheard->waits) return OK;
    wait->from_s = world_now(settings->world);
    worker->by_itself = true;
    RETURN_IF(compute->behind(compute->self, worker->index, &wait->outcome, &worker->error));
    worker->by_itself = false;
    wait->at_s = world_now(settings->world);
    return heard(worker, wait->outcome.loss);
}

/* Before it comes to rest. What the device still had to do is computation, too. */
static int hear_last(struct worker *worker) {
    struct device_wait wait = {0};
    if (!worker->unheard.waits) return OK;
    RETURN_IF(synchronize(worker, &wait));
    worker->totals.compute_s += wait.at_s - worker->accounted_s;
    worker->accounted_s = wait.at_s;
    return heard(worker, wait.outcome.loss);
}

/* Forward and backward, on the weights that pull has taken. */
static int compute(struct worker *worker, struct step_taken *step) {
    const struct training_settings *settings = &worker->training->settings;
    const struct store *store = settings->store;
    struct gradient *gradient = step->gradient;
    float *slab = worker->slabs[gradient->slot];
    for (int s = 0; s < store->settings.shards; s++) gradient->version[s] = worker->side.version[s];
    gradient->values = slab;
    gradient->examples =
        step->feed.number == NO_BATCH ? 0 : stream_size(&settings->sampler->stream, worker->index);
    if (step->feed.number == NO_BATCH) return OK;
    RETURN_IF(inject_fault(worker, steps_earlier(worker) + worker->side.step + 1));
    worker->by_itself = true;
    RETURN_IF(settings->compute.run(settings->compute.self, worker->index, step->feed.buffer,
                                    worker->side.weights, slab, &step->wait.outcome.loss, &worker->error));
    worker->by_itself = false;
    if (worker->ahead) return hear(worker, &step->wait);
    step->wait.later = may_synchronize_later(worker);
    if (step->wait.later) return OK;
    RETURN_IF(synchronize(worker, &step->wait));
    worker_take_time(worker, step->clock.at, step->row.step, &step->wait.wire_s);
    gradient->loss = step->wait.outcome.loss;
    RETURN_IF(check_gradients_loss(worker, gradient, gradient->loss));
    RETURN_IF(worker_check_gradient(worker, gradient, step_of(worker, gradient)));
    if (settings->clip <= 0.0f) return OK;
    return gradient_clip(store->settings.layout, store_own_device(store, worker->index), slab, settings->clip,
                         &worker->error);
}

/* A worker that was given up as lost must not touch the store any more. */
static int begin_exchange(struct worker *worker) {
    struct roster *roster = worker->training->settings.roster;
    if (roster_enter(roster, worker->index)) return OK;
    return error_set(&worker->error, ERROR_PEER, "%s came back after it was given up for lost",
                     roster->members[worker->index].name);
}

/* Before pull: while this worker gets its batch, the others arrive. */
static int take_input(struct worker *worker, struct step_taken *step) {
    worker->by_itself = true;
    RETURN_IF(prefetcher_take(&worker->prefetcher, &step->feed, &worker->error));
    worker->by_itself = false;
    step_clock_forget_wait(&step->clock); /* waiting for the prefetcher is input, too */
    return OK;
}

static int pull(struct worker *worker) {
    RETURN_IF(begin_exchange(worker));
    worker->side.queued = false;
    RETURN_IF(strategy_take_all(&worker->side, &worker->error));
    worker->owes_pull = false;
    roster_alone(worker->training->settings.roster, worker->index);
    return OK;
}

/* Where the device was not waited for before, push has waited since. */
static int push(struct worker *worker, struct step_taken *step) {
    RETURN_IF(begin_exchange(worker));
    RETURN_IF(strategy_send_all(&worker->side, step->gradient, &worker->error));
    roster_alone(worker->training->settings.roster, worker->index);
    if (!step->wait.later) return OK;
    RETURN_IF(synchronize(worker, &step->wait));
    prefetcher_give_back(&worker->prefetcher);
    return check_gradients_loss(worker, step->gradient, step->wait.outcome.loss);
}

/* Bytes over the wire since the last row. */
static long take_wire(struct worker *worker) {
    const struct compute *compute = &worker->training->settings.compute;
    const long long all = compute->wire ? compute->wire(compute->self, worker->index) : 0;
    const long long before = worker->wire_bytes;
    worker->wire_bytes = all;
    return (long)(all - before);
}

/* Its row waits until no holder needs the gradient any more. */
static void end_step(struct worker *worker, struct step_taken *step) {
    const struct training *training = worker->training;
    const struct training_settings *settings = &training->settings;
    struct log_row *row = &step->row;
    worker->side.step++;
    worker->owes_pull = true;
    worker->accounted_s = step->clock.at;
    row->time_s = settings->seconds_before + step->clock.at - training->started_s - training->paused_s;
    row->examples = step->gradient->examples;
    row->loss = step->wait.outcome.loss; /* of one that is not heard yet: another's, until it is */
    step_clock_share(row, &step->wait, worker->side.queued);
    if (row->examples > 0) {
        int epoch = 0;
        sampler_place(settings->sampler, worker->index, step->feed.number, &epoch, &row->batch,
                      &row->batches);
        row->epoch = epoch + 1;
        row->batch++;
        row->learning_rate = store_rate(settings->store, step->gradient->version[0]);
        row->wire_bytes = take_wire(worker);
    }
    worker->rows[step->gradient->slot] = *row;
    if (worker->ahead && row->examples > 0)
        worker->unheard = (struct unheard){.waits = true, .slot = step->gradient->slot, .row = *row};
    else
        count_step(worker, row);
    store_release(settings->store, step->gradient);
}

/* Puts down what the worker has done since, of a step that somebody wants to see. */
static void note_span(const struct worker *worker, const struct step_taken *step, enum trace_kind kind,
                      double since_s) {
    struct trace *trace = worker->training->settings.roster->trace;
    if (!trace || !trace_wants(trace, steps_earlier(worker) + worker->side.step + 1)) return;
    const struct trace_span span = {.kind = kind,
                                    .begin_s = since_s,
                                    .end_s = step->clock.at,
                                    .member = worker->index,
                                    .worker = worker->index,
                                    .step = steps_earlier(worker) + worker->side.step + 1,
                                    .version = worker->side.version[0]};
    trace_put(trace, &span);
}

/* What its device did meanwhile, where that has a queue of its own. */
static void note_queue(const struct worker *worker, const struct step_taken *step) {
    struct trace *trace = worker->training->settings.roster->trace;
    const struct outcome *outcome = &step->wait.outcome;
    const long step_number = steps_earlier(worker) + worker->side.step + (worker->ahead ? 0 : 1);
    if (!trace || !outcome->timed || !trace_wants(trace, step_number)) return;
    const struct trace_span span = {.kind = TRACE_QUEUE,
                                    .begin_s = step->wait.at_s - outcome->begun_s,
                                    .end_s = step->wait.at_s - outcome->computed_s,
                                    .member = worker->index,
                                    .worker = worker->index,
                                    .step = step_number};
    trace_put(trace, &span);
}

/* Input, pull, compute, push. */
static int take_step(struct worker *worker, bool *paused) {
    const struct training_settings *settings = &worker->training->settings;
    struct roster *roster = settings->roster;
    const long number = worker->side.step + 1;
    struct step_taken step = {.row = {.worker = worker->index, .step = steps_before(worker) + number}};
    struct log_row *row = &step.row;
    step.clock = step_clock_begin(roster, worker->index, worker->accounted_s, &row->wait_ms);
    roster_phase_at(roster, worker->index, PHASE_INPUT, step.clock.at);
    atomic_store_explicit(&roster->members[worker->index].step, number, memory_order_relaxed);

    RETURN_IF(take_input(worker, &step));
    *paused = step.feed.pause;
    if (step.feed.pause) {
        prefetcher_give_back(&worker->prefetcher);
        return OK;
    }
    double since_s = step.clock.at;
    row->input_ms = step_clock_enter(&step.clock, PHASE_PULL);
    note_span(worker, &step, TRACE_INPUT, since_s);
    since_s = step.clock.at;
    RETURN_IF(pull(worker));
    row->pull_ms = step_clock_enter(&step.clock, PHASE_COMPUTE);
    note_span(worker, &step, TRACE_PULL, since_s);
    since_s = step.clock.at;
    step.gradient = store_gradient(settings->store, worker->index, worker->side.step);
    RETURN_IF(compute(worker, &step));
    if (!step.wait.later) prefetcher_give_back(&worker->prefetcher);
    row->compute_ms = step_clock_enter(&step.clock, PHASE_PUSH);
    note_span(worker, &step, TRACE_COMPUTE, since_s);
    since_s = step.clock.at;
    if (step.wait.later) step.wait.from_s = step.clock.at;
    RETURN_IF(push(worker, &step));
    row->push_ms = step_clock_read(&step.clock, world_now(settings->world));
    note_span(worker, &step, TRACE_PUSH, since_s);
    note_queue(worker, &step);
    end_step(worker, &step);
    return OK;
}

/* The last holder has released a gradient: its row is complete. Runs on a worker's or a server's thread. */
void training_finished(void *argument, struct gradient *gradient) {
    struct training *training = argument;
    struct worker *worker = &training->workers[gradient->worker];
    struct log_row *row = &worker->rows[gradient->slot];
    struct unheard *unheard = &worker->unheard;
    if (!wants_row(training, row)) return;
    row->staleness = atomic_load(&gradient->staleness);
    row->version = atomic_load(&gradient->applied_version);
    row->read_version = gradient->version[0];
    if (!worker->ahead || !unheard->waits) {
        put_row(training, row);
        return;
    }
    unheard->row = *row;
    unheard->applied = true;
}

/* What a worker does at a step or epoch boundary is time of training, too: waking up is waiting, coming to
 * rest is exchange.
 */
static void account_for_waking(struct worker *worker) {
    struct training *training = worker->training;
    const double now = world_now(training->settings.world), waited_s = now - training->went_s;
    worker->totals.wait_s += waited_s;
    worker->totals.rest_s += waited_s;
    worker->accounted_s = now;
    note_wait(training->settings.roster, worker->index, "the start of the epoch", -1, waited_s);
}

static void account_for_resting(struct worker *worker, double waited_s) {
    const double now = world_now(worker->training->settings.world);
    worker->totals.wait_s += waited_s;
    worker->totals.rest_s += waited_s;
    worker->totals.pull_s += fmax(now - worker->accounted_s - waited_s, 0.0);
    worker->accounted_s = now;
}

/* Steps until the sampler says pause, then sees its last gradients applied. */
static int run_segment(struct worker *worker) {
    struct training *training = worker->training;
    struct roster *roster = training->settings.roster;
    const struct member *member = &roster->members[worker->index];
    bool paused = false;
    RETURN_IF(worker_change(worker));
    RETURN_IF(go_ahead(worker));
    account_for_waking(worker);
    prefetcher_begin(&worker->prefetcher);
    double waited_s = member->waited_s;
    while (!paused && !world_stopped(training->settings.world)) {
        waited_s = member->waited_s;
        RETURN_IF(take_step(worker, &paused));
    }
    RETURN_IF(hear_last(worker));
    roster_phase(roster, worker->index, PHASE_PULL);
    RETURN_IF(begin_exchange(worker));
    RETURN_IF(strategy_rest_all(&worker->side, &worker->error));
    RETURN_IF(store_drain(training->settings.store, worker->index, &worker->error));
    worker->owes_pull = false;
    roster_alone(roster, worker->index);
    account_for_resting(worker, member->waited_s - waited_s);
    return OK;
}

static int open_worker(struct worker *worker) {
    const struct training_settings *settings = &worker->training->settings;
    const struct store *store = settings->store;
    if (worker->opened) return OK; /* by a thread before, which has ended */
    if (settings->compute.open)
        RETURN_IF(settings->compute.open(settings->compute.self, worker->index, &worker->error));
    RETURN_IF(worker_open_own(worker));
    for (int i = 0; i < worker->slab_count; i++)
        RETURN_IF(
            store_own_vector(store, worker->index, &worker->slabs[i], "a worker's gradient", &worker->error));
    worker->opened = true;
    return OK;
}

/* In the middle of no exchange. */
static bool leaves(const struct worker *worker) {
    const struct compute *compute = &worker->training->settings.compute;
    return worker->by_itself && compute->left && compute->left(compute->self, worker->index);
}

/* Where a pull ends the round of what was pushed. A parameter server that hears of a worker's leaving before
 * its next pull has to come as far as the one that hears of it behind that: nobody else may be there to. */
static void end_round(struct worker *worker) {
    struct roster *roster = worker->training->settings.roster;
    struct error ignored = {0};
    if (!worker->owes_pull || !roster_enter(roster, worker->index)) return;
    strategy_take_all(&worker->side, &ignored);
    roster_alone(roster, worker->index);
}

/* Its device failed, or its peer is gone, or something else. Only the first two can be a loss: a wait that
 * gave up, or a loss that is not a number, is everybody's. A worker that fails is still awaited: nobody may
 * go on as if it had left, the world is stopped instead. */
static void end_worker(struct worker *worker, int code) {
    struct training *training = worker->training;
    struct roster *roster = training->settings.roster;
    if (code != OK && leaves(worker)) end_round(worker);
    if (code == OK) {
        roster_leave(roster, worker->index, PHASE_DONE);
    } else if (leaves(worker) && roster_expel(roster, worker->index)) {
        training_leave(training, worker->index);
    } else if (code != ERROR_DIVERGED && (code == ERROR_DEVICE || worker->by_itself) &&
               training_spares(training, worker->index) && roster_expel(roster, worker->index)) {
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
    const uint64_t first = (uint64_t)atomic_load(&worker->pauses) + 1;
    for (uint64_t segment = first; code == OK; segment++) {
        roster_phase(roster, worker->index, PHASE_PAUSED);
        if (event_wait(&training->go, segment, INFINITY) != WAIT_DONE || atomic_load(&training->ending))
            break;
        if (segment == first) take_wire(worker); /* what it took to come together is in no row */
        code = run_segment(worker);
        if (code == OK) {
            roster_phase(roster, worker->index, PHASE_PAUSED);
            atomic_store(&worker->pauses, (long)segment);
            event_post(&training->bell);
        }
    }
    end_worker(worker, code);
}
