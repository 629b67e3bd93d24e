/* What an endpoint is made of: for endpoint.c, which makes and ends it, and transfer.c, which moves its
 * bytes.
 */
#ifndef TRAINER_WORLD_ENDPOINT_PARTS_H
#define TRAINER_WORLD_ENDPOINT_PARTS_H

#include <poll.h>
#include <stdatomic.h>
#include "netname.h"
#include "link.h"

struct endpoint {
    struct world *world;          /* borrowed */
    int socket;                   /* of the world's sockets; where it receives */
    _Atomic int send_socket;      /* where it sends: the same, or one that the link has made */
    int wakes;                    /* what is polled for what comes, where it is not the socket; else -1 */
    struct sockaddr_storage peer; /* its address; of shared memory, where the listener is */
    bool loopback;
    _Atomic bool interrupted; /* by endpoint_interrupt */
    _Atomic long long sent, received;
    size_t held;          /* bytes of a message that the link has taken, but not reported as sent yet */
    _Atomic bool cut_off; /* a part of a message has gone out, and the rest never will */
    char name[NETNAME_TEXT_BYTES]; /* the peer's */
    const struct link_kind *link;
    void *state;                     /* of the link */
    short send_waits, receive_waits; /* what poll is to wait for where nothing moved; set by the link */
    uint8_t *ahead;                  /* [ENDPOINT_AHEAD_BYTES] what was peeked at; NULL: nothing yet */
    size_t ahead_begin, ahead_end;   /* those of it that have not been received */
};

/* The encryption of a world's connections; NULL: there is none. */
struct tls *endpoint_tls(const struct world *world);

/* Takes up to so many of the bytes that were peeked at. */
size_t endpoint_take_ahead(struct endpoint *endpoint, void *buffer, size_t bytes);

static inline int endpoint_receives_at(const struct endpoint *endpoint) {
    return endpoint->wakes >= 0 ? endpoint->wakes : endpoint->socket;
}

/* The world's sockets (sockets.h). Until one of them is ready, `seconds` at most; the caller looks whether
 * the world was stopped. The others as sendmsg, shutdown and recv. */
void endpoint_poll(struct world *world, struct pollfd *waits, int count, double seconds);
ssize_t endpoint_socket_send(const struct endpoint *endpoint, const struct iovec *parts, size_t count);
void endpoint_socket_wake(const struct endpoint *endpoint); /* other threads that poll it look again */
void endpoint_socket_end(const struct endpoint *endpoint);  /* of what goes out */
ssize_t endpoint_socket_receive(const struct endpoint *endpoint, void *buffer, size_t bytes);

#endif
