/* Send and receive: the two kernels that carry a value from one part's memory into another part's arena.
 *
 * The sender copies, or has it copied beside its queue (transfer.h), so the value crosses once and the
 * receiver finds it in its own memory. Both wait through the world, and both give up with an error that names
 * the node, the device they waited for, and how long. */
#include "transfer.h"

#include <math.h>

#include "../device/copy.h"
#include "passes.h"

/* A mark is looked at without a pause for so long, then after such a one. */
static const double often_s = 100e-6, seldom_s = 20e-6;

static bool is_over(const struct channel *channel) {
    return atomic_load(&channel->rendezvous->failed) != 0;
}

static bool may_send(void *argument) {
    const struct channel *channel = argument;
    const uint64_t taken = atomic_load(&channel->taken.count), sent = atomic_load(&channel->sent.count);
    return sent < taken + (uint64_t)channel->depth || is_over(channel);
}

static bool has_come(void *argument) {
    const struct channel *channel = argument;
    return atomic_load(&channel->sent.count) > channel->received || is_over(channel);
}

/* "cpu:1, waiting for node 12 (matmul) of cpu:0, gave up after 60 s" */
static int end_wait(const struct channel *channel, bool sending, enum wait_result result, double waited_s,
                    struct error *error) {
    const struct rendezvous *rendezvous = channel->rendezvous;
    const struct crossing *crossing = channel->crossing;
    const struct device *devices = rendezvous->partition->devices;
    const int failed = rendezvous_failed(rendezvous);
    char words[NODE_WORDS_BYTES];
    char how[80];
    if (result == WAIT_TIMEOUT)
        snprintf(how, sizeof how, "gave up after %.3g s", waited_s);
    else if (result == WAIT_STOPPED)
        snprintf(how, sizeof how, "was stopped");
    else
        snprintf(how, sizeof how, "was ended because %s had failed", devices[failed].name);
    return error_set(
        error, ERROR_PEER, "%s, waiting for %s%s%s%s%s, %s",
        devices[sending ? crossing->from : crossing->to].name, sending ? devices[crossing->to].name : "",
        sending ? " to be done with " : "", partition_words(rendezvous->partition, crossing->value, words),
        sending ? " of an earlier run" : " of ", sending ? "" : devices[crossing->from].name, how);
}

/* Looks at the mark, often at first, until it is reached or there is nothing to wait for any more. */
static enum wait_result await_mark(const struct channel *channel, void *mark, double deadline_s,
                                   struct error *error) {
    struct world *world = channel->rendezvous->world;
    const struct device *from = &channel->rendezvous->partition->devices[channel->crossing->from];
    const double began = world_now(world);
    for (bool is = false;;) {
        if (from->backend->marks->reached(from, mark, &is, error) != OK || is || is_over(channel))
            return WAIT_DONE;
        const double now = world_now(world);
        if (world_stopped(world)) return WAIT_STOPPED;
        if (now > deadline_s) return WAIT_TIMEOUT;
        if (now - began > often_s) world_sleep(world, seldom_s);
    }
}

/* Whether there is nothing to wait for. */
static int is_there(struct channel *channel, bool sending, bool *is, struct error *error) {
    const struct device *from = &channel->rendezvous->partition->devices[channel->crossing->from];
    *is = sending ? may_send(channel) : has_come(channel);
    if (sending || !*is || !channel->marks || is_over(channel)) return OK;
    void *mark = channel->marks[channel->received % (uint64_t)channel->depth];
    return from->backend->marks->reached(from, mark, is, error);
}

static int await(struct channel *channel, bool sending, struct error *error) {
    const struct rendezvous *rendezvous = channel->rendezvous;
    const struct crossing *crossing = channel->crossing;
    const int own = sending ? crossing->from : crossing->to;
    const struct device *device = &rendezvous->partition->devices[own];
    bool is = false;
    RETURN_IF(is_there(channel, sending, &is, error));
    /* A device with a queue computes until that is empty: only then it waits. */
    if (!is && device_apart(device)) RETURN_IF(device->backend->finish(device, error));
    const double began = world_now(rendezvous->world);
    const double deadline_s = fmin(began + rendezvous->timeout_s, rendezvous->deadline_s);
    enum wait_result result = event_wait_until(sending ? &channel->taken : &channel->sent,
                                               sending ? may_send : has_come, channel, deadline_s);
    if (result == WAIT_DONE && !sending && channel->marks && !is_over(channel))
        result = await_mark(channel, channel->marks[channel->received % (uint64_t)channel->depth], deadline_s,
                            error);
    const double waited_s = world_now(rendezvous->world) - began;
    rendezvous->seats[own].waited_s += waited_s;
    if (error->code != OK) return error->code;
    if (result == WAIT_DONE && !is_over(channel)) return OK;
    return end_wait(channel, sending, result, waited_s, error);
}

static int run_send(const struct call *call, struct error *error) {
    struct channel *channel = call->instance;
    const struct crossing *crossing = channel->crossing;
    const struct device *devices = channel->rendezvous->partition->devices;
    const struct device *from = &devices[crossing->from], *to = &devices[crossing->to];
    RETURN_IF(await(channel, true, error));
    const uint64_t place = atomic_load(&channel->sent.count) % (uint64_t)channel->depth;
    void *value = channel->values[place];
    if (channel->staged) {
        void *staged = channel->staged[place];
        RETURN_IF(from->backend->queue_copy(from, staged, call->input[0], channel->bytes, error));
        RETURN_IF(from->backend->send(from, value, staged, channel->bytes, channel->marks[place], error));
    } else {
        RETURN_IF(device_copy(to, value, from, call->input[0], channel->bytes, error));
    }
    event_post(&channel->sent);
    return OK;
}

static int run_receive(const struct call *call, struct error *error) {
    struct channel *channel = call->instance;
    RETURN_IF(await(channel, false, error));
    channel->received++;
    return OK;
}

static const struct kernel send_kernel = {.name = "transfer:send", .run = run_send};
static const struct kernel receive_kernel = {.name = "transfer:receive", .run = run_receive};

const struct kernel *const *program_transfers(enum op op) {
    static const struct kernel *const sends[] = {&send_kernel, NULL};
    static const struct kernel *const receives[] = {&receive_kernel, NULL};
    return op == OP_send ? sends : receives;
}
