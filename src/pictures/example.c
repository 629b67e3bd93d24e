/* See example.h. */
#include "example.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../data/light.h"
#include "../data/mix.h"
#include "../data/stream.h"
#include "../device/gather.h"

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
        "%s: examples %s are not images; expected a data set of images, such as digits or cifar10",
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
    RETURN_IF(examples_use_one(examples, number, error));
    RETURN_IF(canvas_open(out, size[1], size[0], (struct colour){0}, error));
    for (int i = 0; i < size[0] * size[1]; i++) {
        uint8_t channel[3];
        for (int c = 0; c < size[2]; c++)
            channel[c] = byte_of((double)bytes[i * size[2] + c] * (double)examples->scale * WHITE);
        out->pixels[i] = pixel_of(channel, size[2]);
    }
    return OK;
}

/* values[features] = what the network is given. */
static int build(float *values, const struct examples *examples, const struct example_pick *pick,
                 struct error *error) {
    const struct device device = device_processor();
    const struct augment *augment = &examples->augment;
    const bool mixed = pick->drawn && augment_mixes(augment);
    const struct indices indices = {
        .count = mixed ? 2 : 1, .index = pick->number, .key = pick->drawn ? pick->key : NULL};
    struct augment_mix mix;
    float *both = NULL;
    if (!mixed) return device_gather(&device, examples, &indices, values, error);
    RETURN_IF(memory_array(&both, 2 * (size_t)examples->features, "two examples", error));
    mix_draw(&mix, augment, pick->key[0]);
    int code = device_gather(&device, examples, &indices, both, error);
    if (code == OK) code = device.backend->mix(&device, augment, &mix, 1, both, values, error);
    memory_free(both);
    return code;
}

int example_seen(struct canvas *out, const struct examples *examples, const struct example_sizes *sizes,
                 const struct example_pick *pick, struct error *error) {
    const int *size = sizes->seen;
    float *values = NULL;
    RETURN_IF(memory_array(&values, examples->features, "an example", error));
    int code = build(values, examples, pick, error);
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

/* What the training takes at that place of its stream. */
static struct example_pick pick_of_training(const struct example_choice *choice,
                                            const struct dataset *dataset, int place) {
    struct example_pick pick = {.drawn = true};
    const struct examples *examples = &dataset->train;
    const struct stream stream = {
        .seed = choice->seed, .examples = examples->count, .batch = 1, .workers = 1, .block = dataset->block};
    const long at = (choice->epoch - 1L) * examples->count + place; /* batches of one: a place is a batch */
    stream_batch(&stream, 0, at, &pick.number[0]);
    stream_keys(&stream, 0, at, &pick.key[0]);
    stream_next(&stream, 0, at, &pick.number[1], &pick.key[1]);
    return pick;
}

/* Its class; of a mixed one both, and how much the first one counts. */
static void write_class(char *line, const struct dataset *dataset, const struct examples *examples,
                        const struct example_pick *pick) {
    const char *own = dataset->class_names[examples->labels[pick->number[0]]];
    struct augment_mix mix = {.share = 1.0f};
    if (pick->drawn) mix_draw(&mix, &examples->augment, pick->key[0]);
    if (mix.share < 1.0f)
        snprintf(line, TILE_TEXT, "%.0f%% %s, %s", 100.0 * (double)mix.share, own,
                 dataset->class_names[examples->labels[pick->number[1]]]);
    else
        snprintf(line, TILE_TEXT, "%s", own);
}

static int fill_tile(struct tile *tile, const struct dataset *dataset, const struct example_sizes *sizes,
                     const struct example_choice *choice, int place, struct error *error) {
    const struct examples *examples = choice->train ? &dataset->train : &dataset->test;
    const bool changed = examples->augment.height > 0;
    const struct example_pick pick =
        choice->train ? pick_of_training(choice, dataset, place) : (struct example_pick){.number = {place}};
    RETURN_IF(example_stored(&tile->picture[0], examples, sizes, pick.number[0], error));
    if (changed) RETURN_IF(example_seen(&tile->picture[1], examples, sizes, &pick, error));
    write_class(tile->line[0], dataset, examples, &pick);
    snprintf(tile->line[1], TILE_TEXT, "#%d", pick.number[0]);
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
    if (choice->train && augment_mixes(augment)) text_add(&title, ", mixed with the next one");
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
