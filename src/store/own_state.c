/* The verbs of strategies whose workers step their own copies and average them now and then. */
#include "device_state.h"

void shard_step_own(struct shard *shard, const struct state *own, const struct gradient *gradient,
                    long version) {
    const struct device *device = store_own_device(shard->store, gradient->worker);
    if (shard->store->settings.far) return;
    struct update_slice slice = {
        .begin = shard->begin, .end = shard->end, .state = own, .count = 1, .gradients = &gradient->values};
    const float rate = store_rate(shard->store, version) * shard_worth(shard, gradient, version);
    home_step(shard, device, &slice, rate, version + 1, gradient->worker);
    home_finish(shard->store, device);
}

void store_step_far(struct store *store, const struct state *own, const float *gradient, float rate,
                    long number) {
    for (int s = 0; s < store->settings.shards; s++) {
        struct shard *shard = &store->shards[s];
        struct update_slice slice = {
            .begin = shard->begin, .end = shard->end, .state = own, .count = 1, .gradients = &gradient};
        home_step(shard, &store->processor, &slice, rate, number, -1);
    }
}

/* The next part of [*begin, end) that is not frozen: [*begin, *part_end). False: there is none. A mean of
 * equal numbers may differ from them in the last bit, and what is frozen stays. */
static bool next_part(const struct shard *shard, size_t *begin, size_t end, size_t *part_end) {
    *part_end = *begin;
    for (int i = 0; i < shard->span_count; i++) {
        const struct span *span = &shard->spans[i];
        if (span->end <= *begin || span->begin >= end) continue;
        if (span->kind != RANGE_FROZEN)
            *part_end = span->end < end ? span->end : end;
        else if (*part_end > *begin)
            return true;
        else
            *begin = *part_end = span->end;
    }
    return *part_end > *begin;
}

/* What is offered of a vector, in the workers' order, where the shard lives: values[count]. */
static int bring_all(struct shard *shard, const struct state *const *copies, int v, size_t begin, size_t end,
                     const float **values) {
    int count = 0;
    for (int w = 0; w < shard->store->settings.roster->workers; w++)
        if (copies[w]) values[count++] = home_bring(shard, w, copies[w]->vector[v].at, begin, end);
    return count;
}

/* What is brought home of one vector has been used before the next one is, because both are queued. */
static void reduce_vector(struct shard *shard, int worker, const struct state *const *copies, int v,
                          size_t begin, size_t end) {
    const struct device *home = shard->home->device;
    const float **values = shard->store->workers[worker].values;
    const int count = bring_all(shard, copies, v, begin, end, values);
    struct error error = {0};
    for (size_t to; next_part(shard, &begin, end, &to); begin = to)
        home_remember(shard->store,
                      home->backend->vectors->mean(home, values, NULL, count, begin, to, 1.0f / (float)count,
                                                   shard->home->state.vector[v].at, &error),
                      &error);
}

void shard_reduce_share(struct shard *shard, int worker, const struct state *const *copies, int share,
                        int shares) {
    const size_t begin = shard_boundary(shard, share, shares), end = shard_boundary(shard, share + 1, shares);
    undo_keep(shard, share, begin, end);
    for (int v = 0; v < shard->home->state.count; v++) reduce_vector(shard, worker, copies, v, begin, end);
    home_finish(shard->store, shard->home->device);
}

/* out = first out + all mean + last other, where the mean is that of the `count` vectors behind
 * mine->values[0]; all begin where out does. */
static void blend(struct shard *shard, struct worker_slots *mine, int count, size_t floats, float *out,
                  float first, float all, const float *other, float last) {
    const struct device *home = shard->home->device;
    struct error error = {0};
    mine->values[0] = out;
    mine->weight[0] = first;
    for (int i = 1; i <= count; i++) mine->weight[i] = all / (float)count;
    mine->values[count + 1] = other;
    mine->weight[count + 1] = last;
    home_remember(shard->store,
                  home->backend->vectors->mean(home, mine->values, mine->weight, count + 2, 0, floats, 1.0f,
                                               out, &error),
                  &error);
}

static void step_part(struct shard *shard, int worker, const struct state *const *copies, size_t from,
                      size_t to, const struct outer_step *outer) {
    struct worker_slots *mine = &shard->store->workers[worker];
    float *weights = shard->home->state.vector[0].at + from,
          *velocity = outer->velocity + (from - shard->begin);
    const int count = bring_all(shard, copies, 0, from, to, mine->values + 1);
    for (int i = 1; i <= count; i++) mine->values[i] += from;
    blend(shard, mine, count, to - from, velocity, outer->momentum, 1.0f, weights, -1.0f);
    blend(shard, mine, count, to - from, weights, 1.0f - outer->rate, outer->rate, velocity,
          outer->rate * outer->momentum);
}

void shard_step_outer(struct shard *shard, int worker, const struct state *const *copies, int share,
                      int shares, const struct outer_step *outer) {
    const size_t begin = shard_boundary(shard, share, shares), end = shard_boundary(shard, share + 1, shares);
    undo_keep(shard, share, begin, end);
    for (int i = 0; i < shard->span_count; i++) {
        const struct span *span = &shard->spans[i];
        const size_t from = span->begin > begin ? span->begin : begin, to = span->end < end ? span->end : end;
        if (from >= to || span->kind == RANGE_FROZEN) continue;
        if (span->kind == RANGE_TRAINABLE)
            step_part(shard, worker, copies, from, to, outer);
        else
            reduce_vector(shard, worker, copies, 0, from, to);
    }
    for (int v = 1; v < shard->home->state.count; v++) reduce_vector(shard, worker, copies, v, begin, end);
    home_finish(shard->store, shard->home->device);
}

void shard_copy(const struct shard *shard, int worker, const struct state *own) {
    const struct state *from = &shard->home->state;
    for (int v = 0; v < from->count; v++)
        home_queue_copy(shard, own->vector[v].at + shard->begin, from->vector[v].at + shard->begin,
                        shard->end - shard->begin);
    home_finish(shard->store, shard->home->device); /* others may be offered them next */
    shard->store->workers[worker].own_written = true;
}

/* Where the shard lives a worker's own vector can be written: itself, or what it was brought to. */
static float *bring_own(struct shard *shard, int worker, float *own) {
    float *brought = shard->home->brought[worker];
    home_bring(shard, worker, own, shard->begin, shard->end);
    return brought ? brought : own;
}

void shard_exchange(struct shard *shard, int worker, const struct state *own, float rate) {
    const struct device *home = shard->home->device;
    struct store *store = shard->store;
    const size_t begin = shard->begin, floats = shard->end - begin;
    float *mine = own->vector[0].at, *here = bring_own(shard, worker, mine);
    struct error error = {0};
    home_remember(store,
                  home->backend->vectors->exchange(
                      home, here + begin, shard->home->state.vector[0].at + begin, floats, rate, &error),
                  &error);
    if (here != mine) home_queue_copy(shard, mine + begin, here + begin, floats);
    home_finish(store, home);
    store->workers[worker].own_written = true;
}

void shard_follow(struct shard *shard, int worker, const struct state *own, float share) {
    const struct device *home = shard->home->device;
    const float weight[2] = {1.0f - share, share};
    struct error error = {0};
    for (int v = 1; v < own->count; v++) {
        float *at = shard->home->state.vector[v].at;
        const float *const values[2] = {at, bring_own(shard, worker, own->vector[v].at)};
        home_remember(
            shard->store,
            home->backend->vectors->mean(home, values, weight, 2, shard->begin, shard->end, 1.0f, at, &error),
            &error);
    }
    home_finish(shard->store, home);
}

void shard_copy_own(struct shard *shard, int worker, float *to, const float *from) {
    const struct device *own = store_own_device(shard->store, worker);
    const size_t begin = shard->begin, bytes = (shard->end - begin) * sizeof *to;
    struct error error = {0};
    home_remember(shard->store, own->backend->queue_copy(own, to + begin, from + begin, bytes, &error),
                  &error);
    home_finish(shard->store, own);
}

void shard_meet(struct shard *shard, const int workers[2], float *const vectors[2]) {
    const struct device *home = shard->home->device;
    const size_t begin = shard->begin, floats = shard->end - begin;
    float *first = bring_own(shard, workers[0], vectors[0]);
    const float *const values[2] = {first, bring_own(shard, workers[1], vectors[1])};
    struct error error = {0};
    home_remember(shard->store,
                  home->backend->vectors->mean(home, values, NULL, 2, begin, shard->end, 0.5f, first, &error),
                  &error);
    if (first != vectors[0]) home_queue_copy(shard, vectors[0] + begin, first + begin, floats);
    home_queue_copy(shard, vectors[1] + begin, first + begin, floats);
    home_finish(shard->store, home);
}
