/* Frames: what goes over the wire between processes of a cluster. The whole format is here and in frame.c.
 *
 *     offset 0   4 bytes  "TRNR"
 *            4   2        version of the protocol
 *            6   2        type
 *            8   4        flags, which the type gives a meaning
 *           12   8        bytes of payload, which follow
 *           20   4        checksum of the payload; 0 over a link that keeps bytes intact: TLS, memory
 *           24  36        zeros
 *           60   4        checksum of the 60 bytes before it
 *
 * The header, and what goes before weights and gradients in a payload, fill whole cache lines. So what the
 * kernel copies lies as in memory: where the target is up to 31 bytes ahead of the source, modulo a page, an
 * AMD Zen 3 copies a tenth of the bytes per second (docs/measurements/speed.md). Checksums are CRC-32C. A bit
 * that changed on the way is an error, in a header before its length is believed, in a payload once all of it
 * is there: until then nobody uses what was read of it, but for a worker that computes with the weights that
 * have come already (batch.c), and gives what it has computed to nobody.
 *
 * All numbers are little-endian. The receiver limits a payload's length before it allocates memory for it,
 * so a peer cannot make it allocate more. Payloads are floats as they lie in memory, or fields that the
 * calls at the end write and read. Errors that a peer causes are ERROR_PEER; the message names the peer,
 * what was found and what was expected. */
#ifndef TRAINER_BRIDGE_FRAME_H
#define TRAINER_BRIDGE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/error.h"
#include "../world/endpoint.h"

enum { FRAME_VERSION = 15, FRAME_HEADER_BYTES = 64 };

/* The types: name, text. A type's number is its row; append new rows, or increase the version. */
#define FRAME_TYPES(row)                                                                                     \
    row(HELLO, "a hello")         /* worker or leader: who I am, which settings I was given */               \
        row(WELCOME, "a welcome") /* host: all are there, this is how things stand */                        \
        row(FAILURE,                                                                                         \
            "a failure") /* either: the words of an error; the connection ends; flags: or not yet */         \
        row(NEXT, "a batch's number")       /* leader to worker to followers; flags: enum next */            \
        row(WEIGHTS, "weights")             /* host: of its slice */                                         \
        row(GRADIENT, "a gradient")         /* worker: of the host's slice */                                \
        row(HEARTBEAT, "a heartbeat")       /* host: still there; words, or nothing else to say */           \
        row(GO, "the signal to go on")      /* leader to follower: the next segment begins */                \
        row(FETCH, "a request for weights") /* leader to follower: tallies and slice, once all are paused */ \
        row(TALLIES, "tallies")             /* follower: what its shards have counted */                     \
        row(SLICE, "a slice")               /* either of them: weights and optimizer state */                \
        row(GOODBYE, "a goodbye")           /* host: this was the last frame */                              \
        row(CONFIG, "the settings") /* host: what this run is, for the worker to build; flags: a session */  \
        row(READY, "a ready")       /* worker: it is built; its fingerprint; flags: that session */          \
        row(JOIN, "a lane's hello") /* a lane that joins a sweep: who I am (lane_terms.h) */                 \
        row(RUN, "a run")           /* host of a sweep: what the lane trains next; its files follow */       \
        row(FILE, "a file")         /* either: a file of a run, its name first (run_files.h) */              \
        row(ENDED, "a run's end")   /* lane: how it ended; its files follow */                               \
        row(OWED, "what is owed")   /* worker, at a pause: what compressing has left out (packed.h) */       \
        row(OWN, "a worker's weights") /* worker, at a pause or without a batch: what it has stepped */      \
        row(LEAVE, "a leave")          /* worker, between two batches: it goes, and all is well */           \
        row(PROBE, "a probe")          /* anybody: how are you? */                                           \
        row(STATUS, "a status")        /* host, to a probe: in words */                                      \
        row(CHANGE, "a change")        /* leader to follower: the next segment is another strategy's */      \
        row(LINK, "a link's address")  /* either: where it is over UCX (upgrade.h) */                        \
        row(ADMIT, "an admission") /* leader to follower, at a pause: who takes which place; its answer */   \
        row(LOST, "a loss")        /* follower to leader: it has lost the worker that the flags are */       \
        row(PART, "a part of a gradient") /* worker, while it computes; flags: which one (batch.c) */

enum frame_type {
    FRAME_NONE,
#define FRAME_ROW(name, words) FRAME_##name,
    FRAME_TYPES(FRAME_ROW)
#undef FRAME_ROW
        FRAME_TYPE_COUNT
};

/* A flag of a FAILURE: what is refused now may be right in a while; whoever hears it may come again. */
enum { FAILURE_FOR_NOW = 1 };

struct frame_header {
    enum frame_type type;
    uint32_t flags;
    uint64_t bytes;    /* of payload */
    uint32_t checksum; /* of the payload */
    uint32_t sum;      /* of what has been read of it; goes over no wire, as the next */
    uint64_t read;     /* bytes of it */
};

const char *frame_type_words(enum frame_type type); /* "a gradient" */

/* --- frames to and from one peer; timeout as in world/endpoint.h --- */

/* The pieces together are the payload; FRAME_PIECES at most. */
enum { FRAME_PIECES = 15 };
int frame_write(struct endpoint *endpoint, enum frame_type type, uint32_t flags, const struct piece *pieces,
                int count, double timeout_s, struct error *error);

/* limit: the most bytes of payload that are accepted. `what` names what is awaited: "a reply". */
int frame_read_header(struct endpoint *endpoint, const char *what, uint64_t limit,
                      struct frame_header *header, double timeout_s, struct error *error);
/* All of the payload; memory has [header->bytes]. */
int frame_read_payload(struct endpoint *endpoint, const struct frame_header *header, void *memory,
                       double timeout_s, struct error *error);
/* The next so many bytes of it; nobody may use any of them before the last are there. */
int frame_read_part(struct endpoint *endpoint, struct frame_header *header, void *memory, size_t bytes,
                    double timeout_s, struct error *error);
/* Error when it is of another type, or its payload is not of exactly so many bytes. A FAILURE frame is
 * left to the caller, who can read its message. */
int frame_expect(const struct endpoint *endpoint, const struct frame_header *header, enum frame_type type,
                 uint64_t bytes, struct error *error);

/* --- the header alone, for endpoints_exchange with many peers --- */

/* Length and checksum of a payload of these pieces. */
void frame_seal(struct frame_header *header, const struct endpoint *endpoint, const struct piece *pieces,
                int count);
/* For transfer.sum: where what comes of the payload is added up; NULL: it need not be. */
uint32_t *frame_sum(const struct endpoint *endpoint, struct frame_header *header);
/* After the last byte. Errors: ERROR_PEER: it arrived damaged. */
int frame_check(const struct endpoint *endpoint, const struct frame_header *header, struct error *error);
void frame_pack_header(uint8_t bytes[FRAME_HEADER_BYTES], const struct frame_header *header);
/* These are the first bytes of what is no frame: nobody needs to wait for the rest of its header. */
bool frame_is_strange(const uint8_t *bytes, size_t count);
/* `peer` is for messages. */
int frame_unpack_header(struct frame_header *header, const uint8_t bytes[FRAME_HEADER_BYTES], uint64_t limit,
                        const char *peer, struct error *error);

/* --- fields: a payload that is a list of values, read in the order they were written --- */

/* Writing past the room writes nothing and is remembered, so only the end needs a check. */
struct frame_writer {
    uint8_t *bytes; /* [room], borrowed; [used] is written */
    size_t room, used;
    bool overflowed;
};
void frame_put_u32(struct frame_writer *writer, uint32_t value);
void frame_put_u64(struct frame_writer *writer, uint64_t value);
void frame_put_f64(struct frame_writer *writer, double value);
void frame_put_text(struct frame_writer *writer, const char *text); /* its length as u32, its bytes */
int frame_put_end(const struct frame_writer *writer, const char *what, struct error *error);

/* The first field that is not there, or is not what it should be, is remembered; from then on all are 0 or
 * empty. */
struct frame_reader {
    const uint8_t *bytes; /* [length], borrowed */
    size_t length, used;
    const char *wrong; /* NULL: nothing so far */
};
uint32_t frame_get_u32(struct frame_reader *reader);
uint64_t frame_get_u64(struct frame_reader *reader);
double frame_get_f64(struct frame_reader *reader);
/* A text without a 0 in it, into [room] with one at the end. */
void frame_get_text(struct frame_reader *reader, char *text, size_t room);
/* Error when anything was wrong, or bytes are left over. `what` was read from `peer`: "a hello". */
int frame_get_end(const struct frame_reader *reader, const char *what, const char *peer, struct error *error);

#endif
