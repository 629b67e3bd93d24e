/* Whitening: against the filter written down plainly; what must not change it; what it does to correlations.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/data/whiten.h"
#include "../check.h"

enum {
    CHANNELS = WHITEN_CHANNELS,
    MOST_SIDE = 40,
    MOST = MOST_SIDE * MOST_SIDE * CHANNELS,
    SIDE = 5,
    ROOM = 8192
};

static uint8_t room[ROOM];

static int at(int width, int y, int x, int c) {
    return (y * width + x) * CHANNELS + c;
}

static uint8_t noise(int i) {
    return (uint8_t)((unsigned)(i + 1) * 2654435761u >> 13);
}

/* Smooth, as photographs are: steps of a random walk along both axes, the colours nearly alike. */
static void make_photograph(uint8_t *image, int height, int width, int seed) {
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < CHANNELS; c++)
                image[at(width, y, x, c)] =
                    (uint8_t)lrint(120 + 60 * sin(0.3 * y + seed) + 45 * cos(0.2 * x * (1 + seed % 3)) +
                                   noise(at(width, y, x, c) + 977 * seed) % 9 - 4 * c);
}

static void whiten(uint8_t *image, int height, int width) {
    memset(room, 0xa5, sizeof room);
    CHECK(whiten_room(height, width) < ROOM, "room of %zu bytes", whiten_room(height, width));
    whiten_image(image, height, width, room);
    CHECK(room[whiten_room(height, width)] == 0xa5, "written beyond the room of %dx%d", height, width);
}

static int inside(int i, int count) {
    return i < 0 ? 0 : i >= count ? count - 1 : i;
}

/* Each value by itself, from all 75 numbers around it. */
static void check_plainly(int height, int width) {
    uint8_t image[MOST], out[MOST];
    const int n = height * width * CHANNELS;
    long sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        image[i] = noise(i);
        sum += image[i];
        squares += image[i] * image[i];
    }
    const double mean = (double)sum / n, deviation = sqrt((double)squares / n - mean * mean);
    memcpy(out, image, (size_t)n);
    whiten(out, height, width);
    for (int i = 0; i < n; i++) {
        const int c = i % CHANNELS, x = i / CHANNELS % width, y = i / CHANNELS / width;
        double answer = 0;
        for (int rows = -2; rows <= 2; rows++)
            for (int columns = -2; columns <= 2; columns++)
                for (int in = 0; in < CHANNELS; in++)
                    answer +=
                        whiten_weight(abs(rows), abs(columns), in, c) *
                        (image[at(width, inside(y + rows, height), inside(x + columns, width), in)] - mean);
        const double expected = fmin(fmax(128 + 48 * answer / deviation / WHITEN_ONE, 0), 255);
        CHECK(fabs(out[i] - expected) < 0.5001, "%dx%d: row %d, column %d, channel %d is %d, expected %g",
              height, width, y, x, c, out[i], expected);
    }
}

/* Both ways alike, and little is left of what is the same everywhere. */
static void check_weights(void) {
    int flat[CHANNELS] = {0};
    for (int rows = -2; rows <= 2; rows++)
        for (int columns = -2; columns <= 2; columns++)
            for (int in = 0; in < CHANNELS; in++)
                for (int out = 0; out < CHANNELS; out++) {
                    const int weight = whiten_weight(abs(rows), abs(columns), in, out);
                    CHECK(weight == whiten_weight(abs(columns), abs(rows), out, in), "not symmetric");
                    flat[out] += weight;
                }
    for (int c = 0; c < CHANNELS; c++)
        CHECK(flat[c] > 0 && flat[c] < WHITEN_ONE / 4, "channel %d: %d of %d is left of what is flat", c,
              flat[c], WHITEN_ONE);
}

/* Mirrored and turned images give mirrored and turned answers, to the bit. */
static void check_mirrored(int side) {
    uint8_t image[MOST], turned[MOST], mirrored[MOST];
    make_photograph(image, side, side, 3);
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            for (int c = 0; c < CHANNELS; c++) {
                turned[at(side, x, y, c)] = image[at(side, y, x, c)];
                mirrored[at(side, y, side - 1 - x, c)] = image[at(side, y, x, c)];
            }
    whiten(image, side, side);
    whiten(turned, side, side);
    whiten(mirrored, side, side);
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            for (int c = 0; c < CHANNELS; c++)
                CHECK(turned[at(side, x, y, c)] == image[at(side, y, x, c)] &&
                          mirrored[at(side, y, side - 1 - x, c)] == image[at(side, y, x, c)],
                      "side %d: row %d, column %d differs when it is turned or mirrored", side, y, x);
}

/* An image of one colour says nothing; one that is lighter by the same everywhere says the same. */
static void check_light(void) {
    uint8_t image[MOST], lighter[MOST];
    memset(image, 77, MOST);
    whiten(image, 32, 32);
    for (int i = 0; i < 32 * 32 * CHANNELS; i++)
        CHECK(image[i] == 128, "one colour: %d, expected 128", image[i]);
    memset(image, 77, MOST);
    image[at(32, 9, 9, 0)]++;
    whiten(image, 32, 32);
    const int beside = 128 + (int)lrint(48.0 * whiten_weight(0, 1, 0, 0) / WHITEN_ONE);
    CHECK(image[at(32, 9, 10, 0)] == beside, "one grain of dust: %d beside it, expected %d",
          image[at(32, 9, 10, 0)], beside);
    make_photograph(image, 32, 32, 1);
    for (int i = 0; i < MOST; i++) lighter[i] = (uint8_t)(image[i] + 20);
    whiten(image, 32, 32);
    whiten(lighter, 32, 32);
    CHECK(memcmp(image, lighter, 32 * 32 * CHANNELS) == 0, "a lighter image differs");
}

/* Correlation of a channel with another one, `away` columns to the right. */
static double correlation(const uint8_t *image, int side, int a, int b, int away) {
    double n = 0, sum_a = 0, sum_b = 0, aa = 0, bb = 0, ab = 0;
    for (int y = 0; y < side; y++)
        for (int x = 0; x + away < side; x++) {
            const double left = image[at(side, y, x, a)], right = image[at(side, y, x + away, b)];
            n++;
            sum_a += left;
            sum_b += right;
            aa += left * left;
            bb += right * right;
            ab += left * right;
        }
    return (ab - sum_a * sum_b / n) / sqrt((aa - sum_a * sum_a / n) * (bb - sum_b * sum_b / n));
}

static void check_correlations(void) {
    static const int pairs[][3] = {{0, 0, 1}, {1, 1, 1}, {2, 2, 1}, {0, 1, 0}, {1, 2, 0}, {0, 2, 0}};
    for (int seed = 1; seed < 4; seed++) {
        uint8_t image[MOST], white[MOST];
        make_photograph(image, 32, 32, seed);
        memcpy(white, image, MOST);
        whiten(white, 32, 32);
        for (int p = 0; p < 6; p++) {
            const double before = correlation(image, 32, pairs[p][0], pairs[p][1], pairs[p][2]),
                         after = correlation(white, 32, pairs[p][0], pairs[p][1], pairs[p][2]);
            CHECK(before > 0.9 && fabs(after) < before / 2,
                  "channels %d and %d, %d away: %g before, %g after", pairs[p][0], pairs[p][1], pairs[p][2],
                  before, after);
        }
    }
}

int main(void) {
    check_weights();
    check_plainly(32, 32);
    check_plainly(33, 7);
    check_plainly(1, 40);
    check_plainly(3, 1);
    check_mirrored(32);
    check_mirrored(9);
    check_light();
    check_correlations();
    return check_end();
}
