/* Devices: the contract that a backend (src/cpu, cuda/) fulfils.
 *
 * A device is an in-order queue plus a table of kernels. A backend offers, for every operation, an ordered
 * list of kernels: the first one that takes the problem runs; on the CPU the plain reference kernel comes
 * last and always takes it, as long as all values are float32 (which is what a bf16 device falls back to). */
#ifndef TRAINER_DEVICE_DEVICE_H
#define TRAINER_DEVICE_DEVICE_H

#include "../base/error.h"
#include "../graph/graph.h"
#include "../world/world.h"
#include "augment.h"
#include "update.h"

/* 1: this build has a backend for GPUs, whose options are then options of a run. */
#define DEVICES_MAY_BE_GPUS TRAINER_CUDA

struct device;

/* One node to compute, as a kernel sees it; constant for the program's life. */
struct problem {
    enum op op;
    const struct attributes *attributes;
    int inputs;
    struct {
        struct shape shape;
        enum type type;
    } input[MAX_INPUTS], output;
    unsigned ready; /* bit i: operand i comes in the form that the kernel wants, made by the program */
    const struct device *device;
};

/* The form in which a kernel wants an operand: of that type, and, where turned, [columns, rows] instead of
 * [rows, columns]. */
struct form {
    enum type type;
    bool turned;
    int rows, columns;
    int padded; /* rows with those of zeros that follow them; 0: none do */
};

/* A float32 operand that is brought into a form; both are on the device. */
enum { REFORMINGS = 64 };
struct reforming {
    const float *from; /* [rows * columns] */
    void *to;
    struct form form;
};

/* A call of a kernel in one arena. */
struct call {
    const struct problem *problem;
    const void *plan;              /* what `prepare` made; constant, shared by all arenas */
    void *instance;                /* what `bind` made for this arena, or NULL */
    const void *input[MAX_INPUTS]; /* where each operand is, on the device */
    void *output;                  /* may be the same address as input[0] only for assign, assign_add */
};

enum { KERNEL_DECLINED = -1 };

struct kernel {
    const char *name; /* "onednn:matmul", "reference:add": shown by --explain and tests */
    /* Called once by program_compile. Returns OK, KERNEL_DECLINED (try the next kernel; no words needed) or
     * an error. NULL: takes every problem. */
    int (*prepare)(const struct problem *problem, void **plan, struct error *error);
    void (*release)(void *plan); /* undoes prepare; NULL: nothing to undo */
    /* Called once per arena: what must not be shared between threads (scratch memory, argument objects).
     * NULL: nothing. */
    int (*bind)(const struct problem *problem, const void *plan, void **instance, struct error *error);
    void (*unbind)(void *instance);
    /* Computes. Runs on the worker's own thread; allocates nothing. Returns OK or ERROR_DEVICE. */
    int (*run)(const struct call *call, struct error *error);
    bool writes_host; /* its result may be in memory of allocate_host, on no boundary but a number's */
    /* Whether `run` brings operand i, which is float32, into another form first, and which. Of weights the
     * program makes that once for all that want it (problem.ready). NULL: none. */
    bool (*wants)(const struct problem *problem, const void *plan, int i, struct form *form);
    /* Writes which implementation a plan has, and what it reorders, into out[bytes], for --explain. NULL: its
     * name says it all. */
    void (*describe)(const void *plan, char *out, size_t bytes);
};

/* Of matrix products and of the values between layers; weights, losses and sums are float32 always. tf32: all
 * values are float32, and matrix products may round what they multiply to 10 bits of fraction. */
enum precision { PRECISION_FP32, PRECISION_BF16, PRECISION_TF32 };

/* Settings that all devices of a run share. */
struct device_settings {
    bool reference_only; /* --kernels=reference */
    int threads;         /* --threads; 0: the cores divided evenly */
    int processes;       /* of this machine that divide its cores; 0 or 1: this one has all */
    enum precision precision;
    bool deterministic, hard;
    const char *without; /* "gpu:lrn,gpu:maxpool"; NULL: nothing */
};

struct plans;   /* plans.h */
struct checked; /* ../base/checked.h */
struct mapping; /* ../base/mapping.h */

/* Examples in host memory: the part of a data set that a device reads. */
struct examples {
    int count;            /* examples */
    int features;         /* numbers per example, as a network's input */
    const uint8_t *bytes; /* [count][features], or images as `augment` says; or NULL */
    const float *floats;  /* [count][features] when bytes is NULL */
    float scale;          /* bytes are multiplied by this */
    const int *labels;    /* [count] the class of each; NULL where there are targets, or nothing is known */
    const float *targets; /* [count][outputs] what the network is to say of each; or NULL */
    int outputs;
    /* How images are cut out and changed; height 0: not at all, bytes are only scaled. */
    struct augment augment;
    struct checked *checked; /* the file that bytes or floats lie in; borrowed; NULL: none is (gather.h) */
    /* The file that they lie in, where memory is scarce: what was used of it makes room for what is wanted;
     * NULL: it is not. Borrowed. */
    const struct mapping *scarce;
};

/* Bytes that one of them takes in memory. */
static inline size_t examples_row_bytes(const struct examples *examples) {
    const struct augment *a = &examples->augment;
    if (!examples->bytes) return (size_t)examples->features * sizeof(float);
    if (a->height == 0) return (size_t)examples->features;
    return (size_t)a->height * (size_t)a->width * (size_t)a->channels;
}

/* The same of its label, or of its targets. */
static inline size_t examples_label_bytes(const struct examples *examples) {
    return examples->targets ? (size_t)examples->outputs * sizeof(float) : sizeof(int);
}

/* Where the first of them begins, and its label or its targets. */
static inline const uint8_t *examples_rows(const struct examples *examples) {
    return examples->bytes ? examples->bytes : (const uint8_t *)examples->floats;
}
static inline const uint8_t *examples_labels(const struct examples *examples) {
    return examples->targets ? (const uint8_t *)examples->targets : (const uint8_t *)examples->labels;
}

/* Runs of examples that are wanted some time after a batch, and runs that were, and are not for long. */
struct soon {
    int count, used;  /* runs of either kind */
    const int *first; /* [count + used] the first one of each run: those that are wanted, then the others */
    int length;       /* of each, in examples; the last may be cut short by their end */
};

/* Which examples make a batch. */
struct indices {
    int count;
    const int *index;    /* [count] of the examples */
    const uint64_t *key; /* [count] what each one's augmentation is drawn by; NULL: none, as in tests */
    struct soon soon;
};

struct backend {
    const char *name;   /* "cpu", "gpu" */
    bool own_memory;    /* its devices have memory of their own; else they compute in the host's */
    int (*count)(void); /* labels run from 0 to count-1 */
    /* Why count is 0, as a text; NULL slot: it never is. */
    const char *(*missing)(void);
    /* Fills description[bytes] for `trainer devices`, one line. */
    void (*describe)(int label, char *description, size_t bytes);
    /* Kernels for an operation, best first, ended by NULL. */
    const struct kernel *const *(*kernels)(const struct device *device, enum op op);
    /* What a device lacks to compute in that precision, as a text; NULL: nothing. NULL slot: it has
     * float32 only. */
    const char *(*lacks)(const struct device *device, enum precision precision);
    /* Called by the thread that will compute on the device, before anything else: sets its thread count. */
    void (*enter)(const struct device *device);
    /* Memory on the device, zeroed, on a 64-byte boundary. */
    int (*allocate)(const struct device *device, void **out, size_t bytes, const char *what,
                    struct error *error);
    void (*release)(const struct device *device, void *block);
    /* Host memory that this backend's devices copy from and to at full speed; zeroed; released by
     * release_host. */
    int (*allocate_host)(const struct device *device, void **out, size_t bytes, const char *what,
                         struct error *error);
    void (*release_host)(const struct device *device, void *block);
    /* Copies between this device's memory and its own, the host's or that of another device of any backend
     * (copy.h), after what is queued on the device, and is complete on return. Called by the thread that
     * drives one of the two devices. */
    int (*copy)(const struct device *device, void *out, const void *in, size_t bytes, struct error *error);
    /* The same, queued: there for what the calling thread queues next on the device, and for others after
     * `finish`. Of the host's memory only that of allocate_host: for other memory the call waits. */
    int (*queue_copy)(const struct device *device, void *out, const void *in, size_t bytes,
                      struct error *error);
    /* Waits until all that the calling thread has queued on the device is done. */
    int (*finish)(const struct device *device, struct error *error);
    const struct vectors *vectors; /* arithmetic of the store, on slices that lie on the device */
    const struct marks *marks;     /* order between the queues of several threads, and times on the device */
    /* Builds a batch: row i of out[count][features] is example index[i] of `examples`, scaled or augmented.
     * Queued: it is there for what the calling thread queues next, and for others after `finish`. */
    int (*gather)(const struct device *device, const struct examples *examples, const struct indices *indices,
                  float *out, struct error *error);
    /* Labels of the same examples: out[count]. Queued, too. */
    int (*gather_labels)(const struct device *device, const struct examples *examples,
                         const struct indices *indices, int *out, struct error *error);

    /* Mixes images that gather has built: out[i] is row i of rows[count + 1] mixed with row i + 1, by mix[i],
     * which may change after the call. Rows are [rows][columns][channels] of the recipe. Queued, too. */
    int (*mix)(const struct device *device, const struct augment *augment, const struct augment_mix *mix,
               int count, const float *rows, float *out, struct error *error);

    /* --- only of a backend with memory of its own; else NULL --- */
    /* Brings at most REFORMINGS operands into other forms, of one type all of them. Queued. */
    int (*reform)(const struct device *device, const struct reforming *list, int count, struct error *error);
    /* Opens what the device needs beside its threads' queues, or says why it cannot. Called by
     * devices_open for each device, and undone by close, when no thread uses the device any more. */
    int (*open)(const struct device *device, struct error *error);
    void (*close)(const struct device *device);
    /* What a thread queues between record and recorded does not run; it is recorded, and replay queues all
     * of it again: same kernels, same addresses. recorded leaves *recording NULL when it could not be
     * recorded; then nothing of it has run. Between the two, allocating and waiting fail; recorded must be
     * called then, too. */
    int (*record)(const struct device *device, struct error *error);
    int (*recorded)(const struct device *device, void **recording, struct error *error);
    /* Pieces of work in what the calling thread has recorded last; 0: it could not be, and *why says why not,
     * a constant text. */
    int (*recorded_nodes)(const struct device *device, const char **why);
    int (*replay)(const struct device *device, void *recording, struct error *error);
    void (*forget)(const struct device *device, void *recording);
    /* Queues a copy to another device of this backend, beside the calling thread's queue: it begins when all
     * is done that the thread has queued on the device so far, and what the thread queues from now on does
     * not wait for it, nor does finish. The mark, of this device, is reached when the copy is done. */
    int (*send)(const struct device *device, void *out, const void *in, size_t bytes, void *mark,
                struct error *error);
    const struct picker *picker; /* of batches that are built in a recording; NULL: none are */
    /* Where plans are kept that are made once for a problem; NULL: nowhere now. NULL slot: never. */
    struct plans *(*plans)(const struct device *device);
    const struct collective *collective; /* what several devices compute together; NULL: nothing */
};

/* Batches of one size that a recording builds, each of the examples that were picked since the last. */
struct picker {
    /* *picks NULL: such batches cannot be built so. */
    int (*open)(const struct device *device, const struct examples *examples, int count, void **picks,
                struct error *error);
    void (*close)(const struct device *device, void *picks); /* NULL is fine */
    /* Puts down what makes the next batch, which has keys, and its number. Nothing is queued, so the gather
     * before must be over. *picked false: this one is to be built without. */
    int (*pick)(const struct device *device, void *picks, const struct indices *indices, int number,
                bool *picked, struct error *error);
    /* Queues what builds the batch: its rows, labels and, where step is not NULL, number. */
    int (*gather)(const struct device *device, const void *picks, float *out, int *labels, int *step,
                  struct error *error);
};

/* Marks: places in a thread's queue, after which other queues can continue without a thread that waits. */
struct marks {
    /* timed: `since` is asked of it. *mark NULL: what is queued here is done at once, so there is nothing to
     * set or to follow. */
    int (*open)(const struct device *device, bool timed, void **mark, struct error *error);
    void (*close)(const struct device *device, void *mark); /* NULL is fine */
    /* The mark is reached when everything is done that the calling thread has queued on the device so far.
     * Each call sets it again; whoever follows it must ensure that it is not set meanwhile. */
    int (*set)(const struct device *device, void *mark, struct error *error);
    /* What the calling thread queues on the device from now on is done after the mark, set by any thread, is
     * reached. */
    int (*wait)(const struct device *device, void *mark, struct error *error);
    /* Whether it is reached, whichever thread has set it; one that was never set is. Does not wait. */
    int (*reached)(const struct device *device, void *mark, bool *is, struct error *error);
    /* The calling thread waits until one is reached that it has set; as `finish`, it tells of a gradient that
     * is not finite. */
    int (*await)(const struct device *device, void *mark, struct error *error);
    /* How long the device went on, after a timed mark that the calling thread has set before its last
     * `finish`, until what that has waited for was done. */
    int (*since)(const struct device *device, void *mark, double *seconds, struct error *error);
    /* How long it was from one timed mark to another; both are reached. */
    int (*between)(const struct device *device, void *from, void *to, double *seconds, struct error *error);
};

enum { VECTORS_ROOM = 4096 };

/* What the store does to vectors that lie in a device's memory: queued on the calling thread's queue. */
struct vectors {
    /* Steps a slice of weights, optimizer state and average, as update.h says. A device with memory of its
     * own leaves a weight alone whose gradient is not finite, and says so at the next `finish`
     * (ERROR_DIVERGED); in the host's memory the gradient was looked at before. */
    int (*update)(const struct device *device, const struct update *update, const struct update_slice *slice,
                  struct error *error);
    /* The same of at most UPDATE_WINDOWS windows at once, one behind the other; the slice goes from the first
     * one's begin to the last one's end, and is not compensated. NULL: each is an update. */
    int (*update_windows)(const struct device *device, const struct update *update,
                          const struct update_slice *slice, const struct update_window *windows, int count,
                          struct error *error);
    /* out[begin..end) = factor times the sum over i of weight[i] * values[i][begin..end), added in this
     * order; weight NULL: 1 each. out may be values[0] itself, else it overlaps none of the values. */
    int (*mean)(const struct device *device, const float *const *values, const float *weight, int count,
                size_t begin, size_t end, float factor, float *out, struct error *error);
    /* *out (host) = sum of squares of values[floats], in double. Complete on return. */
    int (*squares)(const struct device *device, const float *values, size_t floats, double *out,
                   struct error *error);
    int (*scale)(const struct device *device, float *values, size_t floats, float factor,
                 struct error *error);
    /* values[floats] divided by their length, but for 1e-7 that is added to it: 0 stays 0. room: VECTORS_ROOM
     * bytes of the device's. Queued. */
    int (*unit)(const struct device *device, float *values, size_t floats, void *room, struct error *error);
    /* With d = rate (a - b), a -= d and b += d, over a[floats] and b[floats]. */
    int (*exchange)(const struct device *device, float *a, float *b, size_t floats, float rate,
                    struct error *error);
    /* Copies what others may be stepping at the same time, within the device's memory; NULL: as queue_copy
     * does. */
    void (*copy_racy)(float *out, const float *in, size_t floats, struct world *world);
};

/* What a process says of a device that may be a rank of several processes' (struct collective). */
enum { COLLECTIVE_ID_WORDS = 16 };
struct rank_offer {
    bool able;                        /* it can be one */
    char words[96];                   /* by what, "NCCL 2.28.9", which all must agree on; or why not */
    uint64_t device[2];               /* no other device has the same, in whichever process */
    uint64_t id[COLLECTIVE_ID_WORDS]; /* by which the ranks find each other; one of them draws it */
};

/* Where a rank stands, and how it waits for the others. */
struct rank_place {
    const uint64_t *id; /* [COLLECTIVE_ID_WORDS] */
    int rank, ranks;
    struct world *world;
    double timeout_s;
    /* Called now and then while it waits, and for a while once the library has failed: who has gone? An
     * error, ERROR_PEER, ends the wait. */
    int (*look)(void *argument, struct error *error);
    void *argument;
};

/* A window of a vector, whose sum goes to one of the ranks. */
struct rank_window {
    size_t begin, end;
    int root;
};

/* Devices of one backend, no two of them the same, that compute as a group: they compute the mean of a
 * round's gradients without sending all of them to one device. The backend chooses the order in which they
 * are added. */
enum { COLLECTIVE_DECLINED = -1 };
struct collective {
    /* Joins devices[count] as *group. A wait of it ends after timeout_s without success, and when the
     * world is stopped. Returns OK, COLLECTIVE_DECLINED (this machine cannot; `error` says why) or
     * ERROR_DEVICE. */
    int (*open)(const struct device *const *devices, int count, struct world *world, double timeout_s,
                void **group, struct error *error);
    void (*close)(void *group); /* when nothing of it is under way; NULL is fine */
    /* out[floats], on device number `root`, = the mean of values[i][floats], each on device number i, all of
     * them known to be done. Complete on return. By any thread, but one at a time. After an error, whose
     * words name all devices, the group computes no more. */
    int (*mean)(void *group, const float *const *values, size_t floats, int root, float *out,
                struct error *error);
    void (*describe)(const void *group, char *out, size_t bytes); /* "NCCL 2.28.9" */

    /* --- a group over several processes: a rank for each device, driven by that device's thread --- */
    /* Whether the device can be a rank; draws: with an id. */
    void (*offer)(const struct device *device, bool draws, struct rank_offer *offer);
    /* Waits until all ranks have come. Errors: ERROR_DEVICE, or what place->look has said; so does the next.
     * place: borrowed until `leave`, but for its id. */
    int (*join)(const struct device *device, const struct rank_place *place, void **rank,
                struct error *error);
    /* All ranks call it with the same windows: on the root of each, values[begin..end) = the sum over all
     * ranks' values, which are known to be done. Complete on return. After an error it is not called again.
     */
    int (*sum)(void *rank, float *values, const struct rank_window *windows, int count, struct error *error);
    /* well: all that was begun has ended; else the other ranks may be gone. NULL is fine. */
    void (*leave)(void *rank, bool well);
};

struct device {
    const struct backend *backend;
    char name[16]; /* "cpu:0" */
    int label;
    struct cores cores; /* host cores of the thread that drives it; pinned when `pinned` */
    bool pinned;
    int threads; /* CPU: threads that compute */
    bool reference_only;
    enum precision precision;
    bool deterministic; /* the same bits in every run, at the cost of speed */
    bool hard;          /* an operation without a kernel is an error; else it runs on the CPU */
    bool without[OPS];  /* operations to be treated as if the device had no kernel for them */
};

/* Whether a device has memory of its own; NULL: the host's memory. */
static inline bool device_apart(const struct device *device) {
    return device && device->backend->own_memory;
}
/* Whether two devices compute in one memory. */
static inline bool device_same_memory(const struct device *one, const struct device *other) {
    if (!device_apart(one) || !device_apart(other)) return device_apart(one) == device_apart(other);
    return one->backend == other->backend && one->label == other->label;
}

/* The backends of this build, ended by NULL; the CPU's is the first. */
extern const struct backend *const backends[];

/* A device for what lies in the host's memory and belongs to no other device. */
static inline struct device device_processor(void) {
    return (struct device){.backend = backends[0], .name = "cpu", .threads = 1};
}

/* Memory of a device, zeroed, typed as memory_array is. */
#define device_array(device, out, count, what, error)                                                        \
    device_array_of((device), (out), (size_t)(count) * sizeof **(out), (what), (error))
int device_array_of(const struct device *device, void *out, size_t bytes, const char *what,
                    struct error *error);

/* The labels of a batch, int [count], or its targets, float [count][outputs]; queued as `gather` is. */
int device_gather_labels(const struct device *device, const struct examples *examples,
                         const struct indices *indices, void *out, struct error *error);

/* What processes of one machine that are counted by `turn`, from 0, compute on, each on one: "gpu:1", round
 * robin. False: there is nothing besides the CPU, and *out stays. */
bool devices_in_turn(int turn, char *out, size_t bytes);

/* Parses "cpu:0,cpu:1", "cpu:0-9", "cpu:*", "auto" into *devices, opened (devices_close gives them back).
 * With D CPU devices in each of P processes each gets max(1, cores/(D*P)) threads; when P is 1 on cores of
 * its own. Where their threads are more than the cores they share them, and *shared is set so that the caller
 * can say so. Errors: ERROR_USAGE (not understood), ERROR_DEVICE (not there, or unable to compute in the
 * precision asked for). */
int devices_open(const char *text, const struct device_settings *settings, struct device **devices,
                 int *count, bool *shared, struct error *error);
/* When no thread uses them any more; NULL is fine. */
void devices_close(struct device *devices, int count);

#endif
