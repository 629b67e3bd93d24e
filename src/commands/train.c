/* trainer train: the main job, and what happens without a verb. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../train/mirrored.h"
#include "../train/run.h"
#include "command.h"

static void print_results(double accuracy, double seconds, double cost) {
    printf("Test-Accuracy: %.4f\n", accuracy);
    printf("Total Time: %.2fs\n", seconds);
    printf("Final Cost: %.4f\n", cost);
}

static int train_here(const struct run_settings *settings, struct error *error) {
    struct run_result result;
    const int code = run_train(settings, &result, error);
    if (code == OK)
        print_results(result.summary.test_accuracy, result.summary.train_seconds, result.summary.final_cost);
    run_result_free(&result);
    return code;
}

/* As what this process is in the cluster: alone, a parameter server, or a worker, which has one device if
 * nothing else is said: there are other processes beside it. */
static int train_as(const struct run_settings *typed, const struct cluster *cluster, struct error *error) {
    struct run_settings settings = *typed;
    struct finish finish;
    if (cluster->role == CLUSTER_NONE) return train_here(&settings, error);
    settings.servers = cluster->ps.count;
    if (cluster->role == CLUSTER_PS) {
        settings.hosted = cluster;
        return train_here(&settings, error);
    }
    if (strcmp(settings.devices, "auto") == 0) snprintf(settings.devices, sizeof settings.devices, "cpu:0");
    if (cluster->ps.count > 0)
        RETURN_IF(remote_train(&settings, cluster, &finish, error));
    else
        RETURN_IF(mirrored_train(&settings, cluster, &finish, error));
    print_results(finish.test_accuracy, finish.train_seconds, finish.final_cost);
    return OK;
}

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    if (argument_count > 0)
        return error_set(error, ERROR_USAGE, "train: unexpected \"%s\"; expected only options", arguments[0]);
    struct cluster cluster;
    const struct run_settings *typed = settings;
    RETURN_IF(cluster_resolve(&cluster, &typed->cluster, getenv("TF_CONFIG"), error));
    const int code = train_as(typed, &cluster, error);
    cluster_free(&cluster);
    return code;
}

const struct command command_train = {
    .plugin = {.name = "train",
               .help = "train a network; also without a verb",
               .options = run_options,
               .settings_bytes = sizeof(struct run_settings)},
    .examples =
        "  trainer\n"
        "  trainer --strategy=async-lockfree --devices=cpu:0,cpu:1\n"
        "  trainer --dataset=iris:standardize=1 --model=mlp:hidden=10-10,activation=relu --epochs=100\n"
        "  trainer --dataset=mnist --batch=100 --epochs=20 --optimizer=sgd:rate=0.5 --out=runs/mnist\n"
        "  trainer --resume=runs/mnist --epochs=40\n",
    .run = run,
};
