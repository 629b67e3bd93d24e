/* See confusion.h. */
#include "confusion.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../base/utf8.h"

enum { NAME_LETTERS = 16, NAME_BYTES = 4 * NAME_LETTERS + 1 };

static int larger(int a, int b) {
    return a > b ? a : b;
}

int confusion_open(struct confusion *confusion, const char *const *names, int classes, const int *labels,
                   const int *said, int examples, struct error *error) {
    *confusion = (struct confusion){.classes = classes, .names = names, .examples = examples};
    if (classes > CONFUSION_MOST)
        return error_set(error, ERROR_USAGE, "confusion matrix: %d classes, expected at most %d", classes,
                         CONFUSION_MOST);
    RETURN_IF(
        memory_array(&confusion->count, (size_t)classes * (size_t)classes, "a confusion matrix", error));
    for (int i = 0; i < examples; i++) {
        confusion->count[labels[i] * classes + said[i]]++;
        confusion->right += labels[i] == said[i];
    }
    return OK;
}

void confusion_close(struct confusion *confusion) {
    memory_free(confusion->count);
    *confusion = (struct confusion){0};
}

static int count_of(const struct confusion *confusion, int label, int said) {
    return confusion->count[label * confusion->classes + said];
}

static int largest(const struct confusion *confusion) {
    int most = 0;
    for (int i = 0; i < confusion->classes * confusion->classes; i++)
        most = larger(most, confusion->count[i]);
    return most;
}

static int row_of(const struct confusion *confusion, int label) {
    int sum = 0;
    for (int said = 0; said < confusion->classes; said++) sum += count_of(confusion, label, said);
    return sum;
}

static int digits_of(int number) {
    return snprintf(NULL, 0, "%d", number);
}

/* A class's name, one line of at most so many letters: it may be any text of somebody's table. Returns the
 * letters. */
static int name_of(const struct confusion *confusion, int class, int letters, char out[NAME_BYTES]) {
    struct text text = text_into(out, NAME_BYTES);
    const char *at = confusion->names[class];
    int used = 0;
    for (; *at && used < letters; used++) {
        const size_t bytes = utf8_length(at);
        const bool plain = bytes > 0 && (unsigned char)*at >= ' ' && *at != 127;
        text_add_bytes(&text, plain ? at : "?", plain ? bytes : 1);
        at += larger((int)bytes, 1);
    }
    return used;
}

static int longest_name(const struct confusion *confusion) {
    char name[NAME_BYTES];
    int longest = 1;
    for (int i = 0; i < confusion->classes; i++)
        longest = larger(longest, name_of(confusion, i, NAME_LETTERS, name));
    return longest;
}

/* --- as a picture --- */

enum { MARGIN = 16, LETTERS = 2, COUNTED = 30, TEXT = FONT_WIDTH * LETTERS };

static const struct colour paper = {250, 250, 250}, grid = {225, 225, 225}, ink = {30, 30, 30},
                           faint = {120, 120, 120}, white = {255, 255, 255};

struct table {
    int left, top, cell; /* of the first cell; its side */
    int times;           /* of the names' letters */
    bool counted;
    bool upright; /* the names of the columns are read from left to right */
};

static uint8_t towards(int from, int to, double share) {
    return (uint8_t)lrint(from + (to - from) * share);
}

/* Even a single wrong one is seen: hence the root. */
static struct colour shade_of(double share, bool right) {
    const struct colour full = right ? (struct colour){33, 102, 172} : (struct colour){178, 24, 43};
    const double strength = right ? share : sqrt(share);
    return (struct colour){towards(255, full.red, strength), towards(255, full.green, strength),
                           towards(255, full.blue, strength)};
}

static bool is_dark(struct colour colour) {
    return 299 * colour.red + 587 * colour.green + 114 * colour.blue < 130 * 1000; /* ITU-R BT.601 */
}

static void draw_cell(struct canvas *canvas, const struct table *table, const struct confusion *confusion,
                      int label, int said) {
    const int count = count_of(confusion, label, said), row = row_of(confusion, label);
    const int left = table->left + said * table->cell, top = table->top + label * table->cell;
    const int gap = table->cell >= 8; /* between cells */
    const struct colour shade = shade_of(count / (double)larger(row, 1), label == said);
    char text[16];
    canvas_fill(canvas, left, top, table->cell - gap, table->cell - gap, shade);
    if (!table->counted || count == 0) return;
    snprintf(text, sizeof text, "%d", count);
    canvas_text(canvas, left + (table->cell - canvas_text_width(text, LETTERS)) / 2 + 1,
                top + (table->cell - 7 * LETTERS) / 2, LETTERS, is_dark(shade) ? white : ink, text);
}

static void draw_names(struct canvas *canvas, const struct table *table, const struct confusion *confusion) {
    const int middle = (table->cell - 7 * table->times) / 2;
    for (int i = 0; table->times > 0 && i < confusion->classes; i++) {
        char name[NAME_BYTES];
        name_of(confusion, i, NAME_LETTERS, name);
        canvas_text(canvas, table->left - 8 - canvas_text_width(name, table->times),
                    table->top + i * table->cell + middle, table->times, ink, name);
        const int left = table->left + i * table->cell;
        if (table->upright)
            canvas_text(canvas, left + (table->cell - canvas_text_width(name, table->times)) / 2 + 1,
                        table->top - FONT_LINE * table->times, table->times, ink, name);
        else
            canvas_text_up(canvas, left + middle, table->top - 8, table->times, ink, name);
    }
}

/* What stands above the matrix; returns where that begins. canvas NULL: nothing is drawn. */
static int draw_words(struct canvas *canvas, int width, const char *title) {
    static const char legend[] = "rows: the label; columns: what the network said; darker: more of its row";
    const int below = canvas_words(canvas, MARGIN, MARGIN, width - 2 * MARGIN, LETTERS, ink, title);
    return canvas_words(canvas, MARGIN, below, width - 2 * MARGIN, LETTERS, faint, legend) + MARGIN / 2;
}

static struct table table_of(const struct confusion *confusion, int names) {
    enum { SIDE = 1000, USUAL = 56, USUAL_SIDE = 560, LEAST = 36 };
    const int classes = confusion->classes;
    struct table table = {.counted = classes <= COUNTED};
    if (table.counted) {
        table.cell = larger(digits_of(largest(confusion)) * TEXT + 10, LEAST);
        table.cell = larger(table.cell, USUAL_SIDE / classes < USUAL ? USUAL_SIDE / classes : USUAL);
    } else {
        table.cell = larger(SIDE / classes, 1);
    }
    table.times = table.cell >= 9 * LETTERS ? LETTERS : table.cell >= 9;
    table.upright = table.counted && names * TEXT <= table.cell;
    return table;
}

int confusion_draw(const struct confusion *confusion, struct canvas *canvas, struct error *error) {
    enum { LEAST_WIDTH = 640 };
    const int letters = longest_name(confusion);
    struct table table = table_of(confusion, letters);
    const int names = table.times > 0 ? letters * FONT_WIDTH * table.times + 8 : 0;
    const int side = confusion->classes * table.cell;
    const int width = larger(2 * MARGIN + names + side, LEAST_WIDTH);
    table.left = MARGIN + names;
    table.top = draw_words(NULL, width, confusion->title) + (table.upright ? FONT_LINE * LETTERS : names);
    RETURN_IF(canvas_open(canvas, width, table.top + side + MARGIN, paper, error));
    draw_words(canvas, width, confusion->title);
    draw_names(canvas, &table, confusion);
    canvas_fill(canvas, table.left - 1, table.top - 1, side + 1, side + 1, grid);
    for (int label = 0; label < confusion->classes; label++)
        for (int said = 0; said < confusion->classes; said++)
            draw_cell(canvas, &table, confusion, label, said);
    return OK;
}

/* --- as lines --- */

/* Columns are headed by names where these fit, else by the classes' numbers, which then stand before the
 * names of the rows, too. */
static void print_matrix(const struct confusion *confusion, const struct page *page, int names, int column,
                         bool numbered) {
    const int number = numbered ? digits_of(confusion->classes - 1) + 1 : 0;
    char name[NAME_BYTES];
    fprintf(page->file, "%-*s", number + names, "label");
    for (int i = 0; i < confusion->classes; i++) {
        const int letters =
            numbered ? snprintf(name, sizeof name, "%d", i) : name_of(confusion, i, NAME_LETTERS, name);
        fprintf(page->file, "%*s%s", column - letters, "", name);
    }
    fprintf(page->file, "  <- said\n");
    for (int label = 0; label < confusion->classes; label++) {
        const int letters = name_of(confusion, label, NAME_LETTERS, name);
        if (numbered) fprintf(page->file, "%*d ", number - 1, label);
        fprintf(page->file, "%s%*s", name, names - letters, "");
        for (int said = 0; said < confusion->classes; said++)
            fprintf(page->file, "%*d", column, count_of(confusion, label, said));
        fputc('\n', page->file);
    }
}

/* The most often mixed up pair that comes after *pair in the order of counts; false: there is none. */
static bool next_pair(const struct confusion *confusion, int *pair) {
    const int cells = confusion->classes * confusion->classes;
    int best = -1;
    for (int i = 0; i < cells; i++) {
        const int count = confusion->count[i];
        const bool wrong = i / confusion->classes != i % confusion->classes && count > 0;
        const bool later =
            *pair < 0 || count < confusion->count[*pair] || (count == confusion->count[*pair] && i > *pair);
        if (wrong && later && (best < 0 || count > confusion->count[best])) best = i;
    }
    *pair = best;
    return best >= 0;
}

static void print_pairs(const struct confusion *confusion, const struct page *page, int pairs) {
    char label[NAME_BYTES], said[NAME_BYTES], most[16];
    int pair = -1;
    for (int i = 0; i < pairs && next_pair(confusion, &pair); i++) {
        if (i == 0) fprintf(page->file, "\nmixed up most often:\n");
        name_of(confusion, pair / confusion->classes, NAME_LETTERS, label);
        name_of(confusion, pair % confusion->classes, NAME_LETTERS, said);
        if (i == 0) snprintf(most, sizeof most, "%d", confusion->count[pair]);
        fprintf(page->file, "  %*d  %s taken for %s\n", (int)strlen(most), confusion->count[pair], label,
                said);
    }
}

void confusion_print(const struct confusion *confusion, const struct page *page) {
    enum { BESIDE = 10, PAIRS = 5, MORE_PAIRS = 20 }; /* the words at the end of the first line */
    const int names = larger(longest_name(confusion), 5), counts = digits_of(largest(confusion));
    const int numbers = digits_of(confusion->classes - 1);
    const bool numbered =
        names + confusion->classes * (1 + larger(counts, longest_name(confusion))) + BESIDE > page->columns;
    const int column = 1 + larger(counts, numbered ? numbers : longest_name(confusion));
    const int width = names + (numbered ? numbers + 1 : 0) + confusion->classes * column + BESIDE;
    fprintf(page->file, "%s\n", confusion->title);
    if (width <= page->columns) {
        fputc('\n', page->file);
        print_matrix(confusion, page, names, column, numbered);
    }
    print_pairs(confusion, page, width <= page->columns ? PAIRS : MORE_PAIRS);
}
