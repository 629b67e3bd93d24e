/* What bench.csv says of each contender, over all of its runs; and runs.csv of those that failed. */
#ifndef TRAINER_REPORT_SENTENCES_H
#define TRAINER_REPORT_SENTENCES_H

#include "facts.h"

/* Gives runs[count] the sentence of the contender that has their label. A table that is not there, or is
 * none, says nothing. Errors: ERROR_DEVICE (memory). */
int sentences_read(struct facts *runs, int count, const char *path, struct error *error);
/* Gives those that failed the words of their row: that of their label and repeat. The rest as above. */
int failures_read(struct facts *runs, int count, const char *path, struct error *error);
/* As sentences_read, of the text of such a table, which is cut into its cells. */
int sentences_parse(struct facts *runs, int count, char *text, struct error *error);

#endif
