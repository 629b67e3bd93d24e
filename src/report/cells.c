/* See cells.h. */
#include "cells.h"

#include <string.h>

#include "../base/file.h"
#include "../base/memory.h"

enum { CELLS_BYTES = 64 << 20 };

char *cells_next(char **at, bool *ends) {
    char *cell = *at, *from = cell, *to = cell;
    const bool quoted = *from == '"';
    for (from += quoted; *from; from++) {
        if (quoted && *from == '"' && *++from != '"') break;
        if (!quoted && strchr(",\n", *from)) break;
        *to++ = *from;
    }
    *ends = *from != ',';
    *at = *from ? from + 1 : from;
    *to = '\0';
    return cell;
}

/* Room for as many cells as there can be: each ends at a comma or a line's end, or begins with a quote. */
static int make_room(struct cells *cells, struct error *error) {
    size_t most = 1;
    for (const char *c = cells->text; *c; c++) most += *c == ',' || *c == '\n' || *c == '"';
    return memory_array(&cells->cells, most, "a table", error);
}

static int add_row(struct cells *cells, char **at, const char *path, struct error *error) {
    const char **row = cells->cells + (size_t)cells->rows * (size_t)cells->columns;
    int column = 0;
    bool ends = false;
    while (!ends && (cells->rows == 0 || column < cells->columns)) row[column++] = cells_next(at, &ends);
    if (cells->rows == 0) cells->columns = column;
    if (!ends || column != cells->columns)
        return error_set(error, ERROR_FILE,
                         "%s: row %d has another number of cells than the first, which has %d", path,
                         cells->rows + 1, cells->columns);
    cells->rows++;
    return OK;
}

int cells_read(struct cells *cells, const char *path, struct error *error) {
    size_t bytes = 0;
    *cells = (struct cells){0};
    RETURN_IF(file_read_plain(path, CELLS_BYTES, &cells->text, &bytes, error));
    int code = make_room(cells, error);
    for (char *at = cells->text; code == OK && *at;) code = add_row(cells, &at, path, error);
    if (code == OK && cells->rows == 0)
        code = error_set(error, ERROR_FILE, "%s: found nothing, expected a table", path);
    if (code != OK) cells_free(cells);
    return code;
}

void cells_free(struct cells *cells) {
    memory_free(cells->text);
    memory_free((void *)cells->cells);
    *cells = (struct cells){0};
}

int cells_column(const struct cells *cells, const char *name) {
    for (int c = 0; c < cells->columns; c++)
        if (strcmp(cells_at(cells, 0, c), name) == 0) return c;
    return -1;
}

int cells_count(const struct cells *cells, int row, int column) {
    const char *cell = cells_at(cells, row, column);
    int count = 0;
    if (!*cell || strlen(cell) > 9) return -1;
    for (; *cell >= '0' && *cell <= '9'; cell++) count = 10 * count + (*cell - '0');
    return *cell ? -1 : count;
}
