/* Endpoints over TCP: how connections begin and end. How their bytes move is in transfer.c. */
#include "endpoint.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../base/memory.h"
#include "endpoint_parts.h"

#define SLICE_S 0.05
#define RETRY_S 0.05 /* between two tries to connect */
enum { BACKLOG = 128 };

struct listener {
    struct world *world; /* borrowed */
    int socket;
    struct sockaddr_storage name; /* where it listens */
};

static int refuse_simulated(const struct world *world, struct error *error) {
    if (!world_is_simulated(world)) return OK;
    return error_set(error, ERROR_USAGE, "the simulated world has no network: use the real one");
}

void endpoint_poll(struct pollfd *waits, int count, double seconds) {
    const double slice_ms = ceil(1e3 * fmax(0.0, fmin(seconds, SLICE_S)));
    poll(waits, (nfds_t)count, (int)slice_ms);
}

/* --- listening --- */

/* One address of the list: OK, or errno. */
static int listen_at(struct listener *listener, const struct addrinfo *at) {
    const int yes = 1, no = 0;
    listener->socket = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (listener->socket < 0) return errno;
    setsockopt(listener->socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (at->ai_family == AF_INET6)
        setsockopt(listener->socket, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no); /* IPv4 too */
    socklen_t length = sizeof listener->name;
    if (bind(listener->socket, at->ai_addr, at->ai_addrlen) == 0 && listen(listener->socket, BACKLOG) == 0 &&
        getsockname(listener->socket, (struct sockaddr *)&listener->name, &length) == 0)
        return OK;
    const int reason = errno;
    close(listener->socket);
    listener->socket = -1;
    return reason;
}

/* The first address that does; "any" in IPv6 takes IPv4 as well, so it goes first where the host is "any". */
static int listen_anywhere(struct listener *listener, const struct netname *netname, struct error *error) {
    struct addrinfo *list;
    const char *why;
    if (netname_look_up(netname, true, &list, &why) != 0)
        return error_set(error, ERROR_USAGE, "host '%s' does not resolve: %s", netname->host, why);
    int reason = EADDRNOTAVAIL;
    for (int turn = 0; turn < 2 && reason != OK && reason != EADDRINUSE; turn++)
        for (const struct addrinfo *at = list; at && reason != OK && reason != EADDRINUSE; at = at->ai_next)
            if (netname->host[0] || (at->ai_family == AF_INET6) == (turn == 0))
                reason = listen_at(listener, at);
    freeaddrinfo(list);
    if (reason == EADDRINUSE) return error_set(error, ERROR_DEVICE, "port %s is in use", netname->port);
    if (reason != OK)
        return error_set(error, ERROR_DEVICE, "cannot listen on %s:%s: %s", netname->host, netname->port,
                         strerror(reason));
    return OK;
}

int endpoint_listen(struct world *world, const char *address, struct listener **out, struct error *error) {
    struct netname parsed;
    struct listener *listener;
    *out = NULL;
    RETURN_IF(refuse_simulated(world, error));
    RETURN_IF(netname_parse(&parsed, address, error));
    RETURN_IF(memory_array(&listener, 1, "a listener", error));
    listener->world = world;
    listener->socket = -1;
    const int code = listen_anywhere(listener, &parsed, error);
    if (code != OK)
        listener_close(listener);
    else
        *out = listener;
    return code;
}

int listener_port(const struct listener *listener) {
    return netname_port(&listener->name);
}

bool listener_is_loopback(const struct listener *listener) {
    return netname_is_loopback(&listener->name);
}

void listener_close(struct listener *listener) {
    if (listener && listener->socket >= 0) close(listener->socket);
    memory_free(listener);
}

/* --- an endpoint begins and ends --- */

/* Takes the socket over, also when it fails. */
static int make_endpoint(struct world *world, int socket, const struct sockaddr_storage *peer,
                         const char *name, struct endpoint **out, struct error *error) {
    const int yes = 1;
    struct endpoint *endpoint;
    const int code = memory_array(&endpoint, 1, "a connection", error);
    if (code != OK) {
        close(socket);
        return code;
    }
    endpoint->world = world;
    endpoint->socket = socket;
    endpoint->loopback = netname_is_loopback(peer);
    if (name)
        snprintf(endpoint->name, sizeof endpoint->name, "%s", name);
    else
        netname_text(endpoint->name, sizeof endpoint->name, peer);
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    *out = endpoint;
    return OK;
}

static bool is_passing(int reason) { /* of accept: the one who came has gone again, or nobody came */
    return reason == EAGAIN || reason == EINTR || reason == ECONNABORTED || reason == EPROTO;
}

int listener_accept(struct listener *listener, struct endpoint **out, double timeout_s, struct error *error) {
    const double deadline = world_now(listener->world) + timeout_s;
    *out = NULL;
    while (true) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof peer;
        const int socket =
            accept4(listener->socket, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket >= 0) return make_endpoint(listener->world, socket, &peer, NULL, out, error);
        if (!is_passing(errno))
            return error_set(error, ERROR_DEVICE, "port %d: cannot take a connection: %s",
                             listener_port(listener), strerror(errno));
        if (world_stopped(listener->world))
            return error_set(error, ERROR_PEER, "port %d: stopped while waiting for connections",
                             listener_port(listener));
        const double left = deadline - world_now(listener->world);
        if (left <= 0.0) return OK;
        endpoint_poll(&(struct pollfd){.fd = listener->socket, .events = POLLIN}, 1, left);
    }
}

/* The socket's fate: OK connected, EINPROGRESS not yet, or why not. */
static int connect_state(int socket) {
    struct pollfd wait = {.fd = socket, .events = POLLOUT};
    int reason = 0;
    socklen_t length = sizeof reason;
    endpoint_poll(&wait, 1, SLICE_S);
    if (!(wait.revents & (POLLOUT | POLLERR | POLLHUP))) return EINPROGRESS;
    if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &reason, &length) != 0) return errno;
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

/* One try at one address: the socket in *out, or the reason. */
static int connect_at(struct world *world, const struct addrinfo *at, double deadline, int *out) {
    const int one = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (one < 0) return errno;
    int reason = connect(one, at->ai_addr, at->ai_addrlen) == 0 ? OK : errno;
    if (reason == EINTR) reason = EINPROGRESS;
    while (reason == EINPROGRESS) {
        reason = connect_state(one);
        if (reason == EINPROGRESS && (world_stopped(world) || world_now(world) >= deadline))
            reason = ETIMEDOUT;
    }
    if (reason == OK && is_own_end(one)) reason = ECONNREFUSED;
    if (reason == OK)
        *out = one;
    else
        close(one);
    return reason;
}

/* Each address of the host once. On failure the words of the last one's reason are in *why. */
static int connect_once(struct world *world, const struct netname *netname, const char *name, double deadline,
                        struct endpoint **out, const char **why, bool *resolved, struct error *error) {
    struct addrinfo *list;
    *resolved = netname_look_up(netname, false, &list, why) == 0;
    if (!*resolved) return OK;
    int code = OK;
    for (const struct addrinfo *at = list; at && !*out && code == OK; at = at->ai_next) {
        int socket = -1;
        const int reason = connect_at(world, at, deadline, &socket);
        *why = strerror(reason);
        if (reason != OK) continue;
        struct sockaddr_storage peer = {0};
        memcpy(&peer, at->ai_addr, at->ai_addrlen);
        code = make_endpoint(world, socket, &peer, name, out, error);
    }
    freeaddrinfo(list);
    return code;
}

int endpoint_connect(struct world *world, const char *address, struct endpoint **out, double timeout_s,
                     struct error *error) {
    struct netname parsed;
    *out = NULL;
    RETURN_IF(refuse_simulated(world, error));
    RETURN_IF(netname_parse(&parsed, address, error));
    if (!parsed.host[0] || strtol(parsed.port, NULL, 10) == 0)
        return error_set(error, ERROR_USAGE, "address \"%s\": a host and a port from 1 are needed to connect",
                         address);
    const double deadline = world_now(world) + timeout_s;
    while (true) {
        const char *why = "";
        bool resolved = false;
        RETURN_IF(connect_once(world, &parsed, address, deadline, out, &why, &resolved, error));
        if (*out) return OK;
        if (world_stopped(world))
            return error_set(error, ERROR_PEER, "%s: stopped while connecting", address);
        const double now = world_now(world);
        if (now >= deadline && !resolved)
            return error_set(error, ERROR_USAGE, "host '%s' does not resolve: %s (tried for %g s)",
                             parsed.host, why, timeout_s);
        if (now >= deadline)
            return error_set(error, ERROR_PEER, "%s: not connected after %g s: %s", address, timeout_s, why);
        world_sleep(world, fmin(RETRY_S, deadline - now));
    }
}

void endpoint_interrupt(struct endpoint *endpoint) {
    atomic_store(&endpoint->interrupted, true);
    shutdown(endpoint->socket, SHUT_RDWR);
}

size_t endpoint_peek(struct endpoint *endpoint, void *buffer, size_t bytes, double seconds, bool *ended) {
    const double deadline = world_now(endpoint->world) + seconds;
    *ended = false;
    while (true) {
        const ssize_t found = recv(endpoint->socket, buffer, bytes, MSG_PEEK | MSG_DONTWAIT);
        if (found > 0) {
            struct pollfd wait = {.fd = endpoint->socket, .events = POLLRDHUP};
            *ended = poll(&wait, 1, 0) > 0;
            return (size_t)found;
        }
        *ended = found == 0 || (errno != EAGAIN && errno != EINTR);
        const double left = deadline - world_now(endpoint->world);
        if (*ended || left <= 0.0) return 0;
        endpoint_poll(&(struct pollfd){.fd = endpoint->socket, .events = POLLIN}, 1, left);
    }
}

void endpoint_finish(struct endpoint *endpoint, double timeout_s) {
    const double deadline = world_now(endpoint->world) + timeout_s;
    char dropped[4096];
    shutdown(endpoint->socket, SHUT_WR);
    for (double left = timeout_s; left > 0.0; left = deadline - world_now(endpoint->world)) {
        const ssize_t bytes = recv(endpoint->socket, dropped, sizeof dropped, MSG_DONTWAIT);
        if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR)) return;
        if (bytes > 0) continue;
        if (world_stopped(endpoint->world)) return;
        endpoint_poll(&(struct pollfd){.fd = endpoint->socket, .events = POLLIN}, 1, left);
    }
}

void endpoint_close(struct endpoint *endpoint) {
    if (endpoint) close(endpoint->socket);
    memory_free(endpoint);
}

const char *endpoint_name(const struct endpoint *endpoint) {
    return endpoint->name;
}

bool endpoint_is_loopback(const struct endpoint *endpoint) {
    return endpoint->loopback;
}

long long endpoint_sent(const struct endpoint *endpoint) {
    return atomic_load_explicit(&endpoint->sent, memory_order_relaxed);
}

long long endpoint_received(const struct endpoint *endpoint) {
    return atomic_load_explicit(&endpoint->received, memory_order_relaxed);
}
