/* The sockets of the real world: TCP over IPv4 and IPv6, as the kernel has them. */
#include "sockets.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLICE_S 0.05
enum { BACKLOG = 128 };

static int kernel_listen(struct world *world, const struct addrinfo *at, int *out,
                         struct sockaddr_storage *name) {
    const int yes = 1, no = 0;
    (void)world;
    const int one = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (one < 0) return errno;
    setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (at->ai_family == AF_INET6) setsockopt(one, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no); /* IPv4 too */
    socklen_t length = sizeof *name;
    if (bind(one, at->ai_addr, at->ai_addrlen) == 0 && listen(one, BACKLOG) == 0 &&
        getsockname(one, (struct sockaddr *)name, &length) == 0) {
        *out = one;
        return OK;
    }
    const int reason = errno;
    close(one);
    return reason;
}

/* Small messages go at once. A machine that has lost its power says nothing: one that is silent is asked
 * after half a minute, and given up after a whole one. TCP_USER_TIMEOUT would also notice it while bytes are
 * under way, but ends connections to those who are alive and do not read for so long, too. */
static void set_up(int socket) {
    const int yes = 1, idle_s = 30, again_s = 10, times = 3;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &again_s, sizeof again_s);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

static int kernel_accept(struct world *world, int socket, struct sockaddr_storage *peer) {
    socklen_t length = sizeof *peer;
    (void)world;
    const int one = accept4(socket, (struct sockaddr *)peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (one >= 0) set_up(one);
    return one;
}

static int kernel_connect(struct world *world, const struct addrinfo *at, int *out) {
    (void)world;
    const int one = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (one < 0) return errno;
    const int reason = connect(one, at->ai_addr, at->ai_addrlen) == 0 ? OK : errno;
    if (reason == OK || reason == EINPROGRESS || reason == EINTR) {
        *out = one;
        set_up(one);
        return reason == EINTR ? EINPROGRESS : reason;
    }
    close(one);
    return reason;
}

/* A try at a free port of this machine may draw that very port for its own end, and is then connected to
 * itself. */
static bool is_own_end(int socket) {
    struct sockaddr_storage near = {0}, far = {0};
    socklen_t near_length = sizeof near, far_length = sizeof far;
    return getsockname(socket, (struct sockaddr *)&near, &near_length) == 0 &&
           getpeername(socket, (struct sockaddr *)&far, &far_length) == 0 && near_length == far_length &&
           memcmp(&near, &far, near_length) == 0;
}

static int kernel_connected(struct world *world, int socket) {
    int reason = 0;
    socklen_t length = sizeof reason;
    (void)world;
    if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &reason, &length) != 0) return errno;
    return reason == OK && is_own_end(socket) ? ECONNREFUSED : reason;
}

static ssize_t kernel_send(struct world *world, int socket, const struct iovec *parts, size_t count) {
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = count};
    (void)world;
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t kernel_receive(struct world *world, int socket, void *buffer, size_t bytes) {
    (void)world;
    return recv(socket, buffer, bytes, MSG_DONTWAIT);
}

static void kernel_shutdown(struct world *world, int socket, int how) {
    (void)world;
    shutdown(socket, how);
}

static void kernel_close(struct world *world, int socket) {
    (void)world;
    close(socket);
}

/* In slices, after each of which the caller looks whether the world was stopped. A pipe of the world in every
 * poll would wake at once, but costs a descriptor and an entry in each call for what happens once per run;
 * sleepers on events do the same (threads.c). More entries than this process may have descriptors are
 * refused: then it sleeps for the slice, and the caller looks at all of them. */
static void kernel_poll(struct world *world, struct pollfd *waits, int count, double seconds) {
    const double slice_ms = ceil(1e3 * fmax(0.0, fmin(seconds, SLICE_S)));
    (void)world;
    for (int i = 0; i < count; i++) waits[i].revents = 0;
    if (poll(waits, (nfds_t)count, (int)slice_ms) >= 0 || errno == EINTR) return;
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e6 * slice_ms)}, NULL);
}

const struct sockets kernel_sockets = {.listen = kernel_listen,
                                       .accept = kernel_accept,
                                       .connect = kernel_connect,
                                       .connected = kernel_connected,
                                       .send = kernel_send,
                                       .receive = kernel_receive,
                                       .shutdown = kernel_shutdown,
                                       .close = kernel_close,
                                       .poll = kernel_poll};
