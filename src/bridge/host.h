/* The host: the side of a parameter server that remote workers connect to.
 *
 * A remote device is a worker that computes elsewhere. In the run of the ps each has a thread, the proxy,
 * which goes through the training loop like any worker; only its compute step differs: it sends weights
 * and the number of a batch, and receives loss and gradient. So strategies, data order, pauses,
 * checkpoints and the loss of a worker do not depend on the network.
 *
 * With several parameter servers, each has a slice of the vector. The first is the *leader*: it assigns
 * batches, evaluates and writes; the workers pass on what they are assigned to the *followers*. What
 * leader and followers say to each other is in lead.h. */
#ifndef TRAINER_BRIDGE_HOST_H
#define TRAINER_BRIDGE_HOST_H

#include "../world/roster.h"
#include "cluster.h"
#include "packed.h"
#include "terms.h"

/* One device of a remote worker. */
struct peer {
    struct endpoint *endpoint;
    int task, device, devices; /* of which worker's process; which of its devices, of how many */
    uint64_t process;          /* what that process calls itself */
    uint32_t session;          /* that its READY has to repeat: no recording of an earlier one does */
    bool ready;                /* it has built what it computes with */
    struct fingerprint built;  /* then that */
    int examples;              /* as the NEXT has them that it is told, or that a follower has heard */
    bool cut;                  /* a part of a frame went to it, and no more can */
    bool left;                 /* it has said that it goes */
    bool paused;               /* since it was last assigned a batch */
    double came_s;             /* it said hello */
    double heard_s, took_s;    /* its last sign of life; when it last took a word */
    long seen;                 /* as in its hello */
    char device_name[GROUP_NAME_BYTES];
    char name[MEMBER_NAME_BYTES]; /* "worker 1 (127.0.0.1:4000 cpu:0)" */
    struct packed packed;         /* of the slice */
    const float *owed;            /* [slice] by all workers, where anything is packed; borrowed */
    bool owes;                    /* packed.kept is what it owes: it has said so at a pause */
    bool unmet;                   /* another server has not met it: it is told to come again */
    bool lost_there;              /* at the leader: a follower has lost it */
    struct rank_offer offer;      /* as in its hello */
    bool sums, root;   /* the gradient of the batch in hand goes into a sum; this worker receives it */
    double computed_s; /* that its device took for the batch before */
};

/* A try to connect, on a thread of its own: a name may be looked up, or a machine not answer. */
struct reach {
    struct world *world;
    const char *address;
    struct world_thread *thread; /* NULL: nobody tries */
    double tried_s;
    /* The thread's, until it is done: */
    struct endpoint *endpoint;
    struct error why;
    _Atomic bool done;
};

/* Another parameter server, as the first one sees it. */
struct follower {
    struct endpoint *endpoint; /* NULL: not connected yet */
    char name[96];             /* "the parameter server 1 (127.0.0.1:4000)" */
    uint64_t begin, end;       /* its slice */
    bool greeted;              /* it has taken our hello */
    bool ready;                /* and told its session, which was repeated */
    bool welcomed;             /* all have come to it, too; `welcome` is what it says */
    struct welcome welcome;
    double since_s, heard_s, took_s; /* connected; its last sign of life; when it last took a word */
    struct reach reach;
};

/* Is called now and then with a text: who is still missing, and who was refused. */
typedef void host_say(void *argument, const char *words);

struct host_settings {
    struct world *world;
    const struct cluster *cluster; /* borrowed, as all here */
    const struct config *config;
    const struct fingerprint *fingerprint;
    int least;                   /* workers to begin with, which others may join; 0: all, and nobody does */
    double start_s;              /* how long all may take to come */
    double timeout_s;            /* for a peer's next word */
    const _Atomic bool *give_up; /* set when it is not to wait any longer; NULL: never */
    const struct error *because; /* the reason, once give_up is set */
    host_say *say;
    void *argument;
    const char *waits; /* said once it listens, and not kept; NULL: nothing */
};

/* A connection that has not yet said who it is, or was refused and may still take the words. */
struct guest {
    struct endpoint *endpoint; /* NULL: it is none any more */
    double since_s;
    bool leaving, spoke; /* it was refused; a byte of it has come */
};

/* Lines about those who are refused, so many of which would fill a log. */
struct refusals {
    double since_s;
    int said, unsaid; /* since then */
};

/* At a time; of one address. A quarter of the descriptors of this process is another limit. */
enum { HOST_GUESTS = 64, HOST_GUESTS_OF_ONE = 32 };

#define HOST_GOODBYE_S 2.0 /* for a peer to take the last word */

struct host {
    struct host_settings settings;
    struct listener *listener;
    struct guest guests[HOST_GUESTS]; /* [guest_count], the longest there first; once full, the door's */
    int guest_count, guests_most;
    struct refusals refusals;
    struct peer *peers; /* [count], room for as many as `room`; by task, then by device once open */
    int count, room;
    int present;                            /* of them those who share what is owed */
    struct joins *joins;                    /* joins.h; NULL: nobody joins */
    const struct host *trains;              /* of the room of those who join: where they want to go */
    long long sent_before, received_before; /* bytes, of those whose places others have taken */
    uint32_t sessions;                      /* so far */
    struct follower *followers;             /* [follower_count] of the leader, the first ps: all others */
    int follower_count;
    struct endpoint *leader; /* of the others */
    uint32_t leader_session; /* it repeats it: no recording of it does */
    uint64_t leader_process; /* as it calls itself */
    bool leader_ready;       /* it has repeated it */
    uint64_t *first; /* [workers of the cluster] of a follower that workers join: with which processes */
    uint32_t first_session; /* all begin, 0: without one; as the leader of this session has said */
    double leader_heard_s, leader_took_s;
    struct hello hello;  /* of whom is heard just now */
    struct error lost;   /* a worker or a follower that has gone, and cannot come again */
    char waits_for[500]; /* in words, while it waits for all to come */
    bool full;           /* all have come: nobody else comes in, but who asks is answered (door.h) */
    struct door *door;
    _Atomic long epoch, step; /* of the newest batch that a worker was sent, from 1 */
    bool asked;               /* a follower has said that it has to go: the run is to end */
    bool refused;             /* a follower will not have this leader */
    struct roster *roster;    /* borrowed; NULL or where a peer's signs of life are noted, by its place */
};

/* Listens at the ps's address and waits until every worker of the cluster has come with all its devices,
 * and the other parameter servers: the first, the leader, connects to all others. A peer that says hello
 * is told the settings, builds network and data set by them, and says that it is ready. One that is not a
 * trainer, was given other settings, or has built something else, is refused, and the host continues to wait:
 * nothing in its loop waits for one of them. The reason goes to settings.say; to the guest only if it holds
 * the key, or if nobody but this machine can reach the host. A worker's place belongs to the process whose
 * hello came first, as long as that is there and gives signs of life. Errors: ERROR_DEVICE (the port is in
 * use), ERROR_PEER (a process is missing after start_s), ERROR_INTERRUPTED. */
int host_open(struct host *host, const struct host_settings *settings, struct error *error);
void host_close(struct host *host); /* safe on a zeroed or half-open one */

/* Tells all that the training begins: first the followers the leader, then each its workers. `welcome` has
 * the ps's slice; their places in the roster are those in host->peers. Errors: ERROR_PEER: slices that do
 * not make one vector, a follower that refuses, one of all that has gone meanwhile. */
int host_welcome(struct host *host, const struct welcome *welcome, struct error *error);

/* Likewise one that has joined. Errors: ERROR_PEER: it has gone. */
int host_welcome_one(struct host *host, const struct peer *peer, const struct welcome *welcome,
                     struct error *error);

/* At a follower, until the leader's first word: errors: ERROR_PEER: a worker has gone, or is silent. */
int host_watch(struct host *host, struct error *error);

/* Puts before the words whose they are. What an endpoint says begins with its address, which the name has, or
 * which is that of the connection alone: it is left out. Gives the error's code. */
int host_blame(const struct endpoint *endpoint, const char *name, struct error *error);
/* After the header of a failure: the error is why the peer ends, as it says itself. */
int host_read_failure(struct endpoint *endpoint, const char *name, const struct frame_header *header,
                      double timeout_s, struct error *error);
/* At a follower: the leader is named, unless code is OK. */
int host_blame_leader(const struct host *host, int code, struct error *error);

/* At the leader, before it assigns a batch: errors: ERROR_PEER: during a pause the worker has said that it
 * goes. Then, and where another call fails because it has, peer->left is set. */
int peer_look(struct host *host, struct peer *peer, double timeout_s, struct error *error);
/* At the leader: tells the worker what it is assigned next. At the others: is told by the worker. */
int peer_tell_next(struct host *host, struct peer *peer, enum next next, long number, double timeout_s,
                   struct error *error);
int peer_hear_next(struct host *host, struct peer *peer, enum next *next, long *number, double timeout_s,
                   struct error *error);

/* Has a batch computed by the peer: sends weights[floats], receives the loss and gradient[floats]. Errors:
 * ERROR_PEER, the worker's own failure. */
/* At a pause, where anything is packed: what the worker owes. */
int peer_hear_owed(struct host *host, struct peer *peer, double timeout_s, struct error *error);
/* What the worker has stepped, of all vectors, into own[floats], at a pause or where it has no batch. */
int peer_hear_own(struct host *host, struct peer *peer, const struct state *own, size_t floats,
                  double timeout_s, struct error *error);
/* As peer_compute, of a worker that steps its copies: it takes those of own[floats] before, and gives them
 * back after it. gradient[floats]: only where it is not finite, so that nothing was stepped. */
int peer_step(struct host *host, struct peer *peer, const struct request *request, const struct state *own,
              bool takes, bool gives, float *gradient, float *loss, size_t floats, double timeout_s,
              struct error *error);
int peer_compute(struct host *host, struct peer *peer, const struct request *request, const float *weights,
                 float *gradient, float *loss, size_t floats, double timeout_s, struct error *error);

/* At the leader, now and then: hears which workers the followers have lost, and whether one of them has to
 * go, so that the run is to end while it is there. */
bool followers_ask(struct host *host);
/* Likewise. Errors: ERROR_PEER: one of them has closed its connection, and left no word in it. */
int followers_watch(const struct host *host, struct error *error);
/* At a follower: tells so. Who does not hear it hears it at the next pause. */
void follower_tell_lost(struct host *host, int worker, double timeout_s);
/* At the leader: the next frame of a follower. When it says why it ends, that is the error; so is another
 * follower that does, or that has gone meanwhile. */
int follower_hear(struct host *host, int follower, const char *what, struct frame_header *header,
                  double timeout_s, struct error *error);
/* At the leader, where a call to or from a follower has failed, unless code is OK: if the follower has said
 * why it ends, that is the error; if it has gone, that it has, whatever the call was about. Gives the code.
 */
int follower_blame(const struct host *host, const struct follower *follower, int code, struct error *error);

/* Updates of the newest weights that one of the workers had in the session before. */
long host_seen(const struct host *host);
/* Bytes to and from all workers so far. */
long long host_sent(const struct host *host);
long long host_received(const struct host *host);

/* The last frame, to all that are still connected; they have HOST_GOODBYE_S to take it, also in a stopped
 * world. */
void host_finish(struct host *host, const struct finish *finish);

#endif
