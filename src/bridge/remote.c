/* A worker's end of the bridge. See remote.h. */
#include "remote.h"

#include <string.h>

/* Words that the host sends, at most what fits. */
static int read_words(struct remote *remote, const struct frame_header *header, char words[500],
                      struct error *error) {
    memset(words, 0, 500);
    if (header->bytes >= 500)
        return error_set(error, ERROR_PEER, "%s: %llu bytes of words, expected less than 500",
                         endpoint_name(remote->endpoint), (unsigned long long)header->bytes);
    return frame_read_payload(remote->endpoint, header, words, remote->patience_s, error);
}

static int read_finish(struct remote *remote, const struct frame_header *header, struct finish *finish,
                       struct error *error) {
    uint8_t bytes[FINISH_BYTES];
    if (header->bytes > sizeof bytes)
        return error_set(error, ERROR_PEER, "%s: a goodbye of %llu bytes, expected at most %zu",
                         endpoint_name(remote->endpoint), (unsigned long long)header->bytes, sizeof bytes);
    RETURN_IF(frame_read_payload(remote->endpoint, header, bytes, remote->patience_s, error));
    struct frame_reader reader = {.bytes = bytes, .length = header->bytes};
    return finish_get(finish, &reader, endpoint_name(remote->endpoint), error);
}

static int await_welcome(struct remote *remote, double quiet_s, remote_say *say, void *argument,
                         struct error *error) {
    const char *peer = endpoint_name(remote->endpoint);
    char words[FINISH_BYTES]; /* the longest of what may come */
    while (true) {
        struct frame_header header;
        RETURN_IF(frame_read_header(remote->endpoint, "a welcome", sizeof words, &header, quiet_s, error));
        switch (header.type) {
        case FRAME_HEARTBEAT:
            RETURN_IF(read_words(remote, &header, words, error));
            if (words[0] != '\0') say(argument, words);
            continue;
        case FRAME_FAILURE:
            RETURN_IF(read_words(remote, &header, words, error));
            return error_set(error, ERROR_PEER, "%s refuses: %s", peer, words);
        case FRAME_WELCOME: {
            RETURN_IF(frame_read_payload(remote->endpoint, &header, words, remote->patience_s, error));
            struct frame_reader reader = {.bytes = (const uint8_t *)words, .length = header.bytes};
            return welcome_get(&remote->welcome, &reader, peer, error);
        }
        case FRAME_GOODBYE: {
            struct finish finish;
            RETURN_IF(read_finish(remote, &header, &finish, error));
            return error_set(error, ERROR_PEER, "%s ended: %s", peer, finish.words);
        }
        default:
            return error_set(error, ERROR_PEER, "%s: %s, expected a welcome", peer,
                             frame_type_words(header.type));
        }
    }
}

int remote_open(struct remote *remote, struct world *world, const char *address, const struct hello *hello,
                double start_s, double patience_s, remote_say *say, void *argument, struct error *error) {
    uint8_t bytes[HELLO_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    *remote = (struct remote){.patience_s = patience_s};
    RETURN_IF(hello_put(hello, &writer, error));
    int code = endpoint_connect(world, address, &remote->endpoint, start_s, error);
    const struct piece piece = {bytes, writer.used};
    if (code == OK) code = frame_write(remote->endpoint, FRAME_HELLO, 0, &piece, 1, patience_s, error);
    /* The ps, which waits as long, is to be the first to give up: it names who is missing. */
    if (code == OK) code = await_welcome(remote, start_s + patience_s, say, argument, error);
    return code == ERROR_PEER ? error_prefix(error, "the parameter server ") : code;
}

void remote_close(struct remote *remote) {
    endpoint_close(remote->endpoint);
    *remote = (struct remote){0};
}

static int read_next(struct remote *remote, struct request *request, float *weights, size_t floats,
                     bool *over, struct finish *finish, struct error *error) {
    uint8_t bytes[REQUEST_BYTES];
    struct frame_header header;
    RETURN_IF(frame_read_header(remote->endpoint, "weights", sizeof bytes + floats * sizeof(float), &header,
                                remote->patience_s, error));
    *over = header.type == FRAME_GOODBYE;
    if (*over) return read_finish(remote, &header, finish, error);
    RETURN_IF(
        frame_expect(remote->endpoint, &header, FRAME_WEIGHTS, sizeof bytes + floats * sizeof(float), error));
    RETURN_IF(endpoint_receive(remote->endpoint, "weights", bytes, sizeof bytes, remote->patience_s, error));
    RETURN_IF(endpoint_receive(remote->endpoint, "weights", weights, floats * sizeof(float),
                               remote->patience_s, error));
    return request_get(request, bytes, endpoint_name(remote->endpoint), error);
}

int remote_next(struct remote *remote, struct request *request, float *weights, size_t floats, bool *over,
                struct finish *finish, struct error *error) {
    const int code = read_next(remote, request, weights, floats, over, finish, error);
    return code == OK ? OK : error_prefix(error, "the parameter server ");
}

int remote_answer(struct remote *remote, float loss, const float *gradient, size_t floats,
                  struct error *error) {
    uint8_t bytes[LOSS_BYTES] = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    frame_put_f64(&writer, (double)loss);
    const struct piece pieces[] = {{bytes, sizeof bytes}, {gradient, floats * sizeof(float)}};
    return frame_write(remote->endpoint, FRAME_GRADIENT, 0, pieces, 2, remote->patience_s, error);
}

void remote_fail(struct remote *remote, const struct error *why) {
    struct error ignored = {0};
    const struct piece piece = {why->words, strlen(why->words)};
    if (remote->endpoint)
        frame_write(remote->endpoint, FRAME_FAILURE, 0, &piece, 1, remote->patience_s, &ignored);
}
