/* See crc32c.h. Processors with SSE 4.2 have an instruction for it. Elsewhere half a byte at a time: sixteen
 * numbers are a table that can be read. Both work on the complement of the sum. */
#include "crc32c.h"

#include <string.h>

/* [n] n divided by the polynomial 0x82F63B78, lowest bit first. */
static const uint32_t table[16] = {
    0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
    0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
};

static uint32_t by_table(uint32_t crc, const unsigned char *at, size_t count) {
    for (size_t i = 0; i < count; i++) {
        crc ^= at[i];
        crc = table[crc & 15] ^ (crc >> 4);
        crc = table[crc & 15] ^ (crc >> 4);
    }
    return crc;
}

#if defined __x86_64__

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *at,
                                                                 size_t count) {
    unsigned long long sum = crc, word;
    for (; count >= sizeof word; at += sizeof word, count -= sizeof word) {
        memcpy(&word, at, sizeof word);
        sum = __builtin_ia32_crc32di(sum, word);
    }
    return by_table((uint32_t)sum, at, count);
}

static uint32_t best(uint32_t crc, const unsigned char *at, size_t count) {
    return __builtin_cpu_supports("sse4.2") ? by_instruction(crc, at, count) : by_table(crc, at, count);
}

#else

static uint32_t best(uint32_t crc, const unsigned char *at, size_t count) {
    return by_table(crc, at, count);
}

#endif

uint32_t crc32c(uint32_t before, const void *bytes, size_t count) {
    return ~best(~before, bytes, count);
}
