/* Files piece by piece: zlib reads plain files and gzip alike, checks their checksums and tells a cut-off
 * one. */
#include "file_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "bytes.h"
#include "file.h"
#include "memory.h"

enum { FIRST_BYTES = 1 << 16, STEP_BYTES = 1 << 30 };

/* Why zlib stopped, in words. */
static int read_error(const char *path, gzFile file, struct error *error) {
    int code = Z_OK;
    const char *words = gzerror(file, &code);
    if (code == Z_ERRNO) return error_set(error, ERROR_FILE, "%s: %s", path, strerror(errno));
    if (code == Z_BUF_ERROR)
        return error_set(error, ERROR_FILE, "%s: the gzip data ends too early, expected its end mark", path);
    if (code == Z_DATA_ERROR) return error_set(error, ERROR_FILE, "%s: damaged gzip data", path);
    return error_set(error, ERROR_FILE, "%s: %s", path, words);
}

/* How many bytes reading the file will give, most likely: its size; for gzip what its last four bytes say
 * (RFC 1952), unless that is absurd. */
static size_t likely_bytes(int handle, const struct stat *status) {
    unsigned char magic[2], end[4];
    if (!S_ISREG(status->st_mode) || status->st_size <= 0) return FIRST_BYTES;
    const size_t size = (size_t)status->st_size;
    if (size < 18 || pread(handle, magic, 2, 0) != 2 || magic[0] != 0x1f || magic[1] != 0x8b) return size;
    if (pread(handle, end, 4, status->st_size - 4) != 4) return size;
    const size_t said = (size_t)bytes_little(end, 4);
    return said > size && said / 64 < size ? said : size;
}

/* How much a gzip file may become, below the limit for any file. The size of a pipe is not known. */
static size_t unpacked_most(const struct stat *status, size_t limit) {
    size_t most = FILE_UNPACKED_MOST;
    if (S_ISREG(status->st_mode) && (size_t)status->st_size < most / FILE_UNPACKED_TIMES)
        most = (size_t)status->st_size * FILE_UNPACKED_TIMES;
    if (most < FILE_UNPACKED_FREE) most = FILE_UNPACKED_FREE;
    return most < limit ? most : limit;
}

/* Takes the handle. */
static int start(struct file_reader *reader, int handle, struct error *error) {
    struct stat status = {0};
    if (handle < 0) return error_set(error, ERROR_FILE, "%s: %s", reader->path, strerror(errno));
    if (fstat(handle, &status) == 0 && S_ISDIR(status.st_mode)) {
        close(handle);
        return error_set(error, ERROR_FILE, "%s: a folder, expected a file", reader->path);
    }
    reader->likely = likely_bytes(handle, &status);
    const gzFile file = gzdopen(handle, "rb");
    if (file == NULL) {
        close(handle);
        return error_set(error, ERROR_DEVICE, "memory: nothing left to open %s", reader->path);
    }
    gzbuffer(file, FIRST_BYTES);
    reader->file = file;
    reader->packed = !gzdirect(file);
    if (reader->packed) reader->limit = unpacked_most(&status, reader->limit);
    return OK;
}

int file_reader_open(struct file_reader *reader, const char *path, size_t limit, struct error *error) {
    *reader = (struct file_reader){.path = path, .limit = limit};
    return start(reader, open(path, O_RDONLY | O_CLOEXEC), error);
}

int file_reader_standard_input(struct file_reader *reader, size_t limit, struct error *error) {
    *reader = (struct file_reader){.path = "standard input", .limit = limit};
    return start(reader, fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0), error);
}

/* From the file itself. */
static int read_more(const struct file_reader *reader, char *out, size_t room, size_t *got,
                     struct error *error) {
    const gzFile file = reader->file;
    const int count = gzread(file, out, (unsigned)(room < STEP_BYTES ? room : STEP_BYTES));
    int state = Z_OK;
    gzerror(file, &state);
    *got = 0;
    if (count < 0 || (count == 0 && state != Z_OK)) return read_error(reader->path, file, error);
    *got = (size_t)count;
    return OK;
}

int file_reader_read(struct file_reader *reader, char *out, size_t room, size_t *got, struct error *error) {
    const size_t front = reader->front_end - reader->front_at;
    if (front > 0) {
        *got = front < room ? front : room;
        memcpy(out, reader->front + reader->front_at, *got);
        reader->front_at += *got;
    } else {
        RETURN_IF(read_more(reader, out, room, got, error));
    }
    if ((reader->used += *got) <= reader->limit) return OK;
    return error_set(error, ERROR_FILE, "%s: more than %zu bytes%s, the most that is read here", reader->path,
                     reader->limit, reader->packed ? " when unpacked" : "");
}

int file_reader_look(struct file_reader *reader, const char **front, size_t *bytes, struct error *error) {
    if (reader->front_end == 0)
        RETURN_IF(read_more(reader, reader->front, FILE_FRONT_BYTES, &reader->front_end, error));
    *front = reader->front;
    *bytes = reader->front_end;
    return OK;
}

/* The room never grows beyond the limit of what comes out. A plain file takes two reads: its bytes, and the
 * end. */
int file_reader_rest(struct file_reader *reader, char **data, size_t *bytes, struct error *error) {
    const size_t most = reader->limit + 2; /* one byte more than may be, and a 0 byte behind it */
    size_t room = reader->likely < reader->limit ? reader->likely + 2 : most, used = 0;
    char *block = NULL;
    int code = memory_array(&block, room, reader->path, error);
    for (size_t got = 1; code == OK && got > 0; used += got) {
        if (used + 1 >= room) {
            const size_t larger = room < most / 2 ? 2 * room : most;
            code = memory_grow(&block, room, larger, reader->path, error);
            if (code != OK) break;
            room = larger;
        }
        code = file_reader_read(reader, block + used, room - 1 - used, &got, error);
    }
    if (code != OK) {
        memory_free(block);
        return code;
    }
    block[used] = '\0';
    *data = block;
    *bytes = used;
    return OK;
}

void file_reader_close(struct file_reader *reader) {
    if (reader->file) gzclose_r(reader->file);
    *reader = (struct file_reader){0};
}
