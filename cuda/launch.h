/* Private to the .cu files: how a kernel is written and launched, so that its body is plain loops.
 *
 * EACH: a loop over independent indices, with no talk between threads; every thread gets its share of them.
 *
 * TEAMS: a loop over teams, each a warp of 32 threads or a block of 256, whose threads do talk. The body of
 * it is a sequence of turns: EVERY gives each thread of the team a turn, and none begins its next one before
 * all have ended this one; FIRST is an EVERY of the team's first thread only; ALONE is an EVERY that touches
 * nothing that another thread touches, and so waits for nobody. What a thread keeps from turn to turn is an
 * `each`; what the team shares is SHARED; team_fold makes one value of all. A turn ends at its end: no break,
 * no return. All that decides which turns there are is the same for all threads of a team.
 *
 * Compiled by nvcc it runs on a GPU. Compiled by a C++ compiler beside the stand-in runtime of tests/ these
 * are loops, run by the stand-in's queue, turn after turn; so the tests of every machine execute these lines.
 * The order of all additions is the same in both, and in every run. */
#ifndef TRAINER_CUDA_LAUNCH_H
#define TRAINER_CUDA_LAUNCH_H

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WARP = 32, BLOCK = 256 }; /* threads of a team */

#ifdef __CUDACC__
#    define KERNEL __global__ void
/* Of threads with many loads in flight: told how many blocks of a processor are enough, nvcc finds the
 * registers for these loads; else it lets one wait for the one before. */
#    define WIDE_KERNEL(blocks) __global__ void __launch_bounds__(BLOCK, blocks)
#    define DEVICE static __device__ __forceinline__
#    define HOST_DEVICE static inline __host__ __device__
/* Of a structure that a kernel is given and looks into by an index: else every thread makes a copy of its
 * own, in memory, before it begins. */
#    define CONSTANT const __grid_constant__
#    define UNROLL(times) _Pragma(UNROLL_TEXT(unroll times))
#    define UNROLL_TEXT(text) #    text
#    define EACH(i, count)                                                                                   \
        for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (count);                          \
             i += (size_t)gridDim.x * blockDim.x)
static inline unsigned launch_blocks(size_t count) {
    const size_t blocks = (count + BLOCK - 1) / BLOCK;
    return (unsigned)(blocks < 1 ? 1 : blocks < 65535 ? blocks : 65535);
}
#    define LAUNCH(stream, count, kernel, ...)                                                               \
        (kernel<<<launch_blocks(count), BLOCK, 0, stream>>>(__VA_ARGS__), cudaGetLastError())

#    define TEAMS(team, count, threads)                                                                      \
        for (size_t team = (blockIdx.x * (size_t)BLOCK + threadIdx.x) / (threads); team < (count);           \
             team += (size_t)gridDim.x * (BLOCK / (threads)))
#    define ALONE(t, threads) for (uint32_t t = threadIdx.x % (threads), turn_ = 1; turn_; turn_ = 0)
#    define EVERY(t, threads)                                                                                \
        for (uint32_t t = threadIdx.x % (threads), turn_ = 1; turn_; turn_ = 0, team_meets<threads>())
#    define FIRST(t, threads) EVERY(t, threads) if (t == 0)
template <int THREADS> DEVICE void team_meets() {
    if (THREADS == WARP)
        __syncwarp();
    else
        __syncthreads();
}
#    define SHARED(type, name, count) __shared__ type name[count]
#    define LAUNCH_TEAMS(stream, count, threads, kernel, ...)                                                \
        LAUNCH(stream, (size_t)(count) * (threads), kernel, __VA_ARGS__)

template <class T, int THREADS> struct each {
    T own;
    __device__ __forceinline__ T &operator[](uint32_t) { return own; }
};
/* Of every thread t what thread t ^ far has; far: 1, 2, 4, 8 or 16. */
template <class T, int THREADS> DEVICE each<T, THREADS> team_others(each<T, THREADS> value, uint32_t far) {
    static_assert(sizeof(T) % sizeof(uint32_t) == 0, "a value goes from thread to thread in words");
    uint32_t words[sizeof(T) / sizeof(uint32_t)];
    memcpy(words, &value.own, sizeof(T));
    UNROLL(16)
    for (size_t k = 0; k < sizeof(T) / sizeof(uint32_t); k++)
        words[k] = __shfl_xor_sync(0xFFFFFFFFu, words[k], (int)far);
    memcpy(&value.own, words, sizeof(T));
    return value;
}
#else
#    define KERNEL static void
#    define WIDE_KERNEL(blocks) static void
#    define DEVICE static inline
#    define HOST_DEVICE static inline
#    define CONSTANT const
#    define UNROLL(times)
/* Backwards, so that a kernel that needs its elements in order is seen to. */
#    define EACH(i, count) for (size_t i = (count); i-- > 0;)
#    define LAUNCH(stream, count, kernel, ...) standin_launch(stream, count, #    kernel, kernel, __VA_ARGS__)

#    define TEAMS(team, count, threads) EACH(team, count)
#    define ALONE(t, threads) for (uint32_t t = (threads); t-- > 0;)
#    define EVERY(t, threads) ALONE(t, threads)
#    define FIRST(t, threads) for (uint32_t t = 0; t < 1; t++)
#    define SHARED(type, name, count) type name[count]
#    define LAUNCH_TEAMS(stream, count, threads, kernel, ...) LAUNCH(stream, count, kernel, __VA_ARGS__)

template <class T, int THREADS> struct each {
    T of[THREADS];
    T &operator[](uint32_t t) { return of[t]; }
};
template <class T, int THREADS> DEVICE each<T, THREADS> team_others(each<T, THREADS> value, uint32_t far) {
    each<T, THREADS> others = value;
    ALONE(t, THREADS) others[t] = value[t ^ far];
    return others;
}
#endif

/* Every value[t] becomes Op::of over all those that are a multiple of `apart` threads away, among `among`
 * neighbours: 32 or less within their warp, or the whole block; powers of two all of them. Of two operands
 * the left one is that of the lower thread: halves first, within warps, then warp after warp. */
template <class Op, class T, int THREADS>
DEVICE void team_fold(each<T, THREADS> &value, uint32_t among, uint32_t apart) {
    for (uint32_t far = (among < WARP ? among : (uint32_t)WARP) / 2; far >= apart && far > 0; far /= 2) {
        each<T, THREADS> others = team_others(value, far);
        ALONE(t, THREADS) value[t] = t & far ? Op::of(others[t], value[t]) : Op::of(value[t], others[t]);
    }
    if constexpr (THREADS == BLOCK) {
        if (among == BLOCK) {
            SHARED(T, kept, BLOCK);
            EVERY(t, THREADS) kept[t] = value[t];
            EVERY(t, THREADS) {
                T all = kept[t % WARP];
                for (uint32_t k = t % WARP + WARP; k < BLOCK; k += WARP) all = Op::of(all, kept[k]);
                value[t] = all;
            }
        }
    }
}
template <class Op, class T, int THREADS> DEVICE void team_fold(each<T, THREADS> &value) {
    team_fold<Op>(value, THREADS, 1);
}

#endif
