/* The remote: one device of a worker whose weights live at a parameter server. It says hello, waits until all
 * have come, and then computes what it is asked for. The other side is host.h. */
#ifndef TRAINER_BRIDGE_REMOTE_H
#define TRAINER_BRIDGE_REMOTE_H

#include "terms.h"

struct remote {
    struct endpoint *endpoint;
    struct welcome welcome;
    double patience_s;
};

/* Is told in words whom all are waiting for. */
typedef void remote_say(void *argument, const char *words);

/* Connects to the ps at `address`, for at most start_s until it is there, and waits until all have come: as
 * long as it gives signs of life. Errors: ERROR_PEER: nobody is there, or it refuses or ends, in its words.
 */
int remote_open(struct remote *remote, struct world *world, const char *address, const struct hello *hello,
                double start_s, double patience_s, remote_say *say, void *argument, struct error *error);
void remote_close(struct remote *remote); /* safe on a zeroed one */

/* The next batch to compute, and weights[floats]; or the end: *over, and how it ended. */
int remote_next(struct remote *remote, struct request *request, float *weights, size_t floats, bool *over,
                struct finish *finish, struct error *error);
int remote_answer(struct remote *remote, float loss, const float *gradient, size_t floats,
                  struct error *error);
/* Instead of an answer: why there will be none. */
void remote_fail(struct remote *remote, const struct error *why);

#endif
