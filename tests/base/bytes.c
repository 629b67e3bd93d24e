/* Numbers of 1 to 8 bytes, in both orders, among others that stay as they are. */
#include "../../src/base/bytes.h"
#include "../check.h"

int main(void) {
    const uint8_t at[] = {0xff, 0x81, 0x42, 0x03, 0xc4, 0x25, 0xa6, 0x07, 0xe8, 0xff};
    const uint64_t little[] = {0x81,         0x4281,         0x034281,         0xc4034281,
                               0x25c4034281, 0xa625c4034281, 0x07a625c4034281, 0xe807a625c4034281},
                   big[] = {0x81,         0x8142,         0x814203,         0x814203c4,
                            0x814203c425, 0x814203c425a6, 0x814203c425a607, 0x814203c425a607e8};
    for (int count = 1; count <= 8; count++) {
        uint8_t put[10] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
        CHECK(bytes_little(at + 1, count) == little[count - 1], "%d bytes", count);
        CHECK(bytes_big(at + 1, count) == big[count - 1], "%d bytes", count);
        bytes_put_little(put + 1, count, UINT64_C(0xe807a625c4034281));
        for (int i = 0; i < 10; i++)
            CHECK(put[i] == (i <= count ? at[i] : 0xff), "%d bytes: byte %d is %02x", count, i, put[i]);
    }
    return check_end();
}
