/* See custom.h. The operation is run in src/program/custom.c. */
#include "custom.h"

#include <string.h>
#include "rules.h"

node graph_custom(struct graph *g, const struct custom *custom, const node *operands, int count) {
    if (g->error.code == OK && (count < 1 || count > MAX_INPUTS))
        graph_mistake(g, "%s: %d operands, expected 1 to %d", custom->name, count, MAX_INPUTS);
    if (g->error.code != OK) return NONE;
    struct node_info info = {.op = OP_custom, .inputs = count, .attributes.custom = custom};
    memcpy(info.input, operands, (size_t)count * sizeof *operands);
    return graph_make(g, &info);
}

int shape_custom(struct graph *g, struct node_info *n) {
    const struct custom *custom = n->attributes.custom;
    struct shape shapes[MAX_INPUTS];
    for (int i = 0; i < n->inputs; i++) {
        RETURN_IF(expect_type(g, n, i, TYPE_FLOAT));
        shapes[i] = *operand_shape(g, n, i);
    }
    n->shape = shapes[0];
    const char *wrong = custom->shape ? custom->shape(custom->self, shapes, n->inputs, &n->shape) : NULL;
    if (wrong) return graph_mistake(g, "%s: %s", custom->name, wrong);
    return expect_valid(g, n, &n->shape);
}

void gradient_custom(struct backward *b) {
    const struct custom *custom = backward_attributes(b).custom;
    const int count = b->g->nodes[b->y].inputs;
    if (!custom->gradient) {
        graph_mistake(b->g, "gradients: %s lies between a target and the loss and has no gradient",
                      custom->name);
        return;
    }
    for (int i = 0; i < count && b->g->error.code == OK; i++) {
        if (!b->wanted[i]) continue;
        const node dx = custom->gradient(custom->self, b->g, b->x, count, b->y, b->dy, i);
        if (dx != NONE && (dx < 0 || dx >= b->g->count)) {
            graph_mistake(b->g,
                          "%s: the gradient of operand %d is node %d, expected one of the graph, or none",
                          custom->name, i + 1, dx);
            return;
        }
        const struct shape found = shape_of(b->g, dx), expected = shape_of(b->g, b->x[i]);
        if (dx != NONE && !shape_equal(&found, &expected))
            graph_mistake(b->g, "%s: the gradient of operand %d is %s, expected %s", custom->name, i + 1,
                          TEXT(&found), TEXT(&expected));
        b->dx[i] = dx;
    }
}
