/* Pruning: what no fetch needs does not run. Assigns and gradients are nodes like any other: they run if a
 * fetch needs them. */
#include "passes.h"

void program_prune(struct program *program, const node *fetches, int count) {
    for (int i = 0; i < count; i++)
        program->values[fetches[i]].fetched = program->values[fetches[i]].kept = true;
    for (node n = program->count - 1; n >= 0; n--) { /* operands are older than their readers */
        const struct value *value = &program->values[n];
        if (!value->kept) continue;
        if (is_assign(value->info.op)) program->assigns = true;
        for (int i = 0; i < value->info.inputs; i++) {
            struct value *operand = &program->values[value->info.input[i]];
            operand->kept = true;
            operand->readers++;
        }
    }
}
