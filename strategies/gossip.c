/* gossip: each worker trains a model of its own; now and then it meets another, and both take the mean. No
 * server, and between two pauses nobody waits for anybody: AD-PSGD.
 *
 * Who applies:   each worker its gradient to its own model, with its own optimizer state. Every `every`
 *                steps it picks another worker, at random, and both models become their mean, also if the
 *                other one is just computing: it computes on a copy, and its gradient is applied to the
 *                mean. At a pause the mean of all models and optimizer states is tested and saved, and all
 *                go on from it.
 * What guards:   a lock per model and shard. Two are taken in the order of the workers, so nobody waits in
 *                a circle. At a pause, two barriers, as in local-sgd.
 * How old:       by what all have applied, to any model, since this worker took its copy: about W-1.
 * Bytes/step:    1/every of the weights, from one worker to another.
 * Reproducible:  with one worker equal to serial training; else not.
 *
 * Over a cluster all models are where the server would be: a step moves weights and gradient, as under the
 * other strategies.
 *
 * Source: Lian, Zhang, Zhang, Liu, "Asynchronous decentralized parallel stochastic gradient descent", ICML
 * 2018. Its graph is complete here, and it averages after each step. */
#include "../src/base/rng.h"
#include "../src/store/strategy.h"

struct gossip_settings {
    int every;
};

static const struct option rows[] = {
    OPTION_ROW(INT, "every", struct gossip_settings, every, .fallback = "1", .least = 1, .most = 1000000,
               .unit = "steps", .help = "steps of a worker before it meets another"),
    {0},
};

/* Of a worker at a shard; its own thread writes it. */
struct gossip_line {
    struct lock lock;   /* around the slice of its model; rank 1, and of two the lower worker's first */
    _Atomic bool begun; /* there is a model */
    long seen;          /* steps looked at */
    long unshared;      /* steps since it met another */
    long pauses;        /* it has rested for */
};

struct gossip_state {
    struct barrier offered, averaged;
    struct gossip_line *lines; /* [workers] */
    const struct state *
        *sharing; /* [workers][workers] whose models are in the mean of a pause, a row for each */
    struct state
        *models; /* [workers] the worker's own vectors, but other weights; shard 0 has those of all */
};

static int gossip_open(struct shard *shard, const void *settings, struct error *error) {
    struct store *store = shard->store;
    struct roster *roster = store->settings.roster;
    const int workers = roster->workers;
    struct gossip_state *state = NULL;
    (void)settings;
    RETURN_IF(memory_array(&state, 1, "models of a shard", error));
    shard->state = state;
    RETURN_IF(memory_array(&state->lines, workers, "steps of a shard", error));
    RETURN_IF(memory_array(&state->sharing, (size_t)workers * (size_t)workers, "models in a mean", error));
    RETURN_IF(memory_array(&state->models, workers, "models of a shard", error));
    for (int w = 0; w < workers; w++) lock_open(&state->lines[w].lock, store->world);
    for (int w = 0; w < workers && shard->index == 0; w++)
        RETURN_IF(store_own_vector(store, w, &state->models[w].vector[0].at, "a worker's model", error));
    RETURN_IF(barrier_open(&state->offered, roster, "the pause, for all models", error));
    return barrier_open(&state->averaged, roster, "the pause, for the mean of all models", error);
}

static void gossip_close(struct shard *shard) {
    struct gossip_state *state = shard->state;
    if (!state) return;
    for (int w = 0; state->models && w < shard->store->settings.roster->workers && shard->index == 0; w++)
        store_own_vector_free(shard->store, w, state->models[w].vector[0].at);
    barrier_close(&state->offered);
    barrier_close(&state->averaged);
    memory_free(state->lines);
    memory_free((void *)state->sharing);
    memory_free(state->models);
    memory_free(state);
    shard->state = NULL;
}

static void take_lock(struct shard *shard, int self, int worker) {
    struct gossip_state *state = shard->state;
    lock_take_as(&state->lines[worker].lock, shard->store->settings.roster, self, "the lock of a model");
}

static void release_lock(struct shard *shard, int worker) {
    lock_release(&((struct gossip_state *)shard->state)->lines[worker].lock);
}

/* Its model is what the store has. */
static void take_store(struct shard *shard, struct worker_side *side) {
    struct gossip_state *state = shard->state;
    struct state *model = &state->models[side->worker];
    const struct gossip_state *first = shard->store->shards[0].state;
    float *weights = first->models[side->worker].vector[0].at;
    *model = side->own;
    model->vector[0].at = weights;
    take_lock(shard, side->worker, side->worker);
    shard_copy(shard, side->worker, &side->own);
    shard_copy_own(shard, side->worker, weights, side->own.vector[0].at);
    atomic_store(&state->lines[side->worker].begun, true);
    release_lock(shard, side->worker);
    side->bytes_moved += side->own.count * strategy_slice_bytes(shard);
}

/* One of those who have a model here, the same for all shards if they are the same; -1: there is none. */
static int pick_other(const struct shard *shard, const struct worker_side *side) {
    const struct roster *roster = shard->store->settings.roster;
    const struct gossip_state *state = shard->state;
    int others = 0;
    for (int w = 0; w < roster->workers; w++)
        others += w != side->worker && atomic_load(&state->lines[w].begun) &&
                  atomic_load(&roster->members[w].active);
    if (others == 0) return -1;
    const uint32_t draw = rng_philox(1, (uint64_t)side->worker, (uint64_t)side->step).word[0];
    int left = (int)(draw % (uint32_t)others);
    for (int w = 0; w < roster->workers; w++) {
        const bool there = w != side->worker && atomic_load(&state->lines[w].begun) &&
                           atomic_load(&roster->members[w].active);
        if (there && left-- == 0) return w;
    }
    return -1; /* it was lost meanwhile */
}

static void meet(struct shard *shard, struct worker_side *side) {
    struct gossip_state *state = shard->state;
    const int self = side->worker, other = pick_other(shard, side);
    if (other < 0) return;
    const int pair[2] = {self < other ? self : other, self < other ? other : self};
    state->lines[self].unshared = 0;
    for (int i = 0; i < 2; i++) take_lock(shard, self, pair[i]);
    shard_meet(shard, pair,
               (float *const[2]){state->models[pair[0]].vector[0].at, state->models[pair[1]].vector[0].at});
    for (int i = 0; i < 2; i++) release_lock(shard, pair[i]);
    side->bytes_moved += strategy_slice_bytes(shard);
}

static int gossip_push(struct shard *shard, struct gradient *gradient, struct error *error) {
    const struct gossip_state *state = shard->state;
    const int worker = gradient->worker;
    const long version = atomic_load(&shard->version);
    (void)error;
    take_lock(shard, worker, worker);
    if (gradient->examples > 0) shard_step_own(shard, &state->models[worker], gradient, version);
    release_lock(shard, worker);
    shard_done(shard, gradient, atomic_fetch_add(&shard->version, 1));
    return OK;
}

static int gossip_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    const struct gossip_settings *settings = choice_settings(shard->store->settings.strategy);
    struct gossip_state *state = shard->state;
    struct gossip_line *line = &state->lines[side->worker];
    (void)error;
    if (!atomic_load(&line->begun)) take_store(shard, side);
    line->unshared += side->step - line->seen;
    line->seen = side->step;
    if (line->unshared >= settings->every) meet(shard, side);
    side->version[shard->index] = atomic_load(&shard->version);
    take_lock(shard, side->worker, side->worker);
    shard_copy_own(shard, side->worker, side->own.vector[0].at, state->models[side->worker].vector[0].at);
    release_lock(shard, side->worker);
    return OK;
}

/* Others may meet a worker that rests, until they rest too; then nobody's model changes any more. */
static int gossip_rest(struct shard *shard, struct worker_side *side, struct error *error) {
    struct gossip_state *state = shard->state;
    const int worker = side->worker, workers = shard->store->settings.roster->workers;
    struct gossip_line *line = &state->lines[worker];
    const struct state **sharing = &state->sharing[worker * workers];
    const long pause = line->pauses++;
    if (!atomic_load(&line->begun)) take_store(shard, side);
    barrier_arrive(&state->offered, worker, pause);
    RETURN_IF(barrier_wait(&state->offered, worker, pause, error));
    for (int w = 0; w < workers; w++)
        sharing[w] = barrier_has(&state->offered, w, pause) ? &state->models[w] : NULL;
    int shares = 0;
    const int share = barrier_rank(&state->offered, worker, pause, &shares);
    shard_reduce_share(shard, worker, sharing, share, shares);
    barrier_arrive(&state->averaged, worker, pause);
    RETURN_IF(barrier_wait(&state->averaged, worker, pause, error));
    line->unshared = 0;
    line->seen = side->step;
    side->version[shard->index] = atomic_load(&shard->version);
    take_store(shard, side);
    return OK;
}

static long long gossip_bytes(const void *settings, long long bytes, int moments, long steps, long changed) {
    const long every = ((const struct gossip_settings *)settings)->every;
    (void)changed;
    return bytes * (2 * (1 + moments) + (steps > 0 ? (steps - 1) / every : 0));
}

static const struct traits gossip_traits = {
    .own_weights = true,
    .own_moments = true,
    .steps_own = true,
    .own_update_in_reply = true,
    .whole_reads = true,
    .conserved = CONSERVED_COPIES,
    .bytes_moved = gossip_bytes,
};

const struct strategy strategy_gossip = {
    .plugin = {.name = "gossip",
               .help = "no server: each worker trains a model of its own; pairs of them take their mean",
               .options = rows,
               .settings_bytes = sizeof(struct gossip_settings)},
    .traits = &gossip_traits,
    .open = gossip_open,
    .close = gossip_close,
    .push = gossip_push,
    .pull = gossip_pull,
    .rest = gossip_rest,
};
