/* Random numbers: counter-based, so that any number of the sequence can be had by anyone, in any order.
 *
 * Same key and counter, same bits, on every device and with any number of threads. Formulas are inline here
 * because device code includes this header too (it keeps to the common part of C, C++ and CUDA). Source:
 * Philox-4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
#ifndef TRAINER_BASE_RNG_H
#define TRAINER_BASE_RNG_H

#include <stdint.h>

#ifdef __CUDACC__
#    define RNG_INLINE static inline __host__ __device__
#else
#    define RNG_INLINE static inline
#endif

struct rng_block {
    uint32_t word[4];
};

/* 128 random bits for a 64-bit key and a 128-bit counter (high, low). */
RNG_INLINE struct rng_block rng_philox(uint64_t key, uint64_t high, uint64_t low) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)low, c1 = (uint32_t)(low >> 32), c2 = (uint32_t)high, c3 = (uint32_t)(high >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    struct rng_block out = {{c0, c1, c2, c3}};
    return out;
}

/* 32 random bits to a float in [0, 1), and to one in (0, 1]. */
RNG_INLINE float rng_unit(uint32_t bits) {
    return (float)(bits >> 8) * (1.0f / 16777216.0f);
}
RNG_INLINE float rng_unit_open(uint32_t bits) {
    return (float)((bits >> 8) + 1u) * (1.0f / 16777216.0f);
}

/* Mixes two numbers into a key (splitmix64's finalizer). */
RNG_INLINE uint64_t rng_mix(uint64_t a, uint64_t b) {
    uint64_t z = a + 0x9E3779B97F4A7C15u * (b + 1u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* A sequence for host code that wants "the next number". */
struct rng {
    uint64_t key, counter;
    uint32_t left; /* words of `block` not yet given out */
    struct rng_block block;
};

void rng_start(struct rng *rng, uint64_t seed,
               uint64_t purpose); /* the same seed gives unrelated streams per purpose */
uint32_t rng_next(struct rng *rng);
float rng_uniform(struct rng *rng);                  /* [0, 1) */
uint32_t rng_below(struct rng *rng, uint32_t limit); /* 0 .. limit-1, unbiased; limit >= 1 */
float rng_normal(struct rng *rng);                   /* mean 0, standard deviation 1 (Box-Muller) */
float rng_truncated_normal(struct rng *rng);         /* the same, redrawn beyond 2 standard deviations */

/* A seeded permutation of 0..count-1 with random access and no memory: where `index` goes. A Feistel network
 * over the next power of two, walked until it falls below count (Black and Rogaway, "Ciphers with arbitrary
 * finite domains", 2002). count >= 1, index < count. */
uint32_t rng_permute(uint64_t key, uint32_t count, uint32_t index);

#endif
