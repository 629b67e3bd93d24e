/* pack: what `trainer pack` made of another data set. The file is mapped and its rows are used where they
 * lie, so training begins at once, and the file may be larger than memory. Each block of it is compared with
 * its check sum when it is first used: to do so when the file is opened would be to read all of it. */
#include <math.h>
#include <string.h>
#include "../src/base/memory.h"
#include "../src/data/pack.h"
#include "../src/data/stream.h"

enum {
    ORDER_BLOCKS = 1,
    CHAIN_PACKED = 3,
    SCARCE_WINDOWS = 16 /* of order=blocks; with less memory the kernel takes out what was just read ahead */
};

struct pack_settings {
    struct dataset_common common;
    struct augment_settings augment;
    char file[512];
    int order;
};

static const struct option options[] = {
    DATASET_COMMON_ROWS,
    OPTION_ROW(TEXT, "file", struct pack_settings, file, .value = "FILE",
               .help = "file that trainer pack wrote; must be given"),
    OPTION_ROW(CHOICE, "order", struct pack_settings, order, .fallback = "random", .choices = "random|blocks",
               .help =
                   "blocks: examples are shuffled in blocks of about 1 MB, 64 of which are mixed; for files "
                   "larger than memory"),
    AUGMENT_ROWS_AND(
        struct pack_settings, "packed", "|packed",
        "; packed: as the data set that was packed, and settings typed beside it replace its own"),
    {0}};

/* The settings that the images get: typed ones, or those of the pack and, in their place, typed ones. Whether
 * there are any is *asked. */
static int settle(struct augment_settings *settled, bool *asked, const struct pack_settings *pack,
                  const struct pack_images *images, struct error *error) {
    struct pack_images both = *images;
    struct pack_settings usual;
    char typed[512], fallback[512];
    option_defaults(options, &usual);
    if (pack->augment.chain != CHAIN_PACKED) option_defaults(pack_augment_rows, &both);
    for (const struct option *row = pack_augment_rows; row->name; row++) {
        const struct option *own = option_find(options, row->name);
        option_text(own, pack, typed, sizeof typed);
        option_text(own, &usual, fallback, sizeof fallback);
        if (strcmp(typed, fallback) == 0) continue;
        *asked = *asked || strcmp(typed, "none") != 0;
        RETURN_IF(option_set(pack_augment_rows, &both, "pack", row->name, typed, error));
    }
    *settled = both.augment;
    return OK;
}

/* How images are cut out and changed, and the shape that this gives. */
static int augment(struct dataset *dataset, const struct pack_settings *pack,
                   const struct pack_images *images, struct error *error) {
    struct augment_settings settled;
    struct augment chosen;
    struct shape given;
    bool asked = false;
    RETURN_IF(settle(&settled, &asked, pack, images, error));
    if (!images->any && asked)
        return error_set(error, ERROR_USAGE, "pack: %s has no images of bytes, which could be augmented",
                         pack->file);
    if (!images->any) return OK;
    settled.whiten = images->whitened;
    RETURN_IF(augment_choose(&chosen, &given, &settled, "pack", &images->stored, error));
    /* in units of white, which a byte need not be: in digits it is 16 */
    chosen.brightness *= roundf(1.0f / dataset->train.scale) / 255.0f;
    augment_dataset(dataset, &chosen, &given);
    return OK;
}

/* What the kernel is told, and the owner. Training rows are read here and there in any order: what is read
 * beside a row that is missing, up to megabytes, would be read in vain. Whole blocks are asked for when they
 * are checked, and by order=blocks; tests go through their rows from first to last. */
static void plan_reading(struct dataset *dataset, const struct pack_settings *pack) {
    const struct examples *train = &dataset->train;
    const size_t window = (size_t)STREAM_WINDOW * PACK_BLOCK;
    const size_t row = examples_row_bytes(train), bytes = dataset->files[0].length, memory = memory_at_most();
    mapping_scattered(examples_rows(train), (size_t)train->count * row);
    if (pack->order == ORDER_BLOCKS) {
        dataset->block = row < PACK_BLOCK ? (int)(pack_block(row) / row) : 1;
        if (bytes > memory && memory / window < SCARCE_WINDOWS) dataset->train.scarce = &dataset->files[0];
    } else if (bytes > memory) {
        snprintf(dataset->notice, sizeof dataset->notice,
                 "%.200s has %.1f GB, more than the %.1f GB of memory: order=blocks reads it faster",
                 pack->file, (double)bytes * 1e-9, (double)memory * 1e-9);
    }
}

static int pack_data_open(struct dataset *dataset, const void *settings, const char *const *folders,
                          struct error *error) {
    (void)folders;
    const struct pack_settings *pack = settings;
    struct mapping *file = &dataset->files[0];
    struct pack_images images;
    if (!*pack->file) return error_set(error, ERROR_USAGE, "pack: found no file, expected pack:file=FILE");
    RETURN_IF(mapping_open(file, pack->file, error));
    RETURN_IF(pack_read(dataset, &images, pack->file, file->bytes, file->length, error));
    RETURN_IF(augment(dataset, pack, &images, error));
    plan_reading(dataset, pack);
    return OK;
}

const struct dataset_plugin dataset_pack = {
    .plugin = {.name = "pack",
               .help = "a data set as one file that trainer pack made; it may be larger than memory",
               .options = options,
               .settings_bytes = sizeof(struct pack_settings)},
    .open = pack_data_open,
};
