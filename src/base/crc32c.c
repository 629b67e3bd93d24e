/* See crc32c.h. Half a byte at a time: sixteen numbers are a table that can be read. */
#include "crc32c.h"

/* [n] n divided by the polynomial 0x82F63B78, lowest bit first. */
static const uint32_t table[16] = {
    0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
    0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
};

uint32_t crc32c(uint32_t before, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    uint32_t crc = ~before;
    for (size_t i = 0; i < count; i++) {
        crc ^= at[i];
        crc = table[crc & 15] ^ (crc >> 4);
        crc = table[crc & 15] ^ (crc >> 4);
    }
    return ~crc;
}
