/* Cells of CSV files, as they are written (RFC 4180). One that has a comma, a quote or a line's end is put
 * into quotes, and its own quotes are doubled. */
#ifndef TRAINER_BASE_CSV_H
#define TRAINER_BASE_CSV_H

#include <stdbool.h>
#include <stdio.h>

#include "text.h"

/* A cell. */
void csv_print(FILE *file, const char *cell);
/* The same of what is said in two parts, such as a column's "probability=" and the name of a class. */
void csv_print_parts(FILE *file, const char *before, const char *cell);
/* The same piece by piece: quotes go before and after them where any piece needs them. */
bool csv_needs_quotes(const char *piece);
void csv_print_piece(FILE *file, const char *piece);
/* A cell and a comma. */
void csv_add(struct text *text, const char *cell);

#endif
