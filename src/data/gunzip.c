/* gzip in memory, by zlib. The last four bytes of the format announce the size (RFC 1952), which is checked
 * against the limit before anything is allocated and against what comes out. */
#include "gunzip.h"

#include <stdint.h>
#include <zlib.h>
#include "../base/bytes.h"
#include "../base/memory.h"

enum {
    GZIP_LEAST_BYTES = 18,
    GZIP_WINDOW = 15 + 16
}; /* header and trailer; zlib's word for "32 KB, gzip only" */

static int unpack(z_stream *stream, const char *name, struct error *error) {
    const int code = inflate(stream, Z_FINISH);
    if (code == Z_OK || code == Z_BUF_ERROR)
        return error_set(error, ERROR_FILE,
                         "%s: found a gzip stream that is cut or longer than its announced size", name);
    if (code != Z_STREAM_END)
        return error_set(error, ERROR_FILE, "%s: found a broken gzip stream (%s)", name,
                         stream->msg ? stream->msg : zError(code));
    if (stream->avail_in > 0)
        return error_set(error, ERROR_FILE, "%s: found %u bytes after the gzip stream, expected none", name,
                         stream->avail_in);
    if (stream->avail_out > 0)
        return error_set(error, ERROR_FILE, "%s: found a gzip stream shorter than its announced size", name);
    return OK;
}

int data_gunzip(const char *name, const void *packed, size_t packed_bytes, size_t limit, char **out,
                size_t *out_bytes, struct error *error) {
    const uint8_t *bytes = packed;
    if (packed_bytes < GZIP_LEAST_BYTES || packed_bytes > UINT32_MAX || bytes[0] != 0x1f || bytes[1] != 0x8b)
        return error_set(error, ERROR_FILE, "%s: found %zu bytes that are not gzip, expected a gzip stream",
                         name, packed_bytes);
    const uint8_t *tail = bytes + packed_bytes - 4;
    const uint32_t size = (uint32_t)bytes_little(tail, 4);
    if (size > limit)
        return error_set(error, ERROR_FILE, "%s: found %u bytes announced, expected at most %zu", name, size,
                         limit);
    void *block = NULL;
    RETURN_IF(memory_zeroed(&block, (size_t)size + 1, 1, "an unpacked file", error));
    z_stream stream = {.next_in = (z_const Bytef *)bytes,
                       .avail_in = (uInt)packed_bytes,
                       .next_out = block,
                       .avail_out = size};
    int code = inflateInit2(&stream, GZIP_WINDOW);
    if (code == Z_OK) {
        code = unpack(&stream, name, error);
        inflateEnd(&stream);
    } else {
        code = error_set(error, ERROR_FILE, "%s: zlib did not start (%s)", name, zError(code));
    }
    if (code != OK) {
        memory_free(block);
        return code;
    }
    *out = block;
    *out_bytes = size;
    return OK;
}
