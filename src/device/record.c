/* See record.h. */
#include "record.h"

/* What fails counts only where it could have been kept, as a library that allocates or waits fails for that
 * alone. */
static int record(const struct device *device, struct device_recording *recording,
                  int (*work)(void *argument, struct error *error), void *argument, struct error *error) {
    struct error failure = {0}, ignored = {0};
    void *kept = NULL;
    RETURN_IF(device->backend->record(device, error));
    const int code = work(argument, &failure);
    const int ended = device->backend->recorded(device, &kept, code == OK ? error : &ignored);
    if (code != OK && (ended != OK || kept)) {
        device->backend->forget(device, kept);
        *error = failure;
        return code;
    }
    RETURN_IF(ended);
    recording->kept = kept;
    recording->refused = !kept;
    return OK;
}

int device_replay(const struct device *device, struct device_recording *recording,
                  int (*work)(void *argument, struct error *error), void *argument, struct error *error) {
    const bool again = recording->begun;
    recording->begun = true;
    if (!device->backend->record || !again || recording->refused) return work(argument, error);
    if (!recording->kept) RETURN_IF(record(device, recording, work, argument, error));
    return recording->kept ? device->backend->replay(device, recording->kept, error) : work(argument, error);
}

void device_forget(const struct device *device, struct device_recording *recording) {
    if (recording->kept) device->backend->forget(device, recording->kept);
    *recording = (struct device_recording){0};
}
