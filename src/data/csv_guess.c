/* Guesses from the first rows, which are cut into cells as they will be when they are read. */
#include "csv_guess.h"

#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"
#include "csv_number.h"

enum { SAMPLE_BYTES = 1 << 16, SAMPLE_ROWS = 200 };

struct sample {
    const char *name, *text; /* [bytes], whole rows where one fits; borrowed */
    size_t bytes;
};

static struct sample sample_of(const struct csv_rows *rows) {
    struct sample sample = {rows->name, rows->at, (size_t)(rows->end - rows->at)};
    const bool all = rows->last && sample.bytes <= SAMPLE_BYTES;
    if (sample.bytes > SAMPLE_BYTES) sample.bytes = SAMPLE_BYTES;
    size_t whole = all ? 0 : sample.bytes;
    while (whole > 0 && sample.text[whole - 1] != '\n') whole--;
    if (whole > 0) sample.bytes = whole;
    return sample;
}

/* What one separator makes of the sample. */
struct cut {
    int rows, cells;              /* of the first row */
    bool even;                    /* all rows have as many */
    double numbers;               /* share of the cells */
    bool comma, point;            /* numbers that need a decimal comma; that have a point */
    char either[CSV_SHOWN_BYTES]; /* a number that may have a decimal comma, or "" */
};

static bool has_point(const char *cell) {
    float value;
    return strchr(cell, '.') && !csv_number(cell, '.', &value);
}

static void look_at_cell(struct cut *cut, const char *cell, long *numbers) {
    float value;
    const enum csv_comma comma = csv_comma(cell);
    if (comma == CSV_COMMA_DECIMAL) cut->comma = true;
    if (comma == CSV_COMMA_EITHER && !*cut->either) csv_shown(cell, cut->either);
    if (has_point(cell)) cut->point = true;
    *numbers += comma != CSV_COMMA_NONE || !csv_number(cell, '.', &value) || csv_missing(cell);
}

/* A row that is cut off, or wrong, ends the sample. Errors: memory. */
static int cut_sample(struct cut *cut, const struct sample *sample, char separator, struct error *error) {
    struct csv_rows rows;
    struct error ignored = {0};
    long cells = 0, numbers = 0;
    bool found = true;
    *cut = (struct cut){.even = true};
    int code = csv_rows_open(&rows, sample->name, sample->text, sample->bytes, separator, error);
    while (code == OK && found && cut->rows < SAMPLE_ROWS) {
        const int row = csv_rows_next(&rows, &found, &ignored);
        if (cut->rows == 0) cut->cells = rows.count;
        if (row != OK || !found) break;
        cut->rows++;
        cut->even = cut->even && rows.count == cut->cells;
        for (int c = 0; c < rows.count; c++) look_at_cell(cut, rows.cells[c], &numbers);
        cells += rows.count;
    }
    csv_rows_close(&rows);
    cut->numbers = cells > 0 ? (double)numbers / (double)cells : 0;
    if (ignored.code == ERROR_DEVICE) return error_set(error, ERROR_DEVICE, "%s", ignored.words);
    return code;
}

/* Whether `a` explains the sample better. */
static bool is_better(const struct cut *a, const struct cut *b) {
    const bool splits_a = a->cells > 1, splits_b = b->cells > 1;
    if (splits_a != splits_b) return splits_a;
    if (a->even != b->even) return a->even;
    if (a->even && a->numbers != b->numbers) return a->numbers > b->numbers;
    return a->cells > b->cells;
}

/* Blanks are in texts, too, so they are a guess for rows to predict alone, and only where nothing else
 * splits. */
static int guess_separator(struct csv_format *format, const struct sample *sample, struct cut *best,
                           struct error *error) {
    static const char separators[] = {',', ';', '\t', '|', ' '};
    for (size_t s = 0; s < sizeof separators; s++) {
        struct cut cut;
        if (separators[s] == ' ' && (!format->usual || best->cells > 1)) break;
        RETURN_IF(cut_sample(&cut, sample, separators[s], error));
        if (s > 0 && !is_better(&cut, best)) continue;
        *best = cut;
        format->separator = separators[s];
    }
    return OK;
}

static int guess_decimal(struct csv_format *format, const struct sample *sample, const struct cut *cut,
                         struct error *error) {
    format->decimal = '.';
    if (format->separator == ',') return OK;
    if (cut->comma && !cut->point) format->decimal = ',';
    if (cut->comma || cut->point || !*cut->either) return OK;
    if (format->usual) format->decimal = format->usual;
    if (format->usual) return OK;
    return error_set(error, ERROR_FILE,
                     "%s: found \"%s\", which may have a decimal comma or thousands apart; decimal=comma or "
                     "decimal=point says which",
                     sample->name, cut->either);
}

/* The label's column of `count`, from 0, or -1; *named: it is known by name, so there is a header. */
static int label_of(const struct csv_format *format, int count, bool *named) {
    const char *label = format->label;
    *named = label && *label && label[strspn(label, "0123456789")];
    if (!label || *named) return -1;
    return *label ? (int)strtol(label, NULL, 10) - 1 : count - 1;
}

static bool is_number(const char *cell, char decimal) {
    float value;
    return csv_number(cell, decimal, &value) != CSV_A_NUMBER;
}

static bool has_number(const struct csv_rows *rows, int label, char decimal) {
    for (int c = 0; c < rows->count; c++)
        if (c != label && is_number(rows->cells[c], decimal)) return true;
    return false;
}

/* Those from `first` on. */
static bool all_differ(const struct csv_rows *rows, int first) {
    enum { MOST = 2000 }; /* pairs are compared: of more columns, that many say enough */
    for (int c = first; c < rows->count && c < MOST; c++)
        for (int other = first; other < c; other++)
            if (strcmp(rows->cells[c], rows->cells[other]) == 0) return false;
    return true;
}

static bool is_count(const char *cell) {
    enum { DIGITS = 9 };
    const size_t digits = strspn(cell, "0123456789");
    return digits > 0 && digits <= DIGITS && cell[digits] == '\0' && strtol(cell, NULL, 10) > 0;
}

/* The features that the first row of a file says to follow, where it may be TensorFlow's; else 0. */
static int counted_features(const struct csv_rows *rows, char decimal) {
    if (rows->count < CSV_COUNTS + 2 || !is_count(rows->cells[0]) || !is_count(rows->cells[1])) return 0;
    for (int c = CSV_COUNTS; c < rows->count; c++)
        if (is_number(rows->cells[c], decimal) || csv_missing(rows->cells[c])) return 0;
    return all_differ(rows, CSV_COUNTS) ? (int)strtol(rows->cells[1], NULL, 10) : 0;
}

/* Whether the row in hand has so many numbers, and behind them the number of a class, from 0. */
static bool is_counted(const struct csv_rows *rows, int features, int classes, char decimal) {
    float value;
    if (rows->count != features + 1) return false;
    for (int c = 0; c < features; c++)
        if (!is_number(rows->cells[c], decimal) && !csv_missing(rows->cells[c])) return false;
    const char *label = rows->cells[features];
    if (csv_missing(label)) return true;
    return !csv_number(label, decimal, &value) && value >= 0 && value < (float)classes &&
           value == (float)(int)value;
}

/* Whether the first row, which is in hand, is TensorFlow's: the others of the sample are as it says. */
static bool has_counts(struct csv_rows *rows, const struct csv_format *format, int label) {
    const int features = counted_features(rows, format->decimal), classes = rows->count - CSV_COUNTS;
    struct error ignored = {0};
    bool found = true, fits = features > 0;
    int seen = 0;
    if ((format->label && label != rows->count - 1 && label != features) ||
        (format->categories && *format->categories))
        return false;
    while (fits && seen < SAMPLE_ROWS && csv_rows_next(rows, &found, &ignored) == OK && found) {
        fits = is_counted(rows, features, classes, format->decimal);
        seen++;
    }
    return fits && seen > 0;
}

static int guess_header(struct csv_format *format, const struct sample *sample, struct error *error) {
    struct csv_rows rows;
    struct error ignored = {0};
    bool found = false, named, differ = false;
    int code = csv_rows_open(&rows, sample->name, sample->text, sample->bytes, format->separator, error);
    format->header = CSV_HEADER_NO;
    if (code == OK && csv_rows_next(&rows, &found, &ignored) == OK && found) {
        const int label = label_of(format, rows.count, &named);
        const bool none = !has_number(&rows, label, format->decimal);
        if (none) differ = all_differ(&rows, 0);
        if (named) format->header = CSV_HEADER_YES;
        if (!none && !named && has_counts(&rows, format, label)) format->header = CSV_HEADER_COUNTS;
        if (none && csv_rows_next(&rows, &found, &ignored) == OK &&
            (differ || (found && has_number(&rows, label, format->decimal))))
            format->header = CSV_HEADER_YES;
    }
    csv_rows_close(&rows);
    if (ignored.code == ERROR_DEVICE) return error_set(error, ERROR_DEVICE, "%s", ignored.words);
    return code;
}

int csv_guess(struct csv_format *format, const struct csv_rows *rows, struct error *error) {
    const struct sample sample = sample_of(rows);
    struct cut cut = {0};
    if (!format->separator)
        RETURN_IF(guess_separator(format, &sample, &cut, error));
    else if (!format->decimal)
        RETURN_IF(cut_sample(&cut, &sample, format->separator, error));
    if (!format->decimal) RETURN_IF(guess_decimal(format, &sample, &cut, error));
    return format->header == CSV_HEADER_AUTO ? guess_header(format, &sample, error) : OK;
}
