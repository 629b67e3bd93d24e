/* Waiting for the workers, and for the other parameter servers. What is said to those who have come is in
 * peers.c. See host.h. */
#include "host.h"

#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/text.h"

#define ACCEPT_S 0.2 /* for somebody to come, or to let us in, at a time */
#define GUEST_S 1e-3 /* the same while one of those who came is still to speak */
#define LOOK_S 1.0   /* between two looks at who is still there */
#define SAY_S 5.0    /* between two lines about who is missing */
#define HELLO_S 5.0  /* a peer that connects says hello within this */
enum { DEVICES_MOST = 256 };

/* --- who comes --- */

static const struct address *address_of(const struct host *host, int ps) {
    return &host->settings.cluster->ps.list[ps];
}

/* A trainer waits for the words and then closes; what a stranger does, nobody waits for. */
static void refuse(struct host *host, struct endpoint *endpoint, const char *why, bool is_ours) {
    struct error ignored = {0};
    const struct piece piece = {why, strlen(why)};
    char words[600];
    snprintf(words, sizeof words, "refused: %s", why);
    host->settings.say(host->settings.argument, words);
    frame_write(endpoint, FRAME_FAILURE, 0, &piece, 1, HOST_GOODBYE_S, &ignored);
    if (is_ours) endpoint_finish(endpoint, HOST_GOODBYE_S);
    endpoint_close(endpoint);
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

static int check_worker(const struct host *host, const struct hello *hello, const char *peer,
                        struct error *error) {
    const struct peer *sibling = find_peer(host, hello->task, -1);
    const int workers = host->settings.cluster->workers.count;
    if (hello->task >= workers)
        return error_set(error, ERROR_PEER, "%s is worker %d, the cluster has workers 0 to %d", peer,
                         hello->task, workers - 1);
    if (hello->devices < 1 || hello->devices > DEVICES_MOST || hello->device >= hello->devices)
        return error_set(error, ERROR_PEER, "%s has device %d of %d, expected at most %d", peer,
                         hello->device, hello->devices, DEVICES_MOST);
    if (find_peer(host, hello->task, hello->device) || (sibling && sibling->devices != hello->devices))
        return error_set(error, ERROR_PEER, "%s is worker %d, which has come already", peer, hello->task);
    return OK;
}

/* In words that a peer reads, too. */
static const char *our_name(const struct host *host) {
    return host->settings.cluster->mirrored ? "the process that it came to" : "the parameter server";
}

static int check_leader(const struct host *host, const struct hello *hello, const char *peer,
                        struct error *error) {
    if (host->settings.cluster->task == 0 || host->leader)
        return error_set(error, ERROR_PEER, "%s is %s 0, which has come already", peer,
                         cluster_server(host->settings.cluster));
    return fingerprints_agree(host->settings.fingerprint, &hello->fingerprint, our_name(host), peer, error);
}

static int add_peer(struct host *host, struct endpoint *endpoint, const struct hello *hello,
                    struct error *error) {
    if (host->count == host->room) {
        const int room = 2 * host->room + 8;
        RETURN_IF(memory_grow(&host->peers, host->count, room, "remote workers", error));
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

/* --- who has gone again --- */

static void say_gone(struct host *host, const char *name) {
    char words[128];
    snprintf(words, sizeof words, "%s has gone again", name);
    host->settings.say(host->settings.argument, words);
}

static void drop_peer(struct host *host, int index) {
    say_gone(host, host->peers[index].name);
    endpoint_close(host->peers[index].endpoint);
    host->peers[index] = host->peers[--host->count];
}

static void drop_leader(struct host *host) {
    char name[64];
    snprintf(name, sizeof name, "the %s 0", cluster_server(host->settings.cluster));
    say_gone(host, name);
    endpoint_close(host->leader);
    host->leader = NULL;
}

static bool has_ended(struct endpoint *endpoint) {
    bool ended = false;
    uint8_t byte;
    endpoint_peek(endpoint, &byte, 1, 0.0, &ended);
    return ended;
}

static void drop_gone(struct host *host) {
    for (int i = host->count - 1; i >= 0; i--)
        if (has_ended(host->peers[i].endpoint)) drop_peer(host, i);
    if (host->leader && has_ended(host->leader)) drop_leader(host);
}

/* What it is to build. */
static int tell_settings(const struct host *host, struct endpoint *endpoint, struct error *error) {
    uint8_t bytes[SETTINGS_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    RETURN_IF(settings_put(host->settings.config, &writer, error));
    const struct piece piece = {bytes, writer.used};
    return frame_write(endpoint, FRAME_CONFIG, 0, &piece, 1, HELLO_S, error);
}

/* One who has said something: comes in, or is refused. Who has gone makes room for who comes again. */
static int receive_peer(struct host *host, struct endpoint *endpoint, struct error *error) {
    struct hello *hello = &host->hello;
    struct error why = {0};
    const char *name = endpoint_name(endpoint);
    int code = read_hello(endpoint, hello, &why);
    const bool is_ours = code == OK;
    if (is_ours) drop_gone(host);
    if (code == OK) code = programs_agree(hello->program, our_name(host), name, &why);
    if (code == OK) code = settings_agree(host->settings.config, &hello->agreed, our_name(host), name, &why);
    if (code == OK)
        code = hello->leader ? check_leader(host, hello, name, &why) : check_worker(host, hello, name, &why);
    if (code == OK && hello->leader) {
        host->leader = endpoint;
        return OK;
    }
    if (code == OK) code = tell_settings(host, endpoint, &why);
    if (code == OK) return add_peer(host, endpoint, hello, error);
    refuse(host, endpoint, why.words, is_ours);
    return OK;
}

/* --- those who build what they compute with --- */

static int read_ready(const struct host *host, struct endpoint *endpoint, struct error *error) {
    struct frame_header header;
    struct fingerprint fingerprint;
    uint8_t bytes[500] = {0};
    RETURN_IF(frame_read_header(endpoint, "a ready", sizeof bytes - 1, &header, HELLO_S, error));
    if (header.type != FRAME_FAILURE)
        RETURN_IF(frame_expect(endpoint, &header, FRAME_READY, READY_BYTES, error));
    RETURN_IF(frame_read_payload(endpoint, &header, bytes, HELLO_S, error));
    if (header.type == FRAME_FAILURE) /* it says itself why it goes */
        return error_set(error, ERROR_PEER, "%s: %s", endpoint_name(endpoint), (const char *)bytes);
    struct frame_reader reader = {.bytes = bytes, .length = header.bytes};
    RETURN_IF(fingerprint_get(&fingerprint, &reader, endpoint_name(endpoint), error));
    return fingerprints_agree(host->settings.fingerprint, &fingerprint, our_name(host),
                              endpoint_name(endpoint), error);
}

/* One that is ready, or has failed. */
static void hear_peers(struct host *host) {
    for (int i = host->count - 1; i >= 0; i--) {
        struct peer *peer = &host->peers[i];
        struct error why = {0};
        uint8_t bytes[FRAME_HEADER_BYTES + READY_BYTES];
        bool ended = false;
        if (peer->ready ||
            endpoint_peek(peer->endpoint, bytes, FRAME_HEADER_BYTES, 0.0, &ended) < FRAME_HEADER_BYTES)
            continue;
        peer->ready = read_ready(host, peer->endpoint, &why) == OK;
        if (peer->ready) continue;
        refuse(host, peer->endpoint, why.words, true);
        *peer = host->peers[--host->count];
    }
}

/* --- guests: they have connected, and said nothing yet that is complete; nobody waits for them --- */

static void add_guest(struct host *host, struct endpoint *endpoint) {
    if (host->guest_count == HOST_GUESTS) { /* the first has had the longest time */
        endpoint_close(host->guests[0].endpoint);
        memmove(host->guests, host->guests + 1, (HOST_GUESTS - 1) * sizeof *host->guests);
        host->guest_count--;
    }
    host->guests[host->guest_count++] =
        (struct guest){.endpoint = endpoint, .since_s = world_now(host->settings.world)};
}

/* A whole frame is there, or something that will never be one. */
static bool has_spoken(const uint8_t *bytes, size_t count, bool ended) {
    struct frame_header header;
    struct error ignored = {0};
    if (ended) return true;
    if (count < FRAME_HEADER_BYTES) return false;
    if (frame_unpack_header(&header, bytes, HELLO_BYTES, "", &ignored) != OK) return true;
    return count >= FRAME_HEADER_BYTES + header.bytes;
}

/* Whether it is no guest any more. */
static int hear_guest(struct host *host, struct guest *guest, bool *is_gone, struct error *error) {
    uint8_t bytes[FRAME_HEADER_BYTES + HELLO_BYTES];
    bool ended = false;
    const size_t count = endpoint_peek(guest->endpoint, bytes, sizeof bytes, 0.0, &ended);
    *is_gone = true;
    if (has_spoken(bytes, count, ended)) return receive_peer(host, guest->endpoint, error);
    *is_gone = world_now(host->settings.world) - guest->since_s >= HELLO_S;
    if (!*is_gone) return OK;
    char words[200];
    if (count == 0)
        snprintf(words, sizeof words, "%s: no byte of a hello for %g s", endpoint_name(guest->endpoint),
                 HELLO_S);
    else
        snprintf(words, sizeof words, "%s: only %zu bytes of a hello in %g s", endpoint_name(guest->endpoint),
                 count, HELLO_S);
    refuse(host, guest->endpoint, words, false);
    return OK;
}

static int hear_guests(struct host *host, struct error *error) {
    for (int g = 0; g < host->guest_count;) {
        bool is_gone = false;
        struct guest guest = host->guests[g];
        const int code = hear_guest(host, &guest, &is_gone, error);
        if (is_gone)
            memmove(&host->guests[g], &host->guests[g + 1],
                    (size_t)(--host->guest_count - g) * sizeof *host->guests);
        else
            g++;
        RETURN_IF(code);
    }
    return OK;
}

/* --- how long --- */

static int check_waiting(const struct host *host, double waited_s, const char *words, struct error *error) {
    const struct host_settings *settings = &host->settings;
    if (world_interrupted()) return error_set(error, ERROR_INTERRUPTED, "interrupted while %s", words);
    if (settings->give_up && atomic_load(settings->give_up))
        return error_set(error, ERROR_PEER, "gave up %s: this process ends", words);
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
    uint8_t bytes[FRAME_HEADER_BYTES + 601] = {0};
    struct frame_header header;
    struct error ignored = {0};
    bool ended = false;
    while (true) {
        const size_t count = endpoint_peek(follower->endpoint, bytes, sizeof bytes - 1, 0.0, &ended);
        *gone = ended;
        if (count < FRAME_HEADER_BYTES) return OK;
        *gone = false;
        if (frame_unpack_header(&header, bytes, sizeof bytes - 1 - FRAME_HEADER_BYTES, "", &ignored) != OK ||
            (header.type != FRAME_HEARTBEAT && header.type != FRAME_FAILURE))
            return OK;
        const size_t whole = FRAME_HEADER_BYTES + (size_t)header.bytes;
        *gone = ended;
        if (count < whole) return OK;
        bytes[whole] = '\0';
        if (header.type == FRAME_FAILURE)
            return error_set(error, ERROR_PEER, "%s refuses: %s", follower->name,
                             (const char *)bytes + FRAME_HEADER_BYTES);
        *gone = endpoint_receive(follower->endpoint, "a heartbeat", bytes, whole, HELLO_S, &ignored) != OK;
        if (*gone) return OK;
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
            say_gone(host, follower->name);
            endpoint_close(follower->endpoint);
            follower->endpoint = NULL;
        }
        if (endpoint_connect(host->settings.world, address_of(host, f + 1)->text, &follower->endpoint,
                             ACCEPT_S, &why) != OK)
            continue;
        if (frame_write(follower->endpoint, FRAME_HELLO, 0, &piece, 1, HELLO_S, &why) == OK) continue;
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
    const struct peer *first = find_peer(host, task, -1);
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

/* Those who wait see whom they wait for, or with no words that we are there, and we see who has gone. */
static void tell_waiting(struct host *host, const char *words) {
    const struct piece piece = {words, strlen(words)};
    struct error why = {0};
    drop_gone(host);
    for (int i = host->count - 1; i >= 0; i--)
        if (frame_write(host->peers[i].endpoint, FRAME_HEARTBEAT, 0, &piece, 1, HELLO_S, &why) != OK)
            drop_peer(host, i);
    if (host->leader && frame_write(host->leader, FRAME_HEARTBEAT, 0, &piece, 1, HELLO_S, &why) != OK)
        drop_leader(host);
}

static int by_place(const void *a, const void *b) {
    const struct peer *x = a, *y = b;
    return x->task != y->task ? x->task - y->task : x->device - y->device;
}

static void close_guests(struct host *host) {
    for (int g = 0; g < host->guest_count; g++) endpoint_close(host->guests[g].endpoint);
    host->guest_count = 0;
}

/* Somebody who has come is still to speak. */
static bool is_busy(const struct host *host) {
    for (int i = 0; i < host->count; i++)
        if (!host->peers[i].ready) return true;
    return host->guest_count > 0;
}

int host_open(struct host *host, const struct host_settings *settings, struct error *error) {
    struct world *world = settings->world;
    char words[500];
    *host = (struct host){.settings = *settings};
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
            tell_waiting(host, speaks ? words : "");
            if (speaks) {
                said = looked;
                settings->say(settings->argument, words);
            }
        }
        RETURN_IF(listener_accept(host->listener, &endpoint, is_busy(host) ? GUEST_S : ACCEPT_S, error));
        if (endpoint) add_guest(host, endpoint);
        RETURN_IF(hear_guests(host, error));
        hear_peers(host);
    }
    listener_close(host->listener);
    host->listener = NULL;
    close_guests(host);
    qsort(host->peers, (size_t)host->count, sizeof *host->peers, by_place);
    return OK;
}

void host_close(struct host *host) {
    close_guests(host);
    for (int i = 0; i < host->count; i++) endpoint_close(host->peers[i].endpoint);
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
