/* See quorum.h. */
#include "quorum.h"

int quorum_open(struct shard *shard, int needed, bool stale_counts, struct error *error) {
    const size_t workers = (size_t)shard->store->settings.roster->workers;
    struct quorum *quorum = shard->state;
    quorum->stale_counts = stale_counts;
    atomic_store(&quorum->needed, needed);
    return memory_array(&quorum->lines, workers, "workers of a round", error);
}

void quorum_close(struct shard *shard) {
    struct quorum *quorum = shard->state;
    if (quorum) memory_free(quorum->lines);
}

static bool takes_part(const struct shard *shard, int worker) {
    const struct quorum *state = shard->state;
    return atomic_load(&shard->store->settings.roster->members[worker].active) &&
           !atomic_load(&state->lines[worker].resting);
}

/* It waits for the end of another shard's round, so it cannot come to this one's: its gradient was late here
 * and in time there. Were it waited for here, two workers could wait for each other. */
static bool is_held_up(const struct shard *shard, int worker) {
    const struct store *store = shard->store;
    for (int s = 0; s < store->settings.shards; s++) {
        const struct quorum *state = store->shards[s].state;
        const long round = atomic_load(&state->lines[worker].waiting) - 1;
        if (s != shard->index && round == atomic_load(&store->shards[s].version)) return true;
    }
    return false;
}

static bool may_come(const struct shard *shard, int worker) {
    return takes_part(shard, worker) && !is_held_up(shard, worker);
}

static bool is_complete(const struct shard *shard) {
    const struct quorum *state = shard->state;
    const int needed = atomic_load(&state->needed), arrived = atomic_load(&state->arrived);
    int running = 0;
    for (int w = 0; w < shard->store->settings.roster->workers; w++)
        running += atomic_load(&shard->contributed[w]) || may_come(shard, w);
    return arrived > 0 && (arrived >= needed || arrived >= running);
}

/* On this worker's thread, under the lock: ends the round if enough gradients are there. */
static void end_round(struct shard *shard, int worker) {
    struct quorum *state = shard->state;
    if (!is_complete(shard)) return;
    const long version = atomic_load(&shard->version);
    const int counts = state->stale_counts ? atomic_load(&state->arrived) : 1;
    shard_step_share(shard, worker, 0, 1);
    shard_settle(shard);
    atomic_fetch_add(&shard->joined, counts - 1);
    atomic_store(&shard->version, version + counts);
    atomic_store(&state->arrived, 0);
    for (int w = 0; w < shard->store->settings.roster->workers; w++) {
        struct gradient *gradient = atomic_exchange(&shard->contributed[w], NULL);
        if (gradient) shard_done(shard, gradient, version);
    }
}

int quorum_push(struct shard *shard, struct gradient *gradient, struct error *error) {
    struct quorum *state = shard->state;
    struct quorum_line *line = &state->lines[gradient->worker];
    (void)error;
    line->sent = true;
    shard_lock(shard, gradient->worker);
    line->round = atomic_load(&shard->version);
    const bool late = !state->stale_counts && gradient->version[shard->index] < line->round;
    if (late) line->round = gradient->version[shard->index];
    if (!late) {
        shard_contribute(shard, gradient);
        atomic_fetch_add(&state->arrived, 1);
        end_round(shard, gradient->worker);
    }
    lock_release(&shard->lock);
    if (late) shard_drop(shard, gradient);
    return OK;
}

struct round_wait {
    struct shard *shard;
    long version; /* of the round that must end */
};

/* The loss of a worker can complete a round, too, and one that is held up: then whoever waits ends it. */
static bool is_over(void *argument) {
    const struct round_wait *wait = argument;
    return atomic_load(&wait->shard->version) != wait->version || is_complete(wait->shard);
}

static bool is_late(void *argument, int member) {
    const struct round_wait *wait = argument;
    return member < wait->shard->store->settings.roster->workers &&
           !atomic_load(&wait->shard->contributed[member]) && may_come(wait->shard, member);
}

/* The first to come back after a pause finds everybody resting, itself too: a new segment begins for all. */
static void come_back(struct shard *shard, int worker) {
    const int workers = shard->store->settings.roster->workers;
    struct quorum *state = shard->state;
    bool somebody = false;
    shard_lock(shard, worker);
    for (int w = 0; w < workers; w++) somebody = somebody || takes_part(shard, w);
    for (int w = 0; w < workers; w++)
        if (!somebody || w == worker) atomic_store(&state->lines[w].resting, false);
    lock_release(&shard->lock);
}

/* Until the round of this worker's own gradient is over. */
static int await_round(struct shard *shard, int worker, long version, struct error *error) {
    struct quorum_line *line = &((struct quorum *)shard->state)->lines[worker];
    struct round_wait wait = {.shard = shard, .version = version};
    while (atomic_load(&shard->version) == version) {
        atomic_store(&line->waiting, version + 1);
        const int code = wait_with_timeout(shard->store->settings.roster, worker, &shard->applied, is_over,
                                           is_late, &wait, "the end of the round", error);
        atomic_store(&line->waiting, 0);
        RETURN_IF(code);
        shard_lock(shard, worker);
        end_round(shard, worker);
        lock_release(&shard->lock);
    }
    return OK;
}

int quorum_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    struct quorum_line *line = &((struct quorum *)shard->state)->lines[side->worker];
    if (atomic_load(&line->resting)) come_back(shard, side->worker);
    if (line->sent) RETURN_IF(await_round(shard, side->worker, line->round, error));
    line->sent = false;
    return strategy_read_locked(shard, side, error);
}

/* Nobody waits for a worker that rests; it may have had no batch at all in this segment. It stays until its
 * own gradient's round is over, which it may have to end itself. */
int quorum_rest(struct shard *shard, struct worker_side *side, struct error *error) {
    struct quorum_line *line = &((struct quorum *)shard->state)->lines[side->worker];
    if (atomic_load(&line->resting)) come_back(shard, side->worker);
    shard_lock(shard, side->worker);
    atomic_store(&line->resting, true);
    end_round(shard, side->worker);
    lock_release(&shard->lock);
    if (line->sent) RETURN_IF(await_round(shard, side->worker, line->round, error));
    line->sent = false;
    return OK;
}
