/* Verbs: a file a verb; `trainer train`, `trainer list`, ... */
#ifndef TRAINER_COMMANDS_COMMAND_H
#define TRAINER_COMMANDS_COMMAND_H

#include "../base/option.h"

struct command {
    struct plugin plugin;  /* name, one line of help, rows of its options */
    const char *arguments; /* "IMAGE|CSV...", for --help; NULL: takes none */
    const char *examples;  /* a few lines for --help; NULL: none */
    /* settings: filled from the rows. arguments[argument_count]: what is not an option. */
    int (*run)(const void *settings, const char *const *arguments, int argument_count, struct error *error);
};

extern const struct command *const commands[]; /* generated, ended by NULL */

#endif
