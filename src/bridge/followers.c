/* How the leader meets the other parameter servers, and what it hears of them while it trains. See
 * followers.h and host.h. Meeting them waits for nobody: threads connect, a hello goes out once it can, and
 * what has come is heard. */
#include "followers.h"

#include <math.h>
#include <string.h>
#include "../base/memory.h"
#include "handshake.h"
#include "upgrade.h"

enum { WORDS_BYTES = 600, FRAMES_A_LOOK = 8, REACHING_MOST = 16 /* at a time */ };
_Static_assert((int)WORDS_BYTES >= (int)WELCOME_BYTES, "a welcome can be looked at");

#define REACH_S 1.0 /* for one try to connect, and between two of them */
#define LOOK_S 0.1  /* between two looks at those who are not awaited */

static double now_of(const struct host *host) {
    return world_now(host->settings.world);
}

int followers_open(struct host *host, struct error *error) {
    const struct cluster *cluster = host->settings.cluster;
    if (cluster->task > 0) return OK;
    host->follower_count = cluster->ps.count - 1;
    RETURN_IF(memory_array(&host->followers, host->follower_count, "parameter servers", error));
    for (int f = 0; f < host->follower_count; f++) {
        struct follower *follower = &host->followers[f];
        follower->reach = (struct reach){
            .world = host->settings.world, .address = cluster->ps.list[f + 1].text, .tried_s = -INFINITY};
        snprintf(follower->name, sizeof follower->name, "the %s %d (%.60s)", cluster_server(cluster), f + 1,
                 cluster->ps.list[f + 1].text);
    }
    return OK;
}

void followers_close(struct host *host) {
    for (int f = 0; host->followers && f < host->follower_count; f++) {
        struct follower *follower = &host->followers[f];
        if (follower->reach.thread) {
            world_join(follower->reach.thread);
            endpoint_close(follower->reach.endpoint);
        }
        endpoint_close(follower->endpoint);
    }
    memory_free(host->followers);
    host->followers = NULL;
}

/* --- connecting --- */

static void reach_body(void *argument) {
    struct reach *reach = argument;
    endpoint_connect(reach->world, reach->address, &reach->endpoint, REACH_S, &reach->why);
    atomic_store(&reach->done, true);
}

static int count_reaching(const struct host *host) {
    int count = 0;
    for (int f = 0; f < host->follower_count; f++) count += host->followers[f].reach.thread != NULL;
    return count;
}

/* Why a try failed is said when all the time is over: by who is missing. */
static int connect_to(struct host *host, struct follower *follower, struct error *error) {
    struct reach *reach = &follower->reach;
    if (reach->thread) {
        if (!atomic_load(&reach->done)) return OK;
        world_join(reach->thread);
        reach->thread = NULL;
        follower->endpoint = reach->endpoint;
        reach->endpoint = NULL;
        follower->since_s = follower->heard_s = follower->took_s = now_of(host);
        if (reach->why.code == OK || reach->why.code == ERROR_PEER) return OK;
        return error_set(error, reach->why.code, "%s", reach->why.words);
    }
    if (now_of(host) - reach->tried_s < REACH_S || count_reaching(host) >= REACHING_MOST) return OK;
    reach->tried_s = now_of(host);
    reach->why = (struct error){0};
    atomic_store(&reach->done, false);
    return world_spawn(reach->world, "connecting", NULL, reach_body, reach, &reach->thread, error);
}

/* --- hello --- */

/* One that has welcomed its workers is not met again in this session: they would not come to it a second
 * time. */
static void leave(struct host *host, struct follower *follower, const char *why) {
    handshake_say_gone(host, follower->name, why);
    if (follower->welcomed && host->lost.code == OK)
        error_set(&host->lost, ERROR_PEER, "%s has gone before the training began", follower->name);
    endpoint_close(follower->endpoint);
    follower->endpoint = NULL;
    follower->greeted = follower->ready = follower->welcomed = false;
    follower->reach.tried_s = now_of(host);
}

static bool has_ended(struct endpoint *endpoint) {
    bool ended = false;
    uint8_t byte;
    return endpoint_peek(endpoint, &byte, 1, 0.0, &ended) == 0 && ended;
}

/* It goes as a whole, once the connection takes it; a part of it would never be understood. */
static int greet(struct host *host, struct follower *follower, struct error *error) {
    struct hello *hello = &host->hello;
    uint8_t bytes[HELLO_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    struct error why = {0};
    *hello = (struct hello){.leader = true,
                            .fingerprint = *host->settings.fingerprint,
                            .process = host->settings.cluster->process};
    hello->agreed.value = *host->settings.config;
    snprintf(hello->program, sizeof hello->program, "%s", TRAINER_VERSION);
    RETURN_IF(hello_put(hello, &writer, error));
    const struct piece piece = {bytes, writer.used};
    const long long sent = endpoint_sent(follower->endpoint);
    follower->greeted = frame_write(follower->endpoint, FRAME_HELLO, upgrade_flags(follower->endpoint),
                                    &piece, 1, 0.0, &why) == OK;
    if (follower->greeted) return OK;
    const bool late = now_of(host) - follower->since_s >= HANDSHAKE_S;
    if (late || endpoint_sent(follower->endpoint) > sent || has_ended(follower->endpoint))
        leave(host, follower, late ? "it takes no hello" : NULL);
    return OK;
}

/* --- what it says --- */

struct word {
    struct frame_header header;
    char bytes[WORDS_BYTES + 1];
};

/* What comes next can be told: its header is there. *gone: it will never be. */
static bool speaks(const struct follower *follower, bool *gone) {
    uint8_t header[FRAME_HEADER_BYTES];
    bool ended = false;
    const bool there = endpoint_peek(follower->endpoint, header, sizeof header, 0.0, &ended) == sizeof header;
    *gone = ended && !there;
    return there;
}

/* The next frame, if all of it is there. *gone: it is not, and will never be. */
static bool take_word(const struct host *host, struct follower *follower, struct word *word, bool *gone) {
    uint8_t bytes[FRAME_HEADER_BYTES + WORDS_BYTES];
    struct error ignored = {0};
    bool ended = false;
    const size_t count = endpoint_peek(follower->endpoint, bytes, sizeof bytes, 0.0, &ended);
    *gone = ended;
    memset(word, 0, sizeof *word);
    if (count < FRAME_HEADER_BYTES) return false;
    if (frame_unpack_header(&word->header, bytes, WORDS_BYTES, "", &ignored) == OK &&
        count < FRAME_HEADER_BYTES + (size_t)word->header.bytes)
        return false;
    *gone =
        frame_read_header(follower->endpoint, "a word", WORDS_BYTES, &word->header, 0.0, &ignored) != OK ||
        frame_read_payload(follower->endpoint, &word->header, word->bytes, 0.0, &ignored) != OK;
    if (!*gone) follower->heard_s = now_of(host);
    return !*gone;
}

/* Repeats the session that the follower has told, as a worker does. */
static int say_ready(const struct host *host, struct follower *follower, uint32_t session,
                     struct error *error) {
    uint8_t bytes[READY_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    fingerprint_put(host->settings.fingerprint, &writer);
    const struct piece piece = {bytes, sizeof bytes};
    follower->ready = true;
    return frame_write(follower->endpoint, FRAME_READY, session, &piece, 1, host->settings.timeout_s, error);
}

static int read_welcome(const struct host *host, struct follower *follower, const struct word *word,
                        struct error *error) {
    const uint32_t own = (uint32_t)host->settings.cluster->process;
    struct frame_reader reader = {.bytes = (const uint8_t *)word->bytes, .length = word->header.bytes};
    if (word->header.type != FRAME_WELCOME)
        return error_set(error, ERROR_PEER, "%s: %s, expected a welcome", follower->name,
                         frame_type_words(word->header.type));
    if (word->header.flags != own)
        return error_set(error, ERROR_PEER, "%s: a welcome of process %08x, expected %08x: a recording?",
                         follower->name, (unsigned)word->header.flags, (unsigned)own);
    RETURN_IF(welcome_get(&follower->welcome, &reader, follower->name, error));
    follower->welcomed = true;
    return OK;
}

/* While others are missing it says that it is there, why it refuses us, or that all have come to it. for_now:
 * why it does now, and may not in a while; else "". */
static int hear(struct host *host, struct follower *follower, bool *gone, char for_now[WORDS_BYTES + 1],
                struct error *error) {
    for_now[0] = '\0';
    for (int frames = 0; frames < FRAMES_A_LOOK && !follower->welcomed; frames++) {
        struct word word;
        bool whole;
        if (!speaks(follower, gone)) return OK;
        if (upgrade_is_next(follower->endpoint, &whole)) {
            if (!whole) return OK;
            RETURN_IF(upgrade_hear(follower->endpoint, host->settings.timeout_s, error));
            follower->heard_s = now_of(host);
            continue;
        }
        if (!take_word(host, follower, &word, gone)) return OK;
        const struct frame_header *header = &word.header;
        if (header->type == FRAME_FAILURE && header->flags == FAILURE_FOR_NOW) {
            snprintf(for_now, WORDS_BYTES + 1, "%s", word.bytes[0] ? word.bytes : "it refuses for now");
            return OK;
        }
        host->refused = host->refused || header->type == FRAME_FAILURE;
        if (header->type == FRAME_FAILURE)
            return error_set(error, ERROR_PEER, "%s refuses: %s", follower->name, word.bytes);
        if (header->type == FRAME_HEARTBEAT) continue;
        if (header->type == FRAME_CONFIG && !follower->ready)
            RETURN_IF(say_ready(host, follower, header->flags, error));
        else
            RETURN_IF(read_welcome(host, follower, &word, error));
    }
    return OK;
}

int followers_look(struct host *host, struct error *error) {
    for (int f = 0; f < host->follower_count; f++) {
        struct follower *follower = &host->followers[f];
        bool gone = false;
        char for_now[WORDS_BYTES + 1];
        if (!follower->greeted) continue;
        RETURN_IF(hear(host, follower, &gone, for_now, error));
        const bool silent =
            !follower->welcomed && now_of(host) - follower->heard_s > handshake_silence_s(host);
        if (follower->welcomed) gone = has_ended(follower->endpoint);
        if (for_now[0] != '\0')
            leave(host, follower, for_now);
        else if (gone || silent)
            leave(host, follower, gone ? NULL : "no sign of life");
    }
    return OK;
}

/* Its first word, where it does not refuse us, and waits for the answer. */
static bool tells_session(struct follower *follower) {
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header header;
    struct error ignored = {0};
    bool ended = false;
    return endpoint_peek(follower->endpoint, bytes, sizeof bytes, 0.0, &ended) == sizeof bytes &&
           frame_unpack_header(&header, bytes, WORDS_BYTES, "", &ignored) == OK &&
           header.type == FRAME_CONFIG;
}

int followers_meet(struct host *host, struct error *error) {
    for (int f = 0; f < host->follower_count; f++) {
        struct follower *follower = &host->followers[f];
        bool gone = false, whole = false;
        char for_now[WORDS_BYTES + 1];
        if (!follower->endpoint) RETURN_IF(connect_to(host, follower, error));
        if (follower->endpoint && !follower->greeted) RETURN_IF(greet(host, follower, error));
        if (follower->greeted && (follower->ready ? upgrade_is_next(follower->endpoint, &whole) && whole
                                                  : tells_session(follower)))
            RETURN_IF(hear(host, follower, &gone, for_now, error));
    }
    return OK;
}

bool followers_are_met(const struct host *host, int follower) {
    const struct follower *met = &host->followers[follower];
    if (host->settings.least > 0 && (!met->ready || upgrade_is_pending(met->endpoint))) return false;
    return met->endpoint && met->greeted;
}

bool followers_wait_no_more(const struct host *host) {
    for (int f = 0; f < host->follower_count; f++)
        if (host->followers[f].welcomed) return true;
    return false;
}

bool followers_are_busy(const struct host *host) {
    for (int f = 0; f < host->follower_count; f++)
        if (host->followers[f].reach.thread || (host->followers[f].endpoint && !host->followers[f].ready))
            return true;
    return false;
}

void followers_tell(struct host *host) {
    for (int f = 0; f < host->follower_count; f++) {
        struct follower *follower = &host->followers[f];
        if (follower->greeted && !handshake_beat(host, follower->endpoint, "", &follower->took_s))
            leave(host, follower, "it takes no word");
    }
}

int followers_hear(struct host *host, const struct follower **missing, struct error *error) {
    *missing = NULL;
    for (int f = 0; f < host->follower_count; f++) {
        struct follower *follower = &host->followers[f];
        bool gone = false;
        char for_now[WORDS_BYTES + 1];
        if (follower->welcomed) continue;
        if (!follower->endpoint)
            return error_set(error, ERROR_PEER, "%s has gone before the training began", follower->name);
        RETURN_IF(hear(host, follower, &gone, for_now, error));
        const bool silent = now_of(host) - follower->heard_s > handshake_silence_s(host);
        if (gone || for_now[0] != '\0')
            return error_set(error, ERROR_PEER, "%s has gone before the training began%s%s", follower->name,
                             for_now[0] != '\0' ? ": " : "", for_now);
        if (silent && !follower->welcomed)
            return error_set(error, ERROR_PEER, "%s: no sign of life for %g s", follower->name,
                             handshake_silence_s(host));
        if (!follower->welcomed && !*missing) *missing = follower;
    }
    return OK;
}

/* --- the training runs --- */

int followers_watch(const struct host *host, struct error *error) {
    for (int f = 0; f < host->follower_count; f++) {
        const struct follower *follower = &host->followers[f];
        if (has_ended(follower->endpoint))
            return error_set(error, ERROR_PEER, "%s has closed the connection", follower->name);
    }
    return OK;
}

/* Whether it has gone, or says why it goes. */
static int look_at(const struct host *host, const struct follower *follower, struct error *error) {
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header header;
    struct error ignored = {0};
    bool ended = false;
    const size_t count = endpoint_peek(follower->endpoint, bytes, sizeof bytes, 0.0, &ended);
    if (ended && count == 0)
        return error_set(error, ERROR_PEER, "%s has closed the connection", follower->name);
    if (count < sizeof bytes || frame_unpack_header(&header, bytes, UINT64_MAX, "", &ignored) != OK ||
        header.type != FRAME_FAILURE)
        return OK;
    RETURN_IF(frame_read_header(follower->endpoint, "a failure", UINT64_MAX, &header, 0.0, error));
    return host_read_failure(follower->endpoint, follower->name, &header, host->settings.timeout_s, error);
}

static int look_at_others(const struct host *host, int awaited, struct error *error) {
    for (int f = 0; f < host->follower_count; f++)
        if (f != awaited) RETURN_IF(look_at(host, &host->followers[f], error));
    return OK;
}

int follower_blame(const struct host *host, const struct follower *follower, int code, struct error *error) {
    struct error why = {0};
    if (code == OK) return OK;
    if (code != ERROR_PEER || look_at(host, follower, &why) == OK)
        return host_blame(follower->endpoint, follower->name, error);
    *error = why;
    return why.code;
}

/* Takes the word of one who has to go, or who has lost a worker. */
static bool take_asking(struct host *host, const struct follower *follower) {
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header header;
    struct error ignored = {0};
    if (endpoint_peek(follower->endpoint, bytes, sizeof bytes, 0.0, &(bool){false}) < sizeof bytes ||
        frame_unpack_header(&header, bytes, 0, "", &ignored) != OK ||
        (header.type != FRAME_LEAVE && (header.type != FRAME_LOST || header.flags >= (uint32_t)host->count)))
        return false;
    frame_read_header(follower->endpoint, "a leave", 0, &header, 0.0, &ignored);
    if (header.type == FRAME_LOST)
        host->peers[header.flags].lost_there = true;
    else
        host->asked = true;
    return true;
}

bool followers_ask(struct host *host) {
    for (int f = 0; f < host->follower_count && !host->asked; f++)
        while (take_asking(host, &host->followers[f])) {
        }
    return host->asked;
}

void follower_tell_lost(struct host *host, int worker, double timeout_s) {
    struct error ignored = {0};
    frame_write(host->leader, FRAME_LOST, (uint32_t)worker, NULL, 0, timeout_s, &ignored);
}

int follower_hear(struct host *host, int f, const char *what, struct frame_header *header, double timeout_s,
                  struct error *error) {
    const struct follower *follower = &host->followers[f];
    struct world *world = host->settings.world;
    const double until = world_now(world) + timeout_s;
    bool ended = false;
    uint8_t byte;
    while ((endpoint_peek(follower->endpoint, &byte, 1, LOOK_S, &ended) == 0 && !ended) ||
           take_asking(host, follower)) {
        if (world_stopped(world))
            return error_set(error, ERROR_PEER, "%s: stopped while waiting for %s", follower->name, what);
        if (world_now(world) >= until)
            return error_set(error, ERROR_PEER, "%s: no byte of %s for %g s", follower->name, what,
                             timeout_s);
        followers_ask(host); /* what others say of losses is not to hide why they end */
        RETURN_IF(look_at_others(host, f, error));
    }
    const int code = frame_read_header(follower->endpoint, what, UINT64_MAX, header, timeout_s, error);
    if (code != OK) return follower_blame(host, follower, code, error);
    if (header->type != FRAME_FAILURE) return OK;
    return host_read_failure(follower->endpoint, follower->name, header, timeout_s, error);
}
