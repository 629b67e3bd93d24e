/* An ensemble: networks that were trained for the same classes, which are asked together. A folder has one if
 * it has ensemble.csv, which names the folders of its members; any other checkpoint is an ensemble of one. */
#ifndef TRAINER_INFER_ENSEMBLE_H
#define TRAINER_INFER_ENSEMBLE_H

#include "restore.h"

#define ENSEMBLE_LIST "ensemble.csv"
enum { ENSEMBLE_MEMBERS = 1000 };

/* MEAN: the mean of their probabilities. VOTE: the share of the members that say each class; of classes with
 * as many votes, the one of the higher mean is said. */
enum ensemble_by { ENSEMBLE_MEAN, ENSEMBLE_VOTE };

struct ensemble {
    struct restored *members; /* [count] owned; all have the examples and the classes of the first */
    int count;
    bool listed; /* by ensemble.csv */
};

/* Errors: as restored_open; ERROR_FILE: the list; members of different data sets, or without classes. */
int ensemble_open(struct ensemble *ensemble, const char *path, bool reference_only, struct error *error);
void ensemble_close(struct ensemble *ensemble); /* safe on a zeroed or half-open one */

/* probabilities[examples->count][classes]; said[examples->count]: the class that each example is, or NULL. An
 * ensemble of one says what its member says, of values and labels, too. */
int ensemble_predict(struct ensemble *ensemble, const struct examples *examples, enum ensemble_by by,
                     float *probabilities, int *said, struct error *error);

/* Of examples with labels. */
struct ensemble_result {
    double *member;    /* [count] owned; the accuracy of each */
    double mean, vote; /* of all of them */
    double cost;       /* mean cross entropy of the mean of the probabilities */
};
int ensemble_evaluate(struct ensemble *ensemble, const struct examples *examples,
                      struct ensemble_result *result, struct error *error);
void ensemble_result_free(struct ensemble_result *result); /* safe on a zeroed one */

#endif
