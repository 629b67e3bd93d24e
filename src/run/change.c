/* The strategies of a run: which one it is in, when the next one's turn has come, and the change itself,
 * which is what resuming under another strategy would be, with everything still open. */
#include <math.h>
#include <string.h>

#include "../base/text.h"
#include "open.h"

/* --- what decides --- */

/* What --early-stop, or a strategy with such a condition, holds out where nothing was said. */
#define USUAL_VALIDATION 0.1

/* What the epochs are judged by is never the test part. */
int run_choose_validation(struct run *run, const struct typed *typed, struct error *error) {
    struct config *config = &run->setup.config;
    const bool phases = phases_validate(&run->setup.phases);
    if ((config->early_stop == 0 && !phases) || config->validation > 0.0) return OK;
    if (typed->given.validation && phases)
        return error_set(error, ERROR_USAGE,
                         "--strategy=%s: found --validation=0, expected a part to judge the epochs by",
                         config->strategy);
    if (typed->given.validation)
        return error_set(error, ERROR_USAGE,
                         "--early-stop=%d: found --validation=0, expected a part to judge the epochs by",
                         config->early_stop);
    config->validation = USUAL_VALIDATION;
    return OK;
}

/* --- how far the schedule is --- */

int run_batches_per_update(const struct run *run) {
    return run_traits(run)->merged ? run->present : 1;
}

/* Updates that this strategy takes for the batches so far, less those that there were. */
long run_ahead_of(const struct run *run, long version) {
    const int per = run_batches_per_update(run);
    return sampler_updates_of(&run->sampler, sampler_position(&run->sampler), per) - version;
}

/* Under the strategy and with the workers that it had, a run goes on as it was; and so does one of an earlier
 * program, which does not say what they were. */
static bool counts_as_before(const struct run *run) {
    const struct safetensors *checkpoint = &run->checkpoint;
    const char *strategy = safetensors_text(checkpoint, "strategy_now");
    return !strategy || (strcmp(strategy, run->setup.choices.strategy.text) == 0 &&
                         checkpoint_number(checkpoint, "workers", run->workers) == run->workers);
}

long run_schedule_ahead(const struct run *run, long version) {
    if (!run->resumes) return -version; /* an import's updates were no part of this schedule */
    if (!counts_as_before(run) || run_may_be_joined(run)) return run_ahead_of(run, version);
    return (long)checkpoint_number(&run->checkpoint, "schedule_ahead", 0);
}

/* --- which one it is in --- */

static int phase_count(const struct run *run) {
    return run->setup.phases.count;
}

static void enter_phase(struct run *run, int phase) {
    run->phase = phase;
    run->setup.choices.strategy = run->setup.phases.list[phase].strategy;
    run->site.traits = run_traits(run);
}

/* Of the phase that would be next: what its condition is about. `looked`: the last epoch was. */
static struct phase_facts facts_of(const struct run *run, bool looked) {
    const int began = run->next_phase > 0 ? run->phase_ends[run->next_phase - 1] : 0;
    const int better = run->best.epoch > 0 ? run->best.epoch : run->epochs_before;
    return (struct phase_facts){.epochs = run->epoch,
                                .better = better > began ? better : began,
                                .accuracy = looked && run->validated.examples > 0 ? run->validated.score
                                                                                  : (double)NAN};
}

static void look(struct run *run, bool looked) {
    while (run->next_phase < phase_count(run) - 1) {
        struct phase_facts facts = facts_of(run, looked);
        if (!looked) facts.better = facts.epochs;
        if (!phase_is_over(&run->setup.phases.list[run->next_phase], &facts)) return;
        run->phase_ends[run->next_phase++] = run->epoch;
    }
}

void run_look_at_phase(struct run *run) {
    look(run, true);
}

/* A checkpoint of these strategies says how far they were. */
static int resume_phase(struct run *run, struct error *error) {
    const struct config *config = &run->setup.config;
    const char *strategy = safetensors_text(&run->checkpoint, "strategy");
    if (!run->resumes || !strategy || strcmp(strategy, config->strategy) != 0) return OK;
    long ends[PHASES_MOST] = {0}, last = 0;
    const int count = resume_phase_ends(&run->checkpoint, PHASES_MOST, ends);
    if (count >= phase_count(run) && count > 0)
        return error_set(error, ERROR_FILE,
                         "%s: phase_ends has the ends of %d strategies, expected at most %d of %.200s",
                         config->resume, count, phase_count(run) - 1, strategy);
    for (int p = 0; p < count; p++) {
        if (ends[p] < last || ends[p] > run->epoch)
            return error_set(error, ERROR_FILE, "%s: phase_ends has epoch %ld, expected %ld to %d",
                             config->resume, ends[p], last, run->epoch);
        last = ends[p];
        run->phase_ends[p] = (int)ends[p];
    }
    run->next_phase = count;
    return OK;
}

/* One that comes too late is mostly a mistake. */
static void warn_of_epochs(struct run *run) {
    const struct phases *phases = &run->setup.phases;
    for (int p = 0; p < phases->count - 1; p++) {
        const struct strategy_phase *phase = &phases->list[p];
        if (phase->until != UNTIL_EPOCH || phase->epochs < run->setup.config.epochs) continue;
        progress_warn(&run->progress, "--strategy: %s never begins: %s is until epoch %d, of %d",
                      phase[1].strategy.text, phase->strategy.text, phase->epochs, run->setup.config.epochs);
        return;
    }
}

int run_open_phase(struct run *run, struct error *error) {
    run->epochs_before = run->epoch;
    RETURN_IF(resume_phase(run, error));
    if (run->resumes) run_read_strategies(run);
    if (!run->led) warn_of_epochs(run);
    if (!run->led) look(run, false);
    enter_phase(run, run->next_phase);
    const bool rounds = run->site.traits->rounds;
    if (rounds != run->sampler.rounds) sampler_change(&run->sampler, rounds);
    return OK;
}

/* --- the change --- */

/* "sync from epoch 4 on (async-lockfree until accuracy 0.9: 0.9123)" */
static void tell_change(struct run *run, int from) {
    const struct phases *phases = &run->setup.phases;
    const struct strategy_phase *before = &phases->list[from];
    char bytes[400], until[PHASE_WORDS_BYTES];
    struct text words = text_into(bytes, sizeof bytes);
    text_add(&words, "%s from epoch %d on (%s until %s", phases->list[run->phase].strategy.text,
             run->epoch + 1, before->strategy.text, phase_words(before, until));
    if (before->until == UNTIL_ACCURACY) text_add(&words, ": %.4f", run->validated.score);
    for (int p = from + 1; p < run->phase; p++)
        text_add(&words, "; %s has nothing left to do", phases->list[p].strategy.text);
    text_add(&words, ")");
    run_tell_event(run, EVENT_STRATEGY, -1, bytes);
}

int run_begin_anew(struct run *run, const struct phase_change *change, struct error *error) {
    store_set_version(&run->store, change->version);
    struct store_settings settings = run_store_settings(run);
    settings.schedule_ahead = change->schedule_ahead;
    RETURN_IF(store_change(&run->store, &settings, error));
    RETURN_IF(training_change(&run->training, run_goes_on(run), error));
    run->phase_version = change->version;
    run->phase_examples = run_examples(run);
    if (!run->crew.change) return OK;
    const struct phase_change told = run_tells_change(run);
    return run->crew.change(run->members, &told, error);
}

struct phase_change run_tells_change(const struct run *run) {
    return (struct phase_change){.phase = run->phase,
                                 .version = store_version(&run->store),
                                 .schedule_ahead = run->store.settings.schedule_ahead,
                                 .workers = run->present,
                                 .total = run->sampler.total};
}

int run_apply_change(struct run *run, const struct phase_change *change, struct error *error) {
    enter_phase(run, change->phase);
    sampler_change(&run->sampler, run->site.traits->rounds);
    if (run->led) {
        run->present = change->workers;
        sampler_hear_total(&run->sampler, change->total);
    }
    return run_begin_anew(run, change, error);
}

int run_change_phase(struct run *run, struct error *error) {
    const int from = run->phase;
    const struct phases *phases = &run->setup.phases;
    if (run->next_phase == from) return OK;
    enter_phase(run, run->next_phase);
    struct phase_change change = {.phase = run->phase,
                                  .version = store_version(&run->store),
                                  .schedule_ahead = run->store.settings.schedule_ahead};
    if (strcmp(phases->list[from].strategy.text, phases->list[run->phase].strategy.text) != 0)
        change.schedule_ahead = run_ahead_of(run, change.version);
    RETURN_IF(run_apply_change(run, &change, error));
    tell_change(run, from);
    return OK;
}
