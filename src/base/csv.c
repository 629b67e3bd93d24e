/* See csv.h. */
#include "csv.h"

#include <stdbool.h>
#include <string.h>

static bool needs_quotes(const char *cell) {
    return strpbrk(cell, ",\"\r\n") != NULL;
}

/* Up to and with its next quote, or to its end: so many characters. */
static size_t next_piece(const char *cell) {
    const size_t plain = strcspn(cell, "\"");
    return plain + (cell[plain] == '"');
}

/* The quotes doubled. */
static void print_inside(FILE *file, const char *cell) {
    for (size_t count; *cell; cell += count) {
        count = next_piece(cell);
        fwrite(cell, 1, count, file);
        if (cell[count - 1] == '"') fputc('"', file);
    }
}

void csv_print_parts(FILE *file, const char *before, const char *cell) {
    const bool quotes = needs_quotes(before) || needs_quotes(cell);
    if (quotes) fputc('"', file);
    print_inside(file, before);
    print_inside(file, cell);
    if (quotes) fputc('"', file);
}

void csv_print(FILE *file, const char *cell) {
    csv_print_parts(file, "", cell);
}

void csv_add(struct text *text, const char *cell) {
    const char *quote = needs_quotes(cell) ? "\"" : "";
    text_add(text, "%s", quote);
    for (size_t count; *cell; cell += count) {
        count = next_piece(cell);
        text_add_bytes(text, cell, count);
        if (cell[count - 1] == '"') text_add_bytes(text, "\"", 1);
    }
    text_add(text, "%s,", quote);
}
