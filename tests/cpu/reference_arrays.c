/* Reference kernels of arrays and reductions: every one against positions worked out naively, one element at
 * a time, over odd shapes. Whole numbers make sums exact, so the comparisons are for equality. */
#include "../naive.h"

/* --- arrays --- */

static const struct shape blocks[] = {{1, {17}},      {2, {7, 3}},       {2, {1, 17}},
                                      {3, {3, 7, 5}}, {4, {2, 3, 4, 3}}, {3, {17, 1, 7}}};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

static void check_transpose(struct shape shape, const int *order, bool as_bool) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node x = whole(&g, shape, 9), source = as_bool ? graph_greater(&g, x, graph_scalar(&g, 0)) : x;
    const node y = graph_transpose(&g, source, order);
    evaluate(&s, &g, y);
    const struct shape out = g.nodes[y].shape;
    for (size_t i = 0; i < shape_count(&out); i++) {
        int index[MAX_RANK], from[MAX_RANK];
        unravel(&out, i, index);
        for (int axis = 0; axis < out.rank; axis++) from[order[axis]] = index[axis];
        const float want = constant(&g, x)[ravel(&shape, from)];
        if (as_bool)
            CHECK(((const uint8_t *)session_value(&s, y))[i] == (want > 0), "element %zu", i);
        else
            CHECK(session_float(&s, y, i) == want, "element %zu of rank %d", i, out.rank);
    }
    finish(&s, &g);
}

static void check_slice_and_pad(struct shape shape) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node x = whole(&g, shape, 10);
    struct node_info pad = {.op = OP_pad, .inputs = 1, .attributes.shape = shape};
    struct shape size = shape;
    for (int axis = 0; axis < shape.rank; axis++) {
        pad.attributes.begin[axis] = shape.dims[axis] / 3;
        size.dims[axis] = shape.dims[axis] - 2 * (shape.dims[axis] / 3);
    }
    const node y = graph_slice(&g, x, pad.attributes.begin, size);
    pad.input[0] = y;
    const node z = graph_make(&g, &pad);
    session_open(&s, &g, (node[]){y, z}, 2);
    session_run(&s);
    covered[OP_slice] = covered[OP_pad] = true;
    size_t inside = 0;
    for (size_t i = 0; i < shape_count(&shape); i++) {
        int index[MAX_RANK];
        bool in = true;
        unravel(&shape, i, index);
        for (int axis = 0; axis < shape.rank; axis++) {
            index[axis] -= pad.attributes.begin[axis];
            in = in && index[axis] >= 0 && index[axis] < size.dims[axis];
        }
        const float value = constant(&g, x)[i];
        CHECK(session_float(&s, z, i) == (in ? value : 0.0f), "pad, element %zu", i);
        if (in) CHECK(session_float(&s, y, ravel(&size, index)) == value, "slice, element %zu", i);
        inside += in;
    }
    CHECK(inside == shape_count(&size), "%zu elements inside", inside);
    finish(&s, &g);
}

static void check_concat(struct shape shape, int axis) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    struct shape other = shape;
    other.dims[axis] += 2;
    const node parts[] = {whole(&g, shape, 1), whole(&g, other, 2), whole(&g, shape, 3)};
    const node y = graph_concat(&g, parts, 3, axis);
    evaluate(&s, &g, y);
    const struct shape out = g.nodes[y].shape;
    for (size_t i = 0; i < shape_count(&out); i++) {
        int index[MAX_RANK], part = 0;
        unravel(&out, i, index);
        for (; index[axis] >= g.nodes[parts[part]].shape.dims[axis]; part++)
            index[axis] -= g.nodes[parts[part]].shape.dims[axis];
        const float want = constant(&g, parts[part])[ravel(&g.nodes[parts[part]].shape, index)];
        CHECK(session_float(&s, y, i) == want, "concat along %d, element %zu", axis, i);
    }
    finish(&s, &g);
}

static void check_shape_of(struct shape shape) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node x = whole(&g, shape, 11), y = graph_shape(&g, x), rank = graph_rank(&g, x);
    const node flat = graph_reshape(&g, x, SHAPE(-1)),
               wide = graph_broadcast(&g, flat, SHAPE(3, (int)shape_count(&shape)));
    const node still = graph_make(&g, &(struct node_info){.op = OP_copy, .inputs = 1, .input = {flat}});
    session_open(&s, &g, (node[]){y, rank, flat, wide, still}, 5);
    session_run(&s);
    covered[OP_shape] = covered[OP_rank] = covered[OP_reshape] = covered[OP_broadcast_to] = true;
    CHECK(session_int(&s, rank, 0) == shape.rank, "rank");
    for (int axis = 0; axis < shape.rank; axis++)
        CHECK(session_int(&s, y, (size_t)axis) == shape.dims[axis], "axis %d", axis);
    const size_t count = shape_count(&shape);
    for (size_t i = 0; i < count; i++) {
        const float want = constant(&g, x)[i];
        CHECK(session_float(&s, flat, i) == want && session_float(&s, still, i) == want,
              "reshape, element %zu", i);
        CHECK(session_float(&s, wide, 2 * count + i) == want, "broadcast, element %zu", i);
    }
    finish(&s, &g);
}

static void check_broadcast(struct shape from, struct shape to) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node x = whole(&g, from, 12), y = graph_broadcast(&g, x, to);
    const node small = graph_broadcast(&g, graph_greater(&g, x, graph_scalar(&g, 0)), to);
    session_open(&s, &g, (node[]){y, small}, 2);
    session_run(&s);
    for (size_t i = 0; i < shape_count(&to); i++) {
        const float want = constant(&g, x)[broadcast_position(&to, &from, i)];
        CHECK(session_float(&s, y, i) == want, "element %zu", i);
        CHECK(((const uint8_t *)session_value(&s, small))[i] == (want > 0), "bool element %zu", i);
    }
    finish(&s, &g);
}

static void test_arrays(void) {
    for (int b = 0; b < BLOCKS; b++) {
        const int rank = blocks[b].rank;
        int turned[MAX_RANK], rolled[MAX_RANK];
        for (int axis = 0; axis < rank; axis++) {
            turned[axis] = rank - 1 - axis;
            rolled[axis] = (axis + 1) % rank;
            check_concat(blocks[b], axis);
        }
        for (int as_bool = 0; as_bool < 2; as_bool++) {
            check_transpose(blocks[b], turned, as_bool == 1);
            check_transpose(blocks[b], rolled, as_bool == 1);
        }
        check_slice_and_pad(blocks[b]);
        check_shape_of(blocks[b]);
    }
    check_transpose(SHAPE(2, 3, 4, 5), (int[]){0, 2, 1, 3}, false);
    check_broadcast(SCALAR, SHAPE(3, 7));
    check_broadcast(SHAPE(7, 1), SHAPE(3, 7, 17));
    check_broadcast(SHAPE(3, 1, 17), SHAPE(3, 7, 17));
    check_broadcast(SHAPE(7), SHAPE(1, 7));
}

/* --- embedding --- */

enum { NUMBERS = 6, VOCABULARY = 5, UNITS = 7 };

/* Each number's row; a row's gradient is the sum over the numbers that are it. */
static void check_embedding(struct shape shape) {
    const float numbers[NUMBERS] = {4, 0, 2, 4, 4, 1};
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const struct shape table = SHAPE(VOCABULARY, UNITS);
    struct shape out = shape;
    out.dims[out.rank++] = UNITS;
    const node x = graph_constant(&g, shape, numbers), rows = whole(&g, table, 14), dy = whole(&g, out, 15);
    const node y = graph_binary(&g, OP_embedding, x, rows);
    struct node_info info = {
        .op = OP_embedding_grad, .inputs = 2, .input = {x, dy}, .attributes.shape = table};
    const node back = graph_make(&g, &info);
    session_open(&s, &g, (node[]){y, back}, 2);
    session_run(&s);
    covered[OP_embedding] = covered[OP_embedding_grad] = true;
    CHECK(shape_equal(&g.nodes[y].shape, &out), "shape");
    for (size_t u = 0; u < UNITS; u++) {
        for (size_t i = 0; i < NUMBERS; i++)
            CHECK(session_float(&s, y, i * UNITS + u) == constant(&g, rows)[(size_t)numbers[i] * UNITS + u],
                  "number %zu, unit %zu", i, u);
        for (size_t row = 0; row < VOCABULARY; row++) {
            float sum = 0;
            for (size_t i = 0; i < NUMBERS; i++)
                if (numbers[i] == (float)row) sum += constant(&g, dy)[i * UNITS + u];
            CHECK(session_float(&s, back, row * UNITS + u) == sum, "gradient of row %zu, unit %zu", row, u);
        }
    }
    finish(&s, &g);
}

/* What is no row of the table ends the run, forward and backward. */
static void test_wrong_numbers(void) {
    static const struct {
        float number;
        const char *words;
    } wrong[] = {{-1, "embedding: found -1, expected whole numbers from 0 to 4"},
                 {5, "embedding: found 5, expected whole numbers from 0 to 4"},
                 {1.5f, "embedding: found 1.5, expected whole numbers from 0 to 4"},
                 {1e30f, "embedding: found 1e+30, expected"},
                 {NAN, "embedding: found nan, expected"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int backward = 0; backward < 2; backward++) {
            struct graph g;
            struct session s;
            struct error error = {0};
            graph_open(&g, false, 1);
            const node x = graph_constant(&g, SHAPE(2), (float[]){0, wrong[i].number});
            struct node_info info = {
                .op = OP_embedding_grad, .inputs = 2, .input = {x, whole(&g, SHAPE(2, 3), 16)}};
            info.attributes.shape = SHAPE(VOCABULARY, 3);
            const node y = backward ? graph_make(&g, &info)
                                    : graph_binary(&g, OP_embedding, x, whole(&g, SHAPE(VOCABULARY, 3), 17));
            session_open(&s, &g, &y, 1);
            CHECK(program_run(s.program, s.arena, s.weights, s.gradients, &error) == ERROR_FILE &&
                      strncmp(error.words, wrong[i].words, strlen(wrong[i].words)) == 0,
                  "%g: %s", (double)wrong[i].number, error.words);
            finish(&s, &g);
        }
}

/* --- reductions --- */

static void check_reduction(struct shape shape, int axis, bool keep, bool ints) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node x = whole(&g, shape, 13), source = ints ? graph_cast(&g, x, TYPE_INT) : x;
    const node sum = graph_reduce_sum(&g, source, axis, keep),
               most = graph_reduce_max(&g, source, axis, keep);
    const node mean = graph_reduce_mean(&g, x, axis, keep);
    const node best = axis == ALL_AXES ? graph_scalar(&g, 0) : graph_argmax(&g, source, axis);
    session_open(&s, &g, (node[]){sum, mean, most, best}, 4);
    session_run(&s);
    covered[OP_reduce_sum] = covered[OP_reduce_mean] = covered[OP_reduce_max] = covered[OP_argmax] = true;
    const struct shape out = g.nodes[sum].shape;
    struct shape kept = shape;
    for (int i = 0; i < kept.rank; i++)
        if (axis == ALL_AXES || i == axis) kept.dims[i] = 1;
    CHECK(shape_count(&out) == shape_count(&kept) && out.rank == (keep               ? shape.rank
                                                                  : axis == ALL_AXES ? 0
                                                                                     : shape.rank - 1),
          "shape");
    for (size_t o = 0; o < shape_count(&out); o++) {
        double total = 0, largest = -100;
        int count = 0, where = 0;
        for (size_t i = 0; i < shape_count(&shape); i++) {
            if (broadcast_position(&shape, &kept, i) != o) continue;
            const double value = constant(&g, x)[i];
            if (value > largest) where = count;
            largest = fmax(largest, value);
            total += value;
            count++;
        }
        const double found = ints ? (double)session_int(&s, sum, o) : (double)session_float(&s, sum, o);
        const double top = ints ? (double)session_int(&s, most, o) : (double)session_float(&s, most, o);
        CHECK(found == total, "sum over axis %d, element %zu: %g, expected %g", axis, o, found, total);
        CHECK(session_float(&s, mean, o) == (float)total / (float)count, "mean over axis %d, element %zu",
              axis, o);
        CHECK(top == largest, "max over axis %d, element %zu", axis, o);
        if (axis != ALL_AXES)
            CHECK(session_int(&s, best, o) == where, "argmax over axis %d, element %zu", axis, o);
    }
    finish(&s, &g);
}

static void test_reductions(void) {
    for (int b = 0; b < BLOCKS; b++)
        for (int axis = -1; axis < blocks[b].rank; axis++)
            for (int variant = 0; variant < 4; variant++)
                check_reduction(blocks[b], axis < 0 ? ALL_AXES : axis, (variant & 1) != 0,
                                (variant & 2) != 0);
    check_reduction(SHAPE(100), ALL_AXES, false, false);
}

int main(void) {
    test_arrays();
    check_embedding(SHAPE(NUMBERS));
    check_embedding(SHAPE(3, 2));
    check_embedding(SHAPE(1, 2, 3));
    test_wrong_numbers();
    test_reductions();
    for (int op = 0; op < OPS; op++)
        CHECK(covered[op] || !is_of_arrays(op), "the operation %s has no test here", op_name((enum op)op));
    return check_end();
}
