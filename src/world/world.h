/* The world: threads, locks, events and the clock. Everything that blocks goes through here.
 *
 * There are two worlds behind this interface. In the *real* one a thread is a pthread and the clock is the
 * monotonic clock. In the *simulated* one exactly one thread runs at a time; at every scheduling point
 * (each call marked [point]) the next thread is chosen by virtual time, then by a seeded random order, so
 * the same seed gives the same run, bit for bit, for asynchronous strategies too. When no thread can run,
 * the virtual clock jumps to the next deadline.
 *
 * Where a part of the program needs a world of its own, it opens one beside that which it was given: so whole
 * clusters run in the simulated world, each process a thread of it.
 *
 * No pthread, clock, sleep, affinity or socket call is made outside src/world. */
#ifndef TRAINER_WORLD_WORLD_H
#define TRAINER_WORLD_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "../base/error.h"

struct world;
struct world_thread;

/* A set of cores; count 0 means "wherever". */
enum { WORLD_CORES = 1024 };
struct cores {
    int count;
    uint64_t mask[WORLD_CORES / 64];
};

int world_open_threads(struct world **out, struct error *error);
int world_open_simulated(struct world **out, uint64_t seed, struct error *error);
/* Another world of the same kind on the same machine, for a part of this process that is stopped by itself.
 * Simulated: with the same clock, and in the same order of threads. Errors: ERROR_DEVICE. */
int world_open_beside(struct world **out, struct world *world, struct error *error);
void world_close(struct world *world); /* after all threads were joined; NULL is fine */
bool world_is_simulated(const struct world *world);

/* Starts body(argument) as a thread with a name (at most 15 characters are shown by debuggers), on the given
 * cores (NULL or an empty set: anywhere; ignored when simulated). In the simulated world the caller must be a
 * simulated thread or the thread that opened the world; the new thread first runs at some later point.
 * Errors: ERROR_DEVICE. */
typedef void world_body(void *argument);
int world_spawn(struct world *world, const char *name, const struct cores *cores, world_body *body,
                void *argument, struct world_thread **out, struct error *error);
void world_join(struct world_thread *thread); /* waits for its end and frees it; NULL is fine [point] */
/* The same for at most so many seconds, also in a stopped world; false: it has not ended, and is still there.
 */
bool world_join_within(struct world_thread *thread, double seconds);

double world_now(const struct world *world);           /* seconds since the world was opened */
void world_sleep(struct world *world, double seconds); /* [point]; returns early when the world is stopped */
void world_work(struct world *world,
                double seconds); /* simulated: the caller is busy for that long [point]; real: nothing */
void world_yield(struct world *world); /* simulated: [point]; real: nothing */
void world_stop(struct world *world);  /* wakes every wait, from now on too: they return WAIT_STOPPED */
/* A stopped one, of which no other thread is left: waits wait again. */
void world_resume(struct world *world);
bool world_stopped(const struct world *world);

/* Cores of this machine that this process may use. */
void world_cores(struct cores *cores);
/* Those of the process that has started this one; count 0: not known. */
void world_cores_of_parent(struct cores *cores);
/* Whether a host, as an address has it without brackets, is this machine: localhost, the machine's own name,
 * or the figures of a loopback address or of one of its interfaces. Names are not looked up. */
bool world_is_here(const char *host);

/* Ctrl-C, SIGTERM and SIGHUP: the first one only sets a flag that world_interrupted reads; a second one, but
 * for a second SIGHUP, or a second SIGTERM within a second, ends the process at once with exit code 130. One
 * that the parent had ignored stays ignored, as under nohup. Call once, from main. */
void world_catch_interrupts(void);
/* What is to be kept is kept: from now on the first one ends the process, too. */
void world_end_at_interrupt(void);
bool world_interrupted(void);
bool world_terminated(void); /* by SIGTERM: a scheduler wants this process to go */
/* The same of one process of a simulation, whose world that is. */
void world_dismiss(struct world *world);
bool world_dismissed(const struct world *world); /* or terminated */

/* Waits at most so long until a pipe, terminal or socket takes a page of bytes, or tells by an error that it
 * never will; a file always does. Returns false earlier when a signal comes. */
bool world_await_room(int file, double seconds);

/* Resident memory of this process in bytes (0 when it cannot be had), and wall-clock time of day as UTC
 * seconds. */
long long world_resident_bytes(void);
int world_descriptors(void); /* the most that this process may have open */
long long world_utc_seconds(void);

/* --- lock: mutual exclusion; counts how often it was taken, so that "takes no lock" can be shown --- */
struct lock {
    _Alignas(64) struct world *world;
    _Atomic uint32_t word; /* 0 free, 1 taken, 2 taken and someone sleeps */
    _Atomic long taken;    /* how often it was taken */
};
void lock_open(struct lock *lock, struct world *world);
void lock_take(struct lock *lock);    /* [point] */
void lock_release(struct lock *lock); /* [point] */

/* --- event: a counter that can be waited for --- */
enum wait_result { WAIT_DONE, WAIT_TIMEOUT, WAIT_STOPPED };

struct event {
    _Alignas(64) struct world *world;
    _Atomic uint64_t count;   /* posts so far */
    _Atomic uint32_t word;    /* changes with every post; what sleepers sleep on */
    _Atomic uint32_t waiters; /* threads asleep or about to be */
};
void event_open(struct event *event, struct world *world);

/* Adds one and wakes who waits. Never blocks and takes no lock. All writes before it are seen by who then
 * waits. [point] */
void event_post(struct event *event);

/* Waits until `ready(argument)` is true; it is asked again after every post. Spins for some microseconds
 * before it sleeps. deadline is a time of world_now. Returns WAIT_DONE at once when ready is true already,
 * even in a stopped world. [point] */
enum wait_result event_wait_until(struct event *event, bool (*ready)(void *argument), void *argument,
                                  double deadline);

/* Waits until count >= n. [point] */
enum wait_result event_wait(struct event *event, uint64_t n, double deadline);

#endif
