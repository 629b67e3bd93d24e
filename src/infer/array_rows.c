/* See array_rows.h. */
#include "array_rows.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"

static bool ends_with(const char *path, const char *suffix) {
    const size_t length = strlen(path), ending = strlen(suffix);
    return length > ending && strcmp(path + length - ending, suffix) == 0;
}

bool array_rows_is(const char *path, const char *front, size_t bytes) {
    if (bytes >= 6 && memcmp(front, "\x93NUMPY", 6) == 0) return true;
    return ends_with(path, ".npy") || ends_with(path, ".npz");
}

/* The only array of the archive, or the one that is called x. */
static int open_member(struct array_rows *rows, struct error *error) {
    const struct zip *zip = &rows->zip;
    const struct zip_member *member = zip->count == 1 ? zip->members : npz_find(zip, "x");
    char names[200];
    if (member) return npz_open(&rows->array, zip, member, error);
    return error_set(error, ERROR_FILE, "%s: found %s, expected one array, or one called x", zip->name,
                     npz_names(zip, names, sizeof names));
}

/* One example as a file has it: an image that training took, or cut its own out of. */
static struct shape example_of(const struct restored *restored) {
    int seen[3];
    return restored_seen(restored, seen) ? SHAPE(seen[0], seen[1], seen[2]) : restored->shape;
}

/* Rows of numbers fit any example; rows of pictures must be such pictures, but those of one channel may leave
 * it out. An array that is an example itself is one, also a picture without its channel. */
static int count_examples(struct array_rows *rows, struct error *error) {
    const struct npy *npy = &rows->array.npy;
    const struct shape *shape = &npy->shape, example = example_of(rows->restored);
    const size_t numbers = (size_t)restored_numbers(rows->restored);
    char found[100], wanted[100];
    struct shape row = {.rank = shape->rank - 1};
    for (int i = 1; i < shape->rank; i++) row.dims[i - 1] = shape->dims[i];
    const bool alike = row.rank != example.rank || row.rank < 2 || shape_equal(&row, &example);
    struct shape flat = example;
    if (example.rank == 3 && example.dims[2] == 1) flat.rank = 2;
    if (shape_equal(shape, &example) || shape_equal(shape, &flat) ||
        (shape->rank == 1 && npy->count == numbers)) {
        rows->count = 1;
        return OK;
    }
    rows->count = shape->dims[0];
    if (shape->rank > 1 && npy->count == numbers * (size_t)shape->dims[0] && alike) return OK;
    return error_set(error, ERROR_FILE, "%s: found %s, expected rows that are examples %s of the network",
                     npy->name, npy_text(npy, found, sizeof found),
                     shape_text(&example, wanted, sizeof wanted));
}

int array_rows_open(struct array_rows *rows, const struct restored *restored, struct file_reader *file,
                    struct error *error) {
    size_t length = 0;
    *rows = (struct array_rows){.restored = restored};
    if (columns_of(&restored->columns, COLUMN_CATEGORY) > 0)
        return error_set(error, ERROR_FILE,
                         "%s: an array, but the network takes a table with texts, expected a CSV file",
                         file->path);
    RETURN_IF(file_reader_rest(file, &rows->bytes, &length, error));
    const uint8_t *bytes = (const uint8_t *)rows->bytes;
    if (length >= 2 && memcmp(rows->bytes, "PK", 2) == 0) {
        RETURN_IF(zip_archive_open(&rows->zip, file->path, bytes, length, error));
        RETURN_IF(open_member(rows, error));
    } else {
        RETURN_IF(npz_open_file(&rows->array, file->path, bytes, length, error));
    }
    return count_examples(rows, error);
}

static void look_at_number(struct array_rows *rows, float number) {
    rows->lowest = fminf(rows->lowest, number);
    rows->highest = fmaxf(rows->highest, number);
    rows->fractions = rows->fractions || number != truncf(number);
}

int array_rows_next(struct array_rows *rows, struct features *features, struct error *error) {
    const size_t numbers = (size_t)restored_numbers(rows->restored);
    const int left = rows->count - rows->next, count = left < EVALUATE_BATCH ? left : EVALUATE_BATCH;
    *features = (struct features){0};
    if (count == 0) return OK;
    RETURN_IF(memory_array(&features->floats, (size_t)count * numbers, "rows of an array", error));
    features->count = count;
    RETURN_IF(npy_floats(&rows->array.npy, (size_t)rows->next * numbers, (size_t)count * numbers,
                         features->floats, error));
    for (size_t i = 0; i < (size_t)count * numbers; i++) look_at_number(rows, features->floats[i]);
    rows->next += count;
    return features_prepare(features, rows->restored, rows->array.npy.name, error);
}

bool array_rows_scaled(const struct array_rows *rows) {
    return rows->restored->scale < 1.0f && rows->fractions && rows->lowest >= 0.0f && rows->highest <= 1.0f;
}

void array_rows_close(struct array_rows *rows) {
    npz_close(&rows->array);
    zip_archive_close(&rows->zip);
    memory_free(rows->bytes);
    *rows = (struct array_rows){0};
}
