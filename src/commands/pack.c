/* trainer pack: a data set as one file that training maps into memory. */
#include <stdio.h>
#include <string.h>

#include "../base/file.h"
#include "../base/memory.h"
#include "../data/pack.h"
#include "../record/digits.h"
#include "../world/world.h"
#include "command.h"

struct pack_command {
    char data_dir[PATH_BYTES];
    bool replace, check;
};

static const struct option rows[] = {
    OPTION_ROW(TEXT, "data-dir", struct pack_command, data_dir, .value = "DIR",
               .help = "look for the data set's files here first, before $TRAINER_DATA and ~/.cache/trainer"),
    OPTION_ROW(FLAG, "replace", struct pack_command, replace, .fallback = "0",
               .help = "replace FILE if it is there"),
    OPTION_ROW(FLAG, "check", struct pack_command, check, .fallback = "0",
               .help = "write nothing: read all of the pack FILE, and compare it with its check sums"),
    {0},
};

static void say(const char *path, const char *before, const struct pack_made *made) {
    char train[DIGITS_BYTES], test[DIGITS_BYTES], bytes[DIGITS_BYTES];
    digits_thousands(train, made->train);
    digits_thousands(test, made->test);
    digits_thousands(bytes, (double)made->bytes);
    printf("%s: %s%s training and %s test examples, %s bytes\n", path, before, train, test, bytes);
}

static int check(struct choice *choice, const char *path, struct error *error) {
    struct dataset dataset;
    RETURN_IF(plugin_choose(choice, &dataset_kind, "pack", error));
    RETURN_IF(option_set(choice->plugin->options, choice->settings, "pack", "file", path, error));
    RETURN_IF(dataset_open(&dataset, choice, NULL, error));
    const int code = pack_check(&dataset, error);
    const struct pack_made made = {dataset.train.count, dataset.test.count, dataset.files[0].length};
    dataset_close(&dataset);
    if (code == OK) say(path, "as it was written: ", &made);
    return code;
}

static int make(struct choice *choice, const char *const *arguments, const struct pack_command *settings,
                struct error *error) {
    const char *path = arguments[1];
    struct pack_made made;
    RETURN_IF(plugin_choose(choice, &dataset_kind, arguments[0], error));
    if (strcmp(choice->plugin->name, "pack") == 0)
        return error_set(error, ERROR_USAGE, "pack: %.300s is a pack already, expected another data set",
                         arguments[0]);
    if (file_exists(path) && !settings->replace)
        return error_set(error, ERROR_FILE, "%s already exists: --replace replaces it", path);
    RETURN_IF(pack_write(path, choice, settings->data_dir[0] ? settings->data_dir : NULL, &made, error));
    say(path, "", &made);
    return OK;
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    const struct pack_command *settings = settings_given;
    struct choice *choice = NULL;
    if (settings->check && argument_count != 1)
        return error_set(error, ERROR_USAGE, "pack: found %d arguments, expected one FILE to check",
                         argument_count);
    if (!settings->check && argument_count != 2)
        return error_set(error, ERROR_USAGE, "pack: found %d argument%s, expected DATASET FILE",
                         argument_count, argument_count == 1 ? "" : "s");
    RETURN_IF(memory_array(&choice, 1, "a data set's settings", error));
    world_catch_interrupts();
    const int code =
        settings->check ? check(choice, arguments[0], error) : make(choice, arguments, settings, error);
    memory_free(choice);
    return code;
}

const struct command command_pack = {
    .plugin = {.name = "pack",
               .help = "write a data set as one file that trains at the speed of memory",
               .options = rows,
               .settings_bytes = sizeof(struct pack_command)},
    .arguments = "DATASET FILE",
    .completes = "FILE",
    .examples = "trainer pack digits digits.pack\n"
                "trainer --dataset=pack:file=digits.pack --epochs=20\n"
                "trainer pack --check digits.pack\n"
                "# your pictures: trainer pack pictures:dir=flowers,size=64x64 flowers.pack\n",
    .run = run,
};
