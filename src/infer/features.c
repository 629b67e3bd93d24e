/* Makes examples from files. A picture becomes the numbers that the data set would hold for it: each pixel
 * from 0 to the data set's white. features_prepare then does to them everything that training did. */
#include "features.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../data/csv_rows.h"
#include "../data/picture.h"
#include "../data/standardize.h"
#include "../data/whiten.h"

enum { WHITE = 255 }; /* in a file */

#define PICTURES_READ "a PNG, JPEG, BMP or GIF picture"

static bool has_images(const struct restored *restored) {
    return restored->augment.height > 0;
}

static int whiten(const struct features *features, const struct augment *augment, struct error *error) {
    const size_t numbers = (size_t)augment->height * (size_t)augment->width * (size_t)augment->channels;
    uint8_t *room;
    RETURN_IF(memory_array(&room, whiten_room(augment->height, augment->width), "an image", error));
    for (int i = 0; i < features->count; i++)
        whiten_image(features->bytes + (size_t)i * numbers, augment->height, augment->width, room);
    memory_free(room);
    return OK;
}

/* Images become bytes again, to be cut out and standardized as in tests. */
static int make_bytes(struct features *features, const struct restored *restored, const char *path,
                      struct error *error) {
    const size_t numbers = (size_t)features->count * (size_t)restored_numbers(restored);
    RETURN_IF(memory_array(&features->bytes, numbers, "images", error));
    for (size_t i = 0; i < numbers; i++) {
        const float number = features->is_picture ? roundf(features->floats[i]) : features->floats[i];
        if (!(number >= 0.0f && number <= 255.0f) || floorf(number) != number)
            return error_set(error, ERROR_FILE, "%s: found %g, expected bytes of images, 0 to 255", path,
                             (double)number);
        features->bytes[i] = (uint8_t)number;
    }
    memory_free(features->floats);
    features->floats = NULL;
    return restored->augment.whitened ? whiten(features, &restored->augment, error) : OK;
}

int features_prepare(struct features *features, const struct restored *restored, const char *name,
                     struct error *error) {
    if (has_images(restored)) return make_bytes(features, restored, name, error);
    const size_t numbers = (size_t)features->count * (size_t)restored->features;
    for (size_t i = 0; i < numbers; i++) features->floats[i] *= restored->scale;
    if (restored->mean && restored->deviation)
        standardize_apply(features->floats, features->count, restored->features, restored->mean,
                          restored->deviation);
    return OK;
}

/* --- pictures --- */

/* size = {height, width, channels} of what the network takes. */
static int picture_size(const struct restored *restored, const char *path, int size[3], struct error *error) {
    const struct shape *shape = &restored->shape;
    char text[64];
    if (restored->feature_names == NULL && light_size(size, shape, &restored->augment)) return OK;
    if (restored->feature_names)
        return error_set(
            error, ERROR_FILE,
            "%s: a picture, but the network takes rows of a table, %d numbers that begin with %s", path,
            restored->features, restored->feature_names[0]);
    return error_set(error, ERROR_FILE, "%s: a picture, but the network takes examples %s", path,
                     shape_text(shape, text, sizeof text));
}

/* What stands for white in the numbers that `scale` then brings to 0..1; without a scale, what is in a file.
 */
static float white_of(const struct restored *restored) {
    return restored->scale > 0 && restored->scale < 1 ? roundf(1 / restored->scale) : (float)WHITE;
}

/* The picture in hand, on its way into the features. */
struct lit {
    const float *numbers;
    double white;
};

static double number_of(const void *self, int picture, int at) {
    const struct lit *lit = self;
    (void)picture;
    return (double)lit->numbers[at] / lit->white;
}

static int read_picture(struct features *features, const struct restored *restored, const char *path,
                        const char *bytes, size_t count, struct error *error) {
    int size[3];
    RETURN_IF(picture_size(restored, path, size, error));
    const struct picture_form form = {size[0], size[1], size[2], restored->fit};
    RETURN_IF(
        memory_array(&features->floats, (size_t)restored_numbers(restored), "a picture's features", error));
    features->count = 1;
    const int code = picture_read(&form, path, bytes, count, features->floats, error);
    const struct lit lit = {features->floats, WHITE};
    if (code == OK) features->light = light_measure(size, 1, number_of, &lit);
    const float share = white_of(restored) / (float)WHITE;
    for (int i = 0; i < restored_numbers(restored); i++) {
        const float number = features->floats[i] * share;
        features->floats[i] = restored->fit == PICTURE_NONE ? number : roundf(number);
    }
    return code;
}

/* --- files --- */

/* What is no table; `kind`: of a picture that is not read, or NULL. */
static int refuse(const char *path, const char *kind, struct error *error) {
    const char *expected = TRAINER_STB ? PICTURES_READ ", or a CSV file" : "a CSV file";
    if (kind) return error_set(error, ERROR_FILE, "%s: a %s picture, expected %s", path, kind, expected);
    return error_set(error, ERROR_FILE, "%s: neither text nor a picture of a known kind, expected %s", path,
                     expected);
}

int features_is_picture(struct file_reader *file, bool *is_picture, struct error *error) {
    const char *front;
    size_t bytes;
    RETURN_IF(file_reader_look(file, &front, &bytes, error));
    *is_picture = picture_is(front, bytes) || picture_is_named(file->path);
    if (*is_picture && file->limit > PICTURE_MOST_BYTES) file->limit = PICTURE_MOST_BYTES;
    if (!*is_picture && memchr(front, 0, bytes) && csv_is_utf16(front, bytes))
        return error_set(error, ERROR_FILE, "%s: %s", file->path, CSV_UTF16);
    if (!*is_picture && (picture_other(front, bytes) || memchr(front, 0, bytes)))
        return refuse(file->path, picture_other(front, bytes), error);
    return OK;
}

int features_read(struct features *features, const struct restored *restored, struct file_reader *file,
                  struct error *error) {
    char *bytes = NULL;
    size_t count = 0;
    *features = (struct features){.is_picture = true};
    int code = file_reader_rest(file, &bytes, &count, error);
    if (code == OK) code = read_picture(features, restored, file->path, bytes, count, error);
    memory_free(bytes);
    return code == OK ? features_prepare(features, restored, file->path, error) : code;
}

int features_join(struct features *all, const struct features *files, int count,
                  const struct restored *restored, struct error *error) {
    const bool images = has_images(restored);
    const size_t numbers = (size_t)restored_numbers(restored), size = images ? 1 : sizeof(float);
    void *block = NULL;
    *all = (struct features){.is_picture = files->is_picture};
    for (int i = 0; i < count; i++) all->count += files[i].count;
    RETURN_IF(memory_zeroed(&block, (size_t)all->count * numbers, size, "examples", error));
    if (images)
        all->bytes = block;
    else
        all->floats = block;
    char *to = block;
    for (int i = 0; i < count; i++) {
        const size_t bytes = (size_t)files[i].count * numbers * size;
        memcpy(to, images ? (const void *)files[i].bytes : files[i].floats, bytes);
        to += bytes;
    }
    return OK;
}

struct examples features_examples(const struct features *features, const struct restored *restored) {
    const bool images = has_images(restored);
    return (struct examples){.count = features->count,
                             .features = restored->features,
                             .bytes = features->bytes,
                             .floats = features->floats,
                             .scale = images ? restored->scale : 1.0f,
                             .augment = restored->augment};
}

void features_close(struct features *features) {
    memory_free(features->floats);
    memory_free(features->bytes);
    *features = (struct features){0};
}
