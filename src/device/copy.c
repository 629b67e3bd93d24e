/* Copies between devices: by the backend that has its own memory, the source's first, because it knows
 * when the value is ready; where both compute in the host's memory, by the CPU. */
#include "copy.h"

#include <string.h>

int device_copy(const struct device *to, void *out, const struct device *from, const void *in, size_t bytes,
                struct error *error) {
    const struct device *by = device_apart(from) ? from : to;
    if (device_apart(by)) return by->backend->copy(by, out, in, bytes, error);
    memcpy(out, in, bytes);
    return OK;
}

int device_queue_copy(const struct device *to, void *out, const struct device *from, const void *in,
                      size_t bytes, struct error *error) {
    const struct device *by = device_apart(to) ? to : from;
    if (device_apart(by)) return by->backend->queue_copy(by, out, in, bytes, error);
    memcpy(out, in, bytes);
    return OK;
}
