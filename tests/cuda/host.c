/* The host side of the GPU backend, on the two GPUs that the stand-in plays: memory, copies, queues,
 * recordings, and what is said and given back when the n-th call of the runtime fails. */
#include "../../cuda/gpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "../standin/standin.h"

extern const struct backend gpu_backend;
static const struct backend *const gpu = &gpu_backend;

enum { FLOATS = 1000 };

/* Opens "gpu:0,gpu:1" or the like; NULL after a CHECK that failed. */
static struct device *open_devices(const char *text, int *count) {
    const struct device_settings settings = {0};
    struct device *devices = NULL;
    struct error error = {0};
    bool shared = false;
    CHECK(devices_open(text, &settings, &devices, count, &shared, &error) == OK, "%s: %s", text, error.words);
    return devices;
}

static void check_all_given_back(const char *after) {
    CHECK(standin_open(NULL) == 0, "%s: %d things are open: %d allocations, %d streams", after,
          standin_open(NULL), standin_open("allocation"), standin_open("stream"));
}

/* `body` in a process of its own, where the stand-in reads its settings anew: its exit code, or -1 when it
 * died of a signal. */
static int in_a_process(const char *name, const char *value, int (*body)(void)) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setenv(name, value, 1);
        exit(body());
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

static int expect_refused(const char *text, enum precision precision, const char *words) {
    const struct device_settings settings = {.precision = precision};
    struct device *devices = NULL;
    struct error error = {0};
    int count = 0;
    bool shared = false;
    const int code = devices_open(text, &settings, &devices, &count, &shared, &error);
    CHECK(code == ERROR_DEVICE && !devices, "%s: code %d", text, code);
    CHECK(strncmp(error.words, words, strlen(words)) == 0, "%s: '%s', expected '%s'", text, error.words,
          words);
    return check_end();
}

/* --- what is there --- */

static int without_driver(void) {
    CHECK(gpu->count() == 0 && strcmp(gpu->missing(), "driver not found") == 0, "%d, %s", gpu->count(),
          gpu->missing());
    expect_refused("gpu:*", PRECISION_FP32, "gpu:*: driver not found (devices: cpu:0");
    return expect_refused("cpu:0,gpu:0", PRECISION_FP32, "gpu:0: driver not found (devices: cpu:0");
}

static int old_gpu(void) {
    expect_refused("gpu:1", PRECISION_TF32,
                   "gpu:1: no tf32 without compute capability 8.0 (--precision=fp32");
    return expect_refused("gpu:1", PRECISION_BF16,
                          "gpu:1: no bf16 without compute capability 8.0 (--precision");
}

static void test_devices(void) {
    char line[200];
    CHECK(gpu->count() == 2, "%d", gpu->count());
    gpu->describe(1, line, sizeof line);
    CHECK(strcmp(line, "stand-in for a GPU, 1.1 GB, compute capability 9.0, driver for CUDA 13.0") == 0,
          "'%s'", line);
    expect_refused("gpu:2", PRECISION_FP32, "gpu:2: there is no such device (devices: cpu:0");
    const struct device device = {.backend = gpu, .name = "gpu:0"};
    for (int p = PRECISION_FP32; p <= PRECISION_TF32; p++)
        CHECK(gpu->lacks(&device, (enum precision)p) == NULL, "precision %d", p);
    for (int op = 0; op < OPS; op++)
        for (const struct kernel *const *kernel = gpu->kernels(&device, (enum op)op); *kernel; kernel++)
            CHECK(strcmp((*kernel)->name, "none") != 0, "operation %d", op);
}

/* --- memory --- */

static int leaves_behind(void) {
    void *block = NULL;
    fclose(stderr); /* where the stand-in names it */
    return cudaMalloc(&block, 100) == cudaSuccess ? 0 : 1;
}

static void *there; /* of a device, for a process that looks at it */
static int looks_at_it(void) {
    fclose(stderr); /* the sanitizers' report */
    return *(volatile char *)there;
}

static void test_memory(void) {
    CHECK(in_a_process("STANDIN_GPUS", "1", leaves_behind) == 99, "a leak is not seen");
    int count = 0;
    struct device *devices = open_devices("gpu:0,gpu:1", &count);
    struct error error = {0};
    static const size_t sizes[] = {0, 1, 255, 256, 257, 4096, 100000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        unsigned char host[100000];
        memset(host, 1, sizeof host);
        gpu->enter(&devices[(s + 1) % 2]);
        standin_fail(1); /* what enter cannot do is done later */
        gpu->enter(&devices[s % 2]);
        CHECK(gpu->allocate(&devices[s % 2], &there, sizes[s], "a test", &error) == OK, "%s", error.words);
        CHECK(there && (size_t)there % 256 == 0, "%zu bytes at %p", sizes[s], there);
        struct cudaPointerAttributes attributes = {0};
        CHECK(cudaPointerGetAttributes(&attributes, there) == cudaSuccess &&
                  attributes.device == (int)(s % 2) && attributes.type == cudaMemoryTypeDevice,
              "of %s, on device %d", devices[s % 2].name, attributes.device);
        CHECK(in_a_process("STANDIN_GPUS", "2", looks_at_it) != 0, "the host reads a device's memory");
        CHECK(gpu->copy(&devices[s % 2], host, there, sizes[s], &error) == OK, "%s", error.words);
        for (size_t i = 0; i < sizes[s]; i++)
            CHECK(host[i] == 0, "byte %zu of %zu is %d", i, sizes[s], host[i]);
        gpu->release(&devices[s % 2], there);
    }

    void *block = &count;
    CHECK(gpu->allocate(&devices[1], &block, (size_t)2 << 30, "a test", &error) == ERROR_DEVICE && !block,
          "2 GB of 1 GB");
    int line = 0;
    char rest[sizeof error.words] = "";
    CHECK(sscanf(error.words, "gpu:1: cudaMalloc(out, bytes): out of memory (code 2, memory.c:%d): %[^\n]",
                 &line, rest) == 2 &&
              line > 0 && strcmp(rest, "2147.5 MB wanted for a test, 1074 of 1074 MB free") == 0,
          "'%s'", error.words);
    CHECK(cudaPeekAtLastError() == cudaSuccess, "%s", cudaGetErrorName(cudaPeekAtLastError()));
    gpu->release(&devices[0], NULL);
    gpu->release_host(&devices[0], NULL);
    devices_close(devices, count);
    check_all_given_back("memory");
}

/* From the host over both GPUs and back, through pinned memory and through an array of the host. */
static int copies(void) {
    int count = 0;
    struct device *devices = open_devices("gpu:0,gpu:1", &count);
    struct error error = {0};
    void *pinned = NULL, *on[2] = {NULL, NULL};
    float from[FLOATS], to[FLOATS] = {0};
    for (int i = 0; i < FLOATS; i++) from[i] = (float)i + 0.5f;
    CHECK(gpu->allocate_host(&devices[1], &pinned, sizeof from, "a test", &error) == OK, "%s", error.words);
    for (int i = 0; i < FLOATS; i++) CHECK(((float *)pinned)[i] == 0.0f, "pinned[%d]", i);
    for (int d = 0; d < 2; d++)
        CHECK(gpu->allocate(&devices[d], &on[d], sizeof from, "a test", &error) == OK, "%s", error.words);
    CHECK(gpu->copy(&devices[0], on[0], from, sizeof from, &error) == OK, "%s", error.words);
    memset(from, 0, sizeof from); /* the copy is complete */
    CHECK(gpu->copy(&devices[0], on[1], on[0], sizeof from, &error) == OK, "%s", error.words);
    CHECK(gpu->copy(&devices[1], pinned, on[1], sizeof from, &error) == OK, "%s", error.words);
    CHECK(gpu->copy(&devices[0], to, pinned, sizeof to - 1, &error) == OK, "%s", error.words);
    CHECK(memcmp(to, pinned, sizeof to - 1) == 0 && to[FLOATS - 2] == (float)FLOATS - 1.5f, "%g",
          (double)to[FLOATS - 2]);
    CHECK(gpu->copy(&devices[1], to, on[1], 0, &error) == OK, "%s", error.words);
    CHECK(gpu->copy(&devices[1], to, on[1], sizeof to + 1, &error) == ERROR_DEVICE, "beyond the end");
    CHECK(strncmp(error.words,
                  "gpu:1: cudaMemcpyAsync(out, in, bytes, cudaMemcpyDefault, queue->stream): "
                  "invalid argument (code 1, memory.c:",
                  109) == 0,
          "'%s'", error.words);
    CHECK(cudaPeekAtLastError() == cudaSuccess, "%s", cudaGetErrorName(cudaPeekAtLastError()));
    for (int d = 0; d < 2; d++) gpu->release(&devices[d], on[d]);
    gpu->release_host(&devices[1], pinned);
    devices_close(devices, count);
    check_all_given_back("copies");
    return check_end();
}

/* --- order --- */

/* A value on a GPU that work is queued on without waiting, as kernels do. */
struct cell {
    struct device *devices;
    int count;
    float *values; /* [4] on gpu:0 */
    struct error error;
};

static bool cell_open(struct cell *cell, const char *devices) {
    *cell = (struct cell){0};
    cell->devices = open_devices(devices, &cell->count);
    void *block = NULL;
    CHECK(cell->devices &&
              gpu->allocate(cell->devices, &block, 4 * sizeof(float), "a test", &cell->error) == OK,
          "%s", cell->error.words);
    cell->values = block;
    return block != NULL;
}

static void cell_close(struct cell *cell) {
    gpu->release(cell->devices, cell->values);
    devices_close(cell->devices, cell->count);
    check_all_given_back("a test");
}

static void queue_copy(struct cell *cell, void *out, const void *in) {
    struct queue *queue = gpu_queue(cell->devices, &cell->error);
    CHECK(queue && cudaMemcpyAsync(out, in, sizeof(float), cudaMemcpyDefault, queue->stream) == cudaSuccess,
          "%s", cell->error.words);
}

static void test_order(void) {
    struct cell cell;
    if (!cell_open(&cell, "gpu:0")) return;
    float *pinned = NULL;
    void *block = NULL;
    CHECK(gpu->allocate_host(cell.devices, &block, 2 * sizeof *pinned, "a test", &cell.error) == OK, "%s",
          cell.error.words);
    pinned = block;
    pinned[0] = 3.0f;
    queue_copy(&cell, cell.values, &pinned[0]);
    queue_copy(&cell, &pinned[1], cell.values);
    CHECK(pinned[1] == 0.0f && standin_waiting() == 2, "done before anybody waits: %g", (double)pinned[1]);
    CHECK(gpu->finish(cell.devices, &cell.error) == OK, "%s", cell.error.words);
    CHECK(pinned[1] == 3.0f && standin_waiting() == 0, "%g, %ld waiting", (double)pinned[1],
          standin_waiting());

    pinned[0] = 4.0f; /* a copy comes after what is queued, and is complete */
    queue_copy(&cell, cell.values, &pinned[0]);
    CHECK(gpu->copy(cell.devices, &pinned[1], cell.values, sizeof(float), &cell.error) == OK, "%s",
          cell.error.words);
    CHECK(pinned[1] == 4.0f, "%g", (double)pinned[1]);
    gpu->release_host(cell.devices, pinned);
    cell_close(&cell);
}

/* --- recordings --- */

static float read_cell(struct cell *cell, int i) {
    float value = -1.0f;
    CHECK(gpu->copy(cell->devices, &value, cell->values + i, sizeof value, &cell->error) == OK, "%s",
          cell->error.words);
    return value;
}

static void test_recording(void) {
    struct cell cell;
    if (!cell_open(&cell, "gpu:0,gpu:0")) return;
    const struct device *device = cell.devices;
    const float one = 1.0f, two = 2.0f;
    void *recording = NULL;
    CHECK(gpu->copy(device, cell.values, &one, sizeof one, &cell.error) == OK, "%s", cell.error.words);
    CHECK(gpu->record(device, &cell.error) == OK, "%s", cell.error.words);
    queue_copy(&cell, cell.values + 1, cell.values);
    queue_copy(&cell, cell.values + 2, cell.values + 1);
    CHECK(gpu->recorded(device, &recording, &cell.error) == OK && recording, "%s", cell.error.words);
    const char *why = "unknown";
    CHECK(gpu->recorded_nodes(device, &why) == 2 && !why, "%d nodes, %s", gpu->recorded_nodes(device, &why),
          why ? why : "");
    CHECK(read_cell(&cell, 2) == 0.0f, "recording does the work");
    for (int i = 0; i < 2; i++) {
        CHECK(gpu->replay(device, recording, &cell.error) == OK, "%s", cell.error.words);
        CHECK(read_cell(&cell, 2) == (i ? two : one), "replay %d: %g", i, (double)read_cell(&cell, 2));
        CHECK(gpu->copy(device, cell.values, &two, sizeof two, &cell.error) == OK, "%s", cell.error.words);
    }
    CHECK(gpu->replay(device, recording, &cell.error) == OK, "%s", cell.error.words);
    gpu->forget(device, recording); /* under way: the stand-in would end the test */
    gpu->forget(device, NULL);
    CHECK(standin_open("graph") == 0 && standin_open("executable graph") == 0, "graphs are left");

    for (int kind = 0; kind < 4; kind++) { /* what cannot be recorded; a kernel whose code is not there yet */
        struct error refused = {0};
        void *block = NULL;
        recording = &cell;
        CHECK(gpu->record(device, &cell.error) == OK, "%s", cell.error.words);
        queue_copy(&cell, cell.values + 3, cell.values);
        const int code =
            kind == 0   ? gpu->finish(device, &refused)
            : kind == 1 ? gpu->allocate(device, &block, 100, "a test", &refused)
            : kind == 2 ? gpu->vectors->exchange(device, cell.values + 1, cell.values + 2, 1, 0.5f, &refused)
                        : gpu->copy(device, &block, cell.values, sizeof(float), &refused);
        CHECK(code == ERROR_DEVICE && !block, "kind %d: code %d", kind, code);
        CHECK(gpu->recorded(device, &recording, &cell.error) == OK && !recording, "kind %d: %s", kind,
              cell.error.words);
        CHECK(gpu->recorded_nodes(device, &why) == 0 && why, "kind %d: it is not said why", kind);
        CHECK(cudaPeekAtLastError() == cudaSuccess, "kind %d: %s", kind,
              cudaGetErrorName(cudaPeekAtLastError()));
        CHECK(read_cell(&cell, 3) == 0.0f, "kind %d: what could not be recorded was done", kind);
    }
    for (int run = 0; run < 2; run++) { /* once it was launched, it can */
        if (run == 1) CHECK(gpu->record(device, &cell.error) == OK, "%s", cell.error.words);
        CHECK(gpu->vectors->exchange(device, cell.values + 1, cell.values + 2, 1, 0.5f, &cell.error) == OK,
              "%s", cell.error.words);
    }
    CHECK(gpu->recorded(device, &recording, &cell.error) == OK && recording, "%s", cell.error.words);
    gpu->forget(device, recording);
    queue_copy(&cell, cell.values + 3, cell.values);
    CHECK(read_cell(&cell, 3) == two, "after recordings that failed: %g", (double)read_cell(&cell, 3));
    cell_close(&cell);
}

/* --- threads --- */

struct visitor {
    struct device *device;
    cudaStream_t stream;
    float value;
    struct error error;
};

static void visit(void *argument) {
    struct visitor *visitor = argument;
    const float number = visitor->value;
    void *block = NULL;
    gpu->enter(visitor->device);
    struct queue *queue = gpu_queue(visitor->device, &visitor->error);
    if (!queue || gpu_blas(visitor->device, queue, &visitor->error) ||
        gpu_dnn(visitor->device, queue, &visitor->error) ||
        gpu->allocate(visitor->device, &block, sizeof(float), "a visit", &visitor->error))
        return;
    visitor->stream = queue->stream;
    visitor->value = 0.0f;
    if (gpu->copy(visitor->device, block, &number, sizeof number, &visitor->error) == OK)
        gpu->copy(visitor->device, &visitor->value, block, sizeof number, &visitor->error);
    gpu->release(visitor->device, block);
}

static void test_threads(void) {
    enum { VISITORS = 6 };
    struct visitor visitors[VISITORS] = {0};
    struct world_thread *threads[VISITORS] = {NULL};
    struct world *world = NULL;
    struct error error = {0};
    int count = 0;
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    struct device *devices = open_devices("gpu:0,gpu:1,gpu:0", &count);
    for (int v = 0; v < VISITORS; v++) {
        visitors[v] = (struct visitor){.device = &devices[v % 3], .value = (float)v + 1.0f};
        CHECK(world_spawn(world, "visitor", NULL, visit, &visitors[v], &threads[v], &error) == OK, "%s",
              error.words);
    }
    for (int v = 0; v < VISITORS; v++) world_join(threads[v]);
    for (int v = 0; v < VISITORS; v++) {
        CHECK(visitors[v].error.code == OK && visitors[v].value == (float)v + 1.0f, "%d: %s", v,
              visitors[v].error.words);
        for (int other = 0; other < v; other++)
            CHECK(visitors[v].stream != visitors[other].stream, "%d and %d share a queue", v, other);
    }
    CHECK(standin_open("stream") == VISITORS && standin_open(NULL) == 3 * VISITORS,
          "%d streams, %d things in all: a queue is a stream and two handles", standin_open("stream"),
          standin_open(NULL));
    /* One of its two devices keeps gpu:0 open. */
    gpu->close(&devices[2]);
    CHECK(standin_open("stream") == VISITORS, "closed too early: %d streams", standin_open("stream"));
    gpu->close(&devices[1]);
    CHECK(standin_open("stream") == 4, "%d streams of gpu:0", standin_open("stream"));
    devices_close(devices, 1);
    check_all_given_back("threads");
    world_close(world);
}

/* A thread that was there before and after has a new queue, and only where devices are open. */
static void test_reopening(void) {
    for (int i = 0; i < 3; i++) {
        int count = 0;
        struct error error = {0};
        struct device *devices = open_devices(i == 1 ? "gpu:1" : "gpu:0,gpu:1", &count);
        const struct device closed = {.backend = gpu, .name = "gpu:0"};
        for (int d = 0; d < count; d++) {
            struct queue *queue = gpu_queue(&devices[d], &error);
            CHECK(queue && queue == gpu_queue(&devices[d], &error), "%s", error.words);
            CHECK(queue->label == devices[d].label && !queue->blas && !queue->dnn, "%d", queue->label);
            CHECK(gpu->finish(&devices[d], &error) == OK, "%s", error.words);
        }
        if (i == 1) {
            CHECK(!gpu_queue(&closed, &error) && error.code == ERROR_INTERNAL, "%s", error.words);
            CHECK(strcmp(error.words, "gpu:0: used before it was opened") == 0, "'%s'", error.words);
        }
        CHECK(standin_open("stream") == count, "%d streams of %d", standin_open("stream"), count);
        devices_close(devices, count);
        check_all_given_back("opened again");
    }
    devices_close(NULL, 0);
}

/* --- failures --- */

/* All that the backend does, once; gives back what it got whatever fails. */
static int use_all(struct device *devices, struct error *error) {
    void *on[2] = {NULL, NULL}, *pinned = NULL, *recording = NULL;
    float value = 1.0f;
    int code = gpu->allocate_host(&devices[0], &pinned, sizeof value, "a test", error);
    for (int d = 0; code == OK && d < 2; d++) {
        struct queue *queue = gpu_queue(&devices[d], error);
        code = queue ? OK : error->code;
        if (code == OK) code = gpu_blas(&devices[d], queue, error);
        if (code == OK) code = gpu_dnn(&devices[d], queue, error);
        if (code == OK) code = gpu->allocate(&devices[d], &on[d], sizeof value, "a test", error);
    }
    if (code == OK) code = gpu->copy(&devices[0], on[0], &value, sizeof value, error);
    if (code == OK) code = gpu->record(&devices[0], error);
    if (code == OK) {
        struct queue *queue = gpu_queue(&devices[0], error);
        const bool copied =
            cudaMemcpyAsync(on[1], on[0], sizeof value, cudaMemcpyDefault, queue->stream) == 0;
        code = gpu->recorded(&devices[0], &recording, error);
        if (!copied && code == OK) code = error_set(error, ERROR_DEVICE, "gpu:0: not copied");
    }
    if (code == OK) code = gpu->replay(&devices[0], recording, error);
    if (code == OK) code = gpu->finish(&devices[0], error);
    if (code == OK) code = gpu->copy(&devices[1], pinned, on[1], sizeof value, error);
    if (code == OK) CHECK(*(float *)pinned == value, "%g", (double)*(float *)pinned);
    gpu->forget(&devices[0], recording);
    for (int d = 0; d < 2; d++) gpu->release(&devices[d], on[d]);
    gpu->release_host(&devices[0], pinned);
    return code;
}

static void test_each_call_failing(void) {
    bool through = false;
    long failed = 0;
    for (long n = 1; !through && n < 300; n++) {
        const struct device_settings settings = {.precision = PRECISION_BF16};
        struct device *devices = NULL;
        struct error error = {0};
        int count = 0;
        bool shared = false;
        const long before = standin_calls();
        standin_fail(n);
        int code = devices_open("gpu:0,gpu:1", &settings, &devices, &count, &shared, &error);
        if (code == OK) code = use_all(devices, &error);
        devices_close(devices, count);
        through = standin_calls() - before < n;
        standin_fail(0);
        failed += code != OK;
        CHECK(code == OK || code == ERROR_DEVICE, "call %ld: code %d", n, code);
        CHECK(code == error.code && (code == OK || strncmp(error.words, "gpu:", 4) == 0), "call %ld: %s", n,
              error.words);
        CHECK(!strchr(error.words, '\n'), "call %ld: %s", n, error.words);
        CHECK(!through || code == OK, "no call failed: %s", error.words);
        check_all_given_back(error.words);
    }
    CHECK(through && failed > 30, "%ld failures", failed);
}

static void test_lost(void) {
    int count = 0;
    struct device *devices = open_devices("gpu:0,gpu:1", &count);
    struct error error = {0}, again = {0};
    void *block = NULL, *other = NULL;
    CHECK(gpu->allocate(&devices[0], &block, 100, "a test", &error) == OK, "%s", error.words);
    CHECK(gpu->allocate(&devices[1], &other, 100, "a test", &error) == OK, "%s", error.words);
    standin_lose(0, cudaErrorIllegalAddress);
    struct queue *queue = gpu_queue(&devices[0], &error);
    CHECK(queue && cudaMemsetAsync(block, 1, 100, queue->stream) == cudaSuccess, "%s", error.words);
    CHECK(gpu->finish(&devices[0], &error) == ERROR_DEVICE, "code %d", error.code);
    const char *words =
        "gpu:0: cudaStreamSynchronize(queue->stream): an illegal memory access was encountered "
        "(code 700, memory.c:";
    CHECK(strncmp(error.words, words, strlen(words)) == 0, "'%s'", error.words);
    CHECK(gpu->copy(&devices[0], &count, block, 1, &again) == ERROR_DEVICE, "a lost GPU goes on");
    again = (struct error){0};
    CHECK(gpu->copy(&devices[1], other, other, 1, &again) == OK, "the other GPU is lost, too: %s",
          again.words);
    gpu->release(&devices[0], block);
    gpu->release(&devices[1], other);
    devices_close(devices, 2);
    check_all_given_back("a lost GPU");
    standin_lose(0, cudaSuccess);
}

int main(void) {
    /* First, as the stand-in of this process is not open yet. */
    CHECK(in_a_process("STANDIN_GPUS", "0", without_driver) == 0, "without a driver");
    CHECK(in_a_process("STANDIN_CAPABILITY", "75", old_gpu) == 0, "compute capability 7.5");
    CHECK(in_a_process("STANDIN_PEER", "0", copies) == 0, "without peer access");
    CHECK(in_a_process("STANDIN_PEERS", "0", copies) == 0, "with as many peers as there may be");
    test_devices();
    test_memory();
    copies();
    test_order();
    test_recording();
    test_threads();
    test_reopening();
    test_each_call_failing();
    test_lost();
    return check_end();
}
