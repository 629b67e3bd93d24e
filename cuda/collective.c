/* The mean over several GPUs, by NCCL: the backend's struct collective. Those of one process are here, those
 * of several in ranks.c.
 *
 * One thread drives all GPUs, each with a communicator and a stream of the group's own: its calls stand
 * between ncclGroupStart and ncclGroupEnd, and nothing begins before the second. The communicators are
 * non-blocking, so no call of NCCL waits by itself. The one wait there is looks at every communicator until
 * none is in progress, then at the streams; it ends in time, and with what NCCL finds out meanwhile. After a
 * failure all communicators are aborted, which also ends what still runs on the GPUs. */
#include "../src/base/text.h"
#include "ranks.h"

#if TRAINER_NCCL

#    include <stdio.h>

#    include "../src/base/memory.h"

struct group {
    struct world *world;
    double timeout_s;
    char names[200]; /* "gpu:0,gpu:1" */
    int count;
    struct rank *ranks; /* [count] */
    bool failed;        /* it has been aborted */
};

static void abort_all(struct group *group) {
    for (int i = 0; i < group->count; i++)
        if (group->ranks[i].comm) ncclCommAbort(group->ranks[i].comm);
    for (int i = 0; i < group->count; i++) group->ranks[i].comm = NULL;
    group->failed = true;
    cudaGetLastError(); /* or the next launch would report it */
}

static int fail(struct group *group, const char *call, const char *why, int line, struct error *error) {
    abort_all(group);
    return error_set(error, ERROR_DEVICE, "%s: %s: %s (collective.c:%d)", group->names, call, why, line);
}

/* Waits until what was begun on all ranks is done. First it looks again and again, because a mean takes some
 * ten microseconds; then it leaves the core to others. */
static int settle(struct group *group, bool streams, const char *call, struct error *error) {
    const double looking_s = 1e-3, pause_s = 5e-5, began_s = world_now(group->world);
    char words[80];
    for (int i = 0; i < group->count;) {
        const char *why = NULL;
        if (rank_is_settled(&group->ranks[i], streams, &why)) {
            i++;
            continue;
        }
        const double waited_s = world_now(group->world) - began_s;
        snprintf(words, sizeof words, "not done on %s after %.1f s", group->ranks[i].device->name, waited_s);
        if (!why && waited_s > group->timeout_s) why = words;
        if (!why && world_stopped(group->world)) why = "the run was stopped meanwhile";
        if (why) return fail(group, call, why, __LINE__, error);
        if (waited_s > looking_s) world_sleep(group->world, pause_s);
    }
    return OK;
}

static void close_group(void *self) {
    struct group *group = self;
    if (!group) return;
    for (int i = 0; i < group->count; i++)
        if (group->ranks[i].comm) ncclCommDestroy(group->ranks[i].comm);
    for (int i = 0; i < group->count; i++) {
        if (!group->ranks[i].stream) continue;
        gpu_enter(group->ranks[i].device);
        cudaStreamDestroy(group->ranks[i].stream);
    }
    cudaGetLastError();
    memory_free(group->ranks);
    memory_free(group);
}

static int make_group(const struct device *const *devices, int count, struct group **out,
                      struct error *error) {
    RETURN_IF(memory_array(out, 1, "a group of GPUs", error));
    struct group *group = *out;
    struct text names = text_into(group->names, sizeof group->names);
    RETURN_IF(memory_array(&group->ranks, count, "a group of GPUs", error));
    group->count = count;
    for (int i = 0; i < count; i++) {
        group->ranks[i].device = devices[i];
        text_item(&names, ",", "%s", devices[i]->name);
    }
    return OK;
}

/* All ranks at once: each waits for the others. */
static int join(struct group *group, struct error *error) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    config.blocking = 0;
    ncclResult_t code = ncclGetUniqueId(&id);
    if (code != ncclSuccess)
        return fail(group, "ncclGetUniqueId(&id)", ncclGetErrorString(code), __LINE__, error);
    code = ncclGroupStart();
    cudaError_t entered = cudaSuccess;
    for (int i = 0; i < group->count && rank_is_begun(code) && entered == cudaSuccess; i++) {
        entered = gpu_enter(group->ranks[i].device);
        if (entered == cudaSuccess)
            code = ncclCommInitRankConfig(&group->ranks[i].comm, group->count, id, i, &config);
    }
    const ncclResult_t ended = ncclGroupEnd();
    if (entered != cudaSuccess)
        return fail(group, "cudaSetDevice(label)", cudaGetErrorString(entered), __LINE__, error);
    if (rank_is_begun(code)) code = ended;
    if (!rank_is_begun(code))
        return fail(group, "ncclCommInitRankConfig(&comm, count, id, i, &config)", ncclGetErrorString(code),
                    __LINE__, error);
    return settle(group, false, "ncclCommInitRankConfig(&comm, count, id, i, &config)", error);
}

static int open_group(const struct device *const *devices, int count, struct world *world, double timeout_s,
                      void **out, struct error *error) {
    struct group *group = NULL;
    *out = NULL;
    if (gpu_load(devices[0], &nccl_library, error) != OK) return COLLECTIVE_DECLINED;
    int code = make_group(devices, count, &group, error);
    for (int i = 0; i < count && code == OK; i++) {
        cudaError_t made = gpu_enter(devices[i]);
        if (made == cudaSuccess)
            made = cudaStreamCreateWithFlags(&group->ranks[i].stream, cudaStreamNonBlocking);
        if (made != cudaSuccess)
            code = GPU_FAILED(devices[i], "cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)", made,
                              error);
    }
    if (code == OK) {
        group->world = world;
        group->timeout_s = timeout_s;
        code = join(group, error);
    }
    if (code == OK)
        *out = group;
    else
        close_group(group);
    return code;
}

/* NCCL is not asked: over one rank, 2.28 leaves out the last floats of some counts (of 100,003 the last
 * three). */
static int copy_alone(struct group *group, const float *values, size_t floats, float *out,
                      struct error *error) {
    static const char call[] = "cudaMemcpyAsync(out, values, bytes, cudaMemcpyDeviceToDevice, stream)";
    const struct rank *rank = &group->ranks[0];
    const cudaError_t code =
        cudaMemcpyAsync(out, values, floats * sizeof *out, cudaMemcpyDeviceToDevice, rank->stream);
    if (code != cudaSuccess) return fail(group, call, cudaGetErrorString(code), __LINE__, error);
    return settle(group, true, call, error);
}

static int mean(void *self, const float *const *values, size_t floats, int root, float *out,
                struct error *error) {
    static const char call[] = "ncclReduce(values[i], out, floats, ncclFloat, ncclAvg, root, comm, stream)";
    struct group *group = self;
    if (floats == 0) return OK;
    if (group->failed)
        return error_set(error, ERROR_DEVICE, "%s: not used again after a failure", group->names);
    if (group->count == 1) return copy_alone(group, values[0], floats, out, error);
    ncclResult_t code = ncclGroupStart();
    for (int i = 0; i < group->count && rank_is_begun(code); i++) {
        const struct rank *rank = &group->ranks[i];
        code = ncclReduce(values[i], i == root ? out : NULL, floats, ncclFloat, ncclAvg, root, rank->comm,
                          rank->stream);
    }
    const ncclResult_t ended = ncclGroupEnd();
    if (rank_is_begun(code)) code = ended;
    if (!rank_is_begun(code)) return fail(group, call, ncclGetErrorString(code), __LINE__, error);
    return settle(group, true, call, error);
}

static void describe(const void *group, char *out, size_t bytes) {
    (void)group;
    rank_describe(out, bytes);
}

const struct collective gpu_collective = {.open = open_group,
                                          .close = close_group,
                                          .mean = mean,
                                          .describe = describe,
                                          .offer = rank_offer,
                                          .join = rank_join,
                                          .sum = rank_sum,
                                          .leave = rank_leave};

#endif
