/* Numbers of cells: the bits that strtof gives; decimal commas, missing values and dates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/base/rng.h"
#include "../../src/data/csv_number.h"
#include "../check.h"

static void check_bits(const char *cell) {
    float found = -1, expected = strtof(cell, NULL);
    const char *words = csv_number(cell, '.', &found);
    CHECK(words == (isfinite(expected) ? NULL : CSV_A_FINITE_NUMBER), "%s: %s", cell, words ? words : "read");
    CHECK(memcmp(&found, &expected, sizeof found) == 0, "%s: %.9g, expected %.9g", cell, (double)found,
          (double)expected);
}

/* Of all lengths, with and without a point; halfway between two floats, and next to it. */
static void check_numbers(void) {
    const char *const cells[] = {"0",
                                 "-0",
                                 "+1",
                                 ".5",
                                 "5.",
                                 "-0.0",
                                 "1e-45",
                                 "1e-46",
                                 "3.4028235e38",
                                 "1e39",
                                 "16777217",
                                 "16777219",
                                 "1.00000005960464478",
                                 "1.000000059604645",
                                 "33554434.0000001",
                                 "123456789012345",
                                 "1234567890123456",
                                 "99999999999999999999",
                                 "0.000000000000001",
                                 "0.0000000000000001",
                                 "inf",
                                 "1E5",
                                 "-1.5e+3"};
    struct rng rng;
    char cell[64];
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) check_bits(cells[i]);
    rng_start(&rng, 3, 1);
    for (int i = 0; i < 200000; i++) {
        const unsigned digits = 1 + rng_below(&rng, 17), point = rng_below(&rng, digits + 1);
        size_t used = 0;
        if (rng_below(&rng, 2)) cell[used++] = '-';
        for (unsigned d = 0; d < digits; d++) {
            if (d == point) cell[used++] = '.';
            cell[used++] = (char)('0' + rng_below(&rng, 10));
        }
        cell[used] = '\0';
        check_bits(cell);
    }
    for (int i = 0; i < 20000; i++) { /* the middle of two floats, all its digits */
        const float low = 1 + (float)rng_below(&rng, 1 << 23) / (1 << 23), high = nextafterf(low, INFINITY);
        snprintf(cell, sizeof cell, "%.20g", ((double)low + (double)high) / 2);
        check_bits(cell);
        snprintf(cell, sizeof cell, "%.15g", ((double)low + (double)high) / 2);
        check_bits(cell);
    }
    for (int i = 1; i < 4096; i += 2) { /* a middle of 15 digits, which double holds */
        snprintf(cell, sizeof cell, "%d", 33554432 + 2 * i);
        check_bits(cell);
    }
}

static void check_words(void) {
    const char *const none[] = {"",    "x",     "1x", "1 2", "0x10", "1,5", "--1",
                                "+-1", "1.2.3", ".",  "-",   "1e",   "٣"};
    float value;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK(csv_number(none[i], '.', &value) == CSV_A_NUMBER, "%s is %g", none[i], (double)value);
    CHECK(!csv_number("-1,5", ',', &value) && value == -1.5f, "-1,5 is %g", (double)value);
    CHECK(!csv_number("15", ',', &value) && value == 15, "15 is %g", (double)value);
    CHECK(csv_number("1.5", ',', &value) == CSV_A_NUMBER, "1.5 with a decimal comma");
    CHECK(csv_number("1,5,5", ',', &value) == CSV_A_NUMBER, "1,5,5");
}

static void check_kinds(void) {
    const struct {
        const char *cell;
        enum csv_comma comma;
    } commas[] = {
        {"1,5", CSV_COMMA_DECIMAL},    {"-0,125", CSV_COMMA_DECIMAL},   {"1,234", CSV_COMMA_EITHER},
        {"-12,345", CSV_COMMA_EITHER}, {"1234,567", CSV_COMMA_DECIMAL}, {",5", CSV_COMMA_DECIMAL},
        {"0,234", CSV_COMMA_DECIMAL},  {"1,2345", CSV_COMMA_DECIMAL},   {"1,23e4", CSV_COMMA_DECIMAL},
        {"1.5", CSV_COMMA_NONE},       {"15", CSV_COMMA_NONE},          {"1,234.5", CSV_COMMA_NONE},
        {"a,b", CSV_COMMA_NONE},       {"1,2,3", CSV_COMMA_NONE},       {",", CSV_COMMA_NONE}};
    const char *const missing[] = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"},
                      *const there[] = {"Na", "0", "-", "None", "none", "??", "nano"},
                      *const dates[] = {"2024-01-02",      "2024/1/2", "02.01.2024",
                                        "1/2/2024",        "1/2/24",   "2024-01-02T10:00:00Z",
                                        "2024-01-02 10:00"},
                      *const others[] = {"2024-01",      "1-2-3",       "1.2.3",      "192.168.0.1",
                                         "2024-01/02",   "2024-01-02x", "a-b-c",      "",
                                         "12-34-5678-9", "1/2",         "2024-001-02"};
    for (size_t i = 0; i < sizeof commas / sizeof *commas; i++)
        CHECK(csv_comma(commas[i].cell) == commas[i].comma, "%s: %d", commas[i].cell,
              csv_comma(commas[i].cell));
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        CHECK(csv_missing(missing[i]), "%s", missing[i]);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) CHECK(!csv_missing(there[i]), "%s", there[i]);
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) CHECK(csv_date(dates[i]), "%s", dates[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) CHECK(!csv_date(others[i]), "%s", others[i]);
}

static void check_dressed(void) {
    static const char *const dressed[] = {"1,234.50", "1.234,50",   "1'234", "12 345 678",
                                          "$5.50",    "-$5",        "5,5 %", "\u20ac 7",
                                          "1,234 $",  "$1,234,567", "12%",   "1.234.567"};
    static const char *const plain[] = {"",      "a",    "12:30",  "$",         "1,23.5",  "12,34,567",
                                        "1.2.3", "5 kg", "1,2345", "x5%",       "12-345",  "1,234,56x",
                                        "Jan 5", "1234", "12.5",   "1234,567.", "1.234.56"};
    for (size_t i = 0; i < sizeof dressed / sizeof *dressed; i++)
        CHECK(csv_dressed(dressed[i]), "%s is a number with separators or units", dressed[i]);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        CHECK(!csv_dressed(plain[i]), "%s is none", plain[i]);
}

int main(void) {
    check_numbers();
    check_words();
    check_kinds();
    check_dressed();
    return check_end();
}
