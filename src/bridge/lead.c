/* Windows and tallies on the wire. See lead.h. */
#include "lead.h"

#include <string.h>
#include "../base/memory.h"

enum { WINDOW_HEAD_BYTES = 64 }; /* exactly; before the floats, whose place stays a cache line's */

static size_t window_bytes(const struct window *window) {
    return (window->end - window->begin) * sizeof(float);
}

int window_send(struct endpoint *endpoint, const struct window *window, double timeout_s,
                struct error *error) {
    uint8_t head[WINDOW_HEAD_BYTES] = {0};
    struct frame_writer writer = {.bytes = head, .room = sizeof head};
    struct piece pieces[1 + STATE_VECTORS] = {{head, sizeof head}};
    frame_put_u64(&writer, window->begin);
    frame_put_u64(&writer, window->end);
    frame_put_u64(&writer, (uint64_t)window->state.count);
    frame_put_u64(&writer, (uint64_t)window->version);
    for (int v = 0; v < window->state.count; v++)
        pieces[1 + v] = (struct piece){window->state.vector[v].at + window->begin, window_bytes(window)};
    return frame_write(endpoint, FRAME_WINDOW, 0, pieces, 1 + window->state.count, timeout_s, error);
}

int window_receive(struct endpoint *endpoint, const struct frame_header *header, struct window *window,
                   double timeout_s, struct error *error) {
    uint8_t head[WINDOW_HEAD_BYTES];
    RETURN_IF(frame_expect(endpoint, header, FRAME_WINDOW,
                           sizeof head + (uint64_t)window->state.count * window_bytes(window), error));
    RETURN_IF(endpoint_receive(endpoint, "a window", head, sizeof head, timeout_s, error));
    struct frame_reader reader = {.bytes = head, .length = sizeof head};
    const uint64_t begin = frame_get_u64(&reader), end = frame_get_u64(&reader);
    const uint64_t count = frame_get_u64(&reader), version = frame_get_u64(&reader);
    if (begin != window->begin || end != window->end || count != (uint64_t)window->state.count)
        return error_set(error, ERROR_PEER, "%s: a window of floats %llu to %llu, expected %zu to %zu",
                         endpoint_name(endpoint), (unsigned long long)begin, (unsigned long long)end,
                         window->begin, window->end);
    for (int v = 0; v < window->state.count; v++)
        RETURN_IF(endpoint_receive(endpoint, "a window", window->state.vector[v].at + window->begin,
                                   window_bytes(window), timeout_s, error));
    window->version = (long)version;
    return OK;
}

int tallies_send(struct endpoint *endpoint, const uint64_t *values, int count, double timeout_s,
                 struct error *error) {
    void *block = NULL;
    RETURN_IF(memory_zeroed(&block, (size_t)count, sizeof *values, "tallies", error));
    struct frame_writer writer = {.bytes = block, .room = (size_t)count * sizeof *values};
    for (int i = 0; i < count; i++) frame_put_u64(&writer, values[i]);
    const struct piece piece = {block, writer.used};
    const int code = frame_write(endpoint, FRAME_TALLIES, 0, &piece, 1, timeout_s, error);
    memory_free(block);
    return code;
}

int tallies_receive(struct endpoint *endpoint, const struct frame_header *header, uint64_t *values, int count,
                    double timeout_s, struct error *error) {
    const size_t bytes = (size_t)count * sizeof *values;
    void *block = NULL;
    RETURN_IF(frame_expect(endpoint, header, FRAME_TALLIES, bytes, error));
    RETURN_IF(memory_zeroed(&block, (size_t)count, sizeof *values, "tallies", error));
    struct frame_reader reader = {.bytes = block, .length = bytes};
    const int code = frame_read_payload(endpoint, header, block, timeout_s, error);
    for (int i = 0; code == OK && i < count; i++) values[i] = frame_get_u64(&reader);
    memory_free(block);
    return code;
}
