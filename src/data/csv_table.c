/* Tables grow as their rows are read, in memory that moves without being copied (mapping_grow), so that at no
 * time there is more than the rows themselves and a window of the text. */
#include "csv_table.h"

#include <limits.h>
#include <string.h>
#include "../base/memory.h"
#include "csv_number.h"
#include "split.h"

enum { FIRST_ROWS = 64, IDENTIFIERS = 50 };

/* Room for one more row, and half as many again. */
static int make_room(struct csv_table *table, bool labelled, struct error *error) {
    const size_t row = (size_t)table->cells * sizeof(float), rows = (size_t)table->rows;
    const size_t room = rows + rows / 2 + FIRST_ROWS;
    if (table->rows == INT_MAX)
        return error_set(error, ERROR_FILE, "%s: more than %d rows, the most that are read", table->name,
                         INT_MAX);
    if ((rows + 1) * row > table->numbers.length)
        RETURN_IF(mapping_grow(&table->numbers, room * row, "the numbers of a CSV file", error));
    if (labelled && (rows + 1) * sizeof(int) > table->labels.length)
        RETURN_IF(mapping_grow(&table->labels, room * sizeof(int), "the labels of a CSV file", error));
    return OK;
}

static int read_rows(struct csv_table *table, struct csv_reader *reader, struct error *error) {
    const bool labelled = reader->label >= 0;
    bool found = true;
    int label;
    while (found) {
        RETURN_IF(make_room(table, labelled, error));
        float *const cells = csv_cells(table) + (size_t)table->rows * (size_t)table->cells;
        RETURN_IF(csv_reader_next(reader, cells, &label, &found, error));
        if (found && labelled) csv_labels(table)[table->rows] = label;
        table->rows += found;
    }
    table->dropped = reader->dropped;
    if (table->rows > 0) return OK;
    if (reader->dropped > 0)
        return error_set(error, ERROR_FILE, "%s: in all %ld rows something is missing, expected some without",
                         table->name, reader->dropped);
    return error_set(error, ERROR_FILE, "%s: found only a header, expected rows of numbers after it",
                     table->name);
}

/* A column whose first value happened to be no number. */
static int check_category(const struct csv_table *table, int column, struct error *error) {
    const struct column *category = &table->columns->at[column];
    const struct category *first = &category->values.at[0];
    char place[CSV_PLACE_BYTES], shown[CSV_SHOWN_BYTES], name[CSV_COLUMN_BYTES];
    csv_column(table->columns, column, name);
    if (category->chosen) return OK;
    csv_place(table->name, first->line, column, table->columns, column, place);
    /* A first row among whose names there are numbers. */
    const bool named =
        first->line == 1 && category->numbers + 1 == table->rows && csv_comma(first->text) == CSV_COMMA_NONE;
    if (2 * category->numbers >= table->rows)
        return error_set(error, ERROR_FILE,
                         "%s: found \"%s\", expected a number as in other rows; %scategories=%s takes texts",
                         place, csv_shown(first->text, shown),
                         named ? "header=yes takes this row as names, " : "", name);
    if (category->values.count > IDENTIFIERS && category->values.count >= table->rows)
        return error_set(error, ERROR_FILE,
                         "%s: found \"%s\", and another value in each row, which looks like an identifier; "
                         "ignore=%s leaves the column out, categories=%s takes it",
                         place, csv_shown(first->text, shown), name, name);
    return OK;
}

/* What only all rows together tell. */
static int check_columns(const struct csv_table *table, struct error *error) {
    const struct columns *columns = table->columns;
    for (int c = 0; c < columns->count; c++) {
        char name[CSV_COLUMN_BYTES];
        if (columns->at[c].role == COLUMN_OPEN ||
            (columns->at[c].role == COLUMN_CATEGORY && columns->at[c].values.count == 0))
            return error_set(error, ERROR_FILE,
                             "%s: column %d: found no value in any row; ignore=%s leaves it out", table->name,
                             c + 1, csv_column(columns, c, name));
        if (columns->at[c].role == COLUMN_CATEGORY) RETURN_IF(check_category(table, c, error));
    }
    return OK;
}

/* Takes the rows. */
static int read_table(struct csv_table *table, struct csv_rows *rows, const struct csv_format *format,
                      const struct csv_table *like, struct error *error) {
    struct csv_reader reader;
    table->name = rows->name;
    table->columns = like ? like->columns : &table->own;
    struct csv_format own = *format;
    if (like) own.usual = like->format.decimal;
    int code = csv_reader_open(&reader, rows, &own, table->columns, like ? like->name : NULL, false, error);
    table->format = reader.format;
    table->format.header = reader.header        ? CSV_HEADER_YES
                           : reader.counted > 0 ? CSV_HEADER_COUNTS
                                                : CSV_HEADER_NO;
    if (!like) {
        table->own.decimal = reader.format.decimal;
        table->own.units = format->units;
    }
    table->cells = columns_cells(table->columns) + columns_of(table->columns, COLUMN_TARGET);
    if (code == OK) code = read_rows(table, &reader, error);
    csv_reader_close(&reader);
    return code == OK && !like ? check_columns(table, error) : code;
}

int csv_read(struct csv_table *table, const char *path, const struct csv_format *format,
             const struct csv_table *like, struct error *error) {
    struct file_reader file;
    struct csv_rows rows = {0};
    *table = (struct csv_table){0};
    int code = file_reader_open(&file, path, SIZE_MAX, error);
    if (code == OK) code = csv_rows_open_file(&rows, &file, format->separator, error);
    if (code == OK) code = read_table(table, &rows, format, like, error);
    csv_rows_close(&rows);
    file_reader_close(&file);
    return code;
}

int csv_parse(struct csv_table *table, const char *name, const char *text, size_t bytes,
              const struct csv_format *format, const struct csv_table *like, struct error *error) {
    struct csv_rows rows;
    *table = (struct csv_table){0};
    int code = csv_rows_open(&rows, name, text, bytes, format->separator, error);
    if (code == OK) code = read_table(table, &rows, format, like, error);
    csv_rows_close(&rows);
    return code;
}

void csv_close(struct csv_table *table) {
    columns_close(&table->own);
    mapping_close(&table->numbers);
    mapping_close(&table->labels);
    *table = (struct csv_table){0};
}

static void copy_row(const struct csv_table *table, size_t to, size_t from) {
    const size_t cells = (size_t)table->cells;
    memcpy(csv_cells(table) + to * cells, csv_cells(table) + from * cells, cells * sizeof(float));
    if (csv_labels(table)) csv_labels(table)[to] = csv_labels(table)[from];
}

/* In place, cycle by cycle: the row that comes to `to` is replaced by the one that comes to where it was. */
int csv_shuffle(struct csv_table *table, long seed, struct error *error) {
    const size_t cells = (size_t)table->cells;
    unsigned char *placed; /* a bit for each row */
    float *kept;
    RETURN_IF(memory_array(&placed, (size_t)table->rows / 8 + 1, "shuffled rows", error));
    int code = memory_array(&kept, cells, "a shuffled row", error);
    for (int first = 0; code == OK && first < table->rows; first++) {
        if (placed[first / 8] >> first % 8 & 1) continue;
        memcpy(kept, csv_cells(table) + (size_t)first * cells, cells * sizeof *kept);
        const int label = csv_labels(table) ? csv_labels(table)[first] : 0;
        int to = first;
        for (int from; (from = split_row(seed, table->rows, to)) != first; to = from) {
            copy_row(table, (size_t)to, (size_t)from);
            placed[to / 8] |= (unsigned char)(1 << to % 8);
        }
        memcpy(csv_cells(table) + (size_t)to * cells, kept, cells * sizeof *kept);
        if (csv_labels(table)) csv_labels(table)[to] = label;
        placed[to / 8] |= (unsigned char)(1 << to % 8);
    }
    memory_free(kept);
    memory_free(placed);
    return code;
}

static void swap_rows(struct csv_table *table, int one, int other) {
    float *a = csv_cells(table) + (size_t)one * (size_t)table->cells,
          *b = csv_cells(table) + (size_t)other * (size_t)table->cells;
    int *const labels = csv_labels(table), label = labels[one];
    for (int c = 0; c < table->cells; c++) {
        const float cell = a[c];
        a[c] = b[c];
        b[c] = cell;
    }
    labels[one] = labels[other];
    labels[other] = label;
}

/* Rows are given away from the cut on: of one that was passed over, the class has no other row, and gets
 * none. */
static void exchange_rows(struct csv_table *table, int train, int *trained) {
    const int *labels = csv_labels(table);
    for (int row = 0; row < train; row++) trained[labels[row]]++;
    for (int row = train, given = train - 1; row < table->rows; row++) {
        if (trained[labels[row]] > 0) continue;
        while (given >= 0 && trained[labels[given]] == 1) given--;
        if (given < 0) return;
        trained[labels[given]]--;
        trained[labels[row]]++;
        swap_rows(table, row, given);
    }
}

int csv_keep_classes(struct csv_table *table, int train, struct error *error) {
    enum { NUMBERS_MOST = 20 };
    const struct columns *columns = table->columns;
    int label = 0, *trained;
    while (label < columns->count && columns->at[label].role != COLUMN_LABEL) label++;
    if (label == columns->count) return OK;
    const struct column *column = &columns->at[label];
    if (column->values.count > NUMBERS_MOST && column->numbers == table->rows) return OK;
    RETURN_IF(memory_array(&trained, column->values.count, "rows of each class", error));
    exchange_rows(table, train, trained);
    memory_free(trained);
    return OK;
}

static void describe_count(struct text *text, int count, const char *one, const char *many) {
    if (count > 0) text_add(text, ", %d %s", count, count == 1 ? one : many);
}

void csv_describe(const struct csv_table *table, char *out, size_t bytes) {
    const struct columns *columns = table->columns;
    const char separator = table->format.separator;
    struct text text = text_into(out, bytes);
    if (separator == '\t' || separator == ' ')
        text_add(&text, "separator %s", separator == ' ' ? "space" : "tab");
    else
        text_add(&text, "separator '%c'", separator);
    if (table->format.decimal == ',') text_add(&text, ", decimal comma");
    if (table->format.header == CSV_HEADER_COUNTS)
        text_add(&text, ", row 1 has counts and classes");
    else
        text_add(&text, ", %s", columns->named ? "header" : "no header");
    describe_count(&text, columns_of(columns, COLUMN_NUMBER), "number", "numbers");
    describe_count(&text, columns_of(columns, COLUMN_CATEGORY), "category", "categories");
    describe_count(&text, columns_of(columns, COLUMN_TARGET), "target", "targets");
    describe_count(&text, columns_of(columns, COLUMN_IGNORED), "column ignored", "columns ignored");
}
