/* Who joins a training while all pause, where --workers=LEAST..MOST lets them. */
#ifndef TRAINER_CLUSTER_ADMISSION_H
#define TRAINER_CLUSTER_ADMISSION_H

#include "members.h"

/* The leader's, as in struct crew: one who is ready at all parameter servers takes a place and is welcomed.
 * Errors: ERROR_PEER: a follower is gone. */
int members_admit(void *members, const bool *is_free, int *worker, struct error *error);

/* A follower's. Answers an ADMIT: keeps the places for those who are ready here, and gives up those that
 * nobody takes any more. Errors: ERROR_PEER: another frame, the leader is gone. */
int members_keep_places(struct members *members, struct training *training, const struct frame_header *header,
                        struct error *error);
/* With the change: welcomes those who take part now; joins[w]: this worker is one of them. Errors: memory. */
int members_settle_places(struct members *members, const bool *present, bool *joins, struct error *error);

#endif
