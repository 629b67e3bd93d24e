/* What of zlib's header is used here, for machines that have the library, as nearly all do, and not the
 * header: the Makefile finds this one only where there is no other. Names, values and layouts are those of
 * zlib 1.2.9 and later, which have been the same ever since. Source: zlib's manual,
 * https://zlib.net/manual.html */
#ifndef TRAINER_BASE_ZLIB_H
#define TRAINER_BASE_ZLIB_H

#include <stddef.h>

#define Z_OK 0
#define Z_STREAM_END 1
#define Z_ERRNO (-1)
#define Z_DATA_ERROR (-3)
#define Z_MEM_ERROR (-4)
#define Z_BUF_ERROR (-5)
#define Z_NO_FLUSH 0
#define Z_FINISH 4

#define z_const /* of what is read; nothing unless ZLIB_CONST is asked for */

typedef unsigned char Bytef;
typedef unsigned int uInt;
typedef unsigned long uLong;
typedef size_t z_size_t;
typedef struct gzFile_s *gzFile;

typedef struct z_stream_s {
    Bytef *next_in;
    uInt avail_in;
    uLong total_in;
    Bytef *next_out;
    uInt avail_out;
    uLong total_out;
    char *msg;
    void *state;
    void *(*zalloc)(void *, uInt, uInt);
    void (*zfree)(void *, void *);
    void *opaque;
    int data_type;
    uLong adler;
    uLong reserved;
} z_stream;

/* calls */
gzFile gzopen(const char *path, const char *mode);
gzFile gzdopen(int handle, const char *mode);
int gzbuffer(gzFile file, unsigned bytes);
int gzread(gzFile file, void *out, unsigned bytes);
int gzdirect(gzFile file);
const char *gzerror(gzFile file, int *code);
int gzclose_r(gzFile file);
int inflateInit2_(z_stream *stream, int window, const char *version, int stream_bytes);
int inflate(z_stream *stream, int flush);
int inflateEnd(z_stream *stream);
uLong crc32(uLong crc, const Bytef *values, uInt count);
uLong crc32_z(uLong crc, const Bytef *values, z_size_t count);
const char *zError(int code);
/* end of calls */

#define inflateInit2(stream, window) inflateInit2_(stream, window, "1.2.9", (int)sizeof(z_stream))

#endif
