/* The room, and how one gets from it into the training. See joins.h. */
#include "joins.h"

#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../data/stream.h"
#include "door.h"
#include "followers.h"
#include "guests.h"
#include "handshake.h"
#include "lead.h"
#include "upgrade.h"

/* Between two looks, as long as nothing comes: twice as long each time. */
#define LEAST_S 1e-3
#define BUSY_S 0.02 /* at most while somebody in the room is still to speak */
#define BEAT_S 1.0  /* between two signs of life */

struct joins {
    struct host room;         /* the door's thread has its guests; the listener is borrowed */
    struct lock lock;         /* around the room's peers; rank: nothing else is taken under it */
    _Atomic bool *held;       /* [workers of the cluster] places that a process has */
    _Atomic bool anyone;      /* is ready for a place that is not held */
    double beaten_s, pause_s; /* the door's */
};

/* --- the option --- */

static bool get_number(const char **text, int *number) {
    char *end;
    if (**text < '0' || **text > '9') return false;
    const long value = strtol(*text, &end, 10);
    if (value > ADDRESSES_MOST) return false;
    *number = (int)value;
    *text = end;
    return true;
}

/* "2..8", or "2.." for all that the cluster has. */
static bool get_range(const char *text, int *least, int *most) {
    if (!get_number(&text, least) || strncmp(text, "..", 2) != 0) return false;
    text += 2;
    return *text == '\0' || (get_number(&text, most) && *text == '\0');
}

int joins_read(const struct config *config, const struct cluster *cluster, int *least, struct error *error) {
    const int workers = cluster->workers.count;
    int most = workers;
    *least = 0;
    if (!config_may_be_joined(config)) return OK;
    const bool good = get_range(config->workers, least, &most);
    if (good && *least > workers && most == workers)
        return error_set(error, ERROR_USAGE,
                         "--workers=%s: the cluster has %d worker%s, expected at least %d", config->workers,
                         workers, workers == 1 ? "" : "s", *least);
    if (!good || *least < 1 || *least > most)
        return error_set(error, ERROR_USAGE, "--workers=%s: expected LEAST..MOST, as in 2..8, or all",
                         config->workers);
    if (most != workers)
        return error_set(error, ERROR_USAGE, "--workers=%s: the cluster has %d worker%s, expected %d",
                         config->workers, workers, workers == 1 ? "" : "s", most);
    if (config->data_sharding != SHARDING_SHARED)
        return error_set(error, ERROR_USAGE,
                         "--workers=%s: found --data-sharding=%s, expected shared: who joins has no examples "
                         "of its own",
                         config->workers, config->data_sharding == SHARDING_SPLIT ? "split" : "all");
    return OK;
}

/* --- at the start --- */

/* It has been built, and all that it sends from now on goes the same way. */
static bool is_ready(const struct peer *peer) {
    return peer->ready && !upgrade_is_pending(peer->endpoint);
}

/* Where the workers hold the weights, those who do are there anyhow: all begin with them. */
static bool is_counted(const struct host *host, const struct peer *peer) {
    return is_ready(peer) && (!host->settings.cluster->mirrored || peer->task < host->settings.least);
}

bool joins_enough(const struct host *host) {
    int ready = 0;
    for (int i = 0; i < host->count; i++) ready += is_counted(host, &host->peers[i]);
    for (int f = 0; f < host->follower_count; f++)
        if (!followers_are_met(host, f)) return false;
    return host->settings.least > 0 && host->settings.cluster->task == 0 && ready >= host->settings.least;
}

bool joins_know_first(const struct host *host) {
    return host->leader && host->leader_ready && host->first && host->first_session == host->leader_session;
}

/* Whether all of its first word is there, or something else. */
static bool has_said_first(const struct host *host) {
    uint8_t bytes[FRAME_HEADER_BYTES + ADMIT_BYTES];
    struct frame_header header;
    struct error ignored = {0};
    const size_t count = endpoint_peek(host->leader, bytes, sizeof bytes, 0.0, &(bool){false});
    if (count < FRAME_HEADER_BYTES) return false;
    if (frame_unpack_header(&header, bytes, ADMIT_BYTES, "", &ignored) != OK) return true;
    return header.type != FRAME_GOODBYE && header.type != FRAME_HEARTBEAT &&
           count >= FRAME_HEADER_BYTES + header.bytes;
}

int joins_hear_first(struct host *host, struct error *error) {
    const int places = host->settings.cluster->workers.count;
    struct frame_header header;
    bool whole;
    if (host->settings.least == 0 || !host->leader || !host->leader_ready || joins_know_first(host) ||
        upgrade_is_next(host->leader, &whole) || !has_said_first(host))
        return OK;
    if (!host->first) RETURN_IF(memory_array(&host->first, places, "places", error));
    RETURN_IF(frame_read_header(host->leader, "with whom all begin", ADMIT_BYTES, &header, 0.0, error));
    RETURN_IF(admit_receive(host->leader, &header, 0, host->first, places, 0.0, error));
    host->first_session = host->leader_session;
    return OK;
}

bool joins_is_first(const struct host *host, int task) {
    return joins_know_first(host) && host->first[task] != 0;
}

bool joins_has_come(const struct host *host, int task) {
    const struct peer *peer = handshake_find_peer(host, task, -1);
    return peer && is_ready(peer) && peer->process == host->first[task];
}

int joins_say_first(struct host *host, struct error *error) {
    uint64_t *first;
    int code = OK;
    if (!host->joins || host->follower_count == 0) return OK;
    RETURN_IF(memory_array(&first, host->count, "places", error));
    for (int i = 0; i < host->count; i++) first[i] = host->peers[i].endpoint ? host->peers[i].process : 0;
    for (int f = 0; f < host->follower_count && code == OK; f++) {
        const struct follower *follower = &host->followers[f];
        code = admit_send(follower->endpoint, 0, first, host->count, host->settings.timeout_s, error);
        code = follower_blame(host, follower, code, error);
    }
    memory_free(first);
    return code;
}

/* What is refused there is said to who comes: the training's thread alone speaks to the user. */
static void say_nothing(void *argument, const char *words) {
    (void)argument, (void)words;
}

/* Nobody has it: it is named by the cluster's list. */
static void name_place(const struct host *host, int task, struct peer *peer) {
    *peer = (struct peer){.task = task, .devices = 1};
    snprintf(peer->device_name, sizeof peer->device_name, "absent");
    snprintf(peer->name, sizeof peer->name, "worker %d (%.50s)", task,
             host->settings.cluster->workers.list[task].text);
}

static int open_room(struct host *host, struct error *error) {
    struct joins *joins = host->joins;
    const int places = host->settings.cluster->workers.count;
    joins->room = (struct host){.settings = host->settings,
                                .listener = host->listener,
                                .guests_most = host->guests_most,
                                .sessions = host->sessions,
                                .peers = host->peers,
                                .count = host->count,
                                .room = host->room,
                                .trains = host};
    joins->room.settings.say = say_nothing;
    joins->pause_s = LEAST_S;
    lock_open(&joins->lock, host->settings.world);
    host->peers = NULL;
    host->count = host->room = 0;
    RETURN_IF(memory_array(&joins->held, places, "places", error));
    RETURN_IF(memory_array(&host->peers, places, "remote workers", error));
    host->count = host->room = places;
    for (int task = 0; task < places; task++) name_place(host, task, &host->peers[task]);
    return OK;
}

/* From the room to its place. */
static int seat(struct host *host, int index) {
    struct host *room = &host->joins->room;
    const int task = room->peers[index].task;
    host->peers[task] = room->peers[index];
    room->peers[index] = room->peers[--room->count];
    atomic_store(&host->joins->held[task], true);
    return task;
}

static bool begins(const struct host *host, const struct peer *peer) {
    return is_ready(peer) && (!host->leader || peer->process == host->first[peer->task]);
}

int joins_open(struct host *host, struct error *error) {
    if (host->settings.least == 0) return OK;
    RETURN_IF(memory_array(&host->joins, 1, "a room for who joins", error));
    RETURN_IF(open_room(host, error));
    for (int i = host->joins->room.count - 1; i >= 0; i--)
        if (begins(host, &host->joins->room.peers[i])) seat(host, i);
    return OK;
}

void joins_close(struct host *host) {
    struct joins *joins = host->joins;
    if (!joins) return;
    guests_end(&joins->room);
    for (int i = 0; i < joins->room.count; i++) endpoint_close(joins->room.peers[i].endpoint);
    memory_free(joins->room.peers);
    memory_free(joins->held);
    memory_free(joins);
    host->joins = NULL;
}

/* --- the room --- */

bool joins_is_held(const struct host *room, int task) {
    return room->trains && atomic_load(&room->trains->joins->held[task]);
}

void joins_release(struct host *host, int place) {
    if (host->joins) atomic_store(&host->joins->held[place], false);
}

static bool may_take(const struct host *host, const struct peer *peer) {
    return is_ready(peer) && !peer->unmet && !atomic_load(&host->joins->held[peer->task]);
}

static bool is_anyone_ready(const struct host *host) {
    const struct host *room = &host->joins->room;
    for (int i = 0; i < room->count; i++)
        if (may_take(host, &room->peers[i])) return true;
    return false;
}

/* The door's thread, which has the guests. */
static void refuse_unmet(struct host *room) {
    for (int i = room->count - 1; i >= 0; i--) {
        struct guest guest = {.endpoint = room->peers[i].endpoint};
        char words[200];
        if (!room->peers[i].unmet) continue;
        snprintf(words, sizeof words, "%s is not there at every %s: it is to come again", room->peers[i].name,
                 cluster_server(room->settings.cluster));
        room->peers[i] = room->peers[--room->count];
        guest_refuse(room, &guest, words, FAILURE_FOR_NOW, true);
        guests_add(room, &guest);
    }
}

void joins_attend(struct host *host, double seconds) {
    struct joins *joins = host->joins;
    struct host *room = &joins->room;
    struct error ignored = {0};
    bool moved = false;
    const double now = world_now(host->settings.world);
    if (host_let_in(room, joins->pause_s, &moved, &ignored) != OK) world_sleep(host->settings.world, seconds);
    lock_take(&joins->lock);
    handshake_hear(room, &moved, &ignored);
    refuse_unmet(room);
    if (now >= joins->beaten_s + BEAT_S) {
        handshake_tell(room, "");
        joins->beaten_s = now;
    }
    atomic_store(&joins->anyone, is_anyone_ready(host));
    const bool busy = handshake_is_busy(room);
    lock_release(&joins->lock);
    joins->pause_s = moved ? LEAST_S : 2.0 * joins->pause_s;
    if (joins->pause_s > (busy ? BUSY_S : seconds)) joins->pause_s = busy ? BUSY_S : seconds;
}

bool joins_wait(struct host *host) {
    return host->joins && atomic_load(&host->joins->anyone);
}

/* --- into the training --- */

/* Who has gone leaves the place as if nobody had ever been there; what went over the wire stays. */
static void clear_place(struct host *host, int task) {
    struct peer *peer = &host->peers[task];
    if (peer->endpoint) {
        host->sent_before += endpoint_sent(peer->endpoint);
        host->received_before += endpoint_received(peer->endpoint);
    }
    endpoint_close(peer->endpoint);
    packed_close(&peer->packed);
    name_place(host, task, peer);
}

/* Of those in the room; -1: it is not there, or not ready. */
static int find(const struct host *host, int place, uint64_t process) {
    const struct host *room = &host->joins->room;
    for (int i = 0; i < room->count; i++)
        if (may_take(host, &room->peers[i]) && room->peers[i].task == place &&
            room->peers[i].process == process)
            return i;
    return -1;
}

bool joins_next(struct host *host, const bool *is_free, int *place, uint64_t *process) {
    struct joins *joins = host->joins;
    *place = -1;
    lock_take(&joins->lock);
    for (int i = 0; i < joins->room.count && *place < 0; i++) {
        const struct peer *peer = &joins->room.peers[i];
        if (!may_take(host, peer) || !is_free[peer->task]) continue;
        *place = peer->task;
        *process = peer->process;
    }
    lock_release(&joins->lock);
    return *place >= 0;
}

bool joins_seat(struct host *host, int place, uint64_t process) {
    struct joins *joins = host->joins;
    lock_take(&joins->lock);
    const int index = find(host, place, process);
    if (index >= 0) {
        clear_place(host, place);
        seat(host, index);
    }
    atomic_store(&joins->anyone, is_anyone_ready(host));
    lock_release(&joins->lock);
    return index >= 0;
}

void joins_unseat(struct host *host, int place) {
    clear_place(host, place);
    joins_release(host, place);
}

void joins_refuse(struct host *host, int place, uint64_t process) {
    struct joins *joins = host->joins;
    lock_take(&joins->lock);
    const int index = find(host, place, process);
    if (index >= 0) joins->room.peers[index].unmet = true;
    atomic_store(&joins->anyone, is_anyone_ready(host));
    lock_release(&joins->lock);
}

struct endpoint *joins_waiting(const struct host *host, int index) {
    return host->joins && index < host->joins->room.count ? host->joins->room.peers[index].endpoint : NULL;
}
