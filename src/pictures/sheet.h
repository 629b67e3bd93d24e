/* A sheet: small pictures in rows, each with a word or two below it, under a title. It becomes one picture,
 * or lines in a terminal. */
#ifndef TRAINER_PICTURES_SHEET_H
#define TRAINER_PICTURES_SHEET_H

#include <stdio.h>
#include "canvas.h"

enum { TILE_PICTURES = 2, TILE_LINES = 2, TILE_TEXT = 48, SHEET_TITLE = 400, SHEET_COLUMNS = 80 };

enum tone { TONE_PLAIN, TONE_FAINT, TONE_WRONG };

struct tile {
    struct canvas picture[TILE_PICTURES]; /* owned; the second stands beside the first; width 0: none */
    char line[TILE_LINES][TILE_TEXT];     /* below it; empty: none */
    enum tone tone[TILE_LINES];
};

struct sheet {
    struct tile *tiles; /* [count], owned */
    int count;
    char title[SHEET_TITLE];
};

int sheet_open(struct sheet *sheet, int count, struct error *error);
void sheet_close(struct sheet *sheet); /* safe on a zeroed or half-open one */

/* *canvas = the sheet as a picture, small pictures enlarged to some hundred pixels, each pixel of theirs to a
 * square of the same size. The caller closes it. */
int sheet_draw(const struct sheet *sheet, struct canvas *canvas, struct error *error);

/* In lines of at most `columns` columns, at least 20; what is wider is shrunk. `coloured`: blocks.h. */
int sheet_print(const struct sheet *sheet, FILE *file, int columns, bool coloured, struct error *error);
/* How many tiles are three rows there, when their pictures are so wide and beside each other. */
int sheet_few(int width, int columns);

#endif
