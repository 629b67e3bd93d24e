/* trainer manual: the manual page, made from the same rows as --help; `make install` puts it where man looks.
 */
#include <stdio.h>
#include <string.h>

#include "help.h"
#include "kinds.h"

/* --- roff: a text is never taken for a command, and a hyphen can be copied --- */

static void put(const char *text) {
    for (const char *c = text; *c != '\0'; c++) {
        const bool line_begins = c == text || c[-1] == '\n';
        if (line_begins && (*c == '.' || *c == '\'')) fputs("\\&", stdout);
        if (*c == '\\')
            fputs("\\e", stdout);
        else if (*c == '-')
            fputs("\\-", stdout);
        else if (*c == '\'')
            fputs("\\(aq", stdout);
        else if (*c == '~')
            fputs("\\(ti", stdout);
        else
            putchar(*c);
    }
}

static void put_line(const char *text) {
    put(text);
    putchar('\n');
}

static void put_bold(const char *text) {
    fputs("\\fB", stdout);
    put(text);
    fputs("\\fR", stdout);
}

/* A term in bold, and under it what it means. */
static void put_item(const char *term, const char *meaning) {
    fputs(".TP\n", stdout);
    put_bold(term);
    putchar('\n');
    put_line(meaning);
}

static void put_sample(const char *lines) {
    fputs(".PP\n.RS 4\n.nf\n", stdout);
    put(lines);
    if (lines[0] != '\0' && lines[strlen(lines) - 1] != '\n') putchar('\n');
    fputs(".fi\n.RE\n", stdout);
}

/* --- rows --- */

static void put_rows(const struct option *rows, const char *prefix) {
    const char *group = NULL;
    for (const struct option *row = rows; row != NULL && row->name != NULL; row++) {
        char left[OPTION_LEFT_BYTES], help[OPTION_HELP_BYTES];
        if (option_is_absent(row)) continue;
        if (row->group != NULL && (group == NULL || strcmp(group, row->group) != 0)) {
            fputs(".PP\n", stdout);
            put_bold(row->group);
            putchar('\n');
        }
        group = row->group;
        option_words(row, prefix, true, left, help);
        put_item(left, help);
    }
}

/* Whose options it shares, or NULL. */
static const struct command *find_sharer(const struct command *command) {
    for (size_t i = 0; command->shared_options != NULL && commands[i] != NULL; i++)
        if (commands[i]->plugin.options == command->shared_options) return commands[i];
    return NULL;
}

static void put_shared(const struct command *command) {
    const struct command *sharer = find_sharer(command);
    if (sharer == NULL) return;
    fputs(".PP\nIt also takes the options of\n", stdout);
    put_bold(sharer->plugin.name);
    for (const struct refusal *refusal = command->refused; refusal && refusal->name; refusal++) {
        fputs(refusal == command->refused ? ",\nexcept " : ", ", stdout);
        fputs("\\fB\\-\\-", stdout);
        put(refusal->name);
        fputs("\\fR", stdout);
    }
    fputs(".\n", stdout);
}

/* --- sections --- */

static void put_commands(void) {
    fputs(".SH COMMANDS\n", stdout);
    for (size_t i = 0; commands[i] != NULL; i++) {
        const struct command *command = commands[i];
        fputs(".SS trainer ", stdout);
        put(command->plugin.name);
        if (command->arguments != NULL) putchar(' ');
        if (command->arguments != NULL) put(command->arguments);
        putchar('\n');
        /* A sentence begins with a capital; all of these begin with a letter of ASCII. */
        const char *help = command->plugin.help;
        printf("%c", help[0] >= 'a' && help[0] <= 'z' ? help[0] - 'a' + 'A' : help[0]);
        put(help + 1);
        fputs(".\n", stdout);
        put_rows(command->plugin.options, "--");
        put_shared(command);
        if (command->examples == NULL) continue;
        fputs(".PP\nExamples:\n", stdout);
        put_sample(command->examples);
    }
}

static void put_plugins(void) {
    fputs(".SH PLUG\\-INS\nEach is chosen by its option, as NAME:key=value,key=value.\n", stdout);
    char how[PLUGIN_HOW_BYTES];
    for (int k = 0; k < PLUGIN_KINDS; k++) {
        const struct plugin_kind *kind = plugin_kinds[k];
        fputs(".SS \\-\\-", stdout);
        put_line(plugin_how(kind, how) + strlen("--"));
        for (size_t i = 0; kind->plugins[i] != NULL; i++) {
            put_item(kind->plugins[i]->name, kind->plugins[i]->help);
            fputs(".RS\n", stdout);
            put_rows(kind->plugins[i]->options, "");
            fputs(".RE\n", stdout);
        }
    }
}

static void put_places(void) {
    fputs(".SH ENVIRONMENT\n", stdout);
    put_item("TRAINER_DATA", "where data sets are looked for after --data-dir, and where fetch puts them");
    put_item("TF_CONFIG", "the cluster and this process's place in it, as TensorFlow writes them");
    fputs(".SH FILES\n", stdout);
    put_item("~/.cache/trainer", "data sets, where neither --data-dir nor TRAINER_DATA has them");
    put_item("runs/TIME-MODEL-STRATEGY",
             "a run: steps.csv, epochs.csv, summary.json, model.safetensors and checkpoint/; --out names "
             "another folder");
}

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    (void)settings, (void)arguments, (void)argument_count, (void)error;
    printf(".TH TRAINER 1 \"\" \"trainer %s\" \"User Commands\"\n", TRAINER_VERSION);
    fputs(".SH NAME\ntrainer \\- train one neural network on many devices\n", stdout);
    fputs(".SH SYNOPSIS\n\\fBtrainer\\fR [\\fICOMMAND\\fR] [\\fB\\-\\-option\\fR=\\fIvalue\\fR]...\n",
          stdout);
    fputs(".SH DESCRIPTION\n", stdout);
    put_line(help_about_program);
    fputs("Without a command it trains.\n", stdout);
    put_commands();
    put_plugins();
    fputs(".SH EXIT STATUS\n", stdout);
    put_line(help_exit_codes);
    put_places();
    fputs(".SH EXAMPLES\n", stdout);
    put_sample(help_examples);
    return OK;
}

const struct command command_manual = {
    .plugin = {.name = "manual", .help = "write the manual page on standard output"},
    .examples = "trainer manual > trainer.1\n",
    .run = run,
};
