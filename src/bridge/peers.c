/* What a host says to its peers, at each step and at the end. See host.h. */
#include <string.h>

#include "host.h"

/* A worker that waits for another host says so for so many times the timeout at most: then it gives up by
 * itself (remote.c, and its own TIMEOUT_TIMES). */
#define BEATS_TIMES 5.0

/* --- one step --- */

/* A peer says itself why it ends. */
static int read_failure(struct endpoint *endpoint, const char *name, const struct frame_header *header,
                        double timeout_s, struct error *error) {
    char words[500] = "";
    if (header->bytes >= sizeof words)
        return error_set(error, ERROR_PEER, "%s: failed with %llu bytes of words, expected less than %zu",
                         name, (unsigned long long)header->bytes, sizeof words);
    RETURN_IF(frame_read_payload(endpoint, header, words, timeout_s, error));
    return error_set(error, ERROR_PEER, "%s: %s", name, words);
}

int follower_hear(struct follower *follower, const char *what, struct frame_header *header, double timeout_s,
                  struct error *error) {
    const int code = frame_read_header(follower->endpoint, what, UINT64_MAX, header, timeout_s, error);
    if (code != OK) return error_prefix(error, "%s: ", follower->name);
    if (header->type != FRAME_FAILURE) return OK;
    return read_failure(follower->endpoint, follower->name, header, timeout_s, error);
}

/* What a worker says, apart from that it is still there. */
static int read_word(struct host *host, struct peer *peer, const char *what, uint64_t limit,
                     struct frame_header *header, double timeout_s, struct error *error) {
    const int place = (int)(peer - host->peers);
    const double began = world_now(host->settings.world);
    do {
        RETURN_IF(frame_read_header(peer->endpoint, what, limit, header, timeout_s, error));
        if (header->type == FRAME_HEARTBEAT && header->bytes > 0)
            return error_set(error, ERROR_PEER, "%s: a heartbeat of %llu bytes, expected none",
                             endpoint_name(peer->endpoint), (unsigned long long)header->bytes);
        if (header->type == FRAME_HEARTBEAT &&
            world_now(host->settings.world) - began > BEATS_TIMES * timeout_s)
            return error_set(error, ERROR_PEER, "%s: nothing but heartbeats for %g s, expected %s",
                             endpoint_name(peer->endpoint), BEATS_TIMES * timeout_s, what);
        if (host->roster)
            roster_phase(host->roster, place, (enum phase)atomic_load(&host->roster->members[place].phase));
    } while (header->type == FRAME_HEARTBEAT);
    return OK;
}

int peer_tell_next(struct peer *peer, enum next next, long number, double timeout_s, struct error *error) {
    const int code = next_write(peer->endpoint, next, number, timeout_s, error);
    return code == OK ? OK : error_prefix(error, "%s: ", peer->name);
}

int peer_hear_next(struct host *host, struct peer *peer, enum next *next, long *number, double timeout_s,
                   struct error *error) {
    struct frame_header header;
    int code = read_word(host, peer, "a batch's number", 500, &header, timeout_s, error);
    if (code == OK && header.type == FRAME_FAILURE)
        return read_failure(peer->endpoint, peer->name, &header, timeout_s, error);
    if (code == OK) code = next_read(peer->endpoint, &header, next, number, timeout_s, error);
    return code == OK ? OK : error_prefix(error, "%s: ", peer->name);
}

int peer_hear_owed(struct host *host, struct peer *peer, double timeout_s, struct error *error) {
    struct frame_header header;
    const uint64_t bytes = peer->packed.compress.floats * sizeof(float);
    if (!packed_is_on(&peer->packed)) return OK;
    int code = read_word(host, peer, "what is owed", bytes > 499 ? bytes : 499, &header, timeout_s, error);
    if (code == OK && header.type == FRAME_FAILURE)
        return read_failure(peer->endpoint, peer->name, &header, timeout_s, error);
    if (code == OK) code = frame_expect(peer->endpoint, &header, FRAME_OWED, bytes, error);
    if (code == OK) code = frame_read_payload(peer->endpoint, &header, peer->packed.kept, timeout_s, error);
    if (code == OK && !peer->packed.known) packed_add_share(&peer->packed, peer->owed, host->count);
    peer->packed.known = false;
    peer->owes = code == OK;
    return code == OK ? OK : error_prefix(error, "%s: ", peer->name);
}

/* A batch, with the weights as they are or packed. */
static int send_weights(struct host *host, struct peer *peer, const struct request *request,
                        const float *weights, size_t floats, double timeout_s, struct error *error) {
    struct packed *packed = &peer->packed;
    uint8_t bytes[REQUEST_BYTES];
    struct piece pieces[3] = {{bytes, sizeof bytes}, {weights, floats * sizeof(float)}};
    request_put(request, bytes);
    if (!packed_is_on(packed))
        return frame_write(peer->endpoint, FRAME_WEIGHTS, 0, pieces, 2, timeout_s, error);
    if (packed->known) {
        pieces[1] = packed_weights(packed, weights);
        return frame_write(peer->endpoint, FRAME_WEIGHTS, FRAME_PACKED, pieces, 2, timeout_s, error);
    }
    packed_begin(packed, weights, peer->owed, host->count);
    pieces[2] = (struct piece){packed->sent, floats * sizeof(float)};
    return frame_write(peer->endpoint, FRAME_WEIGHTS, 0, pieces, 3, timeout_s, error);
}

/* Of a gradient, behind the head of the answer. */
static int read_packed(struct peer *peer, struct frame_header *header, float *gradient, double timeout_s,
                       struct error *error) {
    const uint64_t most = LOSS_BYTES + peer->packed.compress.bytes;
    const bool fits = header->bytes >= LOSS_BYTES && header->bytes <= most;
    const size_t count = (size_t)(fits ? header->bytes : most) - LOSS_BYTES;
    RETURN_IF(frame_expect(peer->endpoint, header, FRAME_GRADIENT, LOSS_BYTES + count, error));
    RETURN_IF(frame_read_part(peer->endpoint, header, peer->packed.bytes, count, timeout_s, error));
    return packed_read_gradient(&peer->packed, count, gradient, endpoint_name(peer->endpoint), error);
}

/* The answer's head, and the gradient behind it. */
static int read_gradient(struct peer *peer, struct frame_header *header, uint8_t answer[LOSS_BYTES],
                         float *gradient, size_t floats, double timeout_s, struct error *error) {
    const size_t bytes = floats * sizeof(float);
    const bool packed = packed_is_on(&peer->packed) && header->type == FRAME_GRADIENT;
    if (!packed) RETURN_IF(frame_expect(peer->endpoint, header, FRAME_GRADIENT, LOSS_BYTES + bytes, error));
    RETURN_IF(frame_read_part(peer->endpoint, header, answer, LOSS_BYTES, timeout_s, error));
    if (packed) return read_packed(peer, header, gradient, timeout_s, error);
    return frame_read_part(peer->endpoint, header, gradient, bytes, timeout_s, error);
}

int peer_compute(struct host *host, struct peer *peer, const struct request *request, const float *weights,
                 float *gradient, float *loss, size_t floats, double timeout_s, struct error *error) {
    uint8_t answer[LOSS_BYTES];
    const uint64_t most = LOSS_BYTES + floats * sizeof(float) + peer->packed.compress.bytes;
    struct frame_header header;
    int code = send_weights(host, peer, request, weights, floats, timeout_s, error);
    if (code == OK) code = read_word(host, peer, "a gradient", most, &header, timeout_s, error);
    if (code == OK && header.type == FRAME_FAILURE)
        return read_failure(peer->endpoint, peer->name, &header, timeout_s, error);
    if (code == OK) code = read_gradient(peer, &header, answer, gradient, floats, timeout_s, error);
    if (code != OK) return error_prefix(error, "%s: ", peer->name);
    return answer_get(loss, request, answer, peer->name, error);
}

long long host_sent(const struct host *host) {
    long long bytes = 0;
    for (int i = 0; i < host->count; i++) bytes += endpoint_sent(host->peers[i].endpoint);
    return bytes;
}

long long host_received(const struct host *host) {
    long long bytes = 0;
    for (int i = 0; i < host->count; i++) bytes += endpoint_received(host->peers[i].endpoint);
    return bytes;
}

static void say_last(struct endpoint *endpoint, const struct piece *piece) {
    struct error ignored = {0};
    if (endpoint) frame_write(endpoint, FRAME_GOODBYE, 0, piece, 1, HOST_GOODBYE_S, &ignored);
}

/* Why this process, a follower, ends before the leader said so. */
static void tell_leader(struct host *host, const char *words) {
    struct error ignored = {0};
    const struct piece piece = {words, strlen(words)};
    if (!host->leader ||
        frame_write(host->leader, FRAME_FAILURE, 0, &piece, 1, HOST_GOODBYE_S, &ignored) != OK)
        return;
    endpoint_finish(host->leader, HOST_GOODBYE_S);
}

void host_finish(struct host *host, const struct finish *finish) {
    uint8_t bytes[FINISH_BYTES];
    struct error ignored = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    if (finish_put(finish, &writer, &ignored) != OK) return;
    const struct piece piece = {bytes, writer.used};
    for (int f = 0; f < host->follower_count; f++) say_last(host->followers[f].endpoint, &piece);
    if (finish->code != OK) tell_leader(host, finish->words);
    for (int i = 0; i < host->count; i++) say_last(host->peers[i].endpoint, &piece);
    for (int i = 0; i < host->count; i++) endpoint_finish(host->peers[i].endpoint, HOST_GOODBYE_S);
    for (int f = 0; f < host->follower_count; f++)
        if (host->followers[f].endpoint) endpoint_finish(host->followers[f].endpoint, HOST_GOODBYE_S);
}
