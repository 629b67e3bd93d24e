/* A strategy of the program's own: its functions between the training loop and the verbs of the store. Push
 * and pull of the loop come in here and call the program; the program calls back with trainer_shard_ and
 * trainer_barrier_ functions. What it was called with lives on the stack of that call. */
#include <string.h>
#include "../base/memory.h"
#include "training.h"

/* What an exchange is about. */
struct trainer_side {
    struct shard *shard;
    struct gradient *gradient; /* of push; NULL in pull */
    struct worker_side *side;  /* of pull; NULL in push */
    bool given;                /* the gradient is contributed, posted or applied */
};

/* Of a shard. */
struct own_barriers {
    struct barrier barriers[TRAINER_MOST_BARRIERS];
    int count;
};

struct own_settings {
    const struct trainer_training *training;
};

static const struct trainer_training *training_of(const struct shard *shard) {
    const struct own_settings *settings = choice_settings(shard->store->settings.strategy);
    return settings->training;
}

/* --- the descriptor's functions: from the loop to the program --- */

static int own_open(struct shard *shard, const void *settings, struct error *error) {
    const char *const *names = training_of(shard)->strategy.barriers;
    struct own_barriers *own = NULL;
    (void)settings;
    RETURN_IF(memory_array(&own, 1, "barriers of a shard", error));
    shard->state = own;
    for (; names && names[own->count]; own->count++)
        RETURN_IF(barrier_open(&own->barriers[own->count], shard->store->settings.roster, names[own->count],
                               error));
    return OK;
}

static void own_close(struct shard *shard) {
    struct own_barriers *own = shard->state;
    for (int b = 0; own && b < own->count; b++) barrier_close(&own->barriers[b]);
    memory_free(own);
    shard->state = NULL;
}

/* What a function of the program ended with; its words may lack their end. */
static int failed(const struct trainer_strategy *strategy, int code, const struct trainer_error *why,
                  struct error *error) {
    const bool known = code >= TRAINER_USAGE && code <= TRAINER_DIVERGED;
    return error_set(error, known ? code : ERROR_USAGE, "%s: %.*s", strategy->name,
                     (int)sizeof why->words - 1, why->words[0] ? why->words : "failed, and did not say why");
}

static struct trainer_exchange exchange_of(struct trainer_side *side, int worker, long step, int examples) {
    return (struct trainer_exchange){.worker = worker,
                                     .workers = side->shard->store->settings.roster->workers,
                                     .shard = side->shard->index,
                                     .step = step,
                                     .examples = examples,
                                     .side = side};
}

static int own_push(struct shard *shard, struct gradient *gradient, struct error *error) {
    const struct trainer_strategy *strategy = &training_of(shard)->strategy;
    struct trainer_side side = {.shard = shard, .gradient = gradient};
    struct trainer_error why = {0};
    const struct trainer_exchange at =
        exchange_of(&side, gradient->worker, gradient->step, gradient->examples);
    const int code = strategy->push(strategy->argument, &at, &why);
    if (code != TRAINER_OK) return failed(strategy, code, &why, error);
    if (side.given) return OK;
    return error_set(error, ERROR_USAGE,
                     "%s: push left the gradient of step %ld where it was, expected that it contributes, "
                     "posts or applies it",
                     strategy->name, at.step);
}

/* Where shares are stepped, what the worker computes next comes after them. Without servers a worker has room
 * for one gradient, which has to be free again. */
static int take(struct shard *shard, struct worker_side *worker, trainer_pull *pull, struct error *error) {
    const struct trainer_strategy *strategy = &training_of(shard)->strategy;
    long *version = &worker->version[shard->index];
    struct trainer_side side = {.shard = shard, .side = worker};
    struct trainer_error why = {0};
    const struct trainer_exchange at = exchange_of(&side, worker->worker, worker->step, 0);
    const int code = pull(strategy->argument, &at, version, &why);
    if (code != TRAINER_OK) return failed(strategy, code, &why, error);
    if (*version < 0)
        return error_set(error, ERROR_USAGE,
                         "%s: pull left version %ld, expected that of the weights that the worker has",
                         strategy->name, *version);
    /* In rounds a worker may have passed the last barrier before another one ends the round. */
    const long most = trainer_shard_version(&at) + strategy->rounds;
    if (*version > most)
        return error_set(error, ERROR_USAGE, "%s: pull left version %ld, expected at most %ld of the weights",
                         strategy->name, *version, most);
    if (!strategy->servers && atomic_load(&shard->contributed[worker->worker]))
        return error_set(
            error, ERROR_USAGE,
            "%s: pull left the gradient that its worker contributed, expected trainer_shard_done",
            strategy->name);
    if (strategy->merged) strategy_await_stepped(shard, worker);
    return OK;
}

static int own_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    return take(shard, side, training_of(shard)->strategy.pull, error);
}

static int own_rest(struct shard *shard, struct worker_side *side, struct error *error) {
    const struct trainer_strategy *strategy = &training_of(shard)->strategy;
    return take(shard, side, strategy->rest ? strategy->rest : strategy->pull, error);
}

static int own_serve(struct shard *shard, struct gradient *gradient, struct error *error) {
    return training_of(shard)->strategy.whole_reads ? strategy_serve_locked(shard, gradient, error)
                                                    : strategy_serve(shard, gradient, error);
}

static const struct traits *own_traits(const void *settings) {
    return &((const struct own_settings *)settings)->training->traits;
}

void library_choose_strategy(struct trainer_training *training, struct choice *choice) {
    const struct trainer_strategy *strategy = &training->strategy;
    const struct own_settings settings = {.training = training};
    training->traits = (struct traits){.rounds = strategy->rounds,
                                       .merged = strategy->merged,
                                       .own_weights = strategy->own_weights,
                                       .servers = strategy->servers,
                                       .whole_reads = strategy->whole_reads};
    training->descriptor = (struct strategy){.plugin = {.name = strategy->name,
                                                        .help = "the strategy of a program",
                                                        .settings_bytes = sizeof settings},
                                             .traits_of = own_traits,
                                             .open = own_open,
                                             .close = own_close,
                                             .push = own_push,
                                             .pull = own_pull,
                                             .rest = own_rest,
                                             .serve = own_serve};
    choice->plugin = &training->descriptor.plugin;
    memcpy(choice->settings, &settings, sizeof settings);
    snprintf(choice->text, sizeof choice->text, "%s", strategy->name);
}

/* --- what a program may bring --- */

static bool is_name(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const size_t length = name ? strlen(name) : 0;
    return length > 0 && length < 32 && strspn(name, letters) == length;
}

static int check_strategy(const struct trainer_strategy *strategy, struct error *error) {
    int barriers = 0;
    if (!is_name(strategy->name))
        return error_set(error, ERROR_USAGE,
                         "strategy: found the name \"%.40s\", expected 1 to 31 of a to z, 0 to 9 and -",
                         strategy->name ? strategy->name : "");
    if (plugin_named(&strategy_kind, strategy->name))
        return error_set(error, ERROR_USAGE, "strategy: %s is one of trainer's own, expected another name",
                         strategy->name);
    if (!strategy->push || !strategy->pull)
        return error_set(error, ERROR_USAGE, "%s: found no %s, expected push and pull", strategy->name,
                         strategy->push ? "pull" : "push");
    if (strategy->merged && !strategy->rounds)
        return error_set(error, ERROR_USAGE, "%s: merged without rounds, whose updates are merged",
                         strategy->name);
    if (strategy->servers && !strategy->own_weights)
        return error_set(error, ERROR_USAGE,
                         "%s: servers without own_weights: they would write what workers compute on",
                         strategy->name);
    while (strategy->barriers && barriers <= TRAINER_MOST_BARRIERS && strategy->barriers[barriers])
        barriers++;
    if (barriers <= TRAINER_MOST_BARRIERS) return OK;
    return error_set(error, ERROR_USAGE, "%s: found more than %d barriers, expected at most these",
                     strategy->name, TRAINER_MOST_BARRIERS);
}

int trainer_training_strategy(struct trainer_training *training, const struct trainer_strategy *strategy,
                              struct trainer_error *error) {
    struct error why = {0};
    if (check_strategy(strategy, &why) == OK) {
        training->strategy = *strategy;
        training->own_strategy = true;
    }
    return library_tell(&why, error);
}

/* --- verbs: from the program to the store --- */

/* Whether this is push, with a gradient that was not given yet; then it is now. */
static int give(const struct trainer_exchange *at, struct error *error) {
    if (!at->side->gradient)
        return error_set(error, ERROR_USAGE, "found no gradient in pull, expected push to give it");
    if (at->side->given) return error_set(error, ERROR_USAGE, "the gradient was given before in this push");
    at->side->given = true;
    return OK;
}

/* What is applied by itself was computed on weights that there have been; a round ends between the two. */
static int expect_past(const struct trainer_exchange *at, struct error *error) {
    const long version = at->side->gradient->version[at->shard], now = trainer_shard_version(at);
    return version <= now ? OK
                          : error_set(error, ERROR_USAGE,
                                      "found a gradient of version %ld of the weights, expected at most %ld",
                                      version, now);
}

static int expect_pull(const struct trainer_exchange *at, const char *what, struct error *error) {
    return at->side->side ? OK : error_set(error, ERROR_USAGE, "%s: found push, expected pull", what);
}

static int expect_worker(const struct trainer_exchange *at, int worker, int least, struct error *error) {
    return worker >= least && worker < at->workers
               ? OK
               : error_set(error, ERROR_USAGE, "found worker %d, expected %d to %d", worker, least,
                           at->workers - 1);
}

int trainer_shard_contribute(const struct trainer_exchange *at, struct trainer_error *error) {
    struct error why = {0};
    if (give(at, &why) == OK) shard_contribute(at->side->shard, at->side->gradient);
    return library_tell(&why, error);
}

int trainer_shard_post(const struct trainer_exchange *at, struct trainer_error *error) {
    struct shard *shard = at->side->shard;
    struct error why = {0};
    if (!training_of(shard)->strategy.servers)
        error_set(&why, ERROR_USAGE, "found a strategy without servers, expected one to post to");
    else if (give(at, &why) == OK && expect_past(at, &why) == OK)
        shard_post(shard, at->side->gradient, &why);
    return library_tell(&why, error);
}

int trainer_shard_apply(const struct trainer_exchange *at, struct trainer_error *error) {
    struct shard *shard = at->side->shard;
    struct error why = {0};
    if (give(at, &why) == OK && expect_past(at, &why) == OK) {
        const bool empty = at->side->gradient->examples == 0;
        shard_done(shard, at->side->gradient,
                   empty ? atomic_load(&shard->version) : shard_apply_racy(shard, at->side->gradient));
    }
    return library_tell(&why, error);
}

static int read_weights(const struct trainer_exchange *at, struct error *error) {
    const struct trainer_strategy *strategy = &training_of(at->side->shard)->strategy;
    struct worker_side *side = at->side->side;
    RETURN_IF(expect_pull(at, "read", error));
    if (!strategy->own_weights)
        return error_set(error, ERROR_USAGE, "found a strategy without own_weights, expected one to read to");
    if (strategy->merged) strategy_await_stepped(at->side->shard, side);
    return strategy->whole_reads ? strategy_read_locked(at->side->shard, side, error)
                                 : strategy_read_racy(at->side->shard, side, error);
}

int trainer_shard_read(const struct trainer_exchange *at, struct trainer_error *error) {
    struct error why = {0};
    read_weights(at, &why);
    return library_tell(&why, error);
}

int trainer_shard_await(const struct trainer_exchange *at, int worker, long step,
                        struct trainer_error *error) {
    struct error why = {0};
    if (expect_pull(at, "await", &why) == OK && expect_worker(at, worker, -1, &why) == OK)
        shard_await(at->side->shard, at->worker, worker, step, "the shard, for gradients to be applied",
                    &why);
    return library_tell(&why, error);
}

int trainer_shard_step_share(const struct trainer_exchange *at, int share, int shares,
                             struct trainer_error *error) {
    struct error why = {0};
    if (expect_pull(at, "step_share", &why) == OK) {
        if (shares < 1 || share < 0 || share >= shares)
            error_set(&why, ERROR_USAGE, "found share %d of %d, expected 0 to one below", share, shares);
        else
            shard_step_share(at->side->shard, at->worker, share, shares);
    }
    return library_tell(&why, error);
}

void trainer_shard_end_round(const struct trainer_exchange *at) {
    shard_end_round(at->side->shard, atomic_load(&at->side->shard->version) + 1);
}

long trainer_shard_version(const struct trainer_exchange *at) {
    return atomic_load(&at->side->shard->version);
}

int trainer_shard_done(const struct trainer_exchange *at, int worker, long version,
                       struct trainer_error *error) {
    struct shard *shard = at->side->shard;
    struct error why = {0};
    if (expect_pull(at, "done", &why) == OK && expect_worker(at, worker, 0, &why) == OK) {
        struct gradient *gradient = atomic_load(&shard->contributed[worker]);
        const long least = gradient ? gradient->version[shard->index] : 0, most = trainer_shard_version(at);
        if (!gradient)
            error_set(&why, ERROR_USAGE, "worker %d has contributed nothing that could be done", worker);
        else if (version < least || version > most)
            error_set(&why, ERROR_USAGE, "done: found version %ld, expected %ld to %ld", version, least,
                      most);
        else if (atomic_compare_exchange_strong(&shard->contributed[worker], &gradient, NULL))
            shard_done(shard, gradient, version);
    }
    return library_tell(&why, error);
}

/* --- barriers --- */

static struct barrier *barrier_of(const struct trainer_exchange *at, int barrier, struct error *error) {
    struct own_barriers *own = at->side->shard->state;
    if (barrier >= 0 && barrier < own->count) return &own->barriers[barrier];
    error_set(error, ERROR_USAGE, "found barrier %d of %d, counted from 0", barrier, own->count);
    return NULL;
}

int trainer_barrier_arrive(const struct trainer_exchange *at, int barrier, long round,
                           struct trainer_error *error) {
    struct error why = {0};
    struct barrier *found = barrier_of(at, barrier, &why);
    if (found) barrier_arrive(found, at->worker, round);
    return library_tell(&why, error);
}

int trainer_barrier_wait(const struct trainer_exchange *at, int barrier, long round,
                         struct trainer_error *error) {
    struct error why = {0};
    struct barrier *found = barrier_of(at, barrier, &why);
    if (found && expect_pull(at, "wait", &why) == OK) barrier_wait(found, at->worker, round, &why);
    return library_tell(&why, error);
}

bool trainer_barrier_is_open(const struct trainer_exchange *at, int barrier, long round) {
    struct error why = {0};
    const struct barrier *found = barrier_of(at, barrier, &why);
    return found && barrier_is_open(found, round);
}

bool trainer_barrier_has(const struct trainer_exchange *at, int barrier, int worker, long round) {
    struct error why = {0};
    const struct barrier *found = barrier_of(at, barrier, &why);
    return found && expect_worker(at, worker, 0, &why) == OK && barrier_has(found, worker, round);
}

int trainer_barrier_rank(const struct trainer_exchange *at, int barrier, int worker, long round,
                         int *arrived) {
    struct error why = {0};
    const struct barrier *found = barrier_of(at, barrier, &why);
    *arrived = 0;
    return found ? barrier_rank(found, worker, round, arrived) : 0;
}
