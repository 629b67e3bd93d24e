/* The columns of a table and what each is for: how the cells of a row become an example. Kept in checkpoints
 * as a text, so that `trainer predict` prepares rows as training did.
 *
 * A number is one feature. A category is one feature for each of its values, named column=value: 1 for the
 * value of the row, 0 for the others; of a value that training did not have, all are 0. Where the network
 * embeds them (../graph/codes.h), a category is one feature instead, its code, behind the numbers; that of a
 * value that training did not have is 0. */
#ifndef TRAINER_DATA_COLUMNS_H
#define TRAINER_DATA_COLUMNS_H

#include "../base/text.h"
#include "../graph/codes.h"
#include "categories.h"

enum column_role {
    COLUMN_OPEN, /* a number or a category, as its first cell that is not missing will say */
    COLUMN_NUMBER,
    COLUMN_CATEGORY,
    COLUMN_LABEL,
    COLUMN_IGNORED,
    COLUMN_TARGET, /* a number that is to be predicted */
    COLUMN_ROLES
};

struct column {
    char *name; /* owned; "": it has none */
    enum column_role role;
    bool fills;               /* a missing number counts as `fill`, a missing category as the value "" */
    float fill;               /* its mean over the training examples */
    struct categories values; /* of a category; of the label while a table is read; else empty */
    bool chosen;              /* a category because the settings say so */
    long numbers;             /* cells of a category that are numbers */
};

struct columns {
    struct column *at; /* [count] in the order of the file */
    int count;
    bool named;   /* by a header */
    char decimal; /* what stands before decimals, '.' or ',' */
    int units; /* learnt numbers that a category becomes in the network; 0: it is a feature for each value */
};
enum { COLUMNS_UNITS_MOST = 1000 };

static inline bool column_is_feature(const struct column *column) {
    return column->role <= COLUMN_CATEGORY;
}

int columns_open(struct columns *columns, int count, struct error *error);
void columns_close(struct columns *columns); /* safe on a zeroed or half-open one */

/* How many columns have that role. */
int columns_of(const struct columns *columns, enum column_role role);
/* Columns that are features, each one cell of a row; and numbers of an example. */
int columns_cells(const struct columns *columns);
int columns_features(const struct columns *columns);
/* What of an example the network embeds. */
struct codes columns_codes(const struct columns *columns);

/* The place of the column of that name, or number from 1; -1: there is none. `name` has `bytes` bytes. */
int columns_find(const struct columns *columns, const char *name, size_t bytes);

/* How many columns have that name. */
int columns_named(const struct columns *columns, const char *name);

/* Puts something in the place of what is missing (NAN) in cells[columns_cells]. */
void columns_fill(const struct columns *columns, float *cells);

/* features[columns_features] = an example, of cells[columns_cells]: numbers, and of categories the place of
 * the value, or -1. The two do not overlap. Returns how many are -1. */
int columns_expand(const struct columns *columns, const float *cells, float *features);

/* The features' names, one after the other, each ended by a 0, into a text that grows. */
void columns_name_features(const struct columns *columns, struct text *text);

/* As a text, and back. False: it is none. Memory may be missing: *error then says so. */
void columns_write(const struct columns *columns, struct text *text);
bool columns_read(struct columns *columns, const char *text, struct error *error);

#endif
