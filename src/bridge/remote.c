/* A worker's end of the bridge, once it has met its hosts (meeting.c). See remote.h. */
#include "remote.h"

#include <stdio.h>
#include <string.h>
#include "../base/memory.h"
#include "meeting.h"

#define LOOK_S 0.1      /* between two checks of whether to continue waiting */
#define LAST_WORD_S 1.0 /* for a host to take it, or to say it */
/* For the leader, where another host has closed in silence: it first fetches the slices that are left, for
 * which followers stop serving (REST_S of tallies.c). */
#define LEADERS_WORD_S 12.0
#define LEAVE_S 5.0 /* for a host to close, once it knows that this worker goes: it may be at a pause */

/* Words that a host sends, at most what fits. */
int remote_read_words(struct remote *remote, struct remote_host *host, char words[500], struct error *error) {
    memset(words, 0, 500);
    if (host->header.bytes >= 500)
        return error_set(error, ERROR_PEER, "%s: %llu bytes of words, expected less than 500",
                         endpoint_name(host->endpoint), (unsigned long long)host->header.bytes);
    return frame_read_payload(host->endpoint, &host->header, words, remote->timeout_s, error);
}

int remote_read_finish(struct remote *remote, struct remote_host *host, struct finish *finish,
                       struct error *error) {
    uint8_t bytes[FINISH_BYTES];
    const char *peer = endpoint_name(host->endpoint);
    if (host->header.bytes > sizeof bytes)
        return error_set(error, ERROR_PEER, "%s: a goodbye of %llu bytes, expected at most %zu", peer,
                         (unsigned long long)host->header.bytes, sizeof bytes);
    RETURN_IF(frame_read_payload(host->endpoint, &host->header, bytes, remote->timeout_s, error));
    struct frame_reader reader = {.bytes = bytes, .length = host->header.bytes};
    return finish_get(finish, &reader, peer, error);
}

int remote_name_server(const struct remote *remote, int code, struct error *error) {
    return code == OK || remote->repeats ? code : error_prefix(error, "the %s ", remote->server);
}

static int repeat_end(struct remote *remote, const struct remote_host *host, const struct finish *finish,
                      struct error *error) {
    remote->repeats = finish_names(finish);
    return finish_repeat(finish, endpoint_name(host->endpoint), error);
}

/* A frame that is not the awaited one: the end of the training, with its message; or nonsense. */
int remote_read_end(struct remote *remote, struct remote_host *host, struct error *error) {
    const char *peer = endpoint_name(host->endpoint);
    struct finish finish;
    char words[500];
    switch (host->header.type) {
    case FRAME_FAILURE:
        RETURN_IF(remote_read_words(remote, host, words, error));
        remote->over = remote->over || host->header.flags != FAILURE_FOR_NOW;
        return error_set(error, ERROR_PEER, "%s refuses: %s", peer, words);
    case FRAME_GOODBYE:
        RETURN_IF(remote_read_finish(remote, host, &finish, error));
        remote->over = remote->over || (host == remote->hosts && finish.code != ERROR_PEER);
        return repeat_end(remote, host, &finish, error);
    default:
        return error_set(error, ERROR_PEER, "%s: an unexpected frame, %s", peer,
                         frame_type_words(host->header.type));
    }
}

int remote_stopped(const struct remote *remote, int host, const char *what, struct error *error) {
    return error_set(error, ERROR_PEER, "%s: stopped while waiting for %s",
                     remote->settings.hosts->list[host].text, what);
}

int remote_compress(struct remote *remote, const struct choice *choice, const struct layout *layout,
                    struct error *error) {
    for (int h = 0; h < remote->count; h++) {
        const struct welcome *welcome = &remote->hosts[h].welcome;
        RETURN_IF(packed_open(&remote->hosts[h].packed, choice, layout, (size_t)welcome->begin,
                              (size_t)welcome->end, error));
    }
    return OK;
}

void remote_close(struct remote *remote) {
    remote_attend_end(remote);
    for (int h = 0; remote->hosts && h < remote->count; h++) {
        packed_close(&remote->hosts[h].packed);
        endpoint_close(remote->hosts[h].endpoint);
    }
    memory_free(remote->hosts);
    memory_free(remote->sends);
    memory_free(remote->transfers);
    *remote = (struct remote){0};
}

/* --- steps --- */

/* Hosts are waited for in their order. One that stands still holds all workers up, some of them at the hosts
 * before it, so these are given more time: whoever waits for the right one is to be the first to give up. */
static double timeout_with(const struct remote *remote, int host) {
    const int last = remote->count - 1;
    if (last == 0) return remote->timeout_s;
    return remote->timeout_s * (1.0 + (double)(last - host) / (3.0 * last));
}

/* The last message of a host that sends no more: why it ended, after what it sent before. False: it says
 * nothing of that. */
static bool read_last(struct remote *remote, struct remote_host *host, struct error *error) {
    const double until = world_now(remote->world) + remote->timeout_s;
    struct error ignored = {0};
    char dropped[4096];
    while (world_now(remote->world) < until) {
        if (frame_read_header(host->endpoint, "a last word", UINT64_MAX, &host->header, LAST_WORD_S,
                              &ignored) != OK)
            return false;
        if (host->header.type == FRAME_GOODBYE || host->header.type == FRAME_FAILURE)
            return remote_read_end(remote, host, error) != OK;
        for (uint64_t left = host->header.bytes; left > 0;) {
            const size_t some = left < sizeof dropped ? (size_t)left : sizeof dropped;
            if (endpoint_receive(host->endpoint, "a last word", dropped, some, LAST_WORD_S, &ignored) != OK)
                return false;
            left -= some;
        }
    }
    return false;
}

int remote_ask_why(struct remote *remote, int code, struct error *error) {
    const double began_s = world_now(remote->world);
    if (code != ERROR_PEER) return code;
    while (true) {
        int ended = 0;
        bool leads = true;
        for (int h = 0; h < remote->count; h++) {
            struct error why = {0};
            bool over = false;
            uint8_t byte;
            const bool between = remote_is_between(remote, h);
            const size_t count = endpoint_peek(remote->hosts[h].endpoint, &byte, 1, 0.0, &over);
            ended += over && count == 0;
            leads = leads && (h > 0 || !over);
            if (count == 0 || !between || !read_last(remote, &remote->hosts[h], &why)) continue;
            *error = why;
            return code;
        }
        const double until = began_s + (ended > 0 && leads ? LEADERS_WORD_S : LAST_WORD_S);
        if (ended == remote->count || world_stopped(remote->world) || world_now(remote->world) >= until)
            return code;
        world_sleep(remote->world, LOOK_S);
    }
}

/* Another host than the one that is awaited. It may have ended well, before the leader says that to us. */
static int look_at(struct remote *remote, struct remote_host *host, struct error *error) {
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header header;
    struct finish finish;
    struct error ignored = {0};
    bool ended = false;
    if (host->done) return OK;
    const size_t count = endpoint_peek(host->endpoint, bytes, sizeof bytes, 0.0, &ended);
    const bool speaks =
        count == sizeof bytes && frame_unpack_header(&header, bytes, UINT64_MAX, "", &ignored) == OK;
    if (speaks && header.type == FRAME_GOODBYE && host != remote->hosts) {
        RETURN_IF(
            frame_read_header(host->endpoint, "a goodbye", FINISH_BYTES, &host->header, LAST_WORD_S, error));
        RETURN_IF(remote_read_finish(remote, host, &finish, error));
        host->done = finish.code == OK;
        if (host->done) return OK;
        return repeat_end(remote, host, &finish, error);
    }
    if (!ended && !(speaks && header.type == FRAME_FAILURE)) return OK;
    if (count > 0 && read_last(remote, host, error)) return error->code;
    return remote_ask_why(remote,
                          error_set(error, ERROR_PEER, "%s: the connection was closed by the peer",
                                    endpoint_name(host->endpoint)),
                          error);
}

static int look_at_others(struct remote *remote, int awaited, struct error *error) {
    for (int h = 0; h < remote->count; h++)
        if (h != awaited) RETURN_IF(look_at(remote, &remote->hosts[h], error));
    return OK;
}

static int beat_others(struct remote *remote, int awaited, struct error *error) {
    for (int h = 0; h < remote->count; h++)
        if (h != awaited && !remote->hosts[h].done)
            RETURN_IF(remote_ask_why(
                remote,
                frame_write(remote->hosts[h].endpoint, FRAME_HEARTBEAT, 0, NULL, 0, remote->timeout_s, error),
                error));
    return OK;
}

int remote_look(struct remote *remote, struct error *error) {
    const double now = world_now(remote->world);
    if (world_stopped(remote->world)) return remote_stopped(remote, 0, "other workers", error);
    int code = look_at_others(remote, -1, error);
    if (code == OK && now - remote->beaten_s >= remote->beat_s) {
        remote->beaten_s = now;
        code = beat_others(remote, -1, error);
    }
    return remote_name_server(remote, code, error);
}

/* Not while it has stepped copies that nobody else has. */
static bool wants_to_leave(const struct remote *remote) {
    return remote->settings.may_leave && !remote->behind && world_dismissed(remote->world);
}

/* While this worker waits for one of several hosts, the others wait for it: they are told that it lives, so
 * that they do not blame it. leaves, where not NULL: the wait ends, too, once this worker is to leave. */
static int await_host(struct remote *remote, int host, const char *what, bool *leaves, struct error *error) {
    struct endpoint *endpoint = remote->hosts[host].endpoint;
    const double began = world_now(remote->world);
    double beaten = began;
    bool ended = false;
    uint8_t byte;
    if (remote->count == 1 && !leaves) return OK;
    const double timeout_s = timeout_with(remote, host);
    while (endpoint_peek(endpoint, &byte, 1, LOOK_S, &ended) == 0 && !ended) {
        const double now = world_now(remote->world);
        if (leaves) *leaves = wants_to_leave(remote);
        if (leaves && *leaves) return OK;
        if (world_stopped(remote->world)) return remote_stopped(remote, host, what, error);
        RETURN_IF(look_at_others(remote, host, error));
        if (now - began > timeout_s)
            return error_set(error, ERROR_PEER, "%s: no byte of %s for %g s", endpoint_name(endpoint), what,
                             timeout_s);
        if (now - beaten < remote->beat_s) continue;
        beaten = now;
        RETURN_IF(beat_others(remote, host, error));
    }
    return OK;
}

/* What compressing has left out of this worker's gradients. It owes that no more: the hosts know of it. */
static int say_owed(struct remote *remote, struct error *error) {
    for (int h = 0; h < remote->count; h++) {
        const struct remote_host *host = &remote->hosts[h];
        const struct piece piece = {host->packed.kept, remote_slice_bytes(host)};
        if (!packed_is_on(&host->packed)) continue;
        RETURN_IF(remote_ask_why(
            remote, frame_write(host->endpoint, FRAME_OWED, 0, &piece, 1, remote->timeout_s, error), error));
        memset(host->packed.kept, 0, piece.bytes);
    }
    return OK;
}

int remote_own_pieces(const struct remote *remote, const struct remote_host *host, struct piece *pieces) {
    for (int v = 0; v < remote->own.count; v++)
        pieces[v] = (struct piece){remote->own.vector[v].at + host->welcome.begin, remote_slice_bytes(host)};
    return remote->own.count;
}

/* What it has stepped, as long as the hosts do not have it. */
static int give_own(struct remote *remote, struct error *error) {
    struct piece pieces[STATE_VECTORS];
    for (int h = 0; h < remote->count && remote->behind; h++) {
        const struct remote_host *host = &remote->hosts[h];
        const int count = remote_own_pieces(remote, host, pieces);
        RETURN_IF(remote_ask_why(
            remote, frame_write(host->endpoint, FRAME_OWN, 0, pieces, count, remote->timeout_s, error),
            error));
    }
    remote->behind = false;
    return OK;
}

/* Nobody waits for it any more: what it was assigned meanwhile goes to others. A host that is gone by now
 * waits for nobody either. */
static void leave(struct remote *remote) {
    struct error ignored = {0};
    for (int h = 0; h < remote->count; h++)
        frame_write(remote->hosts[h].endpoint, FRAME_LEAVE, 0, NULL, 0, remote->timeout_s, &ignored);
    say_owed(remote, &ignored);
    for (int h = 0; h < remote->count; h++) endpoint_finish(remote->hosts[h].endpoint, LEAVE_S);
    remote->left = true;
}

int remote_await_or_leave(struct remote *remote, int host, const char *what, bool *left,
                          struct error *error) {
    *left = false;
    RETURN_IF(await_host(remote, host, what, remote->settings.may_leave ? left : NULL, error));
    if (*left) leave(remote);
    return OK;
}

static int read_next(struct remote *remote, enum next *next, long *number, bool *over, struct finish *finish,
                     struct error *error) {
    struct remote_host *leader = &remote->hosts[0];
    *over = wants_to_leave(remote);
    if (*over) leave(remote);
    if (!*over) RETURN_IF(remote_await_or_leave(remote, 0, "a batch's number", over, error));
    if (*over) return OK;
    RETURN_IF(frame_read_header(leader->endpoint, "a batch's number", FINISH_BYTES, &leader->header,
                                remote->timeout_s, error));
    *over = leader->header.type == FRAME_GOODBYE;
    if (*over) return remote_read_finish(remote, leader, finish, error);
    RETURN_IF(next_read(leader->endpoint, &leader->header, next, number, &remote->examples, remote->timeout_s,
                        error));
    remote->number = *number;
    for (int h = 1; h < remote->count; h++)
        RETURN_IF(remote_ask_why(
            remote,
            next_write(remote->hosts[h].endpoint, *next, *number, remote->examples, remote->timeout_s, error),
            error));
    if (*next != NEXT_BATCH) RETURN_IF(give_own(remote, error));
    return *next == NEXT_PAUSE ? say_owed(remote, error) : OK;
}

int remote_next(struct remote *remote, enum next *next, long *number, bool *over, struct finish *finish,
                struct error *error) {
    const int code = read_next(remote, next, number, over, finish, error);
    return remote_name_server(remote, code, error);
}

void remote_fail(struct remote *remote, const struct error *why) {
    struct error ignored = {0};
    const struct piece piece = {why->words, strlen(why->words)};
    remote_attend_end(remote);
    remote_end_parts(remote, LAST_WORD_S);
    for (int h = 0; remote->hosts && h < remote->count; h++)
        if (remote->hosts[h].endpoint)
            frame_write(remote->hosts[h].endpoint, FRAME_FAILURE, 0, &piece, 1, LAST_WORD_S, &ignored);
    for (int h = 0; remote->hosts && h < remote->count; h++)
        if (remote->hosts[h].endpoint) endpoint_finish(remote->hosts[h].endpoint, LAST_WORD_S);
}
