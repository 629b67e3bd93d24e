/* See csv.h. */
#include "csv.h"

#include <string.h>

bool csv_needs_quotes(const char *piece) {
    return strpbrk(piece, ",\"\r\n") != NULL;
}

/* Up to and with its next quote, or to its end: so many characters. */
static size_t next_piece(const char *cell) {
    const size_t plain = strcspn(cell, "\"");
    return plain + (cell[plain] == '"');
}

/* The quotes doubled. */
void csv_print_piece(FILE *file, const char *piece) {
    for (size_t count; *piece; piece += count) {
        count = next_piece(piece);
        fwrite(piece, 1, count, file);
        if (piece[count - 1] == '"') fputc('"', file);
    }
}

void csv_print_parts(FILE *file, const char *before, const char *cell) {
    const bool quotes = csv_needs_quotes(before) || csv_needs_quotes(cell);
    if (quotes) fputc('"', file);
    csv_print_piece(file, before);
    csv_print_piece(file, cell);
    if (quotes) fputc('"', file);
}

void csv_print(FILE *file, const char *cell) {
    csv_print_parts(file, "", cell);
}

void csv_add(struct text *text, const char *cell) {
    const char *quote = csv_needs_quotes(cell) ? "\"" : "";
    text_add(text, "%s", quote);
    for (size_t count; *cell; cell += count) {
        count = next_piece(cell);
        text_add_bytes(text, cell, count);
        if (cell[count - 1] == '"') text_add_bytes(text, "\"", 1);
    }
    text_add(text, "%s,", quote);
}
