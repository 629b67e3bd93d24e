/* What the layers of a placement (partition.h) decide, before there is one: which nodes go where which layer
 * goes. */
#ifndef TRAINER_PROGRAM_PLACEABLE_H
#define TRAINER_PROGRAM_PLACEABLE_H

#include "../graph/graph.h"

enum { PLACEABLE_NOWHERE = -2 };
struct placeable {
    int *layer;       /* [graph->count] of each node; NONE: it is on the first device wherever the layers are;
                         PLACEABLE_NOWHERE: it is in no part, or a constant */
    char (*name)[64]; /* [count] as a placement names them, in the order of the graph */
    int count;
};
/* Of the same fetches and pins as a partition's; pin may be NULL. Layers whose names a placement cannot hold
 * (because of , = * ? [ or \) go where the layer before them goes. Errors: those of partition_compile. */
int placeable_find(struct placeable *placeable, const struct graph *graph, const node *fetches, int count,
                   int (*pin)(const void *argument, node n), const void *argument, struct error *error);
void placeable_free(struct placeable *placeable); /* safe on a zeroed or half-filled one */

#endif
