/* prometheus: metrics.prom, the run's figures of the moment in Prometheus' text format, for the textfile
 * collector of its node exporter. Written anew about once a second, whole or not at all. */
#include <math.h>
#include <string.h>
#include "../base/file.h"
#include "../base/memory.h"
#include "../graph/model.h"
#include "../base/text.h"
#include "../record/output.h"

enum { LABEL_BYTES = 300 };
static const double every_s = 1.0;

/* What a worker has done in this part of the run. */
struct counted {
    long steps; /* earlier parts included */
    double examples, input_s, pull_s, compute_s, push_s, wait_s, rest_s, staleness;
    long rows, staleness_max, dropped, update;
    float loss;
    bool lost;
};

struct metrics {
    char path[PATH_BYTES], run[3 * LABEL_BYTES]; /* run: its labels */
    const struct output_scene *scene;            /* borrowed */
    struct counted *worker;                      /* [scene->workers] */
    struct epoch_row row;                        /* of the last epoch */
    double now_s, written_s;                     /* of training */
    bool over;
};

static int every(const struct output_scene *scene) {
    return scene->folder ? 1 : 0;
}

/* A text as a label's value: a backslash, a quote and a line's end are written with a backslash. */
static void add_label(struct text *text, const char *name, const char *value) {
    text_item(text, ",", "%s=\"", name);
    for (const char *c = value; *c; c++)
        if (*c == '\n')
            text_add(text, "\\n");
        else
            text_add(text, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    text_add(text, "\"");
}

static void add_figure(FILE *file, const char *name, const char *labels, double value) {
    if (labels[0])
        fprintf(file, "trainer_%s{%s} ", name, labels);
    else
        fprintf(file, "trainer_%s ", name);
    if (isnan(value))
        fputs("NaN\n", file);
    else
        fprintf(file, "%.10g\n", value);
}

static void begin(FILE *file, const char *name, const char *type, const char *help) {
    fprintf(file, "# HELP trainer_%s %s\n# TYPE trainer_%s %s\n", name, help, name, type);
}

static double share_of(double sum, long count) {
    return count > 0 ? sum / (double)count : (double)NAN;
}

/* One family of figures, a worker each. */
static void write_workers(FILE *file, const struct metrics *metrics, const char *name, const char *type,
                          const char *help, double (*value)(const struct counted *worker)) {
    begin(file, name, type, help);
    for (int w = 0; w < metrics->scene->workers; w++) {
        char labels[LABEL_BYTES], number[16];
        struct text text = text_into(labels, sizeof labels);
        snprintf(number, sizeof number, "%d", w);
        add_label(&text, "worker", number);
        add_label(&text, "device", metrics->scene->devices[w]);
        add_figure(file, name, labels, value(&metrics->worker[w]));
    }
}

static double steps_of(const struct counted *worker) {
    return (double)worker->steps;
}
static double examples_of(const struct counted *worker) {
    return worker->examples;
}
static double loss_of(const struct counted *worker) {
    return worker->rows > 0 ? (double)worker->loss : (double)NAN;
}
static double staleness_of(const struct counted *worker) {
    return share_of(worker->staleness, worker->rows);
}
static double staleness_max_of(const struct counted *worker) {
    return (double)worker->staleness_max;
}
static double dropped_of(const struct counted *worker) {
    return (double)worker->dropped;
}
static double up_of(const struct counted *worker) {
    return worker->lost ? 0.0 : 1.0;
}

/* Where the workers' time went: a figure per worker and phase. */
static void write_times(FILE *file, const struct metrics *metrics) {
    static const char name[] = "worker_seconds_total";
    static const char *const phases[] = {"input", "pull", "compute", "push", "wait"};
    begin(file, name, "counter", "Seconds since the program began, by worker and phase.");
    for (int w = 0; w < metrics->scene->workers; w++) {
        const struct counted *worker = &metrics->worker[w];
        const double seconds[] = {worker->input_s, worker->pull_s, worker->compute_s, worker->push_s,
                                  worker->wait_s + worker->rest_s};
        for (size_t p = 0; p < sizeof phases / sizeof *phases; p++) {
            char labels[LABEL_BYTES];
            struct text text = text_into(labels, sizeof labels);
            text_item(&text, ",", "worker=\"%d\"", w);
            add_label(&text, "device", metrics->scene->devices[w]);
            add_label(&text, "phase", phases[p]);
            add_figure(file, name, labels, seconds[p]);
        }
    }
}

/* One figure of the whole run. */
static void write_run(FILE *file, const char *name, const char *type, const char *help, const char *labels,
                      double value) {
    begin(file, name, type, help);
    add_figure(file, name, labels, value);
}

static void write_score(FILE *file, const char *part, enum metric metric, double value) {
    const struct metric_row *row = &metric_rows[metric];
    char name[64], help[120];
    snprintf(name, sizeof name, "%s_%s", part, row->name);
    snprintf(help, sizeof help, "%s on the %s part after the last epoch%s.", row->title, part,
             row->share ? ", 0 to 1" : "");
    write_run(file, name, "gauge", help, "", value);
}

static void write_all(FILE *file, const struct metrics *metrics) {
    const struct epoch_row *row = &metrics->row;
    long update = 0;
    for (int w = 0; w < metrics->scene->workers; w++)
        if (metrics->worker[w].update > update) update = metrics->worker[w].update;
    write_run(file, "run_info", "gauge", "What is trained, and how; always 1.", metrics->run, 1.0);
    write_run(file, "run_over", "gauge", "1 when the run has come to its end.", "", metrics->over);
    write_run(file, "training_seconds_total", "counter",
              "Seconds of training since the program began, pauses and tests excluded.", "",
              metrics->now_s - metrics->scene->seconds_before);
    write_run(file, "updates_total", "counter", "Updates of the weights, earlier parts of the run included.",
              "", (double)update);
    write_run(file, "epochs", "gauge", "Epochs that are over.", "", row->epoch);
    write_run(file, "epochs_wanted", "gauge", "Epochs that the run is to have.", "",
              metrics->scene->config->epochs);
    write_run(file, "train_loss", "gauge", "Mean loss of the last epoch's batches.", "", row->train_loss);
    write_run(file, "test_loss", "gauge", "Loss on the test part after the last epoch.", "", row->test_loss);
    write_score(file, "test", row->metric, row->test_score);
    write_score(file, "validation", row->metric, row->validation_score);
    write_run(file, "examples_per_second", "gauge", "Examples per second of the last epoch.", "",
              row->examples_per_s);
    write_workers(file, metrics, "worker_up", "gauge", "0 when the worker was lost, or has not come yet.",
                  up_of);
    write_workers(file, metrics, "worker_steps_total", "counter", "Steps since the program began.", steps_of);
    write_workers(file, metrics, "worker_examples_total", "counter", "Examples since the program began.",
                  examples_of);
    write_workers(file, metrics, "worker_loss", "gauge", "Loss of the last batch.", loss_of);
    write_workers(file, metrics, "worker_staleness_mean", "gauge",
                  "Updates by others between reading the weights and applying a gradient, mean.",
                  staleness_of);
    write_workers(file, metrics, "worker_staleness_max", "gauge", "The same, the most.", staleness_max_of);
    write_workers(file, metrics, "worker_dropped_total", "counter", "Gradients that came too late.",
                  dropped_of);
    write_times(file, metrics);
}

static int write(struct metrics *metrics, struct error *error) {
    struct file_new file = {0};
    metrics->written_s = metrics->now_s;
    RETURN_IF(file_create(&file, metrics->path, error));
    write_all(file.stream, metrics);
    const int code = file_commit(&file, error);
    file_abandon(&file);
    return code;
}

static int open(void *self, const struct output_scene *scene, struct error *error) {
    struct metrics *metrics = self;
    struct text text = text_into(metrics->run, sizeof metrics->run);
    char model[MODEL_SHORT_BYTES];
    metrics->scene = scene;
    metrics->now_s = scene->seconds_before;
    metrics->row = (struct epoch_row){.epoch = scene->epochs_before,
                                      .metric = metric_of(scene->dataset->task),
                                      .train_loss = (double)NAN,
                                      .test_loss = (double)NAN,
                                      .test_score = (double)NAN,
                                      .examples_per_s = (double)NAN,
                                      .validation_score = (double)NAN};
    add_label(&text, "strategy", scene->config->strategy);
    add_label(&text, "model", model_short(scene->config->model, model));
    add_label(&text, "dataset", scene->config->dataset);
    add_label(&text, "version", TRAINER_VERSION);
    RETURN_IF(memory_array(&metrics->worker, scene->workers, "the workers' figures", error));
    for (int w = 0; scene->roster && w < scene->workers; w++)
        metrics->worker[w].lost = !atomic_load(&scene->roster->members[w].active); /* it is yet to come */
    RETURN_IF(file_join(metrics->path, scene->folder, "metrics.prom", error));
    return write(metrics, error);
}

static int steps(void *self, const struct log_row *rows, int count, struct error *error) {
    struct metrics *metrics = self;
    const long *before = metrics->scene->steps_before;
    for (int i = 0; i < count; i++) {
        const struct log_row *row = &rows[i];
        struct counted *worker = &metrics->worker[row->worker];
        worker->steps = row->step - (before ? before[row->worker] : 0);
        worker->rows++;
        worker->examples += row->examples;
        worker->input_s += row->input_ms / 1e3;
        worker->pull_s += row->pull_ms / 1e3;
        worker->compute_s += row->compute_ms / 1e3;
        worker->push_s += row->push_ms / 1e3;
        worker->wait_s += row->wait_ms / 1e3;
        worker->staleness += (double)row->staleness;
        if (row->staleness > worker->staleness_max) worker->staleness_max = row->staleness;
        worker->dropped += row->version == 0;
        if (row->version > worker->update) worker->update = row->version;
        worker->loss = row->loss;
        if (row->time_s > metrics->now_s) metrics->now_s = row->time_s;
    }
    return metrics->now_s - metrics->written_s < every_s ? OK : write(metrics, error);
}

static int epoch(void *self, const struct output_epoch *epoch, struct error *error) {
    struct metrics *metrics = self;
    metrics->row = *epoch->row;
    metrics->now_s = epoch->row->time_s;
    for (int w = 0; w < metrics->scene->workers; w++) metrics->worker[w].rest_s = epoch->rest_s[w];
    return metrics->now_s - metrics->written_s < every_s ? OK : write(metrics, error);
}

static int event(void *self, const struct output_event *event, struct error *error) {
    struct metrics *metrics = self;
    if (event->kind != EVENT_LOST && event->kind != EVENT_JOINED) return OK;
    metrics->worker[event->worker].lost = event->kind == EVENT_LOST;
    return write(metrics, error);
}

static int end(void *self, const struct output_end *end, struct error *error) {
    struct metrics *metrics = self;
    (void)end;
    metrics->over = true;
    return write(metrics, error);
}

static void close(void *self) {
    const struct metrics *metrics = self;
    memory_free(metrics->worker);
}

static const char *const files[] = {"metrics.prom", NULL};

const struct output output_prometheus = {
    .plugin = {.name = "prometheus",
               .help = "metrics.prom, the figures of the moment for Prometheus' node exporter"},
    .self_bytes = sizeof(struct metrics),
    .files = files,
    .every = every,
    .open = open,
    .steps = steps,
    .epoch = epoch,
    .event = event,
    .end = end,
    .close = close,
};
