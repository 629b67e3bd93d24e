/* epochs.csv. Rows are few and wanted at once: each is one unbuffered write, and one that got stuck half-way
 * is cut off again. */
#include "epochs.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "../base/file.h"
#include "digits.h"
#include "table.h"

enum { HEADER_BYTES = 160 };

static const char *header_of(enum metric metric, char out[HEADER_BYTES]) {
    const char *name = metric_rows[metric].name;
    snprintf(out, HEADER_BYTES,
             "epoch,time_s,train_loss,test_loss,test_%s,examples_per_s,validation_loss,validation_%s\n", name,
             name);
    return out;
}

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

int epochs_rewind(const char *path, enum metric metric, double time_s, long long *bytes,
                  struct error *error) {
    char header[HEADER_BYTES];
    return table_rewind(path, header_of(metric, header), 1, time_s, bytes, error);
}

int epochs_open(struct epochs *epochs, const char *path, enum metric metric, long long bytes,
                struct error *error) {
    char header[HEADER_BYTES];
    *epochs = (struct epochs){0};
    if (strlen(path) >= sizeof epochs->path)
        return error_set(error, ERROR_FILE, "%.100s...: a path of %zu bytes, expected at most %zu", path,
                         strlen(path), sizeof epochs->path - 1);
    strncpy(epochs->path, path, sizeof epochs->path - 1);
    RETURN_IF((bytes > 0 ? file_append : file_overwrite)(&epochs->file, path, error));
    setvbuf(epochs->file, NULL, _IONBF, 0);
    epochs->bytes = (size_t)bytes;
    if (bytes > 0) return OK;
    header_of(metric, header);
    return append(epochs, header, strlen(header), error);
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
    out = metric_rows[row->metric].share ? digits_fixed(out, row->test_score, 6)
                                         : digits_real(out, row->test_score);
    *out++ = ',';
    out = digits_fixed(out, row->examples_per_s, 1);
    *out++ = ',';
    out = digits_real(out, row->validation_loss);
    *out++ = ',';
    out = digits_real(out, row->validation_score);
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
