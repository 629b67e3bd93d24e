/* What a run tells its outputs while it goes on, beside the rows of its steps. */
#include <math.h>
#include <stdio.h>

#include "../base/memory.h"
#include "../record/epoch_line.h"
#include "open.h"

/* As long as what was done so far took, tests and pauses included. */
static double seconds_left(const struct run *run, long long examples) {
    const double done = (double)(examples - run->examples_before);
    const double total = (double)sampler_total(&run->sampler) * stream_unit(&run->sampler.stream);
    const double passed_s = world_now(run->world) - run->began_s;
    return done > 0.0 ? passed_s * (total - (double)examples) / done : (double)NAN;
}

enum { SPANS = 256 };

/* World time becomes time of training; all of them are of the segment that runs, or has just ended. */
static void drain_spans(struct run *run) {
    const struct training *training = &run->training;
    const double offset_s = run->seconds_before - training->started_s - training->paused_s;
    struct trace_span spans[SPANS];
    int count = 0;
    for (bool more = true; more;) {
        more = trace_take(run->trace, &spans[count]);
        if (more) {
            spans[count].begin_s += offset_s;
            spans[count].end_s += offset_s;
            count++;
        }
        if (count < SPANS && (more || count == 0)) continue;
        telling_spans(&run->telling, spans, count, trace_left_out(run->trace));
        count = 0;
    }
}

void run_drain(struct run *run) {
    if (run->log.rings) log_drain(&run->log);
    if (run->trace) drain_spans(run);
}

/* NULL where nobody wants it, or it cannot be had: then a line says so, once. */
static const float *gradient_at(struct run *run, float *weights, int epoch) {
    const struct setup *setup = &run->setup;
    struct probe *probe = &run->probe;
    struct error why = {0};
    int code = OK;
    if (run->probe_failed || !telling_wants_gradient(&run->telling, epoch)) return NULL;
    if (!probe_is_open(probe))
        code = probe_open(probe, &setup->network, &run->evaluator.device, &setup->dataset.train,
                          setup->config.microbatches, &why);
    if (code == OK) code = probe_run(probe, weights, &why);
    if (code == OK) return probe->gradient;
    run->probe_failed = true;
    progress_warn(&run->progress, "%s; the training goes on without histograms of gradients", why.words);
    return NULL;
}

int run_tell_open(struct run *run, struct error *error) {
    RETURN_IF(memory_array(&run->rest_s, (size_t)run->workers, "what is told of the workers", error));
    return memory_array(&run->tallies, run->store.settings.shards, "what is told of the shards", error);
}

void run_tell_close(struct run *run) {
    memory_free(run->rest_s);
    memory_free(run->tallies);
}

static void sum_tallies(struct run *run) {
    for (int s = 0; s < run->store.settings.shards; s++) {
        run->tallies[s] = (struct tally){0};
        for (int w = 0; w < run->workers; w++) tally_add(&run->tallies[s], &run->store.shards[s].tallies[w]);
    }
}

void run_tell_epoch(struct run *run, const struct epoch_row *row, double seconds, long long examples) {
    float *weights = store_tested(&run->store);
    sum_tallies(run);
    for (int w = 0; w < run->workers; w++) run->rest_s[w] = training_totals(&run->training, w)->rest_s;
    const double now = world_now(run->world);
    const struct output_epoch epoch = {.row = row,
                                       .seconds = seconds,
                                       .passed_s = now - run->told_s,
                                       .left_s = seconds_left(run, examples),
                                       .rest_s = run->rest_s,
                                       .weights = weights,
                                       .gradient = gradient_at(run, weights, row->epoch),
                                       .shards = run->tallies,
                                       .shards_here = run->store.settings.shards,
                                       .lost_updates = store_lost_updates(&run->store)};
    run->told_s = now;
    telling_epoch(&run->telling, &epoch);
}

void run_tell_event(struct run *run, enum output_event_kind kind, int worker, const char *words) {
    const struct output_event event = {.kind = kind,
                                       .time_s = run->seconds_before + training_seconds(&run->training),
                                       .worker = worker,
                                       .words = words};
    telling_event(&run->telling, &event);
}

/* What earlier parts reached is known if they had the same target. */
void run_tell_target(struct run *run, const struct epoch_row *row) {
    char words[200];
    struct text text = text_into(words, sizeof words);
    const double target = run->setup.config.target_accuracy;
    const bool anew =
        run->resumes && checkpoint_real(&run->checkpoint, "target-accuracy", (double)NAN) != target;
    text_add(&text, "epoch %d: the first%s with an accuracy of %g or more (%.4f), after ", row->epoch,
             anew ? " of this part of the run" : "", target, row->test_score);
    epoch_line_time(&text, row->time_s, 1);
    run_tell_event(run, EVENT_TARGET, -1, words);
}
