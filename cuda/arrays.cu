/* Kernels: elements moved from one layout to another, and what tells of a shape. */
#include "kernels.h"
#include "launch.h"
#include "walk.h"

namespace {

template <class T> KERNEL move(CONSTANT gpu_walk walk, const T *x, T *y) {
    EACH(i, walk.count) {
        const places places = places_of(walk, (uint32_t)i);
        y[places.at[1]] = x[places.at[0]];
    }
}

KERNEL write_dims(gpu_dims dims, int *y) {
    EACH(i, (size_t)dims.count) y[i] = dims.value[i];
}

} // namespace

cudaError_t launch_move(cudaStream_t stream, const struct gpu_walk *walk, size_t bytes, const void *x,
                        void *y) {
    if (bytes == 4)
        return LAUNCH(stream, walk->count, move<uint32_t>, *walk, (const uint32_t *)x, (uint32_t *)y);
    if (bytes == 1)
        return LAUNCH(stream, walk->count, move<uint8_t>, *walk, (const uint8_t *)x, (uint8_t *)y);
    return cudaErrorInvalidValue;
}

cudaError_t launch_dims(cudaStream_t stream, const struct gpu_dims *dims, int *y) {
    return LAUNCH(stream, dims->count, write_dims, *dims, y);
}
