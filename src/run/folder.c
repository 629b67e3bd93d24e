/* See folder.h. */
#include "folder.h"

#include "../base/text.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../formats/checkpoint.h"
#include "../infer/ensemble.h"
#include "../record/output.h"
#include "../world/world.h"

static bool same_folder(const char *one, const char *other) {
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* "12 of 20 epochs, 96.1 %", or that nobody can tell. */
static void describe(const char *path, char *out, size_t bytes) {
    struct safetensors checkpoint = {0};
    struct error why = {0};
    const int code = checkpoint_read(path, &checkpoint, &why);
    const double epochs = checkpoint_real(&checkpoint, "epochs", 0.0);
    const double accuracy = checkpoint_real(&checkpoint, "test_accuracy", (double)NAN);
    const double rmse = checkpoint_real(&checkpoint, "test_rmse", (double)NAN);
    if (code == OK) /* the last round of several workers may go a little beyond */
        snprintf(out, bytes, "%.10g of %.0f epochs",
                 round(10.0 * fmin(checkpoint_real(&checkpoint, "epochs_done", 0.0), epochs)) / 10.0, epochs);
    else
        snprintf(out, bytes, "its checkpoint cannot be read");
    const size_t used = strlen(out);
    if (code == OK && !isnan(accuracy)) snprintf(out + used, bytes - used, ", %.1f %%", 100.0 * accuracy);
    if (code == OK && !isnan(rmse)) snprintf(out + used, bytes - used, ", RMSE %.6g", rmse);
    safetensors_free(&checkpoint);
}

static int refuse(const char *path, struct error *error) {
    char how_far[64];
    describe(path, how_far, sizeof how_far);
    return error_set(error, ERROR_FILE,
                     "%.150s has a run (%s): --resume=%.150s goes on with it, --replace starts anew", path,
                     how_far, TEXT_WORD(path));
}

int folder_name(char path[PATH_BYTES], const char *model, const char *what, struct error *error) {
    const time_t now = (time_t)world_utc_seconds();
    struct tm parts;
    char stamp[32];
    if (!gmtime_r(&now, &parts) || strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &parts) == 0)
        return error_set(error, ERROR_INTERNAL, "the time of day cannot be written as a date");
    snprintf(path, PATH_BYTES, "runs/%s-%s-%s", stamp, model, what);
    return OK;
}

int folder_remove(const char *folder, const char *name, bool *was, struct error *error) {
    char path[PATH_BYTES];
    RETURN_IF(file_join(path, folder, name, error));
    *was = unlink(path) == 0;
    if (*was || errno == ENOENT || errno == ENOTDIR) return OK;
    return error_set(error, ERROR_FILE, "%s: from before, and cannot be removed: %s", path, strerror(errno));
}

#define ASIDE ".replaced"

/* Of a file in a run's folder that an output left: `name` without the suffix is what it was called. */
typedef int left_file(const char *folder, const char *name, size_t suffix, struct error *error);

/* Whether the name ends with ASIDE; else with a part's number, as in steps.csv.1; the length of either. */
static size_t aside_length(const char *name) {
    const size_t length = strlen(name), aside = sizeof ASIDE - 1;
    return length > aside && strcmp(name + length - aside, ASIDE) == 0 ? aside : 0;
}

static size_t part_length(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && !output_has_left(name) && dot[1] != '\0' && strspn(dot + 1, "0123456789") == strlen(dot + 1)
               ? strlen(dot)
               : 0;
}

/* Calls `each` for all files of outputs whose names have such a suffix; 0: for those under their own. */
static int each_left(const char *folder, size_t (*suffix_of)(const char *name), left_file *each,
                     struct error *error) {
    DIR *entries = opendir(folder);
    int code = OK;
    if (!entries) return OK;
    for (const struct dirent *entry; code == OK && (entry = readdir(entries)) != NULL;) {
        char name[NAME_MAX + 1];
        const size_t suffix = suffix_of ? suffix_of(entry->d_name) : 0;
        if ((suffix_of ? suffix == 0 : aside_length(entry->d_name) > 0)) continue;
        snprintf(name, sizeof name, "%.*s", (int)(strlen(entry->d_name) - suffix), entry->d_name);
        if (output_has_left(name)) code = each(folder, entry->d_name, suffix, error);
    }
    closedir(entries);
    return code;
}

static int rename_left(const char *folder, const char *name, const char *to, const char *why,
                       struct error *error) {
    char from_path[PATH_BYTES], to_path[PATH_BYTES];
    RETURN_IF(file_join(from_path, folder, name, error));
    RETURN_IF(file_join(to_path, folder, to, error));
    if (rename(from_path, to_path) == 0 || errno == ENOENT) return OK;
    return error_set(error, ERROR_FILE, "%s: %s %s: %s", from_path, why, to_path, strerror(errno));
}

static int set_aside(const char *folder, const char *name, size_t suffix, struct error *error) {
    char aside[NAME_MAX + sizeof ASIDE];
    (void)suffix;
    snprintf(aside, sizeof aside, "%s" ASIDE, name);
    return rename_left(folder, name, aside, "from before, and cannot be renamed to", error);
}

static int put_back(const char *folder, const char *name, size_t suffix, struct error *error) {
    char back[NAME_MAX + 1];
    snprintf(back, sizeof back, "%.*s", (int)(strlen(name) - suffix), name);
    return rename_left(folder, name, back, "cannot be renamed back to", error);
}

/* Unless the next run has other names for its own: those that end in a number are no parts then. */
static int keep_left(const char *folder, const char *name, size_t suffix, struct error *error) {
    char path[PATH_BYTES], part[NAME_MAX + 3];
    struct stat about;
    (void)suffix;
    snprintf(part, sizeof part, "%s.1", name);
    if (output_has_left(part)) return OK;
    RETURN_IF(file_join(path, folder, name, error));
    return lstat(path, &about) == 0 && S_ISREG(about.st_mode) ? file_keep(path, error) : OK;
}

static int remove_left(const char *folder, const char *name, size_t suffix, struct error *error) {
    bool was;
    (void)suffix;
    return folder_remove(folder, name, &was, error);
}

int folder_set_aside(const char *folder, struct error *error) {
    RETURN_IF(outputs_left(LEFT_SET_ASIDE, folder, error));
    return each_left(folder, NULL, set_aside, error);
}

int folder_put_back(const char *folder, struct error *error) {
    RETURN_IF(outputs_left(LEFT_PUT_BACK, folder, error));
    return each_left(folder, aside_length, put_back, error);
}

int folder_keep_logs(const char *folder, struct error *error) {
    RETURN_IF(outputs_left(LEFT_KEEP, folder, error));
    return each_left(folder, NULL, keep_left, error);
}

int folder_remove_earlier(const char *folder, struct error *error) {
    static const char *const names[] = {"summary.json", "report.html",   "model.safetensors", FOLDER_BEST,
                                        "filters.png",  "confusion.png", "wrong.png"}; /* of `trainer show` */
    bool was;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        RETURN_IF(folder_remove(folder, names[i], &was, error));
    RETURN_IF(outputs_left(LEFT_DROP, folder, error));
    /* What was moved to steps.csv.1 stays: it may be somebody else's. */
    return each_left(folder, aside_length, remove_left, error);
}

int folder_remove_outputs(const char *folder, struct error *error) {
    RETURN_IF(outputs_left(LEFT_REMOVE, folder, error));
    RETURN_IF(each_left(folder, NULL, remove_left, error));
    RETURN_IF(each_left(folder, aside_length, remove_left, error));
    return each_left(folder, part_length, remove_left, error);
}

/* What has a folder to itself, by a file that it leaves there. */
static const struct owner {
    const char *file, *what;
} owners[] = {{FOLDER_COMPARISON, "a comparison (bench.csv)"},
              {FOLDER_SWEEP, "a sweep (sweep.csv), which trainer sweep --resume goes on with"},
              {ENSEMBLE_LIST, "an ensemble (ensemble.csv), which trainer ensemble --resume goes on with"},
              {FOLDER_CHECKPOINT, "a run"}};

/* The first of so many owners that is there, or NULL. */
static int find_owner(const char *folder, size_t count, const struct owner **found, struct error *error) {
    char path[PATH_BYTES];
    *found = NULL;
    for (size_t i = 0; i < count && !*found; i++) {
        RETURN_IF(file_join(path, folder, owners[i].file, error));
        if (file_exists(path)) *found = &owners[i];
    }
    return OK;
}

int folder_check_free(const char *folder, const char *what, struct error *error) {
    const struct owner *owner;
    RETURN_IF(find_owner(folder, sizeof owners / sizeof *owners, &owner, error));
    if (!owner) return OK;
    return error_set(error, ERROR_FILE, "%.300s has %s: %s needs another folder", folder, owner->what, what);
}

int folder_open(char path[PATH_BYTES], const struct folder_settings *settings, void **hold,
                enum folder_state *state, struct error *error) {
    char run[PATH_BYTES] = "", checkpoint[PATH_BYTES];
    const struct owner *owner;
    *state = FOLDER_UNUSED;
    if (!settings->named) RETURN_IF(file_make_new_folder(path, error));
    RETURN_IF(file_make_folder(path, error));
    RETURN_IF(file_hold(hold, path, error));
    RETURN_IF(folder_put_back(path, error));
    RETURN_IF(find_owner(path, sizeof owners / sizeof *owners - 1, &owner, error));
    if (owner)
        return error_set(error, ERROR_FILE, "%.300s has %s: a run needs another folder", path, owner->what);
    if (settings->resume[0]) checkpoint_run(settings->resume, run);
    if (same_folder(run, path)) *state = FOLDER_RESUMED;
    RETURN_IF(file_join(checkpoint, path, FOLDER_CHECKPOINT, error));
    if (*state == FOLDER_RESUMED || !file_exists(checkpoint)) return OK;
    *state = FOLDER_EARLIER;
    return settings->replace ? OK : refuse(path, error);
}
