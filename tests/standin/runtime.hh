/* Private to the stand-in: its state, under one lock. */
#ifndef STANDIN_RUNTIME_HH
#define STANDIN_RUNTIME_HH

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "launch.hh"

namespace standin {

struct item {
    const char *name; /* what computes; NULL: it moves memory, or is a mark */
    std::function<void()> work;
    bool everywhere;
    bool replayed = false;                /* by the launch of a graph */
    std::shared_ptr<bool> held = nullptr; /* it does not begin as long as this is true; NULL: it may */
};

struct line { /* of work: what a stream is to those who wait for it, even after it was destroyed */
    int device;
    std::deque<item> items;
    uint64_t queued = 0, done = 0;
    uint64_t met = 0; /* what some call of the host's has waited for */
};

struct block {
    int device;   /* -1: host memory */
    char *mapped; /* the pages it lies in, with one behind it that nobody may touch */
    size_t mapped_bytes, bytes;
    bool open; /* its pages can be read and written now */
};

struct gpu {
    unsigned peers = 0; /* bit d: its kernels reach memory of device d */
    size_t used = 0;
    cudaError_t doomed = cudaSuccess; /* what its next work will end with */
    cudaError_t lost = cudaSuccess;   /* what every call ends with */
    std::shared_ptr<line> legacy;     /* the NULL stream's */
};

struct state {
    std::recursive_mutex lock;
    int depth = 0; /* of calls under way */
    std::vector<gpu> gpus;
    size_t memory;
    int capability;
    bool peer;
    long peers;    /* that a GPU may reach */
    bool eager;    /* work is done as soon as it is queued */
    bool dry;      /* what computes in a graph is not done */
    bool captures; /* no capture fails for that alone */
    long calls = 0, fail_at = 0, waits = 0;
    struct standin_counts counts = {};
    std::map<std::string, long> kinds;            /* of work: how often each was queued */
    std::set<std::pair<int, std::string>> loaded; /* kernels whose code is on that device */
    long hang_at = 0, break_at = 0;               /* of the collectives */
    std::map<std::string, int> open;
    std::map<const char *, block> blocks; /* by address */
    bool exposed = false;                 /* some block is open */
    std::set<cudaStream_t> streams;
    std::set<cudaEvent_t> events;
    state();
};
state &all();

/* A call under way: holds the lock; when the outermost one ends, no device memory can be touched any more. */
struct call {
    call();
    ~call();
    call(const call &) = delete;
};

extern thread_local int current;
extern thread_local cudaError_t last;
extern thread_local cudaStream_t capturing;

/* Remembers an error for cudaGetLastError and returns it. */
cudaError_t done(cudaError_t code);
/* What stands in the way of a call: a failure that a test asked for, or that the current device is lost. */
cudaError_t obstacle(const char *name, cudaError_t when_failing = cudaErrorUnknown);
std::shared_ptr<line> line_of(cudaStream_t stream); /* NULL: no such stream */
/* The host waits for what stands before place `until` of the line: counted when nobody has before. */
void meet(const std::shared_ptr<line> &there, uint64_t until);
cudaError_t run(const std::shared_ptr<line> &line, uint64_t until);
cudaError_t run_device(int device);
/* Opens memory of the devices whose bits are set, and closes the others'. */
void expose(unsigned devices);
unsigned every_device();
const block *find(const void *address);

} // namespace standin

struct CUstream_st {
    std::shared_ptr<standin::line> line;
    std::shared_ptr<std::vector<standin::item>> capture; /* what is captured; NULL: nothing is */
    bool invalidated = false;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
};
struct CUevent_st {
    int device;
    bool timed;
    std::shared_ptr<standin::line> line; /* where it was recorded; NULL: never */
    uint64_t place = 0;                  /* what of the line has to be done */
    std::shared_ptr<double> when;        /* seconds, once it has happened */
};
struct CUgraph_st {
    std::shared_ptr<std::vector<standin::item>> items;
    int device;
};
struct CUgraphExec_st {
    std::shared_ptr<std::vector<standin::item>> items;
    int device;
    std::shared_ptr<standin::line> line; /* where it was launched last; NULL: nowhere */
    uint64_t place = 0;                  /* of its end there */
};

#endif
