/* Examples of a data set of images as pictures: as they are stored, and as the network sees them. */
#ifndef TRAINER_PICTURES_EXAMPLE_H
#define TRAINER_PICTURES_EXAMPLE_H

#include "../data/dataset.h"
#include "sheet.h"

/* {height, width, channels} of an image. */
struct example_sizes {
    int stored[3], seen[3];
};

/* Errors: ERROR_USAGE: the data set is none of images of one or three channels. */
int example_sizes(struct example_sizes *sizes, const struct dataset *dataset, struct error *error);

/* *out = an example as it is stored: its bytes, brought to 0..255 where the data set has another white. */
int example_stored(struct canvas *out, const struct examples *examples, const struct example_sizes *sizes,
                   int number, struct error *error);

/* An example; in training also the one that comes next, which it may be mixed with. */
struct example_pick {
    bool drawn; /* augmented by its key; false: as in tests */
    int number[2];
    uint64_t key[2];
};

/* *out = what the network is given of it. What is standardized is shown as 128 + 48 * value, else as 255 *
 * value, cut to 0..255. */
int example_seen(struct canvas *out, const struct examples *examples, const struct example_sizes *sizes,
                 const struct example_pick *pick, struct error *error);

/* Which examples a sheet shows. */
struct example_choice {
    bool train;    /* else the first of the test part */
    uint64_t seed; /* of a training: then those that it begins epoch `epoch` (from 1) with, drawn as it draws
                      them with --data-sharding=shared */
    int epoch, count;
};

/* Each as it is stored and, where the data set augments or crops, beside it as the network sees it; with its
 * class and its number, from 0. A count beyond the part's shows all of it. */
int example_sheet(struct sheet *sheet, const struct dataset *dataset, const struct example_choice *choice,
                  struct error *error);

#endif
