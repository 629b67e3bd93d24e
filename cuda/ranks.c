/* The sum over GPUs of several processes, by NCCL. A GPU is a rank, with a communicator and a stream of its
 * own, driven by the thread of its worker.
 *
 * The communicators are non-blocking, so no call of NCCL's waits by itself. A blocking one, held by a thread
 * that aborts it in time, would save the thread that a group of NCCL's calls starts; but while it joins there
 * is nothing yet to abort. The thread that waits asks its caller, who has connections to all processes,
 * whether one of them has gone: NCCL knows at most that one has, not which. */
#include "ranks.h"

#if TRAINER_NCCL

#    include <stdio.h>
#    include <string.h>

#    include "../src/base/memory.h"

#    define LOOK_S 0.05  /* between two questions to the caller */
#    define NAMING_S 1.0 /* for the caller to find out who has gone, once NCCL has failed */

_Static_assert(NCCL_UNIQUE_ID_BYTES == COLLECTIVE_ID_WORDS * sizeof(uint64_t), "an id is a unique id");

struct member {
    struct rank rank;
    struct rank_place place;
};

bool rank_is_begun(ncclResult_t code) {
    return code == ncclSuccess || code == ncclInProgress;
}

bool rank_is_settled(const struct rank *rank, bool streams, const char **why) {
    ncclResult_t state = ncclInProgress;
    const ncclResult_t code = ncclCommGetAsyncError(rank->comm, &state);
    if (code != ncclSuccess || !rank_is_begun(state)) {
        *why = ncclGetErrorString(code != ncclSuccess ? code : state);
        return false;
    }
    if (state == ncclInProgress || !streams) return state == ncclSuccess;
    const cudaError_t there = cudaStreamQuery(rank->stream);
    if (there == cudaSuccess) return true;
    cudaGetLastError(); /* it remembers that something is not ready, too */
    if (there != cudaErrorNotReady) *why = cudaGetErrorString(there);
    return false;
}

void rank_describe(char *out, size_t bytes) {
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess) version = 0;
    snprintf(out, bytes, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

static void say_why_not(struct rank_offer *offer, const char *why) {
    offer->able = false;
    snprintf(offer->words, sizeof offer->words, "%.90s", why);
}

void rank_offer(const struct device *device, bool draws, struct rank_offer *offer) {
    struct error error = {0};
    struct cudaDeviceProp properties;
    ncclUniqueId id;
    *offer = (struct rank_offer){.able = true};
    if (gpu_load(device, &nccl_library, &error) != OK) {
        say_why_not(offer, error.words);
        return;
    }
    rank_describe(offer->words, sizeof offer->words);
    const cudaError_t known = cudaGetDeviceProperties(&properties, device->label);
    if (known == cudaSuccess) memcpy(offer->device, &properties.uuid, sizeof offer->device);
    if (known != cudaSuccess) say_why_not(offer, cudaGetErrorString(known));
    if (!draws) return;
    const ncclResult_t drawn = ncclGetUniqueId(&id);
    if (drawn == ncclSuccess) memcpy(offer->id, &id, sizeof offer->id);
    if (drawn != ncclSuccess) say_why_not(offer, ncclGetErrorString(drawn));
}

/* Ends what still runs on the GPU, too. */
static void abort_rank(struct rank *rank) {
    if (rank->comm) ncclCommAbort(rank->comm);
    rank->comm = NULL;
    cudaGetLastError(); /* or the next launch would report it */
}

static int fail(struct member *member, const char *call, const char *why, int line, struct error *error) {
    abort_rank(&member->rank);
    return error_set(error, ERROR_DEVICE, "%s: %s: %s (ranks.c:%d)", member->rank.device->name, call, why,
                     line);
}

/* Something has failed that others take part in. Mostly the caller finds out soon why. */
static int blame(struct member *member, const char *call, const char *why, struct error *error) {
    const struct rank_place *place = &member->place;
    const double until = world_now(place->world) + NAMING_S;
    abort_rank(&member->rank);
    for (; world_now(place->world) < until; world_sleep(place->world, LOOK_S))
        RETURN_IF(place->look(place->argument, error));
    return fail(member, call, why, __LINE__, error);
}

/* Waits until what was begun is done. First it looks again and again, because a sum takes some ten
 * microseconds; then it leaves the core to others. */
static int settle(struct member *member, bool streams, const char *call, struct error *error) {
    const struct rank_place *place = &member->place;
    const double looking_s = 1e-3, pause_s = 5e-5, began_s = world_now(place->world);
    double looked_s = began_s;
    char words[80];
    const char *why = NULL;
    while (!rank_is_settled(&member->rank, streams, &why)) {
        const double now = world_now(place->world);
        snprintf(words, sizeof words, "not done after %.1f s", now - began_s);
        if (!why && now - began_s > place->timeout_s) why = words;
        if (why) return blame(member, call, why, error);
        if (now - looked_s > LOOK_S) {
            const int code = place->look(place->argument, error);
            if (code != OK) abort_rank(&member->rank);
            if (code != OK) return code;
            looked_s = now;
        }
        if (now - began_s > looking_s) world_sleep(place->world, pause_s);
    }
    return OK;
}

static int enter_communicator(struct member *member, struct error *error) {
    static const char call[] = "ncclCommInitRankConfig(&comm, ranks, id, rank, &config)";
    const struct rank_place *place = &member->place;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    config.blocking = 0;
    memcpy(&id, place->id, sizeof id);
    const ncclResult_t code =
        ncclCommInitRankConfig(&member->rank.comm, place->ranks, id, place->rank, &config);
    if (!rank_is_begun(code)) return fail(member, call, ncclGetErrorString(code), __LINE__, error);
    return settle(member, false, call, error);
}

int rank_join(const struct device *device, const struct rank_place *place, void **rank, struct error *error) {
    struct member *member = NULL;
    *rank = NULL;
    RETURN_IF(gpu_load(device, &nccl_library, error));
    GPU_TRY(device, gpu_enter(device), error);
    RETURN_IF(memory_array(&member, 1, "a rank", error));
    member->rank.device = device;
    member->place = *place;
    const cudaError_t made = cudaStreamCreateWithFlags(&member->rank.stream, cudaStreamNonBlocking);
    const int code =
        made == cudaSuccess
            ? enter_communicator(member, error)
            : GPU_FAILED(device, "cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)", made, error);
    if (code == OK)
        *rank = member;
    else
        rank_leave(member, false);
    return code;
}

void rank_leave(void *self, bool well) {
    struct member *member = self;
    if (!member) return;
    if (member->rank.comm && well) ncclCommDestroy(member->rank.comm);
    if (!well) abort_rank(&member->rank);
    if (member->rank.stream && gpu_enter(member->rank.device) == cudaSuccess)
        cudaStreamDestroy(member->rank.stream);
    cudaGetLastError();
    memory_free(member);
}

int rank_sum(void *self, float *values, const struct rank_window *windows, int count, struct error *error) {
    static const char call[] = "ncclReduce(values, values, floats, ncclFloat, ncclSum, root, comm, stream)";
    struct member *member = self;
    const struct rank *rank = &member->rank;
    ncclResult_t code = ncclGroupStart();
    if (code != ncclSuccess)
        return fail(member, "ncclGroupStart()", ncclGetErrorString(code), __LINE__, error);
    for (int i = 0; i < count && rank_is_begun(code); i++) {
        float *const at = values + windows[i].begin;
        const size_t floats = windows[i].end - windows[i].begin;
        if (floats > 0)
            code = ncclReduce(at, windows[i].root == member->place.rank ? at : NULL, floats, ncclFloat,
                              ncclSum, windows[i].root, rank->comm, rank->stream);
    }
    const ncclResult_t ended = ncclGroupEnd();
    if (rank_is_begun(code)) code = ended;
    if (!rank_is_begun(code)) return fail(member, call, ncclGetErrorString(code), __LINE__, error);
    return settle(member, true, call, error);
}

#endif
