/* How a worker meets its hosts, and what both halves of a remote share. Used inside this folder. */
#ifndef TRAINER_BRIDGE_MEETING_H
#define TRAINER_BRIDGE_MEETING_H

#include "remote.h"

/* Words that a host sends, at most what fits. After its header was read, as the next. */
int remote_read_words(struct remote *remote, struct remote_host *host, char words[500], struct error *error);
/* A frame that is not the awaited one: the end of the training, with its message; or nonsense. */
int remote_read_end(struct remote *remote, struct remote_host *host, struct error *error);
int remote_stopped(const struct remote *remote, int host, const char *what, struct error *error);
void remote_attend_end(struct remote *remote); /* also where nobody attends */

#endif
