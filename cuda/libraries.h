/* Private to cuda/: the libraries that are loaded when they are first used. They are huge: a program that is
 * linked with them takes a third of a second to start, also where there is no GPU.
 *
 * After gpu_load the functions of a library's list are called by their own names, which are macros below: the
 * real functions are not linked, so a call of one that has no macro is an error of the linker's. A call of
 * one that is not loaded yet ends the program. */
#ifndef TRAINER_CUDA_LIBRARIES_H
#define TRAINER_CUDA_LIBRARIES_H

#include <cublasLt.h>
#include <cudnn.h>
#include <stdatomic.h>
#include <stdint.h>
#if TRAINER_NCCL
#    include <nccl.h>
#endif

#include "../src/device/device.h"

struct library {
    const char *file; /* the version's whose header was compiled with */
    const char *what; /* to install, in words */
    int count;
    const char *const *names;   /* [count] functions */
    _Atomic(void *) *functions; /* [count] where they are; written before `stage` says so */
    /* Private to libraries.c. */
    _Atomic int stage;
    char words[300]; /* why it cannot be loaded, once `stage` says so */
};

/* Loads the library with all functions of its list, at the first call for it, and never unloads it. Any
 * thread, at any time. ERROR_DEVICE: "gpu:0: libcudnn.so.9: cannot open shared object file: ...; expected
 * cuDNN 9 ..."; it is remembered, and every later call fails in the same words. The library is looked for as
 * any other of the system, then in the folders where it was when the program was built. */
int gpu_load(const struct device *device, struct library *library, struct error *error);

/* For each function its type and its number in the library's list. */
#define LIBRARY_TYPE(name) typedef __typeof__(&name) name##_type;
#define LIBRARY_NUMBER(name) name##_number,
#define LIBRARY_CALL(library, name) ((name##_type)(uintptr_t)library##_functions[name##_number])

/* --- cuBLASLt --- */

#define CUBLASLT_FUNCTIONS(X)                                                                                \
    X(cublasLtCreate)                                                                                        \
    X(cublasLtDestroy)                                                                                       \
    X(cublasLtGetStatusString)                                                                               \
    X(cublasLtMatmul)                                                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                        \
    X(cublasLtMatmulDescCreate)                                                                              \
    X(cublasLtMatmulDescDestroy)                                                                             \
    X(cublasLtMatmulDescSetAttribute)                                                                        \
    X(cublasLtMatmulPreferenceCreate)                                                                        \
    X(cublasLtMatmulPreferenceDestroy)                                                                       \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                  \
    X(cublasLtMatrixLayoutCreate)                                                                            \
    X(cublasLtMatrixLayoutDestroy)                                                                           \
    X(cublasLtMatrixLayoutSetAttribute)

CUBLASLT_FUNCTIONS(LIBRARY_TYPE)
enum { CUBLASLT_FUNCTIONS(LIBRARY_NUMBER) CUBLASLT_COUNT };
extern _Atomic(void *) cublaslt_functions[CUBLASLT_COUNT];
extern struct library cublaslt_library;

#define cublasLtCreate LIBRARY_CALL(cublaslt, cublasLtCreate)
#define cublasLtDestroy LIBRARY_CALL(cublaslt, cublasLtDestroy)
#define cublasLtGetStatusString LIBRARY_CALL(cublaslt, cublasLtGetStatusString)
#define cublasLtMatmul LIBRARY_CALL(cublaslt, cublasLtMatmul)
#define cublasLtMatmulAlgoGetHeuristic LIBRARY_CALL(cublaslt, cublasLtMatmulAlgoGetHeuristic)
#define cublasLtMatmulDescCreate LIBRARY_CALL(cublaslt, cublasLtMatmulDescCreate)
#define cublasLtMatmulDescDestroy LIBRARY_CALL(cublaslt, cublasLtMatmulDescDestroy)
#define cublasLtMatmulDescSetAttribute LIBRARY_CALL(cublaslt, cublasLtMatmulDescSetAttribute)
#define cublasLtMatmulPreferenceCreate LIBRARY_CALL(cublaslt, cublasLtMatmulPreferenceCreate)
#define cublasLtMatmulPreferenceDestroy LIBRARY_CALL(cublaslt, cublasLtMatmulPreferenceDestroy)
#define cublasLtMatmulPreferenceSetAttribute LIBRARY_CALL(cublaslt, cublasLtMatmulPreferenceSetAttribute)
#define cublasLtMatrixLayoutCreate LIBRARY_CALL(cublaslt, cublasLtMatrixLayoutCreate)
#define cublasLtMatrixLayoutDestroy LIBRARY_CALL(cublaslt, cublasLtMatrixLayoutDestroy)
#define cublasLtMatrixLayoutSetAttribute LIBRARY_CALL(cublaslt, cublasLtMatrixLayoutSetAttribute)

/* --- cuDNN --- */

#define CUDNN_FUNCTIONS(X)                                                                                   \
    X(cudnnBackendCreateDescriptor)                                                                          \
    X(cudnnBackendDestroyDescriptor)                                                                         \
    X(cudnnBackendExecute)                                                                                   \
    X(cudnnBackendFinalize)                                                                                  \
    X(cudnnBackendGetAttribute)                                                                              \
    X(cudnnBackendSetAttribute)                                                                              \
    X(cudnnCreate)                                                                                           \
    X(cudnnDestroy)                                                                                          \
    X(cudnnGetErrorString)                                                                                   \
    X(cudnnSetStream)

CUDNN_FUNCTIONS(LIBRARY_TYPE)
enum { CUDNN_FUNCTIONS(LIBRARY_NUMBER) CUDNN_COUNT };
extern _Atomic(void *) cudnn_functions[CUDNN_COUNT];
extern struct library cudnn_library;

#define cudnnBackendCreateDescriptor LIBRARY_CALL(cudnn, cudnnBackendCreateDescriptor)
#define cudnnBackendDestroyDescriptor LIBRARY_CALL(cudnn, cudnnBackendDestroyDescriptor)
#define cudnnBackendExecute LIBRARY_CALL(cudnn, cudnnBackendExecute)
#define cudnnBackendFinalize LIBRARY_CALL(cudnn, cudnnBackendFinalize)
#define cudnnBackendGetAttribute LIBRARY_CALL(cudnn, cudnnBackendGetAttribute)
#define cudnnBackendSetAttribute LIBRARY_CALL(cudnn, cudnnBackendSetAttribute)
#define cudnnCreate LIBRARY_CALL(cudnn, cudnnCreate)
#define cudnnDestroy LIBRARY_CALL(cudnn, cudnnDestroy)
#define cudnnGetErrorString LIBRARY_CALL(cudnn, cudnnGetErrorString)
#define cudnnSetStream LIBRARY_CALL(cudnn, cudnnSetStream)

/* --- NCCL, where its header was found --- */

#if TRAINER_NCCL

#    define NCCL_FUNCTIONS(X)                                                                                \
        X(ncclCommAbort)                                                                                     \
        X(ncclCommDestroy)                                                                                   \
        X(ncclCommGetAsyncError)                                                                             \
        X(ncclCommInitRankConfig)                                                                            \
        X(ncclGetErrorString)                                                                                \
        X(ncclGetUniqueId)                                                                                   \
        X(ncclGetVersion)                                                                                    \
        X(ncclGroupEnd)                                                                                      \
        X(ncclGroupStart)                                                                                    \
        X(ncclReduce)

NCCL_FUNCTIONS(LIBRARY_TYPE)
enum { NCCL_FUNCTIONS(LIBRARY_NUMBER) NCCL_COUNT };
extern _Atomic(void *) nccl_functions[NCCL_COUNT];
extern struct library nccl_library;

#    define ncclCommAbort LIBRARY_CALL(nccl, ncclCommAbort)
#    define ncclCommDestroy LIBRARY_CALL(nccl, ncclCommDestroy)
#    define ncclCommGetAsyncError LIBRARY_CALL(nccl, ncclCommGetAsyncError)
#    define ncclCommInitRankConfig LIBRARY_CALL(nccl, ncclCommInitRankConfig)
#    define ncclGetErrorString LIBRARY_CALL(nccl, ncclGetErrorString)
#    define ncclGetUniqueId LIBRARY_CALL(nccl, ncclGetUniqueId)
#    define ncclGetVersion LIBRARY_CALL(nccl, ncclGetVersion)
#    define ncclGroupEnd LIBRARY_CALL(nccl, ncclGroupEnd)
#    define ncclGroupStart LIBRARY_CALL(nccl, ncclGroupStart)
#    define ncclReduce LIBRARY_CALL(nccl, ncclReduce)

#endif

#endif
