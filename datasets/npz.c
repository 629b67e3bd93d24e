/* npz: examples from arrays as NumPy saves them: x [examples, ...] and y, their classes, labels or values, in
 * one archive or in files of their own. Without test arrays the rows are split (../src/data/split.h). Files
 * are mapped, and what can be used where it lies is not read into memory. */
#include <stddef.h>
#include <string.h>
#include "../src/data/augment.h"
#include "../src/data/npz_examples.h"

enum { X, Y, X_TEST, Y_TEST, ARRAYS, NAME_BYTES = 400 };

/* Places in the choices of standardize, and what they are among those of images. */
enum { STANDARDIZE_AUTO, STANDARDIZE_NO, STANDARDIZE_YES, STANDARDIZE_IMAGE, STANDARDIZES };
static const int of_images[STANDARDIZES] = {[STANDARDIZE_NO] = 1, [STANDARDIZE_IMAGE] = 2};

struct npz_settings {
    struct dataset_common common;
    struct augment_settings augment;
    int standardize;
    struct split split;
    char file[512], names[ARRAYS][NAME_BYTES];
};

#define NAME_ROW(typed, place, ...)                                                                          \
    {                                                                                                        \
        .name = typed, .type = OPTION_TEXT,                                                                  \
        .offset = offsetof(struct npz_settings, names) + (size_t)(place)*NAME_BYTES, .bytes = NAME_BYTES,    \
        .value = "NAME", __VA_ARGS__                                                                         \
    }

static const struct option options[] = {
    DATASET_COMMON_ROWS,
    OPTION_ROW(TEXT, "file", struct npz_settings, file, .value = "FILE",
               .help = "archive of arrays (.npz); without it x and y name files (.npy)"),
    NAME_ROW("x", X,
             .help =
                 "examples to train on: numbers [N, F], images [N, H, W] or [N, H, W, C] (default x_train)"),
    NAME_ROW("y", Y,
             .help = "their classes: integers [N], or 0 and 1 [N, classes]; their labels: 0 and 1 [N, "
                     "labels]; or their values: "
                     "floats [N] or [N, values] (default y_train)"),
    NAME_ROW("x_test", X_TEST,
             .help = "examples to test on (default x_test, if it is there and x is not named)"),
    NAME_ROW("y_test", Y_TEST, .help = "the same of x_test (default y_test)"),
    SPLIT_ROWS(struct npz_settings, split, "x_test"),
    AUGMENT_ROWS_BEFORE(struct npz_settings, "none"),
    OPTION_ROW(
        CHOICE, "standardize", struct npz_settings, standardize, .fallback = "auto",
        .choices = "auto|0|1|image",
        .help =
            "auto, 1: bring each of F numbers, and each value to predict, to mean 0 and deviation 1 over the "
            "training examples; 0: leave them as they are; image: bring each image to mean 0 and deviation "
            "1, also in tests"),
    AUGMENT_ROWS_AFTER(struct npz_settings),
    {0}};

static const char *const keys[ARRAYS] = {"x_train", "y_train", "x_test", "y_test"};

/* What was named has to be named in pairs. */
static int check_names(const struct npz_settings *npz, struct error *error) {
    const char(*names)[NAME_BYTES] = npz->names;
    if (!*names[X] != !*names[Y])
        return error_set(error, ERROR_USAGE,
                         "npz: found only %s=, expected x= and y=", *names[X] ? "x" : "y");
    if (!*npz->file && !*names[X])
        return error_set(error, ERROR_USAGE,
                         "npz: found no file, expected npz:file=FILE.npz, or npz:x=FILE.npy,y=FILE.npy");
    if (!*names[X_TEST] != !*names[Y_TEST])
        return error_set(error, ERROR_USAGE, "npz: found only %s=, expected x_test= and y_test=",
                         *names[X_TEST] ? "x_test" : "y_test");
    return OK;
}

/* --- an archive --- */

/* What arrays are often called, where the archive has them; else NULL. */
static const char *const *usual_names(const struct zip *zip) {
    static const char *const names[][ARRAYS] = {{"x", "y", "x_test", "y_test"},
                                                {"X", "y", "X_test", "y_test"},
                                                {"X_train", "y_train", "X_test", "y_test"},
                                                {"data", "target", NULL, NULL},
                                                {"images", "labels", NULL, NULL},
                                                {"features", "labels", NULL, NULL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (npz_find(zip, names[i][X]) && npz_find(zip, names[i][Y])) return names[i];
    return NULL;
}

static int missing(const struct zip *zip, const char *name, bool given, struct error *error) {
    enum { LIST_BYTES = 260, SHORT_BYTES = 100, PATH_MOST = 120 }; /* what is proposed has room in the line */
    const char *const *usual = strlen(zip->name) > PATH_MOST ? NULL : usual_names(zip);
    char list[LIST_BYTES];
    npz_names(zip, list, usual && !given ? SHORT_BYTES : LIST_BYTES);
    if (given)
        return error_set(error, ERROR_USAGE, "%.180s: found no array \"%.40s\", expected one of %s",
                         zip->name, name, list);
    if (!usual)
        return error_set(error, ERROR_USAGE,
                         "%.180s: found %s, expected x_train and y_train, or npz:file=FILE,x=NAME,y=NAME",
                         zip->name, list);
    const bool tested = usual[X_TEST] && npz_find(zip, usual[X_TEST]) && npz_find(zip, usual[Y_TEST]);
    return error_set(error, ERROR_USAGE,
                     "%s: found %s, expected x_train and y_train, or npz:file=%s,x=%s,y=%s%s%s%s%s",
                     zip->name, list, zip->name, usual[X], usual[Y], tested ? ",x_test=" : "",
                     tested ? usual[X_TEST] : "", tested ? ",y_test=" : "", tested ? usual[Y_TEST] : "");
}

/* members[ARRAYS]: those of the test are NULL when there is no such part. */
static int find_members(const struct zip_member **members, const struct zip *zip,
                        const struct npz_settings *npz, struct error *error) {
    for (int i = 0; i < ARRAYS; i++) {
        const bool given = *npz->names[i], test = i >= X_TEST;
        const char *name = given ? npz->names[i] : keys[i];
        members[i] = given || !test || !*npz->names[X] ? npz_find(zip, name) : NULL;
        if (!members[i] && (given || !test)) return missing(zip, name, given, error);
    }
    if (!members[X_TEST] || !members[Y_TEST]) members[X_TEST] = members[Y_TEST] = NULL;
    return OK;
}

/* arrays[ARRAYS]; a zeroed one is not there. */
static int open_archive(struct npz_array *const *arrays, struct dataset *dataset,
                        const struct npz_settings *npz, struct error *error) {
    struct mapping *file = &dataset->files[0];
    const struct zip_member *members[ARRAYS];
    struct zip zip = {0};
    RETURN_IF(mapping_open(file, npz->file, error));
    if (file->length > 6 && memcmp(file->bytes, "\x93NUMPY", 6) == 0)
        return error_set(error, ERROR_USAGE, "%s: one array (.npy), expected npz:x=FILE.npy,y=FILE.npy",
                         npz->file);
    int code = zip_archive_open(&zip, npz->file, file->bytes, file->length, error);
    if (code == OK) code = find_members(members, &zip, npz, error);
    for (int i = 0; code == OK && i < ARRAYS; i++)
        if (members[i]) code = npz_open(arrays[i], &zip, members[i], error);
    zip_archive_close(&zip);
    return code;
}

/* --- files of their own --- */

static int open_files(struct npz_array *const *arrays, struct dataset *dataset,
                      const struct npz_settings *npz, struct error *error) {
    for (int i = 0; i < ARRAYS; i++) {
        if (!*npz->names[i]) continue;
        struct mapping *file = &dataset->files[i];
        RETURN_IF(mapping_open(file, npz->names[i], error));
        RETURN_IF(npz_open_file(arrays[i], npz->names[i], file->bytes, file->length, error));
    }
    return OK;
}

/* What is cut out and changed are images of bytes. */
static int apply_augment(struct dataset *dataset, const struct npz_settings *npz, struct error *error) {
    const struct shape *own = &dataset->shape;
    const struct shape stored = SHAPE(own->dims[0], own->dims[1], own->rank == 2 ? 1 : own->dims[2]);
    struct augment_settings settings = npz->augment;
    struct augment augment;
    struct shape given;
    char text[64];
    settings.standardize = of_images[npz->standardize];
    if (!augment_is_asked(&settings)) return OK;
    if (!dataset->train.bytes || own->rank < 2 || own->rank > 3)
        return error_set(
            error, ERROR_USAGE,
            "npz: found examples %s of %s, expected images [H, W] or [H, W, C] of bytes (uint8) to "
            "crop or change",
            shape_text(own, text, sizeof text), dataset->train.bytes ? "bytes" : "numbers");
    RETURN_IF(augment_choose(&augment, &given, &settings, "npz", &stored, error));
    augment_dataset(dataset, &augment, &given);
    return OK;
}

static int npz_data_open(struct dataset *dataset, const void *settings, const char *const *folders,
                         struct error *error) {
    (void)folders;
    const struct npz_settings *npz = settings;
    struct npz_pair train = {0}, test = {0};
    struct npz_array *const arrays[ARRAYS] = {&train.x, &train.y, &test.x, &test.y};
    RETURN_IF(check_names(npz, error));
    int code =
        *npz->file ? open_archive(arrays, dataset, npz, error) : open_files(arrays, dataset, npz, error);
    if (code == OK)
        code = npz_examples(dataset, &train, test.x.npy.count > 0 ? &test : NULL, &npz->split,
                            npz->standardize != STANDARDIZE_NO, error);
    if (code == OK) code = apply_augment(dataset, npz, error);
    for (int i = 0; i < ARRAYS; i++) npz_close(arrays[i]);
    return code;
}

const struct dataset_plugin dataset_npz = {
    .plugin = {.name = "npz",
               .help = "your own arrays: x and y as NumPy saves them, in .npz or .npy files",
               .options = options,
               .settings_bytes = sizeof(struct npz_settings)},
    .open = npz_data_open,
};
