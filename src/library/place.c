/* Sessions on several devices, as trainer.h has them: where nodes lie, the parts of a run, and where
 * variables have their values. */
#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../device/copy.h"
#include "session.h"

/* --- what the program wants --- */

static int find_device(const struct trainer_session *s, const char *name, size_t length) {
    for (int d = 0; d < s->device_count; d++)
        if (strlen(s->devices[d].name) == length && memcmp(s->devices[d].name, name, length) == 0) return d;
    return NONE;
}

static int pin(struct trainer_session *s, node n, const char *device, struct error *error) {
    const int d = device ? find_device(s, device, strlen(device)) : 0;
    if (n < 0 || n >= s->graph->count) return error_set(error, ERROR_USAGE, "a pin: found no node");
    if (d == NONE)
        return error_set(error, ERROR_USAGE, "a pin: found \"%s\", expected a device of the session", device);
    if (n >= s->pin_count) {
        RETURN_IF(memory_grow(&s->pins, s->pin_count, n + 1, "pins", error));
        s->pin_count = n + 1;
    }
    s->pins[n] = device ? d + 1 : 0;
    s->stale = true;
    s->ran = NULL;
    return OK;
}

int trainer_session_pin(struct trainer_session *session, trainer_node n, const char *device,
                        struct trainer_error *error) {
    struct error why = {0};
    pin(session, n, device, &why);
    return library_tell(&why, error);
}

/* What else is wrong with it is said when it is used. */
static int place(struct trainer_session *s, const char *layers, struct error *error) {
    for (const char *at = layers; at && *at;) {
        const size_t length = strcspn(at, ",");
        const char *equals = memchr(at, '=', length);
        if (!equals || find_device(s, equals + 1, (size_t)(at + length - equals - 1)) == NONE)
            return error_set(error, ERROR_USAGE,
                             "places: found '%.*s', expected LAYER=DEVICE, with a device of the session",
                             (int)length, at);
        at += length + (at[length] == ',');
    }
    char *copy = NULL;
    if (layers && *layers) RETURN_IF(memory_text(&copy, layers, error));
    memory_free(s->layers);
    s->layers = copy;
    s->stale = true;
    s->ran = NULL;
    return OK;
}

int trainer_session_place(struct trainer_session *session, const char *layers, struct trainer_error *error) {
    struct error why = {0};
    place(session, layers, &why);
    return library_tell(&why, error);
}

int trainer_session_timeout(struct trainer_session *session, double seconds, struct trainer_error *error) {
    struct error why = {0};
    if (!(seconds > 0.0 && isfinite(seconds)))
        error_set(&why, ERROR_USAGE, "a timeout of %g s, expected more than 0", seconds);
    else if (session->team)
        team_set_timeout(session->team, seconds);
    session->stale = true; /* what is compiled waits as long as before */
    session->ran = NULL;
    return library_tell(&why, error);
}

/* --- compiling --- */

static int pinned(const void *argument, node n) {
    const struct trainer_session *s = argument;
    return n < s->pin_count ? s->pins[n] - 1 : NONE;
}

/* Devices of one memory would write two gradients of a variable over each other. */
static int check_gradients(const struct compiled *compiled, struct error *error) {
    const struct node_info *nodes = compiled->graph.nodes;
    for (int i = 0; i < compiled->count; i++)
        for (int k = 0; k < i; k++) {
            const node a = compiled->fetches[i], b = compiled->fetches[k];
            if (a != b && nodes[a].gradient_of >= 0 && nodes[a].gradient_of == nodes[b].gradient_of)
                return error_set(error, ERROR_USAGE, "two fetches are gradients of %s, expected one",
                                 compiled->graph.layout.ranges[nodes[a].gradient_of].name);
        }
    return OK;
}

/* The queue that a node uses in a run; NULL: none. */
static const struct queue *queue_of(const struct compiled *compiled, node n) {
    const struct node_info *info = &compiled->graph.nodes[n];
    const bool uses = info->op == OP_enqueue || info->op == OP_dequeue;
    return uses && partition_device(compiled->partition, n) != NONE ? info->attributes.queue : NULL;
}

/* The order in which values come into a queue, and are taken, is that of the nodes: one device keeps it. */
static int check_queues(const struct trainer_session *s, const struct compiled *compiled,
                        struct error *error) {
    const struct partition *partition = compiled->partition;
    char one[NODE_WORDS_BYTES], other[NODE_WORDS_BYTES];
    for (node n = 0; n < compiled->nodes; n++) {
        const struct queue *queue = queue_of(compiled, n);
        for (node before = 0; queue && before < n; before++) {
            const int there = partition_device(partition, before), here = partition_device(partition, n);
            if (queue_of(compiled, before) != queue || there == here) continue;
            return error_set(error, ERROR_USAGE,
                             "%s is on %s and %s on %s, expected all operations of a queue on one device",
                             partition_words(partition, before, one), s->devices[there].name,
                             partition_words(partition, n, other), s->devices[here].name);
        }
    }
    return OK;
}

/* Whether its time is the program's business, or another thread's. */
static bool may_hang(enum op op) {
    return op == OP_custom || op == OP_enqueue || op == OP_dequeue || op == OP_while || op == OP_while_grad ||
           op == OP_cond || op == OP_cond_grad;
}

/* A part that computes on a CPU, and always ends: one thread less has to be woken. */
static int find_here(const struct trainer_session *s, const struct compiled *compiled) {
    for (int part = 0; part < s->device_count; part++) {
        bool fits = !device_apart(&s->devices[part]) &&
                    program_instructions(partition_program(compiled->partition, part)) > 0;
        for (node n = 0; fits && n < compiled->nodes; n++)
            fits = partition_device(compiled->partition, n) != part || !may_hang(compiled->graph.nodes[n].op);
        if (fits) return part;
    }
    return NONE;
}

static int copy_graph(struct graph *copy, const struct graph *graph, struct error *error) {
    *copy = *graph;
    copy->nodes = NULL;
    RETURN_IF(memory_array(&copy->nodes, graph->count, "nodes of a run", error));
    if (graph->count > 0) memcpy(copy->nodes, graph->nodes, (size_t)graph->count * sizeof *copy->nodes);
    return OK;
}

int session_compile_parts(const struct trainer_session *s, struct compiled *compiled, struct error *error) {
    const struct placement placement = {.devices = s->devices,
                                        .count = s->device_count,
                                        .layers = s->layers,
                                        .pin = pinned,
                                        .argument = s,
                                        .soft = true};
    RETURN_IF(copy_graph(&compiled->graph, s->graph, error));
    RETURN_IF(check_gradients(compiled, error));
    RETURN_IF(partition_compile(&compiled->partition, &compiled->graph, compiled->fetches, compiled->count,
                                &placement, error));
    RETURN_IF(check_queues(s, compiled, error));
    compiled->here = find_here(s, compiled);
    return team_meet(s->team, compiled->partition, &compiled->rendezvous, error);
}

void session_forget_parts(struct compiled *compiled) {
    rendezvous_close(compiled->rendezvous);
    partition_close(compiled->partition);
    memory_free(compiled->graph.nodes);
}

/* --- running --- */

/* A variable is computed on one device: its value goes there, and stays. */
static int bring_variables(struct trainer_session *s, const struct compiled *compiled, struct error *error) {
    for (node n = 0; n < compiled->nodes; n++) {
        const int to = partition_device(compiled->partition, n);
        if (to == NONE || compiled->graph.nodes[n].op != OP_variable) continue;
        const int r = compiled->graph.nodes[n].attributes.variable, from = s->home[r];
        const struct range *range = &s->graph->layout.ranges[r];
        if (!device_same_memory(&s->devices[from], &s->devices[to]))
            RETURN_IF(device_copy(&s->devices[to], s->slabs[to].weights + range->begin, &s->devices[from],
                                  s->slabs[from].weights + range->begin, range->floats * sizeof(float),
                                  error));
        s->home[r] = to;
    }
    return OK;
}

int session_run_parts(struct trainer_session *s, const struct compiled *compiled, struct error *error) {
    RETURN_IF(bring_variables(s, compiled, error));
    const int code = team_run(s->team, compiled->partition, compiled->rendezvous, compiled->here, error);
    if (code != OK) s->stale = true;
    return code;
}

/* --- what the last run was --- */

const char *trainer_session_device(const struct trainer_session *session, trainer_node n) {
    const struct compiled *ran = session->ran;
    if (!trainer_session_ran(session, n)) return NULL;
    const int device = ran->partition                               ? partition_device(ran->partition, n)
                       : session->graph->nodes[n].op == OP_constant ? NONE
                                                                    : 0;
    return device == NONE ? NULL : session->devices[device].name;
}

bool trainer_session_crossing(const struct trainer_session *session, int i,
                              struct trainer_crossing *crossing) {
    const struct compiled *ran = session->ran;
    int from = 0, to = 0;
    size_t bytes = 0;
    if (!ran || !ran->partition || i < 0) return false;
    const node n = partition_crossing(ran->partition, i, &from, &to, &bytes);
    if (n == NONE) return false;
    *crossing = (struct trainer_crossing){n, session->devices[from].name, session->devices[to].name, bytes};
    return true;
}

const char *trainer_session_moved(const struct trainer_session *session, int i) {
    const struct compiled *ran = session->ran;
    return ran && ran->partition && i >= 0 ? partition_move(ran->partition, i) : NULL;
}
