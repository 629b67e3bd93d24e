/* What the two sides of the bridge tell each other, apart from weights and gradients, and how it lies in a
 * frame. */
#ifndef TRAINER_BRIDGE_TERMS_H
#define TRAINER_BRIDGE_TERMS_H

#include "frame.h"

/* What all must have alike. */
struct terms {
    char program[32]; /* version */
    char model[512], dataset[1024];
    int batch, examples; /* training examples */
    uint64_t layout;     /* layout_hash */
    uint64_t floats;     /* of the flat vector */
};

/* What all parameter servers must have alike, too. */
struct rules {
    char strategy[512], optimizer[512], schedule[512];
    int shards, shard_by, slots, epochs, sharding;
    uint64_t seed;
    double decay, average;
};

/* HELLO, from each device of a worker, and from the first parameter server to the others. */
struct hello {
    bool leader; /* it is the first parameter server: task is 0, and it has no device */
    struct terms terms;
    struct rules rules;        /* of the leader; empty from a worker */
    int task, device, devices; /* which worker; which of its devices, of how many */
    char device_name[16];
};

/* WELCOME: all have come. */
struct welcome {
    int worker, workers; /* place in the roster, and its size */
    uint64_t seed;
    int sharding;        /* enum data_sharding */
    double clip;         /* the worker cuts its gradient to this norm; 0: not */
    uint64_t begin, end; /* the host's window of the flat vector */
};

/* NEXT: a batch, by its number; an empty one, to take part in the round; or none until the next segment. */
enum next { NEXT_BATCH, NEXT_EMPTY, NEXT_PAUSE, NEXTS };

/* WEIGHTS: a batch to compute with the weights of the window, which follow. */
struct request {
    long number;         /* of the batch */
    long step;           /* of this worker, from 1 */
    long version;        /* updates that the weights have had */
    int epoch;           /* from 1 */
    long batch, batches; /* place in the epoch, from 1 */
    double rate;         /* learning rate now */
};

/* GOODBYE: how it ended. */
struct finish {
    int code;        /* enum error_code; not OK: words say why */
    char words[500]; /* else empty */
    double test_accuracy, final_cost, train_seconds, epochs;
    long version, steps;
    long long examples;
};

enum {
    HELLO_BYTES = 4096, /* at most, as for the next */
    WELCOME_BYTES = 128,
    FINISH_BYTES = 640,
    REQUEST_BYTES = 64, /* exactly; before the weights, whose place stays a cache line's */
    LOSS_BYTES = 64     /* exactly; before the gradient */
};

int hello_put(const struct hello *hello, struct frame_writer *writer, struct error *error);
int hello_get(struct hello *hello, struct frame_reader *reader, const char *peer, struct error *error);
int welcome_put(const struct welcome *welcome, struct frame_writer *writer, struct error *error);
int welcome_get(struct welcome *welcome, struct frame_reader *reader, const char *peer, struct error *error);
void request_put(const struct request *request, uint8_t bytes[REQUEST_BYTES]);
int request_get(struct request *request, const uint8_t bytes[REQUEST_BYTES], const char *peer,
                struct error *error);
int next_write(struct endpoint *endpoint, enum next next, long number, double patience_s,
               struct error *error);
/* After its header was read. */
int next_read(struct endpoint *endpoint, const struct frame_header *header, enum next *next, long *number,
              double patience_s, struct error *error);
int finish_put(const struct finish *finish, struct frame_writer *writer, struct error *error);
int finish_get(struct finish *finish, struct frame_reader *reader, const char *peer, struct error *error);

/* Whether a peer's terms are the host's; `us` and `peer` are what they are called in words. Errors:
 * ERROR_PEER, with both values of the first that differs. */
int terms_agree(const struct terms *host, const struct terms *peers, const char *us, const char *peer,
                struct error *error);
int rules_agree(const struct rules *host, const struct rules *peers, const char *us, const char *peer,
                struct error *error);

#endif
