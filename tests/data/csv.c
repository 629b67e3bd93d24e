/* CSV: what is read and guessed, and every error with its exact words. */
#include <stdlib.h>
#include <string.h>
#include "../../src/data/csv_table.h"
#include "../check.h"

static struct csv_format format(const char *label) {
    return (struct csv_format){.label = label};
}

/* --- what is read --- */

static int parse(struct csv_table *table, const char *text, const struct csv_format *as,
                 struct error *error) {
    *error = (struct error){0};
    return csv_parse(table, "t.csv", text, strlen(text), as, NULL, error);
}

/* The texts of the labels, each with a bar behind it. */
static const char *labels_of(const struct csv_table *table, char out[100]) {
    const struct columns *columns = table->columns;
    int label = 0;
    *out = '\0';
    while (label < columns->count && columns->at[label].role != COLUMN_LABEL) label++;
    for (int i = 0; label < columns->count && i < table->rows; i++) {
        strcat(out, columns->at[label].values.at[csv_labels(table)[i]].text);
        strcat(out, "|");
    }
    return out;
}

static void check_table(const char *text, const struct csv_format *as, int rows, int cells,
                        const float *numbers, const char *labels) {
    struct csv_table table;
    struct error error;
    char found[100];
    CHECK(parse(&table, text, as, &error) == OK, "%s: %s", text, error.words);
    CHECK(error.code != OK || table.rows == rows, "%s: %d rows", text, table.rows);
    CHECK(error.code != OK || table.cells == cells, "%s: %d cells", text, table.cells);
    for (int i = 0; error.code == OK && i < rows * cells && table.rows == rows; i++)
        CHECK(csv_cells(&table)[i] == numbers[i], "%s: number %d is %g", text, i,
              (double)csv_cells(&table)[i]);
    CHECK(error.code != OK || strcmp(labels_of(&table, found), labels) == 0, "%s: labels %s", text, found);
    csv_close(&table);
}

static void check_reading(void) {
    const float numbers[] = {1, 2.5f, -3e2f, 0.125f};
    const struct csv_format last = format(""), first = format("1"), named = format("kind");
    struct csv_format always = format(""), never = format("2"), space = format(""), none = format(NULL);
    always.header = CSV_HEADER_YES;
    never.header = CSV_HEADER_NO;
    space.separator = ' ';
    check_table("1,2.5,a\n-3e2,.125,b\n", &last, 2, 2, numbers, "a|b|");
    check_table("1,2.5,a\n-3e2,.125,b", &last, 2, 2, numbers, "a|b|");
    check_table("1,2.5,a\r\n-3e2,.125,b\r\n", &last, 2, 2, numbers, "a|b|");
    check_table("1,2.5,a\r\n-3e2,.125,b\r", &last, 2, 2, numbers, "a|b|");
    check_table("\xEF\xBB\xBF"
                "1,2.5,a\n-3e2,.125,b\n",
                &last, 2, 2, numbers, "a|b|");
    check_table("\n\n 1 , 2.5 , a \n \n-3e2,\t.125,b\n\n\n", &last, 2, 2, numbers, "a|b|");
    check_table("x,y,z\n1,2.5,a\n-3e2,.125,b\n", &last, 2, 2, numbers, "a|b|");
    check_table("x,x,x\n1,2.5,a\n-3e2,.125,b\n", &last, 2, 2, numbers, "a|b|");
    check_table("2,2,no,yes\n1,2.5,1\n-3e2,.125,0\n", &last, 2, 2, numbers, "yes|no|"); /* TensorFlow's */
    check_table("2,2,a,b,c\n1,2.5,2\n-3e2,.125,0\n", &last, 2, 2, numbers, "c|a|");
    check_table("a,1,2.5\nb,-3e2,.125\n", &first, 2, 2, numbers, "a|b|");
    check_table("x,kind,y\n1,a,2.5\n-3e2,b,.125\n", &named, 2, 2, numbers, "a|b|");
    check_table("7,kind,8\n1,a,2.5\n-3e2,b,.125\n", &named, 2, 2, numbers, "a|b|");
    check_table("1,a,2.5\n-3e2,b,.125\n", &never, 2, 2, numbers, "a|b|");
    check_table("1,2.5\n-3e2,.125\n", &none, 2, 2, numbers, "");
    check_table("x,y\n1,2.5\n-3e2,.125\n", &none, 2, 2, numbers, "");
    check_table("1 2.5 \"a b\"\n-3e2 .125 b", &space, 2, 2, numbers, "a b|b|");
    check_table("9,9,9\n1,2.5,3\n-3e2,.125,4", &always, 2, 2, numbers, "3|4|");
    check_table("\"1\",\"2.5\" , \"a\"\n\"-3e2\",.125,\"say \"\"b\"\", c\n d\"\n", &last, 2, 2, numbers,
                "a|say \"b\", c\n d|");
    check_table("1,2.5,\"\"\"\"\n-3e2,.125,b\"c", &last, 2, 2, numbers, "\"|b\"c|");
}

/* --- what is guessed --- */

static void check_guess(const char *text, char separator, char decimal, bool header, const char *words) {
    struct csv_table table;
    struct error error;
    const struct csv_format last = format("");
    parse(&table, text, &last, &error);
    CHECK(strcmp(error.words, words) == 0, "%s: %s", text, error.words);
    CHECK(table.format.separator == separator, "%s: separator '%c'", text, table.format.separator);
    CHECK(table.format.decimal == decimal, "%s: decimal '%c'", text, table.format.decimal);
    CHECK((table.format.header == CSV_HEADER_YES) == header, "%s: header %d", text, table.format.header);
    csv_close(&table);
}

static void check_guesses(void) {
    check_guess("1,2,a\n3,4,b\n", ',', '.', false, "");
    check_guess("1;2;a,b\n3;4;b\n", ';', '.', false, "");
    check_guess("1;2;a,b\n3;4;b,c\n", ';', '.', false, "");
    check_guess("1\t2\ta b\n3\t4\tb\n", '\t', '.', false, "");
    check_guess("1|2|a\n3|4|b\n", '|', '.', false, "");
    check_guess("x;y;k\n1,5;2,5;a\n2;-0,25;b\n", ';', ',', true, "");
    check_guess("1,5;2,5;a\n2,5;3,5;b\n", ';', ',', false, "");
    check_guess("1,5\t2\ta\n2,5\t3\tb\n", '\t', ',', false, "");
    check_guess("1.5;2;\"a,b\"\n2.5;3;\"1,5\"\n", ';', '.', false, "");
    check_guess("1,2,\"a;b\"\n3,4,c;d\n", ',', '.', false, "");
    check_guess("1,234;5,5;a\n2,345;1,5;b\n", ';', ',', false, "");
    check_guess("1,234;5;a\n2,345;1;b\n", ';', '.', false,
                "t.csv: found \"1,234\", which may have a decimal comma or thousands apart; decimal=comma or "
                "decimal=point says which");
    check_guess("cap,odor,edible\nred,almond,yes\nblue,none,no\n", ',', '.', true, "");
    check_guess("red,red,yes\nblue,none,no\nred,none,no\n", ',', '.', false, "");
    check_guess(",x,k\n0,1,a\n1,2,b\n", ',', '.', true, "");
}

/* Blanks split rows to predict, which come with their decimal, and only where nothing else does. */
static void check_blanks(void) {
    static const struct {
        const char *text;
        char usual, separator;
    } known[] = {{"1 2.5 3\n4 5 6\n", '.', ' '},
                 {"1 2.5 3\n4 5 6\n", 0, ','},
                 {"New York,1\nSan Jose,2\n", '.', ','},
                 {"New York\t1\nSan Jose\t2\n", '.', '\t'},
                 {"3\n4\n", '.', ','}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct csv_table table;
        struct error error;
        const struct csv_format as = {.usual = known[i].usual};
        parse(&table, known[i].text, &as, &error);
        CHECK(table.format.separator == known[i].separator, "%s: separator '%c'", known[i].text,
              table.format.separator);
        csv_close(&table);
    }
}

/* --- roles --- */

/* What each column became: n(umber), c(ategory), l(abel), i(gnored). */
static void check_roles(const char *text, const struct csv_format *as, const char *expected,
                        const char *described) {
    struct csv_table table;
    struct error error;
    char found[20] = "", words[200];
    CHECK(parse(&table, text, as, &error) == OK, "%s: %s", text, error.words);
    for (int c = 0; error.code == OK && c < table.columns->count; c++)
        found[c] = "-ncli"[table.columns->at[c].role];
    CHECK(strcmp(found, expected) == 0, "%s: %s, expected %s", text, found, expected);
    csv_describe(&table, words, sizeof words);
    CHECK(error.code != OK || strcmp(words, described) == 0, "%s", words);
    csv_close(&table);
}

static void check_columns(void) {
    const char *const text = "id,size,city,kind\n7,1.5,Graz,a\n8,2,Linz,b\n9,3,Graz,a\n";
    struct csv_format as = format("");
    check_roles(text, &as, "nncl", "separator ',', header, 2 numbers, 1 category");
    as.ignore = "id,4";
    as.label = "city";
    check_roles(text, &as, "inli", "separator ',', header, 1 number, 2 columns ignored");
    as.columns = "city";
    as.label = "1";
    as.ignore = NULL;
    check_roles(text, &as, "lici", "separator ',', header, 1 category, 2 columns ignored");
    as = format("");
    as.categories = "id";
    check_roles(text, &as, "cncl", "separator ',', header, 1 number, 2 categories");
}

/* A file that is read through a window, and one that is in memory, are the same table; with cells in quotes
 * over the window's ends, and a row that is longer than it. */
static void check_windows(void) {
    enum { ROWS = 40000, LONG = 3 << 20 };
    const char *const path = "/tmp/trainer-csv-window.csv";
    char *const text = malloc((size_t)ROWS * 120 + LONG);
    size_t used = 0, bytes = 0;
    struct csv_table tables[2] = {0};
    struct error error = {0};
    const struct csv_format last = format("");
    for (int row = 0; row < ROWS; row++)
        used += (size_t)sprintf(text + used, "%d.%d,\"%d\",%s,\"k\"\"%d,\r\n\n %d\"\n%s", row, row % 10, row,
                                row % 3 ? "\"a, \"\"\nb\"" : "b", row % 7, row % 7, row % 11 ? "" : " \r\n");
    used += (size_t)sprintf(text + used, "1,2,\"");
    memset(text + used, 'x', LONG);
    used += LONG;
    used += (size_t)sprintf(text + used, "\"\"\",end\n5,6,b,end");
    FILE *file = fopen(path, "wb");
    bytes = file ? fwrite(text, 1, used, file) : 0;
    CHECK(file && fclose(file) == 0 && bytes == used, "%s was not written", path);
    CHECK(csv_parse(&tables[0], path, text, used, &last, NULL, &error) == OK, "%s", error.words);
    CHECK(csv_read(&tables[1], path, &last, NULL, &error) == OK, "%s", error.words);
    CHECK(tables[0].rows == ROWS + 2 && tables[1].rows == ROWS + 2, "%d and %d rows", tables[0].rows,
          tables[1].rows);
    CHECK(tables[0].cells == 3 && tables[1].cells == 3, "%d cells", tables[1].cells);
    if (error.code == OK) {
        const size_t rows = ROWS + 2;
        CHECK(memcmp(csv_cells(&tables[0]), csv_cells(&tables[1]), rows * 3 * sizeof(float)) == 0, "cells");
        CHECK(memcmp(csv_labels(&tables[0]), csv_labels(&tables[1]), rows * sizeof(int)) == 0, "labels");
        const struct categories *values = &tables[1].columns->at[2].values;
        CHECK(values->count == 3 && strlen(values->at[2].text) == LONG + 1, "%d values", values->count);
        CHECK(tables[1].columns->at[3].values.count == 8, "%d labels", tables[1].columns->at[3].values.count);
        CHECK(csv_cells(&tables[1])[(rows - 2) * 3 - 2] == ROWS - 1, "the last but two");
    }
    csv_close(&tables[0]);
    csv_close(&tables[1]);
    remove(path);
    free(text);
}

/* Lines are counted through quotes and blank lines: an error after them has the right one. */
static void check_lines(void) {
    struct csv_table table;
    struct error error;
    const struct csv_format last = format("");
    CHECK(parse(&table, "x,y\n\n1,\"a\nb\"\r\n2,c\nz,d\n", &last, &error) == ERROR_FILE, "read");
    CHECK(strncmp(error.words, "t.csv: row 6, column 1 \"x\": found \"z\", expected a number", 56) == 0, "%s",
          error.words);
    csv_close(&table);
}

/* More rows and columns than the first guesses hold. */
static void check_sizes(void) {
    enum { ROWS = 3000, COLUMNS = 131 };
    static char text[ROWS * COLUMNS * 4 + 1];
    size_t used = 0;
    for (int row = 0; row < ROWS; row++)
        for (int c = 0; c < COLUMNS; c++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%d%c", (row + c) % 100,
                                     c + 1 < COLUMNS ? ',' : '\n');
    struct csv_table table;
    struct error error;
    const struct csv_format last = format("");
    CHECK(parse(&table, text, &last, &error) == OK, "%s", error.words);
    CHECK(table.rows == ROWS && table.cells == COLUMNS - 1, "%d x %d", table.rows, table.cells);
    for (int row = 0; row < table.rows; row++)
        for (int c = 0; c < table.cells; c++)
            CHECK(csv_cells(&table)[row * table.cells + c] == (float)((row + c) % 100), "row %d, column %d",
                  row, c);
    csv_close(&table);
}

/* --- errors --- */

static void check_error(const char *text, size_t bytes, const struct csv_format *as, int code,
                        const char *words) {
    struct csv_table table;
    struct error error = {0};
    CHECK(csv_parse(&table, "f.csv", text, bytes, as, NULL, &error) == code, "%s", text);
    CHECK(error.code == code && strcmp(error.words, words) == 0, "\n found    %s\n expected %s", error.words,
          words);
    csv_close(&table);
}

#define WAYS(column)                                                                                         \
    "expected a number; categories=" column " takes texts, ignore=" column " leaves the column out"
#define FILLS "; missing=mean fills such cells in, missing=drop leaves their rows out"

static void check_errors(void) {
    const struct {
        const char *text, *label, *words;
    } cases[] = {
        {"sepal_width,petal_length,kind\n1,2,a\n1,x1,a\n", "",
         "f.csv: row 3, column 2 \"petal_length\": found \"x1\", " WAYS("petal_length")},
        {"1,2,a\n1,x1,a\n", "", "f.csv: row 2, column 2: found \"x1\", " WAYS("2")},
        {"x1,2,a\n1,2,a\n2,2,b\n", "",
         "f.csv: row 1, column 1: found \"x1\", expected a number as in other rows; header=yes takes "
         "this row as names, categories=1 takes texts"},
        {"1,2,a\n1,0x1p3,a\n", "", "f.csv: row 2, column 2: found \"0x1p3\", " WAYS("2")},
        {"1,2,a\n1,2 3,a\n", "", "f.csv: row 2, column 2: found \"2 3\", " WAYS("2")},
        {"1,2,a\n-inf,2,a\n", "", "f.csv: row 2, column 1: found \"-inf\", expected a finite number"},
        {"1,2,a\n1e39,2,a\n", "", "f.csv: row 2, column 1: found \"1e39\", expected a finite number"},
        {"1;2,5;a\n1;3.5;a\n", "",
         "f.csv: row 1, column 2: found \"2,5\", expected a number as in other rows; "
         "categories=2 takes texts"},
        {"1;2.5;a\n1;3,5;a\n", "",
         "f.csv: row 2, column 2: found \"3,5\", expected a number; decimal=comma takes decimal commas"},
        {"1,2,a\n,2,a\n", "", "f.csv: row 2, column 1: found an empty cell, expected a number" FILLS},
        {",2,a\n1,2,a\n", "",
         "f.csv: row 1, column 1: found an empty cell, expected a number or a category" FILLS},
        {"1,2,a\n1,nan,a\n", "",
         "f.csv: row 2, column 2: found \"nan\", a missing value, expected a number" FILLS},
        {"x,b,a\n?,c,a\n", "1",
         "f.csv: row 2, column 1 \"x\": found \"?\", a missing value, expected a label; "
         "missing=drop leaves such rows out"},
        {"x,y,kind\n1,2,a\n1,,a\n", "",
         "f.csv: row 3, column 2 \"y\": found an empty cell, expected a number" FILLS},
        {"x,y,kind\n1,2,a\n1,2,\n", "",
         "f.csv: row 3, column 3 \"kind\": found an empty cell, expected a label; missing=drop leaves such "
         "rows "
         "out"},
        {"x,when,kind\n1,2024-01-02,a\n", "",
         "f.csv: row 2, column 2 \"when\": found the date \"2024-01-02\", expected a number or a category; "
         "ignore=when leaves the column out"},
        {"x,when,kind\n1,2.1.2024 10:30,a\n", "",
         "f.csv: row 2, column 2 \"when\": found the date \"2.1.2024 10:30\", expected a number or a "
         "category; "
         "ignore=when leaves the column out"},
        {"1,2,a\n1,2,\"b\tc\"\n", "", "f.csv: row 2, column 3: found \"b?c\", expected a name without a tab"},
        {"x,\"y\t\",kind\n1,2,a\n", "",
         "f.csv: row 1, column 2: found \"y?\", expected a name without a tab"},
        {"3,2,no,yes\n1,2,1\n1,2,0\n", "", "f.csv: found 2 rows, expected 3, as its first row says"},
        {"1,2,no,yes\n1,2,2\n", "", "f.csv: row 2: found 3 cells, expected 4"},
        {"1,2,Z\xC3\xBCrich\n1,2,Z\xFCrich\n", "",
         "f.csv: row 2, column 3: found \"Z?rich\", expected a name in UTF-8 (iconv converts)"},
        {"1,Z\xFCrich,a\n1,2,a\n", "",
         "f.csv: row 1, column 2: found \"Z?rich\", expected a name in UTF-8 (iconv converts)"},
        {"x,h\xF6he,kind\n1,2,a\n", "",
         "f.csv: row 1, column 2: found \"h?he\", expected a name in UTF-8 (iconv converts)"},
        {"1,2,3,4,a\n1,2,3,a\n", "", "f.csv: row 2: found 4 cells, expected 5"},
        {"1,2,a\n1\n", "", "f.csv: row 2: found 1 cell, expected 3"},
        {"1,2,a\n1,2,3,a\n", "", "f.csv: row 2: found 4 cells, expected 3"},
        {"a\nb\n", "", "f.csv: row 1: found 1 cell, expected at least 2, separated by ','"},
        {"", "", "f.csv: found an empty file, expected rows of numbers"},
        {"\xEF\xBB\xBF\r\n \n", "", "f.csv: found an empty file, expected rows of numbers"},
        {"x,y,kind\n", "", "f.csv: found only a header, expected rows of numbers after it"},
        {"1,2,a\n1,\"2,a\n", "",
         "f.csv: row 2, column 2: found the end of the file, expected a closing quote"},
        {"1,2,a\n1,\"2\"3,a\n", "",
         "f.csv: row 2, column 2: found \"3\" after the closing quote, expected a separator"},
        {"1,2,a\n1,\"\x01\n2\",a\n", "", "f.csv: row 2, column 2: found \"??2\", " WAYS("2")},
        {"1,2,a\n1,x23456789012345678901234567890123456789\xC3\xA9yz,a\n", "",
         "f.csv: row 2, column 2: found \"x23456789012345678901234567890123456789...\", " WAYS("2")},
        {"1,2,a\n1,12345678901234567890123456789012345678xx\xC3\xA9,a\n", "",
         "f.csv: row 2, column 2: found \"12345678901234567890123456789012345678xx...\", " WAYS("2")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct csv_format as = format(cases[i].label);
        check_error(cases[i].text, strlen(cases[i].text), &as, ERROR_FILE, cases[i].words);
    }
    const struct csv_format none = format("species"), far = format("4"), zero = format("0"),
                            last = format("");
    check_error("x,y,kind\n1,2,a\n", 15, &none, ERROR_USAGE,
                "f.csv: found label=species, expected the name or number of one of its 3 columns, 1 to 3");
    check_error("1,2,a\n", 6, &far, ERROR_USAGE,
                "f.csv: found label=4, expected the number of one of its 3 columns, 1 to 3, as it has no "
                "header");
    check_error("1,2,a\n", 6, &zero, ERROR_USAGE,
                "f.csv: found label=0, expected the number of one of its 3 columns, 1 to 3, as it has no "
                "header");
    check_error("1,2\0,a\n", 7, &last, ERROR_FILE, "f.csv: found a 0 byte at offset 3, expected text");
    check_error("\xFF\xFE"
                "1\0,\0a\0",
                8, &last, ERROR_FILE, "f.csv: found UTF-16, expected text in UTF-8 (iconv converts)");
    check_error("\0001\0,\0a\0\n", 8, &last, ERROR_FILE,
                "f.csv: found UTF-16, expected text in UTF-8 (iconv converts)");
    static char wide[CSV_MAX_COLUMNS + 1];
    memset(wide, ',', sizeof wide);
    check_error(wide, sizeof wide, &last, ERROR_FILE, "f.csv: row 1: found more than 65536 cells");
}

static void check_list_errors(void) {
    const char *const text = "x,y,kind\n1,2,a\n2,3,b\n";
    struct csv_format as = format("");
    as.ignore = "x,z";
    check_error(text, strlen(text), &as, ERROR_USAGE,
                "f.csv: found ignore=z, expected the name or number of one of its 3 columns, 1 to 3");
    as.ignore = "kind";
    check_error(text, strlen(text), &as, ERROR_USAGE,
                "f.csv: found the label in ignore=kind, expected other columns");
    const char *const twice = "a,a,y\n1,u,v\n2,3,w\n4,5,v\n";
    as.ignore = "a";
    check_error(twice, strlen(twice), &as, ERROR_USAGE,
                "f.csv: found ignore=a, the name of 2 columns, expected a number such as ignore=1, the first "
                "of them");
    as.ignore = NULL;
    check_error(twice, strlen(twice), &as, ERROR_FILE,
                "f.csv: row 2, column 2 \"a\": found \"u\", expected a number as in other rows; "
                "categories=2 takes texts");
    as.ignore = "1,2";
    check_error(text, strlen(text), &as, ERROR_USAGE,
                "f.csv: found no column to learn from, expected one beside the label");
}

/* Of texts: more than there may be, and one in each row. */
static void check_identifiers(void) {
    static char text[(CSV_MAX_CATEGORIES + 2) * 24];
    struct csv_format as = format("");
    size_t used = 0;
    for (int row = 0; row <= CSV_MAX_CATEGORIES; row++)
        used += (size_t)sprintf(text + used, "n%d,%d,a\n", row, row);
    check_error(text, used, &as, ERROR_FILE,
                "f.csv: row 1001, column 1: found more than 1000 different values, which looks like an "
                "identifier; ignore=1 leaves the column out");
    used = 0;
    for (int row = 0; row < 60; row++) used += (size_t)sprintf(text + used, "n%d,%d,a\n", row, row);
    check_error(text, used, &as, ERROR_FILE,
                "f.csv: row 1, column 1: found \"n0\", and another value in each row, which looks like an "
                "identifier; ignore=1 leaves the column out, categories=1 takes it");
    as.categories = "1";
    check_roles(text, &as, "cnl", "separator ',', no header, 1 number, 1 category");
}

int main(void) {
    check_reading();
    check_guesses();
    check_blanks();
    check_columns();
    check_windows();
    check_lines();
    check_sizes();
    check_errors();
    check_list_errors();
    check_identifiers();
    return check_end();
}
