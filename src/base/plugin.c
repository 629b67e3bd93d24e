/* Plug-ins: `name:key=value,key="a,b",flag` becomes a descriptor and its filled settings. */
#include "option.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "text.h"

enum {
    NAMES_MOST = 127,
    NAME_BYTES = 64,
    LIST_BYTES = 300,
    LIST_TEXT_BYTES = 1024 /* of a list of settings, at most */
};

/* `async_lockfree` is `async-lockfree`. `typed` has `length` characters. */
static bool is_named(const struct plugin *plugin, const char *typed, size_t length) {
    if (strlen(plugin->name) != length) return false;
    for (size_t i = 0; i < length; i++)
        if ((typed[i] == '_' ? '-' : typed[i]) != (plugin->name[i] == '_' ? '-' : plugin->name[i]))
            return false;
    return true;
}

/* "adam:rate=0.1" for "adam,lr=0.1", where a colon is missing; else NULL. */
static const char *with_colon(const struct plugin_kind *kind, const char *typed, char *out, size_t bytes) {
    char name[NAME_BYTES], setting[NAME_BYTES];
    const size_t length = strcspn(typed, ",");
    const char *settings = typed + length + 1;
    if (typed[length] == '\0' || strchr(settings, '=') == NULL || length >= sizeof name) return NULL;
    snprintf(name, sizeof name, "%.*s", (int)length, typed);
    const struct plugin *plugin = plugin_named(kind, name);
    if (plugin == NULL) return NULL;
    const size_t named = strcspn(settings, "=");
    snprintf(name, sizeof name, "%.*s", (int)named, settings);
    const bool other = option_find(plugin->options, name) == NULL &&
                       habit_instead("setting", name, NULL, setting, sizeof setting) != NULL;
    snprintf(out, bytes, "%s:%s%.200s", plugin->name, other ? setting : name, settings + named);
    return out;
}

int plugin_unknown(const struct plugin_kind *kind, const char *typed, struct error *error) {
    const char *names[NAMES_MOST + 1] = {0};
    char list[LIST_BYTES];
    struct text text = text_into(list, sizeof list);
    for (int i = 0; kind->plugins[i] != NULL && i < NAMES_MOST; i++) {
        names[i] = kind->plugins[i]->name;
        text_item(&text, ", ", "%s", names[i]);
    }
    char habit[LIST_BYTES];
    if (habit_instead(kind->name, typed, NULL, habit, sizeof habit) != NULL)
        return error_set(error, ERROR_USAGE, "%s \"%s\": unknown; did you mean %s? (one of %s)", kind->name,
                         typed, habit, list);
    const char *file = habit_file(kind->name, typed);
    if (file != NULL)
        return error_set(error, ERROR_USAGE,
                         "%s \"%s\": unknown; the program's sources have it as a list of layers, %s, for "
                         "--model=layers:FILE (one of %s)",
                         kind->name, typed, file, list);
    const char *nearest = with_colon(kind, typed, habit, sizeof habit);
    if (nearest == NULL) nearest = option_nearest(typed, names);
    if (nearest != NULL)
        return error_set(error, ERROR_USAGE, "%s \"%s\": unknown; did you mean \"%s\"? (one of %s)",
                         kind->name, typed, nearest, list);
    return error_set(error, ERROR_USAGE, "%s \"%s\": unknown (one of %s)", kind->name, typed, list);
}

/* The end of a list that begins at `value`: before the next key=value. */
static char *end_of_list(char *value) {
    char *end = value + strcspn(value, ",");
    while (*end == ',' && end[1 + strcspn(end + 1, ",=")] != '=') end += 1 + strcspn(end + 1, ",");
    return end;
}

/* `given`: for each row whether it was. */
static int check_new(const struct plugin *plugin, const struct option *row, bool given[NAMES_MOST],
                     struct error *error) {
    if (!row || row - plugin->options >= NAMES_MOST) return OK;
    if (given[row - plugin->options])
        return error_set(error, ERROR_USAGE, "%s: found %s twice, expected each setting once", plugin->name,
                         row->name);
    given[row - plugin->options] = true;
    return OK;
}

/* Sets the one setting at the front of `text`, which it changes; *rest is what follows its comma, or NULL. */
static int set_next(struct choice *choice, char *text, bool given[NAMES_MOST], char **rest,
                    struct error *error) {
    const struct plugin *plugin = choice->plugin;
    char *const name = text;
    char *end = text + strcspn(text, "=,");
    char *value = NULL;
    if (*end == '=') {
        *end = '\0';
        value = end + 1;
        const struct option *row = option_find(plugin->options, name);
        end = row && row->flags & OPTION_LIST ? end_of_list(value) : value + strcspn(value, ",");
        if (*value == '"') {
            char *const quote = strchr(value + 1, '"');
            if (quote == NULL || (quote[1] != ',' && quote[1] != '\0'))
                return error_set(error, ERROR_USAGE,
                                 "%s: %s=%.200s: expected a value in double quotes, then a comma",
                                 plugin->name, name, value);
            value++;
            *quote = '\0';
            end = quote + 1;
        }
    }
    *rest = *end == ',' ? end + 1 : NULL;
    *end = '\0';
    if (name[0] == '\0')
        return error_set(error, ERROR_USAGE, "%s: an empty setting in \"%.300s\", expected key=value",
                         plugin->name, choice->text);
    RETURN_IF(check_new(plugin, option_find(plugin->options, name), given, error));
    return option_set(plugin->options, choice->settings, plugin->name, name, value, error);
}

const struct plugin *plugin_named(const struct plugin_kind *kind, const char *text) {
    const size_t length = strcspn(text, ":");
    const struct plugin *const *entry = kind->plugins;
    while (*entry != NULL && !is_named(*entry, text, length)) entry++;
    return *entry;
}

/* Behind the setting at the front of `text`. */
static const char *end_of_setting(const struct plugin *plugin, const char *text) {
    char name[NAME_BYTES];
    const size_t length = strcspn(text, "=,");
    const char *value = text + length + 1;
    if (text[length] != '=') return text + length;
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    const struct option *row = option_find(plugin->options, name);
    if (*value == '"' && strchr(value + 1, '"') != NULL) return strchr(value + 1, '"') + 1;
    return row && row->flags & OPTION_LIST ? end_of_list((char *)value) : value + strcspn(value, ",");
}

/* The setting whose value `value` is, in a plug-in that has no other; else NULL. A word that looks like the
 * setting's name is none. */
static const struct option *only_setting(const struct plugin *plugin, const char *value) {
    const struct option *only = NULL;
    if (plugin == NULL || plugin->check_text != NULL || value[0] == '\0') return NULL;
    for (const struct option *row = plugin->options; row != NULL && row->name != NULL; row++) {
        if (option_is_absent(row)) continue;
        if (only != NULL) return NULL;
        only = row;
    }
    if (only == NULL || option_find(plugin->options, value) != NULL) return NULL;
    const bool number = only->type == OPTION_INT || only->type == OPTION_LONG || only->type == OPTION_REAL;
    if (number) return strchr("0123456789.+-", value[0]) != NULL ? only : NULL;
    return option_nearest(value, (const char *const[]){only->name, NULL}) == NULL ? only : NULL;
}

/* The text at the front of `text`, up to a blank or a semicolon. */
static size_t lengthen_first(const struct plugin_kind *kind, char *text, size_t bytes) {
    char one[NAME_BYTES], long_form[3 * NAME_BYTES];
    const size_t length = strcspn(text, " ;"), name = strcspn(text, ": ;"), whole = strlen(text);
    if (text[name] != ':' || length >= sizeof one) return length;
    snprintf(one, sizeof one, "%.*s", (int)length, text);
    const char *value = one + name + 1;
    const struct option *row =
        value[strcspn(value, "=,\"")] == '\0' ? only_setting(plugin_named(kind, one), value) : NULL;
    if (row == NULL) return length;
    const size_t longer =
        (size_t)snprintf(long_form, sizeof long_form, "%.*s:%s=%s", (int)name, one, row->name, value);
    if (longer >= sizeof long_form || whole - length + longer >= bytes) return length;
    memmove(text + longer, text + length, whole - length + 1);
    memcpy(text, long_form, longer);
    return longer;
}

void plugin_lengthen(const struct plugin_kind *kind, char *text, size_t bytes) {
    const struct plugin *plugin = plugin_named(kind, text);
    if (plugin != NULL && plugin->check_text != NULL) return;
    for (size_t at = 0;;) {
        at += strspn(text + at, " ");
        at += lengthen_first(kind, text + at, bytes - at);
        at += strcspn(text + at, ";");
        if (text[at] == '\0') return;
        at++;
    }
}

int plugin_with(const struct plugin_kind *kind, const char *text, const char *name, const char *value,
                char *out, size_t bytes, struct error *error) {
    const struct plugin *plugin = plugin_named(kind, text);
    if (plugin == NULL) return plugin_unknown(kind, text, error);
    if (plugin->check_text != NULL)
        return error_set(error, ERROR_USAGE, "%s: found the setting \"%s\", expected none: it is one text",
                         plugin->name, name);
    const struct option *row = option_find(plugin->options, name);
    if (row == NULL) /* which option_set has the words for */
        return option_set(plugin->options, NULL, plugin->name, name, value, error);
    struct text made = text_into(out, bytes);
    const char *at = text + strcspn(text, ":"), *separator = ":";
    text_add_bytes(&made, text, (size_t)(at - text));
    while (*at != '\0' && at[1] != '\0') {
        const char *setting = at + 1;
        at = end_of_setting(plugin, setting);
        const size_t named = strcspn(setting, "=,");
        if (strlen(row->name) == named && strncmp(setting, row->name, named) == 0) continue;
        text_add(&made, "%s%.*s", separator, (int)(at - setting), setting);
        separator = ",";
    }
    const bool quoted = !(row->flags & OPTION_LIST) && strchr(value, ',') != NULL && value[0] != '"';
    text_add(&made, quoted ? "%s%s=\"%s\"" : "%s%s=%s", separator, row->name, value);
    if (!made.cut) return OK;
    return error_set(error, ERROR_USAGE, "%s \"%.40s...\": expected fewer than %zu characters", kind->name,
                     text, bytes);
}

int plugin_choose(struct choice *choice, const struct plugin_kind *kind, const char *text,
                  struct error *error) {
    *choice = (struct choice){0};
    const size_t bytes = strlen(text) + 1;
    choice->plugin = plugin_named(kind, text);
    const bool is_text = choice->plugin != NULL && choice->plugin->check_text != NULL;
    const size_t most = is_text ? sizeof choice->text : LIST_TEXT_BYTES;
    if (bytes > most)
        return error_set(error, ERROR_USAGE, "%s \"%.40s...\": %zu characters, expected fewer than %zu",
                         kind->name, text, bytes - 1, most);
    memcpy(choice->text, text, bytes);
    if (is_text) return choice->plugin->check_text(choice->plugin->name, choice_settings(choice), error);
    char copy[LIST_TEXT_BYTES];
    plugin_lengthen(kind, choice->text, sizeof copy);
    memcpy(copy, choice->text, strlen(choice->text) + 1);
    const size_t length = strcspn(text, ":");
    char *rest = copy[length] == ':' ? copy + length + 1 : NULL;
    copy[length] = '\0';
    if (choice->plugin == NULL) return plugin_unknown(kind, copy, error);
    assert(choice->plugin->settings_bytes <= sizeof choice->settings);
    option_defaults(choice->plugin->options, choice->settings);
    bool given[NAMES_MOST] = {false};
    while (rest != NULL) RETURN_IF(set_next(choice, rest, given, &rest, error));
    return OK;
}
