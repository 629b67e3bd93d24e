/* trainer import: a network that another program trained, as a run that has not begun: what train --resume,
 * evaluate, predict and export take. */
#include <stdio.h>

#include "../graph/network_file.h"
#include "../run/run.h"
#include "command.h"

struct import_settings {
    char dataset[1024], data_dir[PATH_BYTES], out[PATH_BYTES];
    bool replace;
};

static const struct option rows[] = {
    OPTION_ROW(TEXT, "dataset", struct import_settings, dataset, .fallback = "digits", .value = "NAME",
               .help = "the data set that it was trained on: names of classes, scale of inputs"),
    OPTION_ROW(TEXT, "data-dir", struct import_settings, data_dir, .value = "DIR",
               .help = "look for data sets here first"),
    OPTION_ROW(TEXT, "out", struct import_settings, out, .value = "DIR",
               .help = "folder of the run that is made; must be given"),
    OPTION_ROW(FLAG, "replace", struct import_settings, replace,
               .help = "also in a folder that has a run, and remove its results"),
    {0},
};

static int type(struct typed *typed, const char *name, const char *value, struct error *error) {
    return value[0] ? option_set(run_options, typed, "--", name, value, error) : OK;
}

static int type_all(struct typed *typed, const struct import_settings *settings, const char *path,
                    struct error *error) {
    struct file_optimizer optimizer = {0};
    bool has_weights = false;
    option_defaults(run_options, typed);
    RETURN_IF(type(typed, "dataset", settings->dataset, error));
    RETURN_IF(type(typed, "data-dir", settings->data_dir, error));
    RETURN_IF(type(typed, "out", settings->out, error));
    RETURN_IF(type(typed, "weights", path, error));
    typed->value.replace = settings->replace;
    typed->value.quiet = true;
    RETURN_IF(network_file_text(path, FILE_HEAD_SAME, typed->value.model, sizeof typed->value.model,
                                &has_weights, &optimizer, error));
    if (optimizer.text[0]) { /* which has one rate there */
        RETURN_IF(type(typed, "optimizer", optimizer.text, error));
        RETURN_IF(type(typed, "schedule", "constant", error));
    }
    if (has_weights) return OK;
    return error_set(error, ERROR_FILE, "%s: found a network without weights, expected some", path);
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    const struct import_settings *settings = settings_given;
    struct typed typed;
    long updates = 0;
    if (argument_count != 1)
        return error_set(error, ERROR_USAGE, "import: found %d files, expected one to read", argument_count);
    if (!settings->out[0]) return error_set(error, ERROR_USAGE, "import: expected --out=DIR");
    RETURN_IF(type_all(&typed, settings, arguments[0], error));
    RETURN_IF(run_keep_first(&typed, &updates, error));
    printf("The network is in %s, as a run that has not begun\n", settings->out);
    if (updates > 0)
        printf("Its optimizer goes on from update %ld: %s, %s\n", updates, typed.value.optimizer,
               typed.value.schedule);
    return OK;
}

const struct command command_import = {
    .plugin = {.name = "import",
               .help = "take a network that another program trained",
               .options = rows,
               .settings_bytes = sizeof(struct import_settings)},
    .arguments = "FILE",
    .completes = "FILE",
    .run = run,
};
