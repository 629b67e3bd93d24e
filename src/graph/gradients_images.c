/* Gradient rules of operations on images. */
#include "rules.h"

/* A node that reads two others, with the attributes of the one it is the gradient of. */
static node make_gradient(struct backward *b, enum op op, node first, node second) {
    return graph_make(b->g, &(struct node_info){.op = op,
                                                .inputs = 2,
                                                .input = {first, second},
                                                .attributes = b->g->nodes[b->y].attributes});
}

static node make_shaped(struct backward *b, enum op op, node first, node second, node like) {
    struct node_info info = {
        .op = op, .inputs = 2, .input = {first, second}, .attributes = b->g->nodes[b->y].attributes};
    info.attributes.shape = b->g->nodes[like].shape;
    return graph_make(b->g, &info);
}

void gradient_conv2d(struct backward *b) {
    if (b->wanted[0]) b->dx[0] = make_shaped(b, OP_conv2d_grad_x, b->x[1], b->dy, b->x[0]);
    if (b->wanted[1]) b->dx[1] = make_shaped(b, OP_conv2d_grad_kernel, b->x[0], b->dy, b->x[1]);
}

/* Of a relu: what its gradient would let through is known here already, by the largest of each window, of
 * which there are fewer than there are elements. gradient_relu relies on it. */
void gradient_maxpool(struct backward *b) {
    struct graph *g = b->g;
    node dy = b->dy;
    if (g->nodes[b->x[0]].op == OP_relu)
        dy = graph_make(g, &(struct node_info){.op = OP_relu_grad, .inputs = 2, .input = {b->y, dy}});
    b->dx[0] = make_gradient(b, OP_maxpool_grad, b->x[0], dy);
}

void gradient_lrn(struct backward *b) {
    b->dx[0] = make_gradient(b, OP_lrn_grad, b->x[0], b->dy);
}

/* Row i of a value [2, channels]. */
static node row_of(struct graph *g, node rows, int i) {
    const int channels = rows == NONE ? 1 : g->nodes[rows].shape.dims[1];
    return graph_reshape(g, graph_slice(g, rows, (int[]){i, 0}, SHAPE(1, channels)), SHAPE(channels));
}

/* The moments are those of x and move with it, so all of x's gradient is said here; they pass on none. */
void gradient_batch_norm(struct backward *b) {
    struct graph *g = b->g;
    const struct attributes attributes = g->nodes[b->y].attributes;
    const node x = b->x[0], moments = b->x[1];
    if (g->nodes[moments].op != OP_moments || g->nodes[moments].input[0] != x) {
        graph_mistake(g, "batch_norm: its gradients need the moments of what it normalises");
        return;
    }
    const node sums = graph_make(g, &(struct node_info){.op = OP_batch_norm_sums,
                                                        .inputs = 3,
                                                        .input = {x, moments, b->dy},
                                                        .attributes = attributes});
    if (b->wanted[0])
        b->dx[0] = graph_make(g, &(struct node_info){.op = OP_batch_norm_grad,
                                                     .inputs = 5,
                                                     .input = {x, moments, b->x[2], sums, b->dy},
                                                     .attributes = attributes});
    if (b->wanted[2]) b->dx[2] = row_of(g, sums, 1);
    if (b->wanted[3]) b->dx[3] = row_of(g, sums, 0);
}
