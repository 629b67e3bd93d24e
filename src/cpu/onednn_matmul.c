/* Matrix products by oneDNN: matmul, and dense, which is a matmul followed by a bias and an activation.
 *
 * Operands stay plain and row-major as the graph has them; a transposed one is the same memory with its
 * strides swapped. Measured on one Zen 4 core, batch 100, 784-100-10, in microseconds: matmul 159 forward
 * and 167 for the weights' gradient; inner_product 159 + 9 for bringing its weights into oneDNN's own
 * format, and 180 + 8; through oneDNN's gemm 164 and 163, but that one takes memory in each call. The
 * small products take 3 to 4. A single dot product is left to the reference kernel, which takes a third of
 * the time. */
#include "onednn.h"

/* The form of a matrix of `shape`, seen transposed or not. */
static struct onednn_form matrix(const struct shape *shape, bool transposed, dnnl_data_type_t type) {
    const int rows = shape->dims[transposed ? 1 : 0], columns = shape->dims[transposed ? 0 : 1];
    return (struct onednn_form){.rank = 2,
                                .dims = {rows, columns},
                                .strides = {transposed ? 1 : columns, transposed ? rows : 1},
                                .type = type};
}

/* An operand as it is in memory, and as the product wants it: the same, or in the type that is computed in,
 * in whatever form suits it when it has to be converted anyway. */
static void operand_forms(const struct problem *problem, int i, bool transposed, struct onednn_form *plain,
                          struct onednn_form *wanted) {
    const dnnl_data_type_t own = onednn_type(problem->input[i].type), computed = onednn_compute_type(problem);
    *wanted = *plain = matrix(&problem->input[i].shape, transposed, own);
    wanted->type = computed;
    wanted->any = own != computed;
}

/* Floats with at least one element. */
static bool is_possible(enum type type, const struct shape *shape) {
    return (type == TYPE_FLOAT || type == TYPE_BF16) && shape_count(shape) > 0;
}

static bool takes(const struct problem *problem) {
    for (int i = 0; i < problem->inputs; i++)
        if (!is_possible(problem->input[i].type, &problem->input[i].shape)) return false;
    return is_possible(problem->output.type, &problem->output.shape) && problem->input[0].shape.rank == 2 &&
           problem->input[1].shape.rank == 2 && problem->output.shape.rank == 2;
}

static double multiply_adds(const struct problem *problem) {
    const double inner = (double)shape_count(&problem->input[0].shape) / problem->output.shape.dims[0];
    return inner * (double)shape_count(&problem->output.shape);
}

static int prepare_matmul(const struct problem *problem, void **plan, struct error *error) {
    static const struct onednn_argument arguments[] = {
        {DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_DST, ONEDNN_OUTPUT}, {0}};
    if (!takes(problem) || shape_count(&problem->output.shape) == 1) return KERNEL_DECLINED;
    struct onednn_request request = {.operation = {.kind = ONEDNN_MATMUL},
                                     .arguments = arguments,
                                     .multiply_adds = multiply_adds(problem)};
    operand_forms(problem, 0, problem->attributes->transpose_a, &request.plain[0], &request.operation.x);
    operand_forms(problem, 1, problem->attributes->transpose_b, &request.plain[1], &request.operation.kernel);
    request.operation.y = matrix(&problem->output.shape, false, onednn_type(problem->output.type));
    request.plain[2] = request.operation.y;
    return onednn_plan(problem, &request, plan, error);
}

ONEDNN_KERNEL(matmul, prepare_matmul);

static int prepare_dense(const struct problem *problem, void **plan, struct error *error) {
    static const struct onednn_argument arguments[] = {
        {DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_BIAS, 2}, {DNNL_ARG_DST, ONEDNN_OUTPUT}, {0}};
    if (!takes(problem) || problem->input[2].type != TYPE_FLOAT) return KERNEL_DECLINED;
    const struct shape bias_row =
        SHAPE(1, problem->output.shape.dims[1]); /* the bias [out], for each example */
    struct onednn_request request = {
        .operation = {.kind = ONEDNN_MATMUL, .has_bias = true, .activation = problem->attributes->activation},
        .arguments = arguments,
        .multiply_adds = multiply_adds(problem)};
    operand_forms(problem, 0, false, &request.plain[0], &request.operation.x);
    operand_forms(problem, 1, false, &request.plain[1], &request.operation.kernel);
    request.operation.bias = matrix(&bias_row, false, dnnl_f32);
    request.operation.y = matrix(&problem->output.shape, false, onednn_type(problem->output.type));
    request.plain[2] = request.operation.bias;
    request.plain[3] = request.operation.y;
    return onednn_plan(problem, &request, plan, error);
}

ONEDNN_KERNEL(dense, prepare_dense);
