/* trainer train: the main job, and what happens without a verb. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../cluster/follower.h"
#include "../cluster/mirrored.h"
#include "../record/lines.h"
#include "../record/sentence.h"
#include "command.h"

/* The three lines of the reference program, when the training was finished (without the first where nothing
 * was tested); then where its time went, unless
 * that is "". */
static void print_results(const struct finish *finish, const char *sentence) {
    struct lines lines;
    char score[METRIC_BYTES];
    lines_open(&lines, stdout, NULL);
    if (finish) {
        if (!isnan(finish->test_score))
            lines_say(&lines, "Test-%s: %s", metric_rows[finish->metric].title,
                      metric_plain(finish->metric, finish->test_score, score));
        lines_say(&lines, "Total Time: %.2fs", finish->train_seconds);
        lines_say(&lines, "Final Cost: %.4f", finish->final_cost);
    }
    if (sentence[0] != '\0') lines_fit(&lines, "%s", sentence);
    lines_close(&lines);
}

static int end(int code, struct run_result *result) {
    const struct summary *summary = &result->summary;
    const struct finish finish = {.metric = summary->metric,
                                  .test_score = summary->test_score,
                                  .train_seconds = summary->train_seconds,
                                  .final_cost = summary->final_cost};
    char sentence[SENTENCE_BYTES] = "";
    if (!result->config.quiet) sentence_of_run(summary, sentence, sizeof sentence);
    if (code == OK || code == ERROR_INTERRUPTED) print_results(code == OK ? &finish : NULL, sentence);
    run_result_free(result);
    return code;
}

/* A parameter server: the first of them leads the others. */
static int serve(const struct typed *typed, const struct cluster *cluster, struct error *error) {
    const struct members_settings settings = {.cluster = cluster};
    const struct crew crew = members_crew(&settings);
    struct run_result result = {0};
    struct world *world = NULL;
    RETURN_IF(world_open_threads(&world, error));
    const int code = cluster->task > 0 ? follow_train(typed, &settings, world, &result, error)
                                       : run_train(typed, &crew, world, &result, error);
    if (!result.abandoned) world_close(world);
    return end(code, &result);
}

/* As what this process is in the cluster: alone, a parameter server, or a worker. */
static int train_as(const struct typed *typed, const struct cluster *cluster, struct error *error) {
    struct run_result result;
    struct finish finish;
    char sentence[SENTENCE_BYTES] = "";
    if (cluster->role == CLUSTER_NONE) return end(run_train_here(typed, &result, error), &result);
    if (cluster->role == CLUSTER_PS) return serve(typed, cluster, error);
    if (cluster->ps.count > 0)
        RETURN_IF(worker_train(typed, cluster, NULL, &finish, error));
    else
        RETURN_IF(mirrored_train(typed, cluster, &finish, sentence, error));
    print_results(&finish, typed->value.quiet ? "" : sentence);
    return OK;
}

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    (void)arguments, (void)argument_count;
    struct cluster cluster;
    const struct typed *typed = settings;
    RETURN_IF(cluster_resolve(&cluster, &typed->value, getenv("TF_CONFIG"), error));
    const int code = train_as(typed, &cluster, error);
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
