/* trainer devices: what this machine has to compute with. */
#include "../base/page.h"
#include "../device/device.h"

#include <stdio.h>

#include "command.h"

enum { INDENT = 9 };

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    (void)settings, (void)arguments, (void)argument_count, (void)error;
    const struct page page = page_of_rows(stdout);
    for (int b = 0; backends[b]; b++) {
        const struct backend *backend = backends[b];
        const int count = backend->count();
        for (int label = 0; label < count; label++) {
            char description[400], device[40];
            backend->describe(label, description, sizeof description);
            snprintf(device, sizeof device, "%s:%d", backend->name, label);
            page_row(&page, device, INDENT, description);
        }
        if (count == 0 && backend->missing) printf("%s: none (%s)\n", backend->name, backend->missing());
    }
    return OK;
}

const struct command command_devices = {
    .plugin = {.name = "devices", .help = "show what this machine can compute on"},
    .run = run,
};
