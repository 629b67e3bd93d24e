/* Reference kernels: embedding and the gradient of its table, summed in the order of the numbers. What is no
 * row of the table is an error: any row in its place would be learnt in silence. */
#include <string.h>
#include "reference.h"

/* x [count], a table of `rows` rows. */
static int check_numbers(const float *x, size_t count, int rows, struct error *error) {
    for (size_t i = 0; i < count; i++)
        if (!(x[i] >= 0.0f && x[i] < (float)rows && x[i] == (float)(int)x[i]))
            return error_set(error, ERROR_FILE, "embedding: found %g, expected whole numbers from 0 to %d",
                             (double)x[i], rows - 1);
    return OK;
}

static int run_embedding(const struct call *call, struct error *error) {
    const struct problem *problem = call->problem;
    const struct shape *table = &problem->input[1].shape;
    const size_t count = shape_count(&problem->input[0].shape), units = (size_t)table->dims[1];
    const float *x = call->input[0], *rows = call->input[1];
    float *y = call->output;
    RETURN_IF(check_numbers(x, count, table->dims[0], error));
    for (size_t i = 0; i < count; i++) memcpy(y + i * units, rows + (size_t)x[i] * units, units * sizeof *y);
    return OK;
}
const struct kernel reference_embedding = {
    .name = "reference:embedding", .prepare = reference_wide, .run = run_embedding};

static int run_embedding_grad(const struct call *call, struct error *error) {
    const struct problem *problem = call->problem;
    const struct shape *table = &problem->output.shape;
    const size_t count = shape_count(&problem->input[0].shape), units = (size_t)table->dims[1];
    const float *x = call->input[0], *dy = call->input[1];
    float *sums = call->output;
    RETURN_IF(check_numbers(x, count, table->dims[0], error));
    memset(sums, 0, shape_count(table) * sizeof *sums);
    for (size_t i = 0; i < count; i++, dy += units) {
        float *row = sums + (size_t)x[i] * units;
        for (size_t u = 0; u < units; u++) row[u] += dy[u];
    }
    return OK;
}
const struct kernel reference_embedding_grad = {
    .name = "reference:embedding_grad", .prepare = reference_wide, .run = run_embedding_grad};
