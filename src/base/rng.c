/* Random numbers for host code: sequences over the counter-based generator of rng.h, and the permutation that
 * the data stream asks for once per example. */
#include "rng.h"
#include <math.h>

void rng_start(struct rng *rng, uint64_t seed, uint64_t purpose) {
    *rng = (struct rng){.key = rng_mix(seed, purpose)};
}

uint32_t rng_next(struct rng *rng) {
    if (rng->left == 0) {
        rng->block = rng_philox(rng->key, 0, rng->counter++);
        rng->left = 4;
    }
    return rng->block.word[4 - rng->left--];
}

float rng_uniform(struct rng *rng) {
    return rng_unit(rng_next(rng));
}

/* Source: D. Lemire, "Fast random integer generation in an interval", ACM TOMACS 29 (2019). */
uint32_t rng_below(struct rng *rng, uint32_t limit) {
    const uint32_t refused =
        (0u - limit) % limit; /* 2^32 mod limit: so many low parts would be one too many */
    uint64_t product = (uint64_t)rng_next(rng) * limit;
    while ((uint32_t)product < refused) product = (uint64_t)rng_next(rng) * limit;
    return (uint32_t)(product >> 32);
}

/* In double and rounded once, so that another C library's last bit of log or cos does not show. */
float rng_normal(struct rng *rng) {
    const double two_pi = 6.283185307179586476925;
    const double radius = sqrt(-2.0 * log((double)rng_unit_open(rng_next(rng))));
    return (float)(radius * cos(two_pi * (double)rng_uniform(rng)));
}

float rng_truncated_normal(struct rng *rng) {
    float value = rng_normal(rng);
    while (fabsf(value) > 2.0f) value = rng_normal(rng);
    return value;
}

/* --- permutation --- */

enum {
    ROUNDS = 6,
    TINY_ROUNDS = 16,
    TINY_BITS = 8
}; /* even: rounds come in pairs; halves of few bits mix slowly */

/* A round function: multiply-add by random bits, top bits taken (Dietzfelbinger, "Universal hashing and
 * k-wise independent random variables via integer arithmetic without primes", 1996). Round keys do not depend
 * on the value, so the processor computes them beside the rounds. */
static inline uint32_t hash(uint64_t base, int round, uint32_t half) {
    uint64_t bits = base + 0x9E3779B97F4A7C15u * (uint64_t)round;
    bits = (bits ^ (bits >> 32)) * 0xD1342543DE82EF95u;
    bits ^= bits >> 29;
    return (uint32_t)((bits * half + (bits << 32 | bits >> 32)) >> 48);
}

/* Inlined with a constant number of rounds, so that the loop unrolls and keys are made once per call. */
static inline __attribute__((always_inline)) uint32_t walk(uint64_t base, int rounds, int bits,
                                                           uint32_t count, uint32_t value) {
    const int low_bits = bits / 2; /* the halves may differ by a bit: a Feistel round does not mind */
    const uint32_t low_mask = (1u << low_bits) - 1u, high_mask = (1u << (bits - low_bits)) - 1u;
    do {
        uint32_t high = value >> low_bits, low = value & low_mask;
        for (int round = 0; round < rounds; round += 2) {
            high ^= hash(base, round, low) & high_mask;
            low ^= hash(base, round + 1, high) & low_mask;
        }
        value = high << low_bits | low;
    } while (value >= count);
    return value;
}

uint32_t rng_permute(uint64_t key, uint32_t count, uint32_t index) {
    if (count <= 1) return 0;
    const int bits = 32 - __builtin_clz(count - 1); /* 1 .. 32 */
    const uint64_t base = rng_mix(key, count);
    return bits <= TINY_BITS ? walk(base, TINY_ROUNDS, bits, count, index)
                             : walk(base, ROUNDS, bits, count, index);
}
