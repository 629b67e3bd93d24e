/* Libraries that are loaded when they are first used: the backend's own, from several threads at once; and
 * made-up ones that are not there, or lack a function. No GPU is needed. */
#include "../../cuda/libraries.h"

#include <string.h>

#include "../../src/world/world.h"
#include "../check.h"

static struct library *const libraries[] = {
    &cublaslt_library,
    &cudnn_library,
#if TRAINER_NCCL
    &nccl_library,
#endif
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries, THREADS = 8 };

/* The macro of a name is a call of what was found by that name. */
static void check_call(const char *name, uintptr_t called, const void *found) {
    CHECK(called == (uintptr_t)found, "%s is a call of another", name);
}
#define CHECK_CUBLASLT(name) check_call(#name, (uintptr_t)name, cublaslt_functions[name##_number]);
#define CHECK_CUDNN(name) check_call(#name, (uintptr_t)name, cudnn_functions[name##_number]);
#define CHECK_NCCL(name) check_call(#name, (uintptr_t)name, nccl_functions[name##_number]);

extern const struct backend gpu_backend;
static const struct device gpu = {.backend = &gpu_backend, .name = "gpu:7", .label = 7};

static _Atomic(int) failed;

static void load_all(void *first) {
    struct error error = {0};
    for (int i = 0; i < LIBRARIES; i++) {
        struct library *library = libraries[(*(const int *)first + i) % LIBRARIES];
        if (gpu_load(&gpu, library, &error)) failed++;
        for (int f = 0; f < library->count; f++)
            if (!library->functions[f]) failed++;
    }
    if (error.code) fprintf(stderr, "%s\n", error.words);
}

static void check_own(void) {
    struct world *world = NULL;
    struct world_thread *threads[THREADS] = {0};
    struct error error = {0};
    int first[THREADS];
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    for (int i = 0; i < LIBRARIES; i++)
        for (int f = 0; f < libraries[i]->count; f++)
            CHECK(!libraries[i]->functions[f], "%s is there before it is loaded", libraries[i]->names[f]);
    for (int t = 0; t < THREADS; t++) {
        first[t] = t;
        CHECK(world_spawn(world, "loads", NULL, load_all, &first[t], &threads[t], &error) == OK, "%s",
              error.words);
    }
    for (int t = 0; t < THREADS; t++) world_join(threads[t]);
    CHECK(failed == 0, "%d failures", failed);
    for (int i = 0; i < LIBRARIES; i++)
        for (int f = 0; f < libraries[i]->count; f++)
            CHECK(libraries[i]->functions[f], "%s is not there", libraries[i]->names[f]);
    CUBLASLT_FUNCTIONS(CHECK_CUBLASLT)
    CUDNN_FUNCTIONS(CHECK_CUDNN)
    const char *good = cublasLtGetStatusString(CUBLAS_STATUS_SUCCESS),
               *bad = cublasLtGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED);
    CHECK(strcmp(good, bad) != 0, "%s, %s", good, bad);
    CHECK(strcmp(cudnnGetErrorString(CUDNN_STATUS_SUCCESS), "CUDNN_STATUS_SUCCESS") == 0, "%s",
          cudnnGetErrorString(CUDNN_STATUS_SUCCESS));
    cudnnBackendDescriptor_t tensor = NULL;
    CHECK(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &tensor) == CUDNN_STATUS_SUCCESS &&
              tensor,
          "no descriptor");
    CHECK(cudnnBackendDestroyDescriptor(tensor) == CUDNN_STATUS_SUCCESS, "the descriptor");
    cublasLtMatmulDesc_t product = NULL;
    CHECK(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
              product,
          "no descriptor");
    CHECK(cublasLtMatmulDescDestroy(product) == CUBLAS_STATUS_SUCCESS, "the descriptor");
#if TRAINER_NCCL
    NCCL_FUNCTIONS(CHECK_NCCL)
    int version = 0;
    CHECK(ncclGetVersion(&version) == ncclSuccess && version / 10000 == NCCL_MAJOR, "version %d", version);
    CHECK(strcmp(ncclGetErrorString(ncclSuccess), "no error") == 0, "%s", ncclGetErrorString(ncclSuccess));
#endif
    world_close(world);
}

static void expect_failure(struct library *library, const char *begin, const char *end) {
    struct error error = {0};
    const int code = gpu_load(&gpu, library, &error);
    const size_t length = strlen(error.words), tail = strlen(end);
    CHECK(code == ERROR_DEVICE, "code %d", code);
    CHECK(strncmp(error.words, begin, strlen(begin)) == 0 && length >= tail &&
              strcmp(error.words + length - tail, end) == 0,
          "'%s', expected '%s...%s'", error.words, begin, end);
}

static void check_others(void) {
    static const char *const names[] = {"cos", "no_such_function", "sin"};
    _Atomic(void *) functions[3] = {NULL};
    struct library library = {
        .file = "libm.so.6", .what = "mathematics", .count = 1, .names = names, .functions = functions};
    struct error error = {0};
    CHECK(gpu_load(&gpu, &library, &error) == OK && functions[0] && !functions[1], "%s", error.words);

    struct library lacks = {
        .file = "libm.so.6", .what = "mathematics", .count = 3, .names = names, .functions = functions};
    expect_failure(&lacks, "gpu:7: /",
                   "/libm.so.6: undefined symbol: no_such_function; expected mathematics");

    struct library absent = {
        .file = "libabsent.so.0", .what = "what is absent", .names = names, .functions = functions};
    const char *words = "gpu:7: libabsent.so.0: cannot open shared object file: No such file or directory; "
                        "expected what is absent";
    expect_failure(&absent, words, words);
    absent.file = "libm.so.6"; /* which is there; but it is not looked for again */
    expect_failure(&absent, words, words);
}

int main(void) {
    check_others();
    check_own();
    return check_end();
}
