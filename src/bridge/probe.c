/* See probe.h. */
#include "probe.h"

#include <string.h>

#include "../base/text.h"
#include "guests.h"

/* --- who asks --- */

static int ask(struct endpoint *endpoint, double timeout_s, char words[PROBE_BYTES], struct error *error) {
    struct frame_header header;
    RETURN_IF(frame_write(endpoint, FRAME_PROBE, 0, NULL, 0, timeout_s, error));
    RETURN_IF(frame_read_header(endpoint, "an answer", LAST_WORDS_BYTES, &header, timeout_s, error));
    if (header.type != FRAME_STATUS)
        return error_set(error, ERROR_PEER, "%s: %s, expected a status", endpoint_name(endpoint),
                         frame_type_words(header.type));
    memset(words, 0, PROBE_BYTES);
    RETURN_IF(frame_read_payload(endpoint, &header, words, timeout_s, error));
    for (char *c = words; *c != '\0'; c++) /* it may be anybody's */
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
    return OK;
}

int probe_host(struct world *world, const char *address, double timeout_s, char words[PROBE_BYTES],
               struct error *error) {
    struct endpoint *endpoint = NULL;
    RETURN_IF(endpoint_connect(world, address, &endpoint, timeout_s, error));
    const int code = ask(endpoint, timeout_s, words, error);
    endpoint_close(endpoint);
    return code;
}

/* --- who is asked --- */

bool probe_is_next(struct endpoint *endpoint) {
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header header;
    struct error ignored = {0};
    return endpoint_peek(endpoint, bytes, sizeof bytes, 0.0, &(bool){false}) == sizeof bytes &&
           frame_unpack_header(&header, bytes, 0, "", &ignored) == OK && header.type == FRAME_PROBE;
}

/* What this host is; to who may know it also how far it is. */
static void describe_host(const struct host *host, bool trusted, char *out, size_t bytes) {
    const struct cluster *cluster = host->settings.cluster;
    struct text text = text_into(out, bytes);
    const long step = atomic_load(&host->step), epoch = atomic_load(&host->epoch);
    text_add(&text, "%s", cluster_server(cluster));
    if (trusted) text_add(&text, " %d of %d", cluster->task, cluster->ps.count);
    if (!host->full)
        text_add(&text, ", %s", trusted && host->waits_for[0] ? host->waits_for : "waiting for others");
    else if (!trusted || step == 0)
        text_add(&text, ", training");
    else
        text_add(&text, ", training: epoch %ld of %d, step %ld", epoch, host->settings.config->epochs, step);
}

void probe_answer(const struct host *host, struct guest *guest) {
    struct frame_header header;
    struct error ignored = {0};
    char words[LAST_WORDS_BYTES];
    frame_read_header(guest->endpoint, "a probe", 0, &header, 0.0, &ignored);
    describe_host(host->trains ? host->trains : host, guest_is_trusted(host, guest->endpoint), words,
                  sizeof words);
    const struct piece piece = {words, strlen(words)};
    frame_write(guest->endpoint, FRAME_STATUS, 0, &piece, 1, 0.0, &ignored);
    guest->leaving = true;
    guest->since_s = world_now(host->settings.world);
}
