/* The link between two processes of one machine and one user: bytes go through memory that both have mapped,
 * a ring for each direction. A byte is copied once in and once out, by whoever needs it, and the kernel is
 * called only to wake a peer that sleeps.
 *
 * They meet at a Unix socket in the abstract namespace, which is named after the address at which the host
 * listens. Such a name is no file, is as far to be seen as loopback is (in one network namespace), and goes
 * with the process. The kernel tells each side the user of the other one. The connecting side makes the
 * memory, which has no name either, and sends it over that socket together with one end of a second one.
 *
 * Each direction has a socket of its own, for bells: a byte from the sender says that there is something to
 * take, one from the receiver that there is room. Bells are rung only for who sleeps:
 *
 *     sender:  written = ...;  read receiver_sleeps     receiver:  receiver_sleeps = 1;  read written
 *
 * One of the two reads sees the other's write, as in threads.c. The sockets are also the sign of life: when
 * a process ends, however it ends, they are closed. What it had sent before is still in the memory.
 *
 * The other side may write anything into the memory. Its counts are checked whenever they are read; what
 * this side has counted it keeps for itself. The memory is sealed, so it cannot be made shorter. */
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../base/memory.h"
#include "endpoint_parts.h"
#include "link.h"

enum { BACKLOG = 128, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
enum { CHUNK_BYTES = 64 << 10 }; /* after so many the other side may begin to take them */

/* One direction, as this side sees it. */
struct way {
    struct shm_ring *ring;
    uint8_t *bytes; /* [SHM_RING_BYTES] */
    uint64_t count; /* bytes so far */
    char why[120];  /* it is broken */
};

struct shm_link {
    struct shm_memory *memory; /* NULL: has not come yet */
    struct lock lock;          /* of who takes it when it comes, and of `broken` */
    _Atomic bool open;
    char broken[100]; /* why it never will be; empty: it may */
    struct way out, in;
};

/* --- where they meet --- */

/* The version is that of struct shm_memory. */
static socklen_t make_name(struct sockaddr_un *out, const struct sockaddr_storage *name) {
    char text[NETNAME_TEXT_BYTES];
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    netname_text(text, sizeof text, name);
    const int length = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "trainer 1 %s", text);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int open_socket(void) {
    return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* The socket, or -1 and it is closed. */
static int keep_if(bool good, int socket) {
    if (good || socket < 0) return socket;
    close(socket);
    return -1;
}

static bool is_ours(int socket) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

int shm_listen(const struct sockaddr_storage *name) {
    struct sockaddr_un at;
    const socklen_t length = make_name(&at, name);
    const int socket = open_socket();
    return keep_if(socket >= 0 && bind(socket, (const struct sockaddr *)&at, length) == 0 &&
                       listen(socket, BACKLOG) == 0,
                   socket);
}

int shm_connect(const struct sockaddr_storage *name) {
    struct sockaddr_un at;
    const socklen_t length = make_name(&at, name);
    const int socket = open_socket();
    return keep_if(
        socket >= 0 && connect(socket, (const struct sockaddr *)&at, length) == 0 && is_ours(socket), socket);
}

int shm_accept(int listener) {
    if (listener < 0) return -1;
    const int socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return keep_if(socket >= 0 && is_ours(socket), socket);
}

/* --- the memory --- */

/* Both sides map it. */
static int map(struct shm_link *link, int file, bool accepted) {
    void *memory = mmap(NULL, sizeof *link->memory, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return errno;
    link->memory = memory;
    link->out.ring = &link->memory->rings[accepted];
    link->out.bytes = link->memory->bytes[accepted];
    link->in.ring = &link->memory->rings[!accepted];
    link->in.bytes = link->memory->bytes[!accepted];
    return OK;
}

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(2 * sizeof(int))];
};

/* The memory and a socket go out in one message, which is the first byte on the connection. */
static bool send_files(int socket, const int files[2]) {
    union control control = {0};
    struct iovec byte = {.iov_base = "", .iov_len = 1};
    const struct msghdr message = {.msg_iov = &byte,
                                   .msg_iovlen = 1,
                                   .msg_control = control.bytes,
                                   .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(header), files, 2 * sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* What recvmsg gave; files: -1 where there are none. *cut: more were sent than came. */
static ssize_t receive_files(int socket, int files[2], bool *cut) {
    union control control = {0};
    char first;
    struct iovec byte = {.iov_base = &first, .iov_len = 1};
    struct msghdr message = {.msg_iov = &byte,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    const ssize_t found = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    files[0] = files[1] = -1;
    const struct cmsghdr *header = found > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len <= CMSG_LEN(2 * sizeof(int)))
        memcpy(files, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
    *cut = found > 0 && (message.msg_flags & MSG_CTRUNC);
    return found;
}

/* A file longer than this process may write would end it (SIGXFSZ). */
static int make_memory(int *out) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(struct shm_memory)) return EFBIG;
    *out = memfd_create("trainer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*out < 0) return errno;
    if (ftruncate(*out, sizeof(struct shm_memory)) == 0 && fcntl(*out, F_ADD_SEALS, SEALS) == 0) return OK;
    const int reason = errno;
    close(*out);
    return reason;
}

/* The connecting side. All that may be refused is made before it connects, so that the host never sees one
 * who then comes over TCP. Whatever fails, what is in `endpoint` and `link` is closed with them. */
static int offer(struct endpoint *endpoint, struct shm_link *link) {
    int ends[2], file, reason = make_memory(&file);
    if (reason != OK) return reason;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
        reason = errno;
        close(file);
        return reason;
    }
    endpoint->socket = ends[0]; /* it receives there, and sends where it has connected */
    reason = map(link, file, false);
    const int sends = reason == OK ? shm_connect(&endpoint->peer) : -1;
    if (reason == OK && sends < 0) reason = ECONNREFUSED;
    atomic_init(&endpoint->send_socket, sends);
    if (reason == OK && !send_files(sends, (const int[]){file, ends[1]})) reason = errno;
    close(ends[1]);
    close(file);
    return reason;
}

static int break_off(struct shm_link *link, const char *words, const char **why) {
    snprintf(link->broken, sizeof link->broken, "%s", words);
    *why = link->broken;
    return LINK_BROKEN;
}

static bool is_sealed(int file) {
    const int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && (seals & SEALS) == SEALS;
}

static bool is_expected(const int files[2]) {
    struct stat status;
    return files[0] >= 0 && files[1] >= 0 && fstat(files[0], &status) == 0 &&
           status.st_size == sizeof(struct shm_memory) && is_sealed(files[0]);
}

/* The accepting side, once it is there: OK, or as send and receive. One offer is looked at, never a second
 * one: a connection that is broken stays so. */
static int take_offer(struct endpoint *endpoint, struct shm_link *link, const char **why) {
    int files[2];
    bool cut;
    const ssize_t found = receive_files(endpoint->socket, files, &cut);
    if (found < 0 && (errno == EAGAIN || errno == EINTR)) return LINK_AGAIN;
    if (found <= 0) return LINK_ENDED;
    const bool expected = !cut && is_expected(files);
    const int reason = expected ? map(link, files[0], true) : OK;
    if (expected && reason == OK) {
        close(files[0]);
        atomic_store(&endpoint->send_socket, files[1]);
        if (atomic_load(&endpoint->interrupted)) shutdown(files[1], SHUT_RDWR); /* it came later */
        return OK;
    }
    const bool lacks = cut && files[1] < 0; /* what was sent, and is lost */
    for (int i = 0; i < 2; i++)
        if (files[i] >= 0) close(files[i]);
    if (reason != OK) return break_off(link, strerror(reason), why);
    return break_off(link,
                     lacks ? "no descriptor is left in this process for the memory that it shares"
                           : "does not offer the memory to share that was expected",
                     why);
}

/* The same for whichever thread comes first. */
static int open_once(struct endpoint *endpoint, const char **why) {
    struct shm_link *link = endpoint->state;
    if (atomic_load_explicit(&link->open, memory_order_acquire)) return OK;
    lock_take(&link->lock);
    int code = OK;
    if (link->broken[0]) {
        *why = link->broken;
        code = LINK_BROKEN;
    } else if (!atomic_load(&link->open)) {
        code = take_offer(endpoint, link, why);
    }
    if (code == OK) atomic_store(&link->open, true);
    lock_release(&link->lock);
    return code;
}

static void name_peer(struct endpoint *endpoint) {
    struct ucred peer = {0};
    socklen_t length = sizeof peer;
    getsockopt(endpoint->socket, SOL_SOCKET, SO_PEERCRED, &peer, &length);
    snprintf(endpoint->name, sizeof endpoint->name, "process %ld", (long)peer.pid);
}

/* A connecting side has no socket yet, and makes it here. */
static int open_link(struct endpoint *endpoint, bool accepted, struct error *error) {
    struct shm_link *link = NULL;
    RETURN_IF(memory_array(&link, 1, "a connection", error));
    endpoint->state = link;
    endpoint->send_waits = endpoint->receive_waits = POLLIN; /* for a bell */
    lock_open(&link->lock, endpoint->world);
    if (accepted) {
        name_peer(endpoint);
        return OK;
    }
    const int reason = offer(endpoint, link);
    atomic_init(&link->open, reason == OK);
    if (reason == OK) return OK;
    return error_set(error, ERROR_DEVICE, "%s: no memory to share: %s", endpoint->name, strerror(reason));
}

static void close_link(struct endpoint *endpoint) {
    struct shm_link *link = endpoint->state;
    if (!link) return;
    const int sends = atomic_load(&endpoint->send_socket);
    if (sends >= 0 && sends != endpoint->socket) close(sends);
    if (link->memory) munmap(link->memory, sizeof *link->memory);
    memory_free(link);
    endpoint->state = NULL;
}

/* --- bytes --- */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Bytes that are on their way, by the other side's count. */
static bool check(struct way *way, uint64_t bytes, const char **why) {
    if (bytes <= SHM_RING_BYTES) return true;
    snprintf(way->why, sizeof way->why,
             "the memory that it shares is damaged: %" PRIu64 " bytes are on their way, expected at most %d",
             bytes, SHM_RING_BYTES);
    *why = way->why;
    return false;
}

static void ring_bell(_Atomic uint32_t *sleeps, int socket) {
    if (atomic_load(sleeps) != 0 && atomic_exchange(sleeps, 0) != 0)
        send(socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Takes the bells that have been rung; false: the other side has closed the connection. */
static bool hear_bells(int socket) {
    char bells[64];
    const ssize_t found = recv(socket, bells, sizeof bells, MSG_DONTWAIT);
    return found > 0 || (found < 0 && (errno == EAGAIN || errno == EINTR));
}

/* A piece, or as much of it as there is room for. */
static ssize_t put_piece(struct way *out, const struct iovec *piece, const char **why) {
    size_t moved = 0;
    while (moved < piece->iov_len) {
        const uint64_t filled = out->count - atomic_load(&out->ring->taken);
        if (!check(out, filled, why)) return LINK_BROKEN;
        const size_t bytes =
            least(least(piece->iov_len - moved, CHUNK_BYTES), SHM_RING_BYTES - (size_t)filled);
        const size_t at = out->count % SHM_RING_BYTES, first = least(bytes, SHM_RING_BYTES - at);
        const uint8_t *from = (const uint8_t *)piece->iov_base + moved;
        if (bytes == 0) break;
        memcpy(out->bytes + at, from, first);
        memcpy(out->bytes, from + first, bytes - first);
        moved += bytes;
        out->count += bytes;
        atomic_store(&out->ring->written, out->count);
    }
    return (ssize_t)moved;
}

static ssize_t put_pieces(struct way *out, const struct iovec *pieces, size_t count, const char **why) {
    ssize_t all = 0;
    for (size_t i = 0; i < count; i++) {
        const ssize_t moved = put_piece(out, &pieces[i], why);
        if (moved < 0) return moved;
        all += moved;
        if ((size_t)moved < pieces[i].iov_len) break;
    }
    return all;
}

static ssize_t send_bytes(struct endpoint *endpoint, const struct iovec *pieces, size_t count,
                          const char **why) {
    struct shm_link *link = endpoint->state;
    struct way *out = &link->out;
    const int code = open_once(endpoint, why);
    if (code != OK) return code;
    const int socket = atomic_load(&endpoint->send_socket);
    if (!hear_bells(socket)) return LINK_ENDED;
    ssize_t moved = put_pieces(out, pieces, count, why);
    if (moved == 0) {
        atomic_store(&out->ring->sender_sleeps, 1);
        moved = put_pieces(out, pieces, count, why);
    }
    if (moved > 0) ring_bell(&out->ring->receiver_sleeps, socket);
    return moved == 0 ? LINK_AGAIN : moved;
}

/* A chunk of what is there; *left: bytes that stay. */
static ssize_t take_chunk(struct way *in, uint8_t *buffer, size_t most, uint64_t *left, const char **why) {
    const uint64_t there = atomic_load(&in->ring->written) - in->count;
    if (!check(in, there, why)) return LINK_BROKEN;
    const size_t bytes = least(least(most, CHUNK_BYTES), (size_t)there);
    const size_t at = in->count % SHM_RING_BYTES, first = least(bytes, SHM_RING_BYTES - at);
    *left = there - bytes;
    if (bytes == 0) return 0;
    memcpy(buffer, in->bytes + at, first);
    memcpy(buffer + first, in->bytes, bytes - first);
    in->count += bytes;
    atomic_store(&in->ring->taken, in->count);
    return (ssize_t)bytes;
}

/* Up to so many of the bytes that are there. A sender that sleeps is woken once half of the ring is free: at
 * each chunk it would be woken too often, at the end too late. */
static ssize_t take(struct way *in, int socket, uint8_t *buffer, size_t most, const char **why) {
    size_t all = 0;
    while (all < most) {
        uint64_t left;
        const ssize_t found = take_chunk(in, buffer + all, most - all, &left, why);
        if (found < 0) return found;
        if (found == 0) break;
        if (left <= SHM_RING_BYTES / 2) ring_bell(&in->ring->sender_sleeps, socket);
        all += (size_t)found;
    }
    return (ssize_t)all;
}

/* What was sent before the end comes before it. */
static ssize_t receive_bytes(struct endpoint *endpoint, void *buffer, size_t bytes, const char **why) {
    struct shm_link *link = endpoint->state;
    struct way *in = &link->in;
    const int code = open_once(endpoint, why);
    if (code != OK) return code;
    const ssize_t found = take(in, endpoint->socket, buffer, bytes, why);
    if (found != 0) return found;
    const bool goes_on = hear_bells(endpoint->socket);
    atomic_store(&in->ring->receiver_sleeps, 1);
    const ssize_t late = take(in, endpoint->socket, buffer, bytes, why);
    return late != 0 ? late : goes_on ? LINK_AGAIN : LINK_ENDED;
}

static void finish(struct endpoint *endpoint) {
    shutdown(atomic_load(&endpoint->send_socket), SHUT_WR);
}

/* Nobody else writes to this memory, so it is intact. */
const struct link_kind link_shm = {.intact = true,
                                   .open = open_link,
                                   .send = send_bytes,
                                   .receive = receive_bytes,
                                   .drop = receive_bytes,
                                   .finish = finish,
                                   .close = close_link};
