/* What a run was made with, as a table to read and as what TensorBoard compares runs by. */
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../device/groups.h"
#include "../device/ranges.h"
#include "../store/optimizer.h"
#include "board.h"

enum { SETTINGS_MOST = 40 };

struct settings {
    struct events_setting all[SETTINGS_MOST];
    char *values[SETTINGS_MOST]; /* of the texts, owned */
    int count;
};

static void add_number(struct settings *to, const char *name, double number) {
    if (to->count < SETTINGS_MOST)
        to->all[to->count++] =
            (struct events_setting){.name = name, .kind = SETTING_NUMBER, .number = number};
}

static void add_text(struct settings *to, const char *name, const char *text) {
    struct error ignored = {0}; /* one setting less is shown */
    if (to->count == SETTINGS_MOST || memory_text(&to->values[to->count], text, &ignored) != OK) return;
    to->all[to->count] =
        (struct events_setting){.name = name, .kind = SETTING_TEXT, .text = to->values[to->count]};
    to->count++;
}

static int add_row(void *argument, const struct option *row, const char *value) {
    struct settings *to = argument;
    char *end = NULL;
    const double number = strtod(value, &end);
    const bool is_number = row->type == OPTION_INT || row->type == OPTION_LONG || row->type == OPTION_REAL;
    if (is_number && end != value && *end == '\0')
        add_number(to, row->name, number);
    else
        add_text(to, row->name, value);
    return OK;
}

static const char *device_list(const struct output_scene *scene, char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    for (int w = 0; w < scene->workers; w++) groups_list(&text, scene->devices[w]);
    ranges_fold(out);
    return out;
}

/* What people compare runs by. */
static bool is_first(const char *name) {
    static const char *const names[] = {"model", "strategy", "workers", "batch", "rate"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Those that are shown or saved; and, as numbers can be compared, the optimizer's rate by itself. */
static void gather_settings(struct settings *settings, const struct output_scene *scene) {
    char devices[CONFIG_VALUE_BYTES];
    struct choice optimizer;
    struct error ignored = {0};
    config_each(scene->config, OPTION_SHOWN | OPTION_SAVED, add_row, settings);
    if (plugin_choose(&optimizer, &optimizer_kind, scene->config->optimizer, &ignored) == OK)
        add_number(settings, "rate",
                   ((const struct optimizer_common *)(const void *)optimizer.settings)->rate);
    add_text(settings, "devices", device_list(scene, devices, sizeof devices));
    add_number(settings, "workers", scene->workers);
    add_number(settings, "shards", scene->shards);
    for (int i = 0; i < settings->count; i++) settings->all[i].first = is_first(settings->all[i].name);
}

static int write_table(struct tensorboard *self, const struct settings *settings, int epoch,
                       struct error *error) {
    struct text text = text_growing(error);
    text_add(&text, "| setting | value |\n|---|---|\n");
    for (int i = 0; i < settings->count; i++) {
        const struct events_setting *setting = &settings->all[i];
        if (setting->kind == SETTING_TEXT)
            text_add(&text, "| %s | %s |\n", setting->name, setting->text);
        else
            text_add(&text, "| %s | %.10g |\n", setting->name, setting->number);
    }
    int code = text_end(&text);
    if (code == OK) code = events_text(&self->events, self->utc_s, epoch, "config", text.bytes, error);
    memory_free(text.bytes);
    return code;
}

int board_settings(struct tensorboard *self, const struct output_scene *scene, bool first,
                   struct error *error) {
    char tag[METRIC_NAME_BYTES], name[64];
    const enum metric metric = metric_of(scene->dataset->task);
    metric_name("epoch/test", metric, tag);
    snprintf(name, sizeof name, "test %s", metric_rows[metric].words);
    const struct events_metric metrics[] = {{tag, name},
                                            {"epoch/test_loss", "test loss"},
                                            {"epoch/train_loss", "train loss"},
                                            {"epoch/time_s", "seconds"},
                                            {"epoch/examples_per_s", "examples/s"},
                                            {"epoch/wait_share", "wait share"},
                                            {"epoch/staleness_mean", "staleness"}};
    struct settings *settings = NULL;
    RETURN_IF(memory_array(&settings, 1, "the settings for TensorBoard", error));
    gather_settings(settings, scene);
    int code = write_table(self, settings, scene->epochs_before, error);
    if (code == OK && first)
        code = events_settings(&self->events, self->utc_s, settings->all, settings->count, metrics,
                               sizeof metrics / sizeof *metrics, error);
    for (int i = 0; i < settings->count; i++) memory_free(settings->values[i]);
    memory_free(settings);
    return code;
}
