/* The rows of a run's options, and how what was not given is settled. */
#include "settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../data/dataset.h"
#include "../device/device.h"
#include "../graph/model.h"
#include "../store/strategy.h"
#include "../world/world.h"

#define AT(field) .offset = offsetof(struct run_settings, field)
#define TEXT(field) AT(field), .type = OPTION_TEXT, .bytes = sizeof((struct run_settings *)0)->field

const struct option run_options[] = {
    {.name = "model",
     TEXT(model),
     .help = "the network, with its settings as in mlp:hidden=10-10 (default mlp)"},
    {.name = "dataset",
     TEXT(dataset),
     .help = "what to learn, as in cifar10:crop=24 (default digits); trainer list shows all of these"},
    {.name = "data-dir",
     TEXT(data_dir),
     .help = "where data sets are looked for, before $TRAINER_DATA and ~/.cache/trainer"},
    {.name = "strategy", TEXT(strategy), .help = "how devices share what they learn (default sync)"},
    {.name = "devices",
     TEXT(devices),
     .fallback = "auto",
#if DEVICES_MAY_BE_GPUS
     .help = "cpu:0,cpu:1 or gpu:0,gpu:1 or cpu:* (one a core) or gpu:* or auto"},
#else
     .help = "cpu:0,cpu:1 or cpu:* (one a core) or auto"},
#endif
    {.name = "threads",
     AT(threads),
     .type = OPTION_INT,
     .fallback = "0",
     .least = 0,
     .most = 1024,
     .unit = "threads a device",
     .help = "0: the cores dealt evenly"},
    {.name = "epochs",
     AT(epochs_given),
     .type = OPTION_INT,
     .least = 1,
     .most = 1000000,
     .unit = "epochs",
     .help = "how often to go through the training set (default 60)"},
    {.name = "batch",
     AT(batch_given),
     .type = OPTION_INT,
     .least = 1,
     .most = 1000000,
     .unit = "examples",
     .help = "per worker and step (default 32)"},
    {.name = "optimizer",
     TEXT(optimizer),
     .help = "what a gradient does to the weights (default momentum:rate=0.1)"},
    {.name = "schedule",
     TEXT(schedule),
     .help = "of the learning rate, as in cosine:warmup=0.1 (default constant)"},
    {.name = "decay",
     AT(decay_given),
     .type = OPTION_REAL,
     .least = 0,
     .most = 1e3,
     .help = "L2 weight decay of the weight matrices that have none of their model's own (default 0)"},
    {.name = "clip",
     AT(clip_given),
     .type = OPTION_REAL,
     .least = 0,
     .most = 1e9,
     .help = "cut a worker's gradient to this norm (default 0: not)"},
    {.name = "average",
     AT(average_given),
     .type = OPTION_REAL,
     .least = 0,
     .most = 1,
     .help = "test, and keep as the model, the moving average of the weights with this decay, as in 0.9999; "
             "update n: at most (1+n)/(10+n) (default 0: the weights as they are)"},
    {.name = "seed",
     AT(seed_given),
     .type = OPTION_LONG,
     .least = 1,
     .most = 4294967295.0,
     .help = "of first weights and data order (default 1)"},
    {.name = "data-sharding",
     AT(sharding_given),
     .type = OPTION_CHOICE,
     .fallback = "auto",
     .choices = "auto|shared|split|all",
     .help = "shared: one stream for all workers (default); split: a slice each; all: everything, each in "
             "its own order"},
    {.name = "shards",
     AT(shards),
     .type = OPTION_INT,
     .fallback = "0",
     .least = 0,
     .most = 4096,
     .help = "pieces of the weights (0: what the strategy likes)"},
    {.name = "shard-by",
     AT(shard_by),
     .type = OPTION_CHOICE,
     .fallback = "bytes",
     .choices = "bytes|tensor|round-robin",
     .help = "equal bytes, or whole arrays in groups or in turn"},
    {.name = "slots",
     AT(slots),
     .type = OPTION_INT,
     .fallback = "2",
     .least = 1,
     .most = 1024,
     .unit = "gradients",
     .help = "a worker may have in its mailbox"},
    {.name = "prefetch",
     AT(prefetch),
     .type = OPTION_CHOICE,
     .fallback = "auto",
     .choices = "auto|0|1|2|3|4",
     .help = "batches built ahead by a thread beside each worker; auto: 1 where cores are to spare, else 0"},
    {.name = "timeout",
     AT(timeout_s),
     .type = OPTION_REAL,
     .fallback = "60",
     .least = 0.1,
     .most = 1e6,
     .unit = "s",
     .help = "a wait gives up after this long without a sign of life"},
    {.name = "on-loss",
     AT(on_loss),
     .type = OPTION_CHOICE,
     .fallback = "auto",
     .choices = "auto|stop|continue",
     .help =
         "when a worker's device fails, or it falls silent: end, or go on with the others; auto: end only "
         "where all step together"},
    {.name = "fail", TEXT(fail), .help = "a fault put in: worker:1@step:50 ends there with an error"},
    {.name = "stall",
     TEXT(stall),
     .help = "a fault put in: worker:1@step:50 stands still there; server:0 or server from the start"},
    {.name = "slow", TEXT(slow), .help = "a fault put in: cpu:1=3x computes three times as long"},
    {.name = "kernels",
     AT(kernels),
     .type = OPTION_CHOICE,
     .fallback = "auto",
     .choices = "auto|reference",
     .help = "reference: the plain kernels only"},
    {.name = "precision",
     AT(precision_given),
     .type = OPTION_CHOICE,
     .fallback = "auto",
#if DEVICES_MAY_BE_GPUS
     .choices = "auto|fp32|bf16|tf32",
     .help = "of matrix products and of the values between layers; tf32: of products on GPUs only; auto: "
             "fp32, or that of the run that goes on"},
    {.name = "homes",
     AT(homes),
     .type = OPTION_CHOICE,
     .fallback = "auto",
     .choices = "auto|cpu|gpu",
     .help =
         "where the shards live; auto: on the workers' GPUs, dealt in turn, when all workers are on GPUs"},
    {.name = "links",
     AT(links),
     .type = OPTION_CHOICE,
     .fallback = "auto",
     .choices = "auto|copies|collective",
     .help = "how sync makes a round's mean; auto: the GPUs together where each worker has one of its own"},
    {.name = "deterministic",
     AT(deterministic),
     .type = OPTION_FLAG,
     .help = "GPUs choose how to compute by rule, not by measurement: the same bits in every run"},
    {.name = "without-kernel",
     TEXT(without),
     .help = "gpu:lrn,gpu:maxpool: as if GPUs had no kernel for these operations, which the CPU then does"},
    {.name = "no-soft-placement",
     AT(hard),
     .type = OPTION_FLAG,
     .help = "an operation that a device has no kernel for is an error"},
#else
     .choices = "auto|fp32|bf16",
     .help = "of matrix products and of the values between layers; bf16 needs a processor that has it; auto: "
             "fp32, or that of the run that goes on"},
#endif
    {.name = "explain",
     AT(explain),
     .type = OPTION_FLAG,
     .help = "first print what a device runs in a step: operations, kernels, bytes, times"},
    {.name = "out",
     TEXT(out),
     .help = "folder for logs, model and checkpoint (default runs/<time>-<model>-<strategy>)"},
    {.name = "resume",
     TEXT(resume),
     .help =
         "go on from the checkpoint in this folder, with its settings where none are given (not data-dir, "
         "devices, threads)"},
    {.name = "weights",
     TEXT(weights),
     .help = "start from the weights in this .safetensors file, matched by name"},
    {.name = "checkpoint-every",
     AT(checkpoint_every_s),
     .type = OPTION_REAL,
     .fallback = "60",
     .least = 0,
     .most = 1e9,
     .unit = "s",
     .help = "time between checkpoints; there is always one at the end (0: only that)"},
    {.name = "log-every",
     AT(log_every),
     .type = OPTION_INT,
     .fallback = "1",
     .least = 0,
     .most = 1000000000,
     .unit = "steps",
     .help = "a row of steps.csv every N steps of a worker (0: none)"},
    {.name = "print-every",
     AT(print_every),
     .type = OPTION_INT,
     .fallback = "100",
     .least = 0,
     .most = 1000000000,
     .unit = "steps",
     .help = "a printed line every N steps of a worker (0: none)"},
    {.name = "target-accuracy",
     AT(target_accuracy),
     .type = OPTION_REAL,
     .least = 0,
     .most = 1,
     .help = "note when an epoch first ends with this test accuracy, and go on (default none)"},
    {.name = "quiet", AT(quiet), .type = OPTION_FLAG, .help = "no progress and no step lines, only results"},
    CLUSTER_ROWS(offsetof(struct run_settings, cluster)),
    {.name = "start-timeout",
     AT(start_timeout_s),
     .type = OPTION_REAL,
     .fallback = "600",
     .least = 0.1,
     .most = 1e6,
     .unit = "s",
     .help = "for all to start: workers to make their programs, in a cluster every process to come"},
    {0},
};

int settings_shards(const struct run_settings *settings, const struct strategy *strategy,
                    const void *strategy_settings) {
    const int servers = settings->servers > 0 ? settings->servers : 1;
    int shards = settings->shards;
    if (shards == 0) shards = strategy->shards ? strategy->shards(strategy_settings) : 1;
    return (shards + servers - 1) / servers * servers;
}

static const char *saved(const struct safetensors *checkpoint, const char *name) {
    return checkpoint ? safetensors_text(checkpoint, name) : NULL;
}

static void settle_text(char *field, size_t bytes, const char *from_checkpoint, const char *usual) {
    if (field[0] == '\0') snprintf(field, bytes, "%s", from_checkpoint ? from_checkpoint : usual);
}

static double settle_number(double given, const char *from_checkpoint, double usual) {
    if (given > 0.0) return given;
    return from_checkpoint ? strtod(from_checkpoint, NULL) : usual;
}

/* For numbers of which 0 is one: NAN was not given. */
static double settle_real(double given, const char *from_checkpoint) {
    if (!isnan(given)) return given;
    return from_checkpoint ? strtod(from_checkpoint, NULL) : 0.0;
}

static int settle_precision(struct run_settings *settings, const char *from_checkpoint, struct error *error) {
    settings->precision = settings->precision_given > 0 ? settings->precision_given - 1 : PRECISION_FP32;
    if (settings->precision_given > 0 || !from_checkpoint) return OK;
    for (int p = PRECISION_FP32; p <= PRECISION_TF32; p++)
        if (strcmp(from_checkpoint, precision_name((enum precision)p)) == 0) {
            settings->precision = p;
            return OK;
        }
    return error_set(error, ERROR_FILE, "%s: its precision is '%s', expected fp32, bf16 or tf32",
                     settings->resume, from_checkpoint);
}

int settings_resolve(struct run_settings *settings, const struct safetensors *checkpoint,
                     struct error *error) {
    settle_text(settings->model, sizeof settings->model, saved(checkpoint, "model"), "mlp");
    settle_text(settings->dataset, sizeof settings->dataset, saved(checkpoint, "dataset"), "digits");
    settle_text(settings->strategy, sizeof settings->strategy, saved(checkpoint, "strategy"), "sync");
    settle_text(settings->optimizer, sizeof settings->optimizer, saved(checkpoint, "optimizer"),
                "momentum:rate=0.1");
    settle_text(settings->schedule, sizeof settings->schedule, saved(checkpoint, "schedule"), "constant");
    settings->epochs = (int)settle_number(settings->epochs_given, saved(checkpoint, "epochs"), 60);
    settings->batch = (int)settle_number(settings->batch_given, saved(checkpoint, "batch"), 32);
    settings->seed = (long)settle_number((double)settings->seed_given, saved(checkpoint, "seed"), 1);
    settings->clip = settle_real(settings->clip_given, saved(checkpoint, "clip"));
    settings->decay = settle_real(settings->decay_given, saved(checkpoint, "decay"));
    settings->average = settle_real(settings->average_given, saved(checkpoint, "average"));
    const char *sharding = saved(checkpoint, "sharding");
    settings->sharding = settings->sharding_given > 0 ? settings->sharding_given - 1
                         : sharding                   ? (int)strtol(sharding, NULL, 10)
                                                      : 0;
    RETURN_IF(settle_precision(settings, saved(checkpoint, "precision"), error));
    settings->patience_s =
        3.0 * settings->timeout_s; /* others may be waited for meanwhile, or the ps evaluates */
    if (settings->resume[0] && settings->weights[0])
        return error_set(error, ERROR_USAGE,
                         "--resume and --weights: expected one of them, both say where to start");
    return OK;
}

int settings_folder(struct run_settings *settings, const char *model, const char *what, struct error *error) {
    const time_t now = (time_t)world_utc_seconds();
    struct tm parts;
    char stamp[32];
    if (settings->out[0]) return OK;
    if (!gmtime_r(&now, &parts) || strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &parts) == 0)
        return error_set(error, ERROR_INTERNAL, "the time of day cannot be written as a date");
    snprintf(settings->out, sizeof settings->out, "runs/%s-%s-%s", stamp, model, what);
    return OK;
}

/* What a strategy cannot do over several parameter servers. */
static int check_servers(const struct run_settings *settings, const struct choice *choice,
                         struct error *error) {
    const struct strategy *strategy = (const struct strategy *)(const void *)choice->plugin;
    if (settings->servers < 2 || !strategy_traits(strategy, choice->settings)->drops) return OK;
    if (settings->mirrored)
        return error_set(
            error, ERROR_USAGE,
            "--strategy=%s: expected one parameter server, found none: which gradient is late is "
            "decided in one place",
            settings->strategy);
    return error_set(error, ERROR_USAGE,
                     "--strategy=%s: expected one parameter server, found %d: which gradient is late is "
                     "decided in one place",
                     settings->strategy, settings->servers);
}

int settings_choose(const struct run_settings *settings, struct choices *choices, struct error *error) {
    RETURN_IF(plugin_choose(&choices->model, (const void *const *)models, "model", settings->model, error));
    RETURN_IF(
        plugin_choose(&choices->dataset, (const void *const *)datasets, "dataset", settings->dataset, error));
    RETURN_IF(plugin_choose(&choices->strategy, (const void *const *)strategies, "strategy",
                            settings->strategy, error));
    RETURN_IF(check_servers(settings, &choices->strategy, error));
    RETURN_IF(plugin_choose(&choices->optimizer, (const void *const *)optimizers, "optimizer",
                            settings->optimizer, error));
    return plugin_choose(&choices->schedule, (const void *const *)schedules, "schedule", settings->schedule,
                         error);
}
