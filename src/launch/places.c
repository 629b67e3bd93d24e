/* Lists of hosts. See places.h. */
#include "places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"

#define DIGITS "0123456789"
#define HOST_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_" DIGITS

/* A name, an IPv4 address, or an IPv6 address; what ssh takes for an option is none. */
static bool is_host(const char *host) {
    const size_t length = strlen(host);
    const char *letters = strchr(host, ':') ? HOST_LETTERS ":%" : HOST_LETTERS;
    return length > 0 && host[0] != '-' && strspn(host, letters) == length;
}

int places_add(struct places *places, const char *host, int times, const char *where, struct error *error) {
    if (!is_host(host) || strlen(host) >= ADDRESS_HOST_BYTES)
        return error_set(error, ERROR_USAGE, "%s: \"%.60s\" is not a host", where, host);
    if (times > ADDRESSES_MOST - places->count)
        return error_set(error, ERROR_USAGE, "%s: found more than %d processes", where, ADDRESSES_MOST);
    RETURN_IF(memory_grow(&places->host, places->count, places->count + times, "the hosts", error));
    for (int i = 0; i < times; i++) snprintf(places->host[places->count++], sizeof *places->host, "%s", host);
    return OK;
}

void places_free(struct places *places) {
    memory_free(places->host);
    *places = (struct places){0};
}

/* The number at *at, which then stands behind it; -1: there is none, or it has more than nine digits. */
static int read_number(const char **at) {
    const size_t digits = strspn(*at, DIGITS);
    if (digits == 0 || digits > 9) return -1;
    const int number = (int)strtol(*at, NULL, 10);
    *at += digits;
    return number;
}

/* --- names --- */

/* What a name stands for is given to `add`. */
struct taker {
    struct places *places;
    const char *where;
    int (*add)(struct places *places, const char *name, const char *where, struct error *error);
};

static int expand(const struct taker *taker, const char *name, struct error *error);

static int wrong_name(const struct taker *taker, const char *name, struct error *error) {
    return error_set(error, ERROR_USAGE, "%s: \"%.60s\", expected names as node[1-3,08]", taker->where, name);
}

/* All names of a range, "08-10", with as many digits as its first number; *at is behind it then. */
static int expand_range(const struct taker *taker, const char *name, const char *open, const char *close,
                        const char **at, struct error *error) {
    const char *first_digit = *at;
    const int first = read_number(at), width = (int)(*at - first_digit);
    int last = first;
    if (**at == '-') {
        ++*at;
        last = read_number(at);
    }
    if (first < 0 || last < first || last - first >= ADDRESSES_MOST) return wrong_name(taker, name, error);
    for (int number = first; number <= last; number++) {
        char one[2 * ADDRESS_HOST_BYTES];
        const int bytes =
            snprintf(one, sizeof one, "%.*s%0*d%s", (int)(open - name), name, width, number, close + 1);
        if (bytes >= (int)sizeof one) return wrong_name(taker, name, error);
        RETURN_IF(expand(taker, one, error));
    }
    return OK;
}

/* A name with brackets in it is several; one that begins with a bracket is an IPv6 address. */
static int expand(const struct taker *taker, const char *name, struct error *error) {
    const char *open = strchr(name, '['), *close = open ? strchr(open, ']') : NULL;
    if (!open || open == name) return taker->add(taker->places, name, taker->where, error);
    if (!close) return wrong_name(taker, name, error);
    for (const char *at = open + 1;; at++) {
        RETURN_IF(expand_range(taker, name, open, close, &at, error));
        if (at == close) return OK;
        if (*at != ',') return wrong_name(taker, name, error);
    }
}

/* As far as the next comma that is not in brackets. */
static size_t item_length(const char *list) {
    size_t length = 0;
    for (bool inside = false; list[length] != '\0' && (inside || list[length] != ','); length++) {
        if (list[length] == '[') inside = true;
        if (list[length] == ']') inside = false;
    }
    return length;
}

static int read_list(const struct taker *taker, const char *list, struct error *error) {
    for (;;) {
        char item[2 * ADDRESS_HOST_BYTES];
        list += strspn(list, " ");
        const size_t whole = item_length(list);
        size_t length = whole;
        while (length > 0 && list[length - 1] == ' ') length--;
        if (length == 0)
            return error_set(error, ERROR_USAGE, "%s: a host is empty, expected names with commas between",
                             taker->where);
        if (length >= sizeof item) return wrong_name(taker, list, error);
        memcpy(item, list, length);
        item[length] = '\0';
        RETURN_IF(expand(taker, item, error));
        if (list[whole] == '\0') return OK;
        list += whole + 1;
    }
}

static int add_name(struct places *places, const char *name, const char *where, struct error *error) {
    return places_add(places, name, 1, where, error);
}

/* "b:2", "[::1]", "[::1]:2" */
static int add_slots(struct places *places, const char *item, const char *where, struct error *error) {
    char host[2 * ADDRESS_HOST_BYTES];
    const bool bracketed = item[0] == '[';
    const char *close = bracketed ? strchr(item, ']') : NULL;
    const char *colon = bracketed ? (close && close[1] == ':' ? close + 1 : NULL) : strchr(item, ':');
    const char *end = close ? close : colon ? colon : item + strlen(item);
    if (bracketed && (!close || (close[1] != '\0' && close[1] != ':')))
        return error_set(error, ERROR_USAGE, "%s: \"%.60s\" is not a host", where, item);
    snprintf(host, sizeof host, "%.*s", (int)(end - item - bracketed), item + bracketed);
    const int times = colon ? address_digits(colon + 1, ADDRESSES_MOST) : 1;
    if (times < 1)
        return error_set(error, ERROR_USAGE,
                         "%s: \"%.60s\": found \"%.20s\" processes, expected 1 to %d (ports: --port)", where,
                         item, colon + 1, ADDRESSES_MOST);
    return places_add(places, host, times, where, error);
}

int places_read_slots(struct places *places, const char *list, const char *where, struct error *error) {
    const struct taker taker = {.places = places, .where = where, .add = add_slots};
    return read_list(&taker, list, error);
}

int places_read_nodes(struct places *places, const char *list, const char *where, struct error *error) {
    const struct taker taker = {.places = places, .where = where, .add = add_name};
    return read_list(&taker, list, error);
}

/* --- counts --- */

int places_read_counts(int *counts, int room, int *count, const char *list, const char *where,
                       struct error *error) {
    *count = 0;
    for (const char *at = list;; at++) {
        int times = 1;
        const int tasks = read_number(&at);
        if (strncmp(at, "(x", 2) == 0) {
            at += 2;
            times = read_number(&at);
            if (*at++ != ')') times = -1;
        }
        if (tasks < 0 || times < 1 || times > room - *count)
            return error_set(error, ERROR_USAGE, "%s: \"%.60s\", expected counts as 3,1 or 2(x3)", where,
                             list);
        for (int i = 0; i < times; i++) counts[(*count)++] = tasks;
        if (*at == '\0') return OK;
        if (*at != ',')
            return error_set(error, ERROR_USAGE, "%s: \"%.60s\", expected counts as 3,1 or 2(x3)", where,
                             list);
    }
}
