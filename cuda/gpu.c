/* The GPU backend: which GPUs there are, what they can do, and the table of kernels made from ops.def. */
#include "gpu.h"

#include <stdio.h>

#include "libraries.h"

/* What the rows call `none`: a placeholder in the table, never run. Behind the GPU's column may be others. */
#define OP(name, inputs, shape, gradient, reference, onednn, ...) DECLARE(__VA_ARGS__, end)
#define DECLARE(gpu, ...) extern const struct kernel gpu_##gpu;
#include "../src/graph/ops.def"
const struct kernel gpu_none = {.name = "none"};

#define OP(name, inputs, shape, gradient, reference, onednn, ...) KERNELS(__VA_ARGS__, end)
#define KERNELS(gpu, ...) {&gpu_##gpu, NULL},
static const struct kernel *const table[OPS][2] = {
#include "../src/graph/ops.def"
};

static const struct kernel *const *kernels(const struct device *device, enum op op) {
    (void)device;
    return table[op][0] == &gpu_none ? table[op] + 1 : table[op];
}

static int count(void) {
    int found = 0;
    if (cudaGetDeviceCount(&found) == cudaSuccess) return found < GPUS ? found : GPUS;
    cudaGetLastError(); /* or the next launch would report it */
    return 0;
}

static const char *missing(void) {
    int found = 0, version = 0;
    const cudaError_t code = cudaGetDeviceCount(&found);
    cudaGetLastError();
    if (code == cudaErrorNoDevice || code == cudaSuccess) return "no GPU found";
    if (code == cudaErrorStubLibrary) return "driver not found, only a library to link with";
    if (code != cudaErrorInsufficientDriver) return cudaGetErrorString(code);
    if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0)
        return "the driver is older than the CUDA that this program was built with";
    return "driver not found";
}

static void describe(int label, char *description, size_t bytes) {
    struct cudaDeviceProp properties;
    int version = 0;
    const cudaError_t code = cudaGetDeviceProperties(&properties, label);
    if (code != cudaSuccess || cudaDriverGetVersion(&version) != cudaSuccess) {
        snprintf(description, bytes, "cannot be asked: %s", cudaGetErrorString(code));
        cudaGetLastError();
        return;
    }
    snprintf(description, bytes, "%s, %.1f GB, compute capability %d.%d, driver for CUDA %d.%d",
             properties.name, (double)properties.totalGlobalMem / 1e9, properties.major, properties.minor,
             version / 1000, version % 1000 / 10);
}

static const char *lacks(const struct device *device, enum precision precision) {
    int major = 0;
    if (precision == PRECISION_FP32) return NULL;
    const cudaError_t code = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device->label);
    if (code == cudaSuccess) return major >= 8 ? NULL : "compute capability 8.0";
    cudaGetLastError();
    return "an answer from the GPU";
}

/* What fails here fails again, with words, when the thread first queues something. */
static void enter(const struct device *device) {
    gpu_enter(device);
}

const struct backend gpu_backend = {
    .name = "gpu",
    .own_memory = true,
    .count = count,
    .missing = missing,
    .describe = describe,
    .kernels = kernels,
    .lacks = lacks,
    .enter = enter,
    .open = gpu_open,
    .close = gpu_close,
    .plans = gpu_plans,
    .reform = gpu_reform,
    .allocate = gpu_allocate,
    .release = gpu_release,
    .allocate_host = gpu_allocate_host,
    .release_host = gpu_release_host,
    .copy = gpu_transfer,
    .queue_copy = gpu_queue_copy,
    .finish = gpu_finish,
    .gather = gpu_gather,
    .gather_labels = gpu_gather_labels,
    .mix = gpu_mix,
    .picker = &gpu_picker,
    .record = gpu_record,
    .recorded = gpu_recorded,
    .recorded_nodes = gpu_recorded_nodes,
    .replay = gpu_replay,
    .forget = gpu_forget,
    .vectors = &gpu_vectors,
    .marks = &gpu_marks,
    .send = gpu_send,
#if TRAINER_NCCL
    .collective = &gpu_collective,
#endif
};
