/* See group.h: its devices, its threads, and a batch on all of them. */
#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../device/copy.h"
#include "../device/groups.h"
#include "group_parts.h"
#include "replica.h"

enum { ENDING_S = 10, PLACE_BYTES = 8192 };

/* Of a batch's time, so much for who waits for another device. The rest is for those who then have not heard
 * yet that it is over. All of it is less than what a worker may be silent for (training.c), so the group's
 * words come first. */
static const double waiting_share = 0.9;

/* --- what lies where --- */

/* The devices of the pattern list, which may be of any group, as those of this one at the same place. What is
 * no device of any group stays as it is, and is refused where the list is read. */
static int localize(const struct groups *groups, int worker, char out[PLACE_BYTES], struct error *error) {
    struct text text = text_into(out, PLACE_BYTES);
    const int workers = groups->workers, size = groups->size;
    for (const char *at = groups->place; *at;) {
        const size_t length = strcspn(at, ",");
        const char *equals = memchr(at, '=', length);
        const char *name = equals ? equals + 1 : at;
        const size_t letters = (size_t)(at + length - name);
        for (int d = 0; equals && d < workers * size; d++) {
            const char *other = groups_device(groups->devices, workers, size, d / size, d % size)->name;
            if (strlen(other) != letters || memcmp(other, name, letters) != 0) continue;
            text_item(&text, ",", "%.*s%s", (int)(name - at), at,
                      groups_device(groups->devices, workers, size, worker, d % size)->name);
            name = NULL;
            break;
        }
        if (name) text_item(&text, ",", "%.*s", (int)length, at);
        at += length + (at[length] == ',');
    }
    return text.cut ? error_set(error, ERROR_USAGE, "--place: expected a shorter list") : OK;
}

/* Batches are built on the first device. It adds up the reported loss, too, where that is more than the loss
 * (--decay): its backward half ends last, so no part waits for what the weights of another one add. */
int group_pin(const void *argument, node n) {
    const struct network *network = argument;
    const struct node_info *info = &network->graph.nodes[n];
    const bool reported = n > network->loss && info->follows == NONE && info->op == OP_add;
    return info->op == OP_placeholder || reported ? 0 : NONE;
}

static int compile(struct group *group, const struct groups *groups, int worker, struct error *error) {
    char place[PLACE_BYTES];
    RETURN_IF(localize(groups, worker, place, error));
    const struct placement placement = {.devices = group->devices,
                                        .count = group->size,
                                        .layers = place,
                                        .pin = group_pin,
                                        .argument = group->network,
                                        .backward = group->network->loss + 1,
                                        .soft = groups->soft};
    return replica_partition(&group->partition, group->network, &placement, error);
}

/* --- threads --- */

static void helper_body(void *argument) {
    struct helper *helper = argument;
    struct group *group = helper->group;
    const struct device *device = &group->devices[helper->part];
    device->backend->enter(device);
    for (uint64_t run = 1; event_wait(&helper->go, run, INFINITY) == WAIT_DONE; run++) {
        if (atomic_load(&group->ending)) return;
        helper_run(helper);
        event_post(&helper->done);
    }
}

/* --- a batch --- */

/* The others are told by the rendezvous that one has failed, and fail in turn: what they say is of no use. */
static int report(const struct group *group, struct error *error) {
    const int failed = rendezvous_failed(group->rendezvous);
    if (failed == NONE) return OK;
    const struct helper *helper = &group->helpers[failed];
    const char *name = group->devices[failed].name, *words = helper->error.words;
    if (strstr(words, name)) return error_set(error, helper->code, "%s", words);
    return error_set(error, helper->code, "%s: %s", name, words);
}

static bool has_ended(const struct group *group, int part) {
    const uint64_t runs = atomic_load(&group->runs);
    if (part == 0) return atomic_load(&group->ended) == runs;
    return atomic_load(&group->helpers[part].done.count) >= runs;
}

/* A part has failed by itself: not because it waited for another one. */
static bool has_failed(const struct group *group) {
    const int failed = rendezvous_failed(group->rendezvous);
    return failed != NONE && has_ended(group, failed) && group->helpers[failed].code != ERROR_PEER;
}

const char *group_hangs(const struct group *group, char out[GROUP_HANGS_BYTES]) {
    char words[NODE_WORDS_BYTES];
    int part = group->size - 1;
    while (part >= 0 && has_ended(group, part)) part--;
    out[0] = '\0';
    if (part >= 0)
        snprintf(out, GROUP_HANGS_BYTES, "%s has not ended %s", group->devices[part].name,
                 rendezvous_words(group->rendezvous, part, words));
    return out;
}

/* One that does not end may still use what it was given: the group computes no more. */
static int await(struct group *group, struct helper *helper, double began, struct error *error) {
    const char *name = group->devices[helper->part].name;
    char words[NODE_WORDS_BYTES];
    const enum wait_result result = event_wait(&helper->done, group->runs, began + group->timeout_s);
    if (result == WAIT_DONE) return OK;
    group->hangs = true;
    if (has_failed(group)) return report(group, error);
    if (result == WAIT_STOPPED)
        return error_set(error, ERROR_PEER, "%s, waiting for the part of %s, was stopped",
                         group->devices[0].name, name);
    return error_set(error, ERROR_PEER, "%s has not ended %s after %.3g s", name,
                     rendezvous_words(group->rendezvous, helper->part, words),
                     world_now(group->world) - began);
}

int group_run(struct group *group, const struct group_batch *batch, struct error *error) {
    const struct device *first = &group->devices[0];
    if (group->hangs)
        return error_set(error, ERROR_PEER, "%s cannot run: another device of its group hangs", first->name);
    group->batch = *batch;
    if (group->queued) RETURN_IF(first->backend->finish(first, error)); /* the weights that others read */
    const double began = world_now(group->world);
    rendezvous_set_deadline(group->rendezvous, began + waiting_share * group->timeout_s);
    group->runs++;
    for (int i = 1; i < group->size; i++) event_post(&group->helpers[i].go);
    helper_run(&group->helpers[0]);
    atomic_store(&group->ended, group->runs);
    for (int i = 1; i < group->size; i++) RETURN_IF(await(group, &group->helpers[i], began, error));
    group->run_s += world_now(group->world) - began;
    return report(group, error);
}

int group_in_flight(const struct group *group) {
    return pipeline_in_flight(&group->pipeline, partition_stage(group->partition, 0));
}

/* The number of a micro-batch of this run, among those of all runs. */
static long number_of(const struct group *group, int micro) {
    return (long)(group->runs > 0 ? group->runs - 1 : 0) * group->pipeline.microbatches + micro;
}

void *group_address(const struct group *group, int micro, node n) {
    return rendezvous_address(group->rendezvous, number_of(group, micro), n);
}

void group_set_input(struct group *group, int micro, node n, const void *address) {
    rendezvous_set_input(group->rendezvous, number_of(group, micro), n, address);
}

double group_idle(const struct group *group) {
    double busy_s = 0.0;
    for (int i = 0; i < group->size; i++) busy_s += group->helpers[i].busy_s;
    return group->run_s > 0.0 ? 1.0 - busy_s / (group->size * group->run_s) : (double)NAN;
}

/* --- open and close --- */

/* What it computes beside others' gradients: its weights where it cannot read theirs, and a micro-batch's. */
static int open_vectors(struct helper *helper, struct error *error) {
    struct group *group = helper->group;
    const struct device *device = &group->devices[helper->part];
    const size_t floats = group->network->graph.layout.floats;
    const bool apart = helper->part > 0 && !device_same_memory(device, &group->devices[0]);
    if (apart) {
        RETURN_IF(device_array(device, &helper->weights, floats, "a part's weights", error));
        RETURN_IF(device_array(device, &helper->gradients, floats, "a part's gradient", error));
    }
    helper->owns_later = apart || helper->part == 0;
    helper->later = group->helpers[0].later;
    if (!helper->owns_later || group->pipeline.microbatches == 1) return OK;
    return device_array(device, &helper->later, floats, "a micro-batch's gradient", error);
}

static int open_helper(struct group *group, int part, struct error *error) {
    struct helper *helper = &group->helpers[part];
    const struct device *device = &group->devices[part];
    char name[24];
    *helper = (struct helper){.group = group, .part = part};
    RETURN_IF(open_vectors(helper, error));
    RETURN_IF(helper_find_stretches(helper, error));
    if (part == 0) return OK;
    event_open(&helper->go, group->world);
    event_open(&helper->done, group->world);
    snprintf(name, sizeof name, "part %s", device->name);
    return world_spawn(group->world, name, device->pinned ? &device->cores : NULL, helper_body, helper,
                       &helper->thread, error);
}

static int open_devices(struct group *group, const struct groups *groups, int worker, struct error *error) {
    group->size = groups->size;
    group->placed = groups->placed;
    group->pipeline = groups_pipeline(groups);
    RETURN_IF(memory_array(&group->devices, group->size, "a group's devices", error));
    for (int d = 0; d < group->size; d++)
        group->devices[d] = *groups_device(groups->devices, groups->workers, group->size, worker, d);
    return compile(group, groups, worker, error);
}

static int fill(struct group *group, const struct groups *groups, int worker, struct error *error) {
    RETURN_IF(open_devices(group, groups, worker, error));
    group->devices[0].backend->enter(&group->devices[0]);
    group->queued = device_apart(&group->devices[0]);
    group_describe(group);
    RETURN_IF(rendezvous_open(&group->rendezvous, group->partition, &group->pipeline, group->world,
                              group->timeout_s, error));
    RETURN_IF(memory_array(&group->helpers, group->size, "a group's threads", error));
    for (int part = 0; part < group->size; part++) RETURN_IF(open_helper(group, part, error));
    return OK;
}

int group_open(struct group **out, const struct groups *groups, int worker, const struct network *network,
               struct error *error) {
    *out = NULL;
    struct group *group = NULL;
    RETURN_IF(memory_array(&group, 1, "a group of devices", error));
    group->network = network;
    group->world = groups->world;
    group->timeout_s = groups->timeout_s;
    const int code = fill(group, groups, worker, error);
    if (code != OK) {
        group_close(group);
        return code;
    }
    *out = group;
    return OK;
}

static void close_helper(struct helper *helper) {
    const struct device *device = &helper->group->devices[helper->part];
    if (helper->weights) device->backend->release(device, helper->weights);
    if (helper->gradients) device->backend->release(device, helper->gradients);
    if (helper->owns_later && helper->later) device->backend->release(device, helper->later);
    memory_free(helper->stretches);
}

bool group_close(struct group *group) {
    if (!group) return true;
    bool ended = true;
    atomic_store(&group->ending, true);
    for (int part = 1; group->helpers && part < group->size; part++) {
        struct helper *helper = &group->helpers[part];
        if (!helper->thread) continue;
        event_post(&helper->go);
        if (world_join_within(helper->thread, fmin(ENDING_S, group->timeout_s)))
            helper->thread = NULL;
        else
            ended = false;
    }
    if (!ended) return false;
    for (int part = 0; group->helpers && part < group->size; part++)
        if (group->helpers[part].group) close_helper(&group->helpers[part]);
    memory_free(group->helpers);
    rendezvous_close(group->rendezvous);
    partition_close(group->partition);
    memory_free(group->devices);
    memory_free(group);
    return true;
}

int group_explain(const struct groups *groups, const struct network *network, FILE *file,
                  struct error *error) {
    struct group group = {.network = network};
    const int code = open_devices(&group, groups, 0, error);
    if (code == OK) {
        group_describe(&group);
        group_print(&group, file);
        fflush(file);
    }
    partition_close(group.partition);
    memory_free(group.devices);
    return code;
}
