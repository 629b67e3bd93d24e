/* What a page makes of sweep.csv: its runs ranked, and their settings as parallel coordinates. */
#ifndef TRAINER_REPORT_SWEEP_H
#define TRAINER_REPORT_SWEEP_H

#include "cells.h"
#include "html.h"

/* The columns of sweep.csv; the settings follow them. */
enum sweep_column {
    SWEEP_RUN,
    SWEEP_STATUS,
    SWEEP_EPOCHS,
    SWEEP_BEST_EPOCH,
    SWEEP_METRIC,
    SWEEP_TEST,
    SWEEP_SECONDS,
    SWEEP_AT_RUNGS,
    SWEEP_REASON,
    SWEEP_FIGURES
};

/* Errors: ERROR_FILE: it is no sweep's. */
int sweep_check(const struct cells *sweep, const char *path, struct error *error);
/* order[rows - 1]: the rows, from 1, the best first. */
void sweep_order(const struct cells *sweep, int *order);

/* coordinates.c: an axis for each setting and one for the metric, a line for each run that has one. order: as
 * above. Errors: ERROR_DEVICE (memory). */
int chart_coordinates(struct html *html, const struct cells *sweep, const int *order, struct error *error);

#endif
