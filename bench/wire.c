/* bench/wire: what an endpoint costs beside a raw socket, on loopback: over TCP, as frames with checksums,
 * over shared memory, over UCX, with its shared memory and with its TCP, and encrypted. Shared memory and
 * encryption check by themselves.
 *
 * A ping-pong between two threads: one sends a message, the other sends as much back. The raw loop is
 * blocking send and recv with nothing around them. All take turns, round by round, so that what disturbs the
 * machine disturbs all; of each the median round counts. Usage: wire [ROUNDS] */
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../src/base/memory.h"
#include "../src/bridge/frame.h"
#include "../tests/over_ucx.h"

enum { MOST_ROUNDS = 200, SMALL = 64, LARGE = 4273192 /* AlexNet's floats */ };
#define TIMEOUT_S 10.0

struct side {
    struct world *world;
    struct endpoint *endpoint; /* NULL: raw */
    bool framed;
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
        const int code = side->framed
                             ? frame_write(side->endpoint, FRAME_GRADIENT, 0, &piece, 1, TIMEOUT_S, &error)
                             : endpoint_send(side->endpoint, "a message", &piece, 1, TIMEOUT_S, &error);
        if (code != OK) fail(error.words);
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
    if (side->framed) {
        struct frame_header header;
        if (frame_read_header(side->endpoint, "a message", LARGE, &header, TIMEOUT_S, &error) != OK ||
            frame_read_payload(side->endpoint, &header, side->buffer, TIMEOUT_S, &error) != OK)
            fail(error.words);
        return;
    }
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

enum { RAW, CLEAR, FRAMED, SHARED, UCX, UCX_TCP, ENCRYPTED, KINDS };

/* In this build. */
static bool is_here(int kind) {
    return kind == ENCRYPTED ? TRAINER_TLS : kind == UCX || kind == UCX_TCP ? TRAINER_UCX : true;
}

static struct world *open_world(int kind) {
    static const uint8_t key[ENDPOINT_KEY_BYTES] = "any key";
    struct world *world;
    struct error error = {0};
    if (world_open_threads(&world, &error) != OK) fail(error.words);
    if (kind == CLEAR || kind == FRAMED) endpoint_keep_to_tcp(world);
    if (kind == UCX_TCP) setenv("UCX_TLS", "tcp", 1);
    if (kind == UCX) unsetenv("UCX_TLS");
    if ((kind == UCX || kind == UCX_TCP) && ucx_use(world, true, &error) != OK) fail(error.words);
    if (kind == ENCRYPTED && endpoint_encrypt(world, key, &error) != OK) fail(error.words);
    return world;
}

static void open_sides(struct side sides[2], int kind) {
    struct world *world = open_world(kind);
    struct error error = {0};
    for (int i = 0; i < 2; i++) {
        void *buffer;
        if (memory_zeroed(&buffer, LARGE, 1, "a message", &error) != OK) fail(error.words);
        sides[i] =
            (struct side){.world = world, .buffer = buffer, .framed = kind == FRAMED, .answers = i == 1};
    }
    if (kind == RAW)
        connect_raw(sides);
    else
        connect_endpoints(sides);
    if ((kind == UCX || kind == UCX_TCP) && over_ucx(sides[0].endpoint, sides[1].endpoint, &error) != OK)
        fail(error.words);
}

/* Where there is no memory to share, both ends have come over TCP. */
static bool is_as_named(const struct side sides[2], int kind) {
    return kind != SHARED || strncmp(endpoint_name(sides[1].endpoint), "process ", 8) == 0;
}

static void close_sides(struct side sides[2], int kind) {
    for (int i = 0; i < 2; i++) {
        if (kind == RAW) close(sides[i].socket);
        endpoint_close(sides[i].endpoint);
        memory_free(sides[i].buffer);
    }
    world_close(sides[0].world);
}

int main(int count, char **arguments) {
    const int rounds = count > 1 ? atoi(arguments[1]) : 15;
    static double seconds[2][KINDS][MOST_ROUNDS]; /* [small, large] */
    static const char *const names[] = {"raw socket", "endpoint, TCP", "frames, TCP", "shared memory",
                                        "UCX",        "UCX, TCP",      "encrypted"};
    struct side sides[KINDS][2] = {0}; /* [ping, pong] */
    if (rounds < 1 || rounds > MOST_ROUNDS) fail("usage: wire [ROUNDS]");
    for (int kind = 0; kind < KINDS; kind++)
        if (is_here(kind)) open_sides(sides[kind], kind);
    for (int round = 0; round < rounds; round++)
        for (int kind = 0; kind < KINDS; kind++) {
            if (!is_here(kind)) continue;
            seconds[0][kind][round] = time_round(sides[kind], SMALL, 2000);
            seconds[1][kind][round] = time_round(sides[kind], LARGE, 20);
        }
    printf("%-22s %22s   %22s\n", "loopback, 2 threads", "64 bytes, round trip", "4.27 MB there and back");
    const double raw_s = median(seconds[0][RAW], rounds), raw_large_s = median(seconds[1][RAW], rounds);
    for (int kind = 0; kind < KINDS; kind++) {
        if (!is_here(kind)) continue;
        const double small_s = median(seconds[0][kind], rounds), large_s = median(seconds[1][kind], rounds);
        if (is_as_named(sides[kind], kind))
            printf("%-22s %9.1f us %7.2f x   %7.2f GB/s %7.2f x\n", names[kind], 1e6 * small_s,
                   small_s / raw_s, 2e-9 * LARGE / large_s, raw_large_s / large_s);
        else
            printf("%-22s none here: it went over TCP\n", names[kind]);
    }
    for (int kind = 0; kind < KINDS; kind++)
        if (is_here(kind)) close_sides(sides[kind], kind);
    return 0;
}
