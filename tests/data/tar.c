/* tar archives: made here block by block, whole and with every corruption. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "../../src/data/tar.h"
#include "../check.h"

enum { BLOCK = 512, MOST = 64 * BLOCK };

struct archive {
    unsigned char bytes[MOST];
    size_t length;
};

static char path[] = "/tmp/trainer-tar-XXXXXX";

/* The checksum of the header at `at`. */
static void seal(unsigned char *at) {
    unsigned sum = 0;
    memset(at + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++) sum += at[i];
    snprintf((char *)at + 148, 8, "%06o", sum);
}

/* Adds a header; returns it. */
static unsigned char *add_header(struct archive *archive, const char *prefix, const char *name, char kind,
                                 size_t bytes) {
    unsigned char *at = archive->bytes + archive->length;
    memset(at, 0, BLOCK);
    memcpy(at, name, strlen(name)); /* a name of 100 bytes has no 0 at its end */
    snprintf((char *)at + 124, 12, "%011zo", bytes);
    at[156] = (unsigned char)kind;
    memcpy(at + 257, "ustar\00000", 8);
    memcpy(at + 345, prefix, strlen(prefix));
    seal(at);
    archive->length += BLOCK;
    return at;
}

static unsigned char content(size_t file, size_t i) {
    return (unsigned char)(i * 31 + file * 7 + i / 256);
}

static void add_file(struct archive *archive, const char *prefix, const char *name, char kind, size_t file,
                     size_t bytes) {
    add_header(archive, prefix, name, kind, bytes);
    for (size_t i = 0; i < bytes; i++) archive->bytes[archive->length + i] = content(file, i);
    archive->length += (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

static void save(const struct archive *archive, size_t length, int packed) {
    gzFile file = gzopen(path, packed ? "wb" : "wbT");
    CHECK(file && gzwrite(file, archive->bytes, (unsigned)length) == (int)length, "%s was not written", path);
    if (file) gzclose(file);
}

static const size_t sizes[] = {0, 1, 511, 512, 513, 3000};
enum { FILES = sizeof sizes / sizeof *sizes };

/* A folder, files of all sizes with a link and an extension record between them, the end. */
static void make(struct archive *archive) {
    char name[101];
    memset(archive, 0, sizeof *archive);
    add_file(archive, "", "folder/", '5', 0, 0);
    for (size_t f = 0; f < FILES; f++) {
        snprintf(name, sizeof name, "folder/%zu.bin", f);
        if (f == 2) add_file(archive, "", "link", '2', 0, 0);
        if (f == 3) add_file(archive, "", "extension", 'x', 50, 600);
        if (f == 4) {
            memset(name, 'n', 100);
            name[100] = '\0';
        }
        add_file(archive, f == 5 ? "prefix" : "", name, f == 1 ? '\0' : '0', f, sizes[f]);
    }
    archive->length += 2 * BLOCK;
}

/* Reads a file in pieces of `step` bytes. */
static void check_content(struct tar *tar, size_t f, size_t step) {
    unsigned char piece[4096];
    struct error error = {0};
    size_t have = 0, got = 1;
    while (got > 0) {
        CHECK(tar_read(tar, piece, step, &got, &error) == OK, "%s", error.words);
        for (size_t i = 0; i < got; i++)
            CHECK(piece[i] == content(f, have + i), "file %zu, byte %zu is %d", f, have + i, piece[i]);
        have += got;
    }
    CHECK(have == sizes[f], "file %zu: %zu bytes, expected %zu", f, have, sizes[f]);
}

/* every: read the contents of each such file only, step over the others. */
static void check_good(int packed, size_t step, size_t every) {
    struct archive archive;
    struct tar tar;
    struct tar_file file;
    struct error error = {0};
    bool found = true;
    make(&archive);
    save(&archive, archive.length, packed);
    CHECK(tar_open(&tar, path, &error) == OK, "%s", error.words);
    for (size_t f = 0; f < FILES; f++) {
        char name[TAR_NAME_BYTES];
        snprintf(name, sizeof name, f == 5 ? "prefix/folder/%zu.bin" : "folder/%zu.bin", f);
        if (f == 4) {
            memset(name, 'n', 100);
            name[100] = '\0';
        }
        CHECK(tar_next(&tar, &file, &found, &error) == OK && found, "file %zu: %s", f, error.words);
        CHECK(strcmp(file.name, name) == 0, "%s, expected %s", file.name, name);
        CHECK(file.bytes == (long long)sizes[f], "%lld bytes, expected %zu", file.bytes, sizes[f]);
        if (f % every == 0) check_content(&tar, f, step);
    }
    CHECK(tar_next(&tar, &file, &found, &error) == OK && !found, "no end: %s", error.words);
    tar_close(&tar);
}

/* Goes through a broken archive; returns how many files were given before the words were. */
static int walk(struct error *error) {
    struct tar tar;
    struct tar_file file;
    unsigned char piece[700];
    bool found = true;
    size_t got = 1;
    int files = 0;
    *error = (struct error){0};
    int code = tar_open(&tar, path, error);
    while (code == OK && found) {
        code = tar_next(&tar, &file, &found, error);
        for (got = 1; code == OK && found && got > 0;)
            code = tar_read(&tar, piece, sizeof piece, &got, error);
        files += code == OK && found;
    }
    tar_close(&tar);
    return files;
}

static void check_bad(const struct archive *archive, size_t length, int files, const char *words) {
    struct error error;
    save(archive, length, 0);
    const int found = walk(&error);
    CHECK(error.code == ERROR_FILE && found == files, "%s: code %d after %d files, expected %d", words,
          error.code, found, files);
    CHECK(strncmp(error.words, path, strlen(path)) == 0 && strstr(error.words, words) != NULL,
          "found %s, expected %s", error.words, words);
}

static void check_corruptions(void) {
    struct archive archive;
    struct error error;
    make(&archive);
    unsigned char *first = archive.bytes + BLOCK; /* the header of file 0 */
    check_bad(&archive, archive.length - 3 * BLOCK, FILES - 1, ": the archive ends too early");
    check_bad(&archive, BLOCK + 100, 0, ": the archive ends too early");
    first[0] ^= 1;
    check_bad(&archive, archive.length, 0, ": a header without its checksum, expected a tar archive");
    make(&archive);
    memset(first + 148, 0, 8);
    check_bad(&archive, archive.length, 0, ": a header without its checksum");
    const char *const wrong[] = {"00000000008", "           ",    "-0000000001",
                                 "0x000000001", "\200aaaaaaaaaa", "77777777777777"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        make(&archive);
        memcpy(first + 124, wrong[i], strlen(wrong[i]) < 12 ? strlen(wrong[i]) + 1 : 12);
        seal(first);
        check_bad(&archive, archive.length, 0,
                  i < 5 ? ": folder/0.bin: no usable size" : ": more than 1073741824 bytes, unpacked");
    }
    make(&archive); /* no end mark: the end of the file will do */
    save(&archive, archive.length - 2 * BLOCK, 0);
    CHECK(walk(&error) == FILES && error.code == OK, "no end mark: %s", error.words);
    save(&archive, 0, 0);
    CHECK(walk(&error) == 0 && error.code == OK, "empty: %s", error.words);
    memset(archive.bytes, 'x', sizeof archive.bytes);
    check_bad(&archive, 3 * BLOCK, 0, ": a header without its checksum, expected a tar archive");
}

static void check_packed(void) {
    struct archive archive;
    struct error error;
    unsigned char packed[MOST];
    make(&archive);
    save(&archive, archive.length, 1);
    FILE *file = fopen(path, "rb");
    const size_t length = file ? fread(packed, 1, sizeof packed, file) : 0;
    if (file) fclose(file);
    CHECK(length > 200, "%zu bytes", length);
    for (int change = 0; change < 2; change++) {
        if (change == 1) packed[length - 5] ^= 0x55; /* in the checksum */
        file = fopen(path, "wb");
        if (file) fwrite(packed, 1, change == 0 ? length - 20 : length, file);
        if (file) fclose(file);
        walk(&error);
        CHECK(change == 1 || (error.code == ERROR_FILE && strstr(error.words, "damaged or cut gzip data")),
              "%s", error.words);
    }
    remove(path);
    walk(&error);
    CHECK(error.code == ERROR_FILE && strstr(error.words, ": cannot be read"), "%s", error.words);
}

/* As much as is unpacked at most, the header with it, and a byte more: said before it is read. */
static void check_endless(void) {
    static struct archive archive;
    const size_t most = ((size_t)1 << 30) - BLOCK;
    for (size_t more = 0; more < 2; more++) {
        memset(&archive, 0, sizeof archive);
        add_header(&archive, "", "folder/", '5', most + more);
        check_bad(&archive, archive.length, 0,
                  more == 0 ? ": the archive ends too early" : ": more than 1073741824 bytes, unpacked");
    }
}

int main(void) {
    const int handle = mkstemp(path);
    CHECK(handle >= 0, "no temporary file");
    close(handle);
    for (size_t step = 1; step <= 4096; step = step * 7 + 1) {
        check_good(0, step, 1);
        check_good(1, step, 1);
    }
    check_good(1, 512, 2);
    check_good(0, 512, 7);
    check_corruptions();
    check_packed();
    check_endless();
    remove(path);
    return check_end();
}
