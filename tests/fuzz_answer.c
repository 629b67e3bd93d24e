/* Fuzzing of what a host makes of a worker's answer to a batch, and of the parts in which it comes: clang
 * -fsanitize=fuzzer,address over this file and the library (`make fuzz`). The input is a script, three bytes
 * for each frame, which our own writer seals, since nothing beyond the checksums would be reached otherwise:
 * what it is, its flags and how long it is; or bytes as they are. The host is a real one, in the simulated
 * world, where silence takes no time. A gradient that was taken is the one that was sent, all of it and in
 * order; all else is an error with words, and nothing is written behind the gradient. */
#include "fuzz.h"

#include <string.h>

#include "../src/bridge/host.h"

enum { PART = PART_BYTES / (int)sizeof(float), FLOATS = 3 * PART + 100, ENTRY = 3, MOST = 1 + 24 * ENTRY };
/* What an entry's first byte says. */
enum what { IN_TURN, OUT_OF_TURN, GRADIENT, FAILURE, BEAT, LEAVE, ANY, RAW, WHATS };
static const char *const kinds[] = {"answers in parts", "whole answers", NULL};
static const float loss = 0.5f;

/* The worker. */
struct player {
    struct endpoint *endpoint;
    const uint8_t *script;
    size_t bytes;
    struct request request;
    int left;  /* floats that have not gone yet */
    int parts; /* that have, each as it is to be */
    bool whole, strange;
};

static float values[FLOATS + 2]; /* lengths need not be whole numbers of them, nor as many */

static void send_numbers(struct player *player, enum frame_type type, uint32_t flags, size_t bytes,
                         bool stale) {
    uint8_t asked[REQUEST_BYTES], answer[LOSS_BYTES];
    struct request request = player->request;
    struct error ignored = {0};
    if (bytes > (FLOATS + 1) * sizeof(float)) bytes = (FLOATS + 1) * sizeof(float);
    const int floats = (int)(bytes / sizeof(float));
    const float *from = values + (floats <= player->left ? player->left - floats : 0);
    if (stale) request.step++;
    request_put(&request, asked);
    answer_put(&(struct answer){.loss = loss}, asked, answer);
    const struct piece pieces[] = {{answer, sizeof answer}, {from, bytes}};
    frame_write(player->endpoint, type, flags, pieces, 2, 1.0, &ignored);
    player->strange = player->strange || stale || bytes % sizeof(float) != 0 || floats > player->left;
    if (type == FRAME_PART)
        player->strange = player->strange || (int)flags != ++player->parts || floats < PART;
    if (floats <= player->left) player->left -= floats;
    if (type == FRAME_GRADIENT) player->whole = player->left == 0;
}

static size_t length_of(const struct player *player, uint8_t code) {
    const size_t rest = (size_t)player->left * sizeof(float);
    const size_t lengths[] = {
        rest,           PART_BYTES, PART_BYTES + 4u * code, rest + 4, rest > 4 ? rest - 4 : 0, PART_BYTES - 4,
        PART_BYTES + 1, code};
    return lengths[code % 8];
}

static void send_bytes(struct player *player, enum frame_type type, uint32_t flags, const void *bytes,
                       size_t count) {
    const struct piece piece = {bytes, count};
    struct error ignored = {0};
    frame_write(player->endpoint, type, flags, &piece, 1, 1.0, &ignored);
    player->strange = player->strange || type != FRAME_HEARTBEAT || count > 0;
}

static void play_entry(struct player *player, const uint8_t *entry) {
    const enum what what = (enum what)(entry[0] % WHATS);
    const size_t left = player->bytes - (size_t)(entry - player->script);
    const size_t some = entry[2] % 40u < left ? entry[2] % 40u : left;
    const bool stale = entry[1] == 255;
    struct error ignored = {0};
    if (what == IN_TURN || what == OUT_OF_TURN)
        send_numbers(player, FRAME_PART, what == IN_TURN ? (uint32_t)player->parts + 1 : entry[1],
                     length_of(player, entry[2]), stale);
    if (what == GRADIENT) send_numbers(player, FRAME_GRADIENT, 0, length_of(player, entry[2]), stale);
    if (what == FAILURE) send_bytes(player, FRAME_FAILURE, entry[1], entry, some);
    if (what == BEAT) send_bytes(player, FRAME_HEARTBEAT, 0, entry, entry[2] == 255);
    if (what == LEAVE) send_bytes(player, FRAME_LEAVE, 0, entry, entry[2] == 255);
    if (what == ANY)
        send_bytes(player, (enum frame_type)(1 + entry[1] % (FRAME_TYPE_COUNT - 1)), 0, entry, some);
    if (what == RAW && some > 0) {
        const struct piece piece = {entry, some};
        endpoint_send(player->endpoint, "bytes", &piece, 1, 1.0, &ignored);
        player->strange = true;
    }
}

static void play(void *argument) {
    struct player *player = argument;
    for (size_t at = 0; at + ENTRY <= player->bytes && !player->whole; at += ENTRY)
        play_entry(player, player->script + at);
    endpoint_finish(player->endpoint, 0.0);
}

static void connect_both(struct world *world, struct endpoint *ends[2]) {
    struct listener *listener = NULL;
    struct error error = {0};
    fuzz_require(endpoint_listen(world, "127.0.0.1:2223", &listener, &error) == OK);
    fuzz_require(endpoint_connect(world, "127.0.0.1:2223", &ends[0], 1.0, &error) == OK);
    fuzz_require(listener_accept(listener, &ends[1], 1.0, &error) == OK && ends[1]);
    listener_close(listener);
}

static void check_answer(const struct player *player, const float *gradient, float found) {
    fuzz_require(player->whole && !player->strange && found == loss);
    for (int i = 0; i < FLOATS; i++) fuzz_require(gradient[i] == values[i]);
    fuzz.accepted[player->parts > 0 ? 0 : 1]++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static struct peer peer;
    static struct host host;
    static float weights[FLOATS], gradient[FLOATS + 1];
    struct player player = {
        .script = data, .bytes = bytes, .left = FLOATS, .request = {.number = 7, .step = 1}};
    struct endpoint *ends[2];
    struct world_thread *thread = NULL;
    struct world *world = NULL;
    struct error error = {0};
    float found = 0.0f;
    fuzz_count(kinds);
    if (bytes > MOST) return 0;
    for (int i = 0; i < FLOATS; i++) values[i] = (float)i;
    gradient[FLOATS] = -1.0f;
    fuzz_require(world_open_simulated(&world, 1, &error) == OK);
    connect_both(world, ends);
    player.endpoint = ends[0];
    peer = (struct peer){.endpoint = ends[1], .name = "it"};
    host = (struct host){.settings = {.world = world}, .peers = &peer, .count = 1};
    fuzz_require(world_spawn(world, "worker", NULL, play, &player, &thread, &error) == OK);
    const int code =
        peer_compute(&host, &peer, &player.request, weights, gradient, &found, FLOATS, 10.0, &error);
    endpoint_close(ends[1]);
    world_join(thread);
    if (code == OK)
        check_answer(&player, gradient, found);
    else
        fuzz_require(code == ERROR_PEER && error.words[0] != '\0');
    fuzz_require(gradient[FLOATS] == -1.0f);
    endpoint_close(ends[0]);
    world_close(world);
    return 0;
}

/* --- valid ones to start from --- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    static const uint8_t samples[][3 * ENTRY] = {{IN_TURN, 0, 1, IN_TURN, 0, 1, GRADIENT, 0, 0},
                                                 {IN_TURN, 0, 0, BEAT, 0, 0, GRADIENT, 0, 0},
                                                 {BEAT, 0, 0, GRADIENT, 0, 0, LEAVE, 0, 0}};
    if (most > MOST) most = MOST;
    if (bytes > most) bytes = most;
    if (most >= sizeof samples[0] && (bytes < ENTRY || seed % 8 == 0)) {
        memcpy(data, samples[seed / 8 % 3], sizeof samples[0]);
        bytes = sizeof samples[0];
        if (seed / 32 % 4 == 0) return bytes;
    }
    return LLVMFuzzerMutate(data, bytes, most);
}
