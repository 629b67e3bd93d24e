/* Private to cuda/: operands and results on their way to a library and back (operands.cu). Numbers are
 * float32 or bf16, as each side's type says; all is queued on the stream. */
#ifndef TRAINER_CUDA_OPERANDS_H
#define TRAINER_CUDA_OPERANDS_H

#include <cuda_runtime.h>
#include "../src/graph/shape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[count] = in[count] */
cudaError_t operand_convert(cudaStream_t stream, void *out, enum type to, const void *in, enum type from,
                            size_t count);

/* out[columns][rows] = in[rows][columns], turned */
cudaError_t operand_turn(cudaStream_t stream, void *out, enum type to, const void *in, enum type from,
                         int rows, int columns);

/* Operands brought into other forms by one launch: to[rows * columns] from what is float32, turned where
 * `turned`. At most 64 of them, of one type all. */
enum { OPERAND_FORMS = 64 }; /* as many as device.h's REFORMINGS */
struct operand_forms {
    int count;
    struct {
        const float *from;
        void *to;
        size_t until; /* numbers of this one and those before it */
        unsigned rows, columns;
        int turned;
    } form[OPERAND_FORMS];
};
cudaError_t operand_reform(cudaStream_t stream, const struct operand_forms *forms, enum type to);

/* Windows over x [batch, rows, columns, channels], along its rows and its columns, as window_along of
 * src/graph/window.h places them; a multiple of 16 bytes is the pitch. */
struct operand_window {
    int in, out, length, stride, before;
};
struct operand_windows {
    struct operand_window axis[2];
    int batch, channels;
    int pitch; /* numbers from window to window, no less than a window has */
};
/* out[windows][pitch] = the numbers of each window, [rows, columns, channels], then zeros. */
cudaError_t operand_unfold(cudaStream_t stream, void *out, enum type to, const void *x, enum type from,
                           const struct operand_windows *windows);

/* out[count] = the sum of parts[0][count], parts[1][count], ... in a fixed order; `apart`: numbers from one
 * to the next one */
cudaError_t operand_fold(cudaStream_t stream, float *out, const float *parts, size_t count, size_t apart,
                         int number);

/* graph.h's enum activation, for device code, which does not see that header. */
enum finish { FINISH_NONE, FINISH_RELU, FINISH_SIGMOID, FINISH_TANH };

/* out[rows][columns] = activation(in[rows][columns] + bias[columns]); out may be in when both are of one
 * type. */
cudaError_t operand_finish(cudaStream_t stream, void *out, enum type to, const void *in, enum type from,
                           const float *bias, int rows, int columns, enum finish activation);

#ifdef __cplusplus
}
#endif

#endif
