/* Partitions: a graph made runnable on several devices, with one program per device.
 *
 * Where an operand lives on another device, the program that computes it has a send node after it, and the
 * one that reads it has a receive node before its first reader. Each program runs on its own thread; they
 * share nothing else. A partition is constant, as a program is; what a run writes is in a rendezvous: the
 * arenas of all parts and the channels between them, from the sender's memory straight into the receiver's.
 * A channel has room for as many values as either end has runs in flight; a sender that is further ahead
 * waits.
 *
 * All parts walk the graph in the same order, a value is sent before any later node waits, and no part
 * waits for a later run: so they cannot deadlock. In a pipeline (pipeline.h) parts are one micro-batch
 * forward while they are another one backward. Whether they can is tried when the rendezvous is opened.
 *
 * Which device a node gets:
 *   - the one that `pin` says, if it says one;
 *   - a gradient's node: that of the forward node it belongs to;
 *   - with `layers`, from the first node that reads a variable of a named layer on: that layer's;
 *   - that of its first operand that has one, else the first device.
 *   - A placeholder or variable that is not pinned goes to its first reader, and lives on one device; an
 *     assign is where its variable is. Constants are wherever they are read.
 * What no fetch needs is in no part. */
#ifndef TRAINER_PROGRAM_PARTITION_H
#define TRAINER_PROGRAM_PARTITION_H

#include "pipeline.h"
#include "program.h"

struct partition;
struct rendezvous;

struct placement {
    const struct device *devices; /* [count]; must outlive the partition */
    int count;
    const char *layers; /* "conv*=cpu:0,dense2=cpu:1", patterns as of layout_matches, of which the last one
                           that matches counts; or NULL */
    /* The number of the device that node n must have, or NONE; NULL: none is pinned. */
    int (*pin)(const void *argument, node n);
    const void *argument; /* of pin */
    /* The first node of the backward half; 0: all nodes are in the forward half. */
    node backward;
    /* A node that its device has no kernel for goes to the first CPU device; else that is an error. Who
     * follows the node stays. */
    bool soft;
};

/* Compiles what `fetches[count]` need, one program per device. The graph must outlive the partition. Enters
 * each device in turn, so the caller enters its own again. Errors: those of program_compile; ERROR_USAGE: a
 * layer or device that is not there, an assign pinned away from its variable; ERROR_DEVICE: no kernel, naming
 * operation and device. */
int partition_compile(struct partition **out, const struct graph *graph, const node *fetches, int count,
                      const struct placement *placement, struct error *error);
void partition_close(struct partition *partition); /* NULL is fine */

/* The device a node lives on; NONE when it is in no part, or a constant. */
int partition_device(const struct partition *partition, node n);
/* The stage that a part is in a pipeline: parts are ordered by the last node of their forward half. */
int partition_stage(const struct partition *partition, int part);
/* "node 12 (variable dense1/bias)" of the whole graph, for words. Returns out. */
enum { NODE_WORDS_BYTES = 120 };
const char *partition_words(const struct partition *partition, node n, char out[NODE_WORDS_BYTES]);
/* The part of that device, and the number that a node of the graph has in it, received ones too; NONE. */
const struct program *partition_program(const struct partition *partition, int part);
node partition_node(const struct partition *partition, int part, node n);
/* Value i that goes from one device to another in a run, with its bytes; NONE after the last. */
node partition_crossing(const struct partition *partition, int i, int *from, int *to, size_t *bytes);
/* Bytes of the values of a part that are in memory at a time, in a pipeline. */
size_t partition_bytes(const struct partition *partition, const struct pipeline *pipeline, int part);
/* What soft placement moved: line i for the log, one an operation and device; NULL after the last. */
const char *partition_move(const struct partition *partition, int i);

/* Memory in which one thread per part at a time runs the partition: an arena for each run that a part has in
 * flight. pipeline: the order of the halves, with a stage per part; NULL: one run after the other. A wait for
 * another part gives up after timeout_s. Errors: those of arena_open; ERROR_USAGE: in this order the parts
 * would wait for each other for ever. */
int rendezvous_open(struct rendezvous **out, const struct partition *partition,
                    const struct pipeline *pipeline, struct world *world, double timeout_s,
                    struct error *error);
void rendezvous_close(struct rendezvous *rendezvous); /* NULL is fine; no part may be running */

/* The world time after which no wait for another part goes on, until it is set again; while no part runs. */
void rendezvous_set_deadline(struct rendezvous *rendezvous, double deadline_s);

/* As arena_address, in the memory of run number `run`, on the device that the node lives on. */
void *rendezvous_address(const struct rendezvous *rendezvous, long run, node n);

/* As arena_set_input, of that run; before its forward half. */
void rendezvous_set_input(struct rendezvous *rendezvous, long run, node n, const void *address);

/* Runs one half of one part, on the calling thread, which has entered the part's device and is one of the
 * world's. It is that of the first run whose half this part has not run. All parts must be run equally often.
 * weights, gradients: the slabs of the part's device; see program_run. Errors: ERROR_DEVICE, with the node;
 * ERROR_PEER: another part failed or gave no value in time. */
int rendezvous_run(struct rendezvous *rendezvous, int part, bool backward, float *weights, float *gradients,
                   struct error *error);

/* Waits until all is done that the part's device was given. Errors: its own, with the node that the part has
 * come to. */
int rendezvous_finish(const struct rendezvous *rendezvous, int part, struct error *error);

/* A part has failed: every wait of another one ends, and every part fails from then on. rendezvous_run does
 * so itself. */
void rendezvous_fail(struct rendezvous *rendezvous, int part);
/* The part that failed first; NONE. */
int rendezvous_failed(const struct rendezvous *rendezvous);

/* The node that a part has come to, as partition_words; also while it runs. */
const char *rendezvous_words(const struct rendezvous *rendezvous, int part, char out[NODE_WORDS_BYTES]);

/* Seconds that a part has waited for others so far. On its thread, or while it does not run. */
double rendezvous_waited(const struct rendezvous *rendezvous, int part);

#endif
