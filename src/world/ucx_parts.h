/* What a connection over UCX is made of: for ucx.c, which moves its bytes, and ucx_context.c, which makes it.
 */
#ifndef TRAINER_WORLD_UCX_PARTS_H
#define TRAINER_WORLD_UCX_PARTS_H

#include "endpoint_parts.h"
#include "ucx.h"
#include "ucx_library.h"
#include "world_kind.h"

enum { SLOTS = 16, SLOT_BYTES = 64 << 10, WORD_BYTES = 8, UNTOLD_BYTES = 256 << 10 };
/* A word of a connection's TCP: how many bytes its sender has received over UCX; or has sent in all. */
#define TOTAL (1ull << 63)

struct ucx {
    struct ucx_library ucp;
    ucp_context_h context;
};

/* Where one of the two waits. */
struct bed {
    int set, bell; /* epoll and eventfd */
    bool asleep;   /* it has found nothing, and may be waiting */
    bool rung;
};

struct ucx_link {
    const struct ucx_library *ucp; /* borrowed */
    struct lock lock;              /* of all that follows */
    ucp_worker_h worker;
    ucp_address_t *address;
    ucp_ep_h peer; /* NULL: its address has not come */
    struct bed sender, receiver;
    bool sends, receives; /* that direction goes over UCX */
    uint8_t *bytes;       /* [SLOTS * SLOT_BYTES] of the slots */
    void *slots[SLOTS];   /* NULL: free; else the request that sends it */
    int slot;             /* the next */
    const uint8_t *data;  /* [data_bytes] in UCX's memory, of which data_used are taken; NULL: none */
    size_t data_bytes, data_used;
    bool greeted;            /* the byte before all others has come */
    uint64_t sent, received; /* over UCX */
    uint64_t taken;          /* bytes of ours that the peer has received, as it says */
    uint64_t told;           /* bytes of its own that it knows of as received */
    uint64_t total;          /* what the peer has sent in all, with TOTAL; 0: it is not at the end */
    uint8_t word[WORD_BYTES];
    size_t heard;        /* bytes of it */
    bool finished;       /* the peer has been told what was sent in all */
    bool ended;          /* its TCP has */
    bool unflushed;      /* something was sent since the last flush was asked for */
    void *flush;         /* its request; NULL: done */
    double failed_s;     /* when it did */
    ucs_status_t failed; /* UCX's; UCS_OK: not yet */
    char why[120];
};

/* Closes what ucx_begin made. */
void ucx_close_worker(struct ucx_link *link);

#endif
