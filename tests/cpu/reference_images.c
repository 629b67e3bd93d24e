/* Reference kernels of operations on images, against formulas said naively in terms of an image with padding
 * around it; where TensorFlow puts windows; what is fused and what the gradients save; and mistakes in words.
 */
#include "../../src/program/passes.h"
#include "../naive.h"

struct image_case {
    int in[4],
        kernel[4]; /* x [batch, rows, columns, channels]; window rows, columns, channels out, groups or 0 */
    int stride[2];
    enum padding padding;
};

static const struct image_case cases[] = {
    {{1, 1, 1, 1}, {1, 1, 1}, {1, 1}, PADDING_VALID},
    {{1, 1, 1, 1}, {5, 5, 1}, {1, 1}, PADDING_SAME},
    {{2, 5, 7, 3}, {3, 3, 2}, {1, 1}, PADDING_SAME},
    {{2, 5, 7, 3}, {3, 3, 2}, {1, 1}, PADDING_VALID},
    {{1, 6, 6, 2}, {3, 3, 5}, {2, 2}, PADDING_SAME},
    {{1, 7, 6, 2}, {3, 3, 5}, {2, 2}, PADDING_SAME},
    {{1, 7, 6, 2}, {3, 3, 5}, {2, 2}, PADDING_VALID},
    {{3, 4, 5, 1}, {2, 4, 3}, {1, 2}, PADDING_SAME},
    {{2, 5, 5, 17}, {5, 5, 3}, {1, 1}, PADDING_SAME},
    {{1, 5, 4, 3}, {1, 1, 17}, {3, 2}, PADDING_SAME},
    {{1, 9, 3, 2}, {2, 2, 1}, {3, 3}, PADDING_VALID},
    {{1, 3, 2, 300}, {2, 2, 1}, {1, 1}, PADDING_SAME},
    {{2, 6, 6, 13}, {5, 5, 13}, {1, 1}, PADDING_SAME},
    {{2, 5, 7, 3}, {3, 3, 3, 3}, {1, 1}, PADDING_SAME},
    {{1, 7, 6, 5}, {3, 2, 15, 5}, {2, 1}, PADDING_SAME},
    {{2, 6, 5, 6}, {2, 3, 9, 3}, {1, 2}, PADDING_VALID},
    {{1, 4, 4, 17}, {1, 1, 17, 17}, {1, 1}, PADDING_VALID},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Padding in front, as TensorFlow's documentation has it: of what is needed in all, the smaller half. */
static int naive_before(int in, int length, int stride, enum padding padding, int *out) {
    if (padding == PADDING_VALID) {
        *out = (int)ceil((in - length + 1) / (double)stride);
        return 0;
    }
    *out = (int)ceil(in / (double)stride);
    const int all = in % stride == 0 ? length - stride : length - in % stride;
    return all > 0 ? all / 2 : 0;
}

struct geometry {
    int out[2], before[2];
    int groups, in; /* of a convolution; channels of x in a group */
};

static struct geometry geometry_of(const struct image_case *c) {
    struct geometry geometry;
    for (int axis = 0; axis < 2; axis++)
        geometry.before[axis] =
            naive_before(c->in[axis + 1], c->kernel[axis], c->stride[axis], c->padding, &geometry.out[axis]);
    geometry.groups = c->kernel[3] > 0 ? c->kernel[3] : 1;
    geometry.in = c->in[3] / geometry.groups;
    return geometry;
}

/* Element of an image, or -1 where it is not there. */
static ptrdiff_t position(const struct image_case *c, int image, int row, int column, int channel) {
    if (row < 0 || row >= c->in[1] || column < 0 || column >= c->in[2]) return -1;
    return ((ptrdiff_t)(image * c->in[1] + row) * c->in[2] + column) * c->in[3] + channel;
}

/* Calls visit for each product of the convolution, with places in x, kernel and y. */
static void each_product(const struct image_case *c, void (*visit)(void *, size_t, size_t, size_t),
                         void *argument) {
    const struct geometry geometry = geometry_of(c);
    for (int image = 0; image < c->in[0]; image++)
        for (int row = 0; row < geometry.out[0]; row++)
            for (int column = 0; column < geometry.out[1]; column++)
                for (int o = 0; o < c->kernel[2]; o++)
                    for (int tap = 0; tap < c->kernel[0] * c->kernel[1] * geometry.in; tap++) {
                        const int at = tap / geometry.in, group = o / (c->kernel[2] / geometry.groups);
                        const int channel = group * geometry.in + tap % geometry.in;
                        const ptrdiff_t x =
                            position(c, image, row * c->stride[0] - geometry.before[0] + at / c->kernel[1],
                                     column * c->stride[1] - geometry.before[1] + at % c->kernel[1], channel);
                        const int y =
                            ((image * geometry.out[0] + row) * geometry.out[1] + column) * c->kernel[2] + o;
                        if (x >= 0) visit(argument, (size_t)x, (size_t)(tap * c->kernel[2] + o), (size_t)y);
                    }
}

enum { ROOM = MOST };
struct products {
    const float *x, *kernel, *dy;
    double y[ROOM], dx[ROOM], dkernel[ROOM];
};

static void add_product(void *argument, size_t x, size_t kernel, size_t y) {
    struct products *p = argument;
    p->y[y] += (double)p->x[x] * (double)p->kernel[kernel];
    p->dx[x] += (double)p->dy[y] * (double)p->kernel[kernel];
    p->dkernel[kernel] += (double)p->x[x] * (double)p->dy[y];
}

static node image_node(struct graph *g, const struct image_case *c, enum op op, node a, node b, node bias,
                       struct shape shape) {
    struct node_info info = {.op = op, .inputs = bias == NONE ? 2 : 3, .input = {a, b, bias}};
    if (op == OP_maxpool || op == OP_lrn || op == OP_avgpool || op == OP_avgpool_grad) info.inputs = 1;
    for (int axis = 0; axis < 2; axis++) {
        info.attributes.window[axis] = c->kernel[axis];
        info.attributes.stride[axis] = c->stride[axis];
    }
    info.attributes.padding = c->padding;
    info.attributes.activation = bias == NONE ? ACTIVATION_NONE : ACTIVATION_RELU;
    info.attributes.shape = shape;
    return graph_make(g, &info);
}

/* Whole numbers, so that sums are exact. */
static void check_convolution(int number) {
    const struct image_case *c = &cases[number];
    const struct geometry geometry = geometry_of(c);
    static struct products products;
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const struct shape in = SHAPE(c->in[0], c->in[1], c->in[2], c->in[3]);
    const struct shape kernel = SHAPE(c->kernel[0], c->kernel[1], geometry.in, c->kernel[2]);
    const struct shape out = SHAPE(c->in[0], geometry.out[0], geometry.out[1], c->kernel[2]);
    const node x = whole(&g, in, 1), w = whole(&g, kernel, 2), dy = whole(&g, out, 3),
               bias = whole(&g, SHAPE(c->kernel[2]), 4);
    const node nodes[] = {image_node(&g, c, OP_conv2d, x, w, NONE, SCALAR),
                          image_node(&g, c, OP_conv2d_grad_x, w, dy, NONE, in),
                          image_node(&g, c, OP_conv2d_grad_kernel, x, dy, NONE, kernel),
                          image_node(&g, c, OP_conv2d_bias, x, w, bias, SCALAR)};
    CHECK(g.error.code == OK, "case %d: %s", number, g.error.words);
    if (g.error.code != OK) {
        graph_close(&g);
        return;
    }
    CHECK(shape_equal(&g.nodes[nodes[0]].shape, &out), "case %d: shape", number);
    session_open(&s, &g, nodes, 4);
    session_run(&s);
    for (int i = 0; i < 4; i++) covered[g.nodes[nodes[i]].op] = true;
    products = (struct products){.x = constant(&g, x), .kernel = constant(&g, w), .dy = constant(&g, dy)};
    each_product(c, add_product, &products);
    const double *const want[] = {products.y, products.dx, products.dkernel};
    for (int n = 0; n < 3; n++)
        for (size_t i = 0; i < shape_count(&g.nodes[nodes[n]].shape); i++)
            CHECK(session_float(&s, nodes[n], i) == want[n][i], "case %d, %s, element %zu: %g, expected %g",
                  number, op_name(g.nodes[nodes[n]].op), i, (double)session_float(&s, nodes[n], i),
                  want[n][i]);
    for (size_t i = 0; i < shape_count(&out); i++) {
        const double sum = products.y[i] + constant(&g, bias)[i % (size_t)c->kernel[2]];
        CHECK(session_float(&s, nodes[3], i) == fmax(sum, 0), "case %d, with bias and relu, element %zu",
              number, i);
    }
    finish(&s, &g);
}

/* What the largest element is, and who gets its gradient: with ties the first. */
static void check_pool(int number) {
    const struct image_case *c = &cases[number];
    const struct geometry geometry = geometry_of(c);
    static double dx[ROOM];
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const struct shape in = SHAPE(c->in[0], c->in[1], c->in[2], c->in[3]);
    const struct shape out = SHAPE(c->in[0], geometry.out[0], geometry.out[1], c->in[3]);
    const node x = whole(&g, in, 1), dy = whole(&g, out, 3);
    const node y = image_node(&g, c, OP_maxpool, x, NONE, NONE, SCALAR),
               back = image_node(&g, c, OP_maxpool_grad, x, dy, NONE, SCALAR);
    session_open(&s, &g, (node[]){y, back}, 2);
    session_run(&s);
    covered[OP_maxpool] = covered[OP_maxpool_grad] = true;
    memset(dx, 0, sizeof dx);
    for (size_t i = 0; i < shape_count(&out) && s.error.code == OK; i++) {
        int at[4];
        unravel(&out, i, at);
        ptrdiff_t best = -1;
        for (int tap = 0; tap < c->kernel[0] * c->kernel[1]; tap++) {
            const ptrdiff_t place =
                position(c, at[0], at[1] * c->stride[0] - geometry.before[0] + tap / c->kernel[1],
                         at[2] * c->stride[1] - geometry.before[1] + tap % c->kernel[1], at[3]);
            if (place >= 0 && (best < 0 || constant(&g, x)[place] > constant(&g, x)[best])) best = place;
        }
        CHECK(best >= 0 && session_float(&s, y, i) == constant(&g, x)[best], "case %d, largest, element %zu",
              number, i);
        if (best >= 0) dx[best] += constant(&g, dy)[i];
    }
    for (size_t i = 0; i < shape_count(&in); i++)
        CHECK(session_float(&s, back, i) == dx[i], "case %d, maxpool_grad, element %zu: %g, expected %g",
              number, i, (double)session_float(&s, back, i), dx[i]);
    finish(&s, &g);
}

/* Sums over what is there of each window, in double, and each element's share of the gradient. */
static void check_mean_pool(int number) {
    const struct image_case *c = &cases[number];
    const struct geometry geometry = geometry_of(c);
    static double dx[ROOM];
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const struct shape in = SHAPE(c->in[0], c->in[1], c->in[2], c->in[3]);
    const struct shape out = SHAPE(c->in[0], geometry.out[0], geometry.out[1], c->in[3]);
    const node x = whole(&g, in, 1), dy = whole(&g, out, 3);
    const node y = image_node(&g, c, OP_avgpool, x, NONE, NONE, SCALAR),
               back = image_node(&g, c, OP_avgpool_grad, dy, NONE, NONE, in);
    session_open(&s, &g, (node[]){y, back}, 2);
    session_run(&s);
    covered[OP_avgpool] = covered[OP_avgpool_grad] = true;
    memset(dx, 0, sizeof dx);
    for (size_t i = 0; i < shape_count(&out) && s.error.code == OK; i++) {
        int at[4], count = 0;
        double sum = 0;
        ptrdiff_t places[25];
        unravel(&out, i, at);
        for (int tap = 0; tap < c->kernel[0] * c->kernel[1]; tap++) {
            const ptrdiff_t place =
                position(c, at[0], at[1] * c->stride[0] - geometry.before[0] + tap / c->kernel[1],
                         at[2] * c->stride[1] - geometry.before[1] + tap % c->kernel[1], at[3]);
            if (place < 0) continue;
            places[count++] = place;
            sum += (double)constant(&g, x)[place];
        }
        CHECK(fabs((double)session_float(&s, y, i) - sum / count) < 1e-5, "case %d, mean, element %zu",
              number, i);
        for (int k = 0; k < count; k++) dx[places[k]] += (double)constant(&g, dy)[i] / count;
    }
    for (size_t i = 0; i < shape_count(&in); i++)
        CHECK(fabs((double)session_float(&s, back, i) - dx[i]) < 1e-5 * fmax(1, fabs(dx[i])),
              "case %d, avgpool_grad, element %zu: %g, expected %g", number, i,
              (double)session_float(&s, back, i), dx[i]);
    finish(&s, &g);
}

/* The gradient of a kernel with pooling behind it, against the two steps that it takes the place of: exactly.
 */
static void check_pooled_gradient(const int *in, const int *kernel, int stride, enum padding padding,
                                  int pool_window, int pool_stride, enum padding pool_padding) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node x = whole(&g, SHAPE(in[0], in[1], in[2], in[3]), 1),
               w = whole(&g, SHAPE(kernel[0], kernel[1], in[3], kernel[2]), 2);
    const node y = graph_conv2d(&g, x, w, stride, padding);
    const node pooled = graph_maxpool(&g, y, pool_window, pool_stride, pool_padding);
    CHECK(pooled != NONE, "%s", g.error.words);
    if (pooled == NONE) {
        graph_close(&g);
        return;
    }
    const node dy = whole(&g, g.nodes[pooled].shape, 3);
    struct node_info info = {
        .op = OP_maxpool_grad, .inputs = 2, .input = {y, dy}, .attributes = g.nodes[pooled].attributes};
    const node back = graph_make(&g, &info);
    info = (struct node_info){
        .op = OP_conv2d_grad_kernel, .inputs = 2, .input = {x, back}, .attributes = g.nodes[y].attributes};
    info.attributes.shape = g.nodes[w].shape;
    const node both = graph_make(&g, &info);
    info.op = OP_conv2d_pool_grad_kernel;
    info.inputs = 3;
    info.input[1] = y;
    info.input[2] = dy;
    info.attributes.pool = (struct pooling){
        .window = {pool_window, pool_window}, .stride = {pool_stride, pool_stride}, .padding = pool_padding};
    const node at_once = graph_make(&g, &info);
    session_open(&s, &g, (node[]){back, both, at_once}, 3);
    for (int run = 0; run < 2; run++) session_run(&s); /* nothing is left of the run before */
    covered[OP_conv2d_pool_grad_kernel] = true;
    check_same(&s, &s, both, "itself");
    const size_t floats = s.error.code == OK ? shape_count(&g.nodes[w].shape) : 0;
    for (size_t i = 0; i < floats; i++)
        CHECK(session_float(&s, at_once, i) == session_float(&s, both, i),
              "pool %d/%d of a kernel [%d, %d, %d, %d], element %zu: %g, expected %g", pool_window,
              pool_stride, kernel[0], kernel[1], in[3], kernel[2], i, (double)session_float(&s, at_once, i),
              (double)session_float(&s, both, i));
    finish(&s, &g);
}

static void test_pooled_gradients(void) {
    const enum padding same = PADDING_SAME, valid = PADDING_VALID;
    check_pooled_gradient((int[]){2, 8, 8, 3}, (int[]){5, 5, 4}, 1, same, 3, 2, same);
    check_pooled_gradient((int[]){2, 9, 8, 1}, (int[]){3, 3, 5}, 1, valid, 2, 2, valid);
    check_pooled_gradient((int[]){1, 9, 7, 3}, (int[]){7, 6, 2}, 1, same, 2, 2, valid);
    check_pooled_gradient((int[]){3, 6, 7, 2}, (int[]){2, 4, 3}, 2, same, 2, 1, same);
    check_pooled_gradient((int[]){1, 5, 5, 1}, (int[]){1, 1, 1}, 1, valid, 5, 5, valid);
    check_pooled_gradient((int[]){1, 4, 4, 2}, (int[]){3, 2, 300}, 1, same, 3, 2, same);
    check_pooled_gradient((int[]){2, 7, 7, 17}, (int[]){3, 3, 7}, 2, valid, 2, 1, valid);
    check_pooled_gradient((int[]){2, 11, 10, 2}, (int[]){8, 3, 3}, 1, valid, 2, 3, same);
}

static double lrn_sum(const struct lrn *lrn, const float *row, int channels, int c) {
    double sum = 0;
    for (int j = c - lrn->radius; j <= c + lrn->radius; j++)
        if (j >= 0 && j < channels) sum += (double)row[j] * (double)row[j];
    return lrn->bias + lrn->alpha * sum;
}

static void check_lrn(int rows, int channels, struct lrn lrn) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node x = between(&g, SHAPE(rows, channels), 1, -2, 2),
               dy = between(&g, SHAPE(rows, channels), 2, -1, 1);
    const node y = graph_lrn(&g, x, lrn);
    struct node_info info = {.op = OP_lrn_grad, .inputs = 2, .input = {x, dy}, .attributes.lrn = lrn};
    const node dx = graph_make(&g, &info);
    info.attributes.activation = ACTIVATION_RELU;
    const node masked = graph_make(&g, &info);
    session_open(&s, &g, (node[]){y, dx, masked}, 3);
    session_run(&s);
    covered[OP_lrn] = covered[OP_lrn_grad] = true;
    for (int row = 0; row < rows && s.error.code == OK; row++)
        for (int c = 0; c < channels; c++) {
            const float *values = constant(&g, x) + row * channels, *dys = constant(&g, dy) + row * channels;
            const size_t at = (size_t)(row * channels + c);
            const double want = values[c] * pow(lrn_sum(&lrn, values, channels, c), -lrn.beta);
            double back = dys[c] * pow(lrn_sum(&lrn, values, channels, c), -lrn.beta);
            for (int j = c - lrn.radius; j <= c + lrn.radius; j++)
                if (j >= 0 && j < channels)
                    back -= 2.0 * lrn.alpha * lrn.beta * values[c] * dys[j] * values[j] *
                            pow(lrn_sum(&lrn, values, channels, j), -lrn.beta - 1);
            CHECK(fabs(session_float(&s, y, at) - want) < 2e-6, "lrn %d,%d: %g, expected %g", row, c,
                  (double)session_float(&s, y, at), want);
            CHECK(fabs(session_float(&s, dx, at) - back) < 4e-6, "lrn_grad %d,%d: %g, expected %g", row, c,
                  (double)session_float(&s, dx, at), back);
            const float expected = values[c] > 0 ? session_float(&s, dx, at) : 0.0f;
            CHECK(session_float(&s, masked, at) == expected, "lrn_grad of a relu %d,%d", row, c);
        }
    finish(&s, &g);
}

static void test_lrn(void) {
    const int channels[] = {1, 3, 9, 17, 64, 255, 257, 1023, 1025, 1500};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        check_lrn(3, channels[i], (struct lrn){4, 1.0f, 0.3f, 0.75f});
        check_lrn(2, channels[i], (struct lrn){1, 2.0f, 0.1f, 1.0f});
        check_lrn(2, channels[i], (struct lrn){MAX_LRN_RADIUS, 1.0f, 0.01f, 0.75f});
        check_lrn(1, channels[i], (struct lrn){0, 1.0f, 1.0f, 0.5f});
    }
}

static void check_batch_norm(int rows, int channels) {
    struct graph g;
    struct session s;
    const float epsilon = 0.01f;
    graph_open(&g, false, 1);
    const node x = between(&g, SHAPE(rows, channels), 1, 2, 3),
               dy = between(&g, SHAPE(rows, channels), 2, -1, 1),
               scale = between(&g, SHAPE(channels), 3, -1, 1), shift = between(&g, SHAPE(channels), 4, -1, 1);
    struct node_info info = {.op = OP_moments, .inputs = 1, .input = {x}, .attributes.epsilon = epsilon};
    const node moments = graph_make(&g, &info);
    info = (struct node_info){
        .op = OP_batch_norm, .inputs = 4, .input = {x, moments, scale, shift}, .attributes = info.attributes};
    const node y = graph_make(&g, &info);
    info = (struct node_info){
        .op = OP_batch_norm_sums, .inputs = 3, .input = {x, moments, dy}, .attributes = info.attributes};
    const node sums = graph_make(&g, &info);
    info = (struct node_info){.op = OP_batch_norm_grad,
                              .inputs = 5,
                              .input = {x, moments, scale, sums, dy},
                              .attributes = info.attributes};
    const node dx = graph_make(&g, &info);
    session_open(&s, &g, (node[]){moments, y, sums, dx}, 4);
    session_run(&s);
    covered[OP_moments] = covered[OP_batch_norm] = covered[OP_batch_norm_sums] = covered[OP_batch_norm_grad] =
        true;
    for (int c = 0; c < channels && s.error.code == OK; c++) {
        double mean = 0, variance = 0, plain = 0, product = 0;
        for (int r = 0; r < rows; r++) mean += (double)constant(&g, x)[r * channels + c] / rows;
        for (int r = 0; r < rows; r++)
            variance += pow((double)constant(&g, x)[r * channels + c] - mean, 2) / rows;
        const double deviation = sqrt(variance + (double)epsilon);
        for (int r = 0; r < rows; r++) {
            const double back = constant(&g, dy)[r * channels + c];
            plain += back;
            product += back * ((double)constant(&g, x)[r * channels + c] - mean) / deviation;
        }
        const double known[] = {mean, variance, plain, product};
        const double found[] = {
            session_float(&s, moments, (size_t)c), session_float(&s, moments, (size_t)(channels + c)),
            session_float(&s, sums, (size_t)c), session_float(&s, sums, (size_t)(channels + c))};
        for (int k = 0; k < 4; k++)
            CHECK(fabs(found[k] - known[k]) < 2e-6 * fmax(1, rows),
                  "channel %d of %dx%d, %d: %g, expected %g", c, rows, channels, k, found[k], known[k]);
        for (int r = 0; r < rows; r++) {
            const size_t at = (size_t)(r * channels + c);
            const double normal = ((double)constant(&g, x)[at] - mean) / deviation;
            const double want = normal * constant(&g, scale)[c] + constant(&g, shift)[c];
            const double back = constant(&g, scale)[c] / deviation *
                                (constant(&g, dy)[at] - plain / rows - normal * product / rows);
            CHECK(fabs(session_float(&s, y, at) - want) < 1e-4, "batch_norm %d,%d: %g, expected %g", r, c,
                  (double)session_float(&s, y, at), want);
            CHECK(fabs(session_float(&s, dx, at) - back) < 2e-4, "batch_norm_grad %d,%d: %g, expected %g", r,
                  c, (double)session_float(&s, dx, at), back);
        }
    }
    finish(&s, &g);
}

/* In training the statistics' "gradients" bring them nearer to the batch's; else they are what normalises. */
static void test_statistics(void) {
    struct graph g;
    struct session s;
    float values[] = {1, 10, 3, 10, 5, 16};
    graph_open(&g, true, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(3, 2));
    const node y = graph_batch_norm(&g, x, 0.75f, 1e-5f);
    const node loss = graph_reduce_sum(&g, graph_mul(&g, y, y), ALL_AXES, false);
    const enum range_kind kinds[] = {RANGE_TRAINABLE, RANGE_TRAINABLE, RANGE_STATISTIC, RANGE_STATISTIC};
    node fetches[5] = {loss}, variables[2] = {graph_find(&g, "norm1/scale"), graph_find(&g, "norm1/shift")};
    int count = 1;
    for (int r = 0; r < 4; r++)
        CHECK(g.layout.ranges[r].kind == kinds[r], "%s: kind %d", g.layout.ranges[r].name,
              (int)g.layout.ranges[r].kind);
    for (node n = 0; n < loss; n++)
        if (g.nodes[n].gradient_of >= 0) fetches[count++] = n;
    CHECK(count == 3, "%d statistics, expected mean and variance", count - 1);
    graph_gradients(&g, loss, variables, 2, fetches + 3);
    session_open(&s, &g, fetches, 5);
    session_feed(&s, x, values);
    session_run(&s);
    /* mean 3 and 12, variance 8/3 and 8; from 0 and 1 a quarter of the way, as w -= g does */
    const float want[] = {-0.25f * 3, -0.25f * 12, 0.25f * (1 - 8.0f / 3), 0.25f * (1 - 8)};
    for (size_t i = 0; i < 4; i++) {
        const float found = s.gradients[g.layout.ranges[2 + i / 2].begin + i % 2];
        CHECK(fabsf(found - want[i]) < 1e-5f, "statistic %zu: %g, expected %g", i, (double)found,
              (double)want[i]);
    }
    finish(&s, &g);

    graph_open(&g, false, 1);
    const node x2 = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(3, 2));
    const node y2 = graph_batch_norm(&g, x2, 0.75f, 1e-5f);
    CHECK(g.layout.ranges[2].kind == RANGE_STATISTIC && g.layout.ranges[3].kind == RANGE_STATISTIC,
          "another layout outside of training");
    session_open(&s, &g, &y2, 1);
    session_feed(&s, x2, values);
    float *mean = s.weights + g.layout.ranges[2].begin, *variance = s.weights + g.layout.ranges[3].begin;
    mean[0] = 3, mean[1] = 10, variance[0] = 4, variance[1] = 9;
    session_run(&s);
    for (size_t i = 0; i < 6; i++) {
        const float expected = (values[i] - mean[i % 2]) / sqrtf(variance[i % 2]);
        CHECK(fabsf(session_float(&s, y2, i) - expected) < 1e-4f, "outside of training, element %zu", i);
    }
    finish(&s, &g);
}

static int steps_of(const struct session *s, enum op op) {
    int count = 0;
    for (int n = 0; n < s->graph->count; n++)
        count += program_runs(s->program, n) && s->program->values[n].info.op == op;
    return count;
}

/* conv, relu, maxpool and relu, lrn: forward one instruction per layer; backward no pass for the relus, and
 * the sum for the bias over the pooled image. The same gradients as with nothing fused, which fetching the
 * parts forces. */
static void test_fused(void) {
    struct graph g;
    struct session fused, whole_steps;
    const struct initial random = {INITIAL_NORMAL, 0.3f, NULL}, zero = {0};
    graph_open(&g, true, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(2, 6, 6, 2));
    const node first = graph_conv(&g, x, 4, 3, 1, PADDING_SAME, random, zero);
    const node first_relu = graph_relu(&g, first);
    const node pooled = graph_maxpool(&g, first_relu, 3, 2, PADDING_SAME);
    const node second = graph_conv(&g, pooled, 5, 3, 2, PADDING_SAME, random, random);
    const node second_relu = graph_relu(&g, second);
    const node y = graph_lrn(&g, second_relu, (struct lrn){2, 1.0f, 0.1f, 0.75f});
    const node loss = graph_reduce_sum(&g, graph_tanh(&g, y), ALL_AXES, false);
    CHECK(strcmp(g.layout.ranges[0].name, "conv1/kernel") == 0 &&
              strcmp(g.layout.ranges[3].name, "conv2/bias") == 0,
          "%s, %s", g.layout.ranges[0].name, g.layout.ranges[3].name);
    CHECK(graph_find(&g, "conv2/bias") != NONE && graph_find(&g, "conv3/bias") == NONE, "find");
    node fetches[9] = {loss}, variables[4];
    int count = 0;
    for (node n = 0; n < g.count; n++)
        if (g.nodes[n].op == OP_variable) variables[count++] = n;
    graph_gradients(&g, loss, variables, 4, fetches + 1);
    float image[2 * 6 * 6 * 2];
    fill_between(image, sizeof image / sizeof *image, 9, -1, 1);
    session_open(&fused, &g, fetches, 5);
    fetches[5] = g.nodes[first].input[0];
    fetches[6] = g.nodes[second].input[0];
    for (node n = 0; n < g.count; n++) {
        if (g.nodes[n].op == OP_lrn_grad) fetches[7] = n;
        if (g.nodes[n].op == OP_maxpool_grad) fetches[8] = n;
    }
    session_open(&whole_steps, &g, fetches, 9);
    session_feed(&fused, x, image);
    session_feed(&whole_steps, x, image);
    session_run(&fused);
    session_run(&whole_steps);
    CHECK(steps_of(&fused, OP_conv2d_bias) == 2 && steps_of(&fused, OP_relu) == 0 &&
              steps_of(&fused, OP_add) == 0 && steps_of(&fused, OP_conv2d) == 0,
          "convolutions are not fused");
    CHECK(steps_of(&fused, OP_relu_grad) == 1, "%d relu_grad, expected one, of the pooled image",
          steps_of(&fused, OP_relu_grad));
    CHECK(steps_of(&fused, OP_conv2d_grad_x) == 1, "the first layer's data gradient is computed");
    CHECK(steps_of(&whole_steps, OP_relu_grad) == 2 && steps_of(&whole_steps, OP_relu) == 2,
          "fetches are fused away");
    for (node n = 0; n < g.count; n++)
        if (g.nodes[n].op == OP_reduce_sum && program_runs(fused.program, n) && g.nodes[n].gradient_of == 1)
            CHECK(g.nodes[g.nodes[n].input[0]].shape.dims[0] == 2 * 3 * 3, "the bias sums %d rows",
                  g.nodes[g.nodes[n].input[0]].shape.dims[0]);
    CHECK(steps_of(&fused, OP_conv2d_pool_grad_kernel) == 1 && steps_of(&fused, OP_maxpool_grad) == 0 &&
              steps_of(&whole_steps, OP_conv2d_pool_grad_kernel) == 0,
          "the first layer's gradient is not found with its pooling");
    for (int i = 0; i <= 4; i++) {
        const struct node_info *info = &g.nodes[fetches[i]];
        if (info->gradient_of != 0) check_same(&fused, &whole_steps, fetches[i], "fused");
        for (size_t k = 0; k < shape_count(&info->shape); k++)
            CHECK(fabsf(session_float(&fused, fetches[i], k) - session_float(&whole_steps, fetches[i], k)) <
                      1e-5f,
                  "fused, gradient %d, element %zu", i, k);
    }
    session_close(&whole_steps);
    finish(&fused, &g);
}

/* --- mistakes: each makes one, on an image x [2, 4, 5, 3] --- */

static const struct initial zeros = {0};
static node wrong_window(struct graph *g, node x) {
    return graph_conv(g, x, 4, 6, 1, PADDING_VALID, zeros, zeros);
}
static node wrong_channels(struct graph *g, node x) {
    return graph_conv2d(g, x, graph_variable(g, "w", SHAPE(3, 3, 2, 4), zeros), 1, PADDING_SAME);
}
static node wrong_groups(struct graph *g, node x) {
    return graph_conv2d(g, x, graph_variable(g, "w", SHAPE(3, 3, 1, 4), zeros), 1, PADDING_SAME);
}
static node wrong_multiplier(struct graph *g, node x) {
    const struct pooling windows = {{3, 3}, {1, 1}, PADDING_SAME};
    return graph_depthwise_of(g, x, 400000000, &windows, &(struct weights){0});
}
static node wrong_stride(struct graph *g, node x) {
    return graph_maxpool(g, x, 2, 0, PADDING_SAME);
}
static node wrong_image(struct graph *g, node x) {
    return graph_conv(g, graph_flatten(g, x), 4, 3, 1, PADDING_SAME, zeros, zeros);
}
static node wrong_pool(struct graph *g, node x) {
    return graph_maxpool(g, graph_flatten(g, x), 2, 2, PADDING_SAME);
}
static node wrong_average(struct graph *g, node x) {
    return graph_global_average(g, graph_flatten(g, x));
}
static node wrong_radius(struct graph *g, node x) {
    return graph_lrn(g, x, (struct lrn){MAX_LRN_RADIUS + 1, 1.0f, 1.0f, 0.75f});
}
static node wrong_bias(struct graph *g, node x) {
    return graph_lrn(g, x, (struct lrn){4, 0.0f, 1.0f, 0.75f});
}
static node wrong_pad(struct graph *g, node x) {
    return graph_pad(g, x, (int[]){0, -1, 0, 0}, (int[]){0, 1, 0, 0});
}
static node wrong_norm(struct graph *g, node x) {
    return graph_batch_norm(g, graph_reshape(g, x, SHAPE(-1)), 0.9f, 1e-5f);
}
static node wrong_epsilon(struct graph *g, node x) {
    return graph_batch_norm(g, x, 0.9f, 0.0f);
}
static node wrong_statistic(struct graph *g, node x) {
    return graph_statistic(g, graph_variable(g, "mean", SHAPE(3), zeros), x, 0.9f);
}
static node wrong_outputs(struct graph *g, node x) {
    return graph_conv(g, x, 0, 3, 1, PADDING_SAME, zeros, zeros);
}

static const struct {
    node (*build)(struct graph *g, node x);
    const char *words;
} mistakes[] = {
    {wrong_window, "conv2d: windows of 6x6 do not fit into images of 4x5"},
    {wrong_channels, "conv2d: [2, 4, 5, 3] by a kernel of [3, 3, 2, 4], expected"},
    {wrong_groups, "conv2d: [2, 4, 5, 3] by a kernel of [3, 3, 1, 4], expected"},
    {wrong_multiplier, "depthwise: 400000000 channels from each of 3, expected 1 or more, in all at most"},
    {wrong_stride, "maxpool: windows of 2x2 every 0x0, expected 1 or more"},
    {wrong_image, "conv: operand 1 is [2, 60], expected 4 dimensions"},
    {wrong_pool, "maxpool: operand 1 is [2, 60], expected 4 dimensions"},
    {wrong_average, "global average: operand 1 is [2, 60], expected 4 dimensions"},
    {wrong_radius, "lrn: radius 17, bias 1, alpha 1, expected 0 to 16"},
    {wrong_bias, "lrn: radius 4, bias 0, alpha 1, expected 0 to 16, more than 0"},
    {wrong_pad, "pad: -1 and 1 around axis 1, expected 0 or more"},
    {wrong_norm, "batch_norm: operand 1 is [120], expected 2 or more dimensions"},
    {wrong_epsilon, "batch_norm: epsilon 0, expected more than 0"},
    {wrong_statistic, "statistic: a value of [2, 4, 5, 3] for [3]"},
    {wrong_outputs, "variable: shape [3, 3, 3, 0], expected dimensions of 1 or more"},
};

static void test_mistakes(void) {
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct graph g;
        graph_open(&g, true, 1);
        const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(2, 4, 5, 3));
        CHECK(mistakes[i].build(&g, x) == NONE && g.error.code == ERROR_USAGE, "no mistake: %s",
              mistakes[i].words);
        CHECK(strstr(g.error.words, mistakes[i].words), "found '%s', expected '%s'", g.error.words,
              mistakes[i].words);
        graph_close(&g);
    }
}

static void test_multiply_adds(void) {
    struct graph g;
    graph_open(&g, true, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(2, 4, 5, 3));
    const node w = graph_variable(&g, "w", SHAPE(3, 3, 3, 7), zeros);
    const node y = graph_conv2d(&g, graph_mul(&g, x, x), w, 1, PADDING_SAME);
    const node square = graph_mul(&g, y, y);
    node gradients[2];
    graph_gradients(&g, graph_reduce_sum(&g, square, ALL_AXES, false), (node[]){w, x}, 2, gradients);
    const double expected = 2.0 * 4 * 5 * 7 * 27;
    int count = 0;
    for (node n = 0; n < g.count; n++) {
        if (g.nodes[n].op != OP_conv2d && g.nodes[n].op != OP_conv2d_grad_x &&
            g.nodes[n].op != OP_conv2d_grad_kernel)
            continue;
        count++;
        CHECK(graph_multiply_adds(&g, n) == expected, "%s: %g, expected %g", op_name(g.nodes[n].op),
              graph_multiply_adds(&g, n), expected);
    }
    CHECK(count == 3, "%d convolutions, expected one and two gradients", count);
    graph_close(&g);
}

static void test_nothing_forgotten(void) {
    for (int op = 0; op < OPS; op++)
        CHECK(covered[op] || !is_of_images(op), "the operation %s has no test here", op_name((enum op)op));
}

int main(void) {
    for (int i = 0; i < CASES; i++) {
        check_convolution(i);
        check_pool(i);
        check_mean_pool(i);
    }
    test_pooled_gradients();
    test_lrn();
    check_batch_norm(1, 1);
    check_batch_norm(7, 3);
    check_batch_norm(130, 17);
    check_batch_norm(3, 300);
    test_statistics();
    test_fused();
    test_mistakes();
    test_multiply_adds();
    test_nothing_forgotten();
    return check_end();
}
