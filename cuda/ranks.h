/* Private to cuda/: ranks of NCCL's, whoever drives them. */
#ifndef TRAINER_CUDA_RANKS_H
#define TRAINER_CUDA_RANKS_H

#include "gpu.h"

#if TRAINER_NCCL

struct rank {
    const struct device *device;
    cudaStream_t stream;
    ncclComm_t comm; /* NULL: not yet, or aborted */
};

/* A call that only begins something succeeds, or is in progress. */
bool rank_is_begun(ncclResult_t code);
/* Whether what was begun on the rank is done: by its communicator and, with `streams`, on its stream. *why:
 * what has failed. */
bool rank_is_settled(const struct rank *rank, bool streams, const char **why);
void rank_describe(char *out, size_t bytes); /* "NCCL 2.28.9" */

/* The slots of struct collective for several processes. */
void rank_offer(const struct device *device, bool draws, struct rank_offer *offer);
int rank_join(const struct device *device, const struct rank_place *place, void **rank, struct error *error);
int rank_sum(void *rank, float *values, const struct rank_window *windows, int count, struct error *error);
void rank_leave(void *rank, bool well);

#endif

#endif
