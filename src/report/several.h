/* The page of several runs. Runs of one contender are a group: one colour, one row. */
#ifndef TRAINER_REPORT_SEVERAL_H
#define TRAINER_REPORT_SEVERAL_H

#include "../base/statistic.h"
#include "page.h"

/* The runs of a group: from `first` to before the next group's. */
int group_end(const struct report *report, int first);

/* What its runs have come to. */
struct group {
    struct statistic score, seconds, speed, waiting, staleness, target_s;
    enum metric metric; /* of the score */
    int runs, tested;   /* tested: those that a test of an epoch is known of */
};
struct group group_of(const struct report *report, int first, double target);

/* That a run is judged by. */
enum metric metric_of_run(const struct facts *facts);
/* What the runs are judged by, each metric once, in their order; accuracy where nothing is known of any.
 * Returns how many. */
int metrics_of_report(const struct report *report, enum metric metrics[METRICS]);
/* The accuracy to be reached: what was asked for; else the highest that all runs reach that were tested,
 * rounded down a little. NAN: there is no race, as not all runs have the same data set, or are judged by a
 * share. */
double target_of(const struct report *report);
/* Whether all runs that are known have the same data set. */
bool same_dataset(const struct report *report);

/* "10.1 Â± 0.5 ms", "204,112 Â± 53,000", "never", "-" or "1.2 s (1 of 2)", into out[FIGURE_BYTES]. */
enum { FIGURE_BYTES = 128 };
const char *seconds_text(const struct statistic *seconds, char out[FIGURE_BYTES]);
const char *speed_text(const struct statistic *speed, char out[FIGURE_BYTES]);
const char *target_text(const struct group *group, char out[FIGURE_BYTES]);

/* several_table.c; differences.c; sweep.c */
bool has_sweep(const struct report *report);
int write_sweep(struct html *html, const struct report *report, struct error *error);
int write_several_table(struct html *html, const struct report *report, struct error *error);
int write_differences(struct html *html, const struct report *report, struct error *error);

#endif
