/* Cells of CSV files: what needs quotes has them, printed and put together alike. */
#include <stdlib.h>
#include <string.h>
#include "../../src/base/csv.h"
#include "../../src/base/memory.h"
#include "../check.h"

static void check_cell(const char *cell, const char *expected) {
    char *printed = NULL;
    size_t bytes = 0;
    struct error error = {0};
    struct text text = text_growing(&error);
    FILE *file = open_memstream(&printed, &bytes);
    if (!file) return;
    csv_print(file, cell);
    fclose(file);
    CHECK(strcmp(printed, expected) == 0, "printed %s, expected %s", printed, expected);
    csv_add(&text, cell);
    CHECK(text_end(&text) == OK && strncmp(text.bytes, expected, bytes) == 0 &&
              strcmp(text.bytes + bytes, ",") == 0,
          "put together: %s, expected %s and a comma", text.bytes, expected);
    memory_free(text.bytes);
    free(printed);
}

static void check_parts(void) {
    char printed[100] = "";
    FILE *file = fmemopen(printed, sizeof printed, "w");
    if (!file) return;
    csv_print_parts(file, "a=", "b");
    csv_print_parts(file, " \"a\"=", "b");
    csv_print_parts(file, " a=", "b,\"");
    fclose(file);
    CHECK(strcmp(printed, "a=b\" \"\"a\"\"=b\"\" a=b,\"\"\"") == 0, "%s", printed);
}

int main(void) {
    check_cell("", "");
    check_cell("Graz", "Graz");
    check_cell("Sankt X; oben", "Sankt X; oben");
    check_cell("1,5", "\"1,5\"");
    check_cell("two\nlines", "\"two\nlines\"");
    check_cell("a\rb", "\"a\rb\"");
    check_cell("\"", "\"\"\"\"");
    check_cell("say \"no\", or", "\"say \"\"no\"\", or\"");
    check_parts();
    return check_end();
}
