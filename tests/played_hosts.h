/* For the tests of hosts and of their workers: the other side of a real connection, which a test plays. */
#ifndef TRAINER_TESTS_PLAYED_HOSTS_H
#define TRAINER_TESTS_PLAYED_HOSTS_H

#include <stdlib.h>
#include "../src/bridge/lead.h"
#include "../src/bridge/remote.h"
#include "check.h"

#define LONG_S 20.0

enum { FLOATS = 64, CUT = 32 /* between the slices of two hosts */ };

static struct world *world;

static inline struct listener *open_listener(struct address *address) {
    struct listener *listener = NULL;
    struct error error = {0};
    CHECK(endpoint_listen(world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
    if (!listener) exit(check_end());
    snprintf(address->text, sizeof address->text, "127.0.0.1:%d", listener_port(listener));
    return listener;
}

static inline struct endpoint *let_in(struct listener *listener) {
    struct endpoint *endpoint = NULL;
    struct error error = {0};
    CHECK(listener_accept(listener, &endpoint, LONG_S, &error) == OK && endpoint, "%s", error.words);
    if (!endpoint) exit(check_end());
    return endpoint;
}

static inline void open_wire(struct endpoint *ends[2]) {
    struct address address;
    struct error error = {0};
    struct listener *listener = open_listener(&address);
    CHECK(endpoint_connect(world, address.text, &ends[0], LONG_S, &error) == OK, "%s", error.words);
    if (!ends[0]) exit(check_end());
    ends[1] = let_in(listener);
    listener_close(listener);
}

static inline void send_welcome(struct endpoint *endpoint, const struct welcome *welcome) {
    uint8_t bytes[WELCOME_BYTES];
    struct error error = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    CHECK(welcome_put(welcome, &writer, &error) == OK, "%s", error.words);
    const struct piece piece = {bytes, writer.used};
    CHECK(frame_write(endpoint, FRAME_WELCOME, 0, &piece, 1, LONG_S, &error) == OK, "%s", error.words);
}

#endif
