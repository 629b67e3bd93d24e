/* What a network says of examples, written to standard output: a line of words each, or rows of a CSV file.
 */
#ifndef TRAINER_INFER_PREDICTIONS_H
#define TRAINER_INFER_PREDICTIONS_H

#include <stdbool.h>

#include "restore.h"

enum predictions_format { PREDICTIONS_TEXT, PREDICTIONS_CSV };

struct predictions {
    const struct restored *restored; /* borrowed */
    enum predictions_format format;
    int top;       /* as text: so many classes, the most probable first */
    bool named;    /* as text: a line begins with the name of its file */
    bool is_begun; /* the names of the columns are written */
};

/* The names of a CSV file's columns, once; as text, nothing. `carried`: those that come before the
 * prediction, as they are to be written, each with its comma. */
void predictions_begin(struct predictions *predictions, const char *carried);
/* One example. Text: `name` of its file. CSV: `carried`, as above. Returns the class. */
int predictions_add(const struct predictions *predictions, const char *name, const char *carried,
                    const float *probabilities);

#endif
