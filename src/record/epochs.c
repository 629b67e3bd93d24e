/* epochs.csv. Rows are few and wanted at once: each is one unbuffered write, and one that got stuck half-way
 * is cut off again. */
#include "epochs.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "../base/file.h"
#include "digits.h"
#include "table.h"

static const char header[] = "epoch,time_s,train_loss,test_loss,test_accuracy,examples_per_s,"
                             "validation_loss,validation_accuracy\n";

/* Writes all of `text` or leaves the file as it was. */
static int append(struct epochs *epochs, const char *text, size_t bytes, struct error *error) {
    if (fwrite(text, 1, bytes, epochs->file) == bytes) {
        epochs->bytes += bytes;
        return OK;
    }
    const int why = errno;
    const char *left =
        ftruncate(fileno(epochs->file), (off_t)epochs->bytes) != 0 ? ", and its end may be broken" : "";
    return error_set(error, ERROR_FILE, "%s: a row of %zu bytes cannot be written%s: %s", epochs->path, bytes,
                     left, strerror(why));
}

int epochs_rewind(const char *path, double time_s, long long *bytes, struct error *error) {
    return table_rewind(path, header, 1, time_s, bytes, error);
}

int epochs_open(struct epochs *epochs, const char *path, long long bytes, struct error *error) {
    *epochs = (struct epochs){0};
    if (strlen(path) >= sizeof epochs->path)
        return error_set(error, ERROR_FILE, "%.100s...: a path of %zu bytes, expected at most %zu", path,
                         strlen(path), sizeof epochs->path - 1);
    strncpy(epochs->path, path, sizeof epochs->path - 1);
    RETURN_IF((bytes > 0 ? file_append : file_overwrite)(&epochs->file, path, error));
    setvbuf(epochs->file, NULL, _IONBF, 0);
    epochs->bytes = (size_t)bytes;
    if (bytes > 0) return OK;
    return append(epochs, header, sizeof header - 1, error);
}

int epochs_add(struct epochs *epochs, const struct epoch_row *row, struct error *error) {
    char line[9 * DIGITS_BYTES], *out = digits_whole(line, row->epoch);
    *out++ = ',';
    out = digits_fixed(out, row->time_s, 6);
    *out++ = ',';
    out = digits_real(out, row->train_loss);
    *out++ = ',';
    out = digits_real(out, row->test_loss);
    *out++ = ',';
    out = digits_fixed(out, row->test_accuracy, 6);
    *out++ = ',';
    out = digits_fixed(out, row->examples_per_s, 1);
    *out++ = ',';
    out = digits_real(out, row->validation_loss);
    *out++ = ',';
    out = digits_real(out, row->validation_accuracy);
    *out++ = '\n';
    return append(epochs, line, (size_t)(out - line), error);
}

int epochs_finish(struct epochs *epochs, struct error *error) {
    if (!epochs->file) return OK;
    FILE *file = epochs->file;
    epochs->file = NULL;
    /* EINVAL, ENOTSUP: a pipe or a device has nothing to sync. */
    const int failed = fsync(fileno(file)) != 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
    const int close_failed = fclose(file) != 0 ? errno : 0;
    const int why = failed ? failed : close_failed;
    return why ? error_set(error, ERROR_FILE, "%s: cannot be brought to the disk: %s", epochs->path,
                           strerror(why))
               : OK;
}

void epochs_close(struct epochs *epochs) {
    if (epochs->file) fclose(epochs->file);
    *epochs = (struct epochs){0};
}
