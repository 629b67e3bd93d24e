/* Blocks with check sums: each is compared when it is first used, once, and what is damaged is refused each
 * time. */
#include "../../src/base/checked.h"

#include <string.h>
#include "../../src/base/crc32c.h"
#include "../../src/base/memory.h"
#include "../check.h"

enum { BLOCK = 16, LENGTH = 4 * BLOCK + 5, BLOCKS = 5 };

static void use(struct checked *checked, const uint8_t *bytes, size_t first, size_t count, bool right) {
    struct error error = {0};
    const int code = checked_use(checked, bytes + first, count, &error);
    CHECK(code == (right ? OK : ERROR_FILE), "%zu bytes from %zu: %s", count, first, error.words);
    CHECK(right || strstr(error.words, "f: damaged: bytes 132 to 147 have the check sum"), "%s", error.words);
}

int main(void) {
    uint8_t bytes[LENGTH];
    uint32_t sums[BLOCKS];
    struct checked *checked = NULL;
    struct error error = {0};
    for (int i = 0; i < LENGTH; i++) bytes[i] = (uint8_t)(i * i);
    for (size_t b = 0; b < BLOCKS; b++) sums[b] = crc32c(0, bytes + b * BLOCK, b < 4 ? BLOCK : 5);
    const struct checked_bytes of = {bytes, LENGTH, BLOCK, 100, sums};
    CHECK(checked_blocks(LENGTH, BLOCK) == BLOCKS && checked_blocks(4 * BLOCK, BLOCK) == 4, "blocks");
    CHECK(checked_open(&checked, "f", &of, &error) == OK, "%s", error.words);
    use(checked, bytes, 0, 1, true);
    bytes[3]++; /* after its block was compared: nobody looks again */
    use(checked, bytes, 0, BLOCK, true);
    bytes[2 * BLOCK + 7]++;
    use(checked, bytes, 0, 2 * BLOCK, true);
    use(checked, bytes, 2 * BLOCK, 0, true);
    use(checked, bytes, 2 * BLOCK - 1, 2, false);
    use(checked, bytes, 3 * BLOCK - 1, 1, false);
    use(checked, bytes, 0, LENGTH, false);
    use(checked, bytes, 3 * BLOCK, LENGTH - 3 * BLOCK, true);
    bytes[2 * BLOCK + 7]--;
    use(checked, bytes, 0, LENGTH, true);
    memory_free(checked);
    return check_end();
}
