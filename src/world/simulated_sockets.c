/* The sockets of simulated worlds: connections whose bytes the network (simulated_network.c) takes from one
 * machine to the other.
 *
 * Bytes that are sent become a segment in the queue of the other end, with the time at which it arrives; the
 * end of a connection is such a segment, too. A connection has one segment at a time waiting for its
 * machine's line, so several take turns. Each change is told to the scheduler, which asks all who poll for
 * their new times. */
#include "simulated_parts.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <string.h>
#include "../base/memory.h"
#include "netname.h"

enum { FIRST_PORT = 40000 };

/* What a wait takes at most that begins in a stopped world; then the caller looks. */
#define STOPPED_S 0.05
/* What a wait takes at least in which nothing happens: less could be lost in rounding, and time would stand
 * still for whoever waits for the rest of it. */
#define LEAST_S 1e-9

static struct sim_socket *socket_at(const struct simulation *sim, int socket) {
    return &sim->sockets[socket];
}

static bool is_broken(const struct simulation *sim, const struct sim_socket *socket) {
    return socket->broken && socket->breaks <= sim->now;
}

/* --- sockets come and go --- */

static void drop_segments(struct sim_socket *socket, double after) {
    struct segment **at = &socket->first;
    socket->last = NULL;
    while (*at) {
        struct segment *segment = *at;
        if (segment->arrives <= after) {
            socket->last = segment;
            at = &segment->next;
            continue;
        }
        *at = segment->next;
        socket->queued -= segment->bytes - segment->taken;
        memory_free(segment);
    }
}

static int make_socket(struct simulation *sim, int machine, enum sim_state state, int *out) {
    struct error ignored = {0};
    int socket = 0;
    while (socket < sim->socket_room && sim->sockets[socket].state != CLOSED) socket++;
    if (socket == sim->socket_room) {
        const int room = 2 * sim->socket_room + 8;
        if (memory_grow(&sim->sockets, sim->socket_room, room, "simulated sockets", &ignored) != OK)
            return ENOMEM;
        sim->socket_room = room;
    }
    sim->sockets[socket] =
        (struct sim_socket){.state = state, .machine = machine, .peer = NOBODY, .listener = NOBODY};
    *out = socket;
    return OK;
}

void sim_sockets_free(struct simulation *sim) {
    for (int s = 0; s < sim->socket_room; s++) drop_segments(&sim->sockets[s], -INFINITY);
    memory_free(sim->sockets);
}

static void set_port(struct sockaddr_storage *name, int port) {
    if (name->ss_family == AF_INET)
        ((struct sockaddr_in *)name)->sin_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in6 *)name)->sin6_port = htons((uint16_t)port);
}

static bool is_any(const struct sockaddr_storage *name) {
    if (name->ss_family == AF_INET) return ((const struct sockaddr_in *)name)->sin_addr.s_addr == INADDR_ANY;
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)name)->sin6_addr);
}

/* Who listens there, or NOBODY. Hosts are not bound to machines: any of them may listen at any address. */
static int find_listener(const struct simulation *sim, const struct sockaddr_storage *name) {
    for (int s = 0; s < sim->socket_room; s++) {
        const struct sim_socket *socket = &sim->sockets[s];
        if (socket->state == LISTENING && !sim->machines[socket->machine].dead &&
            netname_port(&socket->name) == netname_port(name) &&
            (is_any(&socket->name) || is_any(name) || netname_same_host(&socket->name, name)))
            return s;
    }
    return NOBODY;
}

static void take_port(struct simulation *sim, struct sockaddr_storage *name) {
    if (sim->next_port < FIRST_PORT || sim->next_port > 65535) sim->next_port = FIRST_PORT;
    set_port(name, sim->next_port++);
}

static int sim_listen(struct world *world, const struct addrinfo *at, int *out,
                      struct sockaddr_storage *name) {
    struct simulation *sim = sim_of(world)->sim;
    *name = (struct sockaddr_storage){0};
    memcpy(name, at->ai_addr, at->ai_addrlen);
    if (sim->machines[sim_of(world)->machine].dead) return ENETDOWN;
    const bool chosen = netname_port(name) != 0;
    if (!chosen) take_port(sim, name);
    while (find_listener(sim, name) != NOBODY) {
        if (chosen) return EADDRINUSE;
        take_port(sim, name);
    }
    const int code = make_socket(sim, sim_of(world)->machine, LISTENING, out);
    if (code == OK) socket_at(sim, *out)->name = *name;
    return code;
}

/* The far end is there at once; the listener sees it when the first word of it has come. */
static int sim_connect(struct world *world, const struct addrinfo *at, int *out) {
    struct simulation *sim = sim_of(world)->sim;
    const int machine = sim_of(world)->machine;
    struct sockaddr_storage name = {0};
    int near = NOBODY, far = NOBODY;
    memcpy(&name, at->ai_addr, at->ai_addrlen);
    if (sim->machines[machine].dead) return ENETDOWN;
    const int listener = find_listener(sim, &name);
    if (make_socket(sim, machine, REFUSED, &near) != OK) return ENOMEM;
    *out = near;
    const int there = listener == NOBODY ? machine : socket_at(sim, listener)->machine;
    const double comes = sim_arrival(sim, machine, there), back = sim_delay(sim, there, machine);
    socket_at(sim, near)->name = name;
    take_port(sim, &socket_at(sim, near)->name);
    socket_at(sim, near)->arrives = comes + back;
    socket_at(sim, near)->far_machine = there;
    if (listener == NOBODY || make_socket(sim, there, WAITING, &far) != OK) return EINPROGRESS;
    socket_at(sim, near)->state = CONNECTING;
    socket_at(sim, near)->peer = far;
    struct sim_socket *other = socket_at(sim, far);
    other->name = name;
    other->peer = near;
    other->far_machine = machine;
    other->listener = listener;
    other->arrives = comes;
    sim_network_changed(sim);
    return EINPROGRESS;
}

static int sim_connected(struct world *world, int socket) {
    const struct simulation *sim = sim_of(world)->sim;
    struct sim_socket *near = socket_at(sim, socket);
    if (near->state == REFUSED || is_broken(sim, near)) return ECONNREFUSED;
    if (near->arrives > sim->now) return EINPROGRESS;
    near->state = CONNECTED;
    return OK;
}

/* The first who has come to a listener, and when; NOBODY. */
static int first_guest(const struct simulation *sim, int listener) {
    int first = NOBODY;
    for (int s = 0; s < sim->socket_room; s++) {
        const struct sim_socket *one = &sim->sockets[s];
        if (one->state == WAITING && one->listener == listener &&
            (first == NOBODY || one->arrives < sim->sockets[first].arrives))
            first = s;
    }
    return first;
}

static int sim_accept(struct world *world, int socket, struct sockaddr_storage *peer) {
    struct simulation *sim = sim_of(world)->sim;
    world_yield(world);
    const int guest = first_guest(sim, socket);
    const bool dead = sim->machines[sim_of(world)->machine].dead;
    if (dead || guest == NOBODY || sim->sockets[guest].arrives > sim->now) {
        errno = dead ? ENETDOWN : EAGAIN;
        return -1;
    }
    struct sim_socket *far = socket_at(sim, guest);
    far->state = CONNECTED;
    *peer = far->peer == NOBODY ? far->name : socket_at(sim, far->peer)->name;
    return guest;
}

/* --- bytes --- */

/* Puts a segment behind what is under way to an end; none if there is no memory. */
static bool queue_segment(struct simulation *sim, int from, int to, const struct iovec *parts, size_t count,
                          size_t bytes) {
    struct sim_socket *near = socket_at(sim, from), *far = socket_at(sim, to);
    struct error ignored = {0};
    void *memory = NULL;
    if (memory_zeroed(&memory, 1, sizeof(struct segment) + bytes, "a simulated segment", &ignored) != OK)
        return false;
    struct segment *segment = memory;
    for (size_t i = 0; segment->bytes < bytes && i < count; i++) {
        const size_t room = bytes - segment->bytes;
        const size_t some = parts[i].iov_len < room ? parts[i].iov_len : room;
        if (some > 0) memcpy(segment->data + segment->bytes, parts[i].iov_base, some);
        segment->bytes += some;
    }
    sim_damage(sim, near->machine, far->machine, segment->data, segment->bytes);
    segment->arrives = sim_arrival_of(sim, near->machine, far->machine, bytes, &near->leaves);
    if (far->last) segment->arrives = fmax(segment->arrives, far->last->arrives);
    if (far->last)
        far->last->next = segment;
    else
        far->first = segment;
    far->last = segment;
    far->queued += bytes;
    return true;
}

/* The other end finds its connection broken, once it is told. */
static void reset_peer(struct simulation *sim, int from, int to) {
    struct sim_socket *far = socket_at(sim, to);
    if (far->broken) return;
    far->broken = true;
    far->breaks = sim_arrival(sim, socket_at(sim, from)->machine, far->machine);
    drop_segments(far, far->breaks);
}

static ssize_t fail(int reason) {
    errno = reason;
    return -1;
}

static ssize_t sim_send(struct world *world, int socket, const struct iovec *parts, size_t count) {
    struct simulation *sim = sim_of(world)->sim;
    size_t bytes = 0;
    world_yield(world);
    struct sim_socket *near = socket_at(sim, socket);
    for (size_t i = 0; i < count; i++) bytes += parts[i].iov_len;
    if (near->shut_out || is_broken(sim, near)) return fail(EPIPE);
    if (bytes == 0) return 0;
    if (bytes > SIMULATED_TURN_BYTES) bytes = SIMULATED_TURN_BYTES;
    if (near->peer == NOBODY) { /* closed: it answers that nobody is there */
        if (!near->broken)
            near->breaks = sim_arrival(sim, near->machine, near->far_machine) +
                           sim_delay(sim, near->far_machine, near->machine);
        near->broken = true;
        return (ssize_t)bytes;
    }
    const size_t queued = socket_at(sim, near->peer)->queued;
    if (near->leaves > sim->now || queued >= SIMULATED_WINDOW_BYTES) return fail(EAGAIN);
    if (bytes > SIMULATED_WINDOW_BYTES - queued) bytes = SIMULATED_WINDOW_BYTES - queued;
    if (!queue_segment(sim, socket, near->peer, parts, count, bytes)) return fail(ENOMEM);
    sim_network_changed(sim);
    return (ssize_t)bytes;
}

static ssize_t sim_receive(struct world *world, int socket, void *buffer, size_t bytes) {
    struct simulation *sim = sim_of(world)->sim;
    size_t taken = 0;
    world_yield(world);
    struct sim_socket *near = socket_at(sim, socket);
    if (near->shut_in) return 0;
    while (taken < bytes && near->first && near->first->arrives <= sim->now && near->first->bytes > 0) {
        struct segment *segment = near->first;
        const size_t left = segment->bytes - segment->taken;
        const size_t some = left < bytes - taken ? left : bytes - taken;
        memcpy((char *)buffer + taken, segment->data + segment->taken, some);
        segment->taken += some;
        taken += some;
        near->queued -= some;
        if (segment->taken < segment->bytes) break;
        near->first = segment->next;
        if (!near->first) near->last = NULL;
        memory_free(segment);
    }
    if (taken > 0) sim_network_changed(sim); /* there is room */
    if (taken > 0 || bytes == 0) return (ssize_t)taken;
    if (near->first && near->first->arrives <= sim->now) return 0; /* the end, which stays */
    return fail(is_broken(sim, near) ? ECONNRESET : EAGAIN);
}

/* --- the end --- */

static void sim_shutdown(struct world *world, int socket, int how) {
    struct simulation *sim = sim_of(world)->sim;
    struct sim_socket *near = socket_at(sim, socket);
    if (how != SHUT_WR) near->shut_in = true;
    if (how != SHUT_RD && !near->shut_out) {
        near->shut_out = true;
        if (near->peer != NOBODY && !queue_segment(sim, socket, near->peer, NULL, 0, 0))
            reset_peer(sim, socket, near->peer);
    }
    sim_network_changed(sim);
}

void sim_socket_break(struct simulation *sim, int socket) {
    struct sim_socket *near = socket_at(sim, socket);
    for (int guest; near->state == LISTENING && (guest = first_guest(sim, socket)) != NOBODY;) {
        sim_socket_break(sim, guest);
        drop_segments(socket_at(sim, guest), -INFINITY);
        socket_at(sim, guest)->state = CLOSED;
    }
    if (near->peer == NOBODY) return;
    reset_peer(sim, socket, near->peer);
    socket_at(sim, near->peer)->peer = NOBODY;
    near->peer = NOBODY;
    near->broken = true;
    near->breaks = sim->now;
    drop_segments(near, sim->now);
}

/* As the kernel does: with bytes that nobody has received, the other end is told that they are lost. */
static void sim_close(struct world *world, int socket) {
    struct simulation *sim = sim_of(world)->sim;
    struct sim_socket *near = socket_at(sim, socket);
    if (near->queued > 0 || near->state != CONNECTED) sim_socket_break(sim, socket);
    if (near->peer != NOBODY) {
        sim_shutdown(world, socket, SHUT_RDWR);
        socket_at(sim, near->peer)->peer = NOBODY;
        near->peer = NOBODY; /* its place may soon be another's */
    }
    drop_segments(near, -INFINITY);
    near->state = CLOSED;
    sim_network_changed(sim);
}

/* --- waiting --- */

static double due_in(const struct simulation *sim, int socket, const struct sim_socket *one) {
    if (one->state == LISTENING) {
        const int guest = first_guest(sim, socket);
        return guest == NOBODY ? INFINITY : sim->sockets[guest].arrives;
    }
    if (one->shut_in) return -INFINITY;
    return one->first ? one->first->arrives : INFINITY;
}

static double due_out(const struct simulation *sim, const struct sim_socket *one) {
    if (one->state == CONNECTING || one->state == REFUSED) return one->arrives;
    if (one->shut_out || one->peer == NOBODY) return -INFINITY;
    return socket_at(sim, one->peer)->queued < SIMULATED_WINDOW_BYTES ? one->leaves : INFINITY;
}

static double due_end(const struct sim_socket *one) {
    return one->last && one->last->bytes == 0 ? one->last->arrives : INFINITY;
}

struct polling {
    const struct simulation *sim;
    struct pollfd *waits; /* [count] */
    int count;
    bool woken;
};

/* When the first of those that are polled is ready; what is so now is in their revents. */
static double due(void *argument) {
    const struct polling *polling = argument;
    const struct simulation *sim = polling->sim;
    double first = polling->woken ? -INFINITY : INFINITY;
    for (int i = 0; i < polling->count; i++) {
        struct pollfd *wait = &polling->waits[i];
        const struct sim_socket *one = socket_at(sim, wait->fd);
        const double in = wait->events & POLLIN ? due_in(sim, wait->fd, one) : INFINITY;
        const double out = wait->events & POLLOUT ? due_out(sim, one) : INFINITY;
        const double end = wait->events & POLLRDHUP ? due_end(one) : INFINITY;
        const double broken = one->broken ? one->breaks : INFINITY;
        wait->revents = (short)((in <= sim->now ? POLLIN : 0) | (out <= sim->now ? POLLOUT : 0) |
                                (end <= sim->now ? POLLRDHUP : 0) | (broken <= sim->now ? POLLERR : 0));
        first = fmin(first, fmin(fmin(in, out), fmin(end, broken)));
    }
    return first;
}

static void sim_poll(struct world *world, struct pollfd *waits, int count, double seconds) {
    struct polling polling = {sim_of(world)->sim, waits, count, false};
    if (world_stopped(world)) seconds = fmin(seconds, STOPPED_S);
    const double deadline = world_now(world) + fmax(seconds, LEAST_S);
    if (due(&polling) <= world_now(world) || seconds <= 0.0)
        world_yield(world);
    else
        sim_wait_due(world, due, &polling, deadline);
    due(&polling);
}

static void sim_wake(struct world *world, int socket) {
    struct simulation *sim = sim_of(world)->sim;
    for (int slot = 0; slot < sim->room; slot++) {
        const struct sim_thread *thread = sim->threads[slot];
        if (!thread || thread->because != AT_NETWORK) continue;
        struct polling *polling = thread->wanted;
        for (int i = 0; i < polling->count; i++) polling->woken |= polling->waits[i].fd == socket;
    }
    sim_network_changed(sim);
}

const struct sockets simulated_sockets = {.listen = sim_listen,
                                          .accept = sim_accept,
                                          .connect = sim_connect,
                                          .connected = sim_connected,
                                          .send = sim_send,
                                          .receive = sim_receive,
                                          .shutdown = sim_shutdown,
                                          .close = sim_close,
                                          .poll = sim_poll,
                                          .wake = sim_wake};
