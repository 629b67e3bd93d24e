/* trainer predict: the class of each row of a CSV file, with its probability. */
#include <stdio.h>

#include "../base/memory.h"
#include "../data/csv_reader.h"
#include "../data/standardize.h"
#include "../train/restore.h"
#include "command.h"

struct predict_settings {
    char checkpoint[PATH_BYTES];
    int top, kernels;
};

#define AT(field) .offset = offsetof(struct predict_settings, field)

static const struct option rows[] = {
    {.name = "checkpoint",
     AT(checkpoint),
     .type = OPTION_TEXT,
     .bytes = PATH_BYTES,
     .help = "folder of a run, or a .safetensors file that it wrote"},
    {.name = "top",
     AT(top),
     .type = OPTION_INT,
     .fallback = "1",
     .least = 1,
     .most = 1000,
     .unit = "classes",
     .help = "show the most probable N"},
    {.name = "kernels",
     AT(kernels),
     .type = OPTION_CHOICE,
     .fallback = "auto",
     .choices = "auto|reference",
     .help = "reference: the plain kernels only"},
    {0},
};

/* What was done to the features in training is done to these. */
static void prepare(const struct restored *restored, float *features, int count) {
    const size_t numbers = (size_t)count * (size_t)restored->features;
    for (size_t i = 0; i < numbers; i++) features[i] *= restored->scale;
    if (restored->mean && restored->deviation)
        standardize_apply(features, count, restored->features, restored->mean, restored->deviation);
}

static void print_row(const struct restored *restored, float *probabilities, int top) {
    for (int k = 0; k < top && k < restored->classes; k++) {
        int best = 0;
        for (int c = 1; c < restored->classes; c++)
            if (probabilities[c] > probabilities[best]) best = c;
        printf(k == 0 ? "Prediction is \"%s\" (%.1f%%)" : ", \"%s\" (%.1f%%)", restored->class_names[best],
               100.0 * (double)probabilities[best]);
        probabilities[best] = -1.0f;
    }
    putchar('\n');
}

static int predict_file(struct restored *restored, const char *path, int top, struct error *error) {
    float *features = NULL, *probabilities = NULL;
    void *block = NULL;
    int count = 0;
    int code = csv_read_features(path, restored->features, (const char *const *)restored->feature_names,
                                 &features, &count, error);
    if (code == OK)
        code = memory_zeroed(&block, (size_t)count * (size_t)restored->classes, sizeof(float),
                             "probabilities", error);
    probabilities = block;
    if (code == OK) {
        prepare(restored, features, count);
        const struct examples examples = {
            .count = count, .features = restored->features, .floats = features, .scale = 1.0f};
        code = evaluator_predict(&restored->evaluator, &examples, restored->weights, probabilities, error);
    }
    for (int i = 0; code == OK && i < count; i++)
        print_row(restored, &probabilities[(size_t)i * (size_t)restored->classes], top);
    memory_free(features);
    memory_free(probabilities);
    return code;
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    const struct predict_settings *settings = settings_given;
    struct restored restored = {0};
    if (!settings->checkpoint[0]) return error_set(error, ERROR_USAGE, "predict: expected --checkpoint=DIR");
    if (argument_count == 0)
        return error_set(error, ERROR_USAGE,
                         "predict: expected a CSV file with a row of features an example");
    int code = restored_open(&restored, settings->checkpoint, settings->kernels == 1, error);
    for (int i = 0; i < argument_count && code == OK; i++)
        code = predict_file(&restored, arguments[i], settings->top, error);
    restored_close(&restored);
    return code;
}

const struct command command_predict = {
    .plugin = {.name = "predict",
               .help = "class and probability for rows of a CSV file",
               .options = rows,
               .settings_bytes = sizeof(struct predict_settings)},
    .arguments = "CSV...",
    .examples = "  printf '5.1,3.3,1.7,0.5\\n5.9,3.0,4.2,1.5\\n6.9,3.1,5.4,2.1\\n' > flowers.csv\n"
                "  trainer predict --checkpoint=runs/iris flowers.csv\n",
    .run = run,
};
