/* A run: opens what a training needs, coordinates it from border to border, and closes in reverse order.
 *
 * The calling thread is the coordinator. While workers run it only looks in now and then: takes rows out of the log, draws the progress, and asks for a pause when it
 * was interrupted or a checkpoint is due. While they are paused the store is its own. */
#include "run.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "../output/epochs.h"
#include "../output/progress.h"
#include "evaluate.h"
#include "replica.h"
#include "resume.h"

enum { TICK_MS = 20 };

struct run {
    struct run_settings settings;
    struct choices choices;
    struct safetensors checkpoint; /* that is resumed, or zero */
    struct dataset dataset;
    struct device *devices;
    int workers;
    struct world *world;
    struct roster roster;
    struct network network;
    struct store store;
    struct dealer dealer;
    struct replicas replicas;
    struct evaluator evaluator;
    struct training training;
    struct log log;
    struct epochs epochs;
    struct progress progress;
    const char **device_names; /* [workers] */
    struct cores *cores;       /* [workers] */
    struct evaluation tested;
    int epoch;                 /* epochs complete */
    long long examples_before; /* of earlier parts of this training, when resumed */
    double seconds_before;
    double checkpoint_s;       /* world time of the last checkpoint */
    double epoch_s;            /* training seconds when the epoch began */
    long long epoch_examples;
    bool interrupted;
};

/* --- opening --- */

static int default_folder(struct run_settings *settings, const struct choices *choices, struct error *error)
{
    if (settings->out[0]) return OK;
    if (settings->resume[0]) {
        snprintf(settings->out, sizeof settings->out, "%s", settings->resume);
        return OK;
    }
    const time_t now = (time_t)world_utc_seconds();
    struct tm parts;
    char stamp[32];
    if (!gmtime_r(&now, &parts) || strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &parts) == 0)
        return error_set(error, ERROR_INTERNAL, "the time of day cannot be written as a date");
    snprintf(settings->out, sizeof settings->out, "runs/%s-%s-%s", stamp, choices->model.plugin->name, choices->strategy.plugin->name);
    return OK;
}

static int open_devices(struct run *run, struct error *error)
{
    const struct device_settings settings = {.reference_only = run->settings.kernels == 1, .threads = run->settings.threads};
    void *block = NULL;
    bool shared = false;
    RETURN_IF(devices_open(run->settings.devices, &settings, &run->devices, &run->workers, &shared, error));
    if (shared) progress_say(&run->progress, "more devices than cores: they share them");
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

static int open_roster(struct run *run, int shards, struct error *error)
{
    const int servers = training_servers(&run->choices.strategy, shards, run->workers);
    RETURN_IF(roster_open(&run->roster, run->world, run->workers, servers, run->settings.timeout_s, error));
    for (int w = 0; w < run->workers; w++)
        snprintf(run->roster.members[w].name, sizeof run->roster.members[w].name, "worker %d (%s)", w, run->devices[w].name);
    return OK;
}

static const struct strategy *strategy_of(const struct run *run)
{
    return (const struct strategy *)(const void *)run->choices.strategy.plugin;
}

static struct network_settings network_settings_of(const struct run *run, int shards)
{
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

static int open_dealer(struct run *run, struct error *error)
{
    const struct safetensors *checkpoint = run->settings.resume[0] ? &run->checkpoint : NULL;
    const struct stream stream = {.seed = (uint64_t)run->settings.seed,
                                  .examples = run->dataset.train.count,
                                  .batch = run->settings.batch,
                                  .workers = run->workers,
                                  .sharding = (enum data_sharding)run->settings.sharding};
    const struct traits *traits = strategy_of(run)->traits(run->choices.strategy.settings);
    void *block = NULL;
    if (run->settings.batch > run->dataset.train.count)
        return error_set(error, ERROR_USAGE, "--batch=%d: expected at most %d, the training examples of %s", run->settings.batch,
                         run->dataset.train.count, run->dataset.name);
    if (stream.sharding == SHARDING_SPLIT && run->dataset.train.count < run->workers)
        return error_set(error, ERROR_USAGE, "--data-sharding=split: %d examples for %d workers", run->dataset.train.count,
                         run->workers);
    RETURN_IF(memory_zeroed(&block, (size_t)run->workers, sizeof(long), "positions", error));
    long base = 0;
    if (checkpoint) {
        base = (long)resume_number(checkpoint, "position", 0);
        resume_own(checkpoint, run->workers, block);
    }
    const int code = dealer_open(&run->dealer, &stream, traits->rounds, run->settings.epochs, base, block, error);
    memory_free(block);
    return code;
}

/* Weights, optimizer state and version: new, from --weights, or from the checkpoint. */
static int fill_store(struct run *run, struct error *error)
{
    const struct layout *layout = &run->network.graph.layout;
    const struct optimizer *optimizer = (const struct optimizer *)(const void *)run->choices.optimizer.plugin;
    layout_initialize(layout, (uint64_t)run->settings.seed, run->store.weights);
    if (run->settings.weights[0]) {
        struct safetensors given = {0};
        int code = safetensors_read(run->settings.weights, &given, error);
        if (code == OK) code = checkpoint_load(run->settings.weights, &given, "", layout, true, run->store.weights, error);
        safetensors_free(&given);
        return code;
    }
    if (!run->settings.resume[0]) return OK;
    RETURN_IF(checkpoint_load(run->settings.resume, &run->checkpoint, "", layout, false, run->store.weights, error));
    store_set_version(&run->store, (long)resume_number(&run->checkpoint, "version", 0));
    const char *saved = safetensors_text(&run->checkpoint, "optimizer");
    const size_t name = strlen(optimizer->plugin.name);
    if (!saved || strncmp(saved, optimizer->plugin.name, name) != 0 || (saved[name] != '\0' && saved[name] != ':')) {
        progress_say(&run->progress, "optimizer %s starts afresh: the checkpoint has the state of %s", optimizer->plugin.name,
                     saved ? saved : "none");
        return OK;
    }
    for (int m = 0; m < optimizer->moments; m++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "%s:", optimizer->moment_names[m]);
        RETURN_IF(checkpoint_load(run->settings.resume, &run->checkpoint, prefix, layout, false, run->store.moments[m], error));
    }
    return OK;
}

static int open_store(struct run *run, int shards, struct error *error)
{
    const struct traits *traits = strategy_of(run)->traits(run->choices.strategy.settings);
    const struct store_settings settings = {.layout = &run->network.graph.layout,
                                            .roster = &run->roster,
                                            .shards = shards,
                                            .shard_by = (enum shard_by)run->settings.shard_by,
                                            .slots = traits->servers ? run->settings.slots : 0,
                                            .strategy = &run->choices.strategy,
                                            .optimizer = &run->choices.optimizer,
                                            .schedule = &run->choices.schedule,
                                            .total_updates = dealer_updates(&run->dealer),
                                            .finished = training_finished,
                                            .finished_argument = &run->training};
    RETURN_IF(store_open(&run->store, &settings, error));
    return fill_store(run, error);
}

/* Evaluation has all the cores of the run's devices for itself. */
static int open_evaluator(struct run *run, int shards, struct error *error)
{
    const struct network_settings settings = network_settings_of(run, shards);
    struct device device = run->devices[0];
    device.threads = 0;
    for (int w = 0; w < run->workers; w++) device.threads += run->devices[w].threads;
    struct cores all;
    world_cores(&all);
    if (device.threads > all.count) device.threads = all.count;
    return evaluator_open(&run->evaluator, &settings, &device, error);
}

static void clear_progress(void *run) { progress_clear(&((struct run *)run)->progress); }

static int open_output(struct run *run, struct error *error)
{
    char path[PATH_BYTES];
    const bool quiet = run->settings.quiet;
    RETURN_IF(file_make_folder(run->settings.out, error));
    RETURN_IF(file_join(path, run->settings.out, "steps.csv", error));
    RETURN_IF(log_open(&run->log, run->workers, run->device_names, run->settings.log_every > 0 ? path : NULL, run->settings.log_every,
                       quiet ? 0 : run->settings.print_every, stdout, error));
    run->log.before_lines = clear_progress;
    run->log.before_argument = run;
    RETURN_IF(file_join(path, run->settings.out, "epochs.csv", error));
    return epochs_open(&run->epochs, path, error);
}

static void say_start(struct run *run, int shards)
{
    const struct layout *layout = &run->network.graph.layout;
    const struct dataset *dataset = &run->dataset;
    char workers[200] = "";
    for (int w = 0; w < run->workers; w++) {
        const size_t used = strlen(workers);
        if (used + 40 > sizeof workers) break;
        snprintf(workers + used, sizeof workers - used, "%s%s x%d", w ? ", " : "", run->devices[w].name, run->devices[w].threads);
    }
    progress_say(&run->progress, "%s (%zu parameters) on %s (%d train, %d test examples, %d classes)", run->settings.model,
                 layout->parameters, run->settings.dataset, dataset->train.count, dataset->test.count, dataset->classes);
    progress_say(&run->progress, "%s, %d %s (%s), %d shard%s; batch %d x %d = %d, %s, %s, seed %ld", run->settings.strategy, run->workers,
                 run->workers == 1 ? "worker" : "workers", workers, shards, shards == 1 ? "" : "s", run->settings.batch, run->workers,
                 run->settings.batch * run->workers, run->settings.optimizer, run->settings.schedule, run->settings.seed);
    progress_say(&run->progress, "logs, model and checkpoint go to %s", run->settings.out);
}

static int open_run(struct run *run, struct error *error)
{
    struct run_settings *settings = &run->settings;
    if (settings->resume[0]) RETURN_IF(checkpoint_read(settings->resume, &run->checkpoint, error));
    RETURN_IF(settings_resolve(settings, settings->resume[0] ? &run->checkpoint : NULL, error));
    RETURN_IF(settings_choose(settings, &run->choices, error));
    RETURN_IF(default_folder(settings, &run->choices, error));
    RETURN_IF(open_devices(run, error));
    RETURN_IF(dataset_open(&run->dataset, &run->choices.dataset, settings->data_dir[0] ? settings->data_dir : NULL, error));
    const int shards = settings->shards > 0 ? settings->shards : strategy_of(run)->default_shards;
    const struct network_settings network = network_settings_of(run, shards);
    RETURN_IF(network_open(&run->network, &network, error));
    RETURN_IF(world_open_threads(&run->world, error));
    RETURN_IF(open_roster(run, shards, error));
    RETURN_IF(open_dealer(run, error));
    RETURN_IF(open_store(run, shards, error));
    RETURN_IF(open_evaluator(run, shards, error));
    RETURN_IF(replicas_open(&run->replicas, &run->network, run->devices, run->workers, &run->dataset.train, settings->batch, error));
    RETURN_IF(open_output(run, error));
    say_start(run, shards);
    const struct training_settings training = {.world = run->world,
                                               .roster = &run->roster,
                                               .store = &run->store,
                                               .strategy = &run->choices.strategy,
                                               .dealer = &run->dealer,
                                               .compute = replicas_compute(&run->replicas),
                                               .log = &run->log,
                                               .cores = run->cores,
                                               .clip = (float)settings->clip};
    return training_open(&run->training, &training, error);
}

static void close_run(struct run *run)
{
    struct error ignored = {0};
    if (run->training.settings.world) {
        world_stop(run->world);
        training_end(&run->training, &ignored);
        training_close(&run->training);
    }
    progress_clear(&run->progress);
    epochs_close(&run->epochs);
    log_close(&run->log);
    replicas_close(&run->replicas);
    evaluator_close(&run->evaluator);
    store_close(&run->store);
    dealer_close(&run->dealer);
    roster_close(&run->roster);
    world_close(run->world);
    network_close(&run->network);
    dataset_close(&run->dataset);
    memory_free(run->cores);
    memory_free((void *)run->device_names);
    memory_free(run->devices);
    safetensors_free(&run->checkpoint);
}

/* --- while it runs --- */

static long long examples_done(const struct run *run)
{
    return (long long)dealer_position(&run->dealer) * run->settings.batch;
}

static void show_progress(struct run *run)
{
    const double total = (double)dealer_total(&run->dealer) * run->settings.batch;
    const double done = (double)run->dealer.stream.batch * (double)store_version(&run->store) *
                        (run->dealer.rounds ? (double)run->workers : 1.0);
    progress_show(&run->progress, done < total ? done : total, total, training_seconds(&run->training),
                  run->epoch < run->settings.epochs ? run->epoch + 1 : run->epoch, run->settings.epochs, NAN);
}

/* Lets the workers go and looks in now and then, until all are paused or one has failed. */
static int run_segment(struct run *run, struct error *error)
{
    training_go(&run->training);
    while (!training_wait(&run->training, TICK_MS / 1e3)) {
        RETURN_IF(log_drain(&run->log, error));
        show_progress(run);
        const double every = run->settings.checkpoint_every_s;
        const bool due = every > 0.0 && world_now(run->world) - run->checkpoint_s > every;
        if (world_interrupted() || due) dealer_stop(&run->dealer);
    }
    return log_drain(&run->log, error);
}

static int finish_epoch(struct run *run, struct error *error)
{
    double sum = 0.0;
    long steps = 0;
    const double seconds = training_seconds(&run->training);
    const long long examples = examples_done(run);
    training_take_loss(&run->training, &sum, &steps);
    RETURN_IF(evaluator_run(&run->evaluator, &run->dataset.test, run->store.weights, &run->tested, error));
    const double took = seconds - run->epoch_s;
    const struct epoch_row row = {.epoch = run->epoch + 1,
                                  .time_s = run->seconds_before + seconds,
                                  .train_loss = steps > 0 ? sum / (double)steps : (double)NAN,
                                  .test_loss = run->tested.cost,
                                  .test_accuracy = run->tested.accuracy,
                                  .examples_per_s = took > 0.0 ? (double)(examples - run->epoch_examples) / took : 0.0};
    run->epoch_s = seconds;
    run->epoch_examples = examples;
    run->epoch++;
    return epochs_add(&run->epochs, &row, error);
}

static int write_checkpoint(struct run *run, bool with_model, struct error *error)
{
    const struct optimizer *optimizer = (const struct optimizer *)(const void *)run->choices.optimizer.plugin;
    const struct layout *layout = &run->network.graph.layout;
    const bool own = run->settings.sharding != SHARDING_SHARED;
    struct resume_texts texts = {0};
    long *batches = NULL;
    void *block = NULL;
    RETURN_IF(memory_zeroed(&block, (size_t)run->workers, sizeof(long), "positions", error));
    batches = block;
    for (int w = 0; w < run->workers; w++) batches[w] = dealer_own(&run->dealer, w);
    const struct standing standing = {.position = dealer_position(&run->dealer),
                                      .workers = run->workers,
                                      .own = own ? batches : NULL,
                                      .version = store_version(&run->store),
                                      .examples = examples_done(run),
                                      .train_seconds = run->seconds_before + training_seconds(&run->training)};
    int code = resume_texts_make(&texts, &run->settings, &run->dataset, &standing, error);
    const struct snapshot snapshot = {.weights = run->store.weights,
                                      .moments = optimizer->moments,
                                      .moment = {run->store.moments[0], run->store.moments[1]},
                                      .moment_name = {optimizer->moment_names[0], optimizer->moment_names[1]},
                                      .texts = texts.entries,
                                      .text_count = texts.count};
    if (code == OK) code = checkpoint_write(run->settings.out, layout, &snapshot, error);
    if (code == OK && with_model) {
        char path[PATH_BYTES];
        code = file_join(path, run->settings.out, "model.safetensors", error);
        if (code == OK) code = model_write(path, layout, run->store.weights, texts.entries, texts.count, error);
    }
    resume_texts_free(&texts);
    memory_free(batches);
    run->checkpoint_s = world_now(run->world);
    return code;
}

static int coordinate(struct run *run, struct error *error)
{
    while (run->epoch < run->settings.epochs && dealer_reached(&run->dealer, run->epoch)) run->epoch++; /* resumed */
    while (run->epoch < run->settings.epochs && !run->interrupted) {
        dealer_set_limit(&run->dealer, run->epoch);
        RETURN_IF(run_segment(run, error));
        if (training_failed(&run->training)) return training_end(&run->training, error);
        run->interrupted = world_interrupted() && !dealer_reached(&run->dealer, run->settings.epochs - 1);
        while (run->epoch < run->settings.epochs && dealer_reached(&run->dealer, run->epoch)) RETURN_IF(finish_epoch(run, error));
        const double every = run->settings.checkpoint_every_s;
        if (every > 0.0 && world_now(run->world) - run->checkpoint_s > every) RETURN_IF(write_checkpoint(run, false, error));
    }
    return OK;
}

/* --- the end --- */

static void sum_staleness(const struct run *run, struct summary *summary)
{
    long bins[STALENESS_BINS] = {0}, count = 0, seen = 0, most = 0;
    double sum = 0.0;
    for (int s = 0; s < run->store.settings.shards; s++)
        for (int w = 0; w < run->workers; w++) {
            const struct tally *tally = &run->store.shards[s].tallies[w];
            for (int b = 0; b < STALENESS_BINS; b++) bins[b] += tally->staleness[b];
            count += tally->updates;
            sum += tally->staleness_sum;
            if (tally->staleness_max > most) most = tally->staleness_max;
        }
    summary->staleness.mean = count > 0 ? sum / (double)count : 0.0;
    summary->staleness.max = most;
    summary->staleness.p50 = summary->staleness.p99 = -1;
    for (int b = 0; b < STALENESS_BINS; b++) {
        seen += bins[b];
        if (summary->staleness.p50 < 0 && 2 * seen >= count) summary->staleness.p50 = b;
        if (summary->staleness.p99 < 0 && 100 * seen >= 99 * count) summary->staleness.p99 = b;
    }
}

static void sum_workers(const struct run *run, struct summary *summary)
{
    double input = 0.0, pull = 0.0, compute = 0.0, push = 0.0, wait = 0.0, last = 0.0;
    int counted = 0;
    for (int w = 0; w < run->workers; w++) {
        const struct worker_totals *totals = training_totals(&run->training, w);
        input += totals->input_s;
        pull += totals->pull_s;
        compute += totals->compute_s;
        push += totals->push_s;
        wait += totals->wait_s;
        summary->steps += totals->steps;
        summary->bytes_moved += training_bytes_moved(&run->training, w);
        if (totals->steps == 0) continue;
        last += (double)totals->last_loss;
        counted++;
    }
    const double all = input + pull + compute + push + wait;
    const double per = all > 0.0 ? 1.0 / all : 0.0;
    summary->input_share = input * per;
    summary->pull_share = pull * per;
    summary->compute_share = compute * per;
    summary->push_share = push * per;
    summary->wait_share = wait * per;
    summary->final_cost = counted > 0 ? last / counted : (double)NAN;
}

static int finish(struct run *run, struct error *error)
{
    char path[PATH_BYTES];
    if (run->interrupted || run->tested.examples == 0)
        RETURN_IF(evaluator_run(&run->evaluator, &run->dataset.test, run->store.weights, &run->tested, error));
    RETURN_IF(log_finish(&run->log, error));
    RETURN_IF(epochs_finish(&run->epochs, error));
    RETURN_IF(write_checkpoint(run, true, error));
    const double seconds = run->seconds_before + training_seconds(&run->training);
    const double here = training_seconds(&run->training);
    const long long examples = examples_done(run);
    struct summary summary = {.model = run->settings.model,
                              .dataset = run->settings.dataset,
                              .strategy = run->settings.strategy,
                              .devices = run->settings.devices,
                              .workers = run->workers,
                              .threads = run->devices[0].threads,
                              .seed = run->settings.seed,
                              .epochs = (double)examples / (double)run->dataset.train.count,
                              .updates = store_version(&run->store),
                              .examples = examples,
                              .train_seconds = seconds,
                              .examples_per_s = here > 0.0 ? (double)(examples - run->examples_before) / here : 0.0,
                              .test_accuracy = run->tested.accuracy,
                              .test_cost = run->tested.cost,
                              .lost_updates = store_lost_updates(&run->store),
                              .interrupted = run->interrupted};
    sum_staleness(run, &summary);
    sum_workers(run, &summary);
    RETURN_IF(file_join(path, run->settings.out, "summary.json", error));
    RETURN_IF(summary_write(path, &summary, error));
    progress_clear(&run->progress);
    progress_say(&run->progress, "%.0f examples/s; of the workers' time %.0f %% compute, %.0f %% waiting, %.0f %% exchange, %.0f %% input; staleness %.2f on average, %ld at most",
                 summary.examples_per_s, 100 * summary.compute_share, 100 * summary.wait_share,
                 100 * (summary.pull_share + summary.push_share), 100 * summary.input_share, summary.staleness.mean,
                 summary.staleness.max);
    if (run->interrupted)
        return error_set(error, ERROR_INTERRUPTED, "interrupted after %lld examples; go on with: trainer --resume=%s", examples,
                         run->settings.out);
    printf("Test-Accuracy: %.4f\n", summary.test_accuracy);
    printf("Total Time: %.2fs\n", summary.train_seconds);
    printf("Final Cost: %.4f\n", summary.final_cost);
    return OK;
}

int run_train(const struct run_settings *settings, struct error *error)
{
    void *block = NULL;
    world_catch_interrupts();
    RETURN_IF(memory_zeroed(&block, 1, sizeof(struct run), "the run", error));
    struct run *run = block;
    run->settings = *settings;
    progress_open(&run->progress, stderr, settings->quiet);
    int code = open_run(run, error);
    if (code == OK) {
        run->examples_before = run->epoch_examples = examples_done(run);
        run->seconds_before = settings->resume[0] ? resume_real(&run->checkpoint, "train_seconds", 0.0) : 0.0;
        run->checkpoint_s = world_now(run->world);
        code = coordinate(run, error);
    }
    if (code == OK) code = finish(run, error);
    close_run(run);
    memory_free(run);
    return code;
}
