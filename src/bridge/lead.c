/* Slices and tallies on the wire. See lead.h. */
#include "lead.h"

#include <string.h>
#include "../base/memory.h"

static const uint64_t version_most = 1000000000000000u; /* which a run never reaches, and sums of it fit */
static const uint64_t tally_most = 1000000000000u;

enum { WINDOW_HEAD_BYTES = 64 }; /* exactly; before the floats, whose place stays a cache line's */

static int check_turn(const struct endpoint *endpoint, enum frame_type type, uint64_t turn, uint64_t expected,
                      struct error *error) {
    if (turn == expected) return OK;
    return error_set(error, ERROR_PEER, "%s: %s of turn %llu, expected turn %llu", endpoint_name(endpoint),
                     frame_type_words(type), (unsigned long long)turn, (unsigned long long)expected);
}

static size_t slice_bytes(const struct slice *slice) {
    return (slice->end - slice->begin) * sizeof(float);
}

int slice_send(struct endpoint *endpoint, const struct slice *slice, double timeout_s, struct error *error) {
    uint8_t head[WINDOW_HEAD_BYTES] = {0};
    struct frame_writer writer = {.bytes = head, .room = sizeof head};
    struct piece pieces[1 + STATE_VECTORS] = {{head, sizeof head}};
    frame_put_u64(&writer, slice->begin);
    frame_put_u64(&writer, slice->end);
    frame_put_u64(&writer, (uint64_t)slice->state.count);
    frame_put_u64(&writer, (uint64_t)slice->version);
    frame_put_u64(&writer, slice->turn);
    for (int v = 0; v < slice->state.count; v++)
        pieces[1 + v] = (struct piece){slice->state.vector[v].at + slice->begin, slice_bytes(slice)};
    return frame_write(endpoint, FRAME_SLICE, 0, pieces, 1 + slice->state.count, timeout_s, error);
}

int slice_receive(struct endpoint *endpoint, const struct frame_header *header, struct slice *slice,
                  double timeout_s, struct error *error) {
    uint8_t head[WINDOW_HEAD_BYTES];
    RETURN_IF(frame_expect(endpoint, header, FRAME_SLICE,
                           sizeof head + (uint64_t)slice->state.count * slice_bytes(slice), error));
    struct frame_header reading = *header;
    RETURN_IF(frame_read_part(endpoint, &reading, head, sizeof head, timeout_s, error));
    struct frame_reader reader = {.bytes = head, .length = sizeof head};
    const uint64_t begin = frame_get_u64(&reader), end = frame_get_u64(&reader);
    const uint64_t count = frame_get_u64(&reader), version = frame_get_u64(&reader);
    RETURN_IF(check_turn(endpoint, FRAME_SLICE, frame_get_u64(&reader), slice->turn, error));
    if (begin != slice->begin || end != slice->end || count != (uint64_t)slice->state.count)
        return error_set(error, ERROR_PEER, "%s: a slice of floats %llu to %llu, expected %zu to %zu",
                         endpoint_name(endpoint), (unsigned long long)begin, (unsigned long long)end,
                         slice->begin, slice->end);
    if (version > version_most)
        return error_set(error, ERROR_PEER, "%s: a slice of version %llu, expected at most %llu",
                         endpoint_name(endpoint), (unsigned long long)version,
                         (unsigned long long)version_most);
    for (int v = 0; v < slice->state.count; v++)
        RETURN_IF(frame_read_part(endpoint, &reading, slice->state.vector[v].at + slice->begin,
                                  slice_bytes(slice), timeout_s, error));
    slice->version = (long)version;
    return OK;
}

/* Numbers, in an order that both know. */
static int numbers_send(struct endpoint *endpoint, enum frame_type type, uint64_t turn,
                        const uint64_t *values, int count, double timeout_s, struct error *error) {
    const size_t room = ((size_t)count + 1) * sizeof *values;
    uint8_t *bytes;
    RETURN_IF(memory_array(&bytes, room, "numbers", error));
    struct frame_writer writer = {.bytes = bytes, .room = room};
    frame_put_u64(&writer, turn);
    for (int i = 0; i < count; i++) frame_put_u64(&writer, values[i]);
    const struct piece piece = {bytes, writer.used};
    const int code = frame_write(endpoint, type, 0, &piece, 1, timeout_s, error);
    memory_free(bytes);
    return code;
}

static int numbers_receive(struct endpoint *endpoint, const struct frame_header *header, enum frame_type type,
                           uint64_t turn, uint64_t *values, int count, double timeout_s,
                           struct error *error) {
    const size_t bytes = ((size_t)count + 1) * sizeof *values;
    uint8_t *block = NULL;
    RETURN_IF(frame_expect(endpoint, header, type, bytes, error));
    RETURN_IF(memory_array(&block, bytes, "numbers", error));
    struct frame_reader reader = {.bytes = block, .length = bytes};
    int code = frame_read_payload(endpoint, header, block, timeout_s, error);
    if (code == OK) code = check_turn(endpoint, type, frame_get_u64(&reader), turn, error);
    for (int i = 0; i < count && code == OK; i++) values[i] = frame_get_u64(&reader);
    memory_free(block);
    return code;
}

int tallies_send(struct endpoint *endpoint, uint64_t turn, const uint64_t *values, int count,
                 double timeout_s, struct error *error) {
    return numbers_send(endpoint, FRAME_TALLIES, turn, values, count, timeout_s, error);
}

int tallies_receive(struct endpoint *endpoint, const struct frame_header *header, uint64_t turn,
                    uint64_t *values, int count, double timeout_s, struct error *error) {
    RETURN_IF(numbers_receive(endpoint, header, FRAME_TALLIES, turn, values, count, timeout_s, error));
    for (int i = 0; i < count; i++)
        if (values[i] > tally_most)
            return error_set(error, ERROR_PEER, "%s: tallies with %llu, expected at most %llu",
                             endpoint_name(endpoint), (unsigned long long)values[i],
                             (unsigned long long)tally_most);
    return OK;
}

int admit_send(struct endpoint *endpoint, uint64_t turn, const uint64_t *values, int count, double timeout_s,
               struct error *error) {
    return numbers_send(endpoint, FRAME_ADMIT, turn, values, count, timeout_s, error);
}

int admit_receive(struct endpoint *endpoint, const struct frame_header *header, uint64_t turn,
                  uint64_t *values, int count, double timeout_s, struct error *error) {
    return numbers_receive(endpoint, header, FRAME_ADMIT, turn, values, count, timeout_s, error);
}

int turn_send(struct endpoint *endpoint, enum frame_type type, uint64_t turn, const uint8_t *bytes,
              size_t count, double timeout_s, struct error *error) {
    uint8_t head[sizeof turn];
    struct frame_writer writer = {.bytes = head, .room = sizeof head};
    frame_put_u64(&writer, turn);
    const struct piece pieces[] = {{head, sizeof head}, {bytes, count}};
    return frame_write(endpoint, type, 0, pieces, 2, timeout_s, error);
}

int turn_receive(struct endpoint *endpoint, const struct frame_header *header, enum frame_type type,
                 uint64_t turn, uint8_t *bytes, size_t count, double timeout_s, struct error *error) {
    uint8_t head[sizeof turn];
    struct frame_header reading = *header;
    struct frame_reader reader = {.bytes = head, .length = sizeof head};
    RETURN_IF(frame_expect(endpoint, header, type, sizeof head + count, error));
    RETURN_IF(frame_read_part(endpoint, &reading, head, sizeof head, timeout_s, error));
    if (count > 0) RETURN_IF(frame_read_part(endpoint, &reading, bytes, count, timeout_s, error));
    return check_turn(endpoint, type, frame_get_u64(&reader), turn, error);
}

/* What the schedule is ahead of the versions can be negative. */
void change_put(const struct phase_change *change, uint8_t bytes[CHANGE_BYTES]) {
    struct frame_writer writer = {.bytes = bytes, .room = CHANGE_BYTES};
    frame_put_u64(&writer, (uint64_t)change->phase);
    frame_put_u64(&writer, (uint64_t)change->version);
    frame_put_u64(&writer, (uint64_t)change->schedule_ahead);
    frame_put_u64(&writer, (uint64_t)change->workers);
    frame_put_u64(&writer, (uint64_t)change->total);
}

int change_get(struct phase_change *change, int phases, int workers, const uint8_t bytes[CHANGE_BYTES],
               struct error *error) {
    struct frame_reader reader = {.bytes = bytes, .length = CHANGE_BYTES};
    const uint64_t phase = frame_get_u64(&reader), updates = frame_get_u64(&reader);
    const int64_t ahead = (int64_t)frame_get_u64(&reader), most = (int64_t)version_most;
    const uint64_t working = frame_get_u64(&reader), total = frame_get_u64(&reader);
    if (phase >= (uint64_t)phases)
        return error_set(error, ERROR_PEER, "strategy %llu, expected 0 to %d", (unsigned long long)phase,
                         phases - 1);
    if (updates > version_most || ahead > most || ahead < -most)
        return error_set(error, ERROR_PEER, "a change at version %llu, %lld ahead, expected at most %llu",
                         (unsigned long long)updates, (long long)ahead, (unsigned long long)version_most);
    if (working == 0 || working > (uint64_t)workers || total > version_most)
        return error_set(error, ERROR_PEER,
                         "a change with %llu workers and %llu batches, expected 1 to %d and at most %llu",
                         (unsigned long long)working, (unsigned long long)total, workers,
                         (unsigned long long)version_most);
    *change = (struct phase_change){(int)phase, (long)updates, (long)ahead, (int)working, (long)total};
    return OK;
}
