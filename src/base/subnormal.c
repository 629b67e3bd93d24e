/* See subnormal.h. */
#include "subnormal.h"

#include <stdint.h>
#if defined __SSE2__
#    include <xmmintrin.h>
#endif

void subnormals_flush(void) {
#if defined __SSE2__
    const unsigned flush_to_zero = 1u << 15, denormals_are_zero = 1u << 6; /* of MXCSR */
    _mm_setcsr(_mm_getcsr() | flush_to_zero | denormals_are_zero);
#elif defined __aarch64__
    const uint64_t flush_to_zero = UINT64_C(1) << 24; /* of FPCR; operands and results */
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | flush_to_zero));
#endif
}
