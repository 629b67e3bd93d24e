/* An ensemble: networks that were trained for the same classes, or values, which are asked together. A folder
 * has one if it has ensemble.csv, which names the folders of its members; any other checkpoint is an ensemble
 * of one. */
#ifndef TRAINER_INFER_ENSEMBLE_H
#define TRAINER_INFER_ENSEMBLE_H

#include "restore.h"

#define ENSEMBLE_LIST "ensemble.csv"
enum { ENSEMBLE_MEMBERS = 1000 };

/* MEAN: the mean of their probabilities, or of their values. VOTE, of classes: the share of the members that
 * say each class; of classes with as many votes, the one of the higher mean is said. */
enum ensemble_by { ENSEMBLE_MEAN, ENSEMBLE_VOTE };

struct ensemble {
    struct restored *members; /* [count] owned; all have the examples and the outputs of the first */
    int count;
    bool listed; /* by ensemble.csv */
};

/* Errors: as restored_open; ERROR_FILE: the list; members of different data sets, or of labels. */
int ensemble_open(struct ensemble *ensemble, const char *path, bool reference_only, struct error *error);
void ensemble_close(struct ensemble *ensemble); /* safe on a zeroed or half-open one */

/* outputs[examples->count][classes]: probabilities, or values in their units; said[examples->count]: the
 * class that each example is, or NULL. An that is not listed says what its network says, of labels, too.
 * Errors: ERROR_USAGE: values by vote. */
int ensemble_predict(struct ensemble *ensemble, const struct examples *examples, enum ensemble_by by,
                     float *outputs, int *said, struct error *error);

/* Of examples with labels, or targets in the units of the first member. */
struct ensemble_result {
    enum metric metric;    /* that the scores are of: accuracy, or RMSE */
    double *member;        /* [count] owned; the score of each */
    double score;          /* of all, by the mean */
    double value[METRICS]; /* of values: each metric of the mean; NAN: none of theirs */
    double vote, cost;     /* of classes: the accuracy by vote; mean cross entropy of the mean; else NAN */
};
int ensemble_evaluate(struct ensemble *ensemble, const struct examples *examples,
                      struct ensemble_result *result, struct error *error);
void ensemble_result_free(struct ensemble_result *result); /* safe on a zeroed one */

#endif
