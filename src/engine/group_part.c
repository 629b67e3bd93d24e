/* A part of a group on its device: its turns of a batch, and the gradients of its weights added up. */
#include <math.h>

#include "../base/memory.h"
#include "../device/copy.h"
#include "group_parts.h"

/* --- what it adds up --- */

static bool computes(const struct helper *helper, int range, bool backward) {
    const struct network *network = helper->group->network;
    for (node n = 0; n < network->graph.count; n++)
        if (network->graph.nodes[n].gradient_of == range && (n > network->loss) == backward &&
            partition_device(helper->group->partition, n) == helper->part)
            return true;
    return false;
}

/* Ranges with nothing but padding between them are one stretch. */
static void find_half(struct helper *helper, bool backward) {
    const struct layout *layout = &helper->group->network->graph.layout;
    const int first = helper->stretch_count;
    for (int r = 0; r < layout->count; r++) {
        const size_t begin = layout->ranges[r].begin, end = begin + layout->ranges[r].floats;
        if (!computes(helper, r, backward)) continue;
        struct stretch *last =
            helper->stretch_count > first ? &helper->stretches[helper->stretch_count - 1] : NULL;
        if (last && begin >= last->end && begin - last->end < LINE_FLOATS)
            last->end = end;
        else
            helper->stretches[helper->stretch_count++] = (struct stretch){begin, end};
    }
}

int helper_find_stretches(struct helper *helper, struct error *error) {
    RETURN_IF(memory_array(&helper->stretches, helper->group->network->graph.layout.count,
                           "stretches of the gradient", error));
    find_half(helper, false);
    helper->forward_count = helper->stretch_count;
    find_half(helper, true);
    return OK;
}

/* --- copies --- */

/* Weights of the ranges that a part reads, or gradients of those that it computes, between the first device
 * and its own. */
static int copy_ranges(const struct helper *helper, bool back, struct error *error) {
    const struct group *group = helper->group;
    const struct graph *g = &group->network->graph;
    const struct device *first = &group->devices[0], *own = &group->devices[helper->part];
    for (node n = 0; n < g->count; n++) {
        if (partition_device(group->partition, n) != helper->part) continue;
        const int r = back                            ? g->nodes[n].gradient_of
                      : g->nodes[n].op == OP_variable ? g->nodes[n].attributes.variable
                                                      : -1;
        if (r < 0) continue;
        const struct range *range = &g->layout.ranges[r];
        const size_t bytes = range->floats * sizeof(float);
        RETURN_IF(back ? device_copy(first, group->batch.gradients + range->begin, own,
                                     helper->gradients + range->begin, bytes, error)
                       : device_copy(own, helper->weights + range->begin, first,
                                     group->batch.weights + range->begin, bytes, error));
    }
    return OK;
}

/* --- a batch --- */

/* The gradient of the first micro-batch is computed where the sum is to be, and those of the others are added
 * to it. */
static int add_up(const struct helper *helper, struct turn turn, float *sum, struct error *error) {
    const struct group *group = helper->group;
    const struct device *device = &group->devices[helper->part];
    const int all = group->pipeline.microbatches;
    const float *const values[] = {sum, helper->later};
    const float factor = turn.micro < all - 1 ? 1.0f : 1.0f / (float)all;
    const int end = turn.backward ? helper->stretch_count : helper->forward_count;
    for (int i = turn.backward ? helper->forward_count : 0; i < end && turn.micro > 0; i++)
        RETURN_IF(device->backend->vectors->mean(device, values, NULL, 2, helper->stretches[i].begin,
                                                 helper->stretches[i].end, factor, sum, error));
    return OK;
}

static int take_turn(struct helper *helper, struct turn turn, struct error *error) {
    struct group *group = helper->group;
    const struct device *device = &group->devices[helper->part];
    const struct group_batch *batch = &group->batch;
    float *const weights = helper->weights ? helper->weights : batch->weights;
    float *const sum = helper->gradients ? helper->gradients : batch->gradients;
    const node loss = group->network->decayed_loss;
    if (helper->part == 0 && !turn.backward) batch->feed(batch->argument, turn.micro);
    RETURN_IF(rendezvous_run(group->rendezvous, helper->part, turn.backward, weights,
                             turn.micro == 0 ? sum : helper->later, error));
    RETURN_IF(add_up(helper, turn, sum, error));
    if (!turn.backward || partition_device(group->partition, loss) != helper->part) return OK;
    return device->backend->queue_copy(device, &batch->losses[turn.micro],
                                       group_address(group, turn.micro, loss), sizeof *batch->losses, error);
}

/* What a helper has queued is done before it says that it is done. */
static int run_batch(struct helper *helper, struct error *error) {
    const struct group *group = helper->group;
    const int stage = partition_stage(group->partition, helper->part);
    if (helper->weights) RETURN_IF(copy_ranges(helper, false, error));
    for (int i = 0; i < 2 * group->pipeline.microbatches; i++)
        RETURN_IF(take_turn(helper, pipeline_turn(&group->pipeline, stage, i), error));
    if (helper->part == 0) return OK;
    RETURN_IF(rendezvous_finish(group->rendezvous, helper->part, error));
    return helper->gradients ? copy_ranges(helper, true, error) : OK;
}

void helper_run(struct helper *helper) {
    const struct group *group = helper->group;
    const double began = world_now(group->world);
    const double waited = rendezvous_waited(group->rendezvous, helper->part);
    helper->error = (struct error){0};
    helper->code = run_batch(helper, &helper->error);
    if (helper->code != OK) rendezvous_fail(group->rendezvous, helper->part);
    helper->busy_s +=
        world_now(group->world) - began - (rendezvous_waited(group->rendezvous, helper->part) - waited);
}
