/* An output: one way in which a run is written down or shown while it goes on. A file in src/outputs/ holds
 * one, as a descriptor `output_NAME`; --outputs chooses. All of them are told the same facts, in this order:
 * open, then steps, epoch and event as they come, end, close.
 *
 * Only the coordinating thread calls them, never a worker. One that cannot begin (open) ends the run, before
 * anything is learnt; one that fails later is named in one line and told nothing more, and the training goes
 * on without it. */
#ifndef TRAINER_RECORD_OUTPUT_H
#define TRAINER_RECORD_OUTPUT_H

#include "../base/option.h"
#include "../data/dataset.h"
#include "../graph/graph.h"
#include "../store/store.h"
#include "../world/roster.h"
#include "epochs.h"
#include "log.h"
#include "summary.h"

/* What holds for the whole run. Borrowed, until close. */
struct output_scene {
    const char *folder;          /* of the run; NULL: it leaves nothing here */
    const struct config *config; /* settled */
    const struct dataset *dataset;
    const struct graph *graph; /* the network in training; its layout is that of the weights */
    int workers, shards;
    const char *const *devices;  /* [workers] "cpu:0" */
    const struct roster *roster; /* the workers, then the servers, with their names */
    bool goes_on;                /* in a folder that has what an earlier part of the run left there */
    double seconds_before;       /* of training, in earlier parts */
    int epochs_before;
    const long *steps_before; /* [workers]; NULL: none */
    bool others_step;         /* the steps' own lines are printed by the processes that compute them */
    struct lines *lines;      /* standard output, where people read; NULL: they asked for quiet */
    void *embedder;           /* for the output of a program that has the run in itself; else NULL */
};

/* An epoch is over, and the network was tested. */
struct output_epoch {
    const struct epoch_row *row;
    double seconds;       /* of training, of this epoch */
    double passed_s;      /* since the last epoch was told, or since training began; tests included */
    double left_s;        /* until the run is over, if it goes on like this; NAN: not known */
    const double *rest_s; /* [workers] waits in this part of the run that no row has: where epochs begin and
                             end */
    const float *weights; /* [layout floats] those that were tested */
    /* [layout floats] of the loss with these weights, on the first batch of the training part; NULL: nobody
     * wants it, or it cannot be had. */
    const float *gradient;
    const struct tally *shards; /* [shards_here] what all workers did to each, in this part of the run */
    int shards_here;
    long lost_updates; /* so far: in place, overwritten by another worker */
};

enum output_event_kind {
    EVENT_RESUMED,
    EVENT_TARGET,
    EVENT_BEST,
    EVENT_CHECKPOINT,
    EVENT_LOST,
    EVENT_LEFT,
    EVENT_JOINED,
    EVENT_STRATEGY
};

/* Something happened that is no step. */
struct output_event {
    enum output_event_kind kind;
    double time_s;     /* since training began, as in the rows */
    int worker;        /* -1: none in particular */
    const char *words; /* "worker 1 (cpu:1) failed at step 50, as --fail asked" */
};

struct output_end {
    const struct summary *summary;
    const float *weights; /* [layout floats] those that are kept as the model */
    /* What that model says of the test part, where an output wants to know; NULL after an interrupt, where it
     * is no class, or cannot be had. */
    const int *said;            /* [test examples] class */
    const float *probabilities; /* [test examples][classes] */
};

/* What becomes of what an earlier run left, in whatever build: put aside until the new one has a checkpoint,
 * and then dropped, or put back; kept for good under other names; removed with the run. */
enum output_left { LEFT_SET_ASIDE, LEFT_PUT_BACK, LEFT_DROP, LEFT_KEEP, LEFT_REMOVE };

struct output {
    struct plugin plugin;
    size_t self_bytes; /* of what it keeps; zeroed before open */
    bool always;       /* it is there whether it was chosen or not */
    bool wants_said;   /* its `end` wants to know what the model says of the test part */
    const char *needs; /* the package that this build lacks for it: it cannot be chosen; NULL: nothing */
    /* What it leaves in the run's folder, as shell patterns of names, ended by NULL: so that another run
     * there finds them. NULL: nothing. */
    const char *const *files;
    /* The same for one whose files have other names, or folders of their own; NULL: `files` says it all. */
    int (*left)(enum output_left what, const char *folder, struct error *error);
    /* Rows of how many steps are wanted: of each worker's every N-th one; 0: of none. NULL: of none. */
    int (*every)(const struct output_scene *scene);
    /* All below may be NULL but for open. Errors: ERROR_FILE, ERROR_DEVICE (memory). */
    int (*open)(void *self, const struct output_scene *scene, struct error *error);
    /* Rows in the order of their time; of one worker always in that of its steps. Rows that another output
     * wanted are among them. What was written is to be in the file when this returns: a reader may look. */
    int (*steps)(void *self, const struct log_row *rows, int count, struct error *error);
    /* What the members of the run did, of the steps that --trace asks for, as it ended; times are those of
     * training, as in the rows. left_out: how many did not fit so far. */
    int (*spans)(void *self, const struct trace_span *spans, int count, long left_out, struct error *error);
    int (*epoch)(void *self, const struct output_epoch *epoch, struct error *error);
    /* Whether it wants the gradient at the end of this epoch. NULL: never. */
    bool (*wants_gradient)(const void *self, int epoch);
    int (*event)(void *self, const struct output_event *event, struct error *error);
    /* First of those that are always there, so that the others find what they left. */
    int (*end)(void *self, const struct output_end *end, struct error *error);
    void (*close)(void *self); /* also after a failure, of a half-open one, and without `end` */
};

/* Made by the Makefile from the file names in src/outputs/. */
extern const struct output *const outputs[];
extern const struct plugin_kind output_kind;

/* Calls `left` of all outputs that have one. */
int outputs_left(enum output_left what, const char *folder, struct error *error);
/* Whether a file of this name in a run's folder is an output's. */
bool output_has_left(const char *name);

enum { OUTPUTS_MOST = 16 };

/* Those of one run. */
struct telling {
    struct told {
        const struct output *output;
        void *self; /* owned */
        int every;
        bool failed;
    } told[OUTPUTS_MOST];
    int count;
    struct progress *progress; /* where a failure is named; borrowed */
};

/* `list`: names with commas between, as --outputs has them; only those that are always there: "none".
 * Errors: ERROR_USAGE (an unknown name, one that this build lacks or that is there twice), or what an output
 * could not do. A half-open one is to be closed. */
int telling_open(struct telling *telling, const char *list, const struct output_scene *scene,
                 struct progress *progress, struct error *error);
/* One more that is told, whatever the list says. */
int telling_add(struct telling *telling, const struct output *output, const struct output_scene *scene,
                struct error *error);
/* Whether the list has that name. */
bool output_is_chosen(const char *list, const char *name);
/* The same checks, and nothing else. Errors: ERROR_USAGE. */
int telling_check(const char *list, struct error *error);
/* Whether anybody wants the row of this step. */
bool telling_wants(const struct telling *telling, long step);
void telling_steps(struct telling *telling, const struct log_row *rows, int count);
bool telling_wants_spans(const struct telling *telling);
bool telling_wants_said(const struct telling *telling);
bool telling_wants_gradient(const struct telling *telling, int epoch);
void telling_spans(struct telling *telling, const struct trace_span *spans, int count, long left_out);
void telling_epoch(struct telling *telling, const struct output_epoch *epoch);
void telling_event(struct telling *telling, const struct output_event *event);
void telling_end(struct telling *telling, const struct output_end *end);
void telling_close(struct telling *telling); /* safe on a zeroed one */

#endif
