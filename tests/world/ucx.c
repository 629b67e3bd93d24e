/* Endpoints over UCX: as it chooses on this machine, which is its shared memory, and over its TCP. And that
 * loading it leaves the signals of the program alone. */
#include "../endpoints.h"

#include <signal.h>

/* What a peer says of its counts over TCP, beside UCX: more than was sent (four and over_ucx.h's
 * one), or less than before. */
static void test_words(void) {
    static const uint64_t words[][2] = {{6, 6}, {5, 4}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct wire wire;
        char bytes[8] = "";
        const struct piece four = {"four", 4};
        open_wire(&wire, "127.0.0.1");
        CHECK(endpoint_send(wire.far, "four", &four, 1, LONG_S, &wire.error) == OK, "%s", wire.error.words);
        CHECK(send(wire.near->socket, words[i], sizeof words[i], 0) == sizeof words[i], "%zu", i);
        endpoint_receive(wire.far, "a reply", bytes, 1, LONG_S, &wire.error);
        expect(&wire.error, ERROR_PEER, ": its counts over TCP: ");
        close_wire(&wire);
    }
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { SIGNALS = sizeof signals / sizeof *signals };

static void get_handlers(void (*handlers[SIGNALS])(int)) {
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction action;
        CHECK(sigaction(signals[i], NULL, &action) == 0, "%d", signals[i]);
        handlers[i] = action.sa_handler;
    }
}

/* False: there is no UCX, for the reason that is printed. */
static bool is_here(void) {
    struct world *world = NULL;
    struct error error = {0};
    void (*before[SIGNALS])(int), (*after[SIGNALS])(int);
    get_handlers(before);
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    const bool here = ucx_use(world, true, &error) == OK;
    if (!here) printf("no UCX here: %s\n", error.words);
    get_handlers(after);
    CHECK(memcmp(before, after, sizeof before) == 0, "it catches signals");
    world_close(world);
    return here;
}

static void test_refusals(void) {
    struct error error = {0};
    struct world *world = NULL;
    CHECK(world_open_simulated(&world, 1, &error) == OK, "%s", error.words);
    CHECK(ucx_use(world, true, &error) == ERROR_USAGE, "%d", error.code);
    expect(&error, ERROR_USAGE, "a simulated network has no UCX");
    world_close(world);
}

int main(void) {
    static const char *const transports[] = {"all", "tcp"};
    if (!is_here()) return check_failures > 0 ? 1 : 77;
    kind = OVER_UCX;
    for (int i = 0; i < 2; i++) {
        CHECK(setenv("UCX_TLS", transports[i], 1) == 0, "%s", transports[i]);
        test_all();
        test_words();
    }
    test_refusals();
    return check_end();
}
