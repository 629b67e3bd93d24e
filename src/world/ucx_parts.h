/* What a connection over UCX is made of: for ucx.c, which moves its bytes, ucx_inbox.c, which keeps what has
 * come, and ucx_context.c, which makes it. */
#ifndef TRAINER_WORLD_UCX_PARTS_H
#define TRAINER_WORLD_UCX_PARTS_H

#include "endpoint_parts.h"
#include "ucx.h"
#include "ucx_library.h"
#include "world_kind.h"

enum {
    SLOTS = 16, /* messages that UCX has not sent yet, at most */
    SLOT_BYTES = 64 << 10,
    LENT_MOST = 1 << 20,
    SMALL_BYTES = 128, /* before lent ones, at most: the headers of a frame and of what it carries */
    MESSAGES = 128,    /* that have come and were not taken; more than WINDOW_BYTES and SLOTS let come */
    MESSAGE_COST = 32 << 10,
    WINDOW_BYTES = 2 << 20,
    UNTOLD_BYTES = 512 << 10,
    WORD_BYTES = 8,
    NUMBER_BYTES = 8
};
/* The two kinds of messages of UCX: a slot was sent, or the sender's own memory. */
enum { MESSAGE_COPIED, MESSAGE_LENT };
/* A word of a connection's TCP: what its sender has taken, MESSAGE_COST for each message and the bytes of
 * those that were copied; or, with TOTAL, the number behind that of its last message. */
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

/* Where the bytes of a message are. */
enum place {
    PLACE_NONE,  /* it has not come */
    PLACE_UCX,   /* in its memory */
    PLACE_PEER,  /* in the peer's: UCX has what fetches them */
    PLACE_OWN,   /* in memory of the link's, if they have all been fetched */
    PLACE_CALLER /* in the receiver's, likewise */
};

struct message {
    void *data;
    size_t bytes;
    enum place place;
    bool copied;
    uint8_t small[SMALL_BYTES], small_bytes; /* come before `data` */
};

struct ucx_link {
    const struct ucx_library *ucp; /* borrowed */
    struct lock lock;              /* of all that follows */
    ucp_worker_h worker;
    ucp_address_t *address;
    ucp_ep_h peer; /* NULL: its address has not come */
    struct bed sender, receiver;
    bool sends, receives; /* that direction goes over UCX */
    bool stays;           /* neither does, and the worker is closed */
    uint8_t *bytes; /* [SLOTS * (NUMBER_BYTES + SLOT_BYTES)]: of each slot a number, and bytes behind it */
    void *slots[SLOTS]; /* NULL: free; else the request that sends it */
    bool lent[SLOTS];   /* what it sends is the sender's memory */
    int slot;           /* the next */
    size_t ahead;       /* bytes behind endpoint->held, which UCX still reads in the sender's memory */
    struct message queue[MESSAGES]; /* what has come, by its number: UCX may change their order */
    uint64_t next;                  /* the number of the first that was not taken */
    size_t used;                    /* bytes of it that were */
    bool fetching;                  /* it is being fetched */
    void *fetch;                    /* its request; NULL: it has been */
    uint64_t number;                /* of the next that is sent */
    uint64_t sent, received;        /* as words count it */
    uint64_t taken;                 /* of what was sent the peer has received so much, as it says */
    uint64_t told;                  /* of what was received the peer knows so much */
    uint64_t total; /* the number behind the peer's last message, with TOTAL; 0: it is not at the end */
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

/* UCX has failed, for the first reason of several. UCX calls it, too; argument: the link. */
void ucx_note_failure(void *argument, ucp_ep_h peer, ucs_status_t status);
/* Frees the request once it is done; NULL is. */
bool ucx_is_done(struct ucx_link *link, void **request);

/* What has come, and was not taken (ucx_inbox.c). */
struct message *ucx_first(struct ucx_link *link); /* the next one's entry, whether it has come or not */
bool ucx_has_data(struct ucx_link *link);
size_t ucx_take(struct ucx_link *link, uint8_t *buffer, size_t most); /* 0: nothing just now */
void ucx_let_go(struct ucx_link *link);                               /* of the next, taken or not */
/* What UCX calls when a message has come; argument: the link. */
ucs_status_t ucx_note_copied(void *argument, const void *header, size_t header_bytes, void *data,
                             size_t bytes, const ucp_am_recv_param_t *param);
ucs_status_t ucx_note_lent(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                           const ucp_am_recv_param_t *param);

static inline size_t ucx_least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Closes what ucx_begin made. */
void ucx_close_worker(struct ucx_link *link);

#endif
