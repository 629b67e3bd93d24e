/* A list of strategies. Commas separate both strategies and settings, so what follows a comma decides:
 * "name" and "name:key=value" begin another strategy, "key=value" is another setting. */
#include "strategy_list.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../store/phases.h"

/* What is proposed as --strategy=NAME is here a NAME of the list. */
static int propose_name(struct error *error) {
    static const char proposal[] = "did you mean ", option[] = "--strategy=";
    char *at = strstr(error->words, proposal);
    char *words = at != NULL ? at + strlen(proposal) : error->words;
    if (strncmp(words, option, strlen(option)) == 0)
        memmove(words, words + strlen(option), strlen(words + strlen(option)) + 1);
    return error->code;
}

/* Adds one, after a look whether it can be chosen. */
static int add(struct strategy_list *list, const char *text, struct error *error) {
    if (phases_check(text, error) != OK) return propose_name(error);
    RETURN_IF(memory_grow(&list->texts, list->count, list->count + 1, "a list of strategies", error));
    snprintf(list->texts[list->count++], sizeof *list->texts, "%s", text);
    return OK;
}

static int add_all(struct strategy_list *list, struct error *error) {
    char text[STRATEGY_TEXT_BYTES];
    for (int i = 0; strategies[i]; i++) {
        const char *name = strategies[i]->plugin.name;
        const char *const *variant = strategies[i]->variants;
        if (!variant) RETURN_IF(add(list, name, error));
        for (; variant && *variant; variant++) {
            snprintf(text, sizeof text, "%s:%s", name, *variant);
            RETURN_IF(add(list, text, error));
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
        memcpy(one, rest, length);
        one[length] = '\0';
        RETURN_IF(add(list, one, error));
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return OK;
}

void strategy_list_free(struct strategy_list *list) {
    memory_free(list->texts);
    *list = (struct strategy_list){0};
}
