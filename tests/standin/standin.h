/* What a test may ask of the stand-in runtime, and does not exist in the real one.
 *
 * Environment, read once: STANDIN_GPUS (how many; 2), STANDIN_MEMORY (MB of each; 1024), STANDIN_PEER (0: no
 * GPU reaches another's memory), STANDIN_PEERS (how many others a GPU may reach; 8), STANDIN_CAPTURE (0: none
 * succeeds), STANDIN_EAGER (1: work is done as soon as it is queued), STANDIN_CAPABILITY (major * 10 + minor;
 * 90), STANDIN_MACHINE (whose GPUs they are; unset: this process's alone), STANDIN_NCCL (a folder where ranks
 * of several processes meet; unset: none does), STANDIN_FAIL (as standin_fail), STANDIN_HANG and
 * STANDIN_BREAK (as standin_hang and standin_break), STANDIN_WAITS (1: what standin_waits says is written to
 * stderr at exit), STANDIN_COUNTS (1: so is standin_counts; 2: also how often each kind of work was queued),
 * STANDIN_DRY (1: in graphs, kernels and libraries compute nothing, so that what is queued can be counted in
 * no time). At exit, what was not given back is named on stderr and the exit code becomes 99. */
#ifndef STANDIN_STANDIN_H
#define STANDIN_STANDIN_H

#include "cuda_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The n-th call from now on (1: the next) that can fail does: cudaMalloc and the like for want of memory,
 * others with cudaErrorUnknown. Calls that give back are not counted. 0: none. */
void standin_fail(long n);
/* The n-th collective of NCCL's from now on never ends (to join is one, too), or its communicators find out
 * that a rank is gone; a communicator that is aborted lets go of both. 0: none. */
void standin_hang(long n);
void standin_break(long n);
/* Calls that could have failed, since the start. */
long standin_calls(void);
/* What is open, by kind: "allocation", "host allocation", "stream", "event", "graph", "cublasLt object", ...;
 * NULL: all together. */
int standin_open(const char *kind);
/* The next work that runs on the device fails as a kernel does that follows a wild pointer; from then on
 * every call that has to do with the device fails. With cudaSuccess the device is as new. */
void standin_lose(int device, cudaError_t error);
/* How often the host has waited for work of a stream that nobody had waited for before, since the start:
 * synchronisations, copies that wait, and copies between a device and memory that is not pinned. */
long standin_waits(void);
/* What was asked of the GPUs since the start. */
struct standin_counts {
    long recorded; /* work that came to a stream by the launch of a graph ... */
    long queued;   /* ... and without one: kernels, libraries' calls, copies */
    long kernels;  /* of both: what computes, the libraries' work too */
    long converts; /* of these: from one type to another */
    long scalars;  /* of these: products of matrices whose result is one number */
    long marks;    /* events recorded, and waits of streams for them */
    long launches; /* of graphs */
    long waits;    /* as standin_waits says */
    long ahead;    /* of these: with work queued behind what was waited for */
    long calls;    /* of the host's that could have failed */
    long contests; /* how often a library was asked for its algorithms for a problem */
};
struct standin_counts standin_counts(void);
/* Work that was queued on any stream and is not done yet. */
long standin_waiting(void);

#ifdef __cplusplus
}
#endif

#endif
