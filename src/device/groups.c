/* See groups.h. */
#include "groups.h"

#include <stdio.h>
#include <string.h>

#include "../base/text.h"
#include "ranges.h"

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
    while (at < end) {
        struct device_range range;
        const char *plus = memchr(at, '+', (size_t)(end - at));
        const size_t item = (size_t)((plus ? plus : end) - at);
        if (item == 0 || memchr(at, '*', item) || (plus && plus + 1 == end)) return 0;
        count += range_read(at, item, &range) ? range.last - range.first + 1 : 1;
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

void groups_join(struct text *names, const struct device *devices, int count, int size, int group) {
    for (int d = 0; d < size; d++)
        text_add(names, "%s%s", d > 0 ? "+" : "", groups_device(devices, count, size, group, d)->name);
}

void groups_name(const struct device *devices, int count, int size, int group, char out[GROUP_NAME_BYTES]) {
    struct text text = text_into(out, GROUP_NAME_BYTES);
    groups_join(&text, devices, count, size, group);
    if (text.cut)
        snprintf(out, GROUP_NAME_BYTES, "%s+...+%s", groups_device(devices, count, size, group, 0)->name,
                 groups_device(devices, count, size, group, size - 1)->name);
}

bool groups_name_has(const char *name, const char *device) {
    struct device_range wanted;
    if (!range_read(device, strlen(device), &wanted)) return false;
    for (size_t length; *name; name += length + (name[length] == '+')) {
        length = strcspn(name, "+");
        if (range_has(&wanted, name, length)) return true;
    }
    return false;
}

void groups_list(struct text *list, const char *name) {
    const bool several = strchr(name, '+') != NULL;
    text_item(list, ",", "%s%s%s", several ? "(" : "", name, several ? ")" : "");
}

void groups_spread(struct device *devices, int count, int size) {
    for (int g = 1; g < count; g++) { /* the first g are in front already, the others behind them in order */
        const struct device first = devices[g * size];
        memmove(&devices[g + 1], &devices[g], (size_t)(g * size - g) * sizeof *devices);
        devices[g] = first;
    }
}
