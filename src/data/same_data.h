/* Whether another machine has the same data set. */
#ifndef TRAINER_DATA_SAME_DATA_H
#define TRAINER_DATA_SAME_DATA_H

#include "dataset.h"

/* *hash: of the kind of labels, the shape of an example and, evenly spread over the training part, up to 4096
 * examples with their labels. Two data sets that differ throughout, or in their order, differ in it. Errors:
 * ERROR_FILE: that of a damaged pack. */
int dataset_hash(const struct dataset *dataset, uint64_t *hash, struct error *error);

#endif
