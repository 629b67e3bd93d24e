/* What a run tells its outputs while it goes on, beside the rows of its steps. */
#include <math.h>
#include <stdio.h>

#include "open.h"

/* As long as what was done so far took, tests and pauses included. */
static double seconds_left(const struct run *run, long long examples) {
    const double done = (double)(examples - run->examples_before);
    const double total = (double)sampler_total(&run->sampler) * run->setup.config.batch;
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

void run_tell_epoch(struct run *run, const struct epoch_row *row, double seconds, long long examples) {
    const double now = world_now(run->world);
    const struct output_epoch epoch = {.row = row,
                                       .seconds = seconds,
                                       .passed_s = now - run->told_s,
                                       .left_s = seconds_left(run, examples),
                                       .weights = store_tested(&run->store)};
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

void run_tell_target(struct run *run, const struct epoch_row *row) {
    char words[200];
    snprintf(words, sizeof words, "epoch %d: the first with an accuracy of %g or more (%.4f), after %.1f s",
             row->epoch, run->setup.config.target_accuracy, row->test_accuracy, row->time_s);
    run_tell_event(run, EVENT_TARGET, -1, words);
}
