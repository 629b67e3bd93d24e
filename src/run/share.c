/* --share of a run: what it must not be combined with, and the sizes that it comes to. */
#include <stdio.h>

#include "../engine/paces.h"
#include "../engine/shares.h"
#include "open.h"

int run_check_share(const struct run *run, const struct typed *typed, struct error *error) {
    const struct config *config = &run->setup.config;
    struct error why = {0};
    int weights = 0;
    if (shares_check(config->share, &weights, &why) == OK) return OK;
    if (typed->given.share || !run->resumes) return error_set(error, ERROR_USAGE, "%s", why.words);
    return error_set(error, ERROR_FILE, "%s: %s", config->resume, why.words);
}

/* The strategy of a phase that goes in rounds; NULL: none does. */
static const char *strategy_with_rounds(const struct run *run) {
    for (int p = 0; p < run->setup.phases.count; p++) {
        const struct choice *choice = &run->setup.phases.list[p].strategy;
        if (strategy_traits(strategy_of(choice), choice->settings)->rounds) return choice->text;
    }
    return NULL;
}

/* In rounds a part of a batch cannot be handed out anew. */
static int check_losses(const struct run *run, struct error *error) {
    const struct config *config = &run->setup.config;
    const char *rounds = strategy_with_rounds(run);
    if (config->on_loss != ON_LOSS_CONTINUE || !rounds) return OK;
    return error_set(
        error, ERROR_USAGE,
        "--share=%.200s: found --on-loss=continue, expected stop: under --strategy=%.200s nobody takes "
        "over the share of a lost worker",
        config->share, rounds);
}

/* Saved by a run with other workers. */
static bool is_of_others(const struct run *run, const struct typed *typed) {
    struct error ignored = {0};
    int weights = 0;
    if (!run->resumes || typed->given.share) return false;
    if (shares_check(run->setup.config.share, &weights, &ignored) != OK) return false;
    return weights > 0 && weights != run->workers;
}

static int find_slowness(const struct run *run, double *slowness, struct error *error) {
    const struct config *config = &run->setup.config;
    struct faults faults;
    RETURN_IF(faults_parse(&faults, config->fail, config->stall, config->slow, error));
    for (int w = 0; w < run->workers; w++) slowness[w] = faults_factor(&faults, run->device_lists[w]);
    return OK;
}

/* All that are here at once, or as they were measured in their processes. */
static int measure(struct run *run, const double *slowness, struct error *error) {
    const struct config *config = &run->setup.config;
    struct pace *paces = NULL;
    if (!run->crew.pace) {
        progress_say(&run->progress, "--share=auto: measuring the workers");
        struct paces_work work =
            setup_paces_work(&run->setup, run->world, true, run->site.groups, &run->network_settings);
        work.slowness = slowness;
        return paces_settle(&work, run->sizes, &run->training.abandoned, error);
    }
    RETURN_IF(memory_array(&paces, run->workers, "the workers' paces", error));
    for (int w = 0; w < run->workers; w++) {
        run->crew.pace(run->members, w, &paces[w]);
        paces[w].constant_s *= slowness[w];
        paces[w].each_s *= slowness[w];
    }
    const int code = paces_cut(paces, run->workers, config->batch, config->microbatches, run->sizes, error);
    memory_free(paces);
    return code;
}

/* What auto comes to is what the run has been given, from here on. */
static int settle(struct run *run, struct error *error) {
    struct config *config = &run->setup.config;
    double *slowness = NULL;
    RETURN_IF(memory_array(&slowness, run->workers, "the workers' slowness", error));
    int code = find_slowness(run, slowness, error);
    if (code == OK) code = measure(run, slowness, error);
    memory_free(slowness);
    if (code != OK) return code;
    return shares_write(run->sizes, run->workers, config->share, sizeof config->share, error);
}

int run_open_share(struct run *run, const struct typed *typed, struct error *error) {
    struct config *config = &run->setup.config;
    if (is_of_others(run, typed)) {
        progress_say(&run->progress,
                     "--share=%.200s was for other workers: these have even shares (--share=auto measures)",
                     config->share);
        snprintf(config->share, sizeof config->share, "even");
    }
    if (shares_are_measured(config->share) && run->workers == 1)
        snprintf(config->share, sizeof config->share, "even");
    if (shares_are_even(config->share)) return OK;
    if (run_may_be_joined(run))
        return error_set(error, ERROR_USAGE,
                         "--share=%.200s: found --workers=%s, expected even: who joins has no share yet",
                         config->share, config->workers);
    if (!run->led) RETURN_IF(check_losses(run, error));
    RETURN_IF(memory_array(&run->sizes, run->workers, "shares", error));
    run->site.sizes = run->sizes;
    if (shares_are_measured(config->share) && run->led) { /* the leader settles them */
        for (int w = 0; w < run->workers; w++) run->sizes[w] = config->batch;
        return OK;
    }
    if (shares_are_measured(config->share)) RETURN_IF(settle(run, error));
    RETURN_IF(
        shares_cut(config->share, run->workers, config->batch, config->microbatches, run->sizes, error));
    if (!shares_equal(run->sizes, run->workers, config->batch)) return OK;
    memory_free(run->sizes);
    run->site.sizes = run->sizes = NULL;
    return OK;
}
