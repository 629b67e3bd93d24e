/* All sums are integers, so they are the same on every machine; only one product rounds. */
#include "whiten.h"

#include <math.h>
#include <stdlib.h>

enum { DISTANCES = 6, SIDE = 2 * WHITEN_REACH + 1, STRIP = 32, BYTE_OF_0 = 128, BYTES_OF_1 = 48 };

/* By distance from the centre, in units of 1/WHITEN_ONE: [out][in]. Made by tests/whiten_table.py. */
static const int filter[DISTANCES][WHITEN_CHANNELS][WHITEN_CHANNELS] = {
    {{1175, -310, -230}, {-310, 1247, -308}, {-230, -308, 1192}}, /* 0 rows and 0 columns away */
    {{-198, -15, 14}, {-15, -169, -17}, {14, -17, -194}},         /* 0 rows and 1 columns away */
    {{-56, 39, 41}, {39, -52, 38}, {41, 38, -58}},                /* 1 rows and 1 columns away */
    {{-21, 26, 19}, {26, -25, 23}, {19, 23, -20}},                /* 0 rows and 2 columns away */
    {{-4, 10, -2}, {10, -16, 11}, {-2, 11, -6}},                  /* 1 rows and 2 columns away */
    {{8, -2, -12}, {-2, -5, 1}, {-12, 1, 5}},                     /* 2 rows and 2 columns away */
};
/* [rows away][columns away], without their signs: which of the six. */
static const int distance[WHITEN_REACH + 1][WHITEN_REACH + 1] = {{0, 1, 3}, {1, 2, 4}, {3, 4, 5}};

int whiten_weight(int rows, int columns, int in, int out) {
    return filter[distance[rows][columns]][out][in];
}

static int inside(int i, int count) {
    return i < 0 ? 0 : i >= count ? count - 1 : i;
}

/* The image as planes, each with WHITEN_REACH more pixels on every side. */
struct planes {
    uint8_t *bytes; /* [WHITEN_CHANNELS][height + 2 WHITEN_REACH][stride] */
    size_t plane, stride;
};

size_t whiten_room(int height, int width) {
    return ((size_t)height + 2 * WHITEN_REACH) * ((size_t)width + 2 * WHITEN_REACH) * WHITEN_CHANNELS;
}

static struct planes make_planes(const uint8_t *image, int height, int width, uint8_t *room) {
    struct planes planes = {.bytes = room, .stride = (size_t)width + 2 * WHITEN_REACH};
    planes.plane = ((size_t)height + 2 * WHITEN_REACH) * planes.stride;
    for (int y = -WHITEN_REACH; y < height + WHITEN_REACH; y++)
        for (int x = -WHITEN_REACH; x < width + WHITEN_REACH; x++, room++)
            for (int c = 0; c < WHITEN_CHANNELS; c++)
                room[(size_t)c * planes.plane] =
                    image[((size_t)inside(y, height) * (size_t)width + (size_t)inside(x, width)) *
                              WHITEN_CHANNELS +
                          (size_t)c];
    return planes;
}

/* Adds to answer[out][columns] what a channel gives, from its pixel two rows and columns before the first. */
static void add_channel(int answer[WHITEN_CHANNELS][STRIP], int in, const uint8_t *pixels, size_t stride,
                        int columns) {
    int alike[DISTANCES][STRIP] = {0}; /* sums of the pixels that are equally far away */
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++) {
            int *sum = alike[distance[abs(r - WHITEN_REACH)][abs(c - WHITEN_REACH)]];
            const uint8_t *from = pixels + (size_t)r * stride + c;
            for (int x = 0; x < columns; x++) sum[x] += from[x];
        }
    for (int out = 0; out < WHITEN_CHANNELS; out++)
        for (int d = 0; d < DISTANCES; d++)
            for (int x = 0; x < columns; x++) answer[out][x] += filter[d][out][in] * alike[d][x];
}

/* The filter's answer to an image that is 1 everywhere. */
static int answer_to_1(int out) {
    static const int pixels[DISTANCES] = {1, 4, 4, 4, 8, 4};
    int sum = 0;
    for (int d = 0; d < DISTANCES; d++)
        for (int in = 0; in < WHITEN_CHANNELS; in++) sum += pixels[d] * filter[d][out][in];
    return sum;
}

/* The deviation of n bytes, but at least 1: an image of one colour has none. */
static double deviation(const uint8_t *bytes, size_t n, int64_t *total) {
    int64_t sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += bytes[i];
        squares += bytes[i] * bytes[i];
    }
    *total = sum;
    const double spread = (double)((int64_t)n * squares - sum * sum); /* n^2 times the variance */
    return fmax(sqrt(spread) / (double)n, 1.0);
}

void whiten_image(uint8_t *image, int height, int width, uint8_t *room) {
    const size_t n = (size_t)height * (size_t)width * WHITEN_CHANNELS;
    const struct planes planes = make_planes(image, height, width, room);
    int64_t total;
    const double factor = BYTES_OF_1 / (deviation(image, n, &total) * WHITEN_ONE * (double)n);
    for (int y = 0; y < height; y++)
        for (int first = 0; first < width; first += STRIP) {
            const int columns = width - first < STRIP ? width - first : STRIP;
            int answer[WHITEN_CHANNELS][STRIP] = {0};
            for (size_t c = 0; c < WHITEN_CHANNELS; c++)
                add_channel(answer, (int)c,
                            planes.bytes + c * planes.plane + (size_t)y * planes.stride + first,
                            planes.stride, columns);
            uint8_t *pixel = image + ((size_t)y * (size_t)width + (size_t)first) * WHITEN_CHANNELS;
            for (int x = 0; x < columns; x++)
                for (int c = 0; c < WHITEN_CHANNELS; c++, pixel++) {
                    /* n times the answer to the image less its mean */
                    const int64_t centred = (int64_t)n * answer[c][x] - total * answer_to_1(c);
                    *pixel = (uint8_t)inside(BYTE_OF_0 + (int)lrint((double)centred * factor), 256);
                }
        }
}
