/* Fuzzing of frames: clang -fsanitize=fuzzer,address over this file and the library (`make fuzz`). The input
 * is a header and the payload behind it, read as the list of fields that the flags spell. Starts from valid
 * frames that our own writer makes, and mends magic, version and length after most mutations, since nothing
 * beyond them would be reached otherwise. Says at the end how many inputs were accepted, and fails when none
 * was. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../src/bridge/frame.h"

enum { LIMIT = 1 << 12, FIELDS = 16 /* two bits of the flags each */, TEXT_ROOM = 24 };
enum field { FIELD_U32, FIELD_U64, FIELD_F64, FIELD_TEXT };

static long headers, accepted, inputs;

static void require(int condition) {
    if (!condition) abort();
}

static void report(void) {
    fprintf(stderr, "accepted: %ld headers, %ld frames of %ld inputs\n", headers, accepted, inputs);
    if (inputs > 1000 && accepted == 0) _exit(1);
}

/* Reads the field, and writes it again as it was understood. */
static void copy_field(enum field field, struct frame_reader *reader, struct frame_writer *writer) {
    char text[TEXT_ROOM];
    switch (field) {
    case FIELD_U32:
        frame_put_u32(writer, frame_get_u32(reader));
        break;
    case FIELD_U64:
        frame_put_u64(writer, frame_get_u64(reader));
        break;
    case FIELD_F64:
        frame_put_f64(writer, frame_get_f64(reader));
        break;
    case FIELD_TEXT:
        memset(text, 'x', sizeof text);
        frame_get_text(reader, text, sizeof text);
        require(memchr(text, '\0', sizeof text) != NULL);
        frame_put_text(writer, text);
        break;
    }
    require(reader->used <= reader->length);
}

/* What is accepted is written again byte for byte; after the first mistake nothing more is read. */
static void check_fields(uint32_t flags, const uint8_t *payload, size_t bytes) {
    uint8_t again[LIMIT + FIELDS * 8];
    struct frame_reader reader = {.bytes = payload, .length = bytes};
    struct frame_writer writer = {.bytes = again, .room = sizeof again};
    for (int i = 0; i < FIELDS; i++) {
        const bool was_wrong = reader.wrong != NULL;
        const size_t used = reader.used;
        copy_field((enum field)(flags >> (2 * i) & 3), &reader, &writer);
        require(!was_wrong || (reader.wrong && reader.used == used));
        if (!reader.wrong) require(writer.used == reader.used);
    }
    struct error error = {0};
    require(frame_put_end(&writer, "fields", &error) == OK);
    if (frame_get_end(&reader, "fields", "peer", &error) == OK) {
        accepted++;
        require(writer.used == bytes && (bytes == 0 || memcmp(again, payload, bytes) == 0));
    } else {
        require(error.code == ERROR_PEER && *error.words);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct frame_header header;
    struct error error = {0};
    if (inputs++ == 0) atexit(report);
    if (bytes < FRAME_HEADER_BYTES) return 0;
    if (frame_unpack_header(&header, data, LIMIT, "peer", &error) != OK) {
        require(error.code == ERROR_PEER && *error.words && header.type == FRAME_NONE);
        return 0;
    }
    uint8_t again[FRAME_HEADER_BYTES];
    headers++;
    require(header.bytes <= LIMIT && frame_type_words(header.type)[0] != '\0');
    frame_pack_header(again, &header);
    require(memcmp(again, data, FRAME_HEADER_BYTES) == 0);
    if (header.bytes == bytes - FRAME_HEADER_BYTES)
        check_fields(header.flags, data + FRAME_HEADER_BYTES, (size_t)header.bytes);
    return 0;
}

/* A frame with fields of all kinds; returns its bytes, or 0 when there is no room. */
static size_t make_sample(uint8_t *data, size_t most, unsigned seed) {
    static const char *const texts[] = {"mlp:hidden=100", "", "async-lockfree", "\xc3\xa9 \"x\""};
    if (most < FRAME_HEADER_BYTES) return 0;
    struct frame_writer writer = {.bytes = data + FRAME_HEADER_BYTES, .room = most - FRAME_HEADER_BYTES};
    uint32_t flags = seed * 2654435761u;
    for (int i = 0; i < FIELDS; i++) switch ((enum field)(flags >> (2 * i) & 3)) {
        case FIELD_U32:
            frame_put_u32(&writer, seed);
            break;
        case FIELD_U64:
            frame_put_u64(&writer, UINT64_MAX - seed);
            break;
        case FIELD_F64:
            frame_put_f64(&writer, -1.0 / seed);
            break;
        case FIELD_TEXT:
            frame_put_text(&writer, texts[seed % 4]);
            break;
        }
    if (writer.overflowed) return 0;
    const struct frame_header header = {
        .type = (enum frame_type)(1 + seed % (FRAME_TYPE_COUNT - 1)), .flags = flags, .bytes = writer.used};
    frame_pack_header(data, &header);
    return FRAME_HEADER_BYTES + writer.used;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (bytes < FRAME_HEADER_BYTES || seed % 16 == 0) {
        const size_t made = make_sample(data, most, seed);
        if (made > 0) bytes = made;
        if (seed / 16 % 4 == 0) return bytes;
    }
    bytes = LLVMFuzzerMutate(data, bytes, most);
    if (bytes < FRAME_HEADER_BYTES || seed / 64 % 4 == 0) return bytes;
    const struct frame_header header = {.type = (enum frame_type)(data[6] % FRAME_TYPE_COUNT),
                                        .flags = (uint32_t)data[8] | (uint32_t)data[9] << 8,
                                        .bytes = bytes - FRAME_HEADER_BYTES};
    frame_pack_header(data, &header);
    return bytes;
}
