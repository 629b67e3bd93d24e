/* The rows of a table that a run wrote, one at a time, so that a file of any length takes the same memory. */
#ifndef TRAINER_REPORT_ROWS_H
#define TRAINER_REPORT_ROWS_H

#include <stdbool.h>
#include <stdio.h>
#include "../base/file.h"

enum { ROWS_COLUMNS = 64, ROWS_BYTES = 4096 };

struct rows {
    FILE *file; /* NULL: not open */
    char path[PATH_BYTES];
    const char *const *names;    /* borrowed; the columns that are wanted */
    int wanted, columns;         /* so many, and in the file */
    int place[ROWS_COLUMNS];     /* [columns] which of the wanted ones a column is; -1: none */
    char line[ROWS_BYTES];       /* the row in hand, cut into cells */
    char *cells[ROWS_COLUMNS];   /* [wanted] of it */
    double values[ROWS_COLUMNS]; /* [wanted] the same as numbers; NAN: `nan` */
    long unreadable;             /* rows so far that were left out: half ones, and ones with something else
                                    than numbers */
};

/* `names`, ended by NULL: the columns that must be there, in any order, all numbers but those whose name is
 * followed by "=", which are texts. Errors: ERROR_FILE: no such file, no such column. */
int rows_open(struct rows *rows, const char *path, const char *const *names, struct error *error);
/* The next row that can be read; false: there is none. */
bool rows_next(struct rows *rows);
void rows_close(struct rows *rows); /* safe on a zeroed or closed one */

#endif
