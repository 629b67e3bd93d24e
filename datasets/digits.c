/* digits: 1,797 handwritten digits of 8x8 pixels with values 0 to 16, embedded in the program
 * (datasets/embedded/SOURCE.md): the default, because it is real, small and always there. The first 1,437
 * rows are for training, the last 360 for testing. */
#include "../src/base/memory.h"
#include "../src/data/augment.h"
#include "../src/data/csv_examples.h"
#include "../src/data/embedded.h"
#include "../src/data/gunzip.h"

EMBED(embedded_digits, "datasets/embedded/digits.csv.gz");

enum {
    ROWS = 1797,
    TRAIN_ROWS = 1437,
    SIDE = 8,
    PIXELS = SIDE * SIDE,
    DARKEST = 16,
    WHITE = 255,
    MAX_TEXT_BYTES = 1 << 20
};

struct digits_settings {
    struct dataset_common common;
    struct augment_settings augment;
};

static const struct option options[] = {
    DATASET_COMMON_ROWS, AUGMENT_ROWS(struct digits_settings, "none"), {0}};

/* Bytes take a quarter of the floats' room and no precision is lost. */
static int keep_bytes(struct dataset *dataset, struct error *error) {
    const float *floats = dataset->train.floats; /* training and test rows stand in one block */
    RETURN_IF(memory_zeroed(&dataset->blocks[0], ROWS, PIXELS, "digits", error));
    uint8_t *bytes = dataset->blocks[0];
    for (int i = 0; i < ROWS * PIXELS; i++) bytes[i] = (uint8_t)floats[i];
    dataset->train.bytes = bytes;
    dataset->test.bytes = bytes + TRAIN_ROWS * PIXELS;
    dataset->train.floats = dataset->test.floats = NULL;
    dataset->train.scale = dataset->test.scale = 1.0f / DARKEST;
    mapping_close(&dataset->files[0]);
    return OK;
}

/* A brightness is set in parts of 255, and added to bytes of which 16 is the darkest. */
static int choose_augment(struct augment *augment, struct shape *given,
                          const struct digits_settings *settings, struct error *error) {
    const struct shape stored = SHAPE(SIDE, SIDE, 1);
    RETURN_IF(augment_choose(augment, given, &settings->augment, "digits", &stored, error));
    augment->brightness *= (float)DARKEST / WHITE;
    return OK;
}

static int digits_open(struct dataset *dataset, const void *settings, const char *const *folders,
                       struct error *error) {
    (void)folders;
    struct augment augment;
    struct shape given;
    RETURN_IF(choose_augment(&augment, &given, settings, error));
    const struct csv_format format = {.separator = ',', .decimal = '.', .header = CSV_HEADER_NO, .label = ""};
    struct csv_table table = {0};
    const struct csv_part train = {.table = &table, .rows = TRAIN_ROWS},
                          test = {.table = &table, .first = TRAIN_ROWS, .rows = ROWS - TRAIN_ROWS};
    char *text = NULL;
    size_t bytes;
    RETURN_IF(data_gunzip("digits.csv.gz", embedded_digits, (size_t)(embedded_digits_end - embedded_digits),
                          MAX_TEXT_BYTES, &text, &bytes, error));
    int code = csv_parse(&table, "digits.csv", text, bytes, &format, NULL, error);
    if (code == OK && (table.rows != ROWS || table.cells != PIXELS))
        code = error_set(error, ERROR_INTERNAL, "digits.csv: found %d rows of %d pixels, expected %d of %d",
                         table.rows, table.cells, ROWS, PIXELS);
    if (code == OK) code = csv_examples(dataset, &train, &test, false, error);
    if (code == OK) code = keep_bytes(dataset, error);
    if (code == OK) augment_dataset(dataset, &augment, &given);
    csv_close(&table);
    memory_free(text);
    return code;
}

const struct dataset_plugin dataset_digits = {
    .plugin = {.name = "digits",
               .help = "1,437 training and 360 test images of digits, 8x8; embedded",
               .options = options,
               .settings_bytes = sizeof(struct digits_settings)},
    .open = digits_open,
};
