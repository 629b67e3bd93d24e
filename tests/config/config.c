/* Settling: what was typed goes before the checkpoint, the checkpoint before the model's recipe, the recipe
 * before the program's default. And every model's recipe is one that could be typed. */
#include <stdlib.h>
#include <string.h>

#include "../../src/config/config.h"
#include "../../src/graph/model.h"
#include "../../src/store/optimizer.h"
#include "../../src/store/schedule.h"
#include "../check.h"

static void type(struct typed *typed, const char *name, const char *value) {
    struct error error = {0};
    CHECK(option_set(run_options, typed, "--", name, value, &error) == OK, "%s", error.words);
}

static struct typed typed_of(const char *model) {
    struct typed typed;
    option_defaults(run_options, &typed);
    if (model) type(&typed, "model", model);
    return typed;
}

static const char *value_of(const struct config *config, const char *name) {
    static char value[CONFIG_VALUE_BYTES];
    option_text(option_find(config_options, name), config, value, sizeof value);
    return value;
}

static void expect(const char *label, const struct config *config, const char *name, const char *value) {
    const char *found = value_of(config, name);
    CHECK(strcmp(found, value) == 0, "%s: --%s=%s, expected %s", label, name, found, value);
}

/* Another value of the row than this one, that is in its range. */
static const char *other_than(const struct option *row, const char *value) {
    const char *first = "0.25", *second = "0.125";
    if (row->type == OPTION_INT) first = "7", second = "8";
    if (strcmp(row->name, "optimizer") == 0) first = "sgd:rate=0.25", second = "adagrad:rate=0.125";
    if (strcmp(row->name, "schedule") == 0) first = "step", second = "cosine:end=0.25";
    return strcmp(first, value) == 0 ? second : first;
}

/* --- every model --- */

static void check_plugin(const char *model, const struct plugin_kind *kind, const char *text) {
    struct choice choice;
    struct error error = {0};
    CHECK(plugin_choose(&choice, kind, text, &error) == OK, "%s: %s", model, error.words);
}

/* What is not typed is the recipe's, in the words of the recipe; all else is the program's default. */
static void check_recipe(const struct model *model) {
    const char *name = model->plugin.name;
    const struct typed typed = typed_of(name);
    struct config config, usual;
    struct error error = {0};
    int rows = 0;
    option_defaults(config_options, &usual);
    CHECK(config_begin(&config, &typed, &error) == OK, "%s: %s", name, error.words);
    for (const struct option *row = config_options; row->name; row++) {
        const char *says = model_recipe(model, row->name);
        char value[CONFIG_VALUE_BYTES];
        if (option_is_absent(row)) continue;
        option_text(row, &usual, value, sizeof value);
        if (strcmp(row->name, "model") == 0) says = name;
        expect(name, &config, row->name, says ? says : value);
        rows += says != NULL;
    }
    for (const struct recipe *row = model->recipe; row && row->option; row++) {
        const struct option *option = option_find(config_options, row->option);
        CHECK(option && option->flags & OPTION_RECIPE, "%s: its recipe has --%s", name, row->option);
        rows--;
    }
    CHECK(rows == 1, "%s: its recipe says a thing twice", name);
    check_plugin(name, &optimizer_kind, config.optimizer);
    check_plugin(name, &schedule_kind, config.schedule);
}

/* A row's value is what was typed, whatever checkpoint and recipe say; then the checkpoint's. What the
 * checkpoint does not say had its default in the program that wrote it. */
struct saved {
    const char *name, *value;
};

static const char *saved_text(const void *self, const char *name) {
    const struct saved *saved = self;
    return strcmp(saved->name, name) == 0 ? saved->value : NULL;
}

static void check_order(const struct model *model, const struct option *row) {
    const char *name = model->plugin.name, *recipe = model_recipe(model, row->name);
    const char *typed_value = other_than(row, recipe ? recipe : "");
    const struct saved saved = {row->name, other_than(row, typed_value)}, nothing = {"", ""};
    struct config_source source = {.name = "a checkpoint", .text = saved_text, .self = &saved};
    struct typed typed = typed_of(name);
    struct config config, usual;
    struct error error = {0};
    option_defaults(config_options, &usual);
    CHECK(config_settle(&config, &typed, &source, OPTION_SAVED, ERROR_FILE, &error) == OK, "%s", error.words);
    expect(name, &config, row->name, saved.value);
    source.self = &nothing;
    CHECK(config_settle(&config, &typed, &source, OPTION_SAVED, ERROR_FILE, &error) == OK, "%s", error.words);
    char value[CONFIG_VALUE_BYTES];
    option_text(row, &usual, value, sizeof value);
    expect(name, &config, row->name, value);
    type(&typed, row->name, typed_value);
    CHECK(config_begin(&config, &typed, &error) == OK, "%s: %s", name, error.words);
    expect(name, &config, row->name, typed_value);
    source.self = &saved;
    CHECK(config_settle(&config, &typed, &source, OPTION_SAVED, ERROR_FILE, &error) == OK, "%s", error.words);
    expect(name, &config, row->name, typed_value);
}

/* --- the rows --- */

/* A resumed run and the processes of a cluster rely on it. */
static void check_rows(void) {
    int found = 0;
    for (const struct option *row = config_options; row->name; row++) {
        if (!(row->flags & OPTION_RECIPE)) continue;
        found++;
        CHECK(row->flags & OPTION_SAVED && row->flags & OPTION_AGREED, "--%s is not saved and agreed",
              row->name);
    }
    CHECK(found >= 5, "only %d rows that a recipe can have", found);
}

static void check_errors(void) {
    struct typed typed = typed_of("cnnn");
    struct config config;
    struct error error = {0};
    CHECK(config_begin(&config, &typed, &error) == ERROR_USAGE && strstr(error.words, "\"cnnn\": unknown"),
          "%s", error.words);
}

/* What a recipe has chosen is shown with what was typed: both are not the program's default. */
static void check_shown(void) {
    struct typed typed = typed_of("cnn");
    struct config config;
    struct error error = {0};
    char out[1200], wanted[600];
    type(&typed, "clip", "1");
    CHECK(config_begin(&config, &typed, &error) == OK, "%s", error.words);
    config_unusual(&config, OPTION_SHOWN, "model", out, sizeof out);
    snprintf(wanted, sizeof wanted, " --optimizer=%s", config.optimizer);
    CHECK(strstr(out, wanted) && strstr(out, " --clip=1"), "found%s, expected%s --clip=1", out, wanted);
}

int main(void) {
    check_rows();
    check_errors();
    check_shown();
    for (int i = 0; models[i]; i++) {
        check_recipe(models[i]);
        for (const struct option *row = config_options; row->name; row++)
            if (row->flags & OPTION_RECIPE) check_order(models[i], row);
    }
    return check_end();
}
