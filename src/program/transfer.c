/* Send and receive: the two kernels that carry a value from one part's memory into another part's arena.
 *
 * The sender copies, so the value crosses once and the receiver finds it in its own memory. Both wait
 * through the world, and both give up with an error that names the node, the device they waited for, and
 * how long. */
#include "transfer.h"

#include <math.h>

#include "../device/copy.h"
#include "passes.h"

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

static int await(struct channel *channel, bool sending, struct error *error) {
    const struct rendezvous *rendezvous = channel->rendezvous;
    const struct crossing *crossing = channel->crossing;
    const double began = world_now(rendezvous->world);
    const enum wait_result result =
        event_wait_until(sending ? &channel->taken : &channel->sent, sending ? may_send : has_come, channel,
                         fmin(began + rendezvous->timeout_s, rendezvous->deadline_s));
    const double waited_s = world_now(rendezvous->world) - began;
    rendezvous->seats[sending ? crossing->from : crossing->to].waited_s += waited_s;
    if (result == WAIT_DONE && !is_over(channel)) return OK;
    return end_wait(channel, sending, result, waited_s, error);
}

static int run_send(const struct call *call, struct error *error) {
    struct channel *channel = call->instance;
    const struct crossing *crossing = channel->crossing;
    const struct device *devices = channel->rendezvous->partition->devices;
    RETURN_IF(await(channel, true, error));
    void *place = channel->values[atomic_load(&channel->sent.count) % (uint64_t)channel->depth];
    RETURN_IF(device_copy(&devices[crossing->to], place, &devices[crossing->from], call->input[0],
                          channel->bytes, error));
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
