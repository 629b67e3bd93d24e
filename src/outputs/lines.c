/* lines: what is printed while the run goes on: the reference programs' line every so many steps, a line per
 * epoch, and one where the target is reached. */
#include <stdio.h>
#include "../base/memory.h"
#include "../record/epoch_line.h"
#include "../record/lines.h"
#include "../record/output.h"

/* Long enough for any of them. */
enum { EPOCH_LINE_BYTES = 200 };

struct printing {
    struct lines *lines; /* borrowed; NULL: nothing is printed */
    int every, workers, epochs, first;
    double since_s; /* of training, without a line of an epoch */
    struct printed {
        double time_s;
        long step;
    } * printed; /* [workers] at the last printed line, for AvgTime */
};

static int every(const struct output_scene *scene) {
    return scene->lines && !scene->others_step ? scene->config->print_every : 0;
}

static int open(void *self, const struct output_scene *scene, struct error *error) {
    struct printing *printing = self;
    *printing = (struct printing){.lines = scene->lines,
                                  .every = every(scene),
                                  .workers = scene->workers,
                                  .epochs = scene->config->epochs,
                                  .first = scene->epochs_before + 1};
    RETURN_IF(memory_array(&printing->printed, scene->workers, "the printed lines", error));
    for (int w = 0; w < scene->workers; w++)
        printing->printed[w] = (struct printed){.time_s = scene->seconds_before,
                                                .step = scene->steps_before ? scene->steps_before[w] : 0};
    return OK;
}

/* In one line, with single blanks. */
static bool fits(const struct lines *lines, const char *words) {
    const int columns = lines_columns(lines);
    int length = 0;
    for (const char *c = words; *c; c++) length += c[0] != ' ' || c[1] != ' ';
    return columns == 0 || length <= columns;
}

/* Its "Step" is the number of updates that the weights have had. A gradient that was dropped made none: the
 * line has those before it, and says so at its end. A terminal that is too narrow gets it closed up, and
 * without the time if it is too narrow for that. */
static void print_row(struct printing *printing, const struct log_row *row) {
    struct printed *last = &printing->printed[row->worker];
    const long steps = row->step - last->step;
    const double average_ms = steps > 0 ? (row->time_s - last->time_s) * 1000 / (double)steps : 0;
    *last = (struct printed){.time_s = row->time_s, .step = row->step};
    char worker[32] = "", time[40] = "", words[300];
    if (printing->workers > 1) snprintf(worker, sizeof worker, "Worker %d: ", row->worker);
    snprintf(time, sizeof time, ",  AvgTime: %3.2fms", average_ms);
    for (int parts = 2; parts > 0; parts--) {
        snprintf(words, sizeof words, "%sStep: %ld,  Epoch: %2d,  Batch: %3ld of %3ld,  Cost: %.4f%s%s",
                 worker, row->version > 0 ? row->version : row->read_version, row->epoch, row->batch,
                 row->batches, (double)row->loss, parts > 1 ? time : "",
                 row->version > 0 ? "" : ",  dropped");
        if (fits(printing->lines, words)) break;
    }
    lines_fit(printing->lines, "%s", words);
}

static int steps(void *self, const struct log_row *rows, int count, struct error *error) {
    struct printing *printing = self;
    (void)error;
    for (int i = 0; i < count && printing->every > 0; i++)
        if (rows[i].step % printing->every == 0) print_row(printing, &rows[i]);
    if (printing->lines) lines_flush(printing->lines);
    return OK;
}

static int epoch(void *self, const struct output_epoch *epoch, struct error *error) {
    struct printing *printing = self;
    const struct epoch_row *row = epoch->row;
    char text[EPOCH_LINE_BYTES];
    (void)error;
    printing->since_s += epoch->passed_s;
    if (!printing->lines ||
        (row->epoch != printing->first && !epoch_line_due(row->epoch, printing->epochs, printing->since_s)))
        return OK;
    const struct epoch_line line = {.epoch = row->epoch,
                                    .epochs = printing->epochs,
                                    .loss = row->train_loss,
                                    .metric = row->metric,
                                    .validation_score = row->validation_score,
                                    .test_score = row->test_score,
                                    .examples_per_s = row->examples_per_s,
                                    .seconds = epoch->seconds,
                                    .left_s = epoch->left_s};
    printing->since_s = 0.0;
    lines_fit(printing->lines, "%s",
              epoch_line_text(&line, lines_columns(printing->lines), text, sizeof text));
    lines_flush(printing->lines);
    return OK;
}

static int event(void *self, const struct output_event *event, struct error *error) {
    const struct printing *printing = self;
    (void)error;
    if (!printing->lines || (event->kind != EVENT_TARGET && event->kind != EVENT_STRATEGY)) return OK;
    lines_fit(printing->lines, "%s", event->words);
    lines_flush(printing->lines);
    return OK;
}

static void close(void *self) {
    const struct printing *printing = self;
    memory_free(printing->printed);
}

const struct output output_lines = {
    .plugin = {.name = "lines", .help = "lines on standard output: steps, epochs, the target"},
    .self_bytes = sizeof(struct printing),
    .always = true,
    .every = every,
    .open = open,
    .steps = steps,
    .epoch = epoch,
    .event = event,
    .close = close,
};
