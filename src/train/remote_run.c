/* Each device of the worker has a thread and a connection of its own; the main thread prints. See
 * remote_run.h. */
#include "remote_run.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../bridge/remote.h"
#include "../output/checkpoint.h"
#include "../output/log.h"
#include "../output/progress.h"
#include "clip.h"
#include "explain.h"
#include "replica.h"

enum { LOOK_MS = 50 };

/* Of the time after which a host would miss this worker. */
#define BEAT_SHARE 0.2

struct remote_run {
    struct run_settings settings;
    struct choices choices;
    const struct cluster *cluster; /* borrowed */
    struct dataset dataset;
    struct device *devices; /* [count] */
    const char **names;     /* [count] of the devices */
    int count;
    struct network network;
    struct replicas replicas;
    struct world *world;
    struct log log;
    struct progress progress;
    struct lock say;    /* around progress */
    struct event ended; /* a post a device that has ended */
    atomic_int failed;  /* the device that failed first, whose error is complete; -1: none */
    struct remote_device {
        struct remote_run *run;
        int index;
        struct world_thread *thread;
        struct remote remote;
        struct finish finish;
        double began_s; /* when all had come */
        struct error error;
        float *weights, *gradient; /* [layout floats] */
        int *numbers;              /* [batch] examples */
        uint64_t *keys;            /* [batch] what they are augmented by */
    } * remotes;                   /* [count] */
};

void terms_fill(struct terms *terms, const struct run_settings *settings, const struct network *network,
                const struct dataset *dataset) {
    *terms = (struct terms){.batch = settings->batch,
                            .examples = dataset->train.count,
                            .layout = layout_hash(&network->graph.layout),
                            .floats = network->graph.layout.floats};
    snprintf(terms->program, sizeof terms->program, "%s", TRAINER_VERSION);
    snprintf(terms->model, sizeof terms->model, "%s", settings->model);
    snprintf(terms->dataset, sizeof terms->dataset, "%s", settings->dataset);
}

/* --- a device's thread --- */

static void say(void *argument, const char *words) {
    struct remote_device *device = argument;
    if (device->index > 0) return; /* all devices of a process hear the same */
    lock_take(&device->run->say);
    progress_say(&device->run->progress, "%s", words);
    lock_release(&device->run->say);
}

static int open_remote(struct remote_device *device) {
    struct remote_run *run = device->run;
    struct hello hello = {.task = run->cluster->task, .device = device->index, .devices = run->count};
    const size_t floats = run->network.graph.layout.floats;
    void *block = NULL;
    const struct compute compute = replicas_compute(&run->replicas);
    RETURN_IF(compute.open(compute.self, device->index, &device->error));
    RETURN_IF(memory_zeroed(&block, floats, sizeof(float), "weights", &device->error));
    device->weights = block;
    RETURN_IF(memory_zeroed(&block, floats, sizeof(float), "a gradient", &device->error));
    device->gradient = block;
    RETURN_IF(
        memory_zeroed(&block, (size_t)run->settings.batch, sizeof(int), "a batch's numbers", &device->error));
    device->numbers = block;
    RETURN_IF(memory_zeroed(&block, (size_t)run->settings.batch, sizeof(uint64_t), "a batch's keys",
                            &device->error));
    device->keys = block;
    terms_fill(&hello.terms, &run->settings, &run->network, &run->dataset);
    snprintf(hello.device_name, sizeof hello.device_name, "%s", run->names[device->index]);
    const struct remote_settings remote = {.world = run->world,
                                           .hosts = &run->cluster->ps,
                                           .server = cluster_server(run->cluster),
                                           .hello = &hello,
                                           .start_s = run->settings.start_timeout_s,
                                           .patience_s = run->settings.patience_s,
                                           .beat_s = BEAT_SHARE * run->settings.timeout_s,
                                           .say = say,
                                           .argument = device};
    return remote_open(&device->remote, &remote, &device->error);
}

static void log_step(struct remote_device *device, const struct request *request, float loss) {
    struct remote_run *run = device->run;
    const struct log_row row = {.time_s = world_now(run->world) - device->began_s,
                                .worker = device->index,
                                .epoch = request->epoch,
                                .step = request->step,
                                .batch = request->batch,
                                .batches = request->batches,
                                .loss = loss,
                                .learning_rate = (float)request->rate,
                                .examples = run->settings.batch,
                                .version = request->version};
    if (!log_wants(&run->log, row.step)) return;
    while (!log_put(&run->log, &row) && !world_stopped(run->world)) world_sleep(run->world, 1e-3);
}

/* Of the numbered batch, which is built while the hosts wait for each other. */
static int compute_batch(struct remote_device *device, const struct stream *stream, long number, bool *over) {
    struct remote_run *run = device->run;
    const struct welcome *welcome = &device->remote.hosts[0].welcome;
    const struct compute compute = replicas_compute(&run->replicas);
    struct error *error = &device->error;
    struct request request;
    struct outcome outcome = {0};
    const struct picks picks = {.count = stream->batch, .index = device->numbers, .key = device->keys};
    stream_batch(stream, welcome->worker, number, device->numbers);
    stream_keys(stream, welcome->worker, number, device->keys);
    RETURN_IF(compute.load(compute.self, device->index, 0, number, &picks, error));
    RETURN_IF(remote_weights(&device->remote, &request, device->weights, over, &device->finish, error));
    if (*over) return OK;
    RETURN_IF(
        compute.run(compute.self, device->index, 0, device->weights, device->gradient, &outcome.loss, error));
    RETURN_IF(compute.meet(compute.self, device->index, false, &outcome, error));
    if (welcome->clip > 0.0)
        RETURN_IF(
            gradient_clip(&run->network.graph.layout, NULL, device->gradient, (float)welcome->clip, error));
    RETURN_IF(remote_answer(&device->remote, outcome.loss, device->gradient, error));
    log_step(device, &request, outcome.loss);
    return OK;
}

static int compute_batches(struct remote_device *device) {
    struct remote_run *run = device->run;
    const struct welcome *welcome = &device->remote.hosts[0].welcome;
    const struct stream stream = {.seed = welcome->seed,
                                  .examples = run->dataset.train.count,
                                  .batch = run->settings.batch,
                                  .workers = welcome->workers,
                                  .sharding = (enum data_sharding)welcome->sharding};
    bool over = false;
    device->began_s = world_now(run->world);
    while (!over) {
        enum next next = NEXT_PAUSE;
        long number = 0;
        if (world_stopped(run->world)) return error_set(&device->error, ERROR_PEER, "this process ends");
        RETURN_IF(remote_next(&device->remote, &next, &number, &over, &device->finish, &device->error));
        if (!over && next == NEXT_BATCH) RETURN_IF(compute_batch(device, &stream, number, &over));
    }
    return OK;
}

/* The chief of a mirrored cluster leads it, too, and ends it in order. */
static bool is_interrupted(const struct remote_run *run) {
    return world_interrupted() && !(run->settings.mirrored && run->cluster->task == 0);
}

static void device_body(void *argument) {
    struct remote_device *device = argument;
    int code = open_remote(device);
    if (code == OK) code = compute_batches(device);
    if (code != OK && is_interrupted(device->run)) {
        device->error = (struct error){0};
        code = error_set(&device->error, ERROR_INTERRUPTED, "interrupted");
    }
    if (code != OK) remote_fail(&device->remote, &device->error);
    int none = -1;
    if (code != OK) atomic_compare_exchange_strong(&device->run->failed, &none, device->index);
    event_post(&device->run->ended);
}

/* --- the process --- */

/* A worker that is told of the checkpoint itself has its settings from there, as the leader has. */
static int resolve(struct run_settings *settings, struct error *error) {
    struct safetensors checkpoint = {0};
    if (settings->resume[0]) RETURN_IF(checkpoint_read(settings->resume, &checkpoint, error));
    const int code = settings_resolve(settings, settings->resume[0] ? &checkpoint : NULL, error);
    safetensors_free(&checkpoint);
    return code;
}

static int open_parts(struct remote_run *run, struct error *error) {
    struct run_settings *settings = &run->settings;
    const struct strategy *strategy;
    void *block = NULL;
    bool shared = false;
    RETURN_IF(resolve(settings, error));
    const struct device_settings device = {.reference_only = settings->kernels == 1,
                                           .threads = settings->threads,
                                           .precision = (enum precision)settings->precision};
    RETURN_IF(settings_choose(settings, &run->choices, error));
    RETURN_IF(devices_open(settings->devices, &device, &run->devices, &run->count, &shared, error));
    RETURN_IF(memory_zeroed(&block, (size_t)run->count, sizeof(char *), "device names", error));
    run->names = block;
    for (int d = 0; d < run->count; d++) run->names[d] = run->devices[d].name;
    RETURN_IF(dataset_open(&run->dataset, &run->choices.dataset,
                           settings->data_dir[0] ? settings->data_dir : NULL, error));
    strategy = (const struct strategy *)(const void *)run->choices.strategy.plugin;
    const struct network_settings network = {
        .model = &run->choices.model,
        .shape = run->dataset.shape,
        .classes = run->dataset.classes,
        .batch = settings->batch,
        .training = true,
        .seed = (uint64_t)settings->seed,
        .decay = settings->decay,
        .shards = settings_shards(settings, strategy, run->choices.strategy.settings),
        .shard_by = (enum shard_by)settings->shard_by};
    RETURN_IF(network_open(&run->network, &network, error));
    RETURN_IF(world_open_threads(&run->world, error));
    lock_open(&run->say, run->world);
    event_open(&run->ended, run->world);
    RETURN_IF(log_open(&run->log, run->count, run->names, NULL, 0,
                       settings->quiet ? 0 : settings->print_every, stdout, error));
    RETURN_IF(replicas_open(&run->replicas, &run->network, run->devices, run->count, &run->dataset.train,
                            settings->batch, 1, error));
    if (settings->explain)
        RETURN_IF(explain_network(&run->network, &run->devices[0], &run->dataset.train, settings->batch,
                                  run->world, stdout, error));
    RETURN_IF(memory_zeroed(&block, (size_t)run->count, sizeof(struct remote_device), "devices", error));
    run->remotes = block;
    return OK;
}

static int start_devices(struct remote_run *run, struct error *error) {
    for (int d = 0; d < run->count; d++) {
        struct remote_device *device = &run->remotes[d];
        *device = (struct remote_device){.run = run, .index = d};
        RETURN_IF(world_spawn(run->world, run->names[d],
                              run->devices[d].pinned ? &run->devices[d].cores : NULL, device_body, device,
                              &device->thread, error));
    }
    return OK;
}

static bool must_give_up(const struct remote_run *run) {
    return run->settings.give_up && atomic_load(run->settings.give_up);
}

/* The first device that failed says why. An interrupt stops the world, which wakes all. */
static int wait_for_devices(struct remote_run *run, struct finish *finish, struct error *error) {
    while (event_wait(&run->ended, (uint64_t)run->count, world_now(run->world) + LOOK_MS / 1e3) ==
           WAIT_TIMEOUT) {
        RETURN_IF(log_drain(&run->log, error));
        if (is_interrupted(run) || atomic_load(&run->failed) >= 0 || must_give_up(run))
            world_stop(run->world);
    }
    for (int d = 0; d < run->count; d++) {
        world_join(run->remotes[d].thread);
        run->remotes[d].thread = NULL;
    }
    RETURN_IF(log_drain(&run->log, error));
    if (is_interrupted(run)) return error_set(error, ERROR_INTERRUPTED, "interrupted");
    const int failed = atomic_load(&run->failed);
    if (failed >= 0)
        return error_set(error, run->remotes[failed].error.code, "%s", run->remotes[failed].error.words);
    *finish = run->remotes[0].finish;
    if (finish->code == OK) return OK;
    return error_set(error, ERROR_PEER, "the %s %s ended: %s", cluster_server(run->cluster),
                     run->cluster->ps.list[0].text, finish->words);
}

static void close_parts(struct remote_run *run) {
    if (run->world) world_stop(run->world);
    for (int d = 0; run->remotes && d < run->count; d++) {
        struct remote_device *device = &run->remotes[d];
        world_join(device->thread);
        remote_close(&device->remote);
        memory_free(device->weights);
        memory_free(device->gradient);
        memory_free(device->numbers);
        memory_free(device->keys);
    }
    memory_free(run->remotes);
    replicas_close(&run->replicas);
    log_close(&run->log);
    world_close(run->world);
    network_close(&run->network);
    dataset_close(&run->dataset);
    memory_free((void *)run->names);
    devices_close(run->devices, run->count);
}

int remote_train(const struct run_settings *settings, const struct cluster *cluster, struct finish *finish,
                 struct error *error) {
    void *block = NULL;
    world_catch_interrupts();
    RETURN_IF(memory_zeroed(&block, 1, sizeof(struct remote_run), "the worker", error));
    struct remote_run *run = block;
    run->settings = *settings;
    run->cluster = cluster;
    run->failed = -1;
    progress_open(&run->progress, stderr, settings->quiet);
    int code = open_parts(run, error);
    if (code == OK) {
        progress_say(&run->progress, "worker %d of %d, with %d device%s, %s %s%s", cluster->task,
                     cluster->workers.count, run->count, run->count == 1 ? "" : "s",
                     cluster->mirrored ? "mirrored; the leader is" : "at the parameter server",
                     cluster->ps.list[0].text,
                     cluster->ps.count > 1 && !cluster->mirrored ? " and others" : "");
        code = start_devices(run, error);
    }
    if (code == OK) code = wait_for_devices(run, finish, error);
    close_parts(run);
    memory_free(run);
    return code;
}
