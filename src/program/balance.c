/* See balance.h. */
#include "balance.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"

/* Nodes walked over in a search: some tenths of a second. */
enum { MOST_WORK = 10000000 };

/* Of the mean of several sums, which may be rounded up. */
#define ROUNDING 1e-9

struct search {
    const struct balance *balance;
    double *least; /* [nodes] seconds on the device that is fastest at it */
    /* Of a walk. */
    double *done;      /* [nodes] when it is computed */
    double *arrived;   /* [nodes][devices] when it is there, of those that read it from elsewhere */
    uint64_t *readers; /* [nodes] these devices, a bit each */
    double free_s[BALANCE_DEVICES], busy_s[BALANCE_DEVICES]; /* when a device is free; its work */
    /* Of the search. */
    int *on;   /* [layers] as far as they are placed, then NONE */
    int *best; /* [layers] */
    double best_s;
    long walks;                               /* that are still allowed */
    enum { IN_ORDER, STAGES, ANYWHERE } rule; /* stages: a run of layers each; in order: by device number */
};

static const struct balance_way *way(const struct balance *balance, int from, int to) {
    return &balance->ways[from * balance->devices + to];
}

/* NONE: its layer is not placed yet. */
static int device_of(const struct balance *balance, const int *on, int n) {
    const int layer = balance->node[n].layer;
    return layer == NONE ? 0 : on[layer];
}

/* --- the walk --- */

static void mark_readers(struct search *search, const int *on) {
    const struct balance *balance = search->balance;
    for (int n = 0; n < balance->nodes; n++) {
        const struct balance_node *reader = &balance->node[n];
        const int device = device_of(balance, on, n);
        search->readers[n] = 0;
        for (int i = 0; i < reader->inputs && device != NONE; i++) {
            const int from = device_of(balance, on, reader->input[i]);
            if (from != NONE && from != device) search->readers[reader->input[i]] |= UINT64_C(1) << device;
        }
    }
}

/* Of the weights of a device's layers, or back of their gradients. */
static double exchange(const struct balance *balance, const int *on, int device, bool back) {
    const struct balance_way *taken = back ? way(balance, device, 0) : way(balance, 0, device);
    double seconds = 0.0;
    for (int l = 0; l < balance->layers && balance->apart[device]; l++)
        if (on[l] == device)
            seconds += balance->weights[l].arrays * taken->copy_s +
                       (double)balance->weights[l].bytes * taken->byte_s;
    return seconds;
}

/* Which of its operands come last. */
static double ready_at(const struct search *search, const int *on, int n, int device) {
    const struct balance *balance = search->balance;
    double ready = 0.0;
    for (int i = 0; i < balance->node[n].inputs; i++) {
        const int input = balance->node[n].input[i], from = device_of(balance, on, input);
        const bool crosses = device != NONE && from != NONE && from != device;
        ready =
            fmax(ready, crosses ? search->arrived[input * balance->devices + device] : search->done[input]);
    }
    return ready;
}

static void walk_node(struct search *search, const int *on, int n) {
    const struct balance *balance = search->balance;
    const int device = device_of(balance, on, n);
    const double ready = ready_at(search, on, n, device);
    if (device == NONE) {
        search->done[n] = ready + search->least[n];
        return;
    }
    const double seconds = balance->seconds[device * balance->nodes + n];
    double now = fmax(ready, search->free_s[device]) + seconds;
    search->busy_s[device] += seconds;
    search->done[n] = now;
    for (int to = 0; to < balance->devices && search->readers[n] >> to != 0; to++) {
        if (!(search->readers[n] >> to & 1)) continue;
        const struct balance_way *taken = way(balance, device, to);
        const double sending = taken->copy_s + (double)balance->node[n].bytes * taken->byte_s;
        now += sending;
        search->busy_s[device] += sending;
        search->arrived[n * balance->devices + to] = now + taken->wake_s;
    }
    search->free_s[device] = now;
}

/* Seconds of a pass, of a batch's first with its weights and gradients; of layers that are not placed, the
 * least that they take. */
static double walk(struct search *search, const int *on, bool exchanges) {
    const struct balance *balance = search->balance;
    double end = 0.0;
    mark_readers(search, on);
    for (int d = 0; d < balance->devices; d++) {
        search->busy_s[d] = 0.0;
        search->free_s[d] = d == 0 || !exchanges ? 0.0 : way(balance, 0, d)->wake_s;
        if (exchanges) search->free_s[d] += exchange(balance, on, d, false);
    }
    for (int n = 0; n < balance->nodes; n++) {
        walk_node(search, on, n);
        end = fmax(end, search->done[n]);
    }
    for (int d = 0; d < balance->devices && exchanges; d++) {
        const double woken = d > 0 ? way(balance, d, 0)->wake_s : 0.0;
        end = fmax(end, search->free_s[d] + exchange(balance, on, d, true) + woken);
    }
    for (int d = 0; d < balance->devices; d++) end = fmax(end, search->free_s[d]);
    return end;
}

/* The work of the busiest device in the last walk, at least: what is not placed may be divided evenly. */
static double busiest(const struct search *search, const int *on) {
    const struct balance *balance = search->balance;
    double most = 0.0, all = 0.0;
    for (int d = 0; d < balance->devices; d++) {
        most = fmax(most, search->busy_s[d]);
        all += search->busy_s[d];
    }
    for (int n = 0; n < balance->nodes; n++)
        if (device_of(balance, on, n) == NONE) all += search->least[n];
    return fmax(most, all / balance->devices * (1.0 - ROUNDING));
}

static double seconds_of(struct search *search, const int *on) {
    const struct balance *balance = search->balance;
    const double first = walk(search, on, true);
    if (balance->microbatches == 1) return first;
    const double next = balance->pipelined ? busiest(search, on) : balance->sum_s + walk(search, on, false);
    return first + (balance->microbatches - 1) * next;
}

/* --- the search --- */

/* Also of the least that a placement can take. */
static bool is_better(const struct search *search, double seconds) {
    return seconds < search->best_s * (1.0 - search->balance->margin);
}

static void keep_if_best(struct search *search, const int *on) {
    const double seconds = seconds_of(search, on);
    if (!is_better(search, seconds)) return;
    search->best_s = seconds;
    memcpy(search->best, on, (size_t)search->balance->layers * sizeof *on);
}

/* Each device alone; as many stages as there are devices, or less, of equally many layers. */
static void try_simple(struct search *search) {
    const struct balance *balance = search->balance;
    for (int d = 0; d < balance->devices; d++) {
        for (int l = 0; l < balance->layers; l++) search->on[l] = d;
        keep_if_best(search, search->on);
    }
    for (int stages = 2; stages <= balance->devices; stages++) {
        for (int l = 0; l < balance->layers; l++) search->on[l] = (int)((long)l * stages / balance->layers);
        keep_if_best(search, search->on);
    }
}

/* Whether the next layer may be on that device after one on device `before`; used: those that have layers. */
static bool may_follow(const struct search *search, int before, int device, uint64_t used) {
    if (search->rule == IN_ORDER) return device >= before;
    return search->rule == ANYWHERE || device == before || !(used >> device & 1);
}

/* The layers before `layer` are placed, on devices of which `used` has the bits. Where the last one is comes
 * first, which lets values cross least. */
static void place_rest(struct search *search, int layer, uint64_t used) {
    const struct balance *balance = search->balance;
    if (search->walks-- <= 0) return;
    if (!is_better(search, seconds_of(search, search->on))) return;
    if (layer == balance->layers) {
        keep_if_best(search, search->on);
        return;
    }
    const int before = layer > 0 ? search->on[layer - 1] : 0;
    for (int i = 0; i < balance->devices; i++) {
        const int device = (before + i) % balance->devices;
        if (!may_follow(search, before, device, used)) continue;
        search->on[layer] = device;
        place_rest(search, layer + 1, used | UINT64_C(1) << device);
    }
    search->on[layer] = NONE;
}

static void place_all(struct search *search) {
    const struct balance *balance = search->balance;
    for (search->rule = balance->pipelined ? IN_ORDER : STAGES;; search->rule = ANYWHERE) {
        for (int l = 0; l < balance->layers; l++) search->on[l] = NONE;
        search->walks = MOST_WORK / (balance->nodes + 1);
        place_rest(search, 0, 0);
        if (search->rule != STAGES) return;
    }
}

/* --- open and close --- */

static int open_search(struct search *search, const struct balance *balance, struct error *error) {
    const size_t nodes = (size_t)balance->nodes;
    *search = (struct search){.balance = balance, .best_s = INFINITY};
    RETURN_IF(memory_array(&search->least, nodes, "a search for places", error));
    RETURN_IF(memory_array(&search->done, nodes, "a search for places", error));
    RETURN_IF(memory_array(&search->arrived, nodes * (size_t)balance->devices, "a search for places", error));
    RETURN_IF(memory_array(&search->readers, nodes, "a search for places", error));
    RETURN_IF(memory_array(&search->on, balance->layers, "a search for places", error));
    RETURN_IF(memory_array(&search->best, balance->layers, "a search for places", error));
    for (size_t n = 0; n < nodes; n++) {
        search->least[n] = balance->seconds[n];
        for (int d = 1; d < balance->devices; d++)
            search->least[n] = fmin(search->least[n], balance->seconds[(size_t)d * nodes + n]);
    }
    return OK;
}

static void close_search(struct search *search) {
    memory_free(search->best);
    memory_free(search->on);
    memory_free(search->readers);
    memory_free(search->arrived);
    memory_free(search->done);
    memory_free(search->least);
}

int balance_predict(const struct balance *balance, const int *on, double *seconds, struct error *error) {
    struct search search;
    const int code = open_search(&search, balance, error);
    if (code == OK) *seconds = seconds_of(&search, on);
    close_search(&search);
    return code;
}

int balance_search(const struct balance *balance, int *on, double *seconds, struct error *error) {
    struct search search;
    const int code = open_search(&search, balance, error);
    if (code == OK) {
        try_simple(&search);
        place_all(&search);
        memcpy(on, search.best, (size_t)balance->layers * sizeof *on);
        *seconds = search.best_s;
    }
    close_search(&search);
    return code;
}

/* --- the heaviest layer --- */

/* On one device, of one layer or, with NONE, of all nodes. */
static double work_of(const struct balance *balance, int device, int layer) {
    double seconds = 0.0;
    for (int n = 0; n < balance->nodes; n++)
        if (layer == NONE || balance->node[n].layer == layer)
            seconds += balance->seconds[device * balance->nodes + n];
    return seconds;
}

struct balance_heavy balance_heaviest(const struct balance *balance) {
    struct balance_heavy heavy = {.layer = NONE};
    int fastest = 0;
    for (int d = 1; d < balance->devices; d++)
        if (work_of(balance, d, NONE) < work_of(balance, fastest, NONE)) fastest = d;
    const double all = work_of(balance, fastest, NONE);
    for (int l = 0; l < balance->layers && all > 0.0; l++) {
        const double share = work_of(balance, fastest, l) / all;
        if (share <= heavy.share) continue;
        double least = INFINITY;
        for (int d = 0; d < balance->devices; d++) least = fmin(least, work_of(balance, d, l));
        heavy = (struct balance_heavy){.layer = l, .device = fastest, .share = share, .most = all / least};
    }
    return heavy;
}
