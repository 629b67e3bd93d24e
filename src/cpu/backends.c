/* The backends of this build. The table stands here and not with device.h, because src/device knows no
 * backend. */
#include "cpu.h"

const struct backend *const backends[] = {&cpu_backend, NULL};
