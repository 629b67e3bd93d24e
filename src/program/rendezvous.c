/* Rendezvous: what the parts of a partition share: their arenas, the channels between them, and running a
 * part. */
#include "../base/memory.h"
#include "passes.h"
#include "transfer.h"

/* Joins the two ends of a crossing: the calls of its send and its receive share the channel. */
static void open_channel(struct rendezvous *rendezvous, int i) {
    const struct crossing *crossing = &rendezvous->partition->crossings[i];
    const struct node_info *info = &rendezvous->partition->graph->nodes[crossing->value];
    struct call *receive = arena_call(rendezvous->arenas[crossing->to], crossing->receive);
    struct channel *channel = &rendezvous->channels[i];
    channel->rendezvous = rendezvous;
    channel->crossing = crossing;
    channel->value = receive->output;
    channel->bytes = shape_count(&info->shape) * type_bytes(info->type);
    event_open(&channel->sent, rendezvous->world);
    event_open(&channel->taken, rendezvous->world);
    receive->instance = channel;
    arena_call(rendezvous->arenas[crossing->from], crossing->send)->instance = channel;
}

static int fill(struct rendezvous *rendezvous, struct error *error) {
    const struct partition *partition = rendezvous->partition;
    RETURN_IF(memory_array(&rendezvous->arenas, partition->count, "arenas", error));
    RETURN_IF(memory_array(&rendezvous->channels, partition->crossing_count, "channels", error));
    for (int i = 0; i < partition->count; i++)
        RETURN_IF(arena_open(&rendezvous->arenas[i], partition->parts[i].program, error));
    for (int i = 0; i < partition->crossing_count; i++) open_channel(rendezvous, i);
    return OK;
}

int rendezvous_open(struct rendezvous **out, const struct partition *partition, struct world *world,
                    double timeout_s, struct error *error) {
    *out = NULL;
    struct rendezvous *rendezvous = NULL;
    RETURN_IF(memory_array(&rendezvous, 1, "rendezvous", error));
    rendezvous->partition = partition;
    rendezvous->world = world;
    rendezvous->timeout_s = timeout_s;
    const int code = fill(rendezvous, error);
    if (code != OK) {
        rendezvous_close(rendezvous);
        return code;
    }
    *out = rendezvous;
    return OK;
}

void rendezvous_close(struct rendezvous *rendezvous) {
    if (!rendezvous) return;
    for (int i = 0; rendezvous->arenas && i < rendezvous->partition->count; i++)
        arena_close(rendezvous->arenas[i]);
    memory_free(rendezvous->channels);
    memory_free(rendezvous->arenas);
    memory_free(rendezvous);
}

void *rendezvous_address(const struct rendezvous *rendezvous, node n) {
    const int part = partition_device(rendezvous->partition, n);
    if (part == NONE) return NULL;
    return arena_address(rendezvous->arenas[part], partition_node(rendezvous->partition, part, n));
}

void rendezvous_set_input(struct rendezvous *rendezvous, node n, const void *address) {
    const int part = partition_device(rendezvous->partition, n);
    if (part == NONE) return;
    arena_set_input(rendezvous->arenas[part], partition_node(rendezvous->partition, part, n), address);
}

/* The first failure counts; every wait is woken and finds it. */
static void fail(struct rendezvous *rendezvous, int part) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&rendezvous->failed, &none, part + 1)) return;
    for (int i = 0; i < rendezvous->partition->crossing_count; i++) {
        event_post(&rendezvous->channels[i].sent);
        event_post(&rendezvous->channels[i].taken);
    }
}

int rendezvous_run(struct rendezvous *rendezvous, int part, float *weights, float *gradients,
                   struct error *error) {
    const struct partition *partition = rendezvous->partition;
    const int failed = atomic_load(&rendezvous->failed);
    if (failed)
        return error_set(error, ERROR_PEER, "%s cannot run: %s has failed", partition->devices[part].name,
                         partition->devices[failed - 1].name);
    const int code =
        program_run(partition->parts[part].program, rendezvous->arenas[part], weights, gradients, error);
    if (code != OK) {
        fail(rendezvous, part);
        return code;
    }
    for (int i = 0; i < partition->crossing_count; i++)
        if (partition->crossings[i].to == part) event_post(&rendezvous->channels[i].taken);
    return OK;
}
