/* local-sgd: each worker trains its own weights; every H steps all replace theirs by the mean.
 *
 * Who applies:   each worker its own gradients to its own weights, with its own optimizer state. Every H
 *                steps each averages its share of weights and optimizer state, and all take the result. With
 *                outer=nesterov the change of the mean is a gradient of its own, with which weights (not
 *                statistics) take a step with momentum: DiLoCo.
 * What guards:   two barriers per shard and average: all have offered their copies; all shares are averaged.
 * How old:       never stale: a gradient is applied to the very weights that it was computed on.
 * Bytes/step:    1/H of weights and optimizer state; all of them in the first `sync_steps`.
 * Reproducible:  bit for bit between runs that pause at the same places (a pause averages, too); with one
 *                worker equal to serial training, unless there is an outer step.
 *
 * The outer step's momentum is in no checkpoint: who goes on from one begins it anew.
 *
 * Sources: McMahan et al., "Communication-efficient learning of deep networks from decentralized data",
 * AISTATS 2017; Stich, "Local SGD converges fast and communicates little", ICLR 2019; sync_steps: Lin et al.,
 * "Don't use large mini-batches, use local SGD", ICLR 2020; outer=nesterov: Douillard et al., "DiLoCo:
 * distributed low-communication training of language models", 2023, whose workers keep their optimizer state
 * to themselves: here that is averaged. */
#include "../src/store/strategy.h"

enum outer { OUTER_NONE, OUTER_NESTEROV };

struct local_settings {
    int every, outer;
    long sync_steps;
    double outer_rate, outer_momentum;
};

static const struct option rows[] = {
    OPTION_ROW(INT, "every", struct local_settings, every, .fallback = "8", .least = 1, .most = 1000000,
               .unit = "steps", .help = "steps between two averages of weights and optimizer state"),
    OPTION_ROW(LONG, "sync_steps", struct local_settings, sync_steps, .fallback = "0", .least = 0,
               .most = 1e12, .unit = "steps",
               .help = "first steps of the training, after each of which all average (post-local SGD)"),
    OPTION_ROW(CHOICE, "outer", struct local_settings, outer, .fallback = "none", .choices = "none|nesterov",
               .help = "nesterov: step with the change of the mean, and with momentum, as DiLoCo does; none: "
                       "take the mean"),
    OPTION_ROW(REAL, "outer_rate", struct local_settings, outer_rate, .fallback = "0.7", .least = 0,
               .most = 10, .help = "learning rate of that step"),
    OPTION_ROW(REAL, "outer_momentum", struct local_settings, outer_momentum, .fallback = "0.9", .least = 0,
               .most = 0.999999, .help = "momentum of that step"),
    {0},
};

static const struct local_settings *settings_of(const struct shard *shard) {
    return (const void *)shard->store->settings.strategy->settings;
}

/* Steps until the average that comes next, where `taken` were taken in all. An outer step is for several. */
static long every_of(const struct local_settings *settings, long taken) {
    return taken < settings->sync_steps ? 1 : settings->every;
}

/* Of a worker at a shard; its own thread writes it. */
struct local_line {
    _Alignas(64) long seen; /* steps counted into its version */
    long unshared;          /* steps since the last average */
    long shared;            /* steps in all before that */
    long averages;          /* it took part in */
};

struct local_state {
    struct barrier offered, averaged;
    const struct state **copies,
        **sharing;            /* [workers] everybody's; the ones in the average, one row per worker */
    struct local_line *lines; /* [workers] */
    float *velocity;          /* [slice floats] of the outer step; NULL: there is none */
};

static int local_open(struct shard *shard, const void *settings, struct error *error) {
    struct roster *roster = shard->store->settings.roster;
    const size_t workers = (size_t)roster->workers;
    struct local_state *state = NULL;
    RETURN_IF(memory_array(&state, 1, "averages of a shard", error));
    shard->state = state;
    RETURN_IF(memory_array(&state->copies, workers, "copies of a shard", error));
    RETURN_IF(memory_array(&state->sharing, workers * workers, "copies in an average", error));
    RETURN_IF(memory_array(&state->lines, workers, "steps of a shard", error));
    if (((const struct local_settings *)settings)->outer == OUTER_NESTEROV)
        RETURN_IF(shard_open_vector(shard, &state->velocity, "the outer step's momentum", error));
    RETURN_IF(barrier_open(&state->offered, roster, "the barrier where all have come to average", error));
    return barrier_open(&state->averaged, roster, "the barrier where all shares are averaged", error);
}

static void local_close(struct shard *shard) {
    struct local_state *state = shard->state;
    if (!state) return;
    barrier_close(&state->offered);
    barrier_close(&state->averaged);
    memory_free((void *)state->copies);
    memory_free((void *)state->sharing);
    memory_free(state->lines);
    shard_close_vector(shard, state->velocity);
    memory_free(state);
    shard->state = NULL;
}

static int local_push(struct shard *shard, struct gradient *gradient, struct error *error) {
    const struct local_state *state = shard->state;
    const long version = gradient->version[shard->index];
    (void)error;
    if (gradient->examples > 0) shard_step_own(shard, state->copies[gradient->worker], gradient, version);
    shard_done(shard, gradient, version);
    return OK;
}

static void take_copy(const struct shard *shard, struct worker_side *side) {
    shard_copy(shard, side->worker, &side->own);
    side->bytes_moved += side->own.count * strategy_slice_bytes(shard);
}

static int average(struct shard *shard, struct worker_side *side, struct error *error) {
    struct local_state *state = shard->state;
    const int worker = side->worker, workers = shard->store->settings.roster->workers;
    struct local_line *line = &state->lines[worker];
    const struct state **sharing = &state->sharing[worker * workers];
    const long round = line->averages++;
    const bool steps = state->velocity && line->shared >= settings_of(shard)->sync_steps;
    line->shared += line->unshared;
    line->unshared = 0;
    barrier_arrive(&state->offered, worker, round);
    RETURN_IF(barrier_wait(&state->offered, worker, round, error));
    for (int w = 0; w < workers; w++)
        sharing[w] = barrier_has(&state->offered, w, round) ? state->copies[w] : NULL;
    int shares = 0;
    const int share = barrier_rank(&state->offered, worker, round, &shares);
    const struct outer_step outer = {.velocity = state->velocity,
                                     .rate = (float)settings_of(shard)->outer_rate,
                                     .momentum = (float)settings_of(shard)->outer_momentum};
    if (steps)
        shard_step_outer(shard, worker, sharing, share, shares, &outer);
    else
        shard_reduce_share(shard, worker, sharing, share, shares);
    barrier_arrive(&state->averaged, worker, round);
    RETURN_IF(barrier_wait(&state->averaged, worker, round, error));
    /* Nobody writes the store again before all have offered theirs again. */
    if (share == 0) shard_end_round(shard, side->version[shard->index]);
    take_copy(shard, side);
    return OK;
}

/* Each step is one update of the worker's own copy. */
static void count_steps(struct shard *shard, struct worker_side *side) {
    struct local_state *state = shard->state;
    struct local_line *line = &state->lines[side->worker];
    const long steps = side->step - line->seen;
    line->seen = side->step;
    line->unshared += steps;
    side->version[shard->index] += steps;
}

static int local_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    struct local_state *state = shard->state;
    if (side->version[shard->index] < 0) {
        state->copies[side->worker] = &side->own;
        side->version[shard->index] = atomic_load(&shard->version);
        state->lines[side->worker].shared = side->version[shard->index];
        take_copy(shard, side);
    }
    count_steps(shard, side);
    const struct local_line *line = &state->lines[side->worker];
    return line->unshared >= every_of(settings_of(shard), line->shared) ? average(shard, side, error) : OK;
}

/* With the step that begins now it has taken as many as are averaged. */
static bool local_shares(const struct shard *shard, int worker) {
    const struct local_state *state = shard->state;
    const struct local_line *line = &state->lines[worker];
    return line->unshared + 1 >= every_of(settings_of(shard), line->shared);
}

static int local_rest(struct shard *shard, struct worker_side *side, struct error *error) {
    struct local_state *state = shard->state;
    if (side->version[shard->index] < 0) return OK; /* it has had no batch yet, and nobody has */
    count_steps(shard, side);
    return state->lines[side->worker].unshared > 0 ? average(shard, side, error) : OK;
}

static long long local_bytes(const void *settings, long long bytes, int moments, long steps, long changed) {
    const struct local_settings *local = settings;
    const long first = steps < local->sync_steps ? steps : local->sync_steps;
    (void)changed;
    return bytes * (1 + moments) * (1 + first + (steps - first + local->every - 1) / local->every);
}

static const struct traits traits[] = {
    [OUTER_NONE] = {.own_weights = true,
                    .own_moments = true,
                    .steps_own = true,
                    .rounds = true,
                    .merged = true,
                    .exactly_once = true,
                    .repeatable = true,
                    .own_update_in_reply = true,
                    .whole_reads = true,
                    .lock_free = true,
                    .conserved = CONSERVED_COPIES,
                    .staleness_bound = strategy_never_stale,
                    .bytes_moved = local_bytes},
    [OUTER_NESTEROV] = {.own_weights = true,
                        .own_moments = true,
                        .steps_own = true,
                        .rounds = true,
                        .merged = true,
                        .outer = true,
                        .repeatable = true,
                        .whole_reads = true,
                        .lock_free = true,
                        .staleness_bound = strategy_never_stale,
                        .bytes_moved = local_bytes},
};

static const struct traits *local_traits(const void *settings) {
    return &traits[((const struct local_settings *)settings)->outer];
}

static const char *const variants[] = {"outer=none", "sync_steps=3,outer=nesterov", NULL};

const struct strategy strategy_local_sgd = {
    .plugin = {.name = "local-sgd",
               .help = "each worker trains its own weights; every few steps all take the mean",
               .options = rows,
               .settings_bytes = sizeof(struct local_settings)},
    .variants = variants,
    .traits_of = local_traits,
    .open = local_open,
    .close = local_close,
    .push = local_push,
    .pull = local_pull,
    .rest = local_rest,
    .shares = local_shares,
};
