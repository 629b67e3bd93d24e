/* The line of an epoch:
 *
 *   Epoch  3/20  loss 0.2113  test 95.41 %  412,000 examples/s  2.1 s  (ETA 34 s)
 *
 * and, with a validation part, `val 95.12 %` before the test. */
#ifndef TRAINER_RECORD_EPOCH_LINE_H
#define TRAINER_RECORD_EPOCH_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include "../base/text.h"
#include "../data/metric.h"

/* What is not known is NAN, and left out. */
struct epoch_line {
    int epoch, epochs;       /* that is over, from 1; of so many */
    double loss;             /* mean over the epoch's batches of what is minimised */
    double validation_score; /* on the validation part */
    double test_score;       /* on the test set */
    double examples_per_s;   /* of this epoch, as `seconds`, which leaves out tests and pauses */
    double seconds;
    double left_s;      /* until the last epoch is over, as long as those so far, tests included */
    enum metric metric; /* that the scores are of */
};

/* Adds "41 ms", "2.1 s", "12 min". Small numbers have a decimal; `decimals`: so have large ones. */
void epoch_line_time(struct text *text, double seconds, int decimals);

/* Without the line's end; returns out[bytes]. In so many columns (0: in as many as it takes) a line that is
 * too long goes without the time that is left, then without the speed. */
const char *epoch_line_text(const struct epoch_line *line, int columns, char *out, size_t bytes);

/* Whether an epoch gets a line: the first and the last do, each one that completes another twentieth of all
 * epochs, and one that ends a second or more after the line before. */
bool epoch_line_due(int epoch, int epochs, double since_s);

#endif
