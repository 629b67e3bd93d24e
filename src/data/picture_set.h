/* Files of pictures become one block of bytes, decoded by several threads. */
#ifndef TRAINER_DATA_PICTURE_SET_H
#define TRAINER_DATA_PICTURE_SET_H

#include "class_folders.h"
#include "picture.h"

struct picture_set {
    const struct class_folders *folders; /* borrowed */
    const int *order;                    /* [count] which of its files, borrowed */
    int count;                           /* less afterwards where damaged ones are left out */
    int height, width, channels;         /* of each */
    enum picture_fit fit;
    bool skip;       /* leaves out what is damaged; else it is an error */
    uint8_t *pixels; /* [count][height][width][channels], borrowed */
    int *labels;     /* [count], borrowed */
    int damaged;     /* out: left out */
    struct error first_damaged;
};

/* Reads, decodes, turns, fits and rounds every picture, on so many threads; what comes out does not depend on
 * their number. Errors: ERROR_FILE: the first file in the order that cannot be read; ERROR_DEVICE: memory or
 * a thread cannot be had; ERROR_INTERRUPTED. */
int picture_set_read(struct picture_set *set, int threads, struct error *error);

#endif
