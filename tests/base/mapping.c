/* Mapped files: what was used leaves memory, comes back as it was, and what was written to a page stays.
 * Memory that grows keeps what is in it, and leaves its old addresses to others. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

/* A thread takes the page that another has left, by itself, as the loader of a library does. Nothing is
 * ordered between the two, which the thread sanitizer would say if it took that for the same memory. */
static _Atomic(void *) left_page;

static void *take_page(void *unused) {
    uint8_t *left;
    while (!(left = atomic_load_explicit(&left_page, memory_order_relaxed))) {
    }
    void *const taken = (void *)syscall(SYS_mmap, left, PAGE, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (taken == left) *left = 1;
    return unused;
}

static void check_grown(void) {
    struct mapping mapping = {0};
    struct error error = {0};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, take_page, NULL) == 0, "no thread");
    CHECK(mapping_grow(&mapping, PAGE, "a page", &error) == OK, "%s", error.words);
    uint8_t *const left = mapping.bytes;
    left[0] = 1, left[PAGE - 1] = 2;
    /* What lies behind it, ours or another's, makes it move. */
    mmap(left + PAGE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(mapping_grow(&mapping, BYTES, "pages", &error) == OK, "%s", error.words);
    CHECK(mapping.bytes != left && mapping.length >= BYTES, "%zu bytes", mapping.length);
    CHECK(mapping.bytes[0] == 1 && mapping.bytes[PAGE - 1] == 2, "what was there is not");
    CHECK(mapping.bytes[PAGE] == 0 && mapping.bytes[BYTES - 1] == 0, "more than zeros behind it");
    atomic_store_explicit(&left_page, left, memory_order_relaxed);
    pthread_join(thread, NULL);
    mapping_close(&mapping);
}

int main(void) {
    char path[] = "/tmp/trainer-mapping-XXXXXX";
    write_file(path);
    check_used(path);
    check_changed(path);
    check_grown();
    unlink(path);
    return check_end();
}
