/* The encrypted link: what a stranger sees and can do. Between the two sides there is a neighbour, a relay
 * that reads what passes, and may change it. Without OpenSSL: that a key is refused with words. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../src/base/memory.h"
#include "../../src/base/rng.h"
#include "../../src/world/endpoint.h"
#include "../../src/world/simulated_network.h"
#include "../../src/world/world_kind.h"
#include "../check.h"

#define LONG_S 20.0

static const uint8_t keys[2][ENDPOINT_KEY_BYTES] = {"a key of thirty-two bytes, as is",
                                                    "another key, and as long as that"};

static void expect(const struct error *error, int code, const char *words) {
    CHECK(error->code == code && strstr(error->words, words), "%d \"%s\", expected %d \"%s\"", error->code,
          error->words, code, words);
}

/* key: NULL: in clear. */
static struct world *open_world(const uint8_t *key) {
    struct world *world = NULL;
    struct error error = {0};
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    if (key) CHECK(endpoint_encrypt(world, key, &error) == OK, "%s", error.words);
    return world;
}

/* --- who is to have a key --- */

static void test_reach(void) {
    static const struct {
        const char *address;
        bool here;
    } cases[] = {{"127.0.0.1:0", true}, {"localhost:0", true}, {"0.0.0.0:0", false}, {":0", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int allowed = 0; allowed < 2; allowed++) {
            struct world *world = open_world(NULL);
            struct listener *listener = NULL;
            struct error error = {0};
            if (allowed) endpoint_allow_clear(world);
            const int code = endpoint_listen(world, cases[i].address, &listener, &error);
            CHECK(code == (cases[i].here || allowed ? OK : ERROR_USAGE), "%s: %d %s", cases[i].address, code,
                  error.words);
            if (code != OK) expect(&error, ERROR_USAGE, "expected --secret-file=FILE");
            listener_close(listener);
            world_close(world);
        }
    /* Nothing is sent there: it is refused before a connection is tried. */
    struct world *world = open_world(NULL);
    struct endpoint *endpoint = NULL;
    struct error error = {0};
    const double began = world_now(world);
    CHECK(endpoint_connect(world, "192.0.2.1:2222", &endpoint, LONG_S, &error) == ERROR_USAGE, "%s",
          error.words);
    expect(&error, ERROR_USAGE, "192.0.2.1:2222 is not an address of this machine alone");
    CHECK(world_now(world) - began < LONG_S / 2, "it was tried");
    world_close(world);
}

#if TRAINER_TLS

#    include <openssl/crypto.h>

/* --- a message goes from a near side through the relay to a far one --- */

enum { PLAIN = 1 << 16 };

struct trip {
    const uint8_t *near_key, *far_key; /* NULL: in clear */
    double timeout_s;
    long flipped; /* the neighbour turns this bit of all that goes to the far side; -1: none */
    /* What came of it. */
    bool arrived, seen; /* as it was sent; by the neighbour */
    struct error near_error, far_error;
};

struct relay {
    struct trip *trip;
    const uint8_t *plain; /* [PLAIN] */
    int listens, port, to;
    uint8_t *passed; /* [2 * PLAIN] what went towards the far side */
    size_t count;
};

static int dial(int port) {
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int end = socket(AF_INET, SOCK_STREAM, 0);
    return connect(end, (const struct sockaddr *)&at, sizeof at) == 0 ? end : -1;
}

static bool pass_on(struct relay *relay, int from, int to, bool forth) {
    uint8_t bytes[4096];
    const ssize_t found = recv(from, bytes, sizeof bytes, 0);
    if (found <= 0) return false;
    const long first = (long)relay->count, byte = relay->trip->flipped / 8;
    if (forth && relay->trip->flipped >= 0 && byte >= first && byte < first + found)
        bytes[byte - first] ^= (uint8_t)(1 << relay->trip->flipped % 8);
    if (forth && relay->count + (size_t)found <= 2 * PLAIN) {
        memcpy(relay->passed + relay->count, bytes, (size_t)found);
        relay->count += (size_t)found;
    }
    return send(to, bytes, (size_t)found, MSG_NOSIGNAL) == found;
}

static void relay_body(void *argument) {
    struct relay *relay = argument;
    struct pollfd ends[2] = {{.events = POLLIN}, {.events = POLLIN}};
    ends[0].fd = accept(relay->listens, NULL, NULL);
    ends[1].fd = dial(relay->to);
    bool open = ends[1].fd >= 0;
    while (open && poll(ends, 2, (int)(1e3 * LONG_S)) > 0)
        for (int i = 0; i < 2 && open; i++)
            if (ends[i].revents) open = pass_on(relay, ends[i].fd, ends[1 - i].fd, i == 0);
    close(ends[0].fd);
    close(ends[1].fd);
}

static struct world_thread *open_relay(struct relay *relay, struct world *world, int to) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof at;
    struct world_thread *thread = NULL;
    struct error error = {0};
    relay->to = to;
    relay->listens = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(relay->listens, (struct sockaddr *)&at, sizeof at) == 0 && listen(relay->listens, 4) == 0 &&
              getsockname(relay->listens, (struct sockaddr *)&at, &length) == 0,
          "a relay");
    relay->port = ntohs(at.sin_port);
    CHECK(memory_array(&relay->passed, 2 * PLAIN, "what passed", &error) == OK, "%s", error.words);
    CHECK(world_spawn(world, "relay", NULL, relay_body, relay, &thread, &error) == OK, "%s", error.words);
    return thread;
}

struct far {
    struct trip *trip;
    const uint8_t *plain; /* [PLAIN] */
    struct endpoint *endpoint;
};

static void far_body(void *argument) {
    struct far *far = argument;
    uint8_t *got = NULL;
    struct error *error = &far->trip->far_error;
    if (memory_array(&got, PLAIN, "what arrives", error) == OK)
        endpoint_receive(far->endpoint, "weights", got, PLAIN, far->trip->timeout_s, error);
    far->trip->arrived = error->code == OK && memcmp(got, far->plain, PLAIN) == 0;
    endpoint_finish(far->endpoint, 0.1);
    endpoint_interrupt(far->endpoint);
    memory_free(got);
}

/* The far side answers nothing, so what the near one hears is why it ends. */
static void send_near(struct trip *trip, struct endpoint *near, const uint8_t *plain) {
    const struct piece piece = {plain, PLAIN};
    char bytes[64];
    if (endpoint_send(near, "weights", &piece, 1, trip->timeout_s, &trip->near_error) == OK)
        endpoint_receive(near, "an answer", bytes, sizeof bytes, trip->timeout_s, &trip->near_error);
    endpoint_interrupt(near);
}

static void travel(struct trip *trip, const uint8_t *plain) {
    struct world *near_world = open_world(trip->near_key), *far_world = open_world(trip->far_key);
    struct relay relay = {.trip = trip, .plain = plain};
    struct far far = {.trip = trip, .plain = plain};
    struct listener *listener = NULL;
    struct endpoint *near = NULL;
    struct world_thread *thread = NULL;
    struct error error = {0};
    char address[40];
    CHECK(endpoint_listen(far_world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
    struct world_thread *between = open_relay(&relay, near_world, listener_port(listener));
    snprintf(address, sizeof address, "127.0.0.1:%d", relay.port);
    CHECK(endpoint_connect(near_world, address, &near, LONG_S, &error) == OK, "%s", error.words);
    CHECK(listener_accept(listener, &far.endpoint, LONG_S, &error) == OK && far.endpoint, "%s", error.words);
    if (!near || !far.endpoint) exit(check_end());
    CHECK(world_spawn(far_world, "far", NULL, far_body, &far, &thread, &error) == OK, "%s", error.words);
    send_near(trip, near, plain);
    world_join(thread);
    endpoint_close(near);
    endpoint_close(far.endpoint);
    world_join(between);
    trip->seen = memmem(relay.passed, relay.count, plain, 64) != NULL;
    close(relay.listens);
    memory_free(relay.passed);
    listener_close(listener);
    world_close(near_world);
    world_close(far_world);
}

static void test_seen(const uint8_t *plain) {
    struct trip clear = {.timeout_s = LONG_S, .flipped = -1};
    struct trip hidden = {.near_key = keys[0], .far_key = keys[0], .timeout_s = LONG_S, .flipped = -1};
    travel(&clear, plain);
    CHECK(clear.arrived && clear.seen, "in clear: %s", clear.far_error.words);
    travel(&hidden, plain);
    CHECK(hidden.arrived && !hidden.seen, "with a key: %s", hidden.far_error.words);
}

/* A bit that changes on the way is an error, wherever it is: in the handshake or in a record. One that makes
 * a record longer is noticed when nothing more comes. */
static void test_flipped(const uint8_t *plain) {
    for (long bit = 0; bit < 8 * 1200; bit += 61) {
        struct trip trip = {.near_key = keys[0], .far_key = keys[0], .timeout_s = 0.3, .flipped = bit};
        travel(&trip, plain);
        CHECK(!trip.arrived && trip.far_error.code == ERROR_PEER, "bit %ld: %s", bit, trip.far_error.words);
    }
}

/* --- one bit, later --- */

enum { RECORD = 5 + (16 << 10) + 1 + 16 }; /* with its header, its type and its tag */
static const struct sockets *real;
static long until_flipped; /* bytes */

static ssize_t receive_flipped(struct world *world, int socket, void *buffer, size_t bytes) {
    const ssize_t found = real->receive(world, socket, buffer, bytes);
    if (found > until_flipped && until_flipped >= 0) ((uint8_t *)buffer)[until_flipped] ^= 1;
    if (found > 0) until_flipped -= found;
    return found;
}

/* The third record of a message that is there as a whole: after the handshake both sides say what it was, and
 * what came before is received. */
static void test_third_record(const uint8_t *plain) {
    struct world *near_world = open_world(keys[0]), *far_world = open_world(keys[0]);
    struct listener *listener = NULL;
    struct endpoint *near = NULL, *far = NULL;
    struct error error = {0};
    const struct piece piece = {plain, PLAIN};
    static uint8_t got[PLAIN];
    char address[40];
    bool ended;
    CHECK(endpoint_listen(far_world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(near_world, address, &near, LONG_S, &error) == OK &&
              listener_accept(listener, &far, LONG_S, &error) == OK && far,
          "%s", error.words);
    for (int i = 0; i < 100; i++) {
        endpoint_peek(near, got, 1, 0.0, &ended);
        endpoint_peek(far, got, 1, 0.0, &ended);
    }
    CHECK(endpoint_send(near, "weights", &piece, 1, LONG_S, &error) == OK, "%s", error.words);
    struct world_kind own = *far_world->kind;
    const struct world_kind *const before = far_world->kind;
    struct sockets sockets = *own.sockets;
    real = own.sockets;
    sockets.receive = receive_flipped;
    own.sockets = &sockets;
    until_flipped = 2 * RECORD + 1000;
    far_world->kind = &own;
    endpoint_receive(far, "weights", got, PLAIN, LONG_S, &error);
    far_world->kind = before;
    expect(
        &error, ERROR_PEER,
        ": what came is not what was encrypted (decryption failed or bad record mac) (32768 of 65536 bytes "
        "of weights were received)");
    CHECK(memcmp(got, plain, 32768) == 0, "the first two records");
    error = (struct error){0};
    endpoint_receive(near, "an answer", got, 64, LONG_S, &error);
    expect(&error, ERROR_PEER,
           ": says that what came there is not what was encrypted here (0 of 64 bytes of an answer were "
           "received)");
    endpoint_close(near);
    endpoint_close(far);
    listener_close(listener);
    world_close(near_world);
    world_close(far_world);
}

static void test_keys(const uint8_t *plain) {
    static const struct {
        const uint8_t *near_key, *far_key;
        const char *near_words, *far_words;
    } cases[] = {{keys[1], keys[0], "does not accept the key that is used here",
                  "does not hold the key that is used here"},
                 {NULL, keys[0], "the connection was closed by the peer", "speaks without encryption"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trip trip = {
            .near_key = cases[i].near_key, .far_key = cases[i].far_key, .timeout_s = LONG_S, .flipped = -1};
        travel(&trip, plain);
        CHECK(!trip.arrived, "case %zu", i);
        expect(&trip.near_error, ERROR_PEER, cases[i].near_words);
        expect(&trip.far_error, ERROR_PEER, cases[i].far_words);
    }
}

/* One who expects encryption, and finds somebody who speaks in clear. */
static void test_clear_answer(void) {
    struct world *near_world = open_world(keys[0]), *far_world = open_world(NULL);
    struct listener *listener = NULL;
    struct endpoint *near = NULL, *far = NULL;
    struct error error = {0};
    char address[40], byte;
    bool ended;
    CHECK(endpoint_listen(far_world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(near_world, address, &near, LONG_S, &error) == OK, "%s", error.words);
    CHECK(listener_accept(listener, &far, LONG_S, &error) == OK && far, "%s", error.words);
    endpoint_peek(near, &byte, 1, 0.0, &ended);
    const struct piece piece = {"TRNR, and what a host says in clear", 36};
    CHECK(endpoint_send(far, "a word", &piece, 1, LONG_S, &error) == OK, "%s", error.words);
    endpoint_receive(near, "a welcome", &byte, 1, LONG_S, &error);
    expect(&error, ERROR_PEER, "speaks without encryption, expected the key that is used here");
    endpoint_close(near);
    endpoint_close(far);
    listener_close(listener);
    world_close(near_world);
    world_close(far_world);
}

/* --- one who sends much takes new keys on the way --- */

enum { MUCH = 70 << 20 };

static void send_much(void *argument) {
    struct far *far = argument;
    const struct piece piece = {far->plain, MUCH};
    endpoint_send(far->endpoint, "weights", &piece, 1, LONG_S, &far->trip->far_error);
}

static void test_much(void) {
    struct world *world = open_world(keys[0]);
    struct listener *listener = NULL;
    struct endpoint *near = NULL;
    struct world_thread *thread = NULL;
    struct trip trip = {0};
    struct far far = {.trip = &trip};
    struct error error = {0};
    uint8_t *sent = NULL, *got = NULL;
    char address[40];
    CHECK(memory_array(&sent, MUCH, "weights", &error) == OK &&
              memory_array(&got, MUCH, "weights", &error) == OK,
          "%s", error.words);
    for (size_t i = 0; i < MUCH; i += 4096) memcpy(sent + i, &i, sizeof i);
    far.plain = sent;
    CHECK(endpoint_listen(world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(world, address, &near, LONG_S, &error) == OK, "%s", error.words);
    CHECK(listener_accept(listener, &far.endpoint, LONG_S, &error) == OK && far.endpoint, "%s", error.words);
    CHECK(world_spawn(world, "far", NULL, send_much, &far, &thread, &error) == OK, "%s", error.words);
    CHECK(endpoint_receive(near, "weights", got, MUCH, LONG_S, &error) == OK, "%s", error.words);
    world_join(thread);
    CHECK(trip.far_error.code == OK && memcmp(got, sent, MUCH) == 0, "%s", trip.far_error.words);
    endpoint_close(near);
    endpoint_close(far.endpoint);
    listener_close(listener);
    world_close(world);
    memory_free(sent);
    memory_free(got);
}

/* --- a stranger for whom there is no memory --- */

static atomic_bool no_memory;

static void *take(size_t bytes, const char *file, int line) {
    (void)file, (void)line;
    return atomic_load(&no_memory) ? NULL : malloc(bytes);
}

static void *take_more(void *memory, size_t bytes, const char *file, int line) {
    (void)file, (void)line;
    return atomic_load(&no_memory) ? NULL : realloc(memory, bytes);
}

static void give(void *memory, const char *file, int line) {
    (void)file, (void)line;
    free(memory);
}

/* It is not let in, and the host goes on: the next one is. */
static void test_no_memory(void) {
    struct world *world = open_world(keys[0]);
    struct listener *listener = NULL;
    struct endpoint *near[2] = {0}, *far = NULL;
    struct error error = {0};
    char address[40];
    CHECK(endpoint_listen(world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    for (int i = 0; i < 2; i++) {
        CHECK(endpoint_connect(world, address, &near[i], LONG_S, &error) == OK, "%s", error.words);
        atomic_store(&no_memory, i == 0);
        const int code = listener_accept(listener, &far, LONG_S, &error);
        atomic_store(&no_memory, false);
        CHECK(code == OK && (far != NULL) == (i == 1) && listener_is_crowded(listener) == (i == 0), "%d: %s",
              i, error.words);
    }
    endpoint_close(near[0]);
    endpoint_close(near[1]);
    endpoint_close(far);
    listener_close(listener);
    world_close(world);
}

/* --- one that sends and receives at once from the beginning, in the simulation --- */

struct talk {
    struct endpoint *endpoint;
    struct error error;
};

static void say_word(void *argument) {
    struct talk *talk = argument;
    const struct piece piece = {"a word", 6};
    endpoint_send(talk->endpoint, "a word", &piece, 1, LONG_S, &talk->error);
}

static void hear_word(void *argument) {
    struct talk *talk = argument;
    char word[6];
    endpoint_receive(talk->endpoint, "a word", word, sizeof word, LONG_S, &talk->error);
}

static void answer_word(void *argument) {
    hear_word(argument);
    say_word(argument);
}

/* Of the two threads one finds the last byte of the handshake; the other has waited for that byte, too, and
 * goes on. Bytes are under way for 1 ms. */
static void test_both_at_once(uint64_t seed) {
    static world_body *const bodies[] = {say_word, hear_word, answer_word};
    struct world *world = NULL, *far_world = NULL;
    struct listener *listener = NULL;
    struct endpoint *near = NULL, *far = NULL;
    struct world_thread *threads[3] = {0};
    struct error error = {0};
    char address[40];
    CHECK(world_open_simulated(&world, seed, &error) == OK &&
              simulated_open_machine(&far_world, world, &error) == OK &&
              endpoint_encrypt(world, keys[0], &error) == OK &&
              endpoint_encrypt(far_world, keys[0], &error) == OK &&
              endpoint_listen(far_world, "127.0.0.1:0", &listener, &error) == OK,
          "%s", error.words);
    simulated_set_network(world, &(struct simulated_network){.latency_s = 1e-3});
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(world, address, &near, LONG_S, &error) == OK &&
              listener_accept(listener, &far, LONG_S, &error) == OK && far,
          "%s", error.words);
    struct talk talks[] = {{.endpoint = near}, {.endpoint = near}, {.endpoint = far}};
    const double began = world_now(world);
    for (int i = 0; i < 3; i++)
        CHECK(world_spawn(i < 2 ? world : far_world, "talk", NULL, bodies[i], &talks[i], &threads[i],
                          &error) == OK,
              "%s", error.words);
    for (int i = 0; i < 3; i++) {
        world_join(threads[i]);
        CHECK(talks[i].error.code == OK, "seed %d: %s", (int)seed, talks[i].error.words);
    }
    CHECK(world_now(world) - began < 0.02, "seed %d: it took %g s", (int)seed, world_now(world) - began);
    endpoint_close(near);
    endpoint_close(far);
    listener_close(listener);
    world_close(far_world);
    world_close(world);
}

/* --- messages that nobody waits for, on a line that is busy --- */

enum { HELD_MOST = 5 };

static void hear_held(void *argument) {
    struct talk *talk = argument;
    char word[6];
    for (int i = 0; i < HELD_MOST && talk->error.code == OK; i++)
        endpoint_receive(talk->endpoint, "a word", word, sizeof word, LONG_S, &talk->error);
}

/* 6 bytes, encrypted, take a while to leave. What has been encrypted meanwhile cannot be taken back: it
 * comes, also where the sender ends behind it. What could not be is sent again. */
static void test_held(void) {
    struct world *world = NULL, *far_world = NULL;
    struct listener *listener = NULL;
    struct endpoint *near = NULL, *far = NULL;
    struct world_thread *thread = NULL;
    struct error error = {0};
    const struct piece piece = {"a word", 6};
    char address[40];
    int refused = 0;
    CHECK(world_open_simulated(&world, 1, &error) == OK &&
              simulated_open_machine(&far_world, world, &error) == OK &&
              endpoint_encrypt(world, keys[0], &error) == OK &&
              endpoint_encrypt(far_world, keys[0], &error) == OK &&
              endpoint_listen(far_world, "127.0.0.1:0", &listener, &error) == OK,
          "%s", error.words);
    simulated_set_network(world, &(struct simulated_network){.bytes_per_s = 1e3});
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(world, address, &near, LONG_S, &error) == OK &&
              listener_accept(listener, &far, LONG_S, &error) == OK && far,
          "%s", error.words);
    struct talk talk = {.endpoint = far};
    CHECK(world_spawn(far_world, "talk", NULL, hear_held, &talk, &thread, &error) == OK &&
              endpoint_send(near, "a word", &piece, 1, LONG_S, &error) == OK,
          "%s", error.words);
    for (int sent = 1; sent < HELD_MOST && refused < 1000;) {
        struct error why = {0};
        const long long before = endpoint_sent(near);
        const int code = endpoint_send(near, "a word", &piece, 1, 0.0, &why);
        CHECK(endpoint_sent(near) - before == (code == OK ? 6 : 0), "%lld bytes, %s",
              endpoint_sent(near) - before, why.words);
        sent += code == OK;
        refused += code != OK;
        if (code != OK) expect(&why, ERROR_PEER, "took 0 of 6 bytes of a word");
        if (code != OK) world_sleep(world, 1e-3);
    }
    CHECK(refused > 0 && refused < 1000, "%d times refused", refused);
    endpoint_finish(near, LONG_S / 10.0);
    world_join(thread);
    CHECK(talk.error.code == OK, "%s", talk.error.words);
    endpoint_close(near);
    endpoint_close(far);
    listener_close(listener);
    world_close(far_world);
    world_close(world);
}

int main(void) {
    uint8_t *plain = NULL;
    struct error error = {0};
    CHECK(CRYPTO_set_mem_functions(take, take_more, give), "OpenSSL's memory");
    CHECK(memory_array(&plain, PLAIN, "a message", &error) == OK, "%s", error.words);
    for (size_t i = 0; i < PLAIN; i += 4) memcpy(plain + i, &rng_philox(1, 2, i).word[0], 4);
    test_reach();
    test_seen(plain);
    test_keys(plain);
    test_clear_answer();
    test_flipped(plain);
    test_third_record(plain);
    test_no_memory();
    for (uint64_t seed = 1; seed <= 20; seed++) test_both_at_once(seed);
    test_held();
    test_much();
    memory_free(plain);
    return check_end();
}

#else

int main(void) {
    struct world *world = open_world(NULL);
    struct error error = {0};
    test_reach();
    CHECK(endpoint_encrypt(world, keys[0], &error) == ERROR_USAGE, "%s", error.words);
    expect(&error, ERROR_USAGE, "this build cannot encrypt: install OpenSSL's headers (libssl-dev)");
    world_close(world);
    return check_end();
}
#endif
