/* Bytes in base64, of every length from none to six: the examples of RFC 4648. */
#include <string.h>
#include "../../src/report/html.h"
#include "../check.h"

int main(void) {
    static const char *const wanted[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    for (size_t length = 0; length < sizeof wanted / sizeof *wanted; length++) {
        char found[32] = "";
        struct html html = {.file = fmemopen(found, sizeof found, "w")};
        struct base64 out = {.html = &html};
        for (size_t i = 0; i < length; i++) base64_byte(&out, "foobar"[i]);
        base64_end(&out);
        fclose(html.file);
        CHECK(strcmp(found, wanted[length]) == 0, "%zu bytes: %s, expected %s", length, found,
              wanted[length]);
    }
    return check_end();
}
