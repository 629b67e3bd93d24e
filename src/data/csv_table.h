/* All rows of a CSV file: the cells of their features, and their labels. The text is not kept. */
#ifndef TRAINER_DATA_CSV_TABLE_H
#define TRAINER_DATA_CSV_TABLE_H

#include "../base/mapping.h"
#include "csv_reader.h"

struct csv_table {
    const char *name;        /* of the file; borrowed */
    struct columns *columns; /* `own`, or those of another table */
    struct columns own;
    struct csv_format format; /* as it turned out to be */
    int rows, cells;          /* cells: columns that are features, and behind them those that are targets */
    long dropped;             /* rows that were left out */
    struct mapping numbers;   /* float [rows][cells] */
    struct mapping labels;    /* int [rows], if there is a label */
};

static inline float *csv_cells(const struct csv_table *table) {
    return (float *)(void *)table->numbers.bytes;
}
static inline int *csv_labels(const struct csv_table *table) {
    return (int *)(void *)table->labels.bytes;
}

/* Reads a table from a file (plain or gzip), or from memory, where `name` (borrowed) is for the words.
 * `like`, when not NULL, is a table whose columns it is to have, and then shares. Errors: ERROR_FILE;
 * ERROR_USAGE for columns of the format that are not there. On error the caller closes. */
int csv_read(struct csv_table *table, const char *path, const struct csv_format *format,
             const struct csv_table *like, struct error *error);
int csv_parse(struct csv_table *table, const char *name, const char *text, size_t bytes,
              const struct csv_format *format, const struct csv_table *like, struct error *error);
void csv_close(struct csv_table *table); /* safe on a zeroed or half-open one */

/* Puts the rows into a random order that depends on the seed and their number only. */
int csv_shuffle(struct csv_table *table, long seed, struct error *error);

/* Of a table that was shuffled, to be cut behind `train` rows: brings a row of each class that only rows
 * behind the cut have before it, in exchange for one whose class has others there. A table whose classes all
 * have rows there stays as it is; so does one of many classes that are numbers, which may be values to
 * predict. */
int csv_keep_classes(struct csv_table *table, int train, struct error *error);

/* "separator ';', decimal comma, no header; 3 numbers, 2 categories, 1 column ignored": into out[bytes]. */
void csv_describe(const struct csv_table *table, char *out, size_t bytes);

#endif
