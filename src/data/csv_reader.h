/* Rows of a CSV file as examples: of each row its features' cells as floats, and the number of its label.
 * Nothing of the text is kept. Every error names the file, the row (its line, from 1) and the column (its
 * number from 1, and its name if there is a header). */
#ifndef TRAINER_DATA_CSV_READER_H
#define TRAINER_DATA_CSV_READER_H

#include "columns.h"
#include "csv_guess.h"

enum {
    CSV_MAX_CLASSES = 10000,   /* different labels */
    CSV_MAX_CATEGORIES = 1000, /* different values of another column, each a feature */
    CSV_MAX_EMBEDDED = 100000, /* the same where they are embedded */
};

struct csv_reader {
    struct csv_rows rows;
    struct csv_format format;
    struct columns *columns; /* borrowed */
    bool fixed;              /* the columns are those of a trained network: nothing is added to them */
    const char *like;        /* the file whose columns they are, for the words; NULL: this one's. Borrowed */
    bool header;
    int cells;      /* of each row */
    int *column_of; /* [cells] place in `columns`, or -1: nothing there needs it; owned */
    int *place_of;  /* [cells] of features and targets, place among their cells; owned */
    int label;      /* cell of the label, or -1 */
    bool numbered;  /* it may be the number of a class, from 0, as none is called by one; columns are fixed */
    bool waiting;   /* the first row is in hand, and no header */
    long dropped;   /* rows that were left out, as something is missing */
    struct categories classes; /* named by the first row, of which labels are the numbers; or none */
    long counted, read;        /* rows that the first one says to follow, or 0; rows that were read */
};

/* Opens the text that `rows` was opened on, which the reader then owns (also on error), and finds its
 * columns. `columns`, empty, become the file's.
 *
 * `like` not NULL: the columns are those of that file, or of a trained network when `fixed`. With a header
 * (and one there) they are matched by name, in any order, and other columns are passed over; else by place.
 * When fixed, the label and columns that are ignored may be absent.
 *
 * Errors: ERROR_FILE; ERROR_USAGE for a column of the format that is not there. */
int csv_reader_open(struct csv_reader *reader, struct csv_rows *rows, const struct csv_format *format,
                    struct columns *columns, const char *like, bool fixed, struct error *error);

/* The next row: cells[columns_cells], and behind them those of targets, unless columns are fixed: numbers,
 * and of categories the number of the value; NAN: missing; where columns are fixed, -1 for a value that they
 * do not have. *label: the number of its text among the label column's values; -1: missing, no label column,
 * or none of the values that are fixed, nor the number of one, from 0, where none is called by a number.
 * Errors: ERROR_FILE. */
int csv_reader_next(struct csv_reader *reader, float *cells, int *label, bool *found, struct error *error);
void csv_reader_close(struct csv_reader *reader); /* safe on a zeroed or half-open one */

/* "t.csv: row 17, column 3 "petal_length"": the place of a cell (from 0) of columns[column] in the file
 * `name`. Returns out. */
enum { CSV_PLACE_BYTES = 700 };
const char *csv_place(const char *name, int line, int cell, const struct columns *columns, int column,
                      char out[CSV_PLACE_BYTES]);

/* How settings name the column: by its name, or by its number where the name would not do. */
enum { CSV_COLUMN_BYTES = 64 };
const char *csv_column(const struct columns *columns, int column, char out[CSV_COLUMN_BYTES]);

#endif
