/* See example.h. */
#include "example.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../data/light.h"
#include "../data/stream.h"

enum { WHITE = 255, MIDDLE = 128, DEVIATION = 48 };

int example_sizes(struct example_sizes *sizes, const struct dataset *dataset, struct error *error) {
    const struct augment *augment = &dataset->test.augment, none = {0};
    char text[64];
    *sizes = (struct example_sizes){0};
    /* Images are kept as bytes; numbers that only happen to be as many as a square has pixels are not. */
    if (dataset->test.bytes && light_size(sizes->stored, &dataset->shape, augment) &&
        light_size(sizes->seen, &dataset->shape, &none))
        return OK;
    return error_set(
        error, ERROR_USAGE,
        "%s: examples %s are no images; expected a data set of images, such as digits or cifar10",
        dataset->name, shape_text(&dataset->shape, text, sizeof text));
}

static uint8_t byte_of(double value) {
    return (uint8_t)lrint(fmin(fmax(value, 0.0), WHITE));
}

/* A pixel from its one or three channels. */
static struct colour pixel_of(const uint8_t *channel, int channels) {
    return (struct colour){channel[0], channel[channels / 2], channel[channels - 1]};
}

int example_stored(struct canvas *out, const struct examples *examples, const struct example_sizes *sizes,
                   int number, struct error *error) {
    const int *size = sizes->stored;
    const uint8_t *bytes = examples->bytes + (size_t)number * examples_row_bytes(examples);
    RETURN_IF(canvas_open(out, size[1], size[0], (struct colour){0}, error));
    for (int i = 0; i < size[0] * size[1]; i++) {
        uint8_t channel[3];
        for (int c = 0; c < size[2]; c++)
            channel[c] = byte_of((double)bytes[i * size[2] + c] * (double)examples->scale * WHITE);
        out->pixels[i] = pixel_of(channel, size[2]);
    }
    return OK;
}

int example_seen(struct canvas *out, const struct examples *examples, const struct example_sizes *sizes,
                 int number, const uint64_t *key, struct error *error) {
    const int *size = sizes->seen;
    const struct device device = device_processor();
    const struct indices indices = {.count = 1, .index = &number, .key = key};
    float *values = NULL;
    RETURN_IF(memory_array(&values, examples->features, "an example", error));
    int code = device.backend->gather(&device, examples, &indices, values, error);
    if (code == OK) code = canvas_open(out, size[1], size[0], (struct colour){0}, error);
    for (int i = 0; code == OK && i < size[0] * size[1]; i++) {
        uint8_t channel[3];
        for (int c = 0; c < size[2]; c++) {
            const double value = (double)values[i * size[2] + c];
            channel[c] = byte_of(examples->augment.standardize ? MIDDLE + DEVIATION * value : WHITE * value);
        }
        out->pixels[i] = pixel_of(channel, size[2]);
    }
    memory_free(values);
    return code;
}

/* --- a sheet --- */

/* number and key of what the training takes at that place of its stream. */
static void pick(const struct example_choice *choice, const struct examples *examples, int place, int *number,
                 uint64_t *key) {
    const struct stream stream = {
        .seed = choice->seed, .examples = examples->count, .batch = 1, .workers = 1};
    const long at = (choice->epoch - 1L) * examples->count + place; /* batches of one: a place is a batch */
    stream_batch(&stream, 0, at, number);
    stream_keys(&stream, 0, at, key);
}

static int fill_tile(struct tile *tile, const struct dataset *dataset, const struct example_sizes *sizes,
                     const struct example_choice *choice, int place, struct error *error) {
    const struct examples *examples = choice->train ? &dataset->train : &dataset->test;
    const bool changed = examples->augment.height > 0;
    int number = place;
    uint64_t key = 0;
    if (choice->train) pick(choice, examples, place, &number, &key);
    RETURN_IF(example_stored(&tile->picture[0], examples, sizes, number, error));
    if (changed)
        RETURN_IF(
            example_seen(&tile->picture[1], examples, sizes, number, choice->train ? &key : NULL, error));
    snprintf(tile->line[0], TILE_TEXT, "%s", dataset->class_names[examples->labels[number]]);
    snprintf(tile->line[1], TILE_TEXT, "#%d", number);
    tile->tone[1] = TONE_FAINT;
    return OK;
}

static void write_title(struct sheet *sheet, const struct dataset *dataset,
                        const struct example_choice *choice) {
    const struct augment *augment = &dataset->train.augment;
    struct text title = text_into(sheet->title, sizeof sheet->title);
    text_add(&title, "%s: %d of %d %s examples", dataset->name, sheet->count,
             choice->train ? dataset->train.count : dataset->test.count, choice->train ? "training" : "test");
    if (choice->train)
        text_add(&title, ", the first of epoch %d with --seed=%llu", choice->epoch,
                 (unsigned long long)choice->seed);
    if (augment->height == 0) return;
    text_add(&title, ". Left: as stored%s; right: as the network gets it",
             augment->whitened ? ", whitened" : "");
    if (augment->standardize) text_add(&title, " (grey is 0, black -2.7, white 2.7)");
}

int example_sheet(struct sheet *sheet, const struct dataset *dataset, const struct example_choice *choice,
                  struct error *error) {
    const int all = choice->train ? dataset->train.count : dataset->test.count;
    struct example_sizes sizes = {0};
    RETURN_IF(example_sizes(&sizes, dataset, error));
    RETURN_IF(sheet_open(sheet, choice->count < all ? choice->count : all, error));
    for (int i = 0; i < sheet->count; i++)
        RETURN_IF(fill_tile(&sheet->tiles[i], dataset, &sizes, choice, i, error));
    write_title(sheet, dataset, choice);
    return OK;
}
