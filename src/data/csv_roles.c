/* Roles of columns. */
#include "csv_roles.h"

#include <string.h>

#include "../base/option.h"

enum { NAMES_MOST = 127 };

static int no_column(const struct columns *columns, const char *setting, const char *found, size_t bytes,
                     const char *name, struct error *error) {
    char cell[CSV_SHOWN_BYTES], shown[CSV_SHOWN_BYTES];
    const size_t kept = bytes < sizeof cell ? bytes : sizeof cell - 1;
    memcpy(cell, found, kept);
    cell[kept] = '\0';
    const char *names[NAMES_MOST + 1] = {0};
    for (int c = 0; c < columns->count && c < NAMES_MOST; c++) names[c] = columns->at[c].name;
    const char *nearest = columns->named ? option_nearest(cell, names) : NULL;
    return error_set(error, ERROR_USAGE,
                     "%s: found %s=%s, expected %s of one of its %d columns, 1 to %d%s%s%s%s", name, setting,
                     csv_shown(cell, shown), columns->named ? "the name or number" : "the number",
                     columns->count, columns->count, columns->named ? "" : ", as it has no header",
                     nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

/* *column = the one that a setting names. */
static int find_column(int *column, const struct columns *columns, const char *setting, const char *found,
                       size_t bytes, const char *name, struct error *error) {
    char shown[CSV_SHOWN_BYTES];
    *column = columns_find(columns, found, bytes);
    if (*column < 0) return no_column(columns, setting, found, bytes, name, error);
    const char *own = columns->at[*column].name;
    const int same = columns->named ? columns_named(columns, own) : 1;
    if (same == 1 || strlen(own) != bytes || memcmp(own, found, bytes) != 0) return OK;
    return error_set(error, ERROR_USAGE,
                     "%s: found %s=%s, the name of %d columns, expected a number such as %s=%d, the first of "
                     "them",
                     name, setting, csv_shown(own, shown), same, setting, *column + 1);
}

static int set_label(struct columns *columns, const char *label, const char *name, struct error *error) {
    int column = columns->count - 1;
    if (!label) return OK;
    if (*label) RETURN_IF(find_column(&column, columns, "label", label, strlen(label), name, error));
    columns->at[column].role = COLUMN_LABEL;
    return OK;
}

/* Gives those of the list, "a,3,b", that role; not the label. */
static int set_list(struct columns *columns, const char *setting, const char *list, enum column_role role,
                    const char *name, struct error *error) {
    for (const char *at = list, *end; at && *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, ",");
        int column;
        RETURN_IF(find_column(&column, columns, setting, at, (size_t)(end - at), name, error));
        if (columns->at[column].role == COLUMN_LABEL)
            return error_set(error, ERROR_USAGE, "%s: found the label in %s=%s, expected other columns", name,
                             setting, list);
        columns->at[column].role = role;
        columns->at[column].chosen = role == COLUMN_CATEGORY;
    }
    return OK;
}

int csv_roles(struct columns *columns, const struct csv_format *format, const char *name,
              struct error *error) {
    const bool chosen = format->columns && *format->columns;
    for (int c = 0; c < columns->count; c++) columns->at[c].role = chosen ? COLUMN_IGNORED : COLUMN_OPEN;
    RETURN_IF(set_label(columns, format->label, name, error));
    RETURN_IF(set_list(columns, "columns", format->columns, COLUMN_OPEN, name, error));
    RETURN_IF(set_list(columns, "categories", format->categories, COLUMN_CATEGORY, name, error));
    RETURN_IF(set_list(columns, "ignore", format->ignore, COLUMN_IGNORED, name, error));
    RETURN_IF(set_list(columns, "target", format->target, COLUMN_TARGET, name, error));
    if (columns_cells(columns) > 0) return OK;
    return error_set(error, ERROR_USAGE, "%s: found no column to learn from, expected one beside %s", name,
                     format->target && *format->target ? "the target" : "the label");
}
