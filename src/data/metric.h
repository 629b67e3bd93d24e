/* Metrics: the figures that a trained network is judged by. One of them counts for each kind of labels: the
 * best epoch, the curves and the tables have that one. */
#ifndef TRAINER_DATA_METRIC_H
#define TRAINER_DATA_METRIC_H

#include <stdbool.h>
#include "../graph/loss.h"

enum metric { METRIC_ACCURACY, METRIC_TOP5, METRIC_AUC, METRIC_RMSE, METRIC_MAE, METRIC_R2, METRICS };

struct metric_row {
    const char *name;  /* in files: test_NAME */
    const char *title; /* "Accuracy", as in the line "Test-Accuracy: 0.9512" */
    const char *words; /* the same within a sentence or a table */
    bool share;        /* 0 to 1, shown in per cent */
    bool lower;        /* the lower, the better */
};
extern const struct metric_row metric_rows[METRICS];

/* Where values were brought to mean 0 and deviation 1 for training, these lead back; NULL: they were not. */
struct units {
    float *mean, *deviation; /* [outputs] */
};

/* By which a network of such labels is judged. */
enum metric metric_of(enum task task);
/* What a share is in per cent; other values are as they are. */
static inline double metric_scale(enum metric metric) {
    return metric_rows[metric].share ? 100.0 : 1.0;
}
/* "test_rmse", the name in files of what is said `of` something: into out[METRIC_NAME_BYTES], which it
 * returns. */
enum { METRIC_NAME_BYTES = 64 };
const char *metric_name(const char *of, enum metric metric, char out[METRIC_NAME_BYTES]);
/* The metric of that name; METRIC_ACCURACY where there is none. */
enum metric metric_named(const char *name);
/* Whether a value is better than another one; what is NAN is never better. */
bool metric_better(enum metric metric, double value, double than);
/* A value as text: "95.12 %" or "0.312345"; with its name where that is no accuracy, "95.12 %" or "RMSE
 * 0.312345"; plain, "0.9512" or "0.312345"; "-" for NAN. Return out. */
enum { METRIC_BYTES = 48 };
const char *metric_text(enum metric metric, double value, char out[METRIC_BYTES]);
const char *metric_figure(enum metric metric, double value, char out[METRIC_BYTES]);
const char *metric_plain(enum metric metric, double value, char out[METRIC_BYTES]);

#endif
