/* Where the processes of a cluster are: a host for each, in the order of their ranks. Read from the lists of
 * --hosts and of Slurm. */
#ifndef TRAINER_LAUNCH_PLACES_H
#define TRAINER_LAUNCH_PLACES_H

#include "../bridge/addresses.h"

struct places {
    char (*host)[ADDRESS_HOST_BYTES]; /* [count] owned; IPv6 without brackets */
    int count;                        /* ADDRESSES_MOST at most */
};

/* Adds one host so many times. `where` is where it was found, for the words. Errors: ERROR_USAGE: more than
 * ADDRESSES_MOST of them, no host. */
int places_add(struct places *places, const char *host, int times, const char *where, struct error *error);

/* Adds those of "a,b:2": a once, b twice. Names may be shortened as Slurm does. Errors: ERROR_USAGE. */
int places_read_slots(struct places *places, const char *list, const char *where, struct error *error);

/* Adds the names of Slurm's "node[1-3,08],login": node1, node2, node3, node08, login. Errors: ERROR_USAGE. */
int places_read_nodes(struct places *places, const char *list, const char *where, struct error *error);

/* Reads Slurm's "3,1" or "2(x3)", numbers of tasks, into counts[room]; *count: how many there are. Errors:
 * ERROR_USAGE: no numbers, or more than `room`. */
int places_read_counts(int *counts, int room, int *count, const char *list, const char *where,
                       struct error *error);

void places_free(struct places *places); /* safe on a zeroed one */

#endif
