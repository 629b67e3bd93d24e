/* NumPy's format for one array: a magic, a header in Python's syntax, then the items. Source: "NPY format",
 * numpy.lib.format, versions 1.0, 2.0 and 3.0. */
#ifndef TRAINER_DATA_NPY_H
#define TRAINER_DATA_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/error.h"
#include "../graph/shape.h"

enum { NPY_HEAD_MOST = 12 + (1 << 16) }; /* bytes of magic and header together, at most */

struct npy {
    const char *name; /* for the words; borrowed */
    char kind;        /* 'f' float, 'i' signed, 'u' unsigned, 'b' bool */
    int item;         /* bytes of one: 1, 2, 4 or 8 */
    bool big_endian;
    bool fortran;          /* the first index runs fastest */
    struct shape shape;    /* of rank 1 to MAX_RANK, each dimension at least 1 */
    size_t count;          /* items; count * item bytes can be addressed */
    const uint8_t *values; /* [count][item], borrowed; on any boundary */
};

/* Reads the header from the first `bytes` bytes of an array: all but `values`. *head = the bytes before the
 * items. Errors: ERROR_FILE, also where the bytes end before the header does. */
int npy_header(struct npy *npy, const char *name, const uint8_t *bytes, size_t length, size_t *head,
               struct error *error);
/* The same of a whole array, whose length has to be right; `values` points into it. */
int npy_parse(struct npy *npy, const char *name, const uint8_t *bytes, size_t length, struct error *error);

/* *block = the items in C order (owned by the caller: memory_free), and `values` points to them. Nothing
 * where they are in that order already. */
int npy_to_c_order(struct npy *npy, void **block, struct error *error);

/* "<f4 [60000, 28, 28]" */
const char *npy_text(const struct npy *npy, char *out, size_t bytes);

/* Item i, of any kind: a float64 beyond the range of float32 becomes infinite. */
float npy_float(const struct npy *npy, size_t i);
/* Item i of integers. False: it is larger than *number can be. */
bool npy_integer(const struct npy *npy, size_t i, int64_t *number);
/* out = the items [first, first + count) as floats. Errors: ERROR_FILE: one is not finite. */
int npy_floats(const struct npy *npy, size_t first, size_t count, float *out, struct error *error);
/* Whether the items can be used where they lie, as floats of this machine. */
bool npy_is_plain_floats(const struct npy *npy);

#endif
