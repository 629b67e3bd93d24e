/* Which link a process was told to use (--link), and how a connection goes over from TCP to UCX:
 *
 *     worker, or leader                           host
 *     a hello that offers it                  ->
 *                                             <-  the settings, then a link's address: its own
 *     a link's address: its own               ->
 *     what follows goes over UCX              <-  an empty one: what follows goes over UCX
 *
 * So only those come that far whose hello was right. Where one side does not use UCX, all stays on TCP, and
 * the other one says so. Where UCX has nothing faster than TCP to the host, a worker's address is empty, all
 * stays on TCP, and both say so. */
#ifndef TRAINER_BRIDGE_UPGRADE_H
#define TRAINER_BRIDGE_UPGRADE_H

#include "cluster.h"
#include "frame.h"

/* Flags of a HELLO. */
enum { HELLO_OFFERS_UCX = 1 };

/* For all connections of the world: in clear or encrypted, and over which link. Errors: those of secret_use
 * and ucx_use; ERROR_USAGE: a key, where memory is to be shared. */
int link_use(const struct cluster *cluster, struct world *world, struct error *error);

/* Of the hello that goes out on it. */
uint32_t upgrade_flags(const struct endpoint *endpoint);
/* At the host, behind the settings: what it answers to a hello with these flags. Errors: ERROR_DEVICE, and
 * those of a frame. */
int upgrade_begin(struct endpoint *endpoint, uint32_t flags, struct error *error);
/* A frame with this header is of these. */
bool upgrade_is(const struct endpoint *endpoint, const struct frame_header *header);
/* The next frame is of these. *whole: all of it is there. False as long as its header is not. */
bool upgrade_is_next(struct endpoint *endpoint, bool *whole);
/* Takes what follows the header, and answers. Errors: ERROR_PEER: the other side cannot be reached over UCX;
 * out of turn. */
int upgrade_take(struct endpoint *endpoint, const struct frame_header *header, double timeout_s,
                 struct error *error);
/* The same with its header. */
int upgrade_hear(struct endpoint *endpoint, double timeout_s, struct error *error);
/* It has begun, and the other side has not gone over yet. */
bool upgrade_is_pending(const struct endpoint *endpoint);

/* Why a connection stays on TCP though this side uses UCX. flags: of the other one's hello, or those of
 * upgrade_flags where it has gone over. False: nothing is to be said. */
bool upgrade_failed(const struct endpoint *endpoint, uint32_t flags, const char *name, char *words,
                    size_t bytes);

#endif
