/* For the tests of the bridge: two endpoints of this process that are connected to each other. */
#ifndef TRAINER_TESTS_WIRE_H
#define TRAINER_TESTS_WIRE_H

#include <stdlib.h>
#include <string.h>
#include "../src/world/endpoint.h"
#include "check.h"

#define LONG_S 20.0 /* longer than anything here takes */

struct wire {
    struct world *world;
    struct endpoint *near, *far;
    struct error error;
};

static inline void open_wire(struct wire *wire) {
    struct error *error = &wire->error;
    struct listener *listener = NULL;
    char address[32];
    memset(wire, 0, sizeof *wire);
    CHECK(world_open_threads(&wire->world, error) == OK, "%s", error->words);
    endpoint_keep_to_tcp(wire->world); /* where frames have checksums */
    CHECK(endpoint_listen(wire->world, "127.0.0.1:0", &listener, error) == OK, "%s", error->words);
    if (!listener) exit(check_end());
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(wire->world, address, &wire->near, LONG_S, error) == OK, "%s", error->words);
    CHECK(listener_accept(listener, &wire->far, LONG_S, error) == OK, "%s", error->words);
    if (!wire->near || !wire->far) exit(check_end());
    listener_close(listener);
}

static inline void close_wire(struct wire *wire) {
    endpoint_close(wire->near);
    endpoint_close(wire->far);
    world_close(wire->world);
}

#endif
