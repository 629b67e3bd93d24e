/* Which column of a table is what, as settings say it. */
#ifndef TRAINER_DATA_CSV_ROLES_H
#define TRAINER_DATA_CSV_ROLES_H

#include "columns.h"
#include "csv_guess.h"

/* Gives the columns, which have their names, their roles: label, ignored, category; the others are open.
 * `name`: the file's, for the words. Errors: ERROR_USAGE: a column that is not there, or no feature left. */
int csv_roles(struct columns *columns, const struct csv_format *format, const char *name,
              struct error *error);

#endif
