/* Columns of a table as a checkpoint keeps them: the text and back, examples made of cells, and texts that
 * are none. */
#include <math.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/data/columns.h"
#include "../check.h"

static const char whole[] =
    "header\t,\tnumber\tage\t2.5\tcategory\tcity\t1\t3\t\tGraz\tWien\tlabel\tkind\tignored\tid\t"
    "number\tsize\t";

static void check_back(void) {
    struct columns columns;
    struct error error = {0};
    struct text text = text_growing(&error), names = text_growing(&error);
    CHECK(columns_read(&columns, whole, &error), "%s", error.words);
    columns_write(&columns, &text);
    CHECK(text.bytes && strcmp(text.bytes, whole) == 0, "%s", text.bytes);
    CHECK(columns.named && columns.decimal == ',' && columns.count == 5, "%d columns", columns.count);
    CHECK(columns_cells(&columns) == 3 && columns_features(&columns) == 5, "%d features",
          columns_features(&columns));
    CHECK(columns_find(&columns, "city", 4) == 1 && columns_find(&columns, "city", 3) == -1, "city");
    CHECK(columns_find(&columns, "5", 1) == 4 && columns_find(&columns, "6", 1) == -1, "5");
    columns_name_features(&columns, &names);
    static const char expected[] = "age\0city=\0city=Graz\0city=Wien\0size";
    CHECK(names.used == sizeof expected && memcmp(names.bytes, expected, sizeof expected) == 0, "%s",
          names.bytes);
    float cells[3] = {NAN, NAN, 7}, features[5];
    columns_fill(&columns, cells);
    CHECK(columns_expand(&columns, cells, features) == 0, "unseen");
    CHECK(features[0] == 2.5f && features[1] == 1 && features[2] == 0 && features[4] == 7, "filled in");
    cells[1] = -1;
    CHECK(columns_expand(&columns, cells, features) == 1, "not unseen");
    CHECK(features[1] == 0 && features[2] == 0 && features[3] == 0, "a value of which there is no feature");
    cells[1] = 2;
    columns_expand(&columns, cells, features);
    CHECK(features[2] == 0 && features[3] == 1, "Wien");
    memory_free(text.bytes);
    memory_free(names.bytes);
    columns_close(&columns);
}

/* Embedded categories: one code each behind the numbers, those of a column after those of the one before. */
static void check_codes(void) {
    static const char coded[] = "no header\t.\tembedding\t4\tcategory\t\t0\t2\ta\tb\tnumber\t\t\tcategory\t"
                                "size\t1\t3\t\tL\tS\tlabel\t";
    struct columns columns;
    struct error error = {0};
    struct text text = text_growing(&error), names = text_growing(&error);
    CHECK(columns_read(&columns, coded, &error), "%s", error.words);
    columns_write(&columns, &text);
    CHECK(text.bytes && strcmp(text.bytes, coded) == 0, "%s", text.bytes);
    const struct codes codes = columns_codes(&columns);
    CHECK(codes.numbers == 1 && codes.columns == 2 && codes.vocabulary == 6 && codes.units == 4,
          "%d, %d, %d, %d", codes.numbers, codes.columns, codes.vocabulary, codes.units);
    CHECK(columns_features(&columns) == 3 && columns_cells(&columns) == 3, "%d features",
          columns_features(&columns));
    columns_name_features(&columns, &names);
    static const char expected[] = "2\0001\0size";
    CHECK(names.used == sizeof expected && memcmp(names.bytes, expected, sizeof expected) == 0, "%s",
          names.bytes);
    float cells[3] = {1, 7.5f, NAN}, features[3];
    columns_fill(&columns, cells);
    CHECK(columns_expand(&columns, cells, features) == 0, "unseen");
    CHECK(features[0] == 7.5f && features[1] == 2 && features[2] == 3, "%g, %g, %g", (double)features[0],
          (double)features[1], (double)features[2]);
    cells[0] = -1, cells[2] = 2;
    CHECK(columns_expand(&columns, cells, features) == 1, "not unseen");
    CHECK(features[1] == 0 && features[2] == 5, "%g, %g", (double)features[1], (double)features[2]);
    memory_free(text.bytes);
    memory_free(names.bytes);
    columns_close(&columns);
}

static void check_none(const char *text) {
    struct columns columns;
    struct error error = {0};
    CHECK(!columns_read(&columns, text, &error) && error.code == OK, "\"%s\" was read", text);
    columns_close(&columns);
}

static void check_damaged(void) {
    const char *const texts[] = {"",
                                 "header",
                                 "header\t.",
                                 "header\t;\tnumber\ta\t",
                                 "head\t.\tnumber\ta\t",
                                 "header\t.\tnumber\ta",
                                 "header\t.\tnumber\ta\tx",
                                 "header\t.\tnumber\ta\tinf",
                                 "header\t.\tlabel\ta",
                                 "header\t.\topen\ta",
                                 "header\t.\tnumber\ta\t\tlabel",
                                 "header\t.\tembedding",
                                 "header\t.\tembedding\t4",
                                 "header\t.\tembedding\t0\tnumber\ta\t",
                                 "header\t.\tembedding\t1001\tnumber\ta\t",
                                 "header\t.\tembedding\tx\tnumber\ta\t",
                                 "header\t.\tcategory\ta\t0\t0",
                                 "header\t.\tcategory\ta\t0\t2\tx",
                                 "header\t.\tcategory\ta\t0\t2\tx\tx",
                                 "header\t.\tcategory\ta\t2\t1\tx",
                                 "header\t.\tcategory\ta\t0\t-1\tx",
                                 "header\t.\tcategory\ta\t0\t99999999999\tx",
                                 "header\t.\tnumber\ta\t\tlabel\tb\tlabel\tc",
                                 "header\t.\tnumber\ta\t\t"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_none(texts[i]);
    char part[sizeof whole];
    for (size_t bytes = 0; bytes + 1 < sizeof whole; bytes++) { /* cut anywhere: refused, or fewer columns */
        struct columns columns;
        struct error error = {0};
        memcpy(part, whole, bytes);
        part[bytes] = '\0';
        CHECK(!columns_read(&columns, part, &error) || columns.count <= 5, "%s", part);
        columns_close(&columns);
    }
}

int main(void) {
    check_back();
    check_codes();
    check_damaged();
    return check_end();
}
