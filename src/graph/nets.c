/* Softmax and cross entropy: their shape rules, calls and gradients. */
#include "rules.h"

int shape_softmax(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_same(g, n));
    return n->shape.rank > 0 ? OK : graph_mistake(g, "softmax: found a scalar, expected 1 dimension or more");
}

node graph_softmax(struct graph *g, node x) {
    return graph_unary(g, OP_softmax, x);
}

void gradient_softmax(struct backward *b) {
    b->dx[0] = graph_binary(b->g, OP_softmax_grad, b->y, b->dy);
}

/* --- cross entropy --- */

/* Labels of [batch, classes] values: int [batch]. */
static int expect_labels(struct graph *g, const struct node_info *n) {
    RETURN_IF(expect_rank(g, n, 0, 2));
    RETURN_IF(expect_type(g, n, 1, TYPE_INT));
    return expect_shape(g, n, 1, &SHAPE(operand_shape(g, n, 0)->dims[0]));
}

int shape_per_example(struct graph *g, struct node_info *n) {
    RETURN_IF(expect_type(g, n, 0, TYPE_FLOAT));
    RETURN_IF(expect_labels(g, n));
    n->type = TYPE_FLOAT;
    n->shape = SHAPE(operand_shape(g, n, 0)->dims[0]);
    return OK;
}

/* Values, labels, a gradient for each example. */
int shape_labelled(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_per_example(g, n));
    RETURN_IF(expect_shape(g, n, 2, &n->shape));
    n->shape = *operand_shape(g, n, 0);
    return OK;
}

/* Of a softmax: built from the logits instead, which is stable where a probability is 0, and one operation
 * less each way. The softmax itself runs only when something else asks for it. */
node graph_cross_entropy(struct graph *g, node p, node labels) {
    if (g->error.code == OK && p >= 0 && p < g->count && g->nodes[p].op == OP_softmax &&
        g->nodes[p].shape.rank == 2)
        return graph_softmax_cross_entropy(g, g->nodes[p].input[0], labels);
    return graph_binary(g, OP_cross_entropy, p, labels);
}

node graph_softmax_cross_entropy(struct graph *g, node logits, node labels) {
    return graph_smoothed_cross_entropy(g, logits, labels, 0.0f);
}

node graph_smoothed_cross_entropy(struct graph *g, node logits, node labels, float smoothing) {
    struct node_info info = {.op = OP_softmax_cross_entropy, .inputs = 2, .input = {logits, labels}};
    if (g->error.code == OK && !(smoothing >= 0.0f && smoothing < 1.0f)) {
        graph_mistake(g, "softmax_cross_entropy: smoothing %g, expected 0 or more and less than 1",
                      (double)smoothing);
        return NONE;
    }
    info.attributes.smoothing = smoothing;
    return graph_make(g, &info);
}

static node label_gradient(struct backward *b, enum op op) {
    return graph_make(b->g, &(struct node_info){.op = op,
                                                .inputs = 3,
                                                .input = {b->x[0], b->x[1], b->dy},
                                                .attributes = backward_attributes(b)});
}

void gradient_cross_entropy(struct backward *b) {
    b->dx[0] = label_gradient(b, OP_cross_entropy_grad);
}

void gradient_softmax_cross_entropy(struct backward *b) {
    b->dx[0] = label_gradient(b, OP_softmax_cross_entropy_grad);
}
