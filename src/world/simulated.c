/* The simulated world: one thread runs at a time, and who is next is decided by virtual time and a seed.
 *
 * Each simulated thread is a pthread that waits for a baton, a semaphore of its own. Only the holder of
 * the baton runs, so everything below belongs to the holder and needs no lock. At a scheduling point the
 * holder notes when it can continue (`when`: now, later, or INFINITY while it is blocked), picks the
 * thread with the smallest `when`, each of several equal ones with the same probability, sets the clock to
 * that time and hands the baton over. So time never runs backwards, and the same seed gives the same
 * order, bit for bit.
 *
 * A thread that waits for an event is woken by a post that makes its ready() true; the poster calls
 * ready() in the waiter's place, which is why it must contain no scheduling point. When no thread can ever
 * run again, all are stuck: the world is stopped, and the waits report it. */
#include "world_kind.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/rng.h"

enum { STACK_BYTES = 1 << 20, FIRST_ROOM = 16 };

enum because { RUNNABLE, SLEEPING, AT_EVENT, AT_LOCK, AT_JOIN };

struct sim_thread {
    struct world_thread base;
    int slot;
    bool ended;
    enum because because;          /* why it does not run */
    bool (*ready)(void *argument); /* AT_EVENT: what it waits for */
    void *ready_argument;          /* borrowed */
    sem_t baton;                   /* posted by who hands over */
    pthread_t handle;              /* not of the opener, which is its own */
    world_body *body;
    void *argument; /* borrowed */
    char name[THREAD_NAME_BYTES];
};

struct sim_world {
    struct world base;
    uint64_t seed, draws; /* key and counter of the tie-breaks */
    double now;           /* virtual time, seconds */
    int running;          /* slot of the holder of the baton */
    int room;             /* slots there are */
    /* Per slot, [room]: its thread (NULL: free; slot 0 is the thread that opened the world), the earliest
     * time at which it can go on (INFINITY: blocked, ended or free), and the event, lock or thread it is
     * blocked at (or NULL; compared, never followed). */
    struct sim_thread **threads;
    double *when;
    const void **at;
    struct sim_thread opener;
};

static const struct world_kind sim_kind;

/* --- the scheduler --- */

static void wake(struct sim_world *sim, int slot) {
    sim->when[slot] = sim->now;
    sim->at[slot] = 0;
}

static void wake_all_at(struct sim_world *sim, const void *place) {
    for (int slot = 0; slot < sim->room; slot++)
        if (sim->at[slot] == place) wake(sim, slot);
}

/* The world was stopped: waits for events and sleeps end now. */
static void sim_stop(struct world *world) {
    struct sim_world *sim = (struct sim_world *)world;
    for (int slot = 0; slot < sim->room; slot++) {
        const struct sim_thread *thread = sim->threads[slot];
        if (thread && slot != sim->running && (thread->because == AT_EVENT || thread->because == SLEEPING))
            wake(sim, slot);
    }
}

/* A slot among those with the smallest `when`, or -1 when all are blocked for good. */
static int next_slot(struct sim_world *sim) {
    double least = INFINITY;
    uint32_t equal = 0;
    for (int slot = 0; slot < sim->room; slot++) {
        if (sim->when[slot] < least) {
            least = sim->when[slot];
            equal = 1;
        } else if (sim->when[slot] == least) {
            equal++;
        }
    }
    if (isinf(least)) return -1;
    uint32_t skip = 0;
    if (equal > 1) skip = (uint32_t)((uint64_t)rng_philox(sim->seed, 0, sim->draws++).word[0] * equal >> 32);
    int slot = 0;
    while (sim->when[slot] != least || skip-- > 0) slot++;
    return slot;
}

/* Chooses who runs next and moves the clock to its time. */
static struct sim_thread *pick(struct sim_world *sim) {
    int slot = next_slot(sim);
    if (slot < 0) { /* deadlock */
        sim->running = -1;
        world_stop(&sim->base);
        slot = next_slot(sim);
    }
    assert(slot >= 0 && "simulated world: every thread is stuck at a lock or a join");
    sim->running = slot;
    sim->now = sim->when[slot];
    return sim->threads[slot];
}

static void take_baton(struct sim_thread *thread) {
    while (sem_wait(&thread->baton) != 0) assert(errno == EINTR);
}

/* The caller can go on at `when`, or earlier if it is woken `at` a place; others run meanwhile. */
static void go_on(struct sim_world *sim, enum because because, const void *at, double when) {
    struct sim_thread *self = sim->threads[sim->running];
    self->because = because;
    sim->at[self->slot] = at;
    sim->when[self->slot] = when;
    struct sim_thread *next = pick(sim);
    if (next != self) {
        sem_post(&next->baton);
        take_baton(self);
    }
    self->because = RUNNABLE;
    sim->at[self->slot] = 0;
}

static void sim_yield(struct world *world) {
    struct sim_world *sim = (struct sim_world *)world;
    go_on(sim, RUNNABLE, 0, sim->now);
}

/* --- time --- */

static double sim_now(const struct world *world) {
    return ((const struct sim_world *)world)->now;
}

static void sim_work(struct world *world, double seconds) {
    struct sim_world *sim = (struct sim_world *)world;
    go_on(sim, RUNNABLE, 0, sim->now + fmax(seconds, 0));
}

/* A sleep that begins in a stopped world takes its full time: virtual time costs nothing, and one that took
 * none would let a loop around it keep all later threads from ever running. */
static void sim_sleep(struct world *world, double seconds) {
    struct sim_world *sim = (struct sim_world *)world;
    go_on(sim, SLEEPING, 0, sim->now + fmax(seconds, 0));
}

/* --- threads --- */

static void *thread_main(void *argument) {
    struct sim_thread *thread = argument;
    struct sim_world *sim = (struct sim_world *)thread->base.world;
    pthread_setname_np(pthread_self(), thread->name);
    take_baton(thread);
    thread->body(thread->argument);
    thread->ended = true;
    wake_all_at(sim, thread);
    sim->when[thread->slot] = INFINITY;
    sem_post(&pick(sim)->baton);
    return 0;
}

/* *out = a free slot; makes room when there is none. */
static int find_slot(struct sim_world *sim, int *out, struct error *error) {
    for (int slot = 0; slot < sim->room; slot++)
        if (!sim->threads[slot]) {
            *out = slot;
            return OK;
        }
    const size_t old = (size_t)sim->room, room = old ? 2 * old : FIRST_ROOM;
    RETURN_IF(memory_grow(&sim->threads, old, room, "simulated threads", error));
    RETURN_IF(memory_grow(&sim->at, old, room, "simulated threads", error));
    RETURN_IF(memory_grow(&sim->when, old, room, "simulated threads", error));
    for (size_t slot = old; slot < room; slot++) sim->when[slot] = INFINITY;
    *out = sim->room;
    sim->room = (int)room;
    return OK;
}

static int start_thread(struct sim_thread *thread) {
    pthread_attr_t attributes;
    int code = pthread_attr_init(&attributes);
    if (code) return code;
    code = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (!code) code = pthread_create(&thread->handle, &attributes, thread_main, thread);
    pthread_attr_destroy(&attributes);
    return code;
}

static int sim_spawn(struct world *world, const char *name, const struct cores *cores, world_body *body,
                     void *argument, struct world_thread **out, struct error *error) {
    (void)cores;
    struct sim_world *sim = (struct sim_world *)world;
    int slot = 0;
    RETURN_IF(find_slot(sim, &slot, error));
    struct sim_thread *thread = NULL;
    RETURN_IF(memory_array(&thread, 1, "a simulated thread", error));
    thread->base.world = world;
    thread->slot = slot;
    thread->body = body;
    thread->argument = argument;
    snprintf(thread->name, sizeof thread->name, "%.15s", name);
    sem_init(&thread->baton, 0, 0);
    const int code = start_thread(thread);
    if (code) {
        sem_destroy(&thread->baton);
        memory_free(thread);
        return error_set(error, ERROR_DEVICE, "simulated thread '%s' cannot be started: %s", name,
                         strerror(code));
    }
    sim->threads[slot] = thread;
    sim->when[slot] = sim->now;
    *out = &thread->base;
    return OK;
}

static bool sim_join(struct world_thread *base, double seconds) {
    (void)seconds;
    struct sim_thread *thread = (struct sim_thread *)base;
    struct sim_world *sim = (struct sim_world *)base->world;
    sim_yield(base->world);
    while (!thread->ended) go_on(sim, AT_JOIN, thread, INFINITY);
    pthread_join(thread->handle, 0);
    sim->threads[thread->slot] = 0;
    sem_destroy(&thread->baton);
    memory_free(thread);
    return true;
}

/* --- lock --- */

static void sim_lock_take(struct lock *lock) {
    struct sim_world *sim = (struct sim_world *)lock->world;
    sim_yield(lock->world);
    while (atomic_load(&lock->word) != 0) go_on(sim, AT_LOCK, lock, INFINITY);
    atomic_store(&lock->word, 1);
}

static void sim_lock_release(struct lock *lock) {
    atomic_store(&lock->word, 0);
    wake_all_at((struct sim_world *)lock->world, lock);
    sim_yield(lock->world);
}

/* --- event --- */

static void sim_event_post(struct event *event) {
    struct sim_world *sim = (struct sim_world *)event->world;
    atomic_fetch_add(&event->count, 1);
    atomic_fetch_add(&event->word, 1);
    for (int slot = 0; slot < sim->room; slot++) {
        if (sim->at[slot] != event) continue;
        const struct sim_thread *thread = sim->threads[slot];
        if (thread->ready(thread->ready_argument)) wake(sim, slot);
    }
    sim_yield(event->world);
}

static enum wait_result sim_event_wait_until(struct event *event, bool (*ready)(void *argument),
                                             void *argument, double deadline) {
    struct sim_world *sim = (struct sim_world *)event->world;
    sim_yield(event->world);
    while (true) {
        if (ready(argument)) return WAIT_DONE;
        if (world_stopped(event->world)) return WAIT_STOPPED;
        if (sim->now >= deadline) return WAIT_TIMEOUT;
        struct sim_thread *self = sim->threads[sim->running];
        self->ready = ready;
        self->ready_argument = argument;
        go_on(sim, AT_EVENT, event, deadline);
    }
}

/* --- the world itself --- */

static void sim_close(struct world *world) {
    struct sim_world *sim = (struct sim_world *)world;
    memory_free(sim->when);
    memory_free(sim->at);
    memory_free(sim->threads);
    sem_destroy(&sim->opener.baton);
    memory_free(sim);
}

static const struct world_kind sim_kind = {
    .simulated = true,
    .close = sim_close,
    .spawn = sim_spawn,
    .join = sim_join,
    .now = sim_now,
    .sleep = sim_sleep,
    .work = sim_work,
    .yield = sim_yield,
    .stop = sim_stop,
    .lock_take = sim_lock_take,
    .lock_release = sim_lock_release,
    .event_post = sim_event_post,
    .event_wait_until = sim_event_wait_until,
};

int world_open_simulated(struct world **out, uint64_t seed, struct error *error) {
    *out = 0;
    struct sim_world *sim = NULL;
    RETURN_IF(memory_array(&sim, 1, "the simulated world", error));
    sim->base.kind = &sim_kind;
    sim->seed = seed;
    sem_init(&sim->opener.baton, 0, 0);
    int slot = 0;
    const int code = find_slot(sim, &slot, error);
    if (code) {
        sim_close(&sim->base);
        return code;
    }
    sim->opener.base.world = &sim->base;
    sim->threads[slot] = &sim->opener;
    sim->when[slot] = 0;
    sim->running = slot;
    *out = &sim->base;
    return OK;
}
