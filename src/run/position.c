/* Where a run begins in its data: the sampler, at the position of the checkpoint in a run that is resumed,
 * and the steps that its workers took before. See open.h. */
#include "open.h"

int run_open_steps(struct run *run, struct error *error) {
    const int saved = run->resumes ? resume_workers(&run->checkpoint) : 0;
    run->steps_count = saved > run->workers ? saved : run->workers;
    RETURN_IF(memory_array(&run->steps_of_before, run->steps_count, "the workers' steps", error));
    RETURN_IF(memory_array(&run->steps_of, run->steps_count, "the workers' steps", error));
    if (run->resumes) resume_steps(&run->checkpoint, run->steps_count, run->steps_of_before);
    return OK;
}

/* No batch is larger than the training part. */
static int check_batch(const struct run *run, const struct typed *typed, struct error *error) {
    const struct config *config = &run->setup.config;
    const char *name = run->setup.dataset.name;
    const int examples = run->setup.dataset.train.count;
    if (config->batch_total > examples) {
        struct error why = {0};
        error_set(&why, ERROR_USAGE, "--batch-total=%d: expected at most %d, the training examples of %s",
                  config->batch_total, examples, name);
        return run_blame(ERROR_USAGE, run, typed->given.batch_total || typed->given.dataset, &why, error);
    }
    if (config->batch <= examples) return OK;
    if (run->resumes && !typed->given.batch && !typed->given.dataset)
        return error_set(error, ERROR_FILE, "%s: batch=%d: expected at most %d, the training examples of %s",
                         config->resume, config->batch, examples, name);
    if (!run->resumes && !typed->given.batch && config->batch_total == 0)
        return error_set(error, ERROR_USAGE,
                         "%s: found %d training example%s, expected at least the default batch of %d; "
                         "--batch=N makes it smaller",
                         name, examples, examples == 1 ? "" : "s", config->batch);
    return error_set(error, ERROR_USAGE, "--batch=%d: expected at most %d, the training examples of %s",
                     config->batch, examples, name);
}

int run_open_sampler(struct run *run, const struct typed *typed, struct error *error) {
    const struct setup *setup = &run->setup;
    const struct config *config = &setup->config;
    const struct stream stream = {.seed = (uint64_t)config->seed,
                                  .examples = setup->dataset.train.count,
                                  .batch = config->batch,
                                  .workers = run->workers,
                                  .sharding = (enum data_sharding)config->data_sharding,
                                  .block = setup->dataset.block,
                                  .sizes = run->sizes};
    long *own = NULL, base = 0;
    RETURN_IF(check_batch(run, typed, error));
    if (stream.sharding == SHARDING_SPLIT && stream.examples < run->workers)
        return error_set(error, ERROR_USAGE, "--data-sharding=split: %d examples for %d workers",
                         stream.examples, run->workers);
    RETURN_IF(memory_array(&own, run->workers, "positions", error));
    if (run->resumes && !run->led)
        tested_say_changed(&run->checkpoint, config->resume, config->dataset, config->validation,
                           config->data_slice, stream.examples);
    if (run->resumes) resume_position(&run->checkpoint, &stream, &base, own);
    const int code =
        sampler_open(&run->sampler, &stream, run_traits(run)->rounds, config->epochs, base, own, error);
    memory_free(own);
    if (code == OK && config->batch_total > 0) sampler_fill(&run->sampler);
    if (code != OK || run->present == run->workers) return code;
    for (int w = 0; w < run->workers; w++)
        if (run->lost[w]) sampler_bar(&run->sampler, w);
    sampler_change(&run->sampler, run_traits(run)->rounds);
    return OK;
}
