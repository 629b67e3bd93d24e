/* Embedding: numbers that stand for things, each replaced by a row of a table that is learnt. */
#include "rules.h"

static int expect_table(struct graph *g, const struct node_info *n, const struct shape *table) {
    if (table->rank == 2) return OK;
    return graph_mistake(g, "%s: a table of %s, expected [vocabulary, units]", op_name(n->op), TEXT(table));
}

/* *y: a row of the table for each number of x. */
static int embedded(struct graph *g, const struct node_info *n, const struct shape *table, struct shape *y) {
    const struct shape *x = operand_shape(g, n, 0);
    RETURN_IF(expect_table(g, n, table));
    for (int i = 0; i < 2; i++) RETURN_IF(expect_type(g, n, i, TYPE_FLOAT));
    if (x->rank == MAX_RANK)
        return graph_mistake(g, "%s: numbers of %s, expected at most %d dimensions", op_name(n->op), TEXT(x),
                             MAX_RANK - 1);
    *y = *x;
    y->dims[y->rank++] = table->dims[1];
    return expect_valid(g, n, y);
}

int shape_embedding(struct graph *g, struct node_info *n) {
    n->type = TYPE_FLOAT;
    return embedded(g, n, operand_shape(g, n, 1), &n->shape);
}

int shape_embedding_grad(struct graph *g, struct node_info *n) {
    struct shape y;
    RETURN_IF(shape_attribute(g, n));
    n->type = TYPE_FLOAT;
    RETURN_IF(embedded(g, n, &n->shape, &y));
    return expect_shape(g, n, 1, &y);
}

node graph_embedding_of(struct graph *g, node x, int vocabulary, int units, const struct weights *weights) {
    if (g->error.code != OK) return NONE;
    const struct layer_names names = {weights->name, "embedding", weights->name ? 0 : ++g->embeddings};
    const struct weights table = {.kernel = weights->kernel, .no_bias = true, .decay = weights->decay};
    node kernel, bias;
    layer_weights(g, &names, SHAPE(vocabulary, units), units, &table, &kernel, &bias);
    return graph_binary(g, OP_embedding, x, kernel);
}

void gradient_embedding(struct backward *b) {
    struct node_info info = {.op = OP_embedding_grad, .inputs = 2, .input = {b->x[0], b->dy}};
    info.attributes.shape = shape_of(b->g, b->x[1]);
    if (b->wanted[1]) b->dx[1] = graph_make(b->g, &info);
}
