/* The plan of the arena: values whose lives do not overlap share memory.
 *
 * A value lives from the instruction that computes it to the last instruction that reads it; placeholders,
 * fetches and values from another device live for the whole run. Instructions are visited in order; each
 * result takes the smallest hole that is large enough, else the arena grows. Every value starts on a cache
 * line. */
#include "../base/memory.h"
#include "passes.h"

struct hole {
    size_t offset, bytes;
};

struct planner {
    struct hole *holes; /* [count] by offset, never touching each other */
    int count;
    size_t end; /* of the arena so far */
};

static size_t bytes_of(const struct value *value) {
    const size_t bytes = shape_count(&value->info.shape) * type_bytes(value->info.type);
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static void drop_hole(struct planner *planner, int i) {
    for (planner->count--; i < planner->count; i++) planner->holes[i] = planner->holes[i + 1];
}

static size_t take(struct planner *planner, size_t bytes) {
    int best = -1;
    for (int i = 0; i < planner->count; i++)
        if (planner->holes[i].bytes >= bytes &&
            (best < 0 || planner->holes[i].bytes < planner->holes[best].bytes))
            best = i;
    if (best >= 0) {
        struct hole *hole = &planner->holes[best];
        const size_t offset = hole->offset;
        hole->offset += bytes;
        hole->bytes -= bytes;
        if (hole->bytes == 0) drop_hole(planner, best);
        return offset;
    }
    size_t offset = planner->end;
    const int last = planner->count - 1;
    if (last >= 0 && planner->holes[last].offset + planner->holes[last].bytes == planner->end) {
        offset = planner->holes[last].offset; /* the hole at the end grows */
        planner->count--;
    }
    planner->end = offset + bytes;
    return offset;
}

static void give(struct planner *planner, size_t offset, size_t bytes) {
    int at = 0;
    while (at < planner->count && planner->holes[at].offset < offset) at++;
    for (int i = planner->count++; i > at; i--) planner->holes[i] = planner->holes[i - 1];
    planner->holes[at] = (struct hole){offset, bytes};
    if (at + 1 < planner->count && offset + bytes == planner->holes[at + 1].offset) {
        planner->holes[at].bytes += planner->holes[at + 1].bytes;
        drop_hole(planner, at + 1);
    }
    if (at > 0 && planner->holes[at - 1].offset + planner->holes[at - 1].bytes == offset) {
        planner->holes[at - 1].bytes += planner->holes[at].bytes;
        drop_hole(planner, at);
    }
}

/* The root of operand i of an instruction. */
static struct value *operand_root(struct program *program, const struct instruction *instruction, int i) {
    return &program->values[program->values[program->values[instruction->n].info.input[i]].root];
}

static void find_lives(struct program *program) {
    for (int s = 0; s < program->instruction_count; s++)
        for (int i = 0; i < program->instructions[s].problem.inputs; i++)
            operand_root(program, &program->instructions[s], i)->last = s;
    for (node n = 0; n < program->count; n++) {
        struct value *value = &program->values[n];
        if (value->kept && (value->fetched || is_fed(value->info.op)))
            program->values[value->root].last = FOREVER;
    }
}

int program_plan(struct program *program, struct error *error) {
    struct planner planner = {0};
    RETURN_IF(memory_array(&planner.holes, (size_t)program->instruction_count + 1, "plan", error));
    find_lives(program);
    for (node n = 0; n < program->count; n++) {
        struct value *value = &program->values[n];
        if (value->kept && is_fed(value->info.op)) value->place.offset = take(&planner, bytes_of(value));
    }
    for (int s = 0; s < program->instruction_count; s++) {
        struct value *value = &program->values[program->instructions[s].n];
        if (value->place.base == BASE_ARENA && !is_fed(value->info.op))
            value->place.offset = take(&planner, bytes_of(value));
        for (int i = 0; i < program->instructions[s].problem.inputs; i++) {
            struct value *operand = operand_root(program, &program->instructions[s], i);
            if (operand->place.base != BASE_ARENA || operand->last != s) continue;
            give(&planner, operand->place.offset, bytes_of(operand));
            operand->last = -1; /* given back once, also when it is two operands */
        }
    }
    program->arena_bytes = planner.end;
    memory_free(planner.holes);
    return OK;
}
