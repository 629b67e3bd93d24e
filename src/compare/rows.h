/* How the runs of a strategy make its row, and how rows are compared. */
#ifndef TRAINER_TRAIN_COMPARE_ROWS_H
#define TRAINER_TRAIN_COMPARE_ROWS_H

#include "bench.h"
#include "../record/sentence.h"
#include "../run/run.h"

void row_open(struct bench_row *row, int wanted);
/* sums: of all runs of the row, whose texts point in there. */
void row_add_run(struct bench_row *row, struct wait_sums *sums, const struct run_result *result);
void row_add_failure(struct bench_row *row, const struct error *failure);

/* Sets all rows beside the baselines among them: the first is one device, the second, if it is one, that with
 * all cores. */
void rows_set_beside(struct bench_row *rows, int count);

#endif
