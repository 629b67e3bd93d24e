/* Rows of a table as a network's input, some at a time, so that the table may be larger than memory. Columns
 * are those that training had: found by name where the table has a header, else by place. A table that has
 * the label as well can be judged. */
#ifndef TRAINER_INFER_TABLE_ROWS_H
#define TRAINER_INFER_TABLE_ROWS_H

#include "../data/csv_reader.h"
#include "features.h"

enum { TABLE_LABEL_NONE = -1, TABLE_LABEL_UNKNOWN = -2 /* none of the classes */ };

struct table_rows {
    const struct restored *restored; /* borrowed */
    struct csv_reader reader;
    bool ended;   /* there are no more */
    bool carries; /* what the network does not take is carried along as text */
    bool named;   /* and before it the name of the file */
    struct text
        carried;    /* of the rows in hand, cells of CSV each with a comma behind it, each row with a 0 */
    char *head;     /* the same of the names of these columns; owned */
    int most;       /* rows at a time */
    int *labels;    /* [most] of the rows in hand: class, or one of those below; owned */
    float *targets; /* [most][outputs] of the rows in hand, where values are predicted; NAN: the row does not
                       have it; owned */
    float *cells;   /* [features] a row, owned */
    float lowest, highest;          /* of the numbers read so far, as they are in the file */
    bool fractions;                 /* some of them are between two whole ones */
    long unseen;                    /* cells whose value training did not have */
    long unknown;                   /* labels that are none of the classes */
    char stranger[CSV_SHOWN_BYTES]; /* the first of them, fit for a message */
};

/* Takes the file, which is open and of which nothing has been read but its front, and stays the caller's.
 * Errors: ERROR_FILE: the table does not have the columns; what is wrong with it, or with the checkpoint. */
int table_rows_open(struct table_rows *rows, struct restored *restored, struct file_reader *file,
                    bool carries, bool named, struct error *error);
/* The next rows into `features`, which is closed by the caller; count 0: there are no more. */
int table_rows_next(struct table_rows *rows, struct features *features, struct error *error);
/* Whether the rows so far are pixels from 0 to 1, where the network takes them from 0 to a white above that.
 */
bool table_rows_scaled(const struct table_rows *rows);
void table_rows_close(struct table_rows *rows); /* safe on a zeroed or half-open one */

#endif
