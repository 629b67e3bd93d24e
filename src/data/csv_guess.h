/* What a CSV file does not say of itself, guessed from its beginning. */
#ifndef TRAINER_DATA_CSV_GUESS_H
#define TRAINER_DATA_CSV_GUESS_H

#include "csv_rows.h"

enum csv_header {
    CSV_HEADER_AUTO,
    CSV_HEADER_YES,
    CSV_HEADER_NO,
    CSV_HEADER_COUNTS, /* guessed only: how many rows and features follow, and classes that labels number */
};

enum { CSV_COUNTS = 2 }; /* cells of such a row before its classes */

enum csv_missing_rule { CSV_MISSING_ERROR, CSV_MISSING_MEAN, CSV_MISSING_DROP };

struct csv_format {
    char separator; /* 0: to be guessed, among , ; tab and | */
    char decimal;   /* what stands before decimals, '.' or ','; 0: to be guessed */
    char usual;     /* the decimal where it could be either, or 0 */
    enum csv_header header;
    const char *label; /* name or number (from 1) of its column; "": the last one; NULL: there is none */
    /* Of columns, names or numbers joined by commas, or NULL: the only ones that are features; those that are
     * not; those whose numbers are texts; those whose numbers are to be predicted. */
    const char *columns, *ignore, *categories, *target;
    enum csv_missing_rule missing;
    int units; /* learnt numbers that a category becomes in the network (columns.h); 0: none */
};

/* Fills in what of the format is to be guessed; `rows` is open and nothing of it has been read.
 *
 * The separator is the one of which all rows have the same number, at least one; of several such, the one
 * that makes numbers of most cells. Decimals have a comma where the separator is another, a number needs it
 * ("1,5") and none has a point. The first row is a header when none of its cells, but for the label, is a
 * number, and either one of the second row is, or they all differ. TensorFlow's first row, as in
 * "120,4,setosa,versicolor", is known by rows of numbers that fit it.
 *
 * Errors: ERROR_FILE: "1,234" can be read in two ways, and nothing says in which; memory. */
int csv_guess(struct csv_format *format, const struct csv_rows *rows, struct error *error);

#endif
