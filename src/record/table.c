/* See table.h. */
#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/file.h"

enum { ROW_BYTES = 1024 };

/* Rows and checkpoint have microseconds, each rounded by itself. */
static const double rounding_s = 2e-6;

static bool is_whole(const char *row) {
    return row[0] != '\0' && row[strlen(row) - 1] == '\n';
}

static double time_of(const char *row, int column) {
    for (; column > 0 && row; column--) row = strchr(row, ',') ? strchr(row, ',') + 1 : NULL;
    return row ? strtod(row, NULL) : 0.0;
}

/* Of the rows, the bytes that stay. */
static long long count_kept(FILE *file, int time_column, double until_s) {
    char row[ROW_BYTES];
    long long bytes = 0;
    while (fgets(row, sizeof row, file) && is_whole(row) &&
           !(time_of(row, time_column) > until_s + rounding_s))
        bytes += (long long)strlen(row);
    return bytes;
}

static int first_free(const char *path, char free[PATH_BYTES], struct error *error) {
    char name[PATH_BYTES + 16];
    int n = 1;
    do snprintf(name, sizeof name, "%s.%d", path, n++);
    while (file_exists(name));
    if (strlen(name) >= PATH_BYTES)
        return error_set(error, ERROR_FILE, "%.100s...: a path of %zu bytes, expected fewer than %d", name,
                         strlen(name), PATH_BYTES);
    memcpy(free, name, strlen(name) + 1);
    return OK;
}

/* What stands from here on in the file, as far as it is whole rows. */
static int keep_rest(FILE *file, const char *path, const char *header, struct error *error) {
    char row[ROW_BYTES], name[PATH_BYTES];
    struct file_new kept = {0};
    if (!fgets(row, sizeof row, file) || !is_whole(row)) return OK;
    RETURN_IF(first_free(path, name, error));
    RETURN_IF(file_create(&kept, name, error));
    fputs(header, kept.stream);
    do fputs(row, kept.stream);
    while (fgets(row, sizeof row, file) && is_whole(row));
    const int code = file_commit(&kept, error);
    file_abandon(&kept);
    return code;
}

static int cut(FILE *file, const char *path, long long bytes, struct error *error) {
    if (ftruncate(fileno(file), (off_t)bytes) == 0) return OK;
    return error_set(error, ERROR_FILE, "%s: cannot be cut to %lld bytes: %s", path, bytes, strerror(errno));
}

static int rewind_open(FILE *file, const char *path, const char *header, int time_column, double until_s,
                       long long *bytes, struct error *error) {
    char row[ROW_BYTES];
    if (!fgets(row, sizeof row, file)) return OK;
    if (strcmp(row, header) != 0) return file_keep(path, error);
    const long long kept = (long long)strlen(header) + count_kept(file, time_column, until_s);
    if (fseek(file, 0, SEEK_END) != 0 || ftell(file) < 0)
        return error_set(error, ERROR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    const long all = ftell(file);
    *bytes = kept;
    if (kept == all) return OK;
    fseek(file, (long)kept, SEEK_SET);
    RETURN_IF(keep_rest(file, path, header, error));
    return cut(file, path, kept, error);
}

int table_rewind(const char *path, const char *header, int time_column, double until_s, long long *bytes,
                 struct error *error) {
    *bytes = 0;
    const int handle = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    FILE *file = handle < 0 ? NULL : fdopen(handle, "r+");
    if (!file && errno == ENOENT) return OK;
    if (!file)
        return error_set(error, ERROR_FILE, "%s: cannot be opened for writing: %s", path, strerror(errno));
    const int code = rewind_open(file, path, header, time_column, until_s, bytes, error);
    fclose(file);
    return code;
}
