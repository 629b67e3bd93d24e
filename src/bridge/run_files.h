/* The files of a run, from one machine to another: all that are in its folder, none of which is seen half
 * written there. */
#ifndef TRAINER_BRIDGE_RUN_FILES_H
#define TRAINER_BRIDGE_RUN_FILES_H

#include "../base/tree.h"
#include "frame.h"

/* Of all files of a run together; more are refused before they are written. */
#define RUN_FILES_BYTES (1ULL << 36) /* 64 GB */

/* Sends them, each as a frame of its own: TREE_NAME_BYTES of its name, then its bytes. `last`: the one that
 * is sent last, if it is there. Errors: ERROR_FILE; ERROR_PEER. */
int run_files_send(struct endpoint *endpoint, const char *folder, const struct tree *tree, const char *last,
                   double timeout_s, struct error *error);

/* Receives so many, and gives them their names in the folder when all have come, in the order in which they
 * came. Errors: ERROR_PEER: a name that leads elsewhere, too many bytes; ERROR_FILE. */
int run_files_receive(struct endpoint *endpoint, const char *folder, int count, double timeout_s,
                      struct error *error);

#endif
