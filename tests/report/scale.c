/* Axes: whole numbers where there are no others, and no end beyond what a value can be. Seconds, in the unit
 * that suits them. */
#include <math.h>
#include <string.h>
#include "../../src/report/scale.h"
#include "../check.h"

static void test_whole(void) {
    for (int most = 1; most <= 3000; most++) {
        const struct scale scale = scale_whole(most, 6);
        CHECK(scale.least == 0.0 && scale.most == most && scale.count >= 2, "%d: from %g to %g, %d ticks",
              most, scale.least, scale.most, scale.count);
        for (int i = 0; i < scale.count; i++)
            CHECK(scale.ticks[i] == floor(scale.ticks[i]) && scale.ticks[i] <= most, "%d: a tick at %g", most,
                  scale.ticks[i]);
    }
}

/* Values in percent, also where all of them are the same. */
static void test_cut(void) {
    static const double pairs[][2] = {{100, 100}, {96.67, 96.67}, {0, 0}, {53, 100}, {99.2, 100}, {10, 96.1}};
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        struct scale scale = scale_linear(pairs[p][0], pairs[p][1], 6, true);
        scale_cut(&scale, 0.0, 100.0);
        CHECK(scale.least >= 0.0 && scale.least <= pairs[p][0] && scale.most <= 100.0 &&
                  scale.most >= pairs[p][1] && scale.most > scale.least && scale.count >= 2,
              "%g to %g: from %g to %g, %d ticks", pairs[p][0], pairs[p][1], scale.least, scale.most,
              scale.count);
        for (int i = 0; i < scale.count; i++)
            CHECK(scale.ticks[i] >= scale.least - 1e-9 && scale.ticks[i] <= scale.most + 1e-9, "a tick at %g",
                  scale.ticks[i]);
    }
}

static void test_seconds(void) {
    static const struct {
        double seconds;
        const char *words;
    } rows[] = {{0.0, "0\xC2\xA0s"},
                {2.5e-16, "0\xC2\xA0s"},
                {-1e-17, "0\xC2\xA0s"},
                {4e-9, "0.004\xC2\xA0\xC2\xB5s"},
                {12.3e-6, "12.3\xC2\xA0\xC2\xB5s"},
                {0.0045, "4.5\xC2\xA0ms"},
                {1.274, "1.27\xC2\xA0s"},
                {725.0, "12\xC2\xA0min 5\xC2\xA0s"},
                {12000.0, "3\xC2\xA0h 20\xC2\xA0min"},
                {INFINITY, "-"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[NUMBER_BYTES];
        CHECK(strcmp(number_seconds(rows[i].seconds, out), rows[i].words) == 0, "%g s is %s, expected %s",
              rows[i].seconds, out, rows[i].words);
    }
}

int main(void) {
    test_seconds();
    test_whole();
    test_cut();
    return check_end();
}
