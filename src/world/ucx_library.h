/* Private to ucx.c: libucp, loaded when a connection is first to go over UCX. Who asks for another link has
 * neither its memory nor its threads.
 *
 * The functions are called by their own names through the table: ucp->ucp_ep_create(...). None of them is
 * linked, so a call that goes around the table is an error of the linker's. */
#ifndef TRAINER_WORLD_UCX_LIBRARY_H
#define TRAINER_WORLD_UCX_LIBRARY_H

#include <ucp/api/ucp.h>

#include "../base/error.h"

#define UCX_FUNCTIONS(X)                                                                                     \
    X(ucp_am_data_release)                                                                                   \
    X(ucp_am_recv_data_nbx)                                                                                  \
    X(ucp_am_send_nbx)                                                                                       \
    X(ucp_cleanup)                                                                                           \
    X(ucp_config_modify)                                                                                     \
    X(ucp_config_read)                                                                                       \
    X(ucp_config_release)                                                                                    \
    X(ucp_ep_close_nbx)                                                                                      \
    X(ucp_ep_create)                                                                                         \
    X(ucp_init_version)                                                                                      \
    X(ucp_request_check_status)                                                                              \
    X(ucp_request_free)                                                                                      \
    X(ucp_worker_arm)                                                                                        \
    X(ucp_worker_create)                                                                                     \
    X(ucp_worker_destroy)                                                                                    \
    X(ucp_worker_flush_nbx)                                                                                  \
    X(ucp_worker_get_address)                                                                                \
    X(ucp_worker_get_efd)                                                                                    \
    X(ucp_worker_progress)                                                                                   \
    X(ucp_worker_release_address)                                                                            \
    X(ucp_worker_set_am_recv_handler)                                                                        \
    X(ucs_status_string)

struct ucx_library {
#define UCX_FUNCTION(name) __typeof__(&name) name;
    UCX_FUNCTIONS(UCX_FUNCTION)
#undef UCX_FUNCTION
};

/* Fills the table; the library stays loaded. Errors: ERROR_DEVICE: "libucp.so.0: cannot open shared object
 * file: ...; expected UCX (libucx0)". */
int ucx_load(struct ucx_library *ucp, struct error *error);

#endif
