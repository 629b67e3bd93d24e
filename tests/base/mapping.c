/* Mapped files: what was used leaves memory, comes back as it was, and what was written to a page stays. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "../../src/base/mapping.h"
#include "../check.h"

enum { PAGE = 4096, PAGES = 64, BYTES = PAGE * PAGES };

static uint8_t byte_at(size_t at) {
    return (uint8_t)(at / PAGE + at % 251);
}

static void write_file(char *path) {
    static uint8_t bytes[BYTES];
    const int handle = mkstemp(path);
    for (size_t at = 0; at < BYTES; at++) bytes[at] = byte_at(at);
    CHECK(handle >= 0 && write(handle, bytes, BYTES) == BYTES && fsync(handle) == 0, "%s", path);
    if (handle >= 0) close(handle);
}

/* Pages of the file in memory. */
static int resident(const struct mapping *mapping) {
    unsigned char there[PAGES];
    int count = 0;
    CHECK(mincore(mapping->bytes, BYTES, there) == 0, "mincore");
    for (int page = 0; page < PAGES; page++) count += there[page] & 1;
    return count;
}

/* Whether the file system is memory itself, which keeps its pages. */
static bool is_memory(const char *path) {
    static const uint32_t tmpfs = 0x01021994, ramfs = 0x858458f6;
    struct statfs about;
    if (statfs(path, &about) != 0) return false;
    return (uint32_t)about.f_type == tmpfs || (uint32_t)about.f_type == ramfs;
}

static void check_used(const char *path) {
    struct mapping mapping;
    struct error error = {0};
    int sum = 0;
    CHECK(mapping_open(&mapping, path, &error) == OK, "%s", error.words);
    for (size_t at = 0; at < BYTES; at += PAGE) sum += mapping.bytes[at];
    CHECK(sum > 0 && resident(&mapping) == PAGES, "%d pages", resident(&mapping));
    mapping_used(&mapping, mapping.bytes, BYTES);
    const int left = resident(&mapping);
    CHECK(left == 0 || is_memory(path), "%d pages are left", left);
    for (size_t at = 0; at < BYTES; at++) sum += mapping.bytes[at] != byte_at(at);
    for (size_t at = 0; at < BYTES; at += PAGE) sum -= mapping.bytes[at];
    CHECK(sum == 0, "other bytes than before");
    mapping_close(&mapping);
}

static void check_changed(const char *path) {
    struct mapping mapping;
    struct error error = {0};
    CHECK(mapping_open(&mapping, path, &error) == OK, "%s", error.words);
    mapping.bytes[PAGE + 1] = 7;
    mapping.changed = true;
    mapping_used(&mapping, mapping.bytes, BYTES);
    CHECK(mapping.bytes[PAGE + 1] == 7, "what was written is forgotten");
    CHECK(mapping.bytes[PAGE + 2] == byte_at(PAGE + 2), "beside it");
    mapping_close(&mapping);
}

int main(void) {
    char path[] = "/tmp/trainer-mapping-XXXXXX";
    write_file(path);
    check_used(path);
    check_changed(path);
    unlink(path);
    return check_end();
}
