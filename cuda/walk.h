/* Private to the .cu files: where the operands of an element are (struct gpu_walk of kernels.h). */
#ifndef TRAINER_CUDA_WALK_H
#define TRAINER_CUDA_WALK_H

#include "kernels.h"
#include "launch.h"

struct places {
    uint32_t at[2]; /* elements */
};

DEVICE places places_of(const gpu_walk &walk, uint32_t i) {
    places places = {{0, 0}};
    for (int axis = walk.rank - 1; axis > 0; axis--) {
        const uint32_t index = i % walk.dims[axis];
        i /= walk.dims[axis];
        places.at[0] += index * walk.stride[0][axis];
        places.at[1] += index * walk.stride[1][axis];
    }
    places.at[0] += i * walk.stride[0][0];
    places.at[1] += i * walk.stride[1][0];
    return places;
}

#endif
