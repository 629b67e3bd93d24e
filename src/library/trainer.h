/* trainer as a library: build a graph, run a session, differentiate, save and load.
 *
 *     #include <trainer.h>                         cc program.c $(pkg-config --cflags --libs trainer)
 *
 * Types are opaque: what `x_open` makes, `x_close` frees; closing NULL does nothing. All else is the
 * caller's: an array that is passed is read or written during the call, and not kept, unless it says
 * "borrowed".
 *
 * Errors are values. A function that can fail returns a code, 0 for success, and writes one line that says
 * what was found and what was expected into *error (NULL: nobody wants it). Functions that build a graph
 * return a node instead: after a mistake TRAINER_NONE, which they all accept; the first mistake stays in the
 * graph, and trainer_graph_check and every run of a session report it.
 *
 * Threads: the library has no state of its own, so different objects may be used by different threads at the
 * same time. A graph is built by one thread at a time; once it is built, any number of sessions run it at the
 * same time. A session is used by one thread at a time. A queue is used by any number.
 *
 * Names, shapes and layouts are those of TensorFlow and Keras: images [batch, rows, columns, channels],
 * weights of a dense layer [in, out], of a convolution [rows, columns, in, out]. Numbers are float32, row by
 * row, unless a function says int32 or bool (one byte, 0 or 1). */
#ifndef TRAINER_H
#define TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* "0.1.0" */
const char *trainer_version(void);

/* --- errors --- */

enum trainer_code {
    TRAINER_OK = 0,
    TRAINER_INTERNAL = 1, /* a mistake of the library */
    TRAINER_USAGE = 2,    /* a call, a setting or a graph that makes no sense */
    TRAINER_FILE = 3,     /* a file or its format */
    TRAINER_DEVICE = 4,   /* a device, or its memory */
    TRAINER_PEER = 5,     /* nobody came in time: a worker, or the other end of a queue */
    TRAINER_DIVERGED = 6, /* the loss is not a number */
    TRAINER_STOPPED = 130 /* by the caller's own callback */
};

struct trainer_error {
    int code;        /* enum trainer_code */
    char words[500]; /* one line */
};

/* --- graphs --- */

enum { TRAINER_MOST_RANK = 6, TRAINER_MOST_INPUTS = 8 };

struct trainer_shape {
    int rank;                    /* 0: a scalar */
    int dims[TRAINER_MOST_RANK]; /* [rank], outermost first */
};
#define TRAINER_SCALAR ((struct trainer_shape){0})
#define TRAINER_SHAPE(...)                                                                                   \
    ((struct trainer_shape){(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), {__VA_ARGS__}})

enum trainer_type { TRAINER_FLOAT, TRAINER_INT, TRAINER_BOOL };

struct trainer_graph;
typedef int trainer_node; /* the number of a node in its graph */
enum { TRAINER_NONE = -1, TRAINER_ALL_AXES = -100 };

/* training: dropout drops, and batch normalisation uses each batch's own mean; else dropout passes its
 * operand through, and the statistics of the training are used. seed: of the first values of variables, of
 * dropout and shuffle. */
int trainer_graph_open(struct trainer_graph **graph, bool training, uint64_t seed,
                       struct trainer_error *error);
void trainer_graph_close(struct trainer_graph *graph); /* after its sessions */
int trainer_graph_check(const struct trainer_graph *graph,
                        struct trainer_error *error); /* the first mistake */

int trainer_graph_nodes(const struct trainer_graph *graph); /* how many there are; they count from 0 */
/* The placeholder or variable of that name; TRAINER_NONE: there is none. */
trainer_node trainer_graph_find(const struct trainer_graph *graph, const char *name);
/* Of a node; of TRAINER_NONE: a scalar, float32, "". Names are those of operations ("add"). */
struct trainer_shape trainer_node_shape(const struct trainer_graph *graph, trainer_node node);
enum trainer_type trainer_node_type(const struct trainer_graph *graph, trainer_node node);
const char *trainer_node_operation(const struct trainer_graph *graph, trainer_node node);

/* --- sources --- */

/* Fed at every run that needs it. */
trainer_node trainer_placeholder(struct trainer_graph *graph, const char *name, enum trainer_type type,
                                 struct trainer_shape shape);
trainer_node trainer_constant(struct trainer_graph *graph, struct trainer_shape shape, const float *values);
trainer_node trainer_constant_int(struct trainer_graph *graph, struct trainer_shape shape, const int *values);
trainer_node trainer_scalar(struct trainer_graph *graph, float value);

enum trainer_initial_kind {
    TRAINER_ZERO,
    TRAINER_FILLED,           /* with `value` */
    TRAINER_NORMAL,           /* with mean 0 and standard deviation `value` */
    TRAINER_TRUNCATED_NORMAL, /* the same, redrawn beyond two deviations */
    TRAINER_GLOROT_UNIFORM
};
struct trainer_initial {
    enum trainer_initial_kind kind;
    float value;
    const float *values; /* these, whatever the kind; borrowed until the graph is closed; NULL: the kind */
};

/* Keeps its value between the runs of a session. float32. The names of placeholders and variables have 1 to
 * 63 characters, those of layers as many with "/kernel", and each is there once. */
trainer_node trainer_variable(struct trainer_graph *graph, const char *name, struct trainer_shape shape,
                              struct trainer_initial initial);
/* Run when fetched; their value is the variable's new one. Nodes made before compute with the old value; the
 * variable itself, fetched, is what it is at the end of the run. */
trainer_node trainer_assign(struct trainer_graph *graph, trainer_node variable, trainer_node value);
trainer_node trainer_assign_add(struct trainer_graph *graph, trainer_node variable, trainer_node value);

/* --- elementwise; shapes broadcast as in NumPy --- */

trainer_node trainer_add(struct trainer_graph *graph, trainer_node a, trainer_node b);
trainer_node trainer_sub(struct trainer_graph *graph, trainer_node a, trainer_node b);
trainer_node trainer_mul(struct trainer_graph *graph, trainer_node a, trainer_node b);
trainer_node trainer_div(struct trainer_graph *graph, trainer_node a, trainer_node b);
trainer_node trainer_pow(struct trainer_graph *graph, trainer_node a, trainer_node b);
trainer_node trainer_greater(struct trainer_graph *graph, trainer_node a, trainer_node b); /* bool */
trainer_node trainer_less(struct trainer_graph *graph, trainer_node a, trainer_node b);    /* bool */
trainer_node trainer_equal(struct trainer_graph *graph, trainer_node a, trainer_node b);   /* bool */
trainer_node trainer_exp(struct trainer_graph *graph, trainer_node x);
trainer_node trainer_log(struct trainer_graph *graph, trainer_node x);
trainer_node trainer_relu(struct trainer_graph *graph, trainer_node x);
trainer_node trainer_relu6(struct trainer_graph *graph, trainer_node x);
trainer_node trainer_sigmoid(struct trainer_graph *graph, trainer_node x);
trainer_node trainer_tanh(struct trainer_graph *graph, trainer_node x);
trainer_node trainer_gelu(struct trainer_graph *graph, trainer_node x);
trainer_node trainer_silu(struct trainer_graph *graph, trainer_node x);
trainer_node trainer_cast(struct trainer_graph *graph, trainer_node x, enum trainer_type type);
/* Drops this share of the elements, and scales the others by 1 / (1 - rate). In training it draws anew for
 * each value fed to the placeholder "step", int32, a scalar. */
trainer_node trainer_dropout(struct trainer_graph *graph, trainer_node x, float rate);

/* The rows (along the first axis) in another order, drawn anew for each value fed to the placeholder "step",
 * int32, a scalar. */
trainer_node trainer_shuffle(struct trainer_graph *graph, trainer_node x);

/* --- matrices and layers --- */

/* Of rank 2; transposed where it says so. */
trainer_node trainer_matmul(struct trainer_graph *graph, trainer_node a, trainer_node b, bool transpose_a,
                            bool transpose_b);
/* Of a square matrix, [n, n]. The inverse of a singular one is an error of the run, TRAINER_USAGE, as is the
 * gradient of a determinant of 0. On a CPU alone. */
trainer_node trainer_inverse(struct trainer_graph *graph, trainer_node x);
trainer_node trainer_determinant(struct trainer_graph *graph, trainer_node x); /* a scalar */
/* x [batch, in] times a new variable "NAME/kernel" [in, out] plus a new "NAME/bias" [out], which starts at 0;
 * name NULL: "dense1", "dense2", ... */
trainer_node trainer_dense(struct trainer_graph *graph, const char *name, trainer_node x, int out,
                           struct trainer_initial kernel);
/* x [batch, ...], whole numbers from 0 to vocabulary - 1, become rows of a new variable "NAME/kernel"
 * [vocabulary, units]: [batch, ..., units]; name NULL: "embedding1", ... */
trainer_node trainer_embedding(struct trainer_graph *graph, const char *name, trainer_node x, int vocabulary,
                               int units, struct trainer_initial kernel);

/* --- images: [batch, rows, columns, channels] --- */

/* VALID: not at all; SAME: so that the result has ceil(length / stride) rows and columns. */
enum trainer_padding { TRAINER_VALID, TRAINER_SAME };
struct trainer_windows {
    int window[2], stride[2]; /* rows, columns */
    enum trainer_padding padding;
};
/* kernel [rows, columns, channels, out]; the strides of rows and columns are equal. */
trainer_node trainer_conv2d(struct trainer_graph *graph, trainer_node x, trainer_node kernel, int stride,
                            enum trainer_padding padding);
/* The same with a new variable "NAME/kernel" plus a new "NAME/bias" [out], which starts at 0; name NULL:
 * "conv1", ... */
trainer_node trainer_conv(struct trainer_graph *graph, const char *name, trainer_node x, int out,
                          struct trainer_windows windows, struct trainer_initial kernel);
trainer_node trainer_maxpool(struct trainer_graph *graph, trainer_node x, struct trainer_windows windows);
trainer_node trainer_avgpool(struct trainer_graph *graph, trainer_node x, struct trainer_windows windows);
trainer_node trainer_global_average(struct trainer_graph *graph, trainer_node x); /* [batch, channels] */
trainer_node trainer_global_max(struct trainer_graph *graph, trainer_node x);     /* [batch, channels] */
/* x / (bias + alpha * sum of the squares of 2 radius + 1 neighbours on the last axis)^beta */
trainer_node trainer_lrn(struct trainer_graph *graph, trainer_node x, int radius, float bias, float alpha,
                         float beta);
/* Each channel of the last axis with mean 0 and variance 1, times a new variable "NAME/scale" plus a new
 * "NAME/shift"; name NULL: "norm1", ... */
trainer_node trainer_batch_norm(struct trainer_graph *graph, const char *name, trainer_node x, float momentum,
                                float epsilon);
trainer_node trainer_flatten(struct trainer_graph *graph, trainer_node x); /* [batch, everything else] */

/* --- arrays --- */

trainer_node trainer_reshape(struct trainer_graph *graph, trainer_node x,
                             struct trainer_shape shape); /* one dimension may be -1 */
trainer_node trainer_transpose(struct trainer_graph *graph, trainer_node x,
                               const int *order); /* [rank]: axis i of the result is axis order[i] of x */
trainer_node trainer_concat(struct trainer_graph *graph, const trainer_node *parts, int count,
                            int axis); /* at most TRAINER_MOST_INPUTS */
trainer_node trainer_slice(struct trainer_graph *graph, trainer_node x, const int *begin,
                           struct trainer_shape size); /* a size of -1: to the end */
/* parts[count]: equal ones along the axis. */
void trainer_split(struct trainer_graph *graph, trainer_node x, int count, int axis, trainer_node *parts);
/* Zeros around: before[rank], after[rank]. */
trainer_node trainer_pad(struct trainer_graph *graph, trainer_node x, const int *before, const int *after);
trainer_node trainer_broadcast(struct trainer_graph *graph, trainer_node x, struct trainer_shape shape);
trainer_node trainer_shape_of(struct trainer_graph *graph, trainer_node x); /* int32 [rank] */
trainer_node trainer_rank_of(struct trainer_graph *graph, trainer_node x);  /* int32 scalar */

/* --- reductions: over an axis, counted from the end if negative, or TRAINER_ALL_AXES --- */

trainer_node trainer_reduce_sum(struct trainer_graph *graph, trainer_node x, int axis, bool keep);
trainer_node trainer_reduce_mean(struct trainer_graph *graph, trainer_node x, int axis, bool keep);
trainer_node trainer_reduce_max(struct trainer_graph *graph, trainer_node x, int axis, bool keep);
trainer_node trainer_argmax(struct trainer_graph *graph, trainer_node x, int axis); /* int32 */

/* --- losses --- */

trainer_node trainer_softmax(struct trainer_graph *graph, trainer_node x); /* over the last axis */
/* -log softmax(logits)[label]: logits [batch, classes], labels int32 [batch] -> [batch] */
trainer_node trainer_softmax_cross_entropy(struct trainer_graph *graph, trainer_node logits,
                                           trainer_node labels);
/* -log p[label] of probabilities, likewise. */
trainer_node trainer_cross_entropy(struct trainer_graph *graph, trainer_node p, trainer_node labels);
/* Of each logit, of the sigmoid; labels are float32 of the same shape, which is the result's. */
trainer_node trainer_sigmoid_cross_entropy(struct trainer_graph *graph, trainer_node logits,
                                           trainer_node labels);

/* --- control flow: functional, and differentiable; on a CPU alone --- */

/* Builds what is repeated, or chosen: a graph of its own, which sees the values in[count] and gives values
 * out[], all float32, as many as the caller of the loop or condition says. It makes no variables and no
 * placeholders. Called once, before the function that it was given to returns. */
typedef void trainer_build(void *argument, struct trainer_graph *graph, const trainer_node *in, int count,
                           trainer_node *out);

/* While condition(state) holds, state = body(state). states, results [count]: 1 to TRAINER_MOST_INPUTS. The
 * condition gives one bool scalar, the body values of the states' shapes. What the body only reads is a state
 * that it hands on. More than `limit` rounds are an error of the run, TRAINER_USAGE. The gradient has room
 * for the states of `limit` rounds. */
void trainer_while(struct trainer_graph *graph, trainer_build *condition, trainer_build *body, void *argument,
                   int limit, const trainer_node *states, int count, trainer_node *results);

/* results[result_count] of the one of the two that the predicate, a bool scalar, chooses, on operands[count];
 * the other one is not run. Both give values of the same shapes. */
void trainer_cond(struct trainer_graph *graph, trainer_node predicate, trainer_build *if_true,
                  trainer_build *if_false, void *argument, const trainer_node *operands, int count,
                  trainer_node *results, int result_count);

/* --- queues: between the sessions of different threads; on a CPU alone --- */

struct trainer_queue;

/* At most `capacity` values of one shape, float32, each of which is taken once, in the order in which they
 * came. timeout_s: how long a run waits for room, or for a value. */
int trainer_queue_open(struct trainer_queue **queue, struct trainer_shape shape, int capacity,
                       double timeout_s, struct trainer_error *error);
void trainer_queue_close(struct trainer_queue *queue); /* after the graphs that use it */
/* Nothing more is put in; what is there can still be taken. */
void trainer_queue_end(struct trainer_queue *queue);
long trainer_queue_length(const struct trainer_queue *queue); /* values in it now */

/* Operations, run when fetched. Errors of a run: TRAINER_PEER: nobody came in time; TRAINER_STOPPED: the
 * queue was ended and, for dequeue, is empty. */
trainer_node trainer_enqueue(struct trainer_graph *graph, struct trainer_queue *queue,
                             trainer_node x); /* its value is x */
trainer_node trainer_dequeue(struct trainer_graph *graph, struct trainer_queue *queue);

/* --- operations of the program's own, float32, on a CPU alone --- */

struct trainer_operation {
    const char *name;
    void *argument; /* of the functions */
    /* Sets *result from the operands' shapes; returns NULL, or what is wrong with them in words. NULL: as the
     * first operand. */
    const char *(*shape)(void *argument, const struct trainer_shape *operands, int count,
                         struct trainer_shape *result);
    /* Returns NULL, or what is wrong in words: an error of the run, TRAINER_DEVICE. Several sessions,
     * and devices of one, may call it at once. Must be there, as the name. */
    const char *(*compute)(void *argument, const float *const *operands, const struct trainer_shape *shapes,
                           int count, float *result, const struct trainer_shape *result_shape);
    /* The gradient of the loss with respect to operand i: nodes made from the operands x[count], the result y
     * and its gradient dy. TRAINER_NONE: there is none. NULL: the operation cannot be differentiated. */
    trainer_node (*gradient)(void *argument, struct trainer_graph *graph, const trainer_node *x, int count,
                             trainer_node y, trainer_node dy, int i);
};
/* operands[count]: 1 to TRAINER_MOST_INPUTS. The operation is borrowed until the graph is closed. */
trainer_node trainer_custom(struct trainer_graph *graph, const struct trainer_operation *operation,
                            const trainer_node *operands, int count);

/* --- differentiation --- */

/* gradients[i] = the node of the gradient of `loss`, a scalar, with respect to targets[i]; TRAINER_NONE: the
 * loss does not depend on it. Of a variable there may be one gradient among the fetches of a run. */
void trainer_gradients(struct trainer_graph *graph, trainer_node loss, const trainer_node *targets, int count,
                       trainer_node *gradients);

/* --- sessions: a graph on a device, or on several, with the values of its variables --- */

struct trainer_session;

struct trainer_feed {
    trainer_node node; /* a placeholder */
    const void *data;
    size_t bytes; /* as many as it has */
};
struct trainer_fetch {
    trainer_node node;
    void *data;   /* its value after the run; NULL: it is run, and its value not wanted */
    size_t bytes; /* as many as it has; of NULL: 0 */
};

/* devices: "cpu:0", "gpu:1", or several (below), "cpu:0,cpu:1"; NULL: "cpu:0". Variables get their first
 * values. The graph must outlive the session, and get no more variables; other nodes may still be added
 * between runs. A session on a GPU has the GPU's operations alone: what it has no kernel for is refused by
 * name, with TRAINER_DEVICE. Algorithms are not chosen by measured times, so the same graph gives the same
 * bits. */
int trainer_session_open(struct trainer_session **session, const struct trainer_graph *graph,
                         const char *devices, struct trainer_error *error);
void trainer_session_close(struct trainer_session *session);

/* Runs what the fetches need, and nothing else, in the order in which the nodes were made. What the same
 * fetches need is compiled once. Errors: TRAINER_USAGE: a placeholder that is needed was not fed, a size does
 * not fit, the graph has a mistake; TRAINER_DEVICE. After an error of a run the variables have whatever
 * value the run left in them. */
int trainer_session_run(struct trainer_session *session, const struct trainer_feed *feeds, int feed_count,
                        const struct trainer_fetch *fetches, int fetch_count, struct trainer_error *error);
/* Whether the node was computed in the last run. */
bool trainer_session_ran(const struct trainer_session *session, trainer_node node);

/* The value of a variable: [count] elements, as many as it has. */
int trainer_session_get(const struct trainer_session *session, trainer_node variable, float *values,
                        size_t count, struct trainer_error *error);
int trainer_session_set(struct trainer_session *session, trainer_node variable, const float *values,
                        size_t count, struct trainer_error *error);
/* All variables, as a safetensors file. Loading wants each of them, with its shape, and no other; after an
 * error the variables are as they were. */
int trainer_session_save(const struct trainer_session *session, const char *path,
                         struct trainer_error *error);
int trainer_session_load(struct trainer_session *session, const char *path, struct trainer_error *error);

/* --- sessions on several devices ---
 *
 * Each node of a run is computed on one of them:
 *   - the one that it is pinned to;
 *   - a gradient's node: that of the node whose gradient it is;
 *   - with trainer_session_place, from the first node that reads a variable of a named layer on: that
 * layer's;
 *   - else that of its first operand that has one, else the first device.
 * Placeholders and variables are where they are first read, constants wherever they are read. Where an
 * operand lies elsewhere, its value crosses. Results are the bits of one device where the devices are of one
 * kind.
 *
 * What a device has no kernel for is computed on the first CPU among them; without one it is refused by name,
 * with TRAINER_DEVICE. So are loops, conditions, queues and the program's own operations, each of which is on
 * one CPU as a whole. All operations of a queue in a run must be on one device (TRAINER_USAGE).
 *
 * Each device has a thread of its own, which computes its part of a run; a part on a CPU that always ends may
 * be computed by the thread that calls. Operations of the program's own are called by the devices' threads,
 * at the same time where they lie on several. A GPU has room for all variables. */

/* device: one of the session's, "cpu:1"; NULL: it is not pinned any more. From the next run on. An assignment
 * is where its variable is; pinned elsewhere, it is an error of the run, TRAINER_USAGE. */
int trainer_session_pin(struct trainer_session *session, trainer_node node, const char *device,
                        struct trainer_error *error);
/* layers: "conv*=cpu:0,dense2=cpu:1": names of layers ("dense1" of "dense1/kernel") or variables, with * for
 * anything, ? for a character and [ab] for one of these; of those that match the last one counts. Replaces
 * what was said before; NULL: nothing. From the next run on, in which, on several devices, a pattern without
 * a variable is an error. */
int trainer_session_place(struct trainer_session *session, const char *layers, struct trainer_error *error);
/* How long a device may stay at one node, or wait for a value of another one; at first 60 s. A run in which
 * one takes longer ends with TRAINER_PEER, which names device and node, within little more than twice this.
 * Until that device has ended, other calls say the same; trainer_session_close waits for it as long once
 * more, 10 s at most, and then leaves it behind with all that it uses: the graph must not be closed then. */
int trainer_session_timeout(struct trainer_session *session, double seconds, struct trainer_error *error);

/* Of the last run, which a failed one is not. The device where the node was; NULL: the run had no need of it,
 * or it is a constant. */
const char *trainer_session_device(const struct trainer_session *session, trainer_node node);
struct trainer_crossing {
    trainer_node node; /* whose value crossed */
    const char *from, *to;
    size_t bytes;
};
/* Value i that crossed, from 0; false after the last. */
bool trainer_session_crossing(const struct trainer_session *session, int i,
                              struct trainer_crossing *crossing);
/* Line i of what was computed on a CPU for lack of a kernel ("argmax: gpu:0 has no kernel for it, it runs on
 * cpu:0"); NULL after the last. Valid until the next run. */
const char *trainer_session_moved(const struct trainer_session *session, int i);

/* --- training: what `trainer train` does, in this process --- */

struct trainer_training;

int trainer_training_open(struct trainer_training **training, struct trainer_error *error);
void trainer_training_close(struct trainer_training *training); /* not while it runs */

/* From here on it is what `trainer train` is: it prints its settings, epochs and results to standard output,
 * progress and warnings to standard error; without "out" its files go to a folder of their own in runs/; and
 * SIGINT, SIGTERM and SIGHUP end a run with a checkpoint, by handlers that stay. Otherwise a training prints
 * nothing, catches no signal, and writes no file without "out". */
void trainer_training_as_program(struct trainer_training *training);

/* Settings have the names, values and defaults of the command line: "strategy", "async-lockfree"; "devices",
 * "cpu:0,cpu:1"; "model", "mlp:hidden=20"; "epochs", "10". Those of a cluster are refused; "resume",
 * "replace", "explain", "quiet" and "print-every" too, unless it is to be as the program. */
int trainer_training_set(struct trainer_training *training, const char *name, const char *value,
                         struct trainer_error *error);

/* What the labels of examples are. */
enum trainer_task {
    TRAINER_CLASSES, /* int32 [count]: the class of each, from 0 */
    TRAINER_LABELS,  /* float32 [count][outputs]: 1 for each label that it has, else 0 */
    TRAINER_VALUES   /* float32 [count][outputs]: numbers to predict */
};
/* Arrays are borrowed until the training is closed, and never changed. */
struct trainer_examples {
    int count;
    const float *features; /* [count][shape] */
    const void *labels;    /* as the task has them */
    /* Instead of arrays (NULL): called for each example, in order, when the training begins, to fill
     * features[shape] and label. Returns NULL, or what is wrong in words. */
    const char *(*read)(void *argument, int number, float *features, void *label);
    void *argument;
};
struct trainer_data {
    struct trainer_shape shape; /* of one example: [4], [28, 28, 1] */
    enum trainer_task task;
    int outputs; /* classes, labels or values: at least 2 classes, or 1 of the others */
    struct trainer_examples train, test; /* test.count 0: tested on what it is trained on */
};
/* Trains on the program's own data instead of the setting "dataset". */
int trainer_training_data(struct trainer_training *training, const struct trainer_data *data,
                          struct trainer_error *error);

/* --- a strategy of the program's own: how the workers of a training share what they learn --- */

enum { TRAINER_MOST_BARRIERS = 8 };

/* The exchange of one worker with one shard, a slice of the weights. Valid only during the call of the
 * strategy's function that it is passed to. */
struct trainer_exchange {
    int worker, workers;       /* its number, from 0; how many there are */
    int shard;                 /* its number, from 0 */
    long step;                 /* push: of the gradient, from 0; pull: how many the worker has finished */
    int examples;              /* push: the gradient is the mean over these; 0: empty, no batch was left */
    struct trainer_side *side; /* private */
};

/* Both return 0, or a code with words in *error. A code ends the worker and, unless the run may lose it, the
 * run: "NAME: words". They are called by the threads of all workers, also at the same time. */
typedef int trainer_push(void *argument, const struct trainer_exchange *at, struct trainer_error *error);
/* *version: how many updates the weights have had that the worker computes on next; at first -1. At most
 * trainer_shard_version, and in rounds one more, for a round that another worker has still to end. */
typedef int trainer_pull(void *argument, const struct trainer_exchange *at, long *version,
                         struct trainer_error *error);

struct trainer_strategy {
    const char *name; /* 1 to 31 of a to z, 0 to 9 and -; not that of a built-in strategy */
    void *argument;   /* passed to the functions */
    /* What it needs. */
    bool rounds;      /* all workers take equally many steps: round r has one batch for each */
    bool merged;      /* with rounds: one update per round, not one per gradient */
    bool own_weights; /* a worker computes on a copy of its own; else on the shared weights, in place */
    bool servers;     /* with own_weights: threads that apply posted gradients in order of arrival */
    bool whole_reads; /* a lock keeps updates by servers and copies apart */
    /* Names of the barriers of each shard ("the barrier where all gradients are in"), as messages have them;
     * at most TRAINER_MOST_BARRIERS, ended by NULL. NULL: none. */
    const char *const *barriers;
    trainer_push *push; /* contributes, posts or applies the gradient; must not wait for another worker */
    trainer_pull *pull; /* before the worker computes: waits, steps or reads */
    trainer_pull *rest; /* before a pause, instead: the shared weights must then have what the worker has
                           learnt; NULL: pull */
};
/* Trains by the program's strategy instead of the setting "strategy". What it points at is borrowed until the
 * training is closed. */
int trainer_training_strategy(struct trainer_training *training, const struct trainer_strategy *strategy,
                              struct trainer_error *error);

/* What push does with a gradient, one of these, once: leaves it for the mean of the round; sends it to the
 * shard's server; steps the weights with it at once, in place, without any guard. Errors (here and below):
 * TRAINER_USAGE: not in push, not needed by the strategy, out of range. */
int trainer_shard_contribute(const struct trainer_exchange *at, struct trainer_error *error);
int trainer_shard_post(const struct trainer_exchange *at, struct trainer_error *error);
int trainer_shard_apply(const struct trainer_exchange *at, struct trainer_error *error);

/* In pull. Copies the shard's weights for the worker if they have changed, and sets *version of the pull. */
int trainer_shard_read(const struct trainer_exchange *at, struct trainer_error *error);
/* Waits until all gradients of `worker` from before its own step `step` are applied; worker -1: of every
 * worker. Errors: TRAINER_PEER: nobody came in time, or the run ends. */
int trainer_shard_await(const struct trainer_exchange *at, int worker, long step,
                        struct trainer_error *error);
/* Steps the `share`-th of `shares` equal parts with the mean of what was contributed, by examples. */
int trainer_shard_step_share(const struct trainer_exchange *at, int share, int shares,
                             struct trainer_error *error);
/* Counts the update. Called by one worker, when all shares are stepped. */
void trainer_shard_end_round(const struct trainer_exchange *at);
long trainer_shard_version(const struct trainer_exchange *at); /* updates so far */
/* Releases what `worker` has contributed: it was applied to weights that had had `version` updates, from
 * those that it was computed on to trainer_shard_version. Without servers its pull, or rest, must not end
 * before. */
int trainer_shard_done(const struct trainer_exchange *at, int worker, long version,
                       struct trainer_error *error);

/* Barriers of the shard are numbered by their place in the list, rounds from 0. The worker has arrived for a
 * round; it arrives for them in order. */
int trainer_barrier_arrive(const struct trainer_exchange *at, int barrier, long round,
                           struct trainer_error *error);
/* In pull: until all who take part have arrived. Errors: TRAINER_PEER, as above. */
int trainer_barrier_wait(const struct trainer_exchange *at, int barrier, long round,
                         struct trainer_error *error);
bool trainer_barrier_is_open(const struct trainer_exchange *at, int barrier, long round);
/* Of a round that is open: whether `worker` has arrived; its place, from 0, among the *arrived who have. */
bool trainer_barrier_has(const struct trainer_exchange *at, int barrier, int worker, long round);
int trainer_barrier_rank(const struct trainer_exchange *at, int barrier, int worker, long round,
                         int *arrived);

/* --- the training's run --- */

struct trainer_step {
    int worker;
    long step;        /* of this worker, from 1 */
    int epoch;        /* from 1 */
    double time_s;    /* since training began */
    float loss, rate; /* the mean over the batch; the learning rate */
    int examples;
    double input_ms, pull_ms, compute_ms, push_ms, wait_ms; /* where its time went */
    long staleness; /* updates by others between the weights it was computed on and its own */
};
struct trainer_epoch {
    int epoch; /* from 1 */
    double time_s, train_loss, test_loss;
    double test_score; /* of classes and labels, the accuracy; of values, the root mean squared error */
    double examples_per_s;
};
/* Called on the thread that runs the training, while the workers go on: steps some time after they were done,
 * in the order of their time; epochs at their end. Whoever returns false asks for an end, as
 * trainer_training_stop does. Either may be NULL. */
struct trainer_watcher {
    bool (*step)(void *argument, const struct trainer_step *step);
    bool (*epoch)(void *argument, const struct trainer_epoch *epoch);
    void *argument;
};
void trainer_training_watch(struct trainer_training *training, const struct trainer_watcher *watcher);

struct trainer_result {
    double test_score, test_loss, final_loss, seconds, examples_per_s;
    long updates;
    long long examples;
};
/* Trains from the beginning; may be called again, but not by a watcher, and then replaces what the run before
 * has left in "out". *result (NULL: nobody wants it) is filled on success and when it was stopped. Errors:
 * TRAINER_STOPPED: it was asked to end, and what it has learnt is there; TRAINER_USAGE: among others, the
 * program's own examples have a class out of range, a label that is not 0 or 1, or a number that is not
 * finite; TRAINER_FILE: its function `read` says that something is wrong; TRAINER_DIVERGED; all of `trainer
 * train`. */
int trainer_training_run(struct trainer_training *training, struct trainer_result *result,
                         struct trainer_error *error);
/* Asks for an end at the next step; by any thread. Before a run: that one ends as soon as it has begun, and
 * the one after it does not. */
void trainer_training_stop(struct trainer_training *training);

/* --- what was learnt --- */

/* Weight i, from 0: its name ("dense1/kernel"), and its shape and values, until the next run. NULL: there are
 * no more, or nothing was learnt. */
const char *trainer_training_weight(const struct trainer_training *training, int i,
                                    struct trainer_shape *shape, const float **values);
/* All of them as a safetensors file: for trainer_session_load, or `trainer train --weights=FILE`. */
int trainer_training_save(const struct trainer_training *training, const char *path,
                          struct trainer_error *error);
/* outputs[count][outputs of the network] = probabilities of the classes or labels, or values, of
 * features[count][shape], as the network sees them. */
int trainer_training_predict(struct trainer_training *training, const float *features, int count,
                             float *outputs, struct trainer_error *error);
/* Outputs of the network for each example, and numbers of an example; 0: nothing was learnt. */
int trainer_training_outputs(const struct trainer_training *training);
int trainer_training_features(const struct trainer_training *training);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
