/* The link without encryption: bytes as they are. */
#include <errno.h>
#include <string.h>

#include "endpoint_parts.h"
#include "link.h"

static int open_link(struct endpoint *endpoint, bool accepted, struct error *error) {
    (void)accepted, (void)error;
    endpoint->send_waits = POLLOUT;
    endpoint->receive_waits = POLLIN;
    return OK;
}

static ssize_t judge(const char **why) {
    if (errno == EAGAIN || errno == EINTR) return LINK_AGAIN;
    if (errno == EPIPE || errno == ECONNRESET) return LINK_ENDED;
    *why = strerror(errno);
    return LINK_BROKEN;
}

static ssize_t send_bytes(struct endpoint *endpoint, const struct iovec *parts, size_t count,
                          const char **why) {
    const ssize_t bytes = endpoint_socket_send(endpoint, parts, count);
    return bytes < 0 ? judge(why) : bytes;
}

static ssize_t receive_bytes(struct endpoint *endpoint, void *buffer, size_t bytes, const char **why) {
    const ssize_t found = endpoint_socket_receive(endpoint, buffer, bytes);
    return found < 0 ? judge(why) : found == 0 ? LINK_ENDED : found;
}

static void finish(struct endpoint *endpoint) {
    endpoint_socket_end(endpoint);
}

static void close_link(struct endpoint *endpoint) {
    (void)endpoint;
}

const struct link_kind link_tcp = {.open = open_link,
                                   .send = send_bytes,
                                   .receive = receive_bytes,
                                   .drop = receive_bytes,
                                   .finish = finish,
                                   .close = close_link};
