/* Rendezvous: what the parts of a partition share: their arenas, the channels between them, and running a
 * part. */
#include <math.h>

#include "../base/memory.h"
#include "passes.h"
#include "transfer.h"

/* --- open and close --- */

/* A place for each run that either end has in flight: while a value is in use, its sender computes the next.
 */
static int depth_of(const struct rendezvous *rendezvous, const struct crossing *crossing) {
    const int from = rendezvous->seats[crossing->from].in_flight;
    const int to = rendezvous->seats[crossing->to].in_flight;
    return from > to ? from : to;
}

/* The receiver's arenas have a place each; the rest is spare. */
static int open_values(struct channel *channel, const struct seat *seat, const struct device *device,
                       struct error *error) {
    RETURN_IF(memory_array(&channel->values, channel->depth, "a channel", error));
    for (int i = 0; i < channel->depth; i++)
        if (i < seat->in_flight)
            channel->values[i] = arena_call(seat->arenas[i], channel->crossing->receive)->output;
        else
            RETURN_IF(
                device_array_of(device, &channel->values[i], channel->bytes, "a value between parts", error));
    return OK;
}

/* What goes on beside the sender's queue. A place is free when its value was taken, as the receiver's is. */
static int open_staged(struct channel *channel, const struct device *device, struct error *error) {
    RETURN_IF(memory_array(&channel->staged, channel->depth, "a channel", error));
    RETURN_IF(memory_array(&channel->marks, channel->depth, "a channel", error));
    for (int i = 0; i < channel->depth; i++) {
        RETURN_IF(
            device_array_of(device, &channel->staged[i], channel->bytes, "a value between parts", error));
        RETURN_IF(device->backend->marks->open(device, false, &channel->marks[i], error));
    }
    return OK;
}

static void close_staged(struct channel *channel, const struct device *device) {
    for (int i = 0; channel->marks && i < channel->depth; i++)
        if (channel->marks[i]) device->backend->marks->close(device, channel->marks[i]);
    for (int i = 0; channel->staged && i < channel->depth; i++)
        if (channel->staged[i]) device->backend->release(device, channel->staged[i]);
    memory_free(channel->marks);
    memory_free(channel->staged);
}

/* Joins the two ends of a crossing: the calls of its send and its receive share the channel. */
static int open_channel(struct rendezvous *rendezvous, int i, struct error *error) {
    const struct partition *partition = rendezvous->partition;
    const struct crossing *crossing = &partition->crossings[i];
    const struct seat *from = &rendezvous->seats[crossing->from], *to = &rendezvous->seats[crossing->to];
    struct channel *channel = &rendezvous->channels[i];
    channel->rendezvous = rendezvous;
    channel->crossing = crossing;
    channel->bytes = crossing_bytes(partition, crossing);
    channel->depth = depth_of(rendezvous, crossing);
    event_open(&channel->sent, rendezvous->world);
    event_open(&channel->taken, rendezvous->world);
    for (int a = 0; a < from->in_flight; a++) arena_call(from->arenas[a], crossing->send)->instance = channel;
    for (int a = 0; a < to->in_flight; a++) arena_call(to->arenas[a], crossing->receive)->instance = channel;
    const struct device *devices = partition->devices;
    RETURN_IF(open_values(channel, to, &devices[crossing->to], error));
    if (!crosses_beside(&devices[crossing->from], &devices[crossing->to])) return OK;
    return open_staged(channel, &devices[crossing->from], error);
}

static int open_seat(struct rendezvous *rendezvous, int part, struct error *error) {
    struct seat *seat = &rendezvous->seats[part];
    RETURN_IF(memory_array(&seat->arenas, seat->in_flight, "arenas", error));
    for (int i = 0; i < seat->in_flight; i++)
        RETURN_IF(arena_open(&seat->arenas[i], rendezvous->partition->parts[part].program, error));
    return OK;
}

static int rehearse(const struct rendezvous *rendezvous, const struct pipeline *pipeline,
                    struct error *error) {
    const struct partition *partition = rendezvous->partition;
    int *depth = NULL;
    RETURN_IF(memory_array(&depth, partition->crossing_count, "channels", error));
    for (int i = 0; i < partition->crossing_count; i++)
        depth[i] = depth_of(rendezvous, &partition->crossings[i]);
    const int code = partition_rehearse(partition, pipeline, depth, error);
    memory_free(depth);
    return code;
}

static int fill(struct rendezvous *rendezvous, const struct pipeline *pipeline, struct error *error) {
    const struct partition *partition = rendezvous->partition;
    RETURN_IF(memory_array(&rendezvous->seats, partition->count, "parts", error));
    RETURN_IF(memory_array(&rendezvous->channels, partition->crossing_count, "channels", error));
    for (int i = 0; i < partition->count; i++)
        rendezvous->seats[i].in_flight =
            pipeline ? pipeline_in_flight(pipeline, partition_stage(partition, i)) : 1;
    if (pipeline) RETURN_IF(rehearse(rendezvous, pipeline, error));
    for (int i = 0; i < partition->count; i++) RETURN_IF(open_seat(rendezvous, i, error));
    for (int i = 0; i < partition->crossing_count; i++) RETURN_IF(open_channel(rendezvous, i, error));
    return OK;
}

int rendezvous_open(struct rendezvous **out, const struct partition *partition,
                    const struct pipeline *pipeline, struct world *world, double timeout_s,
                    struct error *error) {
    *out = NULL;
    struct rendezvous *rendezvous = NULL;
    RETURN_IF(memory_array(&rendezvous, 1, "rendezvous", error));
    rendezvous->partition = partition;
    rendezvous->world = world;
    rendezvous->timeout_s = timeout_s;
    rendezvous->deadline_s = INFINITY;
    const int code = fill(rendezvous, pipeline, error);
    if (code != OK) {
        rendezvous_close(rendezvous);
        return code;
    }
    *out = rendezvous;
    return OK;
}

static void close_channel(const struct rendezvous *rendezvous, struct channel *channel) {
    if (!channel->values) return;
    const int to = channel->crossing->to;
    const struct device *device = &rendezvous->partition->devices[to];
    for (int i = rendezvous->seats[to].in_flight; i < channel->depth; i++)
        if (channel->values[i]) device->backend->release(device, channel->values[i]);
    memory_free(channel->values);
    close_staged(channel, &rendezvous->partition->devices[channel->crossing->from]);
}

void rendezvous_close(struct rendezvous *rendezvous) {
    if (!rendezvous) return;
    const struct partition *partition = rendezvous->partition;
    for (int i = 0; rendezvous->channels && i < partition->crossing_count; i++)
        close_channel(rendezvous, &rendezvous->channels[i]);
    for (int i = 0; rendezvous->seats && i < partition->count; i++) {
        struct seat *seat = &rendezvous->seats[i];
        for (int a = 0; seat->arenas && a < seat->in_flight; a++) arena_close(seat->arenas[a]);
        memory_free(seat->arenas);
    }
    memory_free(rendezvous->channels);
    memory_free(rendezvous->seats);
    memory_free(rendezvous);
}

/* --- values --- */

static struct arena *arena_of(const struct seat *seat, long run) {
    return seat->arenas[run % seat->in_flight];
}

void *rendezvous_address(const struct rendezvous *rendezvous, long run, node n) {
    const int part = partition_device(rendezvous->partition, n);
    if (part == NONE) return NULL;
    return arena_address(arena_of(&rendezvous->seats[part], run),
                         partition_node(rendezvous->partition, part, n));
}

void rendezvous_set_input(struct rendezvous *rendezvous, long run, node n, const void *address) {
    const int part = partition_device(rendezvous->partition, n);
    if (part == NONE) return;
    arena_set_input(arena_of(&rendezvous->seats[part], run), partition_node(rendezvous->partition, part, n),
                    address);
}

double rendezvous_waited(const struct rendezvous *rendezvous, int part) {
    return rendezvous->seats[part].waited_s;
}

/* --- running a part --- */

void rendezvous_set_deadline(struct rendezvous *rendezvous, double deadline_s) {
    rendezvous->deadline_s = deadline_s;
}

/* The first failure counts; every wait is woken and finds it. */
void rendezvous_fail(struct rendezvous *rendezvous, int part) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&rendezvous->failed, &none, part + 1)) return;
    for (int i = 0; i < rendezvous->partition->crossing_count; i++) {
        event_post(&rendezvous->channels[i].sent);
        event_post(&rendezvous->channels[i].taken);
    }
}

int rendezvous_failed(const struct rendezvous *rendezvous) {
    return atomic_load(&rendezvous->failed) - 1;
}

/* A transfer is said as the node whose value it is. */
const char *rendezvous_words(const struct rendezvous *rendezvous, int part, char out[NODE_WORDS_BYTES]) {
    const struct partition *partition = rendezvous->partition;
    const node local = atomic_load_explicit(&rendezvous->seats[part].at, memory_order_relaxed);
    for (int i = 0; i < partition->crossing_count; i++)
        if (partition->crossings[i].from == part && partition->crossings[i].send == local)
            return partition_words(partition, partition->crossings[i].value, out);
    node n = 0;
    while (n < partition->graph->count - 1 && partition_node(partition, part, n) != local) n++;
    return partition_words(partition, n, out);
}

/* Where there are more places than arenas, a run reads what it receives in another place each time. */
static void read_from_places(struct rendezvous *rendezvous, int part, long run) {
    struct arena *arena = arena_of(&rendezvous->seats[part], run);
    for (int i = 0; i < rendezvous->partition->crossing_count; i++) {
        const struct channel *channel = &rendezvous->channels[i];
        if (channel->crossing->to == part && channel->depth > rendezvous->seats[part].in_flight)
            arena_set_input(arena, channel->crossing->receive, channel->values[run % channel->depth]);
    }
}

/* What was queued may fail only here. */
int rendezvous_finish(const struct rendezvous *rendezvous, int part, struct error *error) {
    const struct device *device = &rendezvous->partition->devices[part];
    struct error why = {0};
    char words[NODE_WORDS_BYTES];
    const int code = device->backend->finish(device, &why);
    if (code == OK) return OK;
    return error_set(error, code, "at or before %s: %s", rendezvous_words(rendezvous, part, words),
                     why.words);
}

/* Frees the places of what was received, where a device with a queue may still be reading. */
static int take_values(struct rendezvous *rendezvous, int part, struct error *error) {
    const struct device *device = &rendezvous->partition->devices[part];
    bool finished = !device_apart(device);
    for (int i = 0; i < rendezvous->partition->crossing_count; i++) {
        if (rendezvous->channels[i].crossing->to != part) continue;
        if (!finished) RETURN_IF(rendezvous_finish(rendezvous, part, error));
        finished = true;
        event_post(&rendezvous->channels[i].taken);
    }
    return OK;
}

static int run_half(struct rendezvous *rendezvous, int part, bool backward, float *weights, float *gradients,
                    struct error *error) {
    const struct part *its = &rendezvous->partition->parts[part];
    struct seat *seat = &rendezvous->seats[part];
    const long run = backward ? seat->ended++ : seat->begun++;
    struct error why = {0};
    char words[NODE_WORDS_BYTES];
    if (!backward) read_from_places(rendezvous, part, run);
    const int code =
        program_run_nodes(its->program, arena_of(seat, run), backward ? its->backward : 0,
                          backward ? its->graph.count : its->backward, weights, gradients, &seat->at, &why);
    if (code == ERROR_PEER) return error_set(error, code, "%s", why.words); /* a transfer says it itself */
    if (code != OK)
        return error_set(error, code, "%s: %s", rendezvous_words(rendezvous, part, words), why.words);
    return backward ? take_values(rendezvous, part, error) : OK;
}

int rendezvous_run(struct rendezvous *rendezvous, int part, bool backward, float *weights, float *gradients,
                   struct error *error) {
    const struct partition *partition = rendezvous->partition;
    const int failed = rendezvous_failed(rendezvous);
    if (failed != NONE)
        return error_set(error, ERROR_PEER, "%s cannot run: %s has failed", partition->devices[part].name,
                         partition->devices[failed].name);
    const int code = run_half(rendezvous, part, backward, weights, gradients, error);
    if (code != OK) rendezvous_fail(rendezvous, part);
    return code;
}
