/* Fuzzing of pictures: clang -fsanitize=fuzzer,address over this file and the library. An input is read
 * as a file as it is, and as the raw material of a PNG: a head, and rows that get compressed into chunks with
 * their check sums. Starts from a JPEG file and from such rows. Says at the end how many
 * inputs were accepted, and fails when none was of one kind. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "../src/base/memory.h"
#include "../src/data/picture.h"
#include "jpeg_sample.h"

enum { MOST = 1 << 16, SIDE = 9 };

static long pngs, jpegs, inputs;

static void report(void) {
    fprintf(stderr, "accepted: %ld PNG and %ld JPEG pictures of %ld inputs\n", pngs, jpegs, inputs);
    if (inputs > 1000 && (pngs == 0 || jpegs == 0)) _exit(1);
}

static void put(uint8_t *at, size_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static size_t add_chunk(uint8_t *at, const char *kind, const uint8_t *bytes, size_t count) {
    put(at, count);
    memcpy(at + 4, kind, 4);
    if (count > 0) memcpy(at + 8, bytes, count);
    put(at + 8 + count, crc32(0, at + 4, (uInt)count + 4));
    return 12 + count;
}

/* A PNG of a small size: data[0..4] say its head, then come a palette when it needs one, and its rows. */
static size_t make_png(uint8_t *out, const uint8_t *data, size_t bytes) {
    static const uint8_t kinds[] = {0, 2, 3, 4, 6, 1, 7, 0}, depths[] = {8, 1, 2, 4, 16, 8, 8, 3};
    uint8_t head[13] = {0}, packed[MOST / 2];
    uLongf length = sizeof packed;
    if (bytes < 5 || bytes > MOST / 4) return 0;
    put(head, data[1] % 16);
    put(head + 4, data[2] % 16);
    head[8] = depths[data[3] & 7];
    head[9] = kinds[data[4] & 7];
    head[12] = data[3] >> 7;
    size_t used = 8, at = 5;
    memcpy(out, "\x89PNG\r\n\x1a\n", used);
    used += add_chunk(out + used, "IHDR", head, sizeof head);
    const size_t palette = (size_t)(data[4] >> 3) * 3;
    if (palette > 0 && at + palette < bytes) {
        used += add_chunk(out + used, "PLTE", data + at, palette);
        at += palette;
        if (data[3] & 64) used += add_chunk(out + used, "tRNS", data + at, bytes - at < 6 ? bytes - at : 6);
    }
    if (compress(packed, &length, data + at, bytes - at) != Z_OK) abort();
    if (data[3] & 32) /* the packed bytes themselves */
        used += add_chunk(out + used, "IDAT", data + at, bytes - at);
    else
        used += add_chunk(out + used, "IDAT", packed, length);
    return used + add_chunk(out + used, "IEND", NULL, 0);
}

static void fuzz_picture(const uint8_t *bytes, size_t count, int channels) {
    struct picture picture;
    struct error error = {0};
    float out[SIDE * SIDE * 3];
    if (picture_decode(&picture, channels, "f", bytes, count, &error) == OK) {
        if (bytes[0] == 0xff)
            jpegs++;
        else
            pngs++;
        if (picture.channels != channels || picture.height < 1 || picture.width < 1) abort();
        if (picture_fit(&picture, SIDE, SIDE - 2, out, &error) != OK) abort();
        for (int i = 0; i < SIDE * (SIDE - 2) * channels; i++)
            if (!(out[i] >= -0.01f && out[i] <= 255.01f)) abort();
    } else if (!*error.words) {
        abort();
    }
    picture_close(&picture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static uint8_t made[MOST];
    if (inputs++ == 0) atexit(report);
    if (bytes < 1) return 0;
    const size_t length = make_png(made, data, bytes);
    if (length > 0) fuzz_picture(made, length, data[0] & 1 ? 3 : 1);
    fuzz_picture(data, bytes, 3);
    return 0;
}

/* --- samples --- */

/* A JPEG file, now and then of another size, or one that says that it is progressive. */
static size_t make_jpeg(uint8_t *out, size_t most, unsigned seed) {
    if (most < sizeof jpeg_sample) return 0;
    memcpy(out, jpeg_sample, sizeof jpeg_sample);
    for (size_t i = 0; i + 8 < sizeof jpeg_sample; i++) {
        if (out[i] != 0xff || out[i + 1] != 0xc0) continue; /* the head of the frame */
        if (seed % 4 == 0) out[i + 1] = 0xc2;
        if (seed % 3 == 0) out[i + 6] = (uint8_t)(seed >> 4);
        if (seed % 3 == 1) out[i + 8] = (uint8_t)(seed >> 4);
    }
    return sizeof jpeg_sample;
}

/* What make_png takes: a head that is most often possible, and rows. */
static size_t make_rows(uint8_t *out, size_t most, unsigned seed) {
    const size_t count = most < 1100 ? most : 1100;
    for (size_t i = 0; i < count; i++) out[i] = i < 5 ? (uint8_t)(seed >> (4 * i)) : (uint8_t)(i % 3 * i);
    return count;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (seed % 16 == 0) bytes = make_jpeg(data, most, seed / 16);
    if (seed % 16 == 1) bytes = make_rows(data, most, seed / 16 * 2654435761u);
    if (seed % 32 < 2) return bytes;
    return LLVMFuzzerMutate(data, bytes, most);
}
