/* A run's store: where its shards live, and what is in them when it begins. */
#include <string.h>

#include "../bridge/compress.h"
#include "open.h"

const struct traits *run_traits(const struct run *run) {
    const struct choice *choice = &run->setup.choices.strategy;
    return strategy_traits(strategy_of(choice), choice->settings);
}

static int load_vector(struct run *run, const char *name, float *values, struct error *error) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%s%s", name, *name ? ":" : "");
    return checkpoint_load(run->setup.config.resume, &run->checkpoint, prefix,
                           &run->setup.network.graph.layout, false, values, error);
}

/* Whether the checkpoint has any of it: a model's file has the weights alone. */
static bool has_vector(const struct run *run, const char *name) {
    const struct layout *layout = &run->setup.network.graph.layout;
    char tensor[200];
    for (int i = 0; i < layout->count; i++) {
        snprintf(tensor, sizeof tensor, "%s:%s", name, layout->ranges[i].name);
        if (safetensors_tensor(&run->checkpoint, tensor)) return true;
    }
    return false;
}

static int load_moments(struct run *run, struct error *error) {
    const struct optimizer *optimizer = optimizer_of(&run->setup.choices.optimizer);
    const char *saved = safetensors_text(&run->checkpoint, "optimizer");
    const size_t name = strlen(optimizer->plugin.name);
    if (!saved || strncmp(saved, optimizer->plugin.name, name) != 0 ||
        (saved[name] != '\0' && saved[name] != ':')) {
        progress_say(&run->progress, "optimizer %s starts afresh: the checkpoint has the state of %s",
                     optimizer->plugin.name, saved ? saved : "none");
        return OK;
    }
    if (optimizer->moments > 0 && !has_vector(run, optimizer->moment_names[0]))
        return error_set(
            error, ERROR_FILE,
            "%s: the state of the optimizer, %s, is missing here; --weights=FILE takes the weights "
            "alone",
            run->setup.config.resume, optimizer->plugin.name);
    const struct state *state = &run->store.host;
    for (int v = 1; v <= optimizer->moments; v++)
        RETURN_IF(load_vector(run, state->vector[v].name, state->vector[v].at, error));
    return OK;
}

/* Weights, optimizer state, moving average and version: new, from --weights, or from the checkpoint. */
static int fill_store(struct run *run, struct error *error) {
    const struct layout *layout = &run->setup.network.graph.layout;
    float *weights = run->store.host.vector[0].at, *average = state_find(&run->store.host, "average");
    float *owed = state_find(&run->store.kept, "owed");
    layout_initialize(layout, (uint64_t)run->setup.config.seed, weights);
    if (run->setup.config.weights[0] && !run->led) { /* the leader sends its own */
        RETURN_IF(run_take_weights(run, weights, error));
        store_begin_average(&run->store);
        return OK;
    }
    if (run->resumes && owed && checkpoint_has(&run->checkpoint, "owed", layout))
        RETURN_IF(load_vector(run, "owed", owed, error));
    if (run->resumes) {
        RETURN_IF(load_vector(run, "", weights, error));
        const long version = (long)checkpoint_number(&run->checkpoint, "version", 0);
        store_set_version(&run->store, version);
        store_set_updates(&run->store, (long)checkpoint_number(&run->checkpoint, "updates", version));
        RETURN_IF(load_moments(run, error));
    }
    if (run->resumes && average && checkpoint_has(&run->checkpoint, "average", layout))
        return load_vector(run, "average", average, error);
    store_begin_average(&run->store);
    return OK;
}

int run_shards_here(const struct run *run) {
    return run->setup.shards / run->crew.parts;
}

/* Where the shards live: with the workers, when all of them are on devices with memory of their own; else in
 * the host's memory. */
static int choose_homes(const struct run *run, bool *on_devices, struct error *error) {
    *on_devices = !run->crew.elsewhere && setup_lives_on_gpus(&run->setup);
    if (run->setup.config.homes == HOMES_GPU && !*on_devices)
        return error_set(error, ERROR_USAGE, "--homes=gpu: none of the devices is a GPU of this process (%s)",
                         run->setup.config.devices);
    return OK;
}

static const struct traits *traits_in(const struct run *run, int phase) {
    const struct choice *choice = &run->setup.phases.list[phase].strategy;
    return strategy_traits(strategy_of(choice), choice->settings);
}

static bool makes_means(const struct traits *traits) {
    return traits->rounds && traits->merged && !traits->own_weights;
}

/* --links=collective is for the strategies that make a mean, if there are any; in a mirrored cluster, for the
 * workers' halves of the processes. */
static enum links choose_links(const struct run *run) {
    const enum links links = (enum links)run->setup.config.links;
    bool others = false;
    if (run->crew.mirrored) return LINKS_AUTO;
    for (int p = 0; p < run->setup.phases.count; p++) others = others || makes_means(traits_in(run, p));
    return links == LINKS_COLLECTIVE && others && !makes_means(run_traits(run)) ? LINKS_AUTO : links;
}

bool run_has_servers(const struct run *run) {
    bool servers = false;
    for (int p = 0; p < run->setup.phases.count; p++) servers = servers || traits_in(run, p)->servers;
    return servers;
}

struct store_settings run_store_settings(const struct run *run) {
    const struct config *config = &run->setup.config;
    const struct choices *choices = &run->setup.choices;
    const struct traits *traits = run_traits(run);
    const int here = run_shards_here(run);
    const bool compressed = run->crew.elsewhere && compress_is_on(&choices->compressor);
    const int per_update = run_batches_per_update(run);
    bool rounds = false;
    for (int p = 0; p < run->setup.phases.count; p++)
        rounds = rounds || (traits_in(run, p)->rounds && traits_in(run, p)->merged);
    return (struct store_settings){.layout = &run->setup.network.graph.layout,
                                   .roster = (struct roster *)&run->roster,
                                   .shards = here,
                                   .shard_first = run->crew.part * here,
                                   .shards_all = run->setup.shards,
                                   .shard_by = (enum shard_by)config->shard_by,
                                   .slots = traits->servers ? config->slots : 0,
                                   .slots_most = run_has_servers(run) ? config->slots : 0,
                                   .strategy = &choices->strategy,
                                   .optimizer = &choices->optimizer,
                                   .schedule = &choices->schedule,
                                   .total_updates = sampler_updates(&run->sampler, per_update),
                                   .devices = run->crew.elsewhere ? NULL : run->setup.devices,
                                   .links = choose_links(run),
                                   .average = config->average,
                                   .divides = config->staleness == STALENESS_DIVIDE,
                                   .far = run->crew.elsewhere && strategy_of(&choices->strategy)->shares &&
                                          !compressed,
                                   .owes = compressed,
                                   .undoes = rounds && run->crew.parts > 1,
                                   .finished = training_finished,
                                   .finished_argument = (void *)&run->training};
}

int run_open_store(struct run *run, struct error *error) {
    struct store_settings settings = run_store_settings(run);
    RETURN_IF(choose_homes(run, &settings.on_devices, error));
    RETURN_IF(store_open(&run->store, &settings, error));
    RETURN_IF(fill_store(run, error));
    run->store.settings.schedule_ahead = run_schedule_ahead(run, store_version(&run->store));
    return store_send(&run->store, error);
}
