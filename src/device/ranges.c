/* See ranges.h. */
#include "ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_MOST = 15, DIGITS_MOST = 4 };

/* The label at at[length]; -1: it is none. */
static int label_of(const char *at, size_t length) {
    char digits[DIGITS_MOST + 1] = "";
    if (length == 0 || length > DIGITS_MOST || strspn(at, "0123456789") < length) return -1;
    memcpy(digits, at, length);
    const long label = strtol(digits, NULL, 10);
    return label <= RANGE_LABEL_MOST ? (int)label : -1;
}

bool range_read(const char *item, size_t length, struct device_range *range) {
    const char *colon = memchr(item, ':', length);
    if (!colon || colon == item || colon - item > KIND_MOST) return false;
    const char *labels = colon + 1, *end = item + length;
    const char *dash = memchr(labels, '-', (size_t)(end - labels));
    *range = (struct device_range){.kind = item, .kind_length = (size_t)(colon - item)};
    range->first = label_of(labels, (size_t)((dash ? dash : end) - labels));
    range->last = dash ? label_of(dash + 1, (size_t)(end - dash - 1)) : range->first;
    return range->first >= 0 && range->last >= range->first;
}

bool range_has(const struct device_range *range, const char *name, size_t length) {
    struct device_range one;
    return range_read(name, length, &one) && one.kind_length == range->kind_length &&
           memcmp(one.kind, range->kind, one.kind_length) == 0 && one.first >= range->first &&
           one.last <= range->last;
}

/* How many single devices of one kind, each with the next label, stand at the front of `list`; *end: behind
 * the last of them. */
static int count_row(const char *list, struct device_range *row, const char **end) {
    int count = 0;
    for (const char *at = list;;) {
        struct device_range one;
        const size_t length = strcspn(at, ",");
        if (!range_read(at, length, &one) || one.first != one.last) return count;
        if (count == 0) *row = one;
        if (one.first != row->first + count || one.kind_length != row->kind_length ||
            memcmp(one.kind, row->kind, row->kind_length) != 0)
            return count;
        row->last = one.first;
        *end = at + length;
        count++;
        if (**end == '\0') return count;
        at = *end + 1;
    }
}

void ranges_fold(char *list) {
    char *out = list;
    for (const char *at = list; *at;) {
        struct device_range row = {0};
        const char *end = at + strcspn(at, ",");
        const int count = count_row(at, &row, &end);
        if (count > RANGE_NAMED) {
            char labels[16];
            memmove(out, at, row.kind_length);
            out += row.kind_length;
            const int length = snprintf(labels, sizeof labels, ":%d-%d", row.first, row.last);
            memcpy(out, labels, (size_t)length); /* shorter than the names that it stands for */
            out += length;
        } else {
            memmove(out, at, (size_t)(end - at));
            out += end - at;
        }
        at = end;
        if (*at == ',') *out++ = *at++;
    }
    *out = '\0';
}
