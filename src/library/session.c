/* Sessions, as trainer.h has them: a graph's variables on one device or on several, and a program for each
 * list of fetches that was run. */
#include "session.h"

#include <string.h>

#include "../base/memory.h"
#include "../device/copy.h"
#include "../formats/checkpoint.h"

static void release(const struct device *device, void *block) {
    if (block) device->backend->release(device, block);
}

static void forget(struct compiled *compiled) {
    arena_close(compiled->arena);
    program_close(compiled->program);
    session_forget_parts(compiled);
    memory_free(compiled->needed);
    memory_free(compiled->fetches);
    *compiled = (struct compiled){0};
}

/* With a device that hangs, what it may use is left behind. */
void trainer_session_close(struct trainer_session *session) {
    if (!session || !team_close(session->team)) return;
    for (int i = 0; i < COMPILED; i++) forget(&session->compiled[i]);
    for (int d = 0; session->slabs && d < session->device_count; d++) {
        if (!session->slabs[d].own) continue;
        release(&session->devices[d], session->slabs[d].gradients);
        release(&session->devices[d], session->slabs[d].weights);
    }
    devices_close(session->devices, session->device_count);
    memory_free(session->slabs);
    memory_free(session->home);
    memory_free(session->pins);
    memory_free(session->layers);
    memory_free(session);
}

/* --- open --- */

/* Devices of one memory share it. */
static int open_slabs(struct trainer_session *s, int d, const float *first, struct error *error) {
    const struct device *device = &s->devices[d];
    struct slabs *slabs = &s->slabs[d];
    for (int earlier = 0; earlier < d; earlier++)
        if (device_same_memory(device, &s->devices[earlier])) {
            *slabs = s->slabs[earlier];
            slabs->own = false;
            return OK;
        }
    slabs->own = true;
    device->backend->enter(device);
    RETURN_IF(device_array(device, &slabs->weights, s->floats, "variables", error));
    RETURN_IF(device_array(device, &slabs->gradients, s->floats, "gradients", error));
    return device_copy(device, slabs->weights, NULL, first, s->floats * sizeof *first, error);
}

static int initialize(struct trainer_session *s, struct error *error) {
    float *first = NULL;
    RETURN_IF(memory_array(&s->slabs, s->device_count, "a session's devices", error));
    RETURN_IF(memory_array(&s->home, s->graph->layout.count, "places of variables", error));
    RETURN_IF(memory_array(&first, s->floats, "the first values of variables", error));
    layout_initialize(&s->graph->layout, s->graph->seed, first);
    int code = OK;
    for (int d = 0; d < s->device_count && code == OK; d++) code = open_slabs(s, d, first, error);
    memory_free(first);
    return code;
}

/* Deterministic: the algorithms that a GPU measures to be the fastest differ from run to run, and in the last
 * bits of what they compute. */
static int open(struct trainer_session *s, const char *devices, struct error *error) {
    const struct device_settings settings = {.hard = true, .deterministic = true};
    bool shared = false;
    RETURN_IF(graph_check(s->graph, error));
    s->floats = s->graph->layout.floats;
    RETURN_IF(devices_open(devices, &settings, &s->devices, &s->device_count, &shared, error));
    RETURN_IF(initialize(s, error));
    return s->device_count > 1 ? team_open(&s->team, s->devices, s->slabs, s->device_count, error) : OK;
}

int trainer_session_open(struct trainer_session **session, const struct trainer_graph *graph,
                         const char *devices, struct trainer_error *error) {
    struct error why = {0};
    *session = NULL;
    if (memory_array(session, 1, "a session", &why) != OK) return library_tell(&why, error);
    (*session)->graph = &graph->graph;
    if (open(*session, devices ? devices : "cpu:0", &why) != OK) {
        trainer_session_close(*session);
        *session = NULL;
    }
    return library_tell(&why, error);
}

/* --- running --- */

/* needed[graph->count]: the fetches, and what they are computed from. */
static void find_needed(const struct graph *graph, const node *fetches, int count, bool *needed) {
    for (int i = 0; i < count; i++) needed[fetches[i]] = true;
    for (node n = graph->count - 1; n >= 0; n--) /* operands are older than their readers */
        for (int i = 0; needed[n] && i < graph->nodes[n].inputs; i++) needed[graph->nodes[n].input[i]] = true;
}

static int compile(struct trainer_session *s, struct compiled *compiled, const node *fetches, int count,
                   struct error *error) {
    RETURN_IF(memory_array(&compiled->fetches, count, "fetches", error));
    RETURN_IF(memory_array(&compiled->needed, s->graph->count, "nodes of a run", error));
    if (count > 0) memcpy(compiled->fetches, fetches, (size_t)count * sizeof *fetches);
    compiled->count = count;
    compiled->nodes = s->graph->count;
    if (s->team) {
        RETURN_IF(session_compile_parts(s, compiled, error));
    } else {
        RETURN_IF(program_compile(&compiled->program, s->graph, fetches, count, s->devices, error));
        RETURN_IF(arena_open(&compiled->arena, compiled->program, error));
    }
    find_needed(s->graph, fetches, count, compiled->needed);
    compiled->ready = true;
    return OK;
}

/* The program for these fetches: the one that is there, or a new one. */
static int find_compiled(struct trainer_session *s, const node *fetches, int count, struct compiled **found,
                         struct error *error) {
    for (int i = 0; i < COMPILED; i++) {
        struct compiled *compiled = &s->compiled[i];
        if (!compiled->ready || compiled->count != count) continue;
        *found = compiled;
        if (memcmp(compiled->fetches, fetches, (size_t)count * sizeof *fetches) == 0) return OK;
    }
    *found = &s->compiled[s->next];
    s->next = (s->next + 1) % COMPILED;
    if (s->ran == *found) s->ran = NULL;
    forget(*found);
    const int code = compile(s, *found, fetches, count, error);
    if (code != OK) forget(*found);
    return code;
}

static size_t bytes_of(const struct node_info *info) {
    return shape_count(&info->shape) * type_bytes(info->type);
}

static int check_bytes(const struct node_info *info, const char *what, size_t bytes, struct error *error) {
    char shape[96];
    if (bytes == bytes_of(info)) return OK;
    return error_set(error, ERROR_USAGE, "%s of %s%s%s: found %zu bytes, expected %zu: %s of %s", what,
                     op_name(info->op), info->name[0] ? " " : "", info->name, bytes, bytes_of(info),
                     shape_text(&info->shape, shape, sizeof shape), type_name(info->type));
}

static int check_fetches(const struct graph *graph, const struct trainer_fetch *fetches, int count,
                         struct error *error) {
    for (int i = 0; i < count; i++) {
        if (fetches[i].node < 0 || fetches[i].node >= graph->count)
            return error_set(error, ERROR_USAGE, "fetch %d is not a node of the graph", i + 1);
        if (fetches[i].data)
            RETURN_IF(check_bytes(&graph->nodes[fetches[i].node], "a fetch", fetches[i].bytes, error));
    }
    return OK;
}

/* Of a node that is in a part, if there are several. */
static int part_of(const struct compiled *compiled, node n) {
    return compiled->partition ? partition_device(compiled->partition, n) : 0;
}

static const struct device *device_of(const struct trainer_session *s, const struct compiled *compiled,
                                      node n) {
    return &s->devices[part_of(compiled, n)];
}

static void *address_of(const struct compiled *compiled, node n) {
    return compiled->partition ? rendezvous_address(compiled->rendezvous, 0, n)
                               : arena_address(compiled->arena, n);
}

/* A placeholder that the run does not need is checked all the same, and else left alone. */
static int feed(const struct trainer_session *s, const struct compiled *compiled,
                const struct trainer_feed *feeds, int count, bool *fed, struct error *error) {
    for (int i = 0; i < count; i++) {
        const node n = feeds[i].node;
        if (n < 0 || n >= s->graph->count || s->graph->nodes[n].op != OP_placeholder)
            return error_set(error, ERROR_USAGE, "feed %d: found %s, expected a placeholder", i + 1,
                             n < 0 || n >= s->graph->count ? "no node" : op_name(s->graph->nodes[n].op));
        RETURN_IF(check_bytes(&s->graph->nodes[n], "a feed", feeds[i].bytes, error));
        if (n >= compiled->nodes || !compiled->needed[n]) continue;
        RETURN_IF(device_copy(device_of(s, compiled, n), address_of(compiled, n), NULL, feeds[i].data,
                              feeds[i].bytes, error));
        fed[n] = true;
    }
    for (node n = 0; n < compiled->nodes; n++)
        if (s->graph->nodes[n].op == OP_placeholder && compiled->needed[n] && !fed[n])
            return error_set(error, ERROR_USAGE, "placeholder \"%s\" is needed and was not fed",
                             s->graph->nodes[n].name);
    return OK;
}

/* Wherever the program keeps it. */
static int read_fetch(const struct trainer_session *s, const struct compiled *compiled,
                      const struct trainer_fetch *fetch, struct error *error) {
    const struct node_info *info = &s->graph->nodes[fetch->node];
    if (info->op == OP_constant) {
        memcpy(fetch->data, info->constant, fetch->bytes);
        return OK;
    }
    const int part = part_of(compiled, fetch->node);
    const void *value = address_of(compiled, fetch->node);
    if (!value) {
        const bool is_gradient = info->gradient_of >= 0;
        const int range = is_gradient ? info->gradient_of : info->attributes.variable;
        const float *slab = is_gradient ? s->slabs[part].gradients : s->slabs[part].weights;
        value = slab + s->graph->layout.ranges[range].begin;
    }
    return device_copy(NULL, fetch->data, &s->devices[part], value, fetch->bytes, error);
}

static int run_compiled(struct trainer_session *s, const struct compiled *compiled, struct error *error) {
    if (s->team) return session_run_parts(s, compiled, error);
    return program_run(compiled->program, compiled->arena, s->slabs->weights, s->slabs->gradients, error);
}

/* What a device that hangs may use is not touched. */
static int begin(struct trainer_session *s, struct error *error) {
    if (s->team) RETURN_IF(team_ended(s->team, error));
    for (int i = 0; s->stale && i < COMPILED; i++) forget(&s->compiled[i]);
    s->stale = false;
    s->devices->backend->enter(s->devices);
    return OK;
}

static int run(struct trainer_session *s, const struct trainer_feed *feeds, int feed_count,
               const struct trainer_fetch *fetches, int fetch_count, const node *nodes, bool *fed,
               struct error *error) {
    struct compiled *compiled = NULL;
    RETURN_IF(graph_check(s->graph, error));
    if (s->graph->layout.floats != s->floats)
        return error_set(error, ERROR_USAGE,
                         "the graph has got variables since the session was opened, expected none");
    RETURN_IF(check_fetches(s->graph, fetches, fetch_count, error));
    RETURN_IF(begin(s, error));
    RETURN_IF(find_compiled(s, nodes, fetch_count, &compiled, error));
    RETURN_IF(feed(s, compiled, feeds, feed_count, fed, error));
    RETURN_IF(run_compiled(s, compiled, error));
    s->ran = compiled;
    for (int i = 0; i < fetch_count; i++)
        if (fetches[i].data) RETURN_IF(read_fetch(s, compiled, &fetches[i], error));
    return s->devices->backend->finish(s->devices, error);
}

int trainer_session_run(struct trainer_session *session, const struct trainer_feed *feeds, int feed_count,
                        const struct trainer_fetch *fetches, int fetch_count, struct trainer_error *error) {
    struct error why = {0};
    node *nodes = NULL;
    bool *fed = NULL;
    if (feed_count < 0 || fetch_count < 0)
        error_set(&why, ERROR_USAGE, "%d feeds and %d fetches, expected 0 or more", feed_count, fetch_count);
    else if (memory_array(&nodes, fetch_count, "fetches", &why) == OK &&
             memory_array(&fed, session->graph->count, "feeds", &why) == OK) {
        for (int i = 0; i < fetch_count; i++) nodes[i] = fetches[i].node;
        session->ran = NULL;
        run(session, feeds, feed_count, fetches, fetch_count, nodes, fed, &why);
    }
    memory_free(fed);
    memory_free(nodes);
    return library_tell(&why, error);
}

bool trainer_session_ran(const struct trainer_session *session, trainer_node n) {
    const struct compiled *ran = session->ran;
    return ran && n >= 0 && n < ran->nodes && ran->needed[n];
}

/* --- variables --- */

static int find_range(const struct trainer_session *s, node n, size_t count, const struct range **range,
                      struct error *error) {
    if (n < 0 || n >= s->graph->count || s->graph->nodes[n].op != OP_variable)
        return error_set(error, ERROR_USAGE, "found %s, expected a variable",
                         n < 0 || n >= s->graph->count ? "no node" : op_name(s->graph->nodes[n].op));
    *range = &s->graph->layout.ranges[s->graph->nodes[n].attributes.variable];
    if ((*range)->begin >= s->floats)
        return error_set(error, ERROR_USAGE, "variable \"%s\" is newer than the session", (*range)->name);
    if ((*range)->floats == count) return OK;
    return error_set(error, ERROR_USAGE, "variable \"%s\": found room for %zu values, expected %zu",
                     (*range)->name, count, (*range)->floats);
}

/* Whether the variables are there to be read and written. */
static int at_rest(const struct trainer_session *s, struct error *error) {
    return s->team ? team_ended(s->team, error) : OK;
}

/* Where the value of a variable lies. */
static float *value_of(const struct trainer_session *s, const struct range *range,
                       const struct device **device) {
    const int home = s->home[range - s->graph->layout.ranges];
    *device = &s->devices[home];
    return s->slabs[home].weights + range->begin;
}

int trainer_session_get(const struct trainer_session *session, trainer_node variable, float *values,
                        size_t count, struct trainer_error *error) {
    struct error why = {0};
    const struct range *range = NULL;
    const struct device *device = NULL;
    if (at_rest(session, &why) == OK && find_range(session, variable, count, &range, &why) == OK) {
        const float *there = value_of(session, range, &device);
        device_copy(NULL, values, device, there, count * sizeof *values, &why);
    }
    return library_tell(&why, error);
}

int trainer_session_set(struct trainer_session *session, trainer_node variable, const float *values,
                        size_t count, struct trainer_error *error) {
    struct error why = {0};
    const struct range *range = NULL;
    const struct device *device = NULL;
    if (at_rest(session, &why) == OK && find_range(session, variable, count, &range, &why) == OK) {
        float *there = value_of(session, range, &device);
        device_copy(device, there, NULL, values, count * sizeof *values, &why);
    }
    return library_tell(&why, error);
}

/* The graph may have got variables since the session was opened. */
static int has_all(const struct trainer_session *s, struct error *error) {
    const struct layout *layout = &s->graph->layout;
    const struct range *last = layout->count > 0 ? &layout->ranges[layout->count - 1] : NULL;
    RETURN_IF(at_rest(s, error));
    if (!last || last->begin < s->floats) return OK;
    return error_set(error, ERROR_USAGE, "variable \"%s\" is newer than the session", last->name);
}

/* Both go through a copy on the host: what is written is whole, and what cannot be read changes nothing. */

static int copy_variables(const struct trainer_session *s, bool in, float *values, struct error *error) {
    const struct layout *layout = &s->graph->layout;
    for (int r = 0; r < layout->count && layout->ranges[r].begin < s->floats; r++) {
        const struct device *device = NULL;
        float *there = value_of(s, &layout->ranges[r], &device), *here = values + layout->ranges[r].begin;
        const size_t bytes = layout->ranges[r].floats * sizeof *values;
        RETURN_IF(in ? device_copy(device, there, NULL, here, bytes, error)
                     : device_copy(NULL, here, device, there, bytes, error));
    }
    return OK;
}

static int save(const struct trainer_session *s, const char *path, float *values, struct error *error) {
    RETURN_IF(has_all(s, error));
    RETURN_IF(copy_variables(s, false, values, error));
    return model_write(path, &s->graph->layout, values, NULL, 0, error);
}

int trainer_session_save(const struct trainer_session *session, const char *path,
                         struct trainer_error *error) {
    struct error why = {0};
    float *values = NULL;
    if (memory_array(&values, session->floats, "variables", &why) == OK) save(session, path, values, &why);
    memory_free(values);
    return library_tell(&why, error);
}

static int load(struct trainer_session *s, const char *path, float *values, struct error *error) {
    struct safetensors content = {0};
    RETURN_IF(has_all(s, error));
    RETURN_IF(safetensors_read(path, &content, error));
    const int code = checkpoint_load(path, &content, "", &s->graph->layout, true, values, error);
    safetensors_free(&content);
    return code == OK ? copy_variables(s, true, values, error) : code;
}

int trainer_session_load(struct trainer_session *session, const char *path, struct trainer_error *error) {
    struct error why = {0};
    float *values = NULL;
    if (memory_array(&values, session->floats, "variables", &why) == OK) load(session, path, values, &why);
    memory_free(values);
    return library_tell(&why, error);
}
