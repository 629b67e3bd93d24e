/* A comparison's folder that has an earlier comparison. */
#ifndef TRAINER_COMPARE_FOLDER_H
#define TRAINER_COMPARE_FOLDER_H

#include <stdbool.h>
#include "../base/error.h"

enum { FOLDER_BYTES = 208 };

/* Removes what the comparison that was in `out` before wrote, by the list that it left there: the files of
 * its runs, folders that are empty then, bench.csv, runs.csv and the page about them. Nothing else, and not
 * the run `kept`, which is the new one's first. *earlier: there was one. Errors: ERROR_FILE. */
int compare_remove_earlier(const char *out, const char *kept, bool *earlier, struct error *error);

#endif
