/* What was run, setting by setting, and the command that runs it again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/text.h"
#include "page.h"

/* --- settings --- */

static const struct {
    const char *name, *words;
} words_of[] = {{"on-loss", "when a worker is lost"}, {"homes", "weights are kept on"},
                {"early-stop", "early stop, epochs"}, {"threads", "threads per device"},
                {"batch", "batch per worker"},        {"faults", "faults put in"}};

static const char *title_of(const char *name) {
    for (size_t i = 0; i < sizeof words_of / sizeof *words_of; i++)
        if (strcmp(words_of[i].name, name) == 0) return words_of[i].words;
    return name;
}

void write_settings(struct html *html, const struct facts *facts) {
    html_put(html, "<dl>\n");
    for (int i = 0; i < facts->setting_count; i++) {
        const struct setting *setting = &facts->settings[i];
        html_put(html, "<div>");
        html_element(html, "dt", "%s", title_of(setting->name));
        html_element(html, "dd", "%s", setting->value[0] ? setting->value : "none");
        html_put(html, "</div>\n");
    }
    html_put(html, "</dl>\n");
}

/* --- the command --- */

/* In single quotes where a shell would take it apart. */
static void add_word(struct text *out, const char *word) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
    if (word[strspn(word, plain)] == '\0') {
        text_add(out, "%s", word);
        return;
    }
    text_add(out, "'");
    for (; *word; word++) {
        if (*word == '\'')
            text_add(out, "'\\''");
        else
            text_add_bytes(out, word, 1);
    }
    text_add(out, "'");
}

static void add_option(struct text *out, const char *name, const char *value) {
    text_add(out, " --%s=", name);
    add_word(out, value);
}

static bool is_same(const char *a, const char *b) {
    char *a_end, *b_end;
    if (strcmp(a, b) == 0) return true;
    const double a_value = strtod(a, &a_end), b_value = strtod(b, &b_end);
    return *a && *b && !*a_end && !*b_end && a_value == b_value;
}

/* What the program takes where only the model is given; its own defaults where it has no such model. */
static int usual_config(const char *model, struct config *usual, struct error *error) {
    struct typed *typed = NULL;
    struct error unknown = {0};
    option_defaults(config_options, usual);
    if (!model) return OK;
    RETURN_IF(memory_array(&typed, 1, "the usual settings", error));
    option_defaults(run_options, typed);
    if (option_set(run_options, typed, "--", "model", model, &unknown) != OK ||
        config_begin(usual, typed, &unknown) != OK)
        option_defaults(config_options, usual);
    memory_free(typed);
    return OK;
}

/* Without a checkpoint only the epochs that were gone through are known. */
static const char *value_of(const struct facts *facts, const char *name, char number[NUMBER_BYTES]) {
    const char *value = facts_setting(facts, name);
    if (value || strcmp(name, "epochs") != 0 || !(facts->summary.epochs > 0.0)) return value;
    snprintf(number, NUMBER_BYTES, "%.0f", ceil(facts->summary.epochs));
    return number;
}

static void add_rows(struct text *out, const struct facts *facts, const struct config *usual) {
    for (const struct option *row = config_options; row->name; row++) {
        char expected[CONFIG_VALUE_BYTES], number[NUMBER_BYTES];
        const char *value = value_of(facts, row->name, number);
        if (!value || !(row->flags & (OPTION_SAVED | OPTION_SHOWN))) continue;
        option_text(row, usual, expected, sizeof expected);
        const bool is_model = strcmp(row->name, "model") == 0;
        if (value[0] && (is_model || !is_same(value, expected))) add_option(out, row->name, value);
    }
}

/* They are written down as they were typed, with blanks between them. */
static void add_faults(struct text *out, const char *faults) {
    char word[PATH_BYTES];
    while (faults && *faults) {
        const size_t length = strcspn(faults, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, faults);
        if (length > 0) text_add(out, " ");
        if (length > 0) add_word(out, word);
        faults += length + (faults[length] == ' ');
    }
}

/* Those of summary.json are as they turned out. */
static void add_machine(struct text *out, const struct facts *facts) {
    static const char *const names[] = {"devices", "threads", "shards"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = facts_setting(facts, names[i]);
        if (value && value[0] && strcmp(value, "0") != 0) add_option(out, names[i], value);
    }
    add_faults(out, facts->summary.faults);
}

/* Each option is kept in one line where it fits. */
static void write_words(struct html *html, const char *command) {
    html_put(html, "<pre><span>");
    while (*command) {
        const char *next = strstr(command + 1, " --");
        const size_t length = next ? (size_t)(next - command) : strlen(command);
        html_say(html, "%.*s", (int)length, command);
        html_put(html, next ? "</span> <span>" : "</span>");
        command += length + (next ? 1 : 0);
    }
    html_put(html, "</pre>\n");
}

int write_command(struct html *html, const struct facts *facts, struct error *error) {
    char command[COMMAND_BYTES];
    struct text text = text_into(command, sizeof command);
    struct config *usual = NULL;
    RETURN_IF(memory_array(&usual, 1, "the usual settings", error));
    const int code = usual_config(facts_setting(facts, "model"), usual, error);
    if (code == OK) {
        text_add(&text, "trainer");
        add_rows(&text, facts, usual);
        add_machine(&text, facts);
        write_words(html, command);
    }
    memory_free(usual);
    return code;
}

void write_command_note(struct html *html, const struct facts *facts) {
    const struct summary *summary = &facts->summary;
    html_put(html, "<p class=\"quiet\">");
    if (facts->has_summary) html_say(html, "Made by %s", summary->program);
    if (facts->has_summary && summary->machine[0]) html_say(html, " on %s", summary->machine);
    if (facts->has_summary) html_put(html, ". ");
    if (summary->wire_sent + summary->wire_received > 0)
        html_say(html, "Several processes took part, whose addresses are not written down. ");
    html_put(html, "A run does not write down all that can be typed: <code>--data-dir</code>, "
                   "<code>--slots</code> and <code>--on-loss</code>, say, are not among these options. ");
    if (!facts->has_summary) html_say(html, "Neither are devices and threads, as there is no summary.json. ");
    html_put(html, "</p>\n");
}
