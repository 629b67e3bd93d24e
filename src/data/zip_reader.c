/* Reading a member of a zip archive. zlib is fed and emptied in pieces: it counts in 32 bits. */
#include <string.h>
#include <zlib.h>
#include "../base/memory.h"
#include "zip.h"

enum { PIECE = 1 << 30, RAW_WINDOW = -15, FLAG_ENCRYPTED = 1 }; /* zlib's word for "32 KB, no header" */

static const uint8_t *data_of(const struct zip *zip, const struct zip_member *member) {
    return zip->bytes + (member->end - member->packed);
}

static int check_method(const struct zip_member *member, const char *name, struct error *error) {
    if (member->flags & FLAG_ENCRYPTED)
        return error_set(error, ERROR_FILE, "%s: encrypted, expected an array that is not", name);
    if (member->method != ZIP_STORED && member->method != ZIP_DEFLATED)
        return error_set(error, ERROR_FILE,
                         "%s: packed by method %d, expected stored (0) or deflated (8), as savez and "
                         "savez_compressed do it",
                         name, member->method);
    return OK;
}

int zip_reader_open(struct zip_reader *reader, const struct zip *zip, const struct zip_member *member,
                    const char *name, struct error *error) {
    *reader = (struct zip_reader){
        .member = member, .name = name, .bytes = data_of(zip, member), .left = member->packed};
    RETURN_IF(check_method(member, name, error));
    if (member->method == ZIP_STORED) return OK;
    z_stream *stream;
    RETURN_IF(memory_array(&stream, 1, "unpacking", error));
    const int code = inflateInit2(stream, RAW_WINDOW);
    if (code == Z_OK) {
        reader->stream = stream;
        return OK;
    }
    memory_free(stream);
    return error_set(error, code == Z_MEM_ERROR ? ERROR_DEVICE : ERROR_FILE, "%s: zlib did not start (%s)",
                     name, zError(code));
}

static size_t copy(struct zip_reader *reader, uint8_t *out, size_t most) {
    const size_t bytes = reader->left < most ? (size_t)reader->left : most;
    if (bytes > 0) memcpy(out, reader->bytes, bytes);
    reader->bytes += bytes;
    reader->left -= bytes;
    return bytes;
}

/* One piece. *ended: there is no more. */
static int unpack(struct zip_reader *reader, uint8_t *out, size_t most, size_t *got, bool *ended,
                  struct error *error) {
    z_stream *stream = reader->stream;
    const uInt in = reader->left < PIECE ? (uInt)reader->left : PIECE,
               room = most < PIECE ? (uInt)most : PIECE;
    stream->next_in = (z_const Bytef *)reader->bytes;
    stream->avail_in = in;
    stream->next_out = out;
    stream->avail_out = room;
    const int code = inflate(stream, Z_NO_FLUSH);
    reader->bytes += in - stream->avail_in;
    reader->left -= in - stream->avail_in;
    *got = room - stream->avail_out;
    *ended = code == Z_STREAM_END;
    if (code == Z_OK || *ended) return OK;
    if (code == Z_MEM_ERROR)
        return error_set(error, ERROR_DEVICE, "memory: nothing left to unpack %s", reader->name);
    return error_set(error, ERROR_FILE, "%s: damaged compressed data (%s)", reader->name,
                     code == Z_BUF_ERROR ? "it is cut"
                     : stream->msg       ? stream->msg
                                         : zError(code));
}

static void end(struct zip_reader *reader) {
    if (reader->stream) inflateEnd(reader->stream);
    memory_free(reader->stream);
    reader->stream = NULL;
}

int zip_read(struct zip_reader *reader, uint8_t *out, size_t most, size_t *got, struct error *error) {
    *got = 0;
    if (reader->member->method == ZIP_STORED) *got = copy(reader, out, most);
    while (reader->stream && *got < most) {
        size_t bytes;
        bool ended;
        RETURN_IF(unpack(reader, out + *got, most - *got, &bytes, &ended, error));
        *got += bytes;
        if (ended) end(reader);
    }
    reader->crc = (uint32_t)crc32_z(reader->crc, out, *got);
    reader->given += *got;
    return OK;
}

int zip_finish(struct zip_reader *reader, struct error *error) {
    const struct zip_member *member = reader->member;
    const uint32_t crc = reader->crc;
    uint8_t more;
    size_t got = 0;
    if (reader->given == member->unpacked) RETURN_IF(zip_read(reader, &more, 1, &got, error));
    if (reader->given != member->unpacked || reader->left > 0)
        return error_set(error, ERROR_FILE, "%s: found data for %s%llu bytes, expected %llu", reader->name,
                         got > 0 ? "at least " : "", (unsigned long long)reader->given,
                         (unsigned long long)member->unpacked);
    if (crc != member->crc)
        return error_set(error, ERROR_FILE, "%s: found CRC-32 %08x, expected %08x: the file is damaged",
                         reader->name, crc, member->crc);
    return OK;
}

void zip_reader_close(struct zip_reader *reader) {
    end(reader);
    *reader = (struct zip_reader){0};
}

int zip_stored(const uint8_t **data, const struct zip *zip, const struct zip_member *member, const char *name,
               struct error *error) {
    RETURN_IF(check_method(member, name, error));
    *data = data_of(zip, member);
    const uint32_t crc = (uint32_t)crc32_z(0, *data, (z_size_t)member->packed);
    if (crc == member->crc) return OK;
    return error_set(error, ERROR_FILE, "%s: found CRC-32 %08x, expected %08x: the file is damaged", name,
                     crc, member->crc);
}
