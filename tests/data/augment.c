/* Augmentation: every pixel against a plain restatement that goes through the chain step by step in double;
 * the draws; the same batch whoever builds it, in both worlds; and the settings. */
#include <stdlib.h>
#include "../../src/data/augment.h"
#include "../harness.h"

enum { MOST_PIXELS = 64 * 64 * AUGMENT_CHANNELS, IMAGES = 9, GUARD = 16 };

static uint8_t images[IMAGES * MOST_PIXELS];

/* --- the chain, step by step --- */

struct plain {
    int rows, columns, channels;
    double at[MOST_PIXELS]; /* [rows][columns][channels] */
};

static double *value(struct plain *p, int y, int x, int c) {
    return &p->at[(y * p->columns + x) * p->channels + c];
}

static void plain_cut(const struct augment *a, const struct augment_draw *draw, const uint8_t *image,
                      struct plain *p) {
    *p = (struct plain){.rows = a->rows, .columns = a->columns, .channels = a->channels};
    for (int y = 0; y < a->rows; y++)
        for (int x = 0; x < a->columns; x++)
            for (int c = 0; c < a->channels; c++) {
                const int from = draw->flip ? a->columns - 1 - x : x;
                const int row = y + draw->top - a->pad, column = from + draw->left - a->pad;
                const int inside = row >= 0 && row < a->height && column >= 0 && column < a->width;
                *value(p, y, x, c) = inside ? image[(row * a->width + column) * a->channels + c] : 0;
            }
}

static void plain_contrast(struct plain *p, double factor) {
    for (int c = 0; c < p->channels; c++) {
        double sum = 0.0;
        for (int y = 0; y < p->rows; y++)
            for (int x = 0; x < p->columns; x++) sum += *value(p, y, x, c);
        const double mean = sum / (p->rows * p->columns);
        for (int y = 0; y < p->rows; y++)
            for (int x = 0; x < p->columns; x++)
                *value(p, y, x, c) = (*value(p, y, x, c) - mean) * factor + mean;
    }
}

static void plain_standardize(struct plain *p) {
    const int n = p->rows * p->columns * p->channels;
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < n; i++) sum += p->at[i];
    const double mean = sum / n;
    for (int i = 0; i < n; i++) squares += (p->at[i] - mean) * (p->at[i] - mean);
    const double deviation = fmax(sqrt(squares / n), 1.0 / sqrt(n));
    for (int i = 0; i < n; i++) p->at[i] = (p->at[i] - mean) / deviation;
}

static void plain_chain(const struct augment *a, const struct augment_draw *draw, const uint8_t *image,
                        double scale, struct plain *p) {
    plain_cut(a, draw, image, p);
    const int n = p->rows * p->columns * p->channels;
    for (int i = 0; i < n; i++) p->at[i] += (double)draw->brightness;
    plain_contrast(p, (double)draw->contrast);
    if (a->standardize)
        plain_standardize(p);
    else
        for (int i = 0; i < n; i++) p->at[i] *= scale;
    for (int y = draw->cut_top; y < draw->cut_bottom; y++)
        for (int x = draw->cut_left; x < draw->cut_right; x++)
            for (int c = 0; c < p->channels; c++) *value(p, y, x, c) = 0.0;
}

/* The same bits as the shared formula applied to one byte after the other. */
static long differing(const struct augment *a, const struct augment_draw *draw, const uint8_t *image,
                      float scale, const float *got) {
    static struct plain p;
    struct augment_sums sums = {0};
    long wrong = 0;
    plain_cut(a, draw, image, &p);
    for (int i = 0; i < a->rows * a->columns * a->channels; i++) {
        sums.sum[i % a->channels] += (int64_t)p.at[i];
        sums.squares += (int64_t)(p.at[i] * p.at[i]);
    }
    const struct augment_line line = augment_line(a, draw, &sums, scale);
    for (int y = 0; y < a->rows; y++)
        for (int x = 0; x < a->columns; x++)
            for (int c = 0; c < a->channels; c++) {
                const bool cut =
                    y >= draw->cut_top && y < draw->cut_bottom && x >= draw->cut_left && x < draw->cut_right;
                const float expected = cut ? 0.0f : (float)*value(&p, y, x, c) * line.slope + line.offset[c];
                wrong += memcmp(&expected, got++, sizeof expected) != 0;
            }
    return wrong;
}

static const struct device device = {.name = "cpu:0", .threads = 1};

static void check_images(const struct augment *a, bool test, uint64_t seed) {
    static float out[GUARD + IMAGES * MOST_PIXELS + GUARD];
    static struct plain p;
    const int features = a->rows * a->columns * a->channels, index[IMAGES] = {3, 0, 8, 8, 1, 2, 7, 5, 6};
    const struct examples examples = {
        .count = IMAGES, .features = features, .bytes = images, .scale = 1.0f / 255.0f, .augment = *a};
    const size_t stored = (size_t)(a->height * a->width * a->channels), floats = (size_t)(IMAGES * features);
    uint64_t key[IMAGES];
    double furthest = 0.0;
    long wrong = 0;
    for (int i = 0; i < IMAGES; i++) key[i] = rng_mix(seed, (uint64_t)i);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) out[i] = -77.0f;
    const struct indices indices = {.count = IMAGES, .index = index, .key = test ? NULL : key};
    backends[0]->gather(&device, &examples, &indices, out + GUARD, NULL);
    for (int i = 0; i < IMAGES; i++) {
        const struct augment_draw draw = test ? augment_centre(a) : augment_draw(a, key[i]);
        const uint8_t *image = images + (size_t)index[i] * stored;
        const float *got = out + GUARD + (size_t)(i * features);
        plain_chain(a, &draw, image, (double)examples.scale, &p);
        for (int k = 0; k < features; k++)
            furthest = fmax(furthest, fabs((double)got[k] - p.at[k]) / fmax(1.0, fabs(p.at[k])));
        wrong += differing(a, &draw, image, examples.scale, got);
    }
    CHECK(furthest < 2e-6, "%dx%dx%d pad %d crop %dx%d: %g off", a->height, a->width, a->channels, a->pad,
          a->rows, a->columns, furthest);
    CHECK(wrong == 0, "%dx%dx%d pad %d crop %dx%d: %ld have other bits", a->height, a->width, a->channels,
          a->pad, a->rows, a->columns, wrong);
    for (size_t i = 0; i < GUARD; i++)
        CHECK(out[i] == -77.0f && out[GUARD + floats + i] == -77.0f, "written outside");
}

static void check_pixels(void) {
    static const struct augment shapes[] = {
        {.height = 32, .width = 32, .channels = 3, .rows = 24, .columns = 24},
        {.height = 32, .width = 32, .channels = 3, .pad = 4, .rows = 32, .columns = 32},
        {.height = 28, .width = 28, .channels = 1, .pad = 2, .rows = 28, .columns = 28},
        {.height = 7, .width = 5, .channels = 3, .rows = 3, .columns = 4},
        {.height = 5, .width = 9, .channels = 2, .pad = 3, .rows = 8, .columns = 2},
        {.height = 3, .width = 2, .channels = 4, .pad = 6, .rows = 15, .columns = 14},
        {.height = 1, .width = 1, .channels = 1, .pad = 5, .rows = 1, .columns = 1},
        {.height = 17, .width = 3, .channels = 4, .rows = 17, .columns = 3},
        {.height = 8, .width = 8, .channels = 3, .rows = 8, .columns = 8, .view = {1, -1, 2}},
        {.height = 8, .width = 9, .channels = 1, .pad = 2, .rows = 8, .columns = 8, .view = {0, 3, -1}},
    };
    for (size_t i = 0; i < sizeof images; i++)
        images[i] = (uint8_t)(rng_philox(3, 0, i / 5).word[i % 4] >> (i % 3 * 8));
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int what = 0; what < 32; what++) {
            struct augment a = shapes[s];
            a.flip = what & 1;
            a.brightness = what & 2 ? 63.0f : 0.0f;
            a.contrast_least = what & 4 ? 0.2f : 1.0f;
            a.contrast_most = what & 4 ? 1.8f : 1.0f;
            a.cutout = what & 8 ? 1 + (int)s : 0;
            a.standardize = what >> 4;
            check_images(&a, true, 0);
            for (uint64_t seed = 1; seed <= 3; seed++) check_images(&a, false, seed);
        }
}

/* Nothing but a crop is bytes times the scale, to the bit; a test knows nothing of the draws. */
static void check_plain_crop(void) {
    struct augment a = {.height = 8,
                        .width = 8,
                        .channels = 3,
                        .rows = 4,
                        .columns = 4,
                        .contrast_least = 1.0f,
                        .contrast_most = 1.0f};
    const struct examples examples = {
        .count = IMAGES, .features = 48, .bytes = images, .scale = 1.0f / 255.0f, .augment = a};
    const int index[1] = {2};
    const struct indices indices = {.count = 1, .index = index};
    float out[48], other[48];
    backends[0]->gather(&device, &examples, &indices, out, NULL);
    for (int i = 0; i < 48; i++) {
        const int row = 2 + i / 12, column = 2 + i % 12 / 3;
        const float expected = (float)images[2 * 192 + (row * 8 + column) * 3 + i % 3] * (1.0f / 255.0f);
        CHECK(memcmp(&out[i], &expected, sizeof expected) == 0, "%d: %g", i, (double)out[i]);
    }
    struct examples changed = examples;
    changed.augment.flip = 1;
    changed.augment.brightness = 63.0f;
    changed.augment.contrast_least = 0.2f;
    changed.augment.contrast_most = 1.8f;
    changed.augment.cutout = 3;
    backends[0]->gather(&device, &changed, &indices, other, NULL);
    CHECK(memcmp(out, other, sizeof out) == 0, "a test draws something");
}

/* Standardized: mean 0 and deviation 1; an image of one colour is 0 and no NaN, one that is hardly more than
 * that is held by the least deviation. */
static void check_standardized(void) {
    static uint8_t flat[2 * 24 * 24 * 3];
    static float out[2 * 24 * 24 * 3];
    const int n = 24 * 24 * 3, index[2] = {0, 1};
    struct augment a = {.height = 24,
                        .width = 24,
                        .channels = 3,
                        .rows = 24,
                        .columns = 24,
                        .contrast_least = 1.0f,
                        .contrast_most = 1.0f,
                        .standardize = 1};
    struct examples examples = {
        .count = 2, .features = n, .bytes = flat, .scale = 1.0f / 255.0f, .augment = a};
    const struct indices indices = {.count = 2, .index = index};
    memset(flat, 200, sizeof flat);
    flat[n + 77] = 201; /* deviation 0.02405, below 1/sqrt(1728) = 0.02406 */
    backends[0]->gather(&device, &examples, &indices, out, NULL);
    for (int i = 0; i < n; i++) CHECK(fabsf(out[i]) < 1e-4f, "one colour: %g", (double)out[i]);
    CHECK(fabs((double)out[n + 77] - (1.0 - 1.0 / n) * sqrt(n)) < 1e-3, "%g", (double)out[n + 77]);
    examples.bytes = images;
    backends[0]->gather(&device, &examples, &indices, out, NULL);
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < n; i++) {
        sum += (double)out[i];
        squares += (double)out[i] * (double)out[i];
    }
    CHECK(fabs(sum / n) < 1e-6 && fabs(squares / n - 1.0) < 1e-6, "mean %g, square %g", sum / n, squares / n);
}

/* --- draws --- */

enum { DRAWS = 90000 };

static bool near(double found, double expected, double deviations, double deviation) {
    return fabs(found - expected) < deviations * deviation / sqrt(DRAWS);
}

static void check_draws(void) {
    const struct augment a = {.height = 32,
                              .width = 32,
                              .channels = 3,
                              .rows = 24,
                              .columns = 24,
                              .flip = 1,
                              .brightness = 63.0f,
                              .contrast_least = 0.2f,
                              .contrast_most = 1.8f,
                              .cutout = 8};
    const uint64_t base = rng_mix(11, 12);
    int places[9][9] = {{0}}, flips = 0, centres[24] = {0};
    double bright = 0.0, bright2 = 0.0, contrast = 0.0, contrast2 = 0.0, both = 0.0, flipped = 0.0;
    for (int i = 0; i < DRAWS; i++) {
        const struct augment_draw d = augment_draw(&a, rng_mix(base, (uint64_t)i));
        if (d.top < 0 || d.top > 8 || d.left < 0 || d.left > 8 || (d.flip != 0 && d.flip != 1)) {
            CHECK(false, "crop at %d, %d, flip %d", d.top, d.left, d.flip);
            return;
        }
        places[d.top][d.left]++;
        flips += d.flip;
        if (d.cut_bottom - d.cut_top == 8) centres[d.cut_top + 4]++;
        CHECK(d.cut_top >= 0 && d.cut_bottom <= 24 && d.cut_left >= 0 && d.cut_right <= 24 &&
                  d.cut_bottom - d.cut_top >= 4 && d.cut_right - d.cut_left >= 4 &&
                  d.cut_bottom - d.cut_top <= 8 && d.cut_right - d.cut_left <= 8,
              "cut %d to %d", d.cut_top, d.cut_bottom);
        CHECK(d.brightness >= -63.0f && d.brightness < 63.0f && d.contrast >= 0.2f && d.contrast <= 1.8f,
              "%g and %g", (double)d.brightness, (double)d.contrast);
        bright += (double)d.brightness;
        bright2 += (double)d.brightness * (double)d.brightness;
        contrast += (double)d.contrast;
        contrast2 += ((double)d.contrast - 1.0) * ((double)d.contrast - 1.0);
        both += (double)d.brightness * ((double)d.contrast - 1.0);
        flipped += d.flip ? (double)d.brightness : -(double)d.brightness;
    }
    double chi = 0.0;
    for (int i = 0; i < 81; i++) {
        const double off = places[i / 9][i % 9] - DRAWS / 81.0;
        chi += off * off / (DRAWS / 81.0);
    }
    CHECK(chi < 80.0 + 5.0 * sqrt(160.0), "places: chi-square %g for 80 degrees of freedom", chi);
    CHECK(near(flips / (double)DRAWS, 0.5, 5.0, 0.5), "%d flips", flips);
    for (int i = 4; i <= 20; i++) /* both boundaries too: a cutout is whole only with its centre in 4 .. 20 */
        CHECK(near(centres[i] / (double)DRAWS, 1.0 / 24, 5.0, 0.2), "%d cutouts at %d", centres[i], i);
    CHECK(near(bright / DRAWS, 0.0, 5.0, 63.0 / sqrt(3)), "brightness %g", bright / DRAWS);
    CHECK(near(bright2 / DRAWS, 63.0 * 63.0 / 3, 5.0, 63.0 * 63.0 * sqrt(4.0 / 45)), "squares %g",
          bright2 / DRAWS);
    CHECK(near(contrast / DRAWS, 1.0, 5.0, 0.8 / sqrt(3)), "contrast %g", contrast / DRAWS);
    CHECK(near(contrast2 / DRAWS, 0.64 / 3, 5.0, 0.64 * sqrt(4.0 / 45)), "squares %g", contrast2 / DRAWS);
    CHECK(near(both / DRAWS, 0.0, 5.0, 63.0 * 0.8 / 3), "brightness and contrast belong together");
    CHECK(near(flipped / DRAWS, 0.0, 5.0, 63.0 / sqrt(3)), "brightness and flip belong together");
}

/* A setting changes its own draw alone; a crop that fits lies at 0, 0. */
static void check_own_bits(void) {
    const struct augment all = {.height = 32,
                                .width = 32,
                                .channels = 3,
                                .rows = 24,
                                .columns = 24,
                                .flip = 1,
                                .brightness = 63.0f,
                                .contrast_least = 0.2f,
                                .contrast_most = 1.8f,
                                .cutout = 8};
    struct augment few = all;
    few.flip = few.cutout = 0;
    few.brightness = 0.0f;
    few.contrast_least = few.contrast_most = 1.0f;
    struct augment whole = all;
    whole.rows = whole.columns = 32;
    for (uint64_t key = 0; key < 1000; key++) {
        const struct augment_draw a = augment_draw(&all, key), b = augment_draw(&few, key),
                                  c = augment_draw(&whole, key);
        CHECK(a.top == b.top && a.left == b.left && b.flip == 0 && b.cut_top == b.cut_bottom &&
                  b.cut_left == b.cut_right && b.brightness == 0.0f && b.contrast == 1.0f,
              "key %llu", (unsigned long long)key);
        CHECK(c.top == 0 && c.left == 0 && c.flip == a.flip && c.contrast == a.contrast, "whole images");
    }
}

/* --- who builds it does not matter --- */

enum { BATCHES = 60, BATCH = 4 };

struct seen {
    struct indices indices[BATCHES];
    int index[BATCHES][BATCH + 1]; /* with what comes next in the stream */
    uint64_t key[BATCHES][BATCH + 1];
    _Atomic long loads, wrong;
};

static struct seen seen;

/* Every batch comes once, with the numbers and keys that one worker alone would be given. */
static int load_looking(void *self, int worker, int buffer, long number, const struct indices *indices,
                        struct error *error) {
    const bool known = number >= 0 && number < BATCHES && indices->count == BATCH;
    atomic_fetch_add(&seen.loads, 1);
    if (!known || memcmp(indices->index, seen.index[number], sizeof seen.index[number]) != 0 ||
        memcmp(indices->key, seen.key[number], sizeof seen.key[number]) != 0)
        atomic_fetch_add(&seen.wrong, 1);
    return rig_load(self, worker, buffer, number, indices, error);
}

static void check_workers(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    const struct stream alone = {.seed = 5, .examples = BATCHES * BATCH, .batch = BATCH, .workers = 1};
    (void)strategy, (void)argument;
    for (int workers = 1; workers <= 5; workers += 2)
        for (int simulated = 0; simulated < 2; simulated++)
            for (int prefetch = 0; prefetch <= 2; prefetch += 2) {
                const struct rig_settings settings = {.strategy = text,
                                                      .optimizer = "sgd:rate=0.1",
                                                      .workers = workers,
                                                      .shards = 1,
                                                      .slots = 2,
                                                      .batches = BATCHES,
                                                      .block = 5,
                                                      .simulated = simulated,
                                                      .seed = (uint64_t)workers,
                                                      .formula = formula_mixed,
                                                      .prefetch = prefetch};
                atomic_store(&seen.loads, 0);
                for (long n = 0; n < BATCHES; n++) {
                    stream_batch(&alone, 0, n, seen.index[n]);
                    stream_keys(&alone, 0, n, seen.key[n]);
                    stream_next(&alone, 0, n, &seen.index[n][BATCH], &seen.key[n][BATCH]);
                }
                CHECK(rig_open(&rig, &settings) == OK, "%s", rig.error.words);
                rig.training.settings.compute.load = load_looking;
                CHECK(rig_go_through(&rig) == OK && training_end(&rig.training, &rig.error) == OK, "%s: %s",
                      text, rig.error.words);
                CHECK(atomic_load(&seen.loads) == BATCHES && atomic_load(&seen.wrong) == 0,
                      "%s, %d workers, prefetch %d: %ld batches, %ld wrong", text, workers, prefetch,
                      atomic_load(&seen.loads), atomic_load(&seen.wrong));
                rig_close(&rig);
            }
}

/* A key is of a place in the stream, however it is cut into batches; no two are alike, and they have nothing
 * to do with the order. */
static void check_keys(void) {
    struct stream small = {.seed = 1, .examples = 100, .batch = 10, .workers = 3}, large = small;
    uint64_t key[30], part[10];
    large.batch = 30;
    for (int sharding = SHARDING_SHARED; sharding <= SHARDING_ALL; sharding++) {
        small.sharding = large.sharding = (enum data_sharding)sharding;
        for (long number = 0; number < 20; number++) {
            stream_keys(&large, 1, number, key);
            for (int i = 0; i < 3; i++) {
                stream_keys(&small, 1, 3 * number + i, part);
                CHECK(memcmp(part, key + 10 * i, sizeof part) == 0, "batch %ld, part %d", number, i);
            }
        }
        uint64_t first[30], other[30];
        stream_keys(&large, 0, 0, first);
        stream_keys(&large, 1, 0, other);
        CHECK((memcmp(first, other, sizeof first) == 0) == (sharding == SHARDING_SHARED),
              "two workers, sharding %d", sharding);
        large.seed = 2;
        stream_keys(&large, 0, 0, other);
        CHECK(memcmp(first, other, sizeof first) != 0, "two seeds");
        large.seed = 1;
    }
    static uint64_t all[10 * 1000];
    small.sharding = SHARDING_SHARED;
    for (long number = 0; number < 1000; number++) stream_keys(&small, 0, number, all + 10 * number);
    for (int i = 1; i < 10000; i++) CHECK(all[i] != all[i - 1] && all[i] != all[i / 2], "two keys are alike");
}

/* --- settings --- */

struct set_settings {
    struct augment_settings augment;
};
static const struct option options[] = {AUGMENT_ROWS(struct set_settings, "none"), {0}};
static const struct plugin plugin = {
    .name = "set", .options = options, .settings_bytes = sizeof(struct set_settings)};

static int choose(const char *text, struct augment *augment, struct shape *given, struct error *error) {
    const struct plugin *const plugins[] = {&plugin, NULL};
    const struct plugin_kind kind = {"data set", "data sets", plugins};
    const struct shape stored = SHAPE(32, 32, 3);
    struct choice choice;
    *error = (struct error){0};
    RETURN_IF(plugin_choose(&choice, &kind, text, error));
    return augment_choose(augment, given, (const void *)choice.settings, "set", &stored, error);
}

static void check_chosen(const char *text, const struct augment *expected) {
    struct augment got;
    struct shape given;
    struct error error;
    CHECK(choose(text, &got, &given, &error) == OK, "%s: %s", text, error.words);
    CHECK(memcmp(&got, expected, sizeof got) == 0, "%s", text);
    const int rows = expected->height ? expected->rows : 32,
              columns = expected->height ? expected->columns : 32;
    CHECK(shape_equal(&given, &SHAPE(rows, columns, 3)), "%s: shape", text);
}

static void check_refused(const char *text, const char *words) {
    struct augment got;
    struct shape given;
    struct error error;
    CHECK(choose(text, &got, &given, &error) == ERROR_USAGE, "%s", text);
    CHECK(strcmp(error.words, words) == 0, "\n found    %s\n expected %s", error.words, words);
}

static void check_settings(void) {
    const struct augment none = {0};
    const struct augment usual = {.height = 32,
                                  .width = 32,
                                  .channels = 3,
                                  .rows = 32,
                                  .columns = 32,
                                  .contrast_least = 1.0f,
                                  .contrast_most = 1.0f};
    const struct augment distnet = {.height = 32,
                                    .width = 32,
                                    .channels = 3,
                                    .rows = 24,
                                    .columns = 24,
                                    .flip = 1,
                                    .brightness = 63.0f,
                                    .contrast_least = 0.2f,
                                    .contrast_most = 1.8f,
                                    .standardize = 1};
    struct augment a;
    check_chosen("set", &none);
    check_chosen("set:augment=none,crop=32,pad=0,flip=0,cutout=0,brightness=0,contrast=1-1,standardize=none",
                 &none);
    check_chosen("set:augment=distnet", &distnet);
    a = usual;
    a.flip = a.standardize = 1;
    check_chosen("set:augment=usual,crop=32", &a);
    a.rows = a.columns = 24;
    check_chosen("set:augment=usual", &a);
    check_chosen("set:augment=usual,crop=32,flip=0,standardize=none", &none);
    check_chosen("set:crop=24,flip=1,brightness=63,contrast=0.2-1.8,standardize=image", &distnet);
    a = distnet;
    a.rows = a.columns = 28;
    a.cutout = 8;
    check_chosen("set:cutout=8,crop=28,augment=distnet", &a);
    check_chosen("set:augment=distnet,flip=0,brightness=0,contrast=1-1,standardize=none,crop=32", &none);
    a = usual;
    a.pad = 4;
    a.flip = 1;
    check_chosen("set:pad=4,flip=1", &a);
    a = usual; /* each of them alone is a change */
    a.flip = 1;
    check_chosen("set:flip=1", &a);
    a = usual;
    a.pad = 4;
    check_chosen("set:pad=4", &a);
    a = usual;
    a.rows = a.columns = 31;
    check_chosen("set:crop=31", &a);
    a = usual;
    a.brightness = 0.5f;
    check_chosen("set:brightness=0.5", &a);
    a = usual;
    a.cutout = 1;
    check_chosen("set:cutout=1", &a);
    a = usual;
    a.rotate = 0.5f;
    check_chosen("set:rotate=0.5", &a);
    a = usual;
    a.mixup = 0.5f;
    check_chosen("set:mixup=0.5", &a);
    a = usual;
    a.cutmix = 1.0f;
    check_chosen("set:cutmix=1", &a);
    a = usual;
    a.standardize = 1;
    check_chosen("set:standardize=image", &a);
    a = usual;
    a.contrast_least = 0.5f;
    check_chosen("set:contrast=0.5-1", &a);
    a = usual;
    a.contrast_most = 2.5f;
    check_chosen("set:contrast=1-2.5", &a);
    a.contrast_least = a.contrast_most = 0.0f;
    check_chosen("set:contrast=0-0", &a);
    check_refused("set:crop=33", "set: crop=33: expected at most 32, the padded image");
    check_refused("set:crop=41,pad=4", "set: crop=41: expected at most 40, the padded image");
    check_refused("set:crop=148,pad=64", "set: crop=148: 65712 numbers per image, expected at most 65536");
    static const char *const wrong[] = {"1.8-0.2", "0.5",     "-1-2",     "0.2--1",  "0.2-",  "-",
                                        "a-b",     "1e1-1e2", "0.2-1.8x", "nan-nan", "0-101", "1-2-3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[64], words[256];
        snprintf(text, sizeof text, "set:contrast=%s", wrong[i]);
        snprintf(words, sizeof words,
                 "set: contrast=%s: expected two factors joined by '-', 0 to 100, the smaller first, as in "
                 "0.2-1.8",
                 wrong[i]);
        check_refused(text, words);
    }
}

static void check_text(void) {
    const struct augment a = {.height = 32,
                              .width = 30,
                              .channels = 3,
                              .pad = 4,
                              .rows = 24,
                              .columns = 25,
                              .contrast_least = 1.0f,
                              .contrast_most = 1.0f,
                              .standardize = 1};
    struct augment got = {0}, drawn = a;
    char text[128];
    drawn.flip = 1;
    drawn.contrast_most = 2.0f;
    augment_text(&drawn, text, sizeof text);
    CHECK(strcmp(text, "32x30x3 pad 4 crop 24x25 standardize 1") == 0, "%s", text);
    CHECK(augment_from_text(&got, text) && memcmp(&got, &a, sizeof a) == 0, "read back");
    struct augment white = a;
    white.whitened = 1;
    augment_text(&white, text, sizeof text);
    CHECK(strcmp(text, "32x30x3 pad 4 crop 24x25 standardize 1 whitened") == 0, "%s", text);
    CHECK(augment_from_text(&got, text) && memcmp(&got, &white, sizeof a) == 0, "read back");
    static const char *const wrong[] = {"",
                                        "32x32x3",
                                        "32x32x3 pad 4 crop 24x24 standardize 1 ",
                                        "32x32x3 pad 4 crop 24x24 standardize 1 white",
                                        "32x32x3 pad 4 crop 24x24 standardize 1 whitened ",
                                        "32x32x1 pad 4 crop 24x24 standardize 1 whitened",
                                        "32x32x3 pad 4 crop 24x24 standardize 2",
                                        "32x32x3 pad 4 crop 41x24 standardize 1",
                                        "32x32x3 pad 4 crop 24x41 standardize 1",
                                        "0x32x3 pad 4 crop 1x1 standardize 1",
                                        "32x32x5 pad 4 crop 24x24 standardize 1",
                                        "32x32x3 pad -1 crop 24x24 standardize 1",
                                        "32x32x3 pad 4 crop 0x24 standardize 1",
                                        "200x200x3 pad 0 crop 200x200 standardize 1",
                                        "32768x32768x4 pad 0 crop 1x1 standardize 0",
                                        "99999x32x3 pad 0 crop 2x2 standardize 1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        got = (struct augment){0};
        CHECK(!augment_from_text(&got, wrong[i]) && got.height == 0, "\"%s\" is accepted", wrong[i]);
    }
}

int main(void) {
    check_pixels();
    check_plain_crop();
    check_standardized();
    check_draws();
    check_own_bits();
    check_keys();
    each_strategy(check_workers, NULL);
    check_settings();
    check_text();
    return check_end();
}
