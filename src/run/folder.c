/* See folder.h. */
#include "folder.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../formats/checkpoint.h"
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
    if (code == OK) /* the last round of several workers may go a little beyond */
        snprintf(out, bytes, "%.10g of %.0f epochs",
                 round(10.0 * fmin(checkpoint_real(&checkpoint, "epochs_done", 0.0), epochs)) / 10.0, epochs);
    else
        snprintf(out, bytes, "its checkpoint cannot be read");
    const size_t used = strlen(out);
    if (code == OK && !isnan(accuracy)) snprintf(out + used, bytes - used, ", %.1f %%", 100.0 * accuracy);
    safetensors_free(&checkpoint);
}

static int refuse(const char *path, struct error *error) {
    char how_far[64];
    describe(path, how_far, sizeof how_far);
    return error_set(error, ERROR_FILE,
                     "%.150s has a run (%s): --resume=%.150s goes on with it, --replace starts anew", path,
                     how_far, path);
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

static const char *const logs[] = {"steps.csv", "epochs.csv"}; /* those of its parts: steps.csv.1, ... */
enum { LOGS = sizeof logs / sizeof *logs };
#define ASIDE ".replaced"

static int aside_name(char path[PATH_BYTES], const char *folder, const char *log, struct error *error) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", log, ASIDE);
    return file_join(path, folder, name, error);
}

int folder_set_aside(const char *folder, struct error *error) {
    char log[PATH_BYTES], aside[PATH_BYTES];
    for (int i = 0; i < LOGS; i++) {
        RETURN_IF(file_join(log, folder, logs[i], error));
        RETURN_IF(aside_name(aside, folder, logs[i], error));
        if (rename(log, aside) != 0 && errno != ENOENT)
            return error_set(error, ERROR_FILE, "%s: from before, and cannot be renamed to %s: %s", log,
                             aside, strerror(errno));
    }
    return OK;
}

int folder_put_back(const char *folder, struct error *error) {
    char log[PATH_BYTES], aside[PATH_BYTES];
    for (int i = 0; i < LOGS; i++) {
        RETURN_IF(file_join(log, folder, logs[i], error));
        RETURN_IF(aside_name(aside, folder, logs[i], error));
        if (rename(aside, log) != 0 && errno != ENOENT)
            return error_set(error, ERROR_FILE, "%s: cannot be renamed back to %s: %s", aside, log,
                             strerror(errno));
    }
    return OK;
}

int folder_keep_logs(const char *folder, struct error *error) {
    for (int i = 0; i < LOGS; i++) {
        char log[PATH_BYTES];
        struct stat about;
        RETURN_IF(file_join(log, folder, logs[i], error));
        if (lstat(log, &about) == 0 && S_ISREG(about.st_mode)) RETURN_IF(file_keep(log, error));
    }
    return OK;
}

static int remove_parts(const char *folder, const char *log, struct error *error) {
    bool was = true;
    for (int part = 1; was; part++) {
        char name[32];
        snprintf(name, sizeof name, "%s.%d", log, part);
        RETURN_IF(folder_remove(folder, name, &was, error));
    }
    return OK;
}

int folder_remove_earlier(const char *folder, struct error *error) {
    static const char *const names[] = {"summary.json", "model.safetensors", FOLDER_BEST, "steps.csv" ASIDE,
                                        "epochs.csv" ASIDE};
    bool was;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        RETURN_IF(folder_remove(folder, names[i], &was, error));
    for (int i = 0; i < LOGS; i++) RETURN_IF(remove_parts(folder, logs[i], error));
    return OK;
}

int folder_open(char path[PATH_BYTES], const struct folder_settings *settings, void **hold,
                enum folder_state *state, struct error *error) {
    char run[PATH_BYTES] = "", checkpoint[PATH_BYTES], list[PATH_BYTES];
    *state = FOLDER_UNUSED;
    if (!settings->named) RETURN_IF(file_make_new_folder(path, error));
    RETURN_IF(file_make_folder(path, error));
    RETURN_IF(file_hold(hold, path, error));
    RETURN_IF(folder_put_back(path, error));
    RETURN_IF(file_join(list, path, FOLDER_COMPARISON, error));
    if (file_exists(list))
        return error_set(error, ERROR_FILE, "%.300s has a comparison (bench.csv): a run needs another folder",
                         path);
    if (settings->resume[0]) checkpoint_run(settings->resume, run);
    if (same_folder(run, path)) *state = FOLDER_RESUMED;
    RETURN_IF(file_join(checkpoint, path, FOLDER_CHECKPOINT, error));
    if (*state == FOLDER_RESUMED || !file_exists(checkpoint)) return OK;
    *state = FOLDER_EARLIER;
    return settings->replace ? OK : refuse(path, error);
}
