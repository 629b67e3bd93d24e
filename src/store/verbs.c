/* The verbs of a shard: what a worker or a server does to it. */
#include "device_state.h"

/* Of its worker, from 1, in this part of the run. */
static long step_of(const struct shard *shard, const struct gradient *gradient) {
    return shard->store->settings.roster->members[gradient->worker].earlier + gradient->step + 1;
}

/* Of a step that somebody wants to see: when it began; else -1. */
static double begin_apply(const struct shard *shard, const struct gradient *gradient) {
    const struct store *store = shard->store;
    return gradient && trace_wants(store->settings.roster->trace, step_of(shard, gradient))
               ? world_now(store->world)
               : -1.0;
}

/* member: who may step the shard beside others; -1: nobody can. */
static void end_apply(const struct shard *shard, const struct gradient *gradient, int member, long version,
                      double began_s) {
    if (began_s < 0.0) return;
    const struct trace_span span = {.kind = TRACE_APPLY,
                                    .begin_s = began_s,
                                    .end_s = world_now(shard->store->world),
                                    .member = member,
                                    .worker = gradient->worker,
                                    .step = step_of(shard, gradient),
                                    .shard = shard->index,
                                    .version = version};
    trace_put(shard->store->settings.roster->trace, &span);
}

long shard_apply_compensated(struct shard *shard, const struct gradient *gradient,
                             const struct compensation *compensation) {
    const long version = atomic_load_explicit(&shard->version, memory_order_relaxed);
    const struct home *home = shard->home;
    const double began_s = begin_apply(shard, gradient);
    const float *values = home_bring(shard, gradient->worker, gradient->values, shard->begin, shard->end);
    struct update_slice slice = {.begin = shard->begin,
                                 .end = shard->end,
                                 .state = &home->state,
                                 .count = 1,
                                 .gradients = &values,
                                 .compensation = compensation};
    home_await_reads(shard);
    const float rate = store_rate(shard->store, version) * shard_worth(shard, gradient, version);
    home_step(shard, home->device, &slice, rate, version + 1, -1);
    home_finish(shard->store, home->device);
    atomic_store(&shard->version, version + 1);
    end_apply(shard, gradient, -1, version + 1, began_s);
    return version;
}

long shard_apply(struct shard *shard, const struct gradient *gradient) {
    return shard_apply_compensated(shard, gradient, NULL);
}

/* Each worker begins its sweep at another place and goes round: workers whose steps take equally long fall
 * into step, and would otherwise follow each other through the same lines, which then move between their
 * caches one by one. A device steps all lines at once. */
long shard_apply_racy(struct shard *shard, const struct gradient *gradient) {
    const size_t lines = (shard->end - shard->begin) / LINE_FLOATS,
                 workers = (size_t)shard->store->settings.roster->workers,
                 place = device_apart(shard->home->device) ? 0 : (size_t)gradient->worker;
    const size_t middle = shard->begin + lines * place / workers * LINE_FLOATS;
    const long seen = atomic_load(&shard->version);
    const float rate = store_rate(shard->store, seen) * shard_worth(shard, gradient, seen);
    const struct home *home = shard->home;
    const double began_s = begin_apply(shard, gradient);
    const float *values = home_bring(shard, gradient->worker, gradient->values, shard->begin, shard->end);
    struct update_slice slice = {.begin = middle,
                                 .end = shard->end,
                                 .state = &home->state,
                                 .count = 1,
                                 .gradients = &values,
                                 .racy = 1};
    home_step(shard, home->device, &slice, rate, seen + 1, gradient->worker);
    slice.begin = shard->begin;
    slice.end = middle;
    home_step(shard, home->device, &slice, rate, seen + 1, gradient->worker);
    home_finish(shard->store, home->device);
    atomic_fetch_add(&shard->racy_updates, 1);
    const long version = atomic_fetch_add(&shard->version, 1);
    end_apply(shard, gradient, gradient->worker, version + 1, began_s);
    return version;
}

void shard_lock(struct shard *shard, int worker) {
    lock_take_as(&shard->lock, shard->store->settings.roster, worker, "the lock of a shard");
}

void shard_contribute(struct shard *shard, struct gradient *gradient) {
    atomic_store(&shard->contributed[gradient->worker], gradient);
}

/* No matrix is cut: a boundary within one moves to its nearer end. Where the shard is on a device that has
 * memory of its own, with one room for matrices there, the first share is all of it. */
size_t shard_boundary(const struct shard *shard, int share, int shares) {
    const size_t lines = (shard->end - shard->begin) / LINE_FLOATS;
    const size_t at = shard->begin + lines * (size_t)share / (size_t)shares * LINE_FLOATS;
    if (!shard->matrices || at == shard->begin) return at;
    if (device_apart(shard->home->device)) return shard->end;
    for (int i = 0; i < shard->span_count; i++) {
        const struct span *span = &shard->spans[i];
        if (span->matrix && at > span->begin && at < span->end)
            return at - span->begin < span->end - at ? span->begin : span->end;
    }
    return at;
}

/* The whole slice at once: one worker has all devices make the mean, the others wait at the barrier. */
static void step_together(struct shard *shard, int worker, float rate, long number) {
    const struct home *home = shard->home;
    const float *mean = home->mean;
    struct update_slice slice = {
        .begin = shard->begin, .end = shard->end, .state = &home->state, .count = 1, .gradients = &mean};
    group_mean(shard, worker);
    home_step(shard, home->device, &slice, rate, number, -1);
    home_stepped(shard, worker);
}

/* With the mean of what is contributed, weighted by examples and added in roster order. */
void shard_step_share(struct shard *shard, int worker, int share, int shares) {
    const struct worker_slots *mine = &shard->store->workers[worker];
    const int workers = shard->store->settings.roster->workers;
    const long version = atomic_load_explicit(&shard->version, memory_order_relaxed);
    const float rate = store_rate(shard->store, version);
    const struct home *home = shard->home;
    struct update_slice slice = {.begin = shard_boundary(shard, share, shares),
                                 .end = shard_boundary(shard, share + 1, shares),
                                 .state = &home->state,
                                 .gradients = mine->values};
    int examples = 0;
    for (int w = 0; w < workers; w++) {
        const struct gradient *gradient = atomic_load_explicit(&shard->contributed[w], memory_order_relaxed);
        if (gradient) examples += gradient->examples;
    }
    if (examples == 0) return;
    const struct gradient *own = atomic_load_explicit(&shard->contributed[worker], memory_order_relaxed);
    const double began_s = begin_apply(shard, own);
    if (group_takes(shard)) {
        if (share == 0) undo_keep(shard, share, shard->begin, shard->end);
        if (share == 0) step_together(shard, worker, rate, version + 1);
        end_apply(shard, own, worker, version + 1, began_s);
        return;
    }
    for (int w = 0; w < workers; w++) {
        const struct gradient *gradient = atomic_load_explicit(&shard->contributed[w], memory_order_relaxed);
        if (!gradient || gradient->examples == 0) continue;
        mine->values[slice.count] = home_bring(shard, w, gradient->values, slice.begin, slice.end);
        mine->weight[slice.count++] =
            (float)gradient->examples / (float)examples * shard_worth(shard, gradient, version);
    }
    /* One that counts in full is the mean of all. */
    slice.weight = slice.count > 1 || mine->weight[0] < 1.0f ? mine->weight : NULL;
    home_await_reads(shard);
    undo_keep(shard, share, slice.begin, slice.end);
    home_step(shard, home->device, &slice, rate, version + 1, device_apart(home->device) ? -1 : worker);
    home_stepped(shard, worker);
    end_apply(shard, own, worker, version + 1, began_s);
}

void shard_end_round(struct shard *shard, long version) {
    atomic_store(&shard->version, version);
    atomic_store(&shard->in_round, false);
}

bool shard_read(const struct shard *shard, const struct device *to, float *weights, long *version) {
    const long now = atomic_load(&shard->version);
    if (now == *version) return false;
    home_copy(shard, to, weights + shard->begin, shard->home->state.vector[0].at + shard->begin,
              shard->end - shard->begin);
    *version = now;
    return true;
}

bool shard_read_racy(const struct shard *shard, const struct device *to, float *weights, long *version) {
    const long now = atomic_load(&shard->version);
    const struct device *from = shard->home->device;
    const struct vectors *vectors = from->backend->vectors;
    float *out = weights + shard->begin, *in = shard->home->state.vector[0].at + shard->begin;
    if (now == *version) return false;
    if (vectors->copy_racy && device_same_memory(from, to))
        vectors->copy_racy(out, in, shard->end - shard->begin, shard->store->world);
    else
        home_copy(shard, to, out, in, shard->end - shard->begin);
    *version = now;
    return true;
}

void shard_keep(struct shard *shard, float *vector) {
    home_queue_copy(shard, vector, shard->home->state.vector[0].at + shard->begin, shard->end - shard->begin);
    home_finish(shard->store, shard->home->device);
}

void shard_read_kept(const struct shard *shard, const struct device *to, float *weights,
                     const float *vector) {
    home_copy(shard, to, weights + shard->begin, vector, shard->end - shard->begin);
}

int shard_post(struct shard *shard, struct gradient *gradient, struct error *error) {
    const struct mail mail = {.worker = gradient->worker, .slot = gradient->slot};
    if (!mailbox_send(&shard->mailbox, mail))
        return error_set(error, ERROR_INTERNAL,
                         "mailbox of shard %d is full, which a sender must not let happen", shard->index);
    event_post(shard->mail);
    return OK;
}

static void raise_to(_Atomic long *value, long least) {
    long now = atomic_load(value);
    while (now < least && !atomic_compare_exchange_weak(value, &now, least)) {
    }
}

/* The slot may be filled anew as soon as it is released. */
static void let_go(struct shard *shard, struct gradient *gradient) {
    atomic_store(&shard->tallies[gradient->worker].steps, gradient->step + 1);
    store_release(shard->store, gradient);
    event_post(&shard->applied);
}

void shard_done(struct shard *shard, struct gradient *gradient, long version_before) {
    const long staleness = version_before - gradient->version[shard->index];
    struct tally *tally = &shard->tallies[gradient->worker];
    if (gradient->examples > 0) staleness_add(&tally->staleness, staleness);
    raise_to(&gradient->staleness, staleness);
    long reached = atomic_load(&gradient->applied_version);
    while ((reached == 0 || reached > version_before + 1) &&
           !atomic_compare_exchange_weak(&gradient->applied_version, &reached, version_before + 1)) {
    }
    let_go(shard, gradient);
}

void shard_drop(struct shard *shard, struct gradient *gradient) {
    shard->tallies[gradient->worker].dropped++;
    atomic_store(&gradient->dropped, true);
    let_go(shard, gradient);
}
