/* See crc32c.h. Processors with SSE 4.2 have an instruction for it, which takes three clock cycles but can
 * begin anew in each: so three parts of a block are summed at once, and then put together by polynomial
 * multiplication (V. Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction",
 * Intel, 2011). Where 32 bytes are multiplied at a time (AVX2 and VPCLMULQDQ), a fourth part of the block
 * is folded meanwhile (the same, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
 * 2009): other units of the core do that. Elsewhere half a byte at a time: sixteen numbers are a table that
 * can be read. All work on the complement of the sum. */
#include "crc32c.h"

#include <stdbool.h>
#include <string.h>
#if defined __x86_64__
#    include <immintrin.h>
#endif

/* [n] n divided by the polynomial 0x82F63B78, lowest bit first. */
static const uint32_t table[16] = {
    0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
    0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
};

static uint32_t by_table(uint32_t crc, const unsigned char *at, size_t count) {
    for (size_t i = 0; i < count; i++) {
        crc ^= at[i];
        crc = table[crc & 15] ^ (crc >> 4);
        crc = table[crc & 15] ^ (crc >> 4);
    }
    return crc;
}

#if defined __x86_64__

enum { PART_BYTES = 1024 };
static const uint32_t one_part = 0x170076fa, two_parts = 0xa51b6135; /* x^(8 * PART_BYTES - 33), twice that */

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *at,
                                                                 size_t count) {
    unsigned long long sum = crc, word;
    for (; count >= sizeof word; at += sizeof word, count -= sizeof word) {
        memcpy(&word, at, sizeof word);
        sum = _mm_crc32_u64(sum, word);
    }
    return by_table((uint32_t)sum, at, count);
}

/* A product that is not reduced yet. The instruction does that: over 64 bits it multiplies by x^32, and the
 * product has an x of its own. */
__attribute__((target("sse4.2,pclmul"))) static unsigned long long times(unsigned long long sum,
                                                                         uint32_t constant) {
    const __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)sum), _mm_cvtsi32_si128((int)constant), 0);
    return (unsigned long long)_mm_cvtsi128_si64(product);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t by_three(uint32_t crc, const unsigned char *at,
                                                                  size_t count) {
    unsigned long long sum = crc;
    for (; count >= 3 * PART_BYTES; at += 3 * PART_BYTES, count -= 3 * PART_BYTES) {
        unsigned long long second = 0, third = 0, words[3];
        for (size_t i = 0; i < PART_BYTES; i += sizeof *words) {
            for (size_t part = 0; part < 3; part++)
                memcpy(&words[part], at + part * PART_BYTES + i, sizeof *words);
            sum = _mm_crc32_u64(sum, words[0]);
            second = _mm_crc32_u64(second, words[1]);
            third = _mm_crc32_u64(third, words[2]);
        }
        sum = _mm_crc32_u64(0, times(sum, two_parts) ^ times(second, one_part)) ^ third;
    }
    return by_instruction((uint32_t)sum, at, count);
}

/* --- three parts by instruction, and one that is folded --- */

/* The folded part is 128 bytes that move on over the message: what they hold is worth x^1024 more behind the
 * next 128, and its lower and upper halves are multiplied by what that leaves. TURN_BYTES: of each of the
 * three other parts meanwhile, for which both take equally long. */
enum {
    FOLDED = 4, /* of 32 bytes */
    FOLDED_BYTES = 32 * FOLDED,
    TURN_BYTES = 40,
    TURNS = 64,
    SUMMED_PART = TURNS * TURN_BYTES,
    FOLDED_PART = TURNS * FOLDED_BYTES,
    BLOCK_BYTES = 3 * SUMMED_PART + FOLDED_PART
};
static const long long fold_lower = 0x6992cea2, fold_upper = 0xd3b6092; /* x^(1024 + 32), x^(1024 - 32) */
/* x^(8 * n - 33) for the n bytes of a block behind its first, second and third part. */
static const uint32_t behind[3] = {0xba687f9f, 0x57e82916, 0x54a86326};

#    define FOLDS __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))

FOLDS static void fold(__m256i folded[FOLDED], const unsigned char *at) {
    const __m256i constants = _mm256_set_epi64x(fold_upper, fold_lower, fold_upper, fold_lower);
    for (int i = 0; i < FOLDED; i++) {
        const __m256i next = _mm256_loadu_si256((const __m256i *)(const void *)(at + 32 * i));
        const __m256i lower = _mm256_clmulepi64_epi128(folded[i], constants, 0x00);
        const __m256i upper = _mm256_clmulepi64_epi128(folded[i], constants, 0x11);
        folded[i] = _mm256_xor_si256(_mm256_xor_si256(lower, upper), next);
    }
}

FOLDS static void sum_turn(unsigned long long sums[3], const unsigned char *at) {
    for (size_t i = 0; i < TURN_BYTES; i += sizeof *sums)
        for (size_t part = 0; part < 3; part++) {
            unsigned long long word;
            memcpy(&word, at + part * SUMMED_PART + i, sizeof word);
            sums[part] = _mm_crc32_u64(sums[part], word);
        }
}

FOLDS static uint32_t sum_block(uint32_t crc, const unsigned char *at) {
    const unsigned char *fourth = at + 3 * SUMMED_PART;
    unsigned long long sums[3] = {crc, 0, 0};
    __m256i folded[FOLDED];
    unsigned char left[FOLDED_BYTES];
    memcpy(folded, fourth, sizeof folded);
    sum_turn(sums, at);
    for (size_t turn = 1; turn < TURNS; turn++) {
        fold(folded, fourth + turn * FOLDED_BYTES);
        sum_turn(sums, at + turn * TURN_BYTES);
    }
    memcpy(left, folded, sizeof left);
    unsigned long long before = 0;
    for (size_t part = 0; part < 3; part++) before ^= times(sums[part], behind[part]);
    return (uint32_t)_mm_crc32_u64(0, before) ^ by_instruction(0, left, sizeof left);
}

FOLDS static uint32_t by_folding(uint32_t crc, const unsigned char *at, size_t count) {
    for (; count >= BLOCK_BYTES; at += BLOCK_BYTES, count -= BLOCK_BYTES) crc = sum_block(crc, at);
    return by_three(crc, at, count);
}

static uint32_t best(uint32_t crc, const unsigned char *at, size_t count) {
    if (!__builtin_cpu_supports("sse4.2")) return by_table(crc, at, count);
    if (!__builtin_cpu_supports("pclmul")) return by_instruction(crc, at, count);
    const bool folds = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
    return folds ? by_folding(crc, at, count) : by_three(crc, at, count);
}

#else

static uint32_t best(uint32_t crc, const unsigned char *at, size_t count) {
    return by_table(crc, at, count);
}

#endif

uint32_t crc32c(uint32_t before, const void *bytes, size_t count) {
    return ~best(~before, bytes, count);
}
