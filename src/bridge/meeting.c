/* A worker says hello to all hosts, builds what they train, says that it is ready, and waits for the others.
 * See remote.h.
 *
 * Until a host has told the settings it may close the connection without a word: it has no room for one more
 * just now, or has crashed and comes again. Then, and where it refuses for now, it is tried again. */
#include "meeting.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../base/memory.h"
#include "../world/ucx.h"
#include "upgrade.h"

#define TRY_S 1.0       /* before it reports who is not there yet; between two tries, at most */
#define LOOK_S 0.1      /* between two checks of whether to continue waiting; between the first two tries */
#define LAST_WORD_S 1.0 /* for a host to take a heartbeat */
#define BEAT_S 2.0      /* between two signs of life, at most: a host may have a shorter timeout than we */
#define SILENT_S 5.0    /* after which it says who has not answered the hello */
enum { FRAMES_A_LOOK = 8 };

static const char closed[] = "closed by the peer"; /* as endpoints say it */

static double now_of(const struct remote *remote) {
    return world_now(remote->world);
}

/* --- what a host says --- */

/* Once the host has welcomed us: whether it has gone over. */
static void say_link(struct remote *remote, const struct remote_host *host) {
    char name[300], words[400];
    const int index = (int)(host - remote->hosts);
    snprintf(name, sizeof name, "the %s %d (%s)", remote->settings.server, index,
             remote->settings.hosts->list[index].text);
    if (upgrade_failed(host->endpoint, ucx_sends(host->endpoint) ? HELLO_OFFERS_UCX : 0, name, words,
                       sizeof words))
        remote->settings.say(remote->settings.argument, words);
}

/* The next frame of a host before the training begins. *for_now: it refuses, and may not in a while. */
static int hear_host(struct remote *remote, struct remote_host *host, bool *for_now, struct error *error) {
    const struct remote_settings *settings = &remote->settings;
    const char *peer = endpoint_name(host->endpoint);
    char words[500];
    uint8_t bytes[SETTINGS_BYTES];
    RETURN_IF(frame_read_header(host->endpoint, "a welcome", sizeof bytes, &host->header, remote->timeout_s,
                                error));
    if (host->told && upgrade_is(host->endpoint, &host->header))
        return upgrade_take(host->endpoint, &host->header, remote->timeout_s, error);
    if (host->header.type == FRAME_HEARTBEAT) {
        RETURN_IF(remote_read_words(remote, host, words, error));
        struct error line = {0}; /* which is printable, whatever a host has said */
        if (words[0] == '\0') return OK;
        error_set(&line, ERROR_PEER, "%s", words);
        settings->say(settings->argument, line.words);
        return OK;
    }
    *for_now = host->header.type == FRAME_FAILURE && host->header.flags == FAILURE_FOR_NOW;
    const bool welcomes = host->header.type == FRAME_WELCOME && host->told;
    if (!welcomes && host->header.type != FRAME_CONFIG) return remote_read_end(remote, host, error);
    RETURN_IF(frame_read_payload(host->endpoint, &host->header, bytes, remote->timeout_s, error));
    struct frame_reader reader = {.bytes = bytes, .length = host->header.bytes};
    if (welcomes && host->header.flags != (uint32_t)settings->hello->process)
        return error_set(error, ERROR_PEER, "%s: a welcome of process %08x, expected %08x: a recording?",
                         peer, (unsigned)host->header.flags, (unsigned)settings->hello->process);
    if (!host->told) host->session = host->header.flags;
    host->welcomed = welcomes;
    host->told = true;
    if (welcomes) say_link(remote, host);
    if (welcomes) return welcome_get(&host->welcome, &reader, peer, error);
    if (host != remote->hosts) return OK;
    RETURN_IF(settings_get(&remote->agreed, &reader, peer, error));
    return settings->check ? settings->check(settings->argument, &remote->agreed, error) : OK;
}

/* It is tried again in a while, and each time a little later. */
static void leave(struct remote *remote, struct remote_host *host, const struct error *why) {
    endpoint_close(host->endpoint);
    host->endpoint = NULL;
    host->why = *why;
    host->pause_s = fmin(fmax(2.0 * host->pause_s, LOOK_S), TRY_S);
    host->next_s = now_of(remote) + host->pause_s;
}

/* What has come from a host, so many frames at a time. *moved: there was something. */
static int hear_all_of(struct remote *remote, struct remote_host *host, bool *moved, struct error *error) {
    for (int frames = 0; frames < FRAMES_A_LOOK && host->endpoint && !host->welcomed; frames++) {
        struct error why = {0};
        bool ended = false, for_now = false;
        uint8_t byte;
        if (world_stopped(remote->world)) return OK;
        if (endpoint_peek(host->endpoint, &byte, 1, 0.0, &ended) == 0 && !ended) return OK;
        *moved = true;
        const int code = hear_host(remote, host, &for_now, &why);
        if (code == OK) continue;
        if (host->told || !(for_now || strstr(why.words, closed)))
            return error_set(error, code, "%s", why.words);
        if (for_now && host->pause_s == 0.0) remote->settings.say(remote->settings.argument, why.words);
        leave(remote, host, &why);
    }
    return OK;
}

static int hear_all(struct remote *remote, bool *moved, struct error *error) {
    for (int h = 0; h < remote->count; h++) RETURN_IF(hear_all_of(remote, &remote->hosts[h], moved, error));
    return OK;
}

/* To those who have let us in: they wait for the others. One that takes none is found out by what it says. */
static void beat_all(struct remote *remote) {
    if (now_of(remote) - remote->beaten_s < fmin(remote->beat_s, BEAT_S)) return;
    remote->beaten_s = now_of(remote);
    for (int h = 0; h < remote->count; h++) {
        struct error ignored = {0};
        const struct remote_host *host = &remote->hosts[h];
        if (host->endpoint && host->told)
            frame_write(host->endpoint, FRAME_HEARTBEAT, 0, NULL, 0, LAST_WORD_S, &ignored);
    }
}

/* --- connecting --- */

/* `why` is of the last try alone; the time is that of all. */
static int fail_connecting(const struct remote *remote, int index, const struct error *why,
                           struct error *error) {
    const struct remote_settings *settings = &remote->settings;
    const char *address = settings->hosts->list[index].text, *reason = strrchr(why->words, ':');
    if (remote->hosts[index].why.code != OK)
        return error_set(error, remote->hosts[index].why.code, "%s", remote->hosts[index].why.words);
    if (why->code != ERROR_PEER || !reason || world_stopped(settings->world))
        return error_set(error, why->code, "%s", why->words);
    return error_set(error, ERROR_PEER, "%s: not connected after %g s%s", address, settings->start_s, reason);
}

/* Once of each: it may be no host of ours, or stand still. */
static void say_silent(struct remote *remote, struct remote_host *host) {
    char words[400];
    const int index = (int)(host - remote->hosts);
    if (host->doubted) return;
    snprintf(words, sizeof words,
             "what listens at %s has said nothing for %g s, expected the settings of the %s %d: is it one?",
             remote->settings.hosts->list[index].text, SILENT_S, remote->settings.server, index);
    remote->settings.say(remote->settings.argument, words);
    host->doubted = true;
}

static int say_hello(struct remote *remote, struct remote_host *host, struct error *error) {
    uint8_t bytes[HELLO_BYTES];
    struct error why = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    RETURN_IF(hello_put(remote->settings.hello, &writer, error));
    const struct piece piece = {bytes, writer.used};
    host->since_s = now_of(remote);
    const int code = frame_write(host->endpoint, FRAME_HELLO, upgrade_flags(host->endpoint), &piece, 1,
                                 fmin(SILENT_S, remote->timeout_s), &why);
    if (code == OK) return OK;
    const bool silent = now_of(remote) - host->since_s >= fmin(SILENT_S, remote->timeout_s);
    if (world_stopped(remote->world) || !(silent || strstr(why.words, closed)))
        return error_set(error, code, "%s", why.words);
    if (silent) say_silent(remote, host);
    leave(remote, host, &why);
    return OK;
}

/* A host that has heard a hello answers at once, whomever it waits for. */
static void look_for_silence(struct remote *remote) {
    for (int h = 0; h < remote->count; h++) {
        struct remote_host *host = &remote->hosts[h];
        if (host->endpoint && !host->told && now_of(remote) - host->since_s >= SILENT_S)
            say_silent(remote, host);
    }
}

/* One try. Whom all wait for is said by the leader once it is there; until then by us. */
static int try_host(struct remote *remote, int index, struct error *error) {
    const struct remote_settings *settings = &remote->settings;
    struct remote_host *host = &remote->hosts[index];
    const char *address = settings->hosts->list[index].text;
    const double left = remote->deadline - now_of(remote);
    struct error why = {0};
    if (left <= 0.0 && host->why.code != OK) return fail_connecting(remote, index, &host->why, error);
    const int code = endpoint_connect(settings->world, address, &host->endpoint,
                                      fmax(left < TRY_S ? left : TRY_S, 0.0), &why);
    if (code == OK) return say_hello(remote, host, error);
    const bool again = code == ERROR_PEER && left > TRY_S && !world_stopped(settings->world);
    if (!again) return fail_connecting(remote, index, &why, error);
    if (index > 0 || settings->own_leader || !reminder_is_due(&remote->reminder, now_of(remote))) return OK;
    char words[400];
    snprintf(words, sizeof words, "waiting for the %s %d (%s)", settings->server, index, address);
    settings->say(settings->argument, words);
    return OK;
}

/* The first that is not connected, else the first that has not said what is awaited, which of the settings
 * is the leader alone; -1: none. */
static int first_missing(const struct remote *remote, enum frame_type what) {
    for (int h = 0; h < remote->count; h++)
        if (!remote->hosts[h].endpoint) return h;
    if (what == FRAME_CONFIG) return remote->hosts[0].told ? -1 : 0;
    for (int h = 0; h < remote->count; h++)
        if (!remote->hosts[h].welcomed) return h;
    return -1;
}

/* To those who have let us in, once this worker is ready. Where it may join a training, to the leader last,
 * who then takes it into one. */
static int say_ready(struct remote *remote, struct error *error) {
    uint8_t bytes[READY_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    bool others_know = true;
    if (!remote->built) return OK;
    const bool joins = config_may_be_joined(&remote->agreed.value);
    fingerprint_put(remote->built, &writer);
    const struct piece piece = {bytes, sizeof bytes};
    for (int h = remote->count - 1; h >= 0; h--) {
        struct remote_host *host = &remote->hosts[h];
        others_know = others_know && (h == 0 || host->told);
        if (!host->told || host->knows || (h == 0 && joins && !others_know)) continue;
        RETURN_IF(
            frame_write(host->endpoint, FRAME_READY, host->session, &piece, 1, remote->timeout_s, error));
        host->knows = true;
    }
    return OK;
}

/* Until all have said what is awaited. The ps, which waits as long, is to be the first to give up: it names
 * who is missing. */
static int meet(struct remote *remote, enum frame_type what, struct error *error) {
    const double most_s = remote->settings.start_s + remote->timeout_s, until = now_of(remote) + most_s;
    int h;
    while ((h = first_missing(remote, what)) >= 0) {
        struct remote_host *host = &remote->hosts[h];
        bool moved = false, ended = false;
        uint8_t byte;
        if (!host->endpoint && now_of(remote) >= host->next_s) RETURN_IF(try_host(remote, h, error));
        RETURN_IF(hear_all(remote, &moved, error));
        RETURN_IF(say_ready(remote, error));
        beat_all(remote);
        look_for_silence(remote);
        if (world_stopped(remote->world)) return remote_stopped(remote, h, frame_type_words(what), error);
        if (now_of(remote) >= until)
            return error_set(error, ERROR_PEER, "%s: expected %s within %g s, there was none",
                             remote->settings.hosts->list[h].text, frame_type_words(what), most_s);
        if (moved) continue;
        if (host->endpoint)
            endpoint_peek(host->endpoint, &byte, 1, LOOK_S, &ended);
        else
            world_sleep(remote->world, fmax(host->next_s - now_of(remote), 0.0));
    }
    return OK;
}

/* --- while the caller builds --- */

static void attend_body(void *argument) {
    struct remote *remote = argument;
    bool moved = false;
    while (event_wait(&remote->enough, 1, now_of(remote) + LOOK_S) == WAIT_TIMEOUT) {
        if (hear_all(remote, &moved, &remote->heard) != OK) return;
        beat_all(remote);
    }
}

void remote_attend_end(struct remote *remote) {
    if (!remote->attending) return;
    event_post(&remote->enough);
    world_join(remote->attending);
    remote->attending = NULL;
}

/* --- both halves of the handshake --- */

static int open_hosts(struct remote *remote, struct error *error) {
    RETURN_IF(meet(remote, FRAME_CONFIG, error));
    event_open(&remote->enough, remote->world);
    return world_spawn(remote->world, "attending", NULL, attend_body, remote, &remote->attending, error);
}

int remote_open(struct remote *remote, const struct remote_settings *settings, struct error *error) {
    *remote = (struct remote){.settings = *settings,
                              .world = settings->world,
                              .server = settings->server,
                              .timeout_s = settings->timeout_s,
                              .beat_s = settings->beat_s,
                              .count = settings->hosts->count,
                              .deadline = world_now(settings->world) + settings->start_s};
    RETURN_IF(memory_array(&remote->hosts, remote->count, "parameter servers", error));
    RETURN_IF(memory_array(&remote->transfers, remote->count, "parameter servers", error));
    RETURN_IF(memory_array(&remote->sends, remote->count, "parameter servers", error));
    const int code = open_hosts(remote, error);
    return code == ERROR_PEER ? remote_name_server(remote, code, error) : code;
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

static int get_ready(struct remote *remote, const struct fingerprint *fingerprint, struct error *error) {
    remote_attend_end(remote);
    if (remote->heard.code != OK) return error_set(error, remote->heard.code, "%s", remote->heard.words);
    remote->built = fingerprint;
    RETURN_IF(meet(remote, FRAME_WELCOME, error));
    return check_windows(remote, fingerprint->floats, error);
}

int remote_ready(struct remote *remote, const struct fingerprint *fingerprint, struct error *error) {
    const int code = get_ready(remote, fingerprint, error);
    return code == ERROR_PEER ? remote_name_server(remote, code, error) : code;
}
