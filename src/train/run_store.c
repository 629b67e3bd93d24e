/* A run's store: where its shards live, and what is in them when it begins. */
#include <string.h>

#include "run_parts.h"

const struct strategy *run_strategy(const struct run *run) {
    return (const struct strategy *)(const void *)run->choices.strategy.plugin;
}

const struct traits *run_traits(const struct run *run) {
    return strategy_traits(run_strategy(run), run->choices.strategy.settings);
}

static int load_vector(struct run *run, const char *name, float *values, struct error *error) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%s%s", name, *name ? ":" : "");
    return checkpoint_load(run->settings.resume, &run->checkpoint, prefix, &run->network.graph.layout, false,
                           values, error);
}

/* Whether the checkpoint has any of it: a model's file has the weights alone. */
static bool has_vector(const struct run *run, const char *name) {
    const struct layout *layout = &run->network.graph.layout;
    char tensor[200];
    for (int i = 0; i < layout->count; i++) {
        snprintf(tensor, sizeof tensor, "%s:%s", name, layout->ranges[i].name);
        if (safetensors_tensor(&run->checkpoint, tensor)) return true;
    }
    return false;
}

static int load_moments(struct run *run, struct error *error) {
    const struct optimizer *optimizer = (const struct optimizer *)(const void *)run->choices.optimizer.plugin;
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
            run->settings.resume, optimizer->plugin.name);
    for (int m = 0; m < optimizer->moments; m++)
        RETURN_IF(load_vector(run, optimizer->moment_names[m], run->store.host.moments[m], error));
    return OK;
}

/* Weights, optimizer state, moving average and version: new, from --weights, or from the checkpoint. */
static int fill_store(struct run *run, struct error *error) {
    const struct layout *layout = &run->network.graph.layout;
    layout_initialize(layout, (uint64_t)run->settings.seed, run->store.host.weights);
    if (run->settings.weights[0]) {
        struct safetensors given = {0};
        int code = safetensors_read(run->settings.weights, &given, error);
        if (code == OK)
            code = checkpoint_load(run->settings.weights, &given, "", layout, true, run->store.host.weights,
                                   error);
        safetensors_free(&given);
        store_begin_average(&run->store);
        return code;
    }
    if (run->settings.resume[0]) {
        RETURN_IF(load_vector(run, "", run->store.host.weights, error));
        store_set_version(&run->store, (long)resume_number(&run->checkpoint, "version", 0));
        RETURN_IF(load_moments(run, error));
    }
    if (run->settings.resume[0] && run->store.host.average && resume_has_average(&run->checkpoint, layout))
        return load_vector(run, "average", run->store.host.average, error);
    store_begin_average(&run->store);
    return OK;
}

int run_shards_here(const struct run *run, int shards) {
    return run->settings.hosted ? shards / run->settings.hosted->ps.count : shards;
}

/* The devices whose memory is their own. */
static int count_apart(const struct run *run) {
    int apart = 0;
    for (int d = 0; d < run->device_count; d++) apart += run->devices[d].backend->vectors != NULL;
    return apart;
}

/* Where the shards live: with the workers, when all of them are on devices with memory of their own and the
 * optimizer can step there; else in the host's memory. */
static int choose_homes(const struct run *run, bool *on_devices, struct error *error) {
    const struct optimizer *optimizer = (const struct optimizer *)(const void *)run->choices.optimizer.plugin;
    const int apart = run->settings.hosted ? 0 : count_apart(run);
    *on_devices = false;
    if (run->settings.homes == HOMES_GPU && apart == 0)
        return error_set(error, ERROR_USAGE, "--homes=gpu: none of the devices is a GPU of this process (%s)",
                         run->settings.devices);
    if (run->settings.homes == HOMES_GPU && !optimizer->formula)
        return error_set(error, ERROR_USAGE, "--homes=gpu: the optimizer %s steps in the host's memory only",
                         optimizer->plugin.name);
    const bool all = apart > 0 && apart == run->device_count && optimizer->formula;
    *on_devices = run->settings.homes == HOMES_GPU || (run->settings.homes == HOMES_AUTO && all);
    return OK;
}

int run_open_store(struct run *run, int shards, struct error *error) {
    bool on_devices = false;
    RETURN_IF(choose_homes(run, &on_devices, error));
    const int here = run_shards_here(run, shards);
    const struct traits *traits = run_traits(run);
    const struct store_settings settings = {.layout = &run->network.graph.layout,
                                            .roster = &run->roster,
                                            .shards = here,
                                            .shard_first =
                                                run->settings.hosted ? run->settings.hosted->task * here : 0,
                                            .shards_all = shards,
                                            .shard_by = (enum shard_by)run->settings.shard_by,
                                            .slots = traits->servers ? run->settings.slots : 0,
                                            .strategy = &run->choices.strategy,
                                            .optimizer = &run->choices.optimizer,
                                            .schedule = &run->choices.schedule,
                                            .total_updates = dealer_updates(&run->dealer, traits->merged),
                                            .devices = run->settings.hosted ? NULL : run->devices,
                                            .on_devices = on_devices,
                                            .links = (enum links)run->settings.links,
                                            .average = run->settings.average,
                                            .finished = training_finished,
                                            .finished_argument = &run->training};
    RETURN_IF(store_open(&run->store, &settings, error));
    RETURN_IF(fill_store(run, error));
    return store_send(&run->store, error);
}
