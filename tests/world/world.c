/* Threads, locks, events and the clock, in both worlds; and what the simulated one promises beyond: order by
 * virtual time, the same order for the same seed, and a deadlock that is found. */
#include "../check.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../src/base/memory.h"
#include "../../src/world/world.h"

static struct world *open_world(bool simulated, uint64_t seed) {
    struct world *world = 0;
    struct error error = {0};
    const int code =
        simulated ? world_open_simulated(&world, seed, &error) : world_open_threads(&world, &error);
    CHECK(code == OK && world_is_simulated(world) == simulated, "%s", error.words);
    return world;
}

static struct world_thread *spawn(struct world *world, world_body *body, void *argument) {
    struct world_thread *thread = 0;
    struct error error = {0};
    CHECK(world_spawn(world, "a thread of the test", 0, body, argument, &thread, &error) == OK, "%s",
          error.words);
    return thread;
}

static void test_clock(bool simulated) {
    struct world *world = open_world(simulated, 1);
    const double start = world_now(world);
    CHECK(start >= 0 && start < 5, "%g", start);
    world_sleep(world, 0.01);
    const double slept = world_now(world) - start;
    CHECK(simulated ? slept == 0.01 : slept >= 0.01, "slept %g", slept);
    world_work(world, 100);
    const double worked = world_now(world) - start - slept;
    CHECK(simulated ? fabs(worked - 100) < 1e-9 : worked < 5, "worked %g", worked);
    world_close(world);
}

/* --- lock --- */

enum { LOCKERS = 6, TAKES = 500 };
struct locked {
    struct lock lock;
    struct world *world;
    long plain; /* guarded by lock */
    int inside;
    bool overlapped;
};

static void count_locked(void *argument) {
    struct locked *locked = argument;
    for (int i = 0; i < TAKES; i++) {
        lock_take(&locked->lock);
        if (locked->inside++ != 0) locked->overlapped = true;
        const long before = locked->plain;
        for (_Atomic int turn = 0; turn < 200;) turn++; /* long enough to be caught in */
        locked->plain = before + 1;
        if (i % 64 == 0) world_yield(locked->world);
        if (i % 100 == 0) world_sleep(locked->world, 1e-4);
        locked->inside--;
        lock_release(&locked->lock);
    }
}

static void test_lock(bool simulated) {
    struct locked locked = {.world = open_world(simulated, 2)};
    lock_open(&locked.lock, locked.world);
    struct world_thread *threads[LOCKERS];
    for (int i = 0; i < LOCKERS; i++) threads[i] = spawn(locked.world, count_locked, &locked);
    for (int i = 0; i < LOCKERS; i++) world_join(threads[i]);
    CHECK(locked.plain == LOCKERS * TAKES, "%ld", locked.plain);
    CHECK(!locked.overlapped, "two threads held the lock");
    CHECK(locked.lock.taken == LOCKERS * TAKES, "%ld", atomic_load(&locked.lock.taken));
    CHECK(locked.lock.word == 0, "the lock is left taken");
    world_close(locked.world);
}

/* --- event: ping-pong, deadline, stop --- */

enum { ROUNDS = 1000 };
struct table {
    struct event ping, pong;
    long ball; /* plain: what the events order */
    bool in_order;
};

static void return_balls(void *argument) {
    struct table *table = argument;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        if (event_wait(&table->ping, round, INFINITY) != WAIT_DONE) break;
        if (table->ball != (long)(2 * round - 1)) table->in_order = false;
        table->ball++;
        event_post(&table->pong);
    }
}

static void test_ping_pong(bool simulated) {
    struct world *world = open_world(simulated, 3);
    struct table table = {.in_order = true};
    event_open(&table.ping, world);
    event_open(&table.pong, world);
    struct world_thread *other = spawn(world, return_balls, &table);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        table.ball++;
        event_post(&table.ping);
        CHECK(event_wait(&table.pong, round, INFINITY) == WAIT_DONE, "round %d", (int)round);
        if (table.ball != (long)(2 * round)) table.in_order = false;
    }
    world_join(other);
    CHECK(table.in_order, "a ball was seen out of order");
    CHECK(table.ping.count == ROUNDS && table.pong.count == ROUNDS, "posts were lost");
    CHECK(table.ping.waiters == 0 && table.pong.waiters == 0, "waiters are left behind");
    world_close(world);
}

static bool never(void *argument) {
    (void)argument;
    return false;
}
static bool always(void *argument) {
    (void)argument;
    return true;
}

static void test_deadline(bool simulated) {
    struct world *world = open_world(simulated, 4);
    struct event event;
    event_open(&event, world);
    const double start = world_now(world);
    CHECK(event_wait(&event, 1, start) == WAIT_TIMEOUT, "a deadline that has passed");
    CHECK(event_wait(&event, 1, start + 0.03) == WAIT_TIMEOUT, "nobody posts");
    const double end = world_now(world);
    CHECK(simulated ? end == start + 0.03 : end >= start + 0.03 && end < start + 10, "after %g s",
          end - start);
    CHECK(event_wait(&event, 0, 0) == WAIT_DONE, "ready at once, though the deadline has passed");
    event_post(&event);
    CHECK(event_wait(&event, 1, 0) == WAIT_DONE, "posted before");
    CHECK(event_wait_until(&event, never, 0, world_now(world) + 0.001) == WAIT_TIMEOUT, "never ready");
    world_stop(world);
    CHECK(world_stopped(world), "stopped");
    CHECK(event_wait_until(&event, always, 0, INFINITY) == WAIT_DONE, "ready, though the world is stopped");
    CHECK(event_wait(&event, 2, INFINITY) == WAIT_STOPPED, "stopped");
    world_close(world);
}

/* A sleeping waiter is woken by the post itself, not when it next looks for a stop of its own accord. */
enum { LATE_ROUNDS = 40 };
struct late {
    struct world *world;
    struct event event, reply;
    double posted_at;
    int prompt;
};

static void wake_late(void *argument) {
    struct late *late = argument;
    for (uint64_t round = 1; round <= LATE_ROUNDS; round++) {
        event_wait(&late->event, round, INFINITY);
        late->prompt += world_now(late->world) - late->posted_at < 0.004;
        event_post(&late->reply);
    }
}

static void test_wake(bool simulated) {
    struct late late = {.world = open_world(simulated, 5)};
    event_open(&late.event, late.world);
    event_open(&late.reply, late.world);
    struct world_thread *thread = spawn(late.world, wake_late, &late);
    for (uint64_t round = 1; round <= LATE_ROUNDS; round++) {
        world_sleep(late.world, 0.001);
        late.posted_at = world_now(late.world);
        event_post(&late.event);
        event_wait(&late.reply, round, INFINITY);
    }
    world_join(thread);
    CHECK(late.prompt > LATE_ROUNDS / 2, "only %d of %d wake-ups were prompt", late.prompt, LATE_ROUNDS);
    world_close(late.world);
}

enum { SLEEPERS = 8 };
struct sleeper {
    struct world *world;
    struct event event, *shared;
    _Atomic int *asleep;
    int kind;
    enum wait_result result;
};

static void sleep_forever(void *argument) {
    struct sleeper *sleeper = argument;
    atomic_fetch_add(sleeper->asleep, 1);
    sleeper->result = WAIT_STOPPED;
    if (sleeper->kind == 0)
        sleeper->result = event_wait(&sleeper->event, 1, INFINITY);
    else if (sleeper->kind == 1)
        sleeper->result = event_wait(sleeper->shared, 1, world_now(sleeper->world) + 1e6);
    else
        world_sleep(sleeper->world, 1e5);
}

static void test_stop(bool simulated) {
    struct world *world = open_world(simulated, 6);
    struct event shared;
    event_open(&shared, world);
    _Atomic int asleep = 0;
    struct sleeper sleepers[SLEEPERS];
    struct world_thread *threads[SLEEPERS];
    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (struct sleeper){.world = world, .shared = &shared, .asleep = &asleep, .kind = i % 3};
        event_open(&sleepers[i].event, world);
        threads[i] = spawn(world, sleep_forever, &sleepers[i]);
    }
    while (asleep < SLEEPERS) world_sleep(world, 0.001);
    world_sleep(world, 0.005);
    world_stop(world);
    const double stopped_at = world_now(world);
    for (int i = 0; i < SLEEPERS; i++) {
        world_join(threads[i]);
        CHECK(sleepers[i].result == WAIT_STOPPED, "sleeper %d: result %d", i, (int)sleepers[i].result);
    }
    const double took = world_now(world) - stopped_at;
    CHECK(simulated ? took == 0 : took < 2, "took %g s", took);
    world_close(world);
}

/* --- what the simulated world promises --- */

enum { ACTORS = 7, STEPS = 40 };
struct stage {
    struct world *world;
    struct lock lock;
    struct event event;
    int log[ACTORS * STEPS];
    double times[ACTORS * STEPS];
    int count;
};
struct actor {
    struct stage *stage;
    int number;
};

static void act(void *argument) {
    struct actor *actor = argument;
    struct stage *stage = actor->stage;
    for (int step = 0; step < STEPS; step++) {
        lock_take(&stage->lock);
        stage->times[stage->count] = world_now(stage->world);
        stage->log[stage->count++] = actor->number;
        lock_release(&stage->lock);
        event_post(&stage->event);
        if (step % 5 == 0) world_work(stage->world, 0.01 * (step % 3));
        event_wait(&stage->event, (uint64_t)step + 1, world_now(stage->world) + 0.005);
    }
}

static void play(struct stage *stage, uint64_t seed) {
    memset(stage, 0, sizeof *stage);
    stage->world = open_world(true, seed);
    lock_open(&stage->lock, stage->world);
    event_open(&stage->event, stage->world);
    struct actor actors[ACTORS];
    struct world_thread *threads[ACTORS];
    for (int i = 0; i < ACTORS; i++) {
        actors[i] = (struct actor){.stage = stage, .number = i};
        threads[i] = spawn(stage->world, act, &actors[i]);
    }
    for (int i = 0; i < ACTORS; i++) world_join(threads[i]);
    CHECK(stage->count == ACTORS * STEPS, "%d lines", stage->count);
    world_close(stage->world);
}

static void test_same_seed(void) {
    static struct stage first, again;
    int different = 0;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        play(&first, seed);
        play(&again, seed);
        CHECK(memcmp(first.log, again.log, sizeof first.log) == 0, "seed %d: another order", (int)seed);
        CHECK(memcmp(first.times, again.times, sizeof first.times) == 0, "seed %d: other times", (int)seed);
        play(&again, seed + 10);
        different += memcmp(first.log, again.log, sizeof first.log) != 0;
        for (int i = 1; i < first.count; i++)
            CHECK(first.times[i] >= first.times[i - 1], "time runs backwards at line %d", i);
    }
    CHECK(different == 3, "of 3 pairs of seeds only %d differ", different);
}

struct laborer {
    struct world *world;
    double seconds, ended_at;
    int *order, *ended, number;
};

static void labor(void *argument) {
    struct laborer *laborer = argument;
    world_work(laborer->world, laborer->seconds);
    laborer->ended_at = world_now(laborer->world);
    laborer->order[(*laborer->ended)++] = laborer->number;
}

static void test_virtual_order(void) {
    const double seconds[4] = {3, 1, 4, 2};
    const int expected[4] = {1, 3, 0, 2};
    struct world *world = open_world(true, 7);
    int order[4] = {0}, ended = 0;
    struct laborer laborers[4];
    struct world_thread *threads[4];
    for (int i = 0; i < 4; i++) {
        laborers[i] = (struct laborer){
            .world = world, .seconds = seconds[i], .order = order, .ended = &ended, .number = i};
        threads[i] = spawn(world, labor, &laborers[i]);
    }
    CHECK(ended == 0, "a spawned thread ran before a scheduling point");
    for (int i = 0; i < 4; i++) world_join(threads[i]);
    for (int i = 0; i < 4; i++) {
        CHECK(order[i] == expected[i], "place %d: thread %d, expected %d", i, order[i], expected[i]);
        CHECK(laborers[i].ended_at == seconds[i], "thread %d ended at %g", i, laborers[i].ended_at);
    }
    CHECK(world_now(world) == 4, "the clock shows %g", world_now(world));
    world_close(world);
}

/* Of threads that are ready at the same time each comes first with the same probability. */
static void test_fair_ties(void) {
    enum { WORLDS = 600, THREADS = 3 };
    int first[THREADS] = {0};
    for (uint64_t seed = 0; seed < WORLDS; seed++) {
        struct world *world = open_world(true, seed);
        int order[THREADS] = {0}, ended = 0;
        struct laborer laborers[THREADS];
        struct world_thread *threads[THREADS];
        for (int i = 0; i < THREADS; i++) {
            laborers[i] =
                (struct laborer){.world = world, .seconds = 1, .order = order, .ended = &ended, .number = i};
            threads[i] = spawn(world, labor, &laborers[i]);
        }
        for (int i = 0; i < THREADS; i++) world_join(threads[i]);
        first[order[0]]++;
        world_close(world);
    }
    for (int i = 0; i < THREADS; i++) /* 200 expected, standard deviation 11.5 */
        CHECK(first[i] > 140 && first[i] < 260, "thread %d was first %d times of %d", i, first[i], WORLDS);
}

static void test_deadlock(void) {
    struct world *world = open_world(true, 8);
    _Atomic int asleep = 0;
    struct sleeper sleepers[2];
    struct world_thread *threads[2];
    for (int i = 0; i < 2; i++) {
        sleepers[i] = (struct sleeper){.world = world, .asleep = &asleep, .result = WAIT_DONE};
        event_open(&sleepers[i].event, world);
        threads[i] = spawn(world, sleep_forever, &sleepers[i]);
    }
    for (int i = 0; i < 2; i++) world_join(threads[i]);
    CHECK(world_stopped(world), "nobody can ever run: the world is stopped");
    for (int i = 0; i < 2; i++)
        CHECK(sleepers[i].result == WAIT_STOPPED, "result %d", (int)sleepers[i].result);
    struct event event;
    event_open(&event, world);
    CHECK(event_wait(&event, 1, INFINITY) == WAIT_STOPPED, "the opener alone is stuck too");
    world_close(world);
}

static void yield_and_count(void *argument) {
    struct locked *locked = argument;
    for (int i = 0; i < 3; i++) {
        world_yield(locked->world);
        locked->plain++; /* one thread runs at a time: no guard */
    }
}

static void test_thousand(void) {
    enum { THREADS = 1000 };
    static struct world_thread *threads[THREADS];
    struct locked locked = {.world = open_world(true, 9)};
    for (int i = 0; i < THREADS; i++) threads[i] = spawn(locked.world, yield_and_count, &locked);
    for (int i = 0; i < THREADS; i++) world_join(threads[i]);
    CHECK(locked.plain == 3 * THREADS, "%ld", locked.plain);
    world_close(locked.world);
}

/* --- the machine --- */

struct pinned {
    int core;
    bool elsewhere;
};

static void look_where(void *argument) {
    struct pinned *pinned = argument;
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    pinned->elsewhere = CPU_COUNT(&set) != 1 || !CPU_ISSET((size_t)pinned->core, &set);
}

static void test_machine(void) {
    struct cores cores, one = {.count = 1};
    world_cores(&cores);
    int count = 0, last = 0;
    for (int core = 0; core < WORLD_CORES; core++)
        if (cores.mask[core / 64] >> (core % 64) & 1) {
            count++;
            last = core;
        }
    CHECK(count == cores.count && count >= 1, "count %d, bits %d", cores.count, count);
    one.mask[last / 64] = UINT64_C(1) << (last % 64);
    struct world *world = open_world(false, 0);
    struct pinned pinned = {.core = last};
    struct world_thread *thread = 0;
    struct error error = {0};
    CHECK(world_spawn(world, "pinned", &one, look_where, &pinned, &thread, &error) == OK, "%s", error.words);
    world_join(thread);
    CHECK(!pinned.elsewhere, "the thread is not on core %d alone", last);
    world_join(0);
    world_close(world);
    world_close(0);
    CHECK(world_resident_bytes() > 100000, "%lld bytes", world_resident_bytes());
    CHECK(world_utc_seconds() > 1600000000, "%lld", world_utc_seconds());
}

/* What this machine is called, and what others are; no name is looked up. */
static void test_here(void) {
    const char *const here[] = {"localhost", "LocalHost",       "127.0.0.1",        "127.1.2.3",
                                "::1",       "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::1%lo"};
    const char *const elsewhere[] = {"203.0.113.77",
                                     "2001:db8::1",
                                     "::ffff:203.0.113.77",
                                     "trainer.invalid",
                                     "localhost.invalid",
                                     "127.0.0.1.invalid",
                                     "128.0.0.1",
                                     "127",
                                     ""};
    char text[INET6_ADDRSTRLEN] = "";
    struct ifaddrs *list = NULL;
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        CHECK(world_is_here(here[i]), "%s is not here", here[i]);
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        CHECK(!world_is_here(elsewhere[i]), "%s is here", elsewhere[i]);
    char own[256] = "";
    CHECK(gethostname(own, sizeof own - 1) == 0 && (own[0] == '\0' || world_is_here(own)), "%s is not here",
          own);
    CHECK(getifaddrs(&list) == 0, "no interfaces");
    for (const struct ifaddrs *one = list; one; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP)) continue;
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr, text,
                  sizeof text);
        CHECK(world_is_here(text), "%s, of %s, is not here", text, one->ifa_name);
    }
    freeifaddrs(list);
}

/* Runs body in a process of its own; returns its exit code. */
static int in_child(void (*body)(int number), int number) {
    const pid_t child = fork();
    if (child == 0) {
        body(number);
        exit(check_failures ? 99 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* As a process that its parent made ignore none, however this one was started. */
static void heed_all(void) {
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
}

static void hang_up(int signals) {
    heed_all();
    world_catch_interrupts();
    for (int i = 0; i < signals; i++) raise(SIGHUP);
    CHECK(world_interrupted() == (signals > 0), "after %d times SIGHUP", signals);
}

static void ignore(int number) {
    heed_all();
    signal(number, SIG_IGN);
    world_catch_interrupts();
    raise(number);
    raise(number);
    CHECK(!world_interrupted(), "signal %d, which was ignored", number);
    raise(number == SIGTERM ? SIGINT : SIGTERM);
    CHECK(world_interrupted(), "with signal %d ignored, the others are, too", number);
}

static void interrupt(int signals) {
    heed_all();
    world_catch_interrupts();
    CHECK(!world_interrupted(), "before any signal");
    if (signals > 0) raise(SIGTERM);
    CHECK(world_interrupted() == (signals > 0), "after the first signal");
    if (signals > 1) raise(SIGINT);
}

static void fail_allocation(int nth) {
    char text[16];
    snprintf(text, sizeof text, "%d", nth);
    setenv("TRAINER_FAIL_ALLOCATION", text, 1);
    struct world *world = 0;
    struct error error = {0};
    struct locked locked = {0};
    struct world_thread *threads[20] = {0};
    int code = world_open_simulated(&world, 1, &error);
    locked.world = world;
    for (int i = 0; i < 20 && !code; i++)
        code = world_spawn(world, "thread", 0, yield_and_count, &locked, &threads[i], &error);
    for (int i = 0; i < 20; i++) world_join(threads[i]);
    world_close(world);
    CHECK(code == OK || code == ERROR_DEVICE, "code %d: %s", code, error.words);
    if (code == OK) exit(42);
}

static void test_in_children(void) {
    CHECK(in_child(interrupt, 0) == 0, "no signal");
    CHECK(in_child(interrupt, 1) == 0, "one signal");
    CHECK(in_child(interrupt, 2) == ERROR_INTERRUPTED, "two signals");
    CHECK(in_child(hang_up, 1) == 0 && in_child(hang_up, 2) == 0, "hanging up");
    CHECK(in_child(ignore, SIGINT) == 0 && in_child(ignore, SIGTERM) == 0 && in_child(ignore, SIGHUP) == 0,
          "signals that were ignored");
    int code = 0, nth = 0;
    while (code == 0 && nth < 100) code = in_child(fail_allocation, ++nth);
    CHECK(code == 42 && nth == 29, "allocation %d: exit code %d", nth, code); /* 5 + 20 threads + 3 to grow */
}

int main(void) {
    test_in_children(); /* first, while there is one thread */
    for (int simulated = 0; simulated <= 1; simulated++) {
        test_clock(simulated);
        test_lock(simulated);
        test_ping_pong(simulated);
        test_deadline(simulated);
        test_wake(simulated);
        test_stop(simulated);
    }
    test_same_seed();
    test_virtual_order();
    test_fair_ties();
    test_deadlock();
    test_thousand();
    test_machine();
    test_here();
    return check_end();
}
