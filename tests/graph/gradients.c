/* Gradients: of every operation that has one, against central finite differences; then what the gradient
 * graph itself promises.
 *
 * A case builds y from variables. The loss is the sum of y times fixed random numbers; its gradient by the
 * graph is compared with differences of the same loss, summed in double. The walk over ops.def fails when an
 * operation with a gradient has no case. */
#include "../../src/graph/control.h"
#include "../../src/graph/custom.h"
#include "../../src/graph/rules.h"
#include "../elementwise.h"
#include "../reference_device.h"

enum { CASE_VARIABLES = 3, LOSS_FLOATS = 512 };

struct gradient_case {
    enum op op;                                    /* that must be in what build makes */
    node (*build)(struct graph *g, const node *v); /* NULL: op of all variables */
    float least, most;                   /* of the variables' values; both signs are drawn when least is 0 */
    struct shape shapes[CASE_VARIABLES]; /* of the variables; rank -1: none */
};
#define NO_SHAPE                                                                                             \
    { .rank = -1 }

static node build_square(struct graph *g, const node *v) {
    return graph_mul(g, v[0], v[0]);
}
static node build_cast(struct graph *g, const node *v) {
    return graph_mul(g, v[0], graph_cast(g, v[0], TYPE_FLOAT));
}
static node build_dropout(struct graph *g, const node *v) {
    return graph_dropout(g, graph_mul(g, v[0], v[0]), 0.4f);
}
static node build_copy(struct graph *g, const node *v) {
    return graph_mul(g, v[0],
                     graph_make(g, &(struct node_info){.op = OP_copy, .inputs = 1, .input = {v[0]}}));
}
static node build_matmul(struct graph *g, const node *v) {
    return graph_matmul(g, v[0], v[1], false, false);
}
static node build_matmul_a(struct graph *g, const node *v) {
    return graph_matmul(g, v[0], v[1], true, false);
}
static node build_matmul_b(struct graph *g, const node *v) {
    return graph_matmul(g, v[0], v[1], false, true);
}
static node build_matmul_ab(struct graph *g, const node *v) {
    return graph_matmul(g, v[0], v[1], true, true);
}
static node build_gram(struct graph *g, const node *v) {
    return graph_matmul(g, v[0], v[0], true, false);
}
static node build_dense(struct graph *g, const node *v) {
    return graph_sigmoid(g, graph_add(g, graph_matmul(g, v[0], v[1], false, false), v[2]));
}
static node build_reshape(struct graph *g, const node *v) {
    return graph_mul(g, graph_reshape(g, v[0], SHAPE(-1, 7)), graph_reshape(g, v[0], SHAPE(1, 3, 7)));
}
static node build_transpose(struct graph *g, const node *v) {
    return graph_transpose(g, v[0], (int[]){2, 0, 1});
}
static node build_concat(struct graph *g, const node *v) {
    return graph_concat(g, v, 3, 1);
}
static node build_concat_some(struct graph *g, const node *v) {
    return graph_concat(g, (node[]){v[0], graph_constant(g, SHAPE(1, 3), (float[]){1, 2, 3}), v[0]}, 3, 0);
}
static node build_slice(struct graph *g, const node *v) {
    return graph_mul(g, graph_slice(g, v[0], (int[]){1, 0, 2}, SHAPE(1, -1, 2)),
                     graph_slice(g, v[0], (int[]){0, 0, 1}, SHAPE(1, -1, 2)));
}
static node build_pad(struct graph *g, const node *v) {
    struct node_info info = {.op = OP_pad, .inputs = 1, .input = {v[0]}};
    info.attributes.shape = SHAPE(4, 5);
    info.attributes.begin[0] = 1;
    info.attributes.begin[1] = 2;
    return graph_make(g, &info);
}
static node build_broadcast(struct graph *g, const node *v) {
    return graph_broadcast(g, v[0], SHAPE(3, 2, 5, 7));
}
static node build_sum(struct graph *g, const node *v) {
    return graph_reduce_sum(g, graph_mul(g, v[0], v[0]), 1, false);
}
static node build_sum_kept(struct graph *g, const node *v) {
    return graph_mul(g, v[0], graph_reduce_sum(g, v[0], 0, true));
}
static node build_sum_all(struct graph *g, const node *v) {
    return graph_mul(g, v[0], graph_reduce_sum(g, v[0], ALL_AXES, false));
}
static node build_mean(struct graph *g, const node *v) {
    return graph_mul(g, v[0], graph_reduce_mean(g, v[0], -1, true));
}
static node build_mean_all(struct graph *g, const node *v) {
    return graph_reduce_mean(g, graph_mul(g, v[0], v[0]), ALL_AXES, false);
}
static node build_max(struct graph *g, const node *v) {
    return graph_reduce_max(g, v[0], 1, false);
}
static node build_max_kept(struct graph *g, const node *v) {
    return graph_mul(g, v[0], graph_reduce_max(g, v[0], 0, true));
}
static node build_max_all(struct graph *g, const node *v) {
    return graph_reduce_max(g, v[0], ALL_AXES, false);
}
static node build_conv_same(struct graph *g, const node *v) {
    return graph_conv2d(g, v[0], v[1], 1, PADDING_SAME);
}
static node build_conv_valid(struct graph *g, const node *v) {
    return graph_conv2d(g, v[0], v[1], 2, PADDING_VALID);
}
static node build_conv_same_strided(struct graph *g, const node *v) {
    return graph_conv2d(g, v[0], v[1], 2, PADDING_SAME);
}
static node build_conv_layer(struct graph *g, const node *v) {
    return graph_tanh(g, graph_add(g, graph_conv2d(g, v[0], v[1], 1, PADDING_SAME), v[2]));
}
static node build_conv_twice(struct graph *g, const node *v) {
    return graph_conv2d(g, graph_conv2d(g, v[0], v[1], 1, PADDING_SAME), v[1], 1, PADDING_VALID);
}
static node build_maxpool(struct graph *g, const node *v) {
    return graph_maxpool(g, v[0], 3, 2, PADDING_SAME);
}
static node build_maxpool_valid(struct graph *g, const node *v) {
    return graph_maxpool(g, v[0], 2, 2, PADDING_VALID);
}
static node build_avgpool(struct graph *g, const node *v) {
    return graph_avgpool(g, graph_mul(g, v[0], v[0]), &(struct pooling){{3, 2}, {2, 1}, PADDING_SAME});
}
static node build_maxpool_relu(struct graph *g, const node *v) {
    return graph_maxpool(g, graph_relu(g, graph_add(g, v[0], v[1])), 3, 2, PADDING_SAME);
}
static node build_maxpool_relu_twice(struct graph *g, const node *v) {
    const node x = graph_relu(g, v[0]);
    return graph_concat(g, (node[]){graph_maxpool(g, x, 3, 1, PADDING_SAME), graph_mul(g, x, x)}, 2, 0);
}
static node build_maxpool_beside(struct graph *g, const node *v) {
    return graph_maxpool(g, graph_add(g, graph_relu(g, v[0]), graph_mul(g, v[0], v[0])), 2, 2, PADDING_SAME);
}
static node build_maxpool_shifted(struct graph *g, const node *v) {
    return graph_maxpool(g, graph_add(g, graph_relu(g, v[0]), v[1]), 2, 2, PADDING_SAME);
}
static const struct lrn lrn_tested = {2, 1.5f, 0.4f, 0.75f}, lrn_other = {1, 2.0f, 0.5f, 1.25f};
static node build_lrn(struct graph *g, const node *v) {
    return graph_lrn(g, v[0], lrn_tested);
}
static node build_lrn_shifted(struct graph *g, const node *v) {
    return graph_lrn(g, graph_add(g, graph_relu(g, v[0]), graph_scalar(g, 0.3f)), lrn_tested);
}
static node build_lrn_other(struct graph *g, const node *v) {
    return graph_lrn(g, v[0], lrn_other);
}
static node build_lrn_relu(struct graph *g, const node *v) {
    return graph_lrn(g, graph_relu(g, v[0]), lrn_tested);
}
static node build_batch_norm(struct graph *g, const node *v) {
    const node moments = graph_make(g, &(struct node_info){.op = OP_moments, .inputs = 1, .input = {v[0]}});
    struct node_info info = {.op = OP_batch_norm, .inputs = 4, .input = {v[0], moments, v[1], v[2]}};
    info.attributes.epsilon = 0.1f;
    return graph_make(g, &info);
}
static node build_residual(struct graph *g, const node *v) {
    return graph_relu(g, graph_add(g, v[0], graph_conv2d(g, graph_tanh(g, v[0]), v[1], 1, PADDING_SAME)));
}
static node build_global_average(struct graph *g, const node *v) {
    return graph_global_average(g, graph_mul(g, v[0], v[0]));
}
static node build_padded(struct graph *g, const node *v) {
    return graph_pad(g, v[0], (int[]){0, 1, 2, 0}, (int[]){0, 2, 0, 0});
}
static node build_embedding(struct graph *g, const node *v) {
    const float numbers[] = {3, 0, 3, 1, 3, 0};
    return graph_binary(g, OP_embedding, graph_constant(g, SHAPE(3, 2), numbers), graph_mul(g, v[0], v[0]));
}
static node build_softmax(struct graph *g, const node *v) {
    return graph_softmax(g, v[0]);
}
static const int five_labels[] = {2, 0, 1, 2, 2};
static node build_cross_entropy(struct graph *g, const node *v) {
    return graph_cross_entropy(g, v[0], graph_constant_int(g, SHAPE(5), five_labels));
}
static node build_softmax_cross_entropy(struct graph *g, const node *v) {
    return graph_softmax_cross_entropy(g, v[0], graph_constant_int(g, SHAPE(5), five_labels));
}
static node build_smoothed(struct graph *g, const node *v) {
    return graph_smoothed_cross_entropy(g, v[0], graph_constant_int(g, SHAPE(5), five_labels), 0.3f);
}

static node with_diagonal(struct graph *g, node v) {
    return graph_add(g, v, graph_constant(g, SHAPE(3, 3), (float[]){2, 0, 0, 0, -2, 0, 0, 0, 2}));
}
static node build_inverse(struct graph *g, const node *v) {
    return graph_inverse(g, with_diagonal(g, v[0]));
}
static node build_determinant(struct graph *g, const node *v) {
    return graph_determinant(g, with_diagonal(g, v[0]));
}
static node build_shuffle(struct graph *g, const node *v) {
    return graph_shuffle(g, graph_mul(g, v[0], v[0]));
}

/* Three rounds of x = tanh(w x + x); w and the count are states, too. */
static void three_rounds(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument, (void)count;
    out[0] = graph_less(g, in[2], graph_scalar(g, 3));
}
static void one_round(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument, (void)count;
    out[0] = graph_tanh(g, graph_add(g, graph_mul(g, in[1], in[0]), in[0]));
    out[1] = in[1];
    out[2] = graph_add(g, in[2], graph_scalar(g, 1));
}
static node build_while(struct graph *g, const node *v) {
    const struct loop loop = {three_rounds, one_round, NULL, 3};
    node results[3];
    graph_while(g, &loop, (node[]){v[0], v[1], graph_scalar(g, 0)}, 3, results);
    return results[0];
}

/* A loop within a loop, of one state. */
static void small(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)count;
    out[0] = graph_less(g, graph_reduce_sum(g, graph_mul(g, in[0], in[0]), ALL_AXES, false),
                        graph_scalar(g, *(const float *)argument));
}
static void enlarge(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument, (void)count;
    out[0] = graph_mul(g, in[0], graph_scalar(g, 1.5f));
}
static void enlarge_twice(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument;
    const struct loop inner = {small, enlarge, (float[]){5}, 20};
    const node square = graph_mul(g, in[0], in[0]);
    graph_while(g, &inner, &square, count, out);
}
static node build_while_twice(struct graph *g, const node *v) {
    const struct loop loop = {small, enlarge_twice, (float[]){30}, 20};
    node result;
    graph_while(g, &loop, v, 1, &result);
    return result;
}

/* Where a sum of constants is above 0, x y, else x / y: one of each kind. */
static void product(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument, (void)count;
    out[0] = graph_mul(g, in[0], in[1]);
    out[1] = graph_mul(g, in[0], in[0]);
}
static void quotient(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument, (void)count;
    out[0] = graph_div(g, in[0], in[1]);
    out[1] = in[0];
}
static node build_cond(struct graph *g, const node *v) {
    const struct alternatives both = {product, quotient, NULL};
    node first[2], second[2];
    graph_cond(g, graph_less(g, graph_scalar(g, 0), graph_scalar(g, 1)), &both, v, 2, first, 2);
    graph_cond(g, graph_less(g, graph_scalar(g, 1), graph_scalar(g, 0)), &both, v, 2, second, 2);
    return graph_add(g, graph_mul(g, first[0], first[1]), graph_add(g, second[0], second[1]));
}

/* a b, without broadcasting. */
static const char *multiply(const void *self, const float *const *operands, const struct shape *shapes,
                            int count, float *result, const struct shape *result_shape) {
    (void)self, (void)shapes, (void)count;
    for (size_t i = 0; i < shape_count(result_shape); i++) result[i] = operands[0][i] * operands[1][i];
    return NULL;
}
static node multiply_back(const void *self, struct graph *g, const node *x, int count, node y, node dy,
                          int i) {
    (void)self, (void)count, (void)y;
    return graph_mul(g, dy, x[1 - i]);
}
static node build_custom(struct graph *g, const node *v) {
    static const struct custom custom = {.name = "multiply", .compute = multiply, .gradient = multiply_back};
    return graph_custom(g, &custom, v, 2);
}

static const struct gradient_case cases[] = {
    {OP_mul, build_square, 0, 1, {{1, {17}}, NO_SHAPE, NO_SHAPE}},
    {OP_cast, build_cast, 0, 1, {{1, {7}}, NO_SHAPE, NO_SHAPE}},
    {OP_dropout, build_dropout, 0, 1, {{2, {7, 5}}, NO_SHAPE, NO_SHAPE}},
    {OP_copy, build_copy, 0, 1, {{1, {7}}, NO_SHAPE, NO_SHAPE}},
    {OP_matmul, build_matmul, 0, 1, {{2, {3, 7}}, {2, {7, 5}}, NO_SHAPE}},
    {OP_matmul, build_matmul, 0, 1, {{2, {1, 1}}, {2, {1, 5}}, NO_SHAPE}},
    {OP_matmul, build_matmul_a, 0, 1, {{2, {7, 3}}, {2, {7, 5}}, NO_SHAPE}},
    {OP_matmul, build_matmul_b, 0, 1, {{2, {3, 7}}, {2, {5, 7}}, NO_SHAPE}},
    {OP_matmul, build_matmul_ab, 0, 1, {{2, {7, 3}}, {2, {5, 7}}, NO_SHAPE}},
    {OP_matmul, build_gram, 0, 1, {{2, {3, 5}}, NO_SHAPE, NO_SHAPE}},
    {OP_matmul, build_dense, 0, 1, {{2, {3, 7}}, {2, {7, 5}}, {1, {5}}}},
    {OP_reshape, build_reshape, 0, 1, {{2, {7, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_transpose, build_transpose, 0, 1, {{3, {3, 7, 2}}, NO_SHAPE, NO_SHAPE}},
    {OP_concat, build_concat, 0, 1, {{3, {3, 1, 5}}, {3, {3, 7, 5}}, {3, {3, 2, 5}}}},
    {OP_concat, build_concat_some, 0, 1, {{2, {2, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_slice, build_slice, 0, 1, {{3, {2, 3, 4}}, NO_SHAPE, NO_SHAPE}},
    {OP_pad, build_pad, 0, 1, {{2, {3, 2}}, NO_SHAPE, NO_SHAPE}},
    {OP_broadcast_to, build_broadcast, 0, 1, {{3, {2, 1, 7}}, NO_SHAPE, NO_SHAPE}},
    {OP_broadcast_to, build_broadcast, 0, 1, {{0}, NO_SHAPE, NO_SHAPE}},
    {OP_reduce_sum, build_sum, 0, 1, {{3, {3, 7, 2}}, NO_SHAPE, NO_SHAPE}},
    {OP_reduce_sum, build_sum_kept, 0, 1, {{2, {3, 7}}, NO_SHAPE, NO_SHAPE}},
    {OP_reduce_sum, build_sum_all, 0, 1, {{2, {3, 7}}, NO_SHAPE, NO_SHAPE}},
    {OP_reduce_mean, build_mean, 0, 1, {{3, {3, 7, 2}}, NO_SHAPE, NO_SHAPE}},
    {OP_reduce_mean, build_mean_all, 0, 1, {{2, {3, 7}}, NO_SHAPE, NO_SHAPE}},
    {OP_reduce_max, build_max, 0, 1, {{3, {3, 5, 2}}, NO_SHAPE, NO_SHAPE}},
    {OP_reduce_max, build_max_kept, 0, 1, {{2, {5, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_reduce_max, build_max_all, 0, 1, {{2, {5, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_conv2d, build_conv_same, 0, 1, {{4, {2, 4, 5, 3}}, {4, {3, 3, 3, 2}}, NO_SHAPE}},
    {OP_conv2d, build_conv_same, 0, 1, {{4, {1, 3, 3, 2}}, {4, {4, 2, 2, 3}}, NO_SHAPE}},
    {OP_conv2d, build_conv_valid, 0, 1, {{4, {2, 6, 5, 2}}, {4, {3, 2, 2, 3}}, NO_SHAPE}},
    {OP_conv2d, build_conv_same_strided, 0, 1, {{4, {2, 6, 5, 2}}, {4, {3, 3, 2, 3}}, NO_SHAPE}},
    {OP_conv2d, build_conv_same_strided, 0, 1, {{4, {1, 5, 5, 1}}, {4, {1, 1, 1, 1}}, NO_SHAPE}},
    {OP_conv2d, build_conv_layer, 0, 1, {{4, {2, 3, 3, 2}}, {4, {3, 3, 2, 3}}, {1, {3}}}},
    {OP_conv2d, build_conv_twice, 0, 1, {{4, {1, 5, 4, 2}}, {4, {3, 3, 2, 2}}, NO_SHAPE}},
    {OP_conv2d, build_conv_same, 0, 1, {{4, {1, 4, 5, 3}}, {4, {3, 3, 1, 3}}, NO_SHAPE}},
    {OP_conv2d, build_conv_valid, 0, 1, {{4, {2, 6, 5, 3}}, {4, {3, 2, 1, 6}}, NO_SHAPE}},
    {OP_conv2d, build_conv_same_strided, 0, 1, {{4, {1, 5, 4, 4}}, {4, {3, 3, 2, 6}}, NO_SHAPE}},
    {OP_maxpool, build_maxpool, 0, 1, {{4, {1, 6, 6, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_maxpool, build_maxpool, 0, 1, {{4, {2, 5, 5, 2}}, NO_SHAPE, NO_SHAPE}},
    {OP_maxpool, build_maxpool_valid, 0, 1, {{4, {2, 5, 4, 2}}, NO_SHAPE, NO_SHAPE}},
    {OP_maxpool, build_maxpool_relu, 0, 1, {{4, {2, 5, 5, 2}}, {1, {2}}, NO_SHAPE}},
    {OP_maxpool, build_maxpool_relu_twice, 0, 1, {{4, {1, 5, 5, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_maxpool, build_maxpool_beside, 0, 1, {{4, {1, 4, 4, 2}}, NO_SHAPE, NO_SHAPE}},
    {OP_maxpool, build_maxpool_shifted, 0, 1, {{4, {1, 4, 4, 2}}, {4, {1, 4, 4, 2}}, NO_SHAPE}},
    {OP_avgpool, build_avgpool, 0, 1, {{4, {2, 5, 4, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_relu6, NULL, 0, 8, {{2, {3, 7}}, NO_SHAPE, NO_SHAPE}},
    {OP_hard_sigmoid, NULL, 0, 5, {{2, {3, 7}}, NO_SHAPE, NO_SHAPE}},
    {OP_hard_swish, NULL, 0, 5, {{2, {3, 7}}, NO_SHAPE, NO_SHAPE}},
    {OP_leaky_relu, NULL, 0, 1, {{2, {3, 7}}, {1, {7}}, NO_SHAPE}},
    {OP_elu, NULL, 0, 1, {{2, {3, 7}}, {1, {7}}, NO_SHAPE}},
    {OP_lrn, build_lrn, 0, 1, {{4, {2, 2, 3, 7}}, NO_SHAPE, NO_SHAPE}},
    {OP_lrn, build_lrn, 0, 1, {{1, {3}}, NO_SHAPE, NO_SHAPE}},
    {OP_lrn, build_lrn_other, 0, 1, {{2, {5, 17}}, NO_SHAPE, NO_SHAPE}},
    {OP_lrn, build_lrn_shifted, 0, 1, {{2, {5, 9}}, NO_SHAPE, NO_SHAPE}},
    {OP_lrn, build_lrn_relu, 0, 1, {{2, {5, 9}}, NO_SHAPE, NO_SHAPE}},
    {OP_batch_norm, build_batch_norm, 0, 1, {{4, {2, 3, 2, 3}}, {1, {3}}, {1, {3}}}},
    {OP_batch_norm, build_batch_norm, 0, 1, {{2, {7, 5}}, {1, {5}}, {1, {5}}}},
    {OP_add, build_residual, 0, 1, {{4, {1, 4, 3, 2}}, {4, {3, 3, 2, 2}}, NO_SHAPE}},
    {OP_reduce_mean, build_global_average, 0, 1, {{4, {2, 3, 2, 5}}, NO_SHAPE, NO_SHAPE}},
    {OP_pad, build_padded, 0, 1, {{4, {2, 3, 2, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_embedding, build_embedding, 0, 1, {{2, {4, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_softmax, build_softmax, 0, 2, {{2, {3, 7}}, NO_SHAPE, NO_SHAPE}},
    {OP_softmax, build_softmax, 0, 2, {{3, {2, 3, 5}}, NO_SHAPE, NO_SHAPE}},
    {OP_cross_entropy, build_cross_entropy, 0.2f, 1, {{2, {5, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_softmax_cross_entropy, build_softmax_cross_entropy, 0, 2, {{2, {5, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_softmax_cross_entropy, build_smoothed, 0, 2, {{2, {5, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_inverse, build_inverse, 0, 1, {{2, {3, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_determinant, build_determinant, 0, 1, {{2, {3, 3}}, NO_SHAPE, NO_SHAPE}},
    {OP_shuffle, build_shuffle, 0, 1, {{3, {7, 2, 2}}, NO_SHAPE, NO_SHAPE}},
    {OP_while, build_while, 0, 1, {{2, {2, 3}}, {2, {2, 3}}, NO_SHAPE}},
    {OP_while, build_while_twice, 0.5f, 1, {{1, {3}}, NO_SHAPE, NO_SHAPE}},
    {OP_cond, build_cond, 0.5f, 1, {{2, {2, 3}}, {2, {2, 3}}, NO_SHAPE}},
    {OP_custom, build_custom, 0, 1, {{1, {7}}, {1, {7}}, NO_SHAPE}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Values with a distance of at least 1/32 of the span between any two, and from 0, so that no step of a
 * difference crosses a kink; `shift` is where in its share of the span each one lies. */
static void fill_apart(float *out, size_t count, float least, float most, float shift) {
    for (size_t i = 0; i < count; i++) {
        const float share = ((float)rng_permute(7, (uint32_t)count, (uint32_t)i) + shift) / (float)count;
        out[i] = least > 0.0f ? least + (most - least) * share : most * (2.0f * share - 1.0f);
        if (fabsf(out[i]) < 0.02f) out[i] = 0.02f;
    }
}

static double loss_of(struct session *s, node y, const float *factors) {
    double loss = 0;
    session_run(s);
    for (size_t i = 0; i < shape_count(&s->graph->nodes[y].shape); i++)
        loss += (double)session_float(s, y, i) * (double)factors[i];
    return loss;
}

static bool graph_has(const struct graph *g, enum op op) {
    for (int n = 0; n < g->count; n++)
        if (g->nodes[n].op == op) return true;
    return false;
}

static void check_against_differences(struct session *s, node y, const float *factors,
                                      const struct range *range, const char *what) {
    const double h = 1.0 / 256;
    for (size_t i = 0; i < range->floats; i++) {
        float *weight = s->weights + range->begin + i;
        const float before = *weight;
        session_run(s);
        const double found = s->gradients[range->begin + i];
        *weight = before + (float)h;
        const double above = loss_of(s, y, factors);
        *weight = before - (float)h;
        const double below = loss_of(s, y, factors);
        *weight = before;
        const double want = (above - below) / (2 * h);
        CHECK(fabs(found - want) < 1e-3 * fmax(1, fabs(want)), "%s, %s, element %zu: %g, expected %g", what,
              range->name, i, found, want);
    }
}

/* Without `build` the variables' values lie apart from each other's, too. */
static void check_case(const struct gradient_case *c, int number) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 5);
    node v[CASE_VARIABLES], fetches[CASE_VARIABLES + 1], gradients[CASE_VARIABLES];
    float values[CASE_VARIABLES][LOSS_FLOATS], factors[LOSS_FLOATS];
    int count = 0;
    for (; count < CASE_VARIABLES && c->shapes[count].rank >= 0; count++) {
        const char *const names[] = {"first", "second", "third"};
        fill_apart(values[count], shape_count(&c->shapes[count]), c->least, c->most,
                   c->build || count == 0 ? 0.5f : 0.75f);
        v[count] =
            graph_variable(&g, names[count], c->shapes[count], (struct initial){.values = values[count]});
    }
    struct node_info info = {.op = c->op, .inputs = count};
    memcpy(info.input, v, (size_t)count * sizeof *v);
    const node y = c->build ? c->build(&g, v) : graph_make(&g, &info);
    CHECK(y != NONE, "case %d: %s", number, g.error.words);
    if (y == NONE) {
        graph_close(&g);
        return;
    }
    CHECK(graph_has(&g, c->op), "case %d builds no %s", number, op_name(c->op));
    fill_between(factors, shape_count(&g.nodes[y].shape), 21, -1, 1);
    const node weighted = graph_mul(&g, y, graph_constant(&g, g.nodes[y].shape, factors));
    graph_gradients(&g, graph_reduce_sum(&g, weighted, ALL_AXES, false), v, count, gradients);
    fetches[0] = y;
    for (int i = 0; i < count; i++) {
        CHECK(gradients[i] != NONE, "case %d (%s), variable %d: no gradient", number, op_name(c->op), i);
        if (gradients[i] == NONE) {
            graph_close(&g);
            return;
        }
        CHECK(shape_equal(&g.nodes[gradients[i]].shape, &c->shapes[i]), "case %d (%s), variable %d: shape",
              number, op_name(c->op), i);
        CHECK(g.nodes[gradients[i]].gradient_of == i, "case %d, variable %d: gradient_of %d", number, i,
              g.nodes[gradients[i]].gradient_of);
        fetches[i + 1] = gradients[i];
    }
    session_open(&s, &g, fetches, count + 1);
    if (graph_find(&g, "step") != NONE) session_feed(&s, graph_find(&g, "step"), (int[]){3});
    for (int i = 0; i < count && s.error.code == OK; i++)
        check_against_differences(&s, y, factors, &g.layout.ranges[i], op_name(c->op));
    session_close(&s);
    graph_close(&g);
}

/* Where every formula has a value, and below 0 where it has one there. */
static void check_row(const struct elementwise *row, int number) {
    static const struct shape broadcast[][2] = {{{2, {3, 7}}, {2, {3, 7}}},
                                                {{2, {7, 3}}, {1, {3}}},
                                                {{0}, {4, {2, 3, 1, 5}}},
                                                {{2, {7, 1}}, {2, {1, 3}}},
                                                {{3, {2, 1, 5}}, {4, {3, 1, 2, 5}}}};
    struct gradient_case c = {
        .op = row->op, .least = 0.5f, .most = 2, .shapes = {{2, {2, 7}}, NO_SHAPE, NO_SHAPE}};
    const bool below = row->unary ? isfinite(row->unary(-1)) : takes_ints(row);
    if (row->slope || row->truth || strcmp(row->gradient, "NONE") == 0) return;
    for (size_t p = 0; p < sizeof broadcast / sizeof *broadcast && row->inputs == 2; p++) {
        c.shapes[0] = broadcast[p][0];
        c.shapes[1] = broadcast[p][1];
        check_case(&c, number);
    }
    c.shapes[0] = SHAPE(2, 7);
    if (row->inputs == 2) c.shapes[1] = SHAPE(2, 7);
    check_case(&c, number);
    c.least = 0;
    if (below) check_case(&c, number);
}

static void test_every_gradient(void) {
    bool has_case[OPS] = {false};
    for (int i = 0; i < CASES; i++) {
        check_case(&cases[i], i);
        has_case[cases[i].op] = true;
    }
    for (int i = 0; i < ROWS; i++) {
        check_row(&elementwise_rows[i], CASES + i);
        has_case[elementwise_rows[i].op] = true;
    }
#define OP(name, inputs, shape, gradient, ...)                                                               \
    CHECK(has_case[OP_##name] || strcmp(#gradient, "none") == 0, "the gradient of " #name " has no case");
#include "../../src/graph/ops.def"
}

/* --- what the gradient graph promises --- */

static const struct initial ones = {INITIAL_CONSTANT, 1, NULL};

/* Equal shares for all that reach the maximum. */
static void test_ties(void) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 1);
    const float values[] = {3, 1, 3, 2, 5, 4};
    const node v = graph_variable(&g, "v", SHAPE(2, 3), (struct initial){.values = values});
    node gradient;
    graph_gradients(&g, graph_reduce_sum(&g, graph_reduce_max(&g, v, 1, false), ALL_AXES, false), &v, 1,
                    &gradient);
    session_open(&s, &g, &gradient, 1);
    session_run(&s);
    const float want[] = {0.5f, 0, 0.5f, 0, 1, 0};
    for (size_t i = 0; i < 6; i++) CHECK(session_float(&s, gradient, i) == want[i], "element %zu", i);
    session_close(&s);
    graph_close(&g);
}

/* The gradient of x^b with respect to b is finite where x is 0 or less; that of x^2 is 2x there. */
static void test_pow_below_zero(void) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 1);
    const float x_values[] = {-2, 0, 2}, b_values[] = {2, 2, 2};
    const node v[] = {graph_variable(&g, "x", SHAPE(3), (struct initial){.values = x_values}),
                      graph_variable(&g, "b", SHAPE(3), (struct initial){.values = b_values})};
    node gradients[2];
    graph_gradients(&g, graph_reduce_sum(&g, graph_pow(&g, v[0], v[1]), ALL_AXES, false), v, 2, gradients);
    session_open(&s, &g, gradients, 2);
    session_run(&s);
    for (size_t i = 0; i < 3; i++)
        CHECK(session_float(&s, gradients[0], i) == 2 * x_values[i], "x, element %zu", i);
    CHECK(session_float(&s, gradients[1], 0) == 0 && session_float(&s, gradients[1], 1) == 0,
          "b at 0 and below");
    CHECK(fabsf(session_float(&s, gradients[1], 2) - 4 * logf(2)) < 1e-6f, "b above 0");
    session_close(&s);
    graph_close(&g);
}

/* Two variables with the same gradient, one whose gradient is a constant, one that the loss does not depend
 * on, one twice among the targets. */
static void test_shared_gradients(void) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 1);
    const node a = graph_variable(&g, "a", SHAPE(3), ones), b = graph_variable(&g, "b", SHAPE(3), ones);
    const node c = graph_variable(&g, "c", SCALAR, ones),
               lonely = graph_variable(&g, "lonely", SHAPE(2), ones);
    const node loss = graph_add(&g, c, graph_reduce_sum(&g, graph_add(&g, a, b), ALL_AXES, false));
    const node targets[] = {a, b, c, lonely, a};
    node d[5];
    graph_gradients(&g, loss, targets, 5, d);
    CHECK(d[0] != NONE && d[1] != NONE && d[2] != NONE && d[3] == NONE && d[4] == d[0], "%d %d %d %d %d",
          d[0], d[1], d[2], d[3], d[4]);
    CHECK(d[0] != d[1] && g.nodes[d[0]].gradient_of == 0 && g.nodes[d[1]].gradient_of == 1,
          "one node for two ranges");
    CHECK(g.nodes[d[2]].op == OP_copy && g.nodes[d[2]].gradient_of == 2, "a constant as a gradient");
    session_open(&s, &g, (node[]){d[0], d[1], d[2]}, 3);
    for (size_t i = 0; i < g.layout.floats; i++) s.gradients[i] = -7;
    session_run(&s);
    for (size_t i = 0; i < 3; i++)
        CHECK(session_float(&s, d[0], i) == 1 && session_float(&s, d[1], i) == 1, "element %zu", i);
    CHECK(session_float(&s, d[2], 0) == 1, "c");
    int untouched = 0;
    for (size_t i = 0; i < g.layout.floats; i++) untouched += s.gradients[i] == -7;
    CHECK(untouched == (int)g.layout.floats - 7, "%d floats of padding and of the lonely range left alone",
          untouched);
    session_close(&s);
    /* a second loss: its gradients are other nodes; both at once would be written over each other */
    node again;
    graph_gradients(&g, graph_mul(&g, loss, loss), &a, 1, &again);
    CHECK(again != d[0] && again != NONE && g.nodes[again].gradient_of == 0, "the second gradient is %d",
          again);
    struct program *program = NULL;
    struct error error = {0};
    CHECK(program_compile(&program, &g, (node[]){d[0], again}, 2, &reference_device, &error) == ERROR_USAGE,
          "compiled");
    CHECK(strcmp(error.words, "two fetches are gradients of a, expected one") == 0, "%s", error.words);
    graph_close(&g);
}

/* What is not wanted is not built: the gradient with respect to the input of a network, and what only leads
 * to whole numbers. */
static void test_unwanted(void) {
    struct graph g;
    graph_open(&g, true, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(5, 7)),
               w = graph_variable(&g, "w", SHAPE(7, 3), ones);
    const node y = graph_matmul(&g, x, w, false, false);
    node gradient;
    graph_gradients(&g, graph_reduce_sum(&g, y, ALL_AXES, false), &w, 1, &gradient);
    int products = 0;
    for (int n = 0; n < g.count; n++) products += g.nodes[n].op == OP_matmul;
    CHECK(products == 2, "%d matmuls: the forward one and the weight gradient", products);
    const node whole = graph_cast(&g, graph_cast(&g, y, TYPE_INT), TYPE_FLOAT);
    graph_gradients(&g, graph_reduce_sum(&g, whole, ALL_AXES, false), &w, 1, &gradient);
    CHECK(gradient == NONE && g.error.code == OK, "a gradient through whole numbers: %s", g.error.words);
    graph_close(&g);
}

/* A whole network: every parameter against finite differences. */
static void test_network(void) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 1);
    float pixels[5 * 4];
    fill_between(pixels, 20, 31, -1, 1);
    const struct initial random = {INITIAL_NORMAL, 0.7f, NULL};
    const node x = graph_constant(&g, SHAPE(5, 4), pixels),
               labels = graph_constant_int(&g, SHAPE(5), five_labels);
    const node hidden = graph_sigmoid(&g, graph_dense(&g, x, 6, random, random));
    const node p = graph_softmax(
        &g, graph_dense(&g, graph_tanh(&g, graph_dense(&g, hidden, 5, random, random)), 3, random, random));
    const node loss = graph_reduce_mean(&g, graph_cross_entropy(&g, p, labels), ALL_AXES, false);
    node targets[6], fetches[7] = {loss};
    int count = 0;
    for (int n = 0; n < g.count; n++)
        if (g.nodes[n].op == OP_variable) targets[count++] = n;
    graph_gradients(&g, loss, targets, count, fetches + 1);
    session_open(&s, &g, fetches, count + 1);
    for (int i = 0; i < count; i++)
        check_against_differences(&s, loss, (float[]){1}, &g.layout.ranges[i], "network");
    session_close(&s);
    graph_close(&g);
}

int main(void) {
    test_every_gradient();
    test_ties();
    test_pow_below_zero();
    test_shared_gradients();
    test_unwanted();
    test_network();
    return check_end();
}
