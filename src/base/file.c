/* Files: whole ones are read through a file_reader; new files become visible only when they are whole and on
 * the disk. */
#include "file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "file_reader.h"
#include "memory.h"

/* --- reading --- */

static int read_file(const char *path, size_t limit, bool packed, char **data, size_t *bytes,
                     struct error *error) {
    struct file_reader reader;
    *data = NULL;
    *bytes = 0;
    int code = file_reader_open(&reader, path, limit, error);
    if (code == OK && reader.packed && !packed)
        code = error_set(error, ERROR_FILE,
                         "%s: a gzip file, expected one that is not packed (gunzip unpacks it)", path);
    if (code == OK) code = file_reader_rest(&reader, data, bytes, error);
    file_reader_close(&reader);
    return code;
}

int file_read(const char *path, size_t limit, char **data, size_t *bytes, struct error *error) {
    return read_file(path, limit, true, data, bytes, error);
}

int file_read_plain(const char *path, size_t limit, char **data, size_t *bytes, struct error *error) {
    return read_file(path, limit, false, data, bytes, error);
}

static int check_private(const char *path, int file, struct error *error) {
    struct stat status;
    if (fstat(file, &status) != 0) return error_set(error, ERROR_FILE, "%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode)) return error_set(error, ERROR_FILE, "%s: expected a file with a key", path);
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) == 0) return OK;
    /* What root hands to a group of ours, as a mounted Secret of Kubernetes, is root's to say. */
    const bool handed = status.st_uid == 0 && geteuid() != 0;
    if (handed && (status.st_mode & (S_IRWXG | S_IRWXO)) == S_IRGRP) return OK;
    return error_set(error, ERROR_FILE,
                     "%s: others can read this key (mode %03o): expected mode 600, as after chmod 600 %s",
                     path, (unsigned)status.st_mode & 0777u, path);
}

int file_open_private(const char *path, int *out, struct error *error) {
    *out = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer is none either */
    if (*out < 0) return error_set(error, ERROR_FILE, "%s: %s", path, strerror(errno));
    const int code = check_private(path, *out, error);
    if (code != OK) close(*out);
    if (code != OK) *out = -1;
    return code;
}

/* --- names --- */

int file_join(char out[PATH_BYTES], const char *folder, const char *name, struct error *error) {
    const size_t length = strlen(folder);
    const char *slash = length == 0 || folder[length - 1] == '/' ? "" : "/";
    const int bytes = snprintf(out, PATH_BYTES, "%s%s%s", folder, slash, name);
    if (bytes >= 0 && bytes < PATH_BYTES) return OK;
    out[0] = '\0';
    return error_set(error, ERROR_FILE, "%.100s...: a path of %d bytes, expected fewer than %d", folder,
                     bytes, PATH_BYTES);
}

int file_keep(const char *path, struct error *error) {
    char name[PATH_BYTES];
    if (access(path, F_OK) != 0) return OK;
    for (int n = 1; n < 1000000; n++) {
        const int length = snprintf(name, sizeof name, "%s.%d", path, n);
        if (length < 0 || (size_t)length >= sizeof name) break;
        if (access(name, F_OK) == 0) continue;
        if (rename(path, name) == 0) return OK;
        return error_set(error, ERROR_FILE, "%s: cannot be kept as %s: %s", path, name, strerror(errno));
    }
    return error_set(error, ERROR_FILE, "%s: no name is free to keep it under", path);
}

int file_make_folder(const char *path, struct error *error) {
    char part[PATH_BYTES];
    if (path[0] == '\0') return error_set(error, ERROR_FILE, "a folder without a name");
    RETURN_IF(file_join(part, path, "", error));
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        struct stat status;
        if (mkdir(part, 0777) != 0) {
            const int reason = errno; /* on a read-only file system an existing folder is not said to exist */
            if (stat(part, &status) != 0)
                return error_set(error, ERROR_FILE, "%s: cannot create this folder: %s", part,
                                 strerror(reason));
            if (!S_ISDIR(status.st_mode))
                return error_set(error, ERROR_FILE, "%s: a file, expected a folder", part);
        }
        *slash = '/';
    }
    return OK;
}

int file_make_new_folder(char path[PATH_BYTES], struct error *error) {
    char name[PATH_BYTES + 16], above[PATH_BYTES];
    snprintf(above, sizeof above, "%s", path);
    char *slash = strrchr(above, '/');
    if (slash != NULL && slash != above) {
        *slash = '\0';
        RETURN_IF(file_make_folder(above, error));
    }
    snprintf(name, sizeof name, "%s", path);
    for (int n = 2; mkdir(name, 0777) != 0; n++) {
        if (errno != EEXIST)
            return error_set(error, ERROR_FILE, "%s: cannot create this folder: %s", name, strerror(errno));
        snprintf(name, sizeof name, "%s-%d", path, n);
    }
    if (strlen(name) >= PATH_BYTES)
        return error_set(error, ERROR_FILE, "%.100s...: a path of %zu bytes, expected fewer than %d", name,
                         strlen(name), PATH_BYTES);
    memcpy(path, name, strlen(name) + 1);
    return OK;
}

int file_hold(void **hold, const char *folder, struct error *error) {
    *hold = NULL;
    DIR *opened = opendir(folder);
    if (opened == NULL)
        return error_set(error, ERROR_FILE, "%s: cannot be opened: %s", folder, strerror(errno));
    if (flock(dirfd(opened), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        closedir(opened);
        return error_set(error, ERROR_FILE, "%s: another run writes there, expected a folder of its own",
                         folder);
    }
    *hold = opened;
    return OK;
}

void file_release(void *hold) {
    if (hold != NULL) closedir(hold);
}

size_t file_existing(const char *path) {
    char part[PATH_BYTES];
    size_t bytes = (size_t)snprintf(part, sizeof part, "%s", path);
    while (bytes > 0 && bytes < sizeof part && access(part, F_OK) != 0) {
        while (bytes > 0 && part[bytes - 1] != '/') bytes--;
        while (bytes > 1 && part[bytes - 1] == '/') bytes--;
        part[bytes] = '\0';
    }
    return bytes;
}

void file_remove_empty(const char *path, size_t existing) {
    char part[PATH_BYTES];
    size_t bytes = (size_t)snprintf(part, sizeof part, "%s", path);
    while (bytes > existing && bytes < sizeof part && (rmdir(part) == 0 || errno == ENOENT)) {
        while (bytes > existing && part[bytes - 1] != '/') bytes--;
        while (bytes > existing && part[bytes - 1] == '/') bytes--;
        part[bytes] = '\0';
    }
}

/* --- writing --- */

static int name_part(struct file_new *file, const char *path, struct error *error) {
    *file = (struct file_new){0};
    if (strlen(path) + sizeof ".part" > PATH_BYTES)
        return error_set(error, ERROR_FILE, "%.100s...: a path of %zu bytes, expected fewer than %d", path,
                         strlen(path), PATH_BYTES - 5);
    snprintf(file->path, sizeof file->path, "%s", path);
    snprintf(file->part, sizeof file->part, "%.*s.part", PATH_BYTES - 6, path);
    return OK;
}

/* O_NOFOLLOW's reason is said in other words than that of a link that leads nowhere. */
static const char *words_of(int reason) {
    return reason == ELOOP ? "a symbolic link, expected a file" : strerror(reason);
}

static int not_writable(const struct file_new *file, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: cannot be written: %s", file->part, words_of(errno));
}

/* What was left there goes, and is not written into: it may be a link to somebody's file. */
int file_create(struct file_new *file, const char *path, struct error *error) {
    RETURN_IF(name_part(file, path, error));
    if (unlink(file->part) != 0 && errno != ENOENT) return not_writable(file, error);
    const int handle = open(file->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (handle < 0) return not_writable(file, error);
    file->stream = fdopen(handle, "wb");
    if (file->stream != NULL) return OK;
    const int code = not_writable(file, error);
    close(handle);
    unlink(file->part);
    return code;
}

static int open_plain(FILE **stream, const char *path, int how, const char *mode, struct error *error) {
    const int handle = open(path, O_WRONLY | O_CREAT | how | O_NOFOLLOW | O_CLOEXEC, 0666);
    *stream = handle < 0 ? NULL : fdopen(handle, mode);
    if (*stream != NULL) return OK;
    const int reason = errno;
    if (handle >= 0) close(handle);
    return error_set(error, ERROR_FILE, "%s: cannot be written: %s", path, words_of(reason));
}

int file_overwrite(FILE **stream, const char *path, struct error *error) {
    return open_plain(stream, path, O_TRUNC, "wb", error);
}

int file_append(FILE **stream, const char *path, struct error *error) {
    return open_plain(stream, path, O_APPEND, "ab", error);
}

int file_amend(FILE **stream, const char *path, struct error *error) {
    return open_plain(stream, path, 0, "wb", error);
}

/* Whether the path is still that of the open file: another process may have renamed it. */
static bool is_still(int handle, const char *path) {
    struct stat opened, named;
    return fstat(handle, &opened) == 0 && stat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

int file_continue(struct file_new *file, const char *path, struct error *error) {
    RETURN_IF(name_part(file, path, error));
    const int handle = open(file->part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (handle < 0) return not_writable(file, error);
    if ((flock(handle, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) || !is_still(handle, file->part)) {
        close(handle);
        return error_set(error, ERROR_FILE, "%s: another process is writing it", file->part);
    }
    file->stream = lseek(handle, 0, SEEK_END) < 0 ? NULL : fdopen(handle, "r+b");
    if (file->stream == NULL) {
        const int code = not_writable(file, error);
        close(handle);
        return code;
    }
    setvbuf(file->stream, NULL, _IONBF, 0);
    return OK;
}

/* The rename itself is on the disk only when the folder is. Some file systems cannot sync a folder: then
 * theirs is the say. */
static bool sync_folder_of(const char *path) {
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash == NULL)
        snprintf(folder, sizeof folder, ".");
    else
        slash[slash == folder ? 1 : 0] = '\0';
    const int handle = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle < 0) return errno == EACCES;
    const bool synced = fsync(handle) == 0 || errno == EINVAL || errno == EROFS;
    close(handle);
    return synced;
}

/* Sets errno. */
static bool is_on_disk(const struct file_new *file) {
    errno = 0; /* of an earlier failed write only the mark is left */
    if (file->whole) return true;
    const bool written = !ferror(file->stream);
    return fflush(file->stream) == 0 && written && fsync(fileno(file->stream)) == 0;
}

static int not_written(const struct file_new *file, int reason, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: not written: %s", file->path,
                     reason == 0 ? "a write failed" : strerror(reason));
}

int file_finish(struct file_new *file, struct error *error) {
    file->whole = is_on_disk(file);
    const int reason = errno;
    if (!file->whole) unlink(file->part);
    file_leave(file);
    return file->whole ? OK : not_written(file, reason, error);
}

int file_commit(struct file_new *file, struct error *error) {
    if (file->stream == NULL && !file->whole)
        return error_set(error, ERROR_INTERNAL, "%s: committed, but not open", file->path);
    bool written = is_on_disk(file);
    written = written && rename(file->part, file->path) == 0 && sync_folder_of(file->path);
    const int reason = errno;
    if (!written) unlink(file->part);
    file->whole = false;
    file_leave(file); /* after that: closing gives the lock away */
    return written ? OK : not_written(file, reason, error);
}

void file_abandon(struct file_new *file) {
    if (file->stream == NULL && !file->whole) return;
    unlink(file->part);
    file->whole = false;
    file_leave(file);
}

void file_leave(struct file_new *file) {
    if (file->stream == NULL) return;
    fclose(file->stream);
    file->stream = NULL;
}

int file_write(const char *path, const void *bytes, size_t count, struct error *error) {
    struct file_new file = {0};
    RETURN_IF(file_create(&file, path, error));
    fwrite(bytes, 1, count, file.stream); /* file_commit finds an error */
    return file_commit(&file, error);
}

bool file_is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool file_exists(const char *path) {
    return access(path, F_OK) == 0;
}
