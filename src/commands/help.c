/* trainer help: what the program can do, and what a command or a plug-in takes; also printed for --help. */
#include "help.h"

#include <stdio.h>
#include <string.h>

#include "../base/file.h"
#include "../base/memory.h"
#include "../graph/model.h"
#include "../graph/network_file.h"
#include "kinds.h"

/* Of plugin_kinds the first so many are chosen by an option of their name. */
enum { COMMANDS_INDENT = 15, PLUGINS_INDENT = 15, KINDS_OF_OPTIONS = 5 };

const char *const help_about_program =
    "trainer trains one neural network on many devices. --strategy says how they share what they learn.";
const char *const help_exit_codes = "The exit code is 0 when all went well, 2 for a wrong command line, 3 "
                                    "for a file or folder that is missing, wrong or in use, 4 for a "
                                    "device, worker or port that is missing, in use or fails, 5 for a "
                                    "worker or server that gave no sign of life or was lost over the "
                                    "network, 6 for training that diverged, and 130 for an interrupt.";
const char *const help_examples = "# a small network on handwritten digits; both come with the program\n"
                                  "trainer\n"
                                  "# two devices that do not wait for each other\n"
                                  "trainer --strategy=async-lockfree --devices=cpu:0,cpu:1\n"
                                  "# the same training with two strategies, side by side\n"
                                  "trainer bench --strategies=sync,async-lockfree --epochs=5\n"
                                  "# train, then test the network that was saved\n"
                                  "trainer --dataset=iris --optimizer=adam:rate=0.02 --out=runs/iris\n"
                                  "trainer evaluate --checkpoint=runs/iris\n";

/* --- commands and their rows --- */

const struct command *command_find(const char *name) {
    for (size_t i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->plugin.name, name) == 0) return commands[i];
    return NULL;
}

static bool has_file(const char *folder, const char *name) {
    char path[PATH_BYTES];
    struct error ignored = {0};
    return file_join(path, folder, name, &ignored) == OK && file_exists(path);
}

bool command_is_checkpoint(const char *path) {
    const size_t bytes = strlen(path), suffix = strlen(".safetensors");
    return has_file(path, "checkpoint/state.safetensors") || has_file(path, "ensemble.csv") ||
           (bytes > suffix && strcmp(path + bytes - suffix, ".safetensors") == 0 && file_exists(path));
}

int command_needs_checkpoint(const char *command, const char *const *arguments, int argument_count,
                             struct error *error) {
    const bool is_first = argument_count > 0 && command_is_checkpoint(arguments[0]);
    return error_set(error, ERROR_USAGE, "%s: expected --checkpoint=DIR%s%.300s%s", command,
                     is_first ? "; did you mean --checkpoint=" : "", is_first ? arguments[0] : "",
                     is_first ? "?" : "");
}

const char *command_instead(const struct option *rows, const char *word, char *out, size_t bytes) {
    char name[64];
    const char *saved = option_find(rows, "checkpoint") != NULL ? "checkpoint" : "resume";
    out[0] = '\0';
    for (int k = 0; k < KINDS_OF_OPTIONS && out[0] == '\0'; k++)
        if (plugin_named(plugin_kinds[k], word) != NULL)
            snprintf(out, bytes, "--%s=%.200s", plugin_kinds[k]->name, word);
    if (out[0] == '\0' && command_is_checkpoint(word)) snprintf(out, bytes, "--%s=%.200s", saved, word);
    if (out[0] == '\0' && file_exists(word) && !file_is_folder(word) &&
        !habit_instead("dataset", word, NULL, out, bytes) && !habit_instead("model", word, NULL, out, bytes))
        out[0] = '\0';
    if (out[0] == '\0') return NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(out + 2, "="), out + 2);
    return option_find(rows, name) != NULL ? out : NULL;
}

int command_unknown(const char *name, struct error *error) {
    char meant[300];
    const struct command *train = command_find("train");
    if (train != NULL && command_instead(train->plugin.options, name, meant, sizeof meant) != NULL)
        return error_set(error, ERROR_USAGE, "command \"%s\": unknown; did you mean %s?", name, meant);
    return plugin_unknown(&command_kind, name, error);
}

const struct refusal *command_refusal(const struct command *command, const char *name) {
    for (const struct refusal *refusal = command->refused; refusal && refusal->name; refusal++)
        if (strcmp(refusal->name, name) == 0) return refusal;
    return NULL;
}

static size_t count_rows(const struct option *rows) {
    size_t count = 0;
    while (rows != NULL && rows[count].name != NULL) count++;
    return count;
}

int command_rows(const struct command *command, struct option **rows, struct error *error) {
    const struct option *own = command->plugin.options, *shared = command->shared_options;
    const size_t own_count = count_rows(own);
    RETURN_IF(memory_array(rows, own_count + count_rows(shared) + 1, "options", error));
    struct option *next = *rows;
    for (size_t i = 0; i < own_count; i++) *next++ = own[i];
    for (; shared != NULL && shared->name != NULL; shared++)
        if (option_find(own, shared->name) == NULL && command_refusal(command, shared->name) == NULL)
            *next++ = *shared;
    return OK;
}

/* --- pages --- */

static void print_examples(const struct page *page, const char *examples) {
    fprintf(page->file, "\nexamples:\n");
    page_commands(page, examples);
}

/* Its options, and how to see those that were left out. */
static int print_options(const struct page *page, const struct command *command, bool all,
                         struct error *error) {
    struct option *rows;
    char words[120];
    RETURN_IF(command_rows(command, &rows, error));
    if (rows->name != NULL) fprintf(page->file, rows->group != NULL ? "\n" : "\noptions:\n");
    const int left_out = option_help(page, rows, "--", all);
    memory_free(rows);
    if (left_out == 0) return OK;
    snprintf(words, sizeof words, "trainer %s --help=all shows %d more options, and the ranges of all.",
             command->plugin.name, left_out);
    fputc('\n', page->file);
    page_words(page, 0, 0, words);
    return OK;
}

int help_print_command(const struct command *command, bool all, struct error *error) {
    const char *name = command->plugin.name, *arguments = command->arguments;
    const struct page page = page_on(stdout);
    char words[400];
    snprintf(words, sizeof words, "trainer %s: %s", name, command->plugin.help);
    page_words(&page, 0, 2, words);
    const bool has_options = command->plugin.options != NULL || command->shared_options != NULL;
    printf("\nusage: trainer %s%s%s%s\n", name, has_options ? " [--option=value]..." : "",
           arguments != NULL ? " " : "", arguments != NULL ? arguments : "");
    RETURN_IF(print_options(&page, command, all, error));
    if (command->examples != NULL) print_examples(&page, command->examples);
    return OK;
}

static void print_commands(const struct page *page) {
    char left[64];
    printf("\ncommands:\n");
    for (size_t i = 0; commands[i] != NULL; i++) {
        snprintf(left, sizeof left, "  %s", commands[i]->plugin.name);
        page_row(page, left, COMMANDS_INDENT, commands[i]->plugin.help);
    }
}

static void add_names(const struct plugin_kind *kind, const char *end, struct text *text) {
    for (size_t i = 0; kind->plugins[i] != NULL; i++)
        text_item(text, " ", "%s%s", kind->plugins[i]->name, end);
}

/* Readers are models, too. */
static void print_plugins(const struct page *page) {
    char left[PLUGIN_HOW_BYTES + 2], names[1000], how[PLUGIN_HOW_BYTES];
    printf("\nplug-ins:\n");
    for (int k = 0; k < PLUGIN_KINDS; k++) {
        struct text text = text_into(names, sizeof names);
        if (plugin_kinds[k] == &reader_kind) continue;
        add_names(plugin_kinds[k], "", &text);
        if (plugin_kinds[k] == &model_kind) add_names(&reader_kind, ":file=FILE", &text);
        snprintf(left, sizeof left, "  %s", plugin_how(plugin_kinds[k], how));
        page_row(page, left, PLUGINS_INDENT, names);
    }
}

int help_print_program(bool all, struct error *error) {
    const struct page page = page_on(stdout);
    const struct command *train = command_find("train");
    page_words(&page, 0, 0, help_about_program);
    printf("\nusage: trainer [COMMAND] [--option=value]...\n");
    print_commands(&page);
    print_plugins(&page);
    fputc('\n', page.file);
    page_words(
        &page, 0, 0,
        "Without a command it trains. trainer COMMAND --help shows the options of a command, trainer list "
        "NAME the settings of a plug-in.");
    if (all && train != NULL) RETURN_IF(print_options(&page, train, all, error));
    print_examples(&page, help_examples);
    fputc('\n', page.file);
    page_words(&page, 0, 0, help_exit_codes);
    return OK;
}

/* The nearest of what help explains: commands, kinds of plug-ins, plug-ins. */
static int unknown_name(const char *name, struct error *error) {
    enum { NAMES_MOST = 255 };
    const char *names[NAMES_MOST + 1] = {0};
    char instead[200];
    int count = 0;
    for (size_t i = 0; commands[i] != NULL && count < NAMES_MOST; i++)
        names[count++] = commands[i]->plugin.name;
    for (int k = 0; k < PLUGIN_KINDS; k++) {
        if (count < NAMES_MOST) names[count++] = plugin_kinds[k]->folder;
        for (size_t i = 0; plugin_kinds[k]->plugins[i] != NULL && count < NAMES_MOST; i++)
            names[count++] = plugin_kinds[k]->plugins[i]->name;
    }
    const char *nearest = option_nearest(name, names);
    if (nearest == NULL) nearest = habit_instead("command", name, NULL, instead, sizeof instead);
    return error_set(error, ERROR_USAGE,
                     "\"%.100s\": no command, plug-in or option; %s%s%strainer help lists the commands, "
                     "trainer list the plug-ins, trainer help train the options%s",
                     name, nearest ? "did you mean \"" : "", nearest ? nearest : "", nearest ? "\"? (" : "",
                     nearest ? ")" : "");
}

static const struct option *option_of(const struct command *command, const char *name) {
    const struct option *row = command ? option_find(command->plugin.options, name) : NULL;
    if (row == NULL && command) row = option_find(command->shared_options, name);
    return row == NULL || option_is_absent(row) ? NULL : row;
}

/* An option alone: of this command, of train, which has most of them, or of the first that has one. */
static bool print_option(const struct command *command, const char *name) {
    const struct option *row = option_of(command, name);
    const struct page page = page_on(stdout);
    if (row == NULL) row = option_of(command_find("train"), name);
    for (size_t i = 0; row == NULL && commands[i] != NULL; i++) {
        row = option_of(commands[i], name);
        if (row != NULL) printf("trainer %s:\n", commands[i]->plugin.name);
    }
    if (row == NULL) return false;
    struct option rows[] = {*row, {0}};
    rows[0].group = NULL;
    option_help(&page, rows, "--", true);
    return true;
}

int help_print_about(const struct command *of, const char *name, struct error *error) {
    const struct command *command = command_find(name), *list = command_find("list");
    if (strcmp(name, "all") == 0) return help_print_program(true, error);
    struct error why = {0};
    if (of != NULL && print_option(of, name)) return OK;
    if (command == NULL && list != NULL && list->run(NULL, &name, 1, &why) == OK) return OK;
    if (command == NULL && print_option(NULL, name)) return OK;
    if (command == NULL) return unknown_name(name, error);
    return help_print_command(command, false, error);
}

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    (void)settings;
    if (argument_count == 0) return help_print_program(false, error);
    for (int i = 0; i < argument_count; i++) {
        if (i > 0) printf("\n");
        RETURN_IF(help_print_about(NULL, arguments[i], error));
    }
    return OK;
}

const struct command command_help = {
    .plugin = {.name = "help", .help = "explain a command, a plug-in or an option"},
    .arguments = "[COMMAND|NAME]...",
    .examples = "trainer help train\ntrainer help async-lockfree\ntrainer help simulate\n",
    .completes = "COMMAND",
    .run = run,
};
