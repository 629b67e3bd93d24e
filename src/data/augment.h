/* Augmentation as settings of a data set of images: the rows, and the recipe that they make. What each step
 * does, and in which order, is said in ../device/augment.h. */
#ifndef TRAINER_DATA_AUGMENT_H
#define TRAINER_DATA_AUGMENT_H

#include "../base/option.h"
#include "../device/augment.h"
#include "../graph/shape.h"
#include "dataset.h"

struct augment_settings {
    int chain; /* position in "none|distnet" */
    int crop, pad, cutout;
    int flip, standardize; /* positions in "auto|0|1" and "auto|none|image"; 0: as the chain says */
    double brightness;     /* NAN: as the chain says */
    double rotate;         /* degrees */
    double mixup, cutmix;  /* alpha of the Beta distribution */
    char contrast[32];     /* "0.2-1.8"; empty: as the chain says */
    int whiten;            /* 1: the data set whitens what it stores (whiten.h) */
};

/* The rows of the `struct augment_settings augment` in a data set's settings, in the order of the chain;
 * `usual`: the chain that it has unless another one is named. */
#define AUGMENT_ROWS(settings, usual) AUGMENT_ROWS_AND(settings, usual, "", "")
/* The same, of a data set that knows one more chain, as in "|packed"; `meaning`: "; packed: ...". */
#define AUGMENT_ROWS_AND(settings, usual, chain_more, meaning)                                               \
    AUGMENT_ROWS_FIRST(settings, usual, chain_more, meaning),                                                \
        OPTION_ROW(CHOICE, "standardize", settings, augment.standardize, .fallback = "auto",                 \
                   .choices = "auto|none|image",                                                             \
                   .help = "image: bring each image to mean 0 and deviation 1, also in tests; none: only "   \
                           "scale it to 0..1"),                                                              \
        AUGMENT_ROWS_AFTER(settings)

/* For npz, where standardize is a setting of tables, too: what comes before it, and after. */
#define AUGMENT_ROWS_BEFORE(settings, usual) AUGMENT_ROWS_FIRST(settings, usual, "", "")
#define AUGMENT_ROWS_FIRST(settings, usual, chain_more, meaning)                                             \
    OPTION_ROW(CHOICE, "augment", settings, augment.chain, .fallback = usual,                                \
               .choices = "none|distnet|usual" chain_more,                                                   \
               .help =                                                                                       \
                   "the settings below under one name; usual: crop=24, flip=1, standardize=image; distnet: " \
                   "crop=24, flip=1, brightness=63, contrast=0.2-1.8, standardize=image. Settings typed "    \
                   "beside it replace its own; all are applied in this order" meaning),                      \
        OPTION_ROW(INT, "pad", settings, augment.pad, .least = 0, .most = 1024, .unit = "pixels",            \
                   .help = "pixels of black added on every side (default: as in augment, or 0)"),            \
        OPTION_ROW(INT, "crop", settings, augment.crop, .least = 1, .most = 4096, .unit = "pixels",          \
                   .help =                                                                                   \
                       "side of the square that is cut out for the network, at a random place in training, " \
                       "in the centre in tests (default: the size of the images)"),                          \
        OPTION_ROW(CHOICE, "flip", settings, augment.flip, .fallback = "auto", .choices = "auto|0|1",        \
                   .help = "1: mirror half of the training images, at random"),                              \
        OPTION_ROW(                                                                                          \
            REAL, "rotate", settings, augment.rotate, .fallback = "0", .least = 0, .most = 180,              \
            .unit = "degrees",                                                                               \
            .help = "largest random angle, in degrees, that a training image is turned by, to either side"), \
        OPTION_ROW(REAL, "brightness", settings, augment.brightness, .least = 0, .most = 255,                \
                   .help = "largest random change of the brightness in training, of 255 (default: as in "    \
                           "augment, or 0)"),                                                                \
        OPTION_ROW(TEXT, "contrast", settings, augment.contrast, .value = "LEAST-MOST",                      \
                   .help =                                                                                   \
                       "range of the random factor on the contrast in training, as in 0.2-1.8 (default: as " \
                       "in augment, or 1-1)")

#define AUGMENT_ROWS_AFTER(settings)                                                                         \
    OPTION_ROW(INT, "cutout", settings, augment.cutout, .least = 0, .most = 4096, .unit = "pixels",          \
               .help = "side of a square at a random place that is set to 0 in training (default: 0)"),      \
        OPTION_ROW(REAL, "mixup", settings, augment.mixup, .value = "ALPHA", .fallback = "0", .least = 0,    \
                   .most = 100,                                                                              \
                   .help = "mix each training image, and its label, with the next one; the share is drawn "  \
                           "from Beta(ALPHA, ALPHA), 0: not at all"),                                        \
        OPTION_ROW(REAL, "cutmix", settings, augment.cutmix, .value = "ALPHA", .fallback = "0", .least = 0,  \
                   .most = 100,                                                                              \
                   .help = "put a box of the next training image, as large as such a share, into each; "     \
                           "with mixup as well, each is done to half of the images")

/* One more, for data sets of colour images that call whiten_image. */
#define AUGMENT_WHITEN_ROW(settings)                                                                         \
    OPTION_ROW(INT, "whiten", settings, augment.whiten, .fallback = "0", .least = 0, .most = 1,              \
               .help =                                                                                       \
                   "1: first remove from each image what neighbouring pixels and colours share (ZCA of 5x5 " \
                   "patches)")

/* *augment = what the settings make of images of shape [height, width, channels]; height 0 when that is no
 * change at all. *given = the shape that the network is given. `owner` is for the words. Errors: ERROR_USAGE:
 * not a contrast, a crop larger than the padded image, a crop of more than AUGMENT_BYTES, more than
 * AUGMENT_CHANNELS. */
int augment_choose(struct augment *augment, struct shape *given, const struct augment_settings *settings,
                   const char *owner, const struct shape *stored, struct error *error);

/* Whether any of them was set to a change, for a data set that may have no images. */
bool augment_is_asked(const struct augment_settings *settings);
/* Both parts of the data set get the recipe, and their examples the shape that it gives; [numbers] or [rows,
 * columns] where the data set's shape has that rank already. */
void augment_dataset(struct dataset *dataset, const struct augment *augment, const struct shape *given);

/* The recipe of tests as a text for checkpoints, and back; false when it is none. */
void augment_text(const struct augment *augment, char *out, size_t bytes);
bool augment_from_text(struct augment *augment, const char *text);

/* What training does beyond that, as a text. Checkpoints have had it for as long as a data set augments
 * without being asked to (checkpoint_read). */
void augment_training_text(const struct augment *augment, char *out, size_t bytes);

#endif
