/* Texts of a checkpoint, made and read. What is read may be anything: settings pass the checks of their rows
 * (config_settle), what was counted passes those of the rows below, before anything is counted from it. */
#include "resume.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../data/augment.h"
#include "../data/light.h"
#include "run.h"

static int add_text(struct resume_texts *texts, const char *name, const char *text, struct error *error) {
    if (texts->count >= RESUME_TEXTS)
        return error_set(error, ERROR_INTERNAL, "checkpoint: more than %d texts", RESUME_TEXTS);
    RETURN_IF(memory_text(&texts->memory[texts->count], text, error));
    texts->entries[texts->count] = (struct text_entry){.name = name, .text = texts->memory[texts->count]};
    texts->count++;
    return OK;
}

__attribute__((format(printf, 4, 5))) static int add_format(struct resume_texts *texts, struct error *error,
                                                            const char *name, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return add_text(texts, name, text, error);
}

enum { RESUME_AUGMENT_BYTES = 128 };

/* A list that was put together, which is freed. */
static int add_list(struct resume_texts *texts, const char *name, struct text *list, struct error *error) {
    int code = text_end(list);
    if (code == OK) code = add_text(texts, name, list->bytes ? list->bytes : "", error);
    memory_free(list->bytes);
    return code;
}

static int add_names(struct resume_texts *texts, const char *name, char *const *names, int count,
                     struct error *error) {
    struct text list = text_growing(error);
    for (int i = 0; i < count; i++) text_add(&list, "%s%s", i > 0 ? "\t" : "", names[i]);
    return add_list(texts, name, &list, error);
}

static int add_reals(struct resume_texts *texts, const char *name, const float *values, int count,
                     struct error *error) {
    struct text list = text_growing(error);
    for (int i = 0; i < count; i++) text_item(&list, ",", "%.9g", (double)values[i]);
    return add_list(texts, name, &list, error);
}

static int add_longs(struct resume_texts *texts, const char *name, const long *values, int count,
                     struct error *error) {
    struct text list = text_growing(error);
    for (int i = 0; values && i < count; i++) text_item(&list, ",", "%ld", values[i]);
    return add_list(texts, name, &list, error);
}

/* What depends on the clock. */
static int add_times(struct resume_texts *texts, const struct standing *standing, struct error *error) {
    if (isnan(standing->train_seconds)) return OK;
    RETURN_IF(add_format(texts, error, "train_seconds", "%.6f", standing->train_seconds));
    if (!isnan(standing->target_s)) {
        RETURN_IF(add_format(texts, error, "target_accuracy", "%.17g", standing->target_accuracy));
        RETURN_IF(add_format(texts, error, "target_s", "%.6f", standing->target_s));
    }
    const struct begun_epoch *begun = &standing->begun;
    if (begun->batches > 0.0 && begun->examples > 0 && isfinite(begun->loss_sum)) {
        RETURN_IF(add_format(texts, error, "epoch_loss", "%.17g", begun->loss_sum / begun->batches));
        RETURN_IF(add_format(texts, error, "epoch_batches", "%.17g", begun->batches));
        RETURN_IF(add_format(texts, error, "epoch_examples", "%lld", begun->examples));
        RETURN_IF(add_format(texts, error, "epoch_seconds", "%.6f", begun->seconds));
    }
    return add_longs(texts, "worker_steps", standing->steps_of, standing->steps_count, error);
}

/* Which of several strategies it is at, and how its updates compare with the schedule. */
static int add_phases(struct resume_texts *texts, const struct standing *standing, struct error *error) {
    struct text list = text_growing(error);
    for (int p = 0; p < standing->phases_over; p++) text_item(&list, ",", "%d", standing->phase_ends[p]);
    RETURN_IF(add_list(texts, "phase_ends", &list, error));
    if (standing->strategies) RETURN_IF(add_text(texts, "strategies", standing->strategies, error));
    if (!standing->strategy) return OK;
    RETURN_IF(add_text(texts, "strategy_now", standing->strategy, error));
    return add_format(texts, error, "schedule_ahead", "%ld", standing->schedule_ahead);
}

static int add_dataset(struct resume_texts *texts, const struct dataset *dataset, struct error *error) {
    struct text list = text_growing(error);
    for (int i = 0; i < dataset->shape.rank; i++) text_item(&list, ",", "%d", dataset->shape.dims[i]);
    RETURN_IF(add_list(texts, "shape", &list, error));
    RETURN_IF(add_format(texts, error, "train_examples", "%d", dataset->train.count));
    if (dataset->task != TASK_CLASSES) RETURN_IF(add_text(texts, "task", task_name(dataset->task), error));
    RETURN_IF(add_format(texts, error, "classes", "%d", dataset->classes));
    RETURN_IF(add_names(texts, "class_names", dataset->class_names, dataset->classes, error));
    RETURN_IF(
        add_format(texts, error, "scale", "%.9g", dataset->train.bytes ? (double)dataset->train.scale : 1.0));
    if (dataset->test.augment.height > 0) {
        char text[RESUME_AUGMENT_BYTES];
        augment_text(&dataset->test.augment, text, sizeof text);
        RETURN_IF(add_text(texts, "image", text, error));
    }
    if (dataset->train.augment.height > 0) {
        char text[RESUME_AUGMENT_BYTES];
        augment_training_text(&dataset->train.augment, text, sizeof text);
        RETURN_IF(add_text(texts, "augment", text, error));
    }
    if (dataset->fit != PICTURE_NONE) RETURN_IF(add_text(texts, "fit", picture_fits[dataset->fit], error));
    if (dataset->feature_names)
        RETURN_IF(add_names(texts, "feature_names", dataset->feature_names, dataset->train.features, error));
    if (dataset->columns) RETURN_IF(add_text(texts, "columns", dataset->columns, error));
    if (dataset->units.deviation) {
        RETURN_IF(add_reals(texts, "target_mean", dataset->units.mean, dataset->classes, error));
        RETURN_IF(add_reals(texts, "target_deviation", dataset->units.deviation, dataset->classes, error));
    }
    struct light light;
    RETURN_IF(light_of_dataset(&light, dataset, error));
    if (!isnan(light.whole)) {
        RETURN_IF(add_format(texts, error, "light", "%.6f", light.whole));
        RETURN_IF(add_format(texts, error, "light_border", "%.6f", light.border));
    }
    if (!dataset->mean) return OK;
    RETURN_IF(add_reals(texts, "mean", dataset->mean, dataset->train.features, error));
    return add_reals(texts, "deviation", dataset->deviation, dataset->train.features, error);
}

/* Of the metric that the run is judged by. */
static const struct score_names {
    const char *test, *best, *best_test;
} score_names[METRICS] = {
    [METRIC_ACCURACY] = {"test_accuracy", "best_accuracy", "best_test_accuracy"},
    [METRIC_RMSE] = {"test_rmse", "best_rmse", "best_test_rmse"},
};

struct saving {
    struct resume_texts *texts;
    struct error *error;
};

static int add_setting(void *argument, const struct option *row, const char *value) {
    struct saving *saving = argument;
    return add_text(saving->texts, row->name, value, saving->error);
}

int resume_texts_make(struct resume_texts *texts, const struct config *config, int flags,
                      const struct dataset *dataset, const struct standing *standing, struct error *error) {
    struct saving saving = {texts, error};
    const struct score_names *names = &score_names[metric_of(dataset->task)];
    *texts = (struct resume_texts){0};
    RETURN_IF(add_text(texts, "program", "trainer " TRAINER_VERSION, error));
    RETURN_IF(config_each(config, flags, add_setting, &saving));
    if (config->simulate[0]) RETURN_IF(add_text(texts, "simulate", config->simulate, error));
    if (config->slow[0] && flags & OPTION_RESUMED) RETURN_IF(add_text(texts, "slow", config->slow, error));
    RETURN_IF(add_format(texts, error, "workers", "%d", standing->workers));
    RETURN_IF(add_format(texts, error, "position", "%ld", standing->position));
    if (standing->place >= 0) RETURN_IF(add_format(texts, error, "place", "%ld", standing->place));
    RETURN_IF(add_format(texts, error, "epochs_done", "%.17g", standing->epochs_done));
    RETURN_IF(add_format(texts, error, "final_cost", "%.9g", standing->final_cost));
    RETURN_IF(add_format(texts, error, "version", "%ld", standing->version));
    if (standing->updates != standing->version)
        RETURN_IF(add_format(texts, error, "updates", "%ld", standing->updates));
    RETURN_IF(add_format(texts, error, "examples", "%lld", standing->examples));
    RETURN_IF(add_format(texts, error, "steps", "%ld", standing->steps));
    if (!isnan(standing->test_score))
        RETURN_IF(add_format(texts, error, names->test, "%.9g", standing->test_score));
    if (standing->best.epoch > 0) {
        RETURN_IF(add_format(texts, error, "best_epoch", "%d", standing->best.epoch));
        RETURN_IF(add_format(texts, error, names->best, "%.17g", standing->best.score));
        RETURN_IF(add_format(texts, error, "best_loss", "%.17g", standing->best.loss));
        if (!isnan(standing->best.test_score))
            RETURN_IF(add_format(texts, error, names->best_test, "%.9g", standing->best.test_score));
    }
    RETURN_IF(add_phases(texts, standing, error));
    RETURN_IF(add_times(texts, standing, error));
    if (standing->redone_updates > 0)
        RETURN_IF(add_format(texts, error, "redone_updates", "%ld", standing->redone_updates));
    RETURN_IF(add_longs(texts, "own_batches", standing->own, standing->workers, error));
    return add_dataset(texts, dataset, error);
}

void resume_texts_free(struct resume_texts *texts) {
    for (int i = 0; i < RESUME_TEXTS; i++) memory_free(texts->memory[i]);
    *texts = (struct resume_texts){0};
}

/* --- what was counted --- */

/* Batches in all, of a million examples each at most: their examples still are a long. An epoch counts 2^31
 * examples at most, for each of the workers. */
#define BATCHES_MOST 1e12
#define EPOCHS_MOST 2e6
#define EXAMPLES_MOST 1e18
#define SECONDS_MOST 1e9

struct counted {
    long position, place, version, updates, steps, examples;
    int workers;
    double epochs_done, final_cost, train_seconds, target_accuracy, target_s;
    double epoch_loss, epoch_batches, epoch_seconds;
    long epoch_examples;
    double test_accuracy, best_accuracy, best_test_accuracy, test_rmse, best_rmse, best_test_rmse, best_loss;
    int best_epoch;
    long schedule_ahead, redone_updates, train_examples;
};

static const struct option counted_rows[] = {
    OPTION_ROW(LONG, "position", struct counted, position, .most = BATCHES_MOST, .unit = "batches"),
    OPTION_ROW(LONG, "place", struct counted, place, .most = EXAMPLES_MOST, .unit = "examples"),
    OPTION_ROW(LONG, "version", struct counted, version, .most = BATCHES_MOST, .unit = "updates"),
    OPTION_ROW(LONG, "updates", struct counted, updates, .most = BATCHES_MOST, .unit = "updates"),
    OPTION_ROW(LONG, "steps", struct counted, steps, .most = BATCHES_MOST, .unit = "steps"),
    OPTION_ROW(LONG, "examples", struct counted, examples, .most = EXAMPLES_MOST, .unit = "examples"),
    OPTION_ROW(LONG, "train_examples", struct counted, train_examples, .least = 1, .most = EXAMPLES_MOST,
               .unit = "examples"),
    OPTION_ROW(INT, "workers", struct counted, workers, .least = 1, .most = 1e6, .unit = "workers"),
    OPTION_ROW(REAL, "epochs_done", struct counted, epochs_done, .most = EPOCHS_MOST, .unit = "epochs"),
    OPTION_ROW(REAL, "final_cost", struct counted, final_cost, .least = -1e300, .most = 1e300,
               .help = "of the last steps"),
    OPTION_ROW(REAL, "train_seconds", struct counted, train_seconds, .most = SECONDS_MOST, .unit = "s"),
    OPTION_ROW(REAL, "target_accuracy", struct counted, target_accuracy, .most = 1),
    OPTION_ROW(REAL, "target_s", struct counted, target_s, .most = SECONDS_MOST, .unit = "s"),
    OPTION_ROW(REAL, "epoch_loss", struct counted, epoch_loss, .most = 1e300),
    OPTION_ROW(REAL, "epoch_batches", struct counted, epoch_batches, .most = BATCHES_MOST, .unit = "batches"),
    OPTION_ROW(LONG, "epoch_examples", struct counted, epoch_examples, .most = EXAMPLES_MOST,
               .unit = "examples"),
    OPTION_ROW(REAL, "epoch_seconds", struct counted, epoch_seconds, .most = SECONDS_MOST, .unit = "s"),
    OPTION_ROW(LONG, "schedule_ahead", struct counted, schedule_ahead, .least = -BATCHES_MOST,
               .most = BATCHES_MOST, .unit = "updates"),
    OPTION_ROW(LONG, "redone_updates", struct counted, redone_updates, .most = BATCHES_MOST,
               .unit = "updates"),
    OPTION_ROW(REAL, "test_accuracy", struct counted, test_accuracy, .most = 1),
    OPTION_ROW(INT, "best_epoch", struct counted, best_epoch, .least = 1, .most = EPOCHS_MOST),
    OPTION_ROW(REAL, "best_accuracy", struct counted, best_accuracy, .most = 1),
    OPTION_ROW(REAL, "best_loss", struct counted, best_loss, .most = 1e300),
    OPTION_ROW(REAL, "best_test_accuracy", struct counted, best_test_accuracy, .most = 1),
    OPTION_ROW(REAL, "test_rmse", struct counted, test_rmse, .most = 1e300),
    OPTION_ROW(REAL, "best_rmse", struct counted, best_rmse, .most = 1e300),
    OPTION_ROW(REAL, "best_test_rmse", struct counted, best_test_rmse, .most = 1e300),
    {0},
};

/* "19,16": of each worker, the batches that it has taken of its own, or its steps. */
static int check_list(const struct safetensors *checkpoint, const char *name, const char *path,
                      struct error *error) {
    const char *const text = safetensors_text(checkpoint, name), *at = text;
    double sum = 0;
    bool good = true, more = text && *text;
    while (good && more) {
        char *end = NULL;
        const bool digit = *at >= '0' && *at <= '9';
        sum += (double)strtol(at, &end, 10);
        good = digit && sum <= BATCHES_MOST && (*end == ',' || *end == '\0');
        more = *end == ',';
        at = end + 1;
    }
    if (good) return OK;
    return error_set(error, ERROR_FILE,
                     "%s: %s=%.100s: expected whole numbers joined by ',', 0 or more, at most %.0f together",
                     path, name, text, BATCHES_MOST);
}

int resume_check(const struct safetensors *checkpoint, const char *path, struct error *error) {
    struct counted counted = {0};
    for (const struct option *row = counted_rows; row->name; row++) {
        const char *text = safetensors_text(checkpoint, row->name);
        struct error why = {0};
        /* A run without a step had no cost. */
        if (!text || (strcmp(row->name, "final_cost") == 0 && strcmp(text + (*text == '-'), "nan") == 0))
            continue;
        if (option_set(counted_rows, &counted, path, row->name, text, &why) != OK)
            return error_set(error, ERROR_FILE, "%s", why.words);
    }
    RETURN_IF(check_list(checkpoint, "phase_ends", path, error));
    RETURN_IF(check_list(checkpoint, "worker_steps", path, error));
    return check_list(checkpoint, "own_batches", path, error);
}

int resume_check_data(const struct safetensors *checkpoint, const char *path, struct error *error) {
    const char *dataset = safetensors_text(checkpoint, "dataset");
    if (!dataset || strcmp(dataset, EMBEDDED_DATASET) != 0) return OK;
    return error_set(error, ERROR_FILE,
                     "%s: found a run on data of another program, which alone can go on with it", path);
}

static int other_model(const char *path, const char *saved, const struct choice *model, struct error *error) {
    return error_set(error, ERROR_USAGE, "--model=%.200s: the checkpoint in %.200s has %.200s, expected that",
                     model->text, path, saved);
}

int resume_model(const struct safetensors *content, const char *path, const struct choice *model,
                 struct error *error) {
    const char *saved = safetensors_text(content, "model"), *name = model->plugin->name;
    const size_t bytes = strlen(name);
    if (!saved || (strncmp(saved, name, bytes) == 0 && (saved[bytes] == '\0' || saved[bytes] == ':')))
        return OK;
    return other_model(path, saved, model, error);
}

/* A file of a program that knew but classes names no task. */
static int check_examples(const struct safetensors *content, const struct dataset *dataset,
                          struct error *error) {
    const char *named = safetensors_text(content, "task");
    enum task task = TASK_CLASSES;
    struct shape shape;
    if (!checkpoint_shape(content, &shape) || (named && !task_named(&task, named))) return OK;
    return dataset_expect(dataset, &shape, task, (int)checkpoint_number(content, "classes", dataset->classes),
                          error);
}

int resume_fits(const struct safetensors *content, const char *path, const struct choice *model,
                const struct dataset *dataset, const struct layout *layout, struct error *error) {
    const char *saved = safetensors_text(content, "model");
    struct error why = {0};
    if (checkpoint_fits(path, content, "", layout, false, &why) == OK)
        return dataset_expect_names(dataset, safetensors_text(content, "class_names"),
                                    safetensors_text(content, "feature_names"), error);
    RETURN_IF(check_examples(content, dataset, error));
    if (saved && strcmp(saved, model->text) != 0) return other_model(path, saved, model, error);
    return error_set(error, why.code, "%s", why.words);
}

/* A saved list, as far as there is room, into out[room]; returns its length, or -1 for what is none. */
static int read_longs(const char *text, int room, long *out) {
    int count = 0;
    while (text && *text) {
        char *end = NULL;
        const long value = strtol(text, &end, 10);
        if (end == text) return -1;
        if (count < room) out[count] = value;
        count++;
        text = *end == ',' ? end + 1 : end;
    }
    return count;
}

/* The saved list of own batches into own[workers]; false when it has another length. */
static bool saved_own(const struct safetensors *checkpoint, int workers, long *own) {
    return read_longs(safetensors_text(checkpoint, "own_batches"), workers, own) == workers;
}

double resume_target(const struct safetensors *checkpoint, double accuracy) {
    const double saved = checkpoint_real(checkpoint, "target_accuracy", NAN);
    return fabs(saved - accuracy) < 1e-12 ? checkpoint_real(checkpoint, "target_s", NAN) : (double)NAN;
}

struct begun_epoch resume_begun(const struct safetensors *checkpoint) {
    const double batches = checkpoint_real(checkpoint, "epoch_batches", 0.0);
    return (struct begun_epoch){.loss_sum = batches * checkpoint_real(checkpoint, "epoch_loss", 0.0),
                                .batches = batches,
                                .seconds = checkpoint_real(checkpoint, "epoch_seconds", 0.0),
                                .examples = checkpoint_number(checkpoint, "epoch_examples", 0)};
}

int resume_workers(const struct safetensors *checkpoint) {
    const int count = read_longs(safetensors_text(checkpoint, "worker_steps"), 0, NULL);
    return count > 0 ? count : 0;
}

void resume_steps(const struct safetensors *checkpoint, int count, long *steps_of) {
    if (read_longs(safetensors_text(checkpoint, "worker_steps"), count, steps_of) > 0) return;
    const long steps = (long)checkpoint_number(checkpoint, "steps", 0);
    const long workers = (long)checkpoint_number(checkpoint, "workers", 1);
    for (int w = 0; w < count && w < workers; w++) steps_of[w] = steps / workers;
}

int resume_phase_ends(const struct safetensors *checkpoint, int most, long *ends) {
    const int count = read_longs(safetensors_text(checkpoint, "phase_ends"), most, ends);
    return count > 0 ? count : 0;
}

/* Version 0.1 called the sharding of the data by another name, and by its number. Any other text is left to
 * the check of the setting. */
static const char *sharding_of(const struct safetensors *checkpoint) {
    static const char *const names[] = {"shared", "split", "all"};
    const long long number = checkpoint_number(checkpoint, "sharding", -1);
    return number >= 0 && number < 3 ? names[number] : safetensors_text(checkpoint, "sharding");
}

static const char *text_of(const void *checkpoint, const char *name) {
    const char *text = safetensors_text(checkpoint, name);
    return !text && strcmp(name, "data-sharding") == 0 ? sharding_of(checkpoint) : text;
}

struct config_source resume_source(const struct safetensors *checkpoint, const char *path) {
    return (struct config_source){.name = path, .text = text_of, .self = checkpoint};
}

struct best_epoch resume_best(const struct safetensors *checkpoint) {
    const bool classes = safetensors_text(checkpoint, "best_rmse") == NULL;
    const struct score_names *names = &score_names[classes ? METRIC_ACCURACY : METRIC_RMSE];
    return (struct best_epoch){.epoch = (int)checkpoint_number(checkpoint, "best_epoch", 0),
                               .score = checkpoint_real(checkpoint, names->best, 0.0),
                               .loss = checkpoint_real(checkpoint, "best_loss", 0.0),
                               .test_score = checkpoint_real(checkpoint, names->best_test, (double)NAN)};
}

/* What it says, with defaults where it says nothing; false: it cannot be read. */
static bool saved_config(const struct safetensors *checkpoint, struct config *saved) {
    const struct config_source source = resume_source(checkpoint, "");
    struct error ignored = {0};
    struct typed nothing;
    option_defaults(run_options, &nothing);
    return config_settle(saved, &nothing, &source, OPTION_SAVED, ERROR_FILE, &ignored) == OK;
}

/* To the example, where that counts: in a run with --batch-total the parts of a batch depend on the workers.
 * -1: it does not. */
long resume_place(const struct safetensors *checkpoint) {
    struct config saved;
    if (!saved_config(checkpoint, &saved) || saved.batch_total == 0) return -1;
    return saved.data_sharding == SHARDING_SHARED ? (long)checkpoint_number(checkpoint, "place", -1) : -1;
}

long resume_examples(const struct safetensors *checkpoint, long otherwise) {
    return (long)checkpoint_number(checkpoint, "train_examples", otherwise);
}

void resume_position(const struct safetensors *checkpoint, const struct stream *stream, long *base,
                     long *own) {
    const double epochs = checkpoint_real(checkpoint, "epochs_done", 0.0);
    struct config saved;
    const bool counts = resume_examples(checkpoint, stream->examples) == stream->examples;
    const bool same = counts && saved_config(checkpoint, &saved) && saved.batch == stream->batch &&
                      saved.data_sharding == (int)stream->sharding;
    const long position = (long)checkpoint_number(checkpoint, "position", 0);
    const long place = counts ? resume_place(checkpoint) : -1;
    *base = same ? position * (stream->sizes ? stream->batch : 1)
                 : (long)floor(epochs * stream->examples / stream_unit(stream) + 1e-6);
    if (same && stream->sizes) *base = (long)checkpoint_number(checkpoint, "place", *base);
    if (place >= 0 && stream->sharding == SHARDING_SHARED) *base = place / stream_unit(stream);
    if (same && saved_own(checkpoint, stream->workers, own)) return;
    for (int w = 0; w < stream->workers; w++)
        own[w] = (long)floor(epochs * stream_epoch_examples(stream, w) / stream->batch + 1e-6);
}
