/* The CPU backend: the table of kernels made from ops.def, memory, threads, a line about the processor. */
#include "cpu.h"

#include <stdio.h>
#include <string.h>
#include "../base/memory.h"

/* What the rows call `none` and `source`: placeholders in the table, never run. */
#define OP(name, inputs, shape, gradient, reference, onednn, ...)                                            \
    extern const struct kernel reference_##reference, onednn_##onednn;
#include "../graph/ops.def"
const struct kernel onednn_none = {.name = "none"};
const struct kernel reference_source = {.name = "source"};

#if TRAINER_ONEDNN
#    define ONEDNN(name) &onednn_##name
extern const struct kernel onednn_unfolded;
bool onednn_has_bf16(void);
bool onednn_has_tiles(void);
void omp_set_num_threads(
    int threads); /* of libgomp, whose threads oneDNN runs on; clang has no omp.h for it */
#else
#    define ONEDNN(name) &onednn_none
#endif

/* The order of a row is the order in which kernels are tried. */
#define OP(name, inputs, shape, gradient, reference, onednn, ...)                                            \
    {ONEDNN(onednn), &reference_##reference, NULL},
static const struct kernel *const table[OPS][3] = {
#include "../graph/ops.def"
};

/* What a device that computes in bf16 tries first. */
extern const struct kernel narrow_gelu, narrow_gelu_grad;
static const struct kernel *const *narrow_kernels(enum op op) {
    static const struct kernel *const gelu[] = {&narrow_gelu, &reference_gelu, NULL},
                                      *const gelu_grad[] = {&narrow_gelu_grad, &reference_gelu_grad, NULL};
#if TRAINER_ONEDNN
    static const struct kernel *const grad_kernel[] = {&onednn_unfolded, &onednn_conv2d_grad_kernel,
                                                       &reference_conv2d_grad_kernel, NULL};
    if (op == OP_conv2d_grad_kernel && onednn_has_tiles()) return grad_kernel;
#endif
    return op == OP_gelu ? gelu : op == OP_gelu_grad ? gelu_grad : NULL;
}

static const struct kernel *const *kernels(const struct device *device, enum op op) {
    const struct kernel *const *list = device->precision == PRECISION_BF16 ? narrow_kernels(op) : NULL;
    if (list) return list;
    list = table[op];
    if (device->reference_only || list[0] == &onednn_none) list++;
    if (list[0] == &reference_source) list++;
    return list;
}

static int count(void) {
    struct cores cores;
    world_cores(&cores);
    return cores.count;
}

/* Copies what follows "<name>  : " in the first line of /proc/cpuinfo that starts with the name. */
static void cpuinfo(const char *name, char *out, size_t bytes) {
    char line[4096];
    out[0] = '\0';
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) return;
    while (out[0] == '\0' && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, name, strlen(name)) != 0) continue;
        const char *value = colon + 1 + strspn(colon + 1, " ");
        snprintf(out, bytes, "%.*s", (int)strcspn(value, "\n"), value);
    }
    fclose(file);
}

static void describe(int label, char *description, size_t bytes) {
    (void)label; /* only a name: for a share of one and the same processor */
    char model[100], flags[4096];
    cpuinfo("model name", model, sizeof model);
    cpuinfo("flags", flags, sizeof flags);
    const char *vectors = strstr(flags, " avx512f") ? ", AVX-512" : strstr(flags, " avx2") ? ", AVX2" : "";
    const char *bf16 = strstr(flags, " avx512_bf16") || strstr(flags, " amx_bf16") ? ", bf16" : "";
    const int cores = count();
    snprintf(description, bytes, "%d core%s, shared by the CPU devices; %.48s%s%s", cores,
             cores == 1 ? "" : "s", model[0] ? model : "unknown processor", vectors, bf16);
}

/* oneDNN computes in bf16 where the processor has instructions for it; the reference kernels do not. */
static const char *lacks(const struct device *device, enum precision precision) {
    if (precision == PRECISION_FP32) return NULL;
    if (precision == PRECISION_TF32) return "a GPU";
    if (device->reference_only) return "the kernels that --kernels=reference leaves out";
#if TRAINER_ONEDNN
    return onednn_has_bf16() ? NULL : "a processor with AVX512_BF16";
#else
    return "oneDNN, which this program was built without";
#endif
}

static void enter(const struct device *device) {
#if TRAINER_ONEDNN
    omp_set_num_threads(device->threads); /* a setting of the calling thread alone */
#else
    (void)device;
#endif
}

static int allocate(const struct device *device, void **out, size_t bytes, const char *what,
                    struct error *error) {
    (void)device;
    return memory_zeroed(out, bytes, 1, what, error);
}

static void release(const struct device *device, void *block) {
    (void)device;
    memory_free(block);
}

/* What is queued on a CPU is done at once. */

static int copy(const struct device *device, void *out, const void *in, size_t bytes, struct error *error) {
    (void)device, (void)error;
    memcpy(out, in, bytes);
    return OK;
}

static int finish(const struct device *device, struct error *error) {
    (void)device, (void)error;
    return OK;
}

static int open_mark(const struct device *device, bool timed, void **mark, struct error *error) {
    (void)device, (void)timed, (void)error;
    *mark = NULL;
    return OK;
}

static void close_mark(const struct device *device, void *mark) {
    (void)device, (void)mark;
}

static int use_mark(const struct device *device, void *mark, struct error *error) {
    (void)device, (void)mark, (void)error;
    return OK;
}

static int reached_mark(const struct device *device, void *mark, bool *is, struct error *error) {
    (void)device, (void)mark, (void)error;
    *is = true;
    return OK;
}

static int since_mark(const struct device *device, void *mark, double *seconds, struct error *error) {
    (void)device, (void)mark, (void)error;
    *seconds = 0.0;
    return OK;
}

static const struct marks marks = {.open = open_mark,
                                   .close = close_mark,
                                   .set = use_mark,
                                   .wait = use_mark,
                                   .reached = reached_mark,
                                   .since = since_mark};

const struct backend cpu_backend = {
    .name = "cpu",
    .count = count,
    .describe = describe,
    .kernels = kernels,
    .lacks = lacks,
    .enter = enter,
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate,
    .release_host = release,
    .copy = copy,
    .queue_copy = copy,
    .finish = finish,
    .vectors = &cpu_vectors,
    .marks = &marks,
    .gather = cpu_gather,
    .gather_labels = cpu_gather_labels,
    .mix = cpu_mix,
};
