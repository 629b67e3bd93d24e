/* Data sets made of tables: parts, labels, categories, what is missing, standardizing; and their errors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../src/base/memory.h"
#include "../../src/data/csv_examples.h"
#include "../check.h"

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

    /* The order of TensorFlow's first row; one that only the test part has is a class, too. */
    CHECK(open_texts(folder, &set, "3,1,up,down,left\n1,1\n2,0\n3,1\n", "2,1,down,left\n4,0\n5,1\n", "",
                     &error) == OK,
          "%s", error.words);
    CHECK(error.code != OK || (set.classes == 3 && strcmp(set.class_names[1], "down") == 0), "given classes");
    CHECK(error.code != OK || (set.train.labels[0] == 1 && set.train.labels[1] == 0), "given labels");
    CHECK(error.code != OK || (set.test.labels[0] == 1 && set.test.labels[1] == 2), "labels by name");
    dataset_close(&set);
}

/* A test file has the columns in its own order, and others besides. */
static void check_matching(const struct folder *folder) {
    struct dataset set;
    struct error error;
    CHECK(open_texts(folder, &set, "x,c,y,k\n1,p,5,a\n2,q,6,b\n", "k;more;y;c;x\nb;text;7;q;8\na;0;9;r;1\n",
                     ",standardize=0", &error) == OK,
          "%s", error.words);
    const float train[] = {1, 1, 0, 5, 2, 0, 1, 6}, test[] = {8, 0, 1, 7, 1, 0, 0, 9};
    const char *const names[] = {"x", "c=p", "c=q", "y"};
    CHECK(set.train.count == 2 && set.test.count == 2 && set.train.features == 4, "%d features",
          set.train.features);
    for (int i = 0; error.code == OK && i < 8; i++) {
        CHECK(set.train.floats[i] == train[i] && set.test.floats[i] == test[i], "number %d: %g, %g", i,
              (double)set.train.floats[i], (double)set.test.floats[i]);
        CHECK(strcmp(set.feature_names[i % 4], names[i % 4]) == 0, "%s", set.feature_names[i % 4]);
    }
    CHECK(set.test.labels[0] == 1 && set.test.labels[1] == 0, "labels");
    CHECK(strstr(set.notice, "test.csv: values of the test part that no training example has: 1 cell"), "%s",
          set.notice);
    CHECK(strcmp(set.columns, "header\t.\tnumber\tx\t\tcategory\tc\t0\t2\tp\tq\tnumber\ty\t\tlabel\tk") == 0,
          "%s", set.columns);
    dataset_close(&set);
}

/* Numbers first, then a code for each column of texts, from 1 on; 0: a value that training does not have. */
static void check_embedded(const struct folder *folder) {
    const char *const text = "town,age,size,kind\nWien,1,L,a\nGraz,3,S,b\nGraz,5,L,a\n";
    const float train[] = {1, 2, 3, 3, 1, 4, 5, 1, 3}, test[] = {9, 0, 4};
    const char *const names[] = {"age", "town", "size"};
    struct dataset set;
    struct error error;
    CHECK(open_texts(folder, &set, text, "town,age,size,kind\nLinz,9,S,b\n", ",embedding=7,standardize=0",
                     &error) == OK,
          "%s", error.words);
    CHECK(set.train.features == 3 && set.codes.numbers == 1 && set.codes.columns == 2 &&
              set.codes.vocabulary == 5 && set.codes.units == 7 && set.measured,
          "%d features, %d codes", set.train.features, set.codes.vocabulary);
    for (int i = 0; error.code == OK && i < 9; i++)
        CHECK(set.train.floats[i] == train[i], "number %d is %g", i, (double)set.train.floats[i]);
    for (int f = 0; error.code == OK && f < 3; f++) {
        CHECK(set.test.floats[f] == test[f], "number %d of the test is %g", f, (double)set.test.floats[f]);
        CHECK(strcmp(set.feature_names[f], names[f]) == 0, "%s", set.feature_names[f]);
    }
    CHECK(strstr(set.notice, "no training example has: 1 cell"), "%s", set.notice);
    dataset_close(&set);
    CHECK(open_texts(folder, &set, text, text, ",embedding=7", &error) == OK, "%s", error.words);
    for (int f = 1; error.code == OK && f < 3; f++)
        CHECK(set.mean[f] == 0 && set.deviation[f] == 1, "feature %d", f);
    dataset_close(&set);
    CHECK(open_texts(folder, &set, "1,a\n2,b\n3,a\n", "1,a\n", ",embedding=7", &error) == OK, "%s",
          error.words);
    CHECK(set.codes.columns == 0 && !set.measured, "codes without categories");
    dataset_close(&set);
}

/* Values are sorted, as numbers where all are; they are not standardized; what is missing is filled in. */
static void check_categories(const struct folder *folder) {
    const char *const text = "1,10,a\n3,9,b\nNA,10,a\n5,,b\n",
                      *const expected = "no header\t.\tnumber\t\t3\tcategory\t\t1\t3\t\t9\t10\tlabel\t";
    const char *const names[] = {"1", "2=", "2=9", "2=10"};
    struct dataset set;
    struct error error;
    CHECK(open_texts(folder, &set, text, "?,11,b\n", ",categories=2,missing=mean", &error) == OK, "%s",
          error.words);
    CHECK(strcmp(set.columns, expected) == 0, "%s", set.columns);
    const float deviation = (float)sqrt(2.0), off = (float)(2 / (double)deviation),
                train[] = {-off, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, off, 1, 0, 0}, test[] = {0, 0, 0, 0};
    for (int i = 0; error.code == OK && i < 16; i++)
        CHECK(set.train.floats[i] == train[i], "number %d is %g", i, (double)set.train.floats[i]);
    for (int f = 0; error.code == OK && f < 4; f++) {
        CHECK(set.test.floats[f] == test[f], "number %d of the test is %g", f, (double)set.test.floats[f]);
        CHECK(strcmp(set.feature_names[f], names[f]) == 0, "%s", set.feature_names[f]);
        CHECK(set.mean[f] == (f == 0 ? 3 : 0) && set.deviation[f] == (f == 0 ? deviation : 1), "feature %d",
              f);
    }
    dataset_close(&set);
    CHECK(open_texts(folder, &set, text, "2,9,b\n", ",missing=drop,standardize=0", &error) == OK, "%s",
          error.words);
    CHECK(set.train.count == 2 && set.train.features == 2 && set.train.floats[3] == 9, "%d rows",
          set.train.count);
    CHECK(strstr(set.notice, "train.csv: rows left out, as something is missing in them: 2"), "%s",
          set.notice);
    dataset_close(&set);
}

/* A row that is left out says nothing of its columns, nor of the labels that there are. */
static void check_dropped(const struct folder *folder) {
    struct dataset set;
    struct error error;
    CHECK(open_texts(folder, &set, "x,y,k\nword,,c\n1,2,a\nfew,?,b\n3,4,b\n5,NA,d\n", "x,y,k\n7,8,a\n",
                     ",missing=drop,standardize=0", &error) == OK,
          "%s", error.words);
    const float train[] = {1, 2, 3, 4};
    CHECK(error.code != OK || (set.train.count == 2 && set.train.features == 2 && set.classes == 2),
          "%d rows of %d numbers, %d classes", set.train.count, set.train.features, set.classes);
    for (int i = 0; error.code == OK && i < 4 && set.train.features == 2; i++)
        CHECK(set.train.floats[i] == train[i], "number %d is %g", i, (double)set.train.floats[i]);
    dataset_close(&set);
}

/* Texts alone: that they differ makes no header of a test file's first row where the training file had none.
 */
static void check_texts_alone(const struct folder *folder) {
    struct dataset set;
    struct error error;
    CHECK(open_texts(folder, &set, "red,red,yes\nblue,none,no\nred,none,no\n", "blue,red,yes\nred,none,no\n",
                     "", &error) == OK,
          "%s", error.words);
    CHECK(set.train.count == 3 && set.test.count == 2, "%d and %d rows", set.train.count, set.test.count);
    dataset_close(&set);
}

/* Numbers to predict: they must be there, as the words say that a number is expected. */
static void check_targets(const struct folder *folder) {
    const char *const text = "x,y,z\n1,2,3\n4,,6\n7,8,9\n";
    struct dataset set;
    struct error error;
    check_dataset_error(
        folder, text, NULL, ",target=y",
        "train.csv: row 3, column 2 \"y\": found an empty cell, expected a number to predict; "
        "missing=drop leaves such rows out");
    check_dataset_error(
        folder, text, NULL, ",target=y,missing=mean",
        "train.csv: row 3, column 2 \"y\": found an empty cell, expected a number to predict; "
        "missing=drop leaves such rows out");
    CHECK(open_texts(folder, &set, text, "x,y,z\n0,8,0\n", ",target=y,missing=drop", &error) == OK, "%s",
          error.words);
    CHECK(error.code != OK || (set.train.count == 2 && set.units.mean[0] == 5 && set.test.targets[0] == 1),
          "the mean of the targets is that of rows left in");
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

/* The separator by its name and by itself. */
static void check_separators(const struct folder *folder) {
    const char *const settings[] = {",separator=semicolon", ",separator=;", ",separator=\";\""};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct dataset set;
        struct error error;
        CHECK(open_texts(folder, &set, "1,2;3;a\n1,2;4;b\n", "1,2;3;a\n", settings[i], &error) == OK, "%s",
              error.words);
        CHECK(error.code != OK || set.train.features == 2, "%s: %d features", settings[i],
              set.train.features);
        dataset_close(&set);
    }
    check_dataset_error(folder, "1;a\n2;b\n", NULL, ",separator=x",
                        "csv: separator=x: expected one of auto|");
}

/* Classes of one row are trained on, whatever the seed; many numbers are no classes. */
static void check_rare(const struct folder *folder) {
    const char *const rare = "x,y\n1,a\n2,b\n3,a\n4,b\n5,a\n6,b\n7,a\n8,b\n9,c\n10,d\n";
    char text[400] = "x,y\n", settings[60];
    struct dataset set;
    struct error error;
    for (int seed = 1; seed <= 10; seed++) {
        int rows = 0;
        snprintf(settings, sizeof settings, ",standardize=0,split_seed=%d", seed);
        CHECK(open_texts(folder, &set, rare, NULL, settings, &error) == OK, "%s", error.words);
        for (int i = 0; error.code == OK && i < 10; i++) {
            const struct examples *part = i < 8 ? &set.train : &set.test;
            const int row = (int)part->floats[i % 8], label = row > 8 ? row - 7 : (row + 1) % 2;
            CHECK(part->labels[i % 8] == label, "seed %d: row %d is of class %d", seed, row, label);
            CHECK(i < 8 || label < 2, "seed %d: only the test part has row %d", seed, row);
            rows |= 1 << row;
        }
        CHECK(rows == 2046, "seed %d: rows %x", seed, (unsigned)rows);
        dataset_close(&set);
    }
    for (int i = 0; i < 25; i++) snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%d\n", i, i);
    CHECK(open_texts(folder, &set, text, NULL, "", &error) == ERROR_FILE &&
              strstr(error.words, "; target=y predicts it as a number"),
          "%s", error.words);
    dataset_close(&set);
}

/* An index that was written along says in which order the rows were, which is no property of them. */
static void check_counting(const struct folder *folder) {
    enum { ROWS = 24 };
    const struct {
        int first, step, odd; /* row r has first + r * step % ROWS; the last one `odd`, where that is not 0 */
        const char *settings, *column; /* NULL: nothing is said */
    } cases[] = {{0, 1, 0, "", "id"},           {1, 5, 0, "", "id"},
                 {2, 1, 0, "", NULL},           {0, 1, 9, "", NULL},
                 {0, 1, 99, "", NULL},          {0, 1, 0, ",columns=id,size", NULL},
                 {0, 1, 0, ",ignore=id", NULL}, {0, 1, 0, ",ignore=size", NULL},
                 {0, 1, 0, ",header=no", "1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dataset set;
        struct error error;
        char text[1000] = "id,size,kind\n", expected[200] = "";
        for (int r = 0; r < ROWS; r++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%d,%s\n",
                     cases[i].odd && r == ROWS - 1 ? cases[i].odd : cases[i].first + r * cases[i].step % ROWS,
                     r % 3, r % 2 ? "x" : "y");
        const char *at = strstr(cases[i].settings, "header=no") ? strchr(text, '\n') + 1 : text;
        const int code = open_texts(folder, &set, at, NULL, cases[i].settings, &error);
        CHECK(code == OK, "case %zu: %s", i, error.words);
        if (cases[i].column)
            snprintf(expected, sizeof expected,
                     "%s: column %s counts the rows, and is learnt from; ignore=%s leaves it out",
                     folder->train, cases[i].column, cases[i].column);
        CHECK(strcmp(set.notice, expected) == 0, "case %zu: \"%s\", expected \"%s\"", i, set.notice,
              expected);
        dataset_close(&set);
    }
}

static void check_dataset_errors(const struct folder *folder) {
    struct dataset set;
    struct error error;
    check_dataset_error(folder, "1,a\n2,a\n", "1,a\n", "",
                        "train.csv: found one class, \"a\", in all 2 training rows, expected at least two");
    check_dataset_error(folder, "1,a\n", "1,a\n", "",
                        "train.csv: found one class, \"a\", in 1 training row, expected at least two");
    check_dataset_error(
        folder, "x,kind\n1,a\n2,b\n", "x,kind\n1,c\n", "",
        "test.csv: row 2, column 2 \"kind\": found \"c\", expected one of the 2 labels of the training part");
    check_dataset_error(
        folder, "1,1\n2,2\n", "1,01\n", "",
        "test.csv: row 1, column 2: found \"01\", expected one of the 2 labels of the training part");
    check_dataset_error(folder, "1,2,a\n2,3,b\n", "1,a\n", "",
                        "test.csv: row 1: found 2 cells, expected 3 as in ");
    check_dataset_error(folder, "x,y,k\n1,2,a\n2,3,b\n", "x,z,k\n1,2,a\n", "",
                        "test.csv: row 1: found no column \"y\", expected the columns of ");
    check_dataset_error(folder, "x,y,k\n1,2,a\n2,3,b\n,4,b\n", NULL, "",
                        "train.csv: row 4, column 1 \"x\": found an empty cell, expected a number");
    check_dataset_error(folder, "x,y,k\n1,,a\n,3,b\n,4,\n", NULL, ",missing=drop",
                        "train.csv: in all 3 rows something is missing, expected some without");
    check_dataset_error(folder, "x,y,k\n1,,a\n2,,b\n", NULL, ",missing=mean",
                        "train.csv: column 2: found no value in any row; ignore=y leaves it out");
    check_dataset_error(folder, "1,a\n", NULL, "",
                        "train.csv: found 1 row, expected at least 2, to train and to test on");
    check_dataset_error(folder, "1,a\n2,b\n3,a\n", "1,a\n", ",take=4",
                        "csv: found take=4, expected at most 3, the training examples there are");
    check_dataset_error(folder, "1,a\n2,b\n3,a\n", NULL, ",label=5",
                        "train.csv: found label=5, expected the number of one of its 2 columns, 1 to 2");
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
        const int code = open_texts(folder, &set, "x,c,k\n1,p,a\n2,q,b\n,p,a\n4,q,b\n5,,b\n6,p,a\n", NULL,
                                    ",missing=mean", &error);
        opened = code == OK;
        CHECK(opened || (code == ERROR_DEVICE && *error.words), "code %d", code);
        CHECK(!opened || n > 10, "only %d requests", n);
        dataset_close(&set);
    }
    unsetenv("TRAINER_FAIL_ALLOCATION");
}

int main(void) {
    struct folder folder = {.path = "/tmp/trainer-csv-XXXXXX"};
    if (mkdtemp(folder.path)) {
        snprintf(folder.train, sizeof folder.train, "%s/train.csv", folder.path);
        snprintf(folder.test, sizeof folder.test, "%s/test.csv", folder.path);
        check_two_files(&folder);
        check_matching(&folder);
        check_categories(&folder);
        check_embedded(&folder);
        check_dropped(&folder);
        check_texts_alone(&folder);
        check_targets(&folder);
        check_split(&folder);
        check_rare(&folder);
        check_separators(&folder);
        check_counting(&folder);
        check_dataset_errors(&folder);
        check_memory_failures(&folder);
        remove(folder.train);
        remove(folder.test);
        rmdir(folder.path);
    }
    CHECK(*folder.test, "no temporary folder");
    return check_end();
}
