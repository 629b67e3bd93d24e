/* What one side of a connection between host and worker keeps for --compress (compress.h).
 *
 * In each segment the host sends all weights first, and then how they differ from what the worker has. What
 * the worker's gradients have left out, it owes: it adds that to the next gradient. At a pause it says what
 * it still owes. The host adds up what all workers owe, which is then a vector of the store, in checkpoints
 * like any other; in the next segment each worker owes an equal share. So a run that goes on from a
 * checkpoint, or with other workers, owes the same. */
#ifndef TRAINER_BRIDGE_PACKED_H
#define TRAINER_BRIDGE_PACKED_H

#include "compress.h"
#include "frame.h"

/* A frame's flag: its payload is packed. */
enum { FRAME_PACKED = 1 };

struct packed {
    struct compress compress; /* zeroed: all goes as it is */
    bool known;               /* a host: the worker has `kept` */
    float *kept;              /* [slice] a host: the weights that the worker has; a worker: what it owes */
    float *meant, *sent;      /* [slice] */
    uint8_t *bytes;           /* [compress.bytes] that come or go */
};

/* Of the layout's [begin, end); does nothing for --compress=none. Errors: ERROR_DEVICE: no memory. */
int packed_open(struct packed *packed, const struct choice *choice, const struct layout *layout, size_t begin,
                size_t end, struct error *error);
void packed_close(struct packed *packed); /* safe on a zeroed one */

static inline bool packed_is_on(const struct packed *packed) {
    return packed->compress.compressor != NULL;
}

/* --- a host --- */

/* The weights[slice] are sent as they are, and with them a share of what all owe: kept and sent[slice]. */
void packed_begin(struct packed *packed, const float *weights, const float *owed, int workers);
/* The worker has computed nothing in the segment, so it was not told its share: kept[slice] has it, too. */
void packed_add_share(struct packed *packed, const float *owed, int workers);
/* How the weights[slice] differ from what the worker has, which then has them, but for what is left out. */
struct piece packed_weights(struct packed *packed, const float *weights);
/* gradient[slice] from packed->bytes. Errors: ERROR_PEER. */
int packed_read_gradient(const struct packed *packed, size_t count, float *gradient, const char *peer,
                         struct error *error);

/* --- a worker --- */

/* The gradient[slice], and what was owed; owes what is left out. */
struct piece packed_gradient(struct packed *packed, const float *gradient);
/* weights[slice] change by packed->bytes. Errors: ERROR_PEER. */
int packed_read_weights(struct packed *packed, size_t count, float *weights, const char *peer,
                        struct error *error);

#endif
