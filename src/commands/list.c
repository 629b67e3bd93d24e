/* list: every plug-in there is, and with a name its settings; all of it read from the generated tables. */
#include <stdio.h>
#include <string.h>
#include "../bridge/compressor.h"
#include "../data/dataset.h"
#include "../graph/layers.h"
#include "../graph/model.h"
#include "../graph/network_file.h"
#include "../infer/export.h"
#include "../record/output.h"
#include "../store/optimizer.h"
#include "../store/schedule.h"
#include "../store/strategy.h"
#include "command.h"
#include "kinds.h"

const struct plugin_kind *const plugin_kinds[PLUGIN_KINDS] = {
    &strategy_kind,   &model_kind,  &dataset_kind, &optimizer_kind, &schedule_kind,
    &compressor_kind, &output_kind, &format_kind,  &reader_kind};

enum { NAMES_MOST = 255, NAMES_INDENT = 18 };

const char *plugin_how(const struct plugin_kind *kind, char how[PLUGIN_HOW_BYTES]) {
    const char *option = kind == &output_kind       ? kind->folder
                         : kind == &format_kind     ? "export"
                         : kind == &compressor_kind ? "compress"
                         : kind == &reader_kind     ? model_kind.name
                                                    : kind->name;
    snprintf(how, PLUGIN_HOW_BYTES, "--%s", option);
    return how;
}

static void print_kind(const struct plugin_kind *kind) {
    const struct page page = page_on(stdout);
    char left[64], how[PLUGIN_HOW_BYTES];
    printf("%s (%s=%s)\n", kind->folder, plugin_how(kind, how),
           kind == &output_kind   ? "NAME,NAME,..."
           : kind == &format_kind ? "FILE.NAME"
           : kind == &reader_kind ? "NAME:file=FILE,..."
                                  : "NAME:key=value,...");
    for (size_t i = 0; kind->plugins[i] != NULL; i++) {
        snprintf(left, sizeof left, "  %s", kind->plugins[i]->name);
        page_row(&page, left, NAMES_INDENT, kind->plugins[i]->help);
    }
}

/* What it takes, and what it is trained with unless something else is typed, as options. */
static void print_model(const struct page *page, const struct model *model) {
    char words[600];
    struct text text = text_into(words, sizeof words);
    if (model->side > 0)
        fprintf(page->file, "  takes images of %dx%d pixels or more\n", model->side, model->side);
    for (const struct recipe *row = model->recipe; row && row->option; row++)
        text_add(&text, "%s --%s=%s", text.used == 0 ? "trains well with:" : "", row->option, row->value);
    if (text.used > 0 && model->values_optimizer)
        text_add(&text, "; to predict numbers, --optimizer=%s", model->values_optimizer);
    if (text.used == 0) return;
    fputs("  ", page->file);
    page_words(page, 2, 4, words);
}

/* What a text of `layers` is made of, from layers.def. */
static void print_layers(const struct page *page) {
    printf("  ");
    page_words(page, 2, 2, "its layers, one per line with its settings; an activation may be the last word:");
    for (int kind = 0; kind < LAYER_KINDS; kind++) {
        char left[64], words[400];
        struct text text = text_into(words, sizeof words);
        snprintf(left, sizeof left, "  %s", layer_rows[kind].name);
        page_row(page, left, NAMES_INDENT, layer_rows[kind].help);
        layer_synopsis((enum layer_kind)kind, &text);
        if (strchr(words, ' ') == NULL) continue;
        printf("%*s", NAMES_INDENT, "");
        page_words(page, NAMES_INDENT, NAMES_INDENT + 2, words);
    }
}

static void print_plugin(const struct plugin_kind *kind, const struct plugin *plugin) {
    const struct page page = page_on(stdout);
    char words[400];
    snprintf(words, sizeof words, "%s %s: %s", kind->name, plugin->name, plugin->help);
    page_words(&page, 0, 2, words);
    if (plugin->check_text != NULL)
        print_layers(&page);
    else if (plugin->options == NULL || plugin->options->name == NULL)
        printf("  no settings\n");
    else
        option_help(&page, plugin->options, "", true);
    if (kind == &model_kind) print_model(&page, (const struct model *)(const void *)plugin);
}

/* Prints all that NAME, KIND or KIND/NAME means; returns how many that were. */
static int print_named(const char *wanted) {
    int found = 0;
    for (int k = 0; k < PLUGIN_KINDS; k++) {
        const struct plugin_kind *kind = plugin_kinds[k];
        const char *name = wanted;
        const size_t length = strcspn(wanted, "/");
        if (strcmp(wanted, kind->name) == 0 || strcmp(wanted, kind->folder) == 0) {
            print_kind(kind);
            found++;
        }
        if (wanted[length] == '/') {
            const bool is_kind =
                (strlen(kind->name) == length && strncmp(wanted, kind->name, length) == 0) ||
                (strlen(kind->folder) == length && strncmp(wanted, kind->folder, length) == 0);
            if (!is_kind) continue;
            name = wanted + length + 1;
        }
        for (size_t i = 0; kind->plugins[i] != NULL; i++) {
            const struct plugin *plugin = kind->plugins[i];
            if (strcmp(name, plugin->name) != 0) continue;
            print_plugin(kind, plugin);
            found++;
        }
    }
    return found;
}

static int unknown(const char *wanted, struct error *error) {
    const char *names[NAMES_MOST + 1] = {0};
    int count = 0;
    for (int k = 0; k < PLUGIN_KINDS; k++) {
        if (count < NAMES_MOST) names[count++] = plugin_kinds[k]->name;
        for (size_t i = 0; plugin_kinds[k]->plugins[i] != NULL && count < NAMES_MOST; i++)
            names[count++] = plugin_kinds[k]->plugins[i]->name;
    }
    const char *slash = strrchr(wanted, '/');
    const char *nearest = option_nearest(slash != NULL ? slash + 1 : wanted, names);
    if (nearest == NULL)
        return error_set(error, ERROR_USAGE, "plug-in \"%s\": unknown; trainer list shows them all", wanted);
    return error_set(error, ERROR_USAGE, "plug-in \"%s\": unknown; did you mean \"%s\"?", wanted, nearest);
}

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    (void)settings;
    for (int k = 0; k < PLUGIN_KINDS && argument_count == 0; k++) {
        if (k > 0) putchar('\n');
        print_kind(plugin_kinds[k]);
    }
    if (argument_count == 0) printf("\ntrainer list NAME shows a plug-in's settings.\n");
    for (int i = 0; i < argument_count; i++) {
        if (i > 0) putchar('\n');
        if (print_named(arguments[i]) == 0) return unknown(arguments[i], error);
    }
    return OK;
}

const struct command command_list = {
    .plugin = {.name = "list", .help = "show strategies, models, data sets, optimizers and schedules"},
    .arguments = "[NAME|KIND|KIND/NAME]...",
    .examples = "trainer list\ntrainer list strategies\ntrainer list optimizer/sgd\n",
    .completes = "PLUGIN",
    .run = run,
};
