/* Who comes to a host before the training begins: nobody whom it refuses, or who says nothing, holds up the
 * one that it waits for; an address that sends many makes room for its own; a worker's place belongs to one
 * process.
 */
#include "../check.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../src/bridge/handshake.h"
#include "../../src/bridge/host.h"

#define LONG_S 20.0

static struct world *world;

/* A host on a thread of its own, for one worker. */
struct waiting {
    struct address host, worker;
    struct cluster cluster;
    struct config config;
    struct fingerprint fingerprint;
    struct host host_of;
    struct error error;
    struct world_thread *thread;
    _Atomic bool give_up, all_there;
    struct lock lock;
    char said[40000]; /* under the lock */
};

static void say(void *argument, const char *words) {
    struct waiting *waiting = argument;
    lock_take(&waiting->lock);
    snprintf(waiting->said + strlen(waiting->said), sizeof waiting->said - strlen(waiting->said), "%s\n",
             words);
    lock_release(&waiting->lock);
}

static bool was_said(struct waiting *waiting, const char *words) {
    lock_take(&waiting->lock);
    const bool found = strstr(waiting->said, words) != NULL;
    lock_release(&waiting->lock);
    return found;
}

static const struct error enough = {.code = ERROR_PEER, .words = "enough"};

static void wait_body(void *argument) {
    struct waiting *waiting = argument;
    const struct host_settings settings = {.world = world,
                                           .cluster = &waiting->cluster,
                                           .config = &waiting->config,
                                           .fingerprint = &waiting->fingerprint,
                                           .start_s = LONG_S,
                                           .timeout_s = LONG_S,
                                           .give_up = &waiting->give_up,
                                           .because = &enough,
                                           .say = say,
                                           .argument = waiting};
    if (host_open(&waiting->host_of, &settings, &waiting->error) == OK)
        atomic_store(&waiting->all_there, true);
}

static void open_waiting_at(struct waiting *waiting, const char *host, int port) {
    struct error error = {0};
    memset(waiting, 0, sizeof *waiting);
    snprintf(waiting->host.text, sizeof waiting->host.text, "%s:%d", host, port);
    snprintf(waiting->worker.text, sizeof waiting->worker.text, "127.0.0.1:1");
    waiting->cluster = (struct cluster){.ps = {.list = &waiting->host, .count = 1},
                                        .workers = {.list = &waiting->worker, .count = 1},
                                        .insecure = true};
    waiting->fingerprint = (struct fingerprint){.examples = 7, .floats = 8, .layout = 9};
    option_defaults(config_options, &waiting->config);
    lock_open(&waiting->lock, world);
    CHECK(world_spawn(world, "host", NULL, wait_body, waiting, &waiting->thread, &error) == OK, "%s",
          error.words);
}

/* No other program has this address. */
static void open_waiting(struct waiting *waiting, int port) {
    const unsigned own = (unsigned)getpid();
    char host[32];
    snprintf(host, sizeof host, "127.%u.%u.1", 1 + (own >> 8) % 250, own % 256);
    open_waiting_at(waiting, host, port);
}

static void close_waiting(struct waiting *waiting) {
    atomic_store(&waiting->give_up, true);
    world_join(waiting->thread);
    host_close(&waiting->host_of);
}

/* --- those who come --- */

static struct endpoint *come(const struct waiting *waiting) {
    struct endpoint *endpoint = NULL;
    struct error error = {0};
    CHECK(endpoint_connect(world, waiting->host.text, &endpoint, LONG_S, &error) == OK, "%s", error.words);
    if (!endpoint) exit(check_end());
    return endpoint;
}

static struct hello hello_of(int device, int devices, uint64_t process) {
    struct hello hello = {.device = device, .devices = devices, .process = process, .device_name = "cpu:0"};
    option_defaults(run_options, &hello.agreed);
    memset(&hello.agreed.given, 0, sizeof hello.agreed.given);
    snprintf(hello.program, sizeof hello.program, "%s", TRAINER_VERSION);
    return hello;
}

static void say_hello(struct endpoint *endpoint, const struct hello *hello) {
    uint8_t bytes[HELLO_BYTES];
    struct error error = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    CHECK(hello_put(hello, &writer, &error) == OK, "%s", error.words);
    const struct piece piece = {bytes, writer.used};
    CHECK(frame_write(endpoint, FRAME_HELLO, 0, &piece, 1, LONG_S, &error) == OK, "%s", error.words);
}

static void say_ready(struct endpoint *endpoint, uint32_t session, const struct fingerprint *fingerprint) {
    uint8_t bytes[READY_BYTES];
    struct error error = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    fingerprint_put(fingerprint, &writer);
    const struct piece piece = {bytes, writer.used};
    CHECK(frame_write(endpoint, FRAME_READY, session, &piece, 1, LONG_S, &error) == OK, "%s", error.words);
}

/* The next frame but heartbeats, and what it says. With the settings comes the session. */
static uint32_t session;

static enum frame_type hear(struct endpoint *endpoint, char words[SETTINGS_BYTES + 1]) {
    struct frame_header header;
    struct error error = {0};
    do {
        memset(words, 0, SETTINGS_BYTES + 1);
        if (frame_read_header(endpoint, "an answer", SETTINGS_BYTES, &header, LONG_S, &error) != OK ||
            frame_read_payload(endpoint, &header, words, LONG_S, &error) != OK)
            return FRAME_NONE;
    } while (header.type == FRAME_HEARTBEAT);
    if (header.type == FRAME_CONFIG) session = header.flags;
    return header.type;
}

static bool wait_until_all_there(const struct waiting *waiting, double seconds) {
    const double until = world_now(world) + seconds;
    while (!atomic_load(&waiting->all_there) && world_now(world) < until) world_sleep(world, 0.005);
    return atomic_load(&waiting->all_there);
}

/* --- refused ones who stay --- */

enum { REFUSED = 10 };

static void check_refused_stay(void) {
    static struct waiting waiting;
    static char words[SETTINGS_BYTES + 1];
    struct endpoint *refused[REFUSED], *slow, *right;
    struct hello hello = hello_of(0, 1, 1);
    struct error error = {0};
    uint8_t head[FRAME_HEADER_BYTES];
    open_waiting(&waiting, 2301);
    const double began = world_now(world);
    slow = come(&waiting); /* accepted; and says half of what is to come */
    say_hello(slow, &hello);
    CHECK(hear(slow, words) == FRAME_CONFIG, "%s", words);
    frame_pack_header(head, &(struct frame_header){.type = FRAME_READY, .bytes = READY_BYTES});
    const struct piece piece = {head, sizeof head};
    CHECK(endpoint_send(slow, "a header", &piece, 1, LONG_S, &error) == OK, "%s", error.words);
    world_sleep(world, 0.1); /* the host has seen it */
    snprintf(hello.program, sizeof hello.program, "0.0.0");
    for (int i = 0; i < REFUSED; i++) say_hello(refused[i] = come(&waiting), &hello);
    for (int i = 0; i < REFUSED; i++)
        CHECK(hear(refused[i], words) == FRAME_FAILURE && strstr(words, "has trainer 0.0.0"), "%s", words);
    CHECK(!was_said(&waiting, "of a ready"), "half a ready was refused: %s", waiting.said);
    endpoint_close(slow);
    right = come(&waiting);
    hello = hello_of(0, 1, 1);
    say_hello(right, &hello);
    CHECK(hear(right, words) == FRAME_CONFIG, "%s", words);
    say_ready(right, session, &waiting.fingerprint);
    CHECK(wait_until_all_there(&waiting, LONG_S), "%s", waiting.said);
    const double took_s = world_now(world) - began;
    CHECK(took_s < 4.0, "those who were refused held the host for %g s", took_s);
    close_waiting(&waiting);
    for (int i = 0; i < REFUSED; i++) endpoint_close(refused[i]);
    endpoint_close(right);
}

/* --- many from one address --- */

static int come_from(const struct waiting *waiting, unsigned last) {
    unsigned a, b, c;
    int port;
    const int one = socket(AF_INET, SOCK_STREAM, 0);
    sscanf(waiting->host.text, "127.%u.%u.%u:%d", &a, &b, &c, &port);
    struct sockaddr_in own = {.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(127u << 24 | a << 16 | b << 8 | last)};
    struct sockaddr_in host = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    host.sin_addr.s_addr = htonl(127u << 24 | a << 16 | b << 8 | c);
    CHECK(bind(one, (struct sockaddr *)&own, sizeof own) == 0 &&
              connect(one, (struct sockaddr *)&host, sizeof host) == 0,
          "no connection");
    return one;
}

static bool is_thrown_out(int one, double seconds) {
    const double until = world_now(world) + seconds;
    char byte;
    do {
        const ssize_t found = recv(one, &byte, 1, MSG_DONTWAIT);
        if (found >= 0) return true;
        world_sleep(world, 0.005);
    } while (world_now(world) < until);
    return false;
}

/* Those who are new stay, as a worker's hello may be on its way; later one who is silent makes room first. */
static void check_crowd(void) {
    enum { MORE = 8, MANY = HOST_GUESTS_OF_ONE + MORE };
    static struct waiting waiting;
    int crowd[MANY];
    open_waiting(&waiting, 2302);
    endpoint_close(come(&waiting)); /* it listens */
    const int first = come_from(&waiting, 3);
    for (int i = 0; i < MANY; i++) crowd[i] = come_from(&waiting, 4);
    CHECK(send(crowd[0], "T", 1, 0) == 1, "not sent");
    for (int i = HOST_GUESTS_OF_ONE; i < MANY; i++)
        CHECK(is_thrown_out(crowd[i], 3.0), "number %d of %d may stay", i, MANY);
    for (int i = 0; i < HOST_GUESTS_OF_ONE; i++)
        CHECK(!is_thrown_out(crowd[i], 0.0), "number %d had to go for number %d", i, MANY);
    world_sleep(world, 1.1); /* they are not new any more */
    const int late = come_from(&waiting, 4);
    CHECK(is_thrown_out(crowd[1], 3.0), "none had to go");
    CHECK(!is_thrown_out(crowd[0], 0.0) && !is_thrown_out(crowd[2], 0.0) && !is_thrown_out(late, 0.0),
          "another one than the first who is silent");
    CHECK(!is_thrown_out(first, 0.0), "another address had to make room");
    for (int i = 0; i < MANY; i++) close(crowd[i]);
    close(first);
    close(late);
    close_waiting(&waiting);
}

/* --- many who are refused, and a log --- */

static void check_log(void) {
    enum { MANY = 200 };
    static struct waiting waiting;
    int lines = 0;
    open_waiting(&waiting, 2304);
    for (int i = 0; i < MANY; i++) {
        struct endpoint *one = come(&waiting);
        static const char request[] = "GET / HTTP/1.1\r\nHost: nobody.invalid\r\n\r\n";
        const struct piece piece = {request, sizeof request - 1};
        struct error error = {0};
        CHECK(endpoint_send(one, "a request", &piece, 1, LONG_S, &error) == OK, "%s", error.words);
        bool ended = false;
        char byte;
        while (!ended && endpoint_peek(one, &byte, 1, 0.1, &ended) == 0) continue;
        endpoint_close(one);
    }
    world_sleep(world, 1.5); /* one more second has passed */
    close_waiting(&waiting);
    for (const char *at = waiting.said; (at = strstr(at, "refused:")); at++) lines++;
    CHECK(lines >= 11 && lines < MANY / 2 && strstr(waiting.said, " more\n"), "%d lines: %s", lines,
          waiting.said);
}

/* --- strangers who look like this machine --- */

static void check_trust(void) {
    static struct waiting waiting;
    static char words[SETTINGS_BYTES + 1];
    struct hello hello = hello_of(0, 1, 1);
    open_waiting_at(&waiting, "0.0.0.0", 2305);
    snprintf(hello.program, sizeof hello.program, "0.0.0");
    struct endpoint *one = NULL;
    struct error error = {0};
    CHECK(endpoint_connect(world, "127.0.0.1:2305", &one, LONG_S, &error) == OK, "%s", error.words);
    if (!one) exit(check_end());
    say_hello(one, &hello);
    CHECK(hear(one, words) == FRAME_FAILURE && strcmp(words, "its log says why") == 0,
          "it came through a port that all can reach, and was told: %s", words);
    endpoint_close(one);
    close_waiting(&waiting);
    CHECK(strstr(waiting.said, "has trainer 0.0.0"), "%s", waiting.said);
}

/* --- a place and its process --- */

static void check_process(void) {
    static struct waiting waiting;
    static char words[SETTINGS_BYTES + 1];
    open_waiting(&waiting, 2303);
    struct endpoint *own = come(&waiting), *other = come(&waiting);
    struct hello hello = hello_of(0, 2, 77);
    say_hello(own, &hello);
    CHECK(hear(own, words) == FRAME_CONFIG, "%s", words);
    hello = hello_of(1, 2, 78);
    say_hello(other, &hello);
    CHECK(hear(other, words) == FRAME_FAILURE && strstr(words, "worker 0, which has come already"), "%s",
          words);
    endpoint_close(other);
    endpoint_close(own); /* its place is free, for any process */
    own = come(&waiting), other = come(&waiting);
    say_hello(own, &hello);
    CHECK(hear(own, words) == FRAME_CONFIG, "%s", words);
    const uint32_t session_of_own = session;
    hello = hello_of(0, 2, 78);
    say_hello(other, &hello);
    CHECK(hear(other, words) == FRAME_CONFIG && session != session_of_own, "%s", words);
    say_ready(own, session_of_own, &waiting.fingerprint);
    say_ready(other, session, &waiting.fingerprint);
    CHECK(wait_until_all_there(&waiting, LONG_S), "%s", waiting.said);
    CHECK(was_said(&waiting, "has gone again"), "%s", waiting.said);
    close_waiting(&waiting);
    endpoint_close(own);
    endpoint_close(other);
}

/* One that only gives signs of life, as in the room of those who want to join: its place is free again. */
static void check_never_ready(void) {
    static struct waiting waiting;
    static struct peer peers[1];
    struct error error = {0};
    struct endpoint *ends[2] = {NULL, NULL};
    struct listener *listener = NULL;
    char address[32];
    const double begin = world_now(world), start_s = 0.3;
    bool moved = false;
    CHECK(endpoint_listen(world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
    if (!listener) return;
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(world, address, &ends[0], LONG_S, &error) == OK &&
              listener_accept(listener, &ends[1], LONG_S, &error) == OK,
          "%s", error.words);
    lock_open(&waiting.lock, world);
    peers[0] = (struct peer){.endpoint = ends[1], .name = "worker 3", .came_s = begin, .heard_s = begin};
    struct host host = {.settings = {.world = world,
                                     .cluster = &waiting.cluster,
                                     .config = &waiting.config,
                                     .start_s = start_s,
                                     .timeout_s = LONG_S,
                                     .say = say,
                                     .argument = &waiting},
                        .peers = peers,
                        .count = 1};
    while (host.count == 1 && world_now(world) - begin < LONG_S && error.code == OK) {
        frame_write(ends[0], FRAME_HEARTBEAT, 0, NULL, 0, LONG_S, &error);
        handshake_hear(&host, &moved, &error);
        world_sleep(world, 0.02);
    }
    CHECK(host.count == 0 && world_now(world) - begin >= start_s, "%d after %g s", host.count,
          world_now(world) - begin);
    CHECK(was_said(&waiting, "worker 3 has gone again: not ready after 0.3 s"), "%s", waiting.said);
    endpoint_close(ends[0]);
    listener_close(listener);
}

int main(void) {
    struct error error = {0};
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    if (!world) return check_end();
    check_refused_stay();
    check_never_ready();
    check_crowd();
    check_log();
    check_trust();
    check_process();
    world_close(world);
    return check_end();
}
