/* A worker's replica: batches gathered into its arena, forward and backward run there. */
#include "replica.h"

#include <math.h>

#include "../base/memory.h"
#include "../device/copy.h"
#include "../device/gather.h"
#include "turns.h"

/* The loss as it is reported and all gradients, as a list: memory_free it. */
static int list_fetches(const struct network *network, node **out, int *count, struct error *error) {
    RETURN_IF(memory_array(out, (size_t)network->gradient_count + 1, "fetches", error));
    (*out)[0] = network->decayed_loss;
    *count = 1;
    for (int i = 0; i < network->gradient_count; i++)
        if (network->gradients[i] != NONE) (*out)[(*count)++] = network->gradients[i];
    return OK;
}

int replica_compile(struct program **out, const struct network *network, const struct device *device,
                    struct error *error) {
    node *fetches = NULL;
    int count = 0;
    RETURN_IF(list_fetches(network, &fetches, &count, error));
    const int code = program_compile(out, &network->graph, fetches, count, device, error);
    memory_free(fetches);
    return code;
}

int replica_partition(struct partition **out, const struct network *network,
                      const struct placement *placement, struct error *error) {
    node *fetches = NULL;
    int count = 0;
    RETURN_IF(list_fetches(network, &fetches, &count, error));
    const int code = partition_compile(out, &network->graph, fetches, count, placement, error);
    memory_free(fetches);
    return code;
}

int replica_placeable(struct placeable *placeable, const struct network *network, struct error *error) {
    node *fetches = NULL;
    int count = 0;
    RETURN_IF(list_fetches(network, &fetches, &count, error));
    const int code = placeable_find(placeable, &network->graph, fetches, count, group_pin, network, error);
    memory_free(fetches);
    return code;
}

/* --- of what size --- */

void replicas_resize(struct replicas *replicas, int worker, const struct network_settings *settings,
                     int examples) {
    const int batch = examples / replicas->microbatches;
    replicas->settings = settings;
    replicas->replicas[worker].batch = batch == replicas->batch ? 0 : batch;
}

static int open_resized(const struct replicas *replicas, struct replica *replica, struct error *error) {
    if (replica->batch == 0) return OK;
    struct network_settings settings = *replicas->settings;
    settings.batch = replica->batch;
    return network_open(&replica->resized, &settings, error);
}

static int batch_of(const struct replicas *replicas, const struct replica *replica) {
    return replica->batch > 0 ? replica->batch : replicas->batch;
}

static const struct network *network_of(const struct replicas *replicas, const struct replica *replica) {
    return replica->batch > 0 ? &replica->resized : replicas->network;
}

/* --- a program on one device, or a group's on several --- */

static void *address_of(const struct replica *replica, int micro, node n) {
    if (n == NONE) return NULL;
    return replica->group ? group_address(replica->group, micro, n) : arena_address(replica->arena, n);
}

static void set_input(const struct replica *replica, int micro, node n, const void *address) {
    if (replica->group)
        group_set_input(replica->group, micro, n, address);
    else
        arena_set_input(replica->arena, n, address);
}

static int open_program(const struct replicas *replicas, int worker, struct replica *replica,
                        struct error *error) {
    const struct network *network = network_of(replicas, replica);
    if (replicas->groups) {
        RETURN_IF(group_open(&replica->group, replicas->groups, worker, network, error));
        atomic_store(&replica->opened, true);
        return OK;
    }
    RETURN_IF(replica_compile(&replica->program, network, &replicas->devices[worker], error));
    program_soft(replica->program, replica->soft, sizeof replica->soft);
    RETURN_IF(arena_open(&replica->arena, replica->program, error));
    atomic_store(&replica->opened, true);
    return OK;
}

/* --- opening --- */

/* The first are the arenas' own memory, so that a worker without a prefetcher has its batch beside its other
 * values.
 */
static int open_inputs(const struct replicas *replicas, const struct device *device, struct replica *replica,
                       struct error *error) {
    const struct network *network = network_of(replicas, replica);
    const size_t batch = (size_t)batch_of(replicas, replica), features = (size_t)replicas->examples->features;
    const bool mixed = network->shares != NONE;
    const struct node_info *label = &network->graph.nodes[network->labels];
    const size_t labels = shape_count(&label->shape) * type_bytes(label->type);
    const int count = replicas->buffers * replicas->microbatches;
    RETURN_IF(memory_array(&replica->inputs, count, "input buffers", error));
    replica->own_inputs = replica->group ? group_in_flight(replica->group) : 1;
    for (int i = 0; i < replica->own_inputs; i++)
        replica->inputs[i] = (struct input){.x = address_of(replica, i, network->x),
                                            .labels = address_of(replica, i, network->labels),
                                            .step = address_of(replica, i, network->step),
                                            .others = address_of(replica, i, network->others),
                                            .shares = address_of(replica, i, network->shares)};
    if (mixed)
        RETURN_IF(mixing_open(&replica->mixing, device, replicas->examples, batch_of(replicas, replica),
                              replicas->microbatches, error));
    for (int i = replica->own_inputs; i < count; i++) {
        struct input *input = &replica->inputs[i];
        RETURN_IF(device_array(device, &input->x, batch * features, "input", error));
        RETURN_IF(device_array_of(device, &input->labels, labels, "labels", error));
        if (replica->inputs[0].step)
            RETURN_IF(device_array(device, &input->step, 1, "a batch's number", error));
        if (!mixed) continue;
        RETURN_IF(device_array_of(device, &input->others, labels, "other labels", error));
        RETURN_IF(device_array(device, &input->shares, batch, "shares", error));
    }
    return OK;
}

/* Not of a prefetcher's batches, which are built beside the step, nor of a group's. */
static int open_picks(const struct replicas *replicas, const struct device *device, struct replica *replica,
                      struct error *error) {
    const struct picker *picker = device->backend->picker;
    if (!picker || replicas->buffers > 1 || replica->group || replicas->network->shares != NONE) return OK;
    for (int i = 0; i < replicas->microbatches; i++) {
        struct input *input = &replica->inputs[i];
        for (int t = 0; t < TURNS; t++) {
            input->built[t] = (struct built){.device = device, .input = input};
            RETURN_IF(picker->open(device, replicas->examples, batch_of(replicas, replica),
                                   &input->built[t].picks, error));
        }
    }
    return OK;
}

static int gather_picked(void *argument, struct error *error) {
    const struct built *built = argument;
    const struct input *input = built->input;
    return built->device->backend->picker->gather(built->device, built->picks, input->x, input->labels,
                                                  input->step, error);
}

/* Where weights are brought to that the device cannot address. */
static int open_weights(const struct replicas *replicas, int worker, const struct device *device,
                        struct replica *replica, struct error *error) {
    const struct store *store = replicas->store;
    if (store ? store_shares_memory(store, device) : !device_apart(device)) return OK;
    if (store && replicas->traits && training_copies_to(store, replicas->traits, worker, device)) return OK;
    return device_array(device, &replica->weights, replicas->network->graph.layout.floats,
                        "a replica's weights", error);
}

/* The device's own memory, for what it cannot address. */
static int open_stages(const struct replicas *replicas, int worker, const struct device *device,
                       struct replica *replica, struct error *error) {
    const struct store *store = replicas->store;
    const size_t floats = replicas->network->graph.layout.floats;
    const struct device *own = store ? store_own_device(store, worker) : NULL;
    if (!device_same_memory(device, own))
        RETURN_IF(device_array(device, &replica->gradient, floats, "a replica's gradient", error));
    if (replicas->microbatches > 1 && !replica->group)
        RETURN_IF(device_array(device, &replica->part, floats, "a micro-batch's gradient", error));
    return open_weights(replicas, worker, device, replica, error);
}

/* Where weights are brought to is needed under some strategies alone. */
static void close_of_strategy(const struct device *device, struct replica *replica) {
    if (replica->weights) device->backend->release(device, replica->weights);
    replica->weights = NULL;
}

static int change_replica(void *self, int worker, struct error *error) {
    struct replicas *replicas = self;
    struct replica *replica = &replicas->replicas[worker];
    const struct device *device = &replicas->devices[worker];
    close_of_strategy(device, replica);
    RETURN_IF(open_weights(replicas, worker, device, replica, error));
    return turns_change(replicas, device, replica, error);
}

static int open_replica(void *self, int worker, struct error *error) {
    struct replicas *replicas = self;
    struct replica *replica = &replicas->replicas[worker];
    const struct device *device = &replicas->devices[worker];
    device->backend->enter(device);
    RETURN_IF(open_resized(replicas, replica, error));
    RETURN_IF(open_program(replicas, worker, replica, error));
    RETURN_IF(open_stages(replicas, worker, device, replica, error));
    RETURN_IF(turns_open(replicas, device, replica, error));
    RETURN_IF(open_inputs(replicas, device, replica, error));
    return open_picks(replicas, device, replica, error);
}

/* The examples of micro-batch number `micro`, and the one that comes next where these have it. What is wanted
 * later is asked for once. */
static struct indices indices_of(const struct indices *all, int micro, int batch) {
    const size_t first = (size_t)micro * (size_t)batch;
    struct indices part = {.count = batch, .index = all->index + first};
    if (all->key) part.key = all->key + first;
    if (micro == 0) part.soon = all->soon;
    return part;
}

/* Number counts the micro-batches of all batches, so that each has random numbers of its own. */
static int load_micro(const struct replicas *replicas, int worker, struct input *input, int micro,
                      uint64_t number, const struct indices *indices, struct error *error) {
    const struct device *device = &replicas->devices[worker];
    void *const picks = input->built[replicas->replicas[worker].turn].picks;
    if (picks)
        RETURN_IF(
            device_pick(device, picks, replicas->examples, indices, (int)number, &input->picked, error));
    if (input->picked) return OK;
    if (input->shares) {
        const struct mixed out = {input->x, input->labels, input->others, input->shares};
        RETURN_IF(mixing_load(&replicas->replicas[worker].mixing, device, replicas->examples, micro, indices,
                              &out, error));
    } else {
        RETURN_IF(device_gather(device, replicas->examples, indices, input->x, error));
        RETURN_IF(device_gather_labels(device, replicas->examples, indices, input->labels, error));
    }
    /* The number is sent as a label is: nobody waits for it. */
    const int step = (int)number, first = 0;
    const struct examples numbers = {.count = 1, .features = 1, .labels = &step};
    const struct indices one = {.count = 1, .index = &first};
    return input->step ? device->backend->gather_labels(device, &numbers, &one, input->step, error) : OK;
}

static int load_replica(void *self, int worker, int buffer, long number, const struct indices *indices,
                        struct error *error) {
    const struct replicas *replicas = self;
    const struct device *device = &replicas->devices[worker];
    const int microbatches = replicas->microbatches;
    struct replica *replica = &replicas->replicas[worker];
    struct input *inputs = &replica->inputs[buffer * microbatches];
    if (replica->ahead) replica->turn = !replica->turn;
    for (int m = 0; m < microbatches; m++) {
        const struct indices part = indices_of(indices, m, batch_of(replicas, replica));
        RETURN_IF(load_micro(replicas, worker, &inputs[m], m,
                             (uint64_t)number * (uint64_t)microbatches + (uint64_t)m, &part, error));
    }
    /* A prefetcher hands over what is done, to another thread. */
    return replicas->buffers > 1 ? device->backend->finish(device, error) : OK;
}

static void read_from(const struct network *network, const struct replica *replica, int micro, int number) {
    const struct input *input = &replica->inputs[number];
    set_input(replica, micro, network->x, input->x);
    set_input(replica, micro, network->labels, input->labels);
    if (input->step) set_input(replica, micro, network->step, input->step);
    if (!input->shares) return;
    set_input(replica, micro, network->others, input->others);
    set_input(replica, micro, network->shares, input->shares);
}

/* The store's, or a worker's own, which it steps where its gradients are. */
static int bring_weights(const struct replicas *replicas, const struct device *device, float *here,
                         const float *weights, struct error *error) {
    if (replicas->store && !(replicas->traits && replicas->traits->own_weights))
        return store_copy_weights(replicas->store, device, here, error);
    return device_queue_copy(device, here, NULL, weights,
                             replicas->network->graph.layout.floats * sizeof *here, error);
}

/* Micro-batches one after the other: the gradient of the first is computed where the sum is to be, and those
 * of the others are added to it. */
static int run_micros(const struct replicas *replicas, int worker, int buffer, float *weights,
                      float *gradient, struct error *error) {
    struct replica *replica = &replicas->replicas[worker];
    const struct device *device = &replicas->devices[worker];
    const struct network *network = network_of(replicas, replica);
    const int microbatches = replicas->microbatches;
    const float *const sum[] = {gradient, replica->part};
    for (int m = 0; m < microbatches; m++) {
        const int number = buffer * microbatches + m;
        if (number != replica->loaded) read_from(network, replica, m, number);
        replica->loaded = number;
        struct input *input = &replica->inputs[number];
        float *loss = &replica->turns[replica->turn].losses[m];
        arena_set_before(replica->arena, input->picked ? gather_picked : NULL, &input->built[replica->turn]);
        arena_set_output(replica->arena, network->decayed_loss, loss, sizeof *loss);
        if (replica->step)
            RETURN_IF(arena_set_step(replica->arena, replica->step, replica->step_argument, error));
        RETURN_IF(
            program_run(replica->program, replica->arena, weights, m == 0 ? gradient : replica->part, error));
        if (m == 0) continue;
        const float factor = m < microbatches - 1 ? 1.0f : 1.0f / (float)microbatches;
        RETURN_IF(device->backend->vectors->mean(device, sum, NULL, 2, 0, network->graph.layout.floats,
                                                 factor, gradient, error));
    }
    return OK;
}

/* The batch that a group computes. */
struct feeding {
    const struct network *network;
    const struct replica *replica;
    int first; /* its first input buffer */
};

static void feed(void *argument, int micro) {
    const struct feeding *feeding = argument;
    read_from(feeding->network, feeding->replica, micro, feeding->first + micro);
}

static int run_group(const struct replicas *replicas, const struct replica *replica, int buffer,
                     float *weights, float *gradient, struct error *error) {
    struct feeding feeding = {network_of(replicas, replica), replica, buffer * replicas->microbatches};
    const struct group_batch batch = {.weights = weights,
                                      .gradients = gradient,
                                      .losses = replica->turns[0].losses,
                                      .feed = feed,
                                      .argument = &feeding};
    return group_run(replica->group, &batch, error);
}

static int run_replica(void *self, int worker, int buffer, float *weights, float *gradient, float *loss,
                       struct error *error) {
    const struct replicas *replicas = self;
    struct replica *replica = &replicas->replicas[worker];
    const struct device *device = &replicas->devices[worker];
    const size_t bytes = replicas->network->graph.layout.floats * sizeof(float);
    float *const here = replica->weights ? replica->weights : weights;
    float *const result = replica->gradient ? replica->gradient : gradient;
    (void)loss; /* `synchronize` gives it */
    const struct replica_turn *turn = &replica->turns[replica->turn];
    if (turn->began) RETURN_IF(device->backend->marks->set(device, turn->began, error));
    if (here != weights) RETURN_IF(bring_weights(replicas, device, here, weights, error));
    RETURN_IF(replica->group ? run_group(replicas, replica, buffer, here, result, error)
                             : run_micros(replicas, worker, buffer, here, result, error));
    if (result != gradient) RETURN_IF(device_queue_copy(NULL, gradient, device, result, bytes, error));
    return turn->ended ? device->backend->marks->set(device, turn->ended, error) : OK;
}

int replicas_open(struct replicas *replicas, const struct network *network, const struct device *devices,
                  int count, const struct examples *examples, int microbatches, int buffers,
                  struct error *error) {
    *replicas = (struct replicas){.network = network,
                                  .devices = devices,
                                  .examples = examples,
                                  .count = count,
                                  .batch = network->graph.nodes[network->x].shape.dims[0],
                                  .microbatches = microbatches,
                                  .buffers = buffers};
    return memory_array(&replicas->replicas, count, "replicas", error);
}

bool replicas_set_step(struct replicas *replicas, int worker, arena_step *step, void *argument) {
    struct replica *replica = &replicas->replicas[worker];
    if (replicas->groups || replicas->microbatches > 1 || device_apart(&replicas->devices[worker]))
        return false;
    replica->step = step;
    replica->step_argument = argument;
    return true;
}

float *replicas_gradient(const struct replicas *replicas, int worker) {
    return replicas->replicas[worker].gradient;
}

/* The device gets back what it gave: all but the arena's own. */
static void give_back(const struct replicas *replicas, int worker) {
    const struct device *device = &replicas->devices[worker];
    struct replica *replica = &replicas->replicas[worker];
    close_of_strategy(device, replica);
    turns_close(device, replica);
    mixing_close(&replica->mixing, device);
    if (replica->gradient) device->backend->release(device, replica->gradient);
    if (replica->part) device->backend->release(device, replica->part);
    struct input *inputs = replica->inputs;
    for (int i = 0; inputs && device->backend->picker && i < replicas->buffers * replicas->microbatches; i++)
        for (int t = 0; t < TURNS; t++) device->backend->picker->close(device, inputs[i].built[t].picks);
    for (int i = replica->own_inputs; inputs && i < replicas->buffers * replicas->microbatches; i++) {
        void *const blocks[] = {inputs[i].x, inputs[i].labels, inputs[i].step, inputs[i].others,
                                inputs[i].shares};
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
            if (blocks[b]) device->backend->release(device, blocks[b]);
    }
    memory_free(inputs);
}

void replicas_idle(const struct replicas *replicas, double *idle, double *idle_equal) {
    const struct groups *groups = replicas->groups;
    *idle = *idle_equal = (double)NAN;
    if (!groups || groups->schedule == PIPELINE_NONE) return;
    const struct pipeline pipeline = groups_pipeline(groups);
    double sum = 0.0;
    for (int i = 0; i < replicas->count; i++) {
        const struct group *group = replicas->replicas[i].group;
        sum += group ? group_idle(group) : (double)NAN;
    }
    *idle = sum / replicas->count;
    *idle_equal = pipeline_bubble(&pipeline);
}

int replicas_reopen(struct replicas *replicas, int worker, const struct network_settings *settings,
                    int examples, struct error *error) {
    struct replica *replica = &replicas->replicas[worker];
    const struct replica kept = {
        .told = replica->told, .step = replica->step, .step_argument = replica->step_argument};
    if (!group_close(replica->group))
        return error_set(error, ERROR_DEVICE, "%s hangs", replicas->devices[worker].name);
    give_back(replicas, worker);
    arena_close(replica->arena);
    program_close(replica->program);
    network_close(&replica->resized);
    *replica = kept;
    replicas_resize(replicas, worker, settings, examples);
    return open_replica(replicas, worker, error);
}

bool replicas_close(struct replicas *replicas) {
    bool ended = true;
    for (int i = 0; replicas->replicas && i < replicas->count; i++)
        ended = group_close(replicas->replicas[i].group) && ended;
    if (!ended) return false;
    for (int i = 0; replicas->replicas && i < replicas->count; i++) {
        give_back(replicas, i);
        arena_close(replicas->replicas[i].arena);
        program_close(replicas->replicas[i].program);
        network_close(&replicas->replicas[i].resized);
    }
    memory_free(replicas->replicas);
    *replicas = (struct replicas){0};
    return true;
}

bool replicas_recording(const struct replicas *replicas, int worker, struct recording_facts *facts) {
    const struct replica *replica = &replicas->replicas[worker];
    if (!atomic_load(&replica->opened)) return false;
    if (!replica->group) return replica->arena && arena_recording(replica->arena, facts);
    if (!replicas->devices[worker].backend->record) return false;
    *facts = (struct recording_facts){.why = "several devices compute it"};
    return true;
}

/* A group knows which of its devices it waits for. */
static void say_hanging(void *self, int worker, char *out, size_t bytes) {
    const struct replicas *replicas = self;
    const struct replica *replica = &replicas->replicas[worker];
    char words[GROUP_HANGS_BYTES];
    if (atomic_load(&replica->opened) && replica->group)
        snprintf(out, bytes, "%s", group_hangs(replica->group, words));
}

struct compute replicas_compute(struct replicas *replicas) {
    return (struct compute){.open = open_replica,
                            .change = change_replica,
                            .load = load_replica,
                            .run = run_replica,
                            .synchronize = turns_synchronize,
                            .go_ahead = turns_go_ahead,
                            .behind = turns_behind,
                            .say_hanging = say_hanging,
                            .self = replicas};
}
