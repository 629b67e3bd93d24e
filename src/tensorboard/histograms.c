/* Histograms of an epoch: staleness per worker and shard, weights and gradients per layer. */
#include <stdio.h>
#include <string.h>

#include "board.h"

enum { TAG_BYTES = 80, STALENESS_BUCKETS = 30 };

/* counts[STALENESS_BINS] of gradients. A bucket for each value, or, where there are too many, for several.
 * The widths of bins are powers of two: in buckets of a multiple of the widest, each bin is in one bucket. */
static int staleness_buckets(const long *counts, struct events_bucket buckets[STALENESS_BUCKETS]) {
    int first = 0, last = STALENESS_BINS - 1;
    while (first < STALENESS_BINS && counts[first] == 0) first++;
    if (first == STALENESS_BINS) return 0;
    while (counts[last] == 0) last--;
    const long widest = staleness_begin(last + 1) - staleness_begin(last);
    const long from = staleness_begin(first) / widest * widest, room = staleness_begin(last) - from;
    const long width = (room / widest / STALENESS_BUCKETS + 1) * widest;
    const int count = (int)(room / width) + 1;
    for (int b = 0; b < count; b++) {
        const double left = (double)(from + b * width) - 0.5;
        buckets[b] = (struct events_bucket){.left = left, .right = left + (double)width};
    }
    for (int i = first; i <= last; i++)
        buckets[(staleness_begin(i) - from) / width].count += (double)counts[i];
    return count;
}

static int write_staleness(struct events *events, double time, long step, const char *tag, const long *counts,
                           struct error *error) {
    struct events_bucket buckets[STALENESS_BUCKETS];
    const int count = staleness_buckets(counts, buckets);
    return count > 0 ? events_histogram(events, time, step, tag, buckets, count, error) : OK;
}

/* Since the last time. */
static int write_shard(struct tensorboard *self, const struct output_epoch *epoch, int shard, double time,
                       struct error *error) {
    char tag[TAG_BYTES];
    long counts[STALENESS_BINS], *const before = self->shards[shard];
    for (int i = 0; i < STALENESS_BINS; i++) counts[i] = epoch->shards[shard].staleness.counts[i] - before[i];
    memcpy(before, epoch->shards[shard].staleness.counts, sizeof counts);
    snprintf(tag, sizeof tag, "staleness/shard-%d", shard);
    return write_staleness(&self->events, time, epoch->row->epoch, tag, counts, error);
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
                                  worker->epoch.staleness.counts, error));
    }
    for (int s = 0; s < epoch->shards_here; s++) RETURN_IF(write_shard(self, epoch, s, time, error));
    if (epoch->weights)
        RETURN_IF(write_layers(self, "weights", epoch->weights, time, epoch->row->epoch, error));
    return epoch->gradient ? write_layers(self, "gradients", epoch->gradient, time, epoch->row->epoch, error)
                           : OK;
}
