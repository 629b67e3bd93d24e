/* The rows, and what is made of them. See config.h and options.def. */
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/text.h"
#include "../graph/model.h"

/* The row of a field: `base` is where struct config stands in what the rows fill. */
#define ROW(where, kind, ...)                                                                                \
    { .type = kind, .group = GROUP, .offset = offsetof(struct where), __VA_ARGS__ }

#define SAVED OPTION_SAVED
#define RESUMED OPTION_RESUMED
#define AGREED OPTION_AGREED
#define SHOWN OPTION_SHOWN
#define RECIPE OPTION_RECIPE
#define AUTOMATIC OPTION_AUTO
#define RARE OPTION_RARE
#define OF_GPUS (DEVICES_MAY_BE_GPUS ? NULL : "CUDA")

/* The tables of plug-ins are made by the Makefile; what they list is above this floor. */
extern const struct plugin_kind strategy_kind, optimizer_kind, schedule_kind, compressor_kind;

#define TYPED_PLUGIN(name)                                                                                   \
    static int typed_##name(void *settings, char *text, size_t bytes, struct error *error) {                 \
        (void)settings;                                                                                      \
        (void)error;                                                                                         \
        plugin_lengthen(&name##_kind, text, bytes);                                                          \
        return OK;                                                                                           \
    }
TYPED_PLUGIN(strategy)
TYPED_PLUGIN(optimizer)
TYPED_PLUGIN(schedule)
TYPED_PLUGIN(compressor)

/* A network of another program's file brings its weights with it, unless others are given. */
static int typed_model(void *settings, char *text, size_t bytes, struct error *error) {
    struct typed *typed = settings;
    char weights[PATH_BYTES];
    plugin_lengthen(&model_kind, text, bytes);
    RETURN_IF(model_resolve(text, bytes, weights, error));
    if (!typed->given.weights) memcpy(typed->value.weights, weights, sizeof weights);
    return OK;
}

/* Of what was typed: with the field that says so. */
#define OF_TYPED(kind, field, ...)                                                                           \
    {.type = kind,                                                                                           \
     .group = GROUP,                                                                                         \
     .offset = offsetof(struct typed, value.field),                                                          \
     .given = offsetof(struct typed, given.field),                                                           \
     __VA_ARGS__},
#define TEXT(field, size, ...) OF_TYPED(OPTION_TEXT, field, .bytes = size, __VA_ARGS__)
#define INT(field, ...) OF_TYPED(OPTION_INT, field, __VA_ARGS__)
#define LONG(field, ...) OF_TYPED(OPTION_LONG, field, __VA_ARGS__)
#define REAL(field, ...) OF_TYPED(OPTION_REAL, field, __VA_ARGS__)
#define FLAG(field, ...) OF_TYPED(OPTION_FLAG, field, __VA_ARGS__)
#define CHOICE(field, ...) OF_TYPED(OPTION_CHOICE, field, __VA_ARGS__)
const struct option run_options[] = {
#include "options.def"
    {0},
};

#define OF_CONFIG(kind, field, ...)                                                                          \
    {.type = kind, .group = GROUP, .offset = offsetof(struct config, field), __VA_ARGS__},
#define TEXT(field, size, ...) OF_CONFIG(OPTION_TEXT, field, .bytes = size, __VA_ARGS__)
#define INT(field, ...) OF_CONFIG(OPTION_INT, field, __VA_ARGS__)
#define LONG(field, ...) OF_CONFIG(OPTION_LONG, field, __VA_ARGS__)
#define REAL(field, ...) OF_CONFIG(OPTION_REAL, field, __VA_ARGS__)
#define FLAG(field, ...) OF_CONFIG(OPTION_FLAG, field, __VA_ARGS__)
#define CHOICE(field, ...) OF_CONFIG(OPTION_CHOICE, field, __VA_ARGS__)
const struct option config_options[] = {
#include "options.def"
    {0},
};

int config_settle(struct config *config, const struct typed *typed, const struct config_source *source,
                  int flag, int code, struct error *error) {
    *config = typed->value;
    for (int i = 0; config_options[i].name; i++) {
        const struct option *row = &config_options[i];
        bool given;
        memcpy(&given, (const char *)typed + run_options[i].given, sizeof given);
        const char *text = given || !(row->flags & flag) ? NULL : source->text(source->self, row->name);
        char now[CONFIG_VALUE_BYTES];
        struct error why = {0};
        if (!text || option_is_absent(row)) continue; /* of another build */
        option_text(row, config, now, sizeof now);    /* a number that is not set reads as none */
        if (strcmp(text, now) != 0 &&
            option_set(config_options, config, source->name, row->name, text, &why) != OK)
            return error_set(error, code, "%s", why.words);
    }
    return OK;
}

static const char *recipe_text(const void *model, const char *name) {
    return model_recipe(model, name);
}

int config_begin(struct config *config, const struct typed *typed, struct error *error) {
    struct choice choice;
    RETURN_IF(plugin_choose(&choice, &model_kind, typed->value.model, error));
    const struct config_source recipe = {
        .name = choice.plugin->name, .text = recipe_text, .self = model_of(&choice)};
    return config_settle(config, typed, &recipe, OPTION_RECIPE, ERROR_INTERNAL, error);
}

int config_each(const struct config *config, int flag,
                int (*each)(void *argument, const struct option *row, const char *value), void *argument) {
    for (const struct option *row = config_options; row->name; row++) {
        char value[CONFIG_VALUE_BYTES];
        if (!(row->flags & flag)) continue;
        option_text(row, config, value, sizeof value);
        RETURN_IF(each(argument, row, value));
    }
    return OK;
}

static bool is_listed(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at++)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

struct unusual {
    struct text text;
    const char *without;
    struct config usual;
};

static int add_unusual(void *argument, const struct option *row, const char *value) {
    struct unusual *unusual = argument;
    char usual[CONFIG_VALUE_BYTES];
    option_text(row, &unusual->usual, usual, sizeof usual);
    if (!is_listed(unusual->without, row->name) && strcmp(value, usual) != 0)
        text_add(&unusual->text, " --%s=%s", row->name, value);
    return OK;
}

const char *config_unusual(const struct config *config, int flag, const char *without, char *out,
                           size_t bytes) {
    struct unusual unusual = {.text = text_into(out, bytes), .without = without};
    option_defaults(config_options, &unusual.usual);
    config_each(config, flag, add_unusual, &unusual);
    return out;
}

float config_clip(const struct config *config) {
    return config->clip > 0.0 ? fmaxf((float)config->clip, FLT_MIN) : 0.0f;
}

void config_choose_test(struct config *config, const struct typed *typed) {
    if (typed->given.test && !config->test && !typed->given.target_accuracy) config->target_accuracy = NAN;
    if (typed->given.target_accuracy && !typed->given.test) config->test = true;
}

int config_choose_batch(struct config *config, const struct typed *typed, struct error *error) {
    const struct config *value = &typed->value;
    if (typed->given.batch && typed->given.batch_total && value->batch_total > 0)
        return error_set(error, ERROR_USAGE,
                         "--batch=%d and --batch-total=%d: expected one of them, both say how many examples "
                         "a step takes",
                         value->batch, value->batch_total);
    if (typed->given.batch) config->batch_total = 0;
    return OK;
}

int config_part(const struct config *config, int workers) {
    const int parts = config->batch_total / config->microbatches / workers;
    return (parts > 0 ? parts : 1) * config->microbatches;
}

bool config_may_be_joined(const struct config *config) {
    return strcmp(config->workers, "all") != 0;
}

int config_check_microbatches(const struct config *config, struct error *error) {
    if (config->schedule_pipeline != 0 && config->microbatches == 1)
        return error_set(error, ERROR_USAGE,
                         "--schedule-pipeline: found --microbatches=1, expected 2 or more for the devices to "
                         "work at");
    if (config->batch_total % config->microbatches != 0)
        return error_set(error, ERROR_USAGE,
                         "--microbatches=%d: found --batch-total=%d, expected a multiple of %d",
                         config->microbatches, config->batch_total, config->microbatches);
    if (config->batch_total > 0 || config->batch % config->microbatches == 0) return OK;
    return error_set(error, ERROR_USAGE, "--microbatches=%d: found --batch=%d, expected a multiple of %d",
                     config->microbatches, config->batch, config->microbatches);
}

int config_trace(const struct config *config, long *first, long *every, struct error *error) {
    const char *at = config->trace;
    const long *seen = NULL;
    *first = *every = 0;
    while (*at) {
        long *value = strncmp(at, "first:", 6) == 0 ? first : strncmp(at, "every:", 6) == 0 ? every : NULL;
        char *end = NULL;
        if (value == seen) value = NULL; /* twice */
        seen = value;
        if (value) *value = strtol(at + 6, &end, 10);
        if (!value || end == at + 6 || *value < 0 || (*end != '\0' && (*end != ',' || end[1] == '\0')))
            return error_set(error, ERROR_USAGE,
                             "--trace=%s: expected first:N, every:N or both, as in first:200,every:50",
                             config->trace);
        at = *end == ',' ? end + 1 : end;
    }
    return OK;
}

/* What a simulated run computes does not depend on how many cores there are. */
static int config_threads(const struct config *config) {
    return config->threads == 0 && config->simulate[0] ? 1 : config->threads;
}

struct device_settings config_device_settings(const struct config *config) {
    return (struct device_settings){.reference_only = config->kernels == KERNELS_REFERENCE,
                                    .threads = config_threads(config),
                                    .precision = (enum precision)config->precision,
                                    .deterministic = config->deterministic,
                                    .hard = config->no_soft_placement,
                                    .without = config->without_kernel};
}
