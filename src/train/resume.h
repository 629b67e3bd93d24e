/* What a checkpoint says beside weights and optimizer state, and how a run goes on from it. */
#ifndef TRAINER_TRAIN_RESUME_H
#define TRAINER_TRAIN_RESUME_H

#include "../data/dataset.h"
#include "../data/stream.h"
#include "../output/checkpoint.h"
#include "settings.h"

/* The texts of a checkpoint, in memory of their own. */
enum { RESUME_TEXTS = 40 };
struct resume_texts {
    struct text_entry entries[RESUME_TEXTS];
    int count;
    char *memory[RESUME_TEXTS]; /* owned */
};

/* Where a run stands. */
struct standing {
    long position; /* batches over all workers */
    int workers;
    const long *own;    /* [workers] batches of each (split, all), or NULL */
    double epochs_done; /* how often the data has been gone through: by all together, or (all) by each */
    double final_cost;  /* loss of the last steps, or NAN */
    long version;       /* updates of each shard */
    long long examples;
    long steps; /* of all workers */
    double train_seconds;
};

/* Gathers settings, standing and what prediction needs to know of the data set. Errors: ERROR_DEVICE
 * (memory). */
int resume_texts_make(struct resume_texts *texts, const struct run_settings *settings,
                      const struct dataset *dataset, const struct standing *standing, struct error *error);
void resume_texts_free(struct resume_texts *texts); /* safe on a zeroed one */

/* A whole number from the texts; `usual` when it is not there. */
long long resume_number(const struct safetensors *checkpoint, const char *name, long long usual);
double resume_real(const struct safetensors *checkpoint, const char *name, double usual);
/* Where the stream goes on: batches of the one stream, and own batches of each worker, own[stream->workers].
 * As saved when data sharding and batch size (and, for own batches, the number of workers) are what they
 * were; else as many epochs on. */
void resume_position(const struct safetensors *checkpoint, const struct stream *stream, long *base,
                     long *own);

/* Whether the checkpoint has the moving average of the weights, too. */
bool resume_has_average(const struct safetensors *checkpoint, const struct layout *layout);

/* A list of numbers "1,2,3" into values[count]; false when there are not exactly that many. */
bool resume_reals(const char *text, float *values, int count);

#endif
