/* See subnormal.h. */
#include "subnormal.h"

#if defined __SSE2__
#    include <xmmintrin.h>
#endif

uint64_t subnormals_mode(void) {
    uint64_t mode = 0;
#if defined __SSE2__
    mode = _mm_getcsr();
#elif defined __aarch64__
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
#endif
    return mode;
}

void subnormals_set(uint64_t mode) {
#if defined __SSE2__
    _mm_setcsr((unsigned)mode);
#elif defined __aarch64__
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
    (void)mode;
#endif
}

void subnormals_flush(void) {
#if defined __SSE2__
    const uint64_t flush = 1u << 15 | 1u << 6; /* of MXCSR: results to 0, operands to 0 */
#else
    const uint64_t flush = UINT64_C(1) << 24; /* of FPCR: operands and results */
#endif
    subnormals_set(subnormals_mode() | flush);
}
