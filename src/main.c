/* trainer: finds the verb, reads its options from its rows, runs it, prints the one error, and exits with its
 * code. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "commands/command.h"
#include "commands/kinds.h"

enum { NAME_BYTES = 128 };

/* The command line, cut up. */
struct line {
    const struct command *command;
    struct option *rows;    /* owned; all that the command takes */
    void *settings;         /* [command->plugin.settings_bytes] owned */
    const char **arguments; /* [argument_count] owned; what is not an option */
    int argument_count;
};

/* --- rows --- */

static const struct refusal *find_refusal(const struct command *command, const char *name) {
    for (const struct refusal *refusal = command->refused; refusal && refusal->name; refusal++)
        if (strcmp(refusal->name, name) == 0) return refusal;
    return NULL;
}

static size_t count_rows(const struct option *rows) {
    size_t count = 0;
    while (rows != NULL && rows[count].name != NULL) count++;
    return count;
}

/* All that a command takes: its own rows, then those that it shares. *rows is the caller's: memory_free. */
static int join_rows(const struct command *command, struct option **rows, struct error *error) {
    const struct option *own = command->plugin.options, *shared = command->shared_options;
    const size_t own_count = count_rows(own);
    RETURN_IF(memory_array(rows, own_count + count_rows(shared) + 1, "options", error));
    struct option *next = *rows;
    for (size_t i = 0; i < own_count; i++) *next++ = own[i];
    for (; shared != NULL && shared->name != NULL; shared++)
        if (option_find(own, shared->name) == NULL && find_refusal(command, shared->name) == NULL)
            *next++ = *shared;
    return OK;
}

/* --- help --- */

static const struct command *find_command(const char *name) {
    for (size_t i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->plugin.name, name) == 0) return commands[i];
    return NULL;
}

static int unknown_command(const char *name, struct error *error) {
    return plugin_unknown(&command_kind, name, error);
}

static int print_command_help(const struct command *command, struct error *error) {
    const char *name = command->plugin.name, *arguments = command->arguments;
    struct option *rows;
    RETURN_IF(join_rows(command, &rows, error));
    printf("trainer %s: %s\n\nusage: trainer %s [--option=value]...%s%s\n", name, command->plugin.help, name,
           arguments != NULL ? " " : "", arguments != NULL ? arguments : "");
    if (rows->name != NULL) printf(rows->group != NULL ? "\n" : "\noptions:\n");
    option_help(stdout, rows, "--");
    memory_free(rows);
    if (command->examples != NULL) printf("\nexamples:\n%s", command->examples);
    if (command->examples != NULL && command->examples[strlen(command->examples) - 1] != '\n') putchar('\n');
    return OK;
}

static void print_plugin_names(void) {
    for (int k = 0; k < PLUGIN_KINDS; k++) {
        int column = printf("  --%-10s", plugin_kinds[k]->name);
        for (size_t i = 0; plugin_kinds[k]->plugins[i] != NULL; i++) {
            const char *name = plugin_kinds[k]->plugins[i]->name;
            if (column + 1 + (int)strlen(name) > 100) column = printf("\n%14s", "") - 1;
            column += printf(" %s", name);
        }
        putchar('\n');
    }
}

static void print_program_help(void) {
    printf("trainer trains one neural network on many devices; --strategy says how they share what they "
           "learn.\n\n"
           "usage: trainer [command] [--option=value]... (without a command: train)\n\ncommands:\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        printf("  %-12s %s\n", commands[i]->plugin.name, commands[i]->plugin.help);
    printf("\ntrainer COMMAND --help shows a command's options, trainer list NAME a plug-in's "
           "settings.\n\nplug-ins:\n");
    print_plugin_names();
    printf("\nexamples:\n"
           "  trainer                                   the defaults: a small network on embedded digits\n"
           "  trainer --strategy=async-lockfree --devices=cpu:0,cpu:1\n"
           "  trainer --model=mlp --dataset=mnist --optimizer=sgd:rate=0.1 --epochs=5 --out=runs/first\n\n"
           "exit codes: 0 done, 2 usage, 3 file or format, 4 device, 5 peer lost, 6 diverged, 130 "
           "interrupted\n");
}

static void print_version(void) {
    printf("trainer %s (%s oneDNN%s, compiled by %s %s)\n", TRAINER_VERSION,
           TRAINER_ONEDNN ? "with" : "without", TRAINER_CUDA ? ", with CUDA" : "",
#ifdef __clang__
           "clang", __clang_version__
#else
           "gcc", __VERSION__
#endif
    );
}

/* `--help=NAME` and `help NAME`: a command, or whatever `list` knows. */
static int help_about(const char *name, struct error *error) {
    const struct command *command = find_command(name), *list = find_command("list");
    if (command == NULL && list != NULL) return list->run(NULL, &name, 1, error);
    if (command == NULL) return unknown_command(name, error);
    return print_command_help(command, error);
}

/* --- parsing --- */

/* `--no-progress`, for the flag `progress`. */
static const struct option *find_negated(const struct option *rows, const char *name) {
    if (strncmp(name, "no-", 3) != 0 && strncmp(name, "no_", 3) != 0) return NULL;
    const struct option *row = option_find(rows, name + 3);
    return row != NULL && row->type == OPTION_FLAG ? row : NULL;
}

/* One option, `typed` without its dashes; `next` is the word after it or NULL. *used_next: that was its
 * value. */
static int parse_option(struct line *line, const char *typed, const char *next, bool *used_next,
                        struct error *error) {
    const struct option *rows = line->rows;
    char name[NAME_BYTES];
    const size_t length = strcspn(typed, "=");
    const char *value = typed[length] == '=' ? typed + length + 1 : NULL;
    *used_next = false;
    if (length >= sizeof name) return error_set(error, ERROR_USAGE, "unknown option \"--%.60s...\"", typed);
    memcpy(name, typed, length);
    name[length] = '\0';
    const struct option *row = option_find(rows, name);
    const struct option *shared = row == NULL ? option_find(line->command->shared_options, name) : NULL;
    if (shared != NULL)
        return error_set(error, ERROR_USAGE, "%s: takes no --%s: %s", line->command->plugin.name,
                         shared->name, find_refusal(line->command, shared->name)->why);
    if (row == NULL && find_negated(rows, name) != NULL) {
        if (value != NULL)
            return error_set(error, ERROR_USAGE, "--%s: takes no value, expected --%s or --%s", typed, name,
                             name + 3);
        return option_set(rows, line->settings, "--", name + 3, "0", error);
    }
    if (row != NULL && row->type != OPTION_FLAG && value == NULL && next != NULL &&
        strncmp(next, "--", 2) != 0) {
        value = next;
        *used_next = true;
    }
    return option_set(rows, line->settings, "--", name, value, error);
}

static int parse_line(struct line *line, int count, char **words, struct error *error) {
    const struct plugin *plugin = &line->command->plugin;
    RETURN_IF(join_rows(line->command, &line->rows, error));
    RETURN_IF(memory_zeroed(&line->settings, 1, plugin->settings_bytes, "settings", error));
    RETURN_IF(memory_array(&line->arguments, count + 1, "arguments", error));
    option_defaults(line->command->shared_options, line->settings);
    option_defaults(plugin->options, line->settings);
    bool options_ended = false, used_next;
    for (int i = 0; i < count; i++) {
        const char *word = words[i], *next = i + 1 < count ? words[i + 1] : NULL;
        if (options_ended || word[0] != '-' || word[1] == '\0') {
            if (line->command->arguments == NULL)
                return error_set(error, ERROR_USAGE, "%s: takes no arguments, found \"%s\"", plugin->name,
                                 word);
            line->arguments[line->argument_count++] = word;
        } else if (strcmp(word, "--") == 0) {
            options_ended = true;
        } else if (word[1] != '-') {
            return error_set(error, ERROR_USAGE, "unknown option \"%s\"; options begin with \"--\"", word);
        } else {
            RETURN_IF(parse_option(line, word + 2, next, &used_next, error));
            if (used_next) i++;
        }
    }
    return OK;
}

static int run_command(const struct command *command, int count, char **words, struct error *error) {
    struct line line = {.command = command};
    int code = parse_line(&line, count, words, error);
    if (code == OK) code = command->run(line.settings, line.arguments, line.argument_count, error);
    memory_free(line.arguments);
    memory_free(line.settings);
    memory_free(line.rows);
    return code;
}

/* What is written to a pipe or a full disk shows its failure only here. */
static int close_output(struct error *error) {
    const bool failed = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) == 0 && !failed) return OK;
    return error_set(error, ERROR_FILE, "standard output: not written%s%s", errno != 0 ? ": " : "",
                     errno != 0 ? strerror(errno) : "");
}

/* --help, --version and `help` go before all else, so that they work beside a half-typed command line too. */
static bool wants_help(int count, char **words) {
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0) return true;
    return false;
}

static int run_words(int count, char **words, struct error *error) {
    const bool has_verb = count > 0 && words[0][0] != '-';
    const char *verb = has_verb ? words[0] : "train";
    const bool is_help = strcmp(verb, "help") == 0;
    if (is_help && count > 1) return help_about(words[1], error);
    if (count > 0 && strncmp(words[0], "--help=", 7) == 0) return help_about(words[0] + 7, error);
    if (is_help || (!has_verb && wants_help(count, words))) {
        print_program_help();
        return OK;
    }
    if (count > 0 && strcmp(words[0], "--version") == 0) {
        print_version();
        return OK;
    }
    const struct command *command = find_command(verb);
    if (command == NULL) return unknown_command(verb, error);
    if (wants_help(count, words)) return print_command_help(command, error);
    return run_command(command, has_verb ? count - 1 : count, has_verb ? words + 1 : words, error);
}

/* A program that was started with a standard stream closed would get its number for the next file it opens,
 * and print into that: the null device takes the place. It is opened for reading only, so that results which
 * go nowhere are still found out. */
static void open_streams(void) {
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0) return;
}

int main(int count, char **words) {
    struct error error = {0};
    open_streams();
    int code = run_words(count > 0 ? count - 1 : 0, words + 1, &error);
    const int closed = close_output(&error);
    if (code == OK) code = closed;
    if (code != OK && error.words[0] != '\0') fprintf(stderr, "trainer: %s\n", error.words);
    return code;
}
