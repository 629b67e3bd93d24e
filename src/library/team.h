/* Private to src/library: the threads of a session on several devices, one for each. The thread that runs the
 * session hands out the parts of a run, and waits no longer than it may; it computes none but one that cannot
 * hang. */
#ifndef TRAINER_LIBRARY_TEAM_H
#define TRAINER_LIBRARY_TEAM_H

#include "../program/partition.h"

struct team;
struct slabs;

/* devices[count] and slabs[count] are borrowed, and are there when it is opened. */
int team_open(struct team **out, const struct device *devices, const struct slabs *slabs, int count,
              struct error *error);
/* Ends the threads; false: one hangs, and is left behind with all that it may use. NULL is fine. */
bool team_close(struct team *team);

void team_set_timeout(struct team *team, double seconds);

/* Memory to run a partition in. */
int team_meet(const struct team *team, const struct partition *partition, struct rendezvous **out,
              struct error *error);
/* Runs every part that has something to do; part `here`, whose device is a CPU, on the calling thread, NONE:
 * each on its own. After an error the rendezvous runs no more. Errors: that of the
 * part that failed first, with device and node; ERROR_PEER: a device came to no other node in time. */
int team_run(struct team *team, const struct partition *partition, struct rendezvous *rendezvous, int here,
             struct error *error);
/* Whether the last run has ended on every device. Errors: ERROR_PEER. */
int team_ended(const struct team *team, struct error *error);

#endif
