/* The runs of some folders, for one page: those of a comparison one by one, each with a label that tells it
 * apart. */
#ifndef TRAINER_REPORT_COLLECTION_H
#define TRAINER_REPORT_COLLECTION_H

#include <sys/types.h>
#include "cells.h"
#include "facts.h"

struct collection {
    const char *list;   /* the file by which the folder of a comparison is known: "sync 3" in each line */
    struct facts *runs; /* [count] owned */
    struct collected {
        char origin[PATH_BYTES]; /* what the label is the end of */
        dev_t device;            /* of its folder, which comes once */
        ino_t file;
    } * collected; /* [count] owned */
    int count, groups;
    struct cells sweep; /* sweep.csv of the first sweep among them; no rows: there is none */
};

/* A run, or all runs of a comparison, whose first run of each contender has steps.csv read, too, or all runs
 * of a sweep, the best first. Errors:
 * ERROR_USAGE: a run that is there already, or too many; ERROR_FILE: no run there; one of its files is
 * damaged; ERROR_DEVICE (memory). */
int collection_add(struct collection *collection, const char *folder, struct error *error);
/* After the last one: labels that are the same begin earlier in the path. */
void collection_part_labels(struct collection *collection);
void collection_free(struct collection *collection); /* safe on a zeroed one */

#endif
