/* Frames: what is written is read, byte for byte; and every way in which a stranger, a broken peer or an
 * impatient one can be wrong has its words, and gets nothing allocated. */
#include "../check.h"
#include "../wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/base/bytes.h"
#include "../../src/base/crc32c.h"
#include "../../src/base/memory.h"
#include "../../src/bridge/frame.h"

#define SHORT_S 0.05
enum { LIMIT = 1 << 16, BIG = 6 << 20, SUMMED = FRAME_HEADER_BYTES - 4 };

/* --- frames --- */

static void test_types(void) {
    struct wire wire;
    open_wire(&wire);
    for (int type = FRAME_NONE + 1; type < FRAME_TYPE_COUNT; type++) {
        struct frame_header header;
        char got[8] = "";
        const struct piece pieces[] = {{"abc", (size_t)(type % 4)}, {"", 0}, {"xyz", (size_t)(type / 4 % 4)}};
        const size_t bytes = pieces[0].bytes + pieces[2].bytes;
        char sent[8] = "";
        memcpy(sent, "abc", pieces[0].bytes);
        memcpy(sent + pieces[0].bytes, "xyz", pieces[2].bytes);
        CHECK(frame_write(wire.near, (enum frame_type)type, 0x80000001u * (uint32_t)type, pieces, 3, LONG_S,
                          &wire.error) == OK,
              "%s", wire.error.words);
        CHECK(frame_read_header(wire.far, "a frame", 6, &header, LONG_S, &wire.error) == OK, "%s",
              wire.error.words);
        CHECK((int)header.type == type && header.flags == 0x80000001u * (uint32_t)type, "type %d flags %x",
              (int)header.type, header.flags);
        CHECK(header.bytes == bytes, "%d bytes, expected %zu", (int)header.bytes, bytes);
        CHECK(frame_expect(wire.far, &header, (enum frame_type)type, bytes, &wire.error) == OK, "%s",
              wire.error.words);
        CHECK(frame_read_payload(wire.far, &header, got, LONG_S, &wire.error) == OK, "%s", wire.error.words);
        CHECK(strcmp(got, sent) == 0, "\"%s\", expected \"%s\"", got, sent);
        CHECK(frame_type_words((enum frame_type)type)[0] != '\0', "type %d has no words", type);
    }
    close_wire(&wire);
}

static void test_layout(void) {
    static const uint8_t expected[FRAME_HEADER_BYTES] = {
        'T', 'R', 'N', 'R', FRAME_VERSION, 0,    FRAME_GRADIENT, 0,    4,   3, 2, 0xf1, 0x28, 0x34, 0x41,
        0,   0,   0,   0,   0x10,          0x83, 0x92,           0x06, 0xe3};
    const struct frame_header header = {
        .type = FRAME_GRADIENT, .flags = 0xf1020304, .bytes = 0x1000000000413428, .checksum = 0xe3069283};
    struct frame_header again;
    struct error error = {0};
    uint8_t bytes[FRAME_HEADER_BYTES];
    memset(bytes, 0xee, sizeof bytes);
    frame_pack_header(bytes, &header);
    for (int i = 0; i < SUMMED; i++)
        CHECK(bytes[i] == expected[i], "byte %d is %02x, expected %02x", i, bytes[i], expected[i]);
    CHECK(frame_unpack_header(&again, bytes, UINT64_MAX, "peer", &error) == OK, "%s", error.words);
    CHECK(again.type == header.type && again.flags == header.flags && again.bytes == header.bytes &&
              again.checksum == header.checksum,
          "again");
    CHECK(bytes_little(bytes + SUMMED, 4) == crc32c(0, bytes, SUMMED), "the header's own checksum");
}

/* Both ends write a frame that no kernel holds, before either reads. */
struct talk {
    struct endpoint *endpoint;
    char *out, *in; /* [BIG] */
    struct error error;
};

static void talk(void *argument) {
    struct talk *side = argument;
    uint8_t sent[FRAME_HEADER_BYTES], got[FRAME_HEADER_BYTES];
    frame_pack_header(sent, &(struct frame_header){.type = FRAME_GRADIENT, .bytes = BIG});
    const struct piece pieces[] = {{sent, sizeof sent}, {side->out, BIG}};
    struct frame_header header;
    struct transfer headers = {.endpoint = side->endpoint,
                               .sends = "a gradient",
                               .pieces = pieces,
                               .piece_count = 1,
                               .awaits = "a gradient",
                               .buffer = got,
                               .bytes = sizeof got};
    if (endpoints_exchange(&headers, 1, LONG_S, &side->error) != OK) return;
    if (frame_unpack_header(&header, got, BIG, "peer", &side->error) != OK) return;
    struct transfer payloads = {.endpoint = side->endpoint,
                                .sends = "a gradient",
                                .pieces = pieces + 1,
                                .piece_count = 1,
                                .awaits = "a gradient",
                                .buffer = side->in,
                                .bytes = header.bytes};
    endpoints_exchange(&payloads, 1, LONG_S, &side->error);
}

/* One end writes and then reads, the other the other way round: a large frame there and back. */
static void answer(void *argument) {
    struct talk *side = argument;
    struct frame_header header;
    if (frame_read_header(side->endpoint, "a gradient", BIG, &header, LONG_S, &side->error) != OK) return;
    if (frame_read_payload(side->endpoint, &header, side->in, LONG_S, &side->error) != OK) return;
    const struct piece piece = {side->out, BIG};
    frame_write(side->endpoint, FRAME_WEIGHTS, 0, &piece, 1, LONG_S, &side->error);
}

static void test_large(void) {
    struct wire wire;
    struct talk far = {0};
    struct world_thread *thread = NULL;
    struct frame_header header;
    void *blocks[4];
    open_wire(&wire);
    for (int b = 0; b < 4; b++) {
        CHECK(memory_zeroed(&blocks[b], BIG, 1, "a block", &wire.error) == OK, "%s", wire.error.words);
        for (size_t i = 0; i < BIG; i++) ((uint8_t *)blocks[b])[i] = (uint8_t)(i * (size_t)(b + 3) >> 7);
    }
    far = (struct talk){.endpoint = wire.far, .out = blocks[0], .in = blocks[1]};
    CHECK(world_spawn(wire.world, "far", NULL, answer, &far, &thread, &wire.error) == OK, "%s",
          wire.error.words);
    const struct piece piece = {blocks[2], BIG};
    CHECK(frame_write(wire.near, FRAME_GRADIENT, 0, &piece, 1, LONG_S, &wire.error) == OK, "%s",
          wire.error.words);
    CHECK(frame_read_header(wire.near, "weights", BIG, &header, LONG_S, &wire.error) == OK, "%s",
          wire.error.words);
    CHECK(frame_read_payload(wire.near, &header, blocks[3], LONG_S, &wire.error) == OK, "%s",
          wire.error.words);
    world_join(thread);
    CHECK(far.error.code == OK, "%s", far.error.words);
    CHECK(memcmp(blocks[1], blocks[2], BIG) == 0, "what went there arrived otherwise");
    CHECK(memcmp(blocks[3], blocks[0], BIG) == 0, "what came back arrived otherwise");

    memset(blocks[1], 0, BIG);
    memset(blocks[3], 0, BIG);
    struct talk near = {.endpoint = wire.near, .out = blocks[2], .in = blocks[3]};
    CHECK(world_spawn(wire.world, "far", NULL, talk, &far, &thread, &wire.error) == OK, "%s",
          wire.error.words);
    talk(&near);
    world_join(thread);
    CHECK(near.error.code == OK && far.error.code == OK, "%s%s", near.error.words, far.error.words);
    CHECK(memcmp(blocks[1], blocks[2], BIG) == 0 && memcmp(blocks[3], blocks[0], BIG) == 0, "both at once");
    for (int b = 0; b < 4; b++) memory_free(blocks[b]);
    close_wire(&wire);
}

/* --- strangers --- */

/* What the far end says of these bytes, sent raw; the peer then closes or stays silent. */
static void expect_refusal(const void *bytes, size_t count, bool closes, const char *words) {
    struct wire wire;
    struct frame_header header = {.type = FRAME_HELLO, .bytes = 77};
    open_wire(&wire);
    const struct piece piece = {bytes, count};
    CHECK(endpoint_send(wire.near, "bytes", &piece, 1, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    if (closes) {
        endpoint_close(wire.near);
        wire.near = NULL;
    }
    const long long before = world_resident_bytes();
    const int code =
        frame_read_header(wire.far, "a hello", LIMIT, &header, closes ? LONG_S : SHORT_S, &wire.error);
    CHECK(world_resident_bytes() - before < 64 << 20, "memory grew by %lld bytes",
          world_resident_bytes() - before);
    char expected[300];
    snprintf(expected, sizeof expected, "%s: %s", endpoint_name(wire.far), words);
    CHECK(code == ERROR_PEER && strcmp(wire.error.words, expected) == 0, "%d \"%s\", expected \"%s\"", code,
          wire.error.words, expected);
    CHECK(header.type == FRAME_NONE && header.bytes == 0, "a refused header says nothing");
    close_wire(&wire);
}

/* As one who knows the format would send it. */
static void reseal(uint8_t header[FRAME_HEADER_BYTES]) {
    bytes_put_little(header + SUMMED, 4, crc32c(0, header, SUMMED));
}

static void test_strangers(void) {
    uint8_t header[FRAME_HEADER_BYTES];
    char words[100];
    const char *request = "GET / HTTP/1.1\r\nHost: trainer\r\n\r\n";
    expect_refusal(request, strlen(request), false, "expected a trainer peer, found \"GET / HT\"");
    expect_refusal("QUIT", 4, true, "expected a trainer peer, found \"QUIT\\x00\\x00\\x00\\x00\"");
    CHECK(frame_is_strange((const uint8_t *)"TRNX", 4) && !frame_is_strange((const uint8_t *)"TRNR", 4) &&
              !frame_is_strange((const uint8_t *)"XXX", 3),
          "four bytes tell, three do not");
    expect_refusal(
        "\x16\x03\x01\"\\\x80\xff\n and very much more of it, which is as much as a header has, at the least",
        FRAME_HEADER_BYTES, false,
        "expected a trainer peer, found \"\\x16\\x03\\x01\\x22\\x5c\\x80\\xff\\x0a\"");
    frame_pack_header(header, &(struct frame_header){.type = FRAME_HELLO, .bytes = 5});
    header[3] = 'X';
    snprintf(words, sizeof words, "expected a trainer peer, found \"TRNX\\x%02x\\x00\\x01\\x00\"",
             FRAME_VERSION);
    expect_refusal(header, sizeof header, false, words);
    header[3] = 'R';
    header[5] = 1;
    snprintf(words, sizeof words, "speaks version %d of the protocol, expected %d", FRAME_VERSION + 256,
             FRAME_VERSION);
    expect_refusal(header, sizeof header, false, words);
    header[5] = 0;
    header[7] = 1;
    reseal(header);
    snprintf(words, sizeof words, "a frame of type 257, expected 1 to %d", FRAME_TYPE_COUNT - 1);
    expect_refusal(header, sizeof header, false, words);
    frame_pack_header(header, &(struct frame_header){.type = FRAME_NONE});
    snprintf(words, sizeof words, "a frame of type 0, expected 1 to %d", FRAME_TYPE_COUNT - 1);
    expect_refusal(header, sizeof header, false, words);
    frame_pack_header(header, &(struct frame_header){.type = FRAME_TYPE_COUNT});
    snprintf(words, sizeof words, "a frame of type %d, expected 1 to %d", FRAME_TYPE_COUNT,
             FRAME_TYPE_COUNT - 1);
    expect_refusal(header, sizeof header, false, words);
    for (int at = 24; at < SUMMED; at++) { /* what no field has */
        frame_pack_header(header, &(struct frame_header){.type = FRAME_HELLO, .bytes = 5});
        header[at] = 38;
        reseal(header);
        snprintf(words, sizeof words, "a hello has 38 in byte %d of its header, expected 0", at);
        expect_refusal(header, sizeof header, false, words);
    }
    frame_pack_header(header, &(struct frame_header){.type = FRAME_GRADIENT, .bytes = LIMIT + 1});
    expect_refusal(header, sizeof header, false, "a gradient of 65537 bytes, expected at most 65536");
    frame_pack_header(header, &(struct frame_header){.type = FRAME_HELLO, .bytes = 4ull << 30});
    expect_refusal(header, sizeof header, false, "a hello of 4294967296 bytes, expected at most 65536");
    frame_pack_header(header, &(struct frame_header){.type = FRAME_HELLO, .bytes = UINT64_MAX});
    expect_refusal(header, sizeof header, false,
                   "a hello of 18446744073709551615 bytes, expected at most 65536");
    expect_refusal(header, 10, true,
                   "the connection was closed by the peer (10 of 64 bytes of a hello were received)");
    expect_refusal(header, 10, false, "only 10 of 64 bytes of a hello, and no more of it in 0.05 s");
    expect_refusal(header, 0, false, "no byte of a hello for 0.05 s");
    expect_refusal(header, 0, true,
                   "the connection was closed by the peer (0 of 64 bytes of a hello were received)");
}

/* --- damage --- */

/* Each bit of a frame of each type, and of what it carries: whatever changed on the way is an error by name.
 */
static void test_damage(void) {
    enum { PAYLOAD = 9, WHOLE = FRAME_HEADER_BYTES + PAYLOAD };
    static const char *const payload = "gradients";
    const struct piece text = {payload, PAYLOAD};
    struct wire wire;
    uint8_t frame[WHOLE], got[WHOLE];
    open_wire(&wire);
    for (int bit = -1; bit < WHOLE * 8 * (FRAME_TYPE_COUNT - 1); bit++) {
        const int type = bit < 0 ? 1 : 1 + bit / (WHOLE * 8), at = bit / 8 % WHOLE;
        struct frame_header header = {.type = (enum frame_type)type, .flags = 2}, found;
        struct error error = {0};
        frame_seal(&header, wire.near, &text, 1);
        frame_pack_header(frame, &header);
        memcpy(frame + FRAME_HEADER_BYTES, payload, PAYLOAD);
        if (bit >= 0) frame[at] ^= (uint8_t)(1 << bit % 8);
        const struct piece piece = {frame, WHOLE};
        CHECK(endpoint_send(wire.near, "bytes", &piece, 1, LONG_S, &wire.error) == OK, "%s",
              wire.error.words);
        int code = frame_read_header(wire.far, "a frame", PAYLOAD, &found, LONG_S, &error);
        if (code == OK)
            code = frame_read_payload(wire.far, &found, got, LONG_S, &error);
        else
            endpoint_receive(wire.far, "the rest", got, PAYLOAD, LONG_S, &wire.error);
        if (bit < 0) {
            CHECK(code == OK && memcmp(got, payload, PAYLOAD) == 0, "%s", error.words);
            continue;
        }
        const char *words = at < 4                    ? "expected a trainer peer"
                            : at < 6                  ? "of the protocol, expected"
                            : at < FRAME_HEADER_BYTES ? ": the header of a frame arrived damaged: checksum "
                                                      : " arrived damaged: checksum ";
        CHECK(code == ERROR_PEER && strstr(error.words, words), "%s, bit %d of byte %d: %d \"%s\"",
              frame_type_words((enum frame_type)type), bit % 8, at, code, error.words);
    }
    close_wire(&wire);
}

struct sending {
    struct endpoint *endpoint;
    const struct piece *pieces; /* [2] */
    struct error error;
};

static void send_both(void *argument) {
    struct sending *sending = argument;
    endpoint_send(sending->endpoint, "bytes", sending->pieces, 2, LONG_S, &sending->error);
}

/* A bit anywhere in a large one, which is summed as it comes. */
static void test_large_damage(void) {
    static const size_t places[] = {0, (256 << 10) - 1, 256 << 10, (1 << 20) + 77, BIG - 1};
    struct wire wire;
    void *blocks[2] = {NULL, NULL};
    open_wire(&wire);
    for (int b = 0; b < 2; b++)
        CHECK(memory_zeroed(&blocks[b], BIG, 1, "a block", &wire.error) == OK, "%s", wire.error.words);
    for (size_t i = 0; i < BIG; i++) ((uint8_t *)blocks[0])[i] = (uint8_t)(i * 7 >> 3);
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        struct frame_header header = {.type = FRAME_GRADIENT}, found;
        struct error error = {0};
        struct world_thread *thread = NULL;
        uint8_t head[FRAME_HEADER_BYTES];
        const struct piece pieces[] = {{head, sizeof head}, {blocks[0], BIG}};
        struct sending sending = {.endpoint = wire.near, .pieces = pieces};
        frame_seal(&header, wire.near, pieces + 1, 1);
        frame_pack_header(head, &header);
        ((uint8_t *)blocks[0])[places[p]] ^= 16;
        CHECK(world_spawn(wire.world, "near", NULL, send_both, &sending, &thread, &wire.error) == OK, "%s",
              wire.error.words);
        CHECK(frame_read_header(wire.far, "a gradient", BIG, &found, LONG_S, &error) == OK, "%s",
              error.words);
        const int code = frame_read_payload(wire.far, &found, blocks[1], LONG_S, &error);
        world_join(thread);
        CHECK(code == ERROR_PEER && strstr(error.words, "a gradient arrived damaged: checksum "),
              "a bit of byte %zu: %d \"%s\"", places[p], code, error.words);
        ((uint8_t *)blocks[0])[places[p]] ^= 16;
    }
    for (int b = 0; b < 2; b++) memory_free(blocks[b]);
    close_wire(&wire);
}

/* A payload that is read in parts is checked with the last of them. */
static void test_parts(void) {
    static const char *const payload = "weights and so on";
    struct wire wire;
    open_wire(&wire);
    for (int damaged = 0; damaged < 2; damaged++) {
        struct frame_header header = {.type = FRAME_WEIGHTS}, found;
        struct error error = {0};
        const struct piece text = {payload, strlen(payload)};
        uint8_t head[FRAME_HEADER_BYTES];
        char got[32] = "";
        frame_seal(&header, wire.near, &text, 1);
        header.checksum ^= (uint32_t)damaged;
        frame_pack_header(head, &header);
        const struct piece pieces[] = {{head, sizeof head}, text};
        CHECK(endpoint_send(wire.near, "bytes", pieces, 2, LONG_S, &wire.error) == OK, "%s",
              wire.error.words);
        CHECK(frame_read_header(wire.far, "weights", 100, &found, LONG_S, &error) == OK, "%s", error.words);
        CHECK(frame_read_part(wire.far, &found, got, 7, LONG_S, &error) == OK &&
                  frame_read_part(wire.far, &found, got + 7, 0, LONG_S, &error) == OK,
              "%s", error.words);
        const int code = frame_read_part(wire.far, &found, got + 7, text.bytes - 7, LONG_S, &error);
        char expected[200];
        snprintf(expected, sizeof expected, "%s: weights arrived damaged: checksum %08x, expected %08x",
                 endpoint_name(wire.far), (unsigned)(header.checksum ^ 1), (unsigned)header.checksum);
        CHECK(damaged ? code == ERROR_PEER && strcmp(error.words, expected) == 0
                      : code == OK && strcmp(got, payload) == 0,
              "%d \"%s\", \"%s\"", code, error.words, got);
    }
    close_wire(&wire);
}

static void test_half_a_payload(void) {
    struct wire wire;
    struct frame_header header;
    uint8_t bytes[FRAME_HEADER_BYTES], payload[100];
    open_wire(&wire);
    frame_pack_header(bytes, &(struct frame_header){.type = FRAME_WEIGHTS, .bytes = sizeof payload});
    const struct piece pieces[] = {{bytes, sizeof bytes}, {"some", 4}};
    CHECK(endpoint_send(wire.near, "bytes", pieces, 2, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(frame_read_header(wire.far, "weights", sizeof payload, &header, LONG_S, &wire.error) == OK, "%s",
          wire.error.words);
    CHECK(frame_expect(wire.far, &header, FRAME_WEIGHTS, 99, &wire.error) == ERROR_PEER &&
              strstr(wire.error.words, ": found weights of 100 bytes, expected weights of 99 bytes"),
          "%s", wire.error.words);
    wire.error = (struct error){0};
    CHECK(frame_expect(wire.far, &header, FRAME_SLICE, 100, &wire.error) == ERROR_PEER &&
              strstr(wire.error.words, ": found weights of 100 bytes, expected a slice of 100 bytes"),
          "%s", wire.error.words);
    wire.error = (struct error){0};
    endpoint_close(wire.near);
    wire.near = NULL;
    CHECK(frame_read_payload(wire.far, &header, payload, LONG_S, &wire.error) == ERROR_PEER &&
              strstr(wire.error.words, "closed by the peer (4 of 100 bytes of weights were received)"),
          "%s", wire.error.words);
    close_wire(&wire);
}

/* --- fields --- */

static size_t write_fields(uint8_t *bytes, size_t room, struct error *error) {
    struct frame_writer writer = {.bytes = bytes, .room = room};
    frame_put_u32(&writer, 0xfedcba98u);
    frame_put_text(&writer, "mlp:hidden=100");
    frame_put_u64(&writer, 0x0123456789abcdefull);
    frame_put_text(&writer, "");
    frame_put_f64(&writer, -0.1);
    frame_put_end(&writer, "a hello", error);
    return writer.used;
}

static void read_fields(struct frame_reader *reader, bool same) {
    char model[15], empty[1] = "x";
    const uint32_t first = frame_get_u32(reader);
    frame_get_text(reader, model, sizeof model);
    const uint64_t second = frame_get_u64(reader);
    frame_get_text(reader, empty, sizeof empty);
    const double third = frame_get_f64(reader), minus_tenth = -0.1;
    if (!same) return;
    CHECK(first == 0xfedcba98u && second == 0x0123456789abcdefull, "%x", first);
    CHECK(memcmp(&third, &minus_tenth, sizeof third) == 0, "%g", third);
    CHECK(strcmp(model, "mlp:hidden=100") == 0 && empty[0] == '\0', "\"%s\"", model);
}

static void test_fields(void) {
    enum { ROOM = 64, USED = 4 + 4 + 14 + 8 + 4 + 8 };
    uint8_t bytes[ROOM];
    struct error error = {0};
    memset(bytes, 0xee, sizeof bytes);
    CHECK(write_fields(bytes, ROOM, &error) == USED && error.code == OK, "%s", error.words);
    CHECK(bytes[USED] == 0xee && bytes[0] == 0x98 && bytes[4] == 14, "little-endian, and no more");
    struct frame_reader whole = {.bytes = bytes, .length = USED};
    read_fields(&whole, true);
    CHECK(frame_get_end(&whole, "a hello", "peer", &error) == OK, "%s", error.words);
    for (size_t room = 0; room < USED; room++) { /* too little room, and too few bytes, everywhere */
        uint8_t *tight = malloc(room ? room : 1);
        if (!tight) exit(1);
        error = (struct error){0};
        write_fields(tight, room, &error);
        CHECK(error.code == ERROR_USAGE, "room %zu: %s", room, error.words);
        memcpy(tight, bytes, room);
        struct frame_reader cut = {.bytes = tight, .length = room};
        read_fields(&cut, false);
        error = (struct error){0};
        CHECK(frame_get_end(&cut, "a hello", "peer", &error) == ERROR_PEER &&
                  strstr(error.words, "ends within a field"),
              "%zu bytes: %s", room, error.words);
        free(tight);
    }
    struct frame_reader more = {.bytes = bytes, .length = USED + 3};
    read_fields(&more, true);
    error = (struct error){0};
    CHECK(frame_get_end(&more, "a hello", "peer", &error) == ERROR_PEER &&
              strcmp(error.words, "peer: a hello has 45 bytes, expected 42") == 0,
          "%s", error.words);
}

static void expect_wrong_text(const uint8_t *bytes, size_t length, const char *words) {
    struct frame_reader reader = {.bytes = bytes, .length = length};
    struct error error = {0};
    char text[4] = "xyz";
    frame_get_text(&reader, text, sizeof text);
    CHECK(text[0] == '\0' && frame_get_u32(&reader) == 0, "nothing after what was wrong");
    CHECK(frame_get_end(&reader, "a hello", "peer", &error) == ERROR_PEER && strstr(error.words, words), "%s",
          error.words);
}

static void test_wrong_texts(void) {
    expect_wrong_text((const uint8_t *)"\4\0\0\0abcd\1\0\0\0", 12, "has too long a text before byte 8");
    expect_wrong_text((const uint8_t *)"\3\0\0\0a\0c\1\0\0\0", 11, "has a text with a 0 in it");
    expect_wrong_text((const uint8_t *)"\377\377\377\377abc", 7, "ends within a field before byte 4");
}

int main(void) {
    test_layout();
    test_types();
    test_large();
    test_strangers();
    test_damage();
    test_large_damage();
    test_parts();
    test_half_a_payload();
    test_fields();
    test_wrong_texts();
    return check_end();
}
