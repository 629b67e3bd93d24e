/* See ranks.h. */
#include "ranks.h"

#include <stdio.h>

#include "../base/memory.h"
#include "../store/store.h"

/* Why the device cannot be a rank, "" where nobody expects it; NULL: its backend says. */
static const char *obstacle(const struct device *device, const struct config *config) {
    if (!device_apart(device)) return "";
    if ((enum links)config->links == LINKS_COPIES) return "--links=copies";
    if (!device->backend->collective) return "its build has no library for it";
    if (device->deterministic) return "--deterministic promises roster order";
    return NULL;
}

int ranked_offer(const struct device *device, const struct config *config, bool mirrored, bool draws,
                 struct rank_offer *offer, struct error *error) {
    const char *why = obstacle(device, config);
    *offer = (struct rank_offer){0};
    if (!mirrored) return OK;
    if ((enum links)config->links == LINKS_COLLECTIVE && config_may_be_joined(config))
        return error_set(error, ERROR_USAGE,
                         "--links=collective: found --workers=%s, expected all of them from the start",
                         config->workers);
    if (why)
        snprintf(offer->words, sizeof offer->words, "%.90s", why);
    else
        device->backend->collective->offer(device, draws, offer);
    if (offer->able || (enum links)config->links != LINKS_COLLECTIVE) return OK;
    return error_set(error, ERROR_USAGE, "--links=collective: %s: %s", device->name,
                     offer->words[0] ? offer->words : "it has no memory of its own");
}

static int look(void *argument, struct error *error) {
    return remote_look(argument, error);
}

static int join(struct ranked *ranked, struct error *error) {
    struct remote *remote = ranked->remote;
    const struct welcome *welcome = &remote->hosts[0].welcome;
    const struct rank_place place = {.id = welcome->id,
                                     .rank = welcome->worker,
                                     .ranks = welcome->workers,
                                     .world = remote->world,
                                     .timeout_s = remote->timeout_s,
                                     .look = look,
                                     .argument = remote};
    RETURN_IF(memory_array(&ranked->windows, remote->count, "slices", error));
    for (int h = 0; h < remote->count; h++) {
        const struct welcome *theirs = &remote->hosts[h].welcome;
        ranked->windows[h] = (struct rank_window){(size_t)theirs->begin, (size_t)theirs->end, theirs->root};
    }
    struct error why = {0};
    const int code = ranked->collective->join(ranked->device, &place, &ranked->rank, &why);
    if (code == OK) return OK;
    return error_set(error, code, "%s%s", why.words,
                     code == ERROR_DEVICE ? " (--links=copies does without)" : "");
}

int ranked_open(struct ranked *ranked, const struct device *device, struct remote *remote, float *gradient,
                bool asked, struct error *error) {
    const struct welcome *welcome = &remote->hosts[0].welcome;
    *ranked = (struct ranked){
        .collective = device->backend->collective, .device = device, .remote = remote, .gradient = gradient};
    for (int h = 0; h < remote->count; h++)
        if ((remote->hosts[h].welcome.root < 0) != (welcome->root < 0) ||
            remote->hosts[h].welcome.root >= welcome->workers)
            return error_set(error, ERROR_PEER, "%s adds the gradients otherwise than %s",
                             remote->settings.hosts->list[h].text, remote->settings.hosts->list[0].text);
    if (welcome->root >= 0 && !ranked->collective)
        return error_set(error, ERROR_PEER,
                         "%s: gradients of %s were to be added by a library, which it has not",
                         remote->settings.hosts->list[0].text, device->name);
    if (welcome->root >= 0) return join(ranked, error);
    return asked ? error_set(error, ERROR_USAGE, "--links=collective: %s", welcome->means) : OK;
}

int ranked_sum(struct ranked *ranked, float *out, struct error *error) {
    const struct device *device = ranked->device;
    RETURN_IF(ranked->collective->sum(ranked->rank, ranked->gradient, ranked->windows, ranked->remote->count,
                                      error));
    for (int h = 0; h < ranked->remote->count; h++) {
        const struct rank_window *window = &ranked->windows[h];
        if (window->root != ranked->remote->hosts[h].welcome.worker) continue;
        RETURN_IF(device->backend->copy(device, out + window->begin, ranked->gradient + window->begin,
                                        (window->end - window->begin) * sizeof *out, error));
    }
    return OK;
}

void ranked_close(struct ranked *ranked, bool well) {
    if (ranked->rank) ranked->collective->leave(ranked->rank, well);
    memory_free(ranked->windows);
    *ranked = (struct ranked){0};
}
