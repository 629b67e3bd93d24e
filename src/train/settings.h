/* The settings of a run: what the command line says, what a checkpoint that is resumed says, and the
 * defaults, in that order. */
#ifndef TRAINER_TRAIN_SETTINGS_H
#define TRAINER_TRAIN_SETTINGS_H

#include "../base/file.h"
#include "../base/option.h"
#include "../bridge/cluster.h"
#include "../output/safetensors.h"

enum homes { HOMES_AUTO, HOMES_CPU, HOMES_GPU };

/* As typed; texts that are empty and `given` numbers that are 0 (clip, decay and average: NAN) were not
 * given. */
struct run_settings {
    char model[512], dataset[1024], data_dir[PATH_BYTES], strategy[512], devices[512];
    char optimizer[512], schedule[512];
    int kernels, threads;
    int homes; /* enum homes */
    int links; /* enum links of the store */
    bool deterministic, hard;
    char without[256];
    int epochs_given, batch_given;
    long seed_given;
    double clip_given, decay_given, average_given;
    int sharding_given; /* position in "auto|shared|split|all" */
    int shards, shard_by, slots;
    int prefetch; /* position in "auto|0|1|2|3|4" */
    double timeout_s;
    char fail[256], stall[256], slow[256];
    int on_loss; /* position in "auto|stop|continue" */
    char out[PATH_BYTES], resume[PATH_BYTES], weights[PATH_BYTES];
    double checkpoint_every_s;
    int log_every, print_every;
    bool quiet, explain;
    int precision_given; /* position in "auto|fp32|bf16|tf32" */
    struct cluster_settings cluster;
    double start_timeout_s;
    double target_accuracy; /* when the test accuracy first reaches it is noted; NAN: not asked */
    /* settled by settings_resolve */
    int epochs, batch;
    long seed;
    double clip, decay, average;
    int sharding;                 /* enum data_sharding */
    int precision;                /* enum precision */
    double patience_s;            /* of the bridge, for a peer's next word */
    const struct cluster *hosted; /* NULL: workers are threads of this process; else those of the cluster */
    bool mirrored;                /* the parameter servers are in the workers' processes */
    int servers;                  /* parameter servers of the cluster; 0: none */
    const _Atomic bool *give_up;  /* set when the rest of this process has failed; NULL: there is none */
};

extern const struct option run_options[];

/* Fills what was not given from the texts of a checkpoint (NULL: none), then from the defaults. */
int settings_resolve(struct run_settings *settings, const struct safetensors *checkpoint,
                     struct error *error);

/* `out`, when it was not given: runs/<time>-<model>-<what>. */
int settings_folder(struct run_settings *settings, const char *model, const char *what, struct error *error);

struct strategy;
/* How many shards: --shards, or what the strategy likes; over several parameter servers as many at each. */
int settings_shards(const struct run_settings *settings, const struct strategy *strategy,
                    const void *strategy_settings);

/* The plug-ins that were chosen. */
struct choices {
    struct choice model, dataset, strategy, optimizer, schedule;
};
int settings_choose(const struct run_settings *settings, struct choices *choices, struct error *error);

#endif
