/* The columns of a table. The text has words that tabs separate, as no name has one:
 *
 *   header DECIMAL                 "." or ","
 *   embedding UNITS                only where categories are embedded
 *   number NAME FILL               FILL: a number, or "" where missing cells are refused
 *   category NAME FILLS N VALUE... FILLS: 1 where a missing cell counts as the value ""
 *   label NAME
 *   target NAME
 *   ignored NAME
 *
 * or "no header" first, and names that are "". */
#include "columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"

enum { COLUMNS_MOST = 65536, VALUES_MOST = 100000 };

static const char *const roles[COLUMN_ROLES] = {
    [COLUMN_OPEN] = "open",   [COLUMN_NUMBER] = "number",   [COLUMN_CATEGORY] = "category",
    [COLUMN_LABEL] = "label", [COLUMN_IGNORED] = "ignored", [COLUMN_TARGET] = "target",
};

int columns_open(struct columns *columns, int count, struct error *error) {
    *columns = (struct columns){0};
    RETURN_IF(memory_array(&columns->at, count, "the columns of a table", error));
    columns->count = count;
    return OK;
}

void columns_close(struct columns *columns) {
    for (int c = 0; c < columns->count; c++) {
        memory_free(columns->at[c].name);
        categories_close(&columns->at[c].values);
    }
    memory_free(columns->at);
    *columns = (struct columns){0};
}

int columns_of(const struct columns *columns, enum column_role role) {
    int count = 0;
    for (int c = 0; c < columns->count; c++) count += columns->at[c].role == role;
    return count;
}

int columns_cells(const struct columns *columns) {
    int count = 0;
    for (int c = 0; c < columns->count; c++) count += column_is_feature(&columns->at[c]);
    return count;
}

/* Features of a category. */
static int width_of(const struct columns *columns, const struct column *column) {
    return columns->units > 0 ? 1 : column->values.count;
}

int columns_features(const struct columns *columns) {
    int count = columns_of(columns, COLUMN_NUMBER);
    for (int c = 0; c < columns->count; c++)
        if (columns->at[c].role == COLUMN_CATEGORY) count += width_of(columns, &columns->at[c]);
    return count;
}

struct codes columns_codes(const struct columns *columns) {
    const int categories = columns_of(columns, COLUMN_CATEGORY);
    struct codes codes = {
        .numbers = columns_of(columns, COLUMN_NUMBER), .vocabulary = 1, .units = columns->units};
    if (columns->units == 0 || categories == 0) return (struct codes){0};
    codes.columns = categories;
    for (int c = 0; c < columns->count; c++)
        if (columns->at[c].role == COLUMN_CATEGORY) codes.vocabulary += columns->at[c].values.count;
    return codes;
}

int columns_find(const struct columns *columns, const char *name, size_t bytes) {
    for (int c = 0; columns->named && c < columns->count; c++)
        if (strlen(columns->at[c].name) == bytes && strncmp(columns->at[c].name, name, bytes) == 0) return c;
    if (bytes == 0 || strspn(name, "0123456789") < bytes) return -1;
    const long number = strtol(name, NULL, 10);
    return number >= 1 && number <= columns->count ? (int)number - 1 : -1;
}

int columns_named(const struct columns *columns, const char *name) {
    int count = 0;
    for (int c = 0; c < columns->count; c++) count += strcmp(columns->at[c].name, name) == 0;
    return count;
}

void columns_fill(const struct columns *columns, float *cells) {
    for (int c = 0; c < columns->count; c++) {
        const struct column *column = &columns->at[c];
        if (!column_is_feature(column)) continue;
        if (isnan(*cells))
            *cells =
                column->role == COLUMN_NUMBER ? column->fill : (float)categories_find(&column->values, "");
        cells++;
    }
}

/* Into the features of one category, of which `before` codes are taken. */
static void expand_category(const struct columns *columns, const struct column *column, float value,
                            int before, float *features) {
    if (columns->units > 0) {
        *features = value >= 0 ? (float)(before + (int)value) : 0;
        return;
    }
    memset(features, 0, (size_t)column->values.count * sizeof *features);
    if (value >= 0) features[(int)value] = 1.0f;
}

int columns_expand(const struct columns *columns, const float *cells, float *features) {
    const int codes_begin = columns->units > 0 ? columns_of(columns, COLUMN_NUMBER) : 0;
    float *categories = features + codes_begin, **const to = columns->units > 0 ? &categories : &features;
    int unseen = 0, codes = 1;
    for (int c = 0; c < columns->count; c++) {
        const struct column *column = &columns->at[c];
        if (!column_is_feature(column)) continue;
        if (column->role == COLUMN_CATEGORY) {
            expand_category(columns, column, *cells, codes, *to);
            *to += width_of(columns, column);
            codes += column->values.count;
            unseen += *cells < 0;
        } else {
            *features++ = *cells;
        }
        cells++;
    }
    return unseen;
}

static void name_feature(struct text *text, const char *name, const char *value) {
    text_add(text, "%s%s%s", name, value ? "=" : "", value ? value : "");
    text_add_bytes(text, "", 1);
}

/* The features of one column. */
static void name_column(const struct columns *columns, int c, struct text *text) {
    const struct column *column = &columns->at[c];
    char number[16];
    struct text as = text_into(number, sizeof number);
    text_add(&as, "%d", c + 1);
    const char *name = *column->name ? column->name : number;
    if (column->role == COLUMN_NUMBER || (column->role == COLUMN_CATEGORY && columns->units > 0))
        name_feature(text, name, NULL);
    else
        for (int v = 0; column->role == COLUMN_CATEGORY && v < column->values.count; v++)
            name_feature(text, name, column->values.at[v].text);
}

void columns_name_features(const struct columns *columns, struct text *text) {
    for (int c = 0; c < columns->count; c++)
        if (columns->units == 0 || columns->at[c].role == COLUMN_NUMBER) name_column(columns, c, text);
    for (int c = 0; columns->units > 0 && c < columns->count; c++)
        if (columns->at[c].role == COLUMN_CATEGORY) name_column(columns, c, text);
}

/* --- as a text --- */

void columns_write(const struct columns *columns, struct text *text) {
    text_add(text, "%s\t%c", columns->named ? "header" : "no header", columns->decimal);
    if (columns->units > 0) text_add(text, "\tembedding\t%d", columns->units);
    for (int c = 0; c < columns->count; c++) {
        const struct column *column = &columns->at[c];
        text_add(text, "\t%s\t%s", roles[column->role], column->name);
        if (column->role == COLUMN_NUMBER) text_add(text, "\t");
        if (column->role == COLUMN_NUMBER && column->fills) text_add(text, "%.9g", (double)column->fill);
        if (column->role == COLUMN_CATEGORY) text_add(text, "\t%d\t%d", column->fills, column->values.count);
        for (int v = 0; column->role == COLUMN_CATEGORY && v < column->values.count; v++)
            text_add(text, "\t%s", column->values.at[v].text);
    }
}

/* The words that are still to be read, each ended by a 0; NULL: no more. */
struct words {
    char *at;
};

static const char *next(struct words *words) {
    char *const word = words->at;
    if (!word) return NULL;
    char *const tab = strchr(word, '\t');
    if (tab) *tab = '\0';
    words->at = tab ? tab + 1 : NULL;
    return word;
}

/* A whole number from 0 to `most`, or -1. */
static int next_count(struct words *words, int most) {
    const char *word = next(words);
    char *end = NULL;
    if (!word || *word < '0' || *word > '9') return -1;
    const long count = strtol(word, &end, 10);
    return *end || count > most ? -1 : (int)count;
}

static bool read_number(struct column *column, struct words *words) {
    const char *word = next(words);
    char *end = NULL;
    if (!word) return false;
    column->fills = *word != '\0';
    column->fill = column->fills ? strtof(word, &end) : 0;
    return !column->fills || (end != word && !*end && isfinite(column->fill));
}

static bool read_category(struct column *column, struct words *words, struct error *error) {
    const int fills = next_count(words, 1), count = next_count(words, VALUES_MOST);
    int number;
    column->fills = fills == 1;
    for (int v = 0; v < count; v++) {
        const char *value = next(words);
        if (!value || categories_find(&column->values, value) >= 0 ||
            categories_add(&column->values, value, 0, &number, error) != OK)
            return false;
    }
    return fills >= 0 && count >= 1;
}

static bool read_column(struct column *column, struct words *words, struct error *error) {
    const char *role = next(words), *name = next(words);
    if (!role || !name || memory_text(&column->name, name, error) != OK) return false;
    for (column->role = COLUMN_NUMBER; column->role < COLUMN_ROLES; column->role++)
        if (strcmp(roles[column->role], role) == 0) break;
    if (column->role == COLUMN_NUMBER) return read_number(column, words);
    if (column->role == COLUMN_CATEGORY) return read_category(column, words, error);
    return column->role < COLUMN_ROLES;
}

/* The words before the first column, if there are any. */
static bool read_units(struct columns *columns, struct words *words) {
    static const char word[] = "embedding\t";
    if (!words->at || strncmp(words->at, word, sizeof word - 1) != 0) return true;
    (void)next(words);
    columns->units = next_count(words, COLUMNS_UNITS_MOST);
    return columns->units > 0;
}

static bool read_columns(struct columns *columns, struct words *words, struct error *error) {
    const char *header = next(words), *decimal = next(words);
    int room = 0;
    if (!decimal || (strcmp(decimal, ".") != 0 && strcmp(decimal, ",") != 0)) return false;
    columns->decimal = *decimal;
    columns->named = strcmp(header, "header") == 0;
    if (!columns->named && strcmp(header, "no header") != 0) return false;
    if (!read_units(columns, words)) return false;
    while (words->at && columns->count < COLUMNS_MOST) {
        if (columns->count == room) {
            const int more = room ? 2 * room : 16;
            if (memory_grow(&columns->at, room, more, "the columns of a table", error) != OK) return false;
            room = more;
        }
        if (!read_column(&columns->at[columns->count++], words, error)) return false;
    }
    return !words->at && columns_cells(columns) > 0 && columns_of(columns, COLUMN_LABEL) <= 1;
}

bool columns_read(struct columns *columns, const char *text, struct error *error) {
    char *copy;
    *columns = (struct columns){0};
    if (memory_text(&copy, text, error) != OK) return false;
    struct words words = {copy};
    const bool good = read_columns(columns, &words, error);
    memory_free(copy);
    return good;
}
