/* bench/wire: what an endpoint costs beside a raw socket, on loopback.
 *
 * A ping-pong between two threads: one sends a message, the other sends as much back. The raw loop is
 * blocking send and recv with nothing around them. Both take turns, round by round, so that what disturbs the
 * machine disturbs both; of each the median round counts. Usage: wire [ROUNDS] */
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../src/base/memory.h"
#include "../src/world/endpoint.h"

enum { MOST_ROUNDS = 200, SMALL = 64, LARGE = 4273192 /* AlexNet's floats */ };
#define TIMEOUT_S 10.0

struct side {
    struct world *world;
    struct endpoint *endpoint; /* NULL: raw */
    int socket;
    char *buffer; /* [bytes] */
    size_t bytes;
    int messages;
    bool answers; /* it receives first */
};

static void fail(const char *words) {
    fprintf(stderr, "wire: %s\n", words);
    exit(1);
}

static void send_one(struct side *side) {
    struct error error = {0};
    if (side->endpoint) {
        const struct piece piece = {side->buffer, side->bytes};
        if (endpoint_send(side->endpoint, "a message", &piece, 1, TIMEOUT_S, &error) != OK) fail(error.words);
        return;
    }
    for (size_t sent = 0; sent < side->bytes;) {
        const ssize_t bytes = send(side->socket, side->buffer + sent, side->bytes - sent, MSG_NOSIGNAL);
        if (bytes <= 0) fail("send");
        sent += (size_t)bytes;
    }
}

static void receive_one(struct side *side) {
    struct error error = {0};
    if (side->endpoint) {
        if (endpoint_receive(side->endpoint, "a message", side->buffer, side->bytes, TIMEOUT_S, &error) != OK)
            fail(error.words);
        return;
    }
    for (size_t received = 0; received < side->bytes;) {
        const ssize_t bytes = recv(side->socket, side->buffer + received, side->bytes - received, 0);
        if (bytes <= 0) fail("recv");
        received += (size_t)bytes;
    }
}

static void play(void *argument) {
    struct side *side = argument;
    for (int i = 0; i < side->messages; i++) {
        if (side->answers) receive_one(side);
        send_one(side);
        if (!side->answers) receive_one(side);
    }
}

/* Seconds of one round trip. */
static double time_round(struct side sides[2], size_t bytes, int messages) {
    struct world_thread *thread;
    struct error error = {0};
    for (int i = 0; i < 2; i++) {
        sides[i].bytes = bytes;
        sides[i].messages = messages;
    }
    const double begin = world_now(sides[0].world);
    if (world_spawn(sides[0].world, "pong", NULL, play, &sides[1], &thread, &error) != OK) fail(error.words);
    play(&sides[0]);
    const double seconds = world_now(sides[0].world) - begin;
    world_join(thread);
    return seconds / messages;
}

static int compare(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *seconds, int count) {
    qsort(seconds, (size_t)count, sizeof *seconds, compare);
    return seconds[count / 2];
}

static void connect_raw(struct side sides[2]) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    const int yes = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
    sides[0].socket = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&name, length) != 0 || listen(listening, 1) != 0 ||
        getsockname(listening, (struct sockaddr *)&name, &length) != 0 ||
        connect(sides[0].socket, (struct sockaddr *)&name, length) != 0)
        fail("no raw connection");
    sides[1].socket = accept(listening, NULL, NULL);
    close(listening);
    for (int i = 0; i < 2; i++) setsockopt(sides[i].socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static void connect_endpoints(struct side sides[2]) {
    struct listener *listener;
    struct error error = {0};
    char address[32];
    if (endpoint_listen(sides[0].world, "127.0.0.1:0", &listener, &error) != OK) fail(error.words);
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    if (endpoint_connect(sides[0].world, address, &sides[0].endpoint, TIMEOUT_S, &error) != OK ||
        listener_accept(listener, &sides[1].endpoint, TIMEOUT_S, &error) != OK || !sides[1].endpoint)
        fail(error.words);
    listener_close(listener);
}

int main(int count, char **arguments) {
    const int rounds = count > 1 ? atoi(arguments[1]) : 15;
    static double seconds[2][2][MOST_ROUNDS]; /* [small, large][raw, endpoint] */
    struct side sides[2][2] = {0};            /* [raw, endpoint][ping, pong] */
    struct world *world;
    struct error error = {0};
    if (rounds < 1 || rounds > MOST_ROUNDS) fail("usage: wire [ROUNDS]");
    if (world_open_threads(&world, &error) != OK) fail(error.words);
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < 2; i++) {
            void *buffer;
            if (memory_zeroed(&buffer, LARGE, 1, "a message", &error) != OK) fail(error.words);
            sides[kind][i] = (struct side){.world = world, .buffer = buffer, .answers = i == 1};
        }
    connect_raw(sides[0]);
    connect_endpoints(sides[1]);
    for (int round = 0; round < rounds; round++)
        for (int kind = 0; kind < 2; kind++) {
            seconds[0][kind][round] = time_round(sides[kind], SMALL, 2000);
            seconds[1][kind][round] = time_round(sides[kind], LARGE, 20);
        }
    const double raw_us = 1e6 * median(seconds[0][0], rounds), our_us = 1e6 * median(seconds[0][1], rounds),
                 raw_gb = 2e-9 * LARGE / median(seconds[1][0], rounds),
                 our_gb = 2e-9 * LARGE / median(seconds[1][1], rounds);
    printf("%-34s %10s %10s %8s\n", "loopback, 2 threads", "raw", "endpoint", "ratio");
    printf("%-34s %7.1f us %7.1f us %8.2f\n", "round trip of 64 bytes", raw_us, our_us, our_us / raw_us);
    printf("%-34s %5.2f GB/s %5.2f GB/s %8.2f\n", "4.27 MB there and back", raw_gb, our_gb, our_gb / raw_gb);
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < 2; i++) {
            if (kind == 0) close(sides[kind][i].socket);
            endpoint_close(sides[kind][i].endpoint);
            memory_free(sides[kind][i].buffer);
        }
    world_close(world);
    return 0;
}
