/* The handshake, and who has gone again before all were there. See handshake.h. */
#include "handshake.h"

#include <string.h>
#include "../base/memory.h"

enum { LAST_WORDS_BYTES = 499 };
_Static_assert(FRAME_HEADER_BYTES + HELLO_BYTES <= ENDPOINT_AHEAD_BYTES, "a whole hello can be looked at");

/* --- who comes --- */

static void close_guest(struct guest *guest) {
    endpoint_close(guest->endpoint);
    guest->endpoint = NULL;
}

/* It may learn why: what settings were expected here, or who has come. */
static bool is_trusted(const struct endpoint *endpoint) {
    return endpoint_is_encrypted(endpoint) || endpoint_is_loopback(endpoint);
}

/* A trainer takes the words and then closes, for which it has some time; what a stranger does is its own. */
static void refuse(struct host *host, struct guest *guest, const char *why, bool is_ours) {
    struct error ignored = {0};
    const char *told = is_trusted(guest->endpoint) ? why : "its log says why";
    const struct piece piece = {told, strlen(told)};
    char words[600];
    snprintf(words, sizeof words, "refused: %s", why);
    host->settings.say(host->settings.argument, words);
    frame_write(guest->endpoint, FRAME_FAILURE, 0, &piece, 1, 0.0, &ignored);
    guest->leaving = is_ours;
    guest->since_s = world_now(host->settings.world);
    if (!is_ours) close_guest(guest);
}

static int read_hello(struct endpoint *endpoint, struct hello *hello, struct error *error) {
    struct frame_header header;
    uint8_t bytes[HELLO_BYTES];
    RETURN_IF(frame_read_header(endpoint, "a hello", sizeof bytes, &header, HANDSHAKE_S, error));
    if (header.type != FRAME_HELLO)
        return error_set(error, ERROR_PEER, "%s: %s, expected a hello", endpoint_name(endpoint),
                         frame_type_words(header.type));
    RETURN_IF(frame_read_payload(endpoint, &header, bytes, HANDSHAKE_S, error));
    struct frame_reader reader = {.bytes = bytes, .length = header.bytes};
    return hello_get(hello, &reader, endpoint_name(endpoint), error);
}

struct peer *handshake_find_peer(const struct host *host, int task, int device) {
    for (int i = 0; i < host->count; i++)
        if (host->peers[i].task == task && (device < 0 || host->peers[i].device == device))
            return &host->peers[i];
    return NULL;
}

static int check_worker(const struct host *host, const struct hello *hello, const char *peer,
                        struct error *error) {
    const struct peer *sibling = handshake_find_peer(host, hello->task, -1);
    const int workers = host->settings.cluster->workers.count;
    if (hello->task >= workers)
        return error_set(error, ERROR_PEER, "%s is worker %d, the cluster has workers 0 to %d", peer,
                         hello->task, workers - 1);
    if (hello->devices < 1 || hello->devices > DEVICES_MOST || hello->device >= hello->devices)
        return error_set(error, ERROR_PEER, "%s has device %d of %d, expected at most %d", peer,
                         hello->device, hello->devices, DEVICES_MOST);
    if (handshake_find_peer(host, hello->task, hello->device) ||
        (sibling && (sibling->process != hello->process || sibling->devices != hello->devices)))
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
    *peer = (struct peer){.endpoint = endpoint,
                          .task = hello->task,
                          .device = hello->device,
                          .devices = hello->devices,
                          .process = hello->process};
    memcpy(peer->device_name, hello->device_name, sizeof peer->device_name);
    snprintf(peer->name, sizeof peer->name, "worker %d (%.50s %s)", hello->task, endpoint_name(endpoint),
             hello->device_name);
    return OK;
}

/* --- who has gone again --- */

void handshake_say_gone(struct host *host, const char *name) {
    char words[MEMBER_NAME_BYTES + 20];
    snprintf(words, sizeof words, "%s has gone again", name);
    host->settings.say(host->settings.argument, words);
}

static void drop_peer(struct host *host, int index) {
    handshake_say_gone(host, host->peers[index].name);
    endpoint_close(host->peers[index].endpoint);
    host->peers[index] = host->peers[--host->count];
}

static void drop_leader(struct host *host) {
    char name[64];
    snprintf(name, sizeof name, "the %s 0", cluster_server(host->settings.cluster));
    handshake_say_gone(host, name);
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
    return frame_write(endpoint, FRAME_CONFIG, 0, &piece, 1, HANDSHAKE_S, error);
}

/* One who has said something: comes in, or is refused. Who has gone makes room for who comes again. */
static int receive_peer(struct host *host, struct guest *guest, struct error *error) {
    struct hello *hello = &host->hello;
    struct endpoint *endpoint = guest->endpoint;
    struct error why = {0};
    const char *name = endpoint_name(endpoint);
    int code = read_hello(endpoint, hello, &why);
    const bool is_ours = code == OK;
    if (is_ours) drop_gone(host);
    if (code == OK) code = programs_agree(hello->program, our_name(host), name, &why);
    if (code == OK) code = settings_agree(host->settings.config, &hello->agreed, our_name(host), name, &why);
    if (code == OK)
        code = hello->leader ? check_leader(host, hello, name, &why) : check_worker(host, hello, name, &why);
    if (code == OK && !hello->leader) code = tell_settings(host, endpoint, &why);
    if (code == OK && !hello->leader) RETURN_IF(add_peer(host, endpoint, hello, error));
    if (code == OK && hello->leader) host->leader = endpoint;
    if (code == OK)
        guest->endpoint = NULL;
    else
        refuse(host, guest, why.words, is_ours);
    return OK;
}

/* A whole frame is there, or something that will never be one. */
static bool has_spoken(const uint8_t *bytes, size_t count, size_t most, bool ended) {
    struct frame_header header;
    struct error ignored = {0};
    if (ended) return true;
    if (count < FRAME_HEADER_BYTES) return false;
    if (frame_unpack_header(&header, bytes, most, "", &ignored) != OK) return true;
    return count >= FRAME_HEADER_BYTES + header.bytes;
}

/* --- guests: they have connected, and said nothing yet that is complete, or were refused --- */

static void drop_guest(struct host *host, int index) {
    endpoint_close(host->guests[index].endpoint);
    host->guest_count--;
    memmove(&host->guests[index], &host->guests[index + 1],
            (size_t)(host->guest_count - index) * sizeof *host->guests);
}

void handshake_make_room(struct host *host) {
    if (host->guest_count > 0) drop_guest(host, 0);
}

static bool same_host(const struct endpoint *one, const struct endpoint *other) {
    return endpoint_same_source(one, other);
}

/* Who has been there for long makes room; an address that sends many, for its own. */
static void add_guest(struct host *host, const struct guest *guest) {
    const int most = host->guests_most / 2 < HOST_GUESTS_OF_ONE ? host->guests_most / 2 : HOST_GUESTS_OF_ONE;
    int first = -1, like_it = 0;
    for (int g = host->guest_count - 1; g >= 0; g--) {
        if (!same_host(guest->endpoint, host->guests[g].endpoint)) continue;
        first = g;
        like_it++;
    }
    if (like_it >= most)
        drop_guest(host, first);
    else if (host->guest_count == host->guests_most)
        drop_guest(host, 0);
    host->guests[host->guest_count++] = *guest;
}

void handshake_begin(struct host *host, struct endpoint *endpoint) {
    add_guest(host, &(struct guest){.endpoint = endpoint, .since_s = world_now(host->settings.world)});
}

static void refuse_silent(struct host *host, struct guest *guest, size_t count) {
    const char *name = endpoint_name(guest->endpoint);
    char words[200];
    if (count == 0)
        snprintf(words, sizeof words, "%s: no byte of a hello for %g s", name, HANDSHAKE_S);
    else
        snprintf(words, sizeof words, "%s: only %zu bytes of a hello in %g s", name, count, HANDSHAKE_S);
    refuse(host, guest, words, false);
}

static int hear_guest(struct host *host, struct guest *guest, struct error *error) {
    uint8_t bytes[FRAME_HEADER_BYTES + HELLO_BYTES];
    bool ended = false;
    const double there_s = world_now(host->settings.world) - guest->since_s;
    if (guest->leaving) {
        if (endpoint_finish(guest->endpoint, 0.0) || there_s >= HOST_GOODBYE_S) close_guest(guest);
        return OK;
    }
    const size_t count = endpoint_peek(guest->endpoint, bytes, sizeof bytes, 0.0, &ended);
    if (has_spoken(bytes, count, HELLO_BYTES, ended)) return receive_peer(host, guest, error);
    if (there_s >= HANDSHAKE_S) refuse_silent(host, guest, count);
    return OK;
}

static int hear_guests(struct host *host, struct error *error) {
    int left = 0, code = OK;
    for (int g = 0; g < host->guest_count; g++) {
        if (code == OK) code = hear_guest(host, &host->guests[g], error);
        if (host->guests[g].endpoint) host->guests[left++] = host->guests[g];
    }
    host->guest_count = left;
    return code;
}

/* --- those who build what they compute with --- */

static int read_ready(const struct host *host, struct endpoint *endpoint, struct error *error) {
    struct frame_header header;
    struct fingerprint fingerprint;
    uint8_t bytes[LAST_WORDS_BYTES + 1] = {0};
    RETURN_IF(frame_read_header(endpoint, "a ready", LAST_WORDS_BYTES, &header, HANDSHAKE_S, error));
    if (header.type != FRAME_FAILURE)
        RETURN_IF(frame_expect(endpoint, &header, FRAME_READY, READY_BYTES, error));
    RETURN_IF(frame_read_payload(endpoint, &header, bytes, HANDSHAKE_S, error));
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
        uint8_t bytes[FRAME_HEADER_BYTES + LAST_WORDS_BYTES];
        bool ended = false;
        if (peer->ready) continue;
        const size_t count = endpoint_peek(peer->endpoint, bytes, sizeof bytes, 0.0, &ended);
        if (!has_spoken(bytes, count, LAST_WORDS_BYTES, ended && count > 0)) continue;
        peer->ready = read_ready(host, peer->endpoint, &why) == OK;
        if (peer->ready) continue;
        struct guest guest = {.endpoint = peer->endpoint};
        *peer = host->peers[--host->count];
        refuse(host, &guest, why.words, true);
        add_guest(host, &guest);
    }
}

int handshake_hear(struct host *host, struct error *error) {
    RETURN_IF(hear_guests(host, error));
    hear_peers(host);
    return OK;
}

bool handshake_is_busy(const struct host *host) {
    for (int i = 0; i < host->count; i++)
        if (!host->peers[i].ready) return true;
    for (int g = 0; g < host->guest_count; g++)
        if (!host->guests[g].leaving) return true;
    return false;
}

void handshake_tell(struct host *host, const char *words) {
    const struct piece piece = {words, strlen(words)};
    struct error why = {0};
    drop_gone(host);
    for (int i = host->count - 1; i >= 0; i--)
        if (frame_write(host->peers[i].endpoint, FRAME_HEARTBEAT, 0, &piece, 1, HANDSHAKE_S, &why) != OK)
            drop_peer(host, i);
    if (host->leader && frame_write(host->leader, FRAME_HEARTBEAT, 0, &piece, 1, HANDSHAKE_S, &why) != OK)
        drop_leader(host);
}

void handshake_end(struct host *host) {
    for (int g = 0; g < host->guest_count; g++) endpoint_close(host->guests[g].endpoint);
    host->guest_count = 0;
}
