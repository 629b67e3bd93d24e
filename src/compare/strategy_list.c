/* A list of strategies. Commas separate both strategies and settings, so what follows a comma decides:
 * "name" and "name:key=value" begin another strategy, "key=value" is another setting. */
#include "strategy_list.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../store/phases.h"

/* What is proposed as --strategy=NAME is here a NAME of the list. */
static int propose_name(struct error *why, struct error *error) {
    static const char proposal[] = "did you mean ", option[] = "--strategy=";
    char *at = strstr(why->words, proposal);
    char *words = at != NULL ? at + strlen(proposal) : why->words;
    if (strncmp(words, option, strlen(option)) == 0)
        memmove(words, words + strlen(option), strlen(words + strlen(option)) + 1);
    return error_set(error, why->code, "%s", why->words);
}

/* The strategy before with this as the value of its last setting, into out[STRATEGY_TEXT_BYTES]; false: that
 * is none. */
static bool make_like(const char *before, const char *value, char *out) {
    struct error ignored = {0};
    const char *equals = strrchr(before, '=');
    if (!equals || strpbrk(value, ":=")) return false;
    const int length =
        snprintf(out, STRATEGY_TEXT_BYTES, "%.*s%s", (int)(equals + 1 - before), before, value);
    return length < STRATEGY_TEXT_BYTES && phases_check(out, &ignored) == OK;
}

/* "ssp:bound=0,1,2" is meant as three of them; `rest`: from the 1 on. */
static int propose_each(const char *before, const char *rest, struct error *error) {
    char meant[400], value[STRATEGY_TEXT_BYTES], one[STRATEGY_TEXT_BYTES], first[60];
    struct text text = text_into(meant, sizeof meant);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(rest, ","), rest);
    text_add(&text, "%s", before);
    for (const char *next = rest; next; next = strchr(next, ',') ? strchr(next, ',') + 1 : NULL) {
        snprintf(value, sizeof value, "%.*s", (int)strcspn(next, ","), next);
        if (!make_like(before, value, one)) break;
        text_add(&text, ",%s", one);
    }
    return error_set(error, ERROR_USAGE, "strategy \"%s\": unknown; did you mean %s?", first, meant);
}

/* Adds one, after a look whether it can be chosen. `rest` begins with it. */
static int add(struct strategy_list *list, const char *text, const char *rest, struct error *error) {
    char like[STRATEGY_TEXT_BYTES];
    const char *before = list->count > 0 ? list->texts[list->count - 1] : "";
    struct error why = {0};
    if (phases_check(text, &why) != OK && make_like(before, text, like))
        return propose_each(before, rest, error);
    if (why.code != OK) return propose_name(&why, error);
    RETURN_IF(memory_grow(&list->texts, list->count, list->count + 1, "a list of strategies", error));
    snprintf(list->texts[list->count], sizeof *list->texts, "%s", text);
    plugin_lengthen(&strategy_kind, list->texts[list->count++], sizeof *list->texts);
    return OK;
}

static int add_all(struct strategy_list *list, struct error *error) {
    char text[STRATEGY_TEXT_BYTES];
    for (int i = 0; strategies[i]; i++) {
        const char *name = strategies[i]->plugin.name;
        const char *const *variant = strategies[i]->variants;
        if (!variant) RETURN_IF(add(list, name, name, error));
        for (; variant && *variant; variant++) {
            snprintf(text, sizeof text, "%s:%s", name, *variant);
            RETURN_IF(add(list, text, text, error));
        }
    }
    return OK;
}

/* Characters up to the comma that ends the strategy at the front of `text`. */
static size_t length_of_first(const char *text) {
    bool quoted = false;
    size_t i = 0;
    for (; text[i]; i++) {
        const char *rest = text + i + 1;
        if (text[i] == '"') quoted = !quoted;
        if (text[i] == ',' && !quoted && rest[strcspn(rest, "=:,")] != '=') break;
    }
    return i;
}

int strategy_list_parse(struct strategy_list *list, const char *text, struct error *error) {
    *list = (struct strategy_list){0};
    if (strcmp(text, "all") == 0) return add_all(list, error);
    for (const char *rest = text; rest;) {
        char one[STRATEGY_TEXT_BYTES];
        const size_t length = length_of_first(rest);
        if (length >= sizeof one)
            return error_set(error, ERROR_USAGE,
                             "--strategies: \"%.40s...\" has %zu characters, expected %zu "
                             "at most",
                             rest, length, sizeof one - 1);
        if (length == 0)
            return error_set(error, ERROR_USAGE,
                             "--strategies=%.200s: found an empty name, expected names separated by commas",
                             text);
        memcpy(one, rest, length);
        one[length] = '\0';
        RETURN_IF(add(list, one, rest, error));
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return OK;
}

void strategy_list_free(struct strategy_list *list) {
    memory_free(list->texts);
    *list = (struct strategy_list){0};
}
