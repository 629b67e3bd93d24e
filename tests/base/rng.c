/* The generator gives its published values; the permutation is one for every count and looks like chance;
 * distributions have their moments. Everything is seeded: a check passes always or never. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/base/rng.h"
#include "../check.h"

enum { MOST = 70000 };

/* Known answers of Random123's philox4x32-10. */
static void test_philox(void) {
    const struct rng_block zeros = rng_philox(0, 0, 0);
    const struct rng_block ones = rng_philox(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    const struct rng_block pi = rng_philox(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u);
    const uint32_t want_zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    const uint32_t want_ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    const uint32_t want_pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    CHECK(memcmp(zeros.word, want_zeros, 16) == 0, "zeros: %08x ...", zeros.word[0]);
    CHECK(memcmp(ones.word, want_ones, 16) == 0, "ones: %08x ...", ones.word[0]);
    CHECK(memcmp(pi.word, want_pi, 16) == 0, "pi: %08x ...", pi.word[0]);
}

static void check_permutation(uint64_t key, uint32_t count, unsigned char *seen) {
    memset(seen, 0, count);
    uint32_t hit = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t to = rng_permute(key, count, i);
        if (to >= count || seen[to]) break;
        seen[to] = 1;
        hit++;
    }
    CHECK(hit == count, "count %u, key %llu: %u before one came twice or was too large", count,
          (unsigned long long)key, hit);
}

static void test_permutation(void) {
    unsigned char *seen = malloc(MOST);
    CHECK(seen != NULL, "no memory");
    if (seen == NULL) return;
    for (uint32_t count = 1; count <= 300; count++)
        for (uint64_t key = 0; key < 20; key++) check_permutation(key, count, seen);
    const uint32_t larger[] = {1437, 4095, 4096, 4097, 50000, 60000, 65535, 65536, 65537};
    for (size_t i = 0; i < sizeof larger / sizeof larger[0]; i++) check_permutation(7, larger[i], seen);
    free(seen);
    const uint32_t huge = 0x80000001u;
    CHECK(rng_permute(3, huge, huge - 1) < huge && rng_permute(3, UINT32_MAX, 5) < UINT32_MAX, "32 bits");
}

/* Distance of a chi-square value from its mean, in standard deviations. */
static double deviations(const int *tally, int bins, double expected) {
    double chi = 0;
    for (int i = 0; i < bins; i++) chi += (tally[i] - expected) * (tally[i] - expected) / expected;
    return (chi - (bins - 1)) / sqrt(2.0 * (bins - 1));
}

/* Over keys, every element comes first (and last) equally often; with four, every order equally often. */
static void test_keys_are_fair(void) {
    const uint32_t counts[] = {2, 3, 5, 10, 37, 100, 255, 257};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const uint32_t count = counts[c];
        int first[257] = {0}, last[257] = {0};
        for (uint64_t key = 0; key < 100u * count; key++) {
            first[rng_permute(key, count, 0)]++;
            last[rng_permute(key, count, count - 1)]++;
        }
        CHECK(deviations(first, (int)count, 100) < 5, "count %u: %f", count,
              deviations(first, (int)count, 100));
        CHECK(deviations(last, (int)count, 100) < 5, "count %u: %f", count,
              deviations(last, (int)count, 100));
    }
    int orders[256] = {0}, packed[24], used = 0;
    for (uint64_t key = 0; key < 24 * 200; key++) {
        int code = 0;
        for (uint32_t i = 0; i < 4; i++) code = code * 4 + (int)rng_permute(key, 4, i);
        orders[code]++;
    }
    for (int i = 0; i < 256; i++)
        if (orders[i] > 0 && used < 24) packed[used++] = orders[i];
    CHECK(used == 24 && deviations(packed, used, 200) < 5, "%d of 24 orders", used);
}

/* Within one permutation: where an element goes says nothing about where it was, nor where its neighbour
 * went. */
static void test_order_is_mixed(void) {
    const uint32_t counts[] = {1437, 50000, 60000, 65536};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const uint32_t count = counts[c];
        int joint[256] = {0}, steps[64] = {0};
        uint32_t last = rng_permute(11, count, count - 1), same = 0;
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t to = rng_permute(11, count, i);
            joint[(uint64_t)i * 16 / count * 16 + (uint64_t)to * 16 / count]++;
            steps[(uint64_t)((to + count - last) % count) * 64 / count]++;
            same += to == rng_permute(12, count, i);
            last = to;
        }
        CHECK(deviations(joint, 256, count / 256.0) < 5, "count %u: %f", count,
              deviations(joint, 256, count / 256.0));
        CHECK(deviations(steps, 64, count / 64.0) < 5, "count %u: %f", count,
              deviations(steps, 64, count / 64.0));
        CHECK(same < 10, "count %u: keys 11 and 12 agree in %u places", count, same);
    }
}

static void test_sequences(void) {
    struct rng a, b, c, d;
    rng_start(&a, 1, 0);
    rng_start(&b, 1, 0);
    rng_start(&c, 1, 1);
    rng_start(&d, 2, 0);
    int equal = 0, purposes = 0, seeds = 0;
    for (int i = 0; i < 1000; i++) {
        const uint32_t x = rng_next(&a);
        equal += x == rng_next(&b);
        purposes += x == rng_next(&c);
        seeds += x == rng_next(&d);
    }
    CHECK(equal == 1000 && purposes == 0 && seeds == 0, "equal %d, purposes %d, seeds %d", equal, purposes,
          seeds);
    int tally[7] = {0};
    bool below = true;
    for (int i = 0; i < 70000; i++) {
        const uint32_t x = rng_below(&a, 7);
        below = below && x < 7;
        if (x < 7) tally[x]++;
    }
    CHECK(below && deviations(tally, 7, 10000) < 5, "%f", deviations(tally, 7, 10000));
    CHECK(rng_below(&a, 1) == 0, "below 1");
    int halves[2] = {0}; /* a limit that plain scaling would serve unfairly */
    for (int i = 0; i < 30000; i++) halves[rng_below(&a, 0xC0000000u) % 3 == 1]++;
    CHECK(abs(halves[1] - 10000) < 500, "%d", halves[1]);
}

static void test_distributions(void) {
    struct rng rng;
    rng_start(&rng, 5, 5);
    const int n = 200000;
    double uniform = 0, sum = 0, squares = 0, fourth = 0, cut_squares = 0, cut_most = 0;
    bool in_range = true;
    for (int i = 0; i < n; i++) {
        const double u = (double)rng_uniform(&rng), x = (double)rng_normal(&rng);
        const double t = (double)rng_truncated_normal(&rng);
        in_range = in_range && u >= 0 && u < 1;
        uniform += u / n;
        sum += x / n;
        squares += x * x / n;
        fourth += x * x * x * x / n;
        cut_squares += t * t / n;
        if (fabs(t) > cut_most) cut_most = fabs(t);
    }
    CHECK(in_range && fabs(uniform - 0.5) < 0.005, "uniform mean %f", uniform);
    CHECK(fabs(sum) < 0.01 && fabs(squares - 1) < 0.02 && fabs(fourth - 3) < 0.15, "%f %f %f", sum, squares,
          fourth);
    /* Variance of a normal cut at 2: 1 - 2 * 2 * pdf(2) / (2 * cdf(2) - 1). */
    CHECK(fabs(cut_squares - 0.77374) < 0.01 && cut_most <= 2 && cut_most > 1.99, "%f %f", cut_squares,
          cut_most);
}

int main(void) {
    test_philox();
    test_permutation();
    test_keys_are_fair();
    test_order_is_mixed();
    test_sequences();
    test_distributions();
    return check_end();
}
