/* A graph as TensorBoard draws it (GraphDef of events.proto). */
#ifndef TRAINER_FORMATS_GRAPH_DEF_H
#define TRAINER_FORMATS_GRAPH_DEF_H

#include <stddef.h>
#include "../graph/graph.h"

/* *bytes: [*count], owned by the caller (memory_free). `device`: of all operations, "cpu:0". Errors:
 * ERROR_DEVICE (memory). */
int graph_def_pack(const struct graph *graph, const char *device, unsigned char **bytes, size_t *count,
                   struct error *error);

#endif
