/* Shapes and types: counting, comparing, and printing them. */
#include "shape.h"

#include "../base/text.h"

size_t shape_count(const struct shape *shape) {
    size_t count = 1;
    for (int axis = 0; axis < shape->rank; axis++) count *= (size_t)shape->dims[axis];
    return count;
}

bool shape_equal(const struct shape *a, const struct shape *b) {
    if (a->rank != b->rank) return false;
    for (int axis = 0; axis < a->rank; axis++)
        if (a->dims[axis] != b->dims[axis]) return false;
    return true;
}

const char *shape_text(const struct shape *shape, char *out, size_t bytes) {
    if (bytes == 0) return out;
    struct text text = text_into(out, bytes);
    text_add(&text, "[");
    for (int axis = 0; axis < shape->rank; axis++)
        text_add(&text, axis > 0 ? ", %d" : "%d", shape->dims[axis]);
    text_add(&text, "]");
    return out;
}

size_t type_bytes(enum type type) {
    return type == TYPE_BOOL ? 1 : type == TYPE_BF16 ? 2 : 4;
}

const char *type_name(enum type type) {
    switch (type) {
    case TYPE_FLOAT:
        return "float32";
    case TYPE_INT:
        return "int32";
    case TYPE_BOOL:
        return "bool";
    case TYPE_BF16:
        return "bf16";
    }
    return "?";
}
