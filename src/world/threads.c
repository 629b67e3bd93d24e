/* The real world: POSIX threads, the monotonic clock, and Linux futexes to sleep on.
 *
 * Why futexes: `event_post` may neither block nor lock, and takes two atomic adds when no thread sleeps.
 * Sequential consistency closes the race between a post that looks for waiters and a waiter that goes to
 * sleep:
 *
 *     post:  word += 1;    read waiters          wait:  waiters += 1;    read word, then ready()
 *
 * One of the two reads sees the other's add. Either the post sees the waiter and wakes it, or the waiter
 * reads the new word and so sees all that the poster wrote before. The kernel checks the word again before
 * it lets a thread sleep.
 *
 * A stopped world has no list of events to wake: sleepers wake every STOP_SLICE_S and check. */
#include "world_kind.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "../base/memory.h"

/* How long a wait spins before it sleeps. Waking a sleeper takes longer than most waits between workers of
 * equal speed, and one late worker makes the next one late. Measured with `sync` on an MLP, two workers on
 * two cores that others used too: 157 to 176 thousand examples/s with 20 us, 173 to 180 with 100 us, 150 to
 * 172 with 300 us. Where threads share cores, the awaited one may need the very core: `async-lockfree`, two
 * workers and a server on two cores, waited 3 % of the time with 20 us, 20 % with 300 us. On one core nobody
 * else can run meanwhile. */
#define SPIN_ALONE_S 100e-6
#define SPIN_SHARED_S 20e-6
enum { SPINS_A_CLOCK = 32 }; /* looks between two readings of the clock */
#define STOP_SLICE_S 0.02

struct real_world {
    struct world base;
    struct timespec start;
    int cores;           /* that this process may use */
    _Atomic int threads; /* spawned and not yet joined */
};

struct real_thread {
    struct world_thread base;
    pthread_t handle;
    world_body *body;
    void *argument; /* borrowed */
    char name[THREAD_NAME_BYTES];
    _Atomic uint32_t ended;
};

static const struct world_kind real_kind;

static double real_now(const struct world *world) {
    const struct real_world *real = (const struct real_world *)world;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - real->start.tv_sec) + 1e-9 * (double)(now.tv_nsec - real->start.tv_nsec);
}

/* --- futex --- */

/* Sleeps while *word is `expected`, until woken, until `deadline`, or for no reason at all. */
static void futex_sleep(const struct world *world, _Atomic uint32_t *word, uint32_t expected,
                        double deadline) {
    const struct real_world *real = (const struct real_world *)world;
    const double far = 1e9; /* some thirty years: INFINITY has no timespec */
    const double at = fmin(fmax(deadline, 0), far);
    struct timespec until = {.tv_sec = real->start.tv_sec + (time_t)at,
                             .tv_nsec = real->start.tv_nsec + (long)(1e9 * (at - floor(at)))};
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, &until, 0,
            FUTEX_BITSET_MATCH_ANY);
}

static void futex_wake(_Atomic uint32_t *word, int threads) {
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, threads, 0, 0, 0);
}

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__("yield" ::: "memory");
#endif
}

/* Looks again and again until ready() or `until`, or until the world stops. */
static bool spin(const struct world *world, bool (*ready)(void *argument), void *argument, double until) {
    do {
        for (int look = 0; look < SPINS_A_CLOCK; look++) {
            if (ready(argument)) return true;
            relax();
        }
    } while (real_now(world) < until && !world_stopped(world));
    return false;
}

static double spin_end(const struct world *world) {
    const struct real_world *real = (const struct real_world *)world;
    if (real->cores == 1) return 0;
    const bool alone = atomic_load_explicit(&real->threads, memory_order_relaxed) <= real->cores;
    return real_now(world) + (alone ? SPIN_ALONE_S : SPIN_SHARED_S);
}

/* --- threads --- */

static void *thread_main(void *argument) {
    struct real_thread *thread = argument;
    pthread_setname_np(pthread_self(), thread->name);
    thread->body(thread->argument);
    atomic_store(&thread->ended, 1);
    futex_wake(&thread->ended, INT_MAX);
    return 0;
}

static int start_thread(struct real_thread *thread, const struct cores *cores) {
    pthread_attr_t attributes;
    int code = pthread_attr_init(&attributes);
    if (code) return code;
    if (cores && cores->count > 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (int core = 0; core < WORLD_CORES; core++)
            if (cores->mask[core / 64] >> (core % 64) & 1) CPU_SET((size_t)core, &set);
        code = pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    }
    if (!code) code = pthread_create(&thread->handle, &attributes, thread_main, thread);
    pthread_attr_destroy(&attributes);
    return code;
}

static int real_spawn(struct world *world, const char *name, const struct cores *cores, world_body *body,
                      void *argument, struct world_thread **out, struct error *error) {
    struct real_thread *thread = NULL;
    RETURN_IF(memory_array(&thread, 1, "a thread", error));
    thread->base.world = world;
    thread->body = body;
    thread->argument = argument;
    snprintf(thread->name, sizeof thread->name, "%.15s", name);
    const int code = start_thread(thread, cores);
    if (code) {
        memory_free(thread);
        return error_set(error, ERROR_DEVICE, "thread '%s' cannot be started: %s", name, strerror(code));
    }
    atomic_fetch_add(&((struct real_world *)world)->threads, 1);
    *out = &thread->base;
    return OK;
}

static bool real_join(struct world_thread *base, double seconds) {
    struct real_thread *thread = (struct real_thread *)base;
    const double deadline = real_now(base->world) + seconds;
    while (!atomic_load(&thread->ended) && real_now(base->world) < deadline)
        futex_sleep(base->world, &thread->ended, 0, deadline);
    if (!atomic_load(&thread->ended)) return false;
    atomic_fetch_sub(&((struct real_world *)base->world)->threads, 1);
    pthread_join(thread->handle, 0);
    memory_free(thread);
    return true;
}

static void real_sleep(struct world *world, double seconds) {
    const double deadline = real_now(world) + seconds;
    while (!world_stopped(world) && real_now(world) < deadline)
        futex_sleep(world, &world->stopped, 0, deadline);
}

static void real_stop(struct world *world) {
    futex_wake(&world->stopped, INT_MAX);
}

static void real_close(struct world *world) {
    memory_free(world);
}

/* --- lock: the three-state futex lock of U. Drepper, "Futexes are tricky", 2011, with some spinning before
 * it --- */

static bool lock_grab(void *argument) {
    struct lock *lock = argument;
    uint32_t unlocked = 0;
    return atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong(&lock->word, &unlocked, 1);
}

static void real_lock_take(struct lock *lock) {
    if (lock_grab(lock)) return;
    if (spin(lock->world, lock_grab, lock, spin_end(lock->world))) return;
    while (atomic_exchange(&lock->word, 2) != 0) futex_sleep(lock->world, &lock->word, 2, INFINITY);
}

static void real_lock_release(struct lock *lock) {
    if (atomic_exchange(&lock->word, 0) == 2) futex_wake(&lock->word, 1);
}

/* --- event --- */

static void real_event_post(struct event *event) {
    atomic_fetch_add(&event->count, 1);
    atomic_fetch_add(&event->word, 1);
    if (atomic_load(&event->waiters) > 0) futex_wake(&event->word, INT_MAX);
}

static enum wait_result real_event_wait_until(struct event *event, bool (*ready)(void *argument),
                                              void *argument, double deadline) {
    if (ready(argument)) return WAIT_DONE;
    const struct world *world = event->world;
    if (spin(world, ready, argument, fmin(deadline, spin_end(world)))) return WAIT_DONE;
    enum wait_result result = WAIT_DONE;
    atomic_fetch_add(&event->waiters, 1);
    while (true) {
        const uint32_t word = atomic_load(&event->word);
        if (ready(argument)) break;
        const double now = real_now(world);
        if (world_stopped(world))
            result = WAIT_STOPPED;
        else if (now >= deadline)
            result = WAIT_TIMEOUT;
        if (result != WAIT_DONE) break;
        futex_sleep(world, &event->word, word, fmin(deadline, now + STOP_SLICE_S));
    }
    atomic_fetch_sub(&event->waiters, 1);
    return result;
}

static int real_open_beside(struct world **out, struct world *world, struct error *error) {
    (void)world;
    return world_open_threads(out, error);
}

static const struct world_kind real_kind = {
    .simulated = false,
    .close = real_close,
    .open_beside = real_open_beside,
    .spawn = real_spawn,
    .join = real_join,
    .now = real_now,
    .sleep = real_sleep,
    .stop = real_stop,
    .lock_take = real_lock_take,
    .lock_release = real_lock_release,
    .event_post = real_event_post,
    .sockets = &kernel_sockets,
    .event_wait_until = real_event_wait_until,
};

int world_open_threads(struct world **out, struct error *error) {
    *out = 0;
    struct real_world *real = NULL;
    RETURN_IF(memory_array(&real, 1, "the world", error));
    real->base.kind = &real_kind;
    struct cores cores;
    world_cores(&cores);
    real->cores = cores.count;
    clock_gettime(CLOCK_MONOTONIC, &real->start);
    *out = &real->base;
    return OK;
}
