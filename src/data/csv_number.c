/* Numbers in the cells of a table. Nearly all have few digits: their digits and their power of ten are exact
 * in double, so that one division or multiplication rounds correctly. Rounding that to float gives what
 * strtof gives, except halfway between two floats, where the first rounding may have hidden a remainder;
 * these, and all others, are left to strtof, which takes five times as long. */
#include "csv_number.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char CSV_A_NUMBER[] = "a number", CSV_A_FINITE_NUMBER[] = "a finite number";

enum { DIGITS_MOST = 15 /* of a whole number that is exact in double */, CELL_BYTES = 128 };

static const double POWERS[DIGITS_MOST + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                               1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

/* Whether `value` lies halfway between two neighbouring floats, or outside the range where they are all
 * equally precise. */
static bool is_delicate(double value) {
    enum { BELOW_FLOAT = 29 /* bits that double has and float has not */ };
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t below = bits & ((UINT64_C(1) << BELOW_FLOAT) - 1);
    return below == UINT64_C(1) << (BELOW_FLOAT - 1) || !(value == 0 || (value > 1e-37 && value < 1e38));
}

/* Digits with one point among them or none, and no more of them than are exact. */
static bool read_short(const char *cell, float *value) {
    const bool negative = *cell == '-';
    const char *at = cell + (*cell == '-' || *cell == '+');
    int64_t whole = 0;
    int digits = 0, decimals = 0;
    for (; *at >= '0' && *at <= '9' && digits <= DIGITS_MOST; at++, digits++) whole = 10 * whole + *at - '0';
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9' && digits <= DIGITS_MOST; at++, digits++, decimals++)
            whole = 10 * whole + *at - '0';
    if (*at || digits == 0 || digits > DIGITS_MOST) return false;
    const double exact = (double)whole / POWERS[decimals];
    if (is_delicate(exact)) return false;
    *value = (float)(negative ? -exact : exact);
    return true;
}

static const char *read_any(const char *cell, float *value) {
    char *end;
    *value = strtof(cell, &end);
    if (end == cell || *end || strpbrk(cell, "xX")) return CSV_A_NUMBER;
    return isfinite(*value) ? NULL : CSV_A_FINITE_NUMBER;
}

const char *csv_number(const char *cell, char decimal, float *value) {
    if (decimal == '.') return read_short(cell, value) ? NULL : read_any(cell, value);
    char pointed[CELL_BYTES];
    const size_t bytes = strlen(cell) + 1;
    if (bytes > sizeof pointed || strchr(cell, '.')) return CSV_A_NUMBER;
    memcpy(pointed, cell, bytes);
    char *const comma = strchr(pointed, ',');
    if (comma) *comma = '.';
    return csv_number(pointed, '.', value);
}

static const char *skip_digits(const char *at) {
    return at + strspn(at, "0123456789");
}

enum csv_comma csv_comma(const char *cell) {
    const char *const first = cell + (*cell == '-' || *cell == '+'), *const comma = skip_digits(first);
    float value;
    if (*comma != ',' || strchr(cell, '.') || csv_number(cell, ',', &value) != NULL) return CSV_COMMA_NONE;
    const char *const end = skip_digits(comma + 1);
    const bool thousands = comma > first && comma - first <= 3 && *first != '0' && end - comma == 4 && !*end;
    return thousands ? CSV_COMMA_EITHER : CSV_COMMA_DECIMAL;
}

bool csv_missing(const char *cell) {
    static const char *const words[] = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"};
    if (isdigit((unsigned char)*cell) || *cell == '-') return false; /* most */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(cell, words[i]) == 0) return true;
    return false;
}

bool csv_date(const char *cell) {
    const char *at = cell;
    size_t digits[3];
    char between[2];
    for (int part = 0; part < 3; part++) {
        const char *const end = skip_digits(at);
        digits[part] = (size_t)(end - at);
        at = end;
        if (part < 2 && *end) between[part] = *at++;
        if (part < 2 && !*end) return false;
    }
    if (between[0] != between[1] || !strchr("-/.", between[0]) || (*at && !strchr(" T", *at))) return false;
    if (digits[1] < 1 || digits[1] > 2 || digits[0] < 1 || digits[2] < 1) return false;
    return (digits[0] == 4 && digits[2] <= 2) || (digits[0] <= 2 && digits[2] == 4) ||
           (digits[0] <= 2 && digits[2] == 2 && between[0] == '/');
}

/* Past a sign of money, a percent sign and spaces. */
static const char *skip_units(const char *at, bool *any) {
    static const char *const units[] = {"$", "\u20ac", "\u00a3", "\u00a5", "%"};
    const char *before;
    do {
        before = at;
        at += strspn(at, " ");
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (strncmp(at, units[i], strlen(units[i])) == 0) {
                at += strlen(units[i]);
                *any = true;
            }
    } while (at > before);
    return at;
}

/* Groups of three digits with the same character between, then decimals behind another one. *groups: how many
 * came after the first. */
static const char *skip_groups(const char *at, int *groups) {
    const char *end = skip_digits(at);
    const char between = *end;
    const bool may = end > at && end - at <= 3 && between != '\0' && strchr(",.' ", between);
    for (*groups = 0; may && *end == between && skip_digits(end + 1) - end == 4; (*groups)++) end += 4;
    if (end == at) return at;
    if ((*end != '.' && *end != ',') || (*groups > 0 && *end == between)) return end;
    const char *const decimals = skip_digits(end + 1);
    return decimals > end + 1 ? decimals : end;
}

bool csv_dressed(const char *cell) {
    bool units = false;
    int groups;
    const char *at = skip_units(cell, &units);
    at += *at == '-' || *at == '+';
    at = skip_units(at, &units);
    const char *const number = at;
    at = skip_groups(at, &groups);
    if (at == number) return false;
    at = skip_units(at, &units);
    return *at == '\0' && (units || groups > 0);
}
