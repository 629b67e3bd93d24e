/* trainer predict: the class of each row of a table or of a picture, with its probability; or its labels, or
 * its values. Where the table has them, too, also how many are right, or how far the values are missed. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../base/csv.h"
#include "../base/memory.h"
#include "../base/text.h"
#include "../config/config.h"
#include "../record/progress.h"
#include "../infer/array_rows.h"
#include "../infer/ensemble.h"
#include "../infer/figures.h"
#include "../infer/predictions.h"
#include "../infer/table_rows.h"
#include "command.h"

#if TRAINER_STB
#    define WHAT "PNG, JPEG, BMP and GIF pictures, and rows of a CSV file or NumPy array"
#    define ARGUMENTS "IMAGE|CSV|NPY..."
#    define FILES_TAKEN                                                                                      \
        "PNG, JPEG, BMP or GIF picture, or a CSV file, .npy or .npz with a row of features for each example"
#    define EXAMPLE                                                                                          \
        "# a picture of your own, with a network that was trained on pictures\n"                             \
        "trainer --dataset=mnist --out=runs/mnist\n"                                                         \
        "trainer predict --checkpoint=runs/mnist digit.png\n"
#else
#    define WHAT "rows of a CSV file or NumPy array"
#    define ARGUMENTS "CSV|NPY..."
#    define FILES_TAKEN "CSV file, .npy or .npz with a row of features for each example"
#    define EXAMPLE ""
#endif

struct predict_settings {
    char checkpoint[PATH_BYTES];
    int top, format, combine, kernels;
};

static const struct option rows[] = {
    OPTION_ROW(
        TEXT, "checkpoint", struct predict_settings, checkpoint, .value = "PATH",
        .help = "folder of a run or of an ensemble, or a .safetensors file that a run wrote; must be given"),
    OPTION_ROW(INT, "top", struct predict_settings, top, .fallback = "1", .least = 1, .most = 1000,
               .unit = "classes", .help = "how many classes to show, the most probable first"),
    OPTION_ROW(CHOICE, "format", struct predict_settings, format, .fallback = "text", .choices = "text|csv",
               .help = "a line of words for each example, or CSV: of a table its other columns, then the "
                       "prediction and the probability of each class"),
    OPTION_ROW(
        CHOICE, "combine", struct predict_settings, combine, .fallback = "mean", .choices = "mean|vote",
        .help = "of an ensemble: the mean of its members' probabilities, or the share of their votes; of "
                "values, the mean"),
    OPTION_ROW(CHOICE, "kernels", struct predict_settings, kernels, .fallback = "auto",
               .choices = "auto|reference", .help = "reference: only the plain kernels, without libraries"),
    {0},
};

#define FILE_COLUMN "file,"

/* Pictures wait until there are enough of them for a batch, or something else has its turn. */
struct predictor {
    struct ensemble ensemble;
    struct restored *restored; /* its first member, as which all prepare the files */
    enum ensemble_by by;
    struct predictions predictions;
    char *head;         /* of CSV, the columns before the prediction, as the first file has them; owned */
    const char *headed; /* the name of that file; borrowed */
    struct features waiting[EVALUATE_BATCH];
    const char *names[EVALUATE_BATCH]; /* borrowed */
    int count;
    struct progress progress;
};

/* *probabilities = [features->count][classes], owned by the caller. */
static int compute(struct predictor *predictor, const struct features *features, float **probabilities,
                   struct error *error) {
    const struct restored *restored = predictor->restored;
    const struct examples examples = features_examples(features, restored);
    RETURN_IF(memory_array(probabilities, (size_t)features->count * (size_t)restored->classes,
                           "probabilities", error));
    return ensemble_predict(&predictor->ensemble, &examples, predictor->by, *probabilities, NULL, error);
}

/* What comes before the prediction of CSV is the same for all files. `head`: those columns, each with its
 * comma. */
static int agree_on_columns(struct predictor *predictor, const char *path, const char *head,
                            struct error *error) {
    char found[CSV_SHOWN_BYTES], expected[CSV_SHOWN_BYTES];
    if (predictor->predictions.format != PREDICTIONS_CSV) return OK;
    if (!predictor->head) {
        predictor->headed = path;
        return memory_text(&predictor->head, head, error);
    }
    if (strcmp(predictor->head, head) == 0) return OK;
    return error_set(error, ERROR_USAGE,
                     "%s: found the columns \"%s\" before the prediction, expected \"%s\" as of %s, with "
                     "--format=csv",
                     path, csv_shown(head, found), csv_shown(predictor->head, expected), predictor->headed);
}

/* --- pictures --- */

static int print_pictures(struct predictor *predictor, const struct features *features, struct error *error) {
    struct predictions *predictions = &predictor->predictions;
    float *probabilities = NULL;
    int code = compute(predictor, features, &probabilities, error);
    if (code == OK) predictions_begin(predictions, FILE_COLUMN);
    for (int i = 0; code == OK && i < features->count; i++) {
        struct text file = text_growing(error);
        csv_add(&file, predictor->names[i]);
        code = text_end(&file);
        if (code == OK)
            predictions_add(predictions, predictor->names[i], file.bytes,
                            &probabilities[(size_t)i * (size_t)predictor->restored->classes]);
        memory_free(file.bytes);
    }
    memory_free(probabilities);
    return code;
}

static int predict_waiting(struct predictor *predictor, struct error *error) {
    struct features together = {0};
    int code = OK;
    if (predictor->count > 0)
        code = features_join(&together, predictor->waiting, predictor->count, predictor->restored, error);
    if (code == OK && predictor->count > 0) code = print_pictures(predictor, &together, error);
    features_close(&together);
    for (int i = 0; i < predictor->count; i++) features_close(&predictor->waiting[i]);
    predictor->count = 0;
    return code;
}

static void say_reversed(struct predictor *predictor, const char *path) {
    const char *const ways[] = {"dark on light", "light on dark"};
    const struct light *trained = &predictor->restored->light;
    const int way = trained->whole > trained->border;
    progress_warn(&predictor->progress, "%s: %s, but the network was trained on pictures that are %s", path,
                  ways[!way], ways[way]);
}

static int take_picture(struct predictor *predictor, struct file_reader *file, const char *path,
                        struct error *failure, struct error *error) {
    struct features features;
    int code = features_read(&features, predictor->restored, file, failure);
    if (code == OK) code = agree_on_columns(predictor, path, FILE_COLUMN, failure);
    if (code != OK) features_close(&features);
    if (code != OK) return code;
    if (light_reversed(&features.light, &predictor->restored->light)) say_reversed(predictor, path);
    predictor->names[predictor->count] = path;
    predictor->waiting[predictor->count++] = features;
    return predictor->count == EVALUATE_BATCH ? predict_waiting(predictor, error) : OK;
}

static void say_scaled(struct predictor *predictor, const char *name) {
    progress_warn(&predictor->progress,
                  "%s: numbers from 0 to 1, but the network was trained on pixels from 0 to %.0f", name,
                  round(1.0 / (double)predictor->restored->scale));
}

/* --- tables --- */

struct judged {
    long rows, right;      /* that have a label; whose label was predicted */
    struct figures values; /* of the rows that have all their values, where these are predicted */
};

/* Row i of those in hand, of which the network says `outputs`. */
static void judge_values(struct judged *judged, const struct table_rows *table, int i, const float *outputs) {
    const struct examples wanted = {.targets = table->targets};
    const int count = judged->values.outputs;
    for (int o = 0; o < count; o++)
        if (isnan(table->targets[(size_t)i * (size_t)count + (size_t)o])) return;
    figures_add(&judged->values, &wanted, i, 1, outputs, NULL);
}

static int print_rows(struct predictor *predictor, const struct table_rows *table,
                      const struct features *features, struct judged *judged, struct error *error) {
    float *probabilities = NULL;
    const char *carried = table->carried.bytes, *name = table->reader.rows.name;
    const int code = compute(predictor, features, &probabilities, error);
    if (code == OK) predictions_begin(&predictor->predictions, table->head);
    for (int i = 0; code == OK && i < features->count; i++) {
        const float *outputs = &probabilities[(size_t)i * (size_t)predictor->restored->classes];
        const int label = table->labels[i],
                  said = predictions_add(&predictor->predictions, name, carried, outputs);
        if (table->targets) judge_values(judged, table, i, outputs);
        judged->rows += label != TABLE_LABEL_NONE;
        judged->right += label == said;
        if (carried) carried += strlen(carried) + 1;
    }
    memory_free(probabilities);
    return code;
}

/* Where no label is a class, all being wrong would say nothing of the network. */
static void say_strangers(struct predictor *predictor, const struct table_rows *table) {
    char first[CSV_SHOWN_BYTES], last[CSV_SHOWN_BYTES];
    const struct restored *restored = predictor->restored;
    progress_warn(&predictor->progress,
                  "%s: no accuracy, as no label is a class of the network: found \"%s\", expected one of %d, "
                  "\"%s\" to \"%s\"",
                  table->reader.rows.name, table->stranger, restored->classes,
                  csv_shown(restored->class_names[0], first),
                  csv_shown(restored->class_names[restored->classes - 1], last));
}

/* Where the predictions are CSV, this line is no part of it. */
static void say_judged(struct predictor *predictor, const char *name, const char *words) {
    char line[PATH_BYTES + 160];
    const bool named = predictor->predictions.named;
    snprintf(line, sizeof line, "%.*s%s%s", named ? PATH_BYTES : 0, name, named ? ": " : "", words);
    if (predictor->predictions.format == PREDICTIONS_CSV)
        progress_say(&predictor->progress, "%s", line);
    else
        puts(line);
}

static int say_values(struct predictor *predictor, const char *name, const struct figures *figures,
                      struct error *error) {
    static const enum metric said[] = {METRIC_RMSE, METRIC_MAE, METRIC_R2};
    double value[METRICS];
    char words[160], figure[METRIC_BYTES];
    struct text text = text_into(words, sizeof words);
    if (figures->examples == 0) return OK;
    RETURN_IF(figures_end(figures, &(struct examples){0}, value, error));
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        text_item(&text, ", ", "%s: %s", metric_rows[said[i]].title,
                  metric_plain(said[i], value[said[i]], figure));
    text_add(&text, " (%d row%s)", figures->examples, figures->examples == 1 ? "" : "s");
    say_judged(predictor, name, words);
    return OK;
}

/* What the predictions alone do not show. */
static void conclude(struct predictor *predictor, const struct table_rows *table,
                     const struct judged *judged) {
    const char *name = table->reader.rows.name;
    char words[80];
    if (table_rows_scaled(table)) say_scaled(predictor, name);
    if (table->unseen > 0)
        progress_warn(&predictor->progress, "%s: values that training did not have count as none: %ld cell%s",
                      name, table->unseen, table->unseen == 1 ? "" : "s");
    if (judged->rows > 0 && table->unknown == judged->rows) {
        say_strangers(predictor, table);
        return;
    }
    if (table->unknown > 0)
        progress_warn(&predictor->progress,
                      "%s: labels that are not a class of the network count as wrong: %ld", name,
                      table->unknown);
    if (judged->rows == 0) return;
    snprintf(words, sizeof words, "Accuracy: %.4f (%ld of %ld)", (double)judged->right / (double)judged->rows,
             judged->right, judged->rows);
    say_judged(predictor, name, words);
}

/* The next rows; *more: there were some. */
static int take_rows(struct predictor *predictor, struct table_rows *table, struct judged *judged, bool *more,
                     struct error *error) {
    struct features features;
    int code = table_rows_next(table, &features, error);
    *more = features.count > 0;
    if (code == OK && *more) code = print_rows(predictor, table, &features, judged, error);
    features_close(&features);
    return code;
}

static int take_table(struct predictor *predictor, struct file_reader *file, struct error *error) {
    const bool csv = predictor->predictions.format == PREDICTIONS_CSV;
    struct table_rows table = {0};
    struct judged judged = {0};
    bool more = true;
    int code = table_rows_open(&table, predictor->restored, file, csv, predictor->predictions.named, error);
    if (code == OK && csv) code = agree_on_columns(predictor, file->path, table.head, error);
    if (code == OK && table.targets)
        code = figures_open(&judged.values, TASK_VALUES, predictor->restored->classes, (struct units){0}, 0,
                            error);
    while (code == OK && more) code = take_rows(predictor, &table, &judged, &more, error);
    if (code == OK) predictions_begin(&predictor->predictions, table.head); /* of no rows, too */
    if (code == OK) conclude(predictor, &table, &judged);
    if (code == OK) code = say_values(predictor, table.reader.rows.name, &judged.values, error);
    figures_close(&judged.values);
    table_rows_close(&table);
    return code;
}

/* --- arrays --- */

static int print_array(struct predictor *predictor, const char *path, const struct features *features,
                       const char *head, struct error *error) {
    struct text file = text_growing(error);
    float *probabilities = NULL;
    int code = compute(predictor, features, &probabilities, error);
    if (predictor->predictions.named) csv_add(&file, path);
    text_add_bytes(&file, "", 1);
    if (code == OK) code = text_end(&file);
    if (code == OK) predictions_begin(&predictor->predictions, head);
    for (int i = 0; code == OK && i < features->count; i++)
        predictions_add(&predictor->predictions, path, file.bytes,
                        &probabilities[(size_t)i * (size_t)predictor->restored->classes]);
    memory_free(file.bytes);
    memory_free(probabilities);
    return code;
}

static int take_array(struct predictor *predictor, struct file_reader *file, struct error *error) {
    const char *head = predictor->predictions.named ? FILE_COLUMN : "";
    struct array_rows examples = {0};
    bool more = true;
    int code = array_rows_open(&examples, predictor->restored, file, error);
    if (code == OK) code = agree_on_columns(predictor, file->path, head, error);
    while (code == OK && more) {
        struct features features;
        code = array_rows_next(&examples, &features, error);
        more = features.count > 0;
        if (code == OK && more) code = print_array(predictor, file->path, &features, head, error);
        features_close(&features);
    }
    if (code == OK && array_rows_scaled(&examples)) say_scaled(predictor, file->path);
    array_rows_close(&examples);
    return code;
}

/* What is wrong with the file itself is a failure, all else an error. */
static int take_file(struct predictor *predictor, const char *path, struct error *failure,
                     struct error *error) {
    struct file_reader file;
    const char *front = "";
    size_t bytes = 0;
    bool is_picture = false, is_array = false;
    int code = strcmp(path, "-") == 0 ? file_reader_standard_input(&file, SIZE_MAX, failure)
                                      : file_reader_open(&file, path, SIZE_MAX, failure);
    if (code == OK) code = file_reader_look(&file, &front, &bytes, failure);
    if (code == OK) is_array = array_rows_is(path, front, bytes);
    if (code == OK && !is_array) code = features_is_picture(&file, &is_picture, failure);
    if (code == OK && is_picture) {
        code = take_picture(predictor, &file, path, failure, error);
    } else {
        const int before = predict_waiting(predictor, error);
        if (code == OK && before == OK)
            code = (is_array ? take_array : take_table)(predictor, &file, failure);
        if (before != OK) code = before;
    }
    file_reader_close(&file);
    return code;
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
    if (!settings->checkpoint[0])
        return command_needs_checkpoint("predict", arguments, argument_count, error);
    if (argument_count == 0) return error_set(error, ERROR_USAGE, "predict: expected a " FILES_TAKEN);
    struct predictor *predictor = NULL;
    RETURN_IF(memory_array(&predictor, 1, "pictures", error));
    predictor->by = (enum ensemble_by)settings->combine;
    predictor->predictions = (struct predictions){.format = (enum predictions_format)settings->format,
                                                  .top = settings->top,
                                                  .named = argument_count > 1};
    int code = ensemble_open(&predictor->ensemble, settings->checkpoint,
                             settings->kernels == KERNELS_REFERENCE, error);
    predictor->predictions.restored = predictor->restored = predictor->ensemble.members;
    if (code == OK && predictor->by == ENSEMBLE_VOTE && !predictor->ensemble.listed)
        progress_warn_of("--combine=vote does nothing for a single network");
    if (code == OK) code = predict_files(predictor, arguments, argument_count, error);
    for (int i = 0; i < predictor->count; i++) features_close(&predictor->waiting[i]);
    ensemble_close(&predictor->ensemble);
    memory_free(predictor->head);
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
