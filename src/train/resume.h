/* What a checkpoint says beside weights and optimizer state, and how a run goes on from it. */
#ifndef TRAINER_TRAIN_RESUME_H
#define TRAINER_TRAIN_RESUME_H

#include "../data/dataset.h"
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
    const long *own; /* [workers] batches of each (split, all), or NULL */
    long version;    /* updates of each shard */
    long long examples;
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
/* Own batches of `workers` workers: as saved when their number is the same, else the total dealt evenly.
 * own[workers]. */
void resume_own(const struct safetensors *checkpoint, int workers, long *own);

/* A list of numbers "1,2,3" into values[count]; false when there are not exactly that many. */
bool resume_reals(const char *text, float *values, int count);

#endif
