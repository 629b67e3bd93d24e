/* A table of a run that goes on: its rows up to the checkpoint stay, and what follows goes on below them. */
#ifndef TRAINER_RECORD_TABLE_H
#define TRAINER_RECORD_TABLE_H

#include "../base/error.h"

/* Makes the table at `path` end with the last row whose time, in column `time_column` from 0, is at most
 * until_s. Whole rows after it belong to work that is done again: they are kept apart, in the first free of
 * path.1, path.2, ...; half a row at the end is cut off. A file with another header, of another version of
 * the program, is kept apart as a whole. *bytes: how many the table then has; 0: there is none. Errors:
 * ERROR_FILE. */
int table_rewind(const char *path, const char *header, int time_column, double until_s, long long *bytes,
                 struct error *error);

#endif
