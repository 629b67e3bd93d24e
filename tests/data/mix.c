/* mixup and cutmix: shares and boxes as their distributions have them, an example's partner, and the pixels.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/data/mix.h"
#include "../../src/data/stream.h"
#include "../../src/device/device.h"
#include "../check.h"

enum { DRAWS = 10000, ROWS = 24, COLUMNS = 20 };

static struct augment recipe(float mixup, float cutmix) {
    return (struct augment){.height = 32,
                            .width = 32,
                            .channels = 3,
                            .rows = ROWS,
                            .columns = COLUMNS,
                            .flip = 1,
                            .contrast_least = 1.0f,
                            .contrast_most = 1.0f,
                            .mixup = mixup,
                            .cutmix = cutmix};
}

static struct augment_mix drawn(const struct augment *a, int i) {
    struct augment_mix mix;
    mix_draw(&mix, a, rng_mix(3, (uint64_t)i));
    return mix;
}

/* --- draws --- */

/* Mean, variance and, for the two that have a plain one, the distribution of Beta(alpha, alpha). */
static void check_shares(void) {
    static const double alphas[] = {0.05, 0.2, 0.5, 1.0, 4.0, 100.0};
    for (size_t k = 0; k < sizeof alphas / sizeof *alphas; k++) {
        const double alpha = alphas[k], variance = 1.0 / (4.0 * (2.0 * alpha + 1.0));
        const double fourth = 3.0 / ((2.0 * alpha + 1.0) * (2.0 * alpha + 3.0)) / 16.0; /* central moment */
        const struct augment a = recipe((float)alpha, 0.0f);
        double sum = 0.0, squares = 0.0;
        int tenth[10] = {0};
        for (int i = 0; i < DRAWS; i++) {
            const struct augment_mix mix = drawn(&a, i);
            const double x = (double)mix.share;
            if (!(x >= 0.0 && x <= 1.0) || mix.boxed) {
                CHECK(false, "alpha %g: share %g, box %d", alpha, x, mix.boxed);
                return;
            }
            sum += x;
            squares += (x - 0.5) * (x - 0.5);
            const double even = alpha < 0.75 ? 2.0 / acos(-1.0) * asin(sqrt(x)) : x;
            tenth[even < 1.0 ? (int)(10.0 * even) : 9]++;
        }
        CHECK(fabs(sum / DRAWS - 0.5) < 5.0 * sqrt(variance / DRAWS), "alpha %g: mean %g", alpha,
              sum / DRAWS);
        CHECK(fabs(squares / DRAWS - variance) < 5.0 * sqrt((fourth - variance * variance) / DRAWS),
              "alpha %g: variance %g, expected %g", alpha, squares / DRAWS, variance);
        for (int t = 0; t < 10 && (k == 2 || k == 3); t++)
            CHECK(abs(tenth[t] - DRAWS / 10) < 5.0 * sqrt(DRAWS * 0.09), "alpha %g: %d in tenth %d", alpha,
                  tenth[t], t);
    }
}

/* A box lies in the crop, what it covers is the share that is given away; one that the border does not cut
 * off is as large as the share that was drawn, which mixup draws from the same bits. */
static void check_boxes(void) {
    const struct augment boxes = recipe(0.0f, 1.0f), plain = recipe(1.0f, 0.0f);
    int whole = 0, rows = 0, columns = 0;
    double row = 0.0, column = 0.0;
    for (int i = 0; i < DRAWS; i++) {
        const struct augment_mix mix = drawn(&boxes, i), asked = drawn(&plain, i);
        const int high = mix.bottom - mix.top, wide = mix.right - mix.left;
        const double side = sqrt(1.0 - (double)asked.share);
        CHECK(mix.boxed && mix.top >= 0 && mix.left >= 0 && high >= 0 && wide >= 0 && mix.bottom <= ROWS &&
                  mix.right <= COLUMNS,
              "box %d to %d, %d to %d", mix.top, mix.bottom, mix.left, mix.right);
        CHECK(fabs(1.0 - (double)mix.share - high * wide / (double)(ROWS * COLUMNS)) < 1e-6,
              "a box of %d x %d counts %g", high, wide, 1.0 - (double)mix.share);
        CHECK(high <= side * ROWS + 0.51 && wide <= side * COLUMNS + 0.51, "%d x %d is too large", high,
              wide);
        if (mix.top > 0 && mix.bottom < ROWS && mix.left > 0 && mix.right < COLUMNS) {
            whole++;
            CHECK(fabs(high - side * ROWS) < 0.51 && fabs(wide - side * COLUMNS) < 0.51, "%d x %d for %g",
                  high, wide, 1.0 - (double)asked.share);
        }
        if (side < 0.3) { /* cut off alike at both borders */
            rows += high;
            columns += wide;
            row += high * (mix.top + mix.bottom) / 2.0;
            column += wide * (mix.left + mix.right) / 2.0;
        }
    }
    CHECK(whole > DRAWS / 10, "%d boxes are whole", whole);
    CHECK(fabs(row / rows - ROWS / 2.0) < 1.0 && fabs(column / columns - COLUMNS / 2.0) < 1.0,
          "the middle of small boxes is %g, %g", row / rows, column / columns);
}

/* Each half of the time; and nothing else that is drawn has to do with it. */
static void check_choice(void) {
    const struct augment both = recipe(0.3f, 1.0f), mixup = recipe(0.3f, 0.0f), cutmix = recipe(0.0f, 1.0f),
                         none = recipe(0.0f, 0.0f);
    int boxed = 0, flipped = 0;
    for (int i = 0; i < DRAWS; i++) {
        const struct augment_mix mix = drawn(&both, i), nothing = drawn(&none, i),
                                 expected = drawn(mix.boxed ? &cutmix : &mixup, i);
        const struct augment_draw draw = augment_draw(&both, rng_mix(3, (uint64_t)i)),
                                  plain = augment_draw(&none, rng_mix(3, (uint64_t)i));
        CHECK(memcmp(&mix, &expected, sizeof mix) == 0, "example %d is mixed otherwise", i);
        CHECK(memcmp(&draw, &plain, sizeof draw) == 0, "mixing changes what else is drawn");
        CHECK(!nothing.boxed && !(nothing.share < 1.0f), "mixed without being asked to");
        boxed += mix.boxed;
        flipped += mix.boxed == draw.flip;
    }
    CHECK(abs(boxed - DRAWS / 2) < 5.0 * sqrt(DRAWS) / 2, "%d boxes", boxed);
    CHECK(abs(flipped - DRAWS / 2) < 5.0 * sqrt(DRAWS) / 2, "boxes and flips are related");
}

/* --- partners --- */

/* What comes behind a batch is the first of the next one, and so the same however the stream is cut. */
static void check_next(void) {
    struct stream stream = {.seed = 1, .examples = 50, .batch = 7, .workers = 3};
    for (int sharding = SHARDING_SHARED; sharding <= SHARDING_ALL; sharding++)
        for (long number = 0; number < 30; number++)
            for (int worker = 0; worker < 3; worker++) {
                int index[7], next;
                uint64_t key[7], next_key;
                stream.sharding = (enum data_sharding)sharding;
                stream_batch(&stream, worker, number + 1, index);
                stream_keys(&stream, worker, number + 1, key);
                stream_next(&stream, worker, number, &next, &next_key);
                CHECK(next == index[0] && next_key == key[0], "behind batch %ld of worker %d: %d, not %d",
                      number, worker, next, index[0]);
            }
}

/* --- pixels --- */

static void check_pixels(void) {
    enum { COUNT = 40, FLOATS = ROWS * COLUMNS * 3 };
    static float rows[(COUNT + 1) * FLOATS], out[(COUNT + 1) * FLOATS];
    const struct device device = {.name = "cpu:0", .threads = 1};
    const struct augment a = recipe(0.5f, 0.5f);
    struct augment_mix mix[COUNT];
    long wrong = 0, others = 0;
    for (int i = 0; i < (COUNT + 1) * FLOATS; i++)
        rows[i] = rng_unit(rng_philox(8, 0, (uint64_t)i).word[0]) - 0.5f;
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) out[i] = -77.0f;
    for (int i = 0; i < COUNT; i++) mix[i] = drawn(&a, i);
    mix[0] = (struct augment_mix){.share = 1.0f};
    mix[1] = (struct augment_mix){.share = 0.0f};
    backends[0]->mix(&device, &a, mix, COUNT, rows, out, NULL);
    for (int i = 0; i < COUNT * FLOATS; i++) {
        const struct augment_mix *m = &mix[i / FLOATS];
        const int y = i % FLOATS / (COLUMNS * 3), x = i % FLOATS / 3 % COLUMNS;
        const float own = rows[i], other = rows[i + FLOATS];
        const bool inside = y >= m->top && y < m->bottom && x >= m->left && x < m->right;
        const float expected = m->boxed ? (inside ? other : own) : m->share * own + (1.0f - m->share) * other;
        wrong += out[i] < expected || out[i] > expected;
        others += m->boxed && inside;
    }
    CHECK(wrong == 0, "%ld pixels are wrong", wrong);
    CHECK(others > FLOATS, "only %ld pixels in boxes", others);
    for (int i = 0; i < FLOATS; i++) {
        const float first = out[i] - rows[i], second = out[FLOATS + i] - rows[2 * FLOATS + i];
        CHECK(!(fabsf(first) > 0.0f) && !(fabsf(second) > 0.0f), "a share of 1, or of 0, changes pixels");
        CHECK(out[COUNT * FLOATS + i] < -76.0f, "written behind the batch");
    }
}

int main(void) {
    check_shares();
    check_boxes();
    check_choice();
    check_next();
    check_pixels();
    return check_end();
}
