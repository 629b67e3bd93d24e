/* One device of a worker. See remote_run.h. */
#include "remote_run.h"

#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../bridge/upgrade.h"
#include "../engine/clip.h"
#include "../engine/explain.h"
#include "../engine/shares.h"

/* Of the time after which a host would miss this worker. */
#define BEAT_SHARE 0.2
/* What waits for a host, which may be waiting itself, or evaluates, has so many times the timeout. */
#define TIMEOUT_TIMES 3.0

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

/* Who holds the weights is known before anybody is asked. */
static int check_workers(void *argument, const struct typed *agreed, struct error *error) {
    const struct remote_run *run = ((const struct remote_device *)argument)->run;
    const char *typed = run->typed->value.workers, *leaders = agreed->value.workers;
    if (!run->cluster->mirrored || strcmp(typed, leaders) == 0) return OK;
    return error_set(error, ERROR_USAGE,
                     "--workers=%.40s: the leader has %.40s, expected the same in every mirrored process",
                     typed, leaders);
}

/* Under the lock. */
static int build(struct remote_run *run, const struct typed *agreed, struct error *error) {
    struct setup *setup = &run->setup;
    struct adoption adoption = {&setup->config, error};
    RETURN_IF(config_each(&agreed->value, OPTION_AGREED, adopt_row, &adoption));
    RETURN_IF(config_check_microbatches(&setup->config, error));
    if (setup->config.batch_total > 0) /* until it is known how many they are */
        setup->config.batch = config_part(&setup->config, run->cluster->workers.count);
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
                                           .own_leader = run->cluster->mirrored && hello->task == 0,
                                           .may_leave = !cluster_holds(run->cluster),
                                           .say = say,
                                           .check = check_workers,
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

/* Of the examples of a batch. */
static int open_numbers(struct remote_device *device, int size) {
    struct error *error = &device->error;
    memory_free(device->numbers);
    memory_free(device->keys);
    memory_free(device->soon);
    device->numbers = NULL;
    device->keys = NULL;
    device->soon = NULL;
    RETURN_IF(memory_array(&device->numbers, size + 1, "a batch's numbers", error));
    RETURN_IF(memory_array(&device->keys, size + 1, "a batch's keys", error));
    RETURN_IF(memory_array(&device->soon, stream_soon_room(size), "numbers of later batches", error));
    device->size = size;
    return OK;
}

/* What it computes with, for batches of so many examples. */
static int open_batches(struct remote_device *device, int size) {
    struct remote_run *run = device->run;
    struct error *error = &device->error;
    const struct compute compute = replicas_compute(&run->replicas);
    RETURN_IF(compute.open(compute.self, device->index, error));
    const struct group *group = run->replicas.replicas[device->index].group;
    for (int i = 0; group && group_line(group, i); i++) say(device, group_line(group, i));
    return open_numbers(device, size);
}

/* A round is divided anew where workers join and leave: the next batch is of another size. */
static int change_batches(struct remote_device *device, int size) {
    struct remote_run *run = device->run;
    RETURN_IF(replicas_reopen(&run->replicas, device->index, &run->network_settings, size, &device->error));
    return open_numbers(device, size);
}

/* Where workers have shares, the leader says with each batch how large this one's is. */
static int open_share(struct remote_device *device) {
    struct remote_run *run = device->run;
    const struct config *config = &run->setup.config;
    struct stream *stream = &device->stream;
    struct error *error = &device->error;
    const int told = device->remote.examples, size = told > 0 ? told : stream->batch;
    const bool divides = config->batch_total > 0 || config_may_be_joined(config),
               fits = config->batch_total > 0 ? size <= config->batch_total
                                              : size / stream->batch <= stream->workers;
    if (device->size == size && (told > 0) == (device->sizes != NULL)) return OK;
    if ((device->size > 0 && !(divides && device->sizes && told > 0)) || size % config->microbatches != 0 ||
        !fits)
        return error_set(error, ERROR_PEER, "%s: a batch of %d examples, expected %d",
                         run->cluster->ps.list[0].text, size,
                         device->size > 0 ? device->size : stream->batch);
    if (told > 0 && !device->sizes) RETURN_IF(memory_array(&device->sizes, stream->workers, "shares", error));
    for (int w = 0; told > 0 && w < stream->workers; w++)
        device->sizes[w] = told; /* nobody asks for another's */
    stream->sizes = device->sizes;
    if (device->size > 0) return change_batches(device, size);
    replicas_resize(&run->replicas, device->index, &run->network_settings, size);
    return open_batches(device, size);
}

static bool is_let_in(const struct remote *remote) {
    for (int h = 0; remote->hosts && h < remote->count; h++)
        if (remote->hosts[h].told) return true;
    return false;
}

static int step(void *argument, size_t until, size_t from, struct error *error) {
    return remote_step(argument, until, from, error);
}

/* Weights and gradients move while the device computes. A gradient that is to be clipped is first whole. */
static void begin_overlap(struct remote_device *device) {
    struct remote_run *run = device->run;
    const struct config *config = &run->setup.config;
    if (remote_may_overlap(&device->remote, (enum overlap)config->overlap) &&
        replicas_set_step(&run->replicas, device->index, step, &device->remote))
        remote_overlap(&device->remote, config->clip > 0.0 ? NULL : device->gradient);
}

/* One that holds weights is needed by the others: its other half asks the leader to end the run. And among
 * workers that stay the same nobody would take over a share of its own size. */
static bool may_leave(const struct remote_run *run) {
    const struct config *config = &run->setup.config;
    return !cluster_holds(run->cluster) && (shares_are_even(config->share) || config_may_be_joined(config));
}

static int open_device(struct remote_device *device) {
    struct remote_run *run = device->run;
    struct error *error = &device->error;
    const int code = connect_remote(device);
    if (is_let_in(&device->remote)) atomic_store(&run->session->met, true);
    RETURN_IF(code);
    RETURN_IF(build_once(device));
    const size_t floats = run->setup.network.graph.layout.floats;
    const bool even = shares_are_even(run->setup.config.share);
    /* Else the leader says so, or how many the workers are. */
    if (even && run->setup.config.batch_total == 0) RETURN_IF(open_batches(device, run->setup.config.batch));
    device->remote.settings.may_leave = may_leave(run);
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
    begin_overlap(device);
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
    const bool sums = remote_sums(&device->remote);
    const struct device *const home = sums ? device->ranked.device : &processor;
    float *const gradient = sums ? device->ranked.gradient : device->gradient;
    const double began_s = world_now(run->world);
    RETURN_IF(compute.run(compute.self, device->index, 0, device->weights, gradient, &outcome.loss, error));
    RETURN_IF(compute.synchronize(compute.self, device->index, false, &outcome, error));
    if (clip > 0.0f) RETURN_IF(gradient_clip(&run->setup.network.graph.layout, home, gradient, clip, error));
    const struct answer answer = {outcome.loss, world_now(run->world) - began_s - device->remote.moved_s};
    if (sums) RETURN_IF(ranked_sum(&device->ranked, device->gradient, error));
    const bool stepped = remote_steps(&device->remote) &&
                         far_step(&device->far, device->gradient, request.version, request.rate);
    RETURN_IF(remote_answer(&device->remote, &answer, device->gradient, stepped, error));
    session_see(run->session, request.version - 1); /* once the request has been checked */
    log_step(device, &request, outcome.loss);
    return OK;
}

void remote_run_print(struct remote_run *run) {
    lock_take(&run->say);
    log_drain(&run->log);
    lock_release(&run->say);
}

/* The leader's other half is about to print the line of the epoch. */
static void print_before_pause(struct remote_run *run) {
    if (!run->session->printed) return;
    remote_run_print(run);
    event_post(run->session->printed);
}

static int compute_batches(struct remote_device *device) {
    struct remote_run *run = device->run;
    const struct config *config = &run->setup.config;
    const int workers = device->remote.hosts[0].welcome.workers;
    bool over = false;
    device->stream =
        (struct stream){.seed = (uint64_t)config->seed,
                        .examples = run->setup.dataset.train.count,
                        .batch = config->batch_total > 0 ? config_part(config, workers) : config->batch,
                        .workers = workers,
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
        if (!over && next == NEXT_PAUSE) print_before_pause(run);
    }
    device->finish.left = device->remote.left;
    return OK;
}

/* SIGTERM ends a worker after the step in hand (remote.h). */
bool remote_run_leaves(const struct remote_run *run) {
    return world_dismissed(run->world) && atomic_load(&run->begun) && may_leave(run);
}

/* The chief of a mirrored cluster leads it, too, and ends it in order. */
bool remote_run_is_interrupted(const struct remote_run *run) {
    if (cluster_holds(run->cluster) && (run->cluster->task == 0 || world_terminated())) return false;
    return world_interrupted() && !remote_run_leaves(run);
}

void remote_device_body(void *argument) {
    struct remote_device *device = argument;
    int code = open_device(device);
    if (code == OK) code = compute_batches(device);
    if (code != OK && remote_run_is_interrupted(device->run)) {
        device->error = (struct error){0};
        code = error_set(&device->error, ERROR_INTERRUPTED, "interrupted");
    }
    if (device->remote.over) atomic_store(&device->run->session->over, true);
    if (code != OK) remote_fail(&device->remote, &device->error);
    int none = -1;
    if (code != OK) atomic_compare_exchange_strong(&device->run->failed, &none, device->index);
    event_post(&device->run->ended);
}
