/* See figures.h. Sources: R2 as the mean over the outputs of 1 - squared errors / squared distances from the
 * mean; AUC by ranks, equal probabilities sharing theirs: J. A. Hanley and B. J. McNeil, "The meaning and use
 * of the area under a receiver operating characteristic (ROC) curve", 1982. */
#include "figures.h"

#include <math.h>
#include <stdlib.h>
#include "../base/memory.h"

enum { NEAR = 5 };

int figures_open(struct figures *figures, enum task task, int outputs, struct units units, int all,
                 struct error *error) {
    *figures = (struct figures){.task = task, .outputs = outputs, .units = units};
    if (task == TASK_VALUES)
        return memory_array(&figures->residuals, outputs, "errors of the outputs", error);
    if (task == TASK_LABELS) figures->scored = outputs;
    if (task == TASK_CLASSES && outputs == 2) figures->scored = 1;
    if (figures->scored == 0) return OK;
    return memory_array(&figures->scores, (size_t)all * (size_t)figures->scored, "probabilities", error);
}

/* --- classes --- */

/* How many classes are more probable; of equally probable ones the first counts as more. */
static int rank_of(const float *probabilities, int classes, int label) {
    int rank = 0;
    for (int c = 0; c < classes; c++)
        rank += probabilities[c] > probabilities[label] ||
                (c < label && probabilities[c] >= probabilities[label]);
    return rank;
}

static void add_class(struct figures *figures, const float *probabilities, int predicted, int label) {
    figures->right += predicted == label;
    figures->near += isfinite(probabilities[label]) && rank_of(probabilities, figures->outputs, label) < NEAR;
    if (figures->scores) figures->scores[figures->examples] = probabilities[1];
}

/* --- labels --- */

static void add_labels(struct figures *figures, const float *probabilities, const float *labels) {
    float *scores = figures->scores + (size_t)figures->examples * (size_t)figures->outputs;
    for (int o = 0; o < figures->outputs; o++) {
        figures->right += (probabilities[o] >= 0.5f) == (labels[o] > 0.5f);
        scores[o] = probabilities[o];
    }
}

/* --- values --- */

static void add_values(struct figures *figures, const float *said, const float *wanted) {
    for (int o = 0; o < figures->outputs; o++) {
        struct residual *residual = &figures->residuals[o];
        const double unit = figures->units.deviation ? (double)figures->units.deviation[o] : 1.0;
        const double missed = unit * ((double)said[o] - (double)wanted[o]);
        statistic_add(&residual->value, unit * (double)wanted[o]);
        residual->squares += missed * missed;
        residual->absolute += fabs(missed);
    }
}

void figures_add(struct figures *figures, const struct examples *examples, int first, int count,
                 const float *outputs, const int *predicted) {
    const size_t width = (size_t)figures->outputs;
    for (int i = 0; i < count; i++, outputs += width) {
        const float *targets = examples->targets ? examples->targets + (size_t)(first + i) * width : NULL;
        if (figures->task == TASK_CLASSES)
            add_class(figures, outputs, predicted[i], examples->labels[first + i]);
        if (figures->task == TASK_LABELS) add_labels(figures, outputs, targets);
        if (figures->task == TASK_VALUES) add_values(figures, outputs, targets);
        figures->examples++;
    }
}

/* --- AUC --- */

struct scored {
    float score;
    int is;
};

static int compare(const void *a, const void *b) {
    const float x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
    return (x > y) - (x < y);
}

/* NAN: all are, or none is; or the network says a number that has no order. */
static double area_under(struct scored *scored, int count) {
    double ranks = 0.0, positive = 0.0;
    for (int i = 0; i < count; i++)
        if (isnan(scored[i].score)) return (double)NAN;
    qsort(scored, (size_t)count, sizeof *scored, compare);
    for (int i = 0, end; i < count; i = end) {
        int is = 0;
        for (end = i; end < count && scored[end].score <= scored[i].score; end++) is += scored[end].is;
        ranks += is * 0.5 * (i + 1 + end); /* the mean of i+1 .. end */
        positive += is;
    }
    const double pairs = positive * (count - positive);
    return pairs > 0.0 ? (ranks - 0.5 * positive * (positive + 1.0)) / pairs : (double)NAN;
}

static bool is_so(const struct figures *figures, const struct examples *examples, int i, int o) {
    return figures->task == TASK_CLASSES
               ? examples->labels[i] == 1
               : examples->targets[(size_t)i * (size_t)figures->outputs + (size_t)o] > 0.5f;
}

/* The mean over the outputs that have one. */
static int mean_area(const struct figures *figures, const struct examples *examples, double *area,
                     struct error *error) {
    struct statistic areas = {0};
    struct scored *scored = NULL;
    RETURN_IF(memory_array(&scored, figures->examples, "scores", error));
    for (int o = 0; o < figures->scored; o++) {
        for (int i = 0; i < figures->examples; i++)
            scored[i] = (struct scored){figures->scores[(size_t)i * (size_t)figures->scored + (size_t)o],
                                        is_so(figures, examples, i, o)};
        statistic_add(&areas, area_under(scored, figures->examples));
    }
    memory_free(scored);
    *area = statistic_mean(&areas);
    return OK;
}

/* --- all of them --- */

static void end_values(const struct figures *figures, double *value) {
    double squares = 0.0, absolute = 0.0;
    struct statistic explained = {0};
    const double all = (double)figures->examples * figures->outputs;
    for (int o = 0; o < figures->outputs; o++) {
        const struct residual *residual = &figures->residuals[o];
        squares += residual->squares;
        absolute += residual->absolute;
        if (residual->value.squares > 0.0)
            statistic_add(&explained, 1.0 - residual->squares / residual->value.squares);
    }
    value[METRIC_RMSE] = sqrt(squares / all);
    value[METRIC_MAE] = absolute / all;
    value[METRIC_R2] = statistic_mean(&explained);
}

int figures_end(const struct figures *figures, const struct examples *examples, double *value,
                struct error *error) {
    const double all = figures->examples;
    for (int m = 0; m < METRICS; m++) value[m] = (double)NAN;
    if (figures->examples == 0) return OK;
    if (figures->task == TASK_VALUES)
        end_values(figures, value);
    else
        value[METRIC_ACCURACY] =
            (double)figures->right / (figures->task == TASK_LABELS ? all * figures->outputs : all);
    if (figures->task == TASK_CLASSES && figures->outputs > NEAR)
        value[METRIC_TOP5] = (double)figures->near / all;
    return figures->scores ? mean_area(figures, examples, &value[METRIC_AUC], error) : OK;
}

void figures_close(struct figures *figures) {
    memory_free(figures->residuals);
    memory_free(figures->scores);
    *figures = (struct figures){0};
}
