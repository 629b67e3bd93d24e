/* Reference kernels: local response normalisation.
 *
 * Rows of channels are short, and a window reaches beyond their ends. So several rows at a time are copied
 * one after the other with zeros in between, and all loops run over the whole block; a row that is too
 * long for that is processed in pieces, each with its neighbours. oneDNN does not replace them: measured
 * on one Zen 4 core, 128x12x12x64, radius 4, beta 3/4, they are as fast as oneDNN's, whose gradient needs
 * a workspace of the forward pass. */
#include <math.h>
#include <string.h>
#include "../device/formulas.h"
#include "bf16.h"
#include "reference.h"

enum { FLOATS = 1024, HALO = 2 * MAX_LRN_RADIUS, ROOM = FLOATS + 2 * HALO };

/* Segments of `count` elements with a halo before, between and behind them. */
struct block {
    size_t segments, count, halo, stride, floats; /* stride from segment to segment; floats in all */
    float x[ROOM], dy[ROOM];
    float squares[ROOM];
    float power[ROOM];  /* s^-beta of the sums s */
    float shares[ROOM]; /* of the gradient */
    float sums[ROOM];
};

/* A tensor of rows of channels, and the rows or the piece of a row that a block holds. */
struct place {
    size_t rows, channels;
    size_t row, channel; /* where the block begins */
};

/* Shapes the block for what comes at `place`: whole rows, as many as fit, or a piece of one. */
static void shape_block(struct block *b, const struct place *place, size_t radius) {
    const bool whole = place->channels + 2 * radius <= FLOATS;
    b->halo = whole ? radius : 2 * radius;
    b->count = whole ? place->channels : FLOATS / 2;
    if (b->count > place->channels - place->channel) b->count = place->channels - place->channel;
    b->stride = b->count + b->halo;
    b->segments = whole ? (FLOATS - b->halo) / b->stride : 1;
    if (b->segments > place->rows - place->row) b->segments = place->rows - place->row;
    b->floats = b->halo + b->segments * b->stride;
}

/* On to what comes behind the block; false at the end. */
static bool next_place(const struct block *b, struct place *place) {
    place->channel += b->count;
    if (place->channel == place->channels) {
        place->channel = 0;
        place->row += b->segments;
    }
    return place->row < place->rows;
}

INLINED void copy_in(const void *from, enum type type, ptrdiff_t at, size_t count, float *restrict out) {
    for (size_t i = 0; i < count; i++) out[i] = load(from, type, (size_t)at + i);
}

/* Fills out [b->floats]; from is the whole tensor. */
INLINED void lay_out(const struct block *b, const struct place *place, const void *from, enum type type,
                     float *out) {
    size_t first = place->row * place->channels + place->channel;
    if (b->count < place->channels) { /* a piece: what is there of its neighbours */
        const size_t room = place->channels - place->channel - b->count;
        const size_t before = place->channel < b->halo ? place->channel : b->halo;
        const size_t behind = room < b->halo ? room : b->halo;
        memset(out, 0, b->floats * sizeof *out);
        copy_in(from, type, (ptrdiff_t)(first - before), before + b->count + behind, out + b->halo - before);
        return;
    }
    for (size_t k = 0; k < b->segments; k++, out += b->stride, first += place->channels) {
        for (size_t i = 0; i < b->halo; i++) out[i] = 0.0f;
        copy_in(from, type, (ptrdiff_t)first, b->count, out + b->halo);
    }
    for (size_t i = 0; i < b->halo; i++) out[i] = 0.0f;
}

INLINED void sum_window(const float *values, size_t radius, size_t floats, float *restrict sums) {
    for (size_t i = radius; i < floats - radius; i++) {
        float sum = 0.0f;
        for (size_t k = 0; k <= 2 * radius; k++) sum += values[i - radius + k];
        sums[i] = sum;
    }
}

/* sums[i] = of the 2 radius + 1 values around i, wherever they are all there. */
static void sum_around(const float *values, size_t radius, size_t floats, float *restrict sums) {
    switch (radius) { /* loops of known length are added in registers */
    case 2:
        sum_window(values, 2, floats, sums);
        return;
    case 4:
        sum_window(values, 4, floats, sums);
        return;
    default:
        memset(sums, 0, floats * sizeof *sums);
        for (size_t k = 0; k <= 2 * radius; k++)
            for (size_t i = radius; i < floats - radius; i++) sums[i] += values[i - radius + k];
    }
}

/* s^-1/4 of s > 0, 1.5e-5 of it off at most: the exponent divided by -4, then two rounds of Newton's method
 * for r^-4 = s. No root and no division, each of which takes as long as all of this. Infinity counts as 1e38,
 * so that nothing is made of it that is no number; what is none stays so. */
static inline float coarse_root(float s) {
    const float most = 1e38f;
    union {
        float value;
        uint32_t bits;
    } r;
    if (s > most) s = most;
    r.value = s;
    r.bits = 0x4f584500U - (r.bits >> 2);
    for (int round = 0; round < 2; round++) {
        const float square = r.value * r.value;
        r.value *= 1.25f - 0.25f * (s * square) * square;
    }
    return r.value;
}

/* power = s^-beta, of s = bias + alpha * the squares around; on the way back also shares = dy x s^(-beta-1).
 * What is kept in bf16, rounded to 8 bits, needs no better root than a coarse one. */
INLINED void find_powers(struct block *b, const struct lrn *lrn, enum type type, bool back) {
    const size_t radius = (size_t)lrn->radius, end = b->floats - radius;
    for (size_t i = 0; i < b->floats; i++) b->squares[i] = b->x[i] * b->x[i];
    sum_around(b->squares, radius, b->floats, b->sums);
    if (lrn->beta == 0.75f) {
        for (size_t i = radius; i < end; i++) {
            const float s = lrn->bias + lrn->alpha * b->sums[i];
            const struct formula_powers powers =
                type == TYPE_BF16 ? formula_lrn_of_root(coarse_root(s)) : formula_lrn_quarters(s);
            b->power[i] = powers.power;
            if (back) b->shares[i] = formula_lrn_share(b->x[i], b->dy[i], powers.steeper);
        }
        return;
    }
    for (size_t i = radius; i < end; i++) {
        const struct formula_powers powers =
            formula_lrn_powers(lrn->bias + lrn->alpha * b->sums[i], lrn->beta);
        b->power[i] = powers.power;
        if (back) b->shares[i] = formula_lrn_share(b->x[i], b->dy[i], powers.steeper);
    }
}

static struct place first_place(const struct call *call) {
    const struct shape *shape = &call->problem->output.shape;
    const size_t channels = (size_t)shape->dims[shape->rank - 1];
    return (struct place){.rows = shape_count(shape) / channels, .channels = channels};
}

INLINED int normalise(const struct call *call, enum type type) {
    const struct lrn *lrn = &call->problem->attributes->lrn;
    struct place place = first_place(call);
    struct block block;
    do {
        shape_block(&block, &place, (size_t)lrn->radius);
        lay_out(&block, &place, call->input[0], type, block.x);
        find_powers(&block, lrn, type, false);
        size_t to = place.row * place.channels + place.channel;
        for (size_t k = 0; k < block.segments; k++, to += place.channels) {
            const size_t at = block.halo + k * block.stride;
            void *restrict y = element_to(call->output, type, to);
            for (size_t i = 0; i < block.count; i++) store(y, type, i, block.x[at + i] * block.power[at + i]);
        }
    } while (next_place(&block, &place));
    return OK;
}

static int run_lrn(const struct call *call, struct error *error) {
    (void)error;
    return call->problem->input[0].type == TYPE_BF16 ? normalise(call, TYPE_BF16)
                                                     : normalise(call, TYPE_FLOAT);
}

const struct kernel reference_lrn = {.name = "reference:lrn", .prepare = reference_one_type, .run = run_lrn};

/* x, dy: dx_i = dy_i s_i^-beta - 2 alpha beta x_i * (sum of dy_j x_j s_j^(-beta-1) over the neighbours j of
 * i), for `count` elements from `at` on; 0 where x is not above `least` (not a number stays one). */
INLINED void lrn_back(const struct block *b, size_t at, float factor, float least, void *restrict dx,
                      enum type type) {
    const float *x = b->x + at, *dy = b->dy + at, *power = b->power + at, *sums = b->sums + at;
    for (size_t i = 0; i < b->count; i++) {
        const float back = formula_lrn_grad(x[i], dy[i], power[i], factor, sums[i]);
        store(dx, type, i, x[i] <= least ? 0.0f : back);
    }
}

INLINED int normalise_back(const struct call *call, enum type type) {
    const struct attributes *attributes = call->problem->attributes;
    const struct lrn *lrn = &attributes->lrn;
    const size_t radius = (size_t)lrn->radius;
    const float factor = 2.0f * lrn->alpha * lrn->beta;
    const float least = attributes->activation == ACTIVATION_RELU ? 0.0f : -INFINITY;
    struct place place = first_place(call);
    struct block block;
    do {
        shape_block(&block, &place, radius);
        lay_out(&block, &place, call->input[0], type, block.x);
        lay_out(&block, &place, call->input[1], type, block.dy);
        memset(block.shares, 0, radius * sizeof *block.shares);
        find_powers(&block, lrn, type, true);
        memset(block.shares + block.floats - radius, 0, radius * sizeof *block.shares);
        sum_around(block.shares, radius, block.floats, block.sums);
        size_t to = place.row * place.channels + place.channel;
        for (size_t k = 0; k < block.segments; k++, to += place.channels)
            lrn_back(&block, block.halo + k * block.stride, factor, least, element_to(call->output, type, to),
                     type);
    } while (next_place(&block, &place));
    return OK;
}

static int run_lrn_grad(const struct call *call, struct error *error) {
    (void)error;
    return call->problem->input[0].type == TYPE_BF16 ? normalise_back(call, TYPE_BF16)
                                                     : normalise_back(call, TYPE_FLOAT);
}
const struct kernel reference_lrn_grad = {
    .name = "reference:lrn_grad", .prepare = reference_one_type, .run = run_lrn_grad};
