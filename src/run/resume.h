/* What a checkpoint says beside weights and optimizer state, and how a run goes on from it. */
#ifndef TRAINER_RUN_RESUME_H
#define TRAINER_RUN_RESUME_H

#include "../data/dataset.h"
#include "../data/stream.h"
#include "../formats/checkpoint.h"
#include "../config/config.h"

/* The texts of a checkpoint, in memory of their own. */
enum { RESUME_TEXTS = 96 };
struct resume_texts {
    struct text_entry entries[RESUME_TEXTS];
    int count;
    char *memory[RESUME_TEXTS]; /* owned */
};

/* The best epoch so far by the validation part; epoch 0: none was looked at. */
struct best_epoch {
    int epoch;
    double score, loss; /* of the validation part */
    double test_score;  /* which it was not chosen by; NAN: it was not tested */
};

/* What a run has had of an epoch that is not over. */
struct begun_epoch {
    double loss_sum, batches; /* their losses; 0: there is none */
    double seconds;
    long long examples;
};

/* Where a run stands. */
struct standing {
    long position; /* batches over all workers */
    long place; /* the same in examples, where workers have shares of different sizes, or may have other ones
                   when it goes on; -1: they have not */
    int workers;
    const long *own;    /* [workers] batches of each (split, all), or NULL */
    double epochs_done; /* how often the data has been gone through: by all together, or (all) by each */
    double final_cost;  /* loss of the last steps, or NAN */
    long version;       /* of each shard */
    long updates;       /* of the weights */
    long long examples;
    long steps;        /* of all workers */
    double test_score; /* of these weights, or NAN: they were not tested */
    struct best_epoch best;
    const long *steps_of; /* [steps_count] of each, also of those that earlier parts had; or NULL */
    int steps_count;
    const int *phase_ends; /* [phases_over] of --strategy: epochs complete when each was over */
    int phases_over;
    const char *strategy;   /* in force; NULL: not known, as is schedule_ahead (struct store_settings) */
    const char *strategies; /* those so far, as run_strategies_text has them; NULL: not known */
    long schedule_ahead;
    struct begun_epoch begun;
    double train_seconds; /* NAN: not to be told, as in what two equal runs are to leave alike: nor is what
                              each worker did, nor target_s, nor begun */
    long redone_updates;  /* as in the summary */
    double target_accuracy, target_s; /* seconds of training until the first; or NAN, both or the latter */
};

/* Gathers the saved settings, standing and what prediction needs to know of the data set. Errors:
 * ERROR_DEVICE (memory). */
int resume_texts_make(struct resume_texts *texts, const struct config *config, int flags,
                      const struct dataset *dataset, const struct standing *standing, struct error *error);
void resume_texts_free(struct resume_texts *texts); /* safe on a zeroed one */

/* Whether what a run counted can be what a run counts: whole numbers, none below 0, none so large that
 * counting on from it could overflow. Texts that are not there are not missed. `path` is for the words.
 * Errors: ERROR_FILE. */
int resume_check(const struct safetensors *checkpoint, const char *path, struct error *error);

/* Whether there may be its data set: not that of a program which had the run in itself. Errors: ERROR_FILE.
 */
int resume_check_data(const struct safetensors *checkpoint, const char *path, struct error *error);

/* Whether the file is of that model, whatever its settings; one that names none is. Errors: ERROR_USAGE. */
int resume_model(const struct safetensors *content, const char *path, const struct choice *model,
                 struct error *error);

/* Whether the weights in the file are those of this network; where not, the words say what differs: the data
 * set's examples or the names of its features and classes, the model's settings, or a tensor. Errors:
 * ERROR_FILE; ERROR_USAGE: the data set, the model. */
int resume_fits(const struct safetensors *content, const char *path, const struct choice *model,
                const struct dataset *dataset, const struct layout *layout, struct error *error);

/* Settings that were not typed come from here. */
struct config_source resume_source(const struct safetensors *checkpoint, const char *path);

/* The best epoch of the parts before. */
struct best_epoch resume_best(const struct safetensors *checkpoint);
/* The seconds of training until this accuracy, if they were for it; else NAN. */
double resume_target(const struct safetensors *checkpoint, double accuracy);
/* What the parts before have had of the epoch in which it goes on. */
struct begun_epoch resume_begun(const struct safetensors *checkpoint);
/* How many workers' steps the checkpoint has; and their steps into steps_of[count]. Version 0.1 saved their
 * sum alone: then each gets its share. */
int resume_workers(const struct safetensors *checkpoint);
void resume_steps(const struct safetensors *checkpoint, int count, long *steps_of);

/* The epochs at which earlier strategies of several were over, into ends[most]; returns how many there are.
 */
int resume_phase_ends(const struct safetensors *checkpoint, int most, long *ends);

/* Of a run with --batch-total, where the one stream goes on, in examples; -1: it does not say. */
long resume_place(const struct safetensors *checkpoint);
/* Examples of the training part that the run had; `otherwise`, where it does not say. */
long resume_examples(const struct safetensors *checkpoint, long otherwise);

/* Where the stream goes on: batches of the one stream, and own batches of each worker, own[stream->workers].
 * As saved when data sharding, batch size and the number of examples (and, for own batches, that of workers)
 * are what they were; else as many epochs on. */
void resume_position(const struct safetensors *checkpoint, const struct stream *stream, long *base,
                     long *own);

#endif
