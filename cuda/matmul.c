/* Matrix products by cuBLASLt (product.c): matmul, and dense, whose bias and ReLU are cuBLASLt's epilogue.
 *
 * In bf16 what is float32 in memory is converted in each run, but for weights that the program has converted.
 */
#include "measure.h"

#include <stdio.h>
#include "../src/base/memory.h"
#include "operands.h"
#include "product.h"

_Static_assert((int)FINISH_NONE == (int)ACTIVATION_NONE && (int)FINISH_RELU == (int)ACTIVATION_RELU &&
                   (int)FINISH_SIGMOID == (int)ACTIVATION_SIGMOID && (int)FINISH_TANH == (int)ACTIVATION_TANH,
               "activations have the same numbers for device code");

struct plan {
    struct product product;
    int taken; /* which of its algorithms */
};

struct instance {
    const struct device *device;
    cublasLtMatmulDesc_t descriptor;
    void *block;        /* of GPU memory, owned; in it: */
    void *converted[2]; /* operands in bf16; NULL: they come so */
    void *bias;         /* in bf16; NULL: as it comes */
    void *workspace;
};

static bool is_possible(const struct problem *problem, enum type type, const struct shape *shape) {
    const bool narrow = type == TYPE_BF16 && problem->device->precision == PRECISION_BF16;
    const size_t count = shape_count(shape);
    return (type == TYPE_FLOAT || narrow) && shape->rank == 2 && count > 0 && count <= INT32_MAX;
}

static bool takes(const struct problem *problem) {
    for (int i = 0; i < 2; i++)
        if (!is_possible(problem, problem->input[i].type, &problem->input[i].shape)) return false;
    if (problem->op == OP_dense && problem->input[2].type != TYPE_FLOAT) return false;
    return is_possible(problem, problem->output.type, &problem->output.shape);
}

static struct matrix matrix_of(const struct shape *shape, enum type type) {
    return (struct matrix){
        .rows = shape->dims[0], .columns = shape->dims[1], .pitch = shape->dims[1], .type = type};
}

static void release(void *prepared) {
    struct plan *plan = prepared;
    if (plan) product_close(&plan->product);
    memory_free(plan);
}

/* In each run, by the kernel itself. */
static bool is_converted(const struct problem *problem, const struct plan *plan, int i) {
    return problem->input[i].type != plan->product.computed && !(problem->ready >> i & 1);
}

static bool wants(const struct problem *problem, const void *prepared, int i, struct form *form) {
    const struct product *product = &((const struct plan *)prepared)->product;
    const int *dims = problem->input[i].shape.dims;
    *form = (struct form){.type = TYPE_BF16, .rows = 1, .columns = dims[0]};
    if (i == 2) return product_narrows_bias(product);
    form->rows = dims[0];
    form->columns = dims[1];
    return problem->input[i].type == TYPE_FLOAT && product->computed == TYPE_BF16;
}

static int add_memory(const struct problem *problem, const struct plan *plan, struct instance *made,
                      struct error *error) {
    size_t bytes = 0, converted[2] = {0};
    const size_t wanted = plan->product.found[plan->taken].workspaceSize;
    const bool narrow_bias = product_narrows_bias(&plan->product) && !(problem->ready >> 2 & 1);
    for (int i = 0; i < 2; i++)
        if (is_converted(problem, plan, i))
            converted[i] =
                gpu_part(&bytes, shape_count(&problem->input[i].shape) * type_bytes(plan->product.computed));
    const size_t bias =
        narrow_bias ? gpu_part(&bytes, shape_count(&problem->input[2].shape) * type_bytes(TYPE_BF16)) : 0;
    const size_t workspace = gpu_part(&bytes, wanted);
    if (bytes == 0) return OK;
    RETURN_IF(gpu_allocate(problem->device, &made->block, bytes, "room for a matrix product", error));
    char *block = made->block;
    for (int i = 0; i < 2; i++)
        if (is_converted(problem, plan, i)) made->converted[i] = block + converted[i];
    if (narrow_bias) made->bias = block + bias;
    if (wanted > 0) made->workspace = block + workspace;
    return OK;
}

static void unbind(void *bound) {
    struct instance *instance = bound;
    if (!instance) return;
    if (instance->block) gpu_release(instance->device, instance->block);
    if (instance->descriptor) cublasLtMatmulDescDestroy(instance->descriptor);
    memory_free(instance);
}

static int bind(const struct problem *problem, const void *prepared, void **instance, struct error *error) {
    const struct plan *plan = prepared;
    struct instance *made = NULL;
    struct queue *queue = gpu_queue(problem->device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_blas(problem->device, queue, error)); /* not while a run is recorded */
    RETURN_IF(memory_array(&made, 1, "a matrix product", error));
    made->device = problem->device;
    int code = product_describe(&plan->product, &made->descriptor, error);
    if (code == OK) code = add_memory(problem, plan, made, error);
    if (code == OK)
        *instance = made;
    else
        unbind(made);
    return code;
}

/* *to is operand i in the type that is multiplied. */
static int bring(const struct call *call, const struct queue *queue, int i, const void **to,
                 struct error *error) {
    const struct problem *problem = call->problem;
    const struct plan *plan = call->plan;
    const struct instance *instance = call->instance;
    *to = call->input[i];
    if (!is_converted(problem, plan, i)) return OK;
    *to = instance->converted[i];
    GPU_TRY(problem->device,
            operand_convert(queue->stream, instance->converted[i], plan->product.computed, call->input[i],
                            problem->input[i].type, shape_count(&problem->input[i].shape)),
            error);
    return OK;
}

static int bring_bias(const struct call *call, const struct queue *queue, const void **to,
                      struct error *error) {
    const struct instance *instance = call->instance;
    *to = call->input[2];
    if (!instance->bias) return OK;
    *to = instance->bias;
    GPU_TRY(call->problem->device,
            operand_convert(queue->stream, instance->bias, TYPE_BF16, call->input[2], TYPE_FLOAT,
                            shape_count(&call->problem->input[2].shape)),
            error);
    return OK;
}

/* *status: the library's, of the product itself. */
static int multiply(const struct call *call, cublasStatus_t *status, struct error *error) {
    const struct problem *problem = call->problem;
    const struct plan *plan = call->plan;
    const struct instance *instance = call->instance;
    const bool has_bias = product_has_bias(&plan->product);
    struct product_operands operands = {.y = call->output, .workspace = instance->workspace};
    struct queue *queue = gpu_queue(problem->device, error);
    if (!queue) return error->code;
    RETURN_IF(bring(call, queue, 0, &operands.a, error));
    RETURN_IF(bring(call, queue, 1, &operands.b, error));
    if (has_bias) RETURN_IF(bring_bias(call, queue, &operands.bias, error));
    RETURN_IF(product_run(&plan->product, plan->taken, instance->descriptor, &operands, status, error));
    if (problem->op == OP_matmul || has_bias) return OK;
    const enum type type = problem->output.type;
    const int *dims = problem->output.shape.dims;
    GPU_TRY(problem->device,
            operand_finish(queue->stream, call->output, type, call->output, type, call->input[2], dims[0],
                           dims[1], (enum finish)problem->attributes->activation),
            error);
    return OK;
}

static int run(const struct call *call, struct error *error) {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    const int code = multiply(call, &status, error);
    if (code != KERNEL_DECLINED) return code;
    return gpu_failed(call->problem->device, "cublasLtMatmul", 0, "what was possible is no longer", __FILE__,
                      __LINE__, error);
}

/* While algorithms are measured: what keeps one from running is remembered. */
static int try(const struct call *call, struct error *error) {
    const struct plan *plan = call->plan;
    return multiply(call, &plan->product.status[plan->taken], error);
}

static int take(const struct problem *problem, void *prepared, int number, struct error *error) {
    (void)problem;
    (void)error;
    struct plan *plan = prepared;
    plan->taken = number;
    return OK;
}

/* Whether cuBLASLt can do it with that epilogue. */
static int plan_with(const struct problem *problem, struct plan *plan, cublasLtEpilogue_t epilogue,
                     struct error *error) {
    RETURN_IF(product_find(&plan->product, epilogue, error));
    if (plan->product.count == 0) return KERNEL_DECLINED;
    const struct contest contest = {
        .count = plan->product.count, .take = take, .bind = bind, .unbind = unbind, .run = try};
    return gpu_measure(problem, plan, &contest, error);
}

static int make_plan(const struct problem *problem, struct plan *plan, struct error *error) {
    const struct attributes *attributes = problem->attributes;
    const enum type computed = problem->device->precision == PRECISION_BF16 ? TYPE_BF16 : TYPE_FLOAT;
    const bool dense = problem->op == OP_dense;
    const struct product_wish wish = {
        .a = matrix_of(&problem->input[0].shape, computed),
        .b = matrix_of(&problem->input[1].shape, computed),
        .y = matrix_of(&problem->output.shape, problem->output.type),
        .turned = {!dense && attributes->transpose_a, !dense && attributes->transpose_b}};
    RETURN_IF(product_open(&plan->product, problem->device, &wish, error));
    const cublasLtEpilogue_t epilogue =
        dense ? product_epilogue(attributes->activation) : CUBLASLT_EPILOGUE_DEFAULT;
    const int code = plan_with(problem, plan, epilogue, error);
    if (code != KERNEL_DECLINED || epilogue == CUBLASLT_EPILOGUE_DEFAULT) return code;
    return plan_with(problem, plan, CUBLASLT_EPILOGUE_DEFAULT, error);
}

static int prepare(const struct problem *problem, void **plan, struct error *error) {
    struct plan *made = NULL;
    if (!takes(problem)) return KERNEL_DECLINED;
    RETURN_IF(memory_array(&made, 1, "the plan of a matrix product", error));
    const int code = make_plan(problem, made, error);
    if (code == OK)
        *plan = made;
    else
        release(made);
    return code;
}

/* "cublaslt:", and what product_say says. */
static void describe(const void *prepared, char *out, size_t bytes) {
    const struct plan *plan = prepared;
    const int used = snprintf(out, bytes, "cublaslt:");
    product_say(&plan->product, plan->taken, plan->product.found[plan->taken].workspaceSize, out + used,
                bytes - (size_t)used);
}

#define KERNEL(op)                                                                                           \
    const struct kernel gpu_##op = {.name = "cublaslt:" #op,                                                 \
                                    .prepare = prepare,                                                      \
                                    .release = release,                                                      \
                                    .bind = bind,                                                            \
                                    .unbind = unbind,                                                        \
                                    .run = run,                                                              \
                                    .wants = wants,                                                          \
                                    .describe = describe}
KERNEL(matmul);
KERNEL(dense);
