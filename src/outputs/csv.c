/* csv: steps.csv, a row per worker and step, and epochs.csv, a row per epoch. */
#include "../record/output.h"
#include "../record/steps.h"

struct csv {
    struct steps steps;
    struct epochs epochs;
    int every;
};

static int every(const struct output_scene *scene) {
    return scene->config->log_every;
}

static int open_steps(struct csv *csv, const struct output_scene *scene, struct error *error) {
    char path[PATH_BYTES];
    long long bytes = 0;
    RETURN_IF(file_join(path, scene->folder, "steps.csv", error));
    if (scene->goes_on) RETURN_IF(steps_rewind(path, scene->seconds_before, &bytes, error));
    csv->every = scene->config->log_every;
    return csv->every > 0 ? steps_open(&csv->steps, path, bytes, scene->devices, error) : OK;
}

static int open(void *self, const struct output_scene *scene, struct error *error) {
    struct csv *csv = self;
    char path[PATH_BYTES];
    long long bytes = 0;
    const enum metric metric = metric_of(scene->dataset->task);
    RETURN_IF(open_steps(csv, scene, error));
    RETURN_IF(file_join(path, scene->folder, "epochs.csv", error));
    if (scene->goes_on) RETURN_IF(epochs_rewind(path, metric, scene->seconds_before, &bytes, error));
    return epochs_open(&csv->epochs, path, metric, bytes, error);
}

static int steps(void *self, const struct log_row *rows, int count, struct error *error) {
    struct csv *csv = self;
    if (csv->every == 0) return OK;
    for (int i = 0; i < count; i++)
        if (rows[i].step % csv->every == 0) steps_add(&csv->steps, &rows[i]);
    return steps_flush(&csv->steps, error);
}

static int epoch(void *self, const struct output_epoch *epoch, struct error *error) {
    struct csv *csv = self;
    return epochs_add(&csv->epochs, epoch->row, error);
}

static int end(void *self, const struct output_end *end, struct error *error) {
    struct csv *csv = self;
    (void)end;
    RETURN_IF(steps_finish(&csv->steps, error));
    return epochs_finish(&csv->epochs, error);
}

static void close(void *self) {
    struct csv *csv = self;
    steps_close(&csv->steps);
    epochs_close(&csv->epochs);
}

static const char *const files[] = {"steps.csv", "epochs.csv", NULL};

const struct output output_csv = {
    .plugin = {.name = "csv",
               .help = "steps.csv, a row per worker and step, and epochs.csv, a row per epoch"},
    .self_bytes = sizeof(struct csv),
    .files = files,
    .every = every,
    .open = open,
    .steps = steps,
    .epoch = epoch,
    .end = end,
    .close = close,
};
