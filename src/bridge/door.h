/* The door of a host once all have come: a thread that answers who asks how the host is (probe.h), and lets
 * nobody in, but where the training may be joined (joins.h). Strangers there have as little room as before
 * (guests.h), and cost the training nothing else. */
#ifndef TRAINER_BRIDGE_DOOR_H
#define TRAINER_BRIDGE_DOOR_H

#include "host.h"

int door_open(struct host *host, struct error *error); /* of a host that is full */
void door_close(struct host *host);                    /* safe where there is none */

/* One guest more, if there is room for it. host.c has it. */
int host_let_in(struct host *host, double seconds, bool *moved, struct error *error);

#endif
