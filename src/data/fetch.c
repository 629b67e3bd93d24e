/* Fetching: a file is downloaded as NAME.part and gets its name only when its SHA-256 is right, so a
 * reader never sees a wrong file. An archive is not kept: each of its files has its own sum. */
#include "fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "../base/file.h"
#include "../base/memory.h"
#include "../world/download.h"
#include "../world/world.h"
#include "sha256.h"
#include "tar.h"

enum { STEP_BYTES = 1 << 18, ADDRESS_BYTES = 2048 };
static const long long archive_most_bytes = 1LL << 30;

struct job {
    const struct fetch *fetch;
    struct downloader *downloader;
    char *room; /* [STEP_BYTES] */
};

static void tell(const struct job *job, enum fetch_event event, const char *name, long long bytes,
                 long long total) {
    const struct fetch_report report = {.event = event, .name = name, .bytes = bytes, .total = total};
    job->fetch->tell(job->fetch->argument, &report);
}

static int check_interrupt(const char *name, struct error *error) {
    if (!world_interrupted()) return OK;
    return error_set(error, ERROR_INTERRUPTED, "interrupted at %s; the same command goes on from there",
                     name);
}

/* --- what is there already --- */

/* SHA-256 of what a file holds, unpacked. Damaged gzip data has none, nor has what becomes larger than any
 * file that is read: *text is empty. */
static int sum_contents(const struct job *job, const char *path, char text[SHA256_TEXT_BYTES],
                        struct error *error) {
    struct sha256 sum = {0};
    text[0] = '\0';
    errno = 0;
    gzFile file = gzopen(path, "rbe");
    if (file == NULL)
        return error_set(error, ERROR_FILE, "%s: cannot be read: %s", path,
                         strerror(errno == 0 ? ENOMEM : errno));
    int code = sha256_open(&sum, error), got = 0;
    long long bytes = 0;
    while (code == OK && bytes <= FILE_UNPACKED_MOST && (got = gzread(file, job->room, STEP_BYTES)) > 0) {
        bytes += got;
        code = sha256_add(&sum, job->room, (size_t)got, error);
        if (code == OK) code = check_interrupt(path, error);
    }
    int state = Z_OK;
    gzerror(file, &state);
    if (code == OK && state == Z_ERRNO)
        code = error_set(error, ERROR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    if (code == OK && got == 0 && (state == Z_OK || state == Z_STREAM_END))
        code = sha256_end(&sum, text, error);
    sha256_close(&sum);
    gzclose_r(file);
    return code;
}

/* The file that a reader would use for `file`: NAME, or else NAME.gz. *path is empty when there is none. */
static int find_taken(const struct job *job, const struct source_file *file, char path[PATH_BYTES],
                      struct error *error) {
    RETURN_IF(file_join(path, job->fetch->folder, file->name, error));
    const size_t length = strlen(path);
    if (file->plain_sha256 != NULL) path[length - 3] = '\0'; /* without .gz */
    if (file_exists(path)) return OK;
    if (strlen(path) + sizeof ".gz" <= PATH_BYTES) {
        strcat(path, ".gz");
        if (file_exists(path)) return OK;
    }
    path[0] = '\0';
    return OK;
}

/* *there: a reader would find the right file. Else `wrong` is the one that it would find (empty: none). */
static int look(const struct job *job, const struct source_file *file, bool *there, char wrong[PATH_BYTES],
                struct error *error) {
    const char *expected = file->plain_sha256 != NULL ? file->plain_sha256 : file->sha256;
    char found[SHA256_TEXT_BYTES];
    *there = false;
    RETURN_IF(find_taken(job, file, wrong, error));
    if (wrong[0] == '\0') return OK;
    RETURN_IF(sum_contents(job, wrong, found, error));
    *there = strcmp(found, expected) == 0;
    return OK;
}

/* --- downloading --- */

/* What is downloaded in one piece: a file, or the archive of them all. */
struct want {
    const char *name;
    long long bytes;  /* its size; 0: whatever it is */
    long long listed; /* the same, for showing only */
    long long most;
    const struct source_file *file; /* NULL: the archive */
    const char *in_the_way;         /* path of a wrong file that a reader would find, or "" */
};

struct moving {
    const struct job *job;
    const struct want *want;
};

static void moved(void *argument, long long bytes, long long total, double bytes_per_s) {
    const struct moving *moving = argument;
    const struct fetch *fetch = moving->job->fetch;
    const struct fetch_report report = {.event = FETCH_MOVING,
                                        .name = moving->want->name,
                                        .bytes = bytes,
                                        .total = total > 0 ? total : moving->want->listed,
                                        .bytes_per_s = bytes_per_s};
    fetch->tell(fetch->argument, &report);
}

/* What is not yet there is asked for. *kept = bytes of earlier times that are still in it. */
static int download(const struct job *job, const char *folder, const struct want *want, struct file_new *part,
                    long long *kept, struct error *error) {
    char address[ADDRESS_BYTES];
    const char *slash = folder[0] != '\0' && folder[strlen(folder) - 1] == '/' ? "" : "/";
    const int length = snprintf(address, sizeof address, "%s%s%s", folder, slash, want->name);
    if (length < 0 || (size_t)length >= sizeof address)
        return error_set(error, ERROR_USAGE, "%.100s...: an address of %d bytes, expected fewer than %d",
                         address, length, ADDRESS_BYTES);
    *kept = ftell(part->stream);
    if (*kept < 0) return error_set(error, ERROR_FILE, "%s: cannot be read: %s", part->part, strerror(errno));
    if (*kept > 0) tell(job, FETCH_RESUME, want->name, *kept, want->listed);
    if (want->bytes > 0 && *kept == want->bytes) return OK;
    struct moving moving = {.job = job, .want = want};
    const struct download download = {.address = address,
                                      .file = part->stream,
                                      .name = part->part,
                                      .bytes = want->bytes,
                                      .most = want->most,
                                      .timeout_s = job->fetch->timeout_s,
                                      .progress = moved,
                                      .argument = &moving};
    return download_run(job->downloader, &download, kept, error);
}

/* --- accepting --- */

/* Copies from a tar (or, when NULL, reads the stream of `file`) to its end, and gives the sum. */
static int copy_and_sum(const struct job *job, struct tar *tar, struct file_new *file,
                        char text[SHA256_TEXT_BYTES], bool *wrong, struct error *error) {
    struct sha256 sum = {0};
    size_t got = 0;
    int code = sha256_open(&sum, error);
    while (code == OK) {
        if (tar != NULL) {
            code = tar_read(tar, job->room, STEP_BYTES, &got, error);
            *wrong = code != OK;
        } else {
            got = fread(job->room, 1, STEP_BYTES, file->stream);
            if (ferror(file->stream))
                code = error_set(error, ERROR_FILE, "%s: cannot be read: %s", file->part, strerror(errno));
        }
        if (code != OK || got == 0) break;
        code = sha256_add(&sum, job->room, got, error);
        if (code == OK && tar != NULL && fwrite(job->room, 1, got, file->stream) < got)
            code = error_set(error, ERROR_FILE, "%s: cannot be written: %s", file->part, strerror(errno));
        if (code == OK) code = check_interrupt(file->path, error);
    }
    if (code == OK) code = sha256_end(&sum, text, error);
    sha256_close(&sum);
    return code;
}

static int check_sum(const struct source_file *file, const char *sum, bool *wrong, struct error *error) {
    *wrong = strcmp(sum, file->sha256) != 0;
    if (!*wrong) return OK;
    return error_set(error, ERROR_FILE, "%s: SHA-256 %s, expected %s", file->name, sum, file->sha256);
}

/* The new file takes its place; a wrong one that stands in its way makes room. */
static int put_in_place(const struct job *job, struct file_new *new, const struct source_file *file,
                        const char *in_the_way, struct error *error) {
    if (in_the_way[0] != '\0') {
        tell(job, FETCH_WRONG, in_the_way, 0, 0);
        RETURN_IF(file_keep(in_the_way, error));
    }
    RETURN_IF(file_commit(new, error));
    tell(job, FETCH_DONE, file->name, file->bytes, file->bytes);
    return OK;
}

/* A file that was downloaded by itself. *wrong: it is not the right one. */
static int accept_file(const struct job *job, const struct want *want, struct file_new *part, bool *wrong,
                       struct error *error) {
    char sum[SHA256_TEXT_BYTES];
    rewind(part->stream);
    RETURN_IF(copy_and_sum(job, NULL, part, sum, wrong, error));
    RETURN_IF(check_sum(want->file, sum, wrong, error));
    return put_in_place(job, part, want->file, want->in_the_way, error);
}

static int unpack_file(const struct job *job, struct tar *tar, const struct source_file *file, bool *wrong,
                       struct error *error) {
    char path[PATH_BYTES], in_the_way[PATH_BYTES], sum[SHA256_TEXT_BYTES];
    struct file_new new = {0};
    bool there;
    RETURN_IF(look(job, file, &there, in_the_way, error));
    if (there) return OK;
    RETURN_IF(file_join(path, job->fetch->folder, file->name, error));
    RETURN_IF(file_create(&new, path, error));
    int code = copy_and_sum(job, tar, &new, sum, wrong, error);
    if (code == OK) code = check_sum(file, sum, wrong, error);
    if (code == OK) code = put_in_place(job, &new, file, in_the_way, error);
    file_abandon(&new);
    return code;
}

/* The number of a file in the list by the last part of its name in an archive, or -1. */
static int find_listed(const struct source *source, const char *name) {
    const char *slash = strrchr(name, '/'), *last = slash != NULL ? slash + 1 : name;
    for (int i = 0; source->files[i].name != NULL; i++)
        if (strcmp(source->files[i].name, last) == 0) return i;
    return -1;
}

/* The archive: each of its files that is listed gets its place. */
static int accept_archive(const struct job *job, struct file_new *part, bool *wrong, struct error *error) {
    const struct source_file *files = job->fetch->source->files;
    struct tar tar = {0};
    struct tar_file file;
    unsigned long long seen = 0; /* one bit per file */
    bool found = true;
    int code = tar_open(&tar, part->part, error);
    while (code == OK && found) {
        code = tar_next(&tar, &file, &found, error);
        *wrong = code != OK;
        const int listed = code == OK && found ? find_listed(job->fetch->source, file.name) : -1;
        if (listed < 0) continue;
        seen |= 1ULL << listed;
        code = unpack_file(job, &tar, &files[listed], wrong, error);
    }
    tar_close(&tar);
    for (int i = 0; files[i].name != NULL && code == OK; i++) {
        if (seen & 1ULL << i) continue;
        *wrong = true;
        code = error_set(error, ERROR_FILE, "%s: no %s in it", part->part, files[i].name);
    }
    if (code == OK) file_abandon(part);
    return code;
}

/* --- one piece --- */

/* What another try may recover. */
struct verdict {
    bool stale;  /* the download was wrong, but began with bytes of an earlier one */
    bool theirs; /* the server has it not, or has a wrong one */
};

static int fetch_once(const struct job *job, const char *folder, const struct want *want,
                      struct verdict *verdict, struct error *error) {
    char path[PATH_BYTES];
    struct file_new part = {0};
    long long kept = 0;
    bool wrong = false;
    *verdict = (struct verdict){0};
    RETURN_IF(file_join(path, job->fetch->folder, want->name, error));
    RETURN_IF(file_continue(&part, path, error));
    int code = download(job, folder, want, &part, &kept, error);
    verdict->theirs = code != OK && !ferror(part.stream);
    if (code == OK)
        code = want->file != NULL ? accept_file(job, want, &part, &wrong, error)
                                  : accept_archive(job, &part, &wrong, error);
    verdict->stale = wrong && kept > 0;
    verdict->theirs = verdict->theirs || wrong;
    const bool is_empty =
        part.stream != NULL && fseek(part.stream, 0, SEEK_END) == 0 && ftell(part.stream) == 0;
    if (wrong || is_empty)
        file_abandon(&part);
    else
        file_leave(&part);
    return code;
}

/* *theirs: the server is to blame. */
static int fetch_from(const struct job *job, const char *folder, const struct want *want, bool *theirs,
                      struct error *error) {
    struct error first = {0};
    struct verdict verdict;
    int code = fetch_once(job, folder, want, &verdict, &first);
    const bool again = verdict.stale;
    if (again) code = fetch_once(job, folder, want, &verdict, error);
    *theirs = verdict.theirs;
    if (again) return code;
    if (code != OK) return error_set(error, code, "%s", first.words);
    return OK;
}

/* From the first address that has it. */
static int fetch_want(const struct job *job, const struct want *want, struct error *error) {
    const char *const given[] = {job->fetch->from, NULL};
    const char *const *addresses = job->fetch->from != NULL ? given : job->fetch->source->addresses;
    for (int i = 0;; i++) {
        struct error own = {0};
        bool theirs;
        const int code = fetch_from(job, addresses[i], want, &theirs, &own);
        if (code == OK) return OK;
        if (addresses[i + 1] == NULL || code == ERROR_INTERRUPTED || !theirs)
            return error_set(error, code, "%s", own.words);
        tell(job, FETCH_FAILED, own.words, 0, 0);
    }
}

/* --- a data set --- */

static int fetch_files(const struct job *job, struct error *error) {
    const struct source *source = job->fetch->source;
    int missing = 0;
    for (const struct source_file *file = source->files; file->name != NULL; file++) {
        char in_the_way[PATH_BYTES];
        bool there;
        RETURN_IF(look(job, file, &there, in_the_way, error));
        if (there) {
            tell(job, FETCH_THERE, file->name, file->bytes, file->bytes);
            continue;
        }
        missing++;
        const struct want want = {.name = file->name,
                                  .bytes = file->bytes,
                                  .listed = file->bytes,
                                  .most = file->bytes,
                                  .file = file,
                                  .in_the_way = in_the_way};
        if (source->archive == NULL) RETURN_IF(fetch_want(job, &want, error));
    }
    const struct want archive = {
        .name = source->archive, .listed = source->archive_bytes, .most = archive_most_bytes};
    return source->archive != NULL && missing > 0 ? fetch_want(job, &archive, error) : OK;
}

int fetch_run(const struct fetch *fetch, struct error *error) {
    struct job job = {.fetch = fetch};
    const size_t existing = file_existing(fetch->folder);
    int code = file_make_folder(fetch->folder, error);
    if (code == OK) code = memory_array(&job.room, STEP_BYTES, "a piece of a file", error);
    if (code == OK) code = downloader_open(&job.downloader, error);
    if (code == OK) code = fetch_files(&job, error);
    downloader_close(job.downloader);
    memory_free(job.room);
    if (code != OK) file_remove_empty(fetch->folder, existing);
    return code;
}
