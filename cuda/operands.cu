/* Kernels that bring operands into the form that cuBLASLt and cuDNN want: another type, or turned; and
 * what is left to do to a result when the library does not do it on its way out. None has more
 * than 2^31 elements, so that places are found by 32-bit divisions. */
#include "operands.h"

#include "../src/device/bf16.h"
#include "../src/device/formulas.h"
#include "launch.h"
#include "narrow.h"

DEVICE float number_at(const void *values, enum type type, size_t i) {
    return type == TYPE_BF16 ? bf16_float(((const bf16 *)values)[i]) : ((const float *)values)[i];
}

DEVICE void set_number(void *values, enum type type, size_t i, float value) {
    if (type == TYPE_BF16)
        ((bf16 *)values)[i] = bf16_nearest(value);
    else
        ((float *)values)[i] = value;
}

KERNEL convert(void *out, enum type to, const void *in, enum type from, size_t count) {
    EACH(i, count) {
        set_number(out, to, i, number_at(in, from, i));
    }
}

cudaError_t operand_convert(cudaStream_t stream, void *out, enum type to, const void *in, enum type from,
                            size_t count) {
    return LAUNCH(stream, count, convert, out, to, in, from, count);
}

/* Neighbouring threads write neighbours, and read a column: kernels of layers are small enough to stay in the
 * cache while that goes on. */
KERNEL turn(void *out, enum type to, const void *in, enum type from, unsigned rows, unsigned columns,
            size_t count) {
    EACH(i, count) {
        const unsigned column = (unsigned)i / rows, row = (unsigned)i % rows;
        set_number(out, to, i, number_at(in, from, (size_t)row * columns + column));
    }
}

cudaError_t operand_turn(cudaStream_t stream, void *out, enum type to, const void *in, enum type from,
                         int rows, int columns) {
    const size_t count = (size_t)rows * (size_t)columns;
    return LAUNCH(stream, count, turn, out, to, in, from, (unsigned)rows, (unsigned)columns, count);
}

/* 4 bytes read and 4 written of each number, or 2 of bf16. */
template <class T> KERNEL reform(CONSTANT operand_forms forms, size_t count) {
    EACH(n, count) {
        int f = 0;
        while (n >= forms.form[f].until) f++;
        const unsigned i = (unsigned)(n - (f > 0 ? forms.form[f - 1].until : 0));
        const unsigned rows = forms.form[f].rows;
        const size_t from = forms.form[f].turned ? (size_t)(i % rows) * forms.form[f].columns + i / rows : i;
        put((T *)forms.form[f].to + i, forms.form[f].from[from]);
    }
}

cudaError_t operand_reform(cudaStream_t stream, const struct operand_forms *forms, enum type to) {
    const size_t count = forms->count > 0 ? forms->form[forms->count - 1].until : 0;
    if (count == 0) return cudaSuccess;
    if (to == TYPE_BF16) return LAUNCH(stream, count, reform<bf16>, *forms, count);
    return LAUNCH(stream, count, reform<float>, *forms, count);
}

DEVICE float activated(float x, enum finish activation) {
    switch (activation) {
    case FINISH_RELU:
        return formula_relu(x);
    case FINISH_SIGMOID:
        return formula_sigmoid(x);
    case FINISH_TANH:
        return formula_tanh(x);
    default:
        return x;
    }
}

KERNEL finish(void *out, enum type to, const void *in, enum type from, const float *bias, unsigned columns,
              enum finish activation, size_t count) {
    EACH(i, count) {
        const float x = number_at(in, from, i) + bias[(unsigned)i % columns];
        set_number(out, to, i, activated(x, activation));
    }
}

cudaError_t operand_finish(cudaStream_t stream, void *out, enum type to, const void *in, enum type from,
                           const float *bias, int rows, int columns, enum finish activation) {
    const size_t count = (size_t)rows * (size_t)columns;
    return LAUNCH(stream, count, finish, out, to, in, from, bias, (unsigned)columns, activation, count);
}
