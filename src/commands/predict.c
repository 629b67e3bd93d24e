/* trainer predict: the class of each row of a CSV file or of a picture, with its probability. */
#include <stdio.h>

#include "../base/memory.h"
#include "../config/config.h"
#include "../record/progress.h"
#include "../infer/features.h"
#include "command.h"

#if TRAINER_STB
#    define WHAT "PNG, JPEG, BMP and GIF pictures, and rows of a CSV file"
#    define ARGUMENTS "IMAGE|CSV..."
#    define FILES_TAKEN "PNG, JPEG, BMP or GIF picture, or a CSV file with a row of features an example"
#    define EXAMPLE                                                                                          \
        "# a picture of your own, with a network that was trained on pictures\n"                             \
        "trainer --dataset=mnist --out=runs/mnist\n"                                                         \
        "trainer predict --checkpoint=runs/mnist digit.png\n"
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

static const struct option rows[] = {
    OPTION_ROW(TEXT, "checkpoint", struct predict_settings, checkpoint, .value = "PATH",
               .help = "folder of a run, or a .safetensors file that it wrote; must be given"),
    OPTION_ROW(INT, "top", struct predict_settings, top, .fallback = "1", .least = 1, .most = 1000,
               .unit = "classes", .help = "how many classes to show, the most probable first"),
    OPTION_ROW(CHOICE, "kernels", struct predict_settings, kernels, .fallback = "auto",
               .choices = "auto|reference", .help = "reference: only the plain kernels, without libraries"),
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

/* Pictures wait until there are enough of them for a batch, or something else has its turn. */
struct predictor {
    struct restored restored;
    int top;
    bool named; /* a picture's line begins with its file's name */
    struct features waiting[EVALUATE_BATCH];
    const char *names[EVALUATE_BATCH]; /* borrowed */
    int count;
    struct progress progress;
};

/* names: [features->count] of pictures, or NULL. */
static int predict(struct predictor *predictor, const struct features *features, const char *const *names,
                   struct error *error) {
    struct restored *restored = &predictor->restored;
    const struct examples examples = features_examples(features, restored);
    float *probabilities = NULL;
    RETURN_IF(memory_array(&probabilities, (size_t)features->count * (size_t)restored->classes,
                           "probabilities", error));
    const int code =
        evaluator_predict(&restored->evaluator, &examples, restored->weights, probabilities, NULL, error);
    for (int i = 0; code == OK && i < features->count; i++) {
        if (names && predictor->named) {
            print_name(names[i]);
            printf(": ");
        }
        print_row(restored, &probabilities[(size_t)i * (size_t)restored->classes], predictor->top);
    }
    memory_free(probabilities);
    return code;
}

static int predict_waiting(struct predictor *predictor, struct error *error) {
    struct features together = {0};
    int code = OK;
    if (predictor->count > 0)
        code = features_join(&together, predictor->waiting, predictor->count, &predictor->restored, error);
    if (code == OK && predictor->count > 0) code = predict(predictor, &together, predictor->names, error);
    features_close(&together);
    for (int i = 0; i < predictor->count; i++) features_close(&predictor->waiting[i]);
    predictor->count = 0;
    return code;
}

static void say_reversed(struct predictor *predictor, const char *path) {
    const char *const ways[] = {"dark on light", "light on dark"};
    const struct light *trained = &predictor->restored.light;
    const int way = trained->whole > trained->border;
    progress_warn(&predictor->progress, "%s: %s, but the network was trained on pictures that are %s", path,
                  ways[!way], ways[way]);
}

static int take_file(struct predictor *predictor, const char *path, struct error *failure,
                     struct error *error) {
    struct features features;
    int code = features_read(&features, &predictor->restored, path, failure);
    if (code == OK && features.is_picture) {
        if (light_reversed(&features.light, &predictor->restored.light)) say_reversed(predictor, path);
        predictor->names[predictor->count] = path;
        predictor->waiting[predictor->count++] = features;
        return predictor->count == EVALUATE_BATCH ? predict_waiting(predictor, error) : OK;
    }
    const int before = predict_waiting(predictor, error);
    if (code == OK && before == OK) code = predict(predictor, &features, NULL, error);
    features_close(&features);
    return before == OK ? code : before;
}

/* What is wrong with one file does not keep the others from their turn; the last such word is the caller's.
 */
static int predict_files(struct predictor *predictor, const char *const *paths, int count,
                         struct error *error) {
    struct error failure = {0};
    progress_open(&predictor->progress, stderr, false);
    for (int i = 0; i < count; i++) {
        struct error own = {0};
        const int code = take_file(predictor, paths[i], &own, error);
        if (error->code != OK) return code;
        if (own.code != OK && own.code != ERROR_FILE && own.code != ERROR_USAGE)
            return error_set(error, own.code, "%s", own.words);
        if (own.code == OK) continue;
        if (failure.code != OK) progress_warn(&predictor->progress, "%s", failure.words);
        failure = own;
    }
    RETURN_IF(predict_waiting(predictor, error));
    return failure.code == OK ? OK : error_set(error, failure.code, "%s", failure.words);
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    const struct predict_settings *settings = settings_given;
    if (!settings->checkpoint[0]) return error_set(error, ERROR_USAGE, "predict: expected --checkpoint=DIR");
    if (argument_count == 0) return error_set(error, ERROR_USAGE, "predict: expected a " FILES_TAKEN);
    struct predictor *predictor = NULL;
    RETURN_IF(memory_array(&predictor, 1, "pictures", error));
    predictor->top = settings->top;
    predictor->named = argument_count > 1;
    int code = restored_open(&predictor->restored, settings->checkpoint,
                             settings->kernels == KERNELS_REFERENCE, error);
    if (code == OK) code = predict_files(predictor, arguments, argument_count, error);
    for (int i = 0; i < predictor->count; i++) features_close(&predictor->waiting[i]);
    restored_close(&predictor->restored);
    memory_free(predictor);
    return code;
}

const struct command command_predict = {
    .plugin = {.name = "predict",
               .help = "classify " WHAT,
               .options = rows,
               .settings_bytes = sizeof(struct predict_settings)},
    .arguments = ARGUMENTS,
    .examples = "trainer --dataset=iris --optimizer=adam:rate=0.02 --out=runs/iris\n"
                "printf '5.1,3.3,1.7,0.5\\n5.9,3.0,4.2,1.5\\n6.9,3.1,5.4,2.1\\n' > flowers.csv\n"
                "trainer predict --checkpoint=runs/iris --top=3 flowers.csv\n" EXAMPLE,
    .completes = "FILE",
    .run = run,
};
