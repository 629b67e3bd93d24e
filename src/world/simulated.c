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
 * run again, all are stuck: the worlds are stopped, and the waits report it.
 *
 * Several worlds can be parts of one simulation, with one clock and one order: the processes of a cluster, or
 * parts of a process that are stopped by themselves. Bytes go between them through simulated_network.c. */
#include "simulated_parts.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/rng.h"

enum { STACK_BYTES = 1 << 20, FIRST_ROOM = 16 };

/* What a wait takes at least that begins in a stopped world. */
#define STOPPED_S 1e-3

static const struct world_kind sim_kind;

/* --- the scheduler --- */

static void wake(struct simulation *sim, int slot) {
    sim->when[slot] = sim->now;
    sim->at[slot] = 0;
}

static void wake_all_at(struct simulation *sim, const void *place) {
    for (int slot = 0; slot < sim->room; slot++)
        if (sim->at[slot] == place) wake(sim, slot);
}

/* The world was stopped: waits for events or the network, and sleeps, end now. */
static void sim_stop(struct world *world) {
    struct simulation *sim = sim_of(world)->sim;
    for (int slot = 0; slot < sim->room; slot++) {
        const struct sim_thread *thread = sim->threads[slot];
        if (!thread || slot == sim->running || thread->in != world) continue;
        if (thread->because == AT_EVENT || thread->because == AT_NETWORK || thread->because == SLEEPING)
            wake(sim, slot);
    }
}

/* Looking for the next thread is most of what a thousand threads cost: the loops go over several times at
 * once. The room is a multiple of FIRST_ROOM. */
static double least_of(const double *when, int count) {
    double least[FIRST_ROOM];
    for (int i = 0; i < FIRST_ROOM; i++) least[i] = INFINITY;
    for (int at = 0; at < count; at += FIRST_ROOM)
        for (int i = 0; i < FIRST_ROOM; i++) least[i] = when[at + i] < least[i] ? when[at + i] : least[i];
    for (int i = 1; i < FIRST_ROOM; i++) least[0] = least[i] < least[0] ? least[i] : least[0];
    return least[0];
}
static uint32_t count_equal(const double *when, int count, double value) {
    uint32_t equal = 0;
    for (int i = 0; i < count; i++) equal += when[i] == value;
    return equal;
}

/* A slot among those with the smallest `when`, or -1 when all are blocked for good. */
static int next_slot(struct simulation *sim) {
    const double least = least_of(sim->when, sim->room);
    if (isinf(least)) return -1;
    const uint32_t equal = count_equal(sim->when, sim->room, least);
    uint32_t skip = 0, here;
    if (equal > 1) skip = (uint32_t)((uint64_t)rng_philox(sim->seed, 0, sim->draws++).word[0] * equal >> 32);
    int slot = 0;
    for (; skip >= (here = count_equal(sim->when + slot, FIRST_ROOM, least)); slot += FIRST_ROOM)
        skip -= here;
    while (sim->when[slot] != least || skip-- > 0) slot++;
    return slot;
}

/* Whether it was woken for a lock that another one has taken meanwhile. */
static bool is_late(const struct sim_thread *thread) {
    return thread->because == AT_LOCK && atomic_load(&thread->lock->word) != 0;
}

/* Chooses who runs next and moves the clock to its time. Of a thousand that wait for a lock one gets it: the
 * others are put back to wait without being run, which would come to the same. */
static struct sim_thread *pick(struct simulation *sim) {
    for (;;) {
        int slot = next_slot(sim);
        if (slot < 0) { /* deadlock */
            sim->running = -1;
            for (struct sim_world *world = sim->worlds; world; world = world->next) world_stop(&world->base);
            slot = next_slot(sim);
        }
        assert(slot >= 0 && "simulated world: every thread is stuck at a lock or a join");
        sim->now = sim->when[slot];
        if (!is_late(sim->threads[slot])) {
            sim->running = slot;
            return sim->threads[slot];
        }
        sim->at[slot] = sim->threads[slot]->lock;
        sim->when[slot] = INFINITY;
    }
}

static void take_baton(struct sim_thread *thread) {
    while (sem_wait(&thread->baton) != 0) assert(errno == EINTR);
}

/* The caller can go on at `when`, or earlier if it is woken `at` a place, or, where it waits or sleeps, by
 * the stop of the world that it does so in; others run meanwhile. */
static void go_on(struct world *in, enum because because, const void *at, double when) {
    struct simulation *sim = sim_of(in)->sim;
    struct sim_thread *self = sim->threads[sim->running];
    self->because = because;
    self->in = in;
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

static double sim_now(const struct world *world) {
    return sim_of(world)->sim->now;
}

static void sim_yield(struct world *world) {
    go_on(world, RUNNABLE, 0, sim_now(world));
}

static void sim_work(struct world *world, double seconds) {
    go_on(world, RUNNABLE, 0, sim_now(world) + fmax(seconds, 0));
}

/* A sleep that begins in a stopped world takes its full time: virtual time costs nothing, and one that took
 * none would let a loop around it keep all later threads from ever running. */
static void sim_sleep(struct world *world, double seconds) {
    go_on(world, SLEEPING, 0, sim_now(world) + fmax(seconds, 0));
}

/* --- threads --- */

static void *thread_main(void *argument) {
    struct sim_thread *thread = argument;
    struct simulation *sim = thread->sim;
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
static int find_slot(struct simulation *sim, int *out, struct error *error) {
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
    struct simulation *sim = sim_of(world)->sim;
    int slot = 0;
    RETURN_IF(find_slot(sim, &slot, error));
    struct sim_thread *thread = NULL;
    RETURN_IF(memory_array(&thread, 1, "a simulated thread", error));
    thread->base.world = world;
    thread->sim = sim;
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
    struct sim_thread *thread = (struct sim_thread *)base;
    const double until = sim_now(base->world) + seconds;
    sim_yield(base->world);
    while (!thread->ended) {
        if (sim_now(base->world) >= until) return false;
        go_on(base->world, AT_JOIN, thread, until);
    }
    pthread_join(thread->handle, 0);
    thread->sim->threads[thread->slot] = 0;
    sem_destroy(&thread->baton);
    memory_free(thread);
    return true;
}

/* --- lock --- */

static void sim_lock_take(struct lock *lock) {
    const struct simulation *sim = sim_of(lock->world)->sim;
    sim_yield(lock->world);
    sim->threads[sim->running]->lock = lock;
    while (atomic_load(&lock->word) != 0) go_on(lock->world, AT_LOCK, lock, INFINITY);
    atomic_store(&lock->word, 1);
}

static void sim_lock_release(struct lock *lock) {
    atomic_store(&lock->word, 0);
    wake_all_at(sim_of(lock->world)->sim, lock);
    sim_yield(lock->world);
}

/* --- event --- */

static void sim_event_post(struct event *event) {
    struct simulation *sim = sim_of(event->world)->sim;
    atomic_fetch_add(&event->count, 1);
    atomic_fetch_add(&event->word, 1);
    for (int slot = 0; slot < sim->room; slot++) {
        if (sim->at[slot] != event) continue;
        const struct sim_thread *thread = sim->threads[slot];
        if (thread->ready(thread->wanted)) wake(sim, slot);
    }
    sim_yield(event->world);
}

static enum wait_result sim_event_wait_until(struct event *event, bool (*ready)(void *argument),
                                             void *argument, double deadline) {
    struct simulation *sim = sim_of(event->world)->sim;
    const bool was_stopped = world_stopped(event->world);
    sim_yield(event->world);
    while (true) {
        if (ready(argument)) return WAIT_DONE;
        if (world_stopped(event->world)) break;
        if (sim->now >= deadline) return WAIT_TIMEOUT;
        struct sim_thread *self = sim->threads[sim->running];
        self->ready = ready;
        self->wanted = argument;
        go_on(event->world, AT_EVENT, event, deadline);
    }
    if (!was_stopped) return WAIT_STOPPED;
    go_on(event->world, RUNNABLE, 0, sim->now + STOPPED_S); /* as a sleep, see there */
    return ready(argument) ? WAIT_DONE : WAIT_STOPPED;
}

/* --- the network --- */

void sim_wait_due(struct world *world, sim_due *due, void *argument, double deadline) {
    struct simulation *sim = sim_of(world)->sim;
    struct sim_thread *self = sim->threads[sim->running];
    self->due = due;
    self->wanted = argument;
    self->deadline = deadline;
    go_on(world, AT_NETWORK, 0, fmax(sim->now, fmin(due(argument), deadline)));
}

void sim_network_changed(struct simulation *sim) {
    for (int slot = 0; slot < sim->room; slot++) {
        const struct sim_thread *thread = sim->threads[slot];
        if (thread && slot != sim->running && thread->because == AT_NETWORK)
            sim->when[slot] = fmax(sim->now, fmin(thread->due(thread->wanted), thread->deadline));
    }
}

/* --- the world itself --- */

static void close_simulation(struct simulation *sim) {
    sim_sockets_free(sim);
    memory_free(sim->when);
    memory_free(sim->at);
    memory_free(sim->threads);
    sem_destroy(&sim->opener.baton);
    memory_free(sim);
}

static void sim_close(struct world *world) {
    struct simulation *sim = sim_of(world)->sim;
    struct sim_world **at = &sim->worlds;
    while (&(*at)->base != world) at = &(*at)->next;
    *at = (*at)->next;
    memory_free(sim_of(world));
    if (!sim->worlds) close_simulation(sim);
}

static int open_world(struct world **out, struct simulation *sim, int machine, struct error *error) {
    struct sim_world *world = NULL;
    RETURN_IF(memory_array(&world, 1, "a simulated world", error));
    world->base.kind = &sim_kind;
    world->sim = sim;
    world->machine = machine;
    world->next = sim->worlds;
    sim->worlds = world;
    *out = &world->base;
    return OK;
}

static int sim_open_beside(struct world **out, struct world *world, struct error *error) {
    return open_world(out, sim_of(world)->sim, sim_of(world)->machine, error);
}

int simulated_open_machine(struct world **out, struct world *beside, struct error *error) {
    struct simulation *sim = sim_of(beside)->sim;
    *out = 0;
    if (sim->machine_count == MACHINES)
        return error_set(error, ERROR_DEVICE, "a simulation has at most %d machines", MACHINES);
    RETURN_IF(open_world(out, sim, sim->machine_count, error));
    sim->machines[sim->machine_count++].slowness = 1.0;
    return OK;
}

static const struct world_kind sim_kind = {
    .simulated = true,
    .close = sim_close,
    .open_beside = sim_open_beside,
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
    .sockets = &simulated_sockets,
    .event_wait_until = sim_event_wait_until,
};

static int open_first(struct world **out, struct simulation *sim, struct error *error) {
    int slot = 0;
    RETURN_IF(find_slot(sim, &slot, error));
    RETURN_IF(open_world(out, sim, 0, error));
    sim->machines[sim->machine_count++].slowness = 1.0;
    sim->opener.base.world = *out;
    sim->opener.sim = sim;
    sim->threads[slot] = &sim->opener;
    sim->when[slot] = 0;
    sim->running = slot;
    return OK;
}

int world_open_simulated(struct world **out, uint64_t seed, struct error *error) {
    struct simulation *sim = NULL;
    *out = 0;
    RETURN_IF(memory_array(&sim, 1, "a simulation", error));
    sim->seed = seed;
    sem_init(&sim->opener.baton, 0, 0);
    const int code = open_first(out, sim, error);
    if (code != OK) close_simulation(sim);
    return code;
}
