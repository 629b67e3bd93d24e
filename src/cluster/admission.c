/* Who joins while all pause. The leader finds who is ready, has the other parameter servers keep the place
 * for that process, and welcomes it; they do so when the change comes with which all go on (CHANGE in
 * lead.h). See members.h. */
#include "admission.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../bridge/joins.h"

#define THERE_S                                                                                              \
    5.0 /* for a newcomer to be ready here, too: it has said so here before it did to the leader */
#define LOOK_S 1e-3

static struct welcome welcome_of(const struct members *members, int worker) {
    const struct store *store = members->site->store;
    return (struct welcome){.worker = worker,
                            .workers = members->host.count,
                            .begin = store->begin,
                            .end = store->end,
                            .root = -1};
}

/* --- the leader --- */

static int hear_one(struct members *members, int f, uint64_t *values, struct error *error) {
    struct host *host = &members->host;
    const struct follower *follower = &host->followers[f];
    struct frame_header header;
    RETURN_IF(follower_hear(host, f, "an admission", &header, members->fetch_s, error));
    RETURN_IF(follower_blame(&members->host, follower,
                             admit_receive(follower->endpoint, &header, members->admitted, values,
                                           host->count, members->timeout_s, error),
                             error));
    for (int w = 0; w < host->count; w++)
        if (values[w] > ADMISSION_ABSENT)
            return error_set(error, ERROR_PEER, "%s: an admission with %llu, expected 0 to %d",
                             follower->name, (unsigned long long)values[w], ADMISSION_ABSENT);
    return OK;
}

/* What the followers say of those who are to take a place now; *said: the worst of it. */
static int ask(struct members *members, enum admission *said, struct error *error) {
    struct host *host = &members->host;
    uint64_t *values;
    *said = ADMISSION_THERE;
    if (host->follower_count == 0) return OK;
    members->admitted++;
    for (int f = 0; f < host->follower_count; f++) {
        const struct follower *follower = &host->followers[f];
        RETURN_IF(follower_blame(&members->host, follower,
                                 admit_send(follower->endpoint, members->admitted, members->taking,
                                            host->count, members->timeout_s, error),
                                 error));
    }
    RETURN_IF(memory_array(&values, host->count, "admissions", error));
    int code = OK;
    for (int f = 0; f < host->follower_count && code == OK; f++) {
        code = hear_one(members, f, values, error);
        for (int w = 0; w < host->count && code == OK; w++)
            if (values[w] > *said) *said = (enum admission)values[w];
    }
    memory_free(values);
    return code;
}

static bool seat(struct members *members, int worker, uint64_t process) {
    struct host *host = &members->host;
    struct error gone = {0};
    if (!joins_seat(host, worker, process)) return false;
    const struct welcome welcome = welcome_of(members, worker);
    if (host_welcome_one(host, &host->peers[worker], &welcome, &gone) == OK) return true;
    joins_unseat(host, worker); /* it may come again */
    return false;
}

/* *seated: everybody keeps the place for it. */
static int try_one(struct members *members, int worker, uint64_t process, bool *seated, struct error *error) {
    enum admission said;
    members->taking[worker] = process;
    RETURN_IF(ask(members, &said, error));
    *seated = said == ADMISSION_THERE && seat(members, worker, process);
    if (*seated) return OK;
    if (said == ADMISSION_ABSENT) joins_refuse(&members->host, worker, process);
    members->taking[worker] = 0;
    return ask(members, &said, error);
}

int members_admit(void *self, const bool *is_free, int *worker, struct error *error) {
    struct members *members = self;
    bool *may, seated = false;
    uint64_t process;
    int code = OK;
    RETURN_IF(memory_array(&may, members->host.count, "places", error));
    memcpy(may, is_free, (size_t)members->host.count * sizeof *may);
    while (code == OK && !seated && joins_next(&members->host, may, worker, &process)) {
        may[*worker] = false; /* once at a pause */
        code = try_one(members, *worker, process, &seated, error);
    }
    memory_free(may);
    if (code != OK || !seated) {
        *worker = -1;
        return code;
    }
    return members_open_packed(members, *worker, error);
}

/* --- a follower --- */

static enum admission take_place(struct members *members, struct training *training, int worker,
                                 uint64_t process) {
    struct world *world = members->site->world;
    const double until = world_now(world) + fmin(THERE_S, members->timeout_s);
    training_give_up(training, worker); /* the leader has lost who had the place */
    if (!training_place_is_free(training, worker)) return ADMISSION_LATER;
    while (!joins_seat(&members->host, worker, process)) {
        if (world_now(world) >= until) return ADMISSION_ABSENT;
        world_sleep(world, LOOK_S);
    }
    members->taking[worker] = process;
    return ADMISSION_THERE;
}

static void give_place_up(struct members *members, int worker) {
    joins_unseat(&members->host, worker);
    members->taking[worker] = 0;
}

static int answer(struct members *members, struct training *training, const struct frame_header *header,
                  uint64_t *values, struct error *error) {
    struct endpoint *leader = members->host.leader;
    const int count = members->host.count;
    members->admitted++;
    RETURN_IF(admit_receive(leader, header, members->admitted, values, count, members->timeout_s, error));
    for (int w = 0; w < count; w++) {
        uint64_t *taking = &members->taking[w];
        if (*taking != 0 && *taking != values[w]) give_place_up(members, w);
        values[w] = values[w] == *taking ? ADMISSION_THERE : take_place(members, training, w, values[w]);
    }
    return admit_send(leader, members->admitted, values, count, members->timeout_s, error);
}

int members_keep_places(struct members *members, struct training *training, const struct frame_header *header,
                        struct error *error) {
    uint64_t *values;
    if (!members->host.joins)
        return error_set(error, ERROR_PEER, "an admission, expected none without --workers");
    RETURN_IF(memory_array(&values, members->host.count, "admissions", error));
    const int code = answer(members, training, header, values, error);
    memory_free(values);
    return code;
}

/* One that has gone meanwhile is lost as soon as it is waited for. */
int members_settle_places(struct members *members, const bool *present, bool *joins, struct error *error) {
    struct host *host = &members->host;
    for (int w = 0; w < host->count; w++) {
        const struct welcome welcome = welcome_of(members, w);
        struct error gone = {0};
        joins[w] = present[w] && members->taking[w] != 0;
        if (members->taking[w] != 0 && !present[w]) give_place_up(members, w);
        if (!joins[w]) continue;
        members->taking[w] = 0;
        host_welcome_one(host, &host->peers[w], &welcome, &gone);
        RETURN_IF(members_open_packed(members, w, error));
    }
    return OK;
}
