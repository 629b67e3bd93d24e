/* A small CSV file, whole in memory: cells may be in quotes, with quotes in them doubled. */
#ifndef TRAINER_REPORT_CELLS_H
#define TRAINER_REPORT_CELLS_H

#include <stdbool.h>
#include "../base/error.h"

struct cells {
    char *text;         /* owned; what the cells point into */
    const char **cells; /* [rows][columns] owned; the first row has the names of the columns */
    int rows, columns;
};

/* Errors: ERROR_FILE: no such file, over 64 MB, no row, or one of another length than the first. */
int cells_read(struct cells *cells, const char *path, struct error *error);
void cells_free(struct cells *cells); /* safe on a zeroed one */

static inline const char *cells_at(const struct cells *cells, int row, int column) {
    return cells->cells[row * cells->columns + column];
}
/* A cell that is a whole number from 0 to 999,999,999; -1: it is none. */
int cells_count(const struct cells *cells, int row, int column);
/* The column of that name, or -1. */
int cells_column(const struct cells *cells, const char *name);

/* The next cell, cut out where it stands; *at: behind it; *ends: it is the last of its row. */
char *cells_next(char **at, bool *ends);

#endif
