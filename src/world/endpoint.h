/* Endpoints: the network of the world. Byte streams to other processes, over TCP, IPv4 and IPv6, in clear or
 * encrypted, or through memory that two processes of one machine share.
 *
 * Memory is shared where both ends are at a loopback address and belong to one user, and neither has a key
 * or keeps to TCP. Both listen and connect as ever; who shares memory is called "process 4711" where it came
 * from no address.
 *
 * A connection that stays on this machine may be in clear. Any other one is refused until the world has been
 * given a key or certificates, or told that everything may be in clear. With a key all connections are
 * encrypted, those on this machine too, and a peer that does not hold the same key gets no byte of ours and
 * has none of its own looked at (tls.c); certificates of one CA are as good as a key. The bytes that are
 * counted are those of the messages.
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
 * invalid address, ERROR_DEVICE for what this machine refuses. In the
 * simulated world the network is simulated, too (simulated_network.h). */
#ifndef TRAINER_WORLD_ENDPOINT_H
#define TRAINER_WORLD_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "world.h"

enum {
    ENDPOINT_LIFE_BYTES = 64 << 10,  /* how much must move to count as a sign of life */
    ENDPOINT_AHEAD_BYTES = 32 << 10, /* how far one can peek */
    ENDPOINT_KEY_BYTES = 32
};

struct listener;
struct endpoint;

/* What a peer that expects encryption answers to one that speaks in clear: protocol_version, fatal. */
static const uint8_t endpoint_alert[] = {21, 3, 3, 0, 2, 2, 70};

/* Before the world's first connection. key: [ENDPOINT_KEY_BYTES], copied. Errors: ERROR_USAGE: this build
 * cannot encrypt; ERROR_DEVICE. */
int endpoint_encrypt(struct world *world, const uint8_t *key, struct error *error);
/* The same with certificates instead of the key: a peer is who shows one that the CA has signed, whatever
 * name is in it, and has the key of it. Errors: those above; ERROR_FILE: a file is missing or of another
 * kind, the key is not that of the certificate or others can read it, the certificate is not valid or of
 * another CA. */
struct endpoint_certificates {
    const char
        *certificate; /* paths of PEM files; this process's own, and those that lead from it to the CA */
    const char *key;  /* of the certificate, private */
    const char *ca;
};
int endpoint_certify(struct world *world, const struct endpoint_certificates *files, struct error *error);
void endpoint_allow_clear(struct world *world);
void endpoint_keep_to_tcp(struct world *world);
void endpoint_keep_to_shared_memory(struct world *world); /* no connection goes out over TCP */
bool endpoint_shares_memory(const struct endpoint *endpoint);
bool endpoint_is_encrypted(const struct endpoint *endpoint);
/* What comes is what was sent, or an error. Elsewhere a bit may have changed on the way. */
bool endpoint_is_intact(const struct endpoint *endpoint);

/* Listens on "host:port" ("[::1]:port" for an IPv6 address); ":port" is any address of this machine, port 0
 * any free port. */
int endpoint_listen(struct world *world, const char *address, struct listener **out, struct error *error);
int listener_port(const struct listener *listener);
bool listener_is_loopback(const struct listener *listener); /* only this machine can reach it */
/* The next connection; *out is NULL when nobody connected: the caller knows whom it waited for. Also where
 * somebody did, but this process has no descriptor or memory left: then the listener is crowded until the
 * next call, and who waits there comes in once the caller has closed something. */
int listener_accept(struct listener *listener, struct endpoint **out, double timeout_s, struct error *error);
bool listener_is_crowded(const struct listener *listener);
void listener_close(struct listener *listener); /* NULL is fine */

/* Connects to "host:port". While the host does not resolve, or nobody listens there yet, it tries again:
 * machines of a cluster start in any order. A look-up of a name that is under way cannot be woken. ERROR_PEER
 * where the time was too short; ERROR_USAGE and ERROR_DEVICE where it makes no sense to try again. */
int endpoint_connect(struct world *world, const char *address, struct endpoint **out, double timeout_s,
                     struct error *error);
void endpoint_close(struct endpoint *endpoint); /* NULL is fine */

/* Before closing, so that the peer gets the last message whatever it sent meanwhile: ends what goes out,
 * then takes and drops what comes in until the peer closes. (Closing while there are unread bytes resets
 * the connection, and what was not delivered yet is lost.) False: it has not closed yet; with 0 s one can ask
 * now and then. */
bool endpoint_finish(struct endpoint *endpoint, double timeout_s);

/* From any thread: ends the connection both ways and wakes who waits on it. It is still to be closed. */
void endpoint_interrupt(struct endpoint *endpoint);

/* Bytes that could be received at once, at most `bytes`: they are copied and stay. *ended: after them comes
 * nothing more. Waits for the first for at most `seconds`, also in a stopped world: for last words. For the
 * thread that receives. */
size_t endpoint_peek(struct endpoint *endpoint, void *buffer, size_t bytes, double seconds, bool *ended);

const char *endpoint_name(const struct endpoint *endpoint); /* the peer's address, for words */
bool endpoint_is_loopback(const struct endpoint *endpoint); /* the peer is on this machine */
/* Both may come from one sender, who is to have one share of what there is for strangers: by their IPv4
 * address, or the network of their IPv6 address (/64), of which one has as many as it likes. All who share
 * memory are one. */
bool endpoint_same_source(const struct endpoint *one, const struct endpoint *other);
long long endpoint_sent(const struct endpoint *endpoint); /* bytes so far */
long long endpoint_received(const struct endpoint *endpoint);

struct piece {
    const void *memory; /* [bytes], borrowed */
    size_t bytes;
};

/* Sends all of the pieces, in order; receives exactly so many bytes. `what` is for the words: "a reply".
 * After a message of which only a part went out nothing more is sent: the peer would take it for the rest.
 * The memory of such a message stays until the endpoint is closed: UCX may still read it. */
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
    uint32_t *sum;         /* CRC-32C: goes on over what is received; NULL: nobody wants to know */
    size_t sent, received; /* how far it came, also after an error */
    struct {
        int piece;     /* being sent */
        size_t offset; /* in it */
        size_t seen;   /* bytes moved at the last sign of life */
        double since;  /* its time */
        double left;   /* when it was last waited for */
        size_t sends;  /* bytes in all pieces */
    } cursor;          /* the calls below alone read and write it */
};

/* Moves all of it, all peers and both directions at once, so two peers that send each other more than the
 * kernels hold do not lock each other out. Timeout is counted for each peer by itself. */
int endpoints_exchange(struct transfer *transfers, int count, double timeout_s, struct error *error);

/* The same beside other work: `begin`, then `move`, which moves what can move at once and never waits, and
 * `finish`, which waits for the rest, in any order and as often as one likes. The timeout is for all waits
 * together; what was between them does not count. Between two calls pieces may be added behind those that are
 * there, and transfer->bytes may change, down to what has been received. After an error nothing more is
 * sent, as after endpoints_exchange. */
void endpoints_begin(struct transfer *transfers, int count);
int endpoints_move(struct transfer *transfers, int count, struct error *error);
int endpoints_finish(struct transfer *transfers, int count, double timeout_s, struct error *error);
bool transfer_is_done(const struct transfer *transfer);

#endif
