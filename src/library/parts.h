/* Private to src/library: what the opaque types of trainer.h are, and how errors and shapes cross the border.
 * The functions of trainer.h are thin: they turn their arguments into those of the folders below. */
#ifndef TRAINER_LIBRARY_PARTS_H
#define TRAINER_LIBRARY_PARTS_H

#include "../graph/graph.h"
#include "trainer.h"

struct trainer_graph {
    struct graph graph;
};

/* Hands an error to the caller, who may not want its words. Returns its code. */
int library_tell(const struct error *why, struct trainer_error *error);

static inline struct shape shape_in(struct trainer_shape shape) {
    struct shape inside = {.rank = shape.rank};
    for (int axis = 0; axis < MAX_RANK; axis++) inside.dims[axis] = shape.dims[axis];
    return inside;
}

#endif
