/* The one place where a choice depends on time: of several algorithms for the same problem, each is run on
 * random numbers, and one that is clearly faster than the library's first is taken.
 *
 * A kernel of 3 us is over before the host has launched the next one: what is timed is a recording of some 20
 * runs, replayed as a whole. What an algorithm computes is compared with what the first one did, because
 * libraries have algorithms that are wrong for some problem; the result is filled with NaN before, so that
 * nothing is right that was not written. Two algorithms add up in different orders, so two runs of the
 * program that choose differently differ in the last bits of what they compute. Each algorithm that takes
 * part is run here at least once; so its code is on the GPU before anything is recorded. What then takes more
 * than twice the best one's time in one run is not timed further. */
#include "measure.h"

#include <math.h>
#include <string.h>
#include "../src/base/memory.h"
#include "../src/base/rng.h"
#include "../src/device/bf16.h"

enum { RUNS = 20, REPLAYS = 3, BOUNDARY = 256, PIECE = 1 << 16 /* numbers on the host at once */ };
/* A run that takes longer is timed alone: beside it the launch is nothing. */
static const float LONG_MS = 1.0f;
/* Nor is one recorded that takes so many times the best one's time, each run once, and so much longer. */
static const float FAR = 2.0f, FAR_MS = 0.02f;
/* Less would be chance. */
static const float FASTER = 0.95f;

size_t gpu_part(size_t *bytes, size_t more) {
    const size_t begin = *bytes;
    *bytes += (more + BOUNDARY - 1) / BOUNDARY * BOUNDARY;
    return begin;
}

/* The problem's operands, its result and the first algorithm's, somewhere in one block. */
struct stage {
    const struct device *device;
    void *block;
    void *first;   /* result of the first algorithm, once there is one; in the block */
    bool compared; /* there is */
    void *piece;   /* [2 * PIECE] floats on the host, owned */
    cudaEvent_t begin, end;
    struct call call;
    float once_ms; /* one run of the best so far; 0: there is none */
};

static void close_stage(struct stage *stage) {
    if (stage->begin) cudaEventDestroy(stage->begin);
    if (stage->end) cudaEventDestroy(stage->end);
    if (stage->block) gpu_release(stage->device, stage->block);
    memory_free(stage->piece);
}

static enum type type_of(const struct problem *problem, int operand) {
    return operand < problem->inputs ? problem->input[operand].type : problem->output.type;
}

static size_t count_of(const struct problem *problem, int operand) {
    return shape_count(operand < problem->inputs ? &problem->input[operand].shape : &problem->output.shape);
}

static float number_at(const void *values, enum type type, size_t i) {
    return type == TYPE_BF16 ? bf16_float(((const bf16 *)values)[i]) : ((const float *)values)[i];
}

/* Numbers in [-1/4, 1/4), another PIECE of them for each operand, over and over. Zeros would take less power
 * to multiply, and hide what is wrong. */
static int fill(const struct stage *stage, void *to, int operand, struct error *error) {
    const enum type type = type_of(stage->call.problem, operand);
    const size_t count = count_of(stage->call.problem, operand), bytes = count * type_bytes(type);
    size_t done = (count < PIECE ? count : PIECE) * type_bytes(type);
    if (type != TYPE_FLOAT && type != TYPE_BF16) return OK;
    for (size_t i = 0; i < PIECE && i < count; i++) {
        const float value = 0.5f * rng_unit(rng_philox(7, (uint64_t)operand, i).word[0]) - 0.25f;
        if (type == TYPE_BF16)
            ((bf16 *)stage->piece)[i] = bf16_nearest(value);
        else
            ((float *)stage->piece)[i] = value;
    }
    RETURN_IF(gpu_transfer(stage->device, to, stage->piece, done, error));
    for (size_t more; done < bytes; done += more) {
        more = done < bytes - done ? done : bytes - done;
        RETURN_IF(gpu_queue_copy(stage->device, (char *)to + done, to, more, error));
    }
    return OK;
}

static int open_stage(struct stage *stage, const struct problem *problem, struct error *error) {
    size_t bytes = 0, begin[MAX_INPUTS + 1];
    for (int i = 0; i <= problem->inputs; i++)
        begin[i] = gpu_part(&bytes, count_of(problem, i) * type_bytes(type_of(problem, i)));
    const size_t first =
        gpu_part(&bytes, count_of(problem, problem->inputs) * type_bytes(problem->output.type));
    RETURN_IF(memory_zeroed(&stage->piece, 2 * PIECE, sizeof(float), "operands to measure with", error));
    RETURN_IF(gpu_allocate(stage->device, &stage->block, bytes, "operands to measure with", error));
    GPU_TRY(stage->device, cudaEventCreateWithFlags(&stage->begin, cudaEventDefault), error);
    GPU_TRY(stage->device, cudaEventCreateWithFlags(&stage->end, cudaEventDefault), error);
    stage->call.problem = problem;
    stage->first = (char *)stage->block + first;
    stage->call.output = (char *)stage->block + begin[problem->inputs];
    for (int i = 0; i < problem->inputs; i++) {
        void *to = (char *)stage->block + begin[i];
        stage->call.input[i] = to;
        RETURN_IF(fill(stage, to, i, error));
    }
    return OK;
}

/* --- what it computes --- */

/* How far apart two algorithms' results may be, as a share of the largest number: that much the order of sums
 * and the rounding of operands make. */
static float tolerance(const struct device *device) {
    switch (device->precision) {
    case PRECISION_BF16:
        return 2e-2f;
    case PRECISION_TF32:
        return 5e-3f;
    default:
        return 2e-4f;
    }
}

/* Magnitudes as the bits of floats without a sign, whose order is theirs; what is no number is above all. So
 * a loop over millions of numbers goes over several at once. */
enum { MAGNITUDE = 0x7FFFFFFF };
struct largest {
    uint32_t expected, apart;
};
static inline uint32_t larger(uint32_t most, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= MAGNITUDE;
    return bits > most ? bits : most;
}
static inline float magnitude_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline void look_as(enum type type, const void *ours, const void *firsts, size_t count,
                           struct largest *most) {
    struct largest l = *most;
    for (size_t i = 0; i < count; i++) {
        const float value = number_at(ours, type, i), expected = number_at(firsts, type, i);
        l.expected = larger(l.expected, expected);
        l.apart = larger(l.apart, value - expected);
    }
    *most = l;
}
static void look(enum type type, const void *ours, const void *firsts, size_t count, struct largest *most) {
    if (type == TYPE_BF16)
        look_as(TYPE_BF16, ours, firsts, count, most);
    else
        look_as(TYPE_FLOAT, ours, firsts, count, most);
}

/* *right: the result is finite, and not far from the first one's, which it becomes where there is none. */
static int compare(struct stage *stage, bool *right, struct error *error) {
    const struct problem *problem = stage->call.problem;
    const enum type type = problem->output.type;
    const size_t count = shape_count(&problem->output.shape), element = type_bytes(type);
    char *ours = stage->piece, *firsts = stage->compared ? ours + PIECE * element : ours;
    struct largest most = {0};
    for (size_t begin = 0; begin < count; begin += PIECE) {
        const size_t length = count - begin < PIECE ? count - begin : PIECE, bytes = length * element;
        RETURN_IF(gpu_transfer(stage->device, ours, (const char *)stage->call.output + begin * element, bytes,
                               error));
        if (stage->compared)
            RETURN_IF(gpu_transfer(stage->device, firsts, (const char *)stage->first + begin * element, bytes,
                                   error));
        look(type, ours, firsts, length, &most);
    }
    /* An infinity is no number apart from itself. */
    *right = magnitude_of(most.apart) <= tolerance(stage->device) * magnitude_of(most.expected);
    if (!*right || stage->compared) return OK;
    stage->compared = true;
    return gpu_queue_copy(stage->device, stage->first, stage->call.output, count * element, error);
}

/* Runs the algorithm once, and looks at the result. */
static int check(struct stage *stage, const struct contest *contest, bool *right, struct error *error) {
    const struct problem *problem = stage->call.problem;
    const size_t bytes = shape_count(&problem->output.shape) * type_bytes(problem->output.type);
    const struct queue *queue = gpu_queue(stage->device, error);
    if (!queue) return error->code;
    GPU_TRY(stage->device, cudaMemsetAsync(stage->call.output, 0xFF, bytes, queue->stream), error);
    RETURN_IF(contest->run(&stage->call, error));
    return compare(stage, right, error);
}

/* --- how long it takes --- */

static int run_all(const struct stage *stage, const struct contest *contest, int runs, struct error *error) {
    for (int i = 0; i < runs; i++) RETURN_IF(contest->run(&stage->call, error));
    return OK;
}

/* Milliseconds that the recording takes, or, where there is none, so many runs. */
static int time_once(const struct stage *stage, const struct contest *contest, void *recording, int runs,
                     float *ms, struct error *error) {
    const struct queue *queue = gpu_queue(stage->device, error);
    if (!queue) return error->code;
    GPU_TRY(stage->device, cudaEventRecord(stage->begin, queue->stream), error);
    if (recording)
        RETURN_IF(gpu_replay(stage->device, recording, error));
    else
        RETURN_IF(run_all(stage, contest, runs, error));
    GPU_TRY(stage->device, cudaEventRecord(stage->end, queue->stream), error);
    GPU_TRY(stage->device, cudaEventSynchronize(stage->end), error);
    GPU_TRY(stage->device, cudaEventElapsedTime(ms, stage->begin, stage->end), error);
    return OK;
}

/* *recording of so many runs; NULL: they cannot be recorded. */
static int record(const struct stage *stage, const struct contest *contest, int runs, void **recording,
                  struct error *error) {
    struct error failure = {0};
    RETURN_IF(gpu_record(stage->device, error));
    const int code = run_all(stage, contest, runs, error);
    const int ended = gpu_recorded(stage->device, recording, code == OK ? error : &failure);
    return code != OK ? code : ended;
}

/* Milliseconds of one run, the least of some, the first not counted: it brings the recording to the GPU. */
static int time_recorded(const struct stage *stage, const struct contest *contest, int runs, float *ms,
                         struct error *error) {
    void *recording = NULL;
    float least = INFINITY, found = 0.0f;
    int code = record(stage, contest, runs, &recording, error);
    for (int i = 0; code == OK && i <= REPLAYS; i++) {
        code = time_once(stage, contest, recording, runs, &found, error);
        if (i > 0) least = fminf(least, found);
    }
    if (recording) gpu_forget(stage->device, recording);
    *ms = least / (float)runs;
    return code;
}

/* *once_ms: of one run as it is queued. */
static int time_algorithm(const struct stage *stage, const struct contest *contest, float *once_ms, float *ms,
                          struct error *error) {
    RETURN_IF(time_once(stage, contest, NULL, 1, once_ms, error));
    *ms = *once_ms;
    if (*ms > LONG_MS) return OK;
    if (stage->once_ms > 0.0f && *ms > fmaxf(FAR * stage->once_ms, stage->once_ms + FAR_MS)) return OK;
    const int runs = *ms * RUNS > LONG_MS ? (int)(LONG_MS / *ms) : RUNS;
    return time_recorded(stage, contest, runs, ms, error);
}

/* --- the contest --- */

/* *right: what it computes; *ms: how long it takes, where that matters; *once_ms: queued once. */
static int try_one(struct stage *stage, const struct contest *contest, bool *right, float *once_ms, float *ms,
                   struct error *error) {
    RETURN_IF(check(stage, contest, right, error));
    if (!*right || stage->device->deterministic) return OK;
    return time_algorithm(stage, contest, once_ms, ms, error);
}

/* What keeps an algorithm from running, as a status of its library, is no reason to give up while another one
 * runs; that memory cannot be had is. */
static int try_all(struct stage *stage, void *plan, const struct contest *contest, int *best,
                   struct outcome *outcome, struct error *failure, struct error *error) {
    float enough_ms = 0.0f;
    for (int number = 0; number < contest->count; number++) {
        struct error found = {0};
        float once_ms = 0.0f, ms = 0.0f;
        bool right = false;
        RETURN_IF(contest->take(stage->call.problem, plan, number, error));
        int code = contest->bind(stage->call.problem, plan, &stage->call.instance, error);
        if (code != OK && code != KERNEL_DECLINED) return code;
        if (code == OK) {
            code = try_one(stage, contest, &right, &once_ms, &ms, &found);
            const int finished = gpu_finish(stage->device, error);
            contest->unbind(stage->call.instance);
            if (finished) return finished;
        }
        if (code != OK && code != KERNEL_DECLINED) *failure = found;
        outcome->impossible += code != OK;
        outcome->wrong += code == OK && !right;
        if (code != OK || !right) continue;
        if (*best < 0 || ms < enough_ms) {
            enough_ms = *best < 0 ? FASTER * ms : ms;
            stage->once_ms = once_ms;
            *best = number;
        }
        if (stage->device->deterministic) break; /* which one is faster differs from run to run */
    }
    return OK;
}

int gpu_measure(const struct problem *problem, void *plan, const struct contest *contest,
                struct error *error) {
    struct stage stage = {.device = problem->device, .call = {.plan = plan}};
    struct error failure = {0};
    struct outcome ignored = {0};
    int best = -1;
    int code = open_stage(&stage, problem, error);
    if (code == OK)
        code = try_all(&stage, plan, contest, &best, contest->outcome ? contest->outcome : &ignored, &failure,
                       error);
    close_stage(&stage);
    if (code) return code;
    if (best >= 0) return contest->take(problem, plan, best, error);
    if (failure.code == OK) return KERNEL_DECLINED;
    *error = failure;
    return failure.code;
}
