/* CSV text cut into rows. Works in place: a cell without its quotes and surrounding blanks is never longer
 * than its text in the file, and the separator or line end after it leaves room for the 0. */
#include "csv_rows.h"

#include <string.h>
#include "../base/memory.h"
#include "../base/utf8.h"

int csv_rows_open(struct csv_rows *rows, const char *name, const char *text, size_t bytes, char separator,
                  struct error *error) {
    *rows = (struct csv_rows){.name = name, .separator = separator, .line = 1};
    if (bytes > CSV_MAX_BYTES)
        return error_set(error, ERROR_FILE, "%s: found %zu bytes, expected at most %d", name, bytes,
                         CSV_MAX_BYTES);
    const char *zero = bytes ? memchr(text, 0, bytes) : NULL;
    if (zero)
        return error_set(error, ERROR_FILE, "%s: found a 0 byte at offset %zu, expected text", name,
                         (size_t)(zero - text));
    RETURN_IF(memory_array(&rows->text, bytes + 1, "the text of a CSV file", error));
    if (bytes) memcpy(rows->text, text, bytes);
    rows->at = rows->text;
    rows->end = rows->text + bytes;
    if (bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) rows->at += 3; /* byte order mark */
    return OK;
}

static char *skip_blanks(const struct csv_rows *rows, char *at) {
    while ((*at == ' ' || *at == '\t' || *at == '\r') && *at != rows->separator) at++;
    return at;
}

static void skip_blank_lines(struct csv_rows *rows) {
    for (;;) {
        char *at = skip_blanks(rows, rows->at);
        if (at == rows->end) rows->at = at;
        if (*at != '\n') return;
        rows->at = at + 1;
        rows->line++;
    }
}

static int make_room(struct csv_rows *rows, struct error *error) {
    if (rows->count < rows->capacity) return OK;
    if (rows->count == CSV_MAX_COLUMNS)
        return error_set(error, ERROR_FILE, "%s: row %d: found more than %d cells", rows->name, rows->row,
                         CSV_MAX_COLUMNS);
    const int capacity = rows->capacity ? 2 * rows->capacity : 64;
    RETURN_IF(memory_grow(&rows->cells, rows->capacity, capacity, "the cells of a CSV row", error));
    rows->capacity = capacity;
    return OK;
}

/* Takes the quotes off the cell that begins at `quote`: *last is where its text ends now, *stop what follows
 * the closing quote. */
static int unquote(struct csv_rows *rows, char *quote, char **last, char **stop, struct error *error) {
    char *from = quote + 1, *to = quote;
    while (from < rows->end && (*from != '"' || from[1] == '"')) {
        if (*from == '"') from++;
        if (*from == '\n') rows->line++;
        *to++ = *from++;
    }
    if (from == rows->end)
        return error_set(error, ERROR_FILE,
                         "%s: row %d, column %d: found the end of the file, expected a closing quote",
                         rows->name, rows->row, rows->count + 1);
    *last = to;
    *stop = skip_blanks(rows, from + 1);
    if (*stop == rows->end || **stop == rows->separator || **stop == '\n') return OK;
    char shown[CSV_SHOWN_BYTES];
    const char odd[2] = {**stop, 0};
    return error_set(error, ERROR_FILE,
                     "%s: row %d, column %d: found \"%s\" after the closing quote, expected a separator",
                     rows->name, rows->row, rows->count + 1, csv_shown(odd, shown));
}

/* Reads one cell; *more: another one follows in this row. */
static int read_cell(struct csv_rows *rows, bool *more, struct error *error) {
    char *begin = skip_blanks(rows, rows->at), *last = begin, *stop = begin;
    if (*begin == '"') {
        RETURN_IF(unquote(rows, begin, &last, &stop, error));
    } else {
        while (stop < rows->end && *stop != rows->separator && *stop != '\n') stop++;
        last = stop;
        while (last > begin && (last[-1] == ' ' || last[-1] == '\t' || last[-1] == '\r')) last--;
    }
    *more = stop < rows->end && *stop == rows->separator;
    if (stop < rows->end && *stop == '\n') rows->line++;
    rows->at = stop < rows->end ? stop + 1 : stop;
    *last = 0; /* only now: it may be the separator itself */
    rows->cells[rows->count++] = begin;
    return OK;
}

int csv_rows_next(struct csv_rows *rows, bool *found, struct error *error) {
    skip_blank_lines(rows);
    *found = rows->at < rows->end;
    rows->row = rows->line;
    rows->count = 0;
    for (bool more = *found; more;) {
        RETURN_IF(make_room(rows, error));
        RETURN_IF(read_cell(rows, &more, error));
    }
    return OK;
}

void csv_rows_close(struct csv_rows *rows) {
    memory_free(rows->cells);
    memory_free(rows->text);
    *rows = (struct csv_rows){0};
}

const char *csv_shown(const char *cell, char out[CSV_SHOWN_BYTES]) {
    enum { LONGEST = 40 };
    size_t length = strlen(cell);
    const bool cut = length > LONGEST;
    if (cut) length = LONGEST;
    while (cut && length > 0 && ((unsigned char)cell[length] & 0xC0) == 0x80)
        length--; /* not inside a UTF-8 sequence */
    for (size_t i = 0, bytes; i < length; i += bytes) {
        const size_t well_formed = utf8_length(cell + i);
        bytes = well_formed > 0 ? well_formed : 1;
        memcpy(out + i, cell + i, bytes);
        if (well_formed == 0 || (unsigned char)cell[i] < 0x20 || cell[i] == 0x7F) out[i] = '?';
    }
    memcpy(out + length, cut ? "..." : "", cut ? 4 : 1);
    return out;
}
