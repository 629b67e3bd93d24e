/* What a host says to its peers, at each step and at the end. See host.h. */
#include <string.h>

#include "../base/finite.h"
#include "../base/memory.h"
#include "host.h"
#include "joins.h"

/* A worker that waits for another host says so for so many times the timeout at most: then it gives up by
 * itself (remote.c, and its own TIMEOUT_TIMES). */
#define BEATS_TIMES 5.0
#define LEAVE_S 5e-3 /* between two looks at whether all have left */
#define DROP_S 1e-3  /* for one of them to send more that nobody reads */

/* --- one step --- */

int host_blame(const struct endpoint *endpoint, const char *name, struct error *error) {
    const char *const address = endpoint_name(endpoint);
    const size_t bytes = strlen(address);
    char *const words = error->words;
    if (strncmp(words, address, bytes) == 0 && strncmp(words + bytes, ": ", 2) == 0)
        memmove(words, words + bytes + 2, strlen(words + bytes + 2) + 1);
    return error_prefix(error, "%s: ", name);
}

int host_read_failure(struct endpoint *endpoint, const char *name, const struct frame_header *header,
                      double timeout_s, struct error *error) {
    char words[500] = "";
    if (header->bytes >= sizeof words)
        return error_set(error, ERROR_PEER, "%s: failed with %llu bytes of words, expected less than %zu",
                         name, (unsigned long long)header->bytes, sizeof words);
    RETURN_IF(frame_read_payload(endpoint, header, words, timeout_s, error));
    return error_set(error, ERROR_PEER, "%s: %s", name, words);
}

/* Behind it comes what the worker owes, where anything is packed. */
static int take_leave(struct host *host, struct peer *peer, const struct frame_header *header,
                      double timeout_s, struct error *error) {
    if (header->bytes > 0)
        return error_set(error, ERROR_PEER, "%s: a leave of %llu bytes, expected none",
                         endpoint_name(peer->endpoint), (unsigned long long)header->bytes);
    RETURN_IF(peer_hear_owed(host, peer, timeout_s, error));
    peer->left = true;
    return error_set(error, ERROR_PEER, "it has left");
}

/* What a worker says, apart from that it is still there. Errors: ERROR_PEER, too, where it leaves. */
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
    return header->type == FRAME_LEAVE ? take_leave(host, peer, header, timeout_s, error) : OK;
}

static bool says_leave(struct peer *peer) {
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header header;
    struct error ignored = {0};
    return endpoint_peek(peer->endpoint, bytes, sizeof bytes, 0.0, &(bool){false}) == sizeof bytes &&
           frame_unpack_header(&header, bytes, UINT64_MAX, "", &ignored) == OK && header.type == FRAME_LEAVE;
}

/* A worker that leaves closes, in the end, and takes nothing more: what it said before that is there still.
 */
static int after_leave(struct host *host, struct peer *peer, double timeout_s, struct error *error) {
    struct frame_header header;
    struct error why = {0};
    if (says_leave(peer)) read_word(host, peer, "a leave", 0, &header, timeout_s, &why);
    if (peer->left) *error = why;
    return host_blame(peer->endpoint, peer->name, error);
}

int peer_look(struct host *host, struct peer *peer, double timeout_s, struct error *error) {
    struct frame_header header;
    const bool looks = peer->paused;
    peer->paused = false;
    if (!looks || !says_leave(peer)) return OK;
    const int code = read_word(host, peer, "a leave", 0, &header, timeout_s, error);
    return code == OK ? OK : host_blame(peer->endpoint, peer->name, error);
}

int peer_tell_next(struct host *host, struct peer *peer, enum next next, long number, double timeout_s,
                   struct error *error) {
    const int code = next_write(peer->endpoint, next, number, peer->examples, timeout_s, error);
    peer->paused = next == NEXT_PAUSE;
    return code == OK ? OK : after_leave(host, peer, timeout_s, error);
}

int peer_hear_next(struct host *host, struct peer *peer, enum next *next, long *number, double timeout_s,
                   struct error *error) {
    struct frame_header header;
    int code = read_word(host, peer, "a batch's number", 500, &header, timeout_s, error);
    if (code == OK && header.type == FRAME_FAILURE)
        return host_read_failure(peer->endpoint, peer->name, &header, timeout_s, error);
    if (code == OK)
        code = next_read(peer->endpoint, &header, next, number, &peer->examples, timeout_s, error);
    return code == OK ? OK : host_blame(peer->endpoint, peer->name, error);
}

int peer_hear_owed(struct host *host, struct peer *peer, double timeout_s, struct error *error) {
    struct frame_header header;
    const uint64_t bytes = peer->packed.compress.floats * sizeof(float);
    if (!packed_is_on(&peer->packed)) return OK;
    int code = read_word(host, peer, "what is owed", bytes > LAST_WORDS_BYTES ? bytes : LAST_WORDS_BYTES,
                         &header, timeout_s, error);
    if (code == OK && header.type == FRAME_FAILURE)
        return host_read_failure(peer->endpoint, peer->name, &header, timeout_s, error);
    if (code == OK) code = frame_expect(peer->endpoint, &header, FRAME_OWED, bytes, error);
    if (code == OK) code = frame_read_payload(peer->endpoint, &header, peer->packed.kept, timeout_s, error);
    if (code == OK && !peer->packed.known) packed_add_share(&peer->packed, peer->owed, host->present);
    peer->packed.known = false;
    peer->owes = code == OK;
    return code == OK ? OK : host_blame(peer->endpoint, peer->name, error);
}

static int hear_answer(struct peer *peer, float *loss, const struct request *request,
                       const uint8_t bytes[LOSS_BYTES], struct error *error) {
    struct answer answer;
    RETURN_IF(answer_get(&answer, request, bytes, peer->name, error));
    *loss = answer.loss;
    peer->computed_s = answer.computed_s;
    return OK;
}

/* A batch, with the weights as they are or packed. */
static int send_weights(struct host *host, struct peer *peer, const struct request *request,
                        const float *weights, size_t floats, double timeout_s, struct error *error) {
    struct packed *packed = &peer->packed;
    uint8_t bytes[REQUEST_BYTES];
    struct piece pieces[3] = {{bytes, sizeof bytes}, {weights, floats * sizeof(float)}};
    request_put(request, bytes);
    if (!packed_is_on(packed))
        return frame_write(peer->endpoint, FRAME_WEIGHTS, peer->sums ? FRAME_SUM : 0, pieces, 2, timeout_s,
                           error);
    if (packed->known) {
        pieces[1] = packed_weights(packed, weights);
        return frame_write(peer->endpoint, FRAME_WEIGHTS, FRAME_PACKED, pieces, 2, timeout_s, error);
    }
    packed_begin(packed, weights, peer->owed, host->present);
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

/* What comes of a gradient while the rest is computed, from the end of the slice on. *left: floats from its
 * beginning that have not come yet; header: of the first frame, then of the one behind the parts. */
static int read_parts(struct host *host, struct peer *peer, const struct request *request,
                      struct frame_header *header, float *gradient, size_t *left, double timeout_s,
                      struct error *error) {
    const char *name = endpoint_name(peer->endpoint);
    uint8_t head[LOSS_BYTES];
    struct answer none;
    for (uint32_t part = 1; header->type == FRAME_PART; part++) {
        const uint64_t bytes = header->bytes - LOSS_BYTES;
        if (packed_is_on(&peer->packed) || peer->sums)
            return error_set(error, ERROR_PEER, "%s: part %u of a gradient, expected none", name,
                             header->flags);
        if (header->flags != part)
            return error_set(error, ERROR_PEER, "%s: part %u of a gradient, expected part %u", name,
                             header->flags, part);
        if (header->bytes < LOSS_BYTES + PART_BYTES || bytes > *left * sizeof *gradient ||
            bytes % sizeof *gradient != 0)
            return error_set(
                error, ERROR_PEER,
                "%s: part %u of a gradient has %llu bytes, expected %d and whole numbers, %d to %zu "
                "bytes",
                name, part, (unsigned long long)header->bytes, LOSS_BYTES, PART_BYTES,
                *left * sizeof *gradient);
        *left -= (size_t)bytes / sizeof *gradient;
        RETURN_IF(frame_read_part(peer->endpoint, header, head, LOSS_BYTES, timeout_s, error));
        RETURN_IF(frame_read_part(peer->endpoint, header, gradient + *left, (size_t)bytes, timeout_s, error));
        RETURN_IF(answer_get(&none, request, head, name, error));
        const uint64_t limit = LOSS_BYTES + *left * sizeof *gradient;
        RETURN_IF(read_word(host, peer, "a gradient", limit > LAST_WORDS_BYTES ? limit : LAST_WORDS_BYTES,
                            header, timeout_s, error));
    }
    return OK;
}

/* The answer's head, and the gradient behind it. */
static int read_gradient(struct peer *peer, struct frame_header *header, uint8_t answer[LOSS_BYTES],
                         float *gradient, size_t floats, double timeout_s, struct error *error) {
    const size_t bytes = floats * sizeof(float);
    const bool packed = packed_is_on(&peer->packed) && header->type == FRAME_GRADIENT;
    if (peer->sums && !peer->root) { /* its gradient is in what the root sends */
        memset(gradient, 0, bytes);
        RETURN_IF(frame_expect(peer->endpoint, header, FRAME_GRADIENT, LOSS_BYTES, error));
        return frame_read_part(peer->endpoint, header, answer, LOSS_BYTES, timeout_s, error);
    }
    if (!packed) RETURN_IF(frame_expect(peer->endpoint, header, FRAME_GRADIENT, LOSS_BYTES + bytes, error));
    RETURN_IF(frame_read_part(peer->endpoint, header, answer, LOSS_BYTES, timeout_s, error));
    if (packed) return read_packed(peer, header, gradient, timeout_s, error);
    return frame_read_part(peer->endpoint, header, gradient, bytes, timeout_s, error);
}

int peer_compute(struct host *host, struct peer *peer, const struct request *request, const float *weights,
                 float *gradient, float *loss, size_t floats, double timeout_s, struct error *error) {
    uint8_t answer[LOSS_BYTES];
    const uint64_t answer_bytes = LOSS_BYTES + floats * sizeof(float) + peer->packed.compress.bytes;
    const uint64_t most = answer_bytes > LAST_WORDS_BYTES ? answer_bytes : LAST_WORDS_BYTES;
    struct frame_header header;
    int code = send_weights(host, peer, request, weights, floats, timeout_s, error);
    peer->cut = code != OK;
    if (code != OK) return after_leave(host, peer, timeout_s, error);
    if (code == OK) code = read_word(host, peer, "a gradient", most, &header, timeout_s, error);
    size_t left = floats;
    if (code == OK) code = read_parts(host, peer, request, &header, gradient, &left, timeout_s, error);
    if (code == OK && header.type == FRAME_FAILURE)
        return host_read_failure(peer->endpoint, peer->name, &header, timeout_s, error);
    if (code == OK) code = read_gradient(peer, &header, answer, gradient, left, timeout_s, error);
    if (code != OK) return host_blame(peer->endpoint, peer->name, error);
    return hear_answer(peer, loss, request, answer, error);
}

/* --- a step that the worker takes --- */

static int state_pieces(const struct state *own, size_t floats, struct piece *pieces) {
    for (int v = 0; v < own->count; v++)
        pieces[v] = (struct piece){own->vector[v].at, floats * sizeof(float)};
    return own->count;
}

static uint64_t state_bytes(const struct state *own, size_t floats) {
    return (uint64_t)own->count * floats * sizeof(float);
}

static int read_own(struct peer *peer, struct frame_header *header, const struct state *own, size_t floats,
                    double timeout_s, struct error *error) {
    for (int v = 0; v < own->count; v++)
        RETURN_IF(frame_read_part(peer->endpoint, header, own->vector[v].at, floats * sizeof(float),
                                  timeout_s, error));
    for (int v = 0; v < own->count; v++)
        if (!all_finite(own->vector[v].at, floats))
            return error_set(
                error, ERROR_DIVERGED,
                "its own weights are not finite and were not averaged (a smaller rate may help)");
    return OK;
}

int peer_hear_own(struct host *host, struct peer *peer, const struct state *own, size_t floats,
                  double timeout_s, struct error *error) {
    struct frame_header header;
    const uint64_t bytes = state_bytes(own, floats);
    int code = read_word(host, peer, "a worker's weights",
                         bytes > LAST_WORDS_BYTES ? bytes : LAST_WORDS_BYTES, &header, timeout_s, error);
    if (code == OK && header.type == FRAME_FAILURE)
        return host_read_failure(peer->endpoint, peer->name, &header, timeout_s, error);
    if (code == OK) code = frame_expect(peer->endpoint, &header, FRAME_OWN, bytes, error);
    if (code == OK) code = read_own(peer, &header, own, floats, timeout_s, error);
    return code == OK ? OK : host_blame(peer->endpoint, peer->name, error);
}

/* The head of the answer, and behind it what was stepped, or the gradient with which it was not. */
static int read_stepped(struct peer *peer, struct frame_header *header, uint8_t answer[LOSS_BYTES],
                        const struct state *own, bool gives, float *gradient, size_t floats, double timeout_s,
                        struct error *error) {
    const bool stepped = header->flags & FRAME_STEP;
    const uint64_t given = gives ? state_bytes(own, floats) : 0, bytes = floats * sizeof(float);
    RETURN_IF(
        frame_expect(peer->endpoint, header, FRAME_GRADIENT, LOSS_BYTES + (stepped ? given : bytes), error));
    RETURN_IF(frame_read_part(peer->endpoint, header, answer, LOSS_BYTES, timeout_s, error));
    if (!stepped) return frame_read_part(peer->endpoint, header, gradient, bytes, timeout_s, error);
    return gives ? read_own(peer, header, own, floats, timeout_s, error) : OK;
}

int peer_step(struct host *host, struct peer *peer, const struct request *request, const struct state *own,
              bool takes, bool gives, float *gradient, float *loss, size_t floats, double timeout_s,
              struct error *error) {
    uint8_t bytes[REQUEST_BYTES], answer[LOSS_BYTES];
    struct piece pieces[1 + STATE_VECTORS] = {{bytes, sizeof bytes}};
    const int count = 1 + (takes ? state_pieces(own, floats, pieces + 1) : 0);
    const uint32_t flags = FRAME_STEP | (takes ? FRAME_TAKE : 0) | (gives ? FRAME_GIVE : 0);
    const uint64_t most = LOSS_BYTES + state_bytes(own, floats);
    struct frame_header header = {0};
    request_put(request, bytes);
    int code = frame_write(peer->endpoint, FRAME_WEIGHTS, flags, pieces, count, timeout_s, error);
    peer->cut = code != OK;
    if (code != OK) return after_leave(host, peer, timeout_s, error);
    if (code == OK)
        code = read_word(host, peer, "a gradient", most > LAST_WORDS_BYTES ? most : LAST_WORDS_BYTES, &header,
                         timeout_s, error);
    if (code == OK && header.type == FRAME_FAILURE)
        return host_read_failure(peer->endpoint, peer->name, &header, timeout_s, error);
    if (code == OK)
        code = read_stepped(peer, &header, answer, own, gives, gradient, floats, timeout_s, error);
    if (code != OK) return host_blame(peer->endpoint, peer->name, error);
    if (!(header.flags & FRAME_STEP) && all_finite(gradient, floats))
        return error_set(error, ERROR_PEER, "%s: a gradient that is finite, expected that it was stepped",
                         peer->name);
    return hear_answer(peer, loss, request, answer, error);
}

long host_seen(const struct host *host) {
    long most = 0;
    for (int i = 0; i < host->count; i++)
        if (host->peers[i].seen > most) most = host->peers[i].seen;
    return most;
}

long long host_sent(const struct host *host) {
    long long bytes = host->sent_before;
    for (int i = 0; i < host->count; i++)
        if (host->peers[i].endpoint) bytes += endpoint_sent(host->peers[i].endpoint);
    return bytes;
}

long long host_received(const struct host *host) {
    long long bytes = host->received_before;
    for (int i = 0; i < host->count; i++)
        if (host->peers[i].endpoint) bytes += endpoint_received(host->peers[i].endpoint);
    return bytes;
}

/* --- the end --- */

/* What is said last to one of those that are connected. */
struct farewell {
    struct endpoint *endpoint;
    enum frame_type type;
    uint32_t flags;
    struct piece piece;
    bool said; /* or it cannot be */
};

/* As soon as the connection takes it, which others may have filled. */
static void say(struct farewell *farewell) {
    struct error ignored = {0};
    bool ended = false;
    uint8_t byte;
    const long long sent = endpoint_sent(farewell->endpoint);
    farewell->said = frame_write(farewell->endpoint, farewell->type, farewell->flags, &farewell->piece, 1,
                                 0.0, &ignored) == OK ||
                     endpoint_sent(farewell->endpoint) > sent ||
                     (endpoint_peek(farewell->endpoint, &byte, 1, 0.0, &ended) == 0 && ended);
}

/* Whether all have heard it, and closed. Who closes with bytes unread takes back what it has said, and a peer
 * that computes may still send. */
static bool all_have_left(struct farewell *farewells, int count) {
    bool left = true;
    for (int i = 0; i < count; i++) {
        if (!farewells[i].said) say(&farewells[i]);
        left = farewells[i].said && endpoint_finish(farewells[i].endpoint, DROP_S) && left;
    }
    return left;
}

/* The run's world may be stopped, so they are waited for in another. */
static void say_farewell(struct world *world, struct farewell *farewells, int count) {
    struct world *own = NULL;
    struct error ignored = {0};
    if (all_have_left(farewells, count) || world_open_beside(&own, world, &ignored) != OK) return;
    const double until = world_now(own) + HOST_GOODBYE_S;
    while (!all_have_left(farewells, count) && world_now(own) < until) world_sleep(own, LEAVE_S);
    world_close(own);
}

/* To the leader only why this process, a follower, ends before it said so; it is to wait where this one
 * returns. So are those who wait to join, and where a follower ends before its leader: that alone can say
 * that all is over. */
static int list_farewells(const struct host *host, const struct finish *finish, const struct piece *goodbye,
                          struct farewell *farewells) {
    const char *why = finish->code == OK ? "the training is over" : finish->words; /* to who came for it */
    const uint32_t flags = finish->returns ? FAILURE_FOR_NOW : 0,
                   waiting = host->leader && finish->code != OK ? FAILURE_FOR_NOW : flags;
    int count = 0;
    for (int f = 0; f < host->follower_count; f++)
        if (host->followers[f].endpoint)
            farewells[count++] =
                (struct farewell){host->followers[f].endpoint, FRAME_GOODBYE, 0, *goodbye, false};
    if (host->leader && finish->code != OK)
        farewells[count++] = (struct farewell){
            host->leader, FRAME_FAILURE, flags, {finish->words, strlen(finish->words)}, false};
    for (int i = 0; i < host->count; i++)
        if (host->peers[i].endpoint)
            farewells[count++] =
                (struct farewell){host->peers[i].endpoint, FRAME_GOODBYE, 0, *goodbye, host->peers[i].cut};
    for (int i = 0; joins_waiting(host, i); i++)
        farewells[count++] =
            (struct farewell){joins_waiting(host, i), FRAME_FAILURE, waiting, {why, strlen(why)}, false};
    return count;
}

void host_finish(struct host *host, const struct finish *finish) {
    uint8_t bytes[FINISH_BYTES];
    struct error ignored = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    struct farewell *farewells = NULL;
    int waiting = 0;
    while (joins_waiting(host, waiting)) waiting++;
    if (finish_put(finish, &writer, &ignored) != OK ||
        memory_array(&farewells, host->count + host->follower_count + 1 + waiting, "last words", &ignored) !=
            OK)
        return;
    const struct piece goodbye = {bytes, writer.used};
    const int count = list_farewells(host, finish, &goodbye, farewells);
    if (count > 0) say_farewell(host->settings.world, farewells, count);
    memory_free(farewells);
}
