/* What the leader fetches at each pause: the followers' slices, what their shards have counted, and whom they
 * have lost. See members.h. */
#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "members.h"

enum { TALLY_VALUES = STALENESS_BINS + 4 };

#define REST_S 10.0 /* for a follower's slice, at most, once the run has failed */

static void put_tally(uint64_t *values, const struct tally *tally) {
    *values++ = (uint64_t)tally->updates;
    *values++ = (uint64_t)tally->dropped;
    *values++ = (uint64_t)tally->staleness_sum;
    *values++ = (uint64_t)tally->staleness_max;
    for (int b = 0; b < STALENESS_BINS; b++) *values++ = (uint64_t)tally->staleness[b];
}

static struct tally get_tally(const uint64_t *values) {
    struct tally tally = {.updates = (long)values[0],
                          .dropped = (long)values[1],
                          .staleness_sum = (double)values[2],
                          .staleness_max = (long)values[3]};
    for (int b = 0; b < STALENESS_BINS; b++) tally.staleness[b] = (long)values[4 + b];
    return tally;
}

/* All workers' tallies, which of them are lost here, then the lost updates. */
static int open_values(const struct members *members, uint64_t **values, int *count, struct error *error) {
    *count = members->host.count * (TALLY_VALUES + 1) + 1;
    return memory_array(values, *count, "tallies", error);
}

/* What the workers owe, in their order, is what the store has of it. Those that are lost owe nothing more. */
static void gather_owed(struct members *members) {
    const struct store *store = members->site->store;
    float *owed = state_find(&store->kept, "owed");
    bool cleared = false;
    for (int w = 0; owed && w < members->host.count; w++) {
        struct peer *peer = &members->host.peers[w];
        if (!peer->owes) continue;
        if (!cleared) memset(owed + store->begin, 0, (store->end - store->begin) * sizeof *owed);
        cleared = true;
        for (size_t i = store->begin; i < store->end; i++) owed[i] += peer->packed.kept[i - store->begin];
        peer->owes = false;
    }
}

/* One that has left has told the leader so, or will. */
static bool is_lost(const struct members *members, int worker) {
    return !atomic_load(&members->site->roster->members[worker].active) && !members->host.peers[worker].left;
}

int members_answer(struct members *members, struct error *error) {
    const struct store *store = members->site->store;
    const struct slice slice = members_slice(members, store->begin, store->end);
    uint64_t *values = NULL;
    int count = 0;
    gather_owed(members);
    RETURN_IF(open_values(members, &values, &count, error));
    for (int w = 0; w < members->host.count; w++) {
        struct tally tally = {0};
        store_tally(store, w, &tally);
        put_tally(values + (size_t)w * TALLY_VALUES, &tally);
        values[members->host.count * TALLY_VALUES + w] = is_lost(members, w);
    }
    values[count - 1] = (uint64_t)store_lost_updates(store);
    int code = tallies_send(members->host.leader, members->fetched, values, count, members->timeout_s, error);
    if (code == OK) code = slice_send(members->host.leader, &slice, members->timeout_s, error);
    memory_free(values);
    if (code == OK) return OK;
    char name[300];
    const struct cluster *cluster = members->host.settings.cluster;
    snprintf(name, sizeof name, "the %s 0 (%s)", cluster_server(cluster), cluster->ps.list[0].text);
    return host_blame(members->host.leader, name, error);
}

/* Where an update is one of all workers, all slices have had as many. Else the last gradient of who is lost
 * may have come to some of them alone. */
static int check_version(const struct members *members, const struct follower *follower,
                         const struct slice *slice, struct error *error) {
    const struct traits *traits = members->site->traits;
    const long own = store_version(members->site->store);
    if (!(traits->rounds && traits->merged) || slice->version == own) return OK;
    return error_set(error, ERROR_PEER, "%s: a slice of version %ld, expected %ld", follower->name,
                     slice->version, own);
}

static int fetch_one(struct members *members, int f, uint64_t *values, int count, struct error *error) {
    struct host *host = &members->host;
    const struct follower *follower = &host->followers[f];
    struct slice slice = members_slice(members, follower->begin, follower->end);
    struct frame_header header;
    RETURN_IF(follower_hear(host, f, "tallies", &header, members->fetch_s, error));
    RETURN_IF(members_named(follower,
                            tallies_receive(follower->endpoint, &header, members->fetched, values, count,
                                            members->timeout_s, error),
                            error));
    RETURN_IF(follower_hear(host, f, "a slice", &header, members->fetch_s, error));
    RETURN_IF(members_named(
        follower, slice_receive(follower->endpoint, &header, &slice, members->timeout_s, error), error));
    RETURN_IF(check_version(members, follower, &slice, error));
    for (int w = 0; w < host->count; w++) {
        const struct tally tally = get_tally(values + (size_t)w * TALLY_VALUES);
        tally_add(&members->far[w], &tally);
        if (values[host->count * TALLY_VALUES + w] != 0) host->peers[w].lost_there = true;
    }
    members->far_lost_updates += (long)values[count - 1];
    return OK;
}

/* Includes who is lost, and whether the run has failed: a follower may not have noticed yet. */
static int send_fetch(struct members *members, const struct follower *follower, struct error *error) {
    uint8_t *lost;
    const size_t workers = (size_t)members->host.count;
    RETURN_IF(memory_array(&lost, workers + 1, "who is lost", error));
    for (size_t w = 0; w < workers; w++) lost[w] = !atomic_load(&members->site->roster->members[w].active);
    lost[workers] = members->failed;
    const int code = turn_send(follower->endpoint, FRAME_FETCH, members->fetched, lost, workers + 1,
                               members->timeout_s, error);
    memory_free(lost);
    return members_named(follower, code, error);
}

int members_fetch(void *self, struct error *error) {
    struct members *members = self;
    const struct host *host = &members->host;
    uint64_t *values = NULL;
    int count = 0;
    gather_owed(members);
    if (host->follower_count == 0) return OK;
    members->fetched++;
    for (int f = 0; f < host->follower_count; f++) RETURN_IF(send_fetch(members, &host->followers[f], error));
    RETURN_IF(open_values(members, &values, &count, error));
    memset(members->far, 0, (size_t)host->count * sizeof *members->far);
    members->far_lost_updates = 0;
    int code = OK;
    for (int f = 0; f < host->follower_count && code == OK; f++)
        code = fetch_one(members, f, values, count, error);
    memory_free(values);
    return code;
}

int members_fetch_rest(void *self, struct error *error) {
    struct members *members = self;
    struct world *world = members->site->world;
    if (members->host.follower_count == 0) return OK;
    /* Of whom a worker is the other half: it may hang as well, and all others would wait for its answer. */
    if (members->settings.cluster->mirrored)
        return error_set(error, ERROR_PEER, "slices are in the workers' processes");
    members->failed = true;
    members->fetch_s = fmin(members->timeout_s, REST_S);
    world_resume(world);
    const int code = members_fetch(members, error);
    world_stop(world);
    return code;
}
