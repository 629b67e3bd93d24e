/* Tables become a data set's examples: labels become class numbers, categories one feature for each value,
 * what is missing is filled in, numbers are standardized. */
#ifndef TRAINER_DATA_CSV_EXAMPLES_H
#define TRAINER_DATA_CSV_EXAMPLES_H

#include "csv_table.h"
#include "dataset.h"

/* Rows of a table; training and test part may be of one table. */
struct csv_part {
    struct csv_table *table;
    int first, rows;
};

/* Fills the data set: examples, shape, classes, names of classes (the labels' texts) and features (from the
 * header, if any), and, with `standardize`, mean and deviation of the training part, applied to the numbers
 * of both; features of categories have mean 0 and deviation 1. Where the columns say that categories are
 * embedded (units), a row is its numbers, then its codes. Classes, and the values of a category, are
 * those of the training part, sorted by number if all are whole numbers, else by their bytes. A missing
 * number becomes the mean of the training part, a missing category the value "".
 *
 * Where columns are targets there are no labels, but values, which with `standardize` are brought to mean 0
 * and deviation 1, too; their names are the columns', or numbers.
 *
 * The tables' columns are then what a checkpoint is to keep (columns_write). Their memory moves to the data
 * set's files. Errors: ERROR_FILE: fewer than two classes in the training part, a label in the test part that
 * the training part does not have; ERROR_DEVICE: more numbers than memory. */
int csv_examples(struct dataset *dataset, const struct csv_part *train, const struct csv_part *test,
                 bool standardize, struct error *error);

#endif
