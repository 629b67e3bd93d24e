/* See record.h. */
#include "record.h"

#include <stdio.h>

/* What fails counts only where it could have been kept, as a library that allocates or waits fails for that
 * alone. */
int device_record(const struct device *device, device_work *work, void *argument, void **kept,
                  struct device_recorded *facts, struct error *error) {
    struct error failure = {0}, ignored = {0};
    *kept = NULL;
    *facts = (struct device_recorded){0};
    RETURN_IF(device->backend->record(device, error));
    const int code = work(argument, &failure);
    const int ended = device->backend->recorded(device, kept, code == OK ? error : &ignored);
    if (code != OK && (ended != OK || *kept)) {
        device->backend->forget(device, *kept);
        *kept = NULL;
        *error = failure;
        return code;
    }
    RETURN_IF(ended);
    const char *why = "";
    const int nodes = device->backend->recorded_nodes(device, &why);
    if (*kept) facts->nodes = nodes;
    if (!*kept)
        snprintf(facts->why, sizeof facts->why, "%.*s", (int)sizeof facts->why - 1,
                 code != OK ? failure.words : why);
    return OK;
}

int device_replay(const struct device *device, struct device_recording *recording, device_work *work,
                  void *argument, struct error *error) {
    struct device_recorded facts;
    const bool again = recording->begun;
    recording->begun = true;
    if (!device->backend->record || !again || recording->refused) return work(argument, error);
    if (!recording->kept) RETURN_IF(device_record(device, work, argument, &recording->kept, &facts, error));
    recording->refused = !recording->kept;
    return recording->kept ? device->backend->replay(device, recording->kept, error) : work(argument, error);
}

void device_forget(const struct device *device, struct device_recording *recording) {
    if (recording->kept) device->backend->forget(device, recording->kept);
    *recording = (struct device_recording){0};
}
