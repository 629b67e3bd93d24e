/* A row's cells become floats as they are read; what a column is, is known from its first cell on. */
#include "csv_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"
#include "csv_number.h"
#include "csv_roles.h"
#include "dataset.h"

/* --- words --- */

const char *csv_place(const char *name, int line, int cell, const struct columns *columns, int column,
                      char out[CSV_PLACE_BYTES]) {
    char shown[CSV_SHOWN_BYTES];
    struct text text = text_into(out, CSV_PLACE_BYTES);
    text_add(&text, "%s: row %d, column %d", name, line, cell + 1);
    if (columns->named) text_add(&text, " \"%s\"", csv_shown(columns->at[column].name, shown));
    return out;
}

const char *csv_column(const struct columns *columns, int column, char out[CSV_COLUMN_BYTES]) {
    const char *name = columns->at[column].name;
    struct text text = text_into(out, CSV_COLUMN_BYTES);
    if (columns->named && *name && columns_named(columns, name) == 1 && strlen(name) < 40 &&
        !strpbrk(name, ",=\" \n'"))
        text_add(&text, "%s", name);
    else
        text_add(&text, "%d", column + 1);
    return out;
}

/* What is to be said of a row. */
static bool is_wanted(const struct column *column) {
    return column->role == COLUMN_LABEL || column->role == COLUMN_TARGET;
}

/* The place of a cell of the row in hand. */
static const char *place_of(const struct csv_reader *reader, int cell, char out[CSV_PLACE_BYTES]) {
    return csv_place(reader->rows.name, reader->rows.row, cell, reader->columns, reader->column_of[cell],
                     out);
}

static const char *expected_of(const struct column *column) {
    static const char *const words[COLUMN_ROLES] = {[COLUMN_OPEN] = "a number or a category",
                                                    [COLUMN_NUMBER] = "a number",
                                                    [COLUMN_CATEGORY] = "a category",
                                                    [COLUMN_LABEL] = "a label",
                                                    [COLUMN_TARGET] = "a number to predict"};
    return words[column->role];
}

static int wrong_missing(const struct csv_reader *reader, int cell, struct error *error) {
    const struct column *column = &reader->columns->at[reader->column_of[cell]];
    const char *found = reader->rows.cells[cell], *advice = "";
    char place[CSV_PLACE_BYTES], shown[CSV_SHOWN_BYTES];
    if (reader->fixed)
        advice = "; a network trained with missing=mean takes such cells";
    else if (is_wanted(column))
        advice = "; missing=drop leaves such rows out";
    else
        advice = "; missing=mean fills such cells in, missing=drop leaves their rows out";
    place_of(reader, cell, place);
    if (!*found)
        return error_set(error, ERROR_FILE, "%s: found an empty cell, expected %s%s", place,
                         expected_of(column), advice);
    return error_set(error, ERROR_FILE, "%s: found \"%s\", a missing value, expected %s%s", place,
                     csv_shown(found, shown), expected_of(column), advice);
}

static int wrong_number(const struct csv_reader *reader, int cell, const char *expected,
                        struct error *error) {
    const struct columns *columns = reader->columns;
    const char *found = reader->rows.cells[cell];
    char place[CSV_PLACE_BYTES], shown[CSV_SHOWN_BYTES], name[CSV_COLUMN_BYTES], advice[200] = "";
    struct text text = text_into(advice, sizeof advice);
    csv_column(columns, reader->column_of[cell], name);
    if (csv_comma(found) != CSV_COMMA_NONE && reader->format.decimal == '.' && expected == CSV_A_NUMBER)
        text_add(&text, "; decimal=comma takes decimal commas");
    else if (!reader->fixed && csv_date(found))
        text_add(&text, "; ignore=%s leaves the column out", name);
    else if (!reader->fixed && csv_dressed(found))
        text_add(&text, "; write numbers as 1234.5, categories=%s takes texts", name);
    else if (!reader->fixed && expected == CSV_A_NUMBER)
        text_add(&text, "; categories=%s takes texts, ignore=%s leaves the column out", name, name);
    return error_set(error, ERROR_FILE, "%s: found %s\"%s\", expected %s%s", place_of(reader, cell, place),
                     csv_date(found) ? "the date " : "", csv_shown(found, shown), expected, advice);
}

static int check_name(const struct csv_reader *reader, int cell, struct error *error) {
    const char *found = reader->rows.cells[cell], *expected = dataset_name_expected(found);
    char shown[CSV_SHOWN_BYTES];
    if (!expected) return OK;
    return error_set(error, ERROR_FILE, "%s: row %d, column %d: found \"%s\", expected %s", reader->rows.name,
                     reader->rows.row, cell + 1, csv_shown(found, shown), expected);
}

/* `like`: what it was compared with, or NULL: the rows before. */
static int wrong_count(const struct csv_reader *reader, int expected, const char *like, struct error *error) {
    const struct csv_rows *row = &reader->rows;
    return error_set(error, ERROR_FILE, "%s: row %d: found %d cell%s, expected %d%s%s", row->name, row->row,
                     row->count, row->count == 1 ? "" : "s", expected, like ? " as in " : "",
                     like ? like : "");
}

/* --- columns --- */

/* Classes that the first row names are the labels, in that order, whether rows have them or not. */
static int add_classes(const struct csv_reader *reader, struct column *label, struct error *error) {
    int ignored;
    for (int c = 0; label->role == COLUMN_LABEL && c < reader->classes.count; c++)
        RETURN_IF(categories_add(&label->values, reader->classes.at[c].text, 0, &ignored, error));
    return OK;
}

/* The columns of a file that is read for itself. */
static int find_columns(struct csv_reader *reader, struct error *error) {
    const struct csv_rows *row = &reader->rows;
    struct columns *columns = reader->columns;
    if (row->count < 2 && reader->format.label)
        return error_set(error, ERROR_FILE,
                         "%s: row %d: found 1 cell, expected at least 2, separated by '%c'", row->name,
                         row->row, reader->format.separator);
    RETURN_IF(columns_open(columns, row->count, error));
    columns->named = reader->header;
    for (int c = 0; c < row->count; c++) {
        if (reader->header) RETURN_IF(check_name(reader, c, error));
        RETURN_IF(memory_text(&columns->at[c].name, reader->header ? row->cells[c] : "", error));
        reader->column_of[c] = c;
    }
    RETURN_IF(csv_roles(columns, &reader->format, row->name, error));
    return add_classes(reader, &columns->at[row->count - 1], error);
}

/* Whether a column of `like` has to be in this file. */
static bool is_needed(const struct csv_reader *reader, const struct column *column) {
    return column_is_feature(column) || (is_wanted(column) && !reader->fixed);
}

/* The cell of the header that has the column's name and is no other column's yet, or -1. `header`: the cells'
 * texts, with their places as lines. */
static int cell_of(const struct csv_reader *reader, const struct categories *header, int column) {
    const struct csv_rows *row = &reader->rows;
    const char *name = reader->columns->at[column].name;
    if (!*name && reader->columns->at[column].role == COLUMN_LABEL) return -1; /* nobody knows its name */
    if (column < row->count && reader->column_of[column] < 0 && strcmp(row->cells[column], name) == 0)
        return column; /* where it was: names may be there twice */
    const int number = categories_find(header, name), cell = number < 0 ? -1 : header->at[number].line;
    return cell >= 0 && reader->column_of[cell] < 0 ? cell : -1;
}

/* Matches the columns of `like` with the cells of the header. *matched: how many features are there;
 * *lacking: the name of the first column that should be and is not, or NULL. */
static int match_names(struct csv_reader *reader, int *matched, const char **lacking, struct error *error) {
    const struct csv_rows *row = &reader->rows;
    struct categories header = {0};
    int code = OK, ignored;
    *matched = 0;
    *lacking = NULL;
    for (int cell = 0; code == OK && cell < row->count; cell++) {
        reader->column_of[cell] = -1;
        code = categories_add(&header, row->cells[cell], cell, &ignored, error);
    }
    for (int c = 0; code == OK && c < reader->columns->count; c++) {
        const struct column *column = &reader->columns->at[c];
        const int cell = cell_of(reader, &header, c);
        if (cell >= 0) reader->column_of[cell] = c;
        *matched += cell >= 0 && column_is_feature(column);
        if (cell < 0 && is_needed(reader, column) && !*lacking) *lacking = column->name;
    }
    categories_close(&header);
    return code;
}

/* By place: all columns, or, of rows to predict, all without the label, or the features alone. */
static int match_places(struct csv_reader *reader, struct error *error) {
    const struct columns *columns = reader->columns;
    const int all = columns->count, features = columns_cells(columns),
              labels = columns_of(columns, COLUMN_LABEL) + columns_of(columns, COLUMN_TARGET),
              count = reader->rows.count;
    const bool labelled = count == all || (reader->fixed && count == features + labels);
    if (count != all && !(reader->fixed && (labelled || count == all - labels || count == features)))
        return wrong_count(reader, reader->fixed ? features : all, reader->like, error);
    const bool ignored = count == all || count == all - labels;
    for (int c = 0, cell = 0; c < all; c++) {
        const struct column *column = &columns->at[c];
        if ((is_wanted(column) && !labelled) || (column->role == COLUMN_IGNORED && !ignored)) continue;
        reader->column_of[cell++] = c;
    }
    return OK;
}

/* The columns of a file that is to have those of another. */
static int match_columns(struct csv_reader *reader, struct error *error) {
    const char *lacking;
    char shown[CSV_SHOWN_BYTES];
    int matched;
    if (reader->counted > 0) return match_places(reader, error);
    if (!reader->columns->named) {
        /* Without numbers nothing but different texts spoke for a header. */
        if (reader->format.header == CSV_HEADER_AUTO && columns_of(reader->columns, COLUMN_NUMBER) == 0)
            reader->header = false;
        return match_places(reader, error);
    }
    RETURN_IF(match_names(reader, &matched, &lacking, error));
    if (reader->format.header == CSV_HEADER_AUTO) reader->header = matched > 0;
    if (!reader->header) return match_places(reader, error);
    if (!lacking) return OK;
    return error_set(error, ERROR_FILE, "%s: row %d: found no column \"%s\", expected the columns of %s",
                     reader->rows.name, reader->rows.row, csv_shown(lacking, shown), reader->like);
}

/* Whether labels may number the classes of the network, from 0: none of them is called by a number. */
static bool may_number(const struct columns *columns, int label) {
    const struct categories *classes = &columns->at[label].values;
    float ignored;
    for (int c = 0; c < classes->count; c++)
        if (!csv_number(classes->at[c].text, '.', &ignored)) return false;
    return true;
}

/* Where each cell goes. */
static int place_cells(struct csv_reader *reader, struct error *error) {
    const struct columns *columns = reader->columns;
    int *places, features = 0, targets = columns_cells(columns);
    RETURN_IF(memory_array(&places, columns->count, "the columns of a table", error));
    for (int c = 0; c < columns->count; c++)
        places[c] = columns->at[c].role == COLUMN_TARGET ? targets++
                    : column_is_feature(&columns->at[c]) ? features++
                                                         : features;
    reader->label = -1;
    for (int cell = 0; cell < reader->cells; cell++) {
        const int column = reader->column_of[cell];
        if (column < 0) continue;
        reader->place_of[cell] = places[column];
        if (columns->at[column].role != COLUMN_LABEL) continue;
        reader->label = cell;
        reader->numbered = reader->fixed && may_number(columns, column);
    }
    memory_free(places);
    return OK;
}

/* The row in hand says how many rows follow, and names the classes; then the next one is in hand. */
static int take_counts(struct csv_reader *reader, struct error *error) {
    struct csv_rows *row = &reader->rows;
    bool found;
    int ignored;
    reader->counted = strtol(row->cells[0], NULL, 10);
    for (int c = CSV_COUNTS; c < row->count; c++) {
        RETURN_IF(check_name(reader, c, error));
        RETURN_IF(categories_add(&reader->classes, row->cells[c], row->row, &ignored, error));
    }
    return csv_rows_next(row, &found, error);
}

int csv_reader_open(struct csv_reader *reader, struct csv_rows *rows, const struct csv_format *format,
                    struct columns *columns, const char *like, bool fixed, struct error *error) {
    *reader = (struct csv_reader){
        .rows = *rows, .format = *format, .columns = columns, .like = like, .fixed = fixed};
    *rows = (struct csv_rows){0};
    struct csv_rows *row = &reader->rows;
    struct csv_format *guessed = &reader->format;
    const bool automatic = format->header == CSV_HEADER_AUTO;
    bool found, counts;
    RETURN_IF(csv_guess(guessed, row, error));
    row->separator = guessed->separator;
    reader->header = guessed->header == CSV_HEADER_YES;
    counts = guessed->header == CSV_HEADER_COUNTS;
    if (automatic && like) guessed->header = CSV_HEADER_AUTO;
    RETURN_IF(csv_rows_next(row, &found, error));
    if (!found)
        return error_set(error, ERROR_FILE, "%s: found an empty file, expected rows of numbers", row->name);
    if (counts) RETURN_IF(take_counts(reader, error));
    reader->cells = row->count;
    RETURN_IF(memory_array(&reader->column_of, row->count, "the columns of a table", error));
    RETURN_IF(memory_array(&reader->place_of, row->count, "the columns of a table", error));
    RETURN_IF(like ? match_columns(reader, error) : find_columns(reader, error));
    RETURN_IF(place_cells(reader, error));
    reader->waiting = !reader->header;
    return OK;
}

void csv_reader_close(struct csv_reader *reader) {
    memory_free(reader->column_of);
    memory_free(reader->place_of);
    categories_close(&reader->classes);
    csv_rows_close(&reader->rows);
    *reader = (struct csv_reader){0};
}

/* --- rows --- */

static int too_many(const struct csv_reader *reader, int cell, int most, struct error *error) {
    const int column = reader->column_of[cell];
    char place[CSV_PLACE_BYTES], name[CSV_COLUMN_BYTES];
    place_of(reader, cell, place);
    if (reader->columns->at[column].role == COLUMN_LABEL)
        return error_set(error, ERROR_FILE, "%s: found label number %d, expected at most %d different ones",
                         place, most + 1, most);
    return error_set(error, ERROR_FILE,
                     "%s: found more than %d different values, which looks like an identifier; ignore=%s "
                     "leaves the column out",
                     place, most, csv_column(reader->columns, column, name));
}

/* Which of so many classes a label is the number of, from 0; or -1. */
static int numbered_class(const struct csv_reader *reader, int classes, const char *text) {
    float value;
    if (csv_number(text, reader->format.decimal, &value)) return -1;
    return value >= 0 && value < (float)classes && value == truncf(value) ? (int)value : -1;
}

/* What is known of a label: the class that the first row of its file says it to be, or that its text is, or
 * that it is the number of; -1: nothing. */
static int find_label(const struct csv_reader *reader, const struct categories *known, const char *text) {
    const int named = numbered_class(reader, reader->classes.count, text);
    int number = named < 0 ? -1 : categories_find(known, reader->classes.at[named].text);
    if (number < 0) number = categories_find(known, text);
    return number < 0 && reader->numbered ? numbered_class(reader, known->count, text) : number;
}

static int wrong_label(const struct csv_reader *reader, int cell, struct error *error) {
    char place[CSV_PLACE_BYTES], shown[CSV_SHOWN_BYTES];
    return error_set(error, ERROR_FILE,
                     "%s: found \"%s\", expected the number of a class, 0 to %d, as the first row names %d",
                     place_of(reader, cell, place), csv_shown(reader->rows.cells[cell], shown),
                     reader->classes.count - 1, reader->classes.count);
}

/* *number = that of the cell's text among the column's values. */
static int read_value(struct csv_reader *reader, int cell, int most, int *number, struct error *error) {
    struct column *column = &reader->columns->at[reader->column_of[cell]];
    const char *text = reader->rows.cells[cell];
    float value;
    *number = cell == reader->label ? find_label(reader, &column->values, text)
                                    : categories_find(&column->values, text);
    if (*number < 0 && !reader->like && reader->classes.count > 0 && cell == reader->label)
        return wrong_label(reader, cell, error);
    if (*number < 0 && !reader->fixed) {
        RETURN_IF(check_name(reader, cell, error));
        if (column->values.count == most) return too_many(reader, cell, most, error);
        RETURN_IF(categories_add(&column->values, text, reader->rows.row, number, error));
    }
    column->numbers += !reader->fixed && !csv_number(text, reader->format.decimal, &value);
    return OK;
}

static int read_feature(struct csv_reader *reader, int cell, float *out, struct error *error) {
    struct column *column = &reader->columns->at[reader->column_of[cell]];
    const char *text = reader->rows.cells[cell];
    if (column->role != COLUMN_CATEGORY) {
        const char *expected = csv_number(text, reader->format.decimal, out);
        if (!expected) column->role = COLUMN_NUMBER;
        if (!expected) return OK;
        if (column->role == COLUMN_NUMBER || expected != CSV_A_NUMBER)
            return wrong_number(reader, cell, expected, error);
        if (csv_date(text) || csv_dressed(text))
            return wrong_number(reader, cell, expected_of(column), error);
        column->role = COLUMN_CATEGORY;
    }
    const int most = reader->columns->units > 0 ? CSV_MAX_EMBEDDED : CSV_MAX_CATEGORIES;
    int number;
    RETURN_IF(read_value(reader, cell, most, &number, error));
    *out = (float)number;
    return OK;
}

static int read_target(const struct csv_reader *reader, int cell, float *out, struct error *error) {
    const char *expected = csv_number(reader->rows.cells[cell], reader->format.decimal, out);
    char place[CSV_PLACE_BYTES], shown[CSV_SHOWN_BYTES];
    if (!expected) return OK;
    return error_set(error, ERROR_FILE, "%s: found \"%s\", expected %s, as the column is a target",
                     place_of(reader, cell, place), csv_shown(reader->rows.cells[cell], shown), expected);
}

/* Whether something is missing in a row that is then left out, before any of it counts. */
static bool is_dropped(const struct csv_reader *reader) {
    const struct csv_rows *row = &reader->rows;
    if (reader->fixed || reader->format.missing != CSV_MISSING_DROP) return false;
    for (int cell = 0; cell < row->count; cell++) {
        const int column = reader->column_of[cell];
        if (column >= 0 && reader->columns->at[column].role != COLUMN_IGNORED &&
            csv_missing(row->cells[cell]))
            return true;
    }
    return false;
}

/* A cell without a value. */
static int read_missing(const struct csv_reader *reader, int cell, float *out, struct error *error) {
    const struct column *column = &reader->columns->at[reader->column_of[cell]];
    const bool label = is_wanted(column);
    if (!label) *out = NAN;
    if (reader->fixed) return label || column->fills ? OK : wrong_missing(reader, cell, error);
    return reader->format.missing == CSV_MISSING_ERROR || label ? wrong_missing(reader, cell, error) : OK;
}

static int read_row(struct csv_reader *reader, float *cells, int *label, bool *whole, struct error *error) {
    const struct csv_rows *row = &reader->rows;
    *label = -1;
    if (row->count != reader->cells) return wrong_count(reader, reader->cells, NULL, error);
    *whole = !is_dropped(reader);
    if (!*whole) return OK;
    for (int cell = 0; cell < row->count; cell++) {
        const int column = reader->column_of[cell];
        const enum column_role role = column < 0 ? COLUMN_IGNORED : reader->columns->at[column].role;
        if (role == COLUMN_IGNORED || (role == COLUMN_TARGET && reader->fixed)) continue;
        float *const out = &cells[reader->place_of[cell]];
        if (csv_missing(row->cells[cell]))
            RETURN_IF(read_missing(reader, cell, out, error));
        else if (cell == reader->label)
            RETURN_IF(read_value(reader, cell, CSV_MAX_CLASSES, label, error));
        else if (role == COLUMN_TARGET)
            RETURN_IF(read_target(reader, cell, out, error));
        else
            RETURN_IF(read_feature(reader, cell, out, error));
    }
    return OK;
}

/* At the end of the file. */
static int check_count(const struct csv_reader *reader, struct error *error) {
    if (reader->counted == 0 || reader->read == reader->counted) return OK;
    return error_set(error, ERROR_FILE, "%s: found %ld row%s, expected %ld, as its first row says",
                     reader->rows.name, reader->read, reader->read == 1 ? "" : "s", reader->counted);
}

int csv_reader_next(struct csv_reader *reader, float *cells, int *label, bool *found, struct error *error) {
    for (bool whole = false; !whole; reader->dropped += !whole) {
        *found = true;
        if (!reader->waiting) RETURN_IF(csv_rows_next(&reader->rows, found, error));
        reader->waiting = false;
        if (!*found) return check_count(reader, error);
        reader->read++;
        RETURN_IF(read_row(reader, cells, label, &whole, error));
    }
    return OK;
}
