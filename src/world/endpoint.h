/* Endpoints: the network of the world. Byte streams to other processes, over TCP, IPv4 and IPv6.
 *
 * Every wait is limited by `timeout_s`: it gives up after so many seconds in which the peer neither
 * completed what was awaited nor moved LIFE_BYTES of it. So a long message over a slow line takes the time
 * it needs, while a peer that sends a byte now and then cannot hold the caller. Errors name the peer, what
 * was awaited and for how long. INFINITY waits until the world is stopped.
 *
 * A stopped world wakes all waits; what can move at once still does, so a last message can be sent. One
 * thread may send and another one receive on the same endpoint.
 *
 * Errors: ERROR_PEER for what the peer did or did not do and for a stopped world, ERROR_USAGE for an
 * invalid address, ERROR_DEVICE for what this machine refuses. The simulated world has no network yet. */
#ifndef TRAINER_WORLD_ENDPOINT_H
#define TRAINER_WORLD_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include "world.h"

enum { ENDPOINT_LIFE_BYTES = 64 << 10 }; /* how much must move to count as a sign of life */

struct listener;
struct endpoint;

/* Listens on "host:port" ("[::1]:port" for an IPv6 address); ":port" is any address of this machine, port 0
 * any free port. */
int endpoint_listen(struct world *world, const char *address, struct listener **out, struct error *error);
int listener_port(const struct listener *listener);
bool listener_is_loopback(const struct listener *listener); /* only this machine can reach it */
/* The next connection; *out is NULL when nobody connected: the caller knows whom it waited for. */
int listener_accept(struct listener *listener, struct endpoint **out, double timeout_s, struct error *error);
void listener_close(struct listener *listener); /* NULL is fine */

/* Connects to "host:port". While the host does not resolve, or nobody listens there yet, it tries again:
 * machines of a cluster start in any order. A look-up of a name that is under way cannot be woken. */
int endpoint_connect(struct world *world, const char *address, struct endpoint **out, double timeout_s,
                     struct error *error);
void endpoint_close(struct endpoint *endpoint); /* NULL is fine */

/* Before closing, so that the peer gets the last message whatever it sent meanwhile: ends what goes out,
 * then takes and drops what comes in until the peer closes. (Closing while there are unread bytes resets
 * the connection, and what was not delivered yet is lost.) */
void endpoint_finish(struct endpoint *endpoint, double timeout_s);

/* From any thread: ends the connection both ways and wakes who waits on it. It is still to be closed. */
void endpoint_interrupt(struct endpoint *endpoint);

/* Bytes that could be received at once, at most `bytes`: they are copied and stay. *ended: after them comes
 * nothing more. Waits for the first for at most `seconds`, also in a stopped world: for last words. */
size_t endpoint_peek(struct endpoint *endpoint, void *buffer, size_t bytes, double seconds, bool *ended);

const char *endpoint_name(const struct endpoint *endpoint); /* the peer's address, for words */
bool endpoint_is_loopback(const struct endpoint *endpoint); /* the peer is on this machine */
long long endpoint_sent(const struct endpoint *endpoint);   /* bytes so far */
long long endpoint_received(const struct endpoint *endpoint);

struct piece {
    const void *memory; /* [bytes], borrowed */
    size_t bytes;
};

/* Sends all of the pieces, in order; receives exactly so many bytes. `what` is for the words: "a reply". */
int endpoint_send(struct endpoint *endpoint, const char *what, const struct piece *pieces, int count,
                  double timeout_s, struct error *error);
int endpoint_receive(struct endpoint *endpoint, const char *what, void *buffer, size_t bytes,
                     double timeout_s, struct error *error);

/* What goes out to one peer and what comes in from it; either may be nothing. */
struct transfer {
    struct endpoint *endpoint;  /* borrowed */
    const char *sends;          /* for the words: "a gradient" */
    const struct piece *pieces; /* [piece_count] borrowed */
    int piece_count;
    const char *awaits; /* for the words: "a reply" */
    void *buffer;       /* [bytes] borrowed */
    size_t bytes;
    size_t sent, received; /* how far it came, also after an error */
    struct {
        int piece;     /* being sent */
        size_t offset; /* in it */
        size_t seen;   /* bytes moved at the last sign of life */
        double since;  /* its time */
        size_t sends;  /* bytes in all pieces */
    } cursor;          /* endpoints_exchange alone reads and writes it */
};

/* Moves all of it, all peers and both directions at once, so two peers that send each other more than the
 * kernels hold do not lock each other out. Timeout is counted for each peer by itself. */
int endpoints_exchange(struct transfer *transfers, int count, double timeout_s, struct error *error);

#endif
