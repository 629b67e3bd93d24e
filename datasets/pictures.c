/* pictures: your own pictures, one folder per class. All are decoded when the data set is opened, so that no
 * device waits for them afterwards; the pixels stay bytes, channels last. The size of an example is a setting
 * and not the files', so that one more picture does not change the network: 32x32 unless another is given,
 * which the convolutional models here are made for. */
#include <stdlib.h>
#include <string.h>
#include "../src/base/memory.h"
#include "../src/base/text.h"
#include "../src/data/augment.h"
#include "../src/data/dataset.h"
#include "../src/data/picture_set.h"
#include "../src/data/split.h"
#include "../src/world/world.h"

enum {
    SIDE_MOST = 4096,
    THREADS_MOST = 256,
    TRAIN = 0,
    TEST = 1,
    PARTS = 2,
    GREY = 1,
    PIECE_BYTES = 64 << 20
};

struct pictures_settings {
    struct dataset_common common;
    struct augment_settings augment;
    struct split split;
    char dir[512], size[24];
    int fit, channels, damaged; /* places in the choices */
    int threads;
};

static const struct option options[] = {
    DATASET_COMMON_ROWS,
    OPTION_ROW(TEXT, "dir", struct pictures_settings, dir, .value = "DIR",
               .help = "folder with a folder of pictures for each class, or with folders train and test of "
                       "such folders; must be given"),
    OPTION_ROW(TEXT, "size", struct pictures_settings, size, .value = "HxW", .fallback = "32x32",
               .help = "height and width that pictures are scaled to"),
    OPTION_ROW(CHOICE, "fit", struct pictures_settings, fit, .fallback = "crop", .choices = "crop|squash",
               .help =
                   "what happens to a picture of another shape: its middle is cut out, or it is squashed"),
    OPTION_ROW(CHOICE, "channels", struct pictures_settings, channels, .fallback = "3", .choices = "3|1",
               .help = "3: red, green and blue; 1: grey"),
    OPTION_ROW(CHOICE, "damaged", struct pictures_settings, damaged, .fallback = "error",
               .choices = "error|skip",
               .help = "skip: leave out pictures that cannot be read, with a warning"),
    SPLIT_ROWS(struct pictures_settings, split, "folder test"),
    OPTION_ROW(INT, "threads", struct pictures_settings, threads, .fallback = "0", .least = 0,
               .most = THREADS_MOST, .unit = "threads", .flags = OPTION_ASIDE,
               .help = "threads that decode (0: one per core); changes no example"),
    AUGMENT_ROWS(struct pictures_settings, "none"),
    {0}};

/* What is opened. */
struct opening {
    const struct pictures_settings *settings;
    struct class_folders folders[PARTS]; /* of the tests only where they have folders of their own */
    struct picture_set sets[PARTS];
    int *order[PARTS]; /* [sets[].count] owned */
    int size[3];       /* height, width, channels */
};

/* "32x48", or "32" for a square; nothing else, also no blank. */
static int read_size(struct opening *opening, struct error *error) {
    const char *text = opening->settings->size;
    char *middle = NULL, *end = NULL;
    long height = 0, width = 0;
    if (text[strspn(text, "0123456789x")] == '\0') height = strtol(text, &middle, 10);
    if (middle && *middle == 'x') width = strtol(middle + 1, &end, 10);
    if (middle && *middle == '\0') width = height, end = middle;
    if (!end || *end != '\0' || height < 1 || height > SIDE_MOST || width < 1 || width > SIDE_MOST)
        return error_set(
            error, ERROR_USAGE,
            "pictures: size=%s: expected height x width, 1 to %d each, as in 32x32, or a square's side", text,
            SIDE_MOST);
    opening->size[0] = (int)height;
    opening->size[1] = (int)width;
    opening->size[2] = opening->settings->channels == 0 ? 3 : GREY;
    return OK;
}

/* Lists the one folder, or both parts. */
static int list_files(struct opening *opening, struct error *error) {
    const char *dir = opening->settings->dir;
    char parts[PARTS][PATH_BYTES];
    RETURN_IF(file_join(parts[TRAIN], dir, "train", error));
    RETURN_IF(file_join(parts[TEST], dir, "test", error));
    if (!class_folders_is_folder(parts[TRAIN]) || !class_folders_is_folder(parts[TEST]))
        return class_folders_open(&opening->folders[TRAIN], dir, NULL, error);
    RETURN_IF(class_folders_open(&opening->folders[TRAIN], parts[TRAIN], NULL, error));
    return class_folders_open(&opening->folders[TEST], parts[TEST], &opening->folders[TRAIN], error);
}

/* Which files, in which order. The training part is shuffled in any case, so that its first ones, which
 * `take` takes, are of all classes. Skipped ones are not to be among those, so then all are read. */
static int choose_files(struct opening *opening, struct error *error) {
    const struct pictures_settings *settings = opening->settings;
    const int all = opening->folders[TRAIN].count, apart = opening->folders[TEST].count,
              take = settings->damaged == 0 ? settings->common.take : 0;
    int tests = apart;
    if (apart == 0)
        RETURN_IF(split_test_rows(&settings->split, opening->folders[TRAIN].folder, all, &tests, error));
    const int first = apart > 0 ? all : all - tests;
    const int counts[PARTS] = {take > 0 && take < first ? take : first, tests};
    for (int part = 0; part < PARTS; part++) {
        const bool is_listed = part == TEST && apart > 0;
        RETURN_IF(memory_array(&opening->order[part], counts[part], "the order of pictures", error));
        for (int i = 0; i < counts[part]; i++)
            opening->order[part][i] =
                is_listed ? i : split_row(settings->split.seed, all, part == TEST ? first + i : i);
        opening->sets[part] = (struct picture_set){.folders = &opening->folders[is_listed ? TEST : TRAIN],
                                                   .order = opening->order[part],
                                                   .count = counts[part],
                                                   .height = opening->size[0],
                                                   .width = opening->size[1],
                                                   .channels = opening->size[2],
                                                   .fit = PICTURE_CROP + (enum picture_fit)settings->fit,
                                                   .skip = settings->damaged != 0};
    }
    return OK;
}

/* Before anything is allocated; a taker needs memory for a piece only. */
static int check_memory(const struct dataset *dataset, const struct opening *opening, struct error *error) {
    const int *size = opening->size;
    const long count = (long)opening->sets[TRAIN].count + opening->sets[TEST].count;
    const double bytes = (double)count * size[0] * size[1] * size[2], most = (double)memory_at_most();
    if (bytes <= most || dataset->taker) return OK;
    return error_set(
        error, ERROR_DEVICE,
        "pictures: %ld pictures of %d x %d x %d take %.1f GB of memory, expected at most the %.1f "
        "GB there are; a smaller size=HxW, take=N or trainer pack needs less",
        count, size[0], size[1], size[2], bytes * 1e-9, most * 1e-9);
}

static int count_threads(const struct pictures_settings *settings) {
    struct cores cores;
    if (settings->threads > 0) return settings->threads;
    world_cores(&cores);
    return cores.count < 1 ? 1 : cores.count < THREADS_MOST ? cores.count : THREADS_MOST;
}

/* Decodes the set in pieces of so many pictures, all of which are decoded to the same place. */
static int read_pieces(const struct dataset_taker *taker, struct picture_set *set, int part, int piece,
                       int threads, struct error *error) {
    const size_t row = (size_t)set->height * (size_t)set->width * (size_t)set->channels;
    int kept = 0;
    for (int first = 0; first < set->count; first += piece) {
        struct picture_set next = *set;
        next.order += first;
        next.labels += kept;
        next.count = set->count - first < piece ? set->count - first : piece;
        RETURN_IF(picture_set_read(&next, threads, error));
        if (taker) RETURN_IF(taker->take(taker->self, part, next.pixels, (size_t)next.count, row, error));
        kept += next.count;
        if (set->damaged == 0) set->first_damaged = next.first_damaged;
        set->damaged += next.damaged;
    }
    set->count = kept;
    return OK;
}

/* Decodes a part into blocks[2 * part] (pixels; for a taker, a piece of them) and the next one (labels). */
static int read_part(struct dataset *dataset, struct opening *opening, int part, struct examples *examples,
                     struct error *error) {
    struct picture_set *set = &opening->sets[part];
    const size_t row = (size_t)set->height * (size_t)set->width * (size_t)set->channels;
    void **blocks = &dataset->blocks[2 * part];
    const size_t most = PIECE_BYTES / row + 1;
    const int piece = dataset->taker && (size_t)set->count > most ? (int)most : set->count;
    RETURN_IF(memory_zeroed(&blocks[0], (size_t)piece, row, "pictures", error));
    RETURN_IF(memory_zeroed(&blocks[1], (size_t)set->count, sizeof(int), "labels", error));
    set->pixels = blocks[0];
    set->labels = blocks[1];
    RETURN_IF(read_pieces(dataset->taker, set, part, piece, count_threads(opening->settings), error));
    if (set->count == 0)
        return error_set(error, ERROR_FILE, "%s: of %d %s pictures none can be read, as %s",
                         set->folders->folder, set->damaged, part == TRAIN ? "training" : "test",
                         set->first_damaged.words);
    *examples = (struct examples){.count = set->count,
                                  .features = dataset->shape.dims[0] * dataset->shape.dims[1] *
                                              dataset->shape.dims[2],
                                  .bytes = dataset->taker ? NULL : set->pixels,
                                  .scale = 1.0f / 255.0f,
                                  .labels = set->labels};
    return OK;
}

/* What was left out, once. */
static void write_notice(struct dataset *dataset, const struct opening *opening) {
    struct text text = text_into(dataset->notice, sizeof dataset->notice);
    const struct picture_set *sets = opening->sets;
    const struct class_folders *folders = opening->folders;
    const int damaged = sets[TRAIN].damaged + sets[TEST].damaged,
              others = folders[TRAIN].others + folders[TEST].others;
    if (damaged > 0)
        text_item(&text, "; ", "%d damaged picture%s left out, the first is %.150s", damaged,
                  damaged == 1 ? "" : "s", sets[sets[TRAIN].damaged == 0].first_damaged.words);
    if (others > 0)
        text_item(&text, "; ", "%d other file%s or folder%s not used, the first is %.150s", others,
                  others == 1 ? "" : "s", others == 1 ? "" : "s",
                  folders[folders[TRAIN].others == 0].first_other);
}

static int open_parts(struct dataset *dataset, struct opening *opening, struct error *error) {
    const struct pictures_settings *settings = opening->settings;
    const struct shape stored = SHAPE(opening->size[0], opening->size[1], opening->size[2]);
    struct augment augment;
    RETURN_IF(augment_choose(&augment, &dataset->shape, &settings->augment, "pictures", &stored, error));
    RETURN_IF(list_files(opening, error));
    RETURN_IF(choose_files(opening, error));
    RETURN_IF(check_memory(dataset, opening, error));
    RETURN_IF(read_part(dataset, opening, TRAIN, &dataset->train, error));
    RETURN_IF(read_part(dataset, opening, TEST, &dataset->test, error));
    dataset->train.augment = dataset->test.augment = augment;
    dataset->fit = opening->sets[TRAIN].fit;
    write_notice(dataset, opening);
    return dataset_class_names(dataset, (const char *const *)opening->folders[TRAIN].classes,
                               opening->folders[TRAIN].class_count, error);
}

static int pictures_open(struct dataset *dataset, const void *settings, const char *const *folders,
                         struct error *error) {
    (void)folders;
    struct opening *opening = NULL;
    const struct pictures_settings *given = settings;
    if (!*given->dir)
        return error_set(error, ERROR_USAGE, "pictures: found no folder, expected pictures:dir=DIR");
    if (!TRAINER_STB)
        return error_set(error, ERROR_USAGE,
                         "pictures: this build cannot read any: it has no stb_image (Debian: libstb-dev)");
    RETURN_IF(memory_array(&opening, 1, "a data set of pictures", error));
    opening->settings = given;
    int code = read_size(opening, error);
    if (code == OK) code = open_parts(dataset, opening, error);
    for (int part = 0; part < PARTS; part++) {
        memory_free(opening->order[part]);
        class_folders_close(&opening->folders[part]);
    }
    memory_free(opening);
    return code;
}

const struct dataset_plugin dataset_pictures = {
    .plugin = {.name = "pictures",
               .help = TRAINER_STB ? "your own pictures: PNG, JPEG, BMP and GIF files in a folder per class"
                                   : "your own pictures; this build has no stb_image to read them",
               .options = options,
               .settings_bytes = sizeof(struct pictures_settings)},
    .open = pictures_open,
};
