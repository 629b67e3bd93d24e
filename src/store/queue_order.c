/* The order in which the queues of several threads access a shard. What was queued under the lock may run
 * after the lock was released, so marks keep the order; where a queue can wait, no thread waits for a
 * device. In the host's memory, locks and barriers are enough: a CPU has no marks.
 *
 * Reads: a worker that has queued a copy under the lock sets a mark after it; the next writer under the
 * lock waits for that mark. The writer waits for the device before it stamps its version, and so for the
 * reads. Shares: a worker that has queued the step of its share sets a mark after it, before the barrier
 * where all are stepped. After the barrier every queue that a worker uses waits for everyone's marks. A
 * mark is set again only when all have contributed their next gradient, which is after they have waited
 * for it. */
#include "device_state.h"

struct order_mark {
    const struct device *device; /* of the queue that it is set in */
    void *mark;                  /* NULL: this one is never set */
    _Atomic bool set;
};

struct shard_order {
    struct order_mark *reads; /* [workers] of a worker's last read under the lock; guarded by it */
    struct order_mark
        *shares; /* [workers] of a worker's last step of a share; constant between two barriers */
};

static int open_mark(const struct device *device, struct order_mark *mark, struct error *error) {
    mark->device = device;
    return device->backend->marks->open(device, false, &mark->mark, error);
}

int home_open_order(struct shard *shard, struct error *error) {
    const struct store *store = shard->store;
    const int workers = store->settings.roster->workers;
    RETURN_IF(memory_array(&shard->order, 1, "the order at a shard", error));
    RETURN_IF(memory_array(&shard->order->reads, workers, "marks of a shard", error));
    RETURN_IF(memory_array(&shard->order->shares, workers, "marks of a shard", error));
    for (int w = 0; w < workers; w++) {
        RETURN_IF(open_mark(store_own_device(store, w), &shard->order->reads[w], error));
        RETURN_IF(open_mark(shard->home->device, &shard->order->shares[w], error));
    }
    return OK;
}

static void close_marks(const struct shard *shard, struct order_mark *marks) {
    for (int w = 0; marks && w < shard->store->settings.roster->workers; w++)
        if (marks[w].mark) marks[w].device->backend->marks->close(marks[w].device, marks[w].mark);
    memory_free(marks);
}

void home_close_order(struct shard *shard) {
    if (!shard->order) return;
    close_marks(shard, shard->order->reads);
    close_marks(shard, shard->order->shares);
    memory_free(shard->order);
    shard->order = NULL;
}

static void set_mark(const struct shard *shard, struct order_mark *mark) {
    if (!mark->mark) return;
    struct error error = {0};
    home_remember(shard->store, mark->device->backend->marks->set(mark->device, mark->mark, &error), &error);
    atomic_store(&mark->set, true);
}

/* By the calling thread's queue of that device. */
static void await_mark(const struct shard *shard, const struct device *device,
                       const struct order_mark *mark) {
    struct error error = {0};
    home_remember(shard->store, device->backend->marks->wait(device, mark->mark, &error), &error);
}

/* A worker whose device computes in the host's memory has waited for what it has read. */
void shard_unlock(struct shard *shard, int worker) {
    set_mark(shard, &shard->order->reads[worker]);
    lock_release(&shard->lock);
}

void home_await_reads(struct shard *shard) {
    for (int w = 0; w < shard->store->settings.roster->workers; w++) {
        struct order_mark *read = &shard->order->reads[w];
        if (read->mark && atomic_exchange(&read->set, false)) await_mark(shard, shard->home->device, read);
    }
}

/* With one worker nobody asks. */
void home_stepped(struct shard *shard, int worker) {
    if (shard->store->settings.roster->workers > 1) set_mark(shard, &shard->order->shares[worker]);
}

/* With one worker there is one queue. Two follow: that at home, by which a device that computes in the host's
 * memory gets the weights, and that of the worker's own, which computes on them, and then writes over the
 * gradient that the others have read. */
void shard_await_stepped(struct shard *shard, int worker) {
    const int workers = shard->store->settings.roster->workers;
    const struct device *own = store_own_device(shard->store, worker);
    for (int w = 0; workers > 1 && w < workers; w++) {
        const struct order_mark *stepped = &shard->order->shares[w];
        if (!atomic_load(&stepped->set)) continue;
        await_mark(shard, shard->home->device, stepped);
        if (!device_same_memory(own, shard->home->device)) await_mark(shard, own, stepped);
    }
}

void shard_settle(struct shard *shard) {
    home_finish(shard->store, shard->home->device);
}
