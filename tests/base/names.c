/* Names that are taken: the first stays as it is, later ones get suffixes that nobody has, within their
 * bytes. */
#include "../../src/base/names.h"

#include <string.h>
#include "../check.h"

static void take(struct names *names, const char *wanted, size_t bytes, const char *expected) {
    char name[NAMES_BYTES];
    struct error error = {0};
    memcpy(name, wanted, strlen(wanted) + 1);
    CHECK(names_take(names, name, bytes, &error) == OK, "%s", error.words);
    CHECK(strcmp(name, expected) == 0, "%s became %s, expected %s", wanted, name, expected);
}

static void test_suffixes(void) {
    struct names names = {0};
    take(&names, "x", NAMES_BYTES, "x");
    take(&names, "x_2", NAMES_BYTES, "x_2");
    take(&names, "x", NAMES_BYTES, "x_1");
    take(&names, "x", NAMES_BYTES, "x_3");
    take(&names, "x_1", NAMES_BYTES, "x_1_1");
    take(&names, "X", NAMES_BYTES, "X");
    take(&names, "", NAMES_BYTES, "");
    take(&names, "", NAMES_BYTES, "_1");
    names_close(&names);
}

static void test_cut(void) {
    struct names names = {0};
    take(&names, "seven", 6, "seven");
    take(&names, "seven", 6, "sev_1");
    take(&names, "sev_1", 6, "sev_2");
    for (int i = 3; i < 10; i++) take(&names, "seven", 6, (char[]){'s', 'e', 'v', '_', (char)('0' + i), 0});
    take(&names, "seven", 6, "se_10");
    names_close(&names);
}

/* So many that the room grows, all of one name. */
static void test_many(void) {
    struct names names = {0};
    char expected[20] = "layer";
    for (int i = 0; i < 300; i++) {
        if (i > 0) snprintf(expected, sizeof expected, "layer_%d", i);
        take(&names, "layer", 20, expected);
    }
    CHECK(names.count == 300, "%d names", names.count);
    names_close(&names);
    names_close(&names);
}

int main(void) {
    test_suffixes();
    test_cut();
    test_many();
    return check_end();
}
