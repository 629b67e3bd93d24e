/* trainer: finds the verb, reads its options from its rows, runs it, prints the one error, and exits with its
 * code. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "base/page.h"
#include "base/subnormal.h"
#include "commands/help.h"
#include "world/world.h"

enum { NAME_BYTES = 128, LAST_WORDS_S = 2 };

/* The command line, cut up. */
struct line {
    const struct command *command;
    struct option *rows;    /* owned; all that the command takes */
    void *settings;         /* [command->plugin.settings_bytes] owned */
    const char **arguments; /* [argument_count] owned; what is not an option */
    int argument_count;
};

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
    const bool known = row != NULL || find_negated(rows, name) != NULL;
    const struct option *shared = known ? NULL : option_find(line->command->shared_options, name);
    const bool negated = !known && shared == NULL;
    if (negated) shared = find_negated(line->command->shared_options, name);
    if (shared != NULL)
        return error_set(error, ERROR_USAGE, "%s: takes no --%s%s: %s", line->command->plugin.name,
                         negated ? "no-" : "", shared->name,
                         command_refusal(line->command, shared->name)->why);
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
    RETURN_IF(option_set(rows, line->settings, "--", name, value, error));
    if (row == NULL || row->typed == NULL) return OK;
    return row->typed(line->settings, (char *)line->settings + row->offset, row->bytes, error);
}

static int refuse_argument(const struct line *line, const char *word, struct error *error) {
    char meant[300];
    const bool known = command_instead(line->rows, word, meant, sizeof meant) != NULL;
    return error_set(error, ERROR_USAGE, "%s: takes no arguments, found \"%s\"%s%s%s",
                     line->command->plugin.name, word, known ? "; did you mean " : "", known ? meant : "",
                     known ? "?" : "");
}

static int parse_line(struct line *line, int count, char **words, struct error *error) {
    const struct plugin *plugin = &line->command->plugin;
    RETURN_IF(command_rows(line->command, &line->rows, error));
    RETURN_IF(memory_zeroed(&line->settings, 1, plugin->settings_bytes, "settings", error));
    RETURN_IF(memory_array(&line->arguments, count + 1, "arguments", error));
    option_defaults(line->command->shared_options, line->settings);
    option_defaults(plugin->options, line->settings);
    bool options_ended = false, used_next;
    for (int i = 0; i < count; i++) {
        const char *word = words[i], *next = i + 1 < count ? words[i + 1] : NULL;
        if (options_ended || word[0] != '-' || word[1] == '\0') {
            if (line->command->arguments == NULL) return refuse_argument(line, word, error);
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

/* What is written to a pipe or a full disk shows its failure only here. A reader that went away has all that
 * it wanted. */
static int close_output(struct error *error) {
    const bool failed = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) == 0 && !failed) return OK;
    if (errno == EPIPE) return OK;
    return error_set(error, ERROR_FILE, "standard output: not written%s%s", errno != 0 ? ": " : "",
                     errno != 0 ? strerror(errno) : "");
}

enum help { HELP_NONE, HELP_USUAL, HELP_ALL };

/* --help and --version go before all else, so that they work beside a half-typed command line, too. */
static enum help wanted_help(int count, char **words) {
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++) {
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0) return HELP_USUAL;
        if (strcmp(words[i], "--help=all") == 0) return HELP_ALL;
    }
    return HELP_NONE;
}

/* Of --help=NAME; NULL: nothing is named. */
static const char *help_topic(int count, char **words) {
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        if (strncmp(words[i], "--help=", 7) == 0 && strcmp(words[i] + 7, "all") != 0) return words[i] + 7;
    return NULL;
}

static int run_words(int count, char **words, struct error *error) {
    const bool has_verb = count > 0 && words[0][0] != '-';
    const char *verb = has_verb ? words[0] : "train";
    const enum help help = wanted_help(count, words);
    const char *topic = help_topic(count, words);
    if (topic != NULL) return help_print_about(has_verb ? command_find(verb) : NULL, topic, error);
    if (!has_verb && help != HELP_NONE) return help_print_program(help == HELP_ALL, error);
    if (count > 0 && strcmp(words[0], "--version") == 0) {
        print_version();
        return OK;
    }
    const struct command *command = command_find(verb);
    struct error ignored = {0}; /* `trainer ssp --help` */
    if (command == NULL && help != HELP_NONE && help_print_about(NULL, verb, &ignored) == OK) return OK;
    if (command == NULL) return command_unknown(verb, error);
    if (help != HELP_NONE) return help_print_command(command, help == HELP_ALL, error);
    return run_command(command, has_verb ? count - 1 : count, has_verb ? words + 1 : words, error);
}

/* A program that was started with a standard stream closed would get its number for the next file it opens,
 * and print into that: the null device takes the place. It is opened for reading only, so that results which
 * go nowhere are still found out. */
static void open_streams(void) {
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0) return;
}

/* One line; on a terminal folded between words, unless a file's name in it has blanks that must stay. */
static void print_error(const char *words) {
    static const char before[] = "trainer: ";
    const int indent = (int)sizeof before - 1;
    const struct page page = page_of_rows(stderr);
    fputs(before, stderr);
    if (strstr(words, "  ") == NULL)
        page_words(&page, indent, indent, words);
    else
        fprintf(stderr, "%s\n", words);
}

int main(int count, char **words) {
    struct error error = {0};
    open_streams();
    subnormals_flush();
    memory_heed_limit();
    int code = run_words(count > 0 ? count - 1 : 0, words + 1, &error);
    const int closed = close_output(&error);
    if (code == OK) code = closed;
    if (code != OK && error.words[0] != '\0' && world_await_room(fileno(stderr), LAST_WORDS_S))
        print_error(error.words);
    return code;
}
