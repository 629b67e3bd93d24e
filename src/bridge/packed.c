/* See packed.h. */
#include "packed.h"

#include <string.h>

#include "../base/memory.h"

int packed_open(struct packed *packed, const struct choice *choice, const struct layout *layout, size_t begin,
                size_t end, struct error *error) {
    *packed = (struct packed){0};
    if (!compress_is_on(choice)) return OK;
    RETURN_IF(compress_open(&packed->compress, choice, layout, begin, end, error));
    RETURN_IF(memory_array(&packed->kept, end - begin, "what compressing leaves out", error));
    RETURN_IF(memory_array(&packed->meant, end - begin, "what is compressed", error));
    RETURN_IF(memory_array(&packed->sent, end - begin, "what is sent", error));
    return memory_array(&packed->bytes, packed->compress.bytes, "compressed weights", error);
}

void packed_close(struct packed *packed) {
    memory_free(packed->bytes);
    memory_free(packed->sent);
    memory_free(packed->meant);
    memory_free(packed->kept);
    compress_close(&packed->compress);
    *packed = (struct packed){0};
}

static struct piece pack(const struct packed *packed) {
    return (struct piece){packed->bytes,
                          compress_pack(&packed->compress, packed->meant, packed->sent, packed->bytes)};
}

/* --- a host --- */

void packed_begin(struct packed *packed, const float *weights, const float *owed, int workers) {
    const float share = 1.0f / (float)workers;
    memcpy(packed->kept, weights, packed->compress.floats * sizeof *weights);
    for (size_t i = 0; i < packed->compress.floats; i++) packed->sent[i] = owed[i] * share;
    packed->known = true;
}

void packed_add_share(struct packed *packed, const float *owed, int workers) {
    const float share = 1.0f / (float)workers;
    for (size_t i = 0; i < packed->compress.floats; i++) packed->kept[i] += owed[i] * share;
}

struct piece packed_weights(struct packed *packed, const float *weights) {
    const size_t floats = packed->compress.floats;
    for (size_t i = 0; i < floats; i++) packed->meant[i] = weights[i] - packed->kept[i];
    const struct piece piece = pack(packed);
    for (size_t i = 0; i < floats; i++) packed->kept[i] += packed->sent[i];
    return piece;
}

int packed_read_gradient(const struct packed *packed, size_t count, float *gradient, const char *peer,
                         struct error *error) {
    return compress_unpack(&packed->compress, packed->bytes, count, gradient, peer, error);
}

/* --- a worker --- */

struct piece packed_gradient(struct packed *packed, const float *gradient) {
    const size_t floats = packed->compress.floats;
    for (size_t i = 0; i < floats; i++) packed->meant[i] = gradient[i] + packed->kept[i];
    const struct piece piece = pack(packed);
    for (size_t i = 0; i < floats; i++) packed->kept[i] = packed->meant[i] - packed->sent[i];
    return piece;
}

int packed_read_weights(struct packed *packed, size_t count, float *weights, const char *peer,
                        struct error *error) {
    RETURN_IF(compress_unpack(&packed->compress, packed->bytes, count, packed->sent, peer, error));
    for (size_t i = 0; i < packed->compress.floats; i++) weights[i] += packed->sent[i];
    return OK;
}
