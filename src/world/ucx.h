/* UCX: how a connection that has begun over TCP goes over to it, once both sides have agreed to (ucx.c). A
 * build without its headers has without_ucx.c instead. */
#ifndef TRAINER_WORLD_UCX_H
#define TRAINER_WORLD_UCX_H

#include "endpoint.h"

enum { UCX_ADDRESS_BYTES = 4096 };

/* Before the world's first connection, which from now on all begin over TCP, and behind those that say
 * whether it may be in clear. shares_memory: UCX may use shared memory of its own. Errors: ERROR_USAGE: not
 * in this build; the world encrypts, which UCX does not; ERROR_DEVICE: no libucp here, or it cannot be used.
 */
int ucx_use(struct world *world, bool shares_memory, struct error *error);
void ucx_end(struct world *world); /* after its last connection */
bool ucx_is_used(const struct endpoint *endpoint);

/* Once of a connection: its address there, for the peer. Errors: ERROR_DEVICE. */
int ucx_begin(struct endpoint *endpoint, uint8_t address[UCX_ADDRESS_BYTES], size_t *bytes,
              struct error *error);
bool ucx_has_begun(const struct endpoint *endpoint);
/* Then: the peer is at this address, which is believed. *there: UCX has something faster than TCP to it, or
 * what the user's UCX_TLS names. Errors: ERROR_PEER: it cannot be reached there. */
int ucx_reach(struct endpoint *endpoint, const uint8_t *address, bool *there, struct error *error);
/* Or: it keeps to TCP. */
void ucx_stay(struct endpoint *endpoint);
bool ucx_stays(const struct endpoint *endpoint);
/* What is sent, or received, from now on goes over UCX. */
void ucx_send_over(struct endpoint *endpoint);
void ucx_receive_over(struct endpoint *endpoint);
bool ucx_sends(const struct endpoint *endpoint);
bool ucx_receives(const struct endpoint *endpoint);

#endif
