/* What every kind of link is held to: both ends are threads of one process. Exact bytes, exact words, and
 * whatever a peer or a network does in the middle. For world/endpoint.c and world/ucx.c. */
#ifndef TRAINER_TESTS_ENDPOINTS_H
#define TRAINER_TESTS_ENDPOINTS_H

#include "check.h"
#include "over_ucx.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "../src/base/memory.h"
#include "../src/base/rng.h"
#include "../src/world/endpoint.h"
#include "../src/world/endpoint_parts.h"
#include "../src/world/world_kind.h"

#define LONG_S 20.0
#define SHORT_S 0.05

/* A connection within this process: near connected, far accepted. */
struct wire {
    struct world *world;
    struct listener *listener;
    struct endpoint *near, *far;
    char address[32];
    struct error error;
};

static const uint8_t key[ENDPOINT_KEY_BYTES] = "a key of thirty-two bytes, as is";
static enum { CLEAR, SHARED, OVER_UCX, ENCRYPTED, KINDS } kind;
static struct world *simulation; /* NULL: in the real world */

static struct world *open_world(void) {
    struct world *world = NULL;
    struct error error = {0};
    const int code =
        simulation ? world_open_beside(&world, simulation, &error) : world_open_threads(&world, &error);
    CHECK(code == OK, "%s", error.words);
    if (kind == ENCRYPTED)
        CHECK(endpoint_encrypt(world, key, &error) == OK, "%s", error.words);
    else
        endpoint_allow_clear(world);
    if (kind == CLEAR) endpoint_keep_to_tcp(world);
    if (kind == OVER_UCX) CHECK(ucx_use(world, true, &error) == OK, "%s", error.words);
    return world;
}

/* Both sides belong to one thread, so neither may wait for the other. */
static void shake_hands(struct wire *wire) {
    bool ended;
    char byte;
    for (int i = 0; i < 100; i++) {
        endpoint_peek(wire->near, &byte, 1, 0.0, &ended);
        endpoint_peek(wire->far, &byte, 1, 0.0, &ended);
    }
}

/* The bytes of the tests alone are counted. */
static void go_over(struct wire *wire) {
    CHECK(over_ucx(wire->near, wire->far, &wire->error) == OK, "%s", wire->error.words);
    for (int i = 0; i < 2; i++) {
        atomic_store(&(i ? wire->far : wire->near)->sent, 0);
        atomic_store(&(i ? wire->far : wire->near)->received, 0);
    }
}

static void open_wire(struct wire *wire, const char *host) {
    struct error *error = &wire->error;
    char address[32];
    memset(wire, 0, sizeof *wire);
    wire->world = open_world();
    snprintf(address, sizeof address, "%s:0", host);
    CHECK(endpoint_listen(wire->world, address, &wire->listener, error) == OK, "%s", error->words);
    if (!wire->listener) exit(check_end());
    snprintf(wire->address, sizeof wire->address, "%s:%d", host[0] ? host : "127.0.0.1",
             listener_port(wire->listener));
    CHECK(endpoint_connect(wire->world, wire->address, &wire->near, LONG_S, error) == OK, "%s", error->words);
    CHECK(listener_accept(wire->listener, &wire->far, LONG_S, error) == OK, "%s", error->words);
    if (!wire->near || !wire->far) exit(check_end());
    CHECK(endpoint_is_encrypted(wire->near) == (kind == ENCRYPTED) &&
              endpoint_is_encrypted(wire->far) == (kind == ENCRYPTED),
          "%d", kind);
    if (kind == ENCRYPTED) shake_hands(wire);
    if (kind == OVER_UCX) go_over(wire);
}

static void close_wire(struct wire *wire) {
    endpoint_close(wire->near);
    endpoint_close(wire->far);
    listener_close(wire->listener);
    world_close(wire->world);
}

static struct world_thread *spawn(struct world *world, world_body *body, void *argument) {
    struct world_thread *thread = NULL;
    struct error error = {0};
    CHECK(world_spawn(world, "far", NULL, body, argument, &thread, &error) == OK, "%s", error.words);
    return thread;
}

static char *random_bytes(size_t bytes, uint64_t seed) {
    void *memory = NULL;
    struct error error = {0};
    CHECK(memory_zeroed(&memory, bytes, 1, "bytes", &error) == OK, "%s", error.words);
    for (size_t i = 0; i < bytes; i += 16) {
        const struct rng_block words = rng_philox(seed, 0, i);
        memcpy((char *)memory + i, words.word, bytes - i < 16 ? bytes - i : 16);
    }
    return memory;
}

static void expect(const struct error *error, int code, const char *words) {
    CHECK(error->code == code && strstr(error->words, words), "%d \"%s\", expected %d \"%s\"", error->code,
          error->words, code, words);
}

/* --- bytes --- */

static void test_bytes(const char *host) {
    struct wire wire;
    char got[16] = "", process[40];
    snprintf(process, sizeof process, "process %ld", (long)getpid());
    open_wire(&wire, host);
    /* More pieces than one call takes, empty ones among them, and before them. */
    struct piece pieces[60] = {{0}};
    const char *text = "0123456789abcdef";
    for (int i = 0; i < 16; i++) pieces[2 * i + 20] = (struct piece){text + i, 1};
    CHECK(endpoint_send(wire.near, "digits", pieces, 60, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(endpoint_receive(wire.far, "digits", got, 7, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(memcmp(got, text, 7) == 0 && got[7] == 0, "%.7s, and not a byte more", got);
    CHECK(endpoint_receive(wire.far, "digits", got + 7, 9, LONG_S, &wire.error) == OK, "%s",
          wire.error.words);
    CHECK(memcmp(got, text, 16) == 0, "%.16s", got);
    CHECK(endpoint_sent(wire.near) == 16 && endpoint_received(wire.far) == 16, "%lld, %lld",
          endpoint_sent(wire.near), endpoint_received(wire.far));
    CHECK(endpoint_received(wire.near) == 0 && endpoint_sent(wire.far) == 0, "%lld, %lld",
          endpoint_received(wire.near), endpoint_sent(wire.far));
    CHECK(strcmp(endpoint_name(wire.near), wire.address) == 0, "%s", endpoint_name(wire.near));
    const char *const far = endpoint_name(wire.far);
    if (kind == SHARED && host[0] != '\0')
        CHECK(strcmp(far, process) == 0, "%s", far);
    else
        CHECK(strncmp(far, host, strlen(host)) == 0 && strchr(far, ':') && !strstr(far, "ffff"), "%s", far);
    CHECK(endpoint_is_loopback(wire.near) && endpoint_is_loopback(wire.far), "%s", host);
    CHECK(listener_is_loopback(wire.listener) == (host[0] != '\0'), "%s", host);
    CHECK(endpoint_send(wire.near, "nothing", NULL, 0, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(endpoint_receive(wire.near, "nothing", NULL, 0, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    close_wire(&wire);
}

/* What is peeked at stays, is received with what comes behind it, and the end is seen behind it. */
static void test_peek(void) {
    struct wire wire;
    char got[16] = "";
    bool ended = true;
    open_wire(&wire, "127.0.0.1");
    CHECK(endpoint_peek(wire.far, got, sizeof got, SHORT_S, &ended) == 0 && !ended, "nothing is there yet");
    const struct piece first = {"abcdef", 6}, second = {"ghi", 3};
    CHECK(endpoint_send(wire.near, "letters", &first, 1, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    for (int i = 0; i < 2; i++) {
        const size_t found = endpoint_peek(wire.far, got, 4, LONG_S, &ended);
        CHECK(found == 4 && memcmp(got, "abcd", 4) == 0 && !ended, "%zu of \"%.4s\"", found, got);
    }
    CHECK(endpoint_received(wire.far) == 0, "%lld", endpoint_received(wire.far));
    CHECK(endpoint_send(wire.near, "letters", &second, 1, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(endpoint_receive(wire.far, "letters", got, 8, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(memcmp(got, "abcdefgh", 8) == 0 && endpoint_received(wire.far) == 8, "%.8s", got);
    endpoint_close(wire.near);
    wire.near = NULL;
    while (!ended) CHECK(endpoint_peek(wire.far, got, sizeof got, LONG_S, &ended) == 1, "one is left");
    CHECK(got[0] == 'i' && endpoint_peek(wire.far, got, 1, 0.0, &ended) == 1 && ended, "it stays");
    CHECK(endpoint_receive(wire.far, "the last", got, 1, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(endpoint_peek(wire.far, got, 1, LONG_S, &ended) == 0 && ended, "it has ended");
    close_wire(&wire);
}

/* --- both ways at once, more than the kernel holds --- */

enum { BIG = 12 << 20, PEERS = 3 };

struct swap {
    struct endpoint *endpoint;
    char *out, *in; /* [BIG] */
    struct error error;
};

static void swap_bytes(void *argument) {
    struct swap *swap = argument;
    const struct piece halves[] = {{swap->out, BIG / 3}, {swap->out + BIG / 3, BIG - BIG / 3}};
    struct transfer transfer = {.endpoint = swap->endpoint,
                                .sends = "bytes",
                                .pieces = halves,
                                .piece_count = 2,
                                .awaits = "bytes",
                                .buffer = swap->in,
                                .bytes = BIG};
    endpoints_exchange(&transfer, 1, LONG_S, &swap->error);
}

static void test_exchange(void) {
    static struct wire wires[PEERS];
    static struct swap far[PEERS];
    struct transfer transfers[PEERS] = {0};
    struct world_thread *threads[PEERS];
    struct piece pieces[PEERS];
    struct error error = {0};
    char *near_in[PEERS];
    for (int i = 0; i < PEERS; i++) {
        open_wire(&wires[i], "127.0.0.1");
        far[i] = (struct swap){.endpoint = wires[i].far,
                               .out = random_bytes(BIG, 10 + (uint64_t)i),
                               .in = random_bytes(BIG, 20)};
        pieces[i] = (struct piece){random_bytes(BIG, 30 + (uint64_t)i), BIG};
        near_in[i] = random_bytes(BIG, 40);
        transfers[i] = (struct transfer){.endpoint = wires[i].near,
                                         .sends = "bytes",
                                         .pieces = &pieces[i],
                                         .piece_count = 1,
                                         .awaits = "bytes",
                                         .buffer = near_in[i],
                                         .bytes = BIG};
        threads[i] = spawn(wires[i].world, swap_bytes, &far[i]);
    }
    CHECK(endpoints_exchange(transfers, PEERS, LONG_S, &error) == OK, "%s", error.words);
    for (int i = 0; i < PEERS; i++) {
        world_join(threads[i]);
        CHECK(far[i].error.code == OK, "%s", far[i].error.words);
        CHECK(memcmp(near_in[i], far[i].out, BIG) == 0, "what peer %d sent arrived otherwise", i);
        CHECK(memcmp(far[i].in, pieces[i].memory, BIG) == 0, "what went to peer %d arrived otherwise", i);
        CHECK(transfers[i].sent == BIG && transfers[i].received == BIG, "%zu, %zu", transfers[i].sent,
              transfers[i].received);
        CHECK(endpoint_sent(wires[i].near) == BIG && endpoint_received(wires[i].near) == BIG, "counters");
        memory_free(far[i].out);
        memory_free(far[i].in);
        memory_free((void *)(uintptr_t)pieces[i].memory);
        memory_free(near_in[i]);
        close_wire(&wires[i]);
    }
    CHECK(endpoints_exchange(NULL, 0, LONG_S, &error) == OK, "nobody to talk to is fine");
}

/* --- beside other work --- */

struct sender {
    struct world *world;
    struct endpoint *endpoint;
    double after_s;
    struct error error;
};

static void send_later(void *argument) {
    struct sender *sender = argument;
    const struct piece piece = {"0123456789", 10};
    world_sleep(sender->world, sender->after_s);
    endpoint_send(sender->endpoint, "digits", &piece, 1, LONG_S, &sender->error);
}

/* A transfer that goes on between waits: as much as is wanted first, and then the rest; what was added goes
 * behind what was there; only waiting counts, and all of it does. */
static void test_meanwhile(void) {
    enum { PART = 6, WAIT_TIMES = 4 };
    struct wire wire;
    char got[16] = "", echo[16] = "";
    struct error *const error = &wire.error;
    open_wire(&wire, "127.0.0.1");
    struct piece pieces[2] = {{"abc", 3}, {"defg", 4}};
    struct transfer transfer = {.endpoint = wire.near,
                                .sends = "letters",
                                .pieces = pieces,
                                .piece_count = 1,
                                .awaits = "digits",
                                .buffer = got,
                                .bytes = 10};
    endpoints_begin(&transfer, 1);
    CHECK(endpoints_move(&transfer, 1, error) == OK && transfer.received == 0, "%s", error->words);
    CHECK(!transfer_is_done(&transfer), "nothing has come");
    world_sleep(wire.world, WAIT_TIMES * SHORT_S); /* longer than it may be waited for */
    struct sender sender = {wire.world, wire.far, SHORT_S, {0}};
    struct world_thread *thread = spawn(wire.world, send_later, &sender);
    transfer.bytes = PART;
    transfer.piece_count = 2;
    CHECK(endpoints_finish(&transfer, 1, (WAIT_TIMES - 1) * SHORT_S, error) == OK &&
              transfer_is_done(&transfer) && memcmp(got, "012345", PART) == 0 && got[PART] == 0,
          "\"%s\": %s", got, error->words);
    world_join(thread);
    CHECK(endpoint_receive(wire.far, "letters", echo, 7, LONG_S, error) == OK && strcmp(echo, "abcdefg") == 0,
          "\"%s\": %s", echo, error->words);
    transfer.bytes = 10;
    CHECK(endpoints_finish(&transfer, 1, LONG_S, error) == OK && strcmp(got, "0123456789") == 0, "\"%s\": %s",
          got, error->words);
    /* Of two waits that are as long as the timeout together, the second is cut short. */
    transfer.bytes = 12;
    endpoints_begin(&transfer, 1);
    sender.after_s = (WAIT_TIMES - 1) * SHORT_S;
    thread = spawn(wire.world, send_later, &sender);
    transfer.bytes = 10;
    CHECK(endpoints_finish(&transfer, 1, WAIT_TIMES * SHORT_S, error) == OK, "%s", error->words);
    world_join(thread);
    transfer.bytes = 12;
    const double begin = world_now(wire.world);
    endpoints_finish(&transfer, 1, WAIT_TIMES * SHORT_S, error);
    expect(error, ERROR_PEER, "only 10 of 12 bytes of digits, and no more of it in 0.2 s");
    CHECK(world_now(wire.world) - begin < (WAIT_TIMES - 1) * SHORT_S, "%g s more",
          world_now(wire.world) - begin);
    CHECK(sender.error.code == OK, "%s", sender.error.words);
    close_wire(&wire);
}

/* --- silence --- */

static void test_silence(void) {
    struct wire wire;
    char bytes[64] = {0};
    open_wire(&wire, "127.0.0.1");
    const double begin = world_now(wire.world);
    endpoint_receive(wire.far, "a reply", bytes, sizeof bytes, SHORT_S, &wire.error);
    const double waited = world_now(wire.world) - begin;
    expect(&wire.error, ERROR_PEER, "no byte of a reply for 0.05 s");
    CHECK(strncmp(wire.error.words, endpoint_name(wire.far), strlen(endpoint_name(wire.far))) == 0, "%s",
          wire.error.words);
    CHECK(waited >= SHORT_S && waited < 5.0, "waited %g s", waited);

    wire.error = (struct error){0};
    const struct piece some = {"half", 4};
    CHECK(endpoint_send(wire.near, "half", &some, 1, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    endpoint_receive(wire.far, "a reply", bytes, sizeof bytes, SHORT_S, &wire.error);
    expect(&wire.error, ERROR_PEER, "only 4 of 64 bytes of a reply, and no more of it in 0.05 s");

    wire.error = (struct error){0};
    char *big = random_bytes(BIG, 1);
    const struct piece all = {big, BIG};
    endpoint_send(wire.near, "a gradient", &all, 1, SHORT_S, &wire.error);
    expect(&wire.error, ERROR_PEER, " of 12582912 bytes of a gradient, then none for 0.05 s");
    memory_free(big);

    /* The peer would take what comes now for the rest of the gradient. */
    wire.error = (struct error){0};
    endpoint_send(wire.near, "a word", &some, 1, LONG_S, &wire.error);
    expect(&wire.error, ERROR_PEER,
           ": a message was cut off before, and nothing can follow it (0 of 4 bytes of a word were sent)");
    wire.error = (struct error){0};
    CHECK(endpoint_send(wire.far, "a word", &some, 1, LONG_S, &wire.error) == OK &&
              endpoint_receive(wire.near, "a word", bytes, 4, LONG_S, &wire.error) == OK,
          "the other way: %s", wire.error.words);
    close_wire(&wire);
}

/* One who sends little by little: single bytes are no sign of life, ENDPOINT_LIFE_BYTES are. In simulated
 * time, where nothing else may take longer. */
struct drip {
    struct wire *wire;
    size_t bytes; /* at once */
    int times;
    char *memory; /* [bytes] */
    struct error error;
};

static void drip_bytes(void *argument) {
    struct drip *drip = argument;
    const struct piece piece = {drip->memory, drip->bytes};
    for (int i = 0; i < drip->times && drip->error.code == OK; i++) {
        world_sleep(drip->wire->world, 0.1);
        endpoint_send(drip->wire->far, "a drop", &piece, 1, LONG_S, &drip->error);
    }
}

static void test_drip(size_t drop, const char *words) {
    enum { DROPS = 8 };
    struct wire wire;
    open_wire(&wire, "127.0.0.1");
    struct drip drip = {.wire = &wire, .bytes = drop, .times = DROPS, .memory = random_bytes(drop, 3)};
    char *memory = random_bytes(drop * DROPS, 4);
    struct world_thread *thread = spawn(wire.world, drip_bytes, &drip);
    endpoint_receive(wire.near, "weights", memory, drop * DROPS, 0.4, &wire.error);
    if (words)
        expect(&wire.error, ERROR_PEER, words);
    else
        CHECK(wire.error.code == OK, "%s", wire.error.words);
    world_join(thread);
    memory_free(drip.memory);
    memory_free(memory);
    close_wire(&wire);
}

/* --- the connection ends --- */

static void test_close(void) {
    struct wire wire;
    char bytes[64];
    open_wire(&wire, "127.0.0.1");
    const struct piece some = {"half", 4};
    CHECK(endpoint_send(wire.near, "half", &some, 1, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    endpoint_close(wire.near);
    wire.near = NULL;
    endpoint_receive(wire.far, "weights", bytes, sizeof bytes, LONG_S, &wire.error);
    expect(&wire.error, ERROR_PEER,
           ": the connection was closed by the peer (4 of 64 bytes of weights were received)");
    wire.error = (struct error){0};
    char *big = random_bytes(BIG, 1);
    const struct piece all = {big, BIG};
    endpoint_send(wire.far, "a gradient", &all, 1, LONG_S, &wire.error);
    expect(&wire.error, ERROR_PEER, ": the connection was closed by the peer (");
    expect(&wire.error, ERROR_PEER, " of 12582912 bytes of a gradient were sent)");
    memory_free(big);
    close_wire(&wire);
}

struct last_words {
    struct wire *wire;
    char *memory; /* [LAST] */
    struct error error;
};
enum { LAST = 1 << 20 }; /* more than the reader's kernel takes at once */

static void read_late(void *argument) {
    struct last_words *last = argument;
    world_sleep(last->wire->world, 0.1);
    endpoint_receive(last->wire->near, "last words", last->memory, LAST, LONG_S, &last->error);
    endpoint_close(last->wire->near);
    last->wire->near = NULL;
}

/* The peer gets the last message though it had sent something that nobody read. */
static void test_finish(void) {
    struct wire wire;
    open_wire(&wire, "127.0.0.1");
    struct last_words last = {.wire = &wire, .memory = random_bytes(LAST, 2)};
    char *sent = random_bytes(LAST, 3);
    const struct piece unread = {sent, 1 << 16}, words = {sent, LAST};
    CHECK(endpoint_send(wire.near, "much", &unread, 1, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    struct world_thread *thread = kind == OVER_UCX ? spawn(wire.world, read_late, &last) : NULL;
    CHECK(endpoint_send(wire.far, "last words", &words, 1, LONG_S, &wire.error) == OK, "%s",
          wire.error.words);
    if (!thread) thread = spawn(wire.world, read_late, &last); /* UCX holds less than a kernel */
    endpoint_finish(wire.far, LONG_S);
    endpoint_close(wire.far);
    wire.far = NULL;
    world_join(thread);
    CHECK(last.error.code == OK && memcmp(last.memory, sent, LAST) == 0, "%s", last.error.words);
    memory_free(last.memory);
    memory_free(sent);
    close_wire(&wire);
}

/* --- woken from outside --- */

struct waiter {
    struct wire *wire;
    struct error error;
    double ended;
};

static void wait_for_bytes(void *argument) {
    struct waiter *waiter = argument;
    char byte;
    endpoint_receive(waiter->wire->near, "a reply", &byte, 1, INFINITY, &waiter->error);
    waiter->ended = world_now(waiter->wire->world);
}

static void wait_for_room(void *argument) {
    struct waiter *waiter = argument;
    char *big = random_bytes(BIG, 1);
    const struct piece all = {big, BIG};
    endpoint_send(waiter->wire->far, "a gradient", &all, 1, INFINITY, &waiter->error);
    waiter->ended = world_now(waiter->wire->world);
    memory_free(big);
}

static void wait_for_guest(void *argument) {
    struct waiter *waiter = argument;
    struct endpoint *guest;
    listener_accept(waiter->wire->listener, &guest, INFINITY, &waiter->error);
    waiter->ended = world_now(waiter->wire->world);
}

static void wait_for_host(void *argument) {
    struct waiter *waiter = argument;
    struct endpoint *endpoint;
    endpoint_connect(waiter->wire->world, "127.0.0.1:1", &endpoint, INFINITY, &waiter->error);
    waiter->ended = world_now(waiter->wire->world);
}

static void test_woken(world_body *body, bool interrupted, const char *words) {
    struct wire wire;
    open_wire(&wire, "127.0.0.1");
    struct waiter waiter = {.wire = &wire};
    struct world_thread *thread = spawn(wire.world, body, &waiter);
    world_sleep(wire.world, 0.1);
    const double begin = world_now(wire.world);
    if (interrupted)
        endpoint_interrupt(body == wait_for_bytes ? wire.near : wire.far);
    else
        world_stop(wire.world);
    const bool ended = world_join_within(thread, LONG_S);
    CHECK(ended, "%s: still waiting", words);
    if (!ended) exit(check_end());
    expect(&waiter.error, ERROR_PEER, words);
    CHECK(waiter.ended >= begin && waiter.ended - begin < 5.0, "woken after %g s", waiter.ended - begin);
    close_wire(&wire);
}

/* What can move at once still does in a stopped world. */
static void test_stopped(void) {
    struct wire wire;
    char bytes[4];
    open_wire(&wire, "127.0.0.1");
    const struct piece words = {"last", 4};
    world_stop(wire.world);
    CHECK(endpoint_send(wire.near, "last words", &words, 1, LONG_S, &wire.error) == OK, "%s",
          wire.error.words);
    CHECK(endpoint_receive(wire.far, "last words", bytes, 4, LONG_S, &wire.error) == OK, "%s",
          wire.error.words);
    endpoint_receive(wire.far, "more", bytes, 4, LONG_S, &wire.error);
    expect(&wire.error, ERROR_PEER, ": stopped while waiting (0 of 4 bytes of more were received)");
    close_wire(&wire);
}

/* --- beginning --- */

static void expect_no_listener(struct world *world, const char *address, int code, const char *words) {
    struct listener *listener;
    struct error error = {0};
    CHECK(endpoint_listen(world, address, &listener, &error) == code && !listener, "%s", address);
    expect(&error, code, words);
}

static void expect_no_endpoint(struct world *world, const char *address, int code, const char *words) {
    struct endpoint *endpoint;
    struct error error = {0};
    CHECK(endpoint_connect(world, address, &endpoint, SHORT_S, &error) == code && !endpoint, "%s", address);
    expect(&error, code, words);
}

static void test_addresses(void) {
    struct wire wire;
    char taken[32], longest[400];
    open_wire(&wire, "127.0.0.1");
    struct world *world = wire.world;
    expect_no_listener(world, "localhost", ERROR_USAGE, "address \"localhost\": expected host:port");
    expect_no_listener(world, "localhost:", ERROR_USAGE, "expected host:port");
    expect_no_listener(world, "localhost:65536", ERROR_USAGE, "a port up to 65535");
    expect_no_listener(world, "localhost:-1", ERROR_USAGE, "expected host:port");
    expect_no_listener(world, "::1:80", ERROR_USAGE, "an IPv6 address is written [address]:port");
    if (!simulation) { /* where any machine has any address, and names are looked up as here */
        expect_no_listener(world, "no-such-host.invalid:0", ERROR_USAGE,
                           "host 'no-such-host.invalid' does not resolve: ");
        expect_no_listener(world, "192.0.2.1:0", ERROR_DEVICE, "cannot listen on 192.0.2.1:0: ");
        expect_no_endpoint(world, "no-such-host.invalid:80", ERROR_PEER,
                           "not connected after 0.05 s: host 'no-such-host.invalid' does not resolve (");
    }
    snprintf(taken, sizeof taken, "port %d is in use", listener_port(wire.listener));
    expect_no_listener(world, wire.address, ERROR_DEVICE, taken);
    memset(longest, 'x', sizeof longest);
    memcpy(longest + sizeof longest - 4, ":80", 4);
    expect_no_listener(world, longest, ERROR_USAGE, "a host's name has at most 255 bytes");
    expect_no_endpoint(world, ":80", ERROR_USAGE, "a host and a port from 1 are needed");
    expect_no_endpoint(world, "localhost:0", ERROR_USAGE, "a host and a port from 1 are needed");
    expect_no_endpoint(world, "127.0.0.1:1", ERROR_PEER,
                       "127.0.0.1:1: not connected after 0.05 s: Connection refused");
    close_wire(&wire);
    listener_close(NULL);
    endpoint_close(NULL);
}

static void test_nobody_comes(void) {
    struct wire wire;
    struct endpoint *guest;
    open_wire(&wire, "127.0.0.1");
    const double begin = world_now(wire.world);
    CHECK(listener_accept(wire.listener, &guest, SHORT_S, &wire.error) == OK && !guest, "%s",
          wire.error.words);
    CHECK(world_now(wire.world) - begin >= SHORT_S - 1e-9, "gave up too early");
    CHECK(listener_accept(wire.listener, &guest, 0.0, &wire.error) == OK && !guest, "%s", wire.error.words);
    close_wire(&wire);
}

struct early {
    struct world *world;
    char address[32];
    struct endpoint *endpoint;
    struct error error;
};

static void connect_early(void *argument) {
    struct early *early = argument;
    endpoint_connect(early->world, early->address, &early->endpoint, LONG_S, &early->error);
}

/* A worker that is there before its host, whose name may have other addresses where nobody listens. */
static void test_refused_then_there(void) {
    struct early early = {.world = open_world()};
    char address[32];
    struct listener *listener;
    struct endpoint *guest = NULL;
    CHECK(endpoint_listen(early.world, "127.0.0.1:0", &listener, &early.error) == OK, "%s",
          early.error.words);
    snprintf(early.address, sizeof early.address, "localhost:%d", listener_port(listener));
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    listener_close(listener);
    struct world_thread *thread = spawn(early.world, connect_early, &early);
    world_sleep(early.world, 0.2);
    struct error error = {0};
    CHECK(endpoint_listen(early.world, address, &listener, &error) == OK, "%s", error.words);
    CHECK(listener_accept(listener, &guest, LONG_S, &error) == OK && guest, "%s", error.words);
    world_join(thread);
    CHECK(early.error.code == OK && early.endpoint, "%s", early.error.words);
    endpoint_close(guest);
    endpoint_close(early.endpoint);
    listener_close(listener);
    world_close(early.world);
}

static bool has_ipv6(void) {
    struct world *world = open_world();
    struct listener *listener;
    struct error error = {0};
    const bool has = endpoint_listen(world, "[::1]:0", &listener, &error) == OK;
    listener_close(listener);
    world_close(world);
    return has;
}

/* --- a kernel that does otherwise --- */

static const struct sockets *real; /* what those below stand before */
static int reasons[32], polls, most_waits;

/* Gives the reasons one after the other, the last one first, before anybody comes. */
static int accept_badly(struct world *world, int socket, struct sockaddr_storage *peer) {
    for (int i = 31; i >= 0; i--)
        if (reasons[i]) {
            errno = reasons[i];
            reasons[i] = 0;
            return -1;
        }
    return real->accept(world, socket, peer);
}

static void poll_counted(struct world *world, struct pollfd *waits, int count, double seconds) {
    polls++;
    if (count > most_waits) most_waits = count;
    real->poll(world, waits, count, seconds);
}

static struct world_kind stand_before(struct world *world, struct sockets *sockets) {
    struct world_kind own = *world->kind;
    real = own.sockets;
    *sockets = *real;
    sockets->accept = accept_badly;
    sockets->poll = poll_counted;
    own.sockets = sockets;
    return own;
}

/* What a guest's connection ended with is no reason to end; what the host itself has is. */
static void test_accept(void) {
    static const int passing[] = {ENETDOWN, EPROTO,      ENOPROTOOPT, EHOSTDOWN,    ENONET, EHOSTUNREACH,
                                  EPERM,    ENETUNREACH, EOPNOTSUPP,  ECONNABORTED, EINTR};
    struct wire wire;
    struct sockets sockets;
    struct endpoint *near = NULL, *far = NULL;
    open_wire(&wire, "127.0.0.1");
    const struct world_kind own = stand_before(wire.world, &sockets);
    const struct world_kind *const before = wire.world->kind;
    wire.world->kind = &own;
    memcpy(reasons, passing, sizeof passing);
    if (simulation) reasons[0] = 0; /* there it is the machine's own */
    CHECK(endpoint_connect(wire.world, wire.address, &near, LONG_S, &wire.error) == OK &&
              listener_accept(wire.listener, &far, LONG_S, &wire.error) == OK && far,
          "%s", wire.error.words);
    endpoint_close(far);
    for (int i = 0; i < 2; i++) {
        reasons[0] = i ? EMFILE : simulation ? ENETDOWN : EBADF;
        CHECK(kind == SHARED ||
                  listener_accept(wire.listener, &far, SHORT_S, &wire.error) == (i ? OK : ERROR_DEVICE),
              "%d: %s", i, wire.error.words);
        CHECK(kind == SHARED || listener_is_crowded(wire.listener) == (i == 1), "%d", i);
    }
    wire.world->kind = before;
    endpoint_close(near);
    close_wire(&wire);
}

/* A process that may have fewer descriptors than it waits for waits all the same, and does not spin. */
static void test_poll_limit(void) {
    struct wire wire;
    struct sockets sockets;
    struct rlimit limit;
    char *big = random_bytes(BIG, 1), byte;
    const struct piece all = {big, BIG};
    open_wire(&wire, "127.0.0.1");
    const struct world_kind own = stand_before(wire.world, &sockets);
    const struct world_kind *const before = wire.world->kind;
    wire.world->kind = &own;
    bool ended;
    endpoint_peek(wire.far, &byte, 1, 0.0, &ended); /* takes what comes in descriptors */
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0, "the limit");
    struct transfer both = {.endpoint = wire.near,
                            .sends = "bytes",
                            .pieces = &all,
                            .piece_count = 1,
                            .awaits = "a byte",
                            .buffer = &byte,
                            .bytes = 1};
    const struct rlimit none = {.rlim_max = limit.rlim_max};
    polls = most_waits = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0, "the limit");
    CHECK(endpoints_exchange(&both, 1, 0.2, &wire.error) == ERROR_PEER, "nobody reads");
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "the limit");
    CHECK(most_waits == (kind == SHARED ? 2 : 1), "%d waits for one connection", most_waits);
    CHECK(polls < 200, "%d times in 0.2 s", polls);
    wire.world->kind = before;
    memory_free(big);
    close_wire(&wire);
}

/* The kernel finds out by itself when the other machine has lost its power. */
static void test_keepalive(void) {
    struct wire wire;
    open_wire(&wire, "127.0.0.1");
    for (int i = 0; i < 2; i++) {
        const int socket = i ? wire.far->socket : wire.near->socket;
        int asks = 0, idle_s = 0, again_s = 0, times = 0;
        socklen_t length = sizeof asks;
        CHECK(getsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &asks, &length) == 0 && asks, "side %d", i);
        CHECK(getsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, &length) == 0 &&
                  getsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &again_s, &length) == 0 &&
                  getsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &times, &length) == 0,
              "side %d", i);
        CHECK(idle_s + times * again_s == 60, "noticed after %d s", idle_s + times * again_s);
    }
    close_wire(&wire);
}

/* --- who comes from where --- */

static struct endpoint *come_from(struct world *world, struct listener *listener, const char *host,
                                  struct endpoint **near) {
    char address[64];
    struct endpoint *far = NULL;
    struct error error = {0};
    snprintf(address, sizeof address, "%s:%d", host, listener_port(listener));
    CHECK(endpoint_connect(world, address, near, LONG_S, &error) == OK &&
              listener_accept(listener, &far, LONG_S, &error) == OK && far,
          "%s: %s", host, error.words);
    return far;
}

/* In the simulation, where whoever connects to an address comes from it. */
static void test_sources(void) {
    static const struct {
        const char *one, *other;
        bool same;
    } cases[] = {{"10.0.0.1", "10.0.0.1", true},
                 {"10.0.0.1", "10.0.0.2", false},
                 {"[2001:db8::1]", "[2001:db8::1]", true},
                 {"[2001:db8::1]", "[2001:db8::ffff:ffff:ffff:ffff]", true},
                 {"[2001:db8::1]", "[2001:db8:0:1::1]", false},
                 {"[::ffff:10.0.0.1]", "10.0.0.1", true},
                 {"[::ffff:10.0.0.1]", "[::ffff:10.0.0.2]", false},
                 {"10.0.0.1", "[2001:db8::1]", false}};
    struct world *world = open_world();
    struct listener *listener = NULL;
    struct error error = {0};
    endpoint_allow_clear(world);
    CHECK(endpoint_listen(world, "[::]:0", &listener, &error) == OK, "%s", error.words);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct endpoint *near[2] = {0};
        struct endpoint *const far[] = {come_from(world, listener, cases[i].one, &near[0]),
                                        come_from(world, listener, cases[i].other, &near[1])};
        CHECK(endpoint_same_source(far[0], far[1]) == cases[i].same &&
                  endpoint_same_source(far[1], far[0]) == cases[i].same,
              "%s, %s", cases[i].one, cases[i].other);
        for (int side = 0; side < 2; side++) {
            endpoint_close(near[side]);
            endpoint_close(far[side]);
        }
    }
    listener_close(listener);
    world_close(world);
}

/* Who shares memory is one source, and not that of 127.0.0.1. */
static void test_shared_source(void) {
    struct wire wires[2];
    struct endpoint *near = NULL, *far = NULL;
    struct world *clear = NULL;
    for (int i = 0; i < 2; i++) open_wire(&wires[i], "127.0.0.1");
    CHECK(world_open_threads(&clear, &wires[0].error) == OK, "%s", wires[0].error.words);
    endpoint_keep_to_tcp(clear);
    CHECK(endpoint_same_source(wires[0].far, wires[1].far), "two that share memory");
    CHECK(endpoint_connect(clear, wires[0].address, &near, LONG_S, &wires[0].error) == OK &&
              listener_accept(wires[0].listener, &far, LONG_S, &wires[0].error) == OK && far,
          "%s", wires[0].error.words);
    CHECK(!endpoint_same_source(wires[0].far, far) && !endpoint_same_source(far, wires[0].far), "over TCP");
    endpoint_close(near);
    endpoint_close(far);
    world_close(clear);
    for (int i = 0; i < 2; i++) close_wire(&wires[i]);
}

/* Two threads at each end, one of which sends while the other one receives. */
struct half {
    struct endpoint *endpoint;
    char *memory; /* [BIG] */
    struct error error;
};

static void send_big(void *argument) {
    struct half *half = argument;
    const struct piece all = {half->memory, BIG};
    endpoint_send(half->endpoint, "bytes", &all, 1, LONG_S, &half->error);
}

static void receive_big(void *argument) {
    struct half *half = argument;
    endpoint_receive(half->endpoint, "bytes", half->memory, BIG, LONG_S, &half->error);
}

static void test_two_threads(void) {
    struct wire wire;
    struct world_thread *threads[4];
    open_wire(&wire, "127.0.0.1");
    struct half halves[4] = {
        {.endpoint = wire.near}, {.endpoint = wire.far}, {.endpoint = wire.far}, {.endpoint = wire.near}};
    for (int i = 0; i < 4; i++) halves[i].memory = random_bytes(BIG, 50 + (uint64_t)i);
    for (int i = 0; i < 4; i++) threads[i] = spawn(wire.world, i % 2 ? receive_big : send_big, &halves[i]);
    for (int i = 0; i < 4; i++) world_join(threads[i]);
    for (int i = 0; i < 4; i++) CHECK(halves[i].error.code == OK, "%s", halves[i].error.words);
    for (int i = 0; i < 4; i += 2)
        CHECK(memcmp(halves[i].memory, halves[i + 1].memory, BIG) == 0, "way %d: other bytes", i / 2);
    for (int i = 0; i < 4; i++) memory_free(halves[i].memory);
    close_wire(&wire);
}

static void test_all(void) {
    test_bytes("127.0.0.1");
    test_bytes("");
    if (has_ipv6()) test_bytes("[::1]");
    test_peek();
    test_exchange();
    test_two_threads();
    test_meanwhile();
    test_silence();
    if (simulation) test_drip(1, "bytes of weights, and no more of it in 0.4 s");
    if (simulation) test_drip(ENDPOINT_LIFE_BYTES, NULL);
    test_close();
    test_finish();
    test_woken(wait_for_bytes, false, ": stopped while waiting (0 of 1 bytes of a reply were received)");
    test_woken(wait_for_room, false, " of 12582912 bytes of a gradient were sent)");
    test_woken(wait_for_guest, false, ": stopped while waiting for connections");
    test_woken(wait_for_host, false, "127.0.0.1:1: stopped while connecting");
    test_woken(wait_for_bytes, true, ": the connection was ended on this side (0 of 1 bytes");
    test_woken(wait_for_room, true, ": the connection was ended on this side (");
    test_stopped();
    test_addresses();
    test_nobody_comes();
    test_refused_then_there();
    test_accept();
    if (simulation)
        test_sources();
    else if (kind != OVER_UCX) /* a thread of UCX needs descriptors, too */
        test_poll_limit();
    if (!simulation && kind == SHARED)
        test_shared_source();
    else if (!simulation)
        test_keepalive();
}

#endif
