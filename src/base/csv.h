/* Cells of CSV files, as they are written (RFC 4180). One that has a comma, a quote or a line's end is put
 * into quotes, and its own quotes are doubled. */
#ifndef TRAINER_BASE_CSV_H
#define TRAINER_BASE_CSV_H

#include <stdio.h>

#include "text.h"

/* A cell. */
void csv_print(FILE *file, const char *cell);
/* The same of what is said in two parts, such as a column's "probability=" and the name of a class. */
void csv_print_parts(FILE *file, const char *before, const char *cell);
/* A cell and a comma. */
void csv_add(struct text *text, const char *cell);

#endif
