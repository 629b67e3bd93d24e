/* See probe.h. */
#include "probe.h"

#include <string.h>

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
