/* CSV: what is read, every error with its exact words, and the data set made of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../src/base/memory.h"
#include "../../src/data/csv_examples.h"
#include "../check.h"

static struct csv_format format(const char *label) {
    return (struct csv_format){.separator = ',', .label = label};
}

/* --- what is read --- */

static void check_table(const char *text, const struct csv_format *as, int rows, int features,
                        const float *floats, const char *labels) {
    struct csv_table table;
    struct error error = {0};
    CHECK(csv_parse(&table, "t.csv", text, strlen(text), as, NULL, &error) == OK, "%s: %s", text,
          error.words);
    CHECK(error.code != OK || table.rows == rows, "%s: %d rows", text, table.rows);
    CHECK(error.code != OK || table.features == features, "%s: %d features", text, table.features);
    for (int i = 0; error.code == OK && i < rows * features && table.rows == rows; i++)
        CHECK(table.floats[i] == floats[i], "%s: number %d is %g", text, i, (double)table.floats[i]);
    char joined[100] = "";
    for (int i = 0; error.code == OK && table.labels && i < table.rows; i++) {
        strcat(joined, table.labels[i]);
        strcat(joined, "|");
    }
    CHECK(strcmp(joined, labels) == 0, "%s: labels %s", text, joined);
    csv_close(&table);
}

static void check_reading(void) {
    const float numbers[] = {1, 2.5f, -3e2f, 0.125f};
    const struct csv_format last = format(""), first = format("1"), named = format("kind"),
                            none = format(NULL);
    struct csv_format semicolon = format(""), tab = format(""), always = format(""), never = format("2");
    semicolon.separator = ';';
    tab.separator = '\t';
    always.header = CSV_HEADER_YES;
    never.header = CSV_HEADER_NO;
    check_table("1,2.5,a\n-3e2,.125,b\n", &last, 2, 2, numbers, "a|b|");
    check_table("1,2.5,a\n-3e2,.125,b", &last, 2, 2, numbers, "a|b|");
    check_table("1,2.5,a\r\n-3e2,.125,b\r\n", &last, 2, 2, numbers, "a|b|");
    check_table("1,2.5,a\r\n-3e2,.125,b\r", &last, 2, 2, numbers, "a|b|");
    check_table("\xEF\xBB\xBF"
                "1,2.5,a\n-3e2,.125,b\n",
                &last, 2, 2, numbers, "a|b|");
    check_table("\n\n 1 , 2.5 , a \n \n-3e2,\t.125,b\n\n\n", &last, 2, 2, numbers, "a|b|");
    check_table("x,y,z\n1,2.5,a\n-3e2,.125,b\n", &last, 2, 2, numbers, "a|b|");
    check_table("a,1,2.5\nb,-3e2,.125\n", &first, 2, 2, numbers, "a|b|");
    check_table("x,kind,y\n1,a,2.5\n-3e2,b,.125\n", &named, 2, 2, numbers, "a|b|");
    check_table("7,kind,8\n1,a,2.5\n-3e2,b,.125\n", &named, 2, 2, numbers, "a|b|");
    check_table("1,a,2.5\n-3e2,b,.125\n", &never, 2, 2, numbers, "a|b|");
    check_table("1,2.5\n-3e2,.125\n", &none, 2, 2, numbers, "");
    check_table("x,y\n1,2.5\n-3e2,.125\n", &none, 2, 2, numbers, "");
    check_table("1;2.5;a,b\n-3e2;.125;b", &semicolon, 2, 2, numbers, "a,b|b|");
    check_table("1\t2.5\ta b\n-3e2\t .125\tb", &tab, 2, 2, numbers, "a b|b|");
    check_table("9,9,9\n1,2.5,3\n-3e2,.125,4", &always, 2, 2, numbers, "3|4|");
    check_table("\"1\",\"2.5\" , \"a\"\n\"-3e2\",.125,\"say \"\"b\"\", c\n d\"\n", &last, 2, 2, numbers,
                "a|say \"b\", c\n d|");
    check_table("1,2.5,\"\"\"\"\n-3e2,.125,b\"c", &last, 2, 2, numbers, "\"|b\"c|");
}

static void check_lines(void) {
    const char *text = "x,y\n\n1,\"a\nb\"\r\n2,c\n";
    struct csv_table table;
    struct error error = {0};
    const struct csv_format last = format("");
    CHECK(csv_parse(&table, "t.csv", text, strlen(text), &last, NULL, &error) == OK, "%s", error.words);
    CHECK(table.rows == 2 && table.lines[0] == 3 && table.lines[1] == 5, "lines %d, %d", table.lines[0],
          table.lines[1]);
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
    struct error error = {0};
    const struct csv_format last = format("");
    CHECK(csv_parse(&table, "t.csv", text, used, &last, NULL, &error) == OK, "%s", error.words);
    CHECK(table.rows == ROWS && table.features == COLUMNS - 1, "%d x %d", table.rows, table.features);
    for (int row = 0; row < table.rows; row++)
        for (int c = 0; c < table.features; c++)
            CHECK(table.floats[row * table.features + c] == (float)((row + c) % 100), "row %d, column %d",
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

static void check_errors(void) {
    const struct {
        const char *text, *label, *words;
    } cases[] = {
        {"sepal_width,petal_length,kind\n1,2,a\n1,x1,a\n", "",
         "f.csv: row 3, column 2 \"petal_length\": found \"x1\", expected a number"},
        {"1,2,a\n1,x1,a\n", "", "f.csv: row 2, column 2: found \"x1\", expected a number"},
        {"x1,2,a\n1,2,a\n", "", "f.csv: row 1, column 1: found \"x1\", expected a number"},
        {"1,2,a\n1,0x1p3,a\n", "", "f.csv: row 2, column 2: found \"0x1p3\", expected a number"},
        {"1,2,a\n1,2 3,a\n", "", "f.csv: row 2, column 2: found \"2 3\", expected a number"},
        {"1,2,a\n1,nan,a\n", "", "f.csv: row 2, column 2: found \"nan\", expected a finite number"},
        {"1,2,a\n-inf,2,a\n", "", "f.csv: row 2, column 1: found \"-inf\", expected a finite number"},
        {"1,2,a\n1e39,2,a\n", "", "f.csv: row 2, column 1: found \"1e39\", expected a finite number"},
        {"1,2,a\n,2,a\n", "", "f.csv: row 2, column 1: found an empty cell, expected a number"},
        {"x,y,kind\n1,2,a\n1,,a\n", "",
         "f.csv: row 3, column 2 \"y\": found an empty cell, expected a number"},
        {"x,y,kind\n1,2,a\n1,2,\n", "",
         "f.csv: row 3, column 3 \"kind\": found an empty cell, expected a label"},
        {"1,2,a\n1,2,\"b\tc\"\n", "", "f.csv: row 2, column 3: found \"b?c\", expected a name without a tab"},
        {"x,\"y\t\",kind\n1,2,a\n", "",
         "f.csv: row 1, column 2: found \"y?\", expected a name without a tab"},
        {"1,2,Z\xC3\xBCrich\n1,2,Z\xFCrich\n", "",
         "f.csv: row 2, column 3: found \"Z?rich\", expected a name in UTF-8 (iconv converts)"},
        {"x,h\xF6he,kind\n1,2,a\n", "",
         "f.csv: row 1, column 2: found \"h?he\", expected a name in UTF-8 (iconv converts)"},
        {"1,2,3,4,a\n1,2,3,a\n", "", "f.csv: row 2: found 4 cells, expected 5"},
        {"1,2,a\n1\n", "", "f.csv: row 2: found 1 cell, expected 3"},
        {"1,2,a\n1,2,3,a\n", "", "f.csv: row 2: found 4 cells, expected 3"},
        {"1,2\n1,2,3\n", NULL, "f.csv: row 2: found 3 cells, expected 2 (the features, without a label)"},
        {"a\nb\n", "", "f.csv: row 1: found 1 cell, expected at least 2, separated by ','"},
        {"", "", "f.csv: found an empty file, expected rows of numbers"},
        {"\xEF\xBB\xBF\r\n \n", "", "f.csv: found an empty file, expected rows of numbers"},
        {"x,y,kind\n", "", "f.csv: found only a header, expected rows of numbers after it"},
        {"1,2,a\n1,\"2,a\n", "",
         "f.csv: row 2, column 2: found the end of the file, expected a closing quote"},
        {"1,2,a\n1,\"2\"3,a\n", "",
         "f.csv: row 2, column 2: found \"3\" after the closing quote, expected a separator"},
        {"1,2,a\n1,\"\x01\n2\",a\n", "", "f.csv: row 2, column 2: found \"??2\", expected a number"},
        {"1,2,a\n1,x23456789012345678901234567890123456789\xC3\xA9yz,a\n", "",
         "f.csv: row 2, column 2: found \"x23456789012345678901234567890123456789...\", expected a number"},
        {"1,2,a\n1,12345678901234567890123456789012345678xx\xC3\xA9,a\n", "",
         "f.csv: row 2, column 2: found \"12345678901234567890123456789012345678xx...\", expected a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct csv_format as = format(cases[i].label);
        check_error(cases[i].text, strlen(cases[i].text), &as, ERROR_FILE, cases[i].words);
    }
    const struct csv_format none = format("species"), far = format("4"), zero = format("0"),
                            last = format("");
    check_error("x,y,kind\n1,2,a\n", 15, &none, ERROR_USAGE,
                "f.csv: found no column \"species\" in row 1, expected the name of one of its 3 columns, or "
                "a number");
    check_error("1,2,a\n", 6, &far, ERROR_USAGE,
                "f.csv: found label=4, expected the number of a column, 1 to 3, or its name");
    check_error("1,2,a\n", 6, &zero, ERROR_USAGE,
                "f.csv: found label=0, expected the number of a column, 1 to 3, or its name");
    check_error("1,2\0,a\n", 7, &last, ERROR_FILE, "f.csv: found a 0 byte at offset 3, expected text");
    check_error("", (size_t)CSV_MAX_BYTES + 1, &last, ERROR_FILE,
                "f.csv: found 1073741825 bytes, expected at most 1073741824");
    static char wide[CSV_MAX_COLUMNS + 1];
    memset(wide, ',', sizeof wide);
    check_error(wide, sizeof wide, &last, ERROR_FILE, "f.csv: row 1: found more than 65536 cells");
}

/* --- rows for prediction --- */

static void check_features(const char *text, bool named, const char *words) {
    const char *const names[] = {"w", "h"};
    float *floats = NULL;
    int rows = 0;
    struct error error = {0};
    const int code =
        csv_parse_features("p.csv", text, strlen(text), 2, named ? names : NULL, &floats, &rows, &error);
    CHECK(strcmp(error.words, words) == 0, "\n found    %s\n expected %s", error.words, words);
    CHECK((code == OK) == !*words, "code %d", code);
    CHECK(code != OK || (rows == 2 && floats[0] == 1 && floats[1] == 2 && floats[2] == 3 && floats[3] == 4),
          "%s", text);
    memory_free(floats);
}

static void check_predict_rows(void) {
    check_features("1,2\n3,4\n", false, "");
    check_features("1,2\n3,4\n", true, "");
    check_features("w,h\n1,2\n3,4\n", true, "");
    check_features("a,b\n1,2\n3,4\n", false, "");
    check_features("w,b\n1,2\n3,4\n", true,
                   "p.csv: row 1, column 2: found \"b\", expected \"h\" as in the model");
    check_features("1,2,a\n3,4,b\n", true,
                   "p.csv: row 1: found 3 cells, expected 2 (the features, without a label)");
    check_features("1,2\n3,4,b\n", true,
                   "p.csv: row 2: found 3 cells, expected 2 (the features, without a label)");
    check_features("1\n3\n", true, "p.csv: row 1: found 1 cell, expected 2 as in the model");
    check_features("1,2,3,4\n", true, "p.csv: row 1: found 4 cells, expected 2 as in the model");
    check_features("1,2\n3,x\n", true, "p.csv: row 2, column 2: found \"x\", expected a number");
    check_features("w,h\n1,2\n3,x\n", true, "p.csv: row 3, column 2 \"h\": found \"x\", expected a number");
    check_features("", true, "p.csv: found an empty file, expected rows of numbers");
}

/* --- the data set --- */

struct folder {
    char path[64], train[80], test[80];
};

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fputs(text, file) >= 0, "%s was not written", path);
    if (file) fclose(file);
}

/* Opens csv:file=TRAIN,settings on the texts (test may be NULL). */
static int open_texts(const struct folder *folder, struct dataset *dataset, const char *train,
                      const char *test, const char *settings, struct error *error) {
    char text[400];
    struct choice choice;
    write_text(folder->train, train);
    if (test) write_text(folder->test, test);
    snprintf(text, sizeof text, "csv:file=%s%s%s%s", folder->train, test ? ",test_file=" : "",
             test ? folder->test : "", settings);
    *error = (struct error){0};
    *dataset = (struct dataset){0};
    RETURN_IF(plugin_choose(&choice, &dataset_kind, text, error));
    return dataset_open(dataset, &choice, NULL, error);
}

/* The words that follow the folder's name. */
static void check_dataset_error(const struct folder *folder, const char *train, const char *test,
                                const char *settings, const char *words) {
    struct dataset dataset;
    struct error error;
    CHECK(open_texts(folder, &dataset, train, test, settings, &error) != OK, "%s", words);
    const char *found = error.words;
    if (strncmp(found, folder->path, strlen(folder->path)) == 0) found += strlen(folder->path) + 1;
    CHECK(strncmp(found, words, strlen(words)) == 0, "\n found    %s\n expected %s", found, words);
    dataset_close(&dataset);
}

static void check_two_files(const struct folder *folder) {
    struct dataset set;
    struct error error;
    const char *train = "len,kind,five\n1,10,5\n3,9,5\n5,-1,5\n7,10,5\n",
               *test = "len,kind,five\n4,9,6\n9,-1,5\n";
    CHECK(open_texts(folder, &set, train, test, ",label=kind,standardize=0", &error) == OK, "%s",
          error.words);
    CHECK(set.train.count == 4 && set.test.count == 2 && set.train.features == 2, "counts");
    CHECK(set.shape.rank == 1 && set.shape.dims[0] == 2 && set.classes == 3, "shape");
    CHECK(set.mean == NULL && set.deviation == NULL, "not standardized");
    const char *const names[] = {"-1", "9", "10"};
    const int labels[] = {2, 1, 0, 2};
    for (int c = 0; c < set.classes; c++)
        CHECK(strcmp(set.class_names[c], names[c]) == 0, "%s", set.class_names[c]);
    for (int i = 0; i < set.train.count; i++)
        CHECK(set.train.labels[i] == labels[i], "%d", set.train.labels[i]);
    CHECK(set.test.labels[0] == 1 && set.test.labels[1] == 0, "test labels");
    CHECK(strcmp(set.feature_names[0], "len") == 0 && strcmp(set.feature_names[1], "five") == 0,
          "feature names");
    CHECK(set.train.floats[4] == 5 && set.test.floats[1] == 6 && set.train.scale == 1.0f, "floats");
    dataset_close(&set);

    CHECK(open_texts(folder, &set, train, test, ",label=2", &error) == OK, "%s", error.words);
    /* lengths 1 3 5 7: mean 4, deviation sqrt(5); a constant column: deviation 1 */
    const float deviation = (float)sqrt(5.0);
    CHECK(set.mean[0] == 4 && set.deviation[0] == deviation, "%g, %g", (double)set.mean[0],
          (double)set.deviation[0]);
    CHECK(set.mean[1] == 5 && set.deviation[1] == 1, "%g, %g", (double)set.mean[1], (double)set.deviation[1]);
    CHECK(set.train.floats[0] == (float)(-3 / (double)deviation), "%g", (double)set.train.floats[0]);
    CHECK(set.test.floats[0] == 0 && set.test.floats[1] == 1, "the test part has the training part's mean");
    CHECK(set.test.floats[2] == (float)(5 / (double)deviation), "%g", (double)set.test.floats[2]);
    dataset_close(&set);

    CHECK(open_texts(folder, &set, "1,b\n2,a\n3,10\n", "1,10\n", "", &error) == OK, "%s", error.words);
    CHECK(strcmp(set.class_names[0], "10") == 0 && strcmp(set.class_names[2], "b") == 0, "alphabetical");
    CHECK(set.train.labels[0] == 2 && set.train.labels[1] == 1 && set.test.labels[0] == 0, "labels");
    CHECK(set.feature_names == NULL, "no header, no names");
    dataset_close(&set);
}

/* Each row is in one part, with its own label; the seed decides which. */
static void check_split(const struct folder *folder) {
    char text[4000] = "";
    size_t used = 0;
    for (int i = 0; i < 103; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%d\n", i, i % 2);
    unsigned first_test[3] = {0};
    const char *const settings[] = {",standardize=0", ",standardize=0,split_seed=1",
                                    ",standardize=0,split_seed=2"};
    for (int s = 0; s < 3; s++) {
        struct dataset set;
        struct error error;
        int seen[103] = {0};
        CHECK(open_texts(folder, &set, text, NULL, settings[s], &error) == OK, "%s", error.words);
        CHECK(set.train.count == 82 && set.test.count == 21, "%d and %d", set.train.count, set.test.count);
        for (int i = 0; i < set.train.count + set.test.count; i++) {
            const struct examples *part = i < set.train.count ? &set.train : &set.test;
            const int at = i < set.train.count ? i : i - set.train.count, row = (int)part->floats[at];
            CHECK(part->labels[at] == row % 2, "row %d has label %d", row, part->labels[at]);
            seen[row]++;
        }
        for (int i = 0; i < 103; i++) CHECK(seen[i] == 1, "row %d seen %d times", i, seen[i]);
        for (int i = 0; i < set.test.count; i++)
            first_test[s] = first_test[s] * 31 + (unsigned)set.test.floats[i];
        dataset_close(&set);
    }
    CHECK(first_test[0] == first_test[1], "the default seed is 1");
    CHECK(first_test[0] != first_test[2], "the seed changes nothing");
}

static void check_dataset_errors(const struct folder *folder) {
    struct dataset set;
    struct error error;
    check_dataset_error(folder, "1,a\n2,a\n", "1,a\n", "",
                        "train.csv: found one class, \"a\", in all 2 training rows, expected at least two");
    check_dataset_error(
        folder, "x,kind\n1,a\n2,b\n", "x,kind\n1,c\n", "",
        "test.csv: row 2, column 2 \"kind\": found \"c\", expected one of the 2 labels of the training part");
    check_dataset_error(
        folder, "1,1\n2,2\n", "1,01\n", "",
        "test.csv: row 1, column 2: found \"01\", expected one of the 2 labels of the training part");
    check_dataset_error(folder, "1,2,a\n2,3,b\n", "1,a\n", "",
                        "test.csv: row 1: found 2 cells, expected 3 as in ");
    check_dataset_error(folder, "x,y,k\n1,2,a\n2,3,b\n", "x,z,k\n1,2,a\n", "",
                        "test.csv: row 1, column 2: found \"z\", expected \"y\" as in ");
    check_dataset_error(folder, "1,a\n", NULL, "",
                        "train.csv: found 1 row, expected at least 2, to train and to test on");
    check_dataset_error(folder, "1,a\n2,b\n3,a\n", "1,a\n", ",take=4",
                        "csv: found take=4, expected at most 3, the training examples there are");
    check_dataset_error(folder, "1,a\n2,b\n3,a\n", NULL, ",label=5",
                        "train.csv: found label=5, expected the number of a column, 1 to 2, or its name");
    remove(folder->test);
    char missing[160];
    snprintf(missing, sizeof missing, ",test_file=%s", folder->test);
    check_dataset_error(folder, "1,a\n2,b\n3,a\n", NULL, missing, "test.csv: No such file or directory");
    struct choice choice;
    error = (struct error){0};
    CHECK(plugin_choose(&choice, &dataset_kind, "csv", &error) == OK, "%s", error.words);
    CHECK(dataset_open(&set, &choice, NULL, &error) == ERROR_USAGE, "no file");
    CHECK(strcmp(error.words, "csv: found no file, expected csv:file=FILE") == 0, "%s", error.words);
    CHECK(open_texts(folder, &set, "1,a\n2,b\n3,a\n", "1,a\n", ",take=3", &error) == OK, "%s", error.words);
    dataset_close(&set);
    static char many[CSV_MAX_CLASSES * 12 + 24];
    size_t used = 0;
    for (int i = 0; i <= CSV_MAX_CLASSES; i++)
        used += (size_t)snprintf(many + used, sizeof many - used, "%d,%d\n", i % 10, i * 7919 % 10007);
    check_dataset_error(
        folder, many, "1,1\n", "",
        "train.csv: row 10001, column 2: found label number 10001, expected at most 10000 different ones");
}

/* The n-th request for memory fails, for every n: an error, no leak, no crash. Requests are counted over the
 * whole process. */
static void check_memory_failures(const struct folder *folder) {
    long asked = 0;
    bool opened = false;
    for (int n = 1; !opened; n++) {
        char request[24];
        struct dataset set;
        struct error error;
        snprintf(request, sizeof request, "%ld", asked += n);
        setenv("TRAINER_FAIL_ALLOCATION", request, 1);
        const int code = open_texts(folder, &set, "x,k\n1,a\n2,b\n3,a\n4,b\n5,b\n6,a\n", NULL, "", &error);
        opened = code == OK;
        CHECK(opened || (code == ERROR_DEVICE && *error.words), "code %d", code);
        CHECK(!opened || n > 10, "only %d requests", n);
        dataset_close(&set);
    }
    unsetenv("TRAINER_FAIL_ALLOCATION");
}

int main(void) {
    check_reading();
    check_lines();
    check_sizes();
    check_errors();
    check_predict_rows();
    struct folder folder = {.path = "/tmp/trainer-csv-XXXXXX"};
    if (mkdtemp(folder.path)) {
        snprintf(folder.train, sizeof folder.train, "%s/train.csv", folder.path);
        snprintf(folder.test, sizeof folder.test, "%s/test.csv", folder.path);
        check_two_files(&folder);
        check_split(&folder);
        check_dataset_errors(&folder);
        check_memory_failures(&folder);
        remove(folder.train);
        remove(folder.test);
        rmdir(folder.path);
    }
    CHECK(*folder.test, "no temporary folder");
    return check_end();
}
