/* Slots: a worker's gradients on their way, and the one wait of a sender: for room.
 *
 * A worker has `slots` gradients in the mailboxes at most and one more in hand, which it fills while those
 * are on the way. A slot is held by each shard until it has applied the gradient and by the worker until it
 * has sent it to all; whoever lets go last reports it finished. */
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

struct room_wait {
    struct store *store;
    int worker;
    int most; /* gradients that may be on the way */
};

static int on_the_way(const struct store *store, int worker) {
    int count = 0;
    for (int i = 0; i <= store->settings.slots; i++)
        if (atomic_load(&store->workers[worker].gradients[i].left) != 0) count++;
    return count;
}

static bool has_room(void *argument) {
    const struct room_wait *wait = argument;
    return on_the_way(wait->store, wait->worker) <= wait->most;
}

/* Room is made by the servers, or, where there are none, by the workers. */
static bool awaits(void *argument, int member) {
    const struct room_wait *wait = argument;
    const struct roster *roster = wait->store->settings.roster;
    return roster->count > roster->workers ? member >= roster->workers : member != wait->worker;
}

int store_wait_room(struct store *store, int worker, struct error *error) {
    struct room_wait wait = {.store = store, .worker = worker};
    wait.most = store->settings.slots > 0 ? store->settings.slots - 1 : 0;
    if (has_room(&wait)) return OK;
    store->workers[worker].room_waits++;
    return wait_patiently(store->settings.roster, worker, &store->workers[worker].room, has_room, awaits,
                          &wait, "its own mailbox, for room", error);
}

int store_drain(struct store *store, int worker, struct error *error) {
    struct room_wait wait = {.store = store, .worker = worker, .most = 0};
    return wait_patiently(store->settings.roster, worker, &store->workers[worker].room, has_room, awaits,
                          &wait, "the servers, to apply its last gradients", error);
}
