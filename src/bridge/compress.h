/* A slice of the flat vector on its way through a compressor. Weights and gradients go through it; statistics
 * (of batch_norm) go as they are, frozen weights and padding not at all.
 *
 * The sender learns what the receiver will have, and keeps the rest. The worker adds what its gradients have
 * left out to the next one. The host sends of the weights how they differ from what the worker has. */
#ifndef TRAINER_BRIDGE_COMPRESS_H
#define TRAINER_BRIDGE_COMPRESS_H

#include "../graph/layout.h"
#include "compressor.h"

struct compress {
    const struct compressor *compressor; /* NULL: nothing is open, everything goes as it is */
    const void *settings;                /* borrowed */
    struct blocks lossy, exact;          /* by their places in the slice */
    struct block *list;                  /* of both */
    float *scratch;
    size_t floats; /* of the slice */
    size_t bytes;  /* that it takes, at most */
};

/* Whether anything is made smaller. */
bool compress_is_on(const struct choice *choice);

/* Of the layout's [begin, end). Errors: ERROR_DEVICE: no memory. */
int compress_open(struct compress *compress, const struct choice *choice, const struct layout *layout,
                  size_t begin, size_t end, struct error *error);
void compress_close(struct compress *compress); /* safe on a zeroed one */

/* Writes meant[floats] into out[bytes], and into sent[floats] what unpacking gives. Returns the bytes
 * written.
 */
size_t compress_pack(const struct compress *compress, const float *meant, float *sent, uint8_t *out);
/* values[floats] from in[count]. Errors: ERROR_PEER: this was not packed so; begins with `peer`. */
int compress_unpack(const struct compress *compress, const uint8_t *in, size_t count, float *values,
                    const char *peer, struct error *error);

#endif
