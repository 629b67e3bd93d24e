/* tensorboard: event files that TensorBoard shows while the run goes on. In the run's folder what is known of
 * each epoch (the step of its curves is the epoch), the settings and what happened; in worker-0, worker-1 and
 * so on, each a run of its own to TensorBoard and so a colour of its own in one picture, the curves of the
 * steps (their step is the worker's), the histograms of its staleness, and the graph on its device.
 *
 * Times of the points are those of training: without the pauses, as in steps.csv. */
#include <math.h>
#include <stdio.h>

#include "../base/memory.h"
#include "../formats/event_files.h"
#include "../tensorboard/board.h"
#include "../world/world.h"

#define HELP "events.out.tfevents.* for TensorBoard: curves, histograms, graph, settings to compare"

/* Its files are not called what `files` could say: TensorBoard reads all that have "tfevents" in them. */
static int left(enum output_left what, const char *folder, struct error *error) {
    switch (what) {
    case LEFT_SET_ASIDE:
        return event_files_set_aside(folder, error);
    case LEFT_PUT_BACK:
        return event_files_put_back(folder, error);
    case LEFT_DROP:
        return event_files_drop(folder, error);
    case LEFT_KEEP:
        return event_files_keep(folder, error);
    case LEFT_REMOVE:
        return event_files_remove(folder, error);
    }
    return OK;
}

#if TRAINER_PROTOBUF

enum { EXAMPLES_SHOWN = 24 };

static int every(const struct output_scene *scene) {
    return scene->folder ? scene->config->scalars : 0;
}

/* --- what is told once: settings and graph --- */

static int open_worker(struct tensorboard *self, const struct output_scene *scene, int w,
                       struct error *error) {
    struct watched *worker = &self->workers[w];
    char name[32], folder[PATH_BYTES];
    worker->step = worker->last_step = scene->steps_before ? scene->steps_before[w] : 0;
    worker->time_s = scene->seconds_before;
    snprintf(name, sizeof name, "worker-%d", w);
    RETURN_IF(file_join(folder, scene->folder, name, error));
    const bool first = !event_files_are_in(folder);
    RETURN_IF(events_open(&worker->events, folder, (long long)self->utc_s, worker->step + 1, error));
    if (first) RETURN_IF(events_graph(&worker->events, self->utc_s, scene->graph, scene->devices[w], error));
    return events_flush(&worker->events, error);
}

static int open(void *of, const struct output_scene *scene, struct error *error) {
    struct tensorboard *self = of;
    *self = (struct tensorboard){.count = scene->workers,
                                 .every = every(scene),
                                 .histograms = scene->config->histograms,
                                 .utc_s = (double)world_utc_seconds(),
                                 .seconds_before = scene->seconds_before,
                                 .graph = scene->graph,
                                 .dataset = scene->dataset,
                                 .learning_rate = (double)NAN,
                                 .epoch = scene->epochs_before};
    self->happened = text_into(self->happened_bytes, sizeof self->happened_bytes);
    if (!scene->folder) return OK;
    board_see_what_can_be_drawn(self);
    self->examples = (struct example_choice){
        .train = true, .seed = (uint64_t)scene->config->seed, .count = scene->goes_on ? 0 : EXAMPLES_SHOWN};
    RETURN_IF(memory_array(&self->workers, scene->workers, "the workers' events", error));
    RETURN_IF(memory_array(&self->shards, scene->shards, "the shards' staleness", error));
    const bool first = !event_files_are_in(scene->folder);
    RETURN_IF(
        events_open(&self->events, scene->folder, (long long)self->utc_s, scene->epochs_before + 1, error));
    RETURN_IF(board_settings(self, scene, first, error));
    for (int w = 0; w < scene->workers; w++) RETURN_IF(open_worker(self, scene, w, error));
    return events_flush(&self->events, error);
}

/* --- steps --- */

static void add_step(struct steps_sum *sum, const struct log_row *row) {
    sum->rows++;
    sum->ms += row->input_ms + row->pull_ms + row->compute_ms + row->push_ms + row->wait_ms;
    sum->wait_ms += row->wait_ms;
    sum->dropped += row->version == 0;
    if (row->version > 0) staleness_add(&sum->staleness, row->staleness);
}

static double dropped_share(const struct tensorboard *self, const struct steps_sum *sum) {
    return self->drops && sum->rows > 0 ? (double)sum->dropped / (double)sum->rows : (double)NAN;
}

static double share(double part, double whole) {
    return whole > 0.0 ? part / whole : (double)NAN;
}

static double staleness_p99(const struct staleness *staleness) {
    return staleness->gradients > 0 ? (double)staleness_percentile(staleness, 0.99) : (double)NAN;
}

/* Loss and rate are those of the row; the others are of all rows since the last point. */
static int write_point(const struct tensorboard *self, struct watched *worker, const struct log_row *row,
                       struct error *error) {
    struct steps_sum *sum = &worker->point;
    const double examples = (double)(row->step - worker->step) * row->examples;
    const struct events_scalar scalars[] = {
        {"step/loss", (double)row->loss},
        {"step/learning_rate", (double)row->learning_rate},
        {"step/examples_per_s", share(examples, row->time_s - worker->time_s)},
        {"step/wait_share", share(sum->wait_ms, sum->ms)},
        {"step/staleness_mean", staleness_mean(&sum->staleness)},
        {"step/staleness_p99", staleness_p99(&sum->staleness)},
        {"step/dropped_share", dropped_share(self, sum)}};
    worker->step = row->step;
    worker->time_s = row->time_s;
    *sum = (struct steps_sum){0};
    return events_scalars(&worker->events, board_time(self, row->time_s), row->step, scalars,
                          sizeof scalars / sizeof *scalars, error);
}

static int flush(const struct tensorboard *self, struct error *error) {
    for (int w = 0; w < self->count; w++) RETURN_IF(events_flush(&self->workers[w].events, error));
    return OK;
}

static int steps(void *of, const struct log_row *rows, int count, struct error *error) {
    struct tensorboard *self = of;
    if (!self->workers) return OK;
    for (int i = 0; i < count; i++) {
        struct watched *worker = &self->workers[rows[i].worker];
        add_step(&worker->point, &rows[i]);
        add_step(&worker->epoch, &rows[i]);
        worker->last_step = rows[i].step;
        self->learning_rate = (double)rows[i].learning_rate;
        self->drops = self->drops || rows[i].version == 0;
        if (self->every > 0 && rows[i].step % self->every == 0)
            RETURN_IF(write_point(self, worker, &rows[i], error));
    }
    return flush(self, error);
}

/* --- epochs --- */

static bool has_histograms(const struct tensorboard *self, int epoch) {
    return self->workers && self->histograms > 0 && epoch % self->histograms == 0;
}

static bool wants_gradient(const void *of, int epoch) {
    return has_histograms(of, epoch);
}

static int write_epoch(struct tensorboard *self, const struct output_epoch *epoch, double time,
                       struct error *error) {
    const struct epoch_row *row = epoch->row;
    struct steps_sum all = {0};
    char test_tag[METRIC_NAME_BYTES], validation_tag[METRIC_NAME_BYTES];
    metric_name("epoch/test", row->metric, test_tag);
    metric_name("epoch/validation", row->metric, validation_tag);
    for (int w = 0; w < self->count; w++) {
        const struct steps_sum *of = &self->workers[w].epoch;
        const double rest_s = epoch->rest_s[w];
        const double rest_ms = 1e3 * (rest_s - self->workers[w].rest_s);
        self->workers[w].rest_s = rest_s;
        all.ms += of->ms + rest_ms;
        all.wait_ms += of->wait_ms + rest_ms;
        all.rows += of->rows;
        all.dropped += of->dropped;
        staleness_merge(&all.staleness, &of->staleness);
    }
    const struct events_scalar scalars[] = {
        {"epoch/train_loss", row->train_loss},
        {"epoch/test_loss", row->test_loss},
        {test_tag, row->test_score},
        {"epoch/validation_loss", row->validation_loss},
        {validation_tag, row->validation_score},
        {"epoch/learning_rate", self->learning_rate},
        {"epoch/examples_per_s", row->examples_per_s},
        {"epoch/time_s", row->time_s},
        {"epoch/wait_share", share(all.wait_ms, all.ms)},
        {"epoch/staleness_mean", staleness_mean(&all.staleness)},
        {"epoch/staleness_p99", staleness_p99(&all.staleness)},
        {"epoch/lost_updates", (double)(epoch->lost_updates - self->lost_updates)},
        {"epoch/dropped_share", dropped_share(self, &all)}};
    self->lost_updates = epoch->lost_updates;
    return events_scalars(&self->events, time, row->epoch, scalars, sizeof scalars / sizeof *scalars, error);
}

/* One text per epoch: TensorBoard shows but one for a step. */
static int write_happened(struct tensorboard *self, double time, struct error *error) {
    if (self->happened.used == 0) return OK;
    const int code = events_text(&self->events, time, self->epoch, "events", self->happened_bytes, error);
    self->happened = text_into(self->happened_bytes, sizeof self->happened_bytes);
    return code;
}

static int epoch(void *of, const struct output_epoch *epoch, struct error *error) {
    struct tensorboard *self = of;
    const double time = board_time(self, epoch->row->time_s);
    if (!self->workers) return OK;
    RETURN_IF(write_epoch(self, epoch, time, error));
    if (has_histograms(self, epoch->row->epoch)) RETURN_IF(board_histograms(self, epoch, time, error));
    RETURN_IF(board_pictures(self, epoch, error));
    for (int w = 0; w < self->count; w++) self->workers[w].epoch = (struct steps_sum){0};
    self->epoch = epoch->row->epoch;
    RETURN_IF(write_happened(self, time, error));
    RETURN_IF(flush(self, error));
    return events_flush(&self->events, error);
}

/* --- what else happens --- */

static int event(void *of, const struct output_event *event, struct error *error) {
    static const char *const kinds[] = {
        [EVENT_RESUMED] = "resumed",       [EVENT_TARGET] = "target",    [EVENT_BEST] = "best so far",
        [EVENT_CHECKPOINT] = "checkpoint", [EVENT_LOST] = "lost",        [EVENT_LEFT] = "left",
        [EVENT_JOINED] = "joined",         [EVENT_STRATEGY] = "strategy"};
    struct tensorboard *self = of;
    (void)error;
    text_add(&self->happened, "* %.1f s: **%s**: %s\n", event->time_s, kinds[event->kind], event->words);
    return OK;
}

/* What is known of the whole run only. */
static int end(void *of, const struct output_end *end, struct error *error) {
    struct tensorboard *self = of;
    const struct summary *summary = end->summary;
    const double time = board_time(self, summary->train_seconds);
    const struct events_scalar scalars[] = {{"run/examples_per_s", summary->examples_per_s},
                                            {"run/target_s", summary->target_s},
                                            {"run/lost_updates", (double)summary->lost_updates},
                                            {"run/dropped", (double)summary->dropped}};
    if (!self->workers) return OK;
    RETURN_IF(
        events_scalars(&self->events, time, self->epoch, scalars, sizeof scalars / sizeof *scalars, error));
    RETURN_IF(board_last_pictures(self, end, time, error));
    RETURN_IF(write_happened(self, time, error));
    if (!summary->interrupted) RETURN_IF(events_settings_end(&self->events, time, true, error));
    return events_flush(&self->events, error);
}

static void close(void *of) {
    struct tensorboard *self = of;
    for (int w = 0; w < self->count && self->workers; w++) events_close(&self->workers[w].events);
    memory_free(self->workers);
    memory_free(self->shards);
    events_close(&self->events);
}

const struct output output_tensorboard = {
    .plugin = {.name = "tensorboard", .help = HELP},
    .left = left,
    .self_bytes = sizeof(struct tensorboard),
    .wants_said = true,
    .every = every,
    .open = open,
    .steps = steps,
    .epoch = epoch,
    .wants_gradient = wants_gradient,
    .event = event,
    .end = end,
    .close = close,
};

#else

const struct output output_tensorboard = {
    .plugin = {.name = "tensorboard", .help = HELP},
    .left = left,
    .needs = "protobuf-c (apt-get install libprotobuf-c-dev protobuf-c-compiler, then make)",
};

#endif
