/* See setup.h. */
#include "setup.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../bridge/compressor.h"
#include "../data/stream.h"
#include "../device/groups.h"
#include "../device/ranges.h"
#include "../engine/group.h"
#include "../engine/shares.h"
#include "../graph/model.h"
#include "../record/progress.h"

/* What a strategy cannot do over several parameter servers. */
static int check_parts(const struct setup *setup, const struct choice *choice, int parts, bool mirrored,
                       struct error *error) {
    const struct traits *traits = strategy_traits(strategy_of(choice), choice->settings);
    const char *name = setup->phases.count > 1 ? choice->text : setup->config.strategy,
               *why = traits->drops ? "which gradient is late is decided in one place"
                                    : "which gradients make an update is decided in one place";
    if (parts < 2 || (!traits->drops && !traits->joint)) return OK;
    if (mirrored)
        return error_set(
            error, ERROR_USAGE,
            "--strategy=%s: expected one parameter server, or --workers=1.., found weights in %d "
            "processes: %s",
            name, parts, why);
    return error_set(error, ERROR_USAGE, "--strategy=%s: expected one parameter server, found %d: %s", name,
                     parts, why);
}

static int check_staleness(const struct setup *setup, struct error *error) {
    bool stale = false;
    for (int p = 0; p < setup->phases.count; p++) {
        const struct choice *choice = &setup->phases.list[p].strategy;
        const struct traits *traits = strategy_traits(strategy_of(choice), choice->settings);
        stale = stale || traits->staleness_bound != strategy_never_stale;
    }
    if (setup->config.staleness != STALENESS_DIVIDE || stale) return OK;
    return error_set(error, ERROR_USAGE,
                     "--staleness=divide: gradients are never stale under --strategy=%s: expected "
                     "--staleness=ignore",
                     setup->config.strategy);
}

/* --shards, or what the strategies like: the cut is the same for all of them. */
static int count_shards(const struct setup *setup, int parts) {
    int shards = setup->config.shards;
    for (int p = 0; setup->config.shards == 0 && p < setup->phases.count; p++) {
        const struct choice *choice = &setup->phases.list[p].strategy;
        const struct strategy *strategy = strategy_of(choice);
        const int likes = strategy->shards ? strategy->shards(choice->settings) : 1;
        if (likes > shards) shards = likes;
    }
    return (shards + parts - 1) / parts * parts;
}

/* What text[bytes] of the config names, or what the program brings, which it then names. */
static int choose(struct choice *choice, const struct choice *own, const struct plugin_kind *kind, char *text,
                  size_t bytes, struct error *error) {
    if (!own) return plugin_choose(choice, kind, text, error);
    *choice = *own;
    snprintf(text, bytes, "%s", own->plugin->name);
    return OK;
}

/* A matrix cannot be stepped while others step parts of it, nor is its step that of a single weight's. */
static int check_matrices(const struct setup *setup, const struct choice *choice, struct error *error) {
    const struct plugin *optimizer = setup->choices.optimizer.plugin;
    const struct traits *traits = strategy_traits(strategy_of(choice), choice_settings(choice));
    const char *name = setup->phases.count > 1 ? choice->text : setup->config.strategy;
    const bool in_place = traits->steps_own && traits->lock_free && !traits->own_weights;
    if (!(in_place || traits->corrects) || !optimizer_of(&setup->choices.optimizer)->matrix) return OK;
    if (traits->corrects)
        return error_set(
            error, ERROR_USAGE,
            "--optimizer=%.64s steps whole matrices, --strategy=%.200s corrects gradients weight by "
            "weight: expected another optimizer, or another strategy, such as async-apply",
            optimizer->name, name);
    return error_set(
        error, ERROR_USAGE,
        "--optimizer=%.64s steps whole matrices, --strategy=%.200s lets workers step the same "
        "weights at the same time: expected another optimizer, or a strategy that does not, such "
        "as async-lockfree:apply=server",
        optimizer->name, name);
}

static int choose_strategies(struct setup *setup, struct error *error) {
    struct config *config = &setup->config;
    if (!setup->own_strategy) {
        RETURN_IF(phases_parse(&setup->phases, config->strategy, error));
    } else {
        snprintf(config->strategy, sizeof config->strategy, "%s", setup->own_strategy->plugin->name);
        phases_of(&setup->phases, setup->own_strategy);
    }
    setup->choices.strategy = setup->phases.list[0].strategy;
    return OK;
}

/* Unequal parts of a round are for strategies whose mean counts examples. */
static int check_share(const struct setup *setup, const struct choice *choice, struct error *error) {
    const struct config *config = &setup->config;
    const struct traits *traits = strategy_traits(strategy_of(choice), choice_settings(choice));
    if (shares_are_even(config->share)) return OK;
    if (!traits->weighs)
        return error_set(
            error, ERROR_USAGE,
            "--share=%.200s: --strategy=%.200s does not weight gradients by their examples: expected "
            "even, or another strategy, such as sync",
            config->share, choice->text);
    if (config->data_sharding == SHARDING_SHARED) return OK;
    return error_set(error, ERROR_USAGE,
                     "--share=%.200s: expected --data-sharding=shared, as shares are parts of one stream",
                     config->share);
}

int setup_choose(struct setup *setup, int parts, bool mirrored, struct error *error) {
    struct choices *choices = &setup->choices;
    struct config *config = &setup->config;
    RETURN_IF(plugin_choose(&choices->model, &model_kind, config->model, error));
    RETURN_IF(choose(&choices->dataset, setup->own_dataset, &dataset_kind, config->dataset,
                     sizeof config->dataset, error));
    RETURN_IF(choose_strategies(setup, error));
    RETURN_IF(plugin_choose(&choices->optimizer, &optimizer_kind, config->optimizer, error));
    for (int p = 0; p < setup->phases.count; p++) {
        const struct choice *choice = &setup->phases.list[p].strategy;
        RETURN_IF(check_parts(setup, choice, parts, mirrored, error));
        RETURN_IF(check_matrices(setup, choice, error));
        RETURN_IF(check_share(setup, choice, error));
    }
    RETURN_IF(check_staleness(setup, error));
    RETURN_IF(plugin_choose(&choices->schedule, &schedule_kind, config->schedule, error));
    RETURN_IF(plugin_choose(&choices->compressor, &compressor_kind, config->compress, error));
    setup->shards = count_shards(setup, parts);
    return OK;
}

/* What auto and cpu:* have become is what the run says of itself from here on, where it fits. */
static int name_devices(struct setup *setup, struct error *error) {
    struct text text = text_growing(error);
    const int count = setup->device_count, size = setup->group;
    for (int d = 0; d < count * size; d++) {
        const char *name = groups_device(setup->devices, count, size, d / size, d % size)->name;
        const bool begins = size > 1 && d % size == 0, ends = size > 1 && d % size == size - 1;
        text_item(&text, d % size == 0 ? "," : "+", "%s%s%s", begins ? "(" : "", name, ends ? ")" : "");
    }
    const int code = text_end(&text);
    if (code == OK) ranges_fold(text.bytes);
    if (code == OK && strlen(text.bytes) < sizeof setup->config.devices)
        snprintf(setup->config.devices, sizeof setup->config.devices, "%s", text.bytes);
    memory_free(text.bytes);
    return code;
}

/* How many devices a worker has; `written`: as the list of devices says, or 0. */
static int choose_group(struct setup *setup, int written, int count, struct error *error) {
    const struct config *config = &setup->config;
    const int size = config->group > 0 ? config->group : written > 0 ? written : 1;
    if (written > 0 && size != written)
        return error_set(error, ERROR_USAGE, "--group=%d: found groups of %d in --devices=%.200s", size,
                         written, config->devices);
    if (count % size != 0)
        return error_set(error, ERROR_USAGE, "--group=%d: found %d device%s, expected a multiple of %d", size,
                         count, count == 1 ? "" : "s", size);
    if (size > 1 && !config->place[0])
        return error_set(
            error, ERROR_USAGE,
            "--devices: found groups of %d without --place, expected which layers lie where, as in "
            "--place=auto, or --place='conv*=cpu:0,dense*=cpu:1'",
            size);
    if (size == 1 && config->schedule_pipeline != PIPELINE_NONE)
        return error_set(error, ERROR_USAGE,
                         "--schedule-pipeline=%s: found workers of one device, expected groups, as in "
                         "--devices='(cpu:0+cpu:1)'",
                         pipeline_name((enum pipeline_schedule)config->schedule_pipeline));
    if (size == 1 && config->place[0])
        return error_set(error, ERROR_USAGE,
                         "--place=%.200s: found workers of one device, expected groups, as in "
                         "--devices='(cpu:0+cpu:1)'",
                         config->place);
    setup->group = size;
    setup->device_count = count / size;
    groups_spread(setup->devices, setup->device_count, size);
    return OK;
}

int setup_open_devices(struct setup *setup, struct error *error) {
    struct device_settings settings = config_device_settings(&setup->config);
    char flat[sizeof setup->config.devices];
    int written = 0;
    settings.processes = setup->processes;
    RETURN_IF(groups_read(setup->config.devices, flat, sizeof flat, &written, error));
    RETURN_IF(
        devices_open(flat, &settings, &setup->devices, &setup->device_count, &setup->cores_shared, error));
    setup->group = 1; /* until it is known that they can be groups */
    RETURN_IF(choose_group(setup, written, setup->device_count, error));
    return name_devices(setup, error);
}

const struct groups *setup_groups(const struct setup *setup, struct world *world, struct groups *groups) {
    if (setup->group == 1) return NULL;
    *groups = (struct groups){.devices = setup->devices,
                              .workers = setup->device_count,
                              .size = setup->group,
                              .place = setup->config.place,
                              .placed = setup->balanced.words[0] ? setup->balanced.words : NULL,
                              .soft = !setup->config.no_soft_placement,
                              .schedule = (enum pipeline_schedule)setup->config.schedule_pipeline,
                              .microbatches = setup->config.microbatches,
                              .world = world,
                              .timeout_s = setup->config.timeout_s};
    return groups;
}

void setup_worker_name(const struct setup *setup, int worker, char out[GROUP_NAME_BYTES]) {
    groups_name(setup->devices, setup->device_count, setup->group, worker, out);
}

static bool is_automatic(const struct setup *setup) {
    return strcmp(setup->config.place, "auto") == 0;
}

bool setup_measures(const struct setup *setup) {
    return is_automatic(setup) && setup->group > 1;
}

bool setup_lives_on_gpus(const struct setup *setup) {
    int apart = 0;
    for (int w = 0; w < setup->device_count; w++) apart += device_apart(&setup->devices[w]);
    if (apart == 0 || setup->config.homes == HOMES_CPU) return false;
    return setup->config.homes == HOMES_GPU || apart == setup->device_count;
}

struct batch_work setup_batch_work(const struct setup *setup, struct world *world, bool has_store) {
    const struct config *config = &setup->config;
    return (struct batch_work){.network = &setup->network,
                               .examples = &setup->dataset.train,
                               .strategy = &setup->choices.strategy,
                               .optimizer = &setup->choices.optimizer,
                               .schedule = &setup->choices.schedule,
                               .on_devices = has_store && setup_lives_on_gpus(setup),
                               .average = config->average,
                               .clip = config_clip(config),
                               .seed = (uint64_t)config->seed,
                               .microbatches = config->microbatches,
                               .world = world,
                               .timeout_s = config->timeout_s};
}

struct paces_work setup_paces_work(const struct setup *setup, struct world *world, bool has_store,
                                   const struct groups *groups, const struct network_settings *network) {
    return (struct paces_work){.batch = setup_batch_work(setup, world, has_store),
                               .network = network,
                               .devices = setup->devices,
                               .groups = groups,
                               .workers = setup->device_count,
                               .size = setup->config.batch};
}

int setup_place(struct setup *setup, struct world *world, bool has_store, struct error *error) {
    struct config *config = &setup->config;
    struct groups groups;
    if (!is_automatic(setup) || !setup_groups(setup, world, &groups)) return OK;
    const struct batch_work work = setup_batch_work(setup, world, has_store);
    return balanced_place(&setup->balanced, config->place, sizeof config->place, &groups, &work, error);
}

struct network_settings setup_network_settings(const struct setup *setup) {
    const struct config *config = &setup->config;
    return (struct network_settings){.model = &setup->choices.model,
                                     .of = config->dataset,
                                     .shape = setup->dataset.shape,
                                     .codes = setup->dataset.codes,
                                     .classes = setup->dataset.classes,
                                     .batch = config->batch / config->microbatches,
                                     .task = setup->dataset.task,
                                     .loss = setup->loss,
                                     .smoothing = config->label_smoothing,
                                     .training = true,
                                     .mixed = augment_mixes(&setup->dataset.train.augment),
                                     .seed = (uint64_t)config->seed,
                                     .decay = config->decay,
                                     .freeze = config->freeze,
                                     .shards = setup->shards,
                                     .shard_by = (enum shard_by)config->shard_by};
}

static bool is_device(const struct setup *setup, const char *name, size_t length) {
    for (int d = 0; d < setup->device_count * setup->group; d++)
        if (strlen(setup->devices[d].name) == length && memcmp(setup->devices[d].name, name, length) == 0)
            return true;
    return false;
}

/* Those with weights, in their order: "conv1, dense1". */
static const char *layers_text(const struct layout *layout, char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    size_t before = 0;
    for (int i = 0; i < layout->count; i++) {
        const char *name = layout->ranges[i].name, *slash = strrchr(name, '/');
        const size_t length = slash ? (size_t)(slash - name) : strlen(name);
        const char *last = i > 0 ? layout->ranges[i - 1].name : "";
        if (length != before || strncmp(name, last, length) != 0)
            text_item(&text, ", ", "%.*s", (int)length, name);
        before = length;
    }
    return out;
}

/* --place as it was typed, before anything is made: each worker reads it with the names of its own group. */
static int check_place(const struct setup *setup, struct error *error) {
    const struct layout *layout = &setup->network.graph.layout;
    char patterns[sizeof setup->config.place];
    if (is_automatic(setup)) return OK;
    for (const char *item = setup->config.place; *item;) {
        const size_t length = strcspn(item, ","), letters = strcspn(item, "=,");
        const int shown = (int)length;
        if (letters == 0 || letters == length)
            return error_set(error, ERROR_USAGE, "--place: '%.*s', expected LAYER=DEVICE, as in dense1=cpu:0",
                             shown, item);
        if (!is_device(setup, item + letters + 1, length - letters - 1))
            return error_set(error, ERROR_USAGE, "--place: '%.*s', expected a device of --devices=%.200s",
                             shown, item, setup->config.devices);
        snprintf(patterns, sizeof patterns, "%.*s", (int)letters, item);
        bool found = false;
        for (int i = 0; i < layout->count; i++)
            found = found || layout_matches(patterns, layout->ranges[i].name);
        char layers[300];
        if (!found)
            return error_set(error, ERROR_USAGE,
                             "--place: '%.*s', but the model has no weights in a layer '%s', expected %s",
                             shown, item, patterns, layers_text(layout, layers, sizeof layers));
        item += length + (item[length] == ',');
    }
    return OK;
}

/* What is waited for has to be there. */
static int check_accuracy(const struct setup *setup, struct error *error) {
    if (metric_of(setup->dataset.task) == METRIC_ACCURACY) return OK;
    for (int p = 0; p < setup->phases.count; p++) {
        const struct strategy_phase *phase = &setup->phases.list[p];
        if (phase->until == UNTIL_ACCURACY)
            return error_set(error, ERROR_USAGE,
                             "--strategy: found \"until accuracy %g\", but %.200s has numbers to predict, "
                             "expected \"until epoch N\" or \"until plateau N\"",
                             phase->accuracy, setup->config.dataset);
    }
    return OK;
}

int setup_open_network(struct setup *setup, struct error *error) {
    const struct config *config = &setup->config;
    RETURN_IF(dataset_open(&setup->dataset, &setup->choices.dataset,
                           config->data_dir[0] ? config->data_dir : NULL, error));
    if (!setup->embedded) progress_warn_of(setup->dataset.notice);
    RETURN_IF(network_fits(&setup->choices.model, &setup->dataset.shape, setup->dataset.measured,
                           config->dataset, error));
    RETURN_IF(loss_choose(&setup->loss, (enum loss)config->loss, config->label_smoothing, setup->dataset.task,
                          config->dataset, error));
    if (!isnan(config->target_accuracy) && metric_of(setup->dataset.task) != METRIC_ACCURACY)
        return error_set(error, ERROR_USAGE,
                         "--target-accuracy=%g: %.200s has numbers to predict, expected classes or labels",
                         config->target_accuracy, config->dataset);
    if (!isnan(config->target_accuracy) && !config->test)
        return error_set(
            error, ERROR_USAGE,
            "--target-accuracy=%g: found --no-test, expected the test part, whose accuracy it is",
            config->target_accuracy);
    RETURN_IF(check_accuracy(setup, error));
    if (config->validation > 0.0) RETURN_IF(dataset_hold_out(&setup->dataset, config->validation, error));
    RETURN_IF(dataset_slice(&setup->dataset, config->data_slice, error));
    const struct network_settings network = setup_network_settings(setup);
    RETURN_IF(network_open(&setup->network, &network, error));
    return check_place(setup, error);
}

void setup_close(struct setup *setup) {
    network_close(&setup->network);
    dataset_close(&setup->dataset);
    devices_close(setup->devices, setup->device_count * setup->group);
    *setup = (struct setup){0};
}
