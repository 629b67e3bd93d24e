/* dc-asgd: async-apply, with each gradient corrected for what the weights have changed since it was computed.
 *
 * Who applies:   the shard's server, in order of arrival: g + lambda g g (w - w_then), the first terms of a
 *                Taylor series of the gradient at the weights as they are now.
 * What guards:   the shard's lock: a worker has the weights copied, or the server changes them.
 * How old:       as in async-apply: about W-1 updates. A gradient that is not stale is applied as it is.
 * Bytes/step:    the weights, once: its own update always changes them. Before that they are copied where the
 *                shard lives, as what the gradient is compared with.
 * Reproducible:  with one worker, bit for bit equal to serial training; else not.
 *
 * The mean squares of adapt=mean-square are in no checkpoint: who goes on
 * from one begins them anew.
 *
 * Source: Zheng et al., "Asynchronous stochastic gradient descent with delay compensation", ICML 2017;
 * adapt=none is its DC-ASGD-c, mean-square its DC-ASGD-a, whose mean is 0 at first (update.h). */
#include "../src/store/strategy.h"

enum adapt { ADAPT_NONE, ADAPT_MEAN_SQUARE };

struct dc_settings {
    double lambda, keep;
    int adapt;
};

static const struct option rows[] = {
    OPTION_ROW(REAL, "lambda", struct dc_settings, lambda, .fallback = "0.04", .least = 0, .most = 1e6,
               .help = "how much a gradient is corrected; with adapt=mean-square about 2"),
    OPTION_ROW(CHOICE, "adapt", struct dc_settings, adapt, .fallback = "none", .choices = "none|mean-square",
               .help = "mean-square: divide lambda by the root of a moving mean of the squares of gradients"),
    OPTION_ROW(REAL, "keep", struct dc_settings, keep, .fallback = "0.95", .least = 0, .most = 0.999999,
               .help = "decay of that mean"),
    {0},
};

struct dc_state {
    float **then; /* [workers][slice floats] the weights that each has; written by its own thread, read by the
                     server while that waits for its gradient */
    float *squares; /* [slice floats] the server's, as is what follows; NULL with adapt=none */
    float unseen;   /* keep^n after n updates */
};

static int dc_open(struct shard *shard, const void *settings, struct error *error) {
    const int workers = shard->store->settings.roster->workers;
    struct dc_state *state = NULL;
    RETURN_IF(memory_array(&state, 1, "copies of a shard", error));
    shard->state = state;
    RETURN_IF(memory_array(&state->then, workers, "copies of a shard", error));
    for (int w = 0; w < workers; w++)
        RETURN_IF(shard_open_vector(shard, &state->then[w], "the weights that a worker has", error));
    state->unseen = 1.0f;
    if (((const struct dc_settings *)settings)->adapt == ADAPT_NONE) return OK;
    return shard_open_vector(shard, &state->squares, "the mean squares of gradients", error);
}

static void dc_close(struct shard *shard) {
    struct dc_state *state = shard->state;
    if (!state) return;
    for (int w = 0; state->then && w < shard->store->settings.roster->workers; w++)
        shard_close_vector(shard, state->then[w]);
    shard_close_vector(shard, state->squares);
    memory_free((void *)state->then);
    memory_free(state);
    shard->state = NULL;
}

static int dc_serve(struct shard *shard, struct gradient *gradient, struct error *error) {
    const struct dc_settings *settings = choice_settings(shard->store->settings.strategy);
    struct dc_state *state = shard->state;
    long version = atomic_load(&shard->version);
    if (gradient->examples > 0) {
        state->unseen *= (float)settings->keep;
        const struct compensation compensation = {.lambda = (float)settings->lambda,
                                                  .keep = (float)settings->keep,
                                                  .seen = 1.0f - state->unseen,
                                                  .begin = shard->begin,
                                                  .then = state->then[gradient->worker],
                                                  .squares = state->squares};
        lock_take(&shard->lock);
        version = shard_apply_compensated(shard, gradient, &compensation);
        lock_release(&shard->lock);
    }
    shard_done(shard, gradient, version);
    return store_check(shard->store, error);
}

static int dc_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    float *then = ((struct dc_state *)shard->state)->then[side->worker];
    long *version = &side->version[shard->index];
    RETURN_IF(shard_await(shard, side->worker, side->worker, side->step,
                          "the server, for its own gradient to be applied", error));
    shard_lock(shard, side->worker);
    const long now = atomic_load(&shard->version);
    if (*version != now) shard_keep(shard, then);
    lock_release(&shard->lock);
    if (*version == now) return OK;
    shard_read_kept(shard, side->device, side->weights, then);
    *version = now;
    strategy_count_copy(shard, side);
    return OK;
}

static const struct traits dc_traits = {
    .own_weights = true,
    .servers = true,
    .exactly_once = true,
    .own_update_in_reply = true,
    .whole_reads = true,
    .corrects = true,
    .bytes_moved = strategy_bytes_changed,
};

static const char *const variants[] = {"adapt=none", "lambda=2,adapt=mean-square", NULL};

const struct strategy strategy_dc_asgd = {
    .plugin = {.name = "dc-asgd",
               .help = "async-apply with gradients corrected for their age (delay compensation)",
               .options = rows,
               .settings_bytes = sizeof(struct dc_settings)},
    .variants = variants,
    .traits = &dc_traits,
    .open = dc_open,
    .close = dc_close,
    .push = shard_post,
    .pull = dc_pull,
    .serve = dc_serve,
};
