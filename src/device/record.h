/* Work that is queued again and again in the same way, recorded by a device that can. */
#ifndef TRAINER_DEVICE_RECORD_H
#define TRAINER_DEVICE_RECORD_H

#include "device.h"

/* Queues something. */
typedef int device_work(void *argument, struct error *error);

/* What has become of a recording. */
struct device_recorded {
    int nodes;     /* pieces of work in it; 0: there is none, */
    char why[200]; /* and why not */
};

/* Records what the work queues, on a device that records: *kept is for the backend's replay and forget, NULL
 * when it could not be recorded; nothing of it is done yet. Errors: those of work that could have been
 * recorded; the device's. */
int device_record(const struct device *device, device_work *work, void *argument, void **kept,
                  struct device_recorded *facts, struct error *error);

/* Zeroed: not run yet. */
struct device_recording {
    void *kept;
    bool begun, refused;
};

/* Queues what `work` does: the first time by doing it, as libraries make what they need then; the second time
 * it is recorded; from then on replayed: same addresses, same numbers. What cannot be recorded is done each
 * time. One thread at a time. Errors: those of the work; the device's. */
int device_replay(const struct device *device, struct device_recording *recording, device_work *work,
                  void *argument, struct error *error);

/* Not while the device may still run it. It is zeroed then; safe on a zeroed one. */
void device_forget(const struct device *device, struct device_recording *recording);

#endif
