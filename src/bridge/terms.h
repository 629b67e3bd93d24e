/* What the two sides of the bridge tell each other, apart from weights and gradients, and its layout in a
 * frame. */
#ifndef TRAINER_BRIDGE_TERMS_H
#define TRAINER_BRIDGE_TERMS_H

#include "../config/config.h"
#include "../data/metric.h"
#include "../device/groups.h"
#include "addresses.h"
#include "frame.h"

/* What a process has built, for comparison with other processes. */
struct fingerprint {
    uint64_t examples; /* training examples */
    uint64_t floats;   /* of the flat vector */
    uint64_t layout;   /* layout_hash */
    /* Of a worker with --share=auto, and no part of the comparison: seconds of a batch without examples, and
     * of each example; else 0. */
    double constant_s, each_s;
};

/* HELLO, from each device of a worker, and from the first parameter server to the others. */
struct hello {
    bool leader;      /* it is the first parameter server: task is 0, and it has no device */
    char program[32]; /* version */
    struct typed
        agreed; /* the rows that all must agree on: of a worker those that were typed, of a leader all */
    struct fingerprint fingerprint; /* of a leader; a worker's comes with its READY */
    int task, device, devices;      /* which worker; which of its devices, of how many */
    uint64_t process;               /* drawn by lot: the same in all hellos of a process, no other has it */
    char device_name[GROUP_NAME_BYTES]; /* "cpu:0" */
    long seen; /* updates of the newest weights that it had in the session before (src/cluster/sessions.h) */
    struct rank_offer offer; /* whether it can add gradients with the other workers' devices */
};

/* WELCOME: all have come. */
struct welcome {
    int worker, workers; /* place in the roster, and its size */
    uint64_t begin, end; /* the host's slice of the flat vector */
    /* The worker to whose device the sum of this slice's gradients comes; -1: the host adds them. By what, or
     * why the host does, "" where there is nothing to say; the id by which the devices meet (means.h). */
    int root;
    char means[200];
    uint64_t id[COLLECTIVE_ID_WORDS];
};

/* NEXT: a batch, by its number; an empty one, to take part in the round; or none until the next segment. */
enum next { NEXT_BATCH, NEXT_EMPTY, NEXT_PAUSE, NEXTS };

/* WEIGHTS: a batch to compute with the weights of the slice, which follow. */
struct request {
    long number;         /* of the batch */
    long step;           /* of this worker, from 1 */
    long version;        /* updates that the weights have had */
    int epoch;           /* from 1 */
    long batch, batches; /* place in the epoch, from 1 */
    double rate;         /* learning rate now */
};

/* Flags of WEIGHTS: the worker steps the copies that it has of the slice's vectors, instead of weights;
 * before that it takes new ones, all vectors; after it, it gives them back. Flags of GRADIENT, which then has
 * none: it has stepped them. */
enum { FRAME_STEP = 2, FRAME_TAKE = 4, FRAME_GIVE = 8 };
/* A flag of WEIGHTS: the workers' devices add the gradients. Then the root's GRADIENT has the sum behind its
 * head, and those of the others have nothing. */
enum { FRAME_SUM = 16 };

/* GOODBYE: how it ended. */
struct finish {
    int code;           /* enum error_code; not OK: words say why */
    char words[500];    /* else empty */
    enum metric metric; /* that the score is of */
    double test_score, final_cost, train_seconds, epochs;
    long version, steps;
    long long examples;
    /* These go over no wire: */
    bool left;    /* this worker has gone before the end, as it was asked to */
    bool returns; /* this process begins another session */
};

enum { DEVICES_MOST = 256 /* of a worker */, DEVICES_OF_ALL = ADDRESSES_MOST * DEVICES_MOST };
enum {
    SETTINGS_BYTES = 8192 + PLUGIN_TEXT_BYTES, /* at most, as for the next: all rows that are agreed on */
    HELLO_BYTES = SETTINGS_BYTES + 576,
    READY_BYTES = 40, /* exactly */
    WELCOME_BYTES = 512,
    FINISH_BYTES = 640,
    LAST_WORDS_BYTES = 499, /* of a FAILURE */
    REQUEST_BYTES = 64,     /* exactly; before the weights, whose place stays a cache line's */
    ANSWERED_BYTES = 16,    /* of a request, which its answer repeats: number and step */
    LOSS_BYTES = 64,        /* exactly; before the gradient, or a part of it: */
    PART_BYTES = 256 << 10  /* at least, of numbers */
};

/* A device's name, as in a hello: it goes into tables and lines of text, and has nothing but what such names
 * have. */
void device_name_get(struct frame_reader *reader, char *name, size_t room);
int hello_put(const struct hello *hello, struct frame_writer *writer, struct error *error);
int hello_get(struct hello *hello, struct frame_reader *reader, const char *peer, struct error *error);
/* All rows that are agreed on, with their values. */
int settings_put(const struct config *config, struct frame_writer *writer, struct error *error);
/* Into a record in which only these are given. Errors: ERROR_PEER: an unknown row, an invalid value. */
int settings_get(struct typed *agreed, struct frame_reader *reader, const char *peer, struct error *error);
/* Of what was typed for a run, the rows that are agreed on or saved: all but where it is trained. A reader
 * remembers what is wrong. */
void typed_put(const struct typed *typed, struct frame_writer *writer);
void typed_get(struct typed *typed, struct frame_reader *reader);
void fingerprint_put(const struct fingerprint *fingerprint, struct frame_writer *writer);
int fingerprint_get(struct fingerprint *fingerprint, struct frame_reader *reader, const char *peer,
                    struct error *error);
int welcome_put(const struct welcome *welcome, struct frame_writer *writer, struct error *error);
int welcome_get(struct welcome *welcome, struct frame_reader *reader, const char *peer, struct error *error);
void request_put(const struct request *request, uint8_t bytes[REQUEST_BYTES]);
int request_get(struct request *request, const uint8_t bytes[REQUEST_BYTES], const char *peer,
                struct error *error);
/* What goes before a gradient. */
struct answer {
    float loss;
    double computed_s; /* that the device took for the batch, without what it waited for the wire */
};
/* And which request it answers. Errors: ERROR_PEER: it answers another one. */
void answer_put(const struct answer *answer, const uint8_t request[REQUEST_BYTES], uint8_t bytes[LOSS_BYTES]);
int answer_get(struct answer *answer, const struct request *request, const uint8_t bytes[LOSS_BYTES],
               const char *peer, struct error *error);
/* examples: of this worker's batches, where they have a size of their own; 0: --batch. */
int next_write(struct endpoint *endpoint, enum next next, long number, int examples, double timeout_s,
               struct error *error);
/* After its header was read. */
int next_read(struct endpoint *endpoint, const struct frame_header *header, enum next *next, long *number,
              int *examples, double timeout_s, struct error *error);
int finish_put(const struct finish *finish, struct frame_writer *writer, struct error *error);
int finish_get(struct finish *finish, struct frame_reader *reader, const char *peer, struct error *error);
/* Whether its words are of another process, which they begin with: "worker 1 (...): ...". */
bool finish_names(const struct finish *finish);
/* That a process, `who`, has not ended well. Where it has lost another, only that one is named: who tells of
 * it may be a mirrored process's own other half. Errors: ERROR_PEER. */
int finish_repeat(const struct finish *finish, const char *who, struct error *error);

/* Whether what a peer was given is what the host has; `us` and `peer` are their names in messages. Errors:
 * ERROR_PEER, with both values of the first that differs. */
int settings_agree(const struct config *host, const struct typed *peers, const char *us, const char *peer,
                   struct error *error);
int programs_agree(const char *peers, const char *us, const char *peer, struct error *error);
int fingerprints_agree(const struct fingerprint *host, const struct fingerprint *peers, const char *us,
                       const char *peer, struct error *error);

#endif
