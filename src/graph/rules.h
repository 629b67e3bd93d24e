/* Private to src/graph: the table of operations made from ops.def, and how a node is added to a graph. */
#ifndef TRAINER_GRAPH_RULES_H
#define TRAINER_GRAPH_RULES_H

#include "graph.h"

/* One node on the way back: given the gradient dy of the loss with respect to the node's value, a gradient
 * rule adds nodes that compute the gradient with respect to those operands that are wanted, and names them in
 * dx. */
struct backward {
    struct graph *g;
    node y, dy;
    node x[MAX_INPUTS];      /* operands of y */
    bool wanted[MAX_INPUTS]; /* others may be left NONE */
    node dx[MAX_INPUTS];     /* the result; of the operand's shape; all NONE before */
};

enum { VARIES = -1 };

struct operation {
    const char *name;
    int inputs; /* or VARIES */
    /* Sets type and shape of a node whose operation, attributes and operands are there, and puts its
     * attributes in normal form (no negative axis, no size of -1). Returns OK, or the mistake's code after
     * remembering it in the graph. */
    int (*shape)(struct graph *g, struct node_info *n);
    void (*gradient)(struct backward *b); /* NULL: none */
};

extern const struct operation operations[OPS];

/* Appends a node with these operation, type (of sources and casts), attributes and operands; the rest follows
 * from its shape rule. After a mistake: NONE. */
node graph_make(struct graph *g, const struct node_info *wanted);

/* The same of one operand or two, without attributes. */
static inline node graph_unary(struct graph *g, enum op op, node x) {
    return graph_make(g, &(struct node_info){.op = op, .inputs = 1, .input = {x}});
}
static inline node graph_binary(struct graph *g, enum op op, node a, node b) {
    return graph_make(g, &(struct node_info){.op = op, .inputs = 2, .input = {a, b}});
}

/* Remembers a mistake (the first one counts); returns its code. */
__attribute__((format(printf, 2, 3))) int graph_mistake(struct graph *g, const char *format, ...);

/* A shape as text, for the length of one expression. */
struct shape_words {
    char text[96];
};
static inline struct shape_words shape_words(const struct shape *shape) {
    struct shape_words words;
    shape_text(shape, words.text, sizeof words.text);
    return words;
}
#define TEXT(shape) (shape_words(shape).text)

/* The shape that both broadcast to as in NumPy: aligned at the last axis, equal or 1. False when there is
 * none. */
bool shape_common(const struct shape *a, const struct shape *b, struct shape *out);

/* For shape rules: operand i of a node, and checks of it that remember a mistake and return its code. */
const struct node_info *operand(const struct graph *g, const struct node_info *n, int i);
const struct shape *operand_shape(const struct graph *g, const struct node_info *n, int i);
int expect_type(struct graph *g, const struct node_info *n, int i, enum type type);
int expect_shape(struct graph *g, const struct node_info *n, int i, const struct shape *shape);
int expect_rank(struct graph *g, const struct node_info *n, int i, int rank);
/* *axis from 0 to rank-1, counted from the end when negative. */
int expect_axis(struct graph *g, const struct node_info *n, int rank, int *axis);
/* At most MAX_RANK dimensions, each 1 to DIMENSION_MOST, so that a few can be added, and no more elements
 * than can be counted in bytes. */
enum { DIMENSION_MOST = 1 << 30 };
int expect_valid(struct graph *g, const struct node_info *n, const struct shape *shape);

/* For calls: the shape of a node with so many dimensions; NULL after a mistake, which is remembered. */
const struct shape *expect_dims(struct graph *g, const char *what, node x, int least, int most);

/* For calls that make variables: what they are called after, "<name>/...", or "<usual><number>/...". */
struct layer_names {
    const char *name; /* NULL: it has none of its own */
    const char *usual;
    int number;
};
node layer_variable(struct graph *g, const struct layer_names *names, const char *what, struct shape shape,
                    struct initial initial);
/* Kernel of that shape, and bias of `out` outputs, or NONE. */
void layer_weights(struct graph *g, const struct layer_names *names, struct shape shape, int out,
                   const struct weights *weights, node *kernel, node *bias);
/* y, with the bias if there is one. */
node layer_biased(struct graph *g, node y, node bias);

/* For gradient rules. A shape and attributes are copies: a node that is made may move all others. */
struct shape shape_of(const struct graph *g, node n); /* of NONE: a scalar's */
struct attributes backward_attributes(const struct backward *b);
/* A node that reads two others, with the attributes of y. */
node backward_node(struct backward *b, enum op op, node first, node second);
/* dy times a number. */
node backward_scale(struct graph *g, node dy, float factor);
/* Sets the gradient of operand i to dx, summed over the axes along which the operand was broadcast. */
void backward_give(struct backward *b, int i, node dx);

/* `none`: such rows have no function. */
#define OP(name, inputs, rule, gradient, ...)                                                                \
    int shape_##rule(struct graph *g, struct node_info *n);                                                  \
    void gradient_##gradient(struct backward *b);
#include "ops.def"
#define gradient_none NULL

#endif
