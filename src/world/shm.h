/* Shared memory between two processes of one machine: where they meet, and what lies in the memory. For
 * endpoint.c, and for the tests. The link itself, link_shm, is in shm.c. */
#ifndef TRAINER_WORLD_SHM_H
#define TRAINER_WORLD_SHM_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>

/* What one ring holds: a whole message of a small network, so that its sender need not wait. */
enum { SHM_RING_BYTES = 1 << 20 };

/* One direction. Both counts only grow; byte n lies at n % SHM_RING_BYTES. */
struct shm_ring {
    _Alignas(64) _Atomic uint64_t written; /* bytes so far; the sender alone writes this line */
    _Atomic uint32_t sender_sleeps;        /* until there is room; who wakes it takes this back to 0 */
    _Alignas(64) _Atomic uint64_t taken;   /* bytes so far; the receiver alone writes this line */
    _Atomic uint32_t receiver_sleeps;      /* until there are bytes; as above */
};

struct shm_memory {
    struct shm_ring rings[2]; /* what the connecting side sends; what the accepting side sends */
    _Alignas(4096) uint8_t bytes[2][SHM_RING_BYTES];
};

/* Beside a listener at this loopback address: a socket that only processes of this machine, or container,
 * find, and only while it is open. -1: there is none, so all come over TCP. */
int shm_listen(const struct sockaddr_storage *name);
/* The next connection of a process of the same user; -1: there is none. listener: may be -1. */
int shm_accept(int listener);
/* A connection to the process of the same user that listens at this address; -1: there is none. */
int shm_connect(const struct sockaddr_storage *name);

#endif
