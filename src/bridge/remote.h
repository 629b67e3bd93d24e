/* The remote: one device of a worker whose weights live at the parameter servers. It says hello to all of
 * them, waits until all processes have connected, and then computes what the first of them, the leader,
 * assigns; it tells the others. Weights come from all at once, and the gradient goes to all at once. The
 * other side is host.h. */
#ifndef TRAINER_BRIDGE_REMOTE_H
#define TRAINER_BRIDGE_REMOTE_H

#include "../base/reminder.h"
#include "../device/update.h"
#include "addresses.h"
#include "packed.h"
#include "terms.h"

/* A parameter server. */
struct remote_host {
    struct endpoint *endpoint;
    struct welcome welcome; /* once welcomed */
    bool told, welcomed;    /* the settings; that all have come */
    bool knows;             /* that this worker is ready */
    uint32_t session;       /* as it has told with the settings: repeated then */
    bool done;              /* it has said goodbye, and that all is well */
    double next_s, pause_s; /* when it may be tried again; how long after that */
    double since_s;         /* connected */
    bool doubted;           /* that it is one, which has been said */
    struct error why;       /* why the last try came to nothing */
    struct frame_header header;
    uint8_t head[FRAME_HEADER_BYTES]; /* of the frame that comes or goes */
    uint8_t request[REQUEST_BYTES], answer[LOSS_BYTES];
    uint8_t part_head[FRAME_HEADER_BYTES], part_answer[LOSS_BYTES];
    struct piece pieces[3 + 2 + STATE_VECTORS]; /* of a part, and of a gradient or what is given back */
    struct packed packed;                       /* of the slice */
    /* Of the batch in hand: the worker steps its copies; and gives them back; or the workers' devices add
     * their gradients. */
    bool steps, gives, sums;
    size_t left;   /* floats of the slice's gradient, from its beginning, that are in no part yet */
    uint32_t part; /* so many have begun to go */
};

/* Is called with a text: whom all are waiting for. */
typedef void remote_say(void *argument, const char *words);

struct remote_settings {
    struct world *world;
    const struct addresses *hosts; /* of the parameter servers, borrowed */
    const char *server;            /* what they are called, borrowed: "parameter server" */
    const struct hello *hello;
    double start_s;   /* until all are there */
    double timeout_s; /* for the next word */
    double beat_s;    /* between two signs of life to the others, while one is waited for */
    bool own_leader;  /* the leader is this process, and need not be said to be waited for */
    bool may_leave;   /* SIGTERM makes it leave between two batches, instead of ending this process */
    remote_say *say;
    /* As soon as the leader has told its settings: whether this worker is for them; NULL: it is. */
    int (*check)(void *argument, const struct typed *agreed, struct error *error);
    void *argument;
};

struct remote {
    struct remote_settings settings;
    struct world *world;
    struct remote_host *hosts;  /* [count] the leader first */
    struct transfer *transfers; /* [count] */
    int count, transfer_count;  /* transfer_count: that were begun */
    bool overlaps;              /* remote_step is called */
    bool comes;                 /* the weights of the batch in hand do: transfers[count] */
    double moved_s;             /* since then, in remote_step, which waits for the wire or fills it */
    const float *gradient;      /* that is sent in parts; borrowed; NULL: it is not */
    struct transfer *sends;     /* [count] what goes to each */
    const char *server;         /* what a host is called: "parameter server" */
    double timeout_s, beat_s;
    long number; /* of the batch that was assigned last; and its size, as NEXT has it: */
    int examples;
    struct state own;    /* the worker's copies, where it steps them; count 0: it does not; borrowed */
    bool behind;         /* it has stepped them since it gave them back */
    bool left;           /* it has told the hosts that it goes */
    bool over;           /* the leader has ended the run, or a host refuses this worker for good */
    bool repeats;        /* the error is a host's words on a process that it has lost, which name that one */
    struct typed agreed; /* the settings of the run, as the leader has told them */
    const struct fingerprint *built; /* once this worker is ready; borrowed */
    double deadline, beaten_s;
    struct reminder reminder; /* that the leader is missing */
    /* Hears the hosts while the caller builds; `heard` is why that ended. */
    struct world_thread *attending;
    struct event enough;
    struct error heard;
};

/* Connects to all parameter servers and waits until the leader has told the settings of the run. A server
 * that closes the connection without a word, or has no place just now, is tried again until start_s have
 * passed. From then on a thread tells them that this worker lives, until it is ready. Errors: ERROR_PEER: no
 * answer, or a server refuses or ends, with its message. */
int remote_open(struct remote *remote, const struct remote_settings *settings, struct error *error);
/* Sends the fingerprint of what was built, and waits until all have connected: for start_s + timeout_s at
 * most, whatever signs of life there are. Errors: ERROR_PEER: as above; slices that do not make the vector.
 */
int remote_ready(struct remote *remote, const struct fingerprint *fingerprint, struct error *error);
/* From now on weights and gradients are packed, unless the choice is none. Errors: ERROR_DEVICE: no memory.
 */
int remote_compress(struct remote *remote, const struct choice *choice, const struct layout *layout,
                    struct error *error);
void remote_close(struct remote *remote); /* safe on a zeroed one */

/* What is assigned next; or the end: *over, and how it ended, or remote->left. */
int remote_next(struct remote *remote, enum next *next, long *number, bool *over, struct finish *finish,
                struct error *error);
/* For a batch: weights[floats], and what the leader says of it; or the end. */
int remote_weights(struct remote *remote, struct request *request, float *weights, bool *over,
                   struct finish *finish, struct error *error);
/* Whether weights and gradients are to move while the worker computes, once all have connected: they are
 * many, and a host is on another machine. On this one the cores that compute would move them; if it is ON,
 * then too, but not through memory that is shared. */
enum overlap { OVERLAP_AUTO, OVERLAP_ON, OVERLAP_OFF };
bool remote_may_overlap(const struct remote *remote, enum overlap overlap);
/* From now on weights may still be on their way when remote_weights returns, and the gradient[floats], of
 * which remote_answer gets the whole, is sent in parts; NULL: it is not. */
void remote_overlap(struct remote *remote, const float *gradient);
/* Then, before each step of the computation that reads weights[.. until], and after which nothing writes
 * gradient[from ..] any more: waits for these weights, and sends what can go. Errors: ERROR_PEER. */
int remote_step(struct remote *remote, size_t until, size_t from, struct error *error);
/* Whether the worker is to step its copies with the gradient, before it answers. */
bool remote_steps(const struct remote *remote);
/* Whether its device is to add the gradient with those of the other workers, before it answers. */
bool remote_sums(const struct remote *remote);
/* stepped: it has. Else the gradient is sent, or, where it is in a sum, that sum's slices whose root this
 * worker is. */
int remote_answer(struct remote *remote, const struct answer *answer, const float *gradient, bool stepped,
                  struct error *error);
/* While the worker waits for other workers: tells the hosts that it lives. Errors: ERROR_PEER: one of them
 * has gone; this process ends. */
int remote_look(struct remote *remote, struct error *error);
/* Instead of an answer: tells all that are still connected why there will be none. */
void remote_fail(struct remote *remote, const struct error *why);

#endif
