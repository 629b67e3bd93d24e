/* Memory: zeroed blocks on cache-line boundaries, so that two threads' blocks never share a line; and a way
 * for tests to make the n-th request fail, so that every clean-up path can be walked.
 *
 * The count of requests is the only static state of the program. It has to be: the test asks for "the n-th of
 * the process", and handing a counter through every signature for a test's sake would cost more than this one
 * atomic. */
#include "memory.h"
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cgroup.h"

enum { HUGE_PAGE = 2 << 20 };

static _Atomic long requests;

static bool must_fail(void) {
    const char *text = getenv("TRAINER_FAIL_ALLOCATION");
    if (text == NULL) return false;
    const long request = atomic_fetch_add_explicit(&requests, 1, memory_order_relaxed) + 1;
    return request == strtol(text, NULL, 10);
}

void memory_heed_limit(void) {
    struct rlimit addresses;
    if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur == RLIM_INFINITY) return;
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
}

int memory_zeroed(void **out, size_t count, size_t bytes, const char *what, struct error *error) {
    *out = NULL;
    if (bytes != 0 && count > (SIZE_MAX - CACHE_LINE) / bytes)
        return error_set(error, ERROR_DEVICE, "memory: %zu x %zu bytes for %s, more than can be addressed",
                         count, bytes, what);
    const size_t wanted = count * bytes;
    const size_t lines = wanted == 0 ? 1 : (wanted + CACHE_LINE - 1) / CACHE_LINE;
    const bool large = lines * CACHE_LINE >= 2 * HUGE_PAGE;
    const size_t boundary = large ? HUGE_PAGE : CACHE_LINE,
                 size = (lines * CACHE_LINE + boundary - 1) / boundary * boundary;
    void *block = must_fail() ? NULL : aligned_alloc(boundary, size);
    if (block == NULL)
        return error_set(error, ERROR_DEVICE, "memory: no %zu bytes left for %s", lines * CACHE_LINE, what);
    /* Batches take rows from anywhere in a data set: with huge pages they miss the TLB less. A wish, not a
     * need. */
    if (large) madvise(block, size, MADV_HUGEPAGE);
    memset(block, 0, lines * CACHE_LINE);
    *out = block;
    return OK;
}

int memory_array_of(void *out, size_t count, size_t bytes, const char *what, struct error *error) {
    void *block;
    const int code = memory_zeroed(&block, count, bytes, what, error);
    memcpy(out, &block, sizeof block); /* whatever the pointer points to */
    return code;
}

int memory_grow_of(void *array, size_t old_count, size_t new_count, size_t bytes, const char *what,
                   struct error *error) {
    void *block, *grown;
    RETURN_IF(memory_zeroed(&grown, new_count, bytes, what, error));
    const size_t kept = old_count < new_count ? old_count : new_count;
    memcpy(&block, array, sizeof block); /* as above */
    if (block != NULL && kept * bytes != 0) memcpy(grown, block, kept * bytes);
    free(block);
    memcpy(array, &grown, sizeof grown);
    return OK;
}

int memory_probe(size_t bytes, const char *what, struct error *error) {
    void *block = must_fail() ? MAP_FAILED
                              : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED)
        return error_set(error, ERROR_DEVICE, "memory: no %zu bytes left for %s", bytes, what);
    munmap(block, bytes);
    return OK;
}

size_t memory_at_most(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    size_t most = pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes : SIZE_MAX;
    const size_t group = cgroup_memory("/proc/self/cgroup", "/sys/fs/cgroup");
    struct rlimit addresses;
    if (group < most) most = group;
    if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur == RLIM_INFINITY) return most;
    return addresses.rlim_cur < most ? (size_t)addresses.rlim_cur : most;
}

int memory_text(char **out, const char *text, struct error *error) {
    const size_t bytes = strlen(text) + 1;
    RETURN_IF(memory_array(out, bytes, "a text", error));
    memcpy(*out, text, bytes);
    return OK;
}

void memory_free(void *block) {
    free(block);
}
