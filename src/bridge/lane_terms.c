/* See lane_terms.h. */
#include "lane_terms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "secret.h"

/* Heartbeats in the time after which one would be missed. */
#define BEATS 5.0
#define BEAT_MOST_S 1.0

enum { RUNS_MOST = 1000000000 };

static void put_whole(struct frame_writer *writer, int value) {
    frame_put_u32(writer, (uint32_t)value);
}

static int get_whole(struct frame_reader *reader, int least, int most) {
    const uint32_t value = frame_get_u32(reader);
    if (value >= (uint32_t)least && value <= (uint32_t)most) return (int)value;
    if (!reader->wrong) reader->wrong = "has a number out of its range";
    return least;
}

/* In the range that it can be typed in. */
static double get_timeout(struct frame_reader *reader) {
    const struct option *row = option_find(run_options, "timeout");
    const double value = frame_get_f64(reader);
    if (value >= row->least && value <= row->most) return value;
    if (!reader->wrong) reader->wrong = "has a timeout out of its range";
    return 1.0;
}

int lane_hello_put(const struct lane_hello *hello, struct frame_writer *writer, struct error *error) {
    frame_put_text(writer, hello->program);
    frame_put_text(writer, hello->device);
    frame_put_f64(writer, hello->timeout_s);
    return frame_put_end(writer, "a lane's hello", error);
}

int lane_hello_get(struct lane_hello *hello, struct frame_reader *reader, const char *peer,
                   struct error *error) {
    *hello = (struct lane_hello){0};
    frame_get_text(reader, hello->program, sizeof hello->program);
    device_name_get(reader, hello->device, sizeof hello->device);
    hello->timeout_s = get_timeout(reader);
    return frame_get_end(reader, "a lane's hello", peer, error);
}

int lane_sweep_put(const struct lane_sweep *sweep, struct frame_writer *writer, struct error *error) {
    frame_put_f64(writer, sweep->timeout_s);
    typed_put(&sweep->settings, writer);
    return frame_put_end(writer, "the settings", error);
}

int lane_sweep_get(struct lane_sweep *sweep, struct frame_reader *reader, const char *peer,
                   struct error *error) {
    sweep->timeout_s = get_timeout(reader);
    typed_get(&sweep->settings, reader);
    return frame_get_end(reader, "the settings", peer, error);
}

int lane_run_put(const struct lane_run *run, struct frame_writer *writer, struct error *error) {
    put_whole(writer, run->number);
    put_whole(writer, run->count);
    put_whole(writer, run->stop_after);
    put_whole(writer, run->files);
    typed_put(&run->settings, writer);
    return frame_put_end(writer, "a run", error);
}

int lane_run_get(struct lane_run *run, struct frame_reader *reader, const char *peer, struct error *error) {
    run->number = get_whole(reader, 1, RUNS_MOST);
    run->count = get_whole(reader, 1, RUNS_MOST);
    run->stop_after = get_whole(reader, 0, RUNS_MOST);
    run->files = get_whole(reader, 0, RUNS_MOST);
    typed_get(&run->settings, reader);
    return frame_get_end(reader, "a run", peer, error);
}

int lane_end_put(const struct lane_end *end, struct frame_writer *writer, struct error *error) {
    put_whole(writer, end->code);
    frame_put_text(writer, end->words);
    put_whole(writer, end->files);
    return frame_put_end(writer, "a run's end", error);
}

int lane_end_get(struct lane_end *end, struct frame_reader *reader, const char *peer, struct error *error) {
    *end = (struct lane_end){0};
    end->code = get_whole(reader, 0, 255);
    frame_get_text(reader, end->words, sizeof end->words);
    end->files = get_whole(reader, 0, RUNS_MOST);
    return frame_get_end(reader, "a run's end", peer, error);
}

/* --- the connection --- */

int lane_use_secret(const struct config *config, struct world *world, struct error *error) {
    struct secret secret;
    RETURN_IF(secret_find(&secret, config, getenv(SECRET_VARIABLE), error));
    if (config->link == LINK_UCX)
        return error_set(error, ERROR_USAGE,
                         "--link=ucx: the lanes of a sweep have no use for it, expected auto or tcp");
    if (!config->shared_memory || config->link == LINK_TCP) endpoint_keep_to_tcp(world);
    return secret_use(&secret, config->insecure, world, error);
}

void lane_link_begin(struct lane_link *link, struct world *world, struct endpoint *endpoint, double timeout_s,
                     double theirs_s) {
    *link = (struct lane_link){.world = world,
                               .endpoint = endpoint,
                               .timeout_s = timeout_s,
                               .beat_s = fmin(fmin(timeout_s, theirs_s) / BEATS, BEAT_MOST_S),
                               .beaten_s = world_now(world)};
}

int lane_link_say(struct lane_link *link, enum frame_type type, const void *bytes, size_t count,
                  struct error *error) {
    const struct piece piece = {bytes, count};
    return frame_write(link->endpoint, type, 0, &piece, 1, link->timeout_s, error);
}

static int beat(struct lane_link *link, struct error *error) {
    const double now = world_now(link->world);
    if (now - link->beaten_s < link->beat_s) return OK;
    link->beaten_s = now;
    return lane_link_say(link, FRAME_HEARTBEAT, "", 0, error);
}

/* The peer says itself why it ends. */
static int read_failure(struct lane_link *link, const struct frame_header *header, struct error *error) {
    char words[500] = "";
    const char *peer = endpoint_name(link->endpoint);
    if (header->bytes >= sizeof words)
        return error_set(error, ERROR_PEER, "%s: failed with %llu bytes of words, expected less than %zu",
                         peer, (unsigned long long)header->bytes, sizeof words);
    RETURN_IF(frame_read_payload(link->endpoint, header, words, link->timeout_s, error));
    return error_set(error, ERROR_PEER, "%s: %s", peer, words);
}

/* A frame is there. */
static int read_frame(struct lane_link *link, uint64_t limit, struct frame_header *header,
                      struct error *error) {
    RETURN_IF(frame_read_header(link->endpoint, "a frame", UINT64_MAX, header, link->timeout_s, error));
    link->silent_s = 0.0;
    if (header->type == FRAME_FAILURE) return read_failure(link, header, error);
    const uint64_t most = header->type == FRAME_HEARTBEAT ? 0 : limit;
    if (header->bytes <= most) return OK;
    return error_set(error, ERROR_PEER, "%s: %s of %llu bytes, expected at most %llu",
                     endpoint_name(link->endpoint), frame_type_words(header->type),
                     (unsigned long long)header->bytes, (unsigned long long)most);
}

/* Only the time in here counts as silence: while files go over, nobody sends heartbeats. */
int lane_link_hear(struct lane_link *link, double seconds, uint64_t limit, struct frame_header *header,
                   struct error *error) {
    const double until = world_now(link->world) + seconds;
    for (double now = until - seconds; now <= until; now = world_now(link->world)) {
        bool ended = false;
        uint8_t byte;
        RETURN_IF(beat(link, error));
        const size_t count = endpoint_peek(link->endpoint, &byte, 1, fmin(until - now, link->beat_s), &ended);
        if (count == 0 && ended)
            return error_set(error, ERROR_PEER, "%s: the connection was closed by the peer",
                             endpoint_name(link->endpoint));
        if (count > 0) {
            RETURN_IF(read_frame(link, limit, header, error));
            if (header->type != FRAME_HEARTBEAT) return OK;
            continue;
        }
        link->silent_s += world_now(link->world) - now;
        if (link->silent_s > link->timeout_s)
            return error_set(error, ERROR_PEER, "%s: no sign of life for %g s", endpoint_name(link->endpoint),
                             link->timeout_s);
    }
    *header = (struct frame_header){.type = FRAME_NONE};
    return OK;
}
