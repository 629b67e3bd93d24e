/* See stale.h. */
#include "stale.h"

/* Bars that there always are, and up to how many there is one for each number, however rare. */
enum { BARS_LEAST = 4, BARS_FEW = 12 };
static const double all_but_few = 0.99, most_of_them = 0.9;

void stale_add(struct stale *stale, long value) {
    stale->counts[staleness_bin(value)]++;
    stale->gradients++;
    stale->sum += (double)value;
    if (value > stale->max) stale->max = value;
}

void stale_merge(struct stale *to, const struct stale *from) {
    for (int i = 0; i < STALE_BINS; i++) to->counts[i] += from->counts[i];
    to->gradients += from->gradients;
    to->sum += from->sum;
    if (from->max > to->max) to->max = from->max;
}

static long percentile(const struct stale *stale, double share) {
    long below = 0;
    for (int i = 0; i < STALE_BINS; i++) {
        below += stale->counts[i];
        if ((double)below >= share * (double)stale->gradients) return staleness_begin(i);
    }
    return stale->max;
}

struct stale_bars stale_bars(const struct stale *all) {
    struct stale_bars bars = {.width = 1};
    const long few_above = percentile(all, all_but_few), most = percentile(all, most_of_them);
    while (most / bars.width >= STALE_BARS) bars.width *= 2;
    const long wanted = few_above / bars.width + 1;
    bars.count = wanted < BARS_LEAST ? BARS_LEAST : wanted > STALE_BARS ? STALE_BARS : (int)wanted;
    if (all->max / bars.width < BARS_FEW && all->max / bars.width >= bars.count)
        bars.count = (int)(all->max / bars.width) + 1;
    bars.above = all->max / bars.width >= bars.count;
    return bars;
}

double stale_share(const struct stale *stale, const struct stale_bars *bars, int bar) {
    const long from = bar * bars->width, end = bar < bars->count ? from + bars->width : stale->max + 1;
    long sum = 0;
    for (int i = staleness_bin(from); i < STALE_BINS && staleness_begin(i) < end; i++)
        sum += stale->counts[i];
    return stale->gradients > 0 ? (double)sum / (double)stale->gradients : 0.0;
}
