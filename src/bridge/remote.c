/* A worker's end of the bridge. See remote.h. */
#include "remote.h"

#include <stdio.h>
#include <string.h>
#include "../base/memory.h"

#define TRY_S 1.0       /* before it reports who is not there yet */
#define LOOK_S 0.1      /* between two checks of whether to continue waiting */
#define LAST_WORD_S 1.0 /* for a host to take it */

/* Words that a host sends, at most what fits. */
static int read_words(struct remote *remote, struct remote_host *host, char words[500], struct error *error) {
    memset(words, 0, 500);
    if (host->header.bytes >= 500)
        return error_set(error, ERROR_PEER, "%s: %llu bytes of words, expected less than 500",
                         endpoint_name(host->endpoint), (unsigned long long)host->header.bytes);
    return frame_read_payload(host->endpoint, &host->header, words, remote->timeout_s, error);
}

static int read_finish(struct remote *remote, struct remote_host *host, struct finish *finish,
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

/* A frame that is not the awaited one: the end of the training, with its message; or nonsense. */
static int read_end(struct remote *remote, struct remote_host *host, struct error *error) {
    const char *peer = endpoint_name(host->endpoint);
    struct finish finish;
    char words[500];
    switch (host->header.type) {
    case FRAME_FAILURE:
        RETURN_IF(read_words(remote, host, words, error));
        return error_set(error, ERROR_PEER, "%s refuses: %s", peer, words);
    case FRAME_GOODBYE:
        RETURN_IF(read_finish(remote, host, &finish, error));
        return error_set(error, ERROR_PEER, "%s ended: %s", peer, finish.words);
    default:
        return error_set(error, ERROR_PEER, "%s: an unexpected frame, %s", peer,
                         frame_type_words(host->header.type));
    }
}

/* --- opening --- */

static int stopped(const struct remote *remote, int host, const char *what, struct error *error) {
    return error_set(error, ERROR_PEER, "%s: stopped while waiting for %s",
                     endpoint_name(remote->hosts[host].endpoint), what);
}

/* The next frame of a host before the training begins. */
static int hear_host(struct remote *remote, struct remote_host *host, struct error *error) {
    const struct remote_settings *settings = &remote->settings;
    const char *peer = endpoint_name(host->endpoint);
    char words[500];
    uint8_t bytes[SETTINGS_BYTES];
    RETURN_IF(frame_read_header(host->endpoint, "a welcome", sizeof bytes, &host->header, remote->timeout_s,
                                error));
    if (host->header.type == FRAME_HEARTBEAT) {
        RETURN_IF(read_words(remote, host, words, error));
        if (words[0] != '\0') settings->say(settings->argument, words);
        return OK;
    }
    const bool welcomes = host->header.type == FRAME_WELCOME && host->told;
    if (!welcomes && host->header.type != FRAME_CONFIG) return read_end(remote, host, error);
    RETURN_IF(frame_read_payload(host->endpoint, &host->header, bytes, remote->timeout_s, error));
    struct frame_reader reader = {.bytes = bytes, .length = host->header.bytes};
    host->welcomed = welcomes;
    host->told = true;
    if (welcomes) return welcome_get(&host->welcome, &reader, peer, error);
    return host == remote->hosts ? settings_get(&remote->agreed, &reader, peer, error) : OK;
}

/* Whether it has sent what is awaited: a welcome, or, from the leader only, the settings. */
static bool has_said(const struct remote *remote, const struct remote_host *host, enum frame_type what) {
    return host->welcomed || (what == FRAME_CONFIG && (host->told || host != remote->hosts));
}

/* What those say who are there already: they may refuse, or end. */
static int hear_others(struct remote *remote, int count, struct error *error) {
    for (int h = 0; h < count; h++) {
        struct remote_host *host = &remote->hosts[h];
        bool ended = false;
        uint8_t byte;
        while (!host->welcomed && (endpoint_peek(host->endpoint, &byte, 1, 0.0, &ended) > 0 || ended))
            RETURN_IF(hear_host(remote, host, error));
    }
    return OK;
}

/* The ps, which waits as long, is to be the first to give up: it names who is missing. */
static int await_all(struct remote *remote, enum frame_type what, struct error *error) {
    const double quiet_s = remote->settings.start_s + remote->timeout_s;
    double heard = world_now(remote->world);
    for (int h = 0; h < remote->count;) {
        struct remote_host *host = &remote->hosts[h];
        bool ended = false;
        uint8_t byte;
        if (has_said(remote, host, what)) {
            h++;
            heard = world_now(remote->world);
        } else if (endpoint_peek(host->endpoint, &byte, 1, LOOK_S, &ended) > 0 || ended) {
            RETURN_IF(hear_host(remote, host, error));
            heard = world_now(remote->world);
        } else {
            RETURN_IF(hear_others(remote, remote->count, error));
            if (world_stopped(remote->world)) return stopped(remote, h, frame_type_words(what), error);
            if (world_now(remote->world) - heard < quiet_s) continue;
            return error_set(error, ERROR_PEER, "%s: no byte of %s for %g s", endpoint_name(host->endpoint),
                             frame_type_words(what), quiet_s);
        }
    }
    return OK;
}

/* `why` is of the last try alone; the time is that of all. */
static int fail_connecting(const struct remote_settings *settings, const char *address,
                           const struct error *why, struct error *error) {
    const char *reason = strrchr(why->words, ':');
    if (why->code != ERROR_PEER || !reason || world_stopped(settings->world))
        return error_set(error, why->code, "%s", why->words);
    return error_set(error, ERROR_PEER, "%s: not connected after %g s%s", address, settings->start_s, reason);
}

/* Whom all wait for is said by the leader once it is there; until then by us. */
static int connect_host(struct remote *remote, int index, struct error *error) {
    const struct remote_settings *settings = &remote->settings;
    struct remote_host *host = &remote->hosts[index];
    const char *address = settings->hosts->list[index].text;
    const double deadline = world_now(settings->world) + settings->start_s;
    uint8_t bytes[HELLO_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    RETURN_IF(hello_put(settings->hello, &writer, error));
    bool said = index > 0;
    while (!host->endpoint) {
        struct error why = {0};
        const double left = deadline - world_now(settings->world);
        const int code =
            endpoint_connect(settings->world, address, &host->endpoint, left < TRY_S ? left : TRY_S, &why);
        const bool again = code == ERROR_PEER && left > TRY_S && !world_stopped(settings->world);
        if (code != OK && !again) return fail_connecting(settings, address, &why, error);
        RETURN_IF(hear_others(remote, index, error));
        if (code == OK || said) continue;
        char words[400];
        snprintf(words, sizeof words, "waiting for the %s %d (%s)", settings->server, index, address);
        settings->say(settings->argument, words);
        said = true;
    }
    const struct piece piece = {bytes, writer.used};
    return frame_write(host->endpoint, FRAME_HELLO, 0, &piece, 1, remote->timeout_s, error);
}

/* The slices lie one after the other, and all hosts mean the same place in the roster. */
static int check_windows(const struct remote *remote, uint64_t floats, struct error *error) {
    uint64_t end = 0;
    for (int h = 0; h < remote->count; h++) {
        const struct welcome *welcome = &remote->hosts[h].welcome, *first = &remote->hosts[0].welcome;
        if (welcome->begin != end || welcome->end <= end || welcome->end > floats ||
            welcome->worker != first->worker || welcome->workers != first->workers)
            return error_set(error, ERROR_PEER,
                             "%s has floats %llu to %llu of %llu for worker %d of %d, expected from %llu for "
                             "worker %d of %d",
                             endpoint_name(remote->hosts[h].endpoint), (unsigned long long)welcome->begin,
                             (unsigned long long)welcome->end, (unsigned long long)floats, welcome->worker,
                             welcome->workers, (unsigned long long)end, first->worker, first->workers);
        if (welcome->worker >= welcome->workers)
            return error_set(error, ERROR_PEER, "%s: a welcome as worker %d of %d",
                             endpoint_name(remote->hosts[h].endpoint), welcome->worker, welcome->workers);
        end = welcome->end;
    }
    if (end == floats) return OK;
    return error_set(error, ERROR_PEER, "all together have %llu floats, expected %llu",
                     (unsigned long long)end, (unsigned long long)floats);
}

static int open_hosts(struct remote *remote, struct error *error) {
    for (int h = 0; h < remote->count; h++) RETURN_IF(connect_host(remote, h, error));
    return await_all(remote, FRAME_CONFIG, error);
}

int remote_open(struct remote *remote, const struct remote_settings *settings, struct error *error) {
    *remote = (struct remote){.settings = *settings,
                              .world = settings->world,
                              .server = settings->server,
                              .timeout_s = settings->timeout_s,
                              .beat_s = settings->beat_s,
                              .count = settings->hosts->count};
    RETURN_IF(memory_array(&remote->hosts, remote->count, "parameter servers", error));
    RETURN_IF(memory_array(&remote->transfers, remote->count, "parameter servers", error));
    const int code = open_hosts(remote, error);
    return code == ERROR_PEER ? error_prefix(error, "the %s ", remote->server) : code;
}

static int get_ready(struct remote *remote, const struct fingerprint *fingerprint, struct error *error) {
    uint8_t bytes[READY_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    fingerprint_put(fingerprint, &writer);
    const struct piece piece = {bytes, sizeof bytes};
    for (int h = 0; h < remote->count; h++)
        RETURN_IF(
            frame_write(remote->hosts[h].endpoint, FRAME_READY, 0, &piece, 1, remote->timeout_s, error));
    RETURN_IF(await_all(remote, FRAME_WELCOME, error));
    return check_windows(remote, fingerprint->floats, error);
}

int remote_ready(struct remote *remote, const struct fingerprint *fingerprint, struct error *error) {
    const int code = get_ready(remote, fingerprint, error);
    return code == ERROR_PEER ? error_prefix(error, "the %s ", remote->server) : code;
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
    for (int h = 0; remote->hosts && h < remote->count; h++) {
        packed_close(&remote->hosts[h].packed);
        endpoint_close(remote->hosts[h].endpoint);
    }
    memory_free(remote->hosts);
    memory_free(remote->transfers);
    *remote = (struct remote){0};
}

/* --- steps --- */

/* Hosts are waited for in their order. One that stands still holds all workers up, some of them at the hosts
 * before it, so these are given more time: whoever waits for the right one is to be the first to give up. */
static double timeout_with(const struct remote *remote, int host) {
    const int last = remote->count - 1;
    return remote->timeout_s * (1.0 + (double)(last - host) / (3.0 * last));
}

static size_t slice_bytes(const struct remote_host *host) {
    return (size_t)(host->welcome.end - host->welcome.begin) * sizeof(float);
}

/* The last message of a host that sends no more: why it ended, after what it sent before. */
static int read_last(struct remote *remote, struct remote_host *host, struct error *error) {
    char dropped[4096];
    while (true) {
        RETURN_IF(frame_read_header(host->endpoint, "a last word", UINT64_MAX, &host->header,
                                    remote->timeout_s, error));
        if (host->header.type == FRAME_GOODBYE || host->header.type == FRAME_FAILURE)
            return read_end(remote, host, error);
        for (uint64_t left = host->header.bytes; left > 0;) {
            const size_t some = left < sizeof dropped ? (size_t)left : sizeof dropped;
            RETURN_IF(
                endpoint_receive(host->endpoint, "a last word", dropped, some, remote->timeout_s, error));
            left -= some;
        }
    }
}

/* While this worker waits for one of several hosts, the others wait for it: they are told that it lives, so
 * that they do not blame it. */
static int await_host(struct remote *remote, int host, const char *what, struct error *error) {
    struct endpoint *endpoint = remote->hosts[host].endpoint;
    const double began = world_now(remote->world);
    double beaten = began;
    bool ended = false;
    uint8_t byte;
    if (remote->count == 1) return OK;
    const double timeout_s = timeout_with(remote, host);
    while (endpoint_peek(endpoint, &byte, 1, LOOK_S, &ended) == 0 && !ended) {
        const double now = world_now(remote->world);
        if (world_stopped(remote->world)) return stopped(remote, host, what, error);
        if (host > 0) endpoint_peek(remote->hosts[0].endpoint, &byte, 1, 0.0, &ended);
        if (ended) return read_last(remote, &remote->hosts[0], error); /* it knows why */
        if (now - began > timeout_s)
            return error_set(error, ERROR_PEER, "%s: no byte of %s for %g s", endpoint_name(endpoint), what,
                             timeout_s);
        if (now - beaten < remote->beat_s) continue;
        beaten = now;
        for (int h = 0; h < remote->count; h++)
            if (h != host)
                RETURN_IF(frame_write(remote->hosts[h].endpoint, FRAME_HEARTBEAT, 0, NULL, 0,
                                      remote->timeout_s, error));
    }
    return OK;
}

/* What compressing has left out of this worker's gradients. It owes that no more: the hosts know of it. */
static int say_owed(struct remote *remote, struct error *error) {
    for (int h = 0; h < remote->count; h++) {
        const struct remote_host *host = &remote->hosts[h];
        const struct piece piece = {host->packed.kept, slice_bytes(host)};
        if (!packed_is_on(&host->packed)) continue;
        RETURN_IF(frame_write(host->endpoint, FRAME_OWED, 0, &piece, 1, remote->timeout_s, error));
        memset(host->packed.kept, 0, piece.bytes);
    }
    return OK;
}

static int read_next(struct remote *remote, enum next *next, long *number, bool *over, struct finish *finish,
                     struct error *error) {
    struct remote_host *leader = &remote->hosts[0];
    RETURN_IF(await_host(remote, 0, "a batch's number", error));
    RETURN_IF(frame_read_header(leader->endpoint, "a batch's number", FINISH_BYTES, &leader->header,
                                remote->timeout_s, error));
    *over = leader->header.type == FRAME_GOODBYE;
    if (*over) return read_finish(remote, leader, finish, error);
    RETURN_IF(next_read(leader->endpoint, &leader->header, next, number, remote->timeout_s, error));
    remote->number = *number;
    for (int h = 1; h < remote->count; h++)
        RETURN_IF(next_write(remote->hosts[h].endpoint, *next, *number, remote->timeout_s, error));
    return *next == NEXT_PAUSE ? say_owed(remote, error) : OK;
}

int remote_next(struct remote *remote, enum next *next, long *number, bool *over, struct finish *finish,
                struct error *error) {
    const int code = read_next(remote, next, number, over, finish, error);
    return code == OK ? OK : error_prefix(error, "the %s ", remote->server);
}

/* What was begun, from all at once. */
static int receive_all(struct remote *remote, struct error *error) {
    const int count = remote->transfer_count;
    remote->transfer_count = 0;
    return count > 0 ? endpoints_exchange(remote->transfers, count, remote->timeout_s, error) : OK;
}

static struct transfer *begin_receive(struct remote *remote, int host, void *buffer, size_t bytes) {
    struct transfer *transfer = &remote->transfers[remote->transfer_count++];
    *transfer = (struct transfer){
        .endpoint = remote->hosts[host].endpoint, .awaits = "weights", .buffer = buffer, .bytes = bytes};
    return transfer;
}

/* Of the payload behind host->header. */
static void begin_part(struct remote *remote, int host, void *buffer, size_t bytes) {
    begin_receive(remote, host, buffer, bytes)->sum =
        frame_sum(remote->hosts[host].endpoint, &remote->hosts[host].header);
}

static bool is_packed(const struct remote_host *host) {
    return packed_is_on(&host->packed) && (host->header.flags & FRAME_PACKED);
}

/* Packed weights may be shorter; unpacked ones have what is owed behind them, where that is so. */
static int check_weights(const struct remote_host *host, struct error *error) {
    const size_t slice = slice_bytes(host);
    uint64_t bytes = REQUEST_BYTES + (packed_is_on(&host->packed) ? 2 * slice : slice);
    if (is_packed(host)) {
        const uint64_t most = REQUEST_BYTES + host->packed.compress.bytes;
        bytes = host->header.bytes < REQUEST_BYTES || host->header.bytes > most ? most : host->header.bytes;
    }
    return frame_expect(host->endpoint, &host->header, FRAME_WEIGHTS, bytes, error);
}

static int read_headers(struct remote *remote, bool *over, struct finish *finish, struct error *error) {
    for (int h = 0; h < remote->count; h++) RETURN_IF(await_host(remote, h, "weights", error));
    for (int h = 0; h < remote->count; h++)
        begin_receive(remote, h, remote->hosts[h].head, FRAME_HEADER_BYTES);
    RETURN_IF(receive_all(remote, error));
    for (int h = 0; h < remote->count; h++) {
        struct remote_host *host = &remote->hosts[h];
        const uint64_t bytes = REQUEST_BYTES + 2 * slice_bytes(host) + (uint64_t)host->packed.compress.bytes;
        const uint64_t limit = bytes > FINISH_BYTES ? bytes : FINISH_BYTES;
        RETURN_IF(
            frame_unpack_header(&host->header, host->head, limit, endpoint_name(host->endpoint), error));
        *over = h == 0 && host->header.type == FRAME_GOODBYE;
        if (*over) return read_finish(remote, host, finish, error);
        if (host->header.type == FRAME_GOODBYE || host->header.type == FRAME_FAILURE)
            return read_end(remote, host, error);
        RETURN_IF(check_weights(host, error));
    }
    return OK;
}

/* Those of all hosts, packed or not, and what is owed to those that have sent it. */
static int read_slices(struct remote *remote, float *weights, struct error *error) {
    for (int h = 0; h < remote->count; h++) {
        struct remote_host *host = &remote->hosts[h];
        if (is_packed(host))
            begin_part(remote, h, host->packed.bytes, (size_t)host->header.bytes - REQUEST_BYTES);
        else
            begin_part(remote, h, weights + host->welcome.begin, slice_bytes(host));
    }
    RETURN_IF(receive_all(remote, error));
    for (int h = 0; h < remote->count; h++) {
        struct remote_host *host = &remote->hosts[h];
        if (packed_is_on(&host->packed) && !is_packed(host))
            begin_part(remote, h, host->packed.kept, slice_bytes(host));
    }
    return receive_all(remote, error);
}

static int unpack(struct remote_host *host, float *weights, struct error *error) {
    if (!is_packed(host)) return OK;
    return packed_read_weights(&host->packed, (size_t)host->header.bytes - REQUEST_BYTES,
                               weights + host->welcome.begin, endpoint_name(host->endpoint), error);
}

static int read_weights(struct remote *remote, struct request *request, float *weights, bool *over,
                        struct finish *finish, struct error *error) {
    RETURN_IF(read_headers(remote, over, finish, error));
    if (*over) return OK;
    for (int h = 0; h < remote->count; h++) begin_part(remote, h, remote->hosts[h].request, REQUEST_BYTES);
    RETURN_IF(receive_all(remote, error));
    RETURN_IF(read_slices(remote, weights, error));
    for (int h = remote->count - 1; h >= 0; h--) { /* the leader's stays */
        const struct endpoint *endpoint = remote->hosts[h].endpoint;
        RETURN_IF(frame_check(endpoint, &remote->hosts[h].header, error));
        RETURN_IF(request_get(request, remote->hosts[h].request, endpoint_name(endpoint), error));
        if (request->number != remote->number)
            return error_set(error, ERROR_PEER, "%s: weights for batch %ld, expected batch %ld",
                             endpoint_name(endpoint), request->number, remote->number);
        RETURN_IF(unpack(&remote->hosts[h], weights, error));
    }
    return OK;
}

int remote_weights(struct remote *remote, struct request *request, float *weights, bool *over,
                   struct finish *finish, struct error *error) {
    const int code = read_weights(remote, request, weights, over, finish, error);
    return code == OK ? OK : error_prefix(error, "the %s ", remote->server);
}

int remote_answer(struct remote *remote, float loss, const float *gradient, struct error *error) {
    for (int h = 0; h < remote->count; h++) {
        struct remote_host *host = &remote->hosts[h];
        const bool packs = packed_is_on(&host->packed);
        struct frame_header header = {.type = FRAME_GRADIENT, .flags = packs ? FRAME_PACKED : 0};
        answer_put(loss, host->request, host->answer);
        host->pieces[0] = (struct piece){host->head, sizeof host->head};
        host->pieces[1] = (struct piece){host->answer, sizeof host->answer};
        host->pieces[2] = packs ? packed_gradient(&host->packed, gradient + host->welcome.begin)
                                : (struct piece){gradient + host->welcome.begin, slice_bytes(host)};
        frame_seal(&header, host->endpoint, host->pieces + 1, 2);
        frame_pack_header(host->head, &header);
        remote->transfers[h] = (struct transfer){
            .endpoint = host->endpoint, .sends = "a gradient", .pieces = host->pieces, .piece_count = 3};
    }
    const int code = endpoints_exchange(remote->transfers, remote->count, remote->timeout_s, error);
    return code == OK ? OK : error_prefix(error, "the %s ", remote->server);
}

void remote_fail(struct remote *remote, const struct error *why) {
    struct error ignored = {0};
    const struct piece piece = {why->words, strlen(why->words)};
    for (int h = 0; remote->hosts && h < remote->count; h++)
        if (remote->hosts[h].endpoint)
            frame_write(remote->hosts[h].endpoint, FRAME_FAILURE, 0, &piece, 1, LAST_WORD_S, &ignored);
    for (int h = 0; remote->hosts && h < remote->count; h++)
        if (remote->hosts[h].endpoint) endpoint_finish(remote->hosts[h].endpoint, LAST_WORD_S);
}
