/* For the tests of clusters: all processes of one as threads of a simulation, each on a machine of its own,
 * with the code that the program runs. Or as threads of this process, each with a world and links of the real
 * kind, where the scenario says so. */
#ifndef TRAINER_TESTS_SIMULATED_CLUSTER_H
#define TRAINER_TESTS_SIMULATED_CLUSTER_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/base/memory.h"
#include "../src/base/rng.h"
#include "../src/cluster/follower.h"
#include "../src/cluster/leader.h"
#include "../src/cluster/mirrored.h"
#include "../src/engine/threads.h"
#include "../src/store/strategy.h"
#include "../src/world/simulated_network.h"
#include "check.h"

enum { PROCESSES = 16, NAME = 32 };

struct scenario {
    const char *strategy;
    int servers; /* 0: mirrored; -1: no cluster, the workers are threads of one process */
    int workers;
    uint64_t seed; /* of the simulation, not of the run */
    struct simulated_network network;
    bool real;                  /* nothing is simulated */
    bool encrypted;             /* all hold one key */
    bool tcp_alone, ucx;        /* real: no memory is shared; over UCX */
    const char *settings[8][2]; /* more of them: name and value */
    struct {
        bool absent; /* somebody else plays it, or nobody */
        double begins_s;
        const char *name, *value; /* a setting of its own; NULL: none */
    } own[PROCESSES];
};

/* A process of the cluster, and how it ended. */
struct process {
    const struct scenario *scenario;
    struct world *world; /* on a machine of its own */
    struct world_thread *thread;
    struct typed *typed;
    struct cluster cluster;
    struct run_result result; /* of the process that leads, or of a run without a cluster */
    struct finish finish;     /* of a worker, what the leader says at the end */
    struct error error;
    char name[NAME]; /* "ps-0", "worker-1" */
    double begins_s, ended_s;
    bool ended;
    bool struck; /* it was killed, and another one may have its place */
};

struct simulated_cluster {
    struct scenario scenario;
    struct world *world; /* of whoever looks on */
    char folder[64];     /* with one in it for each process that writes */
    struct process processes[PROCESSES];
    int count;
};

static inline void type_setting(struct process *process, const char *name, const char *value) {
    struct error error = {0};
    CHECK(option_set(run_options, process->typed, "--", name, value, &error) == OK, "--%s=%s: %s", name,
          value, error.words);
}

static inline void type_settings(struct simulated_cluster *all, struct process *process) {
    const struct scenario *scenario = &all->scenario;
    static const char *const settings[][2] = {{"dataset", "iris"},
                                              {"model", "mlp:hidden=24"},
                                              {"batch", "10"},
                                              {"epochs", "2"},
                                              {"optimizer", "sgd:rate=0.1"},
                                              {"kernels", "reference"},
                                              {"threads", "1"},
                                              {"outputs", "csv"},
                                              {"overlap", "on"},
                                              {"timeout", "20"},
                                              {"start-timeout", "60"}};
    char out[128], devices[64] = "";
    bool total = false;
    for (int i = 0; i < 8 && scenario->settings[i][0]; i++)
        total = total || strcmp(scenario->settings[i][0], "batch-total") == 0;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!total || strcmp(settings[i][0], "batch") != 0)
            type_setting(process, settings[i][0], settings[i][1]);
    for (int i = 0; i < 8 && scenario->settings[i][0]; i++)
        type_setting(process, scenario->settings[i][0], scenario->settings[i][1]);
    if (scenario->strategy) type_setting(process, "strategy", scenario->strategy);
    const int index = (int)(process - all->processes);
    if (scenario->own[index].name)
        type_setting(process, scenario->own[index].name, scenario->own[index].value);
    const int devices_here = scenario->servers < 0 ? scenario->workers : 1;
    for (int d = 0; d < devices_here; d++)
        snprintf(devices + strlen(devices), sizeof devices - strlen(devices), "%scpu:%d", d > 0 ? "," : "",
                 d);
    type_setting(process, "devices", devices);
    snprintf(out, sizeof out, "%s/%s", all->folder, process->name);
    type_setting(process, "out", out);
    process->typed->value.quiet = true;
}

/* Real ones are where no other program listens: an address of this machine that has our number in it. */
static inline void address_of(const struct simulated_cluster *all, int index, char address[NAME]) {
    const unsigned own = (unsigned)getpid();
    if (all->scenario.real)
        snprintf(address, NAME, "127.%u.%u.%u:%d", 1 + (own >> 16) % 250, (own >> 8) % 256, 1 + own % 254,
                 2222 + index);
    else
        snprintf(address, NAME, "127.0.0.1:%d", 2222 + index);
}

static inline int open_machine(struct world **out, const struct simulated_cluster *all, struct error *error) {
    return all->scenario.real ? world_open_threads(out, error)
                              : simulated_open_machine(out, all->world, error);
}

static inline void add_process(struct simulated_cluster *all, enum cluster_role role, int task) {
    struct process *process = &all->processes[all->count++];
    struct error error = {0};
    process->scenario = &all->scenario;
    process->cluster.role = role;
    process->cluster.task = task;
    process->cluster.process = rng_mix(all->scenario.seed, (uint64_t)all->count);
    process->cluster.tcp_alone = all->scenario.tcp_alone;
    process->cluster.ucx = all->scenario.ucx;
    process->cluster.secret.there = all->scenario.encrypted;
    memset(process->cluster.secret.key, 0x5a,
           all->scenario.encrypted ? sizeof process->cluster.secret.key : 0);
    snprintf(process->name, sizeof process->name, "%s-%d", role == CLUSTER_PS ? "ps" : "worker", task);
    CHECK(memory_array(&process->typed, 1, "settings", &error) == OK &&
              open_machine(&process->world, all, &error) == OK,
          "%s", error.words);
    option_defaults(run_options, process->typed);
    type_settings(all, process);
    char address[NAME];
    for (int i = 0; i < all->scenario.servers + all->scenario.workers; i++) {
        const bool is_ps = i < all->scenario.servers;
        address_of(all, i, address);
        CHECK(addresses_add_list(is_ps ? &process->cluster.ps : &process->cluster.workers, address, "here",
                                 &error) == OK,
              "%s", error.words);
    }
}

/* As the verb train does it. */
static inline void process_body(void *argument) {
    struct process *process = argument;
    struct finish *finish = &process->finish;
    bool abandoned;
    world_sleep(process->world, process->begins_s);
    if (process->cluster.role == CLUSTER_NONE)
        run_train(process->typed, &threads_crew, process->world, &process->result, &process->error);
    else if (process->cluster.role != CLUSTER_PS && process->cluster.ps.count == 0)
        mirrored_train(process->typed, &process->cluster, process->world, finish, &process->result,
                       &abandoned, &process->error);
    else if (process->cluster.role != CLUSTER_PS)
        worker_train(process->typed, &process->cluster, process->world, NULL, finish, &abandoned,
                     &process->error);
    else if (process->cluster.task > 0)
        follow_train(process->typed, &process->cluster, process->world, &process->result, &process->error);
    else
        leader_train(process->typed, &process->cluster, process->world, &process->result, &process->error);
    process->ended_s = world_now(process->world);
    process->ended = true;
}

static inline void start_process(struct process *process) {
    struct error error = {0};
    CHECK(world_spawn(process->world, process->name, NULL, process_body, process, &process->thread, &error) ==
              OK,
          "%s", error.words);
}

/* Starts all of them; the caller may do what it likes meanwhile, then ends. */
static inline void cluster_start(struct simulated_cluster *all, const struct scenario *scenario) {
    struct error error = {0};
    memset(all, 0, sizeof *all);
    all->scenario = *scenario;
    snprintf(all->folder, sizeof all->folder, "/tmp/trainer-simulated-XXXXXX");
    CHECK(mkdtemp(all->folder) != NULL, "%s", all->folder);
    CHECK((scenario->real ? world_open_threads(&all->world, &error)
                          : world_open_simulated(&all->world, scenario->seed, &error)) == OK,
          "%s", error.words);
    if (!scenario->real) simulated_set_network(all->world, &scenario->network);
    if (scenario->servers < 0) {
        add_process(all, CLUSTER_NONE, -1);
    } else {
        for (int i = 0; i < scenario->servers; i++) add_process(all, CLUSTER_PS, i);
        for (int i = 0; i < scenario->workers; i++)
            add_process(all, i == 0 ? CLUSTER_CHIEF : CLUSTER_WORKER, i);
    }
    for (int i = 0; i < all->count; i++) {
        all->processes[i].begins_s = scenario->own[i].begins_s;
        if (!scenario->own[i].absent) start_process(&all->processes[i]);
    }
}

/* Of one that trains for longer than this takes: until it does; then, so much later, one starts that the
 * scenario has as absent. */
static inline void cluster_await_training(const struct simulated_cluster *all) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s/steps.csv", all->folder, all->processes[0].name);
    for (int tries = 0; access(path, F_OK) != 0 && tries < 6000; tries++) world_sleep(all->world, 0.01);
}

static inline void cluster_start_late(struct simulated_cluster *all, int process, double seconds) {
    world_sleep(all->world, seconds);
    start_process(&all->processes[process]);
}

/* Another process in a worker's place. */
static inline struct process *come_again(struct simulated_cluster *all, int worker) {
    struct process *process = &all->processes[all->count];
    add_process(all, worker == 0 ? CLUSTER_CHIEF : CLUSTER_WORKER, worker);
    start_process(process);
    return process;
}

/* Where late gradients are dropped, or counted, all are at one server. */
static inline int most_servers(const struct traits *traits) {
    return traits->drops || traits->joint ? 1 : 3;
}

static inline void cluster_join(struct simulated_cluster *all) {
    for (int i = 0; i < all->count; i++) world_join(all->processes[i].thread);
}

static inline void cluster_close(struct simulated_cluster *all) {
    char command[128];
    for (int i = 0; i < all->count; i++) {
        struct process *process = &all->processes[i];
        run_result_free(&process->result);
        cluster_free(&process->cluster);
        memory_free(process->typed);
        world_close(process->world);
    }
    world_close(all->world);
    snprintf(command, sizeof command, "rm -rf %s", all->folder);
    CHECK(system(command) == 0, "%s", command);
}

/* A file that the first process has written; *data is freed with memory_free, NULL when it is not there. */
static inline void cluster_file(const struct simulated_cluster *all, const char *name, char **data,
                                size_t *bytes) {
    char path[256];
    struct error error = {0};
    *data = NULL;
    *bytes = 0;
    snprintf(path, sizeof path, "%s/%s/%s", all->folder, all->processes[0].name, name);
    CHECK(file_read(path, 1 << 22, data, bytes, &error) == OK, "%s", error.words);
}

/* Of the model that the first process has written. The weights are behind the header, which has the settings
 * and the day. */
static inline uint64_t cluster_hash_weights(const struct simulated_cluster *all) {
    char *data;
    size_t bytes;
    uint64_t header = 0, hash = 0;
    cluster_file(all, "model.safetensors", &data, &bytes);
    if (bytes > 8) memcpy(&header, data, 8);
    for (size_t i = 8 + header; data && i < bytes; i++) hash = rng_mix(hash, (uint8_t)data[i]);
    memory_free(data);
    return hash;
}

#endif
