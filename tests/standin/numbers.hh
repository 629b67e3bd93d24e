/* Private to the stand-in's libraries: numbers of either type, as float32. */
#ifndef STANDIN_NUMBERS_HH
#define STANDIN_NUMBERS_HH

#include <cmath>
#include <cstdint>
#include <cstring>

#include "../../src/device/bf16.h"

/* For inner loops over the stand-in's own copies: the sanitizers look at what the program gives it. */
#define UNWATCHED __attribute__((no_sanitize("address", "thread", "undefined")))

namespace standin {

static inline float read_number(const void *values, bool narrow, size_t i) {
    return narrow ? bf16_float(((const bf16 *)values)[i]) : ((const float *)values)[i];
}
static inline void write_number(void *values, bool narrow, size_t i, float value) {
    if (narrow)
        ((bf16 *)values)[i] = bf16_nearest(value);
    else
        ((float *)values)[i] = value;
}

/* To 10 bits of fraction, as tensor cores take float32. */
static inline float tf32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!std::isfinite(value)) return value;
    bits = (bits + 0x1000u) & 0xFFFFE000u;
    memcpy(&value, &bits, sizeof value);
    return value;
}

} // namespace standin

#endif
