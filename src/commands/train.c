/* trainer train: the main job, and what happens without a verb. */
#include "../train/run.h"
#include "command.h"

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    if (argument_count > 0)
        return error_set(error, ERROR_USAGE, "train: unexpected \"%s\"; expected only options", arguments[0]);
    struct run_result result;
    const int code = run_train(settings, &result, error);
    if (code == OK) {
        printf("Test-Accuracy: %.4f\n", result.summary.test_accuracy);
        printf("Total Time: %.2fs\n", result.summary.train_seconds);
        printf("Final Cost: %.4f\n", result.summary.final_cost);
    }
    run_result_free(&result);
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
