/* Waits for the workers and for the other parameter servers. handshake.c decides who comes in; what the host
 * says to those that have connected is in peers.c. See host.h. */
#include "host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/reminder.h"
#include "../base/text.h"
#include "door.h"
#include "followers.h"
#include "guests.h"
#include "handshake.h"
#include "joins.h"
#include "upgrade.h"

/* Between two looks, as long as nothing comes: twice as long each time. */
#define LEAST_S 1e-3
#define BUSY_S 0.05  /* at most while one of those who came is still to speak */
#define ACCEPT_S 0.2 /* at most */
#define LOOK_S 1.0   /* between two checks of who is still connected */

static const struct address *address_of(const struct host *host, int ps) {
    return &host->settings.cluster->ps.list[ps];
}

/* --- how long --- */

/* Who leads parameter servers could have begun with those who have come. */
static const char *advice(const struct host *host) {
    const struct cluster *cluster = host->settings.cluster;
    const bool could = cluster->task == 0 && !cluster->mirrored && host->settings.least == 0 &&
                       host->count > 0 && !host->full;
    return could ? "; --workers=1.. begins without" : "";
}

static int check_waiting(const struct host *host, double waited_s, const char *words, struct error *error) {
    const struct host_settings *settings = &host->settings;
    if (world_interrupted()) return error_set(error, ERROR_INTERRUPTED, "interrupted while %s", words);
    if (settings->give_up && atomic_load(settings->give_up))
        return error_set(error, ERROR_PEER, "%s", settings->because->words);
    if (waited_s > settings->start_s)
        return error_set(error, ERROR_PEER, "gave up after %g s %s%s", settings->start_s, words,
                         advice(host));
    return OK;
}

/* --- until all are there --- */

static bool leader_is_missing(const struct host *host) {
    if (host->settings.cluster->task == 0) return false;
    if (!host->leader || !host->leader_ready || upgrade_is_pending(host->leader)) return true;
    return host->settings.least > 0 && !joins_know_first(host);
}

static bool is_missing(const struct host *host, int task) {
    if (host->settings.least > 0 && host->settings.cluster->task > 0)
        return joins_is_first(host, task) && !joins_has_come(host, task);
    if (host->settings.least > 0 && host->settings.cluster->mirrored && task >= host->settings.least)
        return false;
    const struct peer *first = handshake_find_peer(host, task, -1);
    int come = 0;
    for (int i = 0; i < host->count; i++)
        come += host->peers[i].task == task && host->peers[i].ready &&
                !upgrade_is_pending(host->peers[i].endpoint);
    return !first || come < first->devices;
}

static void add_name(struct text *names, const char *what, int task, const char *address) {
    text_add(names, "%s%s %d (%s)", names->used > 0 ? ", " : "waiting for ", what, task, address);
}

static bool server_is_missing(const struct host *host, int server) {
    if (server == 0) return leader_is_missing(host);
    return server <= host->follower_count && !followers_are_met(host, server - 1);
}

/* Whether the mirrored process of that worker is here, as a server. Its worker, if missing, waits for others
 * itself. */
static bool is_here(const struct host *host, int task) {
    if (!host->settings.cluster->mirrored) return false;
    return task == host->settings.cluster->task ||
           (task <= host->follower_count && !server_is_missing(host, task));
}

static void add_workers(const struct host *host, struct text *names, const char *server, bool here) {
    const struct cluster *cluster = host->settings.cluster;
    for (int task = 0; task < cluster->workers.count; task++)
        if (is_missing(host, task) && is_here(host, task) == here &&
            !(cluster->mirrored && server_is_missing(host, task)))
            add_name(names, cluster->mirrored && task < cluster->ps.count ? server : "worker", task,
                     cluster->workers.list[task].text);
}

/* "waiting for worker 1 (host:2223), worker 2 (host:2224)"; empty: nobody is missing. */
static const char *name_missing(const struct host *host, char *words, size_t bytes) {
    struct text names = text_into(words, bytes);
    char server[64];
    snprintf(server, sizeof server, "the %s", cluster_server(host->settings.cluster));
    for (int i = 0; i <= host->follower_count; i++)
        if (server_is_missing(host, i)) add_name(&names, server, i, address_of(host, i)->text);
    add_workers(host, &names, server, false);
    if (names.used == 0) add_workers(host, &names, server, true);
    return words;
}

static int by_place(const void *a, const void *b) {
    const struct peer *x = a, *y = b;
    return x->task != y->task ? x->task - y->task : x->device - y->device;
}

static int listen_for_all(struct host *host, struct error *error) {
    const struct cluster *cluster = host->settings.cluster;
    struct world *world = host->settings.world;
    const int descriptors = world_descriptors();
    host->guests_most = descriptors / 4 < HOST_GUESTS ? descriptors / 4 + 1 : HOST_GUESTS;
    RETURN_IF(link_use(cluster, world, error));
    RETURN_IF(endpoint_listen(world, address_of(host, cluster->task)->text, &host->listener, error));
    return followers_open(host, error);
}

/* One more, if there is room for it; who is not let in yet waits in the kernel. */
int host_let_in(struct host *host, double seconds, bool *moved, struct error *error) {
    struct endpoint *endpoint = NULL;
    if (!guests_make_room(host)) {
        world_sleep(host->settings.world, seconds);
        return OK;
    }
    RETURN_IF(listener_accept(host->listener, &endpoint, seconds, error));
    if (listener_is_crowded(host->listener)) guests_drop_one(host);
    if (!endpoint) return OK;
    *moved = true;
    guests_add(host, &(struct guest){.endpoint = endpoint, .since_s = world_now(host->settings.world)});
    return OK;
}

/* Now and then: what the followers say, and what is said to all that are there and to the user. */
static int look(struct host *host, double *looked, struct reminder *reminder, const char *words,
                struct error *error) {
    const struct host_settings *settings = &host->settings;
    const double now = world_now(settings->world);
    if (now - *looked < LOOK_S) return OK;
    const bool speaks = words[0] && reminder_is_due(reminder, now);
    RETURN_IF(followers_look(host, error));
    followers_tell(host);
    handshake_tell(host, speaks ? words : "");
    guests_say_unsaid(host, now);
    if (speaks) settings->say(settings->argument, words);
    *looked = world_now(settings->world);
    return OK;
}

static int wait_for_all(struct host *host, struct error *error) {
    struct world *world = host->settings.world;
    const double began = world_now(world);
    double looked = began, pause_s = LEAST_S;
    char *words = host->waits_for, before[sizeof host->waits_for] = "";
    struct reminder reminder = {.due_s = INFINITY};
    while (true) {
        bool moved = false;
        RETURN_IF(followers_meet(host, error));
        if (name_missing(host, words, sizeof host->waits_for)[0] == '\0' || joins_enough(host)) return OK;
        RETURN_IF(check_waiting(host, world_now(world) - began, words, error));
        if (strcmp(words, before) != 0) reminder_renew(&reminder, world_now(world));
        memcpy(before, words, sizeof before);
        RETURN_IF(look(host, &looked, &reminder, words, error));
        RETURN_IF(host_let_in(host, pause_s, &moved, error));
        RETURN_IF(handshake_hear(host, &moved, error));
        RETURN_IF(joins_hear_first(host, error));
        const bool busy = handshake_is_busy(host) || followers_are_busy(host);
        pause_s = moved ? LEAST_S : fmin(2.0 * pause_s, busy ? BUSY_S : ACCEPT_S);
    }
}

int host_open(struct host *host, const struct host_settings *settings, struct error *error) {
    *host = (struct host){.settings = *settings};
    RETURN_IF(listen_for_all(host, error));
    host->settings.waits = NULL;
    if (settings->waits) settings->say(settings->argument, settings->waits);
    RETURN_IF(wait_for_all(host, error));
    guests_end(host);
    qsort(host->peers, (size_t)host->count, sizeof *host->peers, by_place);
    RETURN_IF(joins_open(host, error));
    host->present = host->count;
    host->full = true;
    return door_open(host, error);
}

void host_close(struct host *host) {
    door_close(host);
    joins_close(host);
    guests_end(host);
    for (int i = 0; i < host->count; i++) {
        packed_close(&host->peers[i].packed);
        endpoint_close(host->peers[i].endpoint);
    }
    followers_close(host);
    endpoint_close(host->leader);
    listener_close(host->listener);
    memory_free(host->peers);
    memory_free(host->first);
    *host = (struct host){0};
}

/* --- the training begins --- */

int host_watch(struct host *host, struct error *error) {
    return handshake_watch(host, error);
}

/* All workers have come to them, too. Until then those who have come here are to stay. */
static int await_followers(struct host *host, struct error *error) {
    struct world *world = host->settings.world;
    const double began = world_now(world);
    double looked = began, pause_s = LEAST_S;
    while (true) {
        const struct follower *missing = NULL;
        char words[150] = "";
        RETURN_IF(followers_hear(host, &missing, error));
        if (!missing) return OK;
        snprintf(words, sizeof words, "waiting for %s", missing->name);
        RETURN_IF(check_waiting(host, world_now(world) - began, words, error));
        RETURN_IF(handshake_watch(host, error));
        RETURN_IF(look(host, &looked, NULL, "", error));
        if (host->lost.code != OK) return error_set(error, host->lost.code, "%s", host->lost.words);
        world_sleep(world, pause_s);
        pause_s = fmin(2.0 * pause_s, BUSY_S);
    }
}

int host_blame_leader(const struct host *host, int code, struct error *error) {
    const struct cluster *cluster = host->settings.cluster;
    char name[300];
    if (code == OK) return OK;
    snprintf(name, sizeof name, "the %s 0 (%s)", cluster_server(cluster), cluster->ps.list[0].text);
    return host_blame(host->leader, name, error);
}

/* It repeats what the process that it goes to calls itself: no recording of an earlier one does. */
static int send_welcome(struct endpoint *endpoint, const struct welcome *welcome, uint64_t process,
                        double timeout_s, struct error *error) {
    uint8_t bytes[WELCOME_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    RETURN_IF(welcome_put(welcome, &writer, error));
    const struct piece piece = {bytes, writer.used};
    return frame_write(endpoint, FRAME_WELCOME, (uint32_t)process, &piece, 1, timeout_s, error);
}

int host_welcome(struct host *host, const struct welcome *welcome, struct error *error) {
    const double timeout_s = host->settings.timeout_s;
    struct welcome own = *welcome;
    const uint64_t floats = host->settings.fingerprint->floats;
    uint64_t end = welcome->end;
    own.workers = host->count;
    RETURN_IF(joins_say_first(host, error));
    RETURN_IF(await_followers(host, error));
    for (int f = 0; f < host->follower_count; f++) {
        struct follower *follower = &host->followers[f];
        const struct welcome theirs = follower->welcome;
        if (theirs.workers != host->count || theirs.begin != end || theirs.end <= end || theirs.end > floats)
            return error_set(error, ERROR_PEER,
                             "%s has floats %llu to %llu of %llu for %d workers, expected from %llu for %d",
                             follower->name, (unsigned long long)theirs.begin, (unsigned long long)theirs.end,
                             (unsigned long long)floats, theirs.workers, (unsigned long long)end,
                             host->count);
        follower->begin = end;
        follower->end = end = theirs.end;
    }
    if (host->leader)
        RETURN_IF(host_blame_leader(
            host, send_welcome(host->leader, &own, host->leader_process, timeout_s, error), error));
    for (int i = 0; i < host->count; i++) {
        own.worker = i;
        const struct peer *peer = &host->peers[i];
        const int code = peer->endpoint ? host_welcome_one(host, peer, &own, error) : OK;
        if (code != OK) return host_blame(peer->endpoint, peer->name, error);
    }
    return OK;
}

int host_welcome_one(struct host *host, const struct peer *peer, const struct welcome *welcome,
                     struct error *error) {
    return send_welcome(peer->endpoint, welcome, peer->process, host->settings.timeout_s, error);
}
