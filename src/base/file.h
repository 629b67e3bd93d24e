/* Files: whole ones read (gunzipped when they are gzip), and new ones written under a temporary name, synced
 * to the disk and renamed, so that a reader sees the old file or the new one, never half of one. */
#ifndef TRAINER_BASE_FILE_H
#define TRAINER_BASE_FILE_H

#include <stddef.h>
#include <stdio.h>
#include "error.h"

enum { PATH_BYTES = 1024 };

/* Bytes that a gzip file may become: so many times its size, a small one FILE_UNPACKED_FREE, none more than
 * FILE_UNPACKED_MOST. */
enum { FILE_UNPACKED_TIMES = 100, FILE_UNPACKED_FREE = 64 << 20, FILE_UNPACKED_MOST = 1 << 30 };

/* Reads a whole file into *data (owned by the caller, memory_free; one 0 byte follows the last), gunzipping
 * it when it starts with the gzip magic. More than `limit` bytes, or more than a gzip file may become, is an
 * error. Errors: ERROR_FILE, naming path, what was found. */
int file_read(const char *path, size_t limit, char **data, size_t *bytes, struct error *error);
/* The same of a file that is never gzip, which is an error. More than `limit` bytes is one, too. */
int file_read_plain(const char *path, size_t limit, char **data, size_t *bytes, struct error *error);

/* Opens a file that nobody but its owner can read, for reading: one with a key. Errors: ERROR_FILE, also when
 * others can read it, and when it is no file. */
int file_open_private(const char *path, int *out, struct error *error);

/* Joins folder and name into out[PATH_BYTES]. Errors: ERROR_FILE when it is too long. */
int file_join(char out[PATH_BYTES], const char *folder, const char *name, struct error *error);

/* Makes a folder and the ones above it; an existing one is fine. */
int file_make_folder(const char *path, struct error *error);

/* Makes a folder that was not there: `path`, or the first free of path-2, path-3, ..., which path[PATH_BYTES]
 * then is. Nobody else gets the same one. */
int file_make_new_folder(char path[PATH_BYTES], struct error *error);

/* Keeps other processes, and other callers in this one, from holding the same folder until file_release.
 * Where a file system knows no locks, nobody is kept out. Errors: ERROR_FILE: another one holds it. */
int file_hold(void **hold, const char *folder, struct error *error);
void file_release(void *hold); /* safe on NULL */

/* For a folder that was made in vain: how many bytes of its path are there before; and, after, to remove of
 * the folders below those what is empty. */
size_t file_existing(const char *path);
void file_remove_empty(const char *path, size_t existing);

/* Keeps an existing file under the first free name of path.1, path.2, ... (nothing when there is none). */
int file_keep(const char *path, struct error *error);

bool file_exists(const char *path);
bool file_is_folder(const char *path);

/* A file being written: `path.part` until file_commit flushes, fsyncs and renames it (and fsyncs the folder);
 * file_abandon removes it. Every write error is found at the latest by file_commit. */
struct file_new {
    FILE *stream; /* NULL: not open */
    bool whole;   /* file_finish has closed it: `path.part` waits for file_commit */
    char path[PATH_BYTES], part[PATH_BYTES];
};

/* Opens a file for writing under its own name, emptied: for logs, which are looked at while they grow. A
 * symbolic link is refused: what it points to would be lost. Errors: ERROR_FILE. */
int file_overwrite(FILE **stream, const char *path, struct error *error);
/* The same, but what is there stays, and is written on below. */
int file_append(FILE **stream, const char *path, struct error *error);
/* What is there stays, and is written over from its beginning on, or wherever fseek goes. */
int file_amend(FILE **stream, const char *path, struct error *error);

/* A file or link that has the name path.part already is removed, never written into. */
int file_create(struct file_new *file, const char *path, struct error *error);
/* The same, keeping what is in `path.part` already: read and written through one stream that stands at its
 * end and is not buffered. Errors: ERROR_FILE, also when another process has it open this way, and when it is
 * a symbolic link. */
int file_continue(struct file_new *file, const char *path, struct error *error);
int file_commit(struct file_new *file, struct error *error);
/* Flushes, fsyncs and closes it, for who has many; it is still to be committed, or abandoned. */
int file_finish(struct file_new *file, struct error *error);
/* All three: a new file of these bytes, whole or not at all. */
int file_write(const char *path, const void *bytes, size_t count, struct error *error);
void file_abandon(struct file_new *file); /* safe on a zeroed or committed one */
void file_leave(struct file_new *file);   /* the same, but `path.part` stays, for file_continue */

#endif
