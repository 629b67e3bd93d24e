/* In place of ucx.c where this build has no UCX: nobody gets further than to be told so. */
#include "ucx.h"

int ucx_use(struct world *world, bool shares_memory, struct error *error) {
    (void)world, (void)shares_memory;
    return error_set(error, ERROR_USAGE,
                     "this build has no UCX: install its headers (libucx-dev), then make again");
}

void ucx_end(struct world *world) {
    (void)world;
}

bool ucx_is_used(const struct endpoint *endpoint) {
    (void)endpoint;
    return false;
}

int ucx_begin(struct endpoint *endpoint, uint8_t address[UCX_ADDRESS_BYTES], size_t *bytes,
              struct error *error) {
    (void)endpoint, (void)address, (void)bytes;
    return ucx_use(NULL, false, error);
}

int ucx_reach(struct endpoint *endpoint, const uint8_t *address, bool *there, struct error *error) {
    (void)endpoint, (void)address, (void)there;
    return ucx_use(NULL, false, error);
}

bool ucx_has_begun(const struct endpoint *endpoint) {
    return ucx_is_used(endpoint);
}

void ucx_stay(struct endpoint *endpoint) {
    (void)endpoint;
}

bool ucx_stays(const struct endpoint *endpoint) {
    return ucx_is_used(endpoint);
}

void ucx_send_over(struct endpoint *endpoint) {
    (void)endpoint;
}

void ucx_receive_over(struct endpoint *endpoint) {
    (void)endpoint;
}

bool ucx_sends(const struct endpoint *endpoint) {
    return ucx_is_used(endpoint);
}

bool ucx_receives(const struct endpoint *endpoint) {
    return ucx_is_used(endpoint);
}
