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
