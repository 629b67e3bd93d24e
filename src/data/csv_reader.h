/* A CSV file read into a table: per example a row of numbers and the text of its label. Every error names
 * the file, the row (its line, from 1) and the column (its number from 1, and its name if there is a
 * header). */
#ifndef TRAINER_DATA_CSV_READER_H
#define TRAINER_DATA_CSV_READER_H

#include "csv_rows.h"

enum csv_header {
    CSV_HEADER_AUTO, /* the first row is a header when none of its features is a number */
    CSV_HEADER_YES,
    CSV_HEADER_NO,
};

struct csv_format {
    char separator;
    enum csv_header header;
    const char *label; /* name or number (from 1) of its column; "": the last one; NULL: there is none */
};

struct csv_table {
    struct csv_rows source; /* holds the text that names and labels point into */
    int rows, features;
    int columns;              /* features, and the label if there is one */
    int label;                /* its column, from 0; -1: none */
    const char *const *names; /* [columns], owned, or NULL without a header; texts in source */
    float *floats;            /* [rows][features], owned */
    char **labels;            /* [rows], or NULL; texts in source */
    int *lines;               /* [rows] line on which each begins */
};

/* Reads a table from memory; `name` (borrowed) is for the words. `like`, when not NULL, is a table that this
 * one must agree with: same number of columns, same names (where both have them), and its label column is
 * taken. Errors: ERROR_FILE; ERROR_USAGE for a label column that is not there. On error the caller closes. */
int csv_parse(struct csv_table *table, const char *name, const char *text, size_t bytes,
              const struct csv_format *format, const struct csv_table *like, struct error *error);
void csv_close(struct csv_table *table); /* safe on a zeroed or half-open one */

/* Puts the rows into a random order that depends on the seed and their number only. */
int csv_shuffle(struct csv_table *table, long seed, struct error *error);

/* "row 17, column 3 "petal_length"" of a cell: writes into out[bytes], returns out. */
const char *csv_place(const struct csv_table *table, int line, int column, char *out, size_t bytes);

/* Rows for prediction: exactly `features` numbers each, no label; a header is optional and, when
 * feature_names (NULL: not known) is given, has to agree with it. *floats = [*rows][features], owned by the
 * caller: memory_free. Errors: ERROR_FILE. */
int csv_parse_features(const char *name, const char *text, size_t bytes, int features,
                       const char *const *feature_names, float **floats, int *rows, struct error *error);

#endif
