/* Batch normalisation: shape rules, call and gradient. */
#include "rules.h"

/* Channels of a value whose last axis they are. */
static int expect_channels(struct graph *g, const struct node_info *n, int *channels) {
    const struct shape *x = operand_shape(g, n, 0);
    RETURN_IF(expect_type(g, n, 0, TYPE_FLOAT));
    if (x->rank < 2)
        return graph_mistake(g, "%s: operand 1 is %s, expected 2 or more dimensions", op_name(n->op),
                             TEXT(x));
    *channels = x->dims[x->rank - 1];
    return OK;
}

/* Operand i: float, of that shape. */
static int expect_floats(struct graph *g, const struct node_info *n, int i, const struct shape *shape) {
    RETURN_IF(expect_type(g, n, i, TYPE_FLOAT));
    return expect_shape(g, n, i, shape);
}

int shape_moments(struct graph *g, struct node_info *n) {
    int channels = 1;
    RETURN_IF(expect_channels(g, n, &channels));
    n->type = TYPE_FLOAT;
    n->shape = SHAPE(2, channels);
    return OK;
}

int shape_batch_norm(struct graph *g, struct node_info *n) {
    int channels = 1;
    RETURN_IF(expect_channels(g, n, &channels));
    if (!(n->attributes.epsilon > 0.0f))
        return graph_mistake(g, "batch_norm: epsilon %g, expected more than 0",
                             (double)n->attributes.epsilon);
    RETURN_IF(expect_floats(g, n, 1, &SHAPE(2, channels)));
    for (int i = 2; i < 4; i++) RETURN_IF(expect_floats(g, n, i, &SHAPE(channels)));
    n->type = TYPE_FLOAT;
    n->shape = *operand_shape(g, n, 0);
    return OK;
}

int shape_batch_norm_sums(struct graph *g, struct node_info *n) {
    int channels = 1;
    RETURN_IF(expect_channels(g, n, &channels));
    RETURN_IF(expect_floats(g, n, 1, &SHAPE(2, channels)));
    RETURN_IF(expect_floats(g, n, 2, operand_shape(g, n, 0)));
    n->type = TYPE_FLOAT;
    n->shape = SHAPE(2, channels);
    return OK;
}

int shape_batch_norm_grad(struct graph *g, struct node_info *n) {
    int channels = 1;
    RETURN_IF(expect_channels(g, n, &channels));
    RETURN_IF(expect_floats(g, n, 1, &SHAPE(2, channels)));
    RETURN_IF(expect_floats(g, n, 2, &SHAPE(channels)));
    RETURN_IF(expect_floats(g, n, 3, &SHAPE(2, channels)));
    n->type = TYPE_FLOAT;
    n->shape = *operand_shape(g, n, 0);
    return expect_floats(g, n, 4, &n->shape);
}

/* --- the call --- */

/* Of so many channels, all of one value. */
static node norm_variable(struct graph *g, const struct layer_names *names, const char *what, int channels,
                          float value) {
    return layer_variable(g, names, what, SHAPE(channels),
                          (struct initial){.kind = INITIAL_CONSTANT, .value = value});
}

static bool is_frozen(const struct graph *g, node variable) {
    return variable != NONE && g->layout.ranges[g->nodes[variable].attributes.variable].kind == RANGE_FROZEN;
}

/* In training, by statistics that do not move: from operations that have gradients of their own. */
static node norm_by_frozen(struct graph *g, node x, node scale, node shift, node mean, node variance,
                           float epsilon) {
    const node inverse =
        graph_pow(g, graph_add(g, variance, graph_scalar(g, epsilon)), graph_scalar(g, -0.5f));
    return graph_add(g, graph_mul(g, graph_sub(g, x, mean), graph_mul(g, inverse, scale)), shift);
}

/* The mean and the variance as one value; in training those of x, which the statistics follow. */
static node norm_moments(struct graph *g, node x, node mean, node variance, int channels, float momentum) {
    const node statistics[] = {mean, variance};
    const struct shape row = SHAPE(1, channels);
    if (!g->training) {
        for (int i = 0; i < 2 && g->error.code == OK; i++)
            if (!is_frozen(g, statistics[i]))
                g->layout.ranges[g->nodes[statistics[i]].attributes.variable].kind = RANGE_STATISTIC;
        return graph_concat(g, (node[]){graph_reshape(g, mean, row), graph_reshape(g, variance, row)}, 2, 0);
    }
    const node moments = graph_unary(g, OP_moments, x);
    for (int i = 0; i < 2; i++)
        graph_statistic(g, statistics[i],
                        graph_reshape(g, graph_slice(g, moments, (int[]){i, 0}, row), SHAPE(channels)),
                        momentum);
    return moments;
}

node graph_batch_norm(struct graph *g, node x, float momentum, float epsilon) {
    return graph_batch_norm_of(g, x, NULL, momentum, epsilon);
}

node graph_batch_norm_of(struct graph *g, node x, const char *name, float momentum, float epsilon) {
    const struct shape *shape = expect_dims(g, "batch_norm", x, 2, MAX_RANK);
    if (!shape) return NONE;
    const int channels = shape->dims[shape->rank - 1];
    const struct layer_names names = {name, "norm", name ? 0 : ++g->norms};
    const node scale = norm_variable(g, &names, "scale", channels, 1.0f);
    const node shift = norm_variable(g, &names, "shift", channels, 0.0f);
    const node mean = norm_variable(g, &names, "mean", channels, 0.0f);
    const node variance = norm_variable(g, &names, "variance", channels, 1.0f);
    if (g->training && is_frozen(g, mean) && is_frozen(g, variance))
        return norm_by_frozen(g, x, scale, shift, mean, variance, epsilon);
    const node moments = norm_moments(g, x, mean, variance, channels, momentum);
    struct node_info info = {.op = OP_batch_norm, .inputs = 4, .input = {x, moments, scale, shift}};
    info.attributes.epsilon = epsilon;
    info.attributes.momentum = momentum;
    return graph_make(g, &info);
}

/* --- the gradient --- */

/* Row i of a value [2, channels]. */
static node row_of(struct graph *g, node rows, int i) {
    const int channels = rows == NONE ? 1 : g->nodes[rows].shape.dims[1];
    return graph_reshape(g, graph_slice(g, rows, (int[]){i, 0}, SHAPE(1, channels)), SHAPE(channels));
}

/* The moments are those of x and move with it, so all of x's gradient is said here; they pass on none. */
void gradient_batch_norm(struct backward *b) {
    struct graph *g = b->g;
    const struct attributes attributes = backward_attributes(b);
    const node x = b->x[0], moments = b->x[1];
    if (g->nodes[moments].op != OP_moments || g->nodes[moments].input[0] != x) {
        graph_mistake(g, "batch_norm: its gradients need the moments of what it normalises");
        return;
    }
    const node sums = graph_make(g, &(struct node_info){.op = OP_batch_norm_sums,
                                                        .inputs = 3,
                                                        .input = {x, moments, b->dy},
                                                        .attributes = attributes});
    if (b->wanted[0])
        b->dx[0] = graph_make(g, &(struct node_info){.op = OP_batch_norm_grad,
                                                     .inputs = 5,
                                                     .input = {x, moments, b->x[2], sums, b->dy},
                                                     .attributes = attributes});
    if (b->wanted[2]) b->dx[2] = row_of(g, sums, 1);
    if (b->wanted[3]) b->dx[3] = row_of(g, sums, 0);
}
