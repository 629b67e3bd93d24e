/* Reads packs. All that the file says of itself is compared with its length before anything is allocated or
 * looked at: an offset that is right is one within the data. */
#include "pack.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include "../base/bytes.h"
#include "../base/checked.h"
#include "../base/crc32c.h"
#include "../base/json.h"
#include "../base/memory.h"
#include "../device/gather.h"
#include "../world/world.h"
#include "columns.h"

/* What is read. */
struct reader {
    const char *name;
    const uint8_t *bytes;
    size_t length, about, about_bytes, sums; /* places in the file */
    size_t block;                            /* bytes that share a check sum */
    struct json json;
    bool floats;
    size_t row; /* bytes of an example */
    struct checked *checked;
    struct error *error;
};

/* --- the first page --- */

static int check_sum(const struct reader *reader, const char *what, size_t at, size_t count, uint64_t sum) {
    const uint32_t found = crc32c(0, reader->bytes + at, count);
    if (found == sum) return OK;
    return error_set(reader->error, ERROR_FILE, "%s: damaged: %s has the check sum %08x, expected %08x",
                     reader->name, what, found, (uint32_t)sum);
}

static int read_head(struct reader *reader) {
    const uint8_t *bytes = reader->bytes;
    const size_t length = reader->length;
    if (length < sizeof pack_magic || memcmp(bytes, pack_magic, sizeof pack_magic) != 0)
        return error_set(reader->error, ERROR_FILE, "%s: not a pack, expected a file that trainer pack wrote",
                         reader->name);
    if (length < PACK_PAGE)
        return error_set(reader->error, ERROR_FILE, "%s: found %zu bytes, expected a pack of at least %d",
                         reader->name, length, PACK_PAGE);
    const unsigned version = (unsigned)bytes_little(bytes + 8, 4);
    if (version < 1 || version > PACK_VERSION)
        return error_set(reader->error, ERROR_FILE, "%s: found a pack of version %u, expected %d",
                         reader->name, version, PACK_VERSION);
    RETURN_IF(check_sum(reader, "its first page", 16, PACK_HEAD - 16, bytes_little(bytes + 12, 4)));
    const uint64_t whole = bytes_little(bytes + 16, 8), about = bytes_little(bytes + 24, 8),
                   about_bytes = bytes_little(bytes + 32, 8), sums = bytes_little(bytes + 40, 8),
                   block = bytes_little(bytes + 56, 4);
    if (whole != length)
        return error_set(reader->error, ERROR_FILE, "%s: found %zu bytes, expected %llu", reader->name,
                         length, (unsigned long long)whole);
    const bool inside = about >= PACK_PAGE && about <= length && about_bytes <= PACK_ABOUT &&
                        about_bytes <= length - about && sums >= about + about_bytes && sums <= length;
    const bool usual = block <= PACK_BLOCK && block > (version == 1 ? PACK_BLOCK - 1 : PACK_BLOCK / 2);
    const size_t blocks = inside && usual ? checked_blocks((size_t)about - PACK_PAGE, (size_t)block) : 0;
    if (!inside || !usual || sums % sizeof(uint32_t) != 0 || length - sums != blocks * sizeof(uint32_t))
        return error_set(reader->error, ERROR_FILE, "%s: not a usable pack: its parts do not fit its length",
                         reader->name);
    reader->block = (size_t)block;
    reader->about = (size_t)about;
    reader->about_bytes = (size_t)about_bytes;
    reader->sums = (size_t)sums;
    RETURN_IF(check_sum(reader, "its description", reader->about, reader->about_bytes,
                        bytes_little(bytes + 48, 4)));
    return check_sum(reader, "the list of its check sums", reader->sums, length - reader->sums,
                     bytes_little(bytes + 52, 4));
}

/* --- the description --- */

static int wrong(const struct reader *reader, const char *what, const char *expected) {
    return error_set(reader->error, ERROR_FILE, "%s: not a usable pack: %s: expected %s", reader->name, what,
                     expected);
}

static const struct json_value *member(const struct reader *reader, const struct json_value *object,
                                       const char *name, enum json_kind kind) {
    const struct json_value *value = json_member(&reader->json, object, name);
    return value && value->kind == kind ? value : NULL;
}

/* A whole number from least to most. */
static bool whole_number(const struct json_value *value, double least, double most, double *number) {
    if (!value || value->kind != JSON_NUMBER || !(value->number >= least && value->number <= most) ||
        floor(value->number) != value->number)
        return false;
    *number = value->number;
    return true;
}

/* One to `most` dimensions, and no more numbers than an example may have. */
static bool read_shape(const struct reader *reader, const char *name, int most, struct shape *shape) {
    const struct json_value *list = member(reader, reader->json.values, name, JSON_ARRAY);
    double size, all = 1;
    if (!list || list->children < 1 || list->children > most) return false;
    *shape = (struct shape){0};
    for (int at = list->first; at >= 0; at = reader->json.values[at].next) {
        if (!whole_number(&reader->json.values[at], 1, INT_MAX, &size)) return false;
        shape->dims[shape->rank++] = (int)size;
        all *= size;
    }
    return all <= INT_MAX;
}

/* *names = the texts of the list, least to most of them. */
static int read_names(const struct reader *reader, const char *what, int least, int most, const char ***names,
                      int *count) {
    const struct json_value *list = member(reader, reader->json.values, what, JSON_ARRAY);
    if (!list || list->children < least || list->children > most)
        return wrong(reader, what, "a list of as many names as there are");
    RETURN_IF(memory_array(names, list->children + 1, "names", reader->error));
    *count = 0;
    for (int at = list->first; at >= 0; at = reader->json.values[at].next) {
        const struct json_value *name = &reader->json.values[at];
        const char *expected = name->kind == JSON_TEXT ? dataset_name_expected(name->text) : "texts";
        if (expected) return wrong(reader, what, expected);
        (*names)[(*count)++] = name->text;
    }
    return OK;
}

static int read_classes(const struct reader *reader, struct dataset *dataset) {
    const char **names = NULL;
    int count, code = read_names(reader, "classes", 1, PACK_CLASSES, &names, &count);
    if (code == OK) code = dataset_class_names(dataset, names, count, reader->error);
    memory_free(names);
    return code;
}

static int read_features(const struct reader *reader, struct dataset *dataset) {
    const int numbers = (int)shape_count(&dataset->shape);
    const char **names = NULL;
    int count;
    if (!json_member(&reader->json, reader->json.values, "features")) return OK;
    int code = read_names(reader, "features", numbers, numbers, &names, &count);
    if (code == OK) code = dataset_feature_names(dataset, names, count, reader->error);
    memory_free(names);
    return code;
}

/* The columns of the table that examples were rows of. */
static int read_columns(const struct reader *reader, struct dataset *dataset) {
    const struct json_value *text = json_member(&reader->json, reader->json.values, "columns");
    struct columns columns = {0};
    if (!text) return OK;
    const bool is_list = text->kind == JSON_TEXT && columns_read(&columns, text->text, reader->error);
    const bool fits = is_list && columns_features(&columns) == (int)shape_count(&dataset->shape);
    if (fits) dataset->codes = columns_codes(&columns);
    columns_close(&columns);
    if (reader->error->code != OK) return reader->error->code;
    if (!fits) return wrong(reader, "columns", "those of a table with as many features");
    return memory_text(&dataset->columns, text->text, reader->error);
}

/* *list = that many floats, or NULL where there are none. each: "a number for each ..." */
static int read_floats(const struct reader *reader, const char *name, const char *each, int count,
                       float **list) {
    const struct json_value *values = json_member(&reader->json, reader->json.values, name);
    if (!values) return OK;
    if (values->kind != JSON_ARRAY || values->children != count) return wrong(reader, name, each);
    RETURN_IF(memory_array(list, count, name, reader->error));
    float *out = *list;
    for (int at = values->first; at >= 0; at = reader->json.values[at].next) {
        *out = (float)reader->json.values[at].number;
        if (reader->json.values[at].kind != JSON_NUMBER || !isfinite(*out++))
            return wrong(reader, name, "numbers");
    }
    return OK;
}

/* Means and deviations: of features, or of targets. */
static int read_scales(const struct reader *reader, const char *const names[2], const char *each, int count,
                       float **mean, float **deviation) {
    RETURN_IF(read_floats(reader, names[0], each, count, mean));
    RETURN_IF(read_floats(reader, names[1], each, count, deviation));
    if (!*mean != !*deviation)
        return wrong(reader, names[*mean ? 1 : 0], "both means and deviations, or none");
    for (int i = 0; *deviation && i < count; i++)
        if (!((*deviation)[i] > 0)) return wrong(reader, names[1], "numbers above 0");
    return OK;
}

/* --- what examples are --- */

/* What their labels are; packs that have classes need not say so. */
static int read_task(const struct reader *reader, struct dataset *dataset) {
    const struct json_value *task = json_member(&reader->json, reader->json.values, "task");
    if (task && (task->kind != JSON_TEXT || !task_named(&dataset->task, task->text)))
        return wrong(reader, "task", "classes, labels or values");
    return OK;
}

static int read_units(const struct reader *reader, struct dataset *dataset) {
    struct units *units = &dataset->units;
    RETURN_IF(read_scales(reader, (const char *const[]){"target_mean", "target_deviation"},
                          "a number for each value", dataset->classes, &units->mean, &units->deviation));
    if (units->mean && dataset->task != TASK_VALUES)
        return wrong(reader, "target_mean and target_deviation", "none of them, of classes and labels");
    return OK;
}

static int read_kind(struct reader *reader, struct dataset *dataset, struct pack_images *images) {
    const struct json_value *about = reader->json.values;
    const struct json_value *values = member(reader, about, "values", JSON_TEXT),
                            *scale = member(reader, about, "scale", JSON_NUMBER),
                            *fit = member(reader, about, "fit", JSON_TEXT),
                            *measured = member(reader, about, "measured", JSON_BOOL),
                            *whitened = member(reader, about, "whitened", JSON_BOOL);
    if (!values || (strcmp(values->text, "bytes") != 0 && strcmp(values->text, "floats") != 0))
        return wrong(reader, "values", "bytes or floats");
    if (!scale || !isfinite((float)scale->number) || !((float)scale->number > 0.0f))
        return wrong(reader, "scale", "a number above 0");
    if (!measured || !whitened) return wrong(reader, "measured and whitened", "true or false");
    if (!read_shape(reader, "shape", MAX_RANK, &dataset->shape)) return wrong(reader, "shape", "sizes");
    int chosen = PICTURE_FITS;
    for (int i = 0; fit && i < PICTURE_FITS; i++)
        if (strcmp(fit->text, picture_fits[i]) == 0) chosen = i;
    if (chosen == PICTURE_FITS) return wrong(reader, "fit", "none, crop or squash");
    dataset->fit = (enum picture_fit)chosen;
    dataset->measured = measured->number != 0;
    dataset->train.scale = (float)scale->number;
    reader->floats = strcmp(values->text, "floats") == 0;
    images->whitened = whitened->number != 0;
    images->stored = dataset->shape;
    if (dataset->shape.rank == 2) images->stored = SHAPE(dataset->shape.dims[0], dataset->shape.dims[1], 1);
    const bool said = json_member(&reader->json, about, "image") != NULL;
    if (said && (!read_shape(reader, "image", 3, &images->stored) || images->stored.rank != 3))
        return wrong(reader, "image", "height, width and channels");
    images->any = !reader->floats && images->stored.rank == 3 && images->stored.dims[2] <= AUGMENT_CHANNELS;
    if ((said || images->whitened) && !images->any) return wrong(reader, "image", "the bytes of an image");
    reader->row = shape_count(&images->stored) * (reader->floats ? sizeof(float) : 1);
    return OK;
}

static int read_settings(const struct reader *reader, struct pack_images *images) {
    const struct json_value *list = member(reader, reader->json.values, "settings", JSON_OBJECT);
    struct error why = {0};
    option_defaults(pack_augment_rows, images);
    if (!list) return wrong(reader, "settings", "an object");
    for (int at = list->first; at >= 0; at = reader->json.values[at].next) {
        const struct json_value *value = &reader->json.values[at];
        if (value->kind != JSON_TEXT) return wrong(reader, value->name, "a text");
        if (option_set(pack_augment_rows, images, "settings", value->name, value->text, &why) != OK)
            return error_set(reader->error, ERROR_FILE, "%s: not a usable pack: %s", reader->name, why.words);
    }
    return OK;
}

/* --- the two parts --- */

/* A range of the data that begins on such a boundary. */
static bool is_inside(const struct reader *reader, double at, double bytes, double boundary) {
    return at >= PACK_PAGE && at + bytes <= (double)reader->about && fmod(at, boundary) == 0;
}

static int check_classes(const struct reader *reader, const int *labels, int count, int classes) {
    for (int i = 0; i < count; i++)
        if (labels[i] < 0 || labels[i] >= classes)
            return error_set(reader->error, ERROR_FILE,
                             "%s: not a usable pack: label %d of example %d, expected 0 to %d", reader->name,
                             labels[i], i, classes - 1);
    return OK;
}

static int check_targets(const struct reader *reader, enum task task, const struct examples *examples) {
    const float *target = examples->targets;
    for (int i = 0; i < examples->count; i++)
        for (int o = 0; o < examples->outputs; o++, target++)
            if (task == TASK_LABELS ? *target != 0.0f && *target != 1.0f : !isfinite(*target))
                return error_set(reader->error, ERROR_FILE,
                                 "%s: not a usable pack: target %g of example %d, expected %s", reader->name,
                                 (double)*target, i, task == TASK_LABELS ? "0 or 1" : "a finite number");
    return OK;
}

static int check_labels(const struct reader *reader, const struct dataset *dataset,
                        const struct examples *examples) {
    const size_t bytes = (size_t)examples->count * examples_label_bytes(examples);
    RETURN_IF(checked_use(reader->checked, examples_labels(examples), bytes, reader->error));
    if (dataset->task != TASK_CLASSES) return check_targets(reader, dataset->task, examples);
    return check_classes(reader, examples->labels, examples->count, dataset->classes);
}

static int read_part(const struct reader *reader, const char *name, const struct dataset *dataset,
                     struct examples *examples) {
    const struct json_value *part = member(reader, reader->json.values, name, JSON_OBJECT);
    const bool classes = dataset->task == TASK_CLASSES;
    const double label_bytes = classes ? sizeof(int) : (double)dataset->classes * sizeof(float);
    double count, values, labels;
    if (!part || !whole_number(member(reader, part, "examples", JSON_NUMBER), 1, INT_MAX, &count) ||
        !whole_number(member(reader, part, "values", JSON_NUMBER), 0, 1e15, &values) ||
        !whole_number(member(reader, part, classes ? "labels" : "targets", JSON_NUMBER), 0, 1e15, &labels))
        return wrong(reader, name,
                     classes ? "examples, and where their values and labels are"
                             : "examples, and where their values and targets are");
    if (!is_inside(reader, values, count * (double)reader->row, CACHE_LINE) ||
        !is_inside(reader, labels, count * label_bytes, sizeof(int)))
        return wrong(reader, name, "values and labels within the data");
    const uint8_t *rows = reader->bytes + (size_t)values;
    examples->count = (int)count;
    if (reader->floats)
        examples->floats = (const float *)(const void *)rows;
    else
        examples->bytes = rows;
    dataset_label(dataset, examples, reader->bytes + (size_t)labels);
    examples->checked = reader->checked;
    return check_labels(reader, dataset, examples);
}

/* Two ranges that share bytes would change each other where examples are moved (dataset_hold_out). */
static int check_apart(const struct reader *reader, const struct dataset *dataset) {
    const struct examples *const parts[] = {&dataset->train, &dataset->test};
    const uint8_t *begin[4], *end[4];
    for (int i = 0; i < 4; i++) {
        const struct examples *part = parts[i % 2];
        begin[i] = i < 2 ? examples_rows(part) : examples_labels(part);
        end[i] = begin[i] + (size_t)part->count * (i < 2 ? reader->row : examples_label_bytes(part));
    }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            if (begin[i] < end[k] && begin[k] < end[i])
                return wrong(reader, "train and test", "values and labels that share no bytes");
    return OK;
}

static int read_about(struct reader *reader, struct dataset *dataset, struct pack_images *images) {
    if (reader->json.values->kind != JSON_OBJECT) return wrong(reader, "its description", "an object");
    RETURN_IF(read_kind(reader, dataset, images));
    RETURN_IF(read_task(reader, dataset));
    RETURN_IF(read_settings(reader, images));
    RETURN_IF(read_classes(reader, dataset));
    RETURN_IF(read_features(reader, dataset));
    RETURN_IF(read_columns(reader, dataset));
    const int numbers = (int)shape_count(&dataset->shape);
    RETURN_IF(read_scales(reader, (const char *const[]){"mean", "deviation"}, "a number for each feature",
                          numbers, &dataset->mean, &dataset->deviation));
    RETURN_IF(read_units(reader, dataset));
    if (images->any && (dataset->mean || dataset->feature_names || dataset->columns))
        return wrong(reader, "features, mean and columns", "none of them, of images");
    dataset->train.features = numbers;
    dataset->test = dataset->train;
    RETURN_IF(read_part(reader, "train", dataset, &dataset->train));
    RETURN_IF(read_part(reader, "test", dataset, &dataset->test));
    return check_apart(reader, dataset);
}

int pack_read(struct dataset *dataset, struct pack_images *images, const char *name, const uint8_t *bytes,
              size_t length, struct error *error) {
    struct reader reader = {.name = name, .bytes = bytes, .length = length, .error = error};
    *images = (struct pack_images){0};
    RETURN_IF(read_head(&reader));
    const struct checked_bytes data = {.bytes = bytes + PACK_PAGE,
                                       .length = reader.about - PACK_PAGE,
                                       .block = reader.block,
                                       .offset = PACK_PAGE,
                                       .sums = (const uint32_t *)(const void *)(bytes + reader.sums)};
    RETURN_IF(checked_open(&reader.checked, name, &data, error));
    dataset->blocks[0] = reader.checked;
    int code = json_parse(&reader.json, (const char *)bytes + reader.about, reader.about_bytes, error);
    if (code != OK) error_prefix(error, "%s: not a usable pack: ", name);
    if (code == OK) code = read_about(&reader, dataset, images);
    json_free(&reader.json);
    return code;
}

int pack_check(const struct dataset *dataset, struct error *error) {
    const struct examples *parts[] = {&dataset->train, &dataset->test};
    for (int part = 0; part < 2; part++)
        for (int i = 0; i < parts[part]->count; i++) {
            if (world_interrupted()) return error_set(error, ERROR_INTERRUPTED, "interrupted");
            RETURN_IF(examples_use_one(parts[part], i, error));
        }
    return OK;
}
