/* Copies between devices. Everything that goes from device to device goes through here, so a backend with
 * its own memory fills two slots (backend.copy and queue_copy). */
#ifndef TRAINER_DEVICE_COPY_H
#define TRAINER_DEVICE_COPY_H

#include "device.h"

/* Copies bytes at `in` on one device to `out` on another, or the same; the copy is complete on return. NULL:
 * the host's memory. Errors: ERROR_DEVICE. */
int device_copy(const struct device *to, void *out, const struct device *from, const void *in, size_t bytes,
                struct error *error);

/* The same, but queued: on the calling thread's queue of `to`, or, when that is not a device with queues, of
 * `from`. It is there for what is queued behind it, and for others after that device's `finish`. Complete
 * where neither has queues. */
int device_queue_copy(const struct device *to, void *out, const struct device *from, const void *in,
                      size_t bytes, struct error *error);

#endif
