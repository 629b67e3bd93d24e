/* The handshake, and who has gone again before all were there. See handshake.h. */
#include "handshake.h"

#include <math.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/rng.h"
#include "followers.h"
#include "guests.h"
#include "joins.h"
#include "probe.h"
#include "upgrade.h"

enum { BEATS_A_LOOK = 8 };
#define SILENCE_S 10.0 /* where a timeout is shorter: other processes may have been given a longer one */

_Static_assert(FRAME_HEADER_BYTES + HELLO_BYTES <= ENDPOINT_AHEAD_BYTES, "a whole hello can be looked at");

/* --- who comes --- */

/* All of it is there, or no more will come. */
static int read_hello(struct endpoint *endpoint, struct hello *hello, uint32_t *offers, struct error *error) {
    struct frame_header header;
    uint8_t bytes[HELLO_BYTES];
    RETURN_IF(frame_read_header(endpoint, "a hello", sizeof bytes, &header, 0.0, error));
    if (header.type != FRAME_HELLO)
        return error_set(error, ERROR_PEER, "%s: %s, expected a hello", endpoint_name(endpoint),
                         frame_type_words(header.type));
    RETURN_IF(frame_read_payload(endpoint, &header, bytes, 0.0, error));
    struct frame_reader reader = {.bytes = bytes, .length = header.bytes};
    *offers = header.flags;
    return hello_get(hello, &reader, endpoint_name(endpoint), error);
}

struct peer *handshake_find_peer(const struct host *host, int task, int device) {
    for (int i = 0; i < host->count; i++)
        if (host->peers[i].task == task && (device < 0 || host->peers[i].device == device))
            return &host->peers[i];
    return NULL;
}

/* *flags: FAILURE_FOR_NOW where a place is taken, by one who may be gone: this side has only not noticed yet.
 */
static int check_worker(const struct host *host, const struct hello *hello, const char *peer, uint32_t *flags,
                        struct error *error) {
    const struct peer *sibling = handshake_find_peer(host, hello->task, -1);
    const int workers = host->settings.cluster->workers.count;
    if (hello->task >= workers)
        return error_set(error, ERROR_PEER, "%s is worker %d, the cluster has workers 0 to %d", peer,
                         hello->task, workers - 1);
    if (hello->devices < 1 || hello->devices > DEVICES_MOST || hello->device >= hello->devices)
        return error_set(error, ERROR_PEER, "%s has device %d of %d, expected at most %d", peer,
                         hello->device, hello->devices, DEVICES_MOST);
    if (host->settings.least > 0 && hello->devices > 1)
        return error_set(error, ERROR_PEER,
                         "%s is worker %d with %d devices, expected one, with --workers=%s", peer,
                         hello->task, hello->devices, host->settings.config->workers);
    *flags = FAILURE_FOR_NOW;
    if (joins_is_held(host, hello->task) || handshake_find_peer(host, hello->task, hello->device) ||
        (sibling && (sibling->process != hello->process || sibling->devices != hello->devices)))
        return error_set(error, ERROR_PEER, "%s is worker %d, which has come already", peer, hello->task);
    return OK;
}

/* In words that a peer reads, too. */
static const char *our_name(const struct host *host) {
    return host->settings.cluster->mirrored ? "the process that it came to" : "the parameter server";
}

static int check_leader(const struct host *host, const struct hello *hello, const char *peer, uint32_t *flags,
                        struct error *error) {
    *flags = host->leader ? FAILURE_FOR_NOW : 0;
    if (host->settings.cluster->task == 0 || host->leader)
        return error_set(error, ERROR_PEER, "%s is %s 0, which has come already", peer,
                         cluster_server(host->settings.cluster));
    *flags = 0;
    return fingerprints_agree(host->settings.fingerprint, &hello->fingerprint, our_name(host), peer, error);
}

static int add_peer(struct host *host, struct endpoint *endpoint, const struct hello *hello, uint32_t session,
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
                          .process = hello->process,
                          .session = session,
                          .seen = hello->seen,
                          .offer = hello->offer,
                          .came_s = world_now(host->settings.world),
                          .heard_s = world_now(host->settings.world),
                          .took_s = world_now(host->settings.world)};
    memcpy(peer->device_name, hello->device_name, sizeof peer->device_name);
    snprintf(peer->name, sizeof peer->name, "worker %d (%.50s %s)", hello->task, endpoint_name(endpoint),
             hello->device_name);
    return OK;
}

/* --- who has gone again --- */

void handshake_say_gone(struct host *host, const char *name, const char *why) {
    struct error line = {0}; /* which is printable, whatever a peer has said */
    error_set(&line, ERROR_PEER, "%s has gone again%s%s", name, why ? ": " : "", why ? why : "");
    host->settings.say(host->settings.argument, line.words);
}

/* One that another server does not wait for any more can come again here, but not there. */
static void drop_peer(struct host *host, int index, const char *why) {
    handshake_say_gone(host, host->peers[index].name, why);
    if (followers_wait_no_more(host) || host->joins)
        error_set(&host->lost, ERROR_PEER, "%s has gone before the training began", host->peers[index].name);
    if (host->joins) return; /* its place stays one */
    endpoint_close(host->peers[index].endpoint);
    host->peers[index] = host->peers[--host->count];
}

static void drop_leader(struct host *host, const char *why) {
    char name[64];
    snprintf(name, sizeof name, "the %s 0", cluster_server(host->settings.cluster));
    handshake_say_gone(host, name, why);
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
        if (host->peers[i].endpoint && has_ended(host->peers[i].endpoint)) drop_peer(host, i, NULL);
    if (host->leader && has_ended(host->leader)) drop_leader(host, NULL);
}

double handshake_silence_s(const struct host *host) {
    return fmax(host->settings.timeout_s, SILENCE_S);
}

/* *words: what is said of one that was last heard, or took something, then; NULL: nothing. */
static const char *silence(const struct host *host, double heard_s, char words[60]) {
    if (world_now(host->settings.world) - heard_s < handshake_silence_s(host)) return NULL;
    snprintf(words, 60, "no sign of life for %g s", handshake_silence_s(host));
    return words;
}

/* Likewise; signs of life alone do not hold a place for ever. */
static const char *overdue(const struct host *host, const struct peer *peer, char words[60]) {
    const double start_s = host->settings.start_s;
    if (silence(host, peer->heard_s, words)) return words;
    if (peer->ready || world_now(host->settings.world) - peer->came_s <= start_s) return NULL;
    snprintf(words, 60, "not ready after %g s", start_s);
    return words;
}

bool handshake_beat(struct host *host, struct endpoint *endpoint, const char *words, double *took_s) {
    const struct piece piece = {words, strlen(words)};
    const long long sent = endpoint_sent(endpoint);
    const double now = world_now(host->settings.world);
    struct error ignored = {0};
    if (frame_write(endpoint, FRAME_HEARTBEAT, 0, &piece, 1, 0.0, &ignored) == OK) {
        *took_s = now;
        return true;
    }
    return endpoint_sent(endpoint) == sent && !has_ended(endpoint) &&
           now - *took_s < handshake_silence_s(host);
}

/* What it is to build; the leader, which has the settings, learns the session alone. */
static int tell_settings(const struct host *host, struct endpoint *endpoint, uint32_t session, bool leader,
                         struct error *error) {
    uint8_t bytes[SETTINGS_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    if (!leader) RETURN_IF(settings_put(host->settings.config, &writer, error));
    const struct piece piece = {bytes, writer.used};
    return frame_write(endpoint, FRAME_CONFIG, session, &piece, 1, 0.0, error);
}

static int check_link(const struct host *host, const struct endpoint *endpoint, struct error *error) {
    if (!host->settings.cluster->shm_alone || endpoint_shares_memory(endpoint)) return OK;
    return error_set(error, ERROR_PEER, "%s came over TCP, %s has --link=shm", endpoint_name(endpoint),
                     our_name(host));
}

static void say_upgrade(const struct host *host, const struct endpoint *endpoint, uint32_t offers) {
    char words[200];
    if (upgrade_failed(endpoint, offers, endpoint_name(endpoint), words, sizeof words))
        host->settings.say(host->settings.argument, words);
}

/* What is compared before anybody has a place: by the place that it asks for, as its user knows it. */
static int check_alike(const struct host *host, const struct hello *hello, const char *peer,
                       struct error *error) {
    char name[100];
    snprintf(name, sizeof name, "worker %d (%.50s)", hello->task, peer);
    if (hello->leader) snprintf(name, sizeof name, "%.90s", peer);
    RETURN_IF(programs_agree(hello->program, our_name(host), name, error));
    return settings_agree(host->settings.config, &hello->agreed, our_name(host), name, error);
}

/* One who has said something: comes in, or is refused. Who has gone makes room for who comes again. */
static int receive_peer(struct host *host, struct guest *guest, struct error *error) {
    struct hello *hello = &host->hello;
    struct endpoint *endpoint = guest->endpoint;
    struct error why = {0};
    uint32_t flags = 0, offers = 0;
    const char *name = endpoint_name(endpoint);
    if (probe_is_next(endpoint)) {
        probe_answer(host, guest);
        return OK;
    }
    int code = read_hello(endpoint, hello, &offers, &why);
    const bool is_ours = code == OK;
    if (is_ours && host->full) {
        flags = FAILURE_FOR_NOW; /* another run may follow this one */
        code = error_set(&why, ERROR_PEER, "%s comes too late: all workers have come", name);
        guest_refuse(host, guest, why.words, flags, true);
        return OK;
    }
    if (is_ours) drop_gone(host);
    if (code == OK) code = check_link(host, endpoint, &why);
    if (code == OK) code = check_alike(host, hello, name, &why);
    if (code == OK)
        code = hello->leader ? check_leader(host, hello, name, &flags, &why)
                             : check_worker(host, hello, name, &flags, &why);
    if (code != OK) {
        guest_refuse(host, guest, why.words, flags, is_ours);
        return OK;
    }
    const uint32_t session = (uint32_t)rng_mix(host->settings.cluster->process, ++host->sessions);
    if (tell_settings(host, endpoint, session, hello->leader, &why) != OK) {
        guest_refuse(host, guest, why.words, 0, false); /* it takes none: it may come again */
        return OK;
    }
    if (upgrade_begin(endpoint, offers, &why) != OK) {
        guest_refuse(host, guest, why.words, 0, true);
        return OK;
    }
    say_upgrade(host, endpoint, offers);
    if (!hello->leader) RETURN_IF(add_peer(host, endpoint, hello, session, error));
    if (hello->leader) {
        host->leader = endpoint;
        host->leader_session = session;
        host->leader_process = hello->process;
        host->leader_ready = false;
        host->leader_heard_s = host->leader_took_s = world_now(host->settings.world);
    }
    guest->endpoint = NULL;
    return OK;
}

/* A whole frame is there, or something that will never be one. */
static bool has_spoken(const uint8_t *bytes, size_t count, size_t most, bool ended) {
    struct frame_header header;
    struct error ignored = {0};
    if (ended) return true;
    if (count < FRAME_HEADER_BYTES) return frame_is_strange(bytes, count);
    if (frame_unpack_header(&header, bytes, most, "", &ignored) != OK) return true;
    return count >= FRAME_HEADER_BYTES + header.bytes;
}

/* --- guests --- */

static void refuse_silent(struct host *host, struct guest *guest, size_t count) {
    const char *name = endpoint_name(guest->endpoint);
    char words[200];
    if (count == 0)
        snprintf(words, sizeof words, "%s: no byte of a hello for %g s", name, HANDSHAKE_S);
    else
        snprintf(words, sizeof words, "%s: only %zu bytes of a hello in %g s", name, count, HANDSHAKE_S);
    guest_refuse(host, guest, words, 0, false);
}

static int hear_guest(struct host *host, struct guest *guest, bool *moved, struct error *error) {
    uint8_t bytes[FRAME_HEADER_BYTES + HELLO_BYTES];
    bool ended = false;
    const double there_s = world_now(host->settings.world) - guest->since_s;
    if (guest->leaving) {
        if (!endpoint_finish(guest->endpoint, 0.0) && there_s < HOST_GOODBYE_S) return OK;
        endpoint_close(guest->endpoint);
        guest->endpoint = NULL;
        return OK;
    }
    const size_t count = endpoint_peek(guest->endpoint, bytes, sizeof bytes, 0.0, &ended);
    guest->spoke = count > 0;
    *moved = *moved || has_spoken(bytes, count, HELLO_BYTES, ended);
    if (has_spoken(bytes, count, HELLO_BYTES, ended)) return receive_peer(host, guest, error);
    if (there_s >= HANDSHAKE_S) refuse_silent(host, guest, count);
    return OK;
}

int handshake_hear_guests(struct host *host, bool *moved, struct error *error) {
    int left = 0, code = OK;
    for (int g = 0; g < host->guest_count; g++) {
        if (code == OK) code = hear_guest(host, &host->guests[g], moved, error);
        if (host->guests[g].endpoint) host->guests[left++] = host->guests[g];
    }
    host->guest_count = left;
    return code;
}

/* --- those who build what they compute with, and those who have --- */

static int read_ready(const struct host *host, struct endpoint *endpoint, uint32_t session,
                      struct fingerprint *fingerprint, struct error *error) {
    struct frame_header header;
    uint8_t bytes[LAST_WORDS_BYTES + 1] = {0};
    RETURN_IF(frame_read_header(endpoint, "a ready", LAST_WORDS_BYTES, &header, 0.0, error));
    if (header.type != FRAME_FAILURE)
        RETURN_IF(frame_expect(endpoint, &header, FRAME_READY, READY_BYTES, error));
    RETURN_IF(frame_read_payload(endpoint, &header, bytes, 0.0, error));
    if (header.type == FRAME_FAILURE) /* it says itself why it goes */
        return error_set(error, ERROR_PEER, "%s: %s", endpoint_name(endpoint), (const char *)bytes);
    if (header.flags != session)
        return error_set(error, ERROR_PEER, "%s: a ready of session %08x, expected %08x: a recording?",
                         endpoint_name(endpoint), (unsigned)header.flags, (unsigned)session);
    struct frame_reader reader = {.bytes = bytes, .length = header.bytes};
    RETURN_IF(fingerprint_get(fingerprint, &reader, endpoint_name(endpoint), error));
    return fingerprints_agree(host->settings.fingerprint, fingerprint, our_name(host),
                              endpoint_name(endpoint), error);
}

/* Takes what is there of signs of life, so many at a time. True: behind them is another frame, or something
 * that will never be one. *ended: there is nothing, and nothing will come. */
static bool hear_beats(const struct host *host, struct endpoint *endpoint, double *heard_s, bool *ended) {
    uint8_t bytes[FRAME_HEADER_BYTES + LAST_WORDS_BYTES];
    struct error ignored = {0};
    for (int beats = 0; beats < BEATS_A_LOOK; beats++) {
        struct frame_header header;
        bool over = false;
        const size_t count = endpoint_peek(endpoint, bytes, sizeof bytes, 0.0, &over);
        *ended = over && count == 0;
        if (*ended || !has_spoken(bytes, count, LAST_WORDS_BYTES, over)) return false;
        if (count < FRAME_HEADER_BYTES ||
            frame_unpack_header(&header, bytes, LAST_WORDS_BYTES, "", &ignored) != OK ||
            header.type != FRAME_HEARTBEAT || header.bytes > 0)
            return true;
        frame_read_header(endpoint, "a heartbeat", 0, &header, 0.0, &ignored);
        *heard_s = world_now(host->settings.world);
    }
    return false;
}

static int hear_link(const struct host *host, struct endpoint *endpoint, struct error *error) {
    RETURN_IF(upgrade_hear(endpoint, 0.0, error));
    say_upgrade(host, endpoint, HELLO_OFFERS_UCX);
    return OK;
}

/* A second word after its READY can only be why it goes. */
static int hear_word(const struct host *host, struct peer *peer, struct error *error) {
    bool whole = false;
    if (upgrade_is_next(peer->endpoint, &whole)) return whole ? hear_link(host, peer->endpoint, error) : OK;
    if (peer->ready) {
        RETURN_IF(read_ready(host, peer->endpoint, peer->session, &(struct fingerprint){0}, error));
        return error_set(error, ERROR_PEER, "%s: a ready, expected nothing but signs of life", peer->name);
    }
    RETURN_IF(read_ready(host, peer->endpoint, peer->session, &peer->built, error));
    peer->ready = true;
    peer->heard_s = world_now(host->settings.world);
    return OK;
}

static void hear_peers(struct host *host, bool *moved) {
    for (int i = host->count - 1; i >= 0; i--) {
        struct peer *peer = &host->peers[i];
        struct error why = {0};
        char words[60];
        bool ended = false;
        const bool speaks = hear_beats(host, peer->endpoint, &peer->heard_s, &ended);
        if (speaks && hear_word(host, peer, &why) != OK) {
            struct guest guest = {.endpoint = peer->endpoint};
            *peer = host->peers[--host->count];
            guest_refuse(host, &guest, why.words, 0, true);
            guests_add(host, &guest);
        } else if (ended || overdue(host, peer, words)) {
            drop_peer(host, i, ended ? NULL : words);
        }
        *moved = *moved || speaks || ended;
    }
}

/* Of a GOODBYE. */
static const char *read_leader_end(struct host *host, uint8_t bytes[FINISH_BYTES], struct finish *finish) {
    struct frame_header header;
    struct error ignored = {0};
    if (frame_read_header(host->leader, "a goodbye", FINISH_BYTES, &header, 0.0, &ignored) != OK ||
        header.type != FRAME_GOODBYE || frame_read_payload(host->leader, &header, bytes, 0.0, &ignored) != OK)
        return NULL;
    struct frame_reader reader = {.bytes = bytes, .length = header.bytes};
    return finish_get(finish, &reader, "", &ignored) == OK ? finish->words : NULL;
}

/* It is no leader of ours, and another one may come. */
static void refuse_leader(struct host *host, const struct error *why) {
    struct guest guest = {.endpoint = host->leader};
    host->leader = NULL;
    guest_refuse(host, &guest, why->words, 0, true);
    guests_add(host, &guest);
}

static void hear_leader_ready(struct host *host) {
    struct error why = {0};
    host->leader_ready =
        read_ready(host, host->leader, host->leader_session, &(struct fingerprint){0}, &why) == OK;
    if (!host->leader_ready) refuse_leader(host, &why);
}

static void hear_leader_link(struct host *host) {
    struct error why = {0};
    if (hear_link(host, host->leader, &why) != OK) refuse_leader(host, &why);
}

/* It may end, and another one come in its place. What else it says is for later. */
static void hear_leader(struct host *host, bool *moved) {
    uint8_t bytes[FRAME_HEADER_BYTES + FINISH_BYTES];
    struct frame_header header;
    struct finish finish;
    struct error ignored = {0};
    char words[60];
    bool ended = false;
    if (!host->leader) return;
    const bool speaks = hear_beats(host, host->leader, &host->leader_heard_s, &ended);
    bool whole = false;
    *moved = *moved || (speaks && !host->leader_ready);
    if (speaks && upgrade_is_next(host->leader, &whole)) {
        if (whole) hear_leader_link(host);
        *moved = *moved || whole;
        return;
    }
    const size_t count = endpoint_peek(host->leader, bytes, sizeof bytes, 0.0, &(bool){false});
    if (count >= FRAME_HEADER_BYTES &&
        frame_unpack_header(&header, bytes, FINISH_BYTES, "", &ignored) == OK &&
        header.type == FRAME_GOODBYE && count >= FRAME_HEADER_BYTES + header.bytes)
        drop_leader(host, read_leader_end(host, bytes, &finish));
    else if (speaks && !host->leader_ready)
        hear_leader_ready(host);
    else if (ended || (count == 0 && silence(host, host->leader_heard_s, words)))
        drop_leader(host, ended ? NULL : words);
}

int handshake_hear(struct host *host, bool *moved, struct error *error) {
    RETURN_IF(handshake_hear_guests(host, moved, error));
    hear_peers(host, moved);
    hear_leader(host, moved);
    return host->lost.code == OK ? OK : error_set(error, host->lost.code, "%s", host->lost.words);
}

static bool says_why_it_goes(struct endpoint *endpoint) {
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header header;
    struct error ignored = {0};
    return endpoint_peek(endpoint, bytes, sizeof bytes, 0.0, &(bool){false}) == sizeof bytes &&
           frame_unpack_header(&header, bytes, LAST_WORDS_BYTES, "", &ignored) == OK &&
           header.type == FRAME_FAILURE;
}

/* A follower may hear of the first batch from a worker before the leader's word has come: that stays. */
int handshake_watch(struct host *host, struct error *error) {
    for (int i = 0; i < host->count; i++) {
        struct peer *peer = &host->peers[i];
        char words[60];
        bool ended = false;
        if (!peer->endpoint) continue; /* nobody has this place yet */
        const bool speaks = hear_beats(host, peer->endpoint, &peer->heard_s, &ended);
        if (speaks && says_why_it_goes(peer->endpoint)) RETURN_IF(hear_word(host, peer, error));
        if (speaks) continue;
        if (ended) return error_set(error, ERROR_PEER, "%s has gone before the training began", peer->name);
        if (silence(host, peer->heard_s, words))
            return error_set(error, ERROR_PEER, "%s: %s", peer->name, words);
    }
    return OK;
}

bool handshake_is_busy(const struct host *host) {
    if (host->leader && (!host->leader_ready || upgrade_is_pending(host->leader))) return true;
    for (int i = 0; i < host->count; i++)
        if (!host->peers[i].ready || upgrade_is_pending(host->peers[i].endpoint)) return true;
    for (int g = 0; g < host->guest_count; g++)
        if (!host->guests[g].leaving) return true;
    return false;
}

void handshake_tell(struct host *host, const char *words) {
    drop_gone(host);
    for (int i = host->count - 1; i >= 0; i--)
        if (host->peers[i].endpoint &&
            !handshake_beat(host, host->peers[i].endpoint, words, &host->peers[i].took_s))
            drop_peer(host, i, "it takes no word");
    if (host->leader && !handshake_beat(host, host->leader, words, &host->leader_took_s))
        drop_leader(host, "it takes no word");
}
