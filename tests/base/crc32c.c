/* CRC-32C against the examples of RFC 3720 and the usual check value. */
#include "../../src/base/crc32c.h"

#include <string.h>
#include "../check.h"

static void check(const void *bytes, size_t count, uint32_t expected, const char *what) {
    const uint32_t whole = crc32c(0, bytes, count);
    CHECK(whole == expected, "%s: %08x, expected %08x", what, whole, expected);
    for (size_t cut = 0; cut <= count; cut++) {
        const uint32_t parts = crc32c(crc32c(0, bytes, cut), (const char *)bytes + cut, count - cut);
        CHECK(parts == expected, "%s, in two parts at %zu: %08x, expected %08x", what, cut, parts, expected);
    }
}

/* The instruction and the table agree: at every beginning, in pieces that the instruction does not take, and
 * over blocks whose parts are summed, and folded, at once. */
static void check_pieces(void) {
    enum { BYTES = 60000 };
    static unsigned char bytes[BYTES];
    uint32_t drawn = 1;
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)((drawn = drawn * 1664525u + 1013904223u) >> 24);
    for (size_t first = 0; first < 9; first++) {
        uint32_t pieces = 0;
        for (size_t at = first; at < BYTES; at++) {
            pieces = crc32c(pieces, bytes + at, 1);
            if (at % 500 > first && at + 1 < BYTES) continue;
            const uint32_t whole = crc32c(0, bytes + first, at + 1 - first);
            CHECK(whole == pieces, "%zu bytes from %zu: %08x, in single bytes %08x", at + 1 - first, first,
                  whole, pieces);
        }
    }
}

int main(void) {
    unsigned char bytes[32];
    check("", 0, 0, "nothing");
    check("123456789", 9, 0xE3069283, "the digits");
    memset(bytes, 0, sizeof bytes);
    check(bytes, sizeof bytes, 0x8A9136AA, "32 zeros");
    memset(bytes, 0xFF, sizeof bytes);
    check(bytes, sizeof bytes, 0x62A8AB43, "32 ones");
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)i;
    check(bytes, sizeof bytes, 0x46DD794E, "32 that go up");
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(31 - i);
    check(bytes, sizeof bytes, 0x113FDB5C, "32 that go down");
    check_pieces();
    return check_end();
}
