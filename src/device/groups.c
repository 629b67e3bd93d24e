/* See groups.h. */
#include "groups.h"

#include <string.h>

#include "../base/text.h"

static int not_understood(const char *text, struct error *error) {
    return error_set(error, ERROR_USAGE,
                     "devices: '%.200s', expected groups of equal size and nothing else, as in "
                     "(cpu:0+cpu:1),(cpu:2+cpu:3)",
                     text);
}

/* The devices of a group that is written as at[length], appended; how many they are, or 0. */
static int add_group(struct text *flat, const char *at, size_t length) {
    const char *const end = at + length;
    int count = 0;
    for (; at < end; count++) {
        const char *plus = memchr(at, '+', (size_t)(end - at));
        const size_t item = (size_t)((plus ? plus : end) - at);
        if (item == 0 || memchr(at, '*', item) || (plus && plus + 1 == end)) return 0;
        text_item(flat, ",", "%.*s", (int)item, at);
        at += item + (plus != NULL);
    }
    return count;
}

int groups_read(const char *text, char *out, size_t bytes, int *size, struct error *error) {
    struct text flat = text_into(out, bytes);
    *size = 0;
    if (!strpbrk(text, "(+)")) {
        text_add(&flat, "%s", text);
        return OK;
    }
    for (const char *at = text;;) {
        const char *close = *at == '(' ? strchr(at, ')') : NULL;
        const int count = close ? add_group(&flat, at + 1, (size_t)(close - at - 1)) : 0;
        if (count == 0 || (*size > 0 && count != *size) || (close[1] != ',' && close[1] != '\0'))
            return not_understood(text, error);
        *size = count;
        if (close[1] == '\0') return OK;
        at = close + 2;
    }
}

void groups_spread(struct device *devices, int count, int size) {
    for (int g = 1; g < count; g++) { /* the first g are in front already, the others behind them in order */
        const struct device first = devices[g * size];
        memmove(&devices[g + 1], &devices[g], (size_t)(g * size - g) * sizeof *devices);
        devices[g] = first;
    }
}
