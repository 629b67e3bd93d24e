/* See vary.h. */
#include "vary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../data/dataset.h"
#include "../graph/model.h"
#include "../run/setup.h"
#include "../store/optimizer.h"
#include "../store/schedule.h"
#include "../store/phases.h"

int vary_add(struct vary_texts *texts, const char *text, struct error *error) {
    if (texts->count == VARY_MOST)
        return error_set(error, ERROR_USAGE, "--vary=%.100s: expected at most %d settings that vary", text,
                         VARY_MOST);
    snprintf(texts->text[texts->count++], VARY_TEXT_BYTES, "%s", text);
    return OK;
}

/* --- settings by name --- */

/* "optimizer" of "optimizer.rate": which kind of plug-in it chooses, or NULL. */
static const struct plugin_kind *kind_of(const char *name) {
    static const struct plugin_kind *const kinds[] = {&model_kind, &dataset_kind, &strategy_kind,
                                                      &optimizer_kind, &schedule_kind};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *kind = kinds[i]->name;
        if (strlen(kind) == strcspn(name, ".") && strncmp(kind, name, strlen(kind)) == 0) return kinds[i];
    }
    return NULL;
}

/* Of the option before the dot: what is typed, or what the model's recipe says. */
static int settled_text(const struct typed *typed, const char *option, char *out, size_t bytes,
                        struct error *error) {
    struct config *config = NULL;
    RETURN_IF(memory_array(&config, 1, "settings", error));
    const int code = config_begin(config, typed, error);
    if (code == OK) option_text(option_find(config_options, option), config, out, bytes);
    memory_free(config);
    return code;
}

/* Of several strategies, one after the other, a setting has no one place. */
static int check_one(const struct plugin_kind *kind, const char *text, const char *name,
                     struct error *error) {
    if (kind != &strategy_kind || !phases_several(text)) return OK;
    return error_set(error, ERROR_USAGE, "%s: found several strategies, \"%.200s\", expected one", name,
                     text);
}

static int apply_dotted(struct typed *typed, const char *name, const char *value, struct error *error) {
    char *texts = NULL, option[VARY_NAME_BYTES];
    const struct plugin_kind *kind = kind_of(name);
    snprintf(option, sizeof option, "%.*s", (int)strcspn(name, "."), name);
    if (kind == NULL)
        return error_set(error, ERROR_USAGE,
                         "%s: expected a setting of model, dataset, strategy, optimizer or schedule before "
                         "the dot",
                         name);
    RETURN_IF(memory_array(&texts, 2 * PLUGIN_TEXT_BYTES, "a setting", error));
    char *const made = texts + PLUGIN_TEXT_BYTES;
    int code = settled_text(typed, option, texts, PLUGIN_TEXT_BYTES, error);
    if (code == OK) code = check_one(kind, texts, name, error);
    if (code == OK)
        code = plugin_with(kind, texts, strchr(name, '.') + 1, value, made, PLUGIN_TEXT_BYTES, error);
    if (code == OK) code = option_set(run_options, typed, "--", option, made, error);
    memory_free(texts);
    return code;
}

/* What others call so: "lr" is optimizer.rate. */
static int habit_of(const char *name, struct error *error) {
    char instead[200];
    if (option_find(run_options, name) || !habit_instead("option", name, "", instead, sizeof instead))
        return OK;
    const char *option = instead + 2, *setting = strchr(option, ':');
    return error_set(error, ERROR_USAGE, "unknown option \"%s\"; did you mean %.*s%s%.*s=...?", name,
                     (int)strcspn(option, "="), option, setting ? "." : "",
                     setting ? (int)strcspn(setting + 1, "=") : 0, setting ? setting + 1 : "");
}

int vary_apply(struct typed *typed, const char *name, const char *value, struct error *error) {
    if (strchr(name, '.') != NULL) return apply_dotted(typed, name, value, error);
    RETURN_IF(habit_of(name, error));
    RETURN_IF(option_set(run_options, typed, "--", name, value, error));
    const struct option *row = option_find(run_options, name);
    return row->typed ? row->typed(typed, (char *)typed + row->offset, row->bytes, error) : OK;
}

int vary_apply_all(struct typed *typed, const char *const *names, const char *const *values, int count,
                   struct error *error) {
    for (int dotted = 0; dotted < 2; dotted++)
        for (int i = 0; i < count; i++)
            if ((strchr(names[i], '.') != NULL) == dotted)
                RETURN_IF(vary_apply(typed, names[i], values[i], error));
    return OK;
}

int vary_check(const struct typed *typed, char *dataset, size_t bytes, struct error *error) {
    struct setup *setup = NULL;
    RETURN_IF(memory_array(&setup, 1, "settings", error));
    int code = config_begin(&setup->config, typed, error);
    if (code == OK) code = setup_choose(setup, 1, false, error);
    if (code == OK && dataset) snprintf(dataset, bytes, "%s", setup->config.dataset);
    memory_free(setup);
    return code;
}

/* --- parsing --- */

static int bad(const char *text, const char *expected, struct error *error) {
    return error_set(error, ERROR_USAGE, "--vary=%.200s: expected %s", text, expected);
}

/* The row that the name means, of the plug-in that `base` has. */
static int find_row(const char *name, const struct typed *base, const struct option **row,
                    struct error *error) {
    char *text = NULL, option[VARY_NAME_BYTES];
    const struct plugin_kind *kind = kind_of(name);
    snprintf(option, sizeof option, "%.*s", (int)strcspn(name, "."), name);
    *row = option_find(run_options, option);
    if (strchr(name, '.') == NULL || kind == NULL) return OK;
    RETURN_IF(memory_array(&text, PLUGIN_TEXT_BYTES, "a setting", error));
    int code = settled_text(base, option, text, PLUGIN_TEXT_BYTES, error);
    if (code == OK) code = check_one(kind, text, name, error);
    const struct plugin *plugin = code == OK ? plugin_named(kind, text) : NULL;
    *row = plugin ? option_find(plugin->options, strchr(name, '.') + 1) : NULL;
    memory_free(text);
    return code;
}

/* What decides how the network trains; the held-out part is the same for all, or they would not compare. */
static bool can_vary(const char *name) {
    char option[VARY_NAME_BYTES];
    snprintf(option, sizeof option, "%.*s", (int)strcspn(name, "."), name);
    const struct option *row = option_find(run_options, option);
    if (row == NULL || strcmp(row->name, "validation") == 0) return row == NULL;
    return row->flags & OPTION_AGREED || (row->flags & OPTION_SAVED && row->flags & OPTION_SHOWN);
}

static int add_value(struct variation *variation, const char *from, size_t length, struct error *error) {
    char value[VARY_TEXT_BYTES];
    snprintf(value, sizeof value, "%.*s", (int)length, from);
    RETURN_IF(
        memory_grow(&variation->values, variation->count, variation->count + 1, "what is varied", error));
    return memory_text(&variation->values[variation->count++], value, error);
}

static int parse_list(struct variation *variation, const char *text, const char *values,
                      struct error *error) {
    const char *separator = strchr(values, '|') ? "|" : ",";
    for (const char *at = values;;) {
        const size_t length = strcspn(at, separator);
        if (length == 0) return bad(text, "values joined by ',' (or by '|' where they have commas)", error);
        RETURN_IF(add_value(variation, at, length, error));
        for (int v = 0; v + 1 < variation->count; v++)
            if (strcmp(variation->values[v], variation->values[variation->count - 1]) == 0)
                return error_set(error, ERROR_USAGE, "--vary=%.200s: \"%.*s\" is there twice", text,
                                 (int)length, at);
        if (at[length] == '\0') return OK;
        at += length + 1;
    }
}

static char *print_number(const struct variation *variation, double value, char out[32]) {
    snprintf(out, 32, variation->whole ? "%.0f" : "%.4g", value);
    if (strtod(out, NULL) < variation->least) snprintf(out, 32, "%.15g", variation->least);
    if (strtod(out, NULL) > variation->most) snprintf(out, 32, "%.15g", variation->most);
    return out;
}

static double place(const struct variation *variation, double share) {
    const double least = variation->least, most = variation->most;
    return variation->logarithmic ? exp(log(least) + share * (log(most) - log(least)))
                                  : least + share * (most - least);
}

static int add_points(struct variation *variation, long points, struct error *error) {
    char number[32];
    for (long i = 0; i < points; i++) {
        print_number(variation, place(variation, (double)i / (double)(points - 1)), number);
        if (variation->count > 0 && strcmp(number, variation->values[variation->count - 1]) == 0) continue;
        RETURN_IF(add_value(variation, number, strlen(number), error));
    }
    return OK;
}

/* "0.001..1", "0.001..1/4" behind "log:". */
static int parse_range(struct variation *variation, const char *text, const char *values,
                       struct error *error) {
    static const char expected[] = "LEAST..MOST, two numbers, the first one smaller (log: above 0), and "
                                   "perhaps /N, N from 2 to 10000";
    char first[VARY_TEXT_BYTES], *end;
    const char *dots = strstr(values, ".."); /* of "16..64", too, of which strtod would take "16." */
    if (dots == NULL) return bad(text, expected, error);
    snprintf(first, sizeof first, "%.*s", (int)(dots - values), values);
    variation->least = strtod(first, &end);
    if (end == first || *end != '\0') return bad(text, expected, error);
    values = dots + 2;
    variation->most = strtod(values, &end);
    const double least = variation->least, most = variation->most;
    if (end == values || !isfinite(least) || !isfinite(most) || !(least < most) ||
        (variation->logarithmic && least <= 0.0))
        return bad(text, expected, error);
    if (variation->whole && (least != floor(least) || most != floor(most)))
        return bad(text, "whole numbers", error);
    if (*end == '\0') return OK;
    char *rest = end + 1;
    const long points = *end == '/' ? strtol(rest, &end, 10) : 0;
    if (points < 2 || points > VARY_VALUES || *end != '\0') return bad(text, expected, error);
    return add_points(variation, points, error);
}

int variation_open(struct variation *variation, const char *text, const struct typed *base,
                   struct error *error) {
    const struct option *row = NULL;
    const size_t length = strcspn(text, "=");
    *variation = (struct variation){0};
    if (text[length] != '=' || length == 0 || length >= VARY_NAME_BYTES)
        return bad(text, "NAME=VALUES, as in batch=32,64 or optimizer.rate=log:0.001..1", error);
    memcpy(variation->name, text, length);
    if (!can_vary(variation->name))
        return bad(text, "a setting of the training that all runs may have differently", error);
    RETURN_IF(find_row(variation->name, base, &row, error));
    variation->whole = row && (row->type == OPTION_INT || row->type == OPTION_LONG);
    const char *values = text + length + 1;
    variation->logarithmic = strncmp(values, "log:", 4) == 0;
    if (!variation->logarithmic && strstr(values, "..") == NULL)
        return parse_list(variation, text, values, error);
    if (row && !variation->whole && row->type != OPTION_REAL)
        return bad(text, "a list: it has no numbers between", error);
    return parse_range(variation, text, values + (variation->logarithmic ? 4 : 0), error);
}

void variation_close(struct variation *variation) {
    for (int i = 0; i < variation->count; i++) memory_free(variation->values[i]);
    memory_free(variation->values);
    *variation = (struct variation){0};
}

int variation_value(const struct variation *variation, double unit, char **value, struct error *error) {
    char number[32];
    if (variation->count > 0)
        return memory_text(value, variation->values[(int)(unit * variation->count)], error);
    return memory_text(value, print_number(variation, place(variation, unit), number), error);
}
