/* Data sets: what all of them promise, the embedded ones number by number, gzip in memory, standardizing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "../../src/base/memory.h"
#include "../../src/data/dataset.h"
#include "../../src/data/embedded.h"
#include "../../src/data/gunzip.h"
#include "../../src/data/standardize.h"
#include "../check.h"

EMBEDDED(embedded_digits);
EMBEDDED(embedded_iris_training);
EMBEDDED(embedded_iris_test);

static int open_text(struct dataset *dataset, const char *text, struct error *error) {
    struct choice choice;
    *error = (struct error){0};
    *dataset = (struct dataset){0};
    RETURN_IF(plugin_choose(&choice, &dataset_kind, text, error));
    return dataset_open(dataset, &choice, NULL, error);
}

static float number(const struct examples *examples, int example, int feature) {
    const size_t at = (size_t)example * (size_t)examples->features + (size_t)feature;
    return examples->bytes ? (float)examples->bytes[at] * examples->scale : examples->floats[at];
}

/* --- what all promise --- */

static void check_examples(const struct dataset *set, const struct examples *examples) {
    CHECK(examples->count > 0 && examples->features > 0, "%s: %d x %d", set->name, examples->count,
          examples->features);
    CHECK((examples->bytes == NULL) != (examples->floats == NULL), "%s: bytes or floats", set->name);
    size_t product = 1;
    for (int d = 0; d < set->shape.rank; d++) product *= (size_t)set->shape.dims[d];
    CHECK(product == (size_t)examples->features, "%s: shape and features", set->name);
    int bad = 0;
    for (int i = 0; i < examples->count; i++) {
        bad += examples->labels[i] < 0 || examples->labels[i] >= set->classes;
        for (int f = 0; f < examples->features; f++) bad += !isfinite(number(examples, i, f));
    }
    CHECK(bad == 0, "%s: %d bad labels or numbers", set->name, bad);
}

static void check_registry(void) {
    int opened = 0;
    for (int i = 0; datasets[i]; i++) {
        struct dataset set;
        struct error error;
        CHECK(datasets[i]->plugin.settings_bytes <= PLUGIN_SETTINGS_BYTES, "%s", datasets[i]->plugin.name);
        CHECK(option_find(datasets[i]->plugin.options, "take") != NULL, "%s has no take",
              datasets[i]->plugin.name);
        if (open_text(&set, datasets[i]->plugin.name, &error) != OK) {
            CHECK(*error.words && set.blocks[0] == NULL && set.class_names == NULL, "%s",
                  datasets[i]->plugin.name);
            fprintf(stderr, "not tested: %s\n", error.words); /* it needs files */
            continue;
        }
        opened++;
        CHECK(set.name == datasets[i]->plugin.name && set.classes >= 2, "%s", set.name);
        for (int c = 0; c < set.classes; c++)
            CHECK(*set.class_names[c], "%s: class %d has no name", set.name, c);
        check_examples(&set, &set.train);
        check_examples(&set, &set.test);
        CHECK(set.train.features == set.test.features, "%s: features", set.name);
        dataset_close(&set);
        CHECK(set.class_names == NULL && set.train.count == 0, "closed");
        dataset_close(&set); /* and again */
    }
    CHECK(opened >= 2, "%d opened", opened);
}

static void check_take(void) {
    struct dataset set;
    struct error error;
    CHECK(open_text(&set, "digits:take=100", &error) == OK, "%s", error.words);
    CHECK(set.train.count == 100 && set.test.count == 360, "%d and %d", set.train.count, set.test.count);
    dataset_close(&set);
    CHECK(open_text(&set, "digits:take=1437", &error) == OK && set.train.count == 1437, "%s", error.words);
    dataset_close(&set);
    CHECK(open_text(&set, "digits:take=1438", &error) == ERROR_USAGE, "more than there are");
    CHECK(strcmp(error.words,
                 "digits: found take=1438, expected at most 1437, the training examples there are") == 0,
          "%s", error.words);
    CHECK(set.blocks[4] == NULL, "closed after the error");
}

/* The n-th request for memory fails, for every n: an error, no leak, no crash. Requests are counted over the
 * whole process, from when the variable is first set: *asked is how many there were. */
static void check_memory_failures(const char *text, long *asked) {
    bool opened = false;
    for (int n = 1; !opened; n++) {
        char request[24];
        struct dataset set;
        struct error error;
        snprintf(request, sizeof request, "%ld", *asked + n);
        setenv("TRAINER_FAIL_ALLOCATION", request, 1);
        const int code = open_text(&set, text, &error);
        opened = code == OK;
        CHECK(opened || (code == ERROR_DEVICE && *error.words), "%s: code %d", text, code);
        CHECK(!opened || n > 8, "%s: only %d requests", text, n);
        *asked += opened ? n - 1 : n;
        dataset_close(&set);
    }
    unsetenv("TRAINER_FAIL_ALLOCATION");
}

/* --- the embedded ones --- */

static void check_embedded(void) {
    const struct {
        const char *begin, *end;
        size_t bytes;
        unsigned long checksum;
    } files[] = {{embedded_digits, embedded_digits_end, 57512, 0x20507dba},
                 {embedded_iris_training, embedded_iris_training_end, 2194, 0x0ccb4f72},
                 {embedded_iris_test, embedded_iris_test_end, 573, 0x470552c3}};
    for (int i = 0; i < 3; i++) {
        const size_t bytes = (size_t)(files[i].end - files[i].begin);
        const unsigned long checksum = crc32(0, (const Bytef *)files[i].begin, (uInt)bytes);
        CHECK(bytes == files[i].bytes, "file %d: %zu bytes", i, bytes);
        CHECK(checksum == files[i].checksum, "file %d: checksum %08lx", i, checksum);
        CHECK(*files[i].end == 0, "file %d: no 0 at the end", i);
    }
}

static void check_counts(const struct examples *examples, const int *expected, int classes) {
    int counts[10] = {0};
    for (int i = 0; i < examples->count; i++) counts[examples->labels[i]]++;
    for (int c = 0; c < classes; c++)
        CHECK(counts[c] == expected[c], "class %d: %d, expected %d", c, counts[c], expected[c]);
}

/* The numbers were counted by another program from the same file. */
static void check_digits(void) {
    struct dataset set;
    struct error error;
    const int train[] = {143, 146, 142, 146, 144, 145, 144, 143, 141, 143},
              test[] = {35, 36, 35, 37, 37, 37, 37, 36, 33, 37};
    const int first[] = {0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15}, first_test[] = {0, 4, 16, 15, 2, 0, 0, 0};
    CHECK(open_text(&set, "digits", &error) == OK, "%s", error.words);
    if (error.code) return;
    CHECK(set.train.count == 1437 && set.test.count == 360, "%d and %d", set.train.count, set.test.count);
    CHECK(set.shape.rank == 1 && set.shape.dims[0] == 64 && set.classes == 10, "shape");
    CHECK(strcmp(set.class_names[0], "0") == 0 && strcmp(set.class_names[9], "9") == 0, "class names");
    CHECK(set.train.scale == 0.0625f && set.test.scale == 0.0625f && set.feature_names == NULL, "scale");
    check_counts(&set.train, train, 10);
    check_counts(&set.test, test, 10);
    for (int i = 0; i < 12; i++) CHECK(set.train.bytes[i] == first[i], "pixel %d: %d", i, set.train.bytes[i]);
    for (int i = 0; i < 8; i++)
        CHECK(set.test.bytes[i] == first_test[i], "pixel %d: %d", i, set.test.bytes[i]);
    CHECK(set.train.labels[0] == 0 && set.test.labels[0] == 2 && set.test.labels[359] == 8, "labels");
    long sums[2] = {0};
    for (int i = 0; i < 1437 * 64; i++) sums[0] += set.train.bytes[i];
    for (int i = 0; i < 360 * 64; i++) sums[1] += set.test.bytes[i];
    CHECK(sums[0] == 449372 && sums[1] == 112346, "%ld and %ld", sums[0], sums[1]);
    dataset_close(&set);
    CHECK(open_text(&set, "digits:crop=6,brightness=255", &error) == OK, "%s", error.words);
    CHECK(set.shape.rank == 1 && set.shape.dims[0] == 36 && set.test.features == 36, "the shape of a crop");
    CHECK(set.train.augment.brightness == 16.0f, "a brightness of 255 is %g of 16",
          (double)set.train.augment.brightness);
    dataset_close(&set);
}

static void check_iris(void) {
    struct dataset set;
    struct error error;
    const int train[] = {42, 36, 42}, test[] = {8, 14, 8};
    const float first[] = {6.4f, 2.8f, 5.6f, 2.2f, 5.0f, 2.3f, 3.3f, 1.0f},
                first_test[] = {5.9f, 3.0f, 4.2f, 1.5f};
    const char *const species[] = {"Setosa", "Versicolor", "Virginica"};
    const char *const measurements[] = {"sepal_length", "sepal_width", "petal_length", "petal_width"};
    CHECK(open_text(&set, "iris", &error) == OK, "%s", error.words);
    if (error.code) return;
    CHECK(set.train.count == 120 && set.test.count == 30, "%d and %d", set.train.count, set.test.count);
    CHECK(set.shape.rank == 1 && set.shape.dims[0] == 4 && set.classes == 3, "shape");
    for (int c = 0; c < 3; c++) CHECK(strcmp(set.class_names[c], species[c]) == 0, "%s", set.class_names[c]);
    for (int f = 0; f < 4; f++)
        CHECK(strcmp(set.feature_names[f], measurements[f]) == 0, "%s", set.feature_names[f]);
    check_counts(&set.train, train, 3);
    check_counts(&set.test, test, 3);
    for (int i = 0; i < 8; i++) CHECK(set.train.floats[i] == first[i], "%g", (double)set.train.floats[i]);
    for (int i = 0; i < 4; i++) CHECK(set.test.floats[i] == first_test[i], "%g", (double)set.test.floats[i]);
    CHECK(set.train.labels[0] == 2 && set.train.labels[1] == 1 && set.test.labels[0] == 1, "labels");
    CHECK(set.mean == NULL && set.deviation == NULL, "raw by default");
    dataset_close(&set);

    CHECK(open_text(&set, "iris:standardize", &error) == OK, "%s", error.words);
    const double mean[] = {5.845, 3.065, 3.739166666666667, 1.196666666666667};
    const double deviation[] = {0.864951829101865, 0.4253723858769781, 1.8144923915213567,
                                0.7787739652099894};
    for (int f = 0; f < 4; f++) {
        CHECK(fabs((double)set.mean[f] - mean[f]) < 1e-6, "mean %d: %.9g", f, (double)set.mean[f]);
        CHECK(fabs((double)set.deviation[f] - deviation[f]) < 1e-6, "deviation %d: %.9g", f,
              (double)set.deviation[f]);
        float row[4];
        memcpy(row, first_test, sizeof row);
        standardize_apply(row, 1, 4, set.mean, set.deviation);
        CHECK(row[f] == set.test.floats[f], "the test part is standardized as new rows are");
    }
    dataset_close(&set);
}

/* --- standardizing --- */

static void check_standardize(void) {
    /* columns: small numbers; constant, and not exact in binary; large mean; the largest there are */
    float rows[4][4] = {{1, 0.1f, 1e6f, 3e38f},
                        {3, 0.1f, 1e6f + 1, -3e38f},
                        {5, 0.1f, 1e6f + 2, 3e38f},
                        {7, 0.1f, 1e6f + 3, -3e38f}};
    float mean[4], deviation[4];
    standardize_measure(rows[0], 4, 4, mean, deviation);
    const float five = (float)sqrt(5.0), spread = (float)sqrt(1.25);
    CHECK(mean[0] == 4 && deviation[0] == five, "%g, %g", (double)mean[0], (double)deviation[0]);
    CHECK(mean[1] == 0.1f && deviation[1] == 1, "%g, %g", (double)mean[1], (double)deviation[1]);
    CHECK(mean[2] == 1000001.5f && deviation[2] == spread, "%g, %g", (double)mean[2], (double)deviation[2]);
    CHECK(mean[3] == 0 && deviation[3] == 3e38f, "%g, %g", (double)mean[3], (double)deviation[3]);
    standardize_apply(rows[0], 4, 4, mean, deviation);
    for (int c = 0; c < 4; c++) {
        double sum = 0;
        for (int r = 0; r < 4; r++) sum += (double)rows[r][c];
        CHECK(fabs(sum) < 1e-6, "column %d: sum %g", c, sum);
    }
    CHECK(rows[0][1] == 0 && rows[0][3] == 1 && rows[1][3] == -1, "exact ones");
}

/* --- gzip in memory --- */

static void check_broken_gzip(const void *packed, size_t bytes, size_t limit, const char *words) {
    char *out = NULL;
    size_t got = 0;
    struct error error = {0};
    CHECK(data_gunzip("x.gz", packed, bytes, limit, &out, &got, &error) == ERROR_FILE && out == NULL, "%s",
          words);
    CHECK(strncmp(error.words, words, strlen(words)) == 0, "\n found    %s\n expected %s", error.words,
          words);
}

static void check_gunzip(void) {
    static unsigned char packed[60000];
    const size_t bytes = (size_t)(embedded_digits_end - embedded_digits);
    char *out = NULL;
    size_t got = 0;
    struct error error = {0};
    CHECK(data_gunzip("x.gz", embedded_digits, bytes, 264712, &out, &got, &error) == OK, "%s", error.words);
    CHECK(got == 264712 && out && out[got] == 0 && memcmp(out, "0,0,5,13,9,1,", 13) == 0, "%zu bytes", got);
    memory_free(out);
    memcpy(packed, embedded_digits, bytes);
    check_broken_gzip(packed, bytes, 264711, "x.gz: found 264712 bytes announced, expected at most 264711");
    check_broken_gzip(packed, 10, 1 << 20, "x.gz: found 10 bytes that are not gzip, expected a gzip stream");
    check_broken_gzip("plain text, longer than a header", 32, 1 << 20,
                      "x.gz: found 32 bytes that are not gzip, expected a gzip stream");
    memcpy(packed + 1000, packed + bytes - 8, 8); /* cut, but with the right trailer */
    check_broken_gzip(packed, 1008, 1 << 20, "x.gz: found a");
    memcpy(packed, embedded_digits, bytes);
    packed[30000] ^= 0x20;
    check_broken_gzip(packed, bytes, 1 << 20, "x.gz: found a");
    memcpy(packed, embedded_digits, bytes);
    packed[bytes - 4]--;
    check_broken_gzip(packed, bytes, 1 << 20,
                      "x.gz: found a gzip stream that is cut or longer than its announced size");
    packed[bytes - 4] = (unsigned char)(packed[bytes - 4] + 2);
    check_broken_gzip(packed, bytes, 1 << 20, "x.gz: found a broken gzip stream");
    memcpy(packed, embedded_digits, bytes);
    memcpy(packed + bytes, packed + bytes - 4, 4);
    check_broken_gzip(packed, bytes + 4, 1 << 20, "x.gz: found 4 bytes after the gzip stream, expected none");
}

int main(void) {
    check_registry();
    check_take();
    check_embedded();
    check_digits();
    check_iris();
    check_standardize();
    check_gunzip();
    long asked = 0;
    check_memory_failures("digits", &asked);
    check_memory_failures("iris:standardize", &asked);
    return check_end();
}
