/* The world's public calls: each goes to the table of its kind (threads.c or simulated.c).
 *
 * The real world's paths through here are one load and one indirect call, so an event without waiters
 * takes little more than its two atomic adds. */
#include "world.h"

#include <math.h>

#include "endpoint_parts.h"
#include "ucx.h"
#include "world_kind.h"

void world_close(struct world *world) {
    if (!world) return;
    endpoint_decrypt(world);
    ucx_end(world);
    world->kind->close(world);
}

int world_open_beside(struct world **out, struct world *world, struct error *error) {
    *out = 0;
    return world->kind->open_beside(out, world, error);
}

bool world_is_simulated(const struct world *world) {
    return world->kind->simulated;
}

int world_spawn(struct world *world, const char *name, const struct cores *cores, world_body *body,
                void *argument, struct world_thread **out, struct error *error) {
    *out = 0;
    return world->kind->spawn(world, name, cores, body, argument, out, error);
}

void world_join(struct world_thread *thread) {
    if (thread) thread->world->kind->join(thread, INFINITY);
}

bool world_join_within(struct world_thread *thread, double seconds) {
    return !thread || thread->world->kind->join(thread, seconds);
}

double world_now(const struct world *world) {
    return world->kind->now(world);
}

void world_sleep(struct world *world, double seconds) {
    world->kind->sleep(world, seconds);
}

void world_work(struct world *world, double seconds) {
    if (world->kind->work) world->kind->work(world, seconds);
}

void world_yield(struct world *world) {
    if (world->kind->yield) world->kind->yield(world);
}

void world_stop(struct world *world) {
    atomic_store(&world->stopped, 1);
    world->kind->stop(world);
}

void world_resume(struct world *world) {
    atomic_store(&world->stopped, 0);
}

void world_dismiss(struct world *world) {
    atomic_store(&world->dismissed, true);
}

bool world_dismissed(const struct world *world) {
    return world_terminated() || atomic_load(&world->dismissed);
}

bool world_stopped(const struct world *world) {
    return atomic_load(&world->stopped) != 0;
}

void lock_open(struct lock *lock, struct world *world) {
    lock->world = world;
    atomic_init(&lock->word, 0);
    atomic_init(&lock->taken, 0);
}

void lock_take(struct lock *lock) {
    lock->world->kind->lock_take(lock);
    atomic_fetch_add_explicit(&lock->taken, 1, memory_order_relaxed);
}

void lock_release(struct lock *lock) {
    lock->world->kind->lock_release(lock);
}

void event_open(struct event *event, struct world *world) {
    event->world = world;
    atomic_init(&event->count, 0);
    atomic_init(&event->word, 0);
    atomic_init(&event->waiters, 0);
}

void event_post(struct event *event) {
    event->world->kind->event_post(event);
}

enum wait_result event_wait_until(struct event *event, bool (*ready)(void *argument), void *argument,
                                  double deadline) {
    return event->world->kind->event_wait_until(event, ready, argument, deadline);
}

struct count_wanted {
    const struct event *event;
    uint64_t count;
};

static bool count_reached(void *argument) {
    const struct count_wanted *wanted = argument;
    return atomic_load_explicit(&wanted->event->count, memory_order_acquire) >= wanted->count;
}

enum wait_result event_wait(struct event *event, uint64_t n, double deadline) {
    struct count_wanted wanted = {.event = event, .count = n};
    return event_wait_until(event, count_reached, &wanted, deadline);
}
