/* Private to the .cu files: how a kernel is written and launched, so that its body is a plain loop.
 *
 * A kernel is a loop over independent indices, with no talk between threads: EACH gives every thread its
 * share of them. Compiled by nvcc it runs on a GPU. Compiled by a C++ compiler beside the stand-in runtime of
 * tests/ it is that loop, run by the stand-in's queue; so the tests of every machine execute these lines. */
#ifndef TRAINER_CUDA_LAUNCH_H
#define TRAINER_CUDA_LAUNCH_H

#include <cuda_runtime.h>

#ifdef __CUDACC__
#    define KERNEL __global__ void
#    define DEVICE static __device__ __forceinline__
/* Of a structure that a kernel is given and looks into by an index: else every thread makes a copy of its
 * own, in memory, before it begins. */
#    define CONSTANT const __grid_constant__
#    define EACH(i, count)                                                                                   \
        for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (count);                          \
             i += (size_t)gridDim.x * blockDim.x)
static inline unsigned launch_blocks(size_t count) {
    const size_t blocks = (count + 255) / 256;
    return (unsigned)(blocks < 1 ? 1 : blocks < 65535 ? blocks : 65535);
}
#    define LAUNCH(stream, count, kernel, ...)                                                               \
        (kernel<<<launch_blocks(count), 256, 0, stream>>>(__VA_ARGS__), cudaGetLastError())
#else
#    define KERNEL static void
#    define DEVICE static inline
#    define CONSTANT const
/* Backwards, so that a kernel that needs its elements in order is seen to. */
#    define EACH(i, count) for (size_t i = (count); i-- > 0;)
#    define LAUNCH(stream, count, kernel, ...) standin_launch(stream, count, #    kernel, kernel, __VA_ARGS__)
#endif

#endif
