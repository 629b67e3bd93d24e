/* Private to the .cu files: elements that are float32 or bf16, computed with in float32. */
#ifndef TRAINER_CUDA_NARROW_H
#define TRAINER_CUDA_NARROW_H

#include "../src/device/bf16.h"
#include "launch.h"

DEVICE float widen(float x) {
    return x;
}
DEVICE float widen(bf16 x) {
    return bf16_float(x);
}
DEVICE void put(float *to, float x) {
    *to = x;
}
DEVICE void put(bf16 *to, float x) {
    *to = bf16_nearest(x);
}

#endif
