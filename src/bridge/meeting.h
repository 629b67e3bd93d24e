/* How a worker meets its hosts, and what both halves of a remote share. Used inside this folder. */
#ifndef TRAINER_BRIDGE_MEETING_H
#define TRAINER_BRIDGE_MEETING_H

#include "remote.h"

/* Words that a host sends, at most what fits. After its header was read, as the next. */
int remote_read_words(struct remote *remote, struct remote_host *host, char words[500], struct error *error);
/* A frame that is not the awaited one: the end of the training, with its message; or nonsense. */
int remote_read_end(struct remote *remote, struct remote_host *host, struct error *error);
/* After the header of a goodbye. */
int remote_read_finish(struct remote *remote, struct remote_host *host, struct finish *finish,
                       struct error *error);
/* A connection has failed. Mostly the other end has said why, or another host says it, the leader first. */
int remote_ask_why(struct remote *remote, int code, struct error *error);
/* Puts in front of an error what a host is called: "the process 127.0.0.1:2222: ...". */
int remote_name_server(const struct remote *remote, int code, struct error *error);
/* Waits for the first byte of a host; where this worker has nothing in hand that the hosts do not have.
 * *left: it was asked to leave, and has. */
int remote_await_or_leave(struct remote *remote, int host, const char *what, bool *left, struct error *error);
int remote_stopped(const struct remote *remote, int host, const char *what, struct error *error);
void remote_attend_end(struct remote *remote); /* also where nobody attends */

static inline size_t remote_slice_bytes(const struct remote_host *host) {
    return (size_t)(host->welcome.end - host->welcome.begin) * sizeof(float);
}
/* The slice's part of the worker's copies: how many pieces. */
int remote_own_pieces(const struct remote *remote, const struct remote_host *host, struct piece *pieces);
/* batch.c: whether the next byte of the host is a frame's first: takes what has come of weights on their way.
 */
bool remote_is_between(struct remote *remote, int host);
/* batch.c: as long as each takes of it in so much time, the parts of a gradient that have begun to go do. */
void remote_end_parts(struct remote *remote, double timeout_s);

#endif
