/* trainer export: a trained network as a file that other programs open. */
#include <stdio.h>

#include "../base/file.h"
#include "../infer/export.h"
#include "command.h"

struct export_settings {
    char checkpoint[PATH_BYTES];
    int names;
    bool replace;
};

static const struct option rows[] = {
    OPTION_ROW(TEXT, "checkpoint", struct export_settings, checkpoint, .value = "PATH",
               .help = "folder of a run, or a .safetensors file that it wrote; must be given"),
    OPTION_ROW(
        CHOICE, "names", struct export_settings, names, .fallback = "own", .choices = "own|torch",
        .help =
            "how arrays of weights are named and laid out (.npz, .safetensors); torch: as PyTorch has them"),
    OPTION_ROW(FLAG, "replace", struct export_settings, replace, .help = "replace FILE if it is there"),
    {0},
};

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    const struct export_settings *settings = settings_given;
    if (!settings->checkpoint[0]) return command_needs_checkpoint("export", arguments, argument_count, error);
    if (argument_count != 1)
        return error_set(error, ERROR_USAGE, "export: found %d files, expected one to write", argument_count);
    RETURN_IF(
        export_write(settings->checkpoint, arguments[0], settings->names == 1, settings->replace, error));
    printf("The network is in %s\n", arguments[0]);
    return OK;
}

const struct command command_export = {
    .plugin = {.name = "export",
               .help = "write a trained network as a file for other programs",
               .options = rows,
               .settings_bytes = sizeof(struct export_settings)},
    .arguments = "FILE",
    .completes = "FILE",
    .examples = "trainer --dataset=digits --out=runs/digits\n"
                "# its suffix says what it becomes; trainer list exports\n"
                "trainer export --checkpoint=runs/digits digits.onnx\n"
                "trainer export --checkpoint=runs/digits --names=torch digits.npz\n",
    .run = run,
};
