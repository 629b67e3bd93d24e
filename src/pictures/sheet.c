/* See sheet.h. All cells of a sheet are equally large: as the largest tile, or its words, need it. */
#include "sheet.h"

#include <string.h>

#include "../base/memory.h"
#include "../base/page.h"
#include "blocks.h"

/* Pixels of a sheet that is drawn. */
enum {
    TILE_SIDE = 112,
    MOST_WIDTH = 1280,
    MARGIN = 16,
    GAP = 12,
    BESIDE = 6,
    LETTERS = 2,
    MOST_LETTERS = 20
};

static const struct colour paper = {250, 250, 250}, frame = {205, 205, 205};
static const struct colour inks[] = {
    [TONE_PLAIN] = {30, 30, 30}, [TONE_FAINT] = {120, 120, 120}, [TONE_WRONG] = {178, 24, 43}};

int sheet_open(struct sheet *sheet, int count, struct error *error) {
    *sheet = (struct sheet){0};
    RETURN_IF(memory_array(&sheet->tiles, count, "pictures", error));
    sheet->count = count;
    return OK;
}

void sheet_close(struct sheet *sheet) {
    for (int i = 0; i < sheet->count; i++)
        for (int k = 0; k < TILE_PICTURES; k++) canvas_close(&sheet->tiles[i].picture[k]);
    memory_free(sheet->tiles);
    *sheet = (struct sheet){0};
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* What all tiles have room in. */
struct cell {
    int width, height; /* of the pictures, those beside each other taken together */
    int side;          /* of the largest picture */
    int letters;       /* in the longest line */
    int lines;         /* of words */
};

/* gap: between the pictures of a tile. times: how much they are enlarged. */
static struct cell cell_of(const struct sheet *sheet, int times, int gap) {
    struct cell cell = {0};
    for (int i = 0; i < sheet->count; i++) {
        const struct tile *tile = &sheet->tiles[i];
        int width = 0;
        for (int k = 0; k < TILE_PICTURES; k++) {
            const struct canvas *picture = &tile->picture[k];
            width += picture->width * times + (k > 0 && picture->width > 0 ? gap : 0);
            cell.height = larger(cell.height, picture->height * times);
            cell.side = larger(cell.side, larger(picture->width, picture->height));
        }
        cell.width = larger(cell.width, width);
        for (int k = 0; k < TILE_LINES; k++) {
            cell.letters = larger(cell.letters, canvas_text_width(tile->line[k], 1) / FONT_WIDTH);
            if (tile->line[k][0]) cell.lines = larger(cell.lines, k + 1);
        }
    }
    return cell;
}

/* At most so many letters of a line; ".." stands for more. */
static const char *cut(const char *line, int letters, char out[TILE_TEXT]) {
    const int bytes = smaller(letters, TILE_TEXT - 1);
    snprintf(out, TILE_TEXT, "%s", line);
    if ((int)strlen(out) > bytes && bytes > 2) snprintf(out + bytes - 2, 3, "..");
    out[bytes] = '\0';
    return out;
}

/* --- as a picture --- */

static int times_of(const struct sheet *sheet) {
    const int side = larger(cell_of(sheet, 1, 0).side, 1);
    return larger((TILE_SIDE + side / 2) / side, 1);
}

/* Rather wide than high, and the last row not nearly empty. */
static int in_row(int count, int width, int height) {
    const int most = larger((MOST_WIDTH - 2 * MARGIN + GAP) / (width + GAP), 1);
    int least = 1;
    while (least < most && least * (width + GAP) * 2 < (count + least - 1) / least * (height + GAP) * 3)
        least++;
    return larger(smaller(least, count), 1);
}

static void draw_tile(struct canvas *canvas, const struct tile *tile, const struct cell *cell, int times,
                      int left, int top) {
    int at = left;
    for (int k = 0; k < TILE_PICTURES; k++) {
        const struct canvas *picture = &tile->picture[k];
        const int width = picture->width * times, height = picture->height * times;
        if (width > 0) canvas_fill(canvas, at - 1, top - 1, width + 2, height + 2, frame);
        canvas_put(canvas, at, top, picture, times);
        at += width + BESIDE;
    }
    for (int k = 0; k < TILE_LINES; k++) {
        char line[TILE_TEXT];
        const int down = top + cell->height + 4 + k * FONT_LINE * LETTERS;
        canvas_text(canvas, left, down, LETTERS, inks[tile->tone[k]], cut(tile->line[k], MOST_LETTERS, line));
    }
}

/* Returns where the tiles begin. canvas NULL: nothing is drawn. */
static int draw_title(struct canvas *canvas, int width, const char *title) {
    return canvas_words(canvas, MARGIN, MARGIN, width - 2 * MARGIN, LETTERS, inks[TONE_PLAIN], title) +
           GAP / 2;
}

int sheet_draw(const struct sheet *sheet, struct canvas *canvas, struct error *error) {
    enum { LEAST_WIDTH = 640 }; /* for the title */
    const int times = times_of(sheet);
    struct cell cell = cell_of(sheet, times, BESIDE);
    cell.width = larger(cell.width, smaller(cell.letters, MOST_LETTERS) * FONT_WIDTH * LETTERS);
    const int height = cell.height + (cell.lines ? 4 + cell.lines * FONT_LINE * LETTERS : 0);
    const int columns = in_row(sheet->count, cell.width, height);
    const int rows = (sheet->count + columns - 1) / columns;
    const int width = larger(2 * MARGIN + columns * (cell.width + GAP) - GAP, LEAST_WIDTH);
    const int top = draw_title(NULL, width, sheet->title);
    RETURN_IF(canvas_open(canvas, width, top + rows * (height + GAP) - GAP + MARGIN, paper, error));
    draw_title(canvas, width, sheet->title);
    for (int i = 0; i < sheet->count; i++)
        draw_tile(canvas, &sheet->tiles[i], &cell, times, MARGIN + i % columns * (cell.width + GAP),
                  top + i / columns * (height + GAP));
    return OK;
}

/* --- in a terminal --- */

/* Of the pictures in lines of characters, which are enlarged while they are tiny, and shrunk to fit. */
struct strip {
    int columns, width, in_row; /* of the terminal; of a cell; cells */
    int lines;                  /* of pictures */
    bool coloured;
};
enum { LEAST_SIDE = 8, LEAST_COLUMNS = 20 };

/* *out = the tile's pictures at the size at which they are shown. */
static int resize(struct canvas *out, const struct canvas *picture, int times, int shrunk,
                  struct error *error) {
    if (shrunk > 1) return canvas_shrink(out, picture, shrunk, error);
    RETURN_IF(canvas_open(out, picture->width * times, picture->height * times, paper, error));
    canvas_put(out, 0, 0, picture, times);
    return OK;
}

static int resize_all(struct sheet *out, const struct sheet *sheet, int columns, struct error *error) {
    const struct cell cell = cell_of(sheet, 1, 1);
    const int times = larger(LEAST_SIDE / larger(cell.side, 1), 1);
    const int shrunk = (cell.width + columns - 1) / columns;
    RETURN_IF(sheet_open(out, sheet->count, error));
    for (int i = 0; i < sheet->count; i++) {
        for (int k = 0; k < TILE_PICTURES; k++)
            if (sheet->tiles[i].picture[k].width > 0)
                RETURN_IF(resize(&out->tiles[i].picture[k], &sheet->tiles[i].picture[k],
                                 times * cell.width <= columns ? times : 1, shrunk, error));
        memcpy(out->tiles[i].line, sheet->tiles[i].line, sizeof out->tiles[i].line);
    }
    return OK;
}

static int pad(struct text *out, int from, int to) {
    text_add(out, "%*s", larger(to - from, 0), "");
    return larger(from, to);
}

static void print_line(FILE *file, struct text *out) {
    while (out->used > 0 && out->bytes[out->used - 1] == ' ') out->used--;
    fwrite(out->bytes, 1, out->used, file);
    fputc('\n', file);
    out->used = 0;
}

static void print_tiles(const struct tile *tiles, int count, const struct strip *strip, struct text *out,
                        FILE *file) {
    for (int line = 0; line < strip->lines; line++) {
        int at = 0;
        for (int i = 0; i < count; i++) {
            at = pad(out, at, i * (strip->width + 1));
            for (int k = 0; k < TILE_PICTURES; k++) {
                const struct canvas *picture = &tiles[i].picture[k];
                if (k > 0 && picture->width > 0) at = pad(out, at, at + 1);
                if (line < blocks_lines(picture))
                    blocks_line(out, picture, line, strip->coloured);
                else
                    text_add(out, "%*s", picture->width, "");
                at += picture->width;
            }
        }
        print_line(file, out);
    }
}

static void print_words(const struct tile *tiles, int count, const struct strip *strip, int line,
                        struct text *out, FILE *file) {
    int at = 0;
    for (int i = 0; i < count; i++) {
        char words[TILE_TEXT];
        cut(tiles[i].line[line], strip->width, words);
        at = pad(out, at, i * (strip->width + 1));
        text_add(out, "%s", words);
        at += (int)strlen(words);
    }
    print_line(file, out);
}

static int print_all(const struct sheet *sheet, FILE *file, int columns, bool coloured, struct error *error) {
    const struct cell cell = cell_of(sheet, 1, 1);
    struct strip strip = {.columns = columns, .lines = (cell.height + 1) / 2, .coloured = coloured};
    struct text out = text_growing(error);
    strip.width = larger(cell.width, smaller(cell.letters, smaller(columns, MOST_LETTERS)));
    strip.in_row = larger((columns + 1) / (strip.width + 1), 1);
    for (int i = 0; i < sheet->count; i += strip.in_row) {
        const int count = smaller(strip.in_row, sheet->count - i);
        if (i > 0) fputc('\n', file);
        print_tiles(&sheet->tiles[i], count, &strip, &out, file);
        for (int line = 0; line < cell.lines; line++)
            print_words(&sheet->tiles[i], count, &strip, line, &out, file);
    }
    const int code = text_end(&out);
    memory_free(out.bytes);
    return code;
}

int sheet_print(const struct sheet *sheet, FILE *file, int columns, bool coloured, struct error *error) {
    const struct page page = {.file = file, .columns = larger(columns, LEAST_COLUMNS)};
    struct sheet resized = {0};
    page_words(&page, 0, 0, sheet->title);
    fputc('\n', file);
    int code = resize_all(&resized, sheet, page.columns, error);
    if (code == OK) code = print_all(&resized, file, page.columns, coloured, error);
    sheet_close(&resized);
    return code;
}

int sheet_few(int width, int columns) {
    enum { ROWS = 3 };
    const int shown = larger(width, 1) * larger(LEAST_SIDE / larger(width, 1), 1);
    return ROWS * larger((larger(columns, LEAST_COLUMNS) + 1) / (shown + 1), 1);
}
