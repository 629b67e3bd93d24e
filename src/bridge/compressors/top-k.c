/* The largest floats and where they stand; the others are 0. Of equally large ones the first count. Source:
 * Aji and Heafield, "Sparse communication for distributed gradient descent", EMNLP 2017. */
#include <math.h>

#include "../compressor.h"

struct top_k_settings {
    double share;
};

static const struct option rows[] = {
    OPTION_ROW(REAL, "share", struct top_k_settings, share, .fallback = "0.01", .least = 1e-6, .most = 1,
               .help = "how many of the floats are sent"),
    {0},
};

enum { COUNT_BYTES = 4, ITEM_BYTES = 8 }; /* of the number of floats; of a place and a float */

static size_t kept(const void *settings, const struct blocks *blocks) {
    const double share = ((const struct top_k_settings *)settings)->share;
    const size_t count = (size_t)ceil(share * (double)blocks->floats);
    return count < blocks->floats ? count : blocks->floats;
}

static size_t bytes(const void *settings, const struct blocks *blocks) {
    return COUNT_BYTES + kept(settings, blocks) * ITEM_BYTES;
}

/* Grows with the size of a number; what is not finite is largest. */
static uint32_t rank_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x7FFFFFFFu;
}

/* The rank of the count-th largest, and in *ties how many of that rank belong to the count largest: found in
 * three passes, of 11, 10 and 10 bits. */
static uint32_t find_threshold(const struct blocks *blocks, const float *values, size_t count, size_t *ties) {
    static const int shifts[] = {20, 10, 0};
    uint32_t found = 0, known = 0; /* the bits of the rank that are known */
    for (int pass = 0; pass < 3; pass++) {
        uint32_t numbers[2048] = {0};
        const uint32_t mask = pass == 0 ? 2047 : 1023;
        for (int b = 0; b < blocks->count; b++) {
            const struct block *block = &blocks->list[b];
            for (size_t i = 0; i < block->floats; i++) {
                const uint32_t rank = rank_of(values[block->at + i]);
                if ((rank & known) == found) numbers[rank >> shifts[pass] & mask]++;
            }
        }
        uint32_t digit = mask;
        while (count > numbers[digit]) count -= numbers[digit--];
        found |= digit << shifts[pass];
        known |= mask << shifts[pass];
    }
    *ties = count;
    return found;
}

static size_t encode(const void *settings, const struct blocks *blocks, const float *values, float *scratch,
                     uint8_t *out) {
    const uint32_t count = (uint32_t)kept(settings, blocks);
    uint8_t *at = out + COUNT_BYTES;
    uint32_t place = 0;
    size_t ties = 0;
    (void)scratch;
    memcpy(out, &count, COUNT_BYTES);
    if (count == 0) return COUNT_BYTES;
    const uint32_t threshold = find_threshold(blocks, values, count, &ties);
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        for (size_t i = 0; i < block->floats; i++, place++) {
            const float value = values[block->at + i];
            const uint32_t rank = rank_of(value);
            if (rank < threshold || (rank == threshold && ties == 0)) continue;
            if (rank == threshold) ties--;
            memcpy(at, &place, sizeof place);
            memcpy(at + sizeof place, &value, sizeof value);
            at += ITEM_BYTES;
        }
    }
    return (size_t)(at - out);
}

/* Places come in order. */
static bool decode(const void *settings, const struct blocks *blocks, const uint8_t *in, size_t count,
                   float *scratch, float *values) {
    const size_t items = kept(settings, blocks);
    uint32_t number = 0, place = 0;
    size_t before = 0; /* floats of the blocks before */
    int b = 0;
    (void)scratch;
    if (count < COUNT_BYTES) return false;
    memcpy(&number, in, COUNT_BYTES);
    if (number != items || count != COUNT_BYTES + items * ITEM_BYTES) return false;
    for (int z = 0; z < blocks->count; z++)
        memset(values + blocks->list[z].at, 0, blocks->list[z].floats * sizeof *values);
    in += COUNT_BYTES;
    for (size_t i = 0; i < items; i++, in += ITEM_BYTES) {
        const uint32_t last = place;
        memcpy(&place, in, sizeof place);
        if (place >= blocks->floats || (i > 0 && place <= last)) return false;
        for (; place >= before + blocks->list[b].floats; b++) before += blocks->list[b].floats;
        memcpy(&values[blocks->list[b].at + place - before], in + sizeof place, sizeof *values);
    }
    return true;
}

const struct compressor compressor_top_k = {
    .plugin = {.name = "top-k",
               .help = "only the largest floats, with their positions",
               .options = rows,
               .settings_bytes = sizeof(struct top_k_settings)},
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
