/* Slots: a worker's gradients in flight, and the waits for them: for a free slot, and until they are
 * applied.
 *
 * A worker has at most `slots` gradients in the mailboxes, and fills one more while those are in flight.
 * Each shard holds a slot until it has applied the gradient, and the worker holds it until it has sent the
 * gradient to all shards; whoever releases it last reports it finished. */
#include "store.h"

#include <assert.h>

struct gradient *store_gradient(struct store *store, int worker, long step) {
    struct gradient *gradient = &store->workers[worker].gradients[step % (store->settings.slots + 1)];
    assert(atomic_load(&gradient->left) == 0);
    gradient->step = step;
    atomic_store_explicit(&gradient->staleness, 0, memory_order_relaxed);
    atomic_store_explicit(&gradient->applied_version, 0, memory_order_relaxed);
    atomic_store_explicit(&gradient->dropped, false, memory_order_relaxed);
    return gradient;
}

void store_release(struct store *store, struct gradient *gradient) {
    /* The last holder sees 2: one more than itself is kept until the gradient has been reported. */
    if (atomic_fetch_sub(&gradient->left, 1) != 2) return;
    if (store->settings.finished) store->settings.finished(store->settings.finished_argument, gradient);
    struct event *room = &store->workers[gradient->worker].room;
    atomic_store(&gradient->left, 0);
    event_post(room);
}

/* Threads that apply what is sent: none where the strategy of the moment has no servers. */
static int servers_of(const struct store *store) {
    const struct roster *roster = store->settings.roster;
    return store->settings.slots > 0 ? roster->count - roster->workers : 0;
}

static int on_the_way(const struct store *store, int worker) {
    int count = 0;
    for (int i = 0; i <= store->settings.slots; i++)
        if (atomic_load(&store->workers[worker].gradients[i].left) != 0) count++;
    return count;
}

struct room_wait {
    struct store *store;
    int worker;
    int most; /* gradients that may be in flight */
};

static bool has_room(void *argument) {
    const struct room_wait *wait = argument;
    return on_the_way(wait->store, wait->worker) <= wait->most;
}

/* One past the latest step of this worker whose gradient is in flight; 0: none is. */
static long steps_sent(const struct store *store, int worker) {
    long sent = 0;
    for (int i = 0; i <= store->settings.slots; i++) {
        const struct gradient *gradient = &store->workers[worker].gradients[i];
        if (atomic_load(&gradient->left) != 0 && gradient->step >= sent) sent = gradient->step + 1;
    }
    return sent;
}

/* Room is made by the servers of the shards that have not applied all that was sent, or, where there are no
 * servers, by the other workers that are not at rest. */
static bool awaits(void *argument, int member) {
    const struct room_wait *wait = argument;
    const struct store *store = wait->store;
    const int workers = store->settings.roster->workers, servers = servers_of(store);
    const struct member *other = &store->settings.roster->members[member];
    if (servers == 0)
        return member != wait->worker && atomic_load(&other->active) &&
               atomic_load(&other->phase) != PHASE_PAUSED;
    const long sent = steps_sent(store, wait->worker);
    for (int s = member - workers; member >= workers && s < store->settings.shards; s += servers)
        if (atomic_load(&store->shards[s].tallies[wait->worker].steps) < sent) return true;
    return false;
}

int store_wait_room(struct store *store, int worker, struct error *error) {
    struct room_wait wait = {.store = store, .worker = worker};
    wait.most = store->settings.slots > 0 ? store->settings.slots - 1 : 0;
    if (has_room(&wait)) return OK;
    store->workers[worker].room_waits++;
    return wait_with_timeout(store->settings.roster, worker, &store->workers[worker].room, has_room, awaits,
                             &wait, "its own mailbox, for room", error);
}

int store_drain(struct store *store, int worker, struct error *error) {
    struct room_wait wait = {.store = store, .worker = worker, .most = 0};
    return wait_with_timeout(store->settings.roster, worker, &store->workers[worker].room, has_room, awaits,
                             &wait, "the pause, for its last gradients to be applied", error);
}

/* --- waiting for a shard to be done with gradients --- */

struct shard_wait {
    struct shard *shard;
    int worker; /* < 0: all that take part */
    long step;
};

static bool owes(const struct shard_wait *wait, int worker) {
    const struct shard *shard = wait->shard;
    if (wait->worker >= 0 && worker != wait->worker) return false;
    return atomic_load(&shard->store->settings.roster->members[worker].active) &&
           atomic_load(&shard->tallies[worker].steps) < wait->step;
}

static bool is_done(void *argument) {
    const struct shard_wait *wait = argument;
    for (int w = 0; w < wait->shard->store->settings.roster->workers; w++)
        if (owes(wait, w)) return false;
    return true;
}

/* Awaited are the workers that have not sent their gradient yet, and the server that has not applied what was
 * sent. */
static bool is_owed_by(void *argument, int member) {
    const struct shard_wait *wait = argument;
    const struct store *store = wait->shard->store;
    const int workers = store->settings.roster->workers, servers = servers_of(store);
    if (member < workers) return owes(wait, member) && (servers == 0 || on_the_way(store, member) == 0);
    if (member - workers != wait->shard->index % servers) return false;
    for (int w = 0; w < workers; w++)
        if (owes(wait, w) && on_the_way(store, w) > 0) return true;
    return false;
}

int shard_await(struct shard *shard, int self, int worker, long step, const char *place,
                struct error *error) {
    struct shard_wait wait = {.shard = shard, .worker = worker, .step = step};
    return wait_with_timeout(shard->store->settings.roster, self, &shard->applied, is_done, is_owed_by, &wait,
                             place, error);
}
