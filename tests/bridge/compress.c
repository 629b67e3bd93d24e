/* Every compressor: what is packed is what unpacking gives, in as many bytes as were promised; what is left
 * out comes later, and no more is ever owed than some steps' worth; statistics go exactly; what is not finite
 * stays so; bytes that nobody packed are refused. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/finite.h"
#include "../../src/base/half.h"
#include "../../src/base/rng.h"
#include "../../src/bridge/compress.h"

enum { FLOATS = 6432, BEGIN = 16, STEPS = 400 };

/* A dense kernel of 40x120, a convolution of 3x3x4x24, a bias, statistics, a frozen one; padding between. */
static const struct range ranges[] = {
    {.name = "cut", .shape = {.rank = 2, .dims = {8, 4}}, .begin = 0, .floats = 32},
    {.name = "dense/kernel", .shape = {.rank = 2, .dims = {40, 120}}, .begin = 32, .floats = 4800},
    {.name = "conv/kernel", .shape = {.rank = 4, .dims = {3, 3, 4, 24}}, .begin = 4832, .floats = 864},
    {.name = "bias", .shape = {.rank = 1, .dims = {119}}, .begin = 5696, .floats = 119},
    {.name = "mean",
     .shape = {.rank = 1, .dims = {24}},
     .begin = 5824,
     .floats = 24,
     .kind = RANGE_STATISTIC},
    {.name = "still",
     .shape = {.rank = 1, .dims = {500}},
     .begin = 5856,
     .floats = 500,
     .kind = RANGE_FROZEN},
    {.name = "last", .shape = {.rank = 2, .dims = {5, 11}}, .begin = 6368, .floats = 55},
};
static const struct layout layout = {
    .ranges = (struct range *)ranges, .count = sizeof ranges / sizeof *ranges, .floats = FLOATS};

static const char *const texts[] = {"none",
                                    "bf16",
                                    "fp16",
                                    "top-k",
                                    "top-k:share=0.1",
                                    "top-k:share=1",
                                    "1-bit",
                                    "power-sgd",
                                    "power-sgd:rank=2,iterations=1",
                                    "power-sgd:rank=64"};

struct sides {
    struct compress compress;
    struct choice choice;
    float meant[FLOATS], sent[FLOATS], got[FLOATS];
    uint8_t *bytes;
};

static void open_sides(struct sides *sides, const char *text, size_t begin, size_t end) {
    struct error error = {0};
    CHECK(plugin_choose(&sides->choice, &compressor_kind, text, &error) == OK, "%s", error.words);
    CHECK(compress_open(&sides->compress, &sides->choice, &layout, begin, end, &error) == OK, "%s",
          error.words);
    sides->bytes = malloc(sides->compress.bytes + 1); /* its end is watched by the address sanitizer */
}

static void close_sides(struct sides *sides) {
    free(sides->bytes);
    compress_close(&sides->compress);
}

static float draw(uint64_t step, size_t i) {
    const struct rng_block random = rng_philox(7, step, i);
    return (rng_unit(random.word[0]) - 0.5f) * ldexpf(1.0f, (int)(random.word[1] % 12) - 6);
}

/* What is trained, of the slice; elsewhere nothing is sent. */
static bool is_sent(size_t begin, size_t i, enum range_kind *kind) {
    for (int r = 0; r < layout.count; r++) {
        if (begin + i < ranges[r].begin || begin + i >= ranges[r].begin + ranges[r].floats) continue;
        *kind = ranges[r].kind;
        return *kind != RANGE_FROZEN;
    }
    return false;
}

static size_t pack(struct sides *sides) {
    return compress_pack(&sides->compress, sides->meant, sides->sent, sides->bytes);
}

/* --- both sides have the same --- */

static void test_both(struct sides *sides, const char *text, size_t begin, size_t end) {
    struct error error = {0};
    open_sides(sides, text, begin, end);
    const size_t floats = end - begin;
    for (uint64_t step = 0; step < 3; step++) {
        for (size_t i = 0; i < floats; i++) {
            enum range_kind kind;
            sides->meant[i] = is_sent(begin, i, &kind) ? draw(step, i) : 0.0f;
            sides->got[i] = NAN;
        }
        const size_t count = pack(sides);
        CHECK(count <= sides->compress.bytes, "%s: %zu bytes, promised %zu", text, count,
              sides->compress.bytes);
        CHECK(compress_unpack(&sides->compress, sides->bytes, count, sides->got, "a peer", &error) == OK,
              "%s", error.words);
        CHECK(memcmp(sides->got, sides->sent, floats * sizeof(float)) == 0, "%s: the sides differ", text);
        for (size_t i = 0; i < floats; i++) {
            enum range_kind kind = RANGE_TRAINABLE;
            const bool sent = is_sent(begin, i, &kind);
            if (!sent) CHECK(sides->got[i] == 0.0f, "%s: float %zu is nobody's", text, begin + i);
            if (sent && kind == RANGE_STATISTIC)
                CHECK(sides->got[i] == sides->meant[i], "%s: a statistic has changed", text);
        }
    }
    close_sides(sides);
}

/* --- what is left out comes later --- */

/* Of gradients that stay the same, all has come after some steps but for what is under way. */
static void test_feedback(struct sides *sides, const char *text) {
    static float owed[FLOATS];
    static double sum[FLOATS];
    open_sides(sides, text, 0, FLOATS);
    memset(owed, 0, sizeof owed);
    memset(sum, 0, sizeof sum);
    double wanted = 0.0, missing = 0.0;
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < FLOATS; i++) {
            enum range_kind kind;
            sides->meant[i] = is_sent(0, i, &kind) ? owed[i] + draw(99, i) : 0.0f;
        }
        pack(sides);
        for (size_t i = 0; i < FLOATS; i++) {
            owed[i] = sides->meant[i] - sides->sent[i];
            sum[i] += (double)sides->sent[i];
        }
    }
    for (size_t i = 0; i < FLOATS; i++) {
        enum range_kind kind;
        const double all = is_sent(0, i, &kind) ? STEPS * (double)draw(99, i) : 0.0;
        wanted += all * all;
        missing += (sum[i] - all) * (sum[i] - all);
        CHECK(isfinite(owed[i]), "%s: float %zu", text, i);
    }
    const double share = sqrt(missing / wanted);
    CHECK(share < 0.2, "%s: %.3f of all is missing after %d steps", text, share, STEPS);
    close_sides(sides);
}

/* --- what is not finite --- */

static void test_not_finite(struct sides *sides, const char *text) {
    static const float wrong[] = {NAN, -NAN, INFINITY, -INFINITY};
    open_sides(sides, text, BEGIN, FLOATS);
    for (int r = 1; r < layout.count; r++)
        for (int w = 0; w < 4; w++) {
            if (ranges[r].kind == RANGE_FROZEN) continue;
            for (size_t i = 0; i < FLOATS - BEGIN; i++) sides->meant[i] = draw(5, i);
            sides->meant[ranges[r].begin - BEGIN + ranges[r].floats / 2] = wrong[w];
            pack(sides);
            CHECK(!all_finite(sides->sent, FLOATS - BEGIN), "%s: %g in %s has become finite", text,
                  (double)wrong[w], ranges[r].name);
        }
    close_sides(sides);
}

/* --- what nobody packed --- */

static void test_wrong(struct sides *sides, const char *text) {
    struct error error = {0};
    open_sides(sides, text, BEGIN, FLOATS);
    for (size_t i = 0; i < FLOATS - BEGIN; i++) sides->meant[i] = draw(5, i);
    const size_t count = pack(sides);
    for (size_t less = 0; less < count; less += 1 + less / 7)
        CHECK(compress_unpack(&sides->compress, sides->bytes, less, sides->got, "a peer", &error) ==
                  ERROR_PEER,
              "%s: %zu bytes of %zu are taken", text, less, count);
    CHECK(strncmp(error.words, "a peer: ", 8) == 0 && strstr(error.words, "--compress="), "%s", error.words);
    CHECK(compress_unpack(&sides->compress, sides->bytes, count + 1, sides->got, "a peer", &error) ==
              ERROR_PEER,
          "%s: a byte too many is taken", text);
    struct rng rng;
    rng_start(&rng, 3, 0);
    for (int n = 0; n < 200; n++) {
        uint8_t *bytes = malloc(count);
        memcpy(bytes, sides->bytes, count);
        for (int i = 0; i < 4; i++) bytes[rng_next(&rng) % count] = (uint8_t)rng_next(&rng);
        for (size_t i = 0; n % 2 && i < 16 && i < count; i++) bytes[i] = 255;
        compress_unpack(&sides->compress, bytes, count, sides->got, "a peer", &error);
        free(bytes);
    }
    close_sides(sides);
}

/* --- how much they save, and how near they come --- */

static void check_bytes(struct sides *sides, const char *text, size_t expected) {
    open_sides(sides, text, 0, FLOATS);
    for (size_t i = 0; i < FLOATS; i++) sides->meant[i] = draw(1, i);
    const size_t count = pack(sides);
    CHECK(count == expected, "%s: %zu bytes, expected %zu", text, count, expected);
    close_sides(sides);
}

/* 5870 floats that are trained, 24 statistics. */
static void test_bytes(struct sides *sides) {
    check_bytes(sides, "none", 4 * (5870 + 24));
    check_bytes(sides, "bf16", 2 * 5870 + 4 * 24);
    check_bytes(sides, "fp16", 2 * 5870 + 4 * 24);
    check_bytes(sides, "top-k", 4 + 8 * 59 + 4 * 24);
    /* In chunks: 32, 4096 and 704, 864, 119, 55. */
    check_bytes(sides, "1-bit", 6 * 8 + 4 + 512 + 88 + 108 + 15 + 7 + 4 * 24);
    check_bytes(sides, "power-sgd", 4 * (32 + 4 * 160 + 4 * 60 + 119 + 55 + 24));
}

/* A matrix of rank 3 comes as it is, to rounding. */
static void test_rank(struct sides *sides) {
    open_sides(sides, "power-sgd:rank=3", 0, FLOATS);
    memset(sides->meant, 0, sizeof sides->meant);
    for (size_t i = 0; i < 40; i++)
        for (size_t j = 0; j < 120; j++)
            for (size_t k = 0; k < 3; k++)
                sides->meant[32 + i * 120 + j] += draw(10 + k, i) * draw(20 + k, j);
    pack(sides);
    float most = 0.0f, worst = 0.0f;
    for (size_t i = 0; i < FLOATS; i++) {
        most = fmaxf(most, fabsf(sides->meant[i]));
        worst = fmaxf(worst, fabsf(sides->meant[i] - sides->sent[i]));
    }
    CHECK(worst < 1e-4f * most, "off by %g of %g", (double)worst, (double)most);
    close_sides(sides);
}

/* Each size is there twice; of 87 the last one has room for the first of the two. */
static void test_largest(struct sides *sides) {
    open_sides(sides, "top-k:share=0.1", 4832, 5696); /* one array, of 864 */
    for (int i = 0; i < 864; i++) sides->meant[i] = (float)(i % 432 + 1) * (i % 3 ? 1.0f : -1.0f);
    pack(sides);
    for (int i = 0; i < 864; i++) {
        const bool kept = i % 432 + 1 >= 390 || i == 388;
        CHECK(sides->sent[i] == (kept ? sides->meant[i] : 0.0f), "float %d is %g, was %g", i,
              (double)sides->sent[i], (double)sides->meant[i]);
    }
    close_sides(sides);
}

/* Every float16 is its own nearest, and so is what lies a little beside it. */
static void test_half(void) {
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        const float value = half_float(bits);
        if (isnan(value)) {
            CHECK(isnan(half_float(half_nearest(value))), "%04x", bits);
            continue;
        }
        CHECK(half_nearest(value) == bits, "%04x is %04x again", bits, half_nearest(value));
        if ((bits & 0x7FFF) >= 0x7BFF) continue;
        const float next = half_float(bits + 1), middle = value + (next - value) / 2.0f;
        const unsigned even = bits % 2 ? bits + 1 : bits;
        CHECK(half_nearest(middle) == even, "between %04x and the next: %04x", bits, half_nearest(middle));
        CHECK(half_nearest(nextafterf(middle, value)) == bits, "below the middle after %04x", bits);
        CHECK(half_nearest(nextafterf(middle, next)) == bits + 1, "above the middle after %04x", bits);
    }
    CHECK(half_nearest(1e30f) == 0x7BFF && half_nearest(-65520.0f) == 0xFBFF, "what is too large");
    CHECK(isinf(half_float(half_nearest(INFINITY))), "infinity");
}

int main(void) {
    struct sides *sides = calloc(1, sizeof *sides);
    int names = 0;
    for (const struct compressor *const *c = compressors; *c; c++) {
        bool tested = false;
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
            const size_t length = strlen((*c)->plugin.name);
            tested = tested || (strncmp(texts[t], (*c)->plugin.name, length) == 0 &&
                                (texts[t][length] == '\0' || texts[t][length] == ':'));
        }
        CHECK(tested, "%s is not tested", (*c)->plugin.name);
        names++;
    }
    CHECK(names >= 6, "%d compressors", names);
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        test_both(sides, texts[t], 0, FLOATS);
        test_both(sides, texts[t], BEGIN, 5840);
        test_both(sides, texts[t], 5872, 6000); /* nothing that is trained */
        test_feedback(sides, texts[t]);
        test_not_finite(sides, texts[t]);
        test_wrong(sides, texts[t]);
    }
    test_bytes(sides);
    test_rank(sides);
    test_largest(sides);
    test_half();
    free(sides);
    return check_end();
}
