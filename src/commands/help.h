/* The pages of help, and what else walks the commands and their rows: the manual, the completions, main. */
#ifndef TRAINER_COMMANDS_HELP_H
#define TRAINER_COMMANDS_HELP_H

#include "command.h"

/* Sentences that the help and the manual share. */
extern const char *const help_about_program, *const help_exit_codes, *const help_examples;

const struct command *command_find(const char *name); /* or NULL */
int command_unknown(const char *name, struct error *error);

/* What to type instead of `word` where it is the name of a plug-in, a run's folder or a file of data:
 * "--dataset=mnist", if that is one of the rows. Writes into out[bytes]; NULL: nothing is known of it. */
const char *command_instead(const struct option *rows, const char *word, char *out, size_t bytes);

/* Why a command does not take this option of those that it shares, or NULL. */
const struct refusal *command_refusal(const struct command *command, const char *name);

/* All options that a command takes: its own, then those that it shares; the caller frees *rows (memory_free),
 * which end with {0}. */
int command_rows(const struct command *command, struct option **rows, struct error *error);

/* On standard output. `all`: also the options that few need. */
int help_print_program(bool all, struct error *error);
int help_print_command(const struct command *command, bool all, struct error *error);

/* `--help=NAME` and `help NAME`: a command, "all", whatever `list` knows, or an option. of: whose options
 * come first; NULL: nobody's. */
int help_print_about(const struct command *of, const char *name, struct error *error);

#endif
