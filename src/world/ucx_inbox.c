/* What has come over UCX and was not taken yet: messages by their number, in UCX's memory or still at the
 * peer, from where they are fetched into the receiver's memory, or where that has no room for the whole
 * message, into memory of the link's. See ucx.c. Under the link's lock. */
#include <assert.h>
#include <string.h>

#include "../base/bytes.h"
#include "../base/memory.h"
#include "ucx_parts.h"

struct message *ucx_first(struct ucx_link *link) {
    return &link->queue[link->next % MESSAGES];
}

/* Each begins with its number, and what is small of a message that was lent. The first of all is nothing but
 * a greeting. */
static ucs_status_t note_message(struct ucx_link *link, const uint8_t *header, size_t header_bytes,
                                 struct message message) {
    const bool fits = header_bytes >= NUMBER_BYTES && header_bytes <= NUMBER_BYTES + SMALL_BYTES;
    const uint64_t number = fits ? bytes_little(header, NUMBER_BYTES) : UINT64_MAX;
    struct message *entry = &link->queue[number % MESSAGES];
    if (number - link->next >= MESSAGES || entry->place != PLACE_NONE) {
        ucx_note_failure(link, link->peer, UCS_ERR_EXCEEDS_LIMIT);
        return UCS_OK;
    }
    if (number == 0) {
        link->next = 1;
        return UCS_OK;
    }
    *entry = message;
    entry->small_bytes = (uint8_t)(header_bytes - NUMBER_BYTES);
    memcpy(entry->small, header + NUMBER_BYTES, entry->small_bytes);
    return UCS_INPROGRESS;
}

static enum place place_of(const ucp_am_recv_param_t *param) {
    return param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV ? PLACE_PEER : PLACE_UCX;
}

ucs_status_t ucx_note_copied(void *argument, const void *header, size_t header_bytes, void *data,
                             size_t bytes, const ucp_am_recv_param_t *param) {
    return note_message(argument, header, header_bytes,
                        (struct message){data, bytes, place_of(param), .copied = true});
}

ucs_status_t ucx_note_lent(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                           const ucp_am_recv_param_t *param) {
    return note_message(argument, header, header_bytes,
                        (struct message){data, bytes, place_of(param), .copied = false});
}

/* Of the first message, once it is taken. */
void ucx_let_go(struct ucx_link *link) {
    struct message *first = ucx_first(link);
    if (first->place == PLACE_UCX || first->place == PLACE_PEER)
        link->ucp->ucp_am_data_release(link->worker, first->data);
    if (first->place == PLACE_OWN) memory_free(first->data);
    link->received += (first->copied ? first->bytes : 0) + MESSAGE_COST;
    *first = (struct message){0};
    link->next++;
    link->used = 0;
}

/* What still is at the peer does not come any more once UCX has failed. */
bool ucx_has_data(struct ucx_link *link) {
    const struct message *first = ucx_first(link);
    if (first->place == PLACE_NONE || link->used < first->small_bytes) return first->place != PLACE_NONE;
    if (link->fetching && !ucx_is_done(link, &link->fetch)) return false;
    return link->failed == UCS_OK || !(link->fetching || first->place == PLACE_PEER);
}

/* Has UCX bring the first message, which still is at the peer, into buffer[most], or where it is too long for
 * that, into memory of the link's. False: it has not come yet, or has failed. */
static bool fetch(struct ucx_link *link, uint8_t *buffer, size_t most) {
    struct message *first = ucx_first(link);
    const ucp_request_param_t param = {.op_attr_mask = 0};
    if (first->place == PLACE_PEER) {
        struct error ignored = {0};
        uint8_t *own = NULL, *to = buffer;
        if (first->bytes > most && memory_array(&own, first->bytes, "a message", &ignored) != OK)
            ucx_note_failure(link, link->peer, UCS_ERR_NO_MEMORY);
        if (link->failed != UCS_OK) return false;
        if (own) to = own;
        const ucs_status_ptr_t request =
            link->ucp->ucp_am_recv_data_nbx(link->worker, first->data, to, first->bytes, &param);
        first->data = to;
        first->place = own ? PLACE_OWN : PLACE_CALLER;
        link->fetching = true;
        if (UCS_PTR_IS_ERR(request)) ucx_note_failure(link, link->peer, UCS_PTR_STATUS(request));
        link->fetch = UCS_PTR_IS_ERR(request) ? NULL : request;
    }
    if (link->fetching && ucx_is_done(link, &link->fetch)) link->fetching = link->failed != UCS_OK;
    return !link->fetching;
}

size_t ucx_take(struct ucx_link *link, uint8_t *buffer, size_t most) {
    size_t all = 0;
    while (all < most && ucx_first(link)->place != PLACE_NONE) {
        const struct message *first = ucx_first(link);
        const bool small = link->used < first->small_bytes;
        const bool fetches = !small && (first->place == PLACE_PEER || link->fetching);
        if (fetches && (all > 0 || !fetch(link, buffer, most))) break;
        const size_t end = first->small_bytes + (small ? 0 : first->bytes);
        const size_t bytes = ucx_least(most - all, end - link->used);
        const uint8_t *from = small ? first->small + link->used
                                    : (const uint8_t *)first->data + (link->used - first->small_bytes);
        if (small || first->place != PLACE_CALLER)
            memcpy(buffer + all, from, bytes);
        else
            assert(first->data == buffer && bytes == first->bytes); /* a call goes on as before */
        all += bytes;
        link->used += bytes;
        if (link->used == first->small_bytes + first->bytes) ucx_let_go(link);
    }
    return all;
}
