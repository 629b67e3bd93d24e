/* Libraries, loaded when they are first used.
 *
 * Nobody waits for another thread: of several that come first each looks the functions up, finds the same,
 * and writes the same addresses. `stage` is written last. */
#include "libraries.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum stage { NEW, LOADED, FAILING, FAILED };

#define NAME(name) #name,
#define WORDS(number) WORDS_(number)
#define WORDS_(number) #number
/* cuBLAS counts its versions as CUDA does. */
#define CUDA_VERSION_WORDS WORDS(CUBLAS_VER_MAJOR)
#define CUDNN_VERSION_WORDS WORDS(CUDNN_MAJOR)

static const char *const cublaslt_names[] = {CUBLASLT_FUNCTIONS(NAME)};
_Atomic(void *) cublaslt_functions[CUBLASLT_COUNT];
struct library cublaslt_library = {
    .file = "libcublasLt.so." CUDA_VERSION_WORDS,
    .what = "cuBLAS of CUDA " CUDA_VERSION_WORDS " (in the CUDA toolkit, or Python's nvidia-cublas)",
    .count = CUBLASLT_COUNT,
    .names = cublaslt_names,
    .functions = cublaslt_functions,
};

static const char *const cudnn_names[] = {CUDNN_FUNCTIONS(NAME)};
_Atomic(void *) cudnn_functions[CUDNN_COUNT];
struct library cudnn_library = {
    .file = "libcudnn.so." CUDNN_VERSION_WORDS,
    .what =
        "cuDNN " CUDNN_VERSION_WORDS " for CUDA " CUDA_VERSION_WORDS " (package libcudnn" CUDNN_VERSION_WORDS
        "-cuda-" CUDA_VERSION_WORDS ", or Python's nvidia-cudnn-cu" CUDA_VERSION_WORDS ")",
    .count = CUDNN_COUNT,
    .names = cudnn_names,
    .functions = cudnn_functions,
};

#if TRAINER_NCCL
#    define NCCL_VERSION_WORDS WORDS(NCCL_MAJOR)
static const char *const nccl_names[] = {NCCL_FUNCTIONS(NAME)};
_Atomic(void *) nccl_functions[NCCL_COUNT];
struct library nccl_library = {
    .file = "libnccl.so." NCCL_VERSION_WORDS,
    .what = "NCCL " NCCL_VERSION_WORDS " for CUDA " CUDA_VERSION_WORDS " (package libnccl" NCCL_VERSION_WORDS
            ", or Python's nvidia-nccl-cu" CUDA_VERSION_WORDS ")",
    .count = NCCL_COUNT,
    .names = nccl_names,
    .functions = nccl_functions,
};
#endif

/* The library in `path`, a file of a folder or a name alone, with all its functions; `why` not. */
static bool load_from(struct library *library, const char *path, char *why, size_t bytes) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(why, bytes, "%s", dlerror());
        return false;
    }
    for (int i = 0; i < library->count; i++) {
        void *function = dlsym(handle, library->names[i]);
        if (!function) {
            snprintf(why, bytes, "%s", dlerror());
            dlclose(handle);
            return false;
        }
        library->functions[i] = function;
    }
    return true;
}

/* Whether it is not there, and not that it cannot be used for another reason. */
static bool is_absent(const struct library *library, const char *why) {
    return strstr(why, library->file) && strstr(why, "No such file or directory");
}

/* Of what stands in the way, `why` is the first that is more than an empty place. */
static bool load(struct library *library, char *why, size_t bytes) {
    if (load_from(library, library->file, why, bytes)) return true;
    for (const char *folder = TRAINER_CUDA_FOLDERS; *folder;) {
        const size_t length = strcspn(folder, ":");
        char path[PATH_MAX], here[sizeof library->words];
        const int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, library->file);
        if (written > 0 && (size_t)written < sizeof path) {
            if (load_from(library, path, here, sizeof here)) return true;
            if (is_absent(library, why) && !is_absent(library, here)) snprintf(why, bytes, "%s", here);
        }
        folder += length;
        folder += *folder == ':';
    }
    return false;
}

int gpu_load(const struct device *device, struct library *library, struct error *error) {
    char why[sizeof library->words];
    const char *words = why;
    int stage = atomic_load_explicit(&library->stage, memory_order_acquire);
    if (stage == LOADED) return OK;
    if (stage == FAILED) {
        words = library->words;
    } else if (load(library, why, sizeof why)) {
        atomic_store_explicit(&library->stage, LOADED, memory_order_release);
        return OK;
    } else if (stage == NEW && atomic_compare_exchange_strong(&library->stage, &stage, FAILING)) {
        memcpy(library->words, why, sizeof why);
        atomic_store_explicit(&library->stage, FAILED, memory_order_release);
    }
    return error_set(error, ERROR_DEVICE, "%s: %s; expected %s", device->name, words, library->what);
}
