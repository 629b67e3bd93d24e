/* Writes packs. The values go first, as they come, so that rows need not be in memory; then what is known at
 * the end: labels, description, check sums; and last the first page, which says where all that is. */
#include "pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/crc32c.h"
#include "../base/file.h"
#include "../base/json.h"
#include "../base/memory.h"
#include "../device/gather.h"
#include "../world/world.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values go to the file as they are");

const char pack_magic[8] = {'\x89', 'P', 'A', 'C', 'K', '\r', '\n', '\x1a'};

const struct option pack_augment_rows[] = {AUGMENT_ROWS(struct pack_images, "none"), {0}};

enum { PARTS = 2 };

struct writer {
    struct file_new file;
    size_t at;    /* bytes that are written */
    size_t block; /* bytes that share a check sum */
    uint32_t crc, *sums;
    size_t blocks, room;  /* sums that are used, and that there is room for */
    size_t values[PARTS]; /* where they begin; 0: not written */
    size_t labels[PARTS];
};

/* The block that ends here. */
static int end_block(struct writer *writer, struct error *error) {
    enum { FIRST_ROOM = 1024 };
    if (writer->blocks == writer->room) {
        const size_t room = writer->room ? 2 * writer->room : FIRST_ROOM;
        RETURN_IF(memory_grow(&writer->sums, writer->room, room, "check sums", error));
        writer->room = room;
    }
    writer->sums[writer->blocks++] = writer->crc;
    writer->crc = 0;
    return OK;
}

static int put_plain(struct writer *writer, const void *bytes, size_t count, struct error *error) {
    if (fwrite(bytes, 1, count, writer->file.stream) != count)
        return error_set(error, ERROR_FILE, "%s: not written: %s", writer->file.path, strerror(errno));
    writer->at += count;
    return OK;
}

/* Data: they are part of a block. */
static int put(struct writer *writer, const void *bytes, size_t count, struct error *error) {
    const uint8_t *from = bytes;
    for (size_t part; count > 0; from += part, count -= part) {
        const size_t left = writer->block - (writer->at - PACK_PAGE) % writer->block;
        part = count < left ? count : left;
        if (world_interrupted())
            return error_set(error, ERROR_INTERRUPTED, "interrupted, no pack is written");
        RETURN_IF(put_plain(writer, from, part, error));
        writer->crc = crc32c(writer->crc, from, part);
        if (part == left) RETURN_IF(end_block(writer, error));
    }
    return OK;
}

static int align(struct writer *writer, size_t to, struct error *error) {
    static const uint8_t zeros[PACK_PAGE];
    const size_t beyond = writer->at % to;
    return beyond == 0 ? OK : put(writer, zeros, to - beyond, error);
}

/* --- values and labels --- */

/* The training part comes first, and its first row where the data begin. */
static int take(void *self, int part, const void *rows, size_t count, size_t row_bytes, struct error *error) {
    struct writer *writer = self;
    if (writer->block == 0) writer->block = pack_block(row_bytes);
    if (writer->values[part] == 0) {
        RETURN_IF(align(writer, PACK_PAGE, error));
        writer->values[part] = writer->at;
    }
    return put(writer, rows, count * row_bytes, error);
}

/* From memory, or from the file that the data set has mapped. */
static int put_rows(struct writer *writer, int part, const struct examples *examples, struct error *error) {
    const size_t row = examples_row_bytes(examples);
    const uint8_t *rows = examples_rows(examples);
    for (int i = 0; i < examples->count; i++) {
        RETURN_IF(examples_use_one(examples, i, error));
        RETURN_IF(take(writer, part, rows + (size_t)i * row, 1, row, error));
    }
    return OK;
}

static int put_parts(struct writer *writer, const struct dataset *dataset, struct error *error) {
    const struct examples *parts[PARTS] = {&dataset->train, &dataset->test};
    for (int part = 0; part < PARTS; part++)
        if (parts[part]->bytes || parts[part]->floats) RETURN_IF(put_rows(writer, part, parts[part], error));
    for (int part = 0; part < PARTS; part++) {
        RETURN_IF(align(writer, CACHE_LINE, error));
        writer->labels[part] = writer->at;
        RETURN_IF(put(writer, examples_labels(parts[part]),
                      (size_t)parts[part]->count * examples_label_bytes(parts[part]), error));
    }
    RETURN_IF(align(writer, CACHE_LINE, error));
    return writer->crc != 0 || (writer->at - PACK_PAGE) % writer->block != 0 ? end_block(writer, error) : OK;
}

/* --- the description --- */

static void put_texts(struct json_writer *json, const char *name, char *const *texts, int count) {
    if (!texts) return;
    json_open(json, name, '[');
    for (int i = 0; i < count; i++) json_text(json, NULL, texts[i]);
    json_close(json, ']');
}

static void put_ints(struct json_writer *json, const char *name, const int *values, int count) {
    json_open(json, name, '[');
    for (int i = 0; i < count; i++) json_int(json, NULL, values[i]);
    json_close(json, ']');
}

static void put_floats(struct json_writer *json, const char *name, const float *values, int count) {
    if (!values) return;
    json_open(json, name, '[');
    for (int i = 0; i < count; i++) json_real(json, NULL, (double)values[i]);
    json_close(json, ']');
}

/* The settings of images as they could be typed: the chain, and what differs from the default. */
static int put_settings(struct json_writer *json, const struct choice *choice, struct error *error) {
    const struct option *own = choice->plugin->options;
    struct pack_images images;
    char *usual = NULL, value[512], fallback[512];
    RETURN_IF(memory_array(&usual, PLUGIN_SETTINGS_BYTES, "settings", error));
    option_defaults(own, usual);
    json_open(json, "settings", '{');
    for (const struct option *row = pack_augment_rows; row->name; row++) {
        const struct option *same = option_find(own, row->name);
        if (!same || same->type != row->type) continue;
        option_text(same, choice->settings, value, sizeof value);
        option_text(same, usual, fallback, sizeof fallback);
        if (option_set(pack_augment_rows, &images, "", row->name, value, &(struct error){0}) != OK)
            continue; /* not of images: another setting of that name */
        if (row == pack_augment_rows || strcmp(value, fallback) != 0) json_text(json, row->name, value);
    }
    json_close(json, '}');
    memory_free(usual);
    return OK;
}

static void put_part(struct json_writer *json, const char *name, const struct writer *writer, int part,
                     const struct examples *examples) {
    json_open(json, name, '{');
    json_int(json, "examples", examples->count);
    json_int(json, "values", (long long)writer->values[part]);
    json_int(json, examples->targets ? "targets" : "labels", (long long)writer->labels[part]);
    json_close(json, '}');
}

static int put_about(FILE *stream, const struct writer *writer, const struct dataset *dataset,
                     const struct choice *choice, struct error *error) {
    struct json_writer json = {.file = stream};
    const struct examples *train = &dataset->train;
    const struct augment *augment = &train->augment;
    const bool floats = train->floats != NULL;
    json_open(&json, NULL, '{');
    json_text(&json, "made_of", choice->text);
    if (dataset->task != TASK_CLASSES) json_text(&json, "task", task_name(dataset->task));
    put_part(&json, "train", writer, 0, train);
    put_part(&json, "test", writer, 1, &dataset->test);
    json_text(&json, "values", floats ? "floats" : "bytes");
    json_real(&json, "scale", (double)train->scale);
    put_ints(&json, "shape", dataset->shape.dims, dataset->shape.rank);
    if (augment->height > 0)
        put_ints(&json, "image", (int[]){augment->height, augment->width, augment->channels}, 3);
    json_bool(&json, "measured", dataset->measured);
    json_bool(&json, "whitened", augment->whitened);
    json_text(&json, "fit", picture_fits[dataset->fit]);
    RETURN_IF(put_settings(&json, choice, error));
    put_texts(&json, "classes", dataset->class_names, dataset->classes);
    put_texts(&json, "features", dataset->feature_names, train->features);
    if (dataset->columns) json_text(&json, "columns", dataset->columns);
    put_floats(&json, "mean", dataset->mean, train->features);
    put_floats(&json, "deviation", dataset->deviation, train->features);
    put_floats(&json, "target_mean", dataset->units.mean, dataset->classes);
    put_floats(&json, "target_deviation", dataset->units.deviation, dataset->classes);
    json_close(&json, '}');
    return OK;
}

/* *text = the description, of the C library (free). */
static int make_about(char **text, size_t *bytes, const struct writer *writer, const struct dataset *dataset,
                      const struct choice *choice, struct error *error) {
    FILE *stream = open_memstream(text, bytes);
    if (!stream) return error_set(error, ERROR_DEVICE, "memory: none for the description of a pack");
    int code = put_about(stream, writer, dataset, choice, error);
    if (fclose(stream) != 0 && code == OK)
        code = error_set(error, ERROR_DEVICE, "memory: none for the description of a pack");
    return code;
}

/* --- all of it --- */

static void put_number(uint8_t *head, size_t at, size_t bytes, uint64_t number) {
    memcpy(head + at, &number, bytes);
}

/* Behind the data; then the first page. */
static int put_end(struct writer *writer, const char *about, size_t about_bytes, struct error *error) {
    uint8_t head[PACK_HEAD] = {0};
    const size_t about_at = writer->at, sums_bytes = writer->blocks * sizeof *writer->sums;
    RETURN_IF(put_plain(writer, about, about_bytes, error));
    RETURN_IF(put_plain(writer, "\0\0\0", (4 - writer->at % 4) % 4, error));
    const size_t sums_at = writer->at;
    RETURN_IF(put_plain(writer, writer->sums, sums_bytes, error));
    memcpy(head, pack_magic, sizeof pack_magic);
    put_number(head, 8, 4, PACK_VERSION);
    put_number(head, 16, 8, writer->at);
    put_number(head, 24, 8, about_at);
    put_number(head, 32, 8, about_bytes);
    put_number(head, 40, 8, sums_at);
    put_number(head, 48, 4, crc32c(0, about, about_bytes));
    put_number(head, 52, 4, crc32c(0, writer->sums, sums_bytes));
    put_number(head, 56, 4, writer->block);
    put_number(head, 12, 4, crc32c(0, head + 16, PACK_HEAD - 16));
    if (fseeko(writer->file.stream, 0, SEEK_SET) != 0 ||
        fwrite(head, 1, PACK_HEAD, writer->file.stream) != PACK_HEAD)
        return error_set(error, ERROR_FILE, "%s: not written: %s", writer->file.path, strerror(errno));
    return OK;
}

static int write_dataset(struct writer *writer, const struct dataset *dataset, const struct choice *choice,
                         struct error *error) {
    char *about = NULL;
    size_t bytes = 0;
    RETURN_IF(put_parts(writer, dataset, error));
    int code = make_about(&about, &bytes, writer, dataset, choice, error);
    if (code == OK && bytes > PACK_ABOUT)
        code = error_set(error, ERROR_FILE, "%s: names and means take %zu bytes, expected at most %d",
                         writer->file.path, bytes, PACK_ABOUT);
    if (code == OK) code = put_end(writer, about, bytes, error);
    free(about);
    return code;
}

int pack_write(const char *path, const struct choice *choice, const char *data_dir, struct pack_made *made,
               struct error *error) {
    struct writer *writer = NULL;
    static const uint8_t page[PACK_PAGE];
    struct dataset dataset = {0};
    RETURN_IF(memory_array(&writer, 1, "a pack's writer", error));
    const struct dataset_taker taker = {.self = writer, .take = take};
    int code = file_create(&writer->file, path, error);
    if (code == OK) setvbuf(writer->file.stream, NULL, _IOFBF, PACK_BLOCK);
    if (code == OK) code = put_plain(writer, page, PACK_PAGE, error);
    if (code == OK) code = dataset_open_for(&dataset, choice, data_dir, &taker, error);
    if (code == OK) code = write_dataset(writer, &dataset, choice, error);
    *made = (struct pack_made){dataset.train.count, dataset.test.count, writer->at};
    if (code == OK) code = file_commit(&writer->file, error);
    file_abandon(&writer->file);
    dataset_close(&dataset);
    memory_free(writer->sums);
    memory_free(writer);
    return code;
}
