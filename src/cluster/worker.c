/* The main thread of a worker, which prints; each device has a thread of its own. See worker.h. */
#include "worker.h"

#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../bridge/upgrade.h"
#include "../engine/faults.h"
#include "../record/sentence.h"
#include "remote_run.h"

enum { LOOK_MS = 50 };

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
    RETURN_IF(config_choose_batch(config, run->typed, error));
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

/* Faults are put in where the training is. One that holds weights has it beside its devices. */
static void say_faults(struct remote_run *run) {
    const struct config *config = &run->setup.config;
    char faults[FAULTS_TEXT_BYTES];
    faults_text(faults, config->fail, config->stall, config->slow);
    if (!faults[0] || cluster_holds(run->cluster)) return;
    progress_warn(&run->progress, "%s does nothing at a worker: the %s puts faults in", faults,
                  run->cluster->mirrored ? "leader" : "parameter server");
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
        RETURN_IF(world_spawn(run->world, own->name, own->pinned ? &own->cores : NULL, remote_device_body,
                              device, &device->thread, error));
    }
    return OK;
}

/* The first device that failed says why. An interrupt stops the world, which wakes all. */
static int wait_for_devices(struct remote_run *run, struct finish *finish, struct error *error) {
    const int devices = run->setup.device_count;
    while (event_wait(&run->ended, (uint64_t)devices, world_now(run->world) + LOOK_MS / 1e3) ==
           WAIT_TIMEOUT) {
        remote_run_print(run);
        if (remote_run_is_interrupted(run) || atomic_load(&run->failed) >= 0 ||
            (run->give_up && atomic_load(run->give_up)))
            world_stop(run->world);
    }
    for (int d = 0; d < devices; d++) {
        world_join(run->remotes[d].thread);
        run->remotes[d].thread = NULL;
    }
    log_drain(&run->log);
    if (remote_run_is_interrupted(run)) return error_set(error, ERROR_INTERRUPTED, "interrupted");
    const int failed = atomic_load(&run->failed);
    if (failed >= 0)
        return error_set(error, run->remotes[failed].error.code, "%s", run->remotes[failed].error.words);
    *finish = run->remotes[0].finish;
    for (int d = 1; d < devices; d++) finish->left = finish->left || run->remotes[d].finish.left;
    if (remote_run_leaves(run) && finish->code == ERROR_INTERRUPTED) /* all were asked to */
        *finish = (struct finish){.left = true};
    if (finish->left) progress_say(&run->progress, "left, as it was asked to");
    if (finish->code == OK) return OK;
    if (finish->code != ERROR_PEER) atomic_store(&run->session->over, true);
    char leader[300];
    snprintf(leader, sizeof leader, "the %s %s", cluster_server(run->cluster), run->cluster->ps.list[0].text);
    return finish_repeat(finish, leader, error);
}

/* false: a device of a group hangs, and may still use any of it. */
static bool close_run(struct remote_run *run, bool failed) {
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
    lines_close(&run->lines, failed);
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
    *abandoned = !close_run(run, code != OK);
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
