/* Sockets: where the bytes of a world's endpoints go. In the real world the kernel moves them (sockets.c), in
 * the simulated one simulated_network.c does. Everything above (deadlines, words, encryption) is the same
 * code in both.
 *
 * A socket is a small number. The calls are those of POSIX, with its values of errno; none of them but `poll`
 * waits. Only this folder includes this. */
#ifndef TRAINER_WORLD_SOCKETS_H
#define TRAINER_WORLD_SOCKETS_H

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "world.h"

struct sockets {
    /* A socket that listens at one address of a look-up, and where that is. Returns 0 or errno. */
    int (*listen)(struct world *world, const struct addrinfo *at, int *out, struct sockaddr_storage *name);
    /* Who has come: a socket; or -1 with errno. */
    int (*accept)(struct world *world, int socket, struct sockaddr_storage *peer);
    /* Begins to connect: 0, EINPROGRESS or errno. After 0 or EINPROGRESS there is a socket, which is ready to
     * send once it is decided; `connected` then says what came of it: 0 or errno. */
    int (*connect)(struct world *world, const struct addrinfo *at, int *out);
    int (*connected)(struct world *world, int socket);
    /* As sendmsg and recv: bytes, or -1 with errno. One thread may send while another one receives. */
    ssize_t (*send)(struct world *world, int socket, const struct iovec *parts, size_t count);
    ssize_t (*receive)(struct world *world, int socket, void *buffer, size_t bytes);
    void (*shutdown)(struct world *world, int socket, int how);
    void (*close)(struct world *world, int socket);
    /* Until one of them is ready, for at most so many seconds. When the world is stopped it may return early,
     * and does so at least once: the caller looks. */
    void (*poll)(struct world *world, struct pollfd *waits, int count, double seconds);
    /* Who polls it looks again though nothing has come. NULL: does so now and then in any case. */
    void (*wake)(struct world *world, int socket);
};

extern const struct sockets kernel_sockets, simulated_sockets;

#endif
