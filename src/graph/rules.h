/* Private to src/graph: the table of operations made from ops.def, and how a node comes into a graph. */
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
/* At most MAX_RANK dimensions, each at least 1, and no more elements than can be counted in bytes. */
int expect_valid(struct graph *g, const struct node_info *n, const struct shape *shape);

#define OP(name, inputs, rule, ...) int shape_##rule(struct graph *g, struct node_info *n);
#include "ops.def"
#undef OP

/* The row that says `none` has no function. */
#define gradient_none NULL
void gradient_add(struct backward *b);
void gradient_sub(struct backward *b);
void gradient_mul(struct backward *b);
void gradient_div(struct backward *b);
void gradient_pow(struct backward *b);
void gradient_exp(struct backward *b);
void gradient_log(struct backward *b);
void gradient_relu(struct backward *b);
void gradient_sigmoid(struct backward *b);
void gradient_tanh(struct backward *b);
void gradient_cast(struct backward *b);
void gradient_dropout(struct backward *b);
void gradient_copy(struct backward *b);
void gradient_matmul(struct backward *b);
void gradient_reshape(struct backward *b);
void gradient_transpose(struct backward *b);
void gradient_concat(struct backward *b);
void gradient_slice(struct backward *b);
void gradient_pad(struct backward *b);
void gradient_broadcast_to(struct backward *b);
void gradient_reduce_sum(struct backward *b);
void gradient_reduce_mean(struct backward *b);
void gradient_reduce_max(struct backward *b);
void gradient_conv2d(struct backward *b);
void gradient_maxpool(struct backward *b);
void gradient_lrn(struct backward *b);
void gradient_batch_norm(struct backward *b);
void gradient_softmax(struct backward *b);
void gradient_cross_entropy(struct backward *b);
void gradient_softmax_cross_entropy(struct backward *b);

#endif
