/* The backends of this build. The table stands here and not with device.h, because src/device knows no
 * backend. */
#include "cpu.h"

#if TRAINER_CUDA
extern const struct backend gpu_backend; /* of cuda/ */
#    define GPU_BACKEND &gpu_backend,
#else
#    define GPU_BACKEND
#endif

const struct backend *const backends[] = {&cpu_backend, GPU_BACKEND NULL};
