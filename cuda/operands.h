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
