/* The link over UCX: RDMA where there is any, else UCX's own shared memory. Where it has neither to a peer,
 * the connection stays what it began as.
 *
 * A connection begins over TCP. Once both sides have said who they are and agree, they tell each other the
 * addresses of their UCX workers, and each direction goes over by itself, behind a message that says so
 * (bridge/upgrade.c). Strangers get no further than TCP, and UCX is given no address of theirs to read.
 *
 * The TCP connection stays: as the sign of life, which the kernel ends with the process; to be interrupted;
 * and for words of 8 bytes, counts. How much a side has taken: no more is under way than is allowed, and who
 * waits for room is woken, which UCX's shared memory does not do. And how many messages it has sent in all,
 * so that the end of a direction does not come before them.
 *
 * Every connection has a worker of its own, used under a lock by who sends and who receives. Neither spins:
 * each waits at a set of descriptors (epoll) with the worker's, which is armed before, the TCP socket, and a
 * bell. The bell is rung by the other of the two, where its work on the worker has taken what was awaited.
 *
 * Bytes go as messages of UCX, of any length. Small pieces are copied into slots, as the kernel copies for a
 * socket: UCX may need them after `send` has returned. Of large ones UCX reads the sender's memory, and the
 * receiver fetches them into its own (ucx_inbox.c) where it has room for a whole message: nothing is copied
 * that need not be, and each side is woken once, not for every few thousand bytes. `send` returns when they
 * have gone. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../base/bytes.h"
#include "../base/memory.h"
#include "ucx_parts.h"

#define GRACE_S 0.5 /* for TCP to end after UCX has failed */
#define CLOSE_S 1.0 /* for UCX to take the last of what was sent, and to end */
#define LOOK_S 0.01 /* between two looks at it */

/* --- what happens on the worker --- */

void ucx_note_failure(void *argument, ucp_ep_h peer, ucs_status_t status) {
    struct ucx_link *link = argument;
    (void)peer;
    if (link->failed != UCS_OK) return;
    link->failed = status;
    link->failed_s = world_now(link->lock.world);
}

/* Frees the request once it is; NULL is. */
bool ucx_is_done(struct ucx_link *link, void **request) {
    if (!*request) return true;
    const ucs_status_t status = link->ucp->ucp_request_check_status(*request);
    if (status == UCS_INPROGRESS) return false;
    if (status != UCS_OK) ucx_note_failure(link, link->peer, status);
    link->ucp->ucp_request_free(*request);
    *request = NULL;
    return true;
}

static bool has_room(struct ucx_link *link) {
    return link->sent - link->taken < WINDOW_BYTES && ucx_is_done(link, &link->slots[link->slot]);
}

/* UCX reads the sender's memory. */
static bool is_lending(struct ucx_link *link) {
    bool lending = false;
    for (int s = 0; s < SLOTS; s++)
        lending = (!ucx_is_done(link, &link->slots[s]) && link->lent[s]) || lending;
    return lending;
}

/* What a sender that sleeps has waited for. */
static bool may_send(struct ucx_link *link) {
    return link->failed != UCS_OK || (link->ahead > 0 ? !is_lending(link) : has_room(link));
}

static bool is_sane(const struct ucx_link *link, uint64_t word) {
    if (word & TOTAL) return true;
    return word >= link->taken && word <= link->sent;
}

/* What the peer says over TCP; and the end of that: it has closed, or has gone. */
static void hear(struct endpoint *endpoint, struct ucx_link *link) {
    while (!link->ended && link->receives) {
        const ssize_t found =
            endpoint_socket_receive(endpoint, link->word + link->heard, WORD_BYTES - link->heard);
        if (found < 0 && (errno == EAGAIN || errno == EINTR)) return;
        link->ended = found <= 0;
        if (link->ended) break;
        link->heard = (link->heard + (size_t)found) % WORD_BYTES;
        if (link->heard > 0) continue;
        const uint64_t word = bytes_little(link->word, WORD_BYTES);
        if (!is_sane(link, word)) ucx_note_failure(link, link->peer, UCS_ERR_OUT_OF_RANGE);
        if (link->failed != UCS_OK) return;
        if (word & TOTAL)
            link->total = word;
        else
            link->taken = word;
    }
    if (!link->ended) return;
    epoll_ctl(link->sender.set, EPOLL_CTL_DEL, endpoint->socket, NULL); /* it would wake for ever */
    epoll_ctl(link->receiver.set, EPOLL_CTL_DEL, endpoint->socket, NULL);
}

/* A word goes as a whole, or not at all where there is no room just now, as there is for thousands of them.
 */
static bool tell(struct endpoint *endpoint, struct ucx_link *link, uint64_t word) {
    uint8_t bytes[WORD_BYTES];
    const struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};
    bytes_put_little(bytes, WORD_BYTES, word);
    const ssize_t told = endpoint_socket_send(endpoint, &part, 1);
    if (told > 0 && told < WORD_BYTES) ucx_note_failure(link, link->peer, UCS_ERR_IO_ERROR);
    return told == WORD_BYTES;
}

static bool progress(struct ucx_link *link) {
    return link->ucp->ucp_worker_progress(link->worker) != 0;
}

static void ring(struct bed *bed) {
    const uint64_t one = 1;
    if (!bed->asleep || bed->rung) return;
    bed->rung = write(bed->bell, &one, sizeof one) == sizeof one;
}

/* Whoever comes is awake. */
static void rise(struct bed *bed) {
    uint64_t rings;
    bed->asleep = false;
    if (bed->rung) bed->rung = read(bed->bell, &rings, sizeof rings) < 0;
}

/* True: what comes from now on wakes who waits. False: something has come meanwhile. */
static bool fall_asleep(struct ucx_link *link, struct bed *bed) {
    const ucs_status_t status = link->ucp->ucp_worker_arm(link->worker);
    if (status == UCS_ERR_BUSY) return false;
    if (status != UCS_OK) ucx_note_failure(link, link->peer, status);
    bed->asleep = status == UCS_OK;
    return bed->asleep;
}

/* UCX may notice before TCP does that the peer has closed the connection, or has gone. */
static int judge(struct ucx_link *link, const char **why) {
    if (link->ended) return LINK_ENDED;
    if (link->failed != UCS_ERR_OUT_OF_RANGE && world_now(link->lock.world) - link->failed_s < GRACE_S)
        return LINK_AGAIN;
    snprintf(link->why, sizeof link->why, "%s%s",
             link->failed == UCS_ERR_OUT_OF_RANGE ? "its counts over TCP: " : "UCX: ",
             link->ucp->ucs_status_string(link->failed));
    *why = link->why;
    return LINK_BROKEN;
}

/* --- what is sent --- */

/* What is left of a piece behind the first `offset` bytes of all; empty: nothing. */
static struct iovec rest_at(const struct iovec *pieces, size_t count, size_t offset) {
    for (size_t i = 0; i < count; i++) {
        if (offset < pieces[i].iov_len)
            return (struct iovec){(uint8_t *)pieces[i].iov_base + offset, pieces[i].iov_len - offset};
        offset -= pieces[i].iov_len;
    }
    return (struct iovec){0};
}

/* Small pieces behind the first `offset` bytes, as many as a slot holds. */
static size_t fill_slot(uint8_t *slot, const struct iovec *pieces, size_t count, size_t offset) {
    size_t filled = 0;
    while (filled < SLOT_BYTES) {
        const struct iovec rest = rest_at(pieces, count, offset + filled);
        const size_t bytes = ucx_least(rest.iov_len, SLOT_BYTES - filled);
        if (bytes == 0 || rest.iov_len > SLOT_BYTES) break;
        memcpy(slot + filled, rest.iov_base, bytes);
        filled += bytes;
    }
    return filled;
}

/* Whether the kernel, or whatever moves the bytes, has all that was sent. Until then somebody has to come
 * again: UCX does not move it on by itself. A flush of the endpoint would wait for the peer. */
static bool is_flushed(struct ucx_link *link) {
    const ucp_request_param_t param = {.op_attr_mask = 0};
    for (int s = 0; s < SLOTS; s++)
        if (!ucx_is_done(link, &link->slots[s])) return false;
    while (ucx_is_done(link, &link->flush)) {
        if (!link->unflushed) return true;
        link->unflushed = false;
        link->flush = link->ucp->ucp_worker_flush_nbx(link->worker, &param);
        if (UCS_PTR_IS_ERR(link->flush)) ucx_note_failure(link, link->peer, UCS_PTR_STATUS(link->flush));
        if (UCS_PTR_IS_ERR(link->flush)) link->flush = NULL;
    }
    return false;
}

/* Its memory, up to the next slot's. */
static uint8_t *slot_bytes(const struct ucx_link *link) {
    return link->bytes + (size_t)link->slot * (NUMBER_BYTES + SLOT_BYTES);
}

/* `lent`: [bytes] of the sender's that follow the `small` ones in the slot; NULL: those are all. UCX reads
 * the slot until the message has gone. The greeting asks for an answer: without one a message of several
 * pieces could not go. False: it has failed. */
static bool post(struct ucx_link *link, size_t small, const void *lent, size_t bytes) {
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = (lent ? 0 : UCP_AM_SEND_FLAG_EAGER) |
                                                (link->number == 0 ? UCP_AM_SEND_FLAG_REPLY : 0)};
    uint8_t *slot = slot_bytes(link);
    bytes_put_little(slot, NUMBER_BYTES, link->number);
    const ucs_status_ptr_t request =
        lent ? link->ucp->ucp_am_send_nbx(link->peer, MESSAGE_LENT, slot, NUMBER_BYTES + small, lent, bytes,
                                          &param)
             : link->ucp->ucp_am_send_nbx(link->peer, MESSAGE_COPIED, slot, NUMBER_BYTES, slot + NUMBER_BYTES,
                                          small, &param);
    if (UCS_PTR_IS_ERR(request)) {
        ucx_note_failure(link, link->peer, UCS_PTR_STATUS(request));
        return false;
    }
    link->slots[link->slot] = request; /* NULL: it is done */
    link->lent[link->slot] = lent != NULL;
    link->slot = (link->slot + 1) % SLOTS;
    link->unflushed = true;
    link->number++;
    link->sent += (lent ? 0 : small) + MESSAGE_COST;
    return true;
}

/* Those bytes of the pieces behind the first `offset` for which there is room. A few before a large piece go
 * along with it: the receiver is woken once. */
static size_t put(struct ucx_link *link, const struct iovec *pieces, size_t count, size_t offset) {
    size_t all = 0;
    while (link->failed == UCS_OK && has_room(link)) {
        const size_t small = fill_slot(slot_bytes(link) + NUMBER_BYTES, pieces, count, offset + all);
        const struct iovec rest = rest_at(pieces, count, offset + all + small);
        const bool lends = rest.iov_len > SLOT_BYTES && small <= SMALL_BYTES;
        const size_t parts = (rest.iov_len + LENT_MOST - 1) / LENT_MOST; /* none is a small rest */
        const size_t bytes = lends ? (rest.iov_len + parts - 1) / parts : 0;
        if (small + bytes == 0 || !post(link, small, lends ? rest.iov_base : NULL, bytes)) break;
        all += small + bytes;
    }
    return all;
}

/* The first byte either way, which belongs to nothing that is sent: the workers find each other by it. */
static void greet(struct ucx_link *link) {
    put(link, &(struct iovec){.iov_base = "", .iov_len = 1}, 1, 0);
    link->sent = 0;
    is_flushed(link);
}

int ucx_reach(struct endpoint *endpoint, const uint8_t *address, bool *there, struct error *error) {
    struct ucx_link *link = endpoint->state;
    const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                                  UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                                  UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                    .address = (const ucp_address_t *)address,
                                    .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                    .err_handler = {ucx_note_failure, link}};
    const ucs_status_t status = link->ucp->ucp_ep_create(link->worker, &params, &link->peer);
    *there = status != UCS_ERR_UNREACHABLE;
    if (!*there) return OK;
    if (status != UCS_OK)
        return error_set(error, ERROR_PEER, "%s: cannot be reached over UCX: %s", endpoint->name,
                         link->ucp->ucs_status_string(status));
    endpoint->wakes = link->receiver.set;
    greet(link);
    return OK;
}

/* As much as there is room for. While UCX still reads the sender's memory nothing follows, and none of that
 * is held: only what has gone is a sign of life. */
static void put_more(struct endpoint *endpoint, struct ucx_link *link, const struct iovec *pieces,
                     size_t count) {
    if (link->ahead == 0) link->ahead = put(link, pieces, count, endpoint->held);
    if (is_lending(link)) return;
    endpoint->held += link->ahead;
    link->ahead = 0;
}

/* What is the last of all is reported once it has left UCX: nobody might come to move it on. */
static ssize_t send_over(struct endpoint *endpoint, struct ucx_link *link, const struct iovec *pieces,
                         size_t count, const char **why) {
    size_t all = 0;
    for (size_t i = 0; i < count; i++) all += pieces[i].iov_len;
    rise(&link->sender);
    hear(endpoint, link);
    while (true) {
        while (link->ended && link->ahead > 0 && progress(link)) continue; /* it may have taken all before */
        if (link->failed != UCS_OK || (link->ended && (link->ahead == 0 || is_lending(link))))
            return judge(link, why);
        put_more(endpoint, link, pieces, count);
        const size_t held = endpoint->held;
        const bool moved = link->ahead == 0 && held > 0 && (held < all || is_flushed(link));
        if (ucx_has_data(link) || link->failed != UCS_OK) ring(&link->receiver);
        if (moved) endpoint->held = 0;
        if (moved) return (ssize_t)held;
        const uint64_t taken = link->taken;
        hear(endpoint, link);
        if (progress(link) || link->taken != taken || link->ended) continue;
        if (fall_asleep(link, &link->sender)) return LINK_AGAIN;
    }
}

/* --- what is received --- */

/* Everything that was sent has come; of one who has gone without a count, what there is. */
static bool is_over(const struct endpoint *endpoint, const struct ucx_link *link) {
    if (endpoint->interrupted) return true;
    return link->total ? (link->total & ~TOTAL) <= link->next : link->ended;
}

static ssize_t receive_over(struct endpoint *endpoint, struct ucx_link *link, uint8_t *buffer, size_t most,
                            const char **why) {
    rise(&link->receiver);
    while (true) {
        const size_t all = ucx_take(link, buffer, most);
        if (link->received - link->told >= UNTOLD_BYTES && tell(endpoint, link, link->received))
            link->told = link->received;
        if (all > 0 && may_send(link)) ring(&link->sender);
        if (all > 0) return (ssize_t)all;
        const bool over = is_over(endpoint, link); /* before the last look for what has come */
        if (progress(link)) continue;
        if (may_send(link)) ring(&link->sender);
        if (ucx_has_data(link)) continue;
        if (over) return LINK_ENDED;
        hear(endpoint, link);
        if (link->failed != UCS_OK && !is_over(endpoint, link)) return judge(link, why);
        if (!is_over(endpoint, link) && fall_asleep(link, &link->receiver)) return LINK_AGAIN;
    }
}

/* --- the link --- */

static ssize_t send_bytes(struct endpoint *endpoint, const struct iovec *pieces, size_t count,
                          const char **why) {
    struct ucx_link *link = endpoint->state;
    if (!link->sends) return link_tcp.send(endpoint, pieces, count, why);
    lock_take(&link->lock);
    const ssize_t moved = send_over(endpoint, link, pieces, count, why);
    lock_release(&link->lock);
    return moved;
}

/* Until the peer sends over UCX, what this side has sent there still needs the worker. */
static ssize_t receive_bytes(struct endpoint *endpoint, void *buffer, size_t bytes, const char **why) {
    struct ucx_link *link = endpoint->state;
    ssize_t found;
    lock_take(&link->lock);
    if (link->receives) {
        found = receive_over(endpoint, link, buffer, bytes, why);
    } else {
        while (link->peer && link->failed == UCS_OK &&
               (progress(link) || !fall_asleep(link, &link->receiver)))
            continue;
        found = link_tcp.receive(endpoint, buffer, bytes, why);
    }
    lock_release(&link->lock);
    return found;
}

/* True: the peer has been told the count, or needs none any more. */
static bool has_finished(struct endpoint *endpoint, struct ucx_link *link) {
    hear(endpoint, link);
    if (link->finished || link->failed != UCS_OK || link->ended) return true;
    while (progress(link)) continue;
    link->finished = is_flushed(link) && tell(endpoint, link, TOTAL | link->number);
    return link->finished;
}

static void finish(struct endpoint *endpoint) {
    struct ucx_link *link = endpoint->state;
    if (!link->sends) {
        link_tcp.finish(endpoint);
        return;
    }
    lock_take(&link->lock);
    has_finished(endpoint, link);
    lock_release(&link->lock);
}

/* --- the end --- */

/* What was sent last may not have left yet. Half a message helps nobody. */
static void finish_late(struct endpoint *endpoint, struct ucx_link *link) {
    const double until = world_now(endpoint->world) + CLOSE_S;
    const bool wanted = link->sends && !endpoint->interrupted && !endpoint->cut_off;
    while (wanted && !has_finished(endpoint, link) && world_now(endpoint->world) < until)
        endpoint_poll(endpoint->world, NULL, 0, LOOK_S);
}

static void end_request(const struct ucx_library *ucp, void *request) {
    if (UCS_PTR_IS_PTR(request)) ucp->ucp_request_free(request);
}

/* From then on UCX touches no memory of a sender or a receiver. */
static void close_peer(struct endpoint *endpoint, struct ucx_link *link) {
    const struct ucx_library *ucp = link->ucp;
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_EP_CLOSE_FLAG_FORCE};
    const double until = world_now(endpoint->world) + CLOSE_S;
    void *request = ucp->ucp_ep_close_nbx(link->peer, &param);
    while (UCS_PTR_IS_PTR(request) && ucp->ucp_request_check_status(request) == UCS_INPROGRESS &&
           world_now(endpoint->world) < until)
        progress(link);
    end_request(ucp, request);
    for (int s = 0; s < SLOTS; s++) end_request(ucp, link->slots[s]);
    memset(link->slots, 0, sizeof link->slots);
    end_request(ucp, link->fetch);
    link->fetch = NULL;
    for (int i = 0; i < MESSAGES; i++) ucx_let_go(link); /* those behind one that has not come, too */
    end_request(ucp, link->flush);
    link->flush = NULL;
    link->peer = NULL;
}

/* Messages that were lent go on; of what is fetched nothing may come into the receiver's memory any more. */
static bool give_up(struct endpoint *endpoint) {
    struct ucx_link *link = endpoint->state;
    lock_take(&link->lock);
    const bool sent = link->ahead > 0;
    if (link->peer && link->fetching && ucx_first(link)->place == PLACE_CALLER) {
        ucx_note_failure(link, link->peer, UCS_ERR_CANCELED);
        close_peer(endpoint, link);
    }
    lock_release(&link->lock);
    return sent;
}

static void close_link(struct endpoint *endpoint) {
    struct ucx_link *link = endpoint->state;
    if (link->peer) finish_late(endpoint, link);
    if (link->peer) close_peer(endpoint, link);
    ucx_close_worker(link);
    memory_free(link->bytes);
    memory_free(link);
    endpoint->state = NULL;
}

/* What moves as TCP does is not checked by UCX either. `open`: ucx_begin. */
const struct link_kind link_ucx = {.tells_end = true,
                                   .whole = true,
                                   .send = send_bytes,
                                   .receive = receive_bytes,
                                   .drop = receive_bytes,
                                   .give_up = give_up,
                                   .finish = finish,
                                   .close = close_link};
