/* NCCL's part of the stand-in: communicators, and sums that the ranks' streams make together.
 *
 * As with the real one, nothing begins before the group ends, a communicator that does not block is in
 * progress for a while, ranks on one device are refused, and what not all ranks call never ends. The sum goes
 * from the last rank to the first: an order that is nobody's roster. Ranks of several processes are in
 * far_ranks.hh. */
#include "nccl.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "far_ranks.hh"
#include "runtime.hh"

using namespace standin;

namespace {

/* One collective, as its ranks' streams see it. */
struct sum {
    std::vector<std::vector<float>> staged; /* [ranks] what each gave, once its stream came to it */
    std::shared_ptr<bool> held = std::make_shared<bool>(false);
    bool aborted = false;
};

enum { LOOKS = 2 }; /* at a communicator before what it has begun is found to be done */

} // namespace

struct ncclComm {
    std::string id;
    int rank, ranks, device;
    bool blocking;
    ncclResult_t state = ncclInProgress; /* what it comes to */
    int looks = 0;                       /* at it, until then */
    std::shared_ptr<sum> last;
    std::shared_ptr<far_ranks> far; /* the other ranks are in other processes */
};

namespace {

struct reduction {
    ncclComm *comm; /* what is queued does not look at it: it may have been aborted by then */
    int rank, ranks;
    const float *values;
    float *out;
    size_t count;
    ncclRedOp_t op;
    int root;
    cudaStream_t stream;
};

thread_local int depth = 0;
thread_local std::vector<ncclComm *> joining;
thread_local std::vector<reduction> reducing;

bool is_time(long *countdown) {
    return *countdown > 0 && --*countdown == 0;
}

/* Ranks of one id join when all are there, each on a device of its own. */
void join() {
    const bool hangs = !joining.empty() && is_time(&all().hang_at);
    for (const ncclComm *comm : joining)
        if (hangs && comm->blocking) {
            fprintf(stderr, "stand-in: ncclCommInitRankConfig waits without end for the other ranks\n");
            abort();
        }
    if (hangs) joining.clear();
    for (ncclComm *comm : joining) {
        std::vector<int> devices;
        for (const ncclComm *other : joining)
            if (other->id == comm->id) devices.push_back(other->device);
        if (static_cast<int>(devices.size()) != comm->ranks) { /* it goes on waiting for them */
            if (getenv("STANDIN_NCCL"))
                comm->far = std::make_shared<far_ranks>(comm->id, comm->rank, comm->ranks);
            continue;
        }
        std::sort(devices.begin(), devices.end());
        const bool twice = std::adjacent_find(devices.begin(), devices.end()) != devices.end();
        comm->state = twice ? ncclInvalidUsage : ncclSuccess;
    }
    joining.clear();
}

void add_up(const std::shared_ptr<sum> &whole, const reduction &root) {
    if (whole->aborted) return; /* and its communicators are gone */
    const float factor = root.op == ncclAvg ? 1.0f / static_cast<float>(root.ranks) : 1.0f;
    for (size_t i = 0; i < root.count; i++) {
        float total = 0.0f;
        for (int r = root.ranks - 1; r >= 0; r--)
            if (i < whole->staged[static_cast<size_t>(r)].size())
                total += factor * whole->staged[static_cast<size_t>(r)][i];
        root.out[i] = total;
    }
}

/* Queues one collective on the streams of its ranks. */
ncclResult_t begin_one(const std::vector<reduction> &ranks) {
    const auto whole = std::make_shared<sum>();
    const int before = current;
    std::vector<std::pair<std::shared_ptr<line>, uint64_t>> places;
    bool complete = static_cast<int>(ranks.size()) == ranks[0].comm->ranks;
    for (const reduction &one : ranks)
        complete = complete && one.count == ranks[0].count && one.root == ranks[0].root;
    const bool broken = is_time(&all().break_at), hangs = is_time(&all().hang_at);
    *whole->held = broken || hangs || !complete;
    whole->staged.resize(static_cast<size_t>(ranks[0].comm->ranks));
    cudaError_t code = cudaSuccess;
    for (const reduction &one : ranks) {
        one.comm->last = whole;
        one.comm->looks = one.comm->blocking ? 0 : LOOKS;
        if (broken) one.comm->state = ncclRemoteError;
        current = one.comm->device;
        const cudaError_t queued = queue(
            one.stream, "ncclReduce",
            [=] {
                if (!whole->aborted)
                    whole->staged[static_cast<size_t>(one.rank)].assign(one.values, one.values + one.count);
            },
            false, whole->held);
        if (queued) code = queued;
        const std::shared_ptr<line> there = line_of(one.stream);
        places.emplace_back(there, there->queued);
    }
    for (const reduction &one : ranks) {
        if (one.comm->rank != one.root || code) continue;
        current = one.comm->device;
        code = queue(one.stream, nullptr, [=] {
            for (const auto &[there, place] : places) run(there, place);
        });
        if (!code) code = queue(one.stream, "ncclReduce", [=] { add_up(whole, one); });
    }
    current = before;
    return code ? ncclUnhandledCudaError : ncclSuccess;
}

/* This rank's part of a sum that others make in their processes: it gives its values; the root then takes all
 * of them, and the others wait until it has. */
ncclResult_t begin_far(const reduction &one) {
    const std::shared_ptr<far_ranks> far = one.comm->far;
    const bool broken = is_time(&all().break_at), hangs = is_time(&all().hang_at);
    const auto held = std::make_shared<bool>(true);
    const uint64_t number = ++far->begun;
    one.comm->looks = LOOKS;
    if (broken) one.comm->state = ncclRemoteError;
    far->pending.push_back({held, number, one.root, one.count, broken || hangs});
    cudaError_t code = queue(one.stream, nullptr, [=] { far->give(number, one.values, one.count); });
    if (!code)
        code = queue(
            one.stream, "ncclReduce",
            [=] {
                if (one.rank == one.root && !far->aborted)
                    far->take(number, one.values, one.out, one.count, one.op == ncclAvg);
            },
            false, held);
    return code ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t begin_all() {
    ncclResult_t code = ncclSuccess;
    for (const reduction &one : reducing)
        if (one.comm->far && code == ncclSuccess) code = begin_far(one);
    reducing.erase(std::remove_if(reducing.begin(), reducing.end(),
                                  [](const reduction &one) { return one.comm->far != nullptr; }),
                   reducing.end());
    while (!reducing.empty() && code == ncclSuccess) {
        std::vector<reduction> ranks, others;
        std::set<const ncclComm *> seen;
        for (const reduction &one : reducing) {
            const bool mine = one.comm->id == reducing[0].comm->id && seen.insert(one.comm).second;
            (mine ? ranks : others).push_back(one);
        }
        reducing = others;
        code = begin_one(ranks);
    }
    reducing.clear();
    return code;
}

} // namespace

ncclResult_t ncclGetVersion(int *version) {
    *version = NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    switch (result) {
    case ncclSuccess:
        return "no error";
    case ncclUnhandledCudaError:
        return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
        return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
        return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
        return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
        return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
        return "remote process exited or there was a network error";
    case ncclInProgress:
        return "NCCL operation in progress";
    }
    return "unknown result code";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    call c;
    static std::atomic<long> number{0};
    if (fails("ncclGetUniqueId")) return ncclSystemError;
    snprintf(id->internal, sizeof id->internal, "stand-in-%d-%ld", static_cast<int>(getpid()), ++number);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    call c;
    *out = nullptr;
    if (fails("ncclCommInitRankConfig")) return ncclUnhandledCudaError;
    if (ranks < 1 || rank < 0 || rank >= ranks || config->magic != 0xcafebeef) return ncclInvalidArgument;
    ncclComm *comm = *out = new ncclComm{};
    comm->id = id.internal;
    comm->rank = rank;
    comm->ranks = ranks;
    comm->device = current;
    comm->blocking = config->blocking != 0;
    comm->looks = LOOKS;
    count("NCCL communicator", 1);
    joining.push_back(comm);
    if (depth == 0) join();
    if (!comm->blocking) return ncclInProgress;
    if (depth > 0 || comm->state == ncclSuccess) return ncclSuccess;
    fprintf(stderr, "stand-in: ncclCommInitRankConfig waits without end for the other ranks\n");
    abort();
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    call c;
    if ((comm->last && *comm->last->held) || (comm->far && !comm->far->pending.empty())) {
        fprintf(stderr, "stand-in: ncclCommDestroy waits without end for a collective\n");
        abort();
    }
    delete comm;
    count("NCCL communicator", -1);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    call c;
    if (comm->last) {
        comm->last->aborted = true;
        *comm->last->held = false;
    }
    if (comm->far) comm->far->abort();
    delete comm;
    count("NCCL communicator", -1);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state) {
    call c;
    if (fails("ncclCommGetAsyncError")) return ncclInternalError;
    if (comm->looks > 0) comm->looks--;
    if (comm->far && comm->far->progress() && comm->state == ncclInProgress) comm->state = ncclSuccess;
    *state = comm->looks > 0 ? ncclInProgress : comm->state;
    return ncclSuccess;
}

/* Of a mean over one rank NCCL 2.28 makes equal shares of whole packs, rounded down, and leaves out the rest.
 */
static size_t floats_of_one(size_t n) {
    const size_t blocks = std::min<size_t>(32, (n * sizeof(float) + (16 << 10) - 1) / (16 << 10));
    return blocks == 0 ? 0 : std::min(n, blocks * ((n / blocks + 3) / 4 * 4));
}

ncclResult_t ncclReduce(const void *values, void *out, size_t n, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
    call c;
    if (fails("ncclReduce")) return ncclUnhandledCudaError;
    if (!comm || comm->looks > 0 || comm->state != ncclSuccess) return ncclInvalidArgument;
    if (type != ncclFloat || (op != ncclAvg && op != ncclSum) || root < 0 || root >= comm->ranks)
        return ncclInvalidArgument;
    if (device_of(stream) != comm->device || !holds(comm->device, values, n * sizeof(float)) ||
        (comm->rank == root && !holds(comm->device, out, n * sizeof(float))))
        return ncclInvalidArgument;
    if (comm->ranks == 1 && op == ncclAvg) n = floats_of_one(n);
    reducing.push_back({comm, comm->rank, comm->ranks, static_cast<const float *>(values),
                        static_cast<float *>(out), n, op, root, stream});
    if (depth > 0) return comm->blocking ? ncclSuccess : ncclInProgress;
    return begin_all();
}

ncclResult_t ncclGroupStart(void) {
    call c;
    if (fails("ncclGroupStart")) return ncclInternalError;
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    call c;
    if (depth == 0) return ncclInvalidUsage;
    if (--depth > 0) return ncclSuccess;
    if (fails("ncclGroupEnd")) {
        joining.clear();
        reducing.clear();
        return ncclUnhandledCudaError;
    }
    const bool joined = !joining.empty();
    join();
    const ncclResult_t code = begin_all();
    return code == ncclSuccess && joined ? ncclInProgress : code;
}
