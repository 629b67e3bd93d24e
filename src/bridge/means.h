/* Who adds the gradients of a round in a cluster: the hosts, each those of its slice, which all workers send;
 * or the workers' devices themselves, where all of them can be ranks of one collective (device.h). Every
 * worker offers so in its hello, to all hosts. So each host decides by the same offers, and its welcome says
 * what. */
#ifndef TRAINER_BRIDGE_MEANS_H
#define TRAINER_BRIDGE_MEANS_H

#include "host.h"

/* Once all have come: fills the welcome's root, means and id, and the peers' roots. obstacle: why the hosts
 * are to add in any case; NULL: nothing; "": and there is nothing to say of it. Whether the devices add. */
bool means_agree(struct host *host, const char *obstacle, struct welcome *welcome);

#endif
