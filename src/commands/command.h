/* Verbs: one file per verb; `trainer train`, `trainer list`, ... */
#ifndef TRAINER_COMMANDS_COMMAND_H
#define TRAINER_COMMANDS_COMMAND_H

#include "../base/option.h"

/* An option that a command shares but does not take, and what to say to who types it. */
struct refusal {
    const char *name, *why;
};

struct command {
    struct plugin plugin; /* name, one line of help, rows of its options */
    /* Rows that fill a struct with which the command's settings begin, so that it takes all options of
     * another command; a row of its own goes before one of the same name. NULL: none. */
    const struct option *shared_options;
    const struct refusal *refused; /* those of them that it does not take, ended by {0}; NULL: takes all */
    const char *arguments;         /* "IMAGE|CSV...", for --help; NULL: takes none */
    const char *examples;          /* for --help: commands, and comments (# ...), a line each; NULL: none */
    /* What a shell completes its arguments to: "FILE", "COMMAND", "PLUGIN", or the words, "bash|zsh"; NULL:
     * nothing. */
    const char *completes;
    /* settings: filled from the rows. arguments[argument_count]: what is not an option. */
    int (*run)(const void *settings, const char *const *arguments, int argument_count, struct error *error);
};

/* Whether a path is what --checkpoint takes: the folder of a run or an ensemble, or a .safetensors file. */
bool command_is_checkpoint(const char *path);

/* The error of a command without --checkpoint, also where its first argument should have been that one. */
int command_needs_checkpoint(const char *command, const char *const *arguments, int argument_count,
                             struct error *error);

extern const struct command *const commands[]; /* generated, ended by NULL */
extern const struct plugin_kind command_kind;  /* generated: the same */

#endif
