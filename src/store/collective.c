/* The mean of a round made by the workers' devices as a group (device.h: struct collective), instead of by
 * copies to the device of the shard. Only where all workers step together: then no gradient is written
 * meanwhile, and one thread at a time gets here, the one that has the first share of the slice. */
#include <stdio.h>

#include "device_state.h"
#include "strategy.h"

static bool makes_means(const struct store *store) {
    const struct choice *choice = store->settings.strategy;
    const struct traits *traits = strategy_traits(strategy_of(choice), choice->settings);
    return traits->rounds && traits->merged && !traits->own_weights;
}

/* Why the workers' devices cannot be a group; NULL: they can. */
static const char *obstacle(const struct store *store) {
    const struct store_settings *settings = &store->settings;
    const int workers = settings->roster->workers;
    if (!store_on_devices(store)) return "the shards are in the host's memory";
    if (!makes_means(store)) return "the strategy makes no mean of all workers' gradients";
    for (int w = 0; w < workers; w++) {
        const struct device *device = &settings->devices[w];
        if (!device_apart(device)) return "not all workers are on devices with memory of their own";
        if (!device->backend->collective) return "this build has no library for it";
        if (device->deterministic) return "--deterministic promises roster order";
        for (int other = 0; other < w; other++) {
            const struct device *before = &settings->devices[other];
            if (before->backend != device->backend) return "the workers are on devices of several kinds";
            if (before->label == device->label) return "workers share a device";
        }
    }
    return NULL;
}

static const struct collective *collective_of(const struct store *store) {
    return store->homes[0].device->backend->collective;
}

static int join(struct store *store, struct error *error) {
    /* Who waits for the one that drives the group has the roster's timeout: the words of the group, which
     * name the devices, are to come first. */
    const double share_of_timeout = 0.8;
    const struct roster *roster = store->settings.roster;
    const struct device **devices = NULL;
    RETURN_IF(memory_array(&devices, roster->workers, "a group", error));
    for (int w = 0; w < roster->workers; w++) devices[w] = &store->settings.devices[w];
    const int code = collective_of(store)->open(devices, roster->workers, store->world,
                                                share_of_timeout * roster->timeout_s, &store->group, error);
    memory_free((void *)devices);
    return code;
}

int store_open_group(struct store *store, struct error *error) {
    const bool asked = store->settings.links == LINKS_COLLECTIVE;
    const char *why = obstacle(store);
    struct error words = {0};
    if (asked && why) return error_set(error, ERROR_USAGE, "--links=collective: %s", why);
    if (!asked && (!store_on_devices(store) || store->settings.roster->workers < 2 || !makes_means(store)))
        return OK;
    if (store->settings.links == LINKS_COPIES) why = "--links=copies";
    if (why) {
        snprintf(store->mean_by, sizeof store->mean_by, "copies, in roster order (%s)", why);
        return OK;
    }
    const int code = join(store, &words);
    if (code == OK) {
        collective_of(store)->describe(store->group, store->mean_by, sizeof store->mean_by);
        return OK;
    }
    if (code != COLLECTIVE_DECLINED || asked)
        return error_set(error, ERROR_DEVICE, "%s%s", words.words,
                         asked ? "" : " (--links=copies does without)");
    snprintf(store->mean_by, sizeof store->mean_by, "copies, in roster order (%.160s)", words.words);
    return OK;
}

void store_close_group(struct store *store) {
    if (store->group) collective_of(store)->close(store->group);
    store->group = NULL;
    store->mean_by[0] = '\0';
}

bool group_takes(const struct shard *shard) {
    const int workers = shard->store->settings.roster->workers;
    int examples = 0;
    if (!shard->store->group) return false;
    for (int w = 0; w < workers; w++) {
        const struct gradient *gradient = atomic_load_explicit(&shard->contributed[w], memory_order_relaxed);
        if (!gradient || gradient->examples == 0 || (w > 0 && gradient->examples != examples)) return false;
        examples = gradient->examples;
    }
    return true;
}

void group_mean(struct shard *shard, int worker) {
    struct store *store = shard->store;
    const int workers = store->settings.roster->workers;
    const float **values = store->workers[worker].values;
    struct error error = {0};
    int root = 0;
    for (int w = 0; w < workers; w++) {
        values[w] = atomic_load_explicit(&shard->contributed[w], memory_order_relaxed)->values + shard->begin;
        if (store->settings.devices[w].label == shard->home->device->label) root = w;
    }
    home_remember(store,
                  collective_of(store)->mean(store->group, values, shard->end - shard->begin, root,
                                             shard->home->mean + shard->begin, &error),
                  &error);
}
