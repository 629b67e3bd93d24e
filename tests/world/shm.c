/* Shared memory: who meets whom there, a stream of odd lengths, and what another process may do to it: offer
 * something else, write nonsense into the memory, or die. */
#include "../../src/world/shm.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/memory.h"
#include "../../src/base/rng.h"
#include "../../src/world/endpoint.h"
#include "../check.h"

#define LONG_S 20.0
#define AT_ONCE_S 1.0 /* for what needs no waiting */

static void expect(const struct error *error, int code, const char *words) {
    CHECK(error->code == code && strstr(error->words, words), "%d \"%s\", expected %d \"%s\"", error->code,
          error->words, code, words);
}

static int count_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (folder && readdir(folder)) count++;
    closedir(folder);
    return count;
}

static struct sockaddr_storage name_of(uint32_t address, int port) {
    struct sockaddr_storage name = {0};
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(address)}};
    memcpy(&name, &at, sizeof at);
    return name;
}

static struct world *open_world(void) {
    struct world *world = NULL;
    struct error error = {0};
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    return world;
}

static struct listener *listen_here(struct world *world) {
    struct listener *listener = NULL;
    struct error error = {0};
    CHECK(endpoint_listen(world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
    if (!listener) exit(check_end());
    return listener;
}

static struct endpoint *connect_to(struct world *world, const struct listener *listener) {
    struct endpoint *endpoint = NULL;
    struct error error = {0};
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(world, address, &endpoint, LONG_S, &error) == OK, "%s", error.words);
    if (!endpoint) exit(check_end());
    return endpoint;
}

static struct endpoint *accept_at(struct listener *listener) {
    struct endpoint *endpoint = NULL;
    struct error error = {0};
    CHECK(listener_accept(listener, &endpoint, LONG_S, &error) == OK && endpoint, "%s", error.words);
    if (!endpoint) exit(check_end());
    return endpoint;
}

static bool shares(const struct endpoint *accepted) {
    return strncmp(endpoint_name(accepted), "process ", 8) == 0;
}

/* --- who meets whom --- */

/* A loopback address that other runs of this test do not use. */
static uint32_t own_address(void) {
    return 127u << 24 | ((uint32_t)getpid() & 0xffffff);
}

static void test_names(void) {
    const struct sockaddr_storage one = name_of(own_address(), 1), other = name_of(own_address(), 2);
    const int listener = shm_listen(&one);
    CHECK(listener >= 0, "nobody has this name");
    CHECK(shm_listen(&one) < 0, "two have one name");
    CHECK(shm_connect(&other) < 0, "nobody listens there");
    CHECK(shm_accept(listener) < 0 && shm_accept(-1) < 0, "nobody has come");
    const int near = shm_connect(&one), far = shm_accept(listener);
    CHECK(near >= 0 && far >= 0, "%d, %d", near, far);
    close(near);
    close(far);
    close(listener);
    CHECK(shm_connect(&one) < 0, "the name has outlived its listener");
}

/* Either side may keep to TCP, and a port that something else passes on is no meeting place. */
static void test_choice(void) {
    for (int kept = 0; kept < 4; kept++) {
        struct world *near_world = open_world(), *far_world = open_world();
        if (kept & 1) endpoint_keep_to_tcp(near_world);
        if (kept & 2) endpoint_keep_to_tcp(far_world);
        struct listener *listener = listen_here(far_world);
        struct endpoint *near = connect_to(near_world, listener), *far = accept_at(listener);
        CHECK(shares(far) == (kept == 0), "%d: %s", kept, endpoint_name(far));
        endpoint_close(near);
        endpoint_close(far);
        listener_close(listener);
        world_close(near_world);
        world_close(far_world);
    }
}

/* Only root can play another user: one who listens first, and one who comes. */
static void test_users(void) {
    const struct sockaddr_storage name = name_of(own_address(), 1);
    if (geteuid() != 0) return;
    const int listener = shm_listen(&name);
    const pid_t child = fork();
    if (child == 0) {
        const bool kept_out = seteuid(65534) == 0 && shm_connect(&name) < 0;
        _exit(kept_out ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "connected to another user's process");
    CHECK(shm_accept(listener) < 0, "another user's process was let in");
    const int guest = shm_connect(&name);
    CHECK(seteuid(65534) == 0, "this user");
    const int accepted = shm_accept(listener);
    CHECK(seteuid(0) == 0, "root again");
    CHECK(guest >= 0 && accepted < 0, "another user's process was let in");
    close(guest);
    close(listener);
}

/* --- a stream of odd lengths, both ways --- */

enum { STREAM = 20 << 20, LONGEST = 400000 };

struct side {
    struct endpoint *endpoint;
    uint64_t seed, other_seed; /* of what it sends, and of what comes */
    struct error error;
    bool same;
};

static uint8_t stream_byte(uint64_t seed, size_t at) {
    return (uint8_t)((seed + at) * 2654435761u >> 13);
}

static void move_stream(void *argument) {
    struct side *side = argument;
    uint8_t *out = NULL, *in = NULL;
    size_t at = 0;
    side->same = memory_array(&out, LONGEST, "bytes", &side->error) == OK &&
                 memory_array(&in, LONGEST, "bytes", &side->error) == OK;
    for (uint64_t i = 0; at < STREAM && side->error.code == OK; i++) {
        const size_t bytes = 1 + rng_philox(7, 0, i).word[0] % LONGEST;
        for (size_t b = 0; b < bytes; b++) out[b] = stream_byte(side->seed, at + b);
        const struct piece pieces[] = {{out, bytes / 3}, {out + bytes / 3, bytes - bytes / 3}};
        struct transfer transfer = {.endpoint = side->endpoint,
                                    .sends = "bytes",
                                    .pieces = pieces,
                                    .piece_count = 2,
                                    .awaits = "bytes",
                                    .buffer = in,
                                    .bytes = bytes};
        endpoints_exchange(&transfer, 1, LONG_S, &side->error);
        for (size_t b = 0; b < bytes; b++)
            side->same = side->same && in[b] == stream_byte(side->other_seed, at + b);
        at += bytes;
    }
    memory_free(out);
    memory_free(in);
}

static void test_stream(void) {
    struct world *world = open_world();
    struct listener *listener = listen_here(world);
    struct side near = {.endpoint = connect_to(world, listener), .seed = 1, .other_seed = 2};
    struct side far = {.endpoint = accept_at(listener), .seed = 2, .other_seed = 1};
    struct world_thread *thread = NULL;
    struct error error = {0};
    CHECK(world_spawn(world, "far", NULL, move_stream, &far, &thread, &error) == OK, "%s", error.words);
    move_stream(&near);
    world_join(thread);
    CHECK(near.error.code == OK && near.same, "what was received: %s", near.error.words);
    CHECK(far.error.code == OK && far.same, "what was received: %s", far.error.words);
    endpoint_close(near.endpoint);
    endpoint_close(far.endpoint);
    listener_close(listener);
    world_close(world);
}

/* --- who sleeps is woken --- */

enum { TRIPS = 40 };
#define LATE_S 0.025 /* whom no bell wakes looks again after 0.05 s */

struct pong {
    struct endpoint *endpoint;
    uint8_t *bytes; /* [count] */
    size_t count;
    struct error error;
};

static void answer_each(void *argument) {
    struct pong *pong = argument;
    const struct piece piece = {pong->bytes, 1};
    for (int i = 0; i < TRIPS && pong->error.code == OK; i++) {
        endpoint_receive(pong->endpoint, "a message", pong->bytes, pong->count, LONG_S, &pong->error);
        if (pong->error.code == OK)
            endpoint_send(pong->endpoint, "an answer", &piece, 1, LONG_S, &pong->error);
    }
}

/* The accepting side sends, so that both sides' bells are heard. One trip in time is enough: where a bell is
 * never rung all are late, and the machine may have other things to do. */
static void test_woken(size_t count) {
    struct world *world = open_world();
    struct listener *listener = listen_here(world);
    struct pong pong = {.endpoint = connect_to(world, listener), .count = count};
    struct endpoint *near = accept_at(listener);
    struct world_thread *thread = NULL;
    struct error error = {0};
    uint8_t *bytes = NULL;
    double least_s = INFINITY;
    CHECK(memory_array(&bytes, count, "bytes", &error) == OK &&
              memory_array(&pong.bytes, count, "bytes", &error) == OK &&
              world_spawn(world, "pong", NULL, answer_each, &pong, &thread, &error) == OK,
          "%s", error.words);
    const struct piece piece = {bytes, count};
    for (int i = 0; i < TRIPS; i++) {
        uint8_t answer;
        const double began = world_now(world);
        CHECK(endpoint_send(near, "a message", &piece, 1, LONG_S, &error) == OK &&
                  endpoint_receive(near, "an answer", &answer, 1, LONG_S, &error) == OK,
              "%s", error.words);
        least_s = fmin(least_s, world_now(world) - began);
    }
    world_join(thread);
    CHECK(pong.error.code == OK, "%s", pong.error.words);
    CHECK(least_s < LATE_S, "%zu bytes took %g s", count, least_s);
    memory_free(bytes);
    memory_free(pong.bytes);
    endpoint_close(near);
    endpoint_close(pong.endpoint);
    listener_close(listener);
    world_close(world);
}

/* --- one who comes and offers what it likes --- */

struct stranger {
    int socket, second; /* where it has connected; the other end of what it sends along */
    struct shm_memory *memory;
    struct endpoint *host; /* the accepting side */
};

enum { NOTHING = -1, EMPTY = 0, WHOLE = sizeof(struct shm_memory) };
enum { ALL_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
#define A_FILE (~0u) /* instead of seals: what is offered has a name, and no seals */

static int make_offered(long bytes, unsigned seals) {
    char path[] = "/var/tmp/trainer-shm-XXXXXX"; /* /tmp may be memory, which has seals */
    if (seals != A_FILE) {
        const int file = memfd_create("stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        CHECK(ftruncate(file, bytes) == 0 && fcntl(file, F_ADD_SEALS, seals) == 0, "the memory");
        return file;
    }
    const int file = mkostemp(path, O_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, bytes) == 0 && unlink(path) == 0, "a file");
    return file;
}

/* bytes: of the memory that is offered, or NOTHING. sockets: whether the second connection comes along. */
static void make_offer(struct stranger *stranger, long bytes, unsigned seals, bool sockets) {
    int ends[2] = {-1, -1}, files[2], count = 0;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec byte = {.iov_base = "", .iov_len = 1};
    struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1};
    if (bytes >= 0) {
        const int file = make_offered(bytes, seals);
        if (bytes == WHOLE && !stranger->memory)
            stranger->memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        files[count++] = file;
    }
    if (sockets) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "sockets");
        if (stranger->second >= 0) close(stranger->second);
        stranger->second = ends[0];
        files[count++] = ends[1];
    }
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
        memcpy(CMSG_DATA(header), files, (size_t)count * sizeof(int));
    }
    CHECK(sendmsg(stranger->socket, &message, MSG_NOSIGNAL) == 1, "the offer");
    for (int i = 0; i < count; i++) close(files[i]);
}

static void come(struct stranger *stranger, struct listener *listener, long bytes, unsigned seals,
                 bool sockets) {
    const struct sockaddr_storage name = name_of(INADDR_LOOPBACK, listener_port(listener));
    *stranger = (struct stranger){.socket = shm_connect(&name), .second = -1};
    make_offer(stranger, bytes, seals, sockets);
    stranger->host = accept_at(listener);
}

static void leave(struct stranger *stranger) {
    endpoint_close(stranger->host);
    close(stranger->socket);
    if (stranger->second >= 0) close(stranger->second);
    if (stranger->memory) munmap(stranger->memory, sizeof *stranger->memory);
}

/* The host sends or receives a byte. */
static void try_byte(struct endpoint *host, bool sends, struct error *error) {
    char byte = 0;
    const struct piece piece = {&byte, 1};
    *error = (struct error){0};
    if (sends)
        endpoint_send(host, "a word", &piece, 1, AT_ONCE_S, error);
    else
        endpoint_receive(host, "a hello", &byte, 1, AT_ONCE_S, error);
}

/* A wrong offer is refused for good: a right one that follows changes nothing, for either direction, and no
 * descriptor stays. */
static void test_offers(void) {
    const struct {
        long bytes;
        unsigned seals;
        bool sockets;
    } offers[] = {{NOTHING, 0, false},
                  {NOTHING, 0, true},
                  {WHOLE, ALL_SEALS, false},
                  {EMPTY, ALL_SEALS, true},
                  {WHOLE - 1, ALL_SEALS, true},
                  {WHOLE + 4096, ALL_SEALS, true},
                  {WHOLE, 0, true},
                  {WHOLE, F_SEAL_GROW | F_SEAL_SEAL, true},
                  {WHOLE, A_FILE, true}};
    struct world *world = open_world();
    struct listener *listener = listen_here(world);
    const int before = count_files();
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++)
        for (int sends = 0; sends < 2; sends++) {
            struct stranger stranger;
            struct error error;
            come(&stranger, listener, offers[i].bytes, offers[i].seals, offers[i].sockets);
            for (int again = 0; again < 2; again++) {
                try_byte(stranger.host, (sends + again) % 2, &error);
                expect(&error, ERROR_PEER,
                       ": does not offer the memory to share that was expected (0 of 1 bytes");
                make_offer(&stranger, WHOLE, ALL_SEALS, true);
            }
            leave(&stranger);
        }
    CHECK(count_files() == before, "%d files are open, expected %d", count_files(), before);
    listener_close(listener);
    world_close(world);
}

/* The lowest descriptor that is free. */
static int next_file(void) {
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(file);
    return file;
}

/* Of this process; how many before. */
static rlim_t limit_files(rlim_t most) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0, "the limit");
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = most;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "the limit");
    return before;
}

/* A host whose descriptors are used up when it looks at an offer. */
static void test_no_files(void) {
    struct world *world = open_world();
    struct listener *listener = listen_here(world);
    for (rlim_t left = 0; left < 2; left++) {
        struct stranger stranger;
        struct error error;
        come(&stranger, listener, WHOLE, ALL_SEALS, true);
        const int before = count_files();
        const rlim_t limit = limit_files((rlim_t)next_file() + left);
        try_byte(stranger.host, false, &error);
        limit_files(limit);
        expect(&error, ERROR_PEER, ": no descriptor is left in this process for the memory that it shares");
        CHECK(count_files() == before, "%d files are open, expected %d", count_files(), before);
        leave(&stranger);
    }
    listener_close(listener);
    world_close(world);
}

/* One who connects where no memory can be had for it: as no file may be so long, or one descriptor is left,
 * which is enough for TCP. */
static void test_no_memory(void) {
    struct world *world = open_world();
    struct listener *listener = listen_here(world);
    for (int lacks_files = 0; lacks_files < 2; lacks_files++) {
        struct rlimit size, small;
        CHECK(getrlimit(RLIMIT_FSIZE, &size) == 0, "the limit");
        small = (struct rlimit){.rlim_cur = sizeof(struct shm_memory) - 1, .rlim_max = size.rlim_max};
        const int before = count_files();
        const rlim_t limit = limit_files((rlim_t)next_file() + (lacks_files ? 1 : 20));
        if (!lacks_files) CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0, "the limit");
        struct endpoint *near = connect_to(world, listener);
        CHECK(setrlimit(RLIMIT_FSIZE, &size) == 0, "the limit");
        limit_files(limit);
        struct endpoint *far = accept_at(listener);
        CHECK(!shares(far), "%s", endpoint_name(far));
        endpoint_close(near);
        endpoint_close(far);
        CHECK(count_files() == before, "%d files are open, expected %d", count_files(), before);
    }
    listener_close(listener);
    world_close(world);
}

/* Counts that cannot be, in either direction. */
static void test_damage(void) {
    static const struct {
        uint64_t written, taken; /* expected: 10 to 10 + SHM_RING_BYTES; 0 to 10 */
    } counts[] = {{SHM_RING_BYTES + 11, 11},
                  {9, SHM_RING_BYTES},
                  {1ull << 63, 1ull << 63},
                  {0, 1ull << 32},
                  {UINT64_MAX, UINT64_MAX - SHM_RING_BYTES}};
    struct world *world = open_world();
    struct listener *listener = listen_here(world);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int sends = 0; sends < 2; sends++) {
            struct stranger stranger;
            struct error error = {0};
            char bytes[10] = "";
            const struct piece piece = {bytes, sizeof bytes};
            come(&stranger, listener, WHOLE, ALL_SEALS, true);
            struct shm_ring *in = &stranger.memory->rings[0], *out = &stranger.memory->rings[1];
            atomic_store(&in->written, 10);
            CHECK(endpoint_receive(stranger.host, "a hello", bytes, 10, LONG_S, &error) == OK &&
                      endpoint_send(stranger.host, "a word", &piece, 1, LONG_S, &error) == OK,
                  "%s", error.words);
            CHECK(atomic_load(&in->taken) == 10 && atomic_load(&out->written) == 10, "the counts");
            atomic_store(&in->written, counts[i].written);
            atomic_store(&out->taken, counts[i].taken);
            atomic_store(&in->sender_sleeps, UINT32_MAX);
            if (sends)
                endpoint_send(stranger.host, "a word", &piece, 1, LONG_S, &error);
            else
                endpoint_receive(stranger.host, "a hello", bytes, 1, LONG_S, &error);
            expect(&error, ERROR_PEER, ": the memory that it shares is damaged: ");
            leave(&stranger);
        }
    listener_close(listener);
    world_close(world);
}

/* A host that is interrupted before it has looked at the offer. */
static void test_interrupted(void) {
    for (int sends = 0; sends < 2; sends++) {
        struct world *world = open_world();
        struct listener *listener = listen_here(world);
        struct endpoint *near = connect_to(world, listener), *far = accept_at(listener);
        struct error error = {0};
        static uint8_t bytes[2 * SHM_RING_BYTES];
        const struct piece piece = {bytes, sizeof bytes};
        endpoint_interrupt(far);
        if (sends)
            endpoint_send(far, "a word", &piece, 1, LONG_S, &error);
        else
            endpoint_receive(far, "a hello", bytes, 1, LONG_S, &error);
        expect(&error, ERROR_PEER, ": the connection was ended on this side (0 of ");
        endpoint_close(near);
        endpoint_close(far);
        listener_close(listener);
        world_close(world);
    }
}

/* Bells without a reason wake, and no more. */
static void test_bells(void) {
    struct world *world = open_world();
    struct listener *listener = listen_here(world);
    struct stranger stranger;
    struct error error = {0};
    char byte, bells[1000] = "";
    come(&stranger, listener, WHOLE, ALL_SEALS, true);
    CHECK(send(stranger.socket, bells, sizeof bells, 0) == sizeof bells, "bells");
    endpoint_receive(stranger.host, "a hello", &byte, 1, 0.05, &error);
    expect(&error, ERROR_PEER, ": no byte of a hello for 0.05 s");
    leave(&stranger);
    listener_close(listener);
    world_close(world);
}

static bool is_rung(int socket) {
    char bells[8];
    return recv(socket, bells, sizeof bells, MSG_DONTWAIT) == 1;
}

/* A bell for who sleeps, where there is what it waits for; and who waits says so. */
static void test_rung(void) {
    struct world *world = open_world();
    struct listener *listener = listen_here(world);
    struct stranger stranger;
    struct error error = {0};
    static uint8_t bytes[SHM_RING_BYTES];
    const struct piece all = {bytes, SHM_RING_BYTES};
    come(&stranger, listener, WHOLE, ALL_SEALS, true);
    struct shm_ring *in = &stranger.memory->rings[0], *out = &stranger.memory->rings[1];
    try_byte(stranger.host, true, &error);
    CHECK(error.code == OK && !is_rung(stranger.second), "nobody sleeps: %s", error.words);
    atomic_store(&out->receiver_sleeps, 1);
    try_byte(stranger.host, true, &error);
    CHECK(is_rung(stranger.second) && atomic_load(&out->receiver_sleeps) == 0, "there are bytes");
    CHECK(atomic_load(&out->sender_sleeps) == 0, "it does not sleep");
    endpoint_send(stranger.host, "a word", &all, 1, 0.0, &error);
    CHECK(atomic_load(&out->sender_sleeps) == 1, "there is no room");

    atomic_store(&in->written, SHM_RING_BYTES);
    atomic_store(&in->sender_sleeps, 1);
    try_byte(stranger.host, false, &error);
    CHECK(error.code == OK && !is_rung(stranger.socket), "there is little room: %s", error.words);
    endpoint_receive(stranger.host, "bytes", bytes, SHM_RING_BYTES / 2, LONG_S, &error);
    CHECK(is_rung(stranger.socket) && atomic_load(&in->sender_sleeps) == 0, "there is room");
    CHECK(atomic_load(&in->receiver_sleeps) == 0, "it does not sleep");
    error = (struct error){0};
    endpoint_receive(stranger.host, "bytes", bytes, SHM_RING_BYTES, 0.0, &error);
    CHECK(atomic_load(&in->receiver_sleeps) == 1, "there are no bytes");
    leave(&stranger);
    listener_close(listener);
    world_close(world);
}

/* --- one that is killed --- */

/* Fills the ring, says so, and goes on for ever. */
static void send_for_ever(const struct listener *listener, int tells) {
    struct world *world = open_world();
    struct endpoint *endpoint = connect_to(world, listener);
    struct error error = {0};
    static uint8_t bytes[3 * SHM_RING_BYTES];
    const struct piece ring = {bytes, SHM_RING_BYTES};
    const struct piece more = {bytes + SHM_RING_BYTES, sizeof bytes - SHM_RING_BYTES};
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = stream_byte(5, i);
    endpoint_send(endpoint, "bytes", &ring, 1, 1e6, &error);
    if (write(tells, "", 1) == 1) endpoint_send(endpoint, "bytes", &more, 1, 1e6, &error);
}

/* What it had sent is received, its end is noticed at once, and of what both shared nothing is left. */
static void test_killed(void) {
    struct world *world = open_world();
    struct listener *listener = listen_here(world);
    struct error error = {0};
    uint8_t *bytes = NULL;
    int full[2];
    char byte;
    const int before = count_files();
    CHECK(memory_array(&bytes, 3 * SHM_RING_BYTES, "bytes", &error) == OK && pipe(full) == 0, "%s",
          error.words);
    const pid_t child = fork();
    if (child == 0) {
        send_for_ever(listener, full[1]);
        _exit(0);
    }
    struct endpoint *endpoint = accept_at(listener);
    CHECK(shares(endpoint), "%s", endpoint_name(endpoint));
    CHECK(read(full[0], &byte, 1) == 1, "the ring is full");
    CHECK(endpoint_receive(endpoint, "bytes", bytes, 1, LONG_S, &error) == OK, "%s", error.words);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    const double began = world_now(world);
    endpoint_receive(endpoint, "bytes", bytes + 1, 3 * SHM_RING_BYTES - 1, LONG_S, &error);
    expect(&error, ERROR_PEER, ": the connection was closed by the peer (");
    CHECK(world_now(world) - began < LONG_S / 4, "noticed after %g s", world_now(world) - began);
    const long long got = endpoint_received(endpoint);
    CHECK(got >= SHM_RING_BYTES, "%lld bytes", got);
    for (long long i = 0; i < got; i++)
        if (bytes[i] != stream_byte(5, (size_t)i)) {
            CHECK(false, "byte %lld", i);
            break;
        }
    error = (struct error){0};
    const struct piece piece = {bytes, 1};
    endpoint_send(endpoint, "a word", &piece, 1, LONG_S, &error);
    expect(&error, ERROR_PEER, ": the connection was closed by the peer (");
    endpoint_close(endpoint);
    close(full[0]);
    close(full[1]);
    CHECK(count_files() == before, "%d files are open, expected %d", count_files(), before);
    memory_free(bytes);
    listener_close(listener);
    world_close(world);
}

int main(void) {
    test_killed(); /* before there are threads */
    test_users();
    test_names();
    test_choice();
    test_offers();
    test_no_files();
    test_no_memory();
    test_damage();
    test_interrupted();
    test_bells();
    test_rung();
    test_woken(1);
    test_woken(3 * SHM_RING_BYTES);
    test_stream();
    return check_end();
}
