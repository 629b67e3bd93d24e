/* The different values of a column: a hash table with open addressing, at most half full. */
#include "categories.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"

static uint64_t hash_of(const char *text) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = text; *c; c++) hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* The slot of the value, or the free one where it belongs. There is a free one. */
static int *slot_of(const struct categories *categories, const char *text) {
    const size_t mask = 2 * (size_t)categories->room - 1;
    size_t slot = hash_of(text) & mask;
    while (categories->slots[slot] && strcmp(categories->at[categories->slots[slot] - 1].text, text) != 0)
        slot = (slot + 1) & mask;
    return &categories->slots[slot];
}

int categories_find(const struct categories *categories, const char *text) {
    return categories->room ? *slot_of(categories, text) - 1 : -1;
}

static int make_room(struct categories *categories, struct error *error) {
    const int room = categories->room ? 2 * categories->room : 16; /* a power of two */
    int *slots;
    if (categories->count < categories->room) return OK;
    RETURN_IF(memory_grow(&categories->at, categories->room, room, "the values of a column", error));
    RETURN_IF(memory_array(&slots, 2 * (size_t)room, "the values of a column", error));
    memory_free(categories->slots);
    categories->slots = slots;
    categories->room = room;
    for (int i = 0; i < categories->count; i++) *slot_of(categories, categories->at[i].text) = i + 1;
    return OK;
}

int categories_add(struct categories *categories, const char *text, int line, int *number,
                   struct error *error) {
    *number = categories_find(categories, text);
    if (*number >= 0) return OK;
    RETURN_IF(make_room(categories, error));
    RETURN_IF(memory_text(&categories->at[categories->count].text, text, error));
    categories->at[categories->count].line = line;
    *number = categories->count++;
    *slot_of(categories, text) = *number + 1;
    return OK;
}

static bool is_integer(const char *text) {
    enum { MOST_DIGITS = 18 }; /* fits a long long */
    if (*text == '-' || *text == '+') text++;
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= MOST_DIGITS && text[digits] == 0;
}

/* A value and its number before. */
struct numbered {
    struct category value;
    int number;
};

static int compare_texts(const void *a, const void *b) {
    return strcmp(((const struct numbered *)a)->value.text, ((const struct numbered *)b)->value.text);
}

/* What is missing comes first. */
static long long value_of(const void *numbered) {
    const char *text = ((const struct numbered *)numbered)->value.text;
    return *text ? strtoll(text, NULL, 10) : LLONG_MIN;
}

/* By value, then by text, so that "1" and "01" stay two. */
static int compare_integers(const void *a, const void *b) {
    const long long x = value_of(a), y = value_of(b);
    return x != y ? (x > y) - (x < y) : compare_texts(a, b);
}

int categories_sort(struct categories *categories, const bool *kept, int *place, struct error *error) {
    struct numbered *sorted;
    bool integers = true;
    int count = 0;
    RETURN_IF(memory_array(&sorted, categories->count, "the values of a column", error));
    for (int i = 0; i < categories->count; i++) {
        place[i] = -1;
        if (kept && !kept[i]) {
            memory_free(categories->at[i].text);
            continue;
        }
        integers = integers && (!*categories->at[i].text || is_integer(categories->at[i].text));
        sorted[count++] = (struct numbered){categories->at[i], i};
    }
    qsort(sorted, (size_t)count, sizeof *sorted, integers ? compare_integers : compare_texts);
    if (categories->slots) memset(categories->slots, 0, 2 * (size_t)categories->room * sizeof(int));
    for (int i = 0; i < count; i++) {
        categories->at[i] = sorted[i].value;
        place[sorted[i].number] = i;
    }
    for (int i = count; i < categories->count; i++) categories->at[i] = (struct category){0};
    categories->count = count;
    for (int i = 0; i < count; i++) *slot_of(categories, categories->at[i].text) = i + 1;
    memory_free(sorted);
    return OK;
}

void categories_close(struct categories *categories) {
    for (int i = 0; i < categories->count; i++) memory_free(categories->at[i].text);
    memory_free(categories->at);
    memory_free(categories->slots);
    *categories = (struct categories){0};
}
