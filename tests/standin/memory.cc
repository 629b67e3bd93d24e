/* The stand-in's memory. What a device allocates is pages that nobody may touch except while queued work or a
 * copy runs; so a host that follows a device's pointer crashes. Before a block and behind it the address
 * sanitizer, where there is one, sees what goes too far; behind it is a page that is never mapped. New memory
 * holds NaN, not zeros. */
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.hh"

#if defined __SANITIZE_ADDRESS__
#    define STANDIN_ASAN 1
#elif defined __has_feature
#    if __has_feature(address_sanitizer)
#        define STANDIN_ASAN 1
#    endif
#endif
#ifdef STANDIN_ASAN
#    include <sanitizer/asan_interface.h>
#    define POISON(address, bytes) ASAN_POISON_MEMORY_REGION(address, bytes)
#    define UNPOISON(address, bytes) ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#else
#    define POISON(address, bytes) ((void)0)
#    define UNPOISON(address, bytes) ((void)0)
#endif

namespace standin {

unsigned every_device() {
    return (1u << all().gpus.size()) - 1;
}

void expose(unsigned devices) {
    state &s = all();
    if (devices == 0 && !s.exposed) return;
    for (auto &[address, b] : s.blocks) {
        if (b.device < 0) continue;
        const bool open = devices >> b.device & 1;
        if (open == b.open) continue;
        if (mprotect(b.mapped, b.mapped_bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
            perror("stand-in: mprotect");
            abort();
        }
        b.open = open;
    }
    s.exposed = devices != 0;
}

const block *find(const void *address) {
    state &s = all();
    const char *place = static_cast<const char *>(address);
    auto next = s.blocks.upper_bound(place);
    if (next == s.blocks.begin()) return nullptr;
    --next;
    return place < next->first + next->second.bytes ? &next->second : nullptr;
}

bool holds(int device, const void *pointer, size_t bytes) {
    call c;
    const block *b = find(pointer);
    const char *end = static_cast<const char *>(pointer) + bytes;
    return b && b->device == device && end <= b->mapped + b->mapped_bytes &&
           (bytes == 0 || find(end - 1) == b);
}

void reach(cudaStream_t stream, const void *pointer, const char *kernel) {
    call c;
    const int device = device_of(stream);
    const block *b = pointer ? find(pointer) : nullptr;
    if (!pointer ||
        (b && (b->device < 0 || b->device == device || all().gpus[device].peers >> b->device & 1)))
        return;
    fprintf(stderr, "stand-in: %s on gpu:%d was given %p, which %s\n", kernel, device, pointer,
            b ? "is another device's" : "no device allocation holds");
    abort();
}

static cudaError_t allocate(void **out, size_t bytes, int device) {
    state &s = all();
    *out = nullptr;
    if (bytes == 0) return cudaSuccess;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), rounded = (bytes + 255) / 256 * 256;
    const size_t mapped_bytes = (rounded + page - 1) / page * page;
    if (device >= 0 && s.gpus[device].used + rounded > s.memory) return cudaErrorMemoryAllocation;
    char *mapped = static_cast<char *>(mmap(nullptr, mapped_bytes + page, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (mapped == MAP_FAILED) return cudaErrorMemoryAllocation;
    char *address = mapped + mapped_bytes - rounded;
    memset(address, 0xff, bytes);
    POISON(mapped, mapped_bytes + page);
    UNPOISON(address, bytes);
    mprotect(mapped + mapped_bytes, page, PROT_NONE);
    if (device >= 0) {
        mprotect(mapped, mapped_bytes, PROT_NONE);
        s.gpus[device].used += rounded;
    }
    s.blocks[address] = {device, mapped, mapped_bytes, bytes, device < 0};
    count(device < 0 ? "host allocation" : "allocation", 1);
    *out = address;
    return cudaSuccess;
}

static cudaError_t release(void *address, bool host) {
    state &s = all();
    auto found = s.blocks.find(static_cast<const char *>(address));
    if (found == s.blocks.end() || (found->second.device < 0) != host) return cudaErrorInvalidValue;
    const block b = found->second;
    if (!host) s.gpus[b.device].used -= (b.bytes + 255) / 256 * 256;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    UNPOISON(b.mapped, b.mapped_bytes + page);
    munmap(b.mapped, b.mapped_bytes + page);
    s.blocks.erase(found);
    count(host ? "host allocation" : "allocation", -1);
    return cudaSuccess;
}

/* Where an address lies, and that all `bytes` behind it lie there too. */
static bool place(const void *address, size_t bytes, bool *on_device) {
    const block *b = find(address);
    *on_device = b && b->device >= 0;
    return !b || find(static_cast<const char *>(address) + bytes - 1) == b;
}

static cudaError_t check_copy(const void *out, const void *in, size_t bytes, cudaMemcpyKind kind) {
    bool to_device, from_device;
    if (!out || !in || !place(out, bytes, &to_device) || !place(in, bytes, &from_device))
        return cudaErrorInvalidValue;
    if (kind == cudaMemcpyDefault) return cudaSuccess;
    const cudaMemcpyKind found = to_device ? from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice
                                 : from_device ? cudaMemcpyDeviceToHost
                                               : cudaMemcpyHostToHost;
    return found == kind ? cudaSuccess : cudaErrorInvalidValue;
}

} // namespace standin

using namespace standin;

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    call c;
    if (const cudaError_t code = obstacle("cudaMemGetInfo")) return done(code);
    *total_bytes = all().memory;
    *free_bytes = all().memory - all().gpus[current].used;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
    call c;
    if (const cudaError_t code = obstacle("cudaMalloc", cudaErrorMemoryAllocation)) return done(code);
    if (forbidden_now()) return done(cudaErrorStreamCaptureUnsupported);
    return done(allocate(out, bytes, current));
}

cudaError_t cudaFree(void *address) {
    call c;
    if (!address) return cudaSuccess;
    if (forbidden_now()) return done(cudaErrorStreamCaptureUnsupported);
    const block *b = find(address);
    if (!b || b->device < 0) return done(cudaErrorInvalidValue);
    const cudaError_t code = run_device(b->device); /* nothing that is queued loses its memory */
    const cudaError_t released = release(address, false);
    return done(code ? code : released);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
    call c;
    if (const cudaError_t code = obstacle("cudaHostAlloc", cudaErrorMemoryAllocation)) return done(code);
    if (forbidden_now()) return done(cudaErrorStreamCaptureUnsupported);
    if (flags & ~unsigned{cudaHostAllocPortable}) return done(cudaErrorInvalidValue);
    return done(allocate(out, bytes, -1));
}

cudaError_t cudaFreeHost(void *address) {
    call c;
    if (!address) return cudaSuccess;
    if (forbidden_now()) return done(cudaErrorStreamCaptureUnsupported);
    for (size_t d = 0; d < all().gpus.size(); d++) run_device(static_cast<int>(d));
    return done(release(address, true));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *address) {
    call c;
    if (const cudaError_t code = obstacle("cudaPointerGetAttributes")) return done(code);
    const block *b = find(address);
    void *there = const_cast<void *>(address);
    if (!b)
        *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, there};
    else
        *attributes = {b->device < 0 ? cudaMemoryTypeHost : cudaMemoryTypeDevice,
                       b->device < 0 ? 0 : b->device, there, b->device < 0 ? there : nullptr};
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *out, const void *in, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    call c;
    if (const cudaError_t code = obstacle("cudaMemcpyAsync")) return done(code);
    if (bytes == 0) return cudaSuccess;
    if (const cudaError_t code = check_copy(out, in, bytes, kind)) return done(code);
    const cudaError_t code = queue(
        stream, nullptr, [=] { memmove(out, in, bytes); }, true);
    if (code || (find(out) && find(in)) || (stream && stream->capture)) return done(code);
    /* Of host memory that is not pinned the runtime needs nothing any more when the call returns. */
    const std::shared_ptr<line> there = line_of(stream);
    meet(there, there->queued);
    return done(run(there, there->queued));
}

cudaError_t cudaMemsetAsync(void *out, int value, size_t bytes, cudaStream_t stream) {
    call c;
    if (const cudaError_t code = obstacle("cudaMemsetAsync")) return done(code);
    bool on_device;
    if (bytes == 0) return cudaSuccess;
    if (!place(out, bytes, &on_device) || !find(out)) return done(cudaErrorInvalidValue);
    return done(queue(
        stream, nullptr, [=] { memset(out, value, bytes); }, true));
}

/* The two that wait do so for the NULL stream only: streams made with cudaStreamNonBlocking go on. */
cudaError_t cudaMemcpy(void *out, const void *in, size_t bytes, cudaMemcpyKind kind) {
    call c;
    if (forbidden_now()) return done(cudaErrorStreamCaptureImplicit);
    if (const cudaError_t code = cudaMemcpyAsync(out, in, bytes, kind, nullptr)) return code;
    meet(line_of(nullptr), line_of(nullptr)->queued);
    return done(run(line_of(nullptr), UINT64_MAX));
}

cudaError_t cudaMemset(void *out, int value, size_t bytes) {
    call c;
    if (forbidden_now()) return done(cudaErrorStreamCaptureImplicit);
    if (const cudaError_t code = cudaMemsetAsync(out, value, bytes, nullptr)) return code;
    meet(line_of(nullptr), line_of(nullptr)->queued);
    return done(run(line_of(nullptr), UINT64_MAX));
}
