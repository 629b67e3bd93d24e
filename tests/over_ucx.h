/* A connection whose both ends are in this process goes over to UCX, as the bridge's messages have it do
 * between two. */
#ifndef TRAINER_TESTS_OVER_UCX_H
#define TRAINER_TESTS_OVER_UCX_H

#include "../src/world/ucx.h"

#define OVER_UCX_S 20.0

/* What is sent before the two have met waits until the peer, too, has come to its worker: a byte each way. */
static inline int over_ucx(struct endpoint *near, struct endpoint *far, struct error *error) {
    struct endpoint *const ends[] = {near, far};
    const struct piece piece = {"a", 1};
    struct transfer transfers[2];
    uint8_t addresses[2][UCX_ADDRESS_BYTES];
    char got[2];
    size_t bytes;
    bool there;
    for (int i = 0; i < 2; i++) RETURN_IF(ucx_begin(ends[i], addresses[i], &bytes, error));
    for (int i = 0; i < 2; i++) {
        RETURN_IF(ucx_reach(ends[i], addresses[1 - i], &there, error));
        if (!there) return error_set(error, ERROR_PEER, "UCX has nothing but TCP");
        ucx_send_over(ends[i]);
        ucx_receive_over(ends[i]);
        transfers[i] = (struct transfer){.endpoint = ends[i],
                                         .sends = "a byte",
                                         .pieces = &piece,
                                         .piece_count = 1,
                                         .awaits = "a byte",
                                         .buffer = &got[i],
                                         .bytes = 1};
    }
    return endpoints_exchange(transfers, 2, OVER_UCX_S, error);
}

#endif
