/* The layout of the flat vector: its first values, finding a range, and the hash that two sides compare
 * before they exchange vectors.
 *
 * Each range draws from its own stream of random numbers, keyed by seed and range number, so that the
 * values of one layer do not change when another layer changes its size. */
#include "layout.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../base/rng.h"
#include "../base/text.h"

enum { PATTERN_BYTES = 200 };

/* Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010; fans
 * as in Keras: dense [in, out], convolution HWIO. */
static float he_deviation(const struct shape *shape) {
    const size_t outputs = shape->rank > 0 ? (size_t)shape->dims[shape->rank - 1] : 1;
    return sqrtf(2.0f * (float)outputs / (float)shape_count(shape));
}

static float glorot_limit(const struct shape *shape) {
    double in = 1, out = 1;
    if (shape->rank == 1) in = out = shape->dims[0];
    if (shape->rank >= 2) {
        double field = 1;
        for (int axis = 0; axis < shape->rank - 2; axis++) field *= shape->dims[axis];
        in = field * shape->dims[shape->rank - 2];
        out = field * shape->dims[shape->rank - 1];
    }
    return (float)sqrt(6.0 / (in + out));
}

/* Number `wave` of the `length` orthonormal cosines (DCT-II), at a place. */
static double cosine(int wave, int length, int place) {
    const double pi = 3.141592653589793;
    return sqrt((wave > 0 ? 2.0 : 1.0) / length) * cos(pi * wave * (place + 0.5) / length);
}

/* Filter `out` of a kernel [rows, columns, in, ...], at (row, column, in). The waves of the channels change
 * slowest: of 2x2x3, first the four of the sum of the channels. */
static float cosine_filter(const struct shape *kernel, size_t out, size_t row, size_t column, size_t in) {
    const int *d = kernel->dims;
    const size_t size = (size_t)d[0] * (size_t)d[1] * (size_t)d[2], wave = out % size;
    const int across = (int)wave % d[1], down = (int)wave / d[1] % d[0], deep = (int)wave / d[1] / d[0];
    const double value =
        cosine(down, d[0], (int)row) * cosine(across, d[1], (int)column) * cosine(deep, d[2], (int)in);
    return (float)(out < size ? value : out < 2 * size ? -value : 0.0);
}

/* Of length 1 on average: deviation 1 / sqrt(inputs of an output). */
static float passing_filter(const struct shape *kernel, size_t out, size_t row, size_t column, size_t in,
                            float normal) {
    const int *d = kernel->dims;
    const bool central = row == (size_t)(d[0] - 1) / 2 && column == (size_t)(d[1] - 1) / 2;
    if (out < (size_t)d[2]) return central && in == out ? 1.0f : 0.0f;
    return normal / sqrtf((float)d[0] * (float)d[1] * (float)d[2]);
}

/* A convolution's kernel [rows, columns, in, out], by filters. */
static void kernel_initialize(const struct range *range, struct rng *rng, float *values) {
    const struct shape *kernel = &range->shape;
    const size_t outs = (size_t)kernel->dims[3], ins = (size_t)kernel->dims[2],
                 columns = (size_t)kernel->dims[1];
    for (size_t i = 0; i < range->floats; i++) {
        const size_t out = i % outs, in = i / outs % ins, column = i / outs / ins % columns,
                     row = i / outs / ins / columns;
        values[i] = range->initial.kind == INITIAL_COSINES
                        ? cosine_filter(kernel, out, row, column, in)
                        : passing_filter(kernel, out, row, column, in, rng_normal(rng));
    }
}

/* values: [range->floats] on the host. */
static void range_initialize(const struct range *range, struct rng *rng, float *values) {
    const struct initial *initial = &range->initial;
    if (initial->values) {
        memcpy(values, initial->values, range->floats * sizeof(float));
        return;
    }
    if (initial->kind == INITIAL_COSINES || initial->kind == INITIAL_PASSING) {
        kernel_initialize(range, rng, values);
        return;
    }
    const float he = initial->kind == INITIAL_HE_NORMAL ? he_deviation(&range->shape) : 0.0f;
    const bool is_glorot = initial->kind == INITIAL_GLOROT_UNIFORM || initial->kind == INITIAL_CODES;
    const float limit = is_glorot ? glorot_limit(&range->shape) : 0.0f;
    for (size_t i = 0; i < range->floats; i++) switch (initial->kind) {
        case INITIAL_ZERO:
            values[i] = 0.0f;
            break;
        case INITIAL_CONSTANT:
            values[i] = initial->value;
            break;
        case INITIAL_NORMAL:
            values[i] = initial->value * rng_normal(rng);
            break;
        case INITIAL_TRUNCATED_NORMAL:
            values[i] = initial->value * rng_truncated_normal(rng);
            break;
        case INITIAL_GLOROT_UNIFORM:
            values[i] = (2.0f * rng_uniform(rng) - 1.0f) * limit;
            break;
        case INITIAL_HE_NORMAL:
            values[i] = he * rng_normal(rng);
            break;
        case INITIAL_CODES:
            values[i] = i < (size_t)range->shape.dims[1] ? 0.0f : (2.0f * rng_uniform(rng) - 1.0f) * limit;
            break;
        case INITIAL_PASSING: /* by filters, above */
        case INITIAL_COSINES:
            break;
        }
}

void layout_initialize(const struct layout *layout, uint64_t seed, float *weights) {
    memset(weights, 0, layout->floats * sizeof(float));
    for (int i = 0; i < layout->count; i++) {
        struct rng rng;
        rng_start(&rng, seed, (uint64_t)i);
        range_initialize(&layout->ranges[i], &rng, weights + layout->ranges[i].begin);
    }
}

const struct range *layout_find(const struct layout *layout, const char *name) {
    for (int i = 0; i < layout->count; i++)
        if (strcmp(layout->ranges[i].name, name) == 0) return &layout->ranges[i];
    return NULL;
}

/* The pattern at the beginning of a list; *rest: what comes after its comma. False: it is empty, or too long.
 */
static bool next_pattern(const char *list, char pattern[PATTERN_BYTES], const char **rest) {
    const size_t length = strcspn(list, ",");
    *rest = list + length + (list[length] == ',');
    if (length == 0 || length >= PATTERN_BYTES) return false;
    memcpy(pattern, list, length);
    pattern[length] = '\0';
    return true;
}

static bool matches(const char *pattern, const char *name) {
    char layer[sizeof((struct range *)0)->name];
    const char *slash = strrchr(name, '/');
    snprintf(layer, sizeof layer, "%.*s", slash ? (int)(slash - name) : (int)strlen(name), name);
    return fnmatch(pattern, name, 0) == 0 || fnmatch(pattern, layer, 0) == 0;
}

bool layout_matches(const char *patterns, const char *name) {
    char pattern[PATTERN_BYTES];
    while (*patterns)
        if (next_pattern(patterns, pattern, &patterns) && matches(pattern, name)) return true;
    return false;
}

static int matches_nothing(const struct layout *layout, const char *what, const char *pattern,
                           struct error *error) {
    char names[300];
    struct text text = text_into(names, sizeof names);
    for (int r = 0; r < layout->count; r++) text_item(&text, ", ", "%s", layout->ranges[r].name);
    return error_set(error, ERROR_USAGE, "%s: \"%.60s\" is not a weight: expected some of %s%s", what,
                     pattern, names, text.cut ? "..." : "");
}

int layout_check_patterns(const struct layout *layout, const char *what, const char *patterns,
                          struct error *error) {
    char pattern[PATTERN_BYTES];
    int trained = 0;
    while (*patterns) {
        const char *const at = patterns;
        bool found = false;
        if (next_pattern(at, pattern, &patterns))
            for (int r = 0; r < layout->count && !found; r++)
                found = matches(pattern, layout->ranges[r].name);
        if (!found)
            return matches_nothing(layout, what, next_pattern(at, pattern, &patterns) ? pattern : at, error);
    }
    for (int r = 0; r < layout->count; r++) trained += layout->ranges[r].kind == RANGE_TRAINABLE;
    return trained > 0
               ? OK
               : error_set(error, ERROR_USAGE, "%s: found all weights frozen, expected some to train", what);
}

uint64_t layout_hash(const struct layout *layout) {
    uint64_t hash = rng_mix(0, (uint64_t)layout->count);
    for (int i = 0; i < layout->count; i++) {
        const struct range *range = &layout->ranges[i];
        const size_t letters = strlen(range->name);
        hash = rng_mix(hash, letters);
        for (size_t letter = 0; letter < letters; letter++)
            hash = rng_mix(hash, (uint64_t)range->name[letter]);
        hash = rng_mix(hash, (uint64_t)range->shape.rank);
        for (int axis = 0; axis < range->shape.rank; axis++)
            hash = rng_mix(hash, (uint64_t)range->shape.dims[axis]);
        hash = rng_mix(hash, (uint64_t)range->kind);
    }
    return hash;
}
