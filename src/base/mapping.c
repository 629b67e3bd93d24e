/* See mapping.h. */
#include "mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "memory.h"

enum { HUGE_PAGE = 2 << 20 };

/* The thread sanitizer does not see mremap. To it the addresses that pages have left stay those of the thread
 * that wrote there, so that whoever has them next, as a library that is loaded, would race with it. */
#if defined __SANITIZE_THREAD__
#    define MOVES 0
#elif defined __has_feature
#    if __has_feature(thread_sanitizer)
#        define MOVES 0
#    endif
#endif
#ifndef MOVES
#    define MOVES 1
#endif

static int map(struct mapping *mapping, const char *path, int handle, struct error *error) {
    struct stat status;
    if (fstat(handle, &status) != 0) return error_set(error, ERROR_FILE, "%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return error_set(error, ERROR_FILE, "%s: a %s, expected a file", path,
                         S_ISDIR(status.st_mode) ? "folder" : "pipe or device");
    if (status.st_size <= 0) return error_set(error, ERROR_FILE, "%s: found an empty file", path);
    const size_t length = (size_t)status.st_size;
    void *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, handle, 0);
    if (bytes == MAP_FAILED)
        return error_set(error, ERROR_DEVICE, "memory: no %zu bytes of addresses left for %s", length, path);
    *mapping = (struct mapping){.bytes = bytes, .length = length, .handle = handle};
    return OK;
}

int mapping_open(struct mapping *mapping, const char *path, struct error *error) {
    *mapping = (struct mapping){0};
    const int handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer: no wait */
    if (handle < 0) return error_set(error, ERROR_FILE, "%s: %s", path, strerror(errno));
    const int code = map(mapping, path, handle, error);
    if (code != OK) close(handle);
    return code;
}

static void *map_memory(size_t length) {
    return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* MAP_FAILED: there is no room, and all is as it was. */
static void *grow(struct mapping *mapping, size_t length) {
    if (!mapping->bytes) return map_memory(length);
    if (MOVES) return mremap(mapping->bytes, mapping->length, length, MREMAP_MAYMOVE);
    void *const grown = map_memory(length);
    if (grown == MAP_FAILED) return grown;
    memcpy(grown, mapping->bytes, mapping->length);
    munmap(mapping->bytes, mapping->length);
    return grown;
}

int mapping_grow(struct mapping *mapping, size_t bytes, const char *what, struct error *error) {
    if (bytes <= mapping->length) return OK;
    const size_t page = bytes < HUGE_PAGE ? (size_t)sysconf(_SC_PAGESIZE) : HUGE_PAGE;
    const size_t length = (bytes + page - 1) / page * page;
    RETURN_IF(memory_probe(length, what, error));
    void *const grown = grow(mapping, length);
    if (grown == MAP_FAILED)
        return error_set(error, ERROR_DEVICE, "memory: no %zu bytes left for %s", length, what);
    /* Batches take rows from anywhere: with huge pages they miss the TLB less. A wish, not a need. */
    if (length >= 2 * HUGE_PAGE) madvise(grown, length, MADV_HUGEPAGE);
    *mapping = (struct mapping){.bytes = grown, .length = length, .handle = -1};
    return OK;
}

void mapping_close(struct mapping *mapping) {
    if (mapping->bytes) munmap(mapping->bytes, mapping->length);
    if (mapping->bytes && mapping->handle >= 0) close(mapping->handle);
    *mapping = (struct mapping){0};
}

/* madvise wants the beginning of a page. */
static void advise(const void *bytes, size_t count, int advice) {
    const size_t inside = (size_t)((uintptr_t)bytes % (uintptr_t)sysconf(_SC_PAGESIZE));
    (void)madvise((char *)bytes - inside, count + inside, advice);
}

void mapping_soon(const void *bytes, size_t count) {
    advise(bytes, count, MADV_WILLNEED);
}

/* A page that nobody maps can be dropped from the file's cache, which costs the kernel half of what it takes
 * to page it out. That is for pages that are as the file has them: unmapping forgets what was written. */
void mapping_used(const struct mapping *mapping, const void *bytes, size_t count) {
    const uint8_t *const from = bytes;
    if (mapping->changed || mapping->handle < 0) {
#ifdef MADV_PAGEOUT
        advise(bytes, count, MADV_PAGEOUT);
#endif
        return;
    }
    advise(bytes, count, MADV_DONTNEED);
    (void)posix_fadvise(mapping->handle, from - mapping->bytes, (off_t)count, POSIX_FADV_DONTNEED);
}

void mapping_scattered(const void *bytes, size_t count) {
    advise(bytes, count, MADV_RANDOM);
}
