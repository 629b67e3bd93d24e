/* A prefetcher: builds a worker's batches ahead of it, so that input is off the path of a step.
 *
 * With --prefetch=N a thread beside the worker asks the sampler in its place and fills a ring of N + 1
 * input buffers: one for the current step, N for the next ones. The end of a segment goes through the ring
 * too, so what was assigned before a pause is computed before it. With N = 0 there is no thread: the
 * worker builds its batch itself, just before it needs it. That is right where all cores compute: a
 * prefetcher would only take time from a worker.
 *
 * The prefetcher is not a member of the roster. It belongs to its worker, which reports when it has waited
 * too long for it. */
#ifndef TRAINER_TRAIN_PREFETCHER_H
#define TRAINER_TRAIN_PREFETCHER_H

#include "training.h"

/* What a buffer of the ring holds. */
struct feed {
    long number; /* of the batch, or NO_BATCH */
    int buffer;
    bool pause; /* no batch: the segment is over */
    int code;   /* OK, or why it could not be built; the words are the prefetcher's */
};

struct prefetcher {
    const struct training_settings *settings; /* borrowed */
    int worker;
    int buffers;      /* prefetch + 1 */
    int *index_of;    /* [largest size + 1] example numbers of the batch that is being built, and the next one
                         ... */
    uint64_t *key_of; /* [largest size + 1] ... and what they are augmented by */
    int *soon_of;     /* [stream_soon_room] ... and what is read meanwhile */
    struct feed *feeds; /* [buffers] */
    struct event begun; /* one post per segment, and one to end; by the worker */
    struct event fed;   /* one post per feed; by the prefetcher */
    struct event room;  /* one post per buffer to fill: all at first, then by the worker; one to end */
    uint64_t taken;     /* feeds that the worker has taken; its own */
    _Atomic bool ending;
    struct world_thread *thread; /* NULL without prefetch, and when it was joined */
    struct error error;          /* of the feed that has a code; written before it is fed */
};

/* For one worker; starts the thread, which waits for the first segment. */
int prefetcher_open(struct prefetcher *prefetcher, const struct training_settings *settings, int worker,
                    struct error *error);
void prefetcher_end(struct prefetcher *prefetcher);   /* lets the thread end; whoever opened it joins it */
void prefetcher_close(struct prefetcher *prefetcher); /* after that; safe on a zeroed one */

/* On the worker's thread. A segment begins when the worker has been started, with its compute open. */
void prefetcher_begin(struct prefetcher *prefetcher);
/* The next feed; waits for it, in the worker's name. */
int prefetcher_take(struct prefetcher *prefetcher, struct feed *feed, struct error *error);
/* The buffer of the feed taken last is not read any more. */
void prefetcher_give_back(struct prefetcher *prefetcher);

#endif
