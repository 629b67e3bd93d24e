/* See upgrade.h. */
#include "upgrade.h"

#include <stdio.h>

#include "../world/ucx.h"

int link_use(const struct cluster *cluster, struct world *world, struct error *error) {
    RETURN_IF(secret_use(&cluster->secret, cluster->insecure, world, error));
    if (cluster->tcp_alone) endpoint_keep_to_tcp(world);
    if (cluster->shm_alone && cluster->secret.there)
        return error_set(error, ERROR_USAGE,
                         "--link=shm does not encrypt, and there is a key: expected "
                         "another --link, or no key");
    if (cluster->shm_alone) endpoint_keep_to_shared_memory(world);
    return cluster->ucx ? ucx_use(world, !cluster->tcp_alone, error) : OK;
}

uint32_t upgrade_flags(const struct endpoint *endpoint) {
    return ucx_is_used(endpoint) ? HELLO_OFFERS_UCX : 0;
}

static bool has_ended(const struct endpoint *endpoint) {
    return ucx_receives(endpoint) || ucx_stays(endpoint);
}

int upgrade_begin(struct endpoint *endpoint, uint32_t flags, struct error *error) {
    uint8_t address[UCX_ADDRESS_BYTES];
    struct piece own = {address, 0};
    if (!ucx_is_used(endpoint) || !(flags & HELLO_OFFERS_UCX)) return OK;
    RETURN_IF(ucx_begin(endpoint, address, &own.bytes, error));
    return frame_write(endpoint, FRAME_LINK, 0, &own, 1, 0.0, error);
}

bool upgrade_is(const struct endpoint *endpoint, const struct frame_header *header) {
    return ucx_is_used(endpoint) && !has_ended(endpoint) && header->type == FRAME_LINK;
}

bool upgrade_is_next(struct endpoint *endpoint, bool *whole) {
    uint8_t bytes[FRAME_HEADER_BYTES + UCX_ADDRESS_BYTES];
    struct frame_header header;
    struct error ignored = {0};
    *whole = false;
    if (!ucx_is_used(endpoint) || has_ended(endpoint)) return false;
    const size_t count = endpoint_peek(endpoint, bytes, sizeof bytes, 0.0, &(bool){false});
    if (count < FRAME_HEADER_BYTES ||
        frame_unpack_header(&header, bytes, UCX_ADDRESS_BYTES, "", &ignored) != OK ||
        !upgrade_is(endpoint, &header))
        return false;
    *whole = count >= FRAME_HEADER_BYTES + header.bytes;
    return true;
}

/* The host has been heard: this side's address goes out, or nothing where it stays. */
static int answer_host(struct endpoint *endpoint, const uint8_t *host, double timeout_s,
                       struct error *error) {
    uint8_t address[UCX_ADDRESS_BYTES];
    struct piece own = {address, 0};
    bool there;
    RETURN_IF(ucx_begin(endpoint, address, &own.bytes, error));
    RETURN_IF(ucx_reach(endpoint, host, &there, error));
    RETURN_IF(frame_write(endpoint, FRAME_LINK, 0, &own, there ? 1 : 0, timeout_s, error));
    if (there)
        ucx_send_over(endpoint);
    else
        ucx_stay(endpoint);
    return OK;
}

/* The other side has been heard, where it does not stay: it has this one's address, and has reached it. */
static int go_over(struct endpoint *endpoint, const uint8_t *address, double timeout_s, struct error *error) {
    bool there;
    RETURN_IF(ucx_reach(endpoint, address, &there, error));
    if (!there)
        return error_set(error, ERROR_PEER, "%s: cannot be reached over UCX, which it could from there",
                         endpoint_name(endpoint));
    RETURN_IF(frame_write(endpoint, FRAME_LINK, 0, NULL, 0, timeout_s, error));
    ucx_send_over(endpoint);
    ucx_receive_over(endpoint);
    return OK;
}

/* The connecting side hears two, with its own address between them; the host one. */
int upgrade_take(struct endpoint *endpoint, const struct frame_header *header, double timeout_s,
                 struct error *error) {
    uint8_t address[UCX_ADDRESS_BYTES] = {0};
    const bool begun = ucx_has_begun(endpoint), last = ucx_sends(endpoint);
    const bool fits = last ? header->bytes == 0 : begun || header->bytes > 0;
    if (header->type != FRAME_LINK || !fits || header->bytes > sizeof address)
        return error_set(error, ERROR_PEER, "%s: %s of %llu bytes, expected %s", endpoint_name(endpoint),
                         frame_type_words(header->type), (unsigned long long)header->bytes,
                         last ? "an empty one" : "an address of UCX");
    RETURN_IF(frame_read_payload(endpoint, header, address, timeout_s, error));
    if (!begun) return answer_host(endpoint, address, timeout_s, error);
    if (last)
        ucx_receive_over(endpoint);
    else if (header->bytes == 0)
        ucx_stay(endpoint);
    else
        return go_over(endpoint, address, timeout_s, error);
    return OK;
}

int upgrade_hear(struct endpoint *endpoint, double timeout_s, struct error *error) {
    struct frame_header header;
    RETURN_IF(frame_read_header(endpoint, "a link's address", UCX_ADDRESS_BYTES, &header, timeout_s, error));
    return upgrade_take(endpoint, &header, timeout_s, error);
}

bool upgrade_is_pending(const struct endpoint *endpoint) {
    return ucx_has_begun(endpoint) && !has_ended(endpoint);
}

bool upgrade_failed(const struct endpoint *endpoint, uint32_t flags, const char *name, char *words,
                    size_t bytes) {
    const bool stays = ucx_stays(endpoint);
    if (!stays && (!ucx_is_used(endpoint) || (flags & HELLO_OFFERS_UCX) != 0)) return false;
    if (stays)
        snprintf(words, bytes, "UCX has neither RDMA nor shared memory to %s: the connection stays on TCP",
                 name);
    else
        snprintf(words, bytes, "%s has no --link=ucx: the connection stays on TCP", name);
    return true;
}
