/* epochs.csv: one row per epoch, on the disk's side of the buffers as soon as the epoch is over. A run that
 * is resumed goes on in it. Called by the coordinator alone. */
#ifndef TRAINER_RECORD_EPOCHS_H
#define TRAINER_RECORD_EPOCHS_H

#include <stddef.h>
#include <stdio.h>
#include "../base/error.h"
#include "../base/file.h"
#include "../data/metric.h"

/* Real numbers that are not known are NAN and become `nan`. */
struct epoch_row {
    int epoch;         /* from 1 */
    double time_s;     /* since training began, paused time excluded */
    double train_loss; /* mean over the epoch's batches */
    double test_loss, test_score;
    double examples_per_s; /* of this epoch */
    double validation_loss, validation_score;
    enum metric metric; /* that the scores are of */
};

struct epochs {
    FILE *file;   /* unbuffered; NULL: not open */
    size_t bytes; /* written in whole rows */
    char path[PATH_BYTES];
};

/* Cuts the table of an earlier part back to the epochs before time_s, see table_rewind. Errors (here and
 * below): ERROR_FILE. */
int epochs_rewind(const char *path, enum metric metric, double time_s, long long *bytes, struct error *error);
/* metric: of all rows. bytes: what the file has already of a run that goes on; 0: it is made anew, with its
 * header. */
int epochs_open(struct epochs *epochs, const char *path, enum metric metric, long long bytes,
                struct error *error);
/* Appends one row: whole, or not at all. */
int epochs_add(struct epochs *epochs, const struct epoch_row *row, struct error *error);
int epochs_finish(struct epochs *epochs, struct error *error); /* syncs to the disk and closes */
void epochs_close(struct epochs *epochs);                      /* safe on a zeroed or finished one */

#endif
