/* trainer devices: what this machine has to compute with. */
#include "../device/device.h"

#include <stdio.h>

#include "command.h"

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    (void)settings;
    if (argument_count > 0)
        return error_set(error, ERROR_USAGE, "devices: unexpected \"%s\"; expected nothing", arguments[0]);
    for (int b = 0; backends[b]; b++)
        for (int label = 0; label < backends[b]->count(); label++) {
            char description[200];
            backends[b]->describe(label, description, sizeof description);
            printf("%s:%-4d %s\n", backends[b]->name, label, description);
        }
    return OK;
}

const struct command command_devices = {
    .plugin = {.name = "devices", .help = "what this machine has to compute with"},
    .run = run,
};
