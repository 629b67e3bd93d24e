/* Endpoints over UCX: as it chooses on this machine, which is its shared memory, and over its TCP. And that
 * loading it leaves the signals of the program alone. */
#include "../endpoints.h"

#include <signal.h>

/* What a peer says of its counts over TCP, beside UCX: more than was sent (four bytes and over_ucx.h's one,
 * and what is counted for each of the two messages), or less than before. */
static void test_words(void) {
    enum { COST = 32 << 10 };
    static const uint64_t words[][2] = {{2 * COST + 6, 2 * COST + 6}, {2 * COST + 5, 2 * COST + 4}};
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

/* Of what is large UCX reads the sender's memory, as long as nobody has said that it was sent, and writes the
 * receiver's no further than it was given. More of it than UCX is handed at once; and more small messages
 * than may be under way. */
enum { LENT = 20 << 20, FIRST = 600 << 10, WORDS = 200 };

struct reader {
    struct wire *wire;
    char *memory; /* [LENT] */
    int words;
    bool kept; /* what lies behind the first part was left alone */
    struct error error;
};

static void read_in_two(void *argument) {
    struct reader *reader = argument;
    struct endpoint *near = reader->wire->near;
    char *rest = reader->memory + FIRST;
    memset(rest, 'x', FIRST);
    if (endpoint_receive(near, "a part", reader->memory, FIRST, LONG_S, &reader->error) != OK) return;
    reader->kept = rest[0] == 'x' && memcmp(rest, rest + 1, FIRST - 1) == 0;
    if (endpoint_receive(near, "the rest", rest, LENT - FIRST, LONG_S, &reader->error) != OK) return;
    while (reader->words < WORDS) {
        char word[4] = "";
        if (endpoint_receive(near, "a word", word, 4, LONG_S, &reader->error) != OK) return;
        reader->words += memcmp(word, "word", 4) == 0;
    }
}

static void test_lent(void) {
    struct wire wire;
    open_wire(&wire, "127.0.0.1");
    struct reader reader = {.wire = &wire, .memory = random_bytes(LENT, 4)};
    char *sent = random_bytes(LENT, 5), *wanted = random_bytes(LENT, 5);
    const struct piece all = {sent, LENT}, word = {"word", 4};
    struct world_thread *thread = spawn(wire.world, read_in_two, &reader);
    CHECK(endpoint_send(wire.far, "much", &all, 1, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    memset(sent, 0, LENT);
    for (int i = 0; i < WORDS; i++)
        CHECK(endpoint_send(wire.far, "a word", &word, 1, LONG_S, &wire.error) == OK, "%d: %s", i,
              wire.error.words);
    world_join(thread);
    CHECK(reader.kept, "more was written than there was room for");
    CHECK(reader.words == WORDS && memcmp(reader.memory, wanted, LENT) == 0, "%d words; %s", reader.words,
          reader.error.words);
    memory_free(reader.memory);
    memory_free(sent);
    memory_free(wanted);
    close_wire(&wire);
}

/* Who waits for nothing has not sent what UCX still reads. */
static void test_unheld(void) {
    struct wire wire;
    open_wire(&wire, "127.0.0.1");
    char *sent = random_bytes(1 << 20, 6);
    const struct piece all = {sent, 1 << 20};
    CHECK(endpoint_send(wire.far, "much", &all, 1, 0.0, &wire.error) == ERROR_PEER, "it is sent");
    close_wire(&wire);
    memory_free(sent);
}

/* The peer has fetched all, and is gone before anybody here has looked. */
static void test_taken(void) {
    struct wire wire;
    open_wire(&wire, "127.0.0.1");
    char *sent = random_bytes(1 << 20, 7), *taken = random_bytes(1 << 20, 8);
    const struct piece all = {sent, 1 << 20};
    struct transfer transfer = {.endpoint = wire.far, .sends = "much", .pieces = &all, .piece_count = 1};
    endpoints_begin(&transfer, 1);
    CHECK(endpoints_move(&transfer, 1, &wire.error) == OK, "%s", wire.error.words);
    CHECK(endpoint_receive(wire.near, "much", taken, 1 << 20, LONG_S, &wire.error) == OK, "%s",
          wire.error.words);
    endpoint_close(wire.near);
    wire.near = NULL;
    CHECK(endpoints_finish(&transfer, 1, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(memcmp(sent, taken, 1 << 20) == 0, "other bytes");
    close_wire(&wire);
    memory_free(sent);
    memory_free(taken);
}

/* Who has announced much is gone before it was fetched: that is an end, whether it can be had still or not.
 */
static void test_gone(void) {
    struct wire wire;
    open_wire(&wire, "127.0.0.1");
    char *sent = random_bytes(1 << 20, 11), *taken = random_bytes(1 << 20, 12), first = 0;
    const struct piece pieces[] = {{"x", 1}, {sent, 1 << 20}};
    struct transfer transfer = {.endpoint = wire.far, .sends = "much", .pieces = pieces, .piece_count = 2};
    endpoints_begin(&transfer, 1);
    CHECK(endpoints_move(&transfer, 1, &wire.error) == OK, "%s", wire.error.words);
    CHECK(endpoint_receive(wire.near, "a byte", &first, 1, LONG_S, &wire.error) == OK && first == 'x', "%s",
          wire.error.words);
    endpoint_interrupt(wire.far);
    endpoint_close(wire.far);
    wire.far = NULL;
    if (endpoint_receive(wire.near, "the rest", taken, 1 << 20, LONG_S, &wire.error) == OK)
        CHECK(memcmp(sent, taken, 1 << 20) == 0, "other bytes");
    else
        expect(&wire.error, ERROR_PEER, "of 1048576 bytes of the rest were received)");
    close_wire(&wire);
    memory_free(sent);
    memory_free(taken);
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
        test_lent();
        test_unheld();
        test_gone();
        if (i == 0) test_taken(); /* over TCP the sender, too, has to do something for that */
    }
    test_refusals();
    return check_end();
}
