/* What the leader fetches at each pause: the followers' slices, what their shards have counted, and whom they
 * have lost. See members.h. */
#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "members.h"

enum { TALLY_VALUES = STALENESS_BINS + 4 };

/* For a follower's slice, at most, once the run has failed. In a mirrored cluster whom a worker is the other
 * half of may hang as it does, and the others do not wait longer for the leader's word (ASK_S in follower.c).
 */
#define REST_S 10.0
#define MIRRORED_REST_S 0.5
#define PRINT_S 1.0 /* for this process's other half to print its steps */

static void put_tally(uint64_t *values, const struct tally *tally) {
    *values++ = (uint64_t)tally->staleness.gradients;
    *values++ = (uint64_t)tally->dropped;
    *values++ = (uint64_t)tally->staleness.sum;
    *values++ = (uint64_t)tally->staleness.max;
    for (int b = 0; b < STALENESS_BINS; b++) *values++ = (uint64_t)tally->staleness.counts[b];
}

static struct tally get_tally(const uint64_t *values) {
    struct tally tally = {
        .dropped = (long)values[1],
        .staleness = {.gradients = (long)values[0], .sum = (double)values[2], .max = (long)values[3]}};
    for (int b = 0; b < STALENESS_BINS; b++) tally.staleness.counts[b] = (long)values[4 + b];
    return tally;
}

/* All workers' tallies, which of them are lost here, who has failed here (blamed), then the lost updates. */
static int open_values(const struct members *members, uint64_t **values, int *count, struct error *error) {
    *count = members->host.count * (TALLY_VALUES + 1) + 2;
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
    values[count - 2] = members->blamed;
    values[count - 1] = (uint64_t)store_lost_updates(store);
    int code = tallies_send(members->host.leader, members->fetched, values, count, members->timeout_s, error);
    if (code == OK) code = slice_send(members->host.leader, &slice, members->timeout_s, error);
    memory_free(values);
    return host_blame_leader(&members->host, code, error);
}

int members_watch(void *self, struct error *error) {
    return followers_watch(&((struct members *)self)->host, error);
}

/* Where an update is one of all workers, all slices have had as many. Else the last gradient of who is lost
 * may have come to some of them alone: where all have been is remembered. */
static int check_version(struct members *members, const struct follower *follower, const struct slice *slice,
                         struct error *error) {
    const struct traits *traits = members->site->traits;
    const long own = store_version(members->site->store);
    if (!(traits->rounds && traits->merged) || slice->version == own) return OK;
    if (slice->version > own)
        return error_set(error, ERROR_PEER, "%s: a slice of version %ld, expected %ld", follower->name,
                         slice->version, own);
    if (slice->version < members->least) members->least = slice->version;
    return OK;
}

static int fetch_one(struct members *members, int f, uint64_t *values, int count, struct error *error) {
    struct host *host = &members->host;
    const struct follower *follower = &host->followers[f];
    struct slice slice = members_slice(members, follower->begin, follower->end);
    struct frame_header header;
    RETURN_IF(follower_hear(host, f, "tallies", &header, members->fetch_s, error));
    RETURN_IF(follower_blame(&members->host, follower,
                             tallies_receive(follower->endpoint, &header, members->fetched, values, count,
                                             members->timeout_s, error),
                             error));
    RETURN_IF(follower_hear(host, f, "a slice", &header, members->fetch_s, error));
    RETURN_IF(follower_blame(&members->host, follower,
                             slice_receive(follower->endpoint, &header, &slice, members->timeout_s, error),
                             error));
    RETURN_IF(check_version(members, follower, &slice, error));
    for (int w = 0; w < host->count; w++) {
        const struct tally tally = get_tally(values + (size_t)w * TALLY_VALUES);
        tally_add(&members->far[w], &tally);
        if (values[host->count * TALLY_VALUES + w] != 0) host->peers[w].lost_there = true;
    }
    if (values[count - 2] != 0) {
        members->failing = follower;
        members->blamed = values[count - 2];
    }
    members->far_lost_updates += (long)values[count - 1];
    return OK;
}

/* Includes who is lost, and whether the run has failed: a follower may not have noticed yet. */
static int send_fetch(struct members *members, const struct follower *follower, struct error *error) {
    uint8_t *bytes;
    const int workers = members->host.count;
    const size_t room = fetch_bytes(workers);
    RETURN_IF(memory_array(&bytes, room, "what is fetched", error));
    struct frame_writer writer = {.bytes = bytes, .room = room};
    frame_put_u64(&writer, (uint64_t)store_version(members->site->store));
    uint8_t *lost = bytes + writer.used;
    for (int w = 0; w < workers; w++) lost[w] = !atomic_load(&members->site->roster->members[w].active);
    lost[workers] = members->failed;
    const int code =
        turn_send(follower->endpoint, FRAME_FETCH, members->fetched, bytes, room, members->timeout_s, error);
    memory_free(bytes);
    return follower_blame(&members->host, follower, code, error);
}

static int fetch_all(struct members *members, struct error *error) {
    const struct host *host = &members->host;
    uint64_t *values = NULL;
    int count = 0;
    members->least = store_version(members->site->store);
    members->failing = NULL;
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

/* All have gone as far as this slice. */
static int check_least(const struct members *members, struct error *error) {
    const long own = store_version(members->site->store);
    if (members->least == own) return OK;
    return error_set(error, ERROR_PEER, "a slice of version %ld, expected %ld", members->least, own);
}

/* A follower has lost a worker, and fails for that, while this process has come to the pause with all. */
static int blame_failing(const struct members *members, struct error *error) {
    if (members->blamed <= (uint64_t)members->host.count)
        return error_set(error, ERROR_PEER, "%s is lost to %s", members->host.peers[members->blamed - 1].name,
                         members->failing->name);
    return error_set(error, ERROR_PEER, "%s has failed", members->failing->name);
}

/* So that standard output is in order. A device of this process that was lost prints no more: the others are
 * not held up a second time. */
static void await_steps_printed(struct members *members) {
    struct cluster_session *session = members->settings.session;
    const struct world *world = members->site->world;
    uint64_t devices = 0;
    if (!session || !session->printed) return;
    for (int i = 0; i < members->host.count; i++)
        devices += members->host.peers[i].endpoint && members->host.peers[i].task == 0;
    if (event_wait(session->printed, members->went * devices, world_now(world) + PRINT_S) != WAIT_DONE)
        session->printed = NULL;
}

int members_fetch(void *self, struct error *error) {
    struct members *members = self;
    await_steps_printed(members);
    const int code = fetch_all(members, error);
    members->cut = code != OK;
    if (code == OK && members->failing) return blame_failing(members, error);
    return code == OK ? check_least(members, error) : code;
}

/* Followers that are ahead of this slice go back to where it is. It goes back to where one of them is, and
 * then fetches again. */
static int fetch_equal(struct members *members, struct error *error) {
    struct store *store = members->site->store;
    RETURN_IF(fetch_all(members, error));
    if (members->least == store_version(store)) return OK;
    RETURN_IF(store_undo(store, members->least, error));
    RETURN_IF(store_fetch(store, error));
    RETURN_IF(fetch_all(members, error));
    return check_least(members, error);
}

int members_fetch_rest(void *self, struct error *error) {
    struct members *members = self;
    struct world *world = members->site->world;
    const bool mirrored = members->settings.cluster->mirrored;
    if (members->host.follower_count == 0) return OK;
    if (members->cut) return error_set(error, ERROR_PEER, "a follower has not answered");
    members->failed = true;
    members->fetch_s = fmin(members->timeout_s, mirrored ? MIRRORED_REST_S : REST_S);
    world_resume(world);
    const int code = fetch_equal(members, error);
    world_stop(world);
    return code;
}
