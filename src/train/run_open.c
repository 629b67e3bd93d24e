/* A run opened, from settings to waiting workers, and closed in reverse order. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "explain.h"
#include "run_parts.h"

/* In a mirrored cluster all processes may have been told the same one: that is the chief's, theirs are in it.
 */
static int default_folder(struct run_settings *settings, const struct choices *choices, struct error *error) {
    if (!settings->out[0] && settings->resume[0]) checkpoint_run(settings->resume, settings->out);
    RETURN_IF(settings_folder(settings, choices->model.plugin->name, choices->strategy.plugin->name, error));
    if (!settings->mirrored || settings->hosted->task == 0) return OK;
    char name[32], folder[PATH_BYTES];
    snprintf(name, sizeof name, "worker-%d", settings->hosted->task);
    RETURN_IF(file_join(folder, settings->out, name, error));
    memcpy(settings->out, folder, sizeof folder);
    return OK;
}

/* What auto and cpu:* have become is what the run says of itself from here on. */
static void name_devices(struct run *run) {
    char names[sizeof run->settings.devices] = "";
    size_t used = 0;
    for (int d = 0; d < run->device_count && used < sizeof names; d++)
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s%s", d ? "," : "", run->devices[d].name);
    if (used < sizeof names) memcpy(run->settings.devices, names, sizeof names);
}

static int open_devices(struct run *run, struct error *error) {
    const struct device_settings settings = {.reference_only = run->settings.kernels == 1,
                                             .threads = run->settings.threads,
                                             .precision = (enum precision)run->settings.precision,
                                             .deterministic = run->settings.deterministic,
                                             .hard = run->settings.hard,
                                             .without = run->settings.without};
    void *block = NULL;
    bool shared = false;
    RETURN_IF(
        devices_open(run->settings.devices, &settings, &run->devices, &run->device_count, &shared, error));
    if (!run->settings.hosted) run->workers = run->device_count;
    run->cores_shared = shared && !run->settings.hosted;
    name_devices(run);
    RETURN_IF(memory_zeroed(&block, (size_t)run->workers, sizeof(char *), "device names", error));
    run->device_names = block;
    RETURN_IF(memory_zeroed(&block, (size_t)run->workers, sizeof(struct cores), "cores", error));
    run->cores = block;
    for (int w = 0; w < run->workers; w++) {
        run->device_names[w] = run->devices[w].name;
        if (run->devices[w].pinned) run->cores[w] = run->devices[w].cores;
    }
    return OK;
}

static void say_words(void *argument, const char *words) {
    struct run *run = argument;
    if (words[0] != '\0') progress_say(&run->progress, "%s", words);
}

static struct rules rules_of(const struct run *run, int shards) {
    const struct run_settings *settings = &run->settings;
    struct rules rules = {.shards = shards,
                          .shard_by = settings->shard_by,
                          .slots = settings->slots,
                          .epochs = settings->epochs,
                          .sharding = settings->sharding,
                          .seed = (uint64_t)settings->seed,
                          .decay = settings->decay,
                          .average = settings->average};
    snprintf(rules.strategy, sizeof rules.strategy, "%s", settings->strategy);
    snprintf(rules.optimizer, sizeof rules.optimizer, "%s", settings->optimizer);
    snprintf(rules.schedule, sizeof rules.schedule, "%s", settings->schedule);
    return rules;
}

/* The workers are those who come; the devices of this process only evaluate. */
static int open_host(struct run *run, int shards, struct error *error) {
    const struct run_settings *settings = &run->settings;
    const struct cluster *cluster = settings->hosted;
    void *block = NULL;
    terms_fill(&run->terms, settings, &run->network, &run->dataset);
    run->rules = rules_of(run, shards);
    progress_say(&run->progress, "the %s %s waits for %d worker%s", cluster_server(cluster),
                 cluster->ps.list[cluster->task].text, cluster->workers.count,
                 cluster->workers.count == 1 ? "" : "s");
    const struct host_settings host = {.world = run->world,
                                       .cluster = cluster,
                                       .terms = &run->terms,
                                       .rules = &run->rules,
                                       .start_s = settings->start_timeout_s,
                                       .patience_s = settings->timeout_s,
                                       .give_up = settings->give_up,
                                       .say = say_words,
                                       .argument = run};
    RETURN_IF(host_open(&run->host, &host, error));
    run->workers = run->host.count;
    RETURN_IF(memory_zeroed(&block, (size_t)run->workers, sizeof(char *), "device names", error));
    memory_free((void *)run->device_names);
    run->device_names = block;
    for (int w = 0; w < run->workers; w++) run->device_names[w] = run->host.peers[w].device_name;
    return OK;
}

/* The rest of this process's part in a cluster: it hosts. */
static int open_hosting(struct run *run, struct error *error) {
    run->host.roster = &run->roster;
    const struct hosting hosting = {.host = &run->host,
                                    .store = &run->store,
                                    .dealer = &run->dealer,
                                    .roster = &run->roster,
                                    .patience_s = run->settings.timeout_s,
                                    .fetch_s = run->settings.patience_s};
    return hosting_open(&run->hosting, &hosting, error);
}

static int welcome_all(struct run *run, struct error *error) {
    const struct welcome welcome = {.seed = (uint64_t)run->settings.seed,
                                    .sharding = run->settings.sharding,
                                    .clip = run->settings.clip,
                                    .begin = run->store.begin,
                                    .end = run->store.end};
    RETURN_IF(host_welcome(&run->host, &welcome, error));
    run->hosting.sent_before = host_sent(&run->host);
    run->hosting.received_before = host_received(&run->host);
    return hosting_spread(&run->hosting, false, error);
}

static int open_roster(struct run *run, int shards, struct error *error) {
    const int servers = training_servers(&run->choices.strategy, shards, run->workers);
    RETURN_IF(roster_open(&run->roster, run->world, run->workers, servers, run->settings.timeout_s, error));
    for (int w = 0; w < run->workers; w++) {
        struct member *member = &run->roster.members[w];
        if (run->settings.hosted)
            snprintf(member->name, sizeof member->name, "%.39s", run->host.peers[w].name);
        else
            snprintf(member->name, sizeof member->name, "worker %d (%s)", w, run->devices[w].name);
    }
    return OK;
}

static int shards_of(const struct run *run) {
    return settings_shards(&run->settings, run_strategy(run), run->choices.strategy.settings);
}

static struct network_settings network_settings_of(const struct run *run, int shards) {
    return (struct network_settings){.model = &run->choices.model,
                                     .shape = run->dataset.shape,
                                     .classes = run->dataset.classes,
                                     .batch = run->settings.batch,
                                     .training = true,
                                     .seed = (uint64_t)run->settings.seed,
                                     .decay = run->settings.decay,
                                     .shards = shards,
                                     .shard_by = (enum shard_by)run->settings.shard_by};
}

static int open_dealer(struct run *run, struct error *error) {
    const struct safetensors *checkpoint = run->settings.resume[0] ? &run->checkpoint : NULL;
    const struct stream stream = {.seed = (uint64_t)run->settings.seed,
                                  .examples = run->dataset.train.count,
                                  .batch = run->settings.batch,
                                  .workers = run->workers,
                                  .sharding = (enum data_sharding)run->settings.sharding};
    const struct traits *traits = run_traits(run);
    void *block = NULL;
    if (run->settings.batch > run->dataset.train.count)
        return error_set(error, ERROR_USAGE, "--batch=%d: expected at most %d, the training examples of %s",
                         run->settings.batch, run->dataset.train.count, run->dataset.name);
    if (stream.sharding == SHARDING_SPLIT && run->dataset.train.count < run->workers)
        return error_set(error, ERROR_USAGE, "--data-sharding=split: %d examples for %d workers",
                         run->dataset.train.count, run->workers);
    RETURN_IF(memory_zeroed(&block, (size_t)run->workers, sizeof(long), "positions", error));
    long base = 0;
    if (checkpoint) resume_position(checkpoint, &stream, &base, block);
    const int code =
        dealer_open(&run->dealer, &stream, traits->rounds, run->settings.epochs, base, block, error);
    memory_free(block);
    return code;
}

/* Evaluation has all the cores of the run's devices for itself. */
static int open_evaluator(struct run *run, int shards, struct error *error) {
    const struct network_settings settings = network_settings_of(run, shards);
    struct device device = run->devices[0];
    device.threads = 0;
    for (int d = 0; d < run->device_count; d++) device.threads += run->devices[d].threads;
    struct cores all;
    world_cores(&all);
    if (device.threads > all.count) device.threads = all.count;
    return evaluator_open(&run->evaluator, &settings, &device, error);
}

/* Where all cores compute, a feeder could only take time from a worker; and handing a batch over takes longer
 * than building a small one. Measured on two cores: 8 KB, four times slower; 313 KB, 2 % faster. */
enum { FEED_BYTES = 1 << 18 };

static int prefetch_of(const struct run *run) {
    if (run->settings.hosted) return 0; /* the workers build their batches */
    if (run->settings.prefetch > 0) return run->settings.prefetch - 1;
    const size_t numbers = (size_t)run->settings.batch * (size_t)run->dataset.train.features;
    struct cores all;
    int computing = 0;
    if (numbers * sizeof(float) < FEED_BYTES) return 0;
    world_cores(&all);
    for (int w = 0; w < run->workers; w++) computing += run->devices[w].threads;
    return all.count > computing ? 1 : 0;
}

static void clear_progress(void *run) {
    progress_clear(&((struct run *)run)->progress);
}

/* What an earlier run left in this folder and this one writes at its end only: until then it would pass for
 * this one's. */
static int remove_earlier(const struct run *run, struct error *error) {
    static const char *const names[] = {"summary.json", "model.safetensors", "checkpoint/state.safetensors"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        RETURN_IF(file_join(path, run->settings.out, names[i], error));
        if (file_exists(path) && remove(path) != 0)
            return error_set(error, ERROR_FILE, "%s: an earlier run's, and cannot be removed: %s", path,
                             strerror(errno));
    }
    return OK;
}

static int open_output(struct run *run, struct error *error) {
    char path[PATH_BYTES];
    const bool quiet = run->settings.quiet;
    RETURN_IF(file_make_folder(run->settings.out, error));
    RETURN_IF(file_hold(&run->folder, run->settings.out, error));
    RETURN_IF(file_join(path, run->settings.out, "summary.json", error));
    if (!run->settings.resume[0] && file_exists(path))
        progress_say(&run->progress, "%s has an earlier run, which this one replaces", run->settings.out);
    if (!run->settings.resume[0]) RETURN_IF(remove_earlier(run, error));
    RETURN_IF(file_join(path, run->settings.out, "steps.csv", error));
    if (run->settings.resume[0]) RETURN_IF(file_keep(path, error)); /* the log of the part before */
    RETURN_IF(log_open(&run->log, run->workers, run->device_names, run->settings.log_every > 0 ? path : NULL,
                       run->settings.log_every, quiet || run->settings.hosted ? 0 : run->settings.print_every,
                       stdout, error));
    for (int w = 0; w < run->workers; w++) run->log.printed[w].time_s = run->seconds_before;
    run->log.before_lines = clear_progress;
    run->log.before_argument = run;
    RETURN_IF(file_join(path, run->settings.out, "epochs.csv", error));
    if (run->settings.resume[0]) RETURN_IF(file_keep(path, error));
    return epochs_open(&run->epochs, path, error);
}

static void say_start(struct run *run, int shards) {
    const struct layout *layout = &run->network.graph.layout;
    const struct dataset *dataset = &run->dataset;
    char workers[200] = "", homes[200];
    const bool narrow = run->settings.precision != PRECISION_FP32;
    store_name_homes(&run->store, homes, sizeof homes);
    for (int w = 0; w < run->workers; w++) {
        const size_t used = strlen(workers);
        if (used + 40 > sizeof workers) break;
        if (run->settings.hosted)
            snprintf(workers + used, sizeof workers - used, "%s%s", w ? ", " : "", run->host.peers[w].name);
        else
            snprintf(workers + used, sizeof workers - used, "%s%s x%d", w ? ", " : "", run->devices[w].name,
                     run->devices[w].threads);
    }
    progress_say(&run->progress, "%s (%zu parameters) on %s (%d train, %d test examples, %d classes)",
                 run->settings.model, layout->parameters, run->settings.dataset, dataset->train.count,
                 dataset->test.count, dataset->classes);
    progress_say(&run->progress, "%s, %d %s (%s), %d shard%s%s%s; batch %d x %d = %d%s%s, %s, %s, seed %ld",
                 run->settings.strategy, run->workers, run->workers == 1 ? "worker" : "workers", workers,
                 shards, shards == 1 ? "" : "s", homes[0] ? " on " : "", homes, run->settings.batch,
                 run->workers, run->settings.batch * run->workers, narrow ? " in " : "",
                 narrow ? precision_name((enum precision)run->settings.precision) : "",
                 run->settings.optimizer, run->settings.schedule, run->settings.seed);
    if (run->store.link[0]) progress_say(&run->progress, "the mean of a round: %s", run->store.link);
    if (run->settings.average > 0.0)
        progress_say(&run->progress, "tested and kept: the moving average of the weights, decay %g",
                     run->settings.average);
    if (run->cores_shared) progress_say(&run->progress, "more devices than cores: they share them");
    progress_say(&run->progress, "logs, model and checkpoint go to %s", run->settings.out);
}

/* Where the shards live, and how the mean of a round is made, when that is more than the host's memory. */
static void explain_store(const struct run *run) {
    char homes[200];
    store_name_homes(&run->store, homes, sizeof homes);
    if (homes[0]) printf("shards: %d on %s\n", run->store.settings.shards, homes);
    if (run->store.link[0]) printf("mean of a round: %s\n", run->store.link);
}

/* A run that is to go on in its own folder and has been through all its epochs. */
static bool is_over(const struct run *run) {
    const struct run_settings *settings = &run->settings;
    return settings->resume[0] && !settings->hosted && strcmp(settings->resume, settings->out) == 0 &&
           dealer_reached(&run->dealer, settings->epochs - 1);
}

static int open_faults(struct run *run, struct faults *faults, struct error *error) {
    const struct run_settings *settings = &run->settings;
    const int servers = run->roster.count - run->roster.workers;
    void *block = NULL;
    RETURN_IF(faults_parse(faults, settings->fail, settings->stall, settings->slow, error));
    RETURN_IF(faults_check(faults, run->device_names, run->workers, servers, error));
    RETURN_IF(memory_zeroed(&block, (size_t)run->workers, sizeof(double), "the workers' slowness", error));
    run->slowness = block;
    for (int w = 0; w < run->workers; w++) run->slowness[w] = faults_factor(faults, run->device_names[w]);
    RETURN_IF(memory_zeroed(&block, (size_t)run->workers, sizeof(bool), "who was lost", error));
    run->lost = block;
    return OK;
}

/* Where all step together, one who is missing is missed. */
static bool goes_on(const struct run *run) {
    enum { AUTO, STOP, CONTINUE };
    const struct traits *traits = run_traits(run);
    return run->settings.on_loss == CONTINUE || (run->settings.on_loss == AUTO && !traits->rounds);
}

bool run_follows(const struct run *run) {
    return run->settings.hosted && run->settings.hosted->task > 0;
}

int run_open(struct run *run, struct error *error) {
    struct run_settings *settings = &run->settings;
    if (settings->resume[0]) {
        RETURN_IF(checkpoint_read(settings->resume, &run->checkpoint, error));
        run->seconds_before = resume_real(&run->checkpoint, "train_seconds", 0.0);
    }
    RETURN_IF(settings_resolve(settings, settings->resume[0] ? &run->checkpoint : NULL, error));
    RETURN_IF(settings_choose(settings, &run->choices, error));
    RETURN_IF(default_folder(settings, &run->choices, error));
    RETURN_IF(open_devices(run, error));
    RETURN_IF(dataset_open(&run->dataset, &run->choices.dataset,
                           settings->data_dir[0] ? settings->data_dir : NULL, error));
    const int shards = shards_of(run);
    const struct network_settings network = network_settings_of(run, shards);
    RETURN_IF(network_open(&run->network, &network, error));
    RETURN_IF(world_open_threads(&run->world, error));
    if (settings->hosted) RETURN_IF(open_host(run, shards, error));
    RETURN_IF(open_roster(run, run_shards_here(run, shards), error));
    RETURN_IF(open_dealer(run, error));
    RETURN_IF(run_open_store(run, shards, error));
    RETURN_IF(open_evaluator(run, shards, error));
    const int prefetch = prefetch_of(run);
    if (settings->hosted)
        RETURN_IF(open_hosting(run, error));
    else
        RETURN_IF(replicas_open(&run->replicas, &run->network, run->devices, run->workers,
                                &run->dataset.train, settings->batch, prefetch + 1, error));
    if (!settings->hosted) {
        run->replicas.store = &run->store;
        run->replicas.traits = run_traits(run);
    }
    struct faults faults;
    RETURN_IF(open_faults(run, &faults, error));
    run->nothing_left = is_over(run);
    if (!run_follows(run) && !run->nothing_left) {
        RETURN_IF(open_output(run, error));
        say_start(run, shards);
    }
    if (settings->explain) explain_store(run);
    if (settings->explain && !settings->hosted)
        RETURN_IF(explain_network(&run->network, &run->devices[0], &run->dataset.train, settings->batch,
                                  run->world, stdout, error));
    const struct training_settings training = {
        .world = run->world,
        .roster = &run->roster,
        .store = &run->store,
        .strategy = &run->choices.strategy,
        .dealer = &run->dealer,
        .compute = settings->hosted ? hosting_compute(&run->hosting) : replicas_compute(&run->replicas),
        .log = run_follows(run) || run->nothing_left ? NULL : &run->log,
        .devices = settings->hosted ? NULL : run->devices,
        .cores = settings->hosted ? NULL : run->cores,
        .seconds_before = run->seconds_before,
        .go_on = goes_on(run),
        .ending_s = ENDING_S,
        .faults = faults,
        .slowness = faults.slow_count > 0 ? run->slowness : NULL,
        .clip = settings->hosted ? 0.0f : (float)settings->clip,
        .prefetch = prefetch};
    RETURN_IF(training_open(&run->training, &training, error));
    return settings->hosted ? welcome_all(run, error) : OK;
}

void run_close(struct run *run) {
    struct error ignored = {0};
    if (run->training.settings.world) {
        world_stop(run->world);
        training_end(&run->training, &ignored);
        if (run->training.abandoned) return; /* a thread that hangs may still use any of it */
        training_close(&run->training);
    }
    progress_clear(&run->progress);
    epochs_close(&run->epochs);
    log_close(&run->log);
    file_release(run->folder);
    hosting_close(&run->hosting);
    host_close(&run->host);
    replicas_close(&run->replicas);
    evaluator_close(&run->evaluator);
    store_close(&run->store);
    dealer_close(&run->dealer);
    roster_close(&run->roster);
    world_close(run->world);
    network_close(&run->network);
    dataset_close(&run->dataset);
    memory_free(run->cores);
    memory_free(run->slowness);
    memory_free(run->lost);
    memory_free((void *)run->device_names);
    devices_close(run->devices, run->device_count);
    safetensors_free(&run->checkpoint);
}
