/* The stand-in's cuBLASLt: handles. */
#include "cublasLt.h"

struct cublasLtContext {
    int device;
};

const char *cublasLtGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_NOT_INITIALIZED";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    if (standin::fails("cublasLtCreate")) return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasLtContext{standin::device_of(nullptr)};
    standin::count("cublasLt handle", 1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete handle;
    standin::count("cublasLt handle", -1);
    return CUBLAS_STATUS_SUCCESS;
}
