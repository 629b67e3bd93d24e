/* See event_files.h. */
#include "event_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char live[] = "events.out.tfevents.", replaced[] = "events.replaced.", kept[] = "events.kept.",
                  of_ours[] = ".trainer", of_workers[] = "worker-";
enum { DIGITS = 10, NAME_BYTES = 64 };

static bool all_digits(const char *text, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!isdigit((unsigned char)text[i])) return false;
    return count > 0;
}

/* Whether a name is the prefix, ten digits and .trainer; *seconds: the digits. */
static bool is_file(const char *name, const char *prefix, long long *seconds) {
    const size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0 || strlen(name) != length + DIGITS + sizeof of_ours - 1)
        return false;
    if (!all_digits(name + length, DIGITS) || strcmp(name + length + DIGITS, of_ours) != 0) return false;
    *seconds = strtoll(name + length, NULL, 10);
    return true;
}

static bool is_worker(const char *name) {
    const size_t length = sizeof of_workers - 1;
    return strncmp(name, of_workers, length) == 0 && all_digits(name + length, strlen(name + length));
}

static int file_name(char path[PATH_BYTES], const char *folder, const char *prefix, long long seconds,
                     struct error *error) {
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s%010lld%s", prefix, seconds, of_ours);
    return file_join(path, folder, name, error);
}

/* Seconds of the last one in the folder, or 0. */
static long long last_in(const char *folder) {
    DIR *entries = opendir(folder);
    long long last = 0;
    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        long long seconds = 0;
        if (is_file(entry->d_name, live, &seconds) && seconds > last) last = seconds;
    }
    if (entries) closedir(entries);
    return last;
}

bool event_files_are_in(const char *folder) {
    return last_in(folder) > 0;
}

int event_file_last(char path[PATH_BYTES], const char *folder, struct error *error) {
    const long long last = last_in(folder);
    *path = '\0';
    return last > 0 ? file_name(path, folder, live, last, error) : OK;
}

int event_file_next(FILE **file, char path[PATH_BYTES], const char *folder, long long utc_seconds,
                    struct error *error) {
    const long long last = last_in(folder);
    const long long seconds = utc_seconds > last ? utc_seconds : last + 1;
    *file = NULL;
    RETURN_IF(file_make_folder(folder, error));
    RETURN_IF(file_name(path, folder, live, seconds, error));
    const int handle = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    *file = handle < 0 ? NULL : fdopen(handle, "wb");
    if (*file) return OK;
    const int why = errno;
    if (handle >= 0) close(handle);
    return error_set(error, ERROR_FILE, "%s: cannot be written: %s", path, strerror(why));
}

/* What is done to one file: its name begins with another prefix then, or, `to` NULL, it is removed. */
static int change_file(const char *folder, const char *name, const char *to, long long seconds,
                       struct error *error) {
    char from_path[PATH_BYTES], to_path[PATH_BYTES] = "";
    RETURN_IF(file_join(from_path, folder, name, error));
    if (to) RETURN_IF(file_name(to_path, folder, to, seconds, error));
    if ((to ? rename(from_path, to_path) : unlink(from_path)) == 0 || errno == ENOENT) return OK;
    return error_set(error, ERROR_FILE, "%s: from before, and cannot be %s: %s", from_path,
                     to ? "renamed" : "removed", strerror(errno));
}

/* Those whose names begin with `from`; *count: how many there were, or NULL. */
static int change_in(const char *folder, const char *from, const char *to, int *count, struct error *error) {
    DIR *entries = opendir(folder);
    int code = OK;
    for (const struct dirent *entry; code == OK && entries && (entry = readdir(entries)) != NULL;) {
        long long seconds = 0;
        if (!is_file(entry->d_name, from, &seconds)) continue;
        if (count) ++*count;
        code = change_file(folder, entry->d_name, to, seconds, error);
    }
    if (entries) closedir(entries);
    return code;
}

/* The same in the run's folder and in its workers'. */
static int change_all(const char *folder, const char *from, const char *to, int *count, struct error *error) {
    RETURN_IF(change_in(folder, from, to, count, error));
    DIR *entries = opendir(folder);
    int code = OK;
    for (const struct dirent *entry; code == OK && entries && (entry = readdir(entries)) != NULL;) {
        char path[PATH_BYTES];
        if (!is_worker(entry->d_name)) continue;
        code = file_join(path, folder, entry->d_name, error);
        if (code == OK) code = change_in(path, from, to, count, error);
        if (code == OK && !to) rmdir(path); /* with something else in it, it stays */
    }
    if (entries) closedir(entries);
    return code;
}

int event_files_set_aside(const char *folder, struct error *error) {
    return change_all(folder, live, replaced, NULL, error);
}

int event_files_keep(const char *folder, struct error *error) {
    return change_all(folder, live, kept, NULL, error);
}

static bool has_replaced(const char *folder) {
    struct error ignored = {0};
    int count = 0;
    change_all(folder, replaced, replaced, &count, &ignored);
    return count > 0;
}

int event_files_put_back(const char *folder, struct error *error) {
    if (!has_replaced(folder)) return OK;
    RETURN_IF(change_all(folder, live, NULL, NULL, error));
    return change_all(folder, replaced, live, NULL, error);
}

int event_files_drop(const char *folder, struct error *error) {
    RETURN_IF(change_all(folder, kept, NULL, NULL, error));
    return change_all(folder, replaced, NULL, NULL, error);
}

int event_files_remove(const char *folder, struct error *error) {
    RETURN_IF(event_files_drop(folder, error));
    return change_all(folder, live, NULL, NULL, error);
}
