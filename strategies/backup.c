/* backup: sync with the first W-b gradients of a round; those that come late are dropped.
 *
 * Who applies:   the worker whose gradient completes the round, with the mean of those that are there, added
 *                in roster order and weighted by examples.
 * What guards:   the shard's lock, for contributing, stepping and copying.
 * How old:       a gradient that is applied is never stale; one of an earlier round is dropped and counted.
 * Bytes/step:    the weights, once, when they have changed: a slow worker still computes on its copy while a
 *                round ends without it. The gradients are read where they lie.
 * Reproducible:  with one worker, bit for bit equal to serial training; else not: who is first decides.
 *
 * Source: Chen et al., "Revisiting distributed synchronous SGD", ICLR workshop 2016. */
#include "../src/store/strategy.h"

struct backup_settings {
    int backups;
};

static const struct option rows[] = {
    OPTION_ROW(INT, "backups", struct backup_settings, backups, .fallback = "1", .least = 0, .most = 1000000,
               .unit = "workers",
               .help = "workers that a round does not wait for (it always waits for one gradient)"),
    {0},
};

/* A worker at a shard. */
struct backup_line {
    _Atomic bool resting; /* it has no batch until the next segment; written under the lock */
    _Atomic long waiting; /* for the end of this round of the shard, plus 1; 0: it does not wait */
    bool sent;            /* it has sent a gradient since it read the weights; its own */
};

struct backup_state {
    _Atomic int arrived;       /* gradients contributed in this round; written under the lock */
    struct backup_line *lines; /* [workers] */
};

static int backup_open(struct shard *shard, const void *settings, struct error *error) {
    const size_t workers = (size_t)shard->store->settings.roster->workers;
    struct backup_state *state = NULL;
    (void)settings;
    RETURN_IF(memory_array(&state, 1, "the round of a shard", error));
    shard->state = state;
    return memory_array(&state->lines, workers, "workers of a round", error);
}

static void backup_close(struct shard *shard) {
    struct backup_state *state = shard->state;
    if (state) memory_free(state->lines);
    memory_free(state);
    shard->state = NULL;
}

static bool takes_part(const struct shard *shard, int worker) {
    const struct backup_state *state = shard->state;
    return atomic_load(&shard->store->settings.roster->members[worker].active) &&
           !atomic_load(&state->lines[worker].resting);
}

/* It waits for the end of another shard's round, so it cannot come to this one's: its gradient was late here
 * and in time there. Were it waited for here, two workers could wait for each other. */
static bool is_held_up(const struct shard *shard, int worker) {
    const struct store *store = shard->store;
    for (int s = 0; s < store->settings.shards; s++) {
        const struct backup_state *state = store->shards[s].state;
        const long round = atomic_load(&state->lines[worker].waiting) - 1;
        if (s != shard->index && round == atomic_load(&store->shards[s].version)) return true;
    }
    return false;
}

static bool may_come(const struct shard *shard, int worker) {
    return takes_part(shard, worker) && !is_held_up(shard, worker);
}

static bool is_complete(const struct shard *shard) {
    const struct store_settings *store = &shard->store->settings;
    const struct backup_settings *settings = choice_settings(store->strategy);
    const struct backup_state *state = shard->state;
    const int most = store->roster->workers - settings->backups, arrived = atomic_load(&state->arrived);
    int running = 0;
    for (int w = 0; w < store->roster->workers; w++)
        running += atomic_load(&shard->contributed[w]) || may_come(shard, w);
    return arrived > 0 && (arrived >= most || arrived >= running);
}

/* On this worker's thread, under the lock: ends the round if enough gradients are there. */
static void end_round(struct shard *shard, int worker) {
    struct backup_state *state = shard->state;
    if (!is_complete(shard)) return;
    const long version = atomic_load(&shard->version);
    shard_step_share(shard, worker, 0, 1);
    shard_settle(shard);
    shard_end_round(shard);
    atomic_store(&state->arrived, 0);
    for (int w = 0; w < shard->store->settings.roster->workers; w++) {
        struct gradient *gradient = atomic_exchange(&shard->contributed[w], NULL);
        if (gradient) shard_done(shard, gradient, version);
    }
}

static int backup_push(struct shard *shard, struct gradient *gradient, struct error *error) {
    struct backup_state *state = shard->state;
    (void)error;
    state->lines[gradient->worker].sent = true;
    shard_lock(shard, gradient->worker);
    const bool late = gradient->version[shard->index] < atomic_load(&shard->version);
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
    struct backup_state *state = shard->state;
    bool somebody = false;
    shard_lock(shard, worker);
    for (int w = 0; w < workers; w++) somebody = somebody || takes_part(shard, w);
    for (int w = 0; w < workers; w++)
        if (!somebody || w == worker) atomic_store(&state->lines[w].resting, false);
    lock_release(&shard->lock);
}

/* Until the round of this worker's own gradient is over. */
static int await_round(struct shard *shard, int worker, long version, struct error *error) {
    struct backup_line *line = &((struct backup_state *)shard->state)->lines[worker];
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

static int backup_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    struct backup_line *line = &((struct backup_state *)shard->state)->lines[side->worker];
    if (atomic_load(&line->resting)) come_back(shard, side->worker);
    if (line->sent) RETURN_IF(await_round(shard, side->worker, side->version[shard->index], error));
    line->sent = false;
    return strategy_read_locked(shard, side, error);
}

/* Nobody waits for a worker that rests; it may have had no batch at all in this segment. It stays until its
 * own gradient's round is over, which it may have to end itself. */
static int backup_rest(struct shard *shard, struct worker_side *side, struct error *error) {
    struct backup_line *line = &((struct backup_state *)shard->state)->lines[side->worker];
    if (atomic_load(&line->resting)) come_back(shard, side->worker);
    shard_lock(shard, side->worker);
    atomic_store(&line->resting, true);
    end_round(shard, side->worker);
    lock_release(&shard->lock);
    if (line->sent) RETURN_IF(await_round(shard, side->worker, side->version[shard->index], error));
    line->sent = false;
    return OK;
}

static const struct traits backup_traits = {
    .own_weights = true,
    .merged = true,
    .drops = true,
    .whole_reads = true,
    .staleness_bound = strategy_never_stale,
    .bytes_moved = strategy_bytes_changed,
};

const struct strategy strategy_backup = {
    .plugin = {.name = "backup",
               .help = "sync without waiting for the slowest workers, whose gradients are dropped",
               .options = rows,
               .settings_bytes = sizeof(struct backup_settings)},
    .traits = &backup_traits,
    .open = backup_open,
    .close = backup_close,
    .push = backup_push,
    .pull = backup_pull,
    .rest = backup_rest,
};
