/* The stand-in's cuDNN: handles. */
#include "cudnn.h"

struct cudnnContext {
    cudaStream_t stream;
};

const char *cudnnGetErrorString(cudnnStatus_t status) {
    return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_INITIALIZED";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    if (standin::fails("cudnnCreate")) return CUDNN_STATUS_NOT_INITIALIZED;
    *handle = new cudnnContext{nullptr};
    standin::count("cuDNN handle", 1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    delete handle;
    standin::count("cuDNN handle", -1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    if (standin::fails("cudnnSetStream")) return CUDNN_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}
