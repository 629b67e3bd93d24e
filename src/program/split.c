/* Splitting: from a graph and the device of each node to one graph per device, with send and receive
 * between.
 *
 * One walk writes the parts' graphs, in the graph's order. A send comes right after the value, as early as
 * possible; a receive right before the first reader, as late as possible. Where the graph assigns, a
 * variable's value depends on when it is read: it is sent for its first reader, and again for readers
 * after an assign. */
#include "split.h"

#include "../base/memory.h"
#include "passes.h"

struct splitter {
    struct partition *partition;
    const struct program *whole;
    bool *needed; /* [partition->count][whole->count] a part reads it and does not have it */
    bool *open; /* [partition->count][whole->count] it was sent to the part, which has not received it yet */
};

static size_t at(const struct splitter *splitter, int part, node n) {
    return (size_t)part * (size_t)splitter->whole->count + (size_t)n;
}

static const struct node_info *info_of(const struct splitter *splitter, node n) {
    return &splitter->whole->values[n].info;
}

/* Appends a node to a part's graph. */
static int append(struct part *part, const struct node_info *info, node *out, struct error *error) {
    struct graph *g = &part->graph;
    if (g->count == g->capacity) {
        const int capacity = g->capacity == 0 ? 64 : 2 * g->capacity;
        RETURN_IF(memory_grow(&g->nodes, g->capacity, capacity, "graph of a part", error));
        g->capacity = capacity;
    }
    *out = g->count;
    g->nodes[g->count++] = *info;
    return OK;
}

static int add_fetch(struct part *part, node n, struct error *error) {
    const int count = part->fetch_count;
    RETURN_IF(memory_grow(&part->fetches, count, count + 1, "fetches of a part", error));
    part->fetches[part->fetch_count++] = n;
    return OK;
}

/* --- crossings --- */

static int send(struct splitter *splitter, node n, int to, struct error *error) {
    struct partition *partition = splitter->partition;
    const int from = partition->part[n];
    const struct node_info info = {.op = OP_send,
                                   .type = info_of(splitter, n)->type,
                                   .shape = {.rank = 1, .dims = {0}},
                                   .inputs = 1,
                                   .input = {partition->local[at(splitter, from, n)]},
                                   .gradient_of = -1,
                                   .follows = NONE};
    const int count = partition->crossing_count;
    RETURN_IF(memory_grow(&partition->crossings, count, count + 1, "values between parts", error));
    struct crossing *crossing = &partition->crossings[partition->crossing_count++];
    *crossing = (struct crossing){.value = n, .from = from, .to = to, .receive = NONE};
    RETURN_IF(append(&partition->parts[from], &info, &crossing->send, error));
    splitter->open[at(splitter, to, n)] = true;
    return add_fetch(&partition->parts[from], crossing->send, error);
}

static int receive(struct splitter *splitter, node n, int to, struct error *error) {
    struct partition *partition = splitter->partition;
    const struct node_info info = {.op = OP_receive,
                                   .type = info_of(splitter, n)->type,
                                   .shape = info_of(splitter, n)->shape,
                                   .gradient_of = -1,
                                   .follows = NONE};
    node *local = &partition->local[at(splitter, to, n)];
    RETURN_IF(append(&partition->parts[to], &info, local, error));
    int i = partition->crossing_count - 1;
    while (partition->crossings[i].value != n || partition->crossings[i].to != to) i--;
    partition->crossings[i].receive = *local;
    splitter->open[at(splitter, to, n)] = false;
    return OK;
}

/* Whether the value of n depends on when it is read. */
static bool changes(const struct splitter *splitter, node n) {
    const enum op op = info_of(splitter, n)->op;
    return splitter->whole->assigns && (op == OP_variable || is_assign(op));
}

/* After an assign the copies of its variable that other parts have received are old. */
static void forget_copies(struct splitter *splitter, node assign) {
    struct partition *partition = splitter->partition;
    for (node n = 0; n < assign; n++) {
        if (!changes(splitter, n) ||
            info_of(splitter, n)->attributes.variable != info_of(splitter, assign)->attributes.variable)
            continue;
        for (int part = 0; part < partition->count; part++)
            if (part != partition->part[n]) partition->local[at(splitter, part, n)] = NONE;
    }
}

/* --- the walk --- */

/* Makes operand n known to a part: received, or a constant's own node. */
static int bring(struct splitter *splitter, node n, int part, struct error *error) {
    struct partition *partition = splitter->partition;
    node *local = &partition->local[at(splitter, part, n)];
    if (*local != NONE) return OK;
    if (info_of(splitter, n)->op == OP_constant)
        return append(&partition->parts[part], info_of(splitter, n), local, error);
    if (!splitter->open[at(splitter, part, n)]) RETURN_IF(send(splitter, n, part, error));
    return receive(splitter, n, part, error);
}

static int add_node(struct splitter *splitter, node n, struct error *error) {
    struct partition *partition = splitter->partition;
    const int part = partition->part[n];
    struct node_info info = *info_of(splitter, n);
    for (int i = 0; i < info.inputs; i++) {
        RETURN_IF(bring(splitter, info.input[i], part, error));
        info.input[i] = partition->local[at(splitter, part, info.input[i])];
    }
    info.follows = NONE; /* a number of the whole graph, and no longer of use */
    node *local = &partition->local[at(splitter, part, n)];
    RETURN_IF(append(&partition->parts[part], &info, local, error));
    if (splitter->whole->values[n].fetched) RETURN_IF(add_fetch(&partition->parts[part], *local, error));
    if (is_assign(info.op)) forget_copies(splitter, n);
    for (int other = 0; other < partition->count; other++)
        if (splitter->needed[at(splitter, other, n)] && !changes(splitter, n))
            RETURN_IF(send(splitter, n, other, error));
    return OK;
}

static void find_needed(struct splitter *splitter) {
    const int *part_of = splitter->partition->part;
    for (node n = 0; n < splitter->whole->count; n++) {
        if (part_of[n] == NONE) continue;
        const struct node_info *info = info_of(splitter, n);
        for (int i = 0; i < info->inputs; i++)
            if (part_of[info->input[i]] != NONE && part_of[info->input[i]] != part_of[n])
                splitter->needed[at(splitter, part_of[n], info->input[i])] = true;
    }
}

/* What the parts have so far is their forward half. */
static void end_forward(struct partition *partition) {
    for (int i = 0; i < partition->count; i++) partition->parts[i].backward = partition->parts[i].graph.count;
}

int partition_split(struct partition *partition, const struct program *whole, struct error *error) {
    struct splitter splitter = {.partition = partition, .whole = whole};
    const size_t pairs = (size_t)partition->count * (size_t)whole->count;
    for (size_t i = 0; i < pairs; i++) partition->local[i] = NONE;
    for (int i = 0; i < partition->count; i++) partition->parts[i].graph.layout = partition->graph->layout;
    int code = memory_array(&splitter.needed, pairs, "splitter", error);
    if (code == OK) code = memory_array(&splitter.open, pairs, "splitter", error);
    if (code == OK) find_needed(&splitter);
    for (node n = 0; n < whole->count && code == OK; n++) {
        if (n == partition->backward) end_forward(partition);
        if (partition->part[n] != NONE) code = add_node(&splitter, n, error);
    }
    if (whole->count == partition->backward) end_forward(partition);
    memory_free(splitter.open);
    memory_free(splitter.needed);
    return code;
}
