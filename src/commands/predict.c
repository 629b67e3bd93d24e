/* trainer predict: the class of each row of a CSV file or of a picture, with its probability. */
#include <stdio.h>

#include "../base/memory.h"
#include "../train/features.h"
#include "command.h"

#if TRAINER_STB
#    define WHAT "PNG and JPEG pictures, and rows of a CSV file"
#    define ARGUMENTS "IMAGE|CSV..."
#    define FILES_TAKEN "PNG or JPEG picture, or a CSV file with a row of features an example"
#    define EXAMPLE "  trainer predict --checkpoint=runs/cifar10 --top=3 cat.png dog.jpg\n"
#else
#    define WHAT "rows of a CSV file"
#    define ARGUMENTS "CSV..."
#    define FILES_TAKEN "CSV file with a row of features an example"
#    define EXAMPLE ""
#endif

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

/* A name can hold anything; a line of results is one line. */
static void print_name(const char *name) {
    for (const char *c = name; *c; c++) putchar((unsigned char)*c < ' ' || *c == 127 ? '?' : *c);
}

static void print_row(const struct restored *restored, float *probabilities, int top) {
    for (int k = 0; k < top && k < restored->classes; k++) {
        int best = 0;
        for (int c = 1; c < restored->classes; c++)
            if (probabilities[c] > probabilities[best]) best = c;
        printf(k == 0 ? "Prediction is \"" : ", \"");
        print_name(restored->class_names[best]);
        printf("\" (%.1f%%)", 100.0 * (double)probabilities[best]);
        probabilities[best] = -1.0f;
    }
    putchar('\n');
}

/* named: a picture's line begins with its file's name. */
static int predict_file(struct restored *restored, const char *path, int top, bool named,
                        struct error *error) {
    struct features features;
    void *block = NULL;
    int code = features_read(&features, restored, path, error);
    if (code == OK)
        code = memory_zeroed(&block, (size_t)features.count * (size_t)restored->classes, sizeof(float),
                             "probabilities", error);
    float *probabilities = block;
    if (code == OK) {
        const struct examples examples = features_examples(&features, restored);
        code = evaluator_predict(&restored->evaluator, &examples, restored->weights, probabilities, error);
    }
    for (int i = 0; code == OK && i < features.count; i++) {
        if (named && features.is_picture) {
            print_name(path);
            printf(": ");
        }
        print_row(restored, &probabilities[(size_t)i * (size_t)restored->classes], top);
    }
    features_close(&features);
    memory_free(probabilities);
    return code;
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    const struct predict_settings *settings = settings_given;
    struct restored restored = {0};
    if (!settings->checkpoint[0]) return error_set(error, ERROR_USAGE, "predict: expected --checkpoint=DIR");
    if (argument_count == 0) return error_set(error, ERROR_USAGE, "predict: expected a " FILES_TAKEN);
    int code = restored_open(&restored, settings->checkpoint, settings->kernels == 1, error);
    for (int i = 0; i < argument_count && code == OK; i++)
        code = predict_file(&restored, arguments[i], settings->top, argument_count > 1, error);
    restored_close(&restored);
    return code;
}

const struct command command_predict = {
    .plugin = {.name = "predict",
               .help = "class and probability for " WHAT,
               .options = rows,
               .settings_bytes = sizeof(struct predict_settings)},
    .arguments = ARGUMENTS,
    .examples = "  printf '5.1,3.3,1.7,0.5\\n5.9,3.0,4.2,1.5\\n6.9,3.1,5.4,2.1\\n' > flowers.csv\n"
                "  trainer predict --checkpoint=runs/iris flowers.csv\n" EXAMPLE,
    .run = run,
};
