/* CSV text cut into rows of cells (RFC 4180, with a choice of separators): quoted cells with "" for a
 * quote, which may hold separators and line ends; LF or CRLF; a byte order mark; the last line with or
 * without an end. Blanks around cells are dropped, blank lines skipped. Of a file, only a window of the text
 * is in memory: the row in hand and some of what follows. */
#ifndef TRAINER_DATA_CSV_ROWS_H
#define TRAINER_DATA_CSV_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include "../base/file_reader.h"

enum {
    CSV_MAX_ROW_BYTES = 1 << 26,
    CSV_MAX_COLUMNS = 65536,
};

struct csv_rows {
    const char *name;         /* of the file, for the words; borrowed */
    struct file_reader *file; /* where more text comes from; NULL: all of it is in the window. Borrowed */
    char *window;             /* [room], owned; cells are cut out of it in place */
    size_t room;
    char *at, *end; /* what is still to be read, inside the window; *end is 0 */
    bool last;      /* nothing follows `end` */
    char separator; /* may be set until the first row is read */
    int line;       /* where `at` stands, from 1 */
    int row;        /* line on which the last row read begins */
    char **cells; /* [count] of that row, in the window, each ended by 0; valid until the next row is read */
    int count, capacity;
};

/* Whether a text's beginning is UTF-16: it has the mark, or every other byte is 0. */
bool csv_is_utf16(const char *text, size_t bytes);
extern const char CSV_UTF16[]; /* the words for it, behind the file's name */

/* Copies the text. Errors: ERROR_FILE: a 0 byte in it. */
int csv_rows_open(struct csv_rows *rows, const char *name, const char *text, size_t bytes, char separator,
                  struct error *error);
/* Reads from the file, which is open and at its beginning. Errors: ERROR_FILE. */
int csv_rows_open_file(struct csv_rows *rows, struct file_reader *file, char separator, struct error *error);
/* Reads the next row; *found is false at the end. Errors: ERROR_FILE: a quote that does not close, too many
 * cells, a row of more than CSV_MAX_ROW_BYTES, a 0 byte; what is wrong with the file. */
int csv_rows_next(struct csv_rows *rows, bool *found, struct error *error);
void csv_rows_close(struct csv_rows *rows); /* safe on a zeroed one */

/* A cell made fit for an error message: at most 40 bytes, one line, UTF-8. Returns out. */
enum { CSV_SHOWN_BYTES = 48 };
const char *csv_shown(const char *cell, char out[CSV_SHOWN_BYTES]);

#endif
