/* What a run says of a group: what lies where, and how its micro-batches go through the devices. */
#include <string.h>

#include "../base/text.h"
#include "group_parts.h"

/* --- what lies where --- */

static void add_bytes(struct text *text, double bytes) {
    text_add(text, "%.1f %s", bytes < 1e6 ? bytes / 1e3 : bytes / 1e6, bytes < 1e6 ? "kB" : "MB");
}

static size_t bytes_across(const struct group *group) {
    size_t all = 0, bytes = 0;
    int from = 0, to = 0;
    for (int i = 0; partition_crossing(group->partition, i, &from, &to, &bytes) != NONE; i++) all += bytes;
    return all;
}

/* "block/conv1" of "block/conv1/kernel": its letters. */
static size_t layer_letters(const char *variable) {
    const char *slash = strrchr(variable, '/');
    return slash ? (size_t)(slash - variable) : strlen(variable);
}

/* Layers on one device that follow each other in the network: so many are named one by one, more by the first
 * and the last. */
enum { RUN_NAMES = 4 };
struct layer_run {
    const char *name[RUN_NAMES], *last; /* of a variable of each */
    int count;
};

static void end_run(struct layer_run *run, struct text *text, int *said) {
    for (int i = 0; i < run->count && run->count <= RUN_NAMES; i++)
        text_add(text, "%s%.*s", (*said)++ > 0 ? ", " : "", (int)layer_letters(run->name[i]), run->name[i]);
    if (run->count > RUN_NAMES)
        text_add(text, "%s%.*s to %.*s", (*said)++ > 0 ? ", " : "", (int)layer_letters(run->name[0]),
                 run->name[0], (int)layer_letters(run->last), run->last);
    run->count = 0;
}

static bool same_layer(const char *one, const char *other) {
    const size_t letters = layer_letters(one);
    return letters == layer_letters(other) && memcmp(one, other, letters) == 0;
}

/* The layers whose weights a device has; how many they are. */
static int name_layers(const struct group *group, int part, struct text *text) {
    const struct graph *g = &group->network->graph;
    struct layer_run run = {0};
    int said = 0, layers = 0;
    for (node n = 0; n < g->count; n++) {
        const int its = g->nodes[n].op == OP_variable ? partition_device(group->partition, n) : NONE;
        const char *name = g->nodes[n].name;
        if (its == NONE) continue;
        const bool again = run.count > 0 && same_layer(run.last, name);
        if (its != part && !again) end_run(&run, text, &said);
        if (its != part || again) continue;
        if (run.count < RUN_NAMES) run.name[run.count] = name;
        run.last = name;
        run.count++;
        layers++;
    }
    end_run(&run, text, &said);
    return layers;
}

/* Of places that make no line, how many layers lie where. */
static void add_layers(const struct group *group, int part, bool counted, struct text *text) {
    char names[sizeof group->places];
    struct text unused = text_into(names, sizeof names), *out = counted ? &unused : text;
    const int layers = name_layers(group, part, out);
    if (counted && layers > 0) text_add(text, "%d layer%s", layers, layers == 1 ? "" : "s");
    text_add(text, "%s on %s", layers > 0 ? "" : "no weights", group->devices[part].name);
}

/* A device with memory of its own has room for the whole vector, whichever layers are its: for weights,
 * gradient and, of several micro-batches, the gradient of a later one (group.c, open_vectors). */
static void add_vectors(const struct group *group, struct text *text) {
    const size_t bytes = group->network->graph.layout.floats * sizeof(float);
    const int vectors = group->pipeline.microbatches > 1 ? 3 : 2;
    for (int part = 1; part < group->size; part++) {
        if (device_same_memory(&group->devices[part], &group->devices[0])) continue;
        text_add(text, "; %s has room for all weights and gradients (", group->devices[part].name);
        add_bytes(text, (double)bytes * vectors);
        text_add(text, ")");
    }
}

static void describe_places(struct group *group) {
    for (int counted = 0; counted < 2; counted++) {
        struct text text = text_into(group->places, sizeof group->places);
        for (int part = 0; part < group->size; part++) {
            if (part > 0) text_add(&text, "; ");
            add_layers(group, part, counted, &text);
        }
        text_add(&text, "; ");
        add_bytes(&text, (double)bytes_across(group));
        text_add(&text, " cross in each forward and backward pass");
        add_vectors(group, &text);
        if (!text.cut) return;
    }
}

/* --- the pipeline --- */

static void describe_schedule(struct group *group) {
    const struct pipeline *pipeline = &group->pipeline;
    struct text text = text_into(group->schedule, sizeof group->schedule);
    text_add(&text, "pipeline by %s: of %d micro-batches at most", pipeline_name(pipeline->schedule),
             pipeline->microbatches);
    for (int part = 0; part < group->size; part++) {
        text_add(&text, "%s %d on %s (", part > 0 ? "," : "",
                 pipeline_in_flight(pipeline, partition_stage(group->partition, part)),
                 group->devices[part].name);
        add_bytes(&text, (double)partition_bytes(group->partition, pipeline, part));
        text_add(&text, ")");
    }
    text_add(&text, " at a time; equal stages would idle %.1f %% of the time",
             100 * pipeline_bubble(pipeline));
}

/* A stage that has so many times its share of the work is worth a line. */
static const double unequal = 1.25;

/* Multiply-adds of the parts, and of the operation that has most, with those of its gradients. */
struct work {
    double all, most, largest;
    int slowest; /* the part that has most */
    node largest_node;
};

static double work_of(const struct graph *g, node n) {
    double sum = graph_multiply_adds(g, n);
    for (node after = n + 1; after < g->count; after++)
        if (g->nodes[after].follows == n) sum += graph_multiply_adds(g, after);
    return sum;
}

static struct work measure_work(const struct group *group) {
    const struct graph *g = &group->network->graph;
    struct work work = {.largest_node = NONE};
    for (int part = 0; part < group->size; part++) {
        double sum = 0.0;
        for (node n = 0; n < g->count; n++) {
            if (partition_device(group->partition, n) != part) continue;
            sum += graph_multiply_adds(g, n);
            const double own = g->nodes[n].follows == NONE ? work_of(g, n) : 0.0;
            if (own <= work.largest) continue;
            work.largest = own;
            work.largest_node = n;
        }
        work.all += sum;
        if (sum <= work.most) continue;
        work.most = sum;
        work.slowest = part;
    }
    return work;
}

/* "": the stages are equal enough. */
static void describe_balance(struct group *group) {
    const struct graph *g = &group->network->graph;
    const struct work work = measure_work(group);
    struct text text = text_into(group->balance, sizeof group->balance);
    if (!(work.most * group->size > unequal * work.all)) return;
    text_add(&text, "%s has %.0f %% of the multiply-adds, the other stages wait for it",
             group->devices[work.slowest].name, 100 * work.most / work.all);
    if (!(work.largest * group->size > unequal * work.all)) return;
    const struct node_info *info = &g->nodes[work.largest_node];
    const char *name = info->name;
    for (int i = 0; i < info->inputs; i++)
        if (g->nodes[info->input[i]].op == OP_variable) name = g->nodes[info->input[i]].name;
    text_add(&text, "; the %s%s%.*s alone has %.0f %%, so no cut makes them equal", op_name(info->op),
             name[0] ? " of " : "", (int)layer_letters(name), name, 100 * work.largest / work.all);
}

void group_describe(struct group *group) {
    describe_places(group);
    if (group->pipeline.schedule == PIPELINE_NONE) return;
    describe_schedule(group);
    describe_balance(group);
}

const char *group_line(const struct group *group, int i) {
    const char *const lines[] = {group->placed ? group->placed : "", group->places, group->schedule,
                                 group->balance};
    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++)
        if (lines[l][0] && i-- == 0) return lines[l];
    return partition_move(group->partition, i);
}

/* --- for --explain --- */

void group_print(const struct group *group, FILE *file) {
    int from = 0, to = 0;
    size_t bytes = 0;
    node n;
    char words[NODE_WORDS_BYTES];
    for (int part = 0; part < group->size; part++) {
        fprintf(file, "%s:\n", group->devices[part].name);
        program_explain(partition_program(group->partition, part), NULL, file);
    }
    for (int i = 0; (n = partition_crossing(group->partition, i, &from, &to, &bytes)) != NONE; i++)
        fprintf(file, "from %s to %s: %s, %.3f MB\n", group->devices[from].name, group->devices[to].name,
                partition_words(group->partition, n, words), (double)bytes / 1e6);
    for (int i = 0; group_line(group, i); i++) fprintf(file, "%s\n", group_line(group, i));
}
