/* steps.csv: a row per worker and step. It stands under its own name from the start, so that it can be
 * watched while the run goes on. A run that is resumed goes on in it. Called by the coordinator alone. */
#ifndef TRAINER_RECORD_STEPS_H
#define TRAINER_RECORD_STEPS_H

#include <stdio.h>
#include "../base/error.h"
#include "../base/file.h"
#include "log.h"

struct steps {
    FILE *file; /* NULL: not open */
    char path[PATH_BYTES];
    long long bytes, flushed;   /* of whole rows: handed to the stream, known to have left it */
    const char *const *devices; /* [workers] their names, borrowed */
};

/* Cuts the table of an earlier part back to the steps before time_s, see table_rewind. Errors (here and
 * below): ERROR_FILE. */
int steps_rewind(const char *path, double time_s, long long *bytes, struct error *error);
/* bytes: what the file has already of a run that goes on; 0: it is made anew, and its header is written at
 * once. */
int steps_open(struct steps *steps, const char *path, long long bytes, const char *const *devices,
               struct error *error);
void steps_add(struct steps *steps, const struct log_row *row);
int steps_flush(struct steps *steps, struct error *error);  /* so that a reader finds all whole rows */
int steps_finish(struct steps *steps, struct error *error); /* syncs to the disk and closes */
void steps_close(struct steps *steps);                      /* safe on a zeroed or finished one */

#endif
