/* The figures of a network over a set of examples, added up batch by batch. */
#ifndef TRAINER_INFER_FIGURES_H
#define TRAINER_INFER_FIGURES_H

#include "../base/statistic.h"
#include "../data/metric.h"
#include "../device/device.h"

struct figures {
    enum task task;
    int outputs, examples; /* examples: so far */
    struct units units;    /* borrowed */
    long right, near; /* in classes: the label is said, or among the five most probable; in labels: right */
    struct residual {
        struct statistic value;   /* what was to be said */
        double squares, absolute; /* sums over the examples of how far it was missed */
    } * residuals;                /* [outputs] of values */
    float *scores;                /* [all examples][scored] probabilities, where there is an AUC; else NULL */
    int scored;                   /* outputs whose AUC is asked for */
};

/* `all`: the examples that will be added. Errors: ERROR_DEVICE (memory). */
int figures_open(struct figures *figures, enum task task, int outputs, struct units units, int all,
                 struct error *error);
/* Examples first .. first+count-1, in this order from 0: what the network says, outputs[count][outputs], and
 * the classes that it predicts, predicted[count]. */
void figures_add(struct figures *figures, const struct examples *examples, int first, int count,
                 const float *outputs, const int *predicted);
/* value[METRICS]: NAN: none of these labels, or not to be had of these examples. Errors: ERROR_DEVICE
 * (memory). */
int figures_end(const struct figures *figures, const struct examples *examples, double *value,
                struct error *error);
void figures_close(struct figures *figures); /* safe on a zeroed one */

#endif
