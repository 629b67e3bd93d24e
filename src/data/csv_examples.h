/* Tables become a data set's examples: texts of labels become class numbers, columns can be standardized. */
#ifndef TRAINER_DATA_CSV_EXAMPLES_H
#define TRAINER_DATA_CSV_EXAMPLES_H

#include "csv_reader.h"
#include "dataset.h"

enum { CSV_MAX_CLASSES = 10000 };

/* Rows of a table; training and test part may be of one table. */
struct csv_part {
    struct csv_table *table;
    int first, rows;
};

/* Fills the data set: examples, shape, classes, names of classes (the labels' texts, sorted by number if all
 * are integers, else alphabetically) and features (from the header, if any), and, with `standardize`, mean
 * and deviation of the training part, applied to both. The floats of the tables move to dataset->blocks 0 and
 * 1, the labels are in 2 and 3. Errors: ERROR_FILE: fewer than two classes or more than CSV_MAX_CLASSES in
 * the training part, a label in the test part that the training part does not have. */
int csv_examples(struct dataset *dataset, const struct csv_part *train, const struct csv_part *test,
                 bool standardize, struct error *error);

#endif
