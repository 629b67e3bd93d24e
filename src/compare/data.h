/* The data set of many runs, opened before the first of them to see what it is. */
#ifndef TRAINER_COMPARE_DATA_H
#define TRAINER_COMPARE_DATA_H

#include "../bridge/terms.h"
#include "../data/dataset.h"

/* The one that the settings name. Errors: as plugin_choose and dataset_open. */
int data_open(struct dataset *dataset, const struct config *config, struct error *error);
/* By which another machine's is compared: training examples, features in `floats`, dataset_hash in `layout`.
 * Errors: as dataset_hash. */
int data_fingerprint(const struct dataset *dataset, struct fingerprint *data, struct error *error);

#endif
