/* tensorboard: event files that TensorBoard shows while the run goes on. In the run's folder what is known of
 * each epoch (the step of its curves is the epoch), the settings and what happened; in worker-0, worker-1 and
 * so on, each a run of its own to TensorBoard and so a colour of its own in one picture, the curves of the
 * steps (their step is the worker's), the histograms of its staleness, and the graph on its device.
 *
 * Times of the points are those of training: without the pauses, as in steps.csv. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../formats/event_files.h"
#include "../formats/events.h"
#include "../pictures/confusion.h"
#include "../pictures/example.h"
#include "../pictures/filters.h"
#include "../pictures/png.h"
#include "../pictures/wrong.h"
#include "../record/output.h"
#include "../record/staleness.h"
#include "../store/optimizer.h"
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

enum {
    TEXT_BYTES = 4096,
    TAG_BYTES = 80,
    SETTINGS_MOST = 40,
    STALENESS_BUCKETS = 30,
    FILTERS_MOST = 64,
    EXAMPLES_SHOWN = 24,
    WRONG_MOST = 40
};
/* Pictures of the filters: at most every second, and ever more rarely. */
static const double filters_s = 1.0, filters_times = 1.2;

/* What the rows of some steps of a worker add up to. */
struct steps_sum {
    double ms, wait_ms;
    long rows, dropped;
    struct staleness staleness;
};

struct watched { /* a worker */
    struct events events;
    struct steps_sum point, epoch; /* since the last point; in this epoch */
    double time_s;                 /* of the last point */
    long step, last_step;          /* of the last point; of the last row */
};

struct tensorboard {
    struct events events;
    struct watched *workers; /* [count] */
    int count, every, histograms;
    double utc_s, seconds_before; /* when training began, on the clock and in its own time */
    struct text happened;         /* since it was last written, as a list */
    char happened_bytes[TEXT_BYTES];
    int epoch;
    bool drops; /* a gradient was dropped: then it is worth a curve */

    const struct graph *graph;     /* borrowed */
    const struct dataset *dataset; /* borrowed */
    struct example_sizes sizes;
    bool has_pictures;   /* examples can be drawn */
    bool has_filters;    /* the first layer, too */
    double filters_at_s; /* of training, when they were drawn last */
    int filters_epoch;
    struct example_choice examples; /* that are drawn after the first epoch; count 0: they have been */
};

static double time_of(const struct tensorboard *self, double time_s) {
    return self->utc_s + time_s - self->seconds_before;
}

static int every(const struct output_scene *scene) {
    return scene->folder ? scene->config->scalars : 0;
}

/* --- what is told once: settings and graph --- */

struct settings {
    struct events_setting all[SETTINGS_MOST];
    char values[SETTINGS_MOST][CONFIG_VALUE_BYTES];
    int count;
};

static void add_number(struct settings *to, const char *name, double number) {
    if (to->count < SETTINGS_MOST)
        to->all[to->count++] =
            (struct events_setting){.name = name, .kind = SETTING_NUMBER, .number = number};
}

static void add_text(struct settings *to, const char *name, const char *text) {
    if (to->count == SETTINGS_MOST) return;
    snprintf(to->values[to->count], CONFIG_VALUE_BYTES, "%s", text);
    to->all[to->count] =
        (struct events_setting){.name = name, .kind = SETTING_TEXT, .text = to->values[to->count]};
    to->count++;
}

static int add_row(void *argument, const struct option *row, const char *value) {
    struct settings *to = argument;
    char *end = NULL;
    const double number = strtod(value, &end);
    const bool is_number = row->type == OPTION_INT || row->type == OPTION_LONG || row->type == OPTION_REAL;
    if (is_number && end != value && *end == '\0')
        add_number(to, row->name, number);
    else
        add_text(to, row->name, value);
    return OK;
}

static const char *device_list(const struct output_scene *scene, char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    for (int w = 0; w < scene->workers; w++) text_item(&text, ",", "%s", scene->devices[w]);
    return out;
}

/* What people compare runs by. */
static bool is_first(const char *name) {
    static const char *const names[] = {"model", "strategy", "workers", "batch", "rate"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Those that are shown or saved; and, as numbers can be compared, the optimizer's rate by itself. */
static void gather_settings(struct settings *settings, const struct output_scene *scene) {
    char devices[CONFIG_VALUE_BYTES];
    struct choice optimizer;
    struct error ignored = {0};
    config_each(scene->config, OPTION_SHOWN | OPTION_SAVED, add_row, settings);
    if (plugin_choose(&optimizer, &optimizer_kind, scene->config->optimizer, &ignored) == OK)
        add_number(settings, "rate",
                   ((const struct optimizer_common *)(const void *)optimizer.settings)->rate);
    add_text(settings, "devices", device_list(scene, devices, sizeof devices));
    add_number(settings, "workers", scene->workers);
    add_number(settings, "shards", scene->shards);
    for (int i = 0; i < settings->count; i++) settings->all[i].first = is_first(settings->all[i].name);
}

static int write_table(struct tensorboard *self, const struct settings *settings, int epoch,
                       struct error *error) {
    struct text text = text_growing(error);
    text_add(&text, "| setting | value |\n|---|---|\n");
    for (int i = 0; i < settings->count; i++) {
        const struct events_setting *setting = &settings->all[i];
        if (setting->kind == SETTING_TEXT)
            text_add(&text, "| %s | %s |\n", setting->name, setting->text);
        else
            text_add(&text, "| %s | %.10g |\n", setting->name, setting->number);
    }
    int code = text_end(&text);
    if (code == OK) code = events_text(&self->events, self->utc_s, epoch, "config", text.bytes, error);
    memory_free(text.bytes);
    return code;
}

static int write_settings(struct tensorboard *self, const struct output_scene *scene, bool first,
                          struct error *error) {
    static const struct events_metric metrics[] = {
        {"epoch/test_accuracy", "test accuracy"}, {"epoch/test_loss", "test loss"},
        {"epoch/train_loss", "train loss"},       {"epoch/time_s", "seconds"},
        {"epoch/examples_per_s", "examples/s"},   {"epoch/wait_share", "wait share"},
        {"epoch/staleness_mean", "staleness"}};
    struct settings *settings = NULL;
    RETURN_IF(memory_array(&settings, 1, "the settings for TensorBoard", error));
    gather_settings(settings, scene);
    int code = write_table(self, settings, scene->epochs_before, error);
    if (code == OK && first)
        code = events_settings(&self->events, self->utc_s, settings->all, settings->count, metrics,
                               sizeof metrics / sizeof *metrics, error);
    memory_free(settings);
    return code;
}

static void see_what_can_be_drawn(struct tensorboard *self) {
    struct error ignored = {0};
    int width = 0;
    self->has_pictures = self->histograms > 0 && png_check(&ignored) == OK &&
                         example_sizes(&self->sizes, self->dataset, &ignored) == OK;
    self->has_filters =
        self->has_pictures && filters_width(&width, self->graph, self->sizes.seen, &ignored) == OK;
}

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
                                 .epoch = scene->epochs_before};
    self->happened = text_into(self->happened_bytes, sizeof self->happened_bytes);
    if (!scene->folder) return OK;
    see_what_can_be_drawn(self);
    self->examples = (struct example_choice){
        .train = true, .seed = (uint64_t)scene->config->seed, .count = scene->goes_on ? 0 : EXAMPLES_SHOWN};
    RETURN_IF(memory_array(&self->workers, scene->workers, "the workers' events", error));
    const bool first = !event_files_are_in(scene->folder);
    RETURN_IF(
        events_open(&self->events, scene->folder, (long long)self->utc_s, scene->epochs_before + 1, error));
    RETURN_IF(write_settings(self, scene, first, error));
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
        {"step/staleness_p99", staleness_percentile(&sum->staleness, 0.99)},
        {"step/dropped_share", dropped_share(self, sum)}};
    worker->step = row->step;
    worker->time_s = row->time_s;
    *sum = (struct steps_sum){0};
    return events_scalars(&worker->events, time_of(self, row->time_s), row->step, scalars,
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
        self->drops = self->drops || rows[i].version == 0;
        if (self->every > 0 && rows[i].step % self->every == 0)
            RETURN_IF(write_point(self, worker, &rows[i], error));
    }
    return flush(self, error);
}

/* --- epochs --- */

/* A bucket for each value, or, where there are too many, for several. */
static int staleness_buckets(const struct staleness *staleness,
                             struct events_bucket buckets[STALENESS_BUCKETS]) {
    int first = 0, last = STALENESS_MOST;
    if (staleness->gradients == 0) return 0;
    while (staleness->counts[first] == 0) first++;
    while (staleness->counts[last] == 0) last--;
    const int width = (last - first) / STALENESS_BUCKETS + 1, count = (last - first) / width + 1;
    for (int b = 0; b < count; b++) {
        const int begin = first + b * width;
        buckets[b] = (struct events_bucket){.left = begin - 0.5, .right = begin + width - 0.5};
        for (int i = begin; i < begin + width && i <= last; i++)
            buckets[b].count += (double)staleness->counts[i];
    }
    return count;
}

static int write_staleness(const struct tensorboard *self, struct watched *worker, double time,
                           struct error *error) {
    struct events_bucket buckets[STALENESS_BUCKETS];
    const int count = staleness_buckets(&worker->epoch.staleness, buckets);
    (void)self;
    return count > 0 ? events_histogram(&worker->events, time, worker->last_step, "staleness", buckets, count,
                                        error)
                     : OK;
}

static int write_weights(struct tensorboard *self, const struct output_epoch *epoch, double time,
                         struct error *error) {
    for (int i = 0; i < self->graph->layout.count; i++) {
        const struct range *range = &self->graph->layout.ranges[i];
        struct events_bucket buckets[EVENTS_BUCKETS];
        char tag[TAG_BYTES];
        snprintf(tag, sizeof tag, "weights/%s", range->name);
        const int count = events_buckets(buckets, epoch->weights + range->begin, range->floats);
        if (count > 0)
            RETURN_IF(events_histogram(&self->events, time, epoch->row->epoch, tag, buckets, count, error));
    }
    return OK;
}

static int write_histograms(struct tensorboard *self, const struct output_epoch *epoch, double time,
                            struct error *error) {
    for (int w = 0; w < self->count; w++) RETURN_IF(write_staleness(self, &self->workers[w], time, error));
    return epoch->weights ? write_weights(self, epoch, time, error) : OK;
}

static int write_epoch(struct tensorboard *self, const struct epoch_row *row, double time,
                       struct error *error) {
    struct steps_sum all = {0};
    for (int w = 0; w < self->count; w++) {
        const struct steps_sum *of = &self->workers[w].epoch;
        all.ms += of->ms;
        all.wait_ms += of->wait_ms;
        all.rows += of->rows;
        all.dropped += of->dropped;
        staleness_merge(&all.staleness, &of->staleness);
    }
    const struct events_scalar scalars[] = {
        {"epoch/train_loss", row->train_loss},
        {"epoch/test_loss", row->test_loss},
        {"epoch/test_accuracy", row->test_accuracy},
        {"epoch/validation_loss", row->validation_loss},
        {"epoch/validation_accuracy", row->validation_accuracy},
        {"epoch/examples_per_s", row->examples_per_s},
        {"epoch/time_s", row->time_s},
        {"epoch/wait_share", share(all.wait_ms, all.ms)},
        {"epoch/staleness_mean", staleness_mean(&all.staleness)},
        {"epoch/staleness_p99", staleness_percentile(&all.staleness, 0.99)},
        {"epoch/dropped_share", dropped_share(self, &all)}};
    return events_scalars(&self->events, time, row->epoch, scalars, sizeof scalars / sizeof *scalars, error);
}

static int write_picture(struct tensorboard *self, const char *tag, const struct canvas *canvas, double time,
                         int epoch, struct error *error) {
    char *png = NULL;
    size_t bytes = 0;
    RETURN_IF(png_encode(canvas, &png, &bytes, error));
    const struct events_image image = {
        .height = canvas->height, .width = canvas->width, .channels = 3, .png = png, .bytes = bytes};
    const int code = events_image(&self->events, time, epoch, tag, &image, error);
    memory_free(png);
    return code;
}

static int write_sheet(struct tensorboard *self, const char *tag, const struct sheet *sheet, double time,
                       int epoch, struct error *error) {
    struct canvas canvas = {0};
    int code = sheet_draw(sheet, &canvas, error);
    if (code == OK) code = write_picture(self, tag, &canvas, time, epoch, error);
    canvas_close(&canvas);
    return code;
}

static int write_filters(struct tensorboard *self, const float *weights, double time_s, int epoch,
                         struct error *error) {
    struct sheet sheet = {0};
    int code = filters_sheet(&sheet, self->graph, weights, self->sizes.seen, FILTERS_MOST, true, error);
    if (code == OK) code = write_sheet(self, "filters", &sheet, time_of(self, time_s), epoch, error);
    sheet_close(&sheet);
    self->filters_at_s = time_s;
    self->filters_epoch = epoch;
    return code;
}

/* Those that the first epoch began with, as they are and as the network saw them. */
static int write_examples(struct tensorboard *self, double time, int epoch, struct error *error) {
    struct sheet sheet = {0};
    self->examples.epoch = epoch;
    int code = example_sheet(&sheet, self->dataset, &self->examples, error);
    if (code == OK) code = write_sheet(self, "examples", &sheet, time, epoch, error);
    sheet_close(&sheet);
    self->examples.count = 0;
    return code;
}

static bool filters_due(const struct tensorboard *self, double time_s) {
    return self->has_filters &&
           (self->filters_epoch == 0 ||
            time_s > fmax(self->filters_at_s + filters_s, self->filters_at_s * filters_times));
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
    const double time = time_of(self, epoch->row->time_s);
    if (!self->workers) return OK;
    RETURN_IF(write_epoch(self, epoch->row, time, error));
    if (self->histograms > 0 && epoch->row->epoch % self->histograms == 0)
        RETURN_IF(write_histograms(self, epoch, time, error));
    if (self->has_pictures && self->examples.count > 0)
        RETURN_IF(write_examples(self, time_of(self, epoch->row->time_s), epoch->row->epoch, error));
    if (epoch->weights && filters_due(self, epoch->row->time_s))
        RETURN_IF(write_filters(self, epoch->weights, epoch->row->time_s, epoch->row->epoch, error));
    for (int w = 0; w < self->count; w++) self->workers[w].epoch = (struct steps_sum){0};
    self->epoch = epoch->row->epoch;
    RETURN_IF(write_happened(self, time, error));
    RETURN_IF(flush(self, error));
    return events_flush(&self->events, error);
}

/* --- what else happens --- */

static int event(void *of, const struct output_event *event, struct error *error) {
    static const char *const kinds[] = {[EVENT_RESUMED] = "resumed",
                                        [EVENT_TARGET] = "target",
                                        [EVENT_BEST] = "best so far",
                                        [EVENT_CHECKPOINT] = "checkpoint",
                                        [EVENT_LOST] = "lost"};
    struct tensorboard *self = of;
    (void)error;
    text_add(&self->happened, "* %.1f s: **%s**: %s\n", event->time_s, kinds[event->kind], event->words);
    return OK;
}

static int write_wrong(struct tensorboard *self, const struct output_end *end, double time,
                       struct error *error) {
    const struct answers answers = {.said = end->said, .probabilities = end->probabilities};
    struct sheet sheet = {0};
    int code = wrong_sheet(&sheet, self->dataset, &self->dataset->test, "test", &answers, WRONG_MOST, error);
    if (code == OK && sheet.count > 0) code = write_sheet(self, "wrong", &sheet, time, self->epoch, error);
    sheet_close(&sheet);
    return code;
}

static int write_confusion(struct tensorboard *self, const struct output_end *end, double time,
                           struct error *error) {
    const struct dataset *dataset = self->dataset;
    struct confusion confusion = {0};
    struct canvas canvas = {0};
    int code = confusion_open(&confusion, (const char *const *)dataset->class_names, dataset->classes,
                              dataset->test.labels, end->said, dataset->test.count, error);
    snprintf(confusion.title, sizeof confusion.title, "%s: %d of %d test examples are right", dataset->name,
             confusion.right, confusion.examples);
    if (code == OK) code = confusion_draw(&confusion, &canvas, error);
    if (code == OK) code = write_picture(self, "confusion", &canvas, time, self->epoch, error);
    canvas_close(&canvas);
    confusion_close(&confusion);
    return code;
}

static int write_last_pictures(struct tensorboard *self, const struct output_end *end, double time,
                               struct error *error) {
    if (self->has_filters && end->weights && self->epoch > self->filters_epoch)
        RETURN_IF(write_filters(self, end->weights, end->summary->train_seconds, self->epoch, error));
    if (!self->has_pictures || !end->said || self->dataset->test.count == 0) return OK;
    RETURN_IF(write_wrong(self, end, time, error));
    return self->dataset->classes <= CONFUSION_MOST ? write_confusion(self, end, time, error) : OK;
}

/* What is known of the whole run only. */
static int end(void *of, const struct output_end *end, struct error *error) {
    struct tensorboard *self = of;
    const struct summary *summary = end->summary;
    const double time = time_of(self, summary->train_seconds);
    const struct events_scalar scalars[] = {{"run/examples_per_s", summary->examples_per_s},
                                            {"run/target_s", summary->target_s},
                                            {"run/lost_updates", (double)summary->lost_updates},
                                            {"run/dropped", (double)summary->dropped}};
    if (!self->workers) return OK;
    RETURN_IF(
        events_scalars(&self->events, time, self->epoch, scalars, sizeof scalars / sizeof *scalars, error));
    RETURN_IF(write_last_pictures(self, end, time, error));
    RETURN_IF(write_happened(self, time, error));
    if (!summary->interrupted) RETURN_IF(events_settings_end(&self->events, time, true, error));
    return events_flush(&self->events, error);
}

static void close(void *of) {
    struct tensorboard *self = of;
    for (int w = 0; w < self->count && self->workers; w++) events_close(&self->workers[w].events);
    memory_free(self->workers);
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
