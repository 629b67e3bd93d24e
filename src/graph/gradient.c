/* Automatic differentiation in reverse: walks back from the loss and adds, node by node, the graph that
 * computes the gradients.
 *
 * Only nodes between a target and the loss are visited, and an operation is differentiated only with
 * respect to the operands that lead to a target: the gradient with respect to a network's input is never
 * built. Contributions to one node are added up in the order in which the walk meets them, so the same
 * graph gives the same bits. */
#include <string.h>
#include "../base/memory.h"
#include "graph.h"
#include "rules.h"

/* --- for the rules --- */

struct shape shape_of(const struct graph *g, node n) {
    return n == NONE ? SCALAR : g->nodes[n].shape;
}

struct attributes backward_attributes(const struct backward *b) {
    return b->g->nodes[b->y].attributes;
}

node backward_node(struct backward *b, enum op op, node first, node second) {
    return graph_make(
        b->g, &(struct node_info){
                  .op = op, .inputs = 2, .input = {first, second}, .attributes = backward_attributes(b)});
}

/* A scalar constant is multiplied here and now. */
node backward_scale(struct graph *g, node dy, float factor) {
    if (dy == NONE) return NONE;
    const struct node_info *info = &g->nodes[dy];
    if (info->op == OP_constant && info->shape.rank == 0 && info->type == TYPE_FLOAT)
        return graph_scalar(g, *(const float *)info->constant * factor);
    return graph_mul(g, dy, graph_scalar(g, factor));
}

/* Undoes a broadcast: sums dy over the axes along which a value of shape `to` was repeated. */
static node sum_to(struct graph *g, node dy, struct shape to) {
    struct shape from = shape_of(g, dy);
    if (dy == NONE || shape_equal(&from, &to)) return dy;
    if (shape_count(&to) == 1) return graph_reshape(g, graph_reduce_sum(g, dy, ALL_AXES, false), to);
    const int extra = from.rank - to.rank;
    /* A maxpool's gradient puts each element of what it reads in one place of the same channel: their sum is
     * that of the fewer. */
    if (extra == 3 && g->nodes[dy].op == OP_maxpool_grad) {
        dy = g->nodes[dy].input[1];
        from = shape_of(g, dy);
    }
    if (extra > 0) { /* the leading axes as one, so that rows are added */
        struct shape rows = {.rank = to.rank + 1, .dims = {1}};
        for (int axis = 0; axis < extra; axis++) rows.dims[0] *= from.dims[axis];
        memcpy(rows.dims + 1, from.dims + extra, (size_t)to.rank * sizeof(int));
        if (extra > 1) dy = graph_reshape(g, dy, rows);
        dy = graph_reduce_sum(g, dy, 0, false);
    }
    from = shape_of(g, dy);
    for (int axis = 0; axis < to.rank; axis++)
        if (to.dims[axis] == 1 && from.dims[axis] != 1) dy = graph_reduce_sum(g, dy, axis, true);
    return dy;
}

void backward_give(struct backward *b, int i, node dx) {
    b->dx[i] = sum_to(b->g, dx, shape_of(b->g, b->x[i]));
}

/* --- the walk --- */

/* State of one graph_gradients. */
struct walk {
    struct graph *g;
    int count;   /* nodes up to the loss, itself included */
    bool *leads; /* [count] whether a target is the node or lies before it */
    node *sums;  /* [count] gradient of the loss with respect to the node so far, or NONE */
};

static void find_leads(struct walk *walk, const node *targets, int count) {
    for (int i = 0; i < count; i++)
        if (targets[i] < walk->count) walk->leads[targets[i]] = true;
    for (node n = 0; n < walk->count; n++) {
        const struct node_info *info = &walk->g->nodes[n];
        for (int i = 0; i < info->inputs; i++)
            if (walk->leads[info->input[i]] && info->type == TYPE_FLOAT) walk->leads[n] = true;
    }
}

/* The nodes made since there were `before` of them belong to forward node n. */
static void belong(struct graph *g, int before, node n) {
    for (int i = before; i < g->count; i++) g->nodes[i].follows = n;
}

/* Adds the contributions of node n to the sums of its operands. */
static void step_back(struct walk *walk, node n) {
    struct graph *g = walk->g;
    const struct node_info *info = &g->nodes[n];
    const int inputs = info->inputs;
    struct backward b = {.g = g, .y = n, .dy = walk->sums[n]};
    bool any = false;
    for (int i = 0; i < inputs; i++) {
        b.x[i] = info->input[i];
        b.wanted[i] = walk->leads[b.x[i]] && g->nodes[b.x[i]].type == TYPE_FLOAT;
        b.dx[i] = NONE;
        any = any || b.wanted[i];
    }
    if (!any) return;
    if (!operations[info->op].gradient) {
        graph_mistake(g, "gradients: %s lies between a target and the loss and has no gradient",
                      op_name(info->op));
        return;
    }
    int before = g->count;
    operations[info->op].gradient(&b);
    belong(g, before, n);
    for (int i = 0; i < inputs; i++)
        if (b.wanted[i] && b.dx[i] != NONE) {
            node *sum = &walk->sums[b.x[i]];
            before = g->count;
            *sum = *sum == NONE ? b.dx[i] : graph_add(g, *sum, b.dx[i]);
            belong(g, before, b.x[i]);
        }
}

/* The node that is the gradient of the target: for a variable one that belongs to that variable alone and
 * computes something, so that its value can be computed straight into the gradient slab. Rules never name
 * older nodes, so it is no node of the forward graph. */
static node settle(struct walk *walk, node target) {
    struct graph *g = walk->g;
    node n = target < walk->count ? walk->sums[target] : NONE;
    if (n == NONE || g->nodes[target].op != OP_variable) return n;
    const int range = g->nodes[target].attributes.variable;
    if (g->nodes[n].gradient_of == range) return n; /* the same target twice */
    if (g->nodes[n].gradient_of >= 0 || g->nodes[n].inputs == 0) {
        const int before = g->count;
        n = graph_unary(g, OP_copy, n);
        belong(g, before, target);
    }
    if (n != NONE) g->nodes[n].gradient_of = range;
    return n;
}

/* Whether loss and targets are what they should be; remembers the mistake when not. */
static bool arguments_are_right(struct graph *g, node loss, const node *targets, int count) {
    if (g->error.code != OK) return false;
    const struct node_info *info = loss >= 0 && loss < g->count ? &g->nodes[loss] : NULL;
    if (!info) graph_mistake(g, "gradients: the loss is no node, expected a float32 scalar");
    if (info && (info->type != TYPE_FLOAT || info->shape.rank != 0))
        graph_mistake(g, "gradients: the loss is %s %s, expected a float32 scalar", type_name(info->type),
                      TEXT(&info->shape));
    for (int i = 0; i < count; i++)
        if (targets[i] < 0 || targets[i] >= g->count || g->nodes[targets[i]].type != TYPE_FLOAT)
            graph_mistake(g, "gradients: target %d is not a float32 node", i + 1);
    return g->error.code == OK;
}

void graph_gradients(struct graph *g, node loss, const node *targets, int count, node *gradients) {
    for (int i = 0; i < count; i++) gradients[i] = NONE;
    if (!arguments_are_right(g, loss, targets, count)) return;
    /* Nodes made from here on are not older than any that the walk visits, and a settled copy counts as older
     * for the next call. */
    struct walk walk = {.g = g, .count = loss + 1};
    if (memory_array(&walk.leads, walk.count, "gradients", &g->error) != OK ||
        memory_array(&walk.sums, walk.count, "gradients", &g->error) != OK)
        goto clean_up;
    for (node n = 0; n < walk.count; n++) walk.sums[n] = NONE;
    find_leads(&walk, targets, count);
    walk.sums[loss] = graph_scalar(g, 1.0f);
    for (node n = loss; n >= 0 && g->error.code == OK; n--)
        if (walk.leads[n] && walk.sums[n] != NONE) step_back(&walk, n);
    for (int i = 0; i < count && g->error.code == OK; i++) gradients[i] = settle(&walk, targets[i]);
    if (g->error.code != OK)
        for (int i = 0; i < count; i++) gradients[i] = NONE;
clean_up:
    memory_free(walk.leads);
    memory_free(walk.sums);
}
