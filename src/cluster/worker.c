/* Each device of the worker has its own thread and connection; the main thread prints. See worker.h. */
#include "worker.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../bridge/remote.h"
#include "../bridge/upgrade.h"
#include "../engine/clip.h"
#include "../engine/explain.h"
#include "../engine/faults.h"
#include "../engine/replica.h"
#include "../engine/shares.h"
#include "../record/lines.h"
#include "../record/output.h"
#include "../record/progress.h"
#include "../record/sentence.h"
#include "../run/setup.h"
#include "far.h"
#include "ranks.h"

enum { LOOK_MS = 50 };

/* Of the time after which a host would miss this worker. */
#define BEAT_SHARE 0.2
/* What waits for a host, which may be waiting itself, or evaluates, has so many times the timeout. */
#define TIMEOUT_TIMES 3.0

struct remote_run {
    struct cluster_session *session; /* borrowed, as the next three */
    const struct typed *typed;       /* the session's */
    const struct cluster *cluster;
    const _Atomic bool *give_up;
    struct setup setup;
    struct network_settings network_settings; /* of its network */
    struct pace *paces;                       /* [setup.device_count] for --share=auto; or NULL */
    struct replicas replicas;
    struct groups groups;           /* of its devices, where they are groups */
    struct fingerprint fingerprint; /* of what was built */
    struct world *world;            /* borrowed */
    const char **names;             /* [setup.device_count] of the devices' own threads */
    struct log log;
    struct output_scene scene;
    struct telling telling; /* of the lines alone */
    struct progress progress;
    struct lines lines; /* of the steps, on standard output */
    struct lock say;    /* around progress */
    struct lock build;  /* around what all devices share, which the first that is told builds */
    bool built;         /* or it failed: then for all, with these words */
    struct error unbuilt;
    struct event ended; /* one post per device that has ended */
    atomic_bool begun;  /* all have come, and the training begins */
    atomic_int failed;  /* the device that failed first, whose error is complete; -1: none */
    struct remote_device {
        struct remote_run *run;
        int index;
        struct world_thread *thread;
        char name[GROUP_NAME_BYTES];
        struct hello hello;
        struct remote remote;
        struct finish finish;
        double began_s; /* when all had come */
        struct error error;
        struct far far;
        struct ranked ranked;
        float *own;                /* [layout floats] NULL where far has them: */
        float *weights, *gradient; /* [layout floats] */
        struct fingerprint built;  /* of what was built, and this device's pace */
        struct stream stream;      /* once all have come */
        int size;                  /* examples of its batches; 0: it is not known yet, so the next ones: */
        int *sizes;                /* [workers] all `size`, where it has a share; else NULL */
        int *numbers;              /* [size + 1] examples, and the next one */
        uint64_t *keys;            /* [size + 1] what they are augmented by */
        int *soon;                 /* [stream_soon_room] what is read meanwhile */
    } * remotes;                   /* [setup.device_count] */
};

/* --- what is built with the settings that the ps has sent --- */

struct adoption {
    struct config *config;
    struct error *error;
};

static int adopt_row(void *argument, const struct option *row, const char *value) {
    struct adoption *adoption = argument;
    return option_set(config_options, adoption->config, "--", row->name, value, adoption->error);
}

/* How fast its devices are, all at once: the leader shares out by that. */
static int measure(struct remote_run *run, struct error *error) {
    struct setup *setup = &run->setup;
    const struct paces_work work =
        setup_paces_work(setup, run->world, false, run->replicas.groups, &run->network_settings);
    RETURN_IF(memory_array(&run->paces, setup->device_count, "paces", error));
    progress_say(&run->progress, "--share=auto: measuring this worker");
    return paces_measure(&work, run->paces, &setup->balanced.abandoned, error);
}

/* Under the lock. */
static int build(struct remote_run *run, const struct typed *agreed, struct error *error) {
    struct setup *setup = &run->setup;
    struct adoption adoption = {&setup->config, error};
    RETURN_IF(config_each(&agreed->value, OPTION_AGREED, adopt_row, &adoption));
    RETURN_IF(config_check_microbatches(&setup->config, error));
    RETURN_IF(setup_choose(setup, run->cluster->ps.count, run->cluster->mirrored, error));
    RETURN_IF(setup_open_network(setup, error));
    if (setup_measures(setup)) progress_say(&run->progress, "--place=auto: measuring the devices of a group");
    RETURN_IF(setup_place(setup, run->world, false, error));
    const struct layout *layout = &setup->network.graph.layout;
    run->fingerprint = (struct fingerprint){.examples = (uint64_t)setup->dataset.train.count,
                                            .floats = layout->floats,
                                            .layout = layout_hash(layout)};
    run->network_settings = setup_network_settings(setup);
    RETURN_IF(replicas_open(&run->replicas, &setup->network, setup->devices, setup->device_count,
                            &setup->dataset.train, setup->config.microbatches, 1, error));
    run->replicas.groups = setup_groups(setup, run->world, &run->groups);
    if (shares_are_measured(setup->config.share)) RETURN_IF(measure(run, error));
    if (!setup->config.explain) return OK;
    if (run->replicas.groups)
        return explain_group(run->replicas.groups, &setup->network, run->world, stdout, error);
    return explain_network(&setup->network, &setup->devices[0], &setup->dataset.train,
                           setup->config.microbatches, run->world, stdout, error);
}

static int build_once(struct remote_device *device) {
    struct remote_run *run = device->run;
    lock_take(&run->build);
    if (!run->built) build(run, &device->remote.agreed, &run->unbuilt);
    run->built = true;
    lock_release(&run->build);
    return run->unbuilt.code == OK ? OK
                                   : error_set(&device->error, run->unbuilt.code, "%s", run->unbuilt.words);
}

/* --- a device's thread --- */

static void say(void *argument, const char *words) {
    struct remote_device *device = argument;
    if (device->index > 0) return; /* all devices of a process hear the same */
    lock_take(&device->run->say);
    progress_say(&device->run->progress, "%s", words);
    lock_release(&device->run->say);
}

/* What was typed here has to be what the leader has. */
static int connect_remote(struct remote_device *device) {
    struct remote_run *run = device->run;
    const struct config *config = &run->setup.config;
    struct hello *hello = &device->hello;
    *hello = (struct hello){.agreed = *run->typed,
                            .task = run->cluster->task,
                            .device = device->index,
                            .devices = run->setup.device_count,
                            .process = run->cluster->process,
                            .seen = run->session->seen_before};
    snprintf(hello->program, sizeof hello->program, "%s", TRAINER_VERSION);
    memcpy(hello->device_name, device->name, sizeof hello->device_name);
    RETURN_IF(ranked_offer(&run->setup.devices[device->index], config, run->cluster->mirrored,
                           hello->task == 0 && device->index == 0, &hello->offer, &device->error));
    const struct remote_settings remote = {.world = run->world,
                                           .hosts = &run->cluster->ps,
                                           .server = cluster_server(run->cluster),
                                           .hello = hello,
                                           .start_s = config->start_timeout_s,
                                           .timeout_s = TIMEOUT_TIMES * config->timeout_s,
                                           .beat_s = BEAT_SHARE * config->timeout_s,
                                           .may_leave = !run->cluster->mirrored,
                                           .say = say,
                                           .argument = device};
    return remote_open(&device->remote, &remote, &device->error);
}

/* All have come, and the hosts have said who adds the gradients. */
static int open_ranked(struct remote_device *device) {
    struct remote_run *run = device->run;
    const struct welcome *welcome = &device->remote.hosts[0].welcome;
    const bool asked = run->cluster->mirrored && (enum links)run->setup.config.links == LINKS_COLLECTIVE;
    char words[300];
    snprintf(words, sizeof words,
             welcome->root >= 0 ? "the mean of a round: %s"
                                : "the mean of a round: copies, in roster order (%s)",
             welcome->means);
    if (welcome->means[0] && (!asked || welcome->root >= 0)) say(device, words);
    return ranked_open(&device->ranked, &run->setup.devices[device->index], &device->remote,
                       replicas_gradient(&run->replicas, device->index), asked, &device->error);
}

/* What it computes with, for batches of so many examples. */
static int open_batches(struct remote_device *device, int size) {
    struct remote_run *run = device->run;
    struct error *error = &device->error;
    const struct compute compute = replicas_compute(&run->replicas);
    RETURN_IF(compute.open(compute.self, device->index, error));
    const struct group *group = run->replicas.replicas[device->index].group;
    for (int i = 0; group && group_line(group, i); i++) say(device, group_line(group, i));
    RETURN_IF(memory_array(&device->numbers, size + 1, "a batch's numbers", error));
    RETURN_IF(memory_array(&device->keys, size + 1, "a batch's keys", error));
    RETURN_IF(memory_array(&device->soon, stream_soon_room(size), "numbers of later batches", error));
    device->size = size;
    return OK;
}

/* Where workers have shares, the leader says with the first batch how large this one's is. */
static int open_share(struct remote_device *device) {
    struct remote_run *run = device->run;
    const struct config *config = &run->setup.config;
    struct stream *stream = &device->stream;
    struct error *error = &device->error;
    const int told = device->remote.examples, size = told > 0 ? told : stream->batch;
    if (device->size == size && (told > 0) == (device->sizes != NULL)) return OK;
    if (device->size > 0 || size % config->microbatches != 0 || size / stream->batch > stream->workers)
        return error_set(error, ERROR_PEER, "%s: a batch of %d examples, expected %d",
                         run->cluster->ps.list[0].text, size,
                         device->size > 0 ? device->size : stream->batch);
    if (told > 0) {
        RETURN_IF(memory_array(&device->sizes, stream->workers, "shares", error));
        for (int w = 0; w < stream->workers; w++) device->sizes[w] = told; /* nobody asks for another's */
        stream->sizes = device->sizes;
        replicas_resize(&run->replicas, device->index, &run->network_settings, told);
    }
    return open_batches(device, size);
}

static int open_device(struct remote_device *device) {
    struct remote_run *run = device->run;
    struct error *error = &device->error;
    RETURN_IF(connect_remote(device));
    atomic_store(&run->session->met, true);
    RETURN_IF(build_once(device));
    const size_t floats = run->setup.network.graph.layout.floats;
    const bool even = shares_are_even(run->setup.config.share);
    if (even) RETURN_IF(open_batches(device, run->setup.config.batch));
    device->remote.settings.may_leave = even && !run->cluster->mirrored; /* nobody would take a share over */
    RETURN_IF(far_open(&device->far, &run->setup, run->world, error));
    if (device->far.is_on) device->remote.own = device->far.store.host;
    if (!device->far.is_on) RETURN_IF(memory_array(&device->own, floats, "weights", error));
    device->weights = device->far.is_on ? device->far.store.host.vector[0].at : device->own;
    RETURN_IF(memory_array(&device->gradient, floats, "a gradient", error));
    device->built = run->fingerprint;
    if (run->paces) device->built.constant_s = run->paces[device->index].constant_s;
    if (run->paces) device->built.each_s = run->paces[device->index].each_s;
    RETURN_IF(remote_ready(&device->remote, &device->built, error));
    RETURN_IF(open_ranked(device));
    return remote_compress(&device->remote, &run->setup.choices.compressor, &run->setup.network.graph.layout,
                           error);
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
                                .examples = device->size,
                                .version = request->version};
    if (!log_wants(&run->log, row.step)) return;
    while (!log_put(&run->log, &row) && !world_stopped(run->world)) world_sleep(run->world, 1e-3);
}

/* Of the numbered batch, which is built while the hosts wait for each other. */
static int compute_batch(struct remote_device *device, long number, bool *over) {
    struct remote_run *run = device->run;
    const struct stream *stream = &device->stream;
    const int worker = device->remote.hosts[0].welcome.worker;
    const float clip = (float)run->setup.config.clip;
    const struct compute compute = replicas_compute(&run->replicas);
    struct error *error = &device->error;
    struct request request;
    struct outcome outcome = {0};
    const struct device processor = device_processor();
    const int size = device->size;
    struct indices indices = {.count = size, .index = device->numbers, .key = device->keys};
    RETURN_IF(stream_check(stream, worker, number, run->cluster->ps.list[0].text, error));
    stream_soon(stream, worker, number, &indices.soon, device->soon);
    stream_batch(stream, worker, number, device->numbers);
    stream_keys(stream, worker, number, device->keys);
    stream_next(stream, worker, number, &device->numbers[size], &device->keys[size]);
    RETURN_IF(compute.load(compute.self, device->index, 0, number, &indices, error));
    RETURN_IF(remote_weights(&device->remote, &request, device->weights, over, &device->finish, error));
    if (*over) return OK;
    session_see(run->session, request.version - 1);
    const bool sums = remote_sums(&device->remote);
    const struct device *const home = sums ? device->ranked.device : &processor;
    float *const gradient = sums ? device->ranked.gradient : device->gradient;
    RETURN_IF(compute.run(compute.self, device->index, 0, device->weights, gradient, &outcome.loss, error));
    RETURN_IF(compute.synchronize(compute.self, device->index, false, &outcome, error));
    if (clip > 0.0f) RETURN_IF(gradient_clip(&run->setup.network.graph.layout, home, gradient, clip, error));
    if (sums) RETURN_IF(ranked_sum(&device->ranked, device->gradient, error));
    const bool stepped = remote_steps(&device->remote) &&
                         far_step(&device->far, device->gradient, request.version, request.rate);
    RETURN_IF(remote_answer(&device->remote, outcome.loss, device->gradient, stepped, error));
    log_step(device, &request, outcome.loss);
    return OK;
}

static int compute_batches(struct remote_device *device) {
    struct remote_run *run = device->run;
    const struct config *config = &run->setup.config;
    bool over = false;
    device->stream = (struct stream){.seed = (uint64_t)config->seed,
                                     .examples = run->setup.dataset.train.count,
                                     .batch = config->batch,
                                     .workers = device->remote.hosts[0].welcome.workers,
                                     .sharding = (enum data_sharding)config->data_sharding,
                                     .block = run->setup.dataset.block};
    device->began_s = world_now(run->world);
    atomic_store(&run->begun, true);
    atomic_store(&run->session->begun, true);
    while (!over) {
        enum next next = NEXT_PAUSE;
        long number = 0;
        if (world_stopped(run->world)) return error_set(&device->error, ERROR_PEER, "this process ends");
        RETURN_IF(remote_next(&device->remote, &next, &number, &over, &device->finish, &device->error));
        if (!over && next == NEXT_BATCH) RETURN_IF(open_share(device));
        if (!over && next == NEXT_BATCH) RETURN_IF(compute_batch(device, number, &over));
    }
    device->finish.left = device->remote.left;
    return OK;
}

/* SIGTERM ends a worker after the step in hand (remote.h), unless it has a share of its own size. That of a
 * mirrored cluster has weights that the others need: its other half asks the leader to end the run. */
static bool leaves(const struct remote_run *run) {
    return world_dismissed(run->world) && !run->cluster->mirrored && atomic_load(&run->begun) &&
           shares_are_even(run->setup.config.share);
}

/* The chief of a mirrored cluster leads it, too, and ends it in order. */
static bool is_interrupted(const struct remote_run *run) {
    if (run->cluster->mirrored && (run->cluster->task == 0 || world_terminated())) return false;
    return world_interrupted() && !leaves(run);
}

static void device_body(void *argument) {
    struct remote_device *device = argument;
    int code = open_device(device);
    if (code == OK) code = compute_batches(device);
    if (code != OK && is_interrupted(device->run)) {
        device->error = (struct error){0};
        code = error_set(&device->error, ERROR_INTERRUPTED, "interrupted");
    }
    if (device->remote.over) atomic_store(&device->run->session->over, true);
    if (code != OK) remote_fail(&device->remote, &device->error);
    int none = -1;
    if (code != OK) atomic_compare_exchange_strong(&device->run->failed, &none, device->index);
    event_post(&device->run->ended);
}

/* --- the process --- */

/* There are other processes beside it. Those of a launcher take the GPUs of their machine in turn. */
static void choose_device(struct remote_run *run) {
    char *devices = run->setup.config.devices;
    const size_t bytes = sizeof run->setup.config.devices;
    if (strcmp(devices, "auto") != 0) return;
    if (run->cluster->by && devices_in_turn(run->cluster->turn, devices, bytes)) return;
    snprintf(devices, bytes, "cpu:0");
}

/* Options of this process alone are checked before it connects to any other. */
static int open_run(struct remote_run *run, struct error *error) {
    struct setup *setup = &run->setup;
    struct config *config = &setup->config;
    RETURN_IF(config_begin(config, run->typed, error));
    choose_device(run);
    RETURN_IF(setup_choose(setup, run->cluster->ps.count, run->cluster->mirrored, error));
    setup->processes = cluster_workers_here(run->cluster);
    RETURN_IF(setup_open_devices(setup, error));
    RETURN_IF(link_use(run->cluster, run->world, error));
    lock_open(&run->say, run->world);
    lock_open(&run->build, run->world);
    event_open(&run->ended, run->world);
    RETURN_IF(memory_array(&run->remotes, setup->device_count, "devices", error));
    RETURN_IF(memory_array(&run->names, setup->device_count, "device names", error));
    for (int d = 0; d < setup->device_count; d++) {
        setup_worker_name(setup, d, run->remotes[d].name);
        run->names[d] = run->remotes[d].name;
    }
    run->scene = (struct output_scene){.config = config,
                                       .workers = setup->device_count,
                                       .devices = run->names,
                                       .lines = config->quiet ? NULL : &run->lines};
    RETURN_IF(telling_open(&run->telling, "none", &run->scene, &run->progress, error));
    return log_open(&run->log, setup->device_count, &run->telling, error);
}

/* Faults are put in where the training is. A mirrored process has it beside its devices. */
static void say_faults(struct remote_run *run) {
    const struct config *config = &run->setup.config;
    char faults[FAULTS_TEXT_BYTES];
    faults_text(faults, config->fail, config->stall, config->slow);
    if (!faults[0] || run->cluster->mirrored) return;
    progress_warn(&run->progress, "%s does nothing at a worker: the parameter server puts faults in", faults);
}

/* Where it was not said how many threads a device has, they are fewer than it would have alone. */
static void say_share(struct remote_run *run) {
    const struct setup *setup = &run->setup;
    const struct device *cpu = NULL;
    struct cores all;
    for (int d = setup->device_count - 1; d >= 0; d--)
        if (setup->devices[d].backend == backends[0]) cpu = &setup->devices[d];
    if (!cpu || setup->processes < 2 || setup->config.threads > 0) return;
    world_cores(&all);
    progress_say(
        &run->progress, "%d workers on this machine share its %d core%s: %d thread%s per device here",
        setup->processes, all.count, all.count == 1 ? "" : "s", cpu->threads, cpu->threads == 1 ? "" : "s");
}

static int start_devices(struct remote_run *run, struct error *error) {
    for (int d = 0; d < run->setup.device_count; d++) {
        const struct device *own = &run->setup.devices[d];
        struct remote_device *device = &run->remotes[d];
        device->run = run;
        device->index = d;
        RETURN_IF(world_spawn(run->world, own->name, own->pinned ? &own->cores : NULL, device_body, device,
                              &device->thread, error));
    }
    return OK;
}

/* The first device that failed says why. An interrupt stops the world, which wakes all. */
static int wait_for_devices(struct remote_run *run, struct finish *finish, struct error *error) {
    const int devices = run->setup.device_count;
    while (event_wait(&run->ended, (uint64_t)devices, world_now(run->world) + LOOK_MS / 1e3) ==
           WAIT_TIMEOUT) {
        log_drain(&run->log);
        if (is_interrupted(run) || atomic_load(&run->failed) >= 0 ||
            (run->give_up && atomic_load(run->give_up)))
            world_stop(run->world);
    }
    for (int d = 0; d < devices; d++) {
        world_join(run->remotes[d].thread);
        run->remotes[d].thread = NULL;
    }
    log_drain(&run->log);
    if (is_interrupted(run)) return error_set(error, ERROR_INTERRUPTED, "interrupted");
    const int failed = atomic_load(&run->failed);
    if (failed >= 0)
        return error_set(error, run->remotes[failed].error.code, "%s", run->remotes[failed].error.words);
    *finish = run->remotes[0].finish;
    for (int d = 1; d < devices; d++) finish->left = finish->left || run->remotes[d].finish.left;
    if (leaves(run) && finish->code == ERROR_INTERRUPTED) /* all were asked to */
        *finish = (struct finish){.left = true};
    if (finish->left) progress_say(&run->progress, "left, as it was asked to");
    if (finish->code == OK) return OK;
    if (finish->code != ERROR_PEER) atomic_store(&run->session->over, true);
    return error_set(error, ERROR_PEER, "the %s %s ended: %s", cluster_server(run->cluster),
                     run->cluster->ps.list[0].text, finish->words);
}

/* false: a device of a group hangs, and may still use any of it. */
static bool close_run(struct remote_run *run) {
    world_stop(run->world);
    for (int d = 0; run->remotes && d < run->setup.device_count; d++) {
        world_join(run->remotes[d].thread);
        ranked_close(&run->remotes[d].ranked, run->remotes[d].error.code == OK);
    }
    if (run->setup.balanced.abandoned || !replicas_close(&run->replicas)) return false;
    for (int d = 0; run->remotes && d < run->setup.device_count; d++) {
        struct remote_device *device = &run->remotes[d];
        remote_close(&device->remote);
        far_close(&device->far);
        memory_free(device->own);
        memory_free(device->gradient);
        memory_free(device->sizes);
        memory_free(device->numbers);
        memory_free(device->keys);
        memory_free(device->soon);
    }
    memory_free(run->remotes);
    memory_free(run->paces);
    lines_close(&run->lines);
    telling_close(&run->telling);
    log_close(&run->log);
    memory_free((void *)run->names);
    setup_close(&run->setup);
    return true;
}

/* The stages of this process's groups, where it has had a pipeline. */
static void say_pipeline(struct remote_run *run) {
    char bytes[200];
    struct text words = text_into(bytes, sizeof bytes);
    double idle, idle_equal;
    replicas_idle(&run->replicas, &idle, &idle_equal);
    sentence_pipeline(&words, idle, idle_equal);
    if (bytes[0]) progress_say(&run->progress, "%s", bytes);
}

int worker_session(struct cluster_session *session, const _Atomic bool *give_up, struct finish *finish,
                   bool *abandoned, struct error *error) {
    const struct cluster *cluster = session->cluster;
    struct remote_run *run = NULL;
    *abandoned = false;
    *finish = (struct finish){0};
    world_catch_interrupts();
    RETURN_IF(memory_array(&run, 1, "the worker", error));
    run->session = session;
    run->typed = session->typed;
    run->cluster = cluster;
    run->world = session->world;
    run->give_up = give_up;
    run->failed = -1;
    progress_open(&run->progress, stderr, run->typed->value.quiet);
    lines_open(&run->lines, stdout, NULL); /* there is no bar */
    int code = open_run(run, error);
    if (code == OK) {
        progress_say(&run->progress, "worker %d of %d%s, with %d device%s, %s %s%s", cluster->task,
                     cluster->workers.count, cluster_by(cluster).words, run->setup.device_count,
                     run->setup.device_count == 1 ? "" : "s",
                     cluster->mirrored ? "mirrored; the leader is" : "at the parameter server",
                     cluster->ps.list[0].text,
                     cluster->ps.count > 1 && !cluster->mirrored ? " and others" : "");
        say_share(run);
        say_faults(run);
        code = start_devices(run, error);
    }
    if (code == OK) code = wait_for_devices(run, finish, error);
    if (code == OK) say_pipeline(run);
    *abandoned = !close_run(run);
    if (!*abandoned) memory_free(run);
    return code;
}

struct working {
    const _Atomic bool *give_up;
    struct finish *finish;
};

static int train(void *argument, struct cluster_session *session, bool *abandoned, struct error *error) {
    const struct working *working = argument;
    return worker_session(session, working->give_up, working->finish, abandoned, error);
}

int worker_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                 const _Atomic bool *give_up, struct finish *finish, bool *abandoned, struct error *error) {
    struct working working = {give_up, finish};
    return sessions_train(typed, cluster, world, train, &working, abandoned, error);
}
