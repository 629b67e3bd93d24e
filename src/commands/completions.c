/* trainer completions: a script that teaches a shell the commands, options and values, made from the same
 * rows as --help; `make install` puts it where the shell looks.
 *
 * Each script has the words in tables. What a value can be is the same in all three: the row's choices, the
 * names of its kind of plug-ins, folders (DIR) or files (FILE, PATH). */
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../data/sources.h"
#include "../graph/model.h"
#include "../graph/network_file.h"
#include "help.h"
#include "kinds.h"

enum { WORDS_BYTES = 2000 };

/* --- what can be typed --- */

/* The kind of plug-ins that an option takes by name: --strategy, and --strategies of bench. */
static const struct plugin_kind *kind_of(const struct option *row) {
    for (int k = 0; k < PLUGIN_KINDS; k++)
        if (strcmp(row->name, plugin_kinds[k]->name) == 0 || strcmp(row->name, plugin_kinds[k]->folder) == 0)
            return plugin_kinds[k];
    return NULL;
}

static void add_names(struct text *text, const struct plugin_kind *kind) {
    for (size_t i = 0; kind->plugins[i] != NULL; i++) text_item(text, " ", "%s", kind->plugins[i]->name);
}

static void add_choices(struct text *text, const char *choices) {
    while (*choices != '\0') {
        const size_t length = strcspn(choices, "|");
        text_item(text, " ", "%.*s", (int)length, choices);
        choices += length + (choices[length] == '|');
    }
}

/* The values of a row, with blanks between them, where they are words; else "". */
static const char *value_words(const struct option *row, char out[WORDS_BYTES]) {
    struct text text = text_into(out, WORDS_BYTES);
    char choices[WORDS_BYTES];
    if (kind_of(row) != NULL)
        add_names(&text, kind_of(row));
    else
        add_choices(&text, option_choices(row, choices, sizeof choices));
    if (kind_of(row) == &model_kind) add_names(&text, &reader_kind);
    return out;
}

static bool is_folder(const char *value) {
    return value != NULL && strcmp(value, "DIR") == 0;
}

static bool is_file(const char *value) {
    return value != NULL && (strcmp(value, "FILE") == 0 || strcmp(value, "PATH") == 0);
}

/* The arguments of a command, where they are words; else "". */
static const char *argument_words(const struct command *command, char out[WORDS_BYTES]) {
    struct text text = text_into(out, WORDS_BYTES);
    const char *completes = command->completes != NULL ? command->completes : "";
    if (strcmp(completes, "COMMAND") == 0)
        add_names(&text, &command_kind);
    else if (strcmp(completes, "DATASET") == 0)
        for (size_t i = 0; sources[i].dataset != NULL; i++) text_item(&text, " ", "%s", sources[i].dataset);
    else if (!is_file(completes) && strcmp(completes, "PLUGIN") != 0)
        add_choices(&text, completes);
    if (strcmp(completes, "PLUGIN") == 0 || strcmp(completes, "COMMAND") == 0)
        for (int k = 0; k < PLUGIN_KINDS; k++) add_names(&text, plugin_kinds[k]);
    return out;
}

/* `--batch=`, `--quiet`: how an option is typed, up to its value. A flag that is on is typed to switch it
 * off. */
static const char *typed_as(const struct option *row, char out[OPTION_LEFT_BYTES]) {
    const bool is_on = row->fallback != NULL && strcmp(row->fallback, "1") == 0;
    if (row->type == OPTION_FLAG)
        snprintf(out, OPTION_LEFT_BYTES, "--%s%s", is_on ? "no-" : "", row->name);
    else
        snprintf(out, OPTION_LEFT_BYTES, "--%s=", row->name);
    return out;
}

/* A text inside single quotes; `escaped` characters get a backslash, too. */
static void put_quoted(const char *text, const char *escaped) {
    for (const char *c = text; *c != '\0'; c++) {
        if (strchr(escaped, *c) != NULL) putchar('\\');
        fputs(*c == '\'' ? "'\\''" : (const char[]){*c, '\0'}, stdout);
    }
}

/* Calls `each` for every option of every command that this build has. */
static int each_option(void (*each)(const struct command *command, const struct option *row),
                       const struct command *command, struct error *error) {
    struct option *rows;
    RETURN_IF(command_rows(command, &rows, error));
    for (const struct option *row = rows; row->name != NULL; row++)
        if (!option_is_absent(row)) each(command, row);
    memory_free(rows);
    return OK;
}

/* --- bash --- */

static void bash_option(const struct command *command, const struct option *row) {
    char typed[OPTION_LEFT_BYTES];
    (void)command;
    printf(" %s", typed_as(row, typed));
}

static void bash_value(const struct command *command, const struct option *row) {
    char words[WORDS_BYTES];
    value_words(row, words);
    if (words[0] != '\0')
        printf("    %s:%s) words='%s' ;;\n", command->plugin.name, row->name, words);
    else if (is_folder(row->value) || is_file(row->value))
        printf("    %s:%s) kind=%s ;;\n", command->plugin.name, row->name,
               is_folder(row->value) ? "folder" : "file");
}

static int bash_command(const struct command *command, struct error *error) {
    char words[WORDS_BYTES];
    printf("    %s) options='--help --help=all", command->plugin.name);
    RETURN_IF(each_option(bash_option, command, error));
    printf("' arguments='%s'", argument_words(command, words));
    puts(is_file(command->completes) ? " files=1 ;;" : " ;;");
    return OK;
}

/* The settings behind a plug-in's colon, and the choices of each. */
static void bash_settings(const struct plugin_kind *kind, const struct plugin *plugin) {
    char words[WORDS_BYTES];
    const struct option *rows = plugin->options;
    const char *option = kind == &reader_kind ? model_kind.name : kind->name;
    if (rows == NULL || rows->name == NULL) return;
    printf("    %s:%s) words='", option, plugin->name);
    for (const struct option *row = rows; row->name != NULL; row++)
        printf("%s%s=", row == rows ? "" : " ", row->name);
    puts("' ;;");
    for (const struct option *row = rows; row->name != NULL; row++) {
        value_words(row, words);
        if (row->type == OPTION_FLAG) snprintf(words, sizeof words, "0 1");
        if (words[0] != '\0') printf("    %s:%s:%s) words='%s' ;;\n", option, plugin->name, row->name, words);
    }
}

/* What bash calls: the tables are in _trainer_words. bash cuts a line into words at = and :, too; they are
 * put together again, and of what is proposed the part that bash has already is taken off. */
static const char bash_function[] =
    "_trainer() {\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} word=${COMP_WORDS[COMP_CWORD]} before= i=$COMP_CWORD\n"
    "    local command=train head= typed= kind= words= options= arguments= files= have reply\n"
    "    while ((i > 1)) && [[ ${COMP_WORDS[i]} == [=:] || ${COMP_WORDS[i - 1]} == [=:] ]]; do\n"
    "        i=$((i - 1))\n"
    "        word=${COMP_WORDS[i]}$word\n"
    "    done\n"
    "    ((i > 1)) && before=${COMP_WORDS[i - 1]}\n"
    "    have=${word%\"$current\"}\n"
    "    [[ $current == [=:] ]] && have=$word\n"
    "    ((i > 1)) && [[ ${COMP_WORDS[1]} != -* ]] && command=${COMP_WORDS[1]}\n"
    "    _trainer_command \"$command\"\n"
    "    typed=$word\n"
    "    if [[ $word == --*=* ]]; then\n"
    "        _trainer_value \"${word%%=*}\" \"${word#*=}\"\n"
    "    elif [[ $word == -* ]]; then\n"
    "        words=$options\n"
    "    elif [[ $before == --* && \" $options \" == *\" $before= \"* ]]; then\n"
    "        _trainer_value \"$before\" \"$word\"\n"
    "        head=${head#\"$before=\"}\n"
    "    elif ((i == 1)); then\n"
    "        words=$commands\n"
    "    else\n"
    "        words=$arguments kind=${files:+file}\n"
    "    fi\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r reply; do\n"
    "        reply=$head$reply\n"
    "        COMPREPLY+=(\"${reply#\"$have\"}\")\n"
    "    done < <(case $kind in\n"
    "        folder) compgen -d -- \"$typed\" ;;\n"
    "        file) compgen -f -- \"$typed\" ;;\n"
    "        *) compgen -W \"$words\" -- \"$typed\" ;;\n"
    "        esac)\n"
    "    [[ -n $kind ]] && compopt -o filenames 2>/dev/null\n"
    "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
    "    return 0\n"
    "}\n"
    "\n"
    "# --option, and what is typed of its value: of a plug-in that may be one of its settings.\n"
    "_trainer_value() {\n"
    "    local option=${1#--} value=$2 plugin setting\n"
    "    head=$1= typed=$value\n"
    "    if [[ $value == *:* ]]; then\n"
    "        plugin=${value%%:*} setting=${value##*[:,]}\n"
    "        head=$1=${value%\"$setting\"} typed=$setting\n"
    "        if [[ $setting == *=* ]]; then\n"
    "            head=$head${setting%%=*}= typed=${setting#*=}\n"
    "            plugin=$plugin:${setting%%=*}\n"
    "        fi\n"
    "        _trainer_words \"$option:$plugin\"\n"
    "    else\n"
    "        _trainer_words \"$command:$option\"\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -F _trainer trainer\n";

static int write_bash(struct error *error) {
    char words[WORDS_BYTES];
    struct text text = text_into(words, sizeof words);
    add_names(&text, &command_kind);
    puts("# bash completion for trainer, written by: trainer completions bash");
    puts("_trainer_command() {\n    case $1 in");
    for (size_t i = 0; commands[i] != NULL; i++) RETURN_IF(bash_command(commands[i], error));
    printf("    esac\n    commands='%s'\n}\n\n_trainer_words() {\n    case $1 in\n", words);
    for (size_t i = 0; commands[i] != NULL; i++) RETURN_IF(each_option(bash_value, commands[i], error));
    for (int k = 0; k < PLUGIN_KINDS; k++)
        for (size_t i = 0; plugin_kinds[k]->plugins[i] != NULL; i++)
            bash_settings(plugin_kinds[k], plugin_kinds[k]->plugins[i]);
    printf("    esac\n}\n\n%s", bash_function);
    return OK;
}

/* --- zsh: _arguments knows how options are typed --- */

static void zsh_option(const struct command *command, const struct option *row) {
    char typed[OPTION_LEFT_BYTES], words[WORDS_BYTES];
    (void)command;
    value_words(row, words);
    printf("        '%s%s[", typed_as(row, typed), row->type == OPTION_FLAG ? "" : "-");
    put_quoted(row->help, "[]\\");
    fputs("]", stdout);
    if (row->type != OPTION_FLAG) printf(":%s:", row->value != NULL ? row->value : row->name);
    if (words[0] != '\0') printf("(%s)", words);
    if (is_folder(row->value)) fputs("_files -/", stdout);
    if (is_file(row->value)) fputs("_files", stdout);
    puts("'");
}

static int zsh_command(const struct command *command, struct error *error) {
    char words[WORDS_BYTES];
    printf("    %s)\n        options=(\n", command->plugin.name);
    RETURN_IF(each_option(zsh_option, command, error));
    argument_words(command, words);
    if (is_file(command->completes)) puts("        '*:file:_files'");
    if (words[0] != '\0') printf("        '*:argument:(%s)'\n", words);
    puts("        )\n        ;;");
    return OK;
}

static int write_zsh(struct error *error) {
    puts("#compdef trainer\n# zsh completion for trainer, written by: trainer completions zsh\n"
         "_trainer() {\n    local command=train\n    local -a commands options\n    commands=(");
    for (size_t i = 0; commands[i] != NULL; i++) {
        printf("        '%s:", commands[i]->plugin.name);
        put_quoted(commands[i]->plugin.help, ":\\");
        puts("'");
    }
    puts("    )\n    if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
         "        _describe -t commands command commands\n        return\n    fi\n"
         "    if [[ $words[2] != -* ]]; then\n        command=$words[2]\n        shift words\n"
         "        ((CURRENT--))\n    fi\n    case $command in");
    for (size_t i = 0; commands[i] != NULL; i++) RETURN_IF(zsh_command(commands[i], error));
    puts("    esac\n    _arguments -S '--help[show help]' $options\n}\n\n_trainer \"$@\"");
    return OK;
}

/* --- fish --- */

static void fish_option(const struct command *command, const struct option *row) {
    char typed[OPTION_LEFT_BYTES], words[WORDS_BYTES];
    value_words(row, words);
    typed_as(row, typed);
    printf("complete -c trainer -n '__trainer_is %s' -l %.*s", command->plugin.name,
           (int)strcspn(typed + 2, "="), typed + 2);
    if (words[0] != '\0')
        printf(" -x -a '%s'", words);
    else if (is_folder(row->value))
        fputs(" -x -a '(__fish_complete_directories)'", stdout);
    else if (is_file(row->value))
        fputs(" -r -F", stdout);
    else if (row->type != OPTION_FLAG)
        fputs(" -x", stdout);
    fputs(" -d '", stdout);
    for (const char *c = row->help; *c != '\0'; c++) printf(*c == '\'' || *c == '\\' ? "\\%c" : "%c", *c);
    puts("'");
}

static int fish_command(const struct command *command, struct error *error) {
    char words[WORDS_BYTES];
    argument_words(command, words);
    RETURN_IF(each_option(fish_option, command, error));
    if (is_file(command->completes))
        printf("complete -c trainer -n '__trainer_is %s' -F\n", command->plugin.name);
    if (words[0] != '\0')
        printf("complete -c trainer -n '__trainer_is %s; and __trainer_has_command' -a '%s'\n",
               command->plugin.name, words);
    return OK;
}

static int write_fish(struct error *error) {
    puts("# fish completion for trainer, written by: trainer completions fish\n"
         "function __trainer_has_command\n"
         "    set -l words (commandline -opc)\n"
         "    set -q words[2]; and not string match -q -- '-*' $words[2]\n"
         "end\n"
         "function __trainer_is --argument-names name\n"
         "    set -l words (commandline -opc)\n"
         "    set -l command train\n"
         "    __trainer_has_command; and set command $words[2]\n"
         "    test $command = $name\n"
         "end\n"
         "complete -c trainer -f\n"
         "complete -c trainer -l help -d 'show help'");
    for (size_t i = 0; commands[i] != NULL; i++)
        printf("complete -c trainer -n 'test (count (commandline -opc)) -eq 1' -a %s -d '%s'\n",
               commands[i]->plugin.name, commands[i]->plugin.help);
    for (size_t i = 0; commands[i] != NULL; i++) RETURN_IF(fish_command(commands[i], error));
    return OK;
}

/* --- the command --- */

static const struct {
    const char *name;
    int (*write)(struct error *error);
} shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    (void)settings;
    if (argument_count != 1)
        return error_set(error, ERROR_USAGE, "completions: expected the name of a shell: bash, zsh or fish");
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(arguments[0], shells[i].name) == 0) return shells[i].write(error);
    return error_set(error, ERROR_USAGE, "completions: \"%s\": unknown shell, expected bash, zsh or fish",
                     arguments[0]);
}

const struct command command_completions = {
    .plugin = {.name = "completions", .help = "write what bash, zsh or fish needs to complete a line"},
    .arguments = "bash|zsh|fish",
    .examples = "# for this shell only; make install puts them in their places\n"
                "trainer completions bash > completions && . ./completions\n",
    .completes = "bash|zsh|fish",
    .run = run,
};
