/* Histograms of an epoch: staleness per worker and shard, weights and gradients per layer. */
#include <stdio.h>
#include <string.h>

#include "board.h"

enum { TAG_BYTES = 80, STALENESS_BUCKETS = 30 };

/* counts[bins] of gradients. A bucket for each value, or, where there are too many, for several. */
static int staleness_buckets(const long *counts, int bins, struct events_bucket buckets[STALENESS_BUCKETS]) {
    int first = 0, last = bins - 1;
    while (first < bins && counts[first] == 0) first++;
    if (first == bins) return 0;
    while (counts[last] == 0) last--;
    const int width = (last - first) / STALENESS_BUCKETS + 1, count = (last - first) / width + 1;
    for (int b = 0; b < count; b++) {
        const int begin = first + b * width;
        buckets[b] = (struct events_bucket){.left = begin - 0.5, .right = begin + width - 0.5};
        for (int i = begin; i < begin + width && i <= last; i++) buckets[b].count += (double)counts[i];
    }
    return count;
}

static int write_staleness(struct events *events, double time, long step, const char *tag, const long *counts,
                           int bins, struct error *error) {
    struct events_bucket buckets[STALENESS_BUCKETS];
    const int count = staleness_buckets(counts, bins, buckets);
    return count > 0 ? events_histogram(events, time, step, tag, buckets, count, error) : OK;
}

/* Since the last time. */
static int write_shard(struct tensorboard *self, const struct output_epoch *epoch, int shard, double time,
                       struct error *error) {
    char tag[TAG_BYTES];
    long counts[STALENESS_BINS], *const before = self->shards[shard];
    for (int i = 0; i < STALENESS_BINS; i++) counts[i] = epoch->shards[shard].staleness[i] - before[i];
    memcpy(before, epoch->shards[shard].staleness, sizeof counts);
    snprintf(tag, sizeof tag, "staleness/shard-%d", shard);
    return write_staleness(&self->events, time, epoch->row->epoch, tag, counts, STALENESS_BINS, error);
}

/* values: [layout floats]. */
static int write_layers(struct tensorboard *self, const char *what, const float *values, double time,
                        int epoch, struct error *error) {
    for (int i = 0; i < self->graph->layout.count; i++) {
        const struct range *range = &self->graph->layout.ranges[i];
        struct events_bucket buckets[EVENTS_BUCKETS];
        char tag[TAG_BYTES];
        snprintf(tag, sizeof tag, "%s/%s", what, range->name);
        const int count = events_buckets(buckets, values + range->begin, range->floats);
        if (count > 0) RETURN_IF(events_histogram(&self->events, time, epoch, tag, buckets, count, error));
    }
    return OK;
}

int board_histograms(struct tensorboard *self, const struct output_epoch *epoch, double time,
                     struct error *error) {
    for (int w = 0; w < self->count; w++) {
        struct watched *worker = &self->workers[w];
        RETURN_IF(write_staleness(&worker->events, time, worker->last_step, "staleness",
                                  worker->epoch.staleness.counts, STALENESS_MOST + 1, error));
    }
    for (int s = 0; s < epoch->shards_here; s++) RETURN_IF(write_shard(self, epoch, s, time, error));
    if (epoch->weights)
        RETURN_IF(write_layers(self, "weights", epoch->weights, time, epoch->row->epoch, error));
    return epoch->gradient ? write_layers(self, "gradients", epoch->gradient, time, epoch->row->epoch, error)
                           : OK;
}
