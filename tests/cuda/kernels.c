/* The GPU's own kernels, each against the reference kernel: exactly wherever an element is one formula or a
 * sum of whole numbers, to 1e-5 where adding in another order or another exp may differ. Every operation that
 * has a kernel and is not a library's must be tried. */
#include "../gpu_trial.h"
#include "../../cuda/problem.h"
#include "../elementwise.h"
#include "../pairs.h"

/* --- elementwise --- */

/* Whether every device rounds each step of the formula in the same way; those that call the mathematics
 * library may differ in the last places. */
static bool is_exact(enum op op) {
    const enum op exact[] = {
        OP_add,  OP_sub,          OP_mul,       OP_div,        OP_greater,         OP_less, OP_equal, OP_relu,
        OP_copy, OP_sigmoid_grad, OP_tanh_grad, OP_leaky_relu, OP_leaky_relu_slope};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (op == exact[i]) return true;
    return false;
}

static void try_row(enum op op, int inputs, struct shape a, struct shape b, bool ints) {
    struct trial t = {.op = op, .inputs = inputs, .shape = {a, b}, .tolerance = is_exact(op) ? 0.0 : 1e-6};
    for (int fill = FILL_WHOLE; fill <= FILL_SPECIAL; fill++) {
        t.fill[0] = t.fill[1] = (enum fill)fill;
        try_kernel(t);
        t.fill[1] = FILL_BETWEEN;
        if (inputs == 2) try_kernel(t);
    }
    t.type[0] = t.type[1] = TYPE_INT;
    if (ints) try_kernel(t);
}

static void test_rows(void) {
    const struct shape shapes[] = {SCALAR, SHAPE(1), SHAPE(3), SHAPE(100), SHAPE(7, 3), SHAPE(2, 3, 4, 5)};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (const struct elementwise *row = elementwise_rows; row < elementwise_rows + ROWS; row++)
            try_row(row->op, row->inputs, shapes[s], shapes[s], takes_ints(row));
        try_row(OP_copy, 1, shapes[s], shapes[s], false);
        for (int fill = FILL_BETWEEN; fill <= FILL_SPECIAL; fill++)
            try_kernel((struct trial){.op = OP_relu_grad,
                                      .inputs = 2,
                                      .shape = {shapes[s], shapes[s]},
                                      .fill = {(enum fill)fill, FILL_BETWEEN}});
    }
    for (const struct elementwise *row = elementwise_rows; row < elementwise_rows + ROWS; row++)
        for (size_t p = 0; p < sizeof pairs / sizeof *pairs && row->inputs == 2 && !row->slope; p++)
            try_row(row->op, 2, pairs[p].a, pairs[p].b, takes_ints(row));
}

static void test_casts(void) {
    for (int from = TYPE_FLOAT; from <= TYPE_BOOL; from++)
        for (int to = TYPE_FLOAT; to <= TYPE_BOOL; to++)
            for (int fill = FILL_WHOLE; fill <= FILL_SPECIAL; fill++)
                try_kernel((struct trial){.op = OP_cast,
                                          .inputs = 1,
                                          .shape = {SHAPE(101)},
                                          .type = {(enum type)from},
                                          .fill = {(enum fill)fill},
                                          .to = (enum type)to});
}

static void test_dropout(void) {
    const struct shape shapes[] = {SHAPE(1), SHAPE(3), SHAPE(4), SHAPE(5), SHAPE(1001), SHAPE(7, 11, 3)};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        try_kernel((struct trial){.op = OP_dropout,
                                  .inputs = 2,
                                  .shape = {shapes[s], SCALAR},
                                  .type = {TYPE_FLOAT, TYPE_INT},
                                  .fill = {FILL_BETWEEN, FILL_WHOLE},
                                  .attributes = {.rate = 0.25f, .seed = 77}});
}

static void test_state(void) {
    const enum op ops[] = {OP_assign, OP_assign_add};
    for (int o = 0; o < 2; o++)
        try_kernel((struct trial){.op = ops[o],
                                  .inputs = 2,
                                  .shape = {SHAPE(7, 3), SHAPE(7, 3)},
                                  .fill = {FILL_WHOLE, FILL_BETWEEN},
                                  .onto_first = true});
}

/* --- arrays and reductions --- */

static const struct shape blocks[] = {{1, {17}},      {2, {7, 3}},       {2, {1, 17}},
                                      {3, {3, 7, 5}}, {4, {2, 3, 4, 3}}, {3, {17, 1, 7}}};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

static void check_block(struct shape shape, enum type type) {
    struct trial t = {.op = OP_reshape, .inputs = 1, .shape = {shape}, .type = {type}};
    t.attributes.shape = SHAPE(-1);
    try_kernel(t);
    t.op = OP_shape;
    try_kernel(t);
    t.op = OP_rank;
    try_kernel(t);
    t.op = OP_transpose;
    for (int turn = 0; turn < 2; turn++) {
        for (int axis = 0; axis < shape.rank; axis++)
            t.attributes.order[axis] = turn ? shape.rank - 1 - axis : (axis + 1) % shape.rank;
        try_kernel(t);
    }
    struct trial box = t;
    box.op = OP_slice;
    box.attributes.shape = shape;
    for (int axis = 0; axis < shape.rank; axis++) {
        box.attributes.begin[axis] = shape.dims[axis] / 3;
        box.attributes.shape.dims[axis] -= 2 * (shape.dims[axis] / 3);
    }
    try_kernel(box);
    box.op = OP_pad;
    box.shape[0] = box.attributes.shape;
    box.attributes.shape = shape;
    try_kernel(box);
    for (int axis = 0; axis < shape.rank; axis++) {
        struct trial parts = {.op = OP_concat, .inputs = 3, .attributes.axis = axis};
        for (int i = 0; i < 3; i++) {
            parts.shape[i] = shape;
            parts.shape[i].dims[axis] += i;
            parts.type[i] = type;
        }
        try_kernel(parts);
    }
}

static void test_arrays(void) {
    for (int b = 0; b < BLOCKS; b++)
        for (int type = TYPE_FLOAT; type <= TYPE_BOOL; type++) check_block(blocks[b], (enum type)type);
    const struct shape wide[][2] = {{{0}, {2, {3, 7}}},
                                    {{2, {7, 1}}, {3, {3, 7, 17}}},
                                    {{3, {3, 1, 17}}, {3, {3, 7, 17}}},
                                    {{1, {7}}, {2, {1, 7}}}};
    for (size_t w = 0; w < sizeof wide / sizeof *wide; w++)
        for (int type = TYPE_FLOAT; type <= TYPE_BOOL; type++)
            try_kernel((struct trial){.op = OP_broadcast_to,
                                      .inputs = 1,
                                      .shape = {wide[w][0]},
                                      .type = {(enum type)type},
                                      .attributes.shape = wide[w][1]});
}

static void check_reduction(struct shape shape, int axis, bool keep) {
    const enum op ops[] = {OP_reduce_sum, OP_reduce_mean, OP_reduce_max, OP_argmax};
    for (int o = 0; o < 4; o++) {
        if (ops[o] == OP_argmax && axis == ALL_AXES) continue;
        struct trial t = {.op = ops[o], .inputs = 1, .shape = {shape}};
        t.attributes.axis = axis;
        t.attributes.keep = keep;
        try_kernel(t);
        t.fill[0] = FILL_SPECIAL;
        if (ops[o] == OP_reduce_max || ops[o] == OP_argmax) try_kernel(t);
        t.fill[0] = FILL_HOLES;
        if (ops[o] == OP_reduce_max) try_kernel(t);
        t.fill[0] = FILL_BETWEEN;
        t.tolerance = 1e-5;
        try_kernel(t);
        t.tolerance = 0.0;
        t.type[0] = TYPE_INT;
        if (ops[o] != OP_reduce_mean) try_kernel(t);
    }
}

static void test_reductions(void) {
    for (int b = 0; b < BLOCKS; b++)
        for (int axis = -1; axis < blocks[b].rank; axis++)
            for (int keep = 0; keep < 2; keep++)
                check_reduction(blocks[b], axis < 0 ? ALL_AXES : axis, keep == 1);
    /* by warps and by blocks, in one pass and in two; lengths that no number of parts divides */
    check_reduction(SHAPE(256), 0, false);
    check_reduction(SHAPE(257), 0, false);
    check_reduction(SHAPE(8192), ALL_AXES, false);
    check_reduction(SHAPE(8193), ALL_AXES, false);
    check_reduction(SHAPE(100003), 0, true);
    check_reduction(SHAPE(5, 1009), 1, false);
    check_reduction(SHAPE(20011, 3), 0, false);
    check_reduction(SHAPE(3001, 64), 0, false);
    check_reduction(SHAPE(7, 33, 132), 1, false);
    check_reduction(SHAPE(2, 331, 17), 1, true);
    /* so many results that one pass is enough */
    try_kernel((struct trial){
        .op = OP_reduce_sum, .inputs = 1, .shape = {SHAPE(2, 129, 32768)}, .attributes.axis = 1});
}

/* What launch.h promises of the order of additions, in plain loops: the sum of numbers that are `apart` from
 * each other, by a group of `rows` threads that fold over `columns`. */
static float sum_in_order(const struct gpu_view *view, const float *x, uint32_t chunk) {
    enum { THREADS = 256, LANES = 32 };
    static float sum[THREADS];
    const uint32_t step = view->chunks * view->rows;
    for (uint32_t row = 0; row < view->rows; row++) {
        uint32_t l = chunk * view->rows + row;
        sum[row] = 0.0f;
        if (l == 0) sum[row] = x[0];
        for (l += l == 0 ? step : 0; l < view->length; l += step) sum[row] += x[(size_t)l * view->inner];
    }
    const uint32_t lanes = LANES / view->columns < view->rows ? LANES / view->columns : view->rows;
    for (uint32_t warp = 0; warp < view->rows; warp += lanes) {
        for (uint32_t half = lanes / 2; half > 0; half /= 2)
            for (uint32_t row = 0; row < half; row++) sum[warp + row] += sum[warp + row + half];
        if (warp > 0) sum[0] += sum[warp];
    }
    return sum[0];
}

/* Every device adds in the same order, so that a shuffle between threads is a loop's equal to the bit. */
static void check_order(struct shape shape, int axis) {
    struct trial t = {.op = OP_reduce_sum, .inputs = 1, .shape = {shape}, .attributes.axis = axis};
    size_t outer = 1, inner = 1;
    struct problem problem;
    struct error error = {0};
    void *plan = NULL;
    if (!task_of(&t, &problem) || prepare_on_gpu(&problem, &plan) != OK) return;
    const struct gpu_passes *passes = plan;
    for (int i = 0; i < axis; i++) outer *= (size_t)shape.dims[i];
    for (int i = axis + 1; i < shape.rank; i++) inner *= (size_t)shape.dims[i];
    float *x = NULL, *parts = NULL, *sums = NULL;
    int code = memory_array(&x, shape_count(&shape), "operand", &error);
    if (code == OK) code = memory_array(&parts, outer * passes->view[0].chunks * inner, "parts", &error);
    if (code == OK) code = memory_array(&sums, outer * inner, "sums", &error);
    CHECK(code == OK, "%s", error.words);
    for (size_t i = 0; i < shape_count(&shape) && code == OK; i++)
        x[i] = 2.0f * rng_unit(rng_philox(5, 0, i).word[0]) - 1.0f;
    const float *from = x;
    for (int pass = 0; pass < passes->count && code == OK; pass++) {
        const struct gpu_view *view = &passes->view[pass];
        float *to = pass == passes->count - 1 ? sums : parts;
        for (size_t o = 0; o < outer; o++)
            for (uint32_t k = 0; k < view->chunks; k++)
                for (size_t i = 0; i < inner; i++)
                    to[(o * view->chunks + k) * inner + i] =
                        sum_in_order(view, from + o * view->length * inner + i, k);
        from = to;
    }
    void *operands[] = {x};
    if (code == OK)
        check_on_gpu(&t, &problem, gpu.backend->kernels(&gpu, OP_reduce_sum)[0], plan, operands, sums);
    gpu_plan_free(plan);
    memory_free(x);
    memory_free(parts);
    memory_free(sums);
}

static void test_order(void) {
    check_order(SHAPE(17), 0);
    check_order(SHAPE(300), 0);
    check_order(SHAPE(100003), 0);
    check_order(SHAPE(777, 64), 0);
    check_order(SHAPE(20011, 5), 0);
    check_order(SHAPE(3, 700, 9), 1);
    check_order(SHAPE(600, 77), 1);
    check_order(SHAPE(2, 40, 300), 1);
}

/* Of values shorter than the launch is wide, and longer. */
static void check_decayed(void) {
    const struct shape shapes[] = {SCALAR, SHAPE(3, 7), SHAPE(70001), SHAPE(1), SHAPE(257, 129)};
    for (int inputs = 2; inputs <= 5; inputs++) {
        struct trial t = {.op = OP_decayed, .inputs = inputs, .attributes.share = 0.5f};
        memcpy(t.shape, shapes, sizeof shapes);
        try_kernel(t);
        t.tolerance = 1e-5;
        for (int i = 0; i < inputs; i++) t.fill[i] = FILL_BETWEEN;
        try_kernel(t);
    }
}

/* --- nets --- */

static void check_nets(int batch, int classes, enum fill fill) {
    const struct shape rows = SHAPE(batch, classes), one = SHAPE(batch);
    struct trial t = {.inputs = 1, .shape = {rows}, .fill = {fill}, .tolerance = 1e-5};
    t.op = OP_softmax;
    try_kernel(t);
    t.op = OP_softmax_grad;
    t.inputs = 2;
    t.shape[1] = rows;
    t.fill[1] = FILL_BETWEEN;
    try_kernel(t);
    t.op = OP_softmax_cross_entropy;
    t.shape[1] = t.shape[2] = one;
    t.type[1] = TYPE_INT;
    t.fill[1] = FILL_LABELS;
    try_kernel(t);
    t.attributes.smoothing = 0.1f;
    try_kernel(t);
    t.op = OP_softmax_cross_entropy_grad;
    t.inputs = 3;
    t.fill[2] = FILL_BETWEEN;
    try_kernel(t);
    t.attributes.smoothing = 0.0f;
    try_kernel(t);
    t.fill[0] = FILL_POSITIVE;
    t.op = OP_cross_entropy_grad;
    try_kernel(t);
    t.op = OP_cross_entropy;
    t.inputs = 2;
    try_kernel(t);
}

static void test_nets(void) {
    const int sizes[] = {1, 3, 7, 17};
    for (int i = 0; i < 16; i++) check_nets(sizes[i % 4], sizes[i / 4], FILL_BETWEEN);
    check_nets(128, 10, FILL_WHOLE);
    check_nets(70, 33, FILL_BETWEEN);
    check_nets(3, 1024, FILL_BETWEEN);
    check_nets(3, 1025, FILL_WHOLE);
    check_nets(5, 3000, FILL_BETWEEN);
    check_nets(2, 3000, FILL_SPECIAL);
    check_nets(33, 5, FILL_SPECIAL);
}

/* A label beyond the classes: what is computed of its row is not a number, of the other rows as ever. */
static void test_wrong_labels(void) {
    const enum op ops[] = {OP_cross_entropy, OP_softmax_cross_entropy, OP_cross_entropy_grad,
                           OP_softmax_cross_entropy_grad};
    for (int o = 0; o < 4; o++) {
        struct trial t = {.op = ops[o], .inputs = o < 2 ? 2 : 3};
        t.shape[0] = SHAPE(3, 4);
        t.shape[1] = t.shape[2] = SHAPE(3);
        t.type[1] = TYPE_INT;
        struct problem problem;
        void *plan = NULL;
        if (!task_of(&t, &problem) || prepare_on_gpu(&problem, &plan) != OK) continue;
        float p[12], dloss[3] = {1, 1, 1}, expected[12];
        int labels[3] = {2, 1, 3};
        for (int i = 0; i < 12; i++) p[i] = 0.25f;
        const size_t row = o < 2 ? 1 : 4;
        void *host[] = {p, labels, dloss};
        struct error error = {0};
        for (int wrong = -1; wrong <= 4; wrong += 5) {
            labels[1] = 1;
            CHECK(call_kernel(reference_kernels[t.op], &problem, NULL, host, expected, NULL, &error) == OK,
                  "%s", error.words);
            labels[1] = wrong;
            for (size_t i = 0; i < row; i++) expected[row + i] = NAN;
            t.tolerance = 1e-6;
            check_on_gpu(&t, &problem, gpu.backend->kernels(&gpu, t.op)[0], plan, host, expected);
        }
    }
}

/* --- images --- */

static const struct {
    int in[4], window[2], stride[2];
    enum padding padding;
} pools[] = {
    {{1, 1, 1, 1}, {1, 1}, {1, 1}, PADDING_VALID},
    {{1, 1, 1, 1}, {5, 5}, {1, 1}, PADDING_SAME},
    {{2, 5, 7, 3}, {3, 3}, {1, 1}, PADDING_SAME},
    {{2, 5, 7, 3}, {3, 3}, {1, 1}, PADDING_VALID},
    {{1, 6, 6, 2}, {3, 3}, {2, 2}, PADDING_SAME},
    {{1, 7, 6, 2}, {3, 3}, {2, 2}, PADDING_SAME},
    {{1, 7, 6, 2}, {3, 3}, {2, 2}, PADDING_VALID},
    {{3, 4, 5, 1}, {2, 4}, {1, 2}, PADDING_SAME},
    {{2, 5, 5, 17}, {5, 5}, {1, 1}, PADDING_SAME},
    {{1, 5, 4, 3}, {1, 1}, {3, 2}, PADDING_SAME},
    {{1, 9, 3, 2}, {2, 2}, {3, 3}, PADDING_VALID},
    {{1, 3, 2, 300}, {2, 2}, {1, 1}, PADDING_SAME},
    {{3, 24, 24, 8}, {3, 3}, {2, 2}, PADDING_SAME},
    {{2, 12, 11, 5}, {2, 2}, {4, 4}, PADDING_SAME},
    {{2, 8, 11, 8}, {3, 3}, {2, 2}, PADDING_VALID},
    {{2, 7, 9, 24}, {3, 3}, {2, 2}, PADDING_SAME},
    {{2, 7, 5, 8}, {3, 3}, {1, 1}, PADDING_SAME},
    {{1, 1, 2, 8}, {3, 3}, {2, 2}, PADDING_SAME},
    {{2, 5, 6, 8}, {2, 2}, {1, 1}, PADDING_SAME},
    {{2, 40, 23, 64}, {3, 3}, {2, 2}, PADDING_SAME},  /* several tiles of cells, some within an image */
    {{1, 6, 90, 80}, {3, 3}, {2, 2}, PADDING_VALID},  /* larger tiles */
    {{1, 5, 24, 1504}, {3, 3}, {2, 2}, PADDING_SAME}, /* none */
    {{1, 9, 11, 16}, {3, 2}, {1, 3}, PADDING_SAME},
    {{2, 20, 40, 4}, {16, 16}, {5, 7}, PADDING_SAME},
    {{1, 30, 20, 8}, {17, 16}, {7, 2}, PADDING_SAME},
    /* side by side; the last ones leave a row or a column out */
    {{2, 6, 4, 8}, {2, 2}, {2, 2}, PADDING_VALID},
    {{2, 7, 5, 3}, {2, 2}, {2, 2}, PADDING_SAME},
    {{2, 7, 5, 16}, {3, 2}, {3, 2}, PADDING_SAME},
    {{2, 7, 5, 8}, {7, 5}, {7, 5}, PADDING_VALID},
    {{1, 7, 4, 8}, {2, 2}, {2, 2}, PADDING_VALID},
    {{1, 6, 7, 3}, {3, 3}, {3, 3}, PADDING_VALID},
};

static void check_pool(size_t number, enum fill fill, bool narrow) {
    struct trial t = {.op = OP_maxpool, .inputs = 1, .fill = {fill, FILL_BETWEEN}, .narrow = narrow};
    struct problem problem;
    const int *in = pools[number].in;
    t.shape[0] = SHAPE(in[0], in[1], in[2], in[3]);
    t.type[0] = t.type[1] = narrow ? TYPE_BF16 : TYPE_FLOAT;
    for (int axis = 0; axis < 2; axis++) {
        t.attributes.window[axis] = pools[number].window[axis];
        t.attributes.stride[axis] = pools[number].stride[axis];
    }
    t.attributes.padding = pools[number].padding;
    try_kernel(t);
    if (!task_of(&t, &problem)) return;
    t.op = OP_maxpool_grad;
    t.inputs = 2;
    t.shape[1] = problem.output.shape;
    try_kernel(t);
    if (narrow || fill != FILL_WHOLE) return;
    struct trial mean = t;
    mean.op = OP_avgpool;
    mean.inputs = 1;
    try_kernel(mean);
    mean.op = OP_avgpool_grad;
    mean.attributes.shape = t.shape[0];
    mean.shape[0] = problem.output.shape;
    try_kernel(mean);
}

static void check_lrn(int rows, int channels, struct lrn lrn, bool narrow) {
    struct trial t = {.op = OP_lrn, .inputs = 1, .narrow = narrow};
    t.shape[0] = t.shape[1] = SHAPE(rows, channels);
    t.type[0] = t.type[1] = narrow ? TYPE_BF16 : TYPE_FLOAT;
    t.fill[0] = t.fill[1] = FILL_BETWEEN;
    t.attributes.lrn = lrn;
    t.tolerance = lrn.beta < 0.75f || lrn.beta > 0.75f ? narrow ? 1e-2 : 1e-5 : 0.0;
    t.widens = true;
    try_kernel(t);
    t.op = OP_lrn_grad;
    t.inputs = 2;
    try_kernel(t);
    t.attributes.activation = ACTIVATION_RELU;
    try_kernel(t);
    t.fill[0] = FILL_SPECIAL;
    if (rows < 4)
        try_kernel(t); /* on a CPU a row that is not a number may spoil the end of the row before it */
}

static void test_images(void) {
    const int channels[] = {1, 3, 8, 17, 64, 255, 257, 1504};
    for (int narrow = 0; narrow < 2; narrow++) {
        for (size_t p = 0; p < sizeof pools / sizeof *pools; p++) {
            check_pool(p, FILL_WHOLE, narrow == 1);
            check_pool(p, FILL_BETWEEN, narrow == 1); /* its largest are anywhere */
            check_pool(p, FILL_SPECIAL, narrow == 1);
        }
        for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
            check_lrn(3, channels[i], (struct lrn){4, 1.0f, 0.3f, 0.75f}, narrow == 1);
            check_lrn(2, channels[i], (struct lrn){1, 2.0f, 0.1f, 1.0f}, narrow == 1);
            check_lrn(2, channels[i], (struct lrn){MAX_LRN_RADIUS, 1.0f, 0.01f, 0.75f}, narrow == 1);
            check_lrn(1, channels[i], (struct lrn){0, 1.0f, 1.0f, 0.5f}, narrow == 1);
            /* several tiles, that end within rows of channels */
            check_lrn(6400 / channels[i], channels[i], (struct lrn){5, 1.0f, 0.3f, 0.75f}, narrow == 1);
        }
    }
}

static void check_norm(int rows, int channels) {
    const struct shape x = SHAPE(rows, channels), pair = SHAPE(2, channels), one = SHAPE(channels);
    struct trial t = {.op = OP_moments, .inputs = 1, .shape = {x}, .tolerance = 1e-5};
    t.attributes.epsilon = 0.01f;
    for (int i = 0; i < TRIAL_OPERANDS; i++) t.fill[i] = FILL_POSITIVE;
    try_kernel(t);
    struct trial far = t; /* a variance that is far below the mean's square */
    far.fill[0] = FILL_FAR;
    far.tolerance = 1e-6;
    try_kernel(far);
    t.op = OP_batch_norm_sums;
    t.inputs = 3;
    t.shape[1] = pair;
    t.shape[2] = x;
    try_kernel(t);
    t.op = OP_batch_norm;
    t.inputs = 4;
    t.shape[2] = t.shape[3] = one;
    t.tolerance = 0.0;
    try_kernel(t);
    t.op = OP_batch_norm_grad;
    t.inputs = 5;
    t.shape[3] = pair;
    t.shape[4] = x;
    try_kernel(t);
}

/* --- bf16, sizes, and who has a kernel --- */

static void test_narrow(void) {
    for (int types = 0; types < 8; types++)
        try_kernel(
            (struct trial){.op = OP_relu_grad,
                           .inputs = 2,
                           .shape = {SHAPE(3, 67), SHAPE(3, 67)},
                           .type = {types & 1 ? TYPE_BF16 : TYPE_FLOAT, types & 2 ? TYPE_BF16 : TYPE_FLOAT},
                           .fill = {FILL_SPECIAL, FILL_BETWEEN},
                           .narrow = types & 4});
    const int lengths[] = {1, 128, 300, 20000};
    for (int i = 0; i < 4; i++)
        try_kernel((struct trial){.op = OP_reduce_sum,
                                  .inputs = 1,
                                  .shape = {SHAPE(lengths[i], 7)},
                                  .type = {TYPE_BF16},
                                  .attributes.axis = 0});
}

/* All that lower.c does not keep in bf16, and what cannot be counted in 32 bits, is declined. */
static void check_declined(enum op op) {
    struct attributes attributes = {.window = {1, 1}, .stride = {1, 1}, .axis = 0, .lrn = {1, 1, 1, 1}};
    const struct shape image = SHAPE(1, 4, 4, 2), huge = SHAPE(1 << 11, 1 << 10, 1 << 5, 1 << 5);
    const bool narrow =
        op == OP_maxpool || op == OP_maxpool_grad || op == OP_lrn || op == OP_lrn_grad || op == OP_relu_grad;
    struct problem problem = {.op = op, .attributes = &attributes, .inputs = operations[op].inputs};
    void *plan = NULL;
    if (problem.inputs == VARIES) problem.inputs = 2;
    for (int i = 0; i < problem.inputs; i++) problem.input[i].shape = image;
    problem.output.shape = image;
    problem.output.type = TYPE_BF16;
    CHECK(prepare_on_gpu(&problem, &plan) == KERNEL_DECLINED || op == OP_relu_grad, "%s: a bf16 result",
          op_name(op));
    if (problem.inputs > 0 && op != OP_reduce_sum) {
        problem.output.type = TYPE_FLOAT;
        problem.input[0].type = TYPE_BF16;
        CHECK(prepare_on_gpu(&problem, &plan) == KERNEL_DECLINED || op == OP_relu_grad, "%s: a bf16 operand",
              op_name(op));
    }
    problem.input[0].type = narrow ? TYPE_FLOAT : TYPE_INT;
    problem.input[0].shape = huge;
    problem.output.type = TYPE_FLOAT;
    CHECK(prepare_on_gpu(&problem, &plan) == KERNEL_DECLINED, "%s: 2^31 elements", op_name(op));
}

static bool is_libraries(enum op op) {
    const enum op theirs[] = {OP_matmul,      OP_dense,         OP_conv2d,
                              OP_conv2d_bias, OP_conv2d_grad_x, OP_conv2d_grad_kernel};
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        if (op == theirs[i]) return true;
    return false;
}

/* What a row names and nobody defines does not link. */
static void test_all_tried(void) {
    for (int op = 0; op < OPS; op++) {
        if (!gpu.backend->kernels(&gpu, (enum op)op)[0]) {
            printf("%s has no kernel on a GPU\n", op_name((enum op)op));
        } else if (!is_libraries((enum op)op)) {
            CHECK(trials[op] > 0, "%s was not tried", op_name((enum op)op));
            if (op != OP_shape && op != OP_rank) check_declined((enum op)op);
        }
        CHECK(declined[op] == 0, "%s: declined %d trials", op_name((enum op)op), declined[op]);
    }
}

int main(void) {
    struct error error = {0};
    gpu_or_skip();
    CHECK(gpu.backend->open(&gpu, &error) == OK, "%s", error.words);
    if (error.code != OK) return check_end();
    test_rows();
    test_casts();
    test_dropout();
    test_state();
    test_arrays();
    test_reductions();
    test_order();
    check_decayed();
    test_nets();
    test_wrong_labels();
    test_images();
    check_norm(1, 1);
    check_norm(7, 3);
    check_norm(130, 17);
    check_norm(3, 300);
    check_norm(20000, 5);
    check_norm(9000, 12);
    check_norm(8192, 64);
    check_norm(300, 256);
    test_narrow();
    test_all_tried();
    gpu.backend->close(&gpu);
    return check_end();
}
