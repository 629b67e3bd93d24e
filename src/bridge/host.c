/* Waiting for the workers, and talking to one of them from its proxy. See host.h. */
#include "host.h"

#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"

#define LOOK_S 1.0    /* between two looks at who is still there */
#define SAY_S 5.0     /* between two lines about who is missing */
#define HELLO_S 5.0   /* a peer that connects says hello within this */
#define GOODBYE_S 2.0 /* for the last word */
enum { DEVICES_MOST = 256 };

/* --- who comes --- */

static int refuse(struct endpoint *endpoint, const char *words) {
    struct error ignored = {0};
    const struct piece piece = {words, strlen(words)};
    frame_write(endpoint, FRAME_FAILURE, 0, &piece, 1, HELLO_S, &ignored);
    endpoint_finish(endpoint, GOODBYE_S);
    endpoint_close(endpoint);
    return OK;
}

static int read_hello(struct endpoint *endpoint, struct hello *hello, struct error *error) {
    struct frame_header header;
    uint8_t bytes[HELLO_BYTES];
    RETURN_IF(frame_read_header(endpoint, "a hello", sizeof bytes, &header, HELLO_S, error));
    if (header.type != FRAME_HELLO)
        return error_set(error, ERROR_PEER, "%s: %s, expected a hello", endpoint_name(endpoint),
                         frame_type_words(header.type));
    RETURN_IF(frame_read_payload(endpoint, &header, bytes, HELLO_S, error));
    struct frame_reader reader = {.bytes = bytes, .length = header.bytes};
    return hello_get(hello, &reader, endpoint_name(endpoint), error);
}

static struct peer *find_peer(const struct host *host, int task, int device) {
    for (int i = 0; i < host->count; i++)
        if (host->peers[i].task == task && (device < 0 || host->peers[i].device == device))
            return &host->peers[i];
    return NULL;
}

static int check_place(const struct host *host, const struct hello *hello, const char *peer,
                       struct error *error) {
    const struct peer *sibling = find_peer(host, hello->task, -1);
    if (hello->task >= host->cluster->workers.count)
        return error_set(error, ERROR_PEER, "%s is worker %d, the cluster has workers 0 to %d", peer,
                         hello->task, host->cluster->workers.count - 1);
    if (hello->devices < 1 || hello->devices > DEVICES_MOST || hello->device >= hello->devices)
        return error_set(error, ERROR_PEER, "%s has device %d of %d, expected at most %d", peer,
                         hello->device, hello->devices, DEVICES_MOST);
    if (find_peer(host, hello->task, hello->device) || (sibling && sibling->devices != hello->devices))
        return error_set(error, ERROR_PEER, "%s is worker %d, which has come already", peer, hello->task);
    return OK;
}

static int add_peer(struct host *host, struct endpoint *endpoint, const struct hello *hello,
                    struct error *error) {
    if (host->count == host->room) {
        void *block = NULL;
        const int room = 2 * host->room + 8;
        RETURN_IF(memory_zeroed(&block, (size_t)room, sizeof(struct peer), "remote workers", error));
        if (host->count > 0) memcpy(block, host->peers, (size_t)host->count * sizeof(struct peer));
        memory_free(host->peers);
        host->peers = block;
        host->room = room;
    }
    struct peer *peer = &host->peers[host->count++];
    *peer = (struct peer){
        .endpoint = endpoint, .task = hello->task, .device = hello->device, .devices = hello->devices};
    memcpy(peer->device_name, hello->device_name, sizeof peer->device_name);
    snprintf(peer->name, sizeof peer->name, "worker %d (%.50s %s)", hello->task, endpoint_name(endpoint),
             hello->device_name);
    return OK;
}

/* One who has connected: comes in, or is refused. */
static int receive_peer(struct host *host, struct endpoint *endpoint, host_say *say, void *argument,
                        struct error *error) {
    struct hello hello;
    struct error why = {0};
    int code = read_hello(endpoint, &hello, &why);
    if (code == OK) code = terms_agree(host->terms, &hello.terms, endpoint_name(endpoint), &why);
    if (code == OK) code = check_place(host, &hello, endpoint_name(endpoint), &why);
    if (code == OK) return add_peer(host, endpoint, &hello, error);
    char words[600];
    snprintf(words, sizeof words, "refused: %s", why.words);
    say(argument, words);
    return refuse(endpoint, why.words);
}

/* --- until all are there --- */

static bool is_missing(const struct host *host, int task) {
    const struct peer *first = find_peer(host, task, -1);
    int come = 0;
    for (int i = 0; i < host->count; i++) come += host->peers[i].task == task;
    return !first || come < first->devices;
}

/* "waiting for worker 1 (host:2223), worker 2 (host:2224)"; empty: nobody is missing. */
static const char *name_missing(const struct host *host, char *words, size_t bytes) {
    size_t used = 0;
    words[0] = '\0';
    for (int task = 0; task < host->cluster->workers.count && used < bytes; task++)
        if (is_missing(host, task))
            used += (size_t)snprintf(words + used, bytes - used, "%sworker %d (%s)",
                                     used > 0 ? ", " : "waiting for ", task,
                                     host->cluster->workers.list[task].text);
    return words;
}

/* Those who wait see whom they wait for, or with no words that we are there, and we see who has gone. */
static void tell_waiting(struct host *host, const char *words, host_say *say, void *argument) {
    const struct piece piece = {words, strlen(words)};
    for (int i = 0; i < host->count;) {
        struct error why = {0};
        if (frame_write(host->peers[i].endpoint, FRAME_HEARTBEAT, 0, &piece, 1, HELLO_S, &why) == OK) {
            i++;
            continue;
        }
        char gone[128];
        snprintf(gone, sizeof gone, "%s has gone again", host->peers[i].name);
        say(argument, gone);
        endpoint_close(host->peers[i].endpoint);
        host->peers[i] = host->peers[--host->count];
    }
}

static int by_place(const void *a, const void *b) {
    const struct peer *x = a, *y = b;
    return x->task != y->task ? x->task - y->task : x->device - y->device;
}

int host_open(struct host *host, struct world *world, const struct cluster *cluster,
              const struct terms *terms, double patience_s, host_say *say, void *argument,
              struct error *error) {
    char words[500];
    *host = (struct host){.cluster = cluster, .terms = terms};
    RETURN_IF(endpoint_listen(world, cluster->ps.list[cluster->task].text, &host->listener, error));
    const double began = world_now(world);
    double said = began, looked = began;
    while (name_missing(host, words, sizeof words)[0] != '\0') {
        struct endpoint *endpoint = NULL;
        if (world_interrupted()) return error_set(error, ERROR_INTERRUPTED, "interrupted while %s", words);
        if (world_now(world) - began > patience_s)
            return error_set(error, ERROR_PEER, "gave up after %g s %s", patience_s, words);
        RETURN_IF(listener_accept(host->listener, &endpoint, LOOK_S, error));
        if (endpoint) RETURN_IF(receive_peer(host, endpoint, say, argument, error));
        const double now = world_now(world);
        const bool speaks = now - said >= SAY_S;
        if (now - looked < LOOK_S) continue;
        looked = now;
        tell_waiting(host, speaks ? name_missing(host, words, sizeof words) : "", say, argument);
        if (!speaks) continue;
        said = now;
        say(argument, words);
    }
    listener_close(host->listener);
    host->listener = NULL;
    qsort(host->peers, (size_t)host->count, sizeof *host->peers, by_place);
    return OK;
}

void host_close(struct host *host) {
    for (int i = 0; i < host->count; i++) endpoint_close(host->peers[i].endpoint);
    listener_close(host->listener);
    memory_free(host->peers);
    *host = (struct host){0};
}

int host_welcome(struct host *host, uint64_t seed, int sharding, double patience_s, struct error *error) {
    for (int i = 0; i < host->count; i++) {
        const struct welcome welcome = {
            .worker = i, .workers = host->count, .seed = seed, .sharding = sharding};
        uint8_t bytes[WELCOME_BYTES];
        struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
        RETURN_IF(welcome_put(&welcome, &writer, error));
        const struct piece piece = {bytes, writer.used};
        RETURN_IF(frame_write(host->peers[i].endpoint, FRAME_WELCOME, 0, &piece, 1, patience_s, error));
    }
    return OK;
}

/* --- one step --- */

/* The worker says itself why it ends. */
static int read_failure(struct peer *peer, const struct frame_header *header, double patience_s,
                        struct error *error) {
    char words[500] = "";
    if (header->bytes >= sizeof words)
        return error_set(error, ERROR_PEER, "%s: failed with %llu bytes of words, expected less than %zu",
                         peer->name, (unsigned long long)header->bytes, sizeof words);
    RETURN_IF(frame_read_payload(peer->endpoint, header, words, patience_s, error));
    return error_set(error, ERROR_PEER, "%s: %s", peer->name, words);
}

int peer_compute(struct peer *peer, const struct request *request, const float *weights, float *gradient,
                 float *loss, size_t floats, double patience_s, struct error *error) {
    uint8_t bytes[REQUEST_BYTES], answer[LOSS_BYTES];
    request_put(request, bytes);
    const struct piece pieces[] = {{bytes, sizeof bytes}, {weights, floats * sizeof(float)}};
    struct frame_header header;
    int code = frame_write(peer->endpoint, FRAME_WEIGHTS, 0, pieces, 2, patience_s, error);
    if (code == OK)
        code = frame_read_header(peer->endpoint, "a gradient", sizeof answer + floats * sizeof(float),
                                 &header, patience_s, error);
    if (code != OK) return error_prefix(error, "%s: ", peer->name);
    if (header.type == FRAME_FAILURE) return read_failure(peer, &header, patience_s, error);
    RETURN_IF(
        frame_expect(peer->endpoint, &header, FRAME_GRADIENT, sizeof answer + floats * sizeof(float), error));
    RETURN_IF(endpoint_receive(peer->endpoint, "a gradient", answer, sizeof answer, patience_s, error));
    RETURN_IF(
        endpoint_receive(peer->endpoint, "a gradient", gradient, floats * sizeof(float), patience_s, error));
    struct frame_reader reader = {.bytes = answer, .length = sizeof answer};
    *loss = (float)frame_get_f64(&reader);
    return OK;
}

void host_finish(struct host *host, const struct finish *finish) {
    uint8_t bytes[FINISH_BYTES];
    struct error ignored = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    if (finish_put(finish, &writer, &ignored) != OK) return;
    const struct piece piece = {bytes, writer.used};
    for (int i = 0; i < host->count; i++)
        frame_write(host->peers[i].endpoint, FRAME_GOODBYE, 0, &piece, 1, GOODBYE_S, &ignored);
    for (int i = 0; i < host->count; i++) endpoint_finish(host->peers[i].endpoint, GOODBYE_S);
}
