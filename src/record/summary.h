/* summary.json: what a run was and what came of it, in one object. */
#ifndef TRAINER_RECORD_SUMMARY_H
#define TRAINER_RECORD_SUMMARY_H

#include <stdbool.h>
#include "../config/config.h"
#include "../data/metric.h"
#include "../device/groups.h"
#include "../world/roster.h"

/* How one worker spent its time, and on whom it waited. */
struct worker_result {
    char name[MEMBER_NAME_BYTES];  /* "worker 1 (cpu:1)" */
    char device[GROUP_NAME_BYTES]; /* "cpu:1"; of a worker of several, "cpu:2+cpu:3" */
    long steps, examples;
    double input_s, pull_s, compute_s, push_s, wait_s;
    double staleness_mean; /* of its gradients */
    long staleness_max;
    const char *waited_at; /* where it waited longest, a constant text; NULL: it never waited */
    double waited_at_s;
    char waited_for[MEMBER_NAME_BYTES]; /* for whom it waited longest; "": it never waited */
    double waited_for_s;
    const double *waited_for_each; /* [summary members] seconds; NULL: not known */
    bool lost;                     /* it was lost on the way, and the others went on */
    int recorded_nodes;            /* of the graph that a step is; 0: none; -1: its device records none */
    char not_recorded[200];        /* why it is none; "" */
};

/* Updates by others between reading the weights and applying the gradient. */
struct summary_staleness {
    double mean;
    long p50, p99, max;
};

/* One of the strategies of a run, one after the other. */
enum { SUMMARY_PHASES = 8, SUMMARY_PHASE_BYTES = 512 };
struct summary_phase {
    char strategy[SUMMARY_PHASE_BYTES]; /* as typed, with its settings */
    int from_epoch;                     /* the first that was its, from 1 */
};

enum { VERDICT_BYTES = CONFIG_VALUE_BYTES + 300 };

/* What the run says of itself at its end, each without a full stop: that it diverged, that it learnt nothing;
 * "": it does not say so. */
struct verdict {
    char diverged[VERDICT_BYTES], learnt_nothing[VERDICT_BYTES];
};

/* Real numbers that are not known (an accuracy without a test set) are NAN and become null. Texts are
 * borrowed. */
/* A worker that came while the training went on. */
struct summary_join {
    int worker;
    double time_s;     /* of training */
    long step, update; /* its first one, from 1; updates that the weights have had before */
};

struct summary {
    const char *program;                /* "trainer 0.1.0" */
    const struct config *config;        /* settled; the rows that are shown */
    const struct summary_phase *phases; /* [phase_count] the strategies that it came to; NULL: not known */
    int phase_count;
    int shards;
    const long long *shard_bytes; /* [shards] of the weights; NULL: not known */
    int servers; /* that hold the weights: parameter servers, or threads; 0: there are none */
    const long long *server_bytes; /* [servers] */
    const char *homes;             /* where they live: "cpu", "gpu:0" */
    const char *devices;           /* of the workers: "cpu:0,cpu:1", "(cpu:0+cpu:1),(cpu:2+cpu:3)" */
    const char *machine;           /* what it computes with: "2 cores, ... Xeon(R)"; NULL: not known */
    int workers;
    int members;                                   /* workers, then servers */
    const char (*member_names)[MEMBER_NAME_BYTES]; /* [members] */
    int threads;        /* of each worker; in a cluster of the device that evaluates */
    const char *faults; /* that were put in: "--slow=cpu:1=3x"; "": none */
    double epochs;      /* gone through, over all workers; a fraction when interrupted */
    long steps;         /* of all workers together */
    long updates;       /* of the weights */
    long long examples;
    double train_seconds;  /* from the start of the first step to the end of the last, evaluation excluded */
    double examples_per_s; /* examples / train_seconds */
    enum metric metric;    /* that the scores are of */
    double test_score, test_cost;
    const double
        *test_value;    /* [METRICS] of each metric; NAN: it is none of these labels'; NULL: not known */
    double views_score; /* accuracy of the tests by --views; NAN: there is none */
    double first_cost, final_cost; /* training loss of this part's first batches, and at the end */
    int best_epoch;                /* by the validation part; 0: there is none, and nothing in the two */
    double best_score, best_test_score;
    double target_s; /* training seconds until the target accuracy; NAN: not reached, or not asked for */
    struct summary_staleness staleness;
    const struct summary_staleness *shard_staleness; /* [shards here] of each; NULL: not known */
    int shards_here;                                 /* of them in this process */
    double wait_share, pull_share, push_share, compute_share,
        input_share;         /* of the workers' time; they add up to 1, with the next one */
    double unfinished_share; /* of a run that failed: in steps that did not end */
    /* Share of the devices' time that stages of a pipeline waited for each other, and where all stages are
     * equal; NAN: there is none here, or it computed nothing. */
    double pipeline_idle, pipeline_idle_equal;
    /* A worker's computing of a batch: by --place=auto, or NAN; in the mean, NAN: none was computed. */
    double batch_expected_s, batch_compute_s;
    long lost_updates;                /* in place: overwritten by another worker */
    long redone_updates;              /* lost with a process since the last checkpoint, and made again */
    long dropped;                     /* gradients that came too late and were thrown away, by some shard */
    int lost_workers;                 /* that failed or fell silent, while the others went on */
    long lost_batches;                /* in their hands */
    const struct summary_join *joins; /* [join_count] in their order */
    int join_count;
    long long bytes_moved;
    int cluster_ps, cluster_workers; /* processes; no workers: no cluster; no ps: a mirrored one */
    long long wire_sent,
        wire_received; /* between the first parameter server and the workers, while training */
    bool interrupted;
    bool simulated; /* its times are virtual */
    struct verdict verdict;
    const struct worker_result *per_worker; /* [workers]; NULL: not known */
};

/* The largest over the mean; NAN: there are none. */
double summary_imbalance(const long long *bytes, int count);

/* Writes `path` (temporary name, fsync, rename). Errors: ERROR_FILE. */
int summary_write(const char *path, const struct summary *summary, struct error *error);

#endif
