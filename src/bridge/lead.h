/* What the leader, the first parameter server, and its followers say to each other: the leader sends the
 * slices at the start, starts each segment, and fetches the results at each pause. Segments and fetches have
 * a number, their turn, from 1, and an answer that of its fetch: so what comes twice, or late, is found out.
 */
#ifndef TRAINER_BRIDGE_LEAD_H
#define TRAINER_BRIDGE_LEAD_H

#include "../device/update.h"
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

/* What a CHANGE has behind its turn: the number of the strategy, from 0; the version of all slices;
 * schedule_ahead (struct store_settings). Errors: ERROR_PEER: one out of its range; `phases`: how many
 * strategies there are. */
enum { CHANGE_BYTES = 24 };
void change_put(int phase, long version, long schedule_ahead, uint8_t bytes[CHANGE_BYTES]);
int change_get(int *phase, long *version, long *schedule_ahead, int phases, const uint8_t bytes[CHANGE_BYTES],
               struct error *error);

/* GO, FETCH or CHANGE, with its turn and some bytes more. Errors: ERROR_PEER: another turn, a peer that is
 * gone. */
int turn_send(struct endpoint *endpoint, enum frame_type type, uint64_t turn, const uint8_t *bytes,
              size_t count, double timeout_s, struct error *error);
int turn_receive(struct endpoint *endpoint, const struct frame_header *header, enum frame_type type,
                 uint64_t turn, uint8_t *bytes, size_t count, double timeout_s, struct error *error);

#endif
