/* Copies between devices: by the backend that has memory of its own, the giver's first, because it knows when
 * the value is there; where both compute in the host's memory, by the processor. */
#include "link.h"

#include <string.h>

int link_copy(const struct device *to, void *out, const struct device *from, const void *in, size_t bytes,
              struct error *error) {
    if (from && from->backend->copy) return from->backend->copy(from, out, in, bytes, error);
    if (to && to->backend->copy) return to->backend->copy(to, out, in, bytes, error);
    memcpy(out, in, bytes);
    return OK;
}

int link_queue(const struct device *to, void *out, const struct device *from, const void *in, size_t bytes,
               struct error *error) {
    if (to && to->backend->queue_copy) return to->backend->queue_copy(to, out, in, bytes, error);
    if (from && from->backend->queue_copy) return from->backend->queue_copy(from, out, in, bytes, error);
    return link_copy(to, out, from, in, bytes, error);
}
