/* Waits for the workers and for the other parameter servers. handshake.c decides who comes in; what the host
 * says to those that have connected is in peers.c. See host.h. */
#include "host.h"

#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/text.h"
#include "handshake.h"

enum { WORDS_BYTES = 600 }; /* of a follower, at most */

#define ACCEPT_S 0.2 /* for somebody to come, or to let us in, at a time */
#define GUEST_S 1e-3 /* the same while one of those who came is still to speak */
#define LOOK_S 1.0   /* between two checks of who is still connected */
#define SAY_S 5.0    /* between two lines about who is missing */

static const struct address *address_of(const struct host *host, int ps) {
    return &host->settings.cluster->ps.list[ps];
}

/* --- how long --- */

static int check_waiting(const struct host *host, double waited_s, const char *words, struct error *error) {
    const struct host_settings *settings = &host->settings;
    if (world_interrupted()) return error_set(error, ERROR_INTERRUPTED, "interrupted while %s", words);
    if (settings->give_up && atomic_load(settings->give_up))
        return error_set(error, ERROR_PEER, "%s", settings->because->words);
    if (waited_s > settings->start_s)
        return error_set(error, ERROR_PEER, "gave up after %g s %s", settings->start_s, words);
    return OK;
}

/* --- the other parameter servers --- */

static int open_followers(struct host *host, struct error *error) {
    if (host->settings.cluster->task > 0) return OK;
    host->follower_count = host->settings.cluster->ps.count - 1;
    RETURN_IF(memory_array(&host->followers, host->follower_count, "parameter servers", error));
    for (int f = 0; f < host->follower_count; f++)
        snprintf(host->followers[f].name, sizeof host->followers[f].name, "the %s %d (%.60s)",
                 cluster_server(host->settings.cluster), f + 1, address_of(host, f + 1)->text);
    return OK;
}

/* What it says while others are missing is that it is there, or why it refuses us; the rest is read once all
 * have come. *gone: it is not there any more. */
static int look_at(const struct follower *follower, bool *gone, struct error *error) {
    uint8_t bytes[FRAME_HEADER_BYTES + WORDS_BYTES];
    struct frame_header header;
    struct error ignored = {0};
    bool ended = false;
    while (true) {
        char words[WORDS_BYTES + 1] = "";
        const size_t count = endpoint_peek(follower->endpoint, bytes, sizeof bytes, 0.0, &ended);
        *gone = ended;
        if (count < FRAME_HEADER_BYTES) return OK;
        *gone = false;
        if (frame_unpack_header(&header, bytes, WORDS_BYTES, "", &ignored) != OK ||
            (header.type != FRAME_HEARTBEAT && header.type != FRAME_FAILURE))
            return OK;
        *gone = ended;
        if (count < FRAME_HEADER_BYTES + (size_t)header.bytes) return OK;
        *gone = frame_read_header(follower->endpoint, "a heartbeat", WORDS_BYTES, &header, HANDSHAKE_S,
                                  &ignored) != OK ||
                frame_read_payload(follower->endpoint, &header, words, HANDSHAKE_S, &ignored) != OK;
        if (*gone) return OK;
        if (header.type == FRAME_FAILURE)
            return error_set(error, ERROR_PEER, "%s refuses: %s", follower->name, words);
    }
}

/* One try at each that is not there yet, or has gone again; why it failed is said when all the time is over.
 */
static int try_followers(struct host *host, struct error *error) {
    struct hello *hello = &host->hello;
    uint8_t bytes[HELLO_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    *hello = (struct hello){.leader = true, .fingerprint = *host->settings.fingerprint};
    hello->agreed.value = *host->settings.config;
    snprintf(hello->program, sizeof hello->program, "%s", TRAINER_VERSION);
    RETURN_IF(hello_put(hello, &writer, error));
    const struct piece piece = {bytes, writer.used};
    for (int f = 0; f < host->follower_count; f++) {
        struct follower *follower = &host->followers[f];
        struct error why = {0};
        if (follower->endpoint) {
            bool gone = false;
            RETURN_IF(look_at(follower, &gone, error));
            if (!gone) continue;
            handshake_say_gone(host, follower->name);
            endpoint_close(follower->endpoint);
            follower->endpoint = NULL;
        }
        const int code = endpoint_connect(host->settings.world, address_of(host, f + 1)->text,
                                          &follower->endpoint, ACCEPT_S, &why);
        if (code == ERROR_PEER) continue;
        if (code != OK) return error_set(error, code, "%s", why.words);
        if (frame_write(follower->endpoint, FRAME_HELLO, 0, &piece, 1, HANDSHAKE_S, &why) == OK) continue;
        endpoint_close(follower->endpoint);
        follower->endpoint = NULL;
    }
    return OK;
}

/* Its next word, which may be long in coming. */
static int await_word(const struct host *host, const struct follower *follower, struct error *error) {
    const double began = world_now(host->settings.world);
    char words[150];
    bool ended = false;
    uint8_t byte;
    snprintf(words, sizeof words, "waiting for %s", follower->name);
    while (endpoint_peek(follower->endpoint, &byte, 1, ACCEPT_S, &ended) == 0 && !ended)
        RETURN_IF(check_waiting(host, world_now(host->settings.world) - began, words, error));
    return OK;
}

/* All workers have come to it, too. */
static int await_follower(struct host *host, struct follower *follower, struct welcome *welcome,
                          struct error *error) {
    const double timeout_s = host->settings.timeout_s;
    while (true) {
        struct frame_header header;
        char words[WELCOME_BYTES > 600 ? WELCOME_BYTES : 600] = "";
        RETURN_IF(await_word(host, follower, error));
        int code =
            frame_read_header(follower->endpoint, "a welcome", sizeof words - 1, &header, timeout_s, error);
        if (code == OK) code = frame_read_payload(follower->endpoint, &header, words, timeout_s, error);
        if (code != OK) return error_prefix(error, "%s: ", follower->name);
        struct frame_reader reader = {.bytes = (const uint8_t *)words, .length = header.bytes};
        if (header.type == FRAME_HEARTBEAT) continue;
        if (header.type == FRAME_WELCOME) return welcome_get(welcome, &reader, follower->name, error);
        if (header.type == FRAME_FAILURE)
            return error_set(error, ERROR_PEER, "%s refuses: %s", follower->name, words);
        return error_set(error, ERROR_PEER, "%s: %s, expected a welcome", follower->name,
                         frame_type_words(header.type));
    }
}

/* --- until all are there --- */

static bool is_missing(const struct host *host, int task) {
    const struct peer *first = handshake_find_peer(host, task, -1);
    int come = 0;
    for (int i = 0; i < host->count; i++) come += host->peers[i].task == task && host->peers[i].ready;
    return !first || come < first->devices;
}

static void add_name(struct text *names, const char *what, int task, const char *address) {
    text_add(names, "%s%s %d (%s)", names->used > 0 ? ", " : "waiting for ", what, task, address);
}

/* "waiting for worker 1 (host:2223), worker 2 (host:2224)"; empty: nobody is missing. */
static const char *name_missing(const struct host *host, char *words, size_t bytes) {
    const struct cluster *cluster = host->settings.cluster;
    struct text names = text_into(words, bytes);
    char server[64];
    snprintf(server, sizeof server, "the %s", cluster_server(cluster));
    if (cluster->task > 0 && !host->leader) add_name(&names, server, 0, address_of(host, 0)->text);
    for (int f = 0; f < host->follower_count; f++)
        if (!host->followers[f].endpoint) add_name(&names, server, f + 1, address_of(host, f + 1)->text);
    for (int task = 0; task < cluster->workers.count; task++)
        if (is_missing(host, task)) add_name(&names, "worker", task, cluster->workers.list[task].text);
    return words;
}

static int by_place(const void *a, const void *b) {
    const struct peer *x = a, *y = b;
    return x->task != y->task ? x->task - y->task : x->device - y->device;
}

int host_open(struct host *host, const struct host_settings *settings, struct error *error) {
    struct world *world = settings->world;
    char words[500];
    *host = (struct host){.settings = *settings};
    const int descriptors = world_descriptors();
    host->guests_most = descriptors / 4 < HOST_GUESTS ? descriptors / 4 + 1 : HOST_GUESTS;
    RETURN_IF(secret_use(&settings->cluster->secret, settings->cluster->insecure, world, error));
    if (settings->cluster->tcp_alone) endpoint_keep_to_tcp(world);
    RETURN_IF(
        endpoint_listen(world, address_of(host, settings->cluster->task)->text, &host->listener, error));
    RETURN_IF(open_followers(host, error));
    const double began = world_now(world);
    double said = began, looked = began - LOOK_S;
    while (name_missing(host, words, sizeof words)[0] != '\0') {
        struct endpoint *endpoint = NULL;
        RETURN_IF(check_waiting(host, world_now(world) - began, words, error));
        if (world_now(world) - looked >= LOOK_S) {
            const bool speaks = world_now(world) - said >= SAY_S;
            looked = world_now(world);
            RETURN_IF(try_followers(host, error));
            handshake_tell(host, speaks ? words : "");
            if (speaks) {
                said = looked;
                settings->say(settings->argument, words);
            }
        }
        RETURN_IF(
            listener_accept(host->listener, &endpoint, handshake_is_busy(host) ? GUEST_S : ACCEPT_S, error));
        if (endpoint) handshake_begin(host, endpoint);
        if (listener_is_crowded(host->listener)) handshake_make_room(host);
        RETURN_IF(handshake_hear(host, error));
    }
    listener_close(host->listener);
    host->listener = NULL;
    handshake_end(host);
    qsort(host->peers, (size_t)host->count, sizeof *host->peers, by_place);
    return OK;
}

void host_close(struct host *host) {
    handshake_end(host);
    for (int i = 0; i < host->count; i++) {
        packed_close(&host->peers[i].packed);
        endpoint_close(host->peers[i].endpoint);
    }
    for (int f = 0; host->followers && f < host->follower_count; f++)
        endpoint_close(host->followers[f].endpoint);
    endpoint_close(host->leader);
    listener_close(host->listener);
    memory_free(host->peers);
    memory_free(host->followers);
    *host = (struct host){0};
}

static int send_welcome(struct endpoint *endpoint, const struct welcome *welcome, double timeout_s,
                        struct error *error) {
    uint8_t bytes[WELCOME_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    RETURN_IF(welcome_put(welcome, &writer, error));
    const struct piece piece = {bytes, writer.used};
    return frame_write(endpoint, FRAME_WELCOME, 0, &piece, 1, timeout_s, error);
}

int host_welcome(struct host *host, const struct welcome *welcome, struct error *error) {
    const double timeout_s = host->settings.timeout_s;
    struct welcome own = *welcome;
    const uint64_t floats = host->settings.fingerprint->floats;
    uint64_t end = welcome->end;
    own.workers = host->count;
    for (int f = 0; f < host->follower_count; f++) {
        struct follower *follower = &host->followers[f];
        struct welcome theirs;
        RETURN_IF(await_follower(host, follower, &theirs, error));
        if (theirs.workers != host->count || theirs.begin != end || theirs.end <= end || theirs.end > floats)
            return error_set(error, ERROR_PEER,
                             "%s has floats %llu to %llu of %llu for %d workers, expected from %llu for %d",
                             follower->name, (unsigned long long)theirs.begin, (unsigned long long)theirs.end,
                             (unsigned long long)floats, theirs.workers, (unsigned long long)end,
                             host->count);
        follower->begin = end;
        follower->end = end = theirs.end;
    }
    if (host->leader) RETURN_IF(send_welcome(host->leader, &own, timeout_s, error));
    for (int i = 0; i < host->count; i++) {
        own.worker = i;
        RETURN_IF(send_welcome(host->peers[i].endpoint, &own, timeout_s, error));
    }
    return OK;
}
