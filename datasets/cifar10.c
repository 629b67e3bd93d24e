/* cifar10: 60,000 colour images of 32x32 pixels, from the official binary files, plain or .gz, in a folder
 * "cifar10" of the search folders or in the folder that the official archive unpacks to. The pixels stay
 * bytes, channels last; they become floats when a batch is built. */
#include "../src/base/file.h"
#include "../src/base/memory.h"
#include "../src/data/augment.h"
#include "../src/data/cifar.h"
#include "../src/data/dataset.h"
#include "../src/data/whiten.h"

enum { FILE_RECORDS = 10000, TRAIN_FILES = 5, FILES = TRAIN_FILES + 1, MAX_FILE_BYTES = 1 << 28 };

/* The last one is the test part. */
static const char *const names[FILES] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
static const char archive_folder[] = "cifar-10-batches-bin";

static const char *const classes[CIFAR_CLASSES] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                   "dog",      "frog",       "horse", "ship", "truck"};

struct cifar10_settings {
    struct dataset_common common;
    struct augment_settings augment;
};

static const struct option options[] = {DATASET_COMMON_ROWS,
                                        AUGMENT_WHITEN_ROW(struct cifar10_settings),
                                        AUGMENT_ROWS(struct cifar10_settings, "usual"),
                                        {0}};

/* Which files are needed: all that hold the examples that are taken, and the test part. */
static int train_files(const struct dataset_common *common) {
    const int wanted = common->take / FILE_RECORDS + (common->take % FILE_RECORDS > 0);
    return common->take > 0 && wanted < TRAIN_FILES ? wanted : TRAIN_FILES;
}

static int read_file(const char *name, const char *const *folders, uint8_t *pixels, int *labels,
                     struct error *error) {
    char path[PATH_BYTES], *bytes = NULL;
    size_t length;
    RETURN_IF(dataset_find_file(path, "cifar10", archive_folder, name, folders, error));
    RETURN_IF(file_read(path, MAX_FILE_BYTES, &bytes, &length, error));
    const struct cifar_file file = {.name = path, .bytes = (const uint8_t *)bytes, .length = length};
    const int code = cifar_parse(&file, FILE_RECORDS, pixels, labels, error);
    memory_free(bytes);
    return code;
}

/* Reads `count` files of names[first...] into blocks[at] (pixels) and blocks[at + 1] (labels). */
static int read_part(struct dataset *dataset, struct examples *examples, int first, int count, int at,
                     const char *const *folders, struct error *error) {
    const size_t records = (size_t)count * FILE_RECORDS;
    RETURN_IF(memory_zeroed(&dataset->blocks[at], records, CIFAR_PIXELS, "images", error));
    RETURN_IF(memory_zeroed(&dataset->blocks[at + 1], records, sizeof(int), "labels", error));
    uint8_t *pixels = dataset->blocks[at];
    int *labels = dataset->blocks[at + 1];
    for (int i = 0; i < count; i++) {
        const size_t done = (size_t)i * FILE_RECORDS;
        RETURN_IF(read_file(names[first + i], folders, pixels + done * CIFAR_PIXELS, labels + done, error));
    }
    *examples =
        (struct examples){.count = (int)records, .bytes = pixels, .scale = 1.0f / 255.0f, .labels = labels};
    return OK;
}

static int whiten(const struct dataset *dataset, struct error *error) {
    void *room = NULL;
    RETURN_IF(memory_zeroed(&room, whiten_room(CIFAR_SIDE, CIFAR_SIDE), 1, "an image", error));
    for (int part = 0; part < 2; part++) {
        const int count = part == 0 ? dataset->train.count : dataset->test.count;
        uint8_t *pixels = dataset->blocks[2 * part];
        for (int i = 0; i < count; i++)
            whiten_image(pixels + (size_t)i * CIFAR_PIXELS, CIFAR_SIDE, CIFAR_SIDE, room);
    }
    memory_free(room);
    return OK;
}

static int cifar10_open(struct dataset *dataset, const void *settings_given, const char *const *folders,
                        struct error *error) {
    const struct cifar10_settings *settings = settings_given;
    const struct shape stored = SHAPE(CIFAR_SIDE, CIFAR_SIDE, CIFAR_CHANNELS);
    const int count = train_files(&settings->common);
    struct augment augment;
    struct shape given;
    RETURN_IF(augment_choose(&augment, &given, &settings->augment, "cifar10", &stored, error));
    RETURN_IF(read_part(dataset, &dataset->train, 0, count, 0, folders, error));
    RETURN_IF(read_part(dataset, &dataset->test, TRAIN_FILES, 1, 2, folders, error));
    if (augment.whitened) RETURN_IF(whiten(dataset, error));
    augment_dataset(dataset, &augment, &given);
    return dataset_class_names(dataset, classes, CIFAR_CLASSES, error);
}

const struct dataset_plugin dataset_cifar10 = {
    .plugin = {.name = "cifar10",
               .help = "50,000 training and 10,000 test images, 32x32 in colour",
               .options = options,
               .settings_bytes = sizeof(struct cifar10_settings)},
    .open = cifar10_open,
};
