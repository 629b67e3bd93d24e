/* See group.h. */
#include "group.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../device/copy.h"
#include "../device/groups.h"
#include "replica.h"

enum { ENDING_S = 10, PLACE_BYTES = 2048 };

/* A device of the group. */
struct helper {
    struct group *group;
    int part;
    struct world_thread *thread; /* NULL: the first one's is the worker's */
    struct event go, done;
    int code; /* of the last run */
    struct error error;
    float *weights, *gradients; /* [layout floats] on it, where its memory is not the first one's; or NULL */
};

struct group {
    const struct network *network;
    struct world *world;
    double timeout_s;
    struct device *devices; /* [size] */
    int size;
    struct partition *partition;
    struct rendezvous *rendezvous;
    struct helper *helpers;     /* [size] */
    float *weights, *gradients; /* of this run, on the first device */
    uint64_t runs;
    bool queued; /* the first device has a queue, which the others cannot see */
    bool hangs;  /* a part did not end in time */
    _Atomic bool ending;
    char words[400];
};

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

/* What the host writes or reads is on the first device. */
static int pin(const void *argument, node n) {
    const struct network *network = argument;
    return network->graph.nodes[n].op == OP_placeholder || n == network->decayed_loss ? 0 : NONE;
}

static int compile(struct group *group, const struct groups *groups, int worker, struct error *error) {
    char place[PLACE_BYTES];
    RETURN_IF(localize(groups, worker, place, error));
    const struct placement placement = {.devices = group->devices,
                                        .count = group->size,
                                        .layers = place,
                                        .pin = pin,
                                        .argument = group->network,
                                        .soft = groups->soft};
    return replica_partition(&group->partition, group->network, &placement, error);
}

static size_t crossing_bytes(const struct group *group) {
    size_t all = 0, bytes = 0;
    int from = 0, to = 0;
    for (int i = 0; partition_crossing(group->partition, i, &from, &to, &bytes) != NONE; i++) all += bytes;
    return all;
}

/* The layers whose weights a device has. */
static void name_layers(const struct group *group, int part, struct text *text) {
    const struct graph *g = &group->network->graph;
    const char *before = "";
    size_t length = 0;
    int count = 0;
    for (node n = 0; n < g->count; n++) {
        if (g->nodes[n].op != OP_variable || partition_device(group->partition, n) != part) continue;
        const char *name = g->nodes[n].name;
        if (length > 0 && strncmp(name, before, length) == 0 && name[length] == '/') continue;
        length = strcspn(name, "/");
        before = name;
        text_add(text, "%s%.*s", count++ > 0 ? ", " : "", (int)length, name);
    }
    text_add(text, "%s on %s", count > 0 ? "" : "no weights", group->devices[part].name);
}

static void describe(struct group *group) {
    struct text text = text_into(group->words, sizeof group->words);
    for (int part = 0; part < group->size; part++) {
        if (part > 0) text_add(&text, "; ");
        name_layers(group, part, &text);
    }
    const double bytes = (double)crossing_bytes(group);
    text_add(&text, "; %.1f %s cross in each forward and backward pass",
             bytes < 1e6 ? bytes / 1e3 : bytes / 1e6, bytes < 1e6 ? "kB" : "MB");
}

const char *group_words(const struct group *group) {
    return group->words;
}

const char *group_move(const struct group *group, int i) {
    return partition_move(group->partition, i);
}

/* --- a part on its device --- */

/* Weights or gradients of the ranges that a part has, between the first device and its own. */
static int copy_ranges(const struct helper *helper, bool back, struct error *error) {
    const struct group *group = helper->group;
    const struct graph *g = &group->network->graph;
    const struct device *first = &group->devices[0], *own = &group->devices[helper->part];
    for (node n = 0; n < g->count; n++) {
        if (partition_device(group->partition, n) != helper->part) continue;
        const int r = back                            ? g->nodes[n].gradient_of
                      : g->nodes[n].op == OP_variable ? g->nodes[n].attributes.variable
                                                      : -1;
        if (r < 0) continue;
        const struct range *range = &g->layout.ranges[r];
        const size_t bytes = range->floats * sizeof(float);
        RETURN_IF(back ? device_copy(first, group->gradients + range->begin, own,
                                     helper->gradients + range->begin, bytes, error)
                       : device_copy(own, helper->weights + range->begin, first,
                                     group->weights + range->begin, bytes, error));
    }
    return OK;
}

/* What a helper has queued is done before it says that it is done. */
static int run_part(struct helper *helper) {
    struct group *group = helper->group;
    const struct device *device = &group->devices[helper->part];
    struct error *error = &helper->error;
    float *const weights = helper->weights ? helper->weights : group->weights;
    float *const gradients = helper->gradients ? helper->gradients : group->gradients;
    *error = (struct error){0};
    if (helper->weights) RETURN_IF(copy_ranges(helper, false, error));
    RETURN_IF(rendezvous_run(group->rendezvous, helper->part, weights, gradients, error));
    if (helper->part == 0) return OK;
    RETURN_IF(device->backend->finish(device, error));
    return helper->gradients ? copy_ranges(helper, true, error) : OK;
}

static void helper_body(void *argument) {
    struct helper *helper = argument;
    struct group *group = helper->group;
    const struct device *device = &group->devices[helper->part];
    device->backend->enter(device);
    for (uint64_t run = 1; event_wait(&helper->go, run, INFINITY) == WAIT_DONE; run++) {
        if (atomic_load(&group->ending)) return;
        helper->code = run_part(helper);
        event_post(&helper->done);
    }
}

/* --- all of them --- */

/* The others are told by the rendezvous that one has failed, and fail in turn: what they say is of no use. */
static int report(const struct group *group, struct error *error) {
    const struct helper *first = NULL;
    for (int i = 0; i < group->size; i++) {
        const struct helper *helper = &group->helpers[i];
        if (helper->code != OK && (!first || (first->code == ERROR_PEER && helper->code != ERROR_PEER)))
            first = helper;
    }
    if (!first) return OK;
    const char *name = group->devices[first->part].name;
    if (strstr(first->error.words, name)) return error_set(error, first->code, "%s", first->error.words);
    return error_set(error, first->code, "%s: %s", name, first->error.words);
}

/* One that does not end may still use what it was given: the group computes no more. */
static int await(struct group *group, struct helper *helper, double deadline, struct error *error) {
    const enum wait_result result = event_wait(&helper->done, group->runs, deadline);
    if (result == WAIT_DONE) return OK;
    group->hangs = true;
    if (group->helpers[0].code != OK)
        return error_set(error, group->helpers[0].code, "%s", group->helpers[0].error.words);
    return error_set(error, ERROR_PEER, "%s, waiting for the part of %s, %s", group->devices[0].name,
                     group->devices[helper->part].name, result == WAIT_STOPPED ? "was stopped" : "gave up");
}

int group_run(struct group *group, float *weights, float *gradients, struct error *error) {
    const struct device *first = &group->devices[0];
    if (group->hangs)
        return error_set(error, ERROR_PEER, "%s cannot run: another device of its group hangs", first->name);
    group->weights = weights;
    group->gradients = gradients;
    if (group->queued) RETURN_IF(first->backend->finish(first, error)); /* the weights that others read */
    group->runs++;
    for (int i = 1; i < group->size; i++) event_post(&group->helpers[i].go);
    group->helpers[0].code = run_part(&group->helpers[0]);
    const double deadline = world_now(group->world) + group->timeout_s;
    for (int i = 1; i < group->size; i++) RETURN_IF(await(group, &group->helpers[i], deadline, error));
    return report(group, error);
}

void *group_address(const struct group *group, node n) {
    return rendezvous_address(group->rendezvous, n);
}

void group_set_input(struct group *group, node n, const void *address) {
    rendezvous_set_input(group->rendezvous, n, address);
}

/* --- open and close --- */

static int open_helper(struct group *group, int part, struct error *error) {
    struct helper *helper = &group->helpers[part];
    const struct device *device = &group->devices[part];
    const size_t floats = group->network->graph.layout.floats;
    char name[24];
    *helper = (struct helper){.group = group, .part = part};
    if (part == 0) return OK;
    if (!device_same_memory(device, &group->devices[0])) {
        RETURN_IF(device_array(device, &helper->weights, floats, "a part's weights", error));
        RETURN_IF(device_array(device, &helper->gradients, floats, "a part's gradient", error));
    }
    event_open(&helper->go, group->world);
    event_open(&helper->done, group->world);
    snprintf(name, sizeof name, "part %s", device->name);
    return world_spawn(group->world, name, device->pinned ? &device->cores : NULL, helper_body, helper,
                       &helper->thread, error);
}

static int open_devices(struct group *group, const struct groups *groups, int worker, struct error *error) {
    group->size = groups->size;
    RETURN_IF(memory_array(&group->devices, group->size, "a group's devices", error));
    for (int d = 0; d < group->size; d++)
        group->devices[d] = *groups_device(groups->devices, groups->workers, group->size, worker, d);
    return compile(group, groups, worker, error);
}

static int fill(struct group *group, const struct groups *groups, int worker, struct error *error) {
    RETURN_IF(open_devices(group, groups, worker, error));
    group->devices[0].backend->enter(&group->devices[0]);
    group->queued = device_apart(&group->devices[0]);
    describe(group);
    RETURN_IF(rendezvous_open(&group->rendezvous, group->partition, group->world, group->timeout_s, error));
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

void group_close(struct group *group) {
    if (!group) return;
    bool ended = true;
    atomic_store(&group->ending, true);
    for (int part = 1; group->helpers && part < group->size; part++) {
        struct helper *helper = &group->helpers[part];
        if (!helper->thread) continue;
        event_post(&helper->go);
        ended = world_join_within(helper->thread, ENDING_S) && ended;
    }
    if (!ended) return;
    for (int part = 1; group->helpers && part < group->size; part++) {
        const struct device *device = &group->devices[part];
        struct helper *helper = &group->helpers[part];
        if (helper->weights) device->backend->release(device, helper->weights);
        if (helper->gradients) device->backend->release(device, helper->gradients);
    }
    memory_free(group->helpers);
    rendezvous_close(group->rendezvous);
    partition_close(group->partition);
    memory_free(group->devices);
    memory_free(group);
}

/* --- for --explain --- */

static void print(const struct group *group, FILE *file) {
    const struct graph *g = &group->network->graph;
    int from = 0, to = 0;
    size_t bytes = 0;
    node n;
    for (int part = 0; part < group->size; part++) {
        fprintf(file, "%s:\n", group->devices[part].name);
        program_explain(partition_program(group->partition, part), NULL, file);
    }
    for (int i = 0; (n = partition_crossing(group->partition, i, &from, &to, &bytes)) != NONE; i++)
        fprintf(file, "from %s to %s: node %d (%s%s%s), %.3f MB\n", group->devices[from].name,
                group->devices[to].name, n, op_name(g->nodes[n].op), g->nodes[n].name[0] ? " " : "",
                g->nodes[n].name, (double)bytes / 1e6);
    fprintf(file, "%s\n", group->words);
}

int group_explain(const struct groups *groups, const struct network *network, FILE *file,
                  struct error *error) {
    struct group group = {.network = network};
    const int code = open_devices(&group, groups, 0, error);
    if (code == OK) {
        describe(&group);
        print(&group, file);
        fflush(file);
    }
    partition_close(group.partition);
    memory_free(group.devices);
    return code;
}
