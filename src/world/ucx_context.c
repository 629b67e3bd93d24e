/* UCX in a world, and the worker of a connection. See ucx.h, and ucx.c for how its bytes move. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../base/memory.h"
#include "ucx_parts.h"

/* --- the context of a world --- */

static int fail_ucx(const struct ucx_library *ucp, ucs_status_t status, const char *what,
                    struct error *error) {
    return error_set(error, ERROR_DEVICE, "UCX: %s: %s", what, ucp->ucs_status_string(status));
}

/* Before --insecure UCX listens at the loopback device alone. UCX's shared memory notices a peer's end only
 * where it is told to. Its TCP is slower than what a connection begins over, so none goes over to that unless
 * the user says what UCX is to use. */
static ucs_status_t configure(const struct ucx_library *ucp, ucp_config_t *config, bool loopback,
                              bool shares_memory) {
    ucs_status_t status = ucp->ucp_config_modify(config, "MM_ERROR_HANDLING", "y");
    if (status == UCS_OK) status = ucp->ucp_config_modify(config, "FLUSH_WORKER_EPS", "n");
    if (status == UCS_OK && loopback) status = ucp->ucp_config_modify(config, "NET_DEVICES", "lo");
    if (status == UCS_OK && !getenv("UCX_TLS"))
        status = ucp->ucp_config_modify(config, "TLS", shares_memory ? "^tcp" : "^tcp,shm");
    return status;
}

static ucs_status_t open_context(struct ucx *ucx, bool loopback, bool shares_memory) {
    const struct ucx_library *ucp = &ucx->ucp;
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
                                 .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                                 .mt_workers_shared = 1};
    ucp_config_t *config;
    ucs_status_t status = ucp->ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) return status;
    status = configure(ucp, config, loopback, shares_memory);
    if (status == UCS_OK)
        status = ucp->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &ucx->context);
    ucp->ucp_config_release(config);
    return status;
}

int ucx_use(struct world *world, bool shares_memory, struct error *error) {
    struct ucx *ucx;
    if (world->ucx) return OK;
    if (world->tls)
        return error_set(error, ERROR_USAGE,
                         "UCX does not encrypt, and there is a key: expected another --link, or no key");
    if (world_is_simulated(world)) return error_set(error, ERROR_USAGE, "a simulated network has no UCX");
    RETURN_IF(memory_array(&ucx, 1, "UCX", error));
    int code = ucx_load(&ucx->ucp, error);
    const ucs_status_t status =
        code == OK ? open_context(ucx, !world->clear_anywhere, shares_memory) : UCS_OK;
    if (status != UCS_OK) code = fail_ucx(&ucx->ucp, status, "no context", error);
    if (code != OK) {
        memory_free(ucx);
        return code;
    }
    world->ucx = ucx;
    world->tcp_alone = true;
    return OK;
}

void ucx_end(struct world *world) {
    if (!world->ucx) return;
    world->ucx->ucp.ucp_cleanup(world->ucx->context);
    memory_free(world->ucx);
    world->ucx = NULL;
}

bool ucx_is_used(const struct endpoint *endpoint) {
    return endpoint->world->ucx != NULL;
}

/* --- a connection goes over --- */

static bool watch(const struct bed *bed, int descriptor, uint32_t events) {
    struct epoll_event event = {.events = events, .data.fd = descriptor};
    return epoll_ctl(bed->set, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

/* Whatever fails is closed with the link. */
static bool make_bed(struct bed *bed, int efd, int socket) {
    bed->set = epoll_create1(EPOLL_CLOEXEC);
    bed->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return bed->set >= 0 && bed->bell >= 0 && watch(bed, efd, EPOLLIN) && watch(bed, bed->bell, EPOLLIN) &&
           watch(bed, socket, EPOLLIN | EPOLLRDHUP);
}

static ucs_status_t set_receivers(struct ucx_link *link) {
    static const ucp_am_recv_callback_t receivers[] = {
        [MESSAGE_COPIED] = ucx_note_copied, [MESSAGE_LENT] = ucx_note_lent};
    ucs_status_t status = UCS_OK;
    for (unsigned id = 0; status == UCS_OK && id < sizeof receivers / sizeof *receivers; id++) {
        const ucp_am_handler_param_t params = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                          UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
            .id = id,
            .flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA,
            .cb = receivers[id],
            .arg = link};
        status = link->ucp->ucp_worker_set_am_recv_handler(link->worker, &params);
    }
    return status;
}

static int open_worker(struct ucx_link *link, ucp_context_h context, int socket, size_t *bytes,
                       struct error *error) {
    const struct ucx_library *ucp = link->ucp;
    const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE |
                                                      UCP_WORKER_PARAM_FIELD_EVENTS,
                                        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
                                        .events = UCP_WAKEUP_RX | UCP_WAKEUP_TX};
    int efd = -1;
    ucs_status_t status = ucp->ucp_worker_create(context, &params, &link->worker);
    if (status == UCS_OK) status = set_receivers(link);
    if (status == UCS_OK) status = ucp->ucp_worker_get_efd(link->worker, &efd);
    if (status == UCS_OK) status = ucp->ucp_worker_get_address(link->worker, &link->address, bytes);
    if (status != UCS_OK) return fail_ucx(ucp, status, "no worker", error);
    if (make_bed(&link->sender, efd, socket) && make_bed(&link->receiver, efd, socket)) return OK;
    return error_set(error, ERROR_DEVICE, "UCX: no descriptors to wait at: %s", strerror(errno));
}

int ucx_begin(struct endpoint *endpoint, uint8_t address[UCX_ADDRESS_BYTES], size_t *bytes,
              struct error *error) {
    const struct ucx *ucx = endpoint->world->ucx;
    struct ucx_link *link;
    RETURN_IF(memory_array(&link, 1, "a connection", error));
    *link = (struct ucx_link){
        .ucp = &ucx->ucp, .sender = {.set = -1, .bell = -1}, .receiver = {.set = -1, .bell = -1}};
    lock_open(&link->lock, endpoint->world);
    endpoint->state = link;
    endpoint->link = &link_ucx;
    RETURN_IF(memory_array(&link->bytes, (size_t)SLOTS * (NUMBER_BYTES + SLOT_BYTES), "what is sent", error));
    RETURN_IF(open_worker(link, ucx->context, endpoint->socket, bytes, error));
    if (*bytes > UCX_ADDRESS_BYTES)
        return error_set(error, ERROR_DEVICE, "UCX: an address of %zu bytes, expected at most %d", *bytes,
                         UCX_ADDRESS_BYTES);
    memcpy(address, link->address, *bytes);
    return OK;
}

bool ucx_has_begun(const struct endpoint *endpoint) {
    return endpoint->link == &link_ucx;
}

bool ucx_sends(const struct endpoint *endpoint) {
    return ucx_has_begun(endpoint) && ((const struct ucx_link *)endpoint->state)->sends;
}

bool ucx_receives(const struct endpoint *endpoint) {
    return ucx_has_begun(endpoint) && ((const struct ucx_link *)endpoint->state)->receives;
}

void ucx_send_over(struct endpoint *endpoint) {
    struct ucx_link *link = endpoint->state;
    link->sends = true;
    endpoint->send_waits = POLLIN;
    atomic_store(&endpoint->send_socket, link->sender.set);
}

void ucx_receive_over(struct endpoint *endpoint) {
    struct ucx_link *link = endpoint->state;
    link->receives = true;
}

static void close_bed(struct bed *bed) {
    if (bed->set >= 0) close(bed->set);
    if (bed->bell >= 0) close(bed->bell);
    bed->set = bed->bell = -1;
}

void ucx_close_worker(struct ucx_link *link) {
    if (link->address) link->ucp->ucp_worker_release_address(link->worker, link->address);
    close_bed(&link->sender);
    close_bed(&link->receiver);
    if (link->worker) link->ucp->ucp_worker_destroy(link->worker);
    link->address = NULL;
    link->worker = NULL;
}

/* Its descriptors and its memory are free again. */
void ucx_stay(struct endpoint *endpoint) {
    struct ucx_link *link = endpoint->state;
    lock_take(&link->lock);
    ucx_close_worker(link);
    memory_free(link->bytes);
    link->bytes = NULL;
    link->stays = true;
    lock_release(&link->lock);
}

bool ucx_stays(const struct endpoint *endpoint) {
    return ucx_has_begun(endpoint) && ((const struct ucx_link *)endpoint->state)->stays;
}
