/* Shapes and types of the values in a graph. */
#ifndef TRAINER_GRAPH_SHAPE_H
#define TRAINER_GRAPH_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

enum { MAX_RANK = 6 };

struct shape {
    int rank;           /* 0: a scalar */
    int dims[MAX_RANK]; /* [rank], outermost first */
};

/* float32, int32, one byte 0 or 1; bfloat16, which no graph has: programs keep values in it (lower.c) */
enum type { TYPE_FLOAT, TYPE_INT, TYPE_BOOL, TYPE_BF16 };

size_t shape_count(const struct shape *shape); /* elements */
bool shape_equal(const struct shape *a, const struct shape *b);
/* Writes "[32, 784]" into out[bytes] and returns out. */
const char *shape_text(const struct shape *shape, char *out, size_t bytes);
size_t type_bytes(enum type type);
const char *type_name(enum type type);

#define SHAPE(...)                                                                                           \
    ((struct shape){.rank = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), .dims = {__VA_ARGS__}})
#define SCALAR ((struct shape){0})

#endif
