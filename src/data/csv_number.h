/* Numbers in the cells of a table. */
#ifndef TRAINER_DATA_CSV_NUMBER_H
#define TRAINER_DATA_CSV_NUMBER_H

#include <stdbool.h>

/* Reads a number as strtof does, but with `decimal` ('.' or ',') before the decimals, and not in hexadecimal,
 * which is not for data files. Returns NULL, or what was expected instead: CSV_A_NUMBER,
 * CSV_A_FINITE_NUMBER. */
const char *csv_number(const char *cell, char decimal, float *value);
extern const char CSV_A_NUMBER[], CSV_A_FINITE_NUMBER[];

/* How a number with one comma and no point can be read: "1,5" has a decimal comma, and "1,234" may be either.
 */
enum csv_comma { CSV_COMMA_NONE, CSV_COMMA_DECIMAL, CSV_COMMA_EITHER };
enum csv_comma csv_comma(const char *cell);

/* Whether the cell says that there is no value: nothing, NA, N/A, NaN, nan, null, NULL, ?. */
bool csv_missing(const char *cell);

/* Whether it begins as a date does: 2024-01-02, 2024/01/02, 02.01.2024, 1/2/2024, with a time or without. */
bool csv_date(const char *cell);

/* Whether it is a number as people write it and programs do not: 1,234.50, 1.234,50, 1'234, $5.50, 12 %. */
bool csv_dressed(const char *cell);

#endif
