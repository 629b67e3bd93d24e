/* mnist: 70,000 handwritten digits of 28x28 pixels, from the four official idx files, plain or .gz, in a
 * folder "mnist" of the search folders. The pixels stay the bytes that were read; they are divided by 255
 * when a batch is built. An example has one dimension, also when it is cut out of an image. */
#include "../src/base/file.h"
#include "../src/base/memory.h"
#include "../src/data/augment.h"
#include "../src/data/dataset.h"
#include "../src/data/idx.h"

enum { SIDE = 28, CLASSES = 10, FILES = 4, MAX_FILE_BYTES = 1 << 28 };

static const char *const names[FILES] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

struct mnist_settings {
    struct dataset_common common;
    struct augment_settings augment;
};

static const struct option options[] = {
    DATASET_COMMON_ROWS, AUGMENT_ROWS(struct mnist_settings, "none"), {0}};

static int find_files(char paths[FILES][PATH_BYTES], const char *const *folders, struct error *error) {
    for (int i = 0; i < FILES; i++)
        RETURN_IF(dataset_find_file(paths[i], "mnist", NULL, names[i], folders, error));
    return OK;
}

static int mnist_open(struct dataset *dataset, const void *settings_given, const char *const *folders,
                      struct error *error) {
    const struct mnist_settings *settings = settings_given;
    const struct shape stored = SHAPE(SIDE, SIDE, 1);
    char paths[FILES][PATH_BYTES];
    struct idx_file files[FILES];
    struct augment augment;
    struct shape given;
    RETURN_IF(augment_choose(&augment, &given, &settings->augment, "mnist", &stored, error));
    RETURN_IF(find_files(paths, folders, error));
    for (int i = 0; i < FILES; i++) {
        char *bytes = NULL;
        size_t length;
        RETURN_IF(file_read(paths[i], MAX_FILE_BYTES, &bytes, &length, error));
        dataset->blocks[i] = bytes; /* the examples point into it */
        files[i] = (struct idx_file){.name = paths[i], .bytes = (const uint8_t *)bytes, .length = length};
    }
    RETURN_IF(
        idx_examples(&dataset->train, &dataset->blocks[4], &files[0], &files[1], SIDE, SIDE, CLASSES, error));
    RETURN_IF(
        idx_examples(&dataset->test, &dataset->blocks[5], &files[2], &files[3], SIDE, SIDE, CLASSES, error));
    dataset->shape = SHAPE(SIDE * SIDE);
    augment_dataset(dataset, &augment, &given);
    return dataset_class_names(dataset, NULL, CLASSES, error);
}

const struct dataset_plugin dataset_mnist = {
    .plugin = {.name = "mnist",
               .help = "60,000 training and 10,000 test images of digits, 28x28",
               .options = options,
               .settings_bytes = sizeof(struct mnist_settings)},
    .open = mnist_open,
};
