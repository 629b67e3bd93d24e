/* The closing lines of a training, for who has its results without its run: a worker of a cluster. */
#ifndef TRAINER_RUN_RESULTS_H
#define TRAINER_RUN_RESULTS_H

#include "../data/metric.h"

struct results {
    enum metric metric;
    double test_score;  /* not a number: nothing was tested */
    double views_score; /* the same by views; not a number: it was not asked for */
    const char *views;  /* their title; NULL: none */
    double train_seconds, final_cost;
};

/* results NULL: the training was not finished. sentence "": none. */
void results_print(const struct results *results, const char *sentence);

#endif
