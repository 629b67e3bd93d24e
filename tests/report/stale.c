/* Histograms of staleness: every gradient is in one bar, whatever the numbers are, and what is frequent has a
 * bar of its own although the highest number is far away. */
#include <math.h>
#include <string.h>
#include "../../src/report/stale.h"
#include "../check.h"

enum { MANY = 20000 };

static long values[MANY];
static struct stale stale;

static void fill(int count) {
    memset(&stale, 0, sizeof stale);
    for (int i = 0; i < count; i++) stale_add(&stale, values[i]);
}

/* Each bar, counted plainly. */
static void check_bars(const char *what, int count, long width, int bars_wanted, bool above) {
    fill(count);
    const struct stale_bars bars = stale_bars(&stale);
    CHECK(bars.width == width && bars.count == bars_wanted && bars.above == above, "%s: %d bars of %ld%s",
          what, bars.count, bars.width, bars.above ? " and above" : "");
    for (int bar = 0; bar < bars.count + bars.above; bar++) {
        int in_it = 0;
        for (int i = 0; i < count; i++)
            in_it += bar < bars.count ? values[i] / bars.width == bar : values[i] / bars.width >= bars.count;
        const double share = stale_share(&stale, &bars, bar), expected = (double)in_it / count;
        CHECK(fabs(share - expected) < 1e-12, "%s: bar %d has %g, expected %g", what, bar, share, expected);
    }
}

/* shares[i] of 100 gradients have staleness i; the last one has `most`. */
static int mix(const int *shares, int numbers, long most) {
    int count = 0;
    for (int i = 0; i < numbers; i++)
        for (int n = 0; n < shares[i]; n++) values[count++] = i;
    values[count++] = most;
    return count;
}

static void test_far_away(void) {
    static const int shares[] = {470, 50, 300, 100, 50, 20};
    static const long far[] = {98, 1000, 123456789, 1000000000000000};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        check_bars("one is far away", mix(shares, 6, far[i]), 1, 6, true);
    check_bars("none is far away", mix(shares, 6, 9), 1, 10, false);
    check_bars("all are fresh", mix(shares, 1, 0), 1, 4, false);
}

static void test_wide(void) {
    for (int i = 0; i < 300; i++) values[i] = i % 30;
    check_bars("a few more than bars", 300, 2, 15, false);
    for (int i = 0; i < 240; i++) values[i] = i % 25;
    check_bars("a twentieth above", 240, 1, 24, true);
    for (int i = 0; i < MANY; i++) values[i] = i;
    check_bars("very many", MANY, 1024, 20, false);
    fill(0);
    const struct stale_bars bars = stale_bars(&stale);
    CHECK(stale_share(&stale, &bars, 0) == 0.0, "of no gradient a share");
}

/* Of any number, the bins of several tables together. */
static void test_merge(void) {
    struct stale sum = {0};
    for (int part = 0; part < 3; part++) {
        for (int i = 0; i < 100; i++) values[i] = (long)(part + 1) * i;
        fill(100);
        stale_merge(&sum, &stale);
    }
    CHECK(sum.gradients == 300 && sum.max == 297 && sum.sum == 6 * 4950.0, "%ld gradients, %ld, %g",
          sum.gradients, sum.max, sum.sum);
    long all = 0;
    for (int i = 0; i < STALE_BINS; i++) all += sum.counts[i];
    CHECK(all == 300, "%ld in bins", all);
}

int main(void) {
    test_far_away();
    test_wide();
    test_merge();
    return check_end();
}
