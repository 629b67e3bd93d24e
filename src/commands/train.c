/* trainer train: the main job, and what happens without a verb. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bridge/joins.h"
#include "../cluster/follower.h"
#include "../cluster/leader.h"
#include "../cluster/mirrored.h"
#include "../launch/start.h"
#include "../library/training.h"
#include "../record/progress.h"
#include "../record/sentence.h"
#include "../run/results.h"
#include "../world/children.h"
#include "command.h"

/* In this process alone, by the calls that any program can make. */
static int train_alone(const struct typed *typed, struct error *error) {
    struct trainer_training *training = NULL;
    struct trainer_error why = {0};
    if (trainer_training_open(&training, &why) == TRAINER_OK) {
        library_take_settings(training, typed);
        trainer_training_as_program(training);
        trainer_training_run(training, NULL, &why);
    }
    trainer_training_close(training);
    return why.code == TRAINER_OK ? OK : error_set(error, why.code, "%s", why.words);
}

/* A parameter server: the first of them leads the others. */
static int serve(const struct typed *typed, const struct cluster *cluster, struct error *error) {
    struct run_result result = {0};
    struct world *world = NULL;
    RETURN_IF(world_open_threads(&world, error));
    const int code = cluster->task > 0 ? follow_train(typed, cluster, world, &result, error)
                                       : leader_train(typed, cluster, world, &result, error);
    if (!result.abandoned) world_close(world);
    run_print_results(code, &result);
    run_result_free(&result);
    return code;
}

/* A worker, or a process that is one and a parameter server. */
static int work(const struct typed *typed, const struct cluster *cluster, struct error *error) {
    struct finish finish = {0};
    struct run_result result = {0}; /* of the one that leads */
    bool abandoned = false;
    char sentence[SENTENCE_BYTES] = "";
    struct world *world = NULL;
    RETURN_IF(world_open_threads(&world, error));
    const int code = cluster->ps.count > 0
                         ? worker_train(typed, cluster, world, NULL, &finish, &abandoned, error)
                         : mirrored_train(typed, cluster, world, &finish, &result, &abandoned, error);
    if (!abandoned) world_close(world);
    sentence_of_run(&result.summary, sentence, sizeof sentence);
    run_result_free(&result);
    const struct results results = {.metric = finish.metric,
                                    .test_score = finish.test_score,
                                    .train_seconds = finish.train_seconds,
                                    .final_cost = finish.final_cost};
    if (code == OK && !finish.left) results_print(&results, typed->value.quiet ? "" : sentence);
    return code;
}

/* Of links and addresses, where there are none. */
static void say_idle(const struct given *given) {
    const struct {
        bool given;
        const char *name;
    } idle[] = {
        {given->secret_file, "--secret-file"},
        {given->tls_cert || given->tls_key || given->tls_ca, "--tls-cert"},
        {given->insecure, "--insecure"},
        {given->link, "--link"},
        {given->overlap, "--overlap"},
        {given->port, "--port"},
        {given->ssh, "--ssh"},
        {given->start_timeout_s, "--start-timeout"},
    };
    char words[100];
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
        if (!idle[i].given) continue;
        snprintf(words, sizeof words, "%s does nothing in one process, which sends nothing", idle[i].name);
        progress_warn_of(words);
    }
    if (given->restart_wait_s)
        progress_warn_of("--restart-wait does nothing in one process, which waits for nobody");
}

/* Other programs have this name for the devices of one process. */
static int refuse_workers(const char *workers, struct error *error) {
    char devices[200];
    return error_set(error, ERROR_USAGE, "--workers=%s: there is no cluster to join; did you mean %s?",
                     workers, habit_instead("option", "workers", workers, devices, sizeof devices));
}

/* As what this process is in the cluster: alone, a parameter server, or a worker. */
static int train_as(const struct typed *typed, const struct cluster *cluster, struct error *error) {
    int least;
    if (cluster->role == CLUSTER_NONE && typed->given.workers)
        return refuse_workers(typed->value.workers, error);
    RETURN_IF(joins_read(&typed->value, cluster, &least, error));
    if (cluster->role == CLUSTER_NONE) {
        say_idle(&typed->given);
        return train_alone(typed, error);
    }
    return cluster->role == CLUSTER_PS ? serve(typed, cluster, error) : work(typed, cluster, error);
}

/* TRAINER_SECRET=-: the key is a line of standard input, so that it stands in no list of processes and no
 * file. Who has started this process by --hosts holds the other end, and says by its end that all is over. */
static int find_secret(struct cluster *cluster, const struct config *settings, struct error *error) {
    const char *variable = getenv(SECRET_VARIABLE);
    char line[200];
    if (!variable || strcmp(variable, "-") != 0)
        return secret_find(&cluster->secret, settings, variable, error);
    RETURN_IF(world_read_line(line, sizeof line, error));
    if (getenv("TRAINER_RANK")) {
        world_catch_interrupts(); /* the end may be there already */
        RETURN_IF(world_end_with_input(error));
    }
    if (line[0] == '\0') return secret_find(&cluster->secret, settings, NULL, error);
    return secret_read(&cluster->secret, line, "standard input", error);
}

/* Only threads of this process are simulated. */
static int refuse_cluster(const struct config *settings, struct error *error) {
    return error_set(error, ERROR_USAGE,
                     "--simulate=%s: found a cluster, expected one process, whose devices are the workers",
                     settings->simulate);
}

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    (void)arguments, (void)argument_count;
    struct cluster cluster;
    const struct typed *typed = settings;
    const bool simulated = typed->value.simulate[0] != '\0';
    if (simulated && launch_starts(&typed->value, getenv)) return refuse_cluster(&typed->value, error);
    if (launch_starts(&typed->value, getenv)) return launch_start(&typed->value, getenv, error);
    RETURN_IF(launch_resolve(&cluster, &typed->value, getenv, error));
    int code = OK;
    cluster.insecure = typed->value.insecure;
    cluster.tcp_alone = !typed->value.shared_memory || typed->value.link == LINK_TCP;
    cluster.shm_alone = typed->value.link == LINK_SHM;
    cluster.ucx = typed->value.link == LINK_UCX;
    if (simulated && cluster.role != CLUSTER_NONE) code = refuse_cluster(&typed->value, error);
    if (code == OK && cluster.shm_alone && cluster.tcp_alone)
        code = error_set(error, ERROR_USAGE, "--link=shm contradicts --no-shared-memory");
    if (code == OK && (cluster.role != CLUSTER_NONE || getenv("TRAINER_RANK")))
        code = find_secret(&cluster, &typed->value, error);
    if (code == OK) code = train_as(typed, &cluster, error);
    cluster_free(&cluster);
    return code;
}

const struct command command_train = {
    .plugin = {.name = "train",
               .help = "train a network",
               .options = run_options,
               .settings_bytes = sizeof(struct typed)},
    .examples =
        "trainer train --strategy=async-lockfree --devices=cpu:0,cpu:1\n"
        "trainer train --dataset=iris:standardize=1 --model=mlp:hidden=10-10,activation=relu --epochs=100\n"
        "# MNIST, fetched once; then further from its checkpoint\n"
        "trainer fetch mnist\n"
        "trainer train --dataset=mnist --batch=100 --epochs=20 --optimizer=sgd:rate=0.5 --out=runs/mnist\n"
        "trainer train --resume=runs/mnist --epochs=40\n",
    .run = run,
};
