/* Reference kernels: softmax and cross entropy. The largest logit is subtracted before the exponential, so
 * nothing overflows. */
#include <string.h>
#include "../device/formulas.h"
#include "reference.h"

static size_t last_axis(const struct shape *shape) {
    return (size_t)shape->dims[shape->rank - 1];
}

/* glibc has expf for whole vectors; saying so lets gcc use it. The error is at most 4 units in the last
 * place. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
extern float expf(float x) __attribute__((simd("notinbranch")));
#endif

/* y [rows, length] = exp(x - max of the row). All rows at once, so that short rows fill vectors. x and y may
 * be the same. */
static void exponentials(const float *x, size_t rows, size_t length, float *y) {
    for (size_t row = 0; row < rows; row++) {
        const float *from = x + row * length;
        float *to = y + row * length, top = from[0];
        for (size_t i = 1; i < length; i++) top = formula_largest(top, from[i]);
        for (size_t i = 0; i < length; i++) to[i] = from[i] - top;
    }
    for (size_t i = 0; i < rows * length; i++) y[i] = formula_exp(y[i]);
}

static float sum_of(const float *y, size_t length) {
    float sum = 0.0f;
    for (size_t i = 0; i < length; i++) sum += y[i];
    return sum;
}

static void softmax_rows(const float *x, size_t rows, size_t length, float *y) {
    exponentials(x, rows, length, y);
    for (size_t row = 0; row < rows; row++, y += length) {
        const float sum = sum_of(y, length);
        for (size_t i = 0; i < length; i++) y[i] /= sum;
    }
}

static int run_softmax(const struct call *call, struct error *error) {
    (void)error;
    const struct shape *shape = &call->problem->output.shape;
    const size_t length = last_axis(shape), rows = shape_count(shape) / length;
    softmax_rows(call->input[0], rows, length, call->output);
    return OK;
}
const struct kernel reference_softmax = {.name = "reference:softmax", .run = run_softmax};

/* y, dy: dx = y (dy - sum(y dy)) along the last axis. */
static int run_softmax_grad(const struct call *call, struct error *error) {
    (void)error;
    const struct shape *shape = &call->problem->output.shape;
    const size_t length = last_axis(shape), rows = shape_count(shape) / length;
    const float *y = call->input[0], *dy = call->input[1];
    float *dx = call->output;
    for (size_t row = 0; row < rows; row++, y += length, dy += length, dx += length) {
        float sum = 0.0f;
        for (size_t i = 0; i < length; i++) sum += y[i] * dy[i];
        for (size_t i = 0; i < length; i++) dx[i] = formula_softmax_grad(y[i], dy[i], sum);
    }
    return OK;
}
const struct kernel reference_softmax_grad = {.name = "reference:softmax_grad", .run = run_softmax_grad};

/* [batch, classes] values and their labels. */
struct labelled {
    size_t batch, classes;
    const float *x;    /* [batch, classes] */
    const int *labels; /* [batch] */
    float smoothing;
};

/* Labels come from files and are looked at before they are used as a position. */
static int labelled_open(struct labelled *l, const struct call *call, struct error *error) {
    const struct shape *shape = &call->problem->input[0].shape;
    *l = (struct labelled){(size_t)shape->dims[0], (size_t)shape->dims[1], call->input[0], call->input[1],
                           call->problem->attributes->smoothing};
    for (size_t i = 0; i < l->batch; i++)
        if (l->labels[i] < 0 || (size_t)l->labels[i] >= l->classes)
            return error_set(error, ERROR_DEVICE,
                             "%s: label %d of example %zu in the batch, expected 0 to %zu",
                             op_name(call->problem->op), l->labels[i], i, l->classes - 1);
    return OK;
}

static int run_cross_entropy(const struct call *call, struct error *error) {
    struct labelled l;
    RETURN_IF(labelled_open(&l, call, error));
    float *loss = call->output;
    for (size_t i = 0; i < l.batch; i++)
        loss[i] = formula_cross_entropy(l.x[i * l.classes + (size_t)l.labels[i]]);
    return OK;
}
const struct kernel reference_cross_entropy = {.name = "reference:cross_entropy", .run = run_cross_entropy};

/* p, labels, dloss: -dloss / p at the label, 0 elsewhere. */
static int run_cross_entropy_grad(const struct call *call, struct error *error) {
    struct labelled l;
    RETURN_IF(labelled_open(&l, call, error));
    const float *dloss = call->input[2];
    float *dx = call->output;
    memset(dx, 0, l.batch * l.classes * sizeof *dx);
    for (size_t i = 0; i < l.batch; i++) {
        const size_t at = i * l.classes + (size_t)l.labels[i];
        dx[at] = formula_cross_entropy_grad(l.x[at], dloss[i]);
    }
    return OK;
}
const struct kernel reference_cross_entropy_grad = {.name = "reference:cross_entropy_grad",
                                                    .run = run_cross_entropy_grad};

enum { CHUNK = 2048 }; /* floats on the stack */

/* loss [rows] of x [rows, length] = log(sum exp(x - max)) - (x[label] - max), from the exponentials of a
 * chunk. */
static void losses_of(const float *x, const int *labels, size_t rows, size_t length, float *loss) {
    float y[CHUNK];
    exponentials(x, rows, length, y);
    for (size_t row = 0; row < rows; row++) {
        float top = x[row * length];
        for (size_t c = 1; c < length; c++) top = formula_largest(top, x[row * length + c]);
        loss[row] = formula_softmax_cross_entropy(x[row * length + (size_t)labels[row]], top,
                                                  sum_of(y + row * length, length));
    }
}

/* The same for a row that is longer than a chunk. */
static float loss_of_long_row(const float *x, int label, size_t length) {
    float top = x[0], sum = 0.0f;
    for (size_t c = 1; c < length; c++) top = formula_largest(top, x[c]);
    for (size_t c = 0; c < length; c++) sum += formula_exp(x[c] - top);
    return formula_softmax_cross_entropy(x[label], top, sum);
}

static void smooth(const struct labelled *l, float *loss) {
    for (size_t i = 0; i < l->batch; i++) {
        const float *x = l->x + i * l->classes, mean = sum_of(x, l->classes) / (float)l->classes;
        loss[i] = formula_smoothed_cross_entropy(loss[i], x[l->labels[i]], mean, l->smoothing);
    }
}

static int run_softmax_cross_entropy(const struct call *call, struct error *error) {
    struct labelled l;
    RETURN_IF(labelled_open(&l, call, error));
    float *loss = call->output;
    const size_t fit = CHUNK / l.classes;
    for (size_t i = 0; fit == 0 && i < l.batch; i++)
        loss[i] = loss_of_long_row(l.x + i * l.classes, l.labels[i], l.classes);
    for (size_t i = 0; fit > 0 && i < l.batch; i += fit)
        losses_of(l.x + i * l.classes, l.labels + i, l.batch - i < fit ? l.batch - i : fit, l.classes,
                  loss + i);
    if (l.smoothing > 0.0f) smooth(&l, loss);
    return OK;
}
const struct kernel reference_softmax_cross_entropy = {.name = "reference:softmax_cross_entropy",
                                                       .run = run_softmax_cross_entropy};

/* logits, labels, dloss: dloss (softmax - one at the label, smoothed). */
static int run_softmax_cross_entropy_grad(const struct call *call, struct error *error) {
    struct labelled l;
    RETURN_IF(labelled_open(&l, call, error));
    const float *dloss = call->input[2];
    float *dx = call->output;
    const float one = formula_label_share(1, (uint32_t)l.classes, l.smoothing),
                none = formula_label_share(0, (uint32_t)l.classes, l.smoothing);
    softmax_rows(l.x, l.batch, l.classes, dx);
    for (size_t i = 0; i < l.batch; i++, dx += l.classes) {
        const size_t label = (size_t)l.labels[i];
        const float own = formula_softmax_cross_entropy_grad(dx[label], one, dloss[i]);
        for (size_t c = 0; c < l.classes; c++)
            dx[c] = formula_softmax_cross_entropy_grad(dx[c], none, dloss[i]);
        dx[label] = own;
    }
    return OK;
}
const struct kernel reference_softmax_cross_entropy_grad = {.name = "reference:softmax_cross_entropy_grad",
                                                            .run = run_softmax_cross_entropy_grad};
