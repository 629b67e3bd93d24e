/* A simulation: what its worlds share, for simulated.c, which has the threads and the clock, and
 * simulated_network.c, which moves bytes between its machines. Only the thread that runs reads and writes any
 * of it. */
#ifndef TRAINER_WORLD_SIMULATED_PARTS_H
#define TRAINER_WORLD_SIMULATED_PARTS_H

#include <pthread.h>
#include <semaphore.h>

#include "simulated_network.h"
#include "world_kind.h"

enum because { RUNNABLE, SLEEPING, AT_EVENT, AT_NETWORK, AT_LOCK, AT_JOIN };

/* When what is waited for at the network will be there, as far as is known now: in the past, it is; INFINITY,
 * somebody else has to do something first. */
typedef double sim_due(void *argument);

struct sim_thread {
    struct world_thread base;
    struct simulation *sim; /* borrowed */
    int slot;
    bool ended;
    enum because because;          /* why it does not run */
    const struct world *in;        /* whose stop ends its wait or sleep */
    bool (*ready)(void *argument); /* AT_EVENT: what it waits for */
    sim_due *due;                  /* AT_NETWORK: likewise */
    void *wanted;                  /* the argument of either; borrowed */
    const struct lock *lock;       /* AT_LOCK: which; borrowed */
    double deadline;               /* AT_NETWORK */
    sem_t baton;                   /* posted by who hands over */
    pthread_t handle;              /* not of the opener, which is its own */
    world_body *body;
    void *argument; /* borrowed */
    char name[THREAD_NAME_BYTES];
};

enum { MACHINES = 64 };

struct sim_machine {
    double out_free_s, in_free_s; /* when its line has sent, and received, all that it was given so far */
    double slowness;              /* of its line, 1 or more */
    int cuts[MACHINES];           /* of the way to each machine that have not been mended */
    bool dead;
};

/* --- sockets --- */

enum { NOBODY = -1 };

enum sim_state {
    CLOSED, /* the place is free */
    LISTENING,
    WAITING,    /* for the listener to accept it: the far end of one that connects */
    CONNECTING, /* the answer arrives at `arrives` */
    REFUSED,    /* likewise */
    CONNECTED
};

struct segment {
    struct segment *next;
    double arrives;
    size_t bytes, taken; /* none at all: the end */
    uint8_t data[];      /* [bytes] */
};

struct sim_socket {
    enum sim_state state;
    int machine;
    struct sockaddr_storage
        name;        /* its own; of a WAITING one and those accepted, that which was connected to */
    int peer;        /* the other end; NOBODY: it is closed */
    int far_machine; /* of that */
    int listener;    /* WAITING */
    double arrives;  /* CONNECTING, REFUSED, WAITING */
    struct segment *first, *last; /* what comes in, in order */
    size_t queued;                /* bytes of that */
    double leaves;                /* when what it has sent so far has left the machine */
    bool shut_in, shut_out;       /* by this side */
    bool broken;                  /* a reset is under way to it, and is there at `breaks` */
    double breaks;
};

/* --- all of it --- */

struct simulation {
    uint64_t seed, draws; /* key and counter of the tie-breaks */
    uint64_t delays;      /* counter of the network's random numbers */
    double now;           /* virtual time, seconds */
    int running;          /* slot of the holder of the baton */
    int room;             /* slots there are */
    /* Per slot, [room]: its thread (NULL: free; slot 0 is the thread that opened the first world), the
     * earliest time at which it can go on (INFINITY: blocked, ended or free), and the event, lock or thread
     * it is blocked at (or NULL; compared, never followed). */
    struct sim_thread **threads;
    double *when;
    const void **at;
    struct sim_thread opener;
    struct sim_world *worlds; /* a list */
    struct simulated_network settings;
    struct sim_machine machines[MACHINES];
    int machine_count;
    struct sim_socket *sockets; /* [socket_room] */
    int socket_room;
    int next_port; /* that nobody asked for by its number */
};

struct sim_world {
    struct world base;
    struct simulation *sim;
    int machine;
    struct sim_world *next; /* in the list */
};

static inline struct sim_world *sim_of(const struct world *world) {
    return (struct sim_world *)(uintptr_t)world;
}

/* Waits until due(argument) or the deadline, whichever is first, or until the world is stopped meanwhile. */
void sim_wait_due(struct world *world, sim_due *due, void *argument, double deadline);
/* Something in the network is otherwise: who waits there may have another time. */
void sim_network_changed(struct simulation *sim);

/* When something without a length arrives at another machine that is sent now; how long it is under way. */
double sim_arrival(struct simulation *sim, int from, int to);
double sim_delay(struct simulation *sim, int from, int to);
/* The same of bytes, which take the lines' time; *leaves: when they have left. */
double sim_arrival_of(struct simulation *sim, int from, int to, size_t bytes, double *leaves);
/* What the network makes of bytes on their way. */
void sim_damage(struct simulation *sim, int from, int to, void *bytes, size_t count);
/* Both ends of its connection find it broken; a listener refuses those who wait. */
void sim_socket_break(struct simulation *sim, int socket);
void sim_sockets_free(struct simulation *sim); /* after its last world */

#endif
