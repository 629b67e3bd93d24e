/* The network of a simulation: machines with a line each, and what goes wrong between them. Sockets of the
 * worlds of one simulation are simulated by it (simulated_network.c); endpoint.h is what a program sees of
 * them.
 *
 * A world belongs to a machine. Bytes between two machines leave one after the other at the speed of the
 * sender's line, are under way for the latency and a random part of the jitter, and arrive at the speed of
 * the receiver's line, in their order. Connections that send at the same time take turns, in pieces of
 * SIMULATED_TURN_BYTES: so they share the line. Within a machine bytes take no time. Virtual time alone
 * passes, and the same seed gives the same times.
 *
 * All of this is for the threads of the simulation, whose worlds these are. */
#ifndef TRAINER_WORLD_SIMULATED_NETWORK_H
#define TRAINER_WORLD_SIMULATED_NETWORK_H

#include "world.h"

enum {
    SIMULATED_TURN_BYTES = 64 << 10,
    SIMULATED_WINDOW_BYTES = 4 << 20 /* sent, and not received yet, per direction of a connection */
};

struct simulated_network {
    double latency_s;
    double jitter_s;    /* a delay below this comes on top, another one for each piece */
    double bytes_per_s; /* of a machine's line, in each direction; 0: as many as one likes */
    double loss;   /* how probably a piece is lost; it is sent again, so it comes SIMULATED_AGAIN_S later */
    double damage; /* how probably a bit of it is another one when it comes */
};

#define SIMULATED_AGAIN_S 0.2

/* From now on; at first all are 0. */
void simulated_set_network(struct world *world, const struct simulated_network *settings);

/* A world on a machine of its own, beside a simulated one: another process elsewhere. As world_open_beside in
 * all else. Errors: ERROR_DEVICE: no memory, or too many machines. */
int simulated_open_machine(struct world **out, struct world *beside, struct error *error);

/* Nothing gets from one machine to the other or back, until the cut is mended: then what was sent meanwhile
 * is under way. Neither side is told. Cuts of the same pair add up; each is mended by itself. */
void simulated_cut(struct world *one, struct world *other, bool cut);
/* Latency times as long, and the line so many times slower, as long as it lasts; 1: as before. */
void simulated_slow(struct world *machine, double times);
/* The machine's connections are reset, as by the kernel of a process that was killed, and none can be made
 * any more. Its threads are not stopped: they find out. */
void simulated_kill(struct world *machine);

#endif
