/* The items of an array, of any kind, byte order and boundary, as numbers of this machine. */
#include <math.h>
#include <string.h>
#include "../base/bytes.h"
#include "../base/half.h"
#include "../base/memory.h"
#include "npy.h"

static uint64_t bits_of(const struct npy *npy, size_t i) {
    const uint8_t *item = npy->values + i * (size_t)npy->item;
    return npy->big_endian ? bytes_big(item, npy->item) : bytes_little(item, npy->item);
}

static float double_float(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    if (value > 0x1.fffffefffffffp127) return INFINITY; /* the last that rounds to a float */
    if (value < -0x1.fffffefffffffp127) return -INFINITY;
    return (float)value;
}

static int64_t signed_of(uint64_t bits, int item) {
    const int above = 64 - 8 * item;
    int64_t value;
    bits <<= above;
    memcpy(&value, &bits, sizeof value);
    return value >> above;
}

float npy_float(const struct npy *npy, size_t i) {
    const uint64_t bits = bits_of(npy, i);
    if (npy->kind == 'b') return bits ? 1.0f : 0.0f;
    if (npy->kind == 'u') return (float)bits;
    if (npy->kind == 'i') return (float)signed_of(bits, npy->item);
    if (npy->item == 2) return half_float((unsigned)bits);
    if (npy->item == 8) return double_float(bits);
    const uint32_t single = (uint32_t)bits;
    float value;
    memcpy(&value, &single, sizeof value);
    return value;
}

bool npy_integer(const struct npy *npy, size_t i, int64_t *number) {
    const uint64_t bits = bits_of(npy, i);
    *number = npy->kind == 'b'   ? bits != 0
              : npy->kind == 'i' ? signed_of(bits, npy->item)
                                 : (int64_t)(bits & INT64_MAX);
    return npy->kind != 'u' || bits <= INT64_MAX;
}

int npy_floats(const struct npy *npy, size_t first, size_t count, float *out, struct error *error) {
    for (size_t i = 0; i < count; i++) {
        out[i] = npy_float(npy, first + i);
        if (isfinite(out[i])) continue;
        const size_t width = npy->count / (size_t)npy->shape.dims[0], at = first + i;
        return error_set(error, ERROR_FILE,
                         "%s: row %zu, number %zu (from 1): found %s, expected a finite float32", npy->name,
                         at / width + 1, at % width + 1,
                         isnan(out[i])                        ? "nan"
                         : npy->kind == 'f' && npy->item == 8 ? "inf, or what is too large"
                                                              : "inf");
    }
    return OK;
}

bool npy_is_plain_floats(const struct npy *npy) {
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return npy->kind == 'f' && npy->item == 4 && npy->big_endian == (first == 0) &&
           (uintptr_t)npy->values % _Alignof(float) == 0;
}

int npy_to_c_order(struct npy *npy, void **block, struct error *error) {
    const int rank = npy->shape.rank;
    const size_t item = (size_t)npy->item;
    size_t stride[MAX_RANK], from = 0;
    int index[MAX_RANK] = {0};
    *block = NULL;
    if (!npy->fortran || rank == 1) return OK;
    RETURN_IF(memory_zeroed(block, npy->count, item, npy->name, error));
    for (int d = 0; d < rank; d++) stride[d] = d == 0 ? 1 : stride[d - 1] * (size_t)npy->shape.dims[d - 1];
    uint8_t *out = *block;
    for (size_t to = 0; to < npy->count; to++, out += item) {
        memcpy(out, npy->values + from * item, item);
        for (int d = rank - 1; d >= 0; d--) { /* the next index, the last dimension fastest */
            from += stride[d];
            if (++index[d] < npy->shape.dims[d]) break;
            from -= stride[d] * (size_t)npy->shape.dims[d];
            index[d] = 0;
        }
    }
    npy->values = *block;
    npy->fortran = false;
    return OK;
}
