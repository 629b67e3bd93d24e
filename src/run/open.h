/* Everything a run has open, in the order in which it is opened: for src/run, and for a run that another
 * process leads (src/cluster/follower.c). */
#ifndef TRAINER_RUN_PARTS_H
#define TRAINER_RUN_PARTS_H

#include "../engine/probe.h"
#include "../infer/evaluators.h"
#include "../infer/export.h"
#include "../infer/tested.h"
#include "../record/lines.h"
#include "../record/output.h"
#include "../record/progress.h"
#include "folder.h"
#include "resume.h"
#include "run.h"
#include "setup.h"

enum { ENDING_S = 10 }; /* a thread that has not ended by then hangs */

struct run {
    struct crew crew;
    struct world *world;        /* borrowed */
    struct world *clock;        /* real, of the progress that is shown, where the run is simulated; or NULL */
    struct step_time step_time; /* of a simulated run */
    const struct embedding *embedding; /* borrowed; NULL: none */
    bool silent; /* embedded: prints nothing, heeds no signals, and names no folder of its own */
    struct safetensors checkpoint; /* that is resumed, or zero */
    bool imports;                  /* --weights brings the optimizer's state, too */
    bool resumes, led;             /* led: another process coordinates, evaluates and writes */
    struct setup setup;
    bool folder_named;      /* by the user, not by the program */
    void *folder;           /* where its files go, held against other runs */
    size_t folder_existing; /* bytes of its path that were there before */
    enum folder_state folder_state;
    struct groups groups;                     /* of the devices here, where they are groups */
    struct network_settings network_settings; /* of setup.network */
    int *sizes; /* [workers] examples of their batches, where these are or may become different; or NULL */
    struct crew_site site;
    void *members; /* the crew's own */
    int workers;
    struct crew_member *member; /* [workers] */
    const char **device_names;  /* [workers] as groups_name has them */
    char **device_lists;        /* [workers] all devices of each, where they are known: "cpu:2+cpu:3" */
    struct cores *cores;        /* [workers] */
    struct roster roster;
    struct sampler sampler;
    struct store store;
    char fresh[600]; /* layers that --weights had nothing for, with the reasons; empty: none */
    struct evaluator evaluator;
    struct evaluators evaluators; /* that test beside each other; none: the evaluator does */
    struct log log;
    struct output_scene scene;
    struct telling telling; /* the outputs of the scene */
    struct probe probe;     /* opened when the first output wants a gradient */
    bool probe_failed;
    struct tally *tallies; /* [shards here] what was told of them last */
    double *rest_s;        /* [workers] likewise: what no row of theirs has */
    struct trace *trace;   /* what some of them want to see of the members; or NULL */
    struct progress progress;
    struct lines lines; /* on standard output */
    double *slowness;   /* [workers] of --slow */
    bool *lost;         /* [workers] it takes no part: lost, left, or not there yet */
    int present;        /* workers that the schedule counts with: all, or in a run that others may join those
                           that were there when it began, or when the last one came */
    int lost_before;    /* losses of workers that have come again */
    struct summary_join *joins; /* [join_count] */
    int join_count;
    struct training training;
    struct evaluation tested, validated; /* at the last epoch's end */
    double viewed;                       /* score of the tests by --views; NAN: there is none */
    struct best_epoch best;
    int epoch;                   /* epochs complete */
    int phase, next_phase;       /* of setup.phases: that it is in; that the next segment is in */
    int phase_ends[PHASES_MOST]; /* [next_phase] epochs complete when each was over */
    struct summary_phase earlier[SUMMARY_PHASES]; /* [earlier_count] strategies of the parts before */
    int earlier_count;
    long phase_version;        /* the store's when the phase began, in this part ... */
    long long phase_examples;  /* ... and the examples until then */
    long long examples_before; /* of earlier parts of this training, when resumed */
    long version_before, steps_before;
    long *steps_of_before, *steps_of; /* [steps_count] of each worker: of earlier parts; these included */
    int steps_count;                  /* at least the workers; those of earlier parts, if there were more */
    int epochs_before;                /* complete when this part began */
    double began_s, told_s;           /* world time: of the start; of the last epoch that was told */
    double seconds_before;
    double cost_before;  /* final cost of the earlier parts, or NAN */
    double drained_s;    /* world time at which the log was last emptied in the middle, and progress shown */
    double checkpoint_s; /* world time of the last checkpoint */
    /* For the progress that is shown: examples, and the store's version, when the segment began. */
    long long segment_examples;
    long segment_version;
    bool has_checkpoint;
    long checkpoint_update; /* after which it was written */
    double target_s;        /* training seconds when the target accuracy was reached, or NAN */
    double highest;         /* test score of all epochs of this part ... */
    int highest_epoch;      /* ... and the epoch; 0: none was tested */
    double epoch_s;         /* training seconds when the epoch began, or this part of it */
    long long epoch_examples;
    struct begun_epoch begun; /* what earlier parts of the run had of it */
    long redone_updates; /* that were lost with a process since a checkpoint: of earlier sessions, and this
                            one's */
    bool nothing_left;   /* a run that is resumed where it is has no more to do: nothing is written */
    bool told_recording; /* whether a step is recorded */
    bool interrupted, told_interrupt, stopped_early;
    bool replaces;    /* an earlier run is in the folder, until this one has a checkpoint */
    bool apart;       /* the last fetch of a pause has failed */
    bool taken_back;  /* of a run that failed: */
    long rounds_most; /* of a worker's steps under the last strategy those after so many were not applied */
    double interrupted_s; /* world time at which an interrupt was seen; 0: none was */
};

/* Opens everything and starts the workers, who wait for the first go. run->crew, world and led are set. */
int run_open(struct run *run, const struct typed *typed, struct error *error);
/* Ends and joins what still runs; safe on a half-open one. What a thread that hangs may still use is left
 * behind: then run->training.abandoned is set, and the run itself must stay. */
void run_close(struct run *run);

/* --- change.c; of a run with several strategies, one after the other --- */

/* Where epochs are judged (--early-stop, a strategy until an accuracy), something is held out for it. Errors:
 * ERROR_USAGE: --validation=0 was typed. */
int run_choose_validation(struct run *run, const struct typed *typed, struct error *error);
/* Once the epochs are known that it has been through: finds the strategy that it begins with. Errors:
 * ERROR_FILE: a checkpoint that has more of them than there are. */
int run_open_phase(struct run *run, struct error *error);
/* The strategies so far, one after the other, those of earlier parts included: how many. */
int run_strategies(const struct run *run, struct summary_phase list[SUMMARY_PHASES]);
/* The same for a checkpoint, "1 sync; 4 async-lockfree"; and from the one that is resumed, behind
 * resume_phase. */
void run_strategies_text(const struct run *run, struct text *text);
void run_read_strategies(struct run *run);
/* Where an epoch ends, with the best one noted: whether the next segment is another strategy's. */
void run_look_at_phase(struct run *run);
/* Then, while all pause: goes on under that one, and tells so. Errors: those of store_change and
 * training_change; ERROR_PEER: a follower is gone. */
int run_change_phase(struct run *run, struct error *error);
/* What `schedule_ahead` is with the strategy and the workers of the moment. */
long run_ahead_of(const struct run *run, long version);
/* The same in a process that is led, as it is told. */
int run_apply_change(struct run *run, const struct phase_change *change, struct error *error);
/* Of it what is left once phase and sampler are as they are to be: store, workers and crew begin anew. */
int run_begin_anew(struct run *run, const struct phase_change *change, struct error *error);
/* As the run is now, for those who are led. */
struct phase_change run_tells_change(const struct run *run);
/* Batches that make one update of a shard. */
int run_batches_per_update(const struct run *run);
/* What schedule_ahead (store_settings) is in a run that begins, or is resumed, with this version. */
long run_schedule_ahead(const struct run *run, long version);

/* --- join.c; of a run that workers may join --- */

bool run_may_be_joined(const struct run *run);
/* Once the roster is open: those who have not come yet take no part. */
void run_note_absent(struct run *run);
/* While all pause, behind the losses: lets in whoever is there, and tells so. Errors: those of store_change,
 * training_change and threads; memory. */
int run_let_in(struct run *run, struct error *error);
/* The same where some were lost or have left, and the others divide a round anew. */
int run_divide_rest(struct run *run, struct error *error);
/* In a process that is led, while all pause: who takes part from now on, joins[w]: anew, and how all go on.
 * Errors: as run_let_in; ERROR_PEER: others take part here than at the leader. */
int run_follow_change(struct run *run, const struct phase_change *change, const bool *present,
                      const bool *joins, struct error *error);

/* Whether the loss of a worker ends it alone, under the strategy of the moment. */
bool run_goes_on(const struct run *run);
/* Of the strategy of the moment; schedule_ahead is not set. */
struct store_settings run_store_settings(const struct run *run);
/* Whether threads of their own apply gradients under one of the run's strategies. */
bool run_has_servers(const struct run *run);

/* Whether it leaves files. */
static inline bool run_keeps(const struct run *run) {
    return run->setup.config.out[0] != '\0';
}

/* By which it is judged. */
static inline enum metric run_metric(const struct run *run) {
    return metric_of(run->setup.dataset.task);
}

/* store.c: what the strategy that was chosen needs and promises; the store opened and filled. */
const struct traits *run_traits(const struct run *run);
int run_shards_here(const struct run *run); /* of all that the vector is cut into */
int run_open_store(struct run *run, struct error *error);
/* weights.c: weights[layout floats], which have their first values, get those of --weights, layer by layer
 * where name and shapes fit; run->fresh names the others. Errors: ERROR_FILE: no layer fits; one is not
 * finite. */
int run_take_weights(struct run *run, float *weights, struct error *error);
/* Whether there is such a file. Errors: ERROR_FILE. */
int run_check_weights(const char *path, struct error *error);

/* --- share.c --- */

/* What is wrong with --share whoever takes part. Errors: ERROR_USAGE; ERROR_FILE: in the checkpoint. */
int run_check_share(const struct run *run, const struct typed *typed, struct error *error);
/* Once the workers are known: run->sizes, and config.share and config.batch as they turned out to be. Errors:
 * another number of weights; a --batch-total that cannot be divided; those of paces_settle. */
int run_open_share(struct run *run, const struct typed *typed, struct error *error);
/* Examples of the largest batch there may be; 0: that of a round. */
int run_batch_most(const struct run *run);
/* Whether workers join and leave this run, and divide a round anew: with --batch-total, with --share. */
bool run_divides_anew(const struct run *run);
/* Then, while all pause: divides it among those who are there. Errors: memory. */
int run_divide(struct run *run, struct error *error);
/* Examples that make one update of a shard, under the strategy of the moment. */
double run_examples_per_update(const struct run *run);
/* "100 x 2", or "160 + 40", in out[bytes]; and the sum. */
const char *run_name_batch(const struct run *run, char *out, size_t bytes);
int run_batch_total(const struct run *run);
/* open.c: what a checkpoint has that is none is wrong with its file, unless it was typed. */
int run_blame(int code, const struct run *run, bool typed, const struct error *why, struct error *error);

/* --- simulate.c --- */

/* The world of a run in this process: the simulated one with --simulate, in an order by its seed. */
int run_open_world(struct world **out, const struct config *config, struct error *error);
/* Whether a resumed run was simulated as this one is. Errors: ERROR_USAGE. */
int run_check_simulated(const struct run *run, const struct typed *typed, struct error *error);
/* Seconds between two looks of the coordinator, and between two times that it empties the log. */
double run_look_s(const struct run *run);
double run_drain_s(const struct run *run);
double run_real_now(const struct run *run); /* of whoever looks on */

/* --- keep.c; all while the workers are paused or have ended --- */

/* What a command that goes on with the run has behind its folder: " --simulate=20ms --devices=cpu:0-9", where
 * it is simulated; else nothing. */
enum { RESUMED_WITH_BYTES = 400 };
const char *run_resumed_with(const struct run *run, char out[RESUMED_WITH_BYTES]);

/* Examples computed, of earlier parts too; how often that goes through the data, with data-sharding=all: by
 * each worker. */
long long run_examples(const struct run *run);
double run_epochs(const struct run *run);

/* Writes the checkpoint of where the run stands. Errors (here and below): ERROR_FILE; ERROR_DIVERGED: a
 * weight is not finite, and the checkpoint before stays. */
int run_keep(struct run *run, struct error *error);
/* Writes model.safetensors: the weights that are tested, the moving average where there is one. */
int run_keep_model(struct run *run, struct error *error);
/* The same with these weights; two equal runs leave the same bytes. */
int run_write_model(const struct run *run, const float *weights, const struct standing *standing,
                    struct error *error);
/* After an epoch: if it is the best one by the validation part, notes it and writes checkpoint/best. */
int run_keep_best(struct run *run, struct error *error);
/* Whether --early-stop ends the run here. */
bool run_is_stale(const struct run *run);
/* Whether a run that goes on in its own folder has been through all its epochs, and has written everything.
 */
bool run_is_over(const struct run *run);
/* Where it was, a run that has done more epochs is left as it is; elsewhere it would be written down as one
 * that has done less. `typed`: --epochs was. Errors: ERROR_USAGE; ERROR_FILE: the checkpoint itself says so.
 */
int run_check_epochs(const struct run *run, bool typed, struct error *error);
/* After an error of the training: keeps what was applied until then in a checkpoint, where it can be had and
 * is worth it, and adds to the words which checkpoint there is to go on from. Returns `code`. */
int run_keep_rest(struct run *run, int code, struct run_result *result, struct error *error);
/* After all threads were to end: whether they have, no device that the store lives on has failed, and, where
 * all step together, every shard has ended the same round, `most` or an earlier one; what is half done, or
 * was done too early, is undone for that where it can be. What is on devices is in store->host then. */
bool run_settle_store(struct run *run, long most);

/* --- position.c; likewise --- */

/* The sampler where the run begins. Errors: ERROR_USAGE, ERROR_FILE (a checkpoint's batch): a batch larger
 * than the training part, or fewer examples than workers that divide them. */
int run_open_sampler(struct run *run, const struct typed *typed, struct error *error);
/* The steps that each worker has taken in earlier parts. Errors: memory. */
int run_open_steps(struct run *run, struct error *error);

/* --- totals.c; likewise --- */

/* missed.c: a line for each --fail and --stall that never came, also when quiet; once the run is over, while
 * all pause. */
void run_say_missed_faults(struct run *run);
/* The same for --target-accuracy, but not when quiet: how close the run came. */
void run_say_missed_target(struct run *run);

/* That hold the weights: parameter servers where there are several, else threads; 0: there are none. */
int run_servers(const struct run *run);
/* shard_bytes[shards of all], server_bytes[run_servers], which are 0: of the weights in each shard and at
 * each server. Errors: ERROR_DEVICE (memory). */
int run_sizes(const struct run *run, long long *shard_bytes, long long *server_bytes, struct error *error);

/* Steps of all workers, earlier parts included. */
long run_steps(const struct run *run);
/* Fills in run->steps_of. */
void run_count_steps(struct run *run);
/* Mean loss of the last steps of the workers that are there; of the earlier parts when there was none in this
 * one. */
double run_final_cost(const struct run *run);
/* Mean loss of the workers' first steps in this part; NAN: there was none. */
double run_first_cost(const struct run *run);
/* Whether the last losses of this part are so high that the weights are not worth keeping. */
bool run_is_hopeless(const struct run *run);

/* --- first_lines.c --- */

int run_say_start(struct run *run, struct error *error);
/* Which of the options that were typed do nothing in this run. */
void run_say_idle(struct run *run, const struct typed *typed);
/* Where the shards live, and how the mean of a round is made, when that is more than the host's memory; and
 * what a device of this process computes. */
int run_explain(struct run *run, struct error *error);

/* --- tell.c --- */

/* Tells the outputs of all that has come into the log, and of the spans. */
void run_drain(struct run *run);

/* Room for what outputs are told. Errors: ERROR_DEVICE (memory). */
int run_tell_open(struct run *run, struct error *error);
void run_tell_close(struct run *run);

/* Tell the outputs: of an epoch that is over, which took so many seconds, with so many examples done in all;
 * of something that happened, with the worker that it happened to or -1; and of the first epoch that reached
 * the target accuracy. */
void run_tell_epoch(struct run *run, const struct epoch_row *row, double seconds, long long examples);
void run_tell_event(struct run *run, enum output_event_kind kind, int worker, const char *words);
void run_tell_target(struct run *run, const struct epoch_row *row);

/* --- verdict.c --- */

/* Whether the last loss is hopeless, by the rule of training.h, though the run came to its end: then nothing
 * may replace its last checkpoint. Errors: ERROR_DIVERGED. */
int run_check_diverged(const struct run *run, struct error *error);
/* What the loss of guessing is, as far as it is known without looking. */
double run_guess_loss(const struct run *run);
/* summary->verdict: a loss that ended high, a network that is no better than guessing; the latter is not
 * said of a run that was interrupted. */
void run_judge(const struct run *run, struct summary *summary);
/* Warns of them, and says how long a pipeline idled. */
void run_say_verdict(struct run *run, const struct summary *summary);

/* --- totals.c again --- */

/* result->config, and what was run, from the summary's settings to its faults. Errors: ERROR_DEVICE
 * (memory). */
int run_describe(const struct run *run, struct run_result *result, struct error *error);
/* Adds up what the workers measured: staleness, shares of the time, steps, bytes, final cost; and each worker
 * by itself. Errors: ERROR_DEVICE (memory). */
int run_totals(const struct run *run, struct run_result *result, struct error *error);
/* What the run knows without these two: how far it is, how fast it was, its scores. */
struct summary run_summary(const struct run *run);
/* Of a run that failed: all of them in result->summary, for its closing sentence; nothing where no update was
 * made, or a thread hangs. Ends the workers' threads. */
void run_sum_up_failed(struct run *run, struct run_result *result);

#endif
