/* Control flow: loops and conditions as operations. Both are functional: what they repeat or choose between
 * are graphs of their own, which see nothing but the values handed to them, and give values back. So they are
 * differentiated like anything else.
 *
 * Several values are packed into one vector for the operation, and unpacked behind it; all are float32. */
#ifndef TRAINER_GRAPH_CONTROL_H
#define TRAINER_GRAPH_CONTROL_H

#include "graph.h"

/* A graph from one vector to one value. */
struct branch {
    struct graph graph;
    node in;  /* placeholder [n] */
    node out; /* [m]; of a condition: bool, scalar */
    /* Made when it is differentiated; else NONE. */
    node dy;       /* placeholder [m] */
    node gradient; /* [n] of the sum of out times dy */
};

/* What a node of `while` or `cond` runs. */
enum { WHILE_CONDITION, WHILE_BODY, COND_FALSE = 0, COND_TRUE, BRANCHES };
struct inner {
    struct owned owned;
    struct branch branch[BRANCHES];
};

/* Builds a branch in `g` from values in[count]: sets all of out[], as many as its owner says. It may make no
 * variables and no placeholders. */
typedef void graph_build(void *argument, struct graph *g, const node *in, int count, node *out);

/* While condition(state) holds, state = body(state); results[count] are the last state. condition: one bool
 * scalar; body: values of the states' shapes. What the body reads besides is a state that it hands on. More
 * than `limit` rounds are an error of the run (ERROR_USAGE); the gradient keeps the states of so many rounds.
 */
struct loop {
    graph_build *condition, *body;
    void *argument;
    int limit;
};
void graph_while(struct graph *g, const struct loop *loop, const node *states, int count, node *results);

/* results[result_count] of `if_true` or `if_false` on operands[count], of which only one is run. The
 * predicate is a bool scalar. Both give values of the same shapes. */
struct alternatives {
    graph_build *if_true, *if_false;
    void *argument;
};
void graph_cond(struct graph *g, node predicate, const struct alternatives *both, const node *operands,
                int count, node *results, int result_count);

#endif
