/* CSV text cut into rows. Works in place: a cell without its quotes and surrounding blanks is never longer
 * than its text in the file, and the separator or line end after it leaves room for the 0. A row is cut only
 * when all of it is in the window, so that nothing is cut twice. */
#include "csv_rows.h"

#include <string.h>
#include "../base/memory.h"
#include "../base/utf8.h"

enum { WINDOW_BYTES = 1 << 20 };

const char CSV_UTF16[] = "found UTF-16, expected text in UTF-8 (iconv converts)";

bool csv_is_utf16(const char *text, size_t bytes) {
    if (bytes < 4) return false;
    const bool marked = memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0;
    return marked || (!text[0] && text[1] && !text[2] && text[3]) ||
           (text[0] && !text[1] && text[2] && !text[3]);
}

static int check_bytes(const struct csv_rows *rows, const char *text, size_t bytes, size_t offset,
                       struct error *error) {
    const char *zero = bytes ? memchr(text, 0, bytes) : NULL;
    if (!zero) return OK;
    if (offset == 0 && csv_is_utf16(text, bytes))
        return error_set(error, ERROR_FILE, "%s: %s", rows->name, CSV_UTF16);
    return error_set(error, ERROR_FILE, "%s: found a 0 byte at offset %zu, expected text", rows->name,
                     offset + (size_t)(zero - text));
}

/* Brings more text into the window, behind what is unread of it, which moves to the front. */
static int fill(struct csv_rows *rows, struct error *error) {
    const size_t kept = (size_t)(rows->end - rows->at);
    size_t got;
    memmove(rows->window, rows->at, kept);
    if (kept + 1 == rows->room) {
        if (rows->room > CSV_MAX_ROW_BYTES)
            return error_set(error, ERROR_FILE,
                             "%s: row %d: more than %d bytes, expected its end; is a quote not closed?",
                             rows->name, rows->line, CSV_MAX_ROW_BYTES);
        RETURN_IF(memory_grow(&rows->window, rows->room, 2 * rows->room, "a row of a CSV file", error));
        rows->room *= 2;
    }
    rows->at = rows->window;
    rows->end = rows->window + kept;
    const size_t offset = rows->file->used;
    RETURN_IF(file_reader_read(rows->file, rows->end, rows->room - 1 - kept, &got, error));
    RETURN_IF(check_bytes(rows, rows->end, got, offset, error));
    rows->last = got == 0;
    rows->end += got;
    *rows->end = 0;
    return OK;
}

static void skip_mark(struct csv_rows *rows) {
    if (rows->end - rows->at >= 3 && memcmp(rows->at, "\xEF\xBB\xBF", 3) == 0) rows->at += 3;
}

int csv_rows_open(struct csv_rows *rows, const char *name, const char *text, size_t bytes, char separator,
                  struct error *error) {
    *rows = (struct csv_rows){.name = name, .separator = separator, .line = 1, .last = true};
    RETURN_IF(check_bytes(rows, text, bytes, 0, error));
    rows->room = bytes + 1;
    RETURN_IF(memory_array(&rows->window, rows->room, "the text of a CSV file", error));
    if (bytes) memcpy(rows->window, text, bytes);
    rows->at = rows->window;
    rows->end = rows->window + bytes;
    skip_mark(rows);
    return OK;
}

int csv_rows_open_file(struct csv_rows *rows, struct file_reader *file, char separator, struct error *error) {
    *rows = (struct csv_rows){.name = file->path, .file = file, .separator = separator, .line = 1};
    rows->room = file->likely < WINDOW_BYTES ? file->likely + 2 : WINDOW_BYTES;
    RETURN_IF(memory_array(&rows->window, rows->room, "the text of a CSV file", error));
    rows->at = rows->end = rows->window;
    while (!rows->last && rows->end - rows->at < 3) RETURN_IF(fill(rows, error));
    skip_mark(rows);
    return OK;
}

static char *skip_blanks(const struct csv_rows *rows, char *at) {
    while ((*at == ' ' || *at == '\t' || *at == '\r') && *at != rows->separator) at++;
    return at;
}

static int skip_blank_lines(struct csv_rows *rows, struct error *error) {
    for (;;) {
        char *at = skip_blanks(rows, rows->at);
        if (at == rows->end) {
            if (rows->last) rows->at = at;
            if (rows->last) return OK;
            RETURN_IF(fill(rows, error));
        } else if (*at == '\n') {
            rows->at = at + 1;
            rows->line++;
        } else {
            return OK;
        }
    }
}

/* Whether the row that begins at `at` ends before the end of the window, where it has quotes: they are
 * followed as read_cell takes them. */
static bool ends_here(const struct csv_rows *rows) {
    char *at = rows->at;
    while (at < rows->end) {
        at = skip_blanks(rows, at);
        if (*at == '"') {
            for (at++; at < rows->end && (*at != '"' || at[1] == '"'); at++)
                if (*at == '"') at++;
            if (at + 1 >= rows->end) return false; /* the quote may be doubled */
        }
        while (at < rows->end && *at != rows->separator && *at != '\n') at++;
        if (*at == '\n') return true;
        if (at < rows->end) at++;
    }
    return false;
}

/* Brings all of the row into the window. */
static int complete(struct csv_rows *rows, struct error *error) {
    while (!rows->last) {
        const size_t bytes = (size_t)(rows->end - rows->at);
        const char *newline = memchr(rows->at, '\n', bytes);
        if (newline && !memchr(rows->at, '"', (size_t)(newline - rows->at))) return OK;
        if (newline && ends_here(rows)) return OK;
        RETURN_IF(fill(rows, error));
    }
    return OK;
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
    RETURN_IF(skip_blank_lines(rows, error));
    RETURN_IF(complete(rows, error));
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
    memory_free(rows->window);
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
