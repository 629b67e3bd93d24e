/* Texts of a checkpoint, made and read. */
#include "resume.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../data/augment.h"

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

/* A list of texts or numbers joined by tabs or commas, in a block that grows with it. */
struct list {
    char *text;
    size_t length, room;
};

static int list_add(struct list *list, const char *item, char separator, struct error *error) {
    const size_t bytes = strlen(item);
    if (list->length + bytes + 2 > list->room) {
        const size_t room = 2 * (list->length + bytes + 2) + 256;
        void *block = list->text;
        RETURN_IF(memory_grow(&block, list->room, room, 1, "a list for the checkpoint", error));
        list->text = block;
        list->room = room;
    }
    if (list->length > 0) list->text[list->length++] = separator;
    memcpy(list->text + list->length, item, bytes + 1);
    list->length += bytes;
    return OK;
}

static int add_list(struct resume_texts *texts, const char *name, struct list *list, int code,
                    struct error *error) {
    if (code == OK) code = add_text(texts, name, list->text ? list->text : "", error);
    memory_free(list->text);
    return code;
}

static int add_names(struct resume_texts *texts, const char *name, char *const *names, int count,
                     struct error *error) {
    struct list list = {0};
    int code = OK;
    for (int i = 0; i < count && code == OK; i++) code = list_add(&list, names[i], '\t', error);
    return add_list(texts, name, &list, code, error);
}

static int add_reals(struct resume_texts *texts, const char *name, const float *values, int count,
                     struct error *error) {
    struct list list = {0};
    int code = OK;
    for (int i = 0; i < count && code == OK; i++) {
        char item[40];
        snprintf(item, sizeof item, "%.9g", (double)values[i]);
        code = list_add(&list, item, ',', error);
    }
    return add_list(texts, name, &list, code, error);
}

static int add_own(struct resume_texts *texts, const struct standing *standing, struct error *error) {
    struct list list = {0};
    int code = OK;
    for (int w = 0; standing->own && w < standing->workers && code == OK; w++) {
        char item[40];
        snprintf(item, sizeof item, "%ld", standing->own[w]);
        code = list_add(&list, item, ',', error);
    }
    return add_list(texts, "own_batches", &list, code, error);
}

static int add_dataset(struct resume_texts *texts, const struct dataset *dataset, struct error *error) {
    struct list list = {0};
    int code = OK;
    for (int i = 0; i < dataset->shape.rank && code == OK; i++) {
        char item[20];
        snprintf(item, sizeof item, "%d", dataset->shape.dims[i]);
        code = list_add(&list, item, ',', error);
    }
    RETURN_IF(add_list(texts, "shape", &list, code, error));
    RETURN_IF(add_format(texts, error, "classes", "%d", dataset->classes));
    RETURN_IF(add_names(texts, "class_names", dataset->class_names, dataset->classes, error));
    RETURN_IF(
        add_format(texts, error, "scale", "%.9g", dataset->train.bytes ? (double)dataset->train.scale : 1.0));
    if (dataset->test.augment.height > 0) {
        char text[RESUME_AUGMENT_BYTES];
        augment_text(&dataset->test.augment, text, sizeof text);
        RETURN_IF(add_text(texts, "image", text, error));
    }
    if (dataset->feature_names)
        RETURN_IF(add_names(texts, "feature_names", dataset->feature_names, dataset->train.features, error));
    if (!dataset->mean) return OK;
    RETURN_IF(add_reals(texts, "mean", dataset->mean, dataset->train.features, error));
    return add_reals(texts, "deviation", dataset->deviation, dataset->train.features, error);
}

int resume_texts_make(struct resume_texts *texts, const struct run_settings *settings,
                      const struct dataset *dataset, const struct standing *standing, struct error *error) {
    *texts = (struct resume_texts){0};
    RETURN_IF(add_text(texts, "program", "trainer " TRAINER_VERSION, error));
    RETURN_IF(add_text(texts, "model", settings->model, error));
    RETURN_IF(add_text(texts, "dataset", settings->dataset, error));
    RETURN_IF(add_text(texts, "strategy", settings->strategy, error));
    RETURN_IF(add_text(texts, "optimizer", settings->optimizer, error));
    RETURN_IF(add_text(texts, "schedule", settings->schedule, error));
    RETURN_IF(add_format(texts, error, "epochs", "%d", settings->epochs));
    RETURN_IF(add_format(texts, error, "batch", "%d", settings->batch));
    RETURN_IF(add_format(texts, error, "seed", "%ld", settings->seed));
    RETURN_IF(add_format(texts, error, "clip", "%.17g", settings->clip));
    RETURN_IF(add_format(texts, error, "decay", "%.17g", settings->decay));
    RETURN_IF(add_format(texts, error, "average", "%.17g", settings->average));
    RETURN_IF(add_text(texts, "precision", precision_name((enum precision)settings->precision), error));
    RETURN_IF(add_format(texts, error, "sharding", "%d", settings->sharding));
    RETURN_IF(add_format(texts, error, "workers", "%d", standing->workers));
    RETURN_IF(add_format(texts, error, "position", "%ld", standing->position));
    RETURN_IF(add_format(texts, error, "epochs_done", "%.17g", standing->epochs_done));
    RETURN_IF(add_format(texts, error, "final_cost", "%.9g", standing->final_cost));
    RETURN_IF(add_format(texts, error, "version", "%ld", standing->version));
    RETURN_IF(add_format(texts, error, "examples", "%lld", standing->examples));
    RETURN_IF(add_format(texts, error, "steps", "%ld", standing->steps));
    RETURN_IF(add_format(texts, error, "train_seconds", "%.6f", standing->train_seconds));
    RETURN_IF(add_own(texts, standing, error));
    return add_dataset(texts, dataset, error);
}

void resume_texts_free(struct resume_texts *texts) {
    for (int i = 0; i < RESUME_TEXTS; i++) memory_free(texts->memory[i]);
    *texts = (struct resume_texts){0};
}

long long resume_number(const struct safetensors *checkpoint, const char *name, long long usual) {
    const char *text = safetensors_text(checkpoint, name);
    return text ? strtoll(text, NULL, 10) : usual;
}

double resume_real(const struct safetensors *checkpoint, const char *name, double usual) {
    const char *text = safetensors_text(checkpoint, name);
    return text ? strtod(text, NULL) : usual;
}

/* The saved list of own batches into own[workers]; false when it has another length. */
static bool saved_own(const struct safetensors *checkpoint, int workers, long *own) {
    const char *text = safetensors_text(checkpoint, "own_batches");
    int count = 0;
    while (text && *text) {
        char *end = NULL;
        const long value = strtol(text, &end, 10);
        if (end == text) return false;
        if (count < workers) own[count] = value;
        count++;
        text = *end == ',' ? end + 1 : end;
    }
    return count == workers;
}

void resume_position(const struct safetensors *checkpoint, const struct stream *stream, long *base,
                     long *own) {
    const double epochs = resume_real(checkpoint, "epochs_done", 0.0);
    const bool same = resume_number(checkpoint, "batch", 0) == stream->batch &&
                      resume_number(checkpoint, "sharding", -1) == (long long)stream->sharding;
    *base = same ? (long)resume_number(checkpoint, "position", 0)
                 : (long)floor(epochs * stream->examples / stream->batch + 1e-6);
    if (same && saved_own(checkpoint, stream->workers, own)) return;
    for (int w = 0; w < stream->workers; w++)
        own[w] = (long)floor(epochs * stream_epoch_examples(stream, w) / stream->batch + 1e-6);
}

bool resume_has_average(const struct safetensors *checkpoint, const struct layout *layout) {
    char name[160];
    if (layout->count == 0) return false;
    snprintf(name, sizeof name, "average:%s", layout->ranges[0].name);
    return safetensors_tensor(checkpoint, name) != NULL;
}

bool resume_reals(const char *text, float *values, int count) {
    for (int i = 0; i < count; i++) {
        char *end = NULL;
        values[i] = strtof(text, &end);
        if (end == text || *end != (i + 1 < count ? ',' : '\0')) return false;
        text = end + 1;
    }
    return true;
}
