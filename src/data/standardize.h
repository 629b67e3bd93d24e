/* Standardizing features: x' = (x - mean) / deviation, column by column, with the numbers of the training
 * part. */
#ifndef TRAINER_DATA_STANDARDIZE_H
#define TRAINER_DATA_STANDARDIZE_H

/* mean[features] and deviation[features] (of the population) of rows[count][features]; a constant column gets
 * deviation 1. count >= 1. */
void standardize_measure(const float *rows, int count, int features, float *mean, float *deviation);

/* Applies them to rows[count][features] in place; prediction uses it for new rows too, so that they meet the
 * same arithmetic. */
void standardize_apply(float *rows, int count, int features, const float *mean, const float *deviation);

#endif
