/* The stand-in's devices, streams, events and graphs. A stream is a line of closures; they run when somebody
 * waits for them: for the stream, for an event behind them, for the device, or when another stream's work
 * waits for such an event and is itself waited for. Or, when a test wants it so, at once: then what the host
 * puts where work that is queued already reads it comes too late. */
#include "runtime.hh"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace standin {

thread_local int current = 0;
thread_local cudaError_t last = cudaSuccess;
thread_local cudaStream_t capturing = nullptr;

static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}

static void say_counts() {
    const struct standin_counts n = standin_counts();
    fprintf(stderr,
            "stand-in: recorded %ld queued %ld kernels %ld converts %ld scalars %ld marks %ld launches %ld "
            "waits %ld ahead %ld calls %ld contests %ld\n",
            n.recorded, n.queued, n.kernels, n.converts, n.scalars, n.marks, n.launches, n.waits, n.ahead,
            n.calls, n.contests);
    if (number("STANDIN_COUNTS", 0) < 2) return;
    for (const auto &[name, count] : all().kinds) fprintf(stderr, "stand-in: %s %ld\n", name.c_str(), count);
}

/* What was not given back is a leak, whoever else has looked. */
static void at_exit() {
    call c;
    int left = 0;
    if (number("STANDIN_WAITS", 0)) fprintf(stderr, "stand-in: %ld waits\n", all().waits);
    if (number("STANDIN_COUNTS", 0)) say_counts();
    for (const auto &[kind, n] : all().open) {
        if (n != 0) fprintf(stderr, "stand-in: %d of kind \"%s\" not given back\n", n, kind.c_str());
        left += n != 0;
    }
    if (left == 0) return;
    fflush(nullptr);
    _exit(99);
}

state::state() {
    gpus.resize(static_cast<size_t>(number("STANDIN_GPUS", 2)));
    memory = static_cast<size_t>(number("STANDIN_MEMORY", 1024)) << 20;
    capability = static_cast<int>(number("STANDIN_CAPABILITY", 90));
    peer = number("STANDIN_PEER", 1) != 0;
    peers = number("STANDIN_PEERS", 8);
    eager = number("STANDIN_EAGER", 0) != 0;
    dry = number("STANDIN_DRY", 0) != 0;
    captures = number("STANDIN_CAPTURE", 1) != 0;
    fail_at = number("STANDIN_FAIL", 0);
    hang_at = number("STANDIN_HANG", 0);
    break_at = number("STANDIN_BREAK", 0);
    for (size_t d = 0; d < gpus.size(); d++) {
        gpus[d].legacy = std::make_shared<line>();
        gpus[d].legacy->device = static_cast<int>(d);
    }
    atexit(at_exit);
}

state &all() {
    static state *const one = new state; /* never destroyed: threads may still be there at exit */
    return *one;
}

call::call() {
    all().lock.lock();
    all().depth++;
}
call::~call() {
    if (--all().depth == 0) expose(0);
    all().lock.unlock();
}

cudaError_t done(cudaError_t code) {
    if (code != cudaSuccess) last = code;
    return code;
}

bool fails(const char *) {
    call c;
    state &s = all();
    s.calls++;
    return s.fail_at > 0 && --s.fail_at == 0;
}

cudaError_t obstacle(const char *name, cudaError_t when_failing) {
    if (fails(name)) return when_failing;
    if (all().gpus.empty()) return cudaErrorNoDevice;
    return all().gpus[static_cast<size_t>(current)].lost;
}

bool forbidden_now() {
    call c;
    if (!capturing || capturing->mode == cudaStreamCaptureModeRelaxed) return false;
    capturing->invalidated = true;
    return true;
}

void count(const char *kind, int change) {
    call c;
    all().open[kind] += change;
}

std::shared_ptr<line> line_of(cudaStream_t stream) {
    if (!stream) return all().gpus[static_cast<size_t>(current)].legacy;
    return all().streams.count(stream) ? stream->line : nullptr;
}

int device_of(cudaStream_t stream) {
    call c;
    const std::shared_ptr<line> there = line_of(stream);
    return there ? there->device : current;
}

void meet(const std::shared_ptr<line> &there, uint64_t until) {
    if (there->met >= until) return;
    there->met = until;
    all().waits++;
    if (until < there->queued) all().counts.ahead++;
}

static void push(const std::shared_ptr<line> &there, item next) {
    there->items.push_back(std::move(next));
    there->queued++;
    if (all().eager) run(there, there->queued);
}

static void note(const item &one, bool replayed) {
    struct standin_counts &counts = all().counts;
    (replayed ? counts.recorded : counts.queued)++;
    counts.kernels += one.name != nullptr;
    counts.converts +=
        one.name && (strcmp(one.name, "convert") == 0 || strcmp(one.name, "reform<bf16>") == 0);
    counts.scalars += one.name && strcmp(one.name, "a product that is one number") == 0;
    all().kinds[one.name ? one.name : "a copy"]++;
}

cudaError_t load(cudaStream_t stream, const std::string &kernel) {
    call c;
    const bool known = !all().loaded.insert({device_of(stream), kernel}).second;
    if (known || !stream || !all().streams.count(stream) || !stream->capture) return cudaSuccess;
    all().loaded.erase({device_of(stream), kernel}); /* it is not brought now either */
    stream->invalidated = true;
    return done(cudaErrorStreamCaptureUnsupported);
}

void contest() {
    call c;
    all().counts.contests++;
}

cudaError_t queue(cudaStream_t stream, const char *name, std::function<void()> work, bool everywhere,
                  std::shared_ptr<bool> held) {
    call c;
    const std::shared_ptr<line> there = line_of(stream);
    if (!there) return done(cudaErrorInvalidResourceHandle);
    /* A kernel goes to a stream of the current device only; a copy may go to any. */
    if (!everywhere && there->device != current) return done(cudaErrorInvalidResourceHandle);
    if (all().gpus[static_cast<size_t>(there->device)].lost)
        return done(all().gpus[static_cast<size_t>(there->device)].lost);
    if (!stream && capturing) return forbidden_now(), done(cudaErrorStreamCaptureImplicit);
    if (stream && stream->capture) {
        if (stream->invalidated) return done(cudaErrorStreamCaptureInvalidated);
        stream->capture->push_back({name, std::move(work), everywhere});
        return cudaSuccess;
    }
    item next = {name, std::move(work), everywhere, false, std::move(held)};
    note(next, false);
    push(there, std::move(next));
    return cudaSuccess;
}

/* Runs what stands before place `until` of the line. Who wants all of it and meets what never begins would
 * never come back. */
cudaError_t run(const std::shared_ptr<line> &there, uint64_t until) {
    gpu &on = all().gpus[static_cast<size_t>(there->device)];
    while (there->done < until && !there->items.empty()) {
        if (there->items.front().held && *there->items.front().held) {
            if (until != UINT64_MAX) break;
            fprintf(stderr, "stand-in: a wait without end, for a collective that hangs on gpu:%d\n",
                    there->device);
            abort();
        }
        item next = std::move(there->items.front());
        there->items.pop_front();
        if (on.doomed && !on.lost) on.lost = on.doomed;
        if (!on.lost && !(all().dry && next.name && next.replayed)) {
            expose(next.everywhere ? every_device() : 1u << there->device | on.peers);
            if (next.work) next.work();
        }
        there->done++;
    }
    return on.lost;
}

cudaError_t run_device(int device) {
    run(all().gpus[static_cast<size_t>(device)].legacy, UINT64_MAX);
    for (cudaStream_t stream : all().streams)
        if (stream->line->device == device) run(stream->line, UINT64_MAX);
    return all().gpus[static_cast<size_t>(device)].lost;
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static bool is_device(int device) {
    return device >= 0 && static_cast<size_t>(device) < all().gpus.size();
}

} // namespace standin

using namespace standin;

/* --- tests --- */

void standin_fail(long n) {
    call c;
    all().fail_at = n;
}
void standin_hang(long n) {
    call c;
    all().hang_at = n;
}
void standin_break(long n) {
    call c;
    all().break_at = n;
}
long standin_calls(void) {
    call c;
    return all().calls;
}
int standin_open(const char *kind) {
    call c;
    int n = 0;
    for (const auto &[name, open] : all().open)
        if (!kind || name == kind) n += open;
    return n;
}
void standin_lose(int device, cudaError_t error) {
    call c;
    all().gpus[static_cast<size_t>(device)].doomed = error;
    if (!error) all().gpus[static_cast<size_t>(device)].lost = error;
}
long standin_waits(void) {
    call c;
    return all().waits;
}
struct standin_counts standin_counts(void) {
    call c;
    struct standin_counts counts = all().counts;
    counts.waits = all().waits;
    counts.calls = all().calls;
    return counts;
}
long standin_waiting(void) {
    call c;
    size_t n = 0;
    for (cudaStream_t stream : all().streams) n += stream->line->items.size();
    for (const gpu &g : all().gpus) n += g.legacy->items.size();
    return static_cast<long>(n);
}

/* --- errors --- */

cudaError_t cudaGetLastError(void) {
    call c;
    const cudaError_t code = last;
    last = cudaSuccess;
    if (code || all().gpus.empty()) return code;
    return all().gpus[static_cast<size_t>(current)].lost; /* this one is not forgotten */
}
cudaError_t cudaPeekAtLastError(void) {
    return last;
}

/* --- devices --- */

cudaError_t cudaDriverGetVersion(int *version) {
    *version = all().gpus.empty() ? 0 : CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *count_out) {
    call c;
    *count_out = 0;
    if (fails("cudaGetDeviceCount")) return done(cudaErrorUnknown);
    if (all().gpus.empty()) return done(cudaErrorInsufficientDriver);
    *count_out = static_cast<int>(all().gpus.size());
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    call c;
    if (const cudaError_t code = obstacle("cudaGetDeviceProperties")) return done(code);
    if (!is_device(device)) return done(cudaErrorInvalidDevice);
    *properties = {};
    snprintf(properties->name, sizeof properties->name, "stand-in for a GPU");
    properties->totalGlobalMem = all().memory;
    properties->major = all().capability / 10;
    properties->minor = all().capability % 10;
    properties->multiProcessorCount = 1;
    const char *machine = getenv("STANDIN_MACHINE");
    const std::string uuid = std::to_string(device) + " " + (machine ? machine : std::to_string(getpid()));
    strncpy(properties->uuid.bytes, uuid.c_str(), sizeof properties->uuid.bytes - 1);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    call c;
    if (const cudaError_t code = obstacle("cudaDeviceGetAttribute")) return done(code);
    if (!is_device(device)) return done(cudaErrorInvalidDevice);
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *value = 1;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        *value = all().capability / 10;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value = all().capability % 10;
        return cudaSuccess;
    }
    return done(cudaErrorInvalidValue);
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
    call c;
    if (fails("cudaInitDevice")) return done(cudaErrorUnknown);
    if (!is_device(device)) return done(cudaErrorInvalidDevice);
    return done(all().gpus[static_cast<size_t>(device)].lost);
}
cudaError_t cudaSetDevice(int device) {
    call c;
    if (fails("cudaSetDevice")) return done(cudaErrorUnknown);
    if (!is_device(device)) return done(cudaErrorInvalidDevice);
    current = device;
    return done(all().gpus[static_cast<size_t>(device)].lost);
}
cudaError_t cudaGetDevice(int *device) {
    *device = current;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) {
    call c;
    if (const cudaError_t code = obstacle("cudaDeviceSynchronize")) return done(code);
    if (forbidden_now()) return done(cudaErrorStreamCaptureUnsupported);
    for (cudaStream_t stream : all().streams)
        if (stream->line->device == current) meet(stream->line, stream->line->queued);
    return done(run_device(current));
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int other) {
    call c;
    if (const cudaError_t code = obstacle("cudaDeviceCanAccessPeer")) return done(code);
    if (!is_device(device) || !is_device(other)) return done(cudaErrorInvalidDevice);
    *can = all().peer && device != other;
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned flags) {
    call c;
    if (const cudaError_t code = obstacle("cudaDeviceEnablePeerAccess")) return done(code);
    if (!is_device(other) || other == current) return done(cudaErrorInvalidDevice);
    if (flags != 0) return done(cudaErrorInvalidValue);
    if (!all().peer) return done(cudaErrorPeerAccessUnsupported);
    unsigned &peers = all().gpus[static_cast<size_t>(current)].peers;
    if (peers >> other & 1) return done(cudaErrorPeerAccessAlreadyEnabled);
    if (__builtin_popcount(peers) >= all().peers) return done(cudaErrorTooManyPeers);
    peers |= 1u << other;
    return cudaSuccess;
}

/* --- streams --- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    call c;
    if (const cudaError_t code = obstacle("cudaStreamCreateWithFlags")) return done(code);
    if (flags != cudaStreamNonBlocking) return done(cudaErrorNotSupported); /* of this stand-in */
    *stream = new CUstream_st;
    (*stream)->line = std::make_shared<line>();
    (*stream)->line->device = current;
    all().streams.insert(*stream);
    count("stream", 1);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    call c;
    if (!all().streams.count(stream)) return done(cudaErrorInvalidResourceHandle);
    const cudaError_t code = run(stream->line, UINT64_MAX);
    if (capturing == stream) capturing = nullptr;
    all().streams.erase(stream);
    delete stream;
    count("stream", -1);
    return done(code);
}
static cudaError_t wait_for(const char *name, cudaStream_t stream, uint64_t steps) {
    if (const cudaError_t code = obstacle(name)) return done(code);
    const std::shared_ptr<line> there = line_of(stream);
    if (!there) return done(cudaErrorInvalidResourceHandle);
    if (stream && stream->capture) {
        stream->invalidated = true;
        return done(cudaErrorStreamCaptureUnsupported);
    }
    if (forbidden_now()) return done(cudaErrorStreamCaptureUnsupported);
    if (steps == UINT64_MAX) meet(there, there->queued);
    return done(run(there, steps == UINT64_MAX ? steps : there->done + steps));
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    call c;
    return wait_for("cudaStreamSynchronize", stream, UINT64_MAX);
}
/* Who asks again and again sees the work go on, a step each time. */
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    call c;
    const std::shared_ptr<line> there = line_of(stream);
    const bool ready = there && there->items.empty();
    if (const cudaError_t code = wait_for("cudaStreamQuery", stream, 1)) return code;
    return ready ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument) {
    call c;
    if (const cudaError_t code = obstacle("cudaLaunchHostFunc")) return done(code);
    return queue(
        stream, nullptr, [=] { function(argument); }, true);
}

/* --- events --- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    call c;
    if (const cudaError_t code = obstacle("cudaEventCreateWithFlags")) return done(code);
    *event = new CUevent_st;
    (*event)->device = current;
    (*event)->timed = !(flags & cudaEventDisableTiming);
    all().events.insert(*event);
    count("event", 1);
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    call c;
    if (!all().events.erase(event)) return done(cudaErrorInvalidResourceHandle);
    delete event;
    count("event", -1);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    call c;
    if (const cudaError_t code = obstacle("cudaEventRecord")) return done(code);
    const std::shared_ptr<line> there = line_of(stream);
    if (!all().events.count(event) || !there || there->device != event->device)
        return done(cudaErrorInvalidResourceHandle);
    if (stream &&
        stream->capture) { /* an event that orders work of one graph: this stand-in has one line in it */
        stream->invalidated = true;
        return done(cudaErrorNotSupported);
    }
    const auto when = std::make_shared<double>(0.0);
    all().counts.marks++;
    push(there, {nullptr, [when] { *when = now(); }, false});
    event->line = there;
    event->place = there->queued;
    event->when = when;
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    call c;
    if (const cudaError_t code = obstacle("cudaStreamWaitEvent")) return done(code);
    const std::shared_ptr<line> there = line_of(stream);
    if (!all().events.count(event) || !there) return done(cudaErrorInvalidResourceHandle);
    if (stream && stream->capture) {
        stream->invalidated = true;
        return done(cudaErrorStreamCaptureIsolation);
    }
    if (!event->line || event->line == there) return cudaSuccess;
    const std::shared_ptr<line> other = event->line;
    const uint64_t place = event->place;
    all().counts.marks++;
    push(there, {nullptr, [=] { run(other, place); }, false});
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    call c;
    if (const cudaError_t code = obstacle("cudaEventSynchronize")) return done(code);
    if (!all().events.count(event)) return done(cudaErrorInvalidResourceHandle);
    if (forbidden_now()) return done(cudaErrorStreamCaptureUnsupported);
    if (!event->line) return cudaSuccess;
    meet(event->line, event->place);
    return done(run(event->line, event->place));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    call c;
    if (const cudaError_t code = obstacle("cudaEventQuery")) return done(code);
    if (!all().events.count(event)) return done(cudaErrorInvalidResourceHandle);
    if (forbidden_now()) return done(cudaErrorStreamCaptureUnsupported);
    if (!event->line || event->line->done >= event->place) return cudaSuccess;
    if (const cudaError_t code = run(event->line, event->line->done + 1)) return done(code);
    return cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    call c;
    if (const cudaError_t code = obstacle("cudaEventElapsedTime")) return done(code);
    if (!all().events.count(from) || !all().events.count(to) || !from->timed || !to->timed || !from->line ||
        !to->line)
        return done(cudaErrorInvalidResourceHandle);
    if (from->line->done < from->place || to->line->done < to->place) return cudaErrorNotReady;
    *ms = static_cast<float>((*to->when - *from->when) * 1e3);
    return cudaSuccess;
}

/* --- graphs --- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    call c;
    if (const cudaError_t code = obstacle("cudaStreamBeginCapture")) return done(code);
    if (!stream || !line_of(stream)) return done(cudaErrorStreamCaptureUnsupported);
    if (stream->capture || capturing) return done(cudaErrorIllegalState);
    stream->capture = std::make_shared<std::vector<item>>();
    stream->invalidated = !all().captures;
    stream->mode = mode;
    capturing = stream;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    call c;
    *graph = nullptr;
    if (!stream || !line_of(stream) || !stream->capture) return done(cudaErrorIllegalState);
    if (capturing != stream) return done(cudaErrorStreamCaptureWrongThread);
    capturing = nullptr;
    const std::shared_ptr<std::vector<item>> items = stream->capture;
    stream->capture = nullptr;
    if (const cudaError_t code = obstacle("cudaStreamEndCapture")) return done(code);
    if (stream->invalidated) return done(cudaErrorStreamCaptureInvalidated);
    *graph = new CUgraph_st{items, stream->line->device};
    count("graph", 1);
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    call c;
    if (const cudaError_t code = obstacle("cudaStreamIsCapturing")) return done(code);
    if (!line_of(stream)) return done(cudaErrorInvalidResourceHandle);
    *status = !stream || !stream->capture ? cudaStreamCaptureStatusNone
              : stream->invalidated       ? cudaStreamCaptureStatusInvalidated
                                          : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count_out) {
    call c;
    if (const cudaError_t code = obstacle("cudaGraphGetNodes")) return done(code);
    if (nodes) return done(cudaErrorNotSupported); /* of this stand-in */
    *count_out = graph->items->size();
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
    call c;
    if (const cudaError_t code = obstacle("cudaGraphInstantiate")) return done(code);
    *exec = new CUgraphExec_st{graph->items, graph->device, nullptr, 0};
    count("executable graph", 1);
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    call c;
    if (const cudaError_t code = obstacle("cudaGraphLaunch")) return done(code);
    const std::shared_ptr<line> there = line_of(stream);
    if (!there || there->device != exec->device) return done(cudaErrorInvalidResourceHandle);
    if (stream && stream->capture) return stream->invalidated = true, done(cudaErrorNotSupported);
    if (all().gpus[static_cast<size_t>(there->device)].lost)
        return done(all().gpus[static_cast<size_t>(there->device)].lost);
    all().counts.launches++;
    for (const item &one : *exec->items) {
        note(one, true);
        push(there, {one.name, one.work, one.everywhere, true});
    }
    exec->line = there;
    exec->place = there->queued;
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    count("graph", -1);
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    call c;
    if (exec->line && exec->line->done < exec->place && !all().gpus[static_cast<size_t>(exec->device)].lost) {
        fprintf(stderr, "stand-in: a graph was destroyed while gpu:%d runs it\n", exec->device);
        abort();
    }
    delete exec;
    count("executable graph", -1);
    return cudaSuccess;
}
