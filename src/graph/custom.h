/* Operations that a program brings itself: how they compute, and the nodes of their gradients. */
#ifndef TRAINER_GRAPH_CUSTOM_H
#define TRAINER_GRAPH_CUSTOM_H

#include "graph.h"

/* All functions get `self`. Operands and result are float32. */
struct custom {
    const char *name;
    const void *self;
    /* *result, from operands[count]; returns NULL, or what is wrong in words. NULL: as the first operand. */
    const char *(*shape)(const void *self, const struct shape *operands, int count, struct shape *result);
    /* Returns NULL, or what is wrong in words. Runs on the thread of the program; several may call at once.
     */
    const char *(*compute)(const void *self, const float *const *operands, const struct shape *shapes,
                           int count, float *result, const struct shape *result_shape);
    /* dx of operand i, of that operand's shape, from the operands x[], the result y and its gradient dy;
     * NONE: it does not depend on it. NULL: it has no gradient. */
    node (*gradient)(const void *self, struct graph *g, const node *x, int count, node y, node dy, int i);
};

/* custom: borrowed until the graph is closed. operands[count]: 1 to MAX_INPUTS. */
node graph_custom(struct graph *g, const struct custom *custom, const node *operands, int count);

#endif
