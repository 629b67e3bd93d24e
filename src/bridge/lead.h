/* What the leader, the first parameter server, and its followers say to each other: the leader sends the
 * slices at the start, starts each segment, fetches the results at each pause, and says who takes part from
 * then on. Each of these has a number of its own, its turn, from 1, and an answer has the turn of what it
 * answers: so what comes twice, or late, is found out. */
#ifndef TRAINER_BRIDGE_LEAD_H
#define TRAINER_BRIDGE_LEAD_H

#include "../device/update.h"
#include "../store/phases.h"
#include "addresses.h"
#include "frame.h"

/* A piece [begin, end) of a state's vectors, each of which begins with float 0 of the whole. */
struct slice {
    size_t begin, end;
    uint64_t turn;      /* the fetch that it answers; 0: it is what the training begins with */
    long version;       /* updates it has had */
    struct state state; /* vectors borrowed */
};

int slice_send(struct endpoint *endpoint, const struct slice *slice, double timeout_s, struct error *error);
/* Both sides know which slice it is; sets its version. Errors: ERROR_PEER: another slice, one of another
 * turn, a version out of its range, a peer that is gone. */
int slice_receive(struct endpoint *endpoint, const struct frame_header *header, struct slice *slice,
                  double timeout_s, struct error *error);

/* Counters, in an order that both know. Errors: ERROR_PEER: those of another turn, one out of its range, a
 * peer that is gone. */
int tallies_send(struct endpoint *endpoint, uint64_t turn, const uint64_t *values, int count,
                 double timeout_s, struct error *error);
int tallies_receive(struct endpoint *endpoint, const struct frame_header *header, uint64_t turn,
                    uint64_t *values, int count, double timeout_s, struct error *error);

/* What a CHANGE has behind its turn; a byte for each worker follows: whether it takes part. Errors:
 * ERROR_PEER: a field out of its range, which has so many phases and workers. */
enum { CHANGE_BYTES = 40 };
void change_put(const struct phase_change *change, uint8_t bytes[CHANGE_BYTES]);
int change_get(struct phase_change *change, int phases, int workers, const uint8_t bytes[CHANGE_BYTES],
               struct error *error);

/* ADMIT: to a follower, of each worker's place the process that takes it at this pause, as it calls itself,
 * 0: nobody; from it, of each of these an enum admission. Turn 0, before the first segment: with whom all
 * begin; the WELCOME is the answer. Errors: as of tallies. */
enum admission {
    ADMISSION_THERE,
    ADMISSION_LATER, /* who had the place is still on its way out */
    ADMISSION_ABSENT /* nobody is ready there who calls itself that */
};
enum { ADMIT_BYTES = (ADDRESSES_MOST + 1) * 8 }; /* at most */
int admit_send(struct endpoint *endpoint, uint64_t turn, const uint64_t *values, int count, double timeout_s,
               struct error *error);
int admit_receive(struct endpoint *endpoint, const struct frame_header *header, uint64_t turn,
                  uint64_t *values, int count, double timeout_s, struct error *error);

/* A FETCH has the version that the leader's slice is of, then a byte for each worker: whether it is lost; and
 * one more: whether the run has failed. */
static inline size_t fetch_bytes(int workers) {
    return sizeof(uint64_t) + (size_t)workers + 1;
}

/* GO, FETCH or CHANGE, with its turn and some bytes more. Errors: ERROR_PEER: another turn, a peer that is
 * gone. */
int turn_send(struct endpoint *endpoint, enum frame_type type, uint64_t turn, const uint8_t *bytes,
              size_t count, double timeout_s, struct error *error);
int turn_receive(struct endpoint *endpoint, const struct frame_header *header, enum frame_type type,
                 uint64_t turn, uint8_t *bytes, size_t count, double timeout_s, struct error *error);

#endif
