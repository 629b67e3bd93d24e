/* Private to src/train: a worker's and a server's own data, and their bodies. */
#ifndef TRAINER_TRAIN_WORKER_H
#define TRAINER_TRAIN_WORKER_H

#include "training.h"

struct worker {
    struct training *training;
    int index;
    struct world_thread *thread;
    struct error error;
    struct worker_side side; /* side.weights: its own copy, or the store's */
    float *own_weights;      /* [layout floats] or NULL */
    float **slabs;           /* [slots + 1] gradients, [layout floats] each */
    int slab_count;
    int *index_of;        /* [batch] example numbers of the batch in hand */
    struct log_row *rows; /* [slots + 1] the row of each gradient on the way */
    struct worker_totals totals;
};

struct server {
    struct training *training;
    int index; /* serves shards s with s % server_count == index */
    struct world_thread *thread;
    struct event mail;
    struct error error;
};

void worker_body(void *worker);
void server_body(void *server);

/* Records a failure and stops the world. */
void training_fail(struct training *training, int member);

#endif
