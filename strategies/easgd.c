/* easgd: each worker trains its own weights; every `period` steps these and the centre move towards each
 * other.
 *
 * Who applies:   each worker its own gradients to its own weights, with its own optimizer state. Every
 *                `period` steps it takes d = elastic/W (own - centre) from its own weights and adds it to the
 *                centre, which is what is tested and saved. With `momentum` this is EAMSGD.
 * What guards:   the shard's lock, around an exchange. Nobody waits for anybody else.
 * How old:       never stale: a gradient is applied to the very weights that it was computed on.
 * Bytes/step:    1/period of the weights.
 * Reproducible:  not. With one worker the centre still follows behind it.
 *
 * A pause is an exchange, too. There the store's optimizer state and moving average become the mean of the
 * workers'. What goes on from a checkpoint begins with the centre: how far each worker was from it is lost.
 *
 * Source: Zhang, Choromanska, LeCun, "Deep learning with elastic averaging SGD", NIPS 2015, whose alpha is
 * elastic/W. There a gradient is computed before the exchange that precedes its step; here after it. */
#include "../src/store/strategy.h"

struct easgd_settings {
    int period;
    double elastic;
};

static const struct option rows[] = {
    OPTION_ROW(INT, "period", struct easgd_settings, period, .fallback = "10", .least = 1, .most = 1000000,
               .unit = "steps", .help = "steps of a worker between two exchanges with the centre"),
    OPTION_ROW(REAL, "elastic", struct easgd_settings, elastic, .fallback = "0.9", .least = 0.001, .most = 1,
               .help = "share of their difference that the centre and the workers give up if all of these "
                       "exchange once; of one worker a W-th part"),
    {0},
};

/* Of a worker at a shard; its own thread writes it. */
struct easgd_line {
    _Alignas(64) long seen; /* steps looked at */
    long unshared;          /* steps since the last exchange */
    long pauses;            /* it has rested for */
};

struct easgd_state {
    struct easgd_line *lines; /* [workers] */
    long pause;               /* which one the next two belong to; these three under the lock */
    int resting;              /* workers whose optimizer state is in the mean of this pause */
    int workers;              /* W: those that were there when it was opened */
};

static const struct easgd_settings *settings_of(const struct shard *shard) {
    return choice_settings(shard->store->settings.strategy);
}

static int easgd_open(struct shard *shard, const void *settings, struct error *error) {
    const struct roster *roster = shard->store->settings.roster;
    struct easgd_state *state = NULL;
    (void)settings;
    RETURN_IF(memory_array(&state, 1, "exchanges of a shard", error));
    shard->state = state;
    state->workers = roster_active_workers(roster);
    return memory_array(&state->lines, roster->workers, "steps of a shard", error);
}

static void easgd_close(struct shard *shard) {
    struct easgd_state *state = shard->state;
    if (state) memory_free(state->lines);
    memory_free(state);
    shard->state = NULL;
}

/* The version counts the steps of all, so its own weights are as new as any. */
static int easgd_push(struct shard *shard, struct gradient *gradient, struct error *error) {
    const struct state *own = shard->store->workers[gradient->worker].own;
    const long version = atomic_fetch_add(&shard->version, 1);
    (void)error;
    gradient->version[shard->index] = version;
    if (gradient->examples > 0) shard_step_own(shard, own, gradient, version);
    shard_done(shard, gradient, version);
    return OK;
}

static void exchange(struct shard *shard, struct worker_side *side) {
    struct easgd_state *state = shard->state;
    state->lines[side->worker].unshared = 0;
    shard_exchange(shard, side->worker, &side->own,
                   (float)(settings_of(shard)->elastic / (double)state->workers));
    side->bytes_moved += strategy_slice_bytes(shard);
}

static void count_steps(struct shard *shard, const struct worker_side *side) {
    struct easgd_state *state = shard->state;
    struct easgd_line *line = &state->lines[side->worker];
    line->unshared += side->step - line->seen;
    line->seen = side->step;
}

static int easgd_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    const struct easgd_state *state = shard->state;
    const bool first = side->version[shard->index] < 0;
    (void)error;
    count_steps(shard, side);
    if (first || state->lines[side->worker].unshared >= settings_of(shard)->period) {
        shard_lock(shard, side->worker);
        if (first) {
            shard_copy(shard, side->worker, &side->own);
            side->bytes_moved += side->own.count * strategy_slice_bytes(shard);
        } else {
            exchange(shard, side);
        }
        lock_release(&shard->lock);
    }
    side->version[shard->index] = atomic_load(&shard->version);
    return OK;
}

/* With the step that begins now it has taken as many as are between two exchanges. */
static bool easgd_shares(const struct shard *shard, int worker) {
    const struct easgd_state *state = shard->state;
    return state->lines[worker].unshared + 1 >= settings_of(shard)->period;
}

/* The k-th to come in this pause counts as a k-th: so what it leaves is the mean of all. */
static int easgd_rest(struct shard *shard, struct worker_side *side, struct error *error) {
    struct easgd_state *state = shard->state;
    struct easgd_line *line = &state->lines[side->worker];
    (void)error;
    line->pauses++;
    if (side->version[shard->index] < 0) return OK; /* it has had no batch yet */
    count_steps(shard, side);
    shard_lock(shard, side->worker);
    if (state->pause != line->pauses) state->resting = 0;
    state->pause = line->pauses;
    if (line->unshared > 0) exchange(shard, side);
    shard_follow(shard, side->worker, &side->own, 1.0f / (float)++state->resting);
    lock_release(&shard->lock);
    side->bytes_moved += (side->own.count - 1) * strategy_slice_bytes(shard);
    return OK;
}

static long long easgd_bytes(const void *settings, long long bytes, int moments, long steps, long changed) {
    const long period = ((const struct easgd_settings *)settings)->period;
    (void)changed;
    return steps == 0 ? 0 : bytes * (1 + 2 * moments + (steps + period - 1) / period);
}

static const struct traits easgd_traits = {
    .own_weights = true,
    .own_moments = true,
    .steps_own = true,
    .whole_reads = true,
    .conserved = CONSERVED_WITH_STORE,
    .staleness_bound = strategy_never_stale,
    .bytes_moved = easgd_bytes,
};

const struct strategy strategy_easgd = {
    .plugin = {.name = "easgd",
               .help = "each worker trains its own weights, which a centre follows; no worker waits (EASGD)",
               .options = rows,
               .settings_bytes = sizeof(struct easgd_settings)},
    .traits = &easgd_traits,
    .open = easgd_open,
    .close = easgd_close,
    .push = easgd_push,
    .pull = easgd_pull,
    .rest = easgd_rest,
    .shares = easgd_shares,
};
