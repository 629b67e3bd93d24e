/* See sweep_arrivals.h. */
#include "sweep_arrivals.h"

#include <string.h>

_Static_assert(FRAME_HEADER_BYTES + LANE_HELLO_BYTES <= ENDPOINT_AHEAD_BYTES,
               "a whole hello can be looked at");

/* Of a process with few descriptors they take a quarter at most. */
void arrivals_open(struct arrivals *arrivals) {
    const int descriptors = world_descriptors();
    *arrivals = (struct arrivals){.most = descriptors / 4 < ARRIVALS ? descriptors / 4 + 1 : ARRIVALS};
}

static struct endpoint *take(struct arrivals *arrivals, int index) {
    struct endpoint *endpoint = arrivals->list[index].endpoint;
    arrivals->count--;
    memmove(&arrivals->list[index], &arrivals->list[index + 1],
            (size_t)(arrivals->count - index) * sizeof *arrivals->list);
    return endpoint;
}

void arrivals_make_room(struct arrivals *arrivals) {
    if (arrivals->count > 0) endpoint_close(take(arrivals, 0));
}

void arrivals_close(struct arrivals *arrivals) {
    while (arrivals->count > 0) arrivals_make_room(arrivals);
}

/* Up to the port. */
static bool same_host(const struct endpoint *one, const struct endpoint *other) {
    const char *name = endpoint_name(one), *colon = strrchr(name, ':');
    const size_t length = colon ? (size_t)(colon - name) + 1 : strcspn(name, " ");
    return strncmp(name, endpoint_name(other), length) == 0;
}

void arrivals_add(struct arrivals *arrivals, struct endpoint *endpoint, double now_s) {
    const int most = arrivals->most / 2 < ARRIVALS_OF_ONE ? arrivals->most / 2 : ARRIVALS_OF_ONE;
    int first = -1, like_it = 0;
    for (int i = arrivals->count - 1; i >= 0; i--) {
        if (!same_host(endpoint, arrivals->list[i].endpoint)) continue;
        first = i;
        like_it++;
    }
    if (like_it > 0 && like_it >= most)
        endpoint_close(take(arrivals, first));
    else if (arrivals->count == arrivals->most)
        arrivals_make_room(arrivals);
    arrivals->list[arrivals->count++] = (struct arrival){endpoint, now_s};
}

/* A whole frame is there, or something that will never be one. */
static bool has_spoken(const uint8_t *bytes, size_t count, bool ended) {
    struct frame_header header;
    struct error ignored = {0};
    if (ended) return true;
    if (count < FRAME_HEADER_BYTES) return frame_is_strange(bytes, count);
    if (frame_unpack_header(&header, bytes, LANE_HELLO_BYTES, "", &ignored) != OK) return true;
    return count >= FRAME_HEADER_BYTES + header.bytes;
}

static int read_hello(struct endpoint *endpoint, struct lane_hello *hello, struct error *error) {
    struct frame_header header;
    uint8_t bytes[LANE_HELLO_BYTES];
    const char *name = endpoint_name(endpoint);
    RETURN_IF(frame_read_header(endpoint, "a lane's hello", sizeof bytes, &header, HELLO_S, error));
    if (header.type != FRAME_JOIN)
        return error_set(error, ERROR_PEER, "%s: %s, expected a lane's hello", name,
                         frame_type_words(header.type));
    RETURN_IF(frame_read_payload(endpoint, &header, bytes, HELLO_S, error));
    struct frame_reader reader = {.bytes = bytes, .length = header.bytes};
    return lane_hello_get(hello, &reader, name, error);
}

struct endpoint *arrivals_hear(struct arrivals *arrivals, double now_s, struct lane_hello *hello,
                               struct error *why) {
    for (int i = 0; i < arrivals->count; i++) {
        struct endpoint *endpoint = arrivals->list[i].endpoint;
        uint8_t bytes[FRAME_HEADER_BYTES + LANE_HELLO_BYTES];
        bool ended = false;
        const size_t count = endpoint_peek(endpoint, bytes, sizeof bytes, 0.0, &ended);
        const bool spoken = has_spoken(bytes, count, ended);
        if (!spoken && now_s - arrivals->list[i].since_s < HELLO_S) continue;
        if (spoken)
            read_hello(endpoint, hello, why);
        else
            error_set(why, ERROR_PEER, "%s: waited %g s for a lane's hello, found %zu bytes",
                      endpoint_name(endpoint), HELLO_S, count);
        return take(arrivals, i);
    }
    return NULL;
}
