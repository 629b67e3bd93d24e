/* Pictures in memory: red, green and blue in eight bits each. They are drawn on with rectangles, other
 * pictures and text; what lies beyond the edge is left out. */
#ifndef TRAINER_PICTURES_CANVAS_H
#define TRAINER_PICTURES_CANVAS_H

#include <stddef.h>
#include <stdint.h>
#include "../base/error.h"

struct colour {
    uint8_t red, green, blue;
};

struct canvas {
    int width, height;     /* pixels */
    struct colour *pixels; /* [height][width], owned */
};

/* All of one colour. Errors: ERROR_DEVICE: no memory; ERROR_USAGE: more than CANVAS_MOST pixels. */
enum { CANVAS_MOST = 1 << 27 };
int canvas_open(struct canvas *canvas, int width, int height, struct colour ground, struct error *error);
void canvas_close(struct canvas *canvas); /* safe on a zeroed one */

static inline struct colour *canvas_pixel(const struct canvas *canvas, int x, int y) {
    return &canvas->pixels[(size_t)y * (size_t)canvas->width + (size_t)x];
}

void canvas_fill(struct canvas *canvas, int left, int top, int width, int height, struct colour colour);
/* Each pixel of the picture becomes times x times pixels. */
void canvas_put(struct canvas *canvas, int left, int top, const struct canvas *picture, int times);
/* *out = the picture made smaller: each pixel the mean of times x times of them, or of what is left of them
 * at the right and the bottom. */
int canvas_shrink(struct canvas *out, const struct canvas *picture, int times, struct error *error);

/* Text (font.c): a letter takes FONT_WIDTH x FONT_HEIGHT pixels, its gap included, `times` as many each way.
 * What is not ASCII becomes '?'. canvas_text_up reads from `bottom` upwards; its lines begin at `left`. */
enum { FONT_WIDTH = 6, FONT_HEIGHT = 9, FONT_LINE = 12 };
int canvas_text_width(const char *text, int times);
void canvas_text(struct canvas *canvas, int left, int top, int times, struct colour ink, const char *text);
void canvas_text_up(struct canvas *canvas, int left, int bottom, int times, struct colour ink,
                    const char *text);
/* Words in lines of at most `width` pixels; returns the top of the line that would follow. canvas NULL:
 * nothing is drawn. */
int canvas_words(struct canvas *canvas, int left, int top, int width, int times, struct colour ink,
                 const char *words);

#endif
