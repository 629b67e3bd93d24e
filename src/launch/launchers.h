/* What starts the processes of a cluster, and what each is told of it by its environment: a table, one row
 * for each launcher. Used inside this folder. */
#ifndef TRAINER_LAUNCH_LAUNCHERS_H
#define TRAINER_LAUNCH_LAUNCHERS_H

#include <stdint.h>
#include "launch.h"
#include "places.h"

/* What this process was told. */
struct started {
    const char *by;              /* "Slurm"; NULL: nobody has started it but a user */
    int rank, size;              /* which of how many processes, from 0 */
    int local_rank, local_size;  /* the same on this machine; -1 and 0: not said */
    struct places places;        /* where each is; none: not said */
    const char *master;          /* the host of the first one; NULL: not said; borrowed */
    const char *master_variable; /* that would say it */
    int port;                    /* of the first one; 0: not said */
    uint64_t job;                /* the same in all processes of the job, and in no other; 0: not known */
};

/* Finds out who has started this process. Errors: ERROR_USAGE: a variable that says nonsense. */
int launchers_find(struct started *started, launch_variable *variable, struct error *error);
void launchers_free(struct started *started); /* safe on a zeroed one */

#endif
