/* How the fakes in C++, and kernels compiled by a C++ compiler (cuda/launch.h), reach the stand-in's streams.
 */
#ifndef STANDIN_LAUNCH_HH
#define STANDIN_LAUNCH_HH

#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "standin.h"

namespace standin {

/* Begins a call that can fail, named for the words: true when the test wants it to fail here. */
bool fails(const char *call);
/* For calls that allocate or wait: true while this thread captures, as they may not be made then; the capture
 * has failed. */
bool forbidden_now();
/* Counts things that have to be given back; +1 or -1. */
void count(const char *kind, int change);
/* Keeps work for the stream, or for the graph that is being captured there; `everywhere`: it may touch the
 * memory of all devices, as copies do; it does not begin while *held. name: a constant text; NULL: it moves
 * memory and computes nothing. */
cudaError_t queue(cudaStream_t stream, const char *name, std::function<void()> work, bool everywhere = false,
                  std::shared_ptr<bool> held = nullptr);
/* Brings the code of a kernel to the stream's device at its first launch there, which waits: not while the
 * stream captures. */
cudaError_t load(cudaStream_t stream, const std::string &kernel);
/* A library was asked for its algorithms for a problem. */
void contest();
/* Ends the program with words when a kernel of this stream's device could not follow the pointer. */
void reach(cudaStream_t stream, const void *pointer, const char *kernel);
/* Is [pointer, pointer + bytes) memory of the device? */
bool holds(int device, const void *pointer, size_t bytes);
int device_of(cudaStream_t stream);

template <class T> void check(cudaStream_t stream, const char *kernel, const T &) {
    (void)stream, (void)kernel;
}
template <class T> void check(cudaStream_t stream, const char *kernel, T *const &pointer) {
    reach(stream, pointer, kernel);
}

} // namespace standin

/* What LAUNCH is here: the arguments are copied now and those that are pointers looked at, the kernel's loop
 * runs when the stream does. How many threads were asked for is nothing to a loop. */
template <class Kernel, class... Arguments>
cudaError_t standin_launch(cudaStream_t stream, size_t threads, const char *name, Kernel kernel,
                           Arguments... arguments) {
    (void)threads;
    static_assert((sizeof(Arguments) + ... + 0) <= 4096, "4 KB of arguments are what every GPU takes");
    if (standin::fails(name)) return cudaErrorUnknown;
    (standin::check(stream, name, arguments), ...);
    char code[40]; /* an instance of a template has its own */
    snprintf(code, sizeof code, " %p", reinterpret_cast<void *>(kernel));
    if (const cudaError_t refused = standin::load(stream, name + std::string(code))) return refused;
    return standin::queue(stream, name, [=] { kernel(arguments...); });
}

template <class T> T standin_atomic_add(T *address, T value) {
    T old, sum;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    do sum = old + value;
    while (!__atomic_compare_exchange(address, &old, &sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
static inline float atomicAdd(float *address, float value) {
    return standin_atomic_add(address, value);
}
static inline double atomicAdd(double *address, double value) {
    return standin_atomic_add(address, value);
}
static inline int atomicAdd(int *address, int value) {
    return standin_atomic_add(address, value);
}
static inline unsigned atomicAdd(unsigned *address, unsigned value) {
    return standin_atomic_add(address, value);
}
static inline unsigned long long atomicAdd(unsigned long long *address, unsigned long long value) {
    return standin_atomic_add(address, value);
}

#endif
