/* trainer keygen: makes the key that the processes of a cluster share. */
#include <stdio.h>

#include "../bridge/secret.h"
#include "command.h"

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    (void)settings;
    if (argument_count != 1)
        return error_set(error, ERROR_USAGE, "keygen: expected the name of one new file, found %d",
                         argument_count);
    RETURN_IF(secret_make(arguments[0], error));
    printf("%s: a new key, which only its owner can read. Copy it to every machine of the\n"
           "cluster, and give each process --secret-file=%s\n",
           arguments[0], arguments[0]);
    return OK;
}

const struct command command_keygen = {
    .plugin = {.name = "keygen", .help = "make the key with which the processes of a cluster encrypt"},
    .arguments = "FILE",
    .completes = "FILE",
    .run = run,
};
