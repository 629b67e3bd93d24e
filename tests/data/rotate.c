/* Rotated images: no angle changes nothing, quarter turns move every pixel to its exact place, other angles
 * are the mean of four pixels, and what one device works out for a pixel is what the next one does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/cpu/cpu.h"
#include "../check.h"

enum { MOST = 40 * 40 * AUGMENT_CHANNELS, DRAWS = 10000 };

static uint8_t image[MOST];
static float out[MOST];

static struct augment recipe(int height, int width, int channels, int pad, int rows, int columns) {
    return (struct augment){.height = height,
                            .width = width,
                            .channels = channels,
                            .pad = pad,
                            .rows = rows,
                            .columns = columns,
                            .rotate = 180.0f,
                            .contrast_least = 1.0f,
                            .contrast_most = 1.0f};
}

static const int shapes[][6] = {
    {8, 8, 1, 0, 8, 8},  {9, 9, 3, 0, 9, 9}, {32, 32, 3, 4, 24, 24}, {7, 12, 2, 3, 9, 4},
    {12, 7, 4, 0, 5, 7}, {1, 1, 1, 0, 1, 1}, {3, 2, 1, 5, 11, 12},   {28, 28, 1, 0, 20, 20},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct augment shape_of(int s) {
    const int *of = shapes[s];
    return recipe(of[0], of[1], of[2], of[3], of[4], of[5]);
}

static void fill(void) {
    for (int i = 0; i < MOST; i++) image[i] = (uint8_t)(rng_philox(5, 0, (uint64_t)i).word[0]);
}

/* Sine and cosine to half a unit; quarter turns exactly. */
static void check_turns(void) {
    const double degree = acos(-1.0) / 180.0;
    for (int tenth = -1800; tenth <= 1800; tenth++) {
        const struct augment_turn turn = augment_turn((float)tenth / 10.0f);
        const double angle = (double)((float)tenth / 10.0f) * degree;
        CHECK(fabs(turn.sine - AUGMENT_ONE * sin(angle)) < 0.501 &&
                  fabs(turn.cosine - AUGMENT_ONE * cos(angle)) < 0.501,
              "%g degrees: %d, %d", tenth / 10.0, turn.sine, turn.cosine);
    }
    static const struct augment_turn quarters[] = {
        {0, -AUGMENT_ONE}, {-AUGMENT_ONE, 0}, {0, AUGMENT_ONE}, {AUGMENT_ONE, 0}, {0, -AUGMENT_ONE}};
    for (int q = -2; q <= 2; q++) {
        const struct augment_turn turn = augment_turn(90.0f * (float)q);
        CHECK(turn.sine == quarters[q + 2].sine && turn.cosine == quarters[q + 2].cosine, "%d quarters", q);
    }
}

/* Turned by nothing, every pixel comes from where the crop without a rotation takes it. */
static void check_nothing(void) {
    for (int s = 0; s < SHAPES; s++)
        for (int flip = 0; flip < 2; flip++) {
            const struct augment a = shape_of(s);
            struct augment_draw draw = augment_draw(&a, (uint64_t)s);
            draw.turn = augment_turn(0.0f);
            draw.flip = flip;
            CHECK(!augment_is_turned(&draw), "0 degrees are a turn");
            for (int y = 0; y < a.rows; y++)
                for (int x = 0; x < a.columns; x++) {
                    const struct augment_place place = augment_place(&a, &draw, y, x);
                    const int from = flip ? a.columns - 1 - x : x;
                    CHECK(place.row == draw.top - a.pad + y && place.column == draw.left - a.pad + from &&
                              place.down == 0 && place.right == 0,
                          "shape %d: %d, %d comes from %d, %d", s, y, x, place.row, place.column);
                }
        }
}

/* A square crop, mirrored or not: by 90 degrees the first row comes from the last column. */
static void check_quarters(void) {
    for (int side = 1; side <= 33; side += side < 9 ? 1 : 8)
        for (int flip = 0; flip < 2; flip++)
            for (int q = 1; q <= 3; q++) {
                const struct augment a = recipe(side, side, 3, 0, side, side);
                struct augment_draw draw = augment_centre(&a);
                long wrong = 0;
                draw.turn = augment_turn(q == 3 ? -90.0f : 90.0f * (float)q);
                draw.flip = flip;
                cpu_augment(&a, &draw, image, 1.0f, out);
                for (int i = 0; i < side * side * 3; i++) {
                    const int y = i / 3 / side, x = i / 3 % side, last = side - 1;
                    const int row = q == 1 ? x : q == 2 ? last - y : last - x;
                    const int column = q == 1 ? last - y : q == 2 ? last - x : y;
                    const int from = flip ? last - column : column;
                    wrong += out[i] < image[(row * side + from) * 3 + i % 3] ||
                             out[i] > image[(row * side + from) * 3 + i % 3];
                }
                CHECK(wrong == 0, "%d quarters of %dx%d, flip %d: %ld are wrong", q, side, side, flip, wrong);
            }
}

/* Light that grows evenly to the right and downwards does so along any other direction. */
static void check_slope(void) {
    enum { SIDE = 40, CROP = 24 };
    const struct augment a = recipe(SIDE, SIDE, 1, 0, CROP, CROP);
    const double degree = acos(-1.0) / 180.0, middle = (SIDE - 1) / 2.0;
    double furthest = 0.0;
    for (int i = 0; i < SIDE * SIDE; i++) image[i] = (uint8_t)(4 * (i / SIDE) + 2 * (i % SIDE));
    for (int angle = -175; angle <= 175; angle += 7) {
        struct augment_draw draw = augment_centre(&a);
        draw.turn = augment_turn((float)angle);
        cpu_augment(&a, &draw, image, 1.0f, out);
        for (int i = 0; i < CROP * CROP; i++) {
            const double down = i / CROP - (CROP - 1) / 2.0, right = i % CROP - (CROP - 1) / 2.0;
            const double y = middle + cos(angle * degree) * down + sin(angle * degree) * right;
            const double x = middle + cos(angle * degree) * right - sin(angle * degree) * down;
            furthest = fmax(furthest, fabs((double)out[i] - 4 * y - 2 * x));
        }
    }
    CHECK(furthest < 0.5 + 6.0 / 256 + 0.01, "%g off", furthest);
    fill();
}

/* The CPU, which takes what lies inside without looking at the borders, against one byte after the other. */
static void check_bytes(void) {
    for (int s = 0; s < SHAPES; s++)
        for (uint64_t key = 0; key < 50; key++) {
            struct augment a = shape_of(s);
            a.flip = 1;
            const struct augment_draw draw = augment_draw(&a, key);
            long wrong = 0, black = 0;
            cpu_augment(&a, &draw, image, 1.0f, out);
            for (int i = 0; i < a.rows * a.columns * a.channels; i++) {
                const int pixel = i / a.channels;
                const struct augment_place place =
                    augment_place(&a, &draw, pixel / a.columns, pixel % a.columns);
                const float expected = augment_rotated(&a, &place, image, i % a.channels);
                wrong += memcmp(&expected, &out[i], sizeof expected) != 0;
                black += place.row < -1 && out[i] > 0.0f;
            }
            CHECK(wrong == 0 && black == 0, "shape %d, key %d: %ld differ, %ld are not black", s, (int)key,
                  wrong, black);
        }
}

/* Angles are even between both limits, and no other draw follows from them. */
static void check_draws(void) {
    struct augment a = recipe(32, 32, 3, 4, 32, 32), without;
    double sum = 0.0, squares = 0.0, with_brightness = 0.0, with_contrast = 0.0;
    int flips = 0;
    a.rotate = 15.0f;
    a.flip = 1;
    a.brightness = 1.0f;
    a.contrast_least = 0.5f;
    a.contrast_most = 1.5f;
    a.cutout = 8;
    without = a;
    without.rotate = 0.0f;
    for (uint64_t key = 0; key < DRAWS; key++) {
        struct augment_draw draw = augment_draw(&a, rng_mix(7, key)), other;
        const double degrees = atan2(draw.turn.sine, draw.turn.cosine) * 180.0 / acos(-1.0);
        CHECK(fabs(degrees) < 15.01, "%g degrees", degrees);
        sum += degrees;
        squares += degrees * degrees;
        with_brightness += degrees * (double)draw.brightness;
        with_contrast += degrees * 2.0 * ((double)draw.contrast - 1.0);
        flips += draw.flip ? degrees > 0.0 : degrees < 0.0;
        other = augment_draw(&without, rng_mix(7, key));
        CHECK(!augment_is_turned(&other), "turned without being asked to");
        draw.turn = other.turn;
        CHECK(memcmp(&draw, &other, sizeof draw) == 0, "rotate changes what else is drawn");
    }
    const double deviation = 15.0 / sqrt(3.0), error = 5.0 / sqrt(DRAWS);
    CHECK(fabs(sum / DRAWS) < error * deviation, "mean %g", sum / DRAWS);
    CHECK(fabs(squares / DRAWS - 75.0) < error * 225.0 * sqrt(4.0 / 45.0), "square %g", squares / DRAWS);
    CHECK(fabs(with_brightness / DRAWS) < error * deviation / sqrt(3.0), "angle and brightness are related");
    CHECK(fabs(with_contrast / DRAWS) < error * deviation / sqrt(3.0), "angle and contrast are related");
    CHECK(abs(flips - DRAWS / 2) < 5.0 * sqrt(DRAWS) / 2, "angle and flip are related");
}

int main(void) {
    fill();
    check_turns();
    check_nothing();
    check_quarters();
    check_slope();
    check_bytes();
    check_draws();
    return check_end();
}
