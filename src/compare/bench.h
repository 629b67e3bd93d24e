/* The results of a comparison: tables on the terminal, bench.csv, runs.csv, and one sentence per strategy,
 * whose figures all come from its row. */
#ifndef TRAINER_OUTPUT_BENCH_H
#define TRAINER_OUTPUT_BENCH_H

#include <stdbool.h>
#include <stdio.h>
#include "../base/file.h"
#include "../base/page.h"
#include "../base/statistic.h"
#include "../record/summary.h"

enum { BENCH_NAME_BYTES = 512 };

/* One strategy, or one of the baselines: its finished runs together. Speed-ups and distances that have
 * nothing to be compared with are NAN. */
struct bench_row {
    char name[BENCH_NAME_BYTES]; /* as typed, or "one device"; also names the row's folder */
    bool baseline;
    const char *devices;                            /* borrowed */
    int workers, threads;                           /* threads of each worker */
    int wanted, finished, failed;                   /* runs */
    struct statistic examples_per_s, train_seconds; /* over the finished runs, as all below */
    struct statistic target_s;                      /* of those that reached it */
    enum metric metric;                             /* that the scores are of */
    struct statistic test_score, test_cost, final_cost;
    struct statistic staleness_mean, staleness_p99;
    long staleness_max; /* of all runs */
    struct statistic compute_share, input_share, pull_share, push_share, wait_share;
    struct statistic updates, lost_updates, dropped, bytes_moved;
    int lost_workers; /* in all runs together */
    /* Against one device with as many threads as each worker has, and against one with all cores: the ratio
     * of mean speeds, and its standard deviation by the rule for a ratio of independent means. */
    double speedup_one, speedup_one_sd, speedup_all, speedup_all_sd;
    double score_apart;   /* of a share: percentage points above (+) the one device */
    double updates_ratio; /* updates over those of the one device */
    /* Where and for whom most of the waiting was, and its share of all waiting; the texts are borrowed. */
    const char *waited_at;
    double waited_at_share;
    const char *waited_for;
    double waited_for_share;
    bool may_share; /* the workers have even shares, and --share=auto could make them others */
    int failure;    /* enum error_code of the first run that failed */
    char failure_words[500];
};

/* What all rows share. */
struct bench {
    const char *model, *dataset, *devices; /* devices: "cpu:0 x1, cpu:1 x1" */
    const char *faults;                    /* "--slow=cpu:1=3x", or empty */
    const char *simulated;                 /* "a step takes 20 ms of virtual time", or empty */
    const char *optimizer, *schedule;
    const char *batch_of; /* "per worker" or "in all" */
    int epochs, batch, repeats;
    int threads, cores; /* of the two baselines; cores: 0: there is no second one */
    long seed;
    double target_accuracy; /* NAN: not asked */
    const struct bench_row *rows;
    int count;
};

/* Two tables, one line per row, each explained under it; then the sentences. A table that is too wide for the
 * page is cut into several. */
void bench_print(const struct page *page, const struct bench *bench);

/* The sentence, without the name and a full stop; of a baseline only what failed. Returns out[bytes]. */
const char *bench_sentence(const struct bench_row *row, double target_accuracy, char *out, size_t bytes);

/* bench.csv, one row per strategy; unknown numbers are `nan`. Errors (here and below): ERROR_FILE. */
int bench_write(const char *path, const struct bench *bench, struct error *error);

/* runs.csv: one row per run, in the file as soon as the run is over. */
struct bench_runs {
    FILE *file;
    char path[PATH_BYTES];
};
int bench_runs_open(struct bench_runs *runs, const char *path, struct error *error);
/* summary is NULL when the run failed with `failure`. */
int bench_runs_add(struct bench_runs *runs, const char *name, int repeat, long seed,
                   const struct summary *summary, const struct error *failure, struct error *error);
int bench_runs_finish(struct bench_runs *runs, struct error *error);
void bench_runs_close(struct bench_runs *runs); /* safe on a zeroed or finished one */

#endif
