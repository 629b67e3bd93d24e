/* Frames: the header's bytes, and the fields of small payloads.
 *
 * Numbers are packed and unpacked byte by byte, so nothing here depends on the machine's alignment or byte
 * order. What unpacks never reads past the bytes it was given and never allocates. */
#include "frame.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "../base/bytes.h"
#include "../base/crc32c.h"
#include "../base/text.h"

enum {
    MAGIC_BYTES = 4,
    SUMMED_BYTES = FRAME_HEADER_BYTES - 4, /* of a header */
    FIELDS_BYTES = 24,                     /* of these; zeros follow */
    SHOWN_BYTES = 8,
    SHOWN_ROOM = 4 * SHOWN_BYTES + 1
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "payloads of floats go out as they lie in memory");
static const char magic[MAGIC_BYTES] = {'T', 'R', 'N', 'R'};

static const char *const type_words[] = {[FRAME_NONE] = "nothing",
#define FRAME_ROW(name, words) [FRAME_##name] = words,
                                         FRAME_TYPES(FRAME_ROW)
#undef FRAME_ROW
};

const char *frame_type_words(enum frame_type type) {
    return type_words[type];
}

/* --- header --- */

void frame_pack_header(uint8_t bytes[FRAME_HEADER_BYTES], const struct frame_header *header) {
    memset(bytes + FIELDS_BYTES, 0, SUMMED_BYTES - FIELDS_BYTES);
    memcpy(bytes, magic, MAGIC_BYTES);
    bytes_put_little(bytes + 4, 2, FRAME_VERSION);
    bytes_put_little(bytes + 6, 2, (uint64_t)header->type);
    bytes_put_little(bytes + 8, 4, header->flags);
    bytes_put_little(bytes + 12, 8, header->bytes);
    bytes_put_little(bytes + 20, 4, header->checksum);
    bytes_put_little(bytes + SUMMED_BYTES, 4, crc32c(0, bytes, SUMMED_BYTES));
}

/* The first bytes of a stranger, as one can print them. */
static void show(char text[SHOWN_ROOM], const uint8_t *bytes) {
    struct text shown = text_into(text, SHOWN_ROOM);
    for (int i = 0; i < SHOWN_BYTES; i++) {
        const bool plain = bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '"' && bytes[i] != '\\';
        text_add(&shown, plain ? "%c" : "\\x%02x", bytes[i]);
    }
}

static int strange(const char *peer, const uint8_t *bytes, struct error *error) {
    char found[SHOWN_ROOM];
    show(found, bytes);
    return error_set(error, ERROR_PEER, "%s: expected a trainer peer, found \"%s\"", peer, found);
}

bool frame_is_strange(const uint8_t *bytes, size_t count) {
    return count >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) != 0;
}

static int damaged(const char *peer, const char *what, uint32_t found, uint32_t expected,
                   struct error *error) {
    return error_set(error, ERROR_PEER, "%s: %s arrived damaged: checksum %08x, expected %08x", peer, what,
                     (unsigned)found, (unsigned)expected);
}

int frame_unpack_header(struct frame_header *header, const uint8_t bytes[FRAME_HEADER_BYTES], uint64_t limit,
                        const char *peer, struct error *error) {
    const int version = (int)bytes_little(bytes + 4, 2), type = (int)bytes_little(bytes + 6, 2);
    *header = (struct frame_header){0};
    if (frame_is_strange(bytes, FRAME_HEADER_BYTES)) return strange(peer, bytes, error);
    if (version != FRAME_VERSION)
        return error_set(error, ERROR_PEER, "%s: speaks version %d of the protocol, expected %d", peer,
                         version, FRAME_VERSION);
    const uint32_t sum = crc32c(0, bytes, SUMMED_BYTES),
                   expected = (uint32_t)bytes_little(bytes + SUMMED_BYTES, 4);
    if (sum != expected) return damaged(peer, "the header of a frame", sum, expected, error);
    if (type <= FRAME_NONE || type >= FRAME_TYPE_COUNT)
        return error_set(error, ERROR_PEER, "%s: a frame of type %d, expected 1 to %d", peer, type,
                         FRAME_TYPE_COUNT - 1);
    for (int i = FIELDS_BYTES; i < SUMMED_BYTES; i++)
        if (bytes[i] != 0)
            return error_set(error, ERROR_PEER, "%s: %s has %d in byte %d of its header, expected 0", peer,
                             type_words[type], bytes[i], i);
    const uint64_t length = bytes_little(bytes + 12, 8);
    if (length > limit)
        return error_set(error, ERROR_PEER, "%s: %s of %" PRIu64 " bytes, expected at most %" PRIu64, peer,
                         type_words[type], length, limit);
    *header = (struct frame_header){.type = (enum frame_type)type,
                                    .flags = (uint32_t)bytes_little(bytes + 8, 4),
                                    .bytes = length,
                                    .checksum = (uint32_t)bytes_little(bytes + 20, 4)};
    return OK;
}

/* --- frames --- */

void frame_seal(struct frame_header *header, const struct endpoint *endpoint, const struct piece *pieces,
                int count) {
    header->bytes = 0;
    header->checksum = 0;
    for (int i = 0; i < count; i++) {
        header->bytes += pieces[i].bytes;
        if (endpoint_is_intact(endpoint)) continue;
        header->checksum = crc32c(header->checksum, pieces[i].memory, pieces[i].bytes);
    }
}

uint32_t *frame_sum(const struct endpoint *endpoint, struct frame_header *header) {
    return endpoint_is_intact(endpoint) ? NULL : &header->sum;
}

int frame_check(const struct endpoint *endpoint, const struct frame_header *header, struct error *error) {
    if (endpoint_is_intact(endpoint) || header->sum == header->checksum) return OK;
    return damaged(endpoint_name(endpoint), type_words[header->type], header->sum, header->checksum, error);
}

int frame_write(struct endpoint *endpoint, enum frame_type type, uint32_t flags, const struct piece *pieces,
                int count, double timeout_s, struct error *error) {
    assert(count >= 0 && count <= FRAME_PIECES);
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct piece all[FRAME_PIECES + 1] = {{bytes, sizeof bytes}};
    struct frame_header header = {.type = type, .flags = flags};
    for (int i = 0; i < count; i++) all[i + 1] = pieces[i];
    frame_seal(&header, endpoint, pieces, count);
    frame_pack_header(bytes, &header);
    return endpoint_send(endpoint, type_words[type], all, count + 1, timeout_s, error);
}

int frame_read_header(struct endpoint *endpoint, const char *what, uint64_t limit,
                      struct frame_header *header, double timeout_s, struct error *error) {
    uint8_t bytes[FRAME_HEADER_BYTES] = {0};
    *header = (struct frame_header){0};
    struct error why = {0};
    const int code = endpoint_receive(endpoint, what, bytes, sizeof bytes, timeout_s, &why);
    if (code != OK && memcmp(bytes, endpoint_alert, sizeof endpoint_alert) == 0)
        return error_set(error, ERROR_PEER,
                         "%s: expects encryption, with the key of its --secret-file or with certificates",
                         endpoint_name(endpoint));
    /* No whole header, but its first bytes have come: bytes that have not are 0. */
    if (code != OK && frame_is_strange(bytes, MAGIC_BYTES) && bytes[MAGIC_BYTES - 1] != 0)
        return strange(endpoint_name(endpoint), bytes, error);
    if (code != OK) return error_set(error, code, "%s", why.words);
    return frame_unpack_header(header, bytes, limit, endpoint_name(endpoint), error);
}

int frame_read_payload(struct endpoint *endpoint, const struct frame_header *header, void *memory,
                       double timeout_s, struct error *error) {
    struct frame_header whole = *header;
    return frame_read_part(endpoint, &whole, memory, (size_t)whole.bytes, timeout_s, error);
}

int frame_read_part(struct endpoint *endpoint, struct frame_header *header, void *memory, size_t bytes,
                    double timeout_s, struct error *error) {
    struct transfer transfer = {.endpoint = endpoint,
                                .awaits = type_words[header->type],
                                .buffer = memory,
                                .bytes = bytes,
                                .sum = frame_sum(endpoint, header)};
    RETURN_IF(endpoints_exchange(&transfer, 1, timeout_s, error));
    header->read += bytes;
    return header->read < header->bytes ? OK : frame_check(endpoint, header, error);
}

int frame_expect(const struct endpoint *endpoint, const struct frame_header *header, enum frame_type type,
                 uint64_t bytes, struct error *error) {
    if (header->type == type && header->bytes == bytes) return OK;
    return error_set(error, ERROR_PEER, "%s: found %s of %" PRIu64 " bytes, expected %s of %" PRIu64 " bytes",
                     endpoint_name(endpoint), type_words[header->type], header->bytes, type_words[type],
                     bytes);
}

/* --- fields --- */

/* Room for so many bytes more, or NULL. */
static uint8_t *put(struct frame_writer *writer, size_t bytes) {
    if (bytes > writer->room - writer->used) writer->overflowed = true;
    if (writer->overflowed) return NULL;
    writer->used += bytes;
    return writer->bytes + writer->used - bytes;
}

void frame_put_u32(struct frame_writer *writer, uint32_t value) {
    uint8_t *bytes = put(writer, 4);
    if (bytes) bytes_put_little(bytes, 4, value);
}

void frame_put_u64(struct frame_writer *writer, uint64_t value) {
    uint8_t *bytes = put(writer, 8);
    if (bytes) bytes_put_little(bytes, 8, value);
}

void frame_put_f64(struct frame_writer *writer, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    frame_put_u64(writer, bits);
}

void frame_put_text(struct frame_writer *writer, const char *text) {
    const size_t length = strlen(text);
    uint8_t *bytes = length <= UINT32_MAX ? put(writer, 4 + length) : NULL;
    if (!bytes) {
        writer->overflowed = true;
        return;
    }
    bytes_put_little(bytes, 4, length);
    memcpy(bytes + 4, text, length);
}

int frame_put_end(const struct frame_writer *writer, const char *what, struct error *error) {
    if (!writer->overflowed) return OK;
    return error_set(error, ERROR_USAGE, "%s does not fit into %zu bytes", what, writer->room);
}

/* The next so many bytes, or NULL. */
static const uint8_t *get(struct frame_reader *reader, size_t bytes) {
    if (!reader->wrong && bytes > reader->length - reader->used) reader->wrong = "ends within a field";
    if (reader->wrong) return NULL;
    reader->used += bytes;
    return reader->bytes + reader->used - bytes;
}

uint32_t frame_get_u32(struct frame_reader *reader) {
    const uint8_t *bytes = get(reader, 4);
    return bytes ? (uint32_t)bytes_little(bytes, 4) : 0;
}

uint64_t frame_get_u64(struct frame_reader *reader) {
    const uint8_t *bytes = get(reader, 8);
    return bytes ? bytes_little(bytes, 8) : 0;
}

double frame_get_f64(struct frame_reader *reader) {
    const uint64_t bits = frame_get_u64(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void frame_get_text(struct frame_reader *reader, char *text, size_t room) {
    text[0] = '\0';
    const size_t length = frame_get_u32(reader);
    const uint8_t *bytes = get(reader, length);
    if (!bytes) return;
    if (length >= room) {
        reader->wrong = "has too long a text";
    } else if (memchr(bytes, '\0', length)) {
        reader->wrong = "has a text with a 0 in it";
    } else {
        memcpy(text, bytes, length);
        text[length] = '\0';
    }
}

int frame_get_end(const struct frame_reader *reader, const char *what, const char *peer,
                  struct error *error) {
    if (reader->wrong)
        return error_set(error, ERROR_PEER, "%s: %s of %zu bytes %s before byte %zu", peer, what,
                         reader->length, reader->wrong, reader->used);
    if (reader->used != reader->length)
        return error_set(error, ERROR_PEER, "%s: %s has %zu bytes, expected %zu", peer, what, reader->length,
                         reader->used);
    return OK;
}
