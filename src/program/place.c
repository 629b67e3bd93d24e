/* Placement: the slab that each value lives in. Constants stay where the graph keeps them, variables are
 * read in the weights, a fetched gradient is computed straight into the gradients, a reshape is another
 * view of its operand; all else goes to the arena. */
#include "../base/memory.h"
#include "passes.h"

static size_t range_offset(const struct program *program, int range) {
    return program->graph->layout.ranges[range].begin * sizeof(float);
}

static void place_value(struct program *program, struct value *value) {
    const struct node_info *info = &value->info;
    if (info->op == OP_constant) {
        value->place = (struct place){.base = BASE_CONSTANT, .constant = info->constant};
    } else if (info->op == OP_variable || is_assign(info->op)) {
        value->place = (struct place){BASE_WEIGHTS, range_offset(program, info->attributes.variable), NULL};
        program->needs_weights = true;
    } else if (info->gradient_of >= 0 && value->fetched) {
        value->place = (struct place){BASE_GRADIENTS, range_offset(program, info->gradient_of), NULL};
        program->needs_gradients = true;
    } else {
        value->place = (struct place){.base = BASE_ARENA};
    }
}

/* A reshape moves nothing, unless its value has to be somewhere else than its operand's: a fetch must be
 * found in the arena or in the gradients, and a variable that an assign may change in the meantime is copied.
 */
static bool is_view(const struct program *program, const struct value *value) {
    if (value->info.op != OP_reshape || value->place.base != BASE_ARENA) return false;
    const enum base base = program->values[program->values[value->info.input[0]].root].place.base;
    if (base == BASE_ARENA) return true;
    return !value->fetched && !(base == BASE_WEIGHTS && program->assigns);
}

/* Two gradients of one range would be written over each other. */
static int check_gradients(const struct program *program, struct error *error) {
    const int ranges = program->graph->layout.count;
    bool *seen = NULL;
    RETURN_IF(memory_array(&seen, ranges, "ranges", error));
    int code = OK;
    for (node n = 0; n < program->count && code == OK; n++) {
        const int range = program->values[n].info.gradient_of;
        if (range < 0 || !program->values[n].fetched) continue;
        if (seen[range])
            code = error_set(error, ERROR_USAGE, "two fetches are gradients of %s, expected one",
                             program->graph->layout.ranges[range].name);
        seen[range] = true;
    }
    memory_free(seen);
    return code;
}

int program_place(struct program *program, struct error *error) {
    for (node n = 0; n < program->count; n++) {
        struct value *value = &program->values[n];
        if (!value->kept) continue;
        place_value(program, value);
        if (is_view(program, value)) value->root = program->values[value->info.input[0]].root;
    }
    return check_gradients(program, error);
}
