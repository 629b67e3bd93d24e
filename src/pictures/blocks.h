/* Pictures in a terminal: a character stands for one pixel in width and two in height. */
#ifndef TRAINER_PICTURES_BLOCKS_H
#define TRAINER_PICTURES_BLOCKS_H

#include <stdio.h>
#include "../base/text.h"
#include "canvas.h"

/* Whether what is written there may be in colours: a terminal, and neither NO_COLOR nor TERM=dumb says
 * otherwise. */
bool blocks_coloured(FILE *file);

static inline int blocks_lines(const struct canvas *picture) {
    return (picture->height + 1) / 2;
}

/* Adds line `line` of the picture, picture->width columns of it. In colours: the upper half block in 24-bit
 * colours, which are taken back at the end; else a letter as light as the two pixels, for a dark ground. */
void blocks_line(struct text *out, const struct canvas *picture, int line, bool coloured);

#endif
