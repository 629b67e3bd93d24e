/* What the host of a sweep and a lane that has joined it tell each other. A lane is one device of another
 * machine, with a connection of its own.
 *
 *     lane                                    host
 *      | ---- JOIN: version, device ----------> |
 *      | <--- CONFIG: the sweep's settings ---- |
 *      | ---- READY: what data set it has ----> |  compares it with its own
 *      | <--- WELCOME ------------------------- |
 *      | <--- RUN, its files ------------------ |  as often as there is one
 *      | ---- ENDED, its files ---------------> |
 *      | <--- GOODBYE ------------------------- |  there will be no more
 *
 * Meanwhile each side sends heartbeats; instead of any frame it may send a FAILURE, with the reason why it
 * ends. */
#ifndef TRAINER_BRIDGE_LANE_TERMS_H
#define TRAINER_BRIDGE_LANE_TERMS_H

#include "terms.h"

/* JOIN. */
struct lane_hello {
    char program[32]; /* version */
    char device[32];
    double timeout_s; /* the lane's: it wants a sign of life more often */
};

/* CONFIG. */
struct lane_sweep {
    double timeout_s;      /* the host's */
    struct typed settings; /* what all runs have in common: the data set */
};

/* RUN. */
struct lane_run {
    int number, count;     /* of the run, from 1; how many the sweep has */
    int stop_after;        /* epochs; 0: at its end */
    int files;             /* that follow, of a run that goes on; 0: it begins */
    struct typed settings; /* those of the run, as they would be typed */
};

/* ENDED. */
struct lane_end {
    int code;        /* enum error_code; not OK: words say why */
    char words[500]; /* else empty */
    int files;       /* that follow */
};

enum { /* of a payload, at most */
       LANE_HELLO_BYTES = 128,
       LANE_SETTINGS_BYTES = SETTINGS_BYTES + 64, /* CONFIG and RUN */
       LANE_END_BYTES = 640
};

int lane_hello_put(const struct lane_hello *hello, struct frame_writer *writer, struct error *error);
int lane_hello_get(struct lane_hello *hello, struct frame_reader *reader, const char *peer,
                   struct error *error);
int lane_sweep_put(const struct lane_sweep *sweep, struct frame_writer *writer, struct error *error);
int lane_sweep_get(struct lane_sweep *sweep, struct frame_reader *reader, const char *peer,
                   struct error *error);
int lane_run_put(const struct lane_run *run, struct frame_writer *writer, struct error *error);
int lane_run_get(struct lane_run *run, struct frame_reader *reader, const char *peer, struct error *error);
int lane_end_put(const struct lane_end *end, struct frame_writer *writer, struct error *error);
int lane_end_get(struct lane_end *end, struct frame_reader *reader, const char *peer, struct error *error);

/* --- the connection, as both sides keep it --- */

/* Before the first connection: encrypted with the key that the settings or the environment name; without one
 * in clear, to other machines only with --insecure. Errors: as secret_find and secret_use. */
int lane_use_secret(const struct config *config, struct world *world, struct error *error);

struct lane_link {
    struct world *world;
    struct endpoint *endpoint; /* borrowed */
    double timeout_s, beat_s;  /* after which silence is a loss; between two heartbeats */
    double beaten_s;           /* when it last said that it lives */
    double silent_s;           /* of waiting for the peer, since it was heard last */
};

/* From now on; theirs_s: the peer's timeout. */
void lane_link_begin(struct lane_link *link, struct world *world, struct endpoint *endpoint, double timeout_s,
                     double theirs_s);
/* The header of the next frame, if one comes within `seconds`; else its type is FRAME_NONE. Sends heartbeats
 * when they are due, and drops those that come. limit: bytes of the payload, which the caller reads. Errors:
 * ERROR_PEER: the peer is gone, or silent for too long; a FAILURE, with its words. */
int lane_link_hear(struct lane_link *link, double seconds, uint64_t limit, struct frame_header *header,
                   struct error *error);
/* A frame with this payload. */
int lane_link_say(struct lane_link *link, enum frame_type type, const void *bytes, size_t count,
                  struct error *error);

#endif
