/* Private to src/program: what a program is made of, and the passes that make it, in their order. */
#ifndef TRAINER_PROGRAM_PARTS_H
#define TRAINER_PROGRAM_PARTS_H

#include <stdatomic.h>
#include "program.h"

/* Where a value lives. The addresses of weights and gradients are arguments of each run. */
enum base { BASE_ARENA, BASE_WEIGHTS, BASE_GRADIENTS, BASE_CONSTANT };

struct place {
    enum base base;
    size_t offset;        /* bytes from the base; of a constant: 0 */
    const void *constant; /* BASE_CONSTANT: the graph's own copy, else NULL */
};

/* A node of the graph as the program sees it. */
struct value {
    struct node_info info; /* the graph's, until fusion changes operation, attributes and operands */
    bool kept;             /* needed by a fetch and not fused away */
    bool fetched;
    int readers;        /* operands of kept nodes that are this value */
    node root;          /* whose storage it is: its own number, or that of the value it is another view of */
    struct place place; /* of roots */
    int last;           /* the last instruction that reads it; of roots; FOREVER: it outlives the run */
};
enum { FOREVER = 1 << 30 };

/* A kernel's call to come. */
struct instruction {
    node n;
    struct problem problem;
    const struct kernel *kernel;
    void *plan;
    bool shared;            /* the plan is its device's (plans.h) */
    int formed[MAX_INPUTS]; /* of operands that are ready (problem.ready): which of the program's forms */
};

/* Weights in another form than their own, made at the beginning of each run (bring.c). */
struct formed {
    node root;
    struct form form;
    size_t offset; /* bytes in the arena */
};

struct program {
    const struct graph *graph;   /* borrowed */
    const struct device *device; /* borrowed */
    struct value *values;        /* [count], by node */
    int count;
    struct instruction *instructions; /* [instruction_count], in the order of their nodes */
    int instruction_count;
    struct formed *formed; /* [formed_count] */
    int formed_count;
    size_t arena_bytes;
    bool soft;    /* what its device has no kernel for runs on the CPU (soft.c) */
    bool assigns; /* a kept node writes a variable */
    bool needs_weights, needs_gradients;
};

static inline bool is_source(enum op op) {
    return op == OP_placeholder || op == OP_constant || op == OP_variable;
}
static inline bool is_transfer(enum op op) {
    return op == OP_send || op == OP_receive;
}
/* Written from outside at any time: its memory is never shared with another value. */
static inline bool is_fed(enum op op) {
    return op == OP_placeholder || op == OP_receive;
}
static inline bool is_assign(enum op op) {
    return op == OP_assign || op == OP_assign_add;
}

/* A program without instructions yet: device, and the graph's nodes as values. */
int program_open(struct program **out, const struct graph *graph, const struct device *device,
                 struct error *error);
int program_check_fetches(const struct graph *graph, const node *fetches, int count, struct error *error);

void program_prune(struct program *program, const node *fetches, int count); /* prune.c */
void program_fuse(struct program *program);                                  /* fuse.c */
int program_place(struct program *program, struct error *error);  /* place.c: base, views, gradients */
int program_lower(struct program *program, struct error *error);  /* lower.c: which values are kept in bf16 */
int program_choose(struct program *program, struct error *error); /* choose.c: instructions and kernels */
int program_plan(struct program *program, struct error *error);   /* plan.c: the arena */
int program_bring(struct program *program, struct error *error);  /* bring.c: weights in other forms */

/* choose.c: whether a kernel of the program's device takes the node: OK, KERNEL_DECLINED or an error; and the
 * words for it. */
int program_takes(const struct program *program, node n, struct error *error);
int program_no_kernel(const struct program *program, node n, struct error *error);

void program_release(const struct instruction *instruction); /* choose.c: its plan */

/* transfer.c: the kernels of send and receive, which are the same on every device; ended by NULL. */
const struct kernel *const *program_transfers(enum op op);

/* The kernels of operations that a program runs itself, all but transfers on a CPU alone; ended by NULL. Of
 * all others NULL. */
const struct kernel *const *program_own_kernels(enum op op);                                   /* choose.c */
extern const struct kernel program_while, program_while_grad, program_cond, program_cond_grad; /* control.c */
extern const struct kernel program_enqueue, program_dequeue;                                   /* queue.c */
extern const struct kernel program_custom;                                                     /* custom.c */
/* Their `prepare`, or its beginning: declines a device with memory of its own. */
int program_here(const struct problem *problem, void **plan, struct error *error); /* choose.c */

/* soft.c: an operation without a kernel on its device, on the CPU; tried last. */
extern const struct kernel program_soft_kernel;

/* bring.c: makes these forms of such weights in an arena's memory, queued. */
int program_make_forms(const struct program *program, const float *weights, char *memory,
                       struct error *error);

/* run.c: the call of node n's instruction in an arena. */
struct call *arena_call(const struct arena *arena, node n);

/* run.c: runs the instructions of nodes [begin, end), as program_run runs all; *at: the one that it has come
 * to. */
int program_run_nodes(const struct program *program, struct arena *arena, node begin, node end,
                      float *weights, float *gradients, _Atomic int *at, struct error *error);

#endif
