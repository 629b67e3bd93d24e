/* For the tests of the GPU backend, which run on real GPUs and on those that the stand-in plays (STANDIN 1).
 * What only the stand-in can be asked for, that a call fails or what is still open, is 0 on a real one;
 * checks of it ask for STANDIN first. One test program includes it once. */
#ifndef TRAINER_TESTS_GPU_CONTROL_H
#define TRAINER_TESTS_GPU_CONTROL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/device/device.h"

#if STANDIN
#    include "standin/standin.h"
#else
static inline void standin_fail(long n) {
    (void)n;
}
static inline long standin_calls(void) {
    return 0;
}
static inline int standin_open(const char *kind) {
    (void)kind;
    return 0;
}
static inline void standin_hang(long n) {
    (void)n;
}
static inline void standin_break(long n) {
    (void)n;
}
#endif

/* The stand-in adds in the CPU's order and with the CPU's functions; a GPU does not. */
static inline double gpu_tolerance(double of_standin, double of_gpu) {
    return STANDIN ? of_standin : of_gpu;
}

static inline const struct backend *gpu_backend_of_build(void) {
    for (int b = 0; backends[b]; b++)
        if (strcmp(backends[b]->name, "gpu") == 0) return backends[b];
    return NULL;
}

/* Ends the test as skipped where there is none. */
static inline void gpu_or_skip(void) {
    const struct backend *gpus = gpu_backend_of_build();
    if (gpus && gpus->count() > 0) return;
    printf("no GPU here\n");
    exit(77);
}

#endif
