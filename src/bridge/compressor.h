/* How a vector of floats becomes fewer bytes on the wire: one plug-in per file in compressors/.
 *
 * What a compressor leaves out is not lost: whoever sends keeps the difference between what it meant and what
 * the other side has got, and adds it to what it sends next (compress.h; Seide et al., "1-bit stochastic
 * gradient descent", 2014; Karimireddy et al., "Error feedback fixes SignSGD", 2019). So a compressor is a
 * pure function: same floats, same bytes. */
#ifndef TRAINER_BRIDGE_COMPRESSOR_H
#define TRAINER_BRIDGE_COMPRESSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/option.h"

/* A piece of the vector, which lies within one array of the network. */
struct block {
    size_t at, floats; /* where it begins in the vector, and how long it is */
    size_t rows;       /* of a matrix of floats / rows columns, one row after the other; 0: no whole array */
};

struct blocks {
    const struct block *list; /* [count] */
    int count;
    size_t floats; /* of all */
};

struct compressor {
    struct plugin plugin;
    /* Bytes of these blocks, at most; what is not finite may take them all. */
    size_t (*bytes)(const void *settings, const struct blocks *blocks);
    /* Floats of working memory that encode and decode want; NULL: none. */
    size_t (*scratch)(const void *settings, const struct blocks *blocks);
    /* Writes the blocks of values[] into out[bytes(...)], and returns how many bytes it has written. A value
     * that is not finite comes out as one that is not finite. */
    size_t (*encode)(const void *settings, const struct blocks *blocks, const float *values, float *scratch,
                     uint8_t *out);
    /* Writes what has come into the blocks of values[], all of their floats. false: these are no `count`
     * bytes of encode's for such blocks; values[] may have been written. */
    bool (*decode)(const void *settings, const struct blocks *blocks, const uint8_t *in, size_t count,
                   float *scratch, float *values);
};

extern const struct compressor *const compressors[]; /* generated, ended by NULL */
extern const struct plugin_kind compressor_kind;     /* generated: the same */

static inline const struct compressor *compressor_of(const struct choice *choice) {
    return (const struct compressor *)(const void *)choice->plugin;
}

#endif
