/* Fuzzing of tar archives: clang -fsanitize=fuzzer,address over this file and the library. Headers get the
 * checksum that they should have, or else no input would come past it. Says at the end how many files were
 * given, and fails when none was. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../src/data/tar.h"

enum { BLOCK = 512, MOST = 1 << 16 };

static long files, ends, inputs;

static void report(void) {
    fprintf(stderr, "accepted: %ld files and %ld whole archives of %ld inputs\n", files, ends, inputs);
    if (inputs > 1000 && (files == 0 || ends == 0)) _exit(1);
}

static void seal(unsigned char *at) {
    unsigned sum = 0;
    memset(at + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++) sum += at[i];
    snprintf((char *)at + 148, 8, "%06o", sum & 0777777);
}

/* The input, with a usable header before each piece of it; its first byte says what the sizes are. */
static size_t make(unsigned char *out, const uint8_t *data, size_t bytes) {
    size_t used = 0, at = 1;
    while (at < bytes && used + 4 * BLOCK < MOST) {
        const size_t piece = bytes - at < BLOCK ? bytes - at : BLOCK;
        memset(out + used, 0, BLOCK);
        memcpy(out + used, data + at, piece);
        if (data[0] & 1) snprintf((char *)out + used + 124, 12, "%011o", data[at] * 7u);
        if (data[0] & 2) out[used + 156] = '0';
        seal(out + used);
        used += BLOCK;
        for (size_t i = 0; i < (size_t)(data[0] >> 6) * BLOCK; i++) out[used++] = data[at];
        at += piece;
    }
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static unsigned char archive[MOST];
    char path[64];
    unsigned char piece[300];
    struct tar tar;
    struct tar_file file;
    struct error error = {0};
    bool found = true;
    size_t got = 1;
    if (inputs++ == 0) atexit(report);
    if (bytes < 2) return 0;
    const bool is_raw = (data[0] & 4) != 0;
    const size_t length = is_raw ? bytes - 1 : make(archive, data, bytes);
    const int handle = memfd_create("tar", MFD_CLOEXEC);
    if (handle < 0 || write(handle, is_raw ? data + 1 : archive, length) != (ssize_t)length) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
    int code = tar_open(&tar, path, &error);
    while (code == OK && found) {
        long long left;
        code = tar_next(&tar, &file, &found, &error);
        if (code != OK || !found) break;
        files++;
        if (file.bytes < 0 || strlen(file.name) >= TAR_NAME_BYTES) abort();
        left = file.bytes;
        for (got = 1; code == OK && got > 0; left -= (long long)got)
            code = tar_read(&tar, piece, sizeof piece, &got, &error);
        if (code == OK && left != 0) abort();
    }
    ends += code == OK;
    if (code != OK && !*error.words) abort();
    tar_close(&tar);
    close(handle);
    return 0;
}
