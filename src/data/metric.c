/* The table of metrics. */
#include "metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct metric_row metric_rows[METRICS] = {
    [METRIC_ACCURACY] = {.name = "accuracy", .title = "Accuracy", .words = "accuracy", .share = true},
    [METRIC_TOP5] = {.name = "top5", .title = "Top-5", .words = "top-5 accuracy", .share = true},
    [METRIC_AUC] = {.name = "auc", .title = "AUC", .words = "AUC"},
    [METRIC_RMSE] = {.name = "rmse", .title = "RMSE", .words = "RMSE", .lower = true},
    [METRIC_MAE] = {.name = "mae", .title = "MAE", .words = "MAE", .lower = true},
    [METRIC_R2] = {.name = "r2", .title = "R2", .words = "R2"},
};

enum metric metric_of(enum task task) {
    return task == TASK_VALUES ? METRIC_RMSE : METRIC_ACCURACY;
}

const char *metric_name(const char *of, enum metric metric, char out[METRIC_NAME_BYTES]) {
    snprintf(out, METRIC_NAME_BYTES, "%s_%s", of, metric_rows[metric].name);
    return out;
}

enum metric metric_named(const char *name) {
    for (int m = 0; m < METRICS; m++)
        if (strcmp(metric_rows[m].name, name) == 0) return (enum metric)m;
    return METRIC_ACCURACY;
}

bool metric_better(enum metric metric, double value, double than) {
    return metric_rows[metric].lower ? value < than : value > than;
}

const char *metric_text(enum metric metric, double value, char out[METRIC_BYTES]) {
    if (isnan(value))
        snprintf(out, METRIC_BYTES, "-");
    else if (metric_rows[metric].share)
        snprintf(out, METRIC_BYTES, "%.2f %%", 100 * value);
    else
        snprintf(out, METRIC_BYTES, "%.6g", value);
    return out;
}

const char *metric_figure(enum metric metric, double value, char out[METRIC_BYTES]) {
    char text[METRIC_BYTES];
    if (metric == METRIC_ACCURACY) return metric_text(metric, value, out);
    snprintf(out, METRIC_BYTES, "%s %.24s", metric_rows[metric].words, metric_text(metric, value, text));
    return out;
}

const char *metric_plain(enum metric metric, double value, char out[METRIC_BYTES]) {
    snprintf(out, METRIC_BYTES, metric_rows[metric].share ? "%.4f" : "%.6g", value);
    return out;
}
