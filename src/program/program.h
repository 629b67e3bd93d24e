/* Programs: a graph made runnable on a device.
 *
 * Compiling prunes what no fetch needs, fuses neighbours (dense + bias + activation), picks a kernel for
 * each node, and lays all intermediate values out in one arena by liveness. A program is constant: it
 * takes the addresses of the slabs as arguments of each run, so a worker can compute on the store's
 * weights in place, gradients are written where they are handed over, and many workers can share a
 * program. Whatever is written while it runs is in the arena or in the slabs. Running allocates nothing. */
#ifndef TRAINER_PROGRAM_PROGRAM_H
#define TRAINER_PROGRAM_PROGRAM_H

#include <stdio.h>
#include "../device/device.h"
#include "../graph/graph.h"

struct program;
struct arena;

/* Compiles what `fetches[count]` need. The graph must outlive the program. Errors: the graph's first mistake;
 * a fetch that is NONE. */
int program_compile(struct program **out, const struct graph *graph, const node *fetches, int count,
                    const struct device *device, struct error *error);
void program_close(struct program *program); /* NULL is fine */

/* Memory that one thread at a time runs the program in. */
int arena_open(struct arena **out, const struct program *program, struct error *error);
void arena_close(struct arena *arena); /* NULL is fine */

/* Where the value of a placeholder (to write before a run) or a fetch (to read after it) lives in the arena,
 * on the device. For a fetch that is a variable, a constant or a gradient: NULL, its value is in its slab.
 * NULL too when the program does not need the placeholder. */
void *arena_address(const struct arena *arena, node n);

/* Copies the first `bytes` of such a value to or from the host's memory; after what the calling thread has
 * queued on the device, and complete on return. Errors: ERROR_DEVICE. */
int arena_read(const struct arena *arena, node n, void *host, size_t bytes, struct error *error);
int arena_write(const struct arena *arena, node n, const void *host, size_t bytes, struct error *error);

/* From the next run on the program reads a placeholder at `address` on the device, on a cache line's
 * boundary, instead of in the arena: a batch that somebody else builds need not be copied. arena_address
 * still gives the arena's own memory of it; setting that one puts it back. Costs a look at every
 * instruction's operands; nothing when the program does not need the placeholder. Not for one that is
 * fetched, itself or as a reshape. */
void arena_set_input(struct arena *arena, node n, const void *address);

/* From the next run on a run begins with `before`, which queues what builds its inputs, always the same for
 * the same argument. NULL: with nothing. */
typedef int arena_before(void *argument, struct error *error);
void arena_set_before(struct arena *arena, arena_before *before, void *argument);

/* From the next run on a run leaves the first `bytes` of a fetch that is in the arena in memory of the
 * device's allocate_host, too: copied there at its end, queued as all of a run is, or written there alone,
 * where the device can and nothing else reads the value. host NULL: no longer. */
void arena_set_output(struct arena *arena, node n, void *host, size_t bytes);

/* Is called before each instruction of a run, on the thread that runs it: neither this one nor those before
 * it read weights[until ..], and neither this one nor those after it write gradients[from ..]. Returns once
 * weights[.. until] may be read. Not for a device that queues what it runs. NULL: nobody is called. */
typedef int arena_step(void *argument, size_t until, size_t from, struct error *error);
int arena_set_step(struct arena *arena, arena_step *step, void *argument, struct error *error);

/* Runs every instruction once. weights, gradients: [layout.floats] floats on the device; gradients may be
 * NULL when no fetch is gradient_of a range, weights when there are no variables. Padding of the gradient
 * slab is left alone. On a device that can, what is queued is recorded the first time and replayed from then
 * on, for each weights, gradients, inputs, output and argument that come again. Errors: ERROR_DEVICE. */
int program_run(const struct program *program, struct arena *arena, float *weights, float *gradients,
                struct error *error);

/* What has become of the recording. */
struct recording_facts {
    int nodes;       /* pieces of work in it; 0: a run is queued instruction by instruction */
    const char *why; /* why it is, the arena's; "": it is not */
};
/* By any thread. False: nothing is known yet, or the device records nothing. */
bool arena_recording(const struct arena *arena, struct recording_facts *facts);

/* Runs every instruction once, as program_run does; of those that took less than
 * seconds[program_instructions] says, it says the less from then on. Zeroed: not yet measured. */
int program_time(const struct program *program, struct arena *arena, float *weights, float *gradients,
                 const struct world *world, double *seconds, struct error *error);

/* Writes the operations that have no kernel on the device and so run on the CPU into out[bytes]; whether
 * there are any. */
bool program_soft(const struct program *program, char *out, size_t bytes);

size_t program_arena_bytes(const struct program *program);
bool program_runs(const struct program *program,
                  node n); /* whether the node was kept (not pruned, not fused away) */
int program_instructions(const struct program *program);
/* The node that the instruction computes, with what was fused into it. */
node program_instruction(const struct program *program, int instruction);

/* For tests: one line per instruction: operation, kernel, shapes, places. */
void program_print(const struct program *program, FILE *file);

/* For --explain: one line per instruction: what it computes with what was fused into it, the implementation
 * chosen, its precision, the bytes it reads and writes; with seconds[program_instructions] (of program_time;
 * NULL: none) also its time, share of all and speed. */
void program_explain(const struct program *program, const double *seconds, FILE *file);

#endif
