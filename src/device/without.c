/* --without-kernel: operations that devices are treated as having no kernel for. */
#include "without.h"

#include <string.h>

#include "../base/option.h"

static int find_op(const char *name, size_t length) {
    int op = 0;
    while (op < OPS &&
           (strlen(op_name((enum op)op)) != length || memcmp(op_name((enum op)op), name, length) != 0))
        op++;
    return op;
}

static int unknown_op(const char *item, const char *name, struct error *error) {
    const char *names[OPS + 1] = {NULL};
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)strcspn(name, ","), name);
    for (int op = 0; op < OPS; op++) names[op] = op_name((enum op)op);
    const char *nearest = option_nearest(text, names);
    return error_set(error, ERROR_USAGE, "--without-kernel=%.*s: there is no operation %s%s%s%s",
                     (int)strcspn(item, ","), item, text, nearest ? " (did you mean " : "",
                     nearest ? nearest : "", nearest ? "?)" : "");
}

int devices_without(struct device *devices, int count, const char *text, struct error *error) {
    while (text && *text) {
        const size_t length = strcspn(text, ","), name = strcspn(text, ":,");
        if (name == length || name != 3 || memcmp(text, "gpu", name) != 0)
            return error_set(error, ERROR_USAGE,
                             "--without-kernel=%.*s: expected operations of GPUs, as gpu:lrn", (int)length,
                             text);
        const int op = find_op(text + name + 1, length - name - 1);
        if (op == OPS) return unknown_op(text, text + name + 1, error);
        for (int d = 0; d < count; d++)
            if (strcmp(devices[d].backend->name, "gpu") == 0) devices[d].without[op] = true;
        text += length + (text[length] == ',');
    }
    return OK;
}
