/* What everything costs on a GPU that computes nothing: a launch, graphs of 1 to 1,000 nodes, events, waits,
 * copies of 4 bytes, and a wake of another thread by futex.
 *
 *   bench/gpu_latency [spin|yield|block [RUNS]]      how a thread waits for the GPU, spin unless given; 1000
 *
 * Prints a line of JSON for each, as soon as it is known: microseconds, the median, the least and the 99th
 * percentile of RUNS single ones. What fails is a line with its status, and the rest goes on. Needs CUDA's
 * runtime alone, so it is there when the program is not. Exit code 4 where there is no GPU, 1 when a call
 * failed or a kernel did not run as often as it was launched. */
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../cuda/launch.h"

namespace {

KERNEL count_up(unsigned *x) {
    EACH(i, (size_t)1) x[i] += 1;
}

#ifdef __CUDACC__
/* Begins while the kernel before it is still at work, and waits for it before it touches memory. */
__global__ void count_up_dependent(unsigned *x) {
#    if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#    endif
    if (threadIdx.x == 0) *x += 1;
}

cudaError_t launch_dependent(cudaStream_t stream, unsigned *x) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = 256;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, count_up_dependent, x);
}
#else
/* The stand-in knows no other order than one after the other. */
cudaError_t launch_dependent(cudaStream_t stream, unsigned *x) {
    return LAUNCH(stream, 1, count_up, x);
}
#endif

struct bench {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    unsigned *counter; /* on the GPU: how many kernels have run */
    unsigned launched; /* kernels that should have */
    uint32_t *pinned, *pageable;
    int runs;
    bool failed;
};

double now_us() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_nsec);
}

bool say_status(bench &b, const char *what, cudaError_t code) {
    if (code == cudaSuccess) return true;
    cudaGetLastError();
    b.failed = true;
    printf("{\"what\": \"%s\", \"status\": \"%s: %s\"}\n", what, cudaGetErrorName(code),
           cudaGetErrorString(code));
    return false;
}

void say_times(const char *what, std::vector<double> &us) {
    std::sort(us.begin(), us.end());
    printf("{\"what\": \"%s\", \"median_us\": %.3f, \"least_us\": %.3f, \"p99_us\": %.3f, \"runs\": %zu}\n",
           what, us[us.size() / 2], us.front(), us[us.size() * 99 / 100], us.size());
}

/* `work` does it once, to its end; `before`, which is not timed, prepares it. */
template <class Before, class Work> void time_singly(bench &b, const char *what, Before before, Work work) {
    std::vector<double> us;
    for (int i = -b.runs / 10 - 1; i < b.runs; i++) {
        if (!say_status(b, what, before())) return;
        const double began = now_us();
        const cudaError_t code = work();
        const double took = now_us() - began;
        if (!say_status(b, what, code)) return;
        if (i >= 0) us.push_back(took);
    }
    say_times(what, us);
}

template <class Work> void time_singly(bench &b, const char *what, Work work) {
    time_singly(
        b, what, [] { return cudaSuccess; }, work);
}

cudaError_t launch(bench &b) {
    b.launched++;
    return LAUNCH(b.stream, 1, count_up, b.counter);
}

cudaError_t launch_after(bench &b) {
    b.launched++;
    return launch_dependent(b.stream, b.counter);
}

cudaError_t wait(bench &b) {
    return cudaStreamSynchronize(b.stream);
}

/* How long a kernel takes when the next one is queued already: the device's own time for `runs` of them. */
template <class Launch> void time_queued(bench &b, const char *what, Launch one) {
    float ms = 0.0f;
    cudaError_t code = wait(b);
    if (code == cudaSuccess) code = cudaEventRecord(b.begin, b.stream);
    const double began = now_us();
    for (int i = 0; i < b.runs && code == cudaSuccess; i++) code = one(b);
    const double queued = now_us() - began;
    if (code == cudaSuccess) code = cudaEventRecord(b.end, b.stream);
    if (code == cudaSuccess) code = wait(b);
    const double waited = now_us() - began;
    if (code == cudaSuccess) code = cudaEventElapsedTime(&ms, b.begin, b.end);
    if (!say_status(b, what, code)) return;
    printf("{\"what\": \"%s\", \"call_us\": %.3f, \"wall_us\": %.3f, \"device_us\": %.3f, \"runs\": %d}\n",
           what, queued / b.runs, waited / b.runs, 1e3 * static_cast<double>(ms) / b.runs, b.runs);
}

/* --- graphs --- */

cudaError_t record(bench &b, int nodes, bool dependent, cudaGraphExec_t *exec, double *instantiate_us) {
    cudaGraph_t graph = nullptr;
    cudaError_t code = cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal);
    if (code != cudaSuccess) return code;
    for (int n = 0; n < nodes && code == cudaSuccess; n++)
        code = dependent ? launch_dependent(b.stream, b.counter) : LAUNCH(b.stream, 1, count_up, b.counter);
    const cudaError_t ended = cudaStreamEndCapture(b.stream, &graph);
    if (code == cudaSuccess) code = ended;
    const double began = now_us();
    if (code == cudaSuccess) code = cudaGraphInstantiate(exec, graph, 0);
    *instantiate_us = now_us() - began;
    if (graph) cudaGraphDestroy(graph);
    return code;
}

cudaError_t replay(bench &b, cudaGraphExec_t exec, int nodes) {
    b.launched += static_cast<unsigned>(nodes);
    return cudaGraphLaunch(exec, b.stream);
}

cudaError_t time_graph(bench &b, cudaGraphExec_t exec, int nodes, bool dependent, double instantiate_us) {
    const int runs = std::max(b.runs / (nodes >= 1000 ? 10 : 1), 2);
    std::vector<double> call, waited;
    float ms = 0.0f;
    cudaError_t code = cudaSuccess;
    for (int i = -2; i < runs && code == cudaSuccess; i++) { /* one at a time */
        const double began = now_us();
        code = replay(b, exec, nodes);
        const double queued = now_us();
        if (code == cudaSuccess) code = wait(b);
        if (i < 0) continue;
        call.push_back(queued - began);
        waited.push_back(now_us() - began);
    }
    if (code == cudaSuccess) code = cudaEventRecord(b.begin, b.stream);
    for (int i = 0; i < runs && code == cudaSuccess; i++) code = replay(b, exec, nodes);
    if (code == cudaSuccess) code = cudaEventRecord(b.end, b.stream);
    if (code == cudaSuccess) code = wait(b);
    if (code == cudaSuccess) code = cudaEventElapsedTime(&ms, b.begin, b.end);
    if (code != cudaSuccess) return code;
    std::sort(call.begin(), call.end());
    std::sort(waited.begin(), waited.end());
    const double device_us = 1e3 * static_cast<double>(ms) / runs;
    printf("{\"what\": \"graph\", \"nodes\": %d, \"dependent\": %s, \"instantiate_us\": %.1f, \"call_us\": "
           "%.3f, \"waited_us\": %.3f, \"device_us\": %.3f, \"node_us\": %.3f, \"runs\": %d}\n",
           nodes, dependent ? "true" : "false", instantiate_us, call[call.size() / 2],
           waited[waited.size() / 2], device_us, device_us / nodes, runs);
    return cudaSuccess;
}

void measure_graph(bench &b, int nodes, bool dependent) {
    char what[64];
    snprintf(what, sizeof what, "graph of %d nodes%s", nodes, dependent ? ", dependent launch" : "");
    cudaGraphExec_t exec = nullptr;
    double instantiate_us = 0.0;
    cudaError_t code = record(b, nodes, dependent, &exec, &instantiate_us);
    if (code == cudaSuccess) code = time_graph(b, exec, nodes, dependent, instantiate_us);
    say_status(b, what, code);
    if (exec) cudaGraphExecDestroy(exec);
}

/* --- a thread that wakes another --- */

struct pair {
    std::atomic<uint32_t> word{0}; /* what the other waits for */
    std::atomic<double> woken{0.0};
    int runs;
};

void futex(std::atomic<uint32_t> &word, int what, uint32_t value) {
    const timespec most = {.tv_sec = 1, .tv_nsec = 0};
    syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), what | FUTEX_PRIVATE_FLAG, value,
            what == FUTEX_WAIT ? &most : nullptr, nullptr, 0);
}

void sleep_and_tell(pair &p) {
    for (uint32_t i = 1; i <= static_cast<uint32_t>(p.runs); i++) {
        while (p.word.load() < i) futex(p.word, FUTEX_WAIT, i - 1);
        p.woken.store(now_us());
    }
}

void measure_futex(const bench &b) {
    std::vector<double> us;
    pair p;
    p.runs = std::max(b.runs / 4, 2);
    std::thread sleeper(sleep_and_tell, std::ref(p));
    for (uint32_t i = 1; i <= static_cast<uint32_t>(p.runs); i++) {
        usleep(200); /* it sleeps by then */
        p.woken.store(0.0);
        const double began = now_us();
        p.word.store(i);
        futex(p.word, FUTEX_WAKE, 1);
        while (p.woken.load() <= 0.0) std::this_thread::yield();
        us.push_back(p.woken.load() - began);
    }
    sleeper.join();
    say_times("futex: from wake to awake", us);
}

/* --- all of it --- */

void measure(bench &b) {
    std::vector<double> clock;
    for (int i = 0; i < b.runs; i++) {
        const double began = now_us();
        clock.push_back(now_us() - began);
    }
    say_times("asking the clock", clock);
    time_singly(b, "synchronize, nothing queued", [&] { return wait(b); });
    time_singly(
        b, "launch, call alone", [&] { return wait(b); }, [&] { return launch(b); });
    time_singly(b, "launch and synchronize", [&] {
        const cudaError_t code = launch(b);
        return code == cudaSuccess ? wait(b) : code;
    });
    time_queued(b, "launches, one after the other", launch);
    time_queued(b, "dependent launches, one after the other", launch_after);
    for (const int nodes : {1, 20, 80, 1000})
        for (const bool dependent : {false, true}) measure_graph(b, nodes, dependent);
    time_singly(
        b, "event record", [&] { return wait(b); }, [&] { return cudaEventRecord(b.end, b.stream); });
    time_singly(b, "event record and synchronize", [&] {
        const cudaError_t code = cudaEventRecord(b.end, b.stream);
        return code == cudaSuccess ? cudaEventSynchronize(b.end) : code;
    });
    time_singly(b, "event query, reached", [&] { return cudaEventQuery(b.end); });
    time_singly(b, "stream waits for an event that is reached",
                [&] { return cudaStreamWaitEvent(b.stream, b.end, 0); });
    struct {
        const char *what;
        void *out, *in;
        cudaMemcpyKind kind;
    } copies[] = {
        {"copy of 4 bytes from pinned memory, waited for", b.counter + 1, b.pinned, cudaMemcpyHostToDevice},
        {"copy of 4 bytes to pinned memory, waited for", b.pinned, b.counter + 1, cudaMemcpyDeviceToHost},
        {"copy of 4 bytes from other memory, waited for", b.counter + 1, b.pageable, cudaMemcpyHostToDevice},
        {"copy of 4 bytes to other memory, waited for", b.pageable, b.counter + 1, cudaMemcpyDeviceToHost},
        {"copy of 4 bytes on the GPU, waited for", b.counter + 1, b.counter + 2, cudaMemcpyDeviceToDevice}};
    for (const auto &copy : copies)
        time_singly(b, copy.what, [&] {
            const cudaError_t code = cudaMemcpyAsync(copy.out, copy.in, 4, copy.kind, b.stream);
            return code == cudaSuccess ? wait(b) : code;
        });
    measure_futex(b);
    unsigned counted = 0;
    if (say_status(b, "reading the counter",
                   cudaMemcpy(&counted, b.counter, sizeof counted, cudaMemcpyDeviceToHost)) &&
        counted != b.launched) {
        printf("{\"what\": \"kernels that ran\", \"status\": \"%u, expected %u\"}\n", counted, b.launched);
        b.failed = true;
    }
}

bool open(bench &b, unsigned flags) {
    return say_status(b, "cudaInitDevice", cudaInitDevice(0, flags, cudaInitDeviceFlagsAreValid)) &&
           say_status(b, "cudaSetDevice", cudaSetDevice(0)) &&
           say_status(b, "cudaStreamCreateWithFlags",
                      cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking)) &&
           say_status(b, "cudaEventCreateWithFlags", cudaEventCreateWithFlags(&b.begin, cudaEventDefault)) &&
           say_status(b, "cudaEventCreateWithFlags", cudaEventCreateWithFlags(&b.end, cudaEventDefault)) &&
           say_status(b, "cudaMalloc", cudaMalloc(reinterpret_cast<void **>(&b.counter), 256)) &&
           say_status(b, "cudaMemset", cudaMemset(b.counter, 0, 256)) &&
           say_status(b, "cudaDeviceSynchronize", cudaDeviceSynchronize()) &&
           say_status(b, "cudaHostAlloc", cudaHostAlloc(reinterpret_cast<void **>(&b.pinned), 64, 0)) &&
           (b.pageable = static_cast<uint32_t *>(calloc(16, 4))) != nullptr;
}

void close(bench &b) {
    if (b.begin) cudaEventDestroy(b.begin);
    if (b.end) cudaEventDestroy(b.end);
    if (b.stream) cudaStreamDestroy(b.stream);
    if (b.counter) cudaFree(b.counter);
    if (b.pinned) cudaFreeHost(b.pinned);
    free(b.pageable);
}

} // namespace

int main(int count, char **arguments) {
    const struct {
        const char *name;
        unsigned flags;
    } ways[] = {{"spin", cudaDeviceScheduleSpin},
                {"yield", cudaDeviceScheduleYield},
                {"block", cudaDeviceScheduleBlockingSync}};
    const auto *way = ways, *const end = ways + 3;
    while (count > 1 && way < end && strcmp(way->name, arguments[1]) != 0) way++;
    bench b = {};
    b.runs = count > 2 ? atoi(arguments[2]) : 1000;
    if (way == end || b.runs < 10 || b.runs > 1000000 || count > 3) {
        fprintf(stderr, "usage: gpu_latency [spin|yield|block [RUNS]], RUNS from 10 to 1000000\n");
        return 2;
    }
    setvbuf(stdout, nullptr, _IOLBF, 0);
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        fprintf(stderr, "gpu_latency: no GPU here\n");
        return 4;
    }
    if (open(b, way->flags)) measure(b);
    close(b);
    return b.failed ? 1 : 0;
}
