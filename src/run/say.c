/* What a run prints of itself while it goes on: lines on standard output, but for the notices and the bar. */
#include <math.h>

#include "../outputs/epoch_line.h"
#include "open.h"

/* Long enough for any of them. */
enum { EPOCH_LINE_BYTES = 200 };

/* As long as what was done so far took, tests and pauses included. */
static double seconds_left(const struct run *run, long long examples) {
    const double done = (double)(examples - run->examples_before);
    const double total = (double)sampler_total(&run->sampler) * run->setup.config.batch;
    const double passed_s = world_now(run->world) - run->began_s;
    return done > 0.0 ? passed_s * (total - (double)examples) / done : (double)NAN;
}

void run_say_epoch(struct run *run, const struct epoch_row *row, double seconds, long long examples) {
    const double now = world_now(run->world);
    const int epochs = run->setup.config.epochs;
    char text[EPOCH_LINE_BYTES];
    if (row->epoch != run->epochs_before + 1 && !epoch_line_due(row->epoch, epochs, now - run->said_s))
        return;
    const struct epoch_line line = {.epoch = row->epoch,
                                    .epochs = epochs,
                                    .loss = row->train_loss,
                                    .validation_accuracy = row->validation_accuracy,
                                    .test_accuracy = row->test_accuracy,
                                    .examples_per_s = row->examples_per_s,
                                    .seconds = seconds,
                                    .left_s = seconds_left(run, examples)};
    run->said_s = now;
    lines_fit(&run->lines, "%s", epoch_line_text(&line, text, sizeof text));
    lines_flush(&run->lines);
}

void run_say_target(struct run *run, const struct epoch_row *row) {
    lines_fit(&run->lines, "epoch %d: the first with an accuracy of %g or more (%.4f), after %.1f s",
              row->epoch, run->setup.config.target_accuracy, row->test_accuracy, row->time_s);
    lines_flush(&run->lines);
}
