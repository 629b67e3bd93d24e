/* Endpoints: how connections begin and end. How their bytes move is in transfer.c and in the links. */
#include "endpoint.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../base/memory.h"
#include "endpoint_parts.h"
#include "shm.h"
#include "world_kind.h"

#define FINISH_LOOK_S 0.05 /* between two looks whether the last of what was said has gone */
#define RETRY_S 0.05       /* between two tries to connect */

struct listener {
    struct world *world;          /* borrowed */
    int socket, shm;              /* shm: where processes of this machine come; -1: nowhere */
    struct sockaddr_storage name; /* where it listens */
    bool crowded;                 /* the last one who came could not be taken */
};

static const struct sockets *sockets_of(const struct world *world) {
    return world->kind->sockets;
}

void endpoint_poll(struct world *world, struct pollfd *waits, int count, double seconds) {
    sockets_of(world)->poll(world, waits, count, fmax(seconds, 0.0));
}

ssize_t endpoint_socket_send(const struct endpoint *endpoint, const struct iovec *parts, size_t count) {
    return sockets_of(endpoint->world)->send(endpoint->world, endpoint->socket, parts, count);
}

ssize_t endpoint_socket_receive(const struct endpoint *endpoint, void *buffer, size_t bytes) {
    return sockets_of(endpoint->world)->receive(endpoint->world, endpoint->socket, buffer, bytes);
}

void endpoint_socket_wake(const struct endpoint *endpoint) {
    const struct sockets *const sockets = sockets_of(endpoint->world);
    if (sockets->wake) sockets->wake(endpoint->world, endpoint->socket);
}

void endpoint_socket_end(const struct endpoint *endpoint) {
    sockets_of(endpoint->world)->shutdown(endpoint->world, endpoint->socket, SHUT_WR);
}

/* --- in clear or encrypted --- */

struct tls *endpoint_tls(const struct world *world) {
    return world->tls;
}

#if !TRAINER_TLS
static int fail_to_encrypt(struct world *world, struct error *error) {
    (void)world;
    return error_set(error, ERROR_USAGE,
                     "this build cannot encrypt: install OpenSSL's headers (libssl-dev), then make again");
}
#endif

int endpoint_encrypt(struct world *world, const uint8_t *key, struct error *error) {
#if TRAINER_TLS
    endpoint_decrypt(world);
    return tls_open(&world->tls, key, error);
#else
    (void)key;
    return fail_to_encrypt(world, error);
#endif
}

int endpoint_certify(struct world *world, const struct endpoint_certificates *files, struct error *error) {
#if TRAINER_TLS
    endpoint_decrypt(world);
    return tls_open_certified(&world->tls, files, error);
#else
    (void)files;
    return fail_to_encrypt(world, error);
#endif
}

void endpoint_decrypt(struct world *world) {
#if TRAINER_TLS
    tls_close(world->tls);
    world->tls = NULL;
#endif
    (void)world;
}

void endpoint_allow_clear(struct world *world) {
    world->clear_anywhere = true;
}

void endpoint_keep_to_tcp(struct world *world) {
    world->tcp_alone = true;
}

void endpoint_keep_to_shared_memory(struct world *world) {
    world->shm_alone = true;
}

bool endpoint_shares_memory(const struct endpoint *endpoint) {
    return endpoint->link == &link_shm;
}

bool endpoint_is_encrypted(const struct endpoint *endpoint) {
    return endpoint->link->encrypts;
}

/* With a key, the key decides who takes part, not the user. */
static bool shares_memory(const struct world *world, const struct sockaddr_storage *name) {
    return !world->tls && !world->tcp_alone && !world_is_simulated(world) && netname_is_loopback(name);
}

static const struct link_kind *link_of(const struct world *world) {
#if TRAINER_TLS
    if (world->tls) return &link_tls;
#endif
    (void)world;
    return &link_tcp;
}

/* Other machines are spoken to under a key. */
static int check_reach(const struct world *world, const struct sockaddr_storage *at, struct error *error) {
    char name[NETNAME_TEXT_BYTES];
    if (world->tls || world->clear_anywhere || netname_is_loopback(at)) return OK;
    netname_text(name, sizeof name, at);
    return error_set(
        error, ERROR_USAGE,
        "%s is not an address of this machine alone: expected --secret-file=FILE, with the same key "
        "in all processes (trainer keygen FILE makes one), certificates (--tls-cert), or --insecure",
        name);
}

/* --- listening --- */

/* One address of the list, and for who shares memory: before the port is open, where it is known, as who
 * finds nobody here comes over TCP. OK, or errno. */
static int listen_at(struct listener *listener, const struct addrinfo *at) {
    struct world *world = listener->world;
    struct sockaddr_storage name = {0};
    memcpy(&name, at->ai_addr, at->ai_addrlen);
    const bool shares = shares_memory(world, &name), known = netname_port(&name) != 0;
    if (shares && known) listener->shm = shm_listen(&name);
    const int reason = sockets_of(world)->listen(world, at, &listener->socket, &listener->name);
    if (shares && !known && reason == OK) listener->shm = shm_listen(&listener->name);
    if (reason != OK && listener->shm >= 0) close(listener->shm);
    if (reason != OK) listener->shm = -1;
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
    RETURN_IF(netname_parse(&parsed, address, error));
    RETURN_IF(memory_array(&listener, 1, "a listener", error));
    listener->world = world;
    listener->socket = listener->shm = -1;
    int code = listen_anywhere(listener, &parsed, error);
    if (code == OK) code = check_reach(world, &listener->name, error);
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
    if (listener && listener->socket >= 0)
        sockets_of(listener->world)->close(listener->world, listener->socket);
    if (listener && listener->shm >= 0) close(listener->shm);
    memory_free(listener);
}

/* --- an endpoint begins and ends --- */

/* Takes the socket over, also when it fails. name: of the one that was connected to; NULL: it has been
 * accepted. socket: -1: the link makes it. */
static int make_endpoint(struct world *world, const struct link_kind *link, int socket,
                         const struct sockaddr_storage *peer, const char *name, struct endpoint **out,
                         struct error *error) {
    struct endpoint *endpoint;
    int code = memory_array(&endpoint, 1, "a connection", error);
    if (code != OK) {
        if (socket >= 0) sockets_of(world)->close(world, socket);
        return code;
    }
    endpoint->world = world;
    endpoint->socket = socket;
    endpoint->wakes = -1;
    atomic_init(&endpoint->send_socket, socket);
    endpoint->peer = *peer;
    endpoint->loopback = netname_is_loopback(peer);
    if (name)
        snprintf(endpoint->name, sizeof endpoint->name, "%s", name);
    else
        netname_text(endpoint->name, sizeof endpoint->name, peer);
    endpoint->link = link;
    code = endpoint->link->open(endpoint, name == NULL, error);
    if (code != OK)
        endpoint_close(endpoint);
    else
        *out = endpoint;
    return code;
}

/* Of accept: nobody came, or the one who came has gone again, for whatever reason its connection had
 * (accept(2)). A simulated network is down where the machine has been killed. */
static bool is_passing(const struct world *world, int reason) {
    static const int reasons[] = {EAGAIN, EINTR,        ECONNABORTED, EPROTO,      ENOPROTOOPT, EHOSTDOWN,
                                  ENONET, EHOSTUNREACH, EOPNOTSUPP,   ENETUNREACH, EPERM};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reason == reasons[i]) return true;
    return reason == ENETDOWN && !world_is_simulated(world);
}

static bool is_crowding(int reason) {
    return reason == EMFILE || reason == ENFILE || reason == ENOBUFS || reason == ENOMEM;
}

/* Who has come to either socket, in *out; OK, or errno. Where nothing can be made of a connection, it is
 * closed: no guest is worth the run. */
static int accept_one(struct listener *listener, struct endpoint **out) {
    struct world *world = listener->world;
    struct sockaddr_storage peer = listener->name;
    struct error why = {0};
    const int near = shm_accept(listener->shm);
    const int socket = near >= 0 ? near : sockets_of(world)->accept(world, listener->socket, &peer);
    if (socket < 0) return errno;
    const struct link_kind *const link = near >= 0 ? &link_shm : link_of(world);
    return make_endpoint(world, link, socket, &peer, NULL, out, &why) == OK ? OK : ENOMEM;
}

bool listener_is_crowded(const struct listener *listener) {
    return listener->crowded;
}

int listener_accept(struct listener *listener, struct endpoint **out, double timeout_s, struct error *error) {
    const double deadline = world_now(listener->world) + timeout_s;
    *out = NULL;
    listener->crowded = false;
    while (true) {
        const int reason = accept_one(listener, out);
        if (reason == OK) return OK;
        listener->crowded = is_crowding(reason);
        if (listener->crowded) return world_sleep(listener->world, fmin(RETRY_S, timeout_s)), OK;
        if (!is_passing(listener->world, reason))
            return error_set(error, ERROR_DEVICE, "port %d: cannot take a connection: %s",
                             listener_port(listener), strerror(reason));
        if (world_stopped(listener->world))
            return error_set(error, ERROR_PEER, "port %d: stopped while waiting for connections",
                             listener_port(listener));
        const double left = deadline - world_now(listener->world);
        if (left <= 0.0) return OK;
        struct pollfd waits[] = {{.fd = listener->socket, .events = POLLIN},
                                 {.fd = listener->shm, .events = POLLIN}};
        endpoint_poll(listener->world, waits, listener->shm >= 0 ? 2 : 1, left);
    }
}

/* One try at one address: the socket in *out, or the reason. */
static int connect_at(struct world *world, const struct addrinfo *at, double deadline, int *out) {
    const struct sockets *sockets = sockets_of(world);
    int one = -1, reason = sockets->connect(world, at, &one);
    if (one < 0) return reason;
    while (reason == EINPROGRESS) {
        struct pollfd wait = {.fd = one, .events = POLLOUT};
        endpoint_poll(world, &wait, 1, deadline - world_now(world));
        if (wait.revents != 0) break;
        if (world_stopped(world) || world_now(world) >= deadline) reason = ETIMEDOUT;
    }
    if (reason != ETIMEDOUT) reason = sockets->connected(world, one);
    if (reason == OK)
        *out = one;
    else
        sockets->close(world, one);
    return reason;
}

/* Where nobody shares memory, or there is none to share, all goes over TCP. */
static bool connect_shared(struct world *world, const struct sockaddr_storage *peer, const char *name,
                           struct endpoint **out) {
    struct error ignored = {0};
    return make_endpoint(world, &link_shm, -1, peer, name, out, &ignored) == OK;
}

/* Each address of the host once. On failure the words of the last one's reason are in *why. */
static int connect_once(struct world *world, const struct netname *netname, const char *name, double deadline,
                        struct endpoint **out, const char **why, bool *resolved, struct error *error) {
    struct addrinfo *list;
    *resolved = netname_look_up(netname, false, &list, why) == 0;
    if (!*resolved) return OK;
    int code = OK;
    for (const struct addrinfo *at = list; at && !*out && code == OK; at = at->ai_next) {
        struct sockaddr_storage peer = {0};
        int socket = -1;
        memcpy(&peer, at->ai_addr, at->ai_addrlen);
        code = check_reach(world, &peer, error);
        if (code != OK) break;
        if (shares_memory(world, &peer) && connect_shared(world, &peer, name, out)) break;
        *why = "no process of this machine and user shares memory there, which --link=shm expects";
        if (world->shm_alone) continue;
        const int reason = connect_at(world, at, deadline, &socket);
        *why = strerror(reason);
        if (reason != OK) continue;
        if (shares_memory(world, &peer) && connect_shared(world, &peer, name, out)) /* opened meanwhile */
            sockets_of(world)->close(world, socket);
        else
            code = make_endpoint(world, link_of(world), socket, &peer, name, out, error);
    }
    freeaddrinfo(list);
    return code;
}

int endpoint_connect(struct world *world, const char *address, struct endpoint **out, double timeout_s,
                     struct error *error) {
    struct netname parsed;
    *out = NULL;
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
            return error_set(error, ERROR_PEER,
                             "%s: not connected after %g s: host '%s' does not resolve (%s)", address,
                             timeout_s, parsed.host, why);
        if (now >= deadline)
            return error_set(error, ERROR_PEER, "%s: not connected after %g s: %s", address, timeout_s, why);
        world_sleep(world, fmin(RETRY_S, deadline - now));
    }
}

void endpoint_interrupt(struct endpoint *endpoint) {
    atomic_store(&endpoint->interrupted, true);
    sockets_of(endpoint->world)->shutdown(endpoint->world, endpoint->socket, SHUT_RDWR);
    const int sends = atomic_load(&endpoint->send_socket);
    if (sends != endpoint->socket) shutdown(sends, SHUT_RDWR);
}

/* --- looking ahead --- */

size_t endpoint_take_ahead(struct endpoint *endpoint, void *buffer, size_t bytes) {
    const size_t there = endpoint->ahead_end - endpoint->ahead_begin;
    const size_t taken = bytes < there ? bytes : there;
    if (taken > 0) memcpy(buffer, endpoint->ahead + endpoint->ahead_begin, taken);
    endpoint->ahead_begin += taken;
    return taken;
}

/* Whatever is there, as far as there is room for it. Returns whether nothing comes behind it. */
static bool look_ahead(struct endpoint *endpoint) {
    struct error ignored = {0};
    const char *why;
    if (!endpoint->ahead &&
        memory_array(&endpoint->ahead, ENDPOINT_AHEAD_BYTES, "what a peer has sent", &ignored) != OK)
        return false;
    const size_t there = endpoint->ahead_end - endpoint->ahead_begin;
    memmove(endpoint->ahead, endpoint->ahead + endpoint->ahead_begin, there);
    endpoint->ahead_begin = 0;
    endpoint->ahead_end = there;
    while (endpoint->ahead_end < ENDPOINT_AHEAD_BYTES) {
        const ssize_t found = endpoint->link->receive(endpoint, endpoint->ahead + endpoint->ahead_end,
                                                      ENDPOINT_AHEAD_BYTES - endpoint->ahead_end, &why);
        if (found < 0) return found != LINK_AGAIN;
        endpoint->ahead_end += (size_t)found;
    }
    if (endpoint->link->tells_end) return false;
    struct pollfd wait = {.fd = endpoint->socket, .events = POLLRDHUP};
    endpoint_poll(endpoint->world, &wait, 1, 0.0);
    return wait.revents != 0;
}

size_t endpoint_peek(struct endpoint *endpoint, void *buffer, size_t bytes, double seconds, bool *ended) {
    const double deadline = world_now(endpoint->world) + seconds;
    while (true) {
        *ended = look_ahead(endpoint);
        const size_t found = endpoint_take_ahead(endpoint, buffer, bytes);
        endpoint->ahead_begin -= found;
        const double left = deadline - world_now(endpoint->world);
        if (found > 0 || *ended || left <= 0.0) return found;
        struct pollfd wait = {.fd = endpoint_receives_at(endpoint), .events = endpoint->receive_waits};
        endpoint_poll(endpoint->world, &wait, 1, left);
    }
}

bool endpoint_finish(struct endpoint *endpoint, double timeout_s) {
    const double deadline = world_now(endpoint->world) + timeout_s;
    char dropped[4096];
    const char *why;
    while (true) {
        endpoint->link->finish(endpoint); /* which an encrypted one may only be able to later */
        const ssize_t bytes = endpoint->link->drop(endpoint, dropped, sizeof dropped, &why);
        if (bytes < 0 && bytes != LINK_AGAIN) return true;
        const double left = deadline - world_now(endpoint->world);
        if (left <= 0.0) return false;
        if (bytes > 0) continue;
        if (world_stopped(endpoint->world)) return false;
        struct pollfd wait = {.fd = endpoint_receives_at(endpoint), .events = POLLIN};
        endpoint_poll(endpoint->world, &wait, 1, fmin(left, FINISH_LOOK_S));
    }
}

void endpoint_close(struct endpoint *endpoint) {
    if (!endpoint) return;
    endpoint->link->close(endpoint);
    if (endpoint->socket >= 0) sockets_of(endpoint->world)->close(endpoint->world, endpoint->socket);
    memory_free(endpoint->ahead);
    memory_free(endpoint);
}

bool endpoint_same_source(const struct endpoint *one, const struct endpoint *other) {
    const bool shares = one->link == &link_shm;
    if (shares || other->link == &link_shm) return one->link == other->link;
    return netname_same_source(&one->peer, &other->peer);
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
