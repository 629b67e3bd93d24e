/* --share and --batch-total of a run: what they must not be combined with, and the sizes that they come to.
 *
 * Where workers join and leave, whoever is there divides the total anew: evenly, by the weights of their
 * places, or by the speeds that their processes measured when they came.
 *
 * A total that all workers can divide, and that nothing divides anew, is as if --batch had been the part:
 * then the mean can be a collective's, and batches are numbered as ever. Else the workers have parts as with
 * --share. */
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

/* Where nobody joins, a part of a round cannot go to a worker whose own is of another size. */
static int check_losses(const struct run *run, struct error *error) {
    const struct config *config = &run->setup.config;
    const char *rounds = strategy_with_rounds(run);
    if (config->on_loss != ON_LOSS_CONTINUE || !rounds || run_may_be_joined(run)) return OK;
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

/* Examples that a round of so many workers is to have. */
static int total_of(const struct run *run, int workers) {
    const struct config *config = &run->setup.config;
    return config->batch_total > 0 ? config->batch_total : config->batch * workers;
}

/* All that are here at once. */
static int settle_here(struct run *run, const double *slowness, struct error *error) {
    struct paces_work work =
        setup_paces_work(&run->setup, run->world, true, run->site.groups, &run->network_settings);
    work.slowness = slowness;
    work.batch.with_input = run->site.prefetch == 0;
    progress_say(&run->progress, "--share=auto: measuring the workers");
    return paces_settle(&work, run->sizes, &run->training.abandoned, error);
}

/* Before it is slowed down: as it was measured in its process, or as long as a simulated step takes. */
static struct pace pace_of(const struct run *run, int worker) {
    struct pace pace = {0.0, run->step_time.mean_s / run->setup.config.batch};
    if (run->crew.pace) run->crew.pace(run->members, worker, &pace);
    return pace;
}

static int settle_known(struct run *run, const double *slowness, const bool *there, struct error *error) {
    const struct config *config = &run->setup.config;
    struct pace *paces = NULL;
    RETURN_IF(memory_array(&paces, run->workers, "the workers' paces", error));
    for (int w = 0; w < run->workers; w++) {
        if (!there[w]) continue;
        paces[w] = pace_of(run, w);
        paces[w].constant_s *= slowness[w];
        paces[w].each_s *= slowness[w];
    }
    const int total = total_of(run, roster_active_workers(&run->roster)),
              code = paces_cut(paces, run->workers, there, total, config->microbatches, run->sizes, error);
    memory_free(paces);
    return code;
}

/* --share=auto. */
static int settle(struct run *run, const bool *there, struct error *error) {
    double *slowness = NULL;
    RETURN_IF(memory_array(&slowness, run->workers, "the workers' slowness", error));
    int code = find_slowness(run, slowness, error);
    if (code == OK)
        code = run->crew.pace || run->step_time.mean_s > 0.0 ? settle_known(run, slowness, there, error)
                                                             : settle_here(run, slowness, error);
    memory_free(slowness);
    return code;
}

/* --- whoever is there --- */

/* Who takes part has a part, whoever is missing has none. Who is led hears the size of each batch, and needs
 * the sum of measured ones alone. */
static int divide(struct run *run, struct error *error) {
    const struct config *config = &run->setup.config;
    const bool measured = shares_are_measured(config->share);
    const char *text = measured ? "even" : config->share;
    bool *there = NULL;
    RETURN_IF(memory_array(&there, run->workers, "who is there", error));
    for (int w = 0; w < run->workers; w++) there[w] = atomic_load(&run->roster.members[w].active);
    const int total = total_of(run, roster_active_workers(&run->roster)),
              code = measured && !run->led ? settle(run, there, error)
                                           : shares_divide(text, run->workers, there, total,
                                                           config->microbatches, run->sizes, error);
    memory_free(there);
    return code;
}

bool run_divides_anew(const struct run *run) {
    const struct config *config = &run->setup.config;
    return run_may_be_joined(run) && (config->batch_total > 0 || !shares_are_even(config->share));
}

int run_batch_most(const struct run *run) {
    return run_divides_anew(run) ? total_of(run, run->workers) : 0;
}

int run_divide(struct run *run, struct error *error) {
    struct config *config = &run->setup.config;
    if (!run_divides_anew(run)) return OK;
    RETURN_IF(divide(run, error));
    if (config->batch_total > 0) config->batch = config_part(config, roster_active_workers(&run->roster));
    return sampler_divide(&run->sampler, run->sizes, config->batch, error);
}

/* --- --batch-total --- */

/* In batches of their own: the checkpoint was made in the middle of one of these. */
static bool goes_on_between(const struct run *run) {
    const struct config *config = &run->setup.config;
    const long place = run->resumes && config->batch_total > 0 ? resume_place(&run->checkpoint) : -1;
    return place >= 0 && place % config->batch != 0 && run->crew.parts == 1 && !run->crew.mirrored;
}

/* Whether what workers learn meets in a mean in which each counts as much, however many examples it had. */
static const char *strategy_with_plain_mean(const struct run *run) {
    for (int p = 0; p < run->setup.phases.count; p++) {
        const struct choice *choice = &run->setup.phases.list[p].strategy;
        const struct traits *traits = strategy_traits(strategy_of(choice), choice_settings(choice));
        if (!traits->weighs && (traits->merged || traits->own_moments || traits->joint)) return choice->text;
    }
    return NULL;
}

/* The first number of workers that may be there and cannot have equal parts; 0: there is none. */
static int uneven_workers(const struct run *run) {
    const struct config *config = &run->setup.config;
    const int parts = config->batch_total / config->microbatches;
    for (int workers = run_may_be_joined(run) ? 1 : run->workers; workers <= run->workers; workers++)
        if (parts % workers != 0) return workers;
    return 0;
}

static int find_fault(const struct run *run, struct error *error) {
    const struct config *config = &run->setup.config;
    const int uneven = uneven_workers(run);
    const char *plain = strategy_with_plain_mean(run), *rounds = strategy_with_rounds(run);
    if (config->batch_total / config->microbatches < run->workers)
        return error_set(error, ERROR_USAGE, "--batch-total=%d: found %d workers, expected %s for each",
                         config->batch_total, run->workers,
                         config->microbatches > 1 ? "an example of each micro-batch" : "an example");
    if (uneven == 0 || !shares_are_even(config->share)) return OK;
    if (config->data_sharding != SHARDING_SHARED)
        return error_set(error, ERROR_USAGE,
                         "--batch-total=%d: found %d workers, expected a multiple of that: parts of "
                         "different sizes need --data-sharding=shared",
                         config->batch_total, uneven);
    if (plain)
        return error_set(error, ERROR_USAGE,
                         "--batch-total=%d: expected a multiple of %d, as many workers as there may be: "
                         "--strategy=%.200s does not weight what they learn by their examples",
                         config->batch_total, uneven, plain);
    if (rounds && !run->crew.elsewhere && config->on_loss == ON_LOSS_CONTINUE)
        return error_set(error, ERROR_USAGE,
                         "--batch-total=%d: found --on-loss=continue and %d workers, expected a multiple of "
                         "that: under --strategy=%.200s nobody takes over a part of another size",
                         config->batch_total, uneven, rounds);
    return OK;
}

static int check_total(struct run *run, const struct typed *typed, struct error *error) {
    struct config *config = &run->setup.config;
    struct error why = {0};
    config->batch = config_part(config, run->present);
    return run_blame(find_fault(run, &why), run, typed->given.batch_total, &why, error);
}

/* Equal parts that nothing changes are as with --batch. */
static int open_total(struct run *run, struct error *error) {
    if (uneven_workers(run) == 0 && !run_may_be_joined(run) && !goes_on_between(run)) return OK;
    RETURN_IF(memory_array(&run->sizes, run->workers, "parts of a batch", error));
    return divide(run, error);
}

double run_examples_per_update(const struct run *run) {
    const double batches = run_traits(run)->merged ? roster_active_workers(&run->roster) : 1;
    return run->sizes ? batches * run->sampler.whole / run->sampler.dividing
                      : batches * run->setup.config.batch;
}

int run_batch_total(const struct run *run) {
    int total = run->sizes ? 0 : run->setup.config.batch * run->present;
    for (int w = 0; run->sizes && w < run->workers; w++) total += run->sizes[w];
    return total;
}

static bool all_alike(const struct run *run) {
    for (int w = 0; run->sizes && w < run->workers; w++)
        if (run->sizes[w] != run->setup.config.batch && run->sizes[w] != 0) return false;
    return true;
}

const char *run_name_batch(const struct run *run, char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    const bool alike = all_alike(run);
    if (alike) text_add(&text, "%d x %d", run->setup.config.batch, roster_active_workers(&run->roster));
    for (int w = 0; !alike && w < run->workers; w++)
        if (run->sizes[w] > 0) text_item(&text, " + ", "%d", run->sizes[w]);
    return out;
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
    if (config->batch_total > 0) RETURN_IF(check_total(run, typed, error));
    if (shares_are_even(config->share)) return config->batch_total > 0 ? open_total(run, error) : OK;
    if (!run->led) RETURN_IF(check_losses(run, error));
    RETURN_IF(memory_array(&run->sizes, run->workers, "shares", error));
    RETURN_IF(divide(run, error));
    if (run_may_be_joined(run) || (shares_are_measured(config->share) && run->led)) return OK;
    if (shares_are_measured(config->share)) /* is from here on what it came to */
        RETURN_IF(shares_write(run->sizes, run->workers, config->share, sizeof config->share, error));
    if (!shares_equal(run->sizes, run->workers, config->batch) || goes_on_between(run)) return OK;
    memory_free(run->sizes);
    run->sizes = NULL;
    return OK;
}
