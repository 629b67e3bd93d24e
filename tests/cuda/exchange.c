/* What a worker and a store on a GPU exchange, when nobody waits more than the strategy must: weights that
 * are never behind the version that a worker took them for, never torn where that is promised, all applied
 * when a segment ends; losses that belong to their steps; and times that belong to what they were spent on.
 * Every strategy, with the real store and the real training loop; the computation is copies on the worker's
 * queue. The stand-in does only what somebody waits for, so whatever is looked at too early is seen. */
#include "../gpu_control.h"
#include "../harness.h"

enum { WORKERS = 2, BATCHES = 48, LOSSES = 4096 };

static struct device *devices; /* [WORKERS] */
static const struct backend *gpu;
static float *ones, *losses;    /* [layout floats], [LOSSES] on the GPU; a loss for each batch */
static float *seen[WORKERS];    /* [layout floats] pinned: what a step computed on */
static float *loss_of[WORKERS]; /* pinned */
static void *began[WORKERS], *ended[WORKERS];
static _Atomic long behind, torn, checked, disordered;

static int compute_on_gpu(void *self, int worker, int buffer, float *weights, float *gradient, float *loss,
                          struct error *error) {
    struct rig *rig = self;
    const struct device *device = &devices[worker];
    const long number = rig->number[worker][buffer];
    const size_t bytes = rig->layout.floats * sizeof(float);
    (void)loss;
    rig->loss_of[number] = 1.0f + (float)number;
    rig_note_changes(rig, worker);
    RETURN_IF(gpu->marks->set(device, began[worker], error));
    if (rig->training.traits->own_weights)
        RETURN_IF(gpu->queue_copy(device, seen[worker], weights, bytes, error));
    else
        RETURN_IF(store_copy_weights(&rig->store, device, seen[worker], error));
    RETURN_IF(gpu->queue_copy(device, gradient, ones, bytes, error));
    RETURN_IF(gpu->queue_copy(device, loss_of[worker], losses + number, sizeof *losses, error));
    return gpu->marks->set(device, ended[worker], error);
}

/* Whether every update takes 1, and none is lost: the stand-in does one piece of work at a time. Copies that
 * are drawn towards others count only together. */
static bool counts(const struct traits *traits) {
    if ((traits->conserved && !traits->rounds) || traits->corrects || traits->outer || traits->joint)
        return false;
    return STANDIN || traits->exactly_once || traits->merged;
}

/* Every update takes 1 from every weight: a weight says how many there have been. */
static void look_at_weights(const struct rig *rig, int worker) {
    const struct traits *traits = rig->training.traits;
    for (int s = 0; s < rig->settings.shards; s++) {
        const struct shard *shard = &rig->store.shards[s];
        const float *first = seen[worker] + shard->begin;
        const long version = rig->training.workers[worker].side.version[s], updates = -(long)*first;
        checked++;
        if (counts(traits)) behind += traits->whole_reads ? updates != version : updates < version;
        for (size_t i = shard->begin; i < shard->end && traits->whole_reads; i++)
            torn += memcmp(&seen[worker][i], first, sizeof *first) != 0;
    }
}

static int synchronize_gpu(void *self, int worker, bool waited, struct outcome *outcome,
                           struct error *error) {
    struct rig *rig = self;
    const struct device *device = &devices[worker];
    if (!waited) RETURN_IF(gpu->finish(device, error));
    *outcome = (struct outcome){.loss = *loss_of[worker], .timed = true};
    RETURN_IF(gpu->marks->since(device, began[worker], &outcome->begun_s, error));
    RETURN_IF(gpu->marks->since(device, ended[worker], &outcome->computed_s, error));
    disordered += outcome->computed_s < 0.0 || outcome->begun_s < outcome->computed_s;
    look_at_weights(rig, worker);
    return OK;
}

static struct rig_settings usual(const char *strategy, int workers, int shards, int block) {
    return (struct rig_settings){.strategy = strategy,
                                 .optimizer = "sgd:rate=1",
                                 .workers = workers,
                                 .shards = shards,
                                 .slots = 2,
                                 .batches = BATCHES,
                                 .block = block,
                                 .devices = devices,
                                 .compute = {.run = compute_on_gpu, .synchronize = synchronize_gpu}};
}

static void open_memory(size_t floats) {
    static float host[LOSSES];
    struct error error = {0};
    float *one = malloc(floats * sizeof *one);
    CHECK(one != NULL, "no memory");
    for (size_t i = 0; i < floats; i++) one[i] = 1.0f;
    for (int i = 0; i < LOSSES; i++) host[i] = 1.0f + (float)i;
    int code = gpu->allocate(devices, (void **)&ones, floats * sizeof *ones, "ones", &error);
    if (code == OK) code = gpu->copy(devices, ones, one, floats * sizeof *ones, &error);
    if (code == OK) code = gpu->allocate(devices, (void **)&losses, sizeof host, "losses", &error);
    if (code == OK) code = gpu->copy(devices, losses, host, sizeof host, &error);
    for (int w = 0; w < WORKERS && code == OK; w++) {
        code = gpu->allocate_host(devices, (void **)&seen[w], floats * sizeof *ones, "weights", &error);
        if (code == OK)
            code = gpu->allocate_host(devices, (void **)&loss_of[w], sizeof(float), "a loss", &error);
        if (code == OK) code = gpu->marks->open(&devices[w], true, &began[w], &error);
        if (code == OK) code = gpu->marks->open(&devices[w], true, &ended[w], &error);
    }
    CHECK(code == OK, "%s", error.words);
    free(one);
}

static void close_memory(void) {
    for (int w = 0; w < WORKERS; w++) {
        gpu->marks->close(&devices[w], ended[w]);
        gpu->marks->close(&devices[w], began[w]);
        gpu->release_host(devices, loss_of[w]);
        gpu->release_host(devices, seen[w]);
    }
    gpu->release(devices, losses);
    gpu->release(devices, ones);
}

/* --- weights and losses --- */

/* After the last segment, without waiting for anything but the copy itself. */
static void look_at_the_end(struct rig *rig, const char *text) {
    struct error error = {0};
    CHECK(store_fetch(&rig->store, &error) == OK, "%s: %s", text, error.words);
    for (int s = 0; s < rig->settings.shards; s++) {
        const struct shard *shard = &rig->store.shards[s];
        const long version = atomic_load(&shard->version);
        const float *weights = rig->store.host.vector[0].at;
        CHECK(version > 0 && (long)-weights[shard->begin] == version &&
                  (long)-weights[shard->end - 1] == version,
              "%s: shard %d is at version %ld, its weights at %g and %g", text, s, version,
              (double)-weights[shard->begin], (double)-weights[shard->end - 1]);
    }
}

static void check_weights(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy, (void)argument;
    for (int workers = 1; workers <= WORKERS; workers++)
        for (int shards = 1; shards <= 3; shards += 2) {
            static struct rig rig;
            const struct rig_settings settings = usual(text, workers, shards, 1000);
            atomic_store(&behind, 0);
            atomic_store(&torn, 0);
            atomic_store(&checked, 0);
            CHECK(rig_run(&rig, &settings, true) == OK, "%s: %s", text, rig.error.words);
            CHECK(atomic_load(&checked) > 0 && atomic_load(&behind) == 0,
                  "%s, %d workers, %d shards: %ld of %ld weights of another version", text, workers, shards,
                  atomic_load(&behind), atomic_load(&checked));
            CHECK(atomic_load(&disordered) == 0, "%s: a gradient was there before its step began", text);
            CHECK(atomic_load(&torn) == 0, "%s, %d workers, %d shards: %ld weights torn", text, workers,
                  shards, atomic_load(&torn));
            CHECK(atomic_load(&rig.wrong_rows) == 0, "%s, %d workers, %d shards: %ld rows with a wrong loss",
                  text, workers, shards, atomic_load(&rig.wrong_rows));
            if (counts(rig.training.traits)) look_at_the_end(&rig, text);
            rig_close(&rig);
        }
}

/* A loss that is not a number is said to be that of its step, and ends the run. */
static void check_divergence(const char *text, const struct strategy *strategy, void *argument) {
    const float nan = NAN;
    const float right = 18.0f;
    struct error error = {0};
    static struct rig rig;
    const struct rig_settings settings = usual(text, 1, 1, 1000);
    (void)strategy, (void)argument;
    CHECK(gpu->copy(devices, losses + 17, &nan, sizeof nan, &error) == OK, "%s", error.words);
    CHECK(rig_run(&rig, &settings, false) == ERROR_DIVERGED, "%s: code %d", text, rig.error.code);
    CHECK(strstr(rig.error.words, "the loss is nan at step 18, learning rate 1"), "%s: %s", text,
          rig.error.words);
    rig_close(&rig);
    CHECK(gpu->copy(devices, losses + 17, &right, sizeof right, &error) == OK, "%s", error.words);
}

/* --- times, in virtual time: nothing takes any but the wait for the device --- */

#define WAITED_S 4e-3   /* of which the device is ... */
#define BEGUN_S 3e-3    /* ... so long at the computation and what comes after ... */
#define COMPUTED_S 1e-3 /* ... and so long at what comes after it */

static int synchronize_slowly(void *self, int worker, bool waited, struct outcome *outcome,
                              struct error *error) {
    struct rig *rig = self;
    RETURN_IF(synchronize_gpu(self, worker, waited, outcome, error));
    world_work(rig->world, WAITED_S);
    outcome->begun_s = BEGUN_S;
    outcome->computed_s = COMPUTED_S;
    return OK;
}

static void check_share(const char *text, const char *what, double seconds, long steps, double expected) {
    CHECK(fabs(seconds - (double)steps * expected) < 1e-9, "%s: %s took %g s in %ld steps, expected %g each",
          text, what, seconds, steps, expected);
}

static void check_times(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    struct rig_settings settings = usual(text, 1, 1, 1000);
    (void)strategy, (void)argument;
    settings.simulated = true;
    settings.compute.synchronize = synchronize_slowly;
    CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);
    const struct traits *traits = rig.training.traits;
    const struct worker_totals *totals = training_totals(&rig.training, 0);
    /* steps before which the device had to copy, or to step a share */
    const long queued = traits->steps_own ? 0 : traits->own_weights ? rig.changed[0][0] : totals->steps - 1;
    const double before = WAITED_S - BEGUN_S, after = traits->steps_own ? COMPUTED_S : 0.0;
    CHECK(totals->steps == BATCHES, "%s: %ld steps", text, totals->steps);
    check_share(text, "what came before computing", totals->pull_s, queued, before);
    check_share(text, "what came after", totals->push_s, totals->steps, after);
    check_share(text, "all of it", totals->pull_s + totals->compute_s + totals->push_s, totals->steps,
                WAITED_S);
    rig_close(&rig);
}

static void check_all(const char *names) {
    const struct device_settings settings = {0};
    struct error error = {0};
    bool shared = false;
    int count = 0;
    CHECK(devices_open(names, &settings, &devices, &count, &shared, &error) == OK, "%s", error.words);
    if (error.code != OK) return;
    open_memory(4096);
    each_strategy(check_weights, NULL);
    each_strategy(check_divergence, NULL);
    each_strategy(check_times, NULL);
    close_memory();
    devices_close(devices, count);
}

int main(void) {
    gpu_or_skip();
    gpu = gpu_backend_of_build();
    check_all("gpu:0,gpu:0");
    if (gpu->count() > 1) check_all("gpu:0,gpu:1");
    return check_end();
}
