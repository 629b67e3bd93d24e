/* Transfers: one loop that moves bytes for one peer and for many, in both directions.
 *
 * Each turn tries every direction that is not done; when nothing moved it sleeps in poll. It does not spin
 * first: the peer, or the computation that the message is for, needs the core. Measured with bench/wire on
 * two cores that others used too, round trip of 64 bytes, raw loop 18 to 50 us: 32 us without spinning, 97
 * to 119 with 5 us of it, 82 to 226 with 30, 164 to 306 with 100. */
#include "endpoint.h"

#include <math.h>
#include <string.h>

#include "../base/crc32c.h"
#include "endpoint_parts.h"

#define CLOSED "the connection was closed by the peer"
#define CUT_OFF "a message was cut off before, and nothing can follow it"

enum {
    POLLED = 256, /* of more peers at once the first that are not done; the others wait for a slice at most */
    PIECES_A_CALL = 16,
    SUMMED_BYTES = 256 << 10 /* that are received before they are summed: half of a small core's cache */
};

bool endpoint_is_intact(const struct endpoint *endpoint) {
    return endpoint->link->intact;
}

static bool is_sent(const struct transfer *transfer) {
    return transfer->sent >= transfer->cursor.sends;
}

static bool is_received(const struct transfer *transfer) {
    return transfer->received == transfer->bytes;
}

bool transfer_is_done(const struct transfer *transfer) {
    return is_sent(transfer) && is_received(transfer);
}

/* Steps over `bytes` that the kernel took, and over pieces without any. */
static void advance(struct transfer *transfer, size_t bytes) {
    transfer->sent += bytes;
    transfer->cursor.offset += bytes;
    while (transfer->cursor.piece < transfer->piece_count &&
           transfer->cursor.offset >= transfer->pieces[transfer->cursor.piece].bytes) {
        transfer->cursor.offset -= transfer->pieces[transfer->cursor.piece].bytes;
        transfer->cursor.piece++;
    }
}

static void count_sends(struct transfer *transfer) {
    transfer->cursor.sends = 0;
    for (int i = 0; i < transfer->piece_count; i++) transfer->cursor.sends += transfer->pieces[i].bytes;
}

static void start(struct transfer *transfer, double now) {
    transfer->sent = transfer->received = 0;
    memset(&transfer->cursor, 0, sizeof transfer->cursor);
    transfer->cursor.since = transfer->cursor.left = now;
    count_sends(transfer);
    advance(transfer, 0);
}

/* --- what went wrong --- */

static int fail_moving(const struct transfer *transfer, bool sending, const char *why, struct error *error) {
    const struct endpoint *endpoint = transfer->endpoint;
    if (atomic_load(&endpoint->interrupted)) why = "the connection was ended on this side";
    return error_set(error, ERROR_PEER, "%s: %s (%zu of %zu bytes of %s were %s)", endpoint->name, why,
                     sending ? transfer->sent : transfer->received,
                     sending ? transfer->cursor.sends : transfer->bytes,
                     sending ? transfer->sends : transfer->awaits, sending ? "sent" : "received");
}

static int fail_waiting(const struct transfer *transfer, double seconds, struct error *error) {
    const char *name = transfer->endpoint->name;
    if (!is_sent(transfer))
        return error_set(error, ERROR_PEER, "%s: took %zu of %zu bytes of %s, then none for %g s", name,
                         transfer->sent, transfer->cursor.sends, transfer->sends, seconds);
    if (transfer->received == 0)
        return error_set(error, ERROR_PEER, "%s: no byte of %s for %g s", name, transfer->awaits, seconds);
    return error_set(error, ERROR_PEER, "%s: only %zu of %zu bytes of %s, and no more of it in %g s", name,
                     transfer->received, transfer->bytes, transfer->awaits, seconds);
}

/* Where it went wrong, what stays of messages that will not be completed: the peer would take what follows
 * for the rest. */
static int cut_off(struct transfer *transfers, int count, int code) {
    for (int i = 0; i < count && code != OK; i++) {
        struct endpoint *endpoint = transfers[i].endpoint;
        bool sent = transfers[i].sent > 0 || endpoint->held > 0;
        if (transfer_is_done(&transfers[i])) continue;
        if (endpoint->link->give_up) sent = endpoint->link->give_up(endpoint) || sent;
        if (sent && !is_sent(&transfers[i])) atomic_store(&endpoint->cut_off, true);
    }
    return code;
}

/* --- moving --- */

static int send_some(struct transfer *transfer, bool *moved, struct error *error) {
    struct endpoint *endpoint = transfer->endpoint;
    struct iovec parts[PIECES_A_CALL];
    size_t count = 0, offset = transfer->cursor.offset;
    if (atomic_load(&endpoint->cut_off)) return fail_moving(transfer, true, CUT_OFF, error);
    for (int i = transfer->cursor.piece; i < transfer->piece_count && count < PIECES_A_CALL; i++) {
        const struct piece *piece = &transfer->pieces[i];
        char *memory = (char *)(uintptr_t)piece->memory;               /* the kernel only reads it */
        parts[count].iov_base = offset > 0 ? memory + offset : memory; /* an empty piece may have none */
        parts[count++].iov_len = piece->bytes - offset;
        offset = 0;
    }
    const char *why = "";
    const ssize_t bytes = endpoint->link->send(endpoint, parts, count, &why);
    if (bytes == LINK_AGAIN) return OK;
    if (bytes < 0) return fail_moving(transfer, true, bytes == LINK_ENDED ? CLOSED : why, error);
    atomic_fetch_add_explicit(&endpoint->sent, bytes, memory_order_relaxed);
    advance(transfer, (size_t)bytes);
    *moved = *moved || bytes > 0;
    return OK;
}

static int receive_some(struct transfer *transfer, bool *moved, struct error *error) {
    struct endpoint *endpoint = transfer->endpoint;
    char *const buffer = (char *)transfer->buffer + transfer->received;
    const size_t left = transfer->bytes - transfer->received;
    const bool in_parts = transfer->sum && left > SUMMED_BYTES && !endpoint->link->whole;
    const size_t room = in_parts ? SUMMED_BYTES : left;
    const char *why = "";
    ssize_t bytes = (ssize_t)endpoint_take_ahead(endpoint, buffer, room);
    if (bytes == 0) bytes = endpoint->link->receive(endpoint, buffer, room, &why);
    if (bytes == LINK_AGAIN) return OK;
    if (bytes < 0) return fail_moving(transfer, false, bytes == LINK_ENDED ? CLOSED : why, error);
    atomic_fetch_add_explicit(&endpoint->received, bytes, memory_order_relaxed);
    transfer->received += (size_t)bytes;
    if (transfer->sum) *transfer->sum = crc32c(*transfer->sum, buffer, (size_t)bytes);
    *moved = true;
    return OK;
}

/* One turn over all of them. */
static int move_some(struct transfer *transfers, int count, bool *moved, bool *done, struct error *error) {
    *moved = false;
    *done = true;
    for (int i = 0; i < count; i++) {
        if (!is_sent(&transfers[i])) RETURN_IF(send_some(&transfers[i], moved, error));
        if (!is_received(&transfers[i])) RETURN_IF(receive_some(&transfers[i], moved, error));
        *done = *done && transfer_is_done(&transfers[i]);
    }
    return OK;
}

/* A link that encrypts may hold all of a message, of which the socket has taken nothing: that cannot be taken
 * back, and goes before anything else does. Who does not wait at all has sent it, as where a kernel holds it.
 */
static bool is_held(struct transfer *transfer) {
    struct endpoint *endpoint = transfer->endpoint;
    if (is_sent(transfer) || transfer->sent + endpoint->held < transfer->cursor.sends) return false;
    atomic_fetch_add_explicit(&endpoint->sent, (long long)endpoint->held, memory_order_relaxed);
    advance(transfer, endpoint->held);
    endpoint->held = 0;
    return true;
}

/* --- waiting --- */

/* Notes signs of life, and gives up on the first peer that is silent for too long. *left: how long the most
 * silent one may still be so. */
static int check_timeout(struct transfer *transfers, int count, double now, double timeout_s, double *left,
                         struct error *error) {
    *left = timeout_s;
    for (int i = 0; i < count; i++) {
        struct transfer *transfer = &transfers[i];
        const size_t moved = transfer->sent + transfer->received;
        if (transfer_is_done(transfer)) continue;
        if (world_stopped(transfer->endpoint->world))
            return fail_moving(transfer, !is_sent(transfer), "stopped while waiting", error);
        if (moved - transfer->cursor.seen >= ENDPOINT_LIFE_BYTES) {
            transfer->cursor.seen = moved;
            transfer->cursor.since = now;
        }
        const double silent_s = now - transfer->cursor.since;
        if (silent_s >= timeout_s) return fail_waiting(transfer, timeout_s, error);
        *left = fmin(*left, timeout_s - silent_s);
    }
    return OK;
}

static void sleep_until_ready(struct transfer *transfers, int count, double seconds) {
    struct pollfd waits[2 * POLLED];
    int waiting = 0;
    for (int i = 0; i < count && waiting < 2 * POLLED - 1; i++) {
        const struct endpoint *endpoint = transfers[i].endpoint;
        const bool receives = !is_received(&transfers[i]), sends = !is_sent(&transfers[i]);
        const int sends_at = atomic_load(&endpoint->send_socket),
                  receives_at = endpoint_receives_at(endpoint);
        if (receives)
            waits[waiting++] = (struct pollfd){.fd = receives_at, .events = endpoint->receive_waits};
        if (sends && receives && sends_at == receives_at) /* one entry per descriptor: see sockets.c */
            waits[waiting - 1].events |= endpoint->send_waits;
        else if (sends)
            waits[waiting++] = (struct pollfd){.fd = sends_at, .events = endpoint->send_waits};
    }
    endpoint_poll(transfers[0].endpoint->world, waits, waiting, seconds);
}

static int wait_for_rest(struct transfer *transfers, int count, double timeout_s, struct error *error) {
    const struct world *world = transfers[0].endpoint->world;
    while (true) {
        bool moved, done;
        RETURN_IF(move_some(transfers, count, &moved, &done, error));
        if (done) return OK;
        if (moved) continue;
        if (timeout_s <= 0.0 && count == 1 && is_received(transfers) && is_held(transfers)) return OK;
        double left_s;
        RETURN_IF(check_timeout(transfers, count, world_now(world), timeout_s, &left_s, error));
        sleep_until_ready(transfers, count, left_s);
    }
}

void endpoints_begin(struct transfer *transfers, int count) {
    for (int i = 0; i < count; i++) start(&transfers[i], world_now(transfers[i].endpoint->world));
}

int endpoints_move(struct transfer *transfers, int count, struct error *error) {
    bool moved = true, done = false;
    int code = OK;
    for (int i = 0; i < count; i++) count_sends(&transfers[i]);
    while (code == OK && moved && !done) code = move_some(transfers, count, &moved, &done, error);
    return cut_off(transfers, count, code);
}

int endpoints_finish(struct transfer *transfers, int count, double timeout_s, struct error *error) {
    if (count == 0) return OK;
    const struct world *world = transfers[0].endpoint->world;
    const double now = world_now(world);
    for (int i = 0; i < count; i++) {
        count_sends(&transfers[i]);
        transfers[i].cursor.since += now - transfers[i].cursor.left; /* nobody waited meanwhile */
    }
    const int code = wait_for_rest(transfers, count, timeout_s, error);
    for (int i = 0; i < count; i++) transfers[i].cursor.left = world_now(world);
    return cut_off(transfers, count, code);
}

int endpoints_exchange(struct transfer *transfers, int count, double timeout_s, struct error *error) {
    endpoints_begin(transfers, count);
    return endpoints_finish(transfers, count, timeout_s, error);
}

int endpoint_send(struct endpoint *endpoint, const char *what, const struct piece *pieces, int count,
                  double timeout_s, struct error *error) {
    struct transfer transfer = {.endpoint = endpoint, .sends = what, .pieces = pieces, .piece_count = count};
    return endpoints_exchange(&transfer, 1, timeout_s, error);
}

int endpoint_receive(struct endpoint *endpoint, const char *what, void *buffer, size_t bytes,
                     double timeout_s, struct error *error) {
    struct transfer transfer = {.endpoint = endpoint, .awaits = what, .buffer = buffer, .bytes = bytes};
    return endpoints_exchange(&transfer, 1, timeout_s, error);
}
