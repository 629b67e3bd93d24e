/* See mapping.h. */
#include "mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
    *mapping = (struct mapping){.bytes = bytes, .length = length};
    return OK;
}

int mapping_open(struct mapping *mapping, const char *path, struct error *error) {
    *mapping = (struct mapping){0};
    const int handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer: no wait */
    if (handle < 0) return error_set(error, ERROR_FILE, "%s: %s", path, strerror(errno));
    const int code = map(mapping, path, handle, error);
    close(handle);
    return code;
}

void mapping_close(struct mapping *mapping) {
    if (mapping->bytes) munmap(mapping->bytes, mapping->length);
    *mapping = (struct mapping){0};
}
