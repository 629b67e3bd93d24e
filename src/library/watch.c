/* How a run tells a program: an output like those of src/outputs, which hands on steps and epochs, and keeps
 * what was learnt. */
#include "training.h"

struct watching {
    struct trainer_training *training;
    const struct output_scene *scene;
};

static int every(const struct output_scene *scene) {
    const struct trainer_training *training = scene->embedder;
    return training->watcher.step ? 1 : 0;
}

static int open(void *self, const struct output_scene *scene, struct error *error) {
    struct watching *watching = self;
    (void)error;
    *watching = (struct watching){scene->embedder, scene};
    return OK;
}

static void go_on(struct trainer_training *training, bool wanted) {
    if (!wanted) atomic_store(&training->stop, true);
}

static int steps(void *self, const struct log_row *rows, int count, struct error *error) {
    struct trainer_training *training = ((struct watching *)self)->training;
    const struct trainer_watcher *watcher = &training->watcher;
    (void)error;
    for (int i = 0; i < count && watcher->step; i++) {
        const struct log_row *row = &rows[i];
        const struct trainer_step step = {.worker = row->worker,
                                          .step = row->step,
                                          .epoch = row->epoch,
                                          .time_s = row->time_s,
                                          .loss = row->loss,
                                          .rate = row->learning_rate,
                                          .examples = row->examples,
                                          .input_ms = row->input_ms,
                                          .pull_ms = row->pull_ms,
                                          .compute_ms = row->compute_ms,
                                          .push_ms = row->push_ms,
                                          .wait_ms = row->wait_ms,
                                          .staleness = row->staleness};
        go_on(training, watcher->step(watcher->argument, &step));
    }
    return OK;
}

static int epoch(void *self, const struct output_epoch *over, struct error *error) {
    struct trainer_training *training = ((struct watching *)self)->training;
    const struct trainer_watcher *watcher = &training->watcher;
    const struct trainer_epoch told = {.epoch = over->row->epoch,
                                       .time_s = over->row->time_s,
                                       .train_loss = over->row->train_loss,
                                       .test_loss = over->row->test_loss,
                                       .test_score = over->row->test_score,
                                       .examples_per_s = over->row->examples_per_s};
    (void)error;
    if (watcher->epoch) go_on(training, watcher->epoch(watcher->argument, &told));
    return OK;
}

static int end(void *self, const struct output_end *over, struct error *error) {
    const struct watching *watching = self;
    return learnt_keep(&watching->training->learnt, watching->scene, over->weights, error);
}

const struct output library_output = {.plugin = {.name = "library", .help = "tells the program"},
                                      .self_bytes = sizeof(struct watching),
                                      .every = every,
                                      .open = open,
                                      .steps = steps,
                                      .epoch = epoch,
                                      .end = end};
