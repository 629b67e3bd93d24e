/* See steps.h. */
#include "steps.h"

#include <errno.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>
#include "../device/groups.h"
#include "digits.h"
#include "table.h"

static const char header[] = "time_s,worker,device,epoch,step,loss,learning_rate,examples,"
                             "input_ms,pull_ms,compute_ms,push_ms,wait_ms,staleness,update,wire_bytes\n";

static int failed(const struct steps *steps, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: the log of steps cannot be written: %s", steps->path,
                     strerror(errno));
}

/* What cannot be written whole is cut off: a disk that fills leaves no half row. */
int steps_flush(struct steps *steps, struct error *error) {
    if (fflush(steps->file) == 0 && !ferror(steps->file)) {
        steps->flushed = steps->bytes;
        return OK;
    }
    const int code = failed(steps, error);
    __fpurge(steps->file);
    if (ftruncate(fileno(steps->file), (off_t)steps->flushed) != 0) return code; /* a pipe cannot be cut */
    return code;
}

int steps_rewind(const char *path, double time_s, long long *bytes, struct error *error) {
    return table_rewind(path, header, 0, time_s, bytes, error);
}

int steps_open(struct steps *steps, const char *path, long long bytes, const char *const *devices,
               struct error *error) {
    *steps = (struct steps){.devices = devices, .bytes = bytes, .flushed = bytes};
    if (strlen(path) >= sizeof steps->path)
        return error_set(error, ERROR_FILE, "%.100s...: a path of %zu bytes, expected at most %zu", path,
                         strlen(path), sizeof steps->path - 1);
    strncpy(steps->path, path, sizeof steps->path - 1);
    RETURN_IF((bytes > 0 ? file_append : file_overwrite)(&steps->file, path, error));
    if (bytes > 0) return OK;
    fputs(header, steps->file);
    steps->bytes = sizeof header - 1;
    return steps_flush(steps, error);
}

void steps_add(struct steps *steps, const struct log_row *row) {
    char line[16 * DIGITS_BYTES + GROUP_NAME_BYTES], *out = digits_fixed(line, row->time_s, 6);
    *out++ = ',';
    out = digits_whole(out, row->worker);
    *out++ = ',';
    const size_t device = strnlen(steps->devices[row->worker], GROUP_NAME_BYTES - 1);
    memcpy(out, steps->devices[row->worker], device);
    out += device;
    *out++ = ',';
    out = digits_whole(out, row->epoch);
    *out++ = ',';
    out = digits_whole(out, row->step);
    *out++ = ',';
    out = digits_real(out, (double)row->loss);
    *out++ = ',';
    out = digits_real(out, (double)row->learning_rate);
    *out++ = ',';
    out = digits_whole(out, row->examples);
    const double times[] = {row->input_ms, row->pull_ms, row->compute_ms, row->push_ms, row->wait_ms};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        *out++ = ',';
        out = digits_fixed(out, times[i], 6);
    }
    *out++ = ',';
    out = digits_whole(out, row->staleness);
    *out++ = ',';
    out = digits_whole(out, row->version);
    *out++ = ',';
    out = digits_whole(out, row->wire_bytes);
    *out++ = '\n';
    fwrite(line, 1, (size_t)(out - line), steps->file);
    steps->bytes += out - line;
}

int steps_finish(struct steps *steps, struct error *error) {
    if (!steps->file) return OK;
    RETURN_IF(steps_flush(steps, error));
    /* EINVAL, ENOTSUP: a pipe or a device has nothing to sync. */
    if (fsync(fileno(steps->file)) != 0 && errno != EINVAL && errno != ENOTSUP) return failed(steps, error);
    FILE *file = steps->file;
    steps->file = NULL;
    return fclose(file) != 0 ? failed(steps, error) : OK;
}

void steps_close(struct steps *steps) {
    if (steps->file) fclose(steps->file);
    *steps = (struct steps){0};
}
