/* The confusion matrix: how often a network took an example of one class for one of another. */
#ifndef TRAINER_PICTURES_CONFUSION_H
#define TRAINER_PICTURES_CONFUSION_H

#include "../base/page.h"
#include "canvas.h"

enum { CONFUSION_MOST = 1000 }; /* classes */

struct confusion {
    int classes;
    const char *const *names; /* [classes], borrowed */
    int *count;               /* [classes][classes]: of the label, of what was said; owned */
    int examples, right;
    char title[200]; /* "digits: 27 of 360 test examples are wrong" */
};

/* Counts examples by labels[examples] and said[examples]. Errors: ERROR_USAGE: more than CONFUSION_MOST
 * classes; ERROR_DEVICE: no memory. */
int confusion_open(struct confusion *confusion, const char *const *names, int classes, const int *labels,
                   const int *said, int examples, struct error *error);
void confusion_close(struct confusion *confusion); /* safe on a zeroed or half-open one */

/* *canvas = the matrix, labels downwards, what was said to the right; a cell is the darker, the larger its
 * share of its row: blue where that is right, red where it is wrong. Up to 30 classes have their counts. The
 * caller closes it. */
int confusion_draw(const struct confusion *confusion, struct canvas *canvas, struct error *error);

/* The matrix as lines, where the page is wide enough, and the pairs that were mixed up most often. */
void confusion_print(const struct confusion *confusion, const struct page *page);

#endif
