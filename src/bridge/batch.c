/* A worker's batch: the weights that come for it, and the gradient that goes back. See remote.h.
 *
 * Both may move while the worker computes. Weights come in the order of the layers, so it begins with the
 * first layers while those of the last are on their way. The gradient is final from its end on, as it is
 * computed in the opposite order: so it goes in parts, each of which ends where the one before began. They
 * say which request they answer, and which part they are. The GRADIENT is what is left, with the loss; its
 * length tells whether all parts have come. No part goes before the weights have come and are right. */
#include "remote.h"

#include "meeting.h"

enum { OVERLAP_BYTES = 1 << 20 /* the least, of all weights, that moves so */ };

/* What was begun, from all at once. */
static int receive_all(struct remote *remote, struct error *error) {
    const int count = remote->transfer_count;
    remote->transfer_count = 0;
    if (count == 0) return OK;
    return remote_ask_why(remote, endpoints_exchange(remote->transfers, count, remote->timeout_s, error),
                          error);
}

static struct transfer *begin_receive(struct remote *remote, int host, void *buffer, size_t bytes) {
    struct transfer *transfer = &remote->transfers[remote->transfer_count++];
    *transfer = (struct transfer){
        .endpoint = remote->hosts[host].endpoint, .awaits = "weights", .buffer = buffer, .bytes = bytes};
    return transfer;
}

/* Of the payload behind host->header. */
static void begin_part(struct remote *remote, int host, void *buffer, size_t bytes) {
    begin_receive(remote, host, buffer, bytes)->sum =
        frame_sum(remote->hosts[host].endpoint, &remote->hosts[host].header);
}

static bool is_packed(const struct remote_host *host) {
    return packed_is_on(&host->packed) && (host->header.flags & FRAME_PACKED);
}

/* Packed weights may be shorter; unpacked ones have what is owed behind them, where that is so. */
static int check_weights(const struct remote *remote, struct remote_host *host, struct error *error) {
    const size_t slice = remote_slice_bytes(host);
    const uint32_t flags = host->header.flags;
    host->steps = remote->own.count > 0 && (flags & FRAME_STEP);
    host->gives = host->steps && (flags & FRAME_GIVE);
    host->sums = host->welcome.root >= 0 && (flags & FRAME_SUM);
    if (host->steps) {
        const uint64_t taken = flags & FRAME_TAKE ? (uint64_t)remote->own.count * slice : 0;
        return frame_expect(host->endpoint, &host->header, FRAME_WEIGHTS, REQUEST_BYTES + taken, error);
    }
    uint64_t bytes = REQUEST_BYTES + (packed_is_on(&host->packed) ? 2 * slice : slice);
    if (is_packed(host)) {
        const uint64_t most = REQUEST_BYTES + host->packed.compress.bytes;
        bytes = host->header.bytes < REQUEST_BYTES || host->header.bytes > most ? most : host->header.bytes;
    }
    return frame_expect(host->endpoint, &host->header, FRAME_WEIGHTS, bytes, error);
}

static int read_headers(struct remote *remote, bool *over, struct finish *finish, struct error *error) {
    *over = false;
    for (int h = 0; h < remote->count && !*over; h++)
        RETURN_IF(remote_await_or_leave(remote, h, "weights", over, error));
    if (*over) return OK;
    for (int h = 0; h < remote->count; h++)
        begin_receive(remote, h, remote->hosts[h].head, FRAME_HEADER_BYTES);
    RETURN_IF(receive_all(remote, error));
    for (int h = 0; h < remote->count; h++) {
        struct remote_host *host = &remote->hosts[h];
        host->left = remote_slice_bytes(host) / sizeof(float);
        host->part = 0;
        const uint64_t bytes =
            REQUEST_BYTES + STATE_VECTORS * remote_slice_bytes(host) + (uint64_t)host->packed.compress.bytes;
        const uint64_t limit = bytes > FINISH_BYTES ? bytes : FINISH_BYTES;
        RETURN_IF(
            frame_unpack_header(&host->header, host->head, limit, endpoint_name(host->endpoint), error));
        *over = h == 0 && host->header.type == FRAME_GOODBYE;
        if (*over) return remote_read_finish(remote, host, finish, error);
        if (host->header.type == FRAME_GOODBYE || host->header.type == FRAME_FAILURE)
            return remote_read_end(remote, host, error);
        RETURN_IF(check_weights(remote, host, error));
        if (host->sums != remote->hosts[0].sums)
            return error_set(error, ERROR_PEER, "%s: weights for a gradient of another kind than %s",
                             endpoint_name(host->endpoint), endpoint_name(remote->hosts[0].endpoint));
    }
    return OK;
}

/* Of the worker's copies those that hosts have sent, a vector at a time. */
static int read_own(struct remote *remote, struct error *error) {
    for (int v = 0; v < remote->own.count; v++) {
        for (int h = 0; h < remote->count; h++) {
            const struct remote_host *host = &remote->hosts[h];
            if (host->steps && (host->header.flags & FRAME_TAKE))
                begin_part(remote, h, remote->own.vector[v].at + host->welcome.begin,
                           remote_slice_bytes(host));
        }
        RETURN_IF(receive_all(remote, error));
    }
    return OK;
}

static void begin_slices(struct remote *remote, float *weights) {
    for (int h = 0; h < remote->count; h++) {
        struct remote_host *host = &remote->hosts[h];
        if (host->steps) continue;
        if (is_packed(host))
            begin_part(remote, h, host->packed.bytes, (size_t)host->header.bytes - REQUEST_BYTES);
        else
            begin_part(remote, h, weights + host->welcome.begin, remote_slice_bytes(host));
    }
}

/* Those of all hosts, packed or not, and what is owed to those that have sent it. */
static int read_slices(struct remote *remote, struct error *error) {
    RETURN_IF(receive_all(remote, error));
    for (int h = 0; h < remote->count; h++) {
        struct remote_host *host = &remote->hosts[h];
        if (packed_is_on(&host->packed) && !is_packed(host) && !host->steps)
            begin_part(remote, h, host->packed.kept, remote_slice_bytes(host));
    }
    return receive_all(remote, error);
}

static int unpack(struct remote_host *host, float *weights, struct error *error) {
    if (!is_packed(host)) return OK;
    return packed_read_weights(&host->packed, (size_t)host->header.bytes - REQUEST_BYTES,
                               weights + host->welcome.begin, endpoint_name(host->endpoint), error);
}

/* All of the weights have come. *request: the leader's. */
static int take_weights(struct remote *remote, struct request *request, float *weights, struct error *error) {
    for (int h = remote->count - 1; h >= 0; h--) { /* the leader's stays */
        const struct endpoint *endpoint = remote->hosts[h].endpoint;
        RETURN_IF(frame_check(endpoint, &remote->hosts[h].header, error));
        RETURN_IF(request_get(request, remote->hosts[h].request, endpoint_name(endpoint), error));
        if (request->number != remote->number)
            return error_set(error, ERROR_PEER, "%s: weights for batch %ld, expected batch %ld",
                             endpoint_name(endpoint), request->number, remote->number);
        RETURN_IF(unpack(&remote->hosts[h], weights, error));
    }
    return OK;
}

/* --- while the worker computes --- */

/* Weights as they are, and a gradient of its own. */
static bool is_plain(const struct remote *remote) {
    for (int h = 0; h < remote->count; h++) {
        const struct remote_host *host = &remote->hosts[h];
        if (packed_is_on(&host->packed) || host->steps || host->sums) return false;
    }
    return true;
}

bool remote_may_overlap(const struct remote *remote, enum overlap overlap) {
    bool may = false;
    for (int h = 0; h < remote->count && overlap != OVERLAP_OFF; h++) {
        const struct endpoint *endpoint = remote->hosts[h].endpoint;
        may = may ||
              !(overlap == OVERLAP_ON ? endpoint_shares_memory(endpoint) : endpoint_is_loopback(endpoint));
    }
    return may && remote->hosts[remote->count - 1].welcome.end * sizeof(float) >= OVERLAP_BYTES;
}

void remote_overlap(struct remote *remote, const float *gradient) {
    remote->overlaps = true;
    remote->gradient = gradient;
}

bool remote_is_between(struct remote *remote, int host) {
    struct transfer *transfer = &remote->transfers[host];
    struct error ignored = {0};
    return !remote->comes || (endpoints_move(transfer, 1, &ignored) == OK && transfer_is_done(transfer));
}

/* Whether weights[.. until] are there; a slice lies behind the one before. What else comes is not waited for,
 * until wait_for_all. */
static bool wait_for(struct remote *remote, size_t until) {
    bool there = true;
    for (int h = 0; h < remote->count; h++) {
        struct transfer *transfer = &remote->transfers[h];
        const size_t begin = (size_t)remote->hosts[h].welcome.begin;
        const size_t end = until > begin ? (until - begin) * sizeof(float) : 0;
        const size_t needed = end < transfer->bytes ? end : transfer->bytes;
        there = there && transfer->received >= needed;
        transfer->bytes = transfer->received < needed ? needed : transfer->received;
    }
    return there;
}

static void wait_for_all(struct remote *remote) {
    for (int h = 0; h < remote->count; h++)
        remote->transfers[h].bytes = remote_slice_bytes(&remote->hosts[h]);
}

static int await_weights(struct remote *remote, size_t until, struct error *error) {
    int code = endpoints_move(remote->transfers, remote->count, error);
    const bool there = wait_for(remote, until);
    if (code == OK && !there)
        code = endpoints_finish(remote->transfers, remote->count, remote->timeout_s, error);
    wait_for_all(remote);
    RETURN_IF(remote_ask_why(remote, code, error));
    struct request request;
    for (int h = 0; h < remote->count; h++)
        if (!transfer_is_done(&remote->transfers[h])) return OK;
    remote->comes = false;
    return take_weights(remote, &request, NULL, error);
}

/* Of pieces[count], behind which is what they are of: its header, and which request it answers. */
static void put_head(const struct remote_host *host, struct frame_header header, const struct answer *what,
                     uint8_t head[FRAME_HEADER_BYTES], uint8_t answer[LOSS_BYTES], struct piece *pieces,
                     int count) {
    answer_put(what, host->request, answer);
    pieces[0] = (struct piece){head, FRAME_HEADER_BYTES};
    pieces[1] = (struct piece){answer, LOSS_BYTES};
    frame_seal(&header, host->endpoint, pieces + 1, count - 1);
    frame_pack_header(head, &header);
}

/* The next part, where the one before has gone and the gradient is final from `from` on. */
static int send_part(struct remote *remote, int h, size_t from, struct error *error) {
    struct remote_host *host = &remote->hosts[h];
    struct transfer *send = &remote->sends[h];
    RETURN_IF(endpoints_move(send, 1, error));
    const size_t begin = (size_t)host->welcome.begin, first = from > begin ? from - begin : 0;
    if (!transfer_is_done(send) || host->left < first + PART_BYTES / sizeof(float)) return OK;
    const struct frame_header header = {.type = FRAME_PART, .flags = ++host->part};
    host->pieces[2] = (struct piece){remote->gradient + begin + first, (host->left - first) * sizeof(float)};
    put_head(host, header, &(struct answer){0}, host->part_head, host->part_answer, host->pieces, 3);
    host->left = first;
    *send = (struct transfer){.endpoint = host->endpoint,
                              .sends = frame_type_words(header.type),
                              .pieces = host->pieces,
                              .piece_count = 3};
    endpoints_begin(send, 1);
    return endpoints_move(send, 1, error);
}

int remote_step(struct remote *remote, size_t until, size_t from, struct error *error) {
    const double began_s = world_now(remote->world);
    int code = remote->comes ? await_weights(remote, until, error) : OK;
    for (int h = 0; h < remote->count && code == OK && !remote->comes && remote->gradient && is_plain(remote);
         h++)
        code = remote_ask_why(remote, send_part(remote, h, from, error), error);
    remote->moved_s += world_now(remote->world) - began_s;
    return remote_name_server(remote, code, error);
}

/* Each by itself: what one does not take is not to cut off what goes to the others. */
void remote_end_parts(struct remote *remote, double timeout_s) {
    struct error ignored = {0};
    for (int h = 0; remote->sends && h < remote->count; h++)
        if (!transfer_is_done(&remote->sends[h])) endpoints_finish(&remote->sends[h], 1, timeout_s, &ignored);
}

/* --- before and after it --- */

static int read_weights(struct remote *remote, struct request *request, float *weights, bool *over,
                        struct finish *finish, struct error *error) {
    RETURN_IF(read_headers(remote, over, finish, error));
    if (*over) return OK;
    for (int h = 0; h < remote->count; h++) begin_part(remote, h, remote->hosts[h].request, REQUEST_BYTES);
    RETURN_IF(receive_all(remote, error));
    RETURN_IF(read_own(remote, error));
    begin_slices(remote, weights);
    if (!remote->overlaps || !is_plain(remote)) {
        RETURN_IF(read_slices(remote, error));
        return take_weights(remote, request, weights, error);
    }
    endpoints_begin(remote->transfers, remote->count);
    remote->transfer_count = 0;
    remote->comes = true;
    return request_get(request, remote->hosts[0].request, endpoint_name(remote->hosts[0].endpoint), error);
}

int remote_weights(struct remote *remote, struct request *request, float *weights, bool *over,
                   struct finish *finish, struct error *error) {
    remote->moved_s = 0.0;
    const int code = read_weights(remote, request, weights, over, finish, error);
    return remote_name_server(remote, code, error);
}

bool remote_steps(const struct remote *remote) {
    return remote->hosts[0].steps;
}

bool remote_sums(const struct remote *remote) {
    return remote->hosts[0].sums;
}

/* What follows the head of an answer. */
static int answer_pieces(const struct remote *remote, struct remote_host *host, const float *gradient,
                         bool stepped, struct piece *pieces) {
    if (stepped) return host->gives ? remote_own_pieces(remote, host, pieces) : 0;
    if (host->sums && host->welcome.root != host->welcome.worker) return 0;
    gradient += host->welcome.begin;
    pieces[0] = packed_is_on(&host->packed) ? packed_gradient(&host->packed, gradient)
                                            : (struct piece){gradient, host->left * sizeof(float)};
    return 1;
}

/* Behind the part that is on its way to the host, where there is one. */
static void begin_answer(struct remote *remote, int h, const struct answer *answer, const float *gradient,
                         bool stepped) {
    struct remote_host *host = &remote->hosts[h];
    struct transfer *send = &remote->sends[h];
    const uint32_t packed = packed_is_on(&host->packed) ? FRAME_PACKED : 0;
    const struct frame_header header = {.type = FRAME_GRADIENT, .flags = stepped ? FRAME_STEP : packed};
    const bool follows = !transfer_is_done(send);
    struct piece *pieces = host->pieces + (follows ? send->piece_count : 0);
    const int count = 2 + answer_pieces(remote, host, gradient, stepped, pieces + 2);
    put_head(host, header, answer, host->head, host->answer, pieces, count);
    if (follows) {
        send->piece_count += count;
        return;
    }
    *send = (struct transfer){.endpoint = host->endpoint,
                              .sends = frame_type_words(header.type),
                              .pieces = pieces,
                              .piece_count = count};
    endpoints_begin(send, 1);
}

static int send_answers(struct remote *remote, const struct answer *answer, const float *gradient,
                        bool stepped, struct error *error) {
    if (remote->comes) RETURN_IF(await_weights(remote, SIZE_MAX, error));
    for (int h = 0; h < remote->count; h++) begin_answer(remote, h, answer, gradient, stepped);
    return remote_ask_why(remote, endpoints_finish(remote->sends, remote->count, remote->timeout_s, error),
                          error);
}

int remote_answer(struct remote *remote, const struct answer *answer, const float *gradient, bool stepped,
                  struct error *error) {
    remote->behind = stepped && !remote->hosts[0].gives;
    const int code = send_answers(remote, answer, gradient, stepped, error);
    return remote_name_server(remote, code, error);
}
