/* Balance: on random graphs the search finds exactly the least of all placements of the layers, with and
 * without a pipeline; a prediction is what can be worked out by hand; and where there are too many placements
 * the result is no worse than the best cut into stages, one device, or halves by count. */
#include "../../src/program/balance.h"

#include <math.h>
#include <string.h>

#include "../../src/base/rng.h"
#include "../check.h"

enum { NODES = 400, LAYERS = 48, DEVICES = 4, GRAPHS = 120 };

static struct balance_node nodes[NODES];
static double seconds[DEVICES * NODES];
static struct balance_way ways[DEVICES * DEVICES];
static struct balance_weights weights[LAYERS];
static bool apart[DEVICES];
static struct balance balance;

static void reset(int layers, int devices) {
    memset(nodes, 0, sizeof nodes);
    memset(seconds, 0, sizeof seconds);
    memset(ways, 0, sizeof ways);
    memset(weights, 0, sizeof weights);
    memset(apart, 0, sizeof apart);
    balance = (struct balance){.layers = layers,
                               .devices = devices,
                               .node = nodes,
                               .seconds = seconds,
                               .ways = ways,
                               .weights = weights,
                               .apart = apart,
                               .microbatches = 1};
}

static int add_node(int layer, size_t bytes, int first, int second) {
    struct balance_node *added = &nodes[balance.nodes];
    *added = (struct balance_node){.layer = layer, .bytes = bytes};
    if (first >= 0) added->input[added->inputs++] = first;
    if (second >= 0) added->input[added->inputs++] = second;
    return balance.nodes++;
}

/* Once the nodes are there: times lie [devices][nodes]. */
static void set_seconds(int device, int n, double value) {
    seconds[device * balance.nodes + n] = value;
}

static double predict(const int *on) {
    struct error error = {0};
    double found = NAN;
    CHECK(balance_predict(&balance, on, &found, &error) == OK, "%s", error.words);
    return found;
}

static double search(int *on) {
    struct error error = {0};
    double found = NAN;
    CHECK(balance_search(&balance, on, &found, &error) == OK, "%s", error.words);
    CHECK(predict(on) == found, "it says %g s, its placement takes %g s", found, predict(on));
    return found;
}

/* --- by hand --- */

/* x (device 0) -> layer 0 -> layer 1 -> their gradients. */
static void build_pair(void) {
    reset(2, 2);
    const int x = add_node(NONE, 100, -1, -1);
    const int a = add_node(0, 50, x, -1), b = add_node(1, 10, a, -1);
    const int back = add_node(1, 50, b, a);
    const int dw = add_node(1, 8, b, a);
    const int end = add_node(0, 1, back, -1);
    for (int d = 0; d < 2; d++) {
        set_seconds(d, a, 4.0);
        set_seconds(d, b, 2.0 + d);
        set_seconds(d, back, 3.0);
        set_seconds(d, dw, 16.0);
        set_seconds(d, end, 8.0);
    }
    for (int w = 0; w < 4; w++) ways[w] = (struct balance_way){.copy_s = 0.5, .byte_s = 0.125, .wake_s = 1.0};
    weights[1] = (struct balance_weights){.arrays = 2, .bytes = 72};
}

static void check_by_hand(void) {
    int on[2] = {0, 0};
    build_pair();
    CHECK(predict(on) == 33.0, "one device takes %g s", predict(on)); /* the other one is only woken */
    on[1] = 1;
    /* 4 s; 50 bytes 6.75 s and 1 s; 3 s + 3 s; 6.75 s to send; 16 s while 8 s; 1 s until device 0 knows. */
    CHECK(predict(on) == 4.0 + 7.75 + 6.0 + 6.75 + 16.0 + 1.0, "two devices take %g s", predict(on));
    apart[1] = true; /* weights come while device 0 computes; gradients go back: 2 * 0.5 s + 9 s */
    CHECK(predict(on) == 41.5 + 10.0, "two memories take %g s", predict(on));
    apart[1] = false;
    balance.microbatches = 3;
    balance.sum_s = 0.25;
    CHECK(predict(on) == 41.5 + 2 * (40.5 + 0.25), "three passes take %g s", predict(on));
    balance.pipelined = true; /* device 1: 3 + 3 + 6.75 + 16 s of work */
    CHECK(predict(on) == 41.5 + 2 * 28.75, "a pipeline of three takes %g s", predict(on));
    balance.microbatches = 1;
    on[0] = 1;
    on[1] = 0;
    /* 13 s + 1 s; 4 s; 6.75 s + 1 s; 2 s + 3 s; 6.75 s to send, 16 s. */
    CHECK(predict(on) == 53.5, "with x and two values that cross it takes %g s", predict(on));
}

static void check_heaviest(void) {
    build_pair();
    struct balance_heavy heavy = balance_heaviest(&balance);
    CHECK(heavy.layer == 1 && heavy.device == 0 && heavy.share == 21.0 / 33.0 && heavy.most == 33.0 / 21.0,
          "layer %d on device %d, %g, %g", heavy.layer, heavy.device, heavy.share, heavy.most);
    balance.layers = 0;
    for (int n = 0; n < balance.nodes; n++) nodes[n].layer = NONE;
    heavy = balance_heaviest(&balance);
    CHECK(heavy.layer == NONE && heavy.share == 0.0, "without layers: %d, %g", heavy.layer, heavy.share);
}

/* --- against all placements --- */

/* Whole numbers of seconds, so that sums are exact. */
static void build_random(struct rng *rng) {
    reset(2 + (int)rng_below(rng, 4), 2 + (int)rng_below(rng, 2));
    int made = 1 + (int)rng_below(rng, 2);
    for (int i = 0; i < made; i++) add_node(NONE, rng_below(rng, 30), -1, -1);
    for (int l = 0; l < balance.layers; l++)
        for (int i = 1 + (int)rng_below(rng, 3); i > 0; i--)
            add_node(l, rng_below(rng, 30), balance.nodes - 1, (int)rng_below(rng, (uint32_t)balance.nodes));
    for (int l = balance.layers - 1; l >= 0; l--)
        for (int i = 1 + (int)rng_below(rng, 2); i > 0; i--)
            add_node(l, rng_below(rng, 30), balance.nodes - 1, (int)rng_below(rng, (uint32_t)balance.nodes));
    for (int d = 0; d < balance.devices; d++) {
        for (int n = 0; n < balance.nodes; n++) set_seconds(d, n, rng_below(rng, 40));
        apart[d] = d > 0 && rng_below(rng, 3) == 0;
        for (int to = 0; to < balance.devices; to++)
            ways[d * balance.devices + to] = (struct balance_way){
                .copy_s = rng_below(rng, 3), .byte_s = rng_below(rng, 3) * 0.25, .wake_s = rng_below(rng, 4)};
    }
    for (int l = 0; l < balance.layers; l++)
        weights[l] =
            (struct balance_weights){.arrays = 1 + (int)rng_below(rng, 2), .bytes = rng_below(rng, 16)};
    balance.microbatches = 1 + (int)rng_below(rng, 6);
    balance.pipelined = rng_below(rng, 2) == 0;
}

/* Where values must not go back. */
static bool is_allowed(const int *on) {
    for (int l = 1; l < balance.layers; l++)
        if (balance.pipelined && on[l] < on[l - 1]) return false;
    return true;
}

/* The next placement, as a number whose digits it has; false: it was the last. */
static bool next_placement(int *on) {
    for (int l = 0; l < balance.layers; l++) {
        if (++on[l] < balance.devices) return true;
        on[l] = 0;
    }
    return false;
}

static bool is_one(const int *on) {
    for (int l = 1; l < balance.layers; l++)
        if (on[l] != on[0]) return false;
    return true;
}

static void check_all_placements(void) {
    int cut = 0, fewer = 0;
    for (uint64_t graph = 0; graph < GRAPHS; graph++) {
        struct rng rng;
        rng_start(&rng, 11, graph);
        build_random(&rng);
        int on[LAYERS] = {0}, found[LAYERS];
        double least = INFINITY;
        do {
            const double taken = is_allowed(on) ? predict(on) : INFINITY;
            if (taken < least) least = taken;
        } while (next_placement(on));
        const double taken = search(found);
        CHECK(taken == least, "graph %d: found %g s, the least is %g s", (int)graph, taken, least);
        int simple[LAYERS];
        balance.margin = 0.125;
        const double near = search(simple);
        CHECK(near * 0.875 <= least, "graph %d: found %g s with a margin, the least is %g s", (int)graph,
              near, least);
        fewer += is_one(simple) && !is_one(found);
        cut += !is_one(found);
    }
    CHECK(cut > GRAPHS / 4 && cut < GRAPHS && fewer > 0, "%d of %d graphs were cut, %d fewer with a margin",
          cut, GRAPHS, fewer);
}

/* --- many layers --- */

static void build_chain(int layers, int devices, uint64_t seed, bool equal) {
    struct rng rng;
    rng_start(&rng, seed, 0);
    reset(layers, devices);
    int last = add_node(NONE, 4, -1, -1), forward[LAYERS];
    for (int l = 0; l < layers; l++) last = forward[l] = add_node(l, 1 + rng_below(&rng, 9), last, -1);
    for (int l = layers - 1; l >= 0; l--) {
        const int dy = last;
        last = add_node(l, 4, dy, forward[l]);
        if (!equal) add_node(l, 4, dy, forward[l]); /* of the kernel: nobody waits for it */
    }
    for (int n = 1; n < balance.nodes; n++) {
        const double taken = equal ? 1.0 : (double)(1 + rng_below(&rng, 20));
        for (int d = 0; d < devices; d++) set_seconds(d, n, taken + (equal ? 0 : rng_below(&rng, 4)));
    }
}

static void check_stages(int layers, int devices, int microbatches) {
    int on[LAYERS], found[LAYERS];
    build_chain(layers, devices, 5, false);
    for (int w = 0; w < devices * devices; w++)
        ways[w] = (struct balance_way){.byte_s = 0.125, .wake_s = 1.0};
    balance.microbatches = microbatches;
    balance.pipelined = microbatches > 1;
    const double taken = search(found);
    for (int first = 0; first < devices; first++)
        for (int second = 0; second < devices; second++)
            for (int third = 0; third < devices; third++)
                for (int a = 0; a <= layers; a++)
                    for (int b = a; b <= layers; b++) {
                        for (int l = 0; l < layers; l++) on[l] = l < a ? first : l < b ? second : third;
                        if (third == first || second == third || first == second || !is_allowed(on)) continue;
                        const double other = predict(on);
                        CHECK(taken <= other, "%d layers: %g s; cut at %d and %d: %g s", layers, taken, a, b,
                              other);
                    }
}

static void check_many(void) {
    int on[LAYERS], halves[LAYERS];
    check_stages(11, 3, 1);
    check_stages(11, 3, 8);
    for (int devices = 2; devices <= DEVICES; devices++) {
        build_chain(LAYERS, devices, 9, false);
        balance.microbatches = 4 * devices;
        balance.pipelined = true;
        const double taken = search(on);
        for (int l = 0; l < LAYERS; l++) halves[l] = l * devices / LAYERS;
        CHECK(taken <= predict(halves), "%d devices: %g s, equally many layers take %g s", devices, taken,
              predict(halves));
        memset(halves, 0, sizeof halves);
        CHECK(taken < 0.6 * predict(halves), "%d devices: %g s, one takes %g s", devices, taken,
              predict(halves));
    }
}

/* The bubble of a pipeline of equal stages: M + S - 1 times a stage. */
static void check_equal_layers(void) {
    int on[LAYERS];
    for (int stages = 2; stages <= DEVICES; stages++) {
        build_chain(24, stages, 3, true);
        balance.microbatches = 16;
        balance.pipelined = true;
        const double taken = search(on), stage = 2.0 * 24 / stages;
        CHECK(taken == stage * (16 + stages - 1), "%d stages: %g s, expected %g s", stages, taken,
              stage * (16 + stages - 1));
        balance.pipelined = false;
        CHECK(search(on) == 16 * 2.0 * 24, "without a pipeline: %g s", search(on));
    }
}

int main(void) {
    check_by_hand();
    check_heaviest();
    check_all_placements();
    check_many();
    check_equal_layers();
    return check_end();
}
