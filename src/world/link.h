/* Links: how the bytes of an endpoint move over its socket, which never blocks. A kind of link is a file:
 * tcp.c moves them as they are, tls.c encrypts them between two who hold the same key, and shm.c moves them
 * through memory that two processes share, where the sockets only wake and show who lives. A connection over
 * TCP may go over to UCX (ucx.c). Only this folder includes this. */
#ifndef TRAINER_WORLD_LINK_H
#define TRAINER_WORLD_LINK_H

#include <poll.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "endpoint.h"

/* What send and receive give where no byte moved. */
enum {
    LINK_AGAIN = -1, /* wait for send_waits or receive_waits of the endpoint */
    LINK_ENDED = -2, /* the peer has closed the connection */
    LINK_BROKEN = -3 /* *why says what happened; valid until the next call */
};

struct link_kind {
    bool encrypts;
    bool tells_end; /* receive says so: the end of the socket alone is none */
    bool whole;     /* receive may fill all the room it is given at once: it is given all there is */
    bool intact;    /* what comes is what was sent, or an error: nobody else needs to check it */
    /* Once, for a socket that has just been connected or accepted. */
    int (*open)(struct endpoint *endpoint, bool accepted, struct error *error);
    /* Bytes that moved, more than 0, or one of the above. One thread may send while another one receives. */
    ssize_t (*send)(struct endpoint *endpoint, const struct iovec *parts, size_t count, const char **why);
    ssize_t (*receive)(struct endpoint *endpoint, void *buffer, size_t bytes, const char **why);
    /* As receive, behind `finish`: nobody looks at the bytes. */
    ssize_t (*drop)(struct endpoint *endpoint, void *buffer, size_t bytes, const char **why);
    /* A message will not be completed: nothing more comes into its receiver's memory. True: a part of one has
     * gone out. NULL: the link touches no memory between two calls. */
    bool (*give_up)(struct endpoint *endpoint);
    /* Tells the peer that this was all, once what was sent before has gone; until then it is called again. */
    void (*finish)(struct endpoint *endpoint);
    void (*close)(struct endpoint *endpoint); /* frees what `open` made; endpoint->socket stays */
};

extern const struct link_kind link_tcp, link_shm;
#if TRAINER_UCX
extern const struct link_kind link_ucx;
#endif
void endpoint_decrypt(struct world *world); /* at its end, after its last connection */
#if TRAINER_TLS
extern const struct link_kind link_tls;

/* What all encrypted links of a world share. key: [ENDPOINT_KEY_BYTES]. */
struct tls;
int tls_open(struct tls **out, const uint8_t *key, struct error *error);
int tls_open_certified(struct tls **out, const struct endpoint_certificates *files, struct error *error);
void tls_close(struct tls *tls); /* after the last link; NULL is fine */
#endif

#endif
