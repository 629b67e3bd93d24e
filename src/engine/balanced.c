/* See balanced.h. */
#include "balanced.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../device/groups.h"
#include "costs.h"

/* A layer with as much of the work is worth a word. */
#define HEAVY_SHARE 0.5

/* What is measured twice differs by about as much. */
#define MARGIN 0.02

/* --- the list --- */

/* Of "conv12": 4. */
static size_t stem_of(const char *name) {
    size_t length = strlen(name);
    while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9') length--;
    return length;
}

static int layer_of_range(const struct placeable *placeable, const char *range) {
    const size_t length = (size_t)(strrchr(range, '/') ? strrchr(range, '/') - range : (long)strlen(range));
    for (int l = 0; l < placeable->count; l++)
        if (strlen(placeable->name[l]) == length && memcmp(placeable->name[l], range, length) == 0) return l;
    return NONE;
}

/* Whether every layer whose name begins like this one's lies on its device. */
static bool is_whole(const struct placeable *placeable, const struct layout *layout, const int *on, int l,
                     size_t stem) {
    for (int r = 0; r < layout->count; r++) {
        if (strncmp(layout->ranges[r].name, placeable->name[l], stem) != 0) continue;
        const int other = layer_of_range(placeable, layout->ranges[r].name);
        if (other == NONE || on[other] != on[l]) return false;
    }
    return true;
}

/* An earlier layer's pattern has this one. */
static bool is_written(const struct placeable *placeable, int l, size_t stem) {
    for (int before = 0; before < l; before++)
        if (stem_of(placeable->name[before]) == stem &&
            memcmp(placeable->name[before], placeable->name[l], stem) == 0)
            return true;
    return false;
}

/* "conv*=cpu:0,dense1=cpu:0,dense2=cpu:1": every layer is named, as one that is not would go where the layer
 * before it is in the order of the graph. */
static int write_list(const struct placeable *placeable, const struct layout *layout,
                      const struct device *devices, const int *on, char *place, size_t bytes,
                      struct error *error) {
    struct text list = text_into(place, bytes);
    for (int l = 0; l < placeable->count; l++) {
        const char *name = placeable->name[l], *device = devices[on[l]].name;
        const size_t stem = stem_of(name);
        if (name[stem] == '\0' || !is_whole(placeable, layout, on, l, stem))
            text_item(&list, ",", "%s=%s", name, device);
        else if (!is_written(placeable, l, stem))
            text_item(&list, ",", "%.*s*=%s", (int)stem, name, device);
    }
    if (!list.cut) return OK;
    return error_set(error, ERROR_USAGE,
                     "--place=auto: found %d layers, whose list of places is longer than %zu bytes",
                     placeable->count, bytes - 1);
}

/* --- the words --- */

static void describe(struct balanced *balanced, const struct costs *costs, const int *on) {
    const struct balance *balance = &costs->balance;
    const struct balance_heavy heavy = balance_heaviest(balance);
    const double seconds = balanced->expected_s;
    struct text words = text_into(balanced->words, sizeof balanced->words);
    bool alone = true;
    for (int l = 1; l < balance->layers; l++) alone = alone && on[l] == on[0];
    text_add(&words, "placed by measured times, ");
    if (seconds < 1.0)
        text_add(&words, "%.3g ms", 1e3 * seconds);
    else
        text_add(&words, "%.2f s", seconds);
    text_add(&words, " expected per batch");
    if (alone && balance->layers > 1)
        text_add(&words, "; no cut was found that is faster than one device alone");
    if (heavy.share >= HEAVY_SHARE)
        text_add(&words,
                 "; %s is %.0f %% of the work, so no cut can be more than %.1f times as fast as one device",
                 costs->placeable.name[heavy.layer], 100.0 * heavy.share, heavy.most);
}

/* --- all of it --- */

struct placing {
    const struct batch_work *work;
    const struct groups *groups;
    struct device *devices; /* [size] of the first group */
    struct costs costs;
    int *on, *alone; /* [layers] by the operations' times: the best place of each; the best one device */
    bool abandoned;  /* a device hangs in a trial */
    char *place;     /* [bytes] their list; the caller's */
    size_t bytes;
};

static bool is_cut(const struct placing *placing) {
    for (int l = 1; l < placing->costs.balance.layers; l++)
        if (placing->on[l] != placing->on[0]) return true;
    return false;
}

static int find_alone(struct placing *placing, struct error *error) {
    const struct balance *balance = &placing->costs.balance;
    double least = INFINITY;
    int best = 0;
    for (int d = 0; d < balance->devices; d++) {
        double seconds = 0.0;
        for (int l = 0; l < balance->layers; l++) placing->alone[l] = d;
        RETURN_IF(balance_predict(balance, placing->alone, &seconds, error));
        if (seconds < least) best = d;
        least = fmin(least, seconds);
    }
    for (int l = 0; l < balance->layers; l++) placing->alone[l] = best;
    return OK;
}

static int write_places(const struct placing *placing, const int *on, struct error *error) {
    return write_list(&placing->costs.placeable, &placing->work->network->graph.layout, placing->devices, on,
                      placing->place, placing->bytes, error);
}

/* Seconds of a batch with the layers on these devices; INFINITY: the parts would wait for each other in this
 * pipeline, and `refused` says so. */
static int try_places(struct placing *placing, const int *on, double *seconds, struct error *refused,
                      struct error *error) {
    struct groups groups = *placing->groups;
    RETURN_IF(write_places(placing, on, error));
    groups.place = placing->place;
    groups.placed = NULL;
    *refused = (struct error){0};
    const int code = batch_time(placing->work, NULL, &groups, seconds, &placing->abandoned, refused);
    if (code == OK) return OK;
    if (code != ERROR_USAGE) return error_set(error, code, "%s", refused->words);
    *seconds = INFINITY;
    return OK;
}

/* Whichever one device the pipeline does not refuse. */
static int find_taken(struct placing *placing, double *seconds, struct error *error) {
    const struct balance *balance = &placing->costs.balance;
    struct error refused = {0};
    for (int d = 0; d < balance->devices && isinf(*seconds); d++) {
        for (int l = 0; l < balance->layers; l++) placing->alone[l] = d;
        RETURN_IF(try_places(placing, placing->alone, seconds, &refused, error));
    }
    return isinf(*seconds) ? error_set(error, ERROR_USAGE, "%s", refused.words) : OK;
}

/* The operations were timed on one device at a time. What is placed by them is tried on all at once, and so
 * is one device alone, which a cut must be faster than. */
static int choose(struct balanced *balanced, struct placing *placing, struct error *error) {
    double predicted = 0.0, alone_s = INFINITY;
    struct error refused;
    RETURN_IF(balance_search(&placing->costs.balance, placing->on, &predicted, error));
    RETURN_IF(find_alone(placing, error));
    if (is_cut(placing)) RETURN_IF(try_places(placing, placing->alone, &alone_s, &refused, error));
    RETURN_IF(try_places(placing, placing->on, &balanced->expected_s, &refused, error));
    if (isinf(balanced->expected_s) && isinf(alone_s)) RETURN_IF(find_taken(placing, &alone_s, error));
    if (balanced->expected_s < alone_s * (1.0 - MARGIN)) return OK;
    balanced->expected_s = alone_s;
    memcpy(placing->on, placing->alone, (size_t)placing->costs.balance.layers * sizeof *placing->on);
    return OK;
}

static int fill(struct balanced *balanced, struct placing *placing, struct error *error) {
    const struct groups *groups = placing->groups;
    struct costs *costs = &placing->costs;
    RETURN_IF(memory_array(&placing->devices, groups->size, "a group's devices", error));
    for (int d = 0; d < groups->size; d++)
        placing->devices[d] = *groups_device(groups->devices, groups->workers, groups->size, 0, d);
    RETURN_IF(costs_open(costs, placing->work, placing->devices, groups->size, error));
    costs->balance.pipelined = groups->schedule != PIPELINE_NONE;
    costs->balance.margin = MARGIN;
    RETURN_IF(memory_array(&placing->on, costs->balance.layers, "places of layers", error));
    RETURN_IF(memory_array(&placing->alone, costs->balance.layers, "places of layers", error));
    RETURN_IF(choose(balanced, placing, error));
    RETURN_IF(write_places(placing, placing->on, error));
    describe(balanced, costs, placing->on);
    return OK;
}

int balanced_place(struct balanced *balanced, char *place, size_t bytes, const struct groups *groups,
                   const struct batch_work *work, struct error *error) {
    struct placing *placing = NULL;
    if (groups->size > BALANCE_DEVICES)
        return error_set(error, ERROR_USAGE, "--place=auto: found groups of %d, expected %d devices at most",
                         groups->size, BALANCE_DEVICES);
    RETURN_IF(memory_array(&placing, 1, "a placement", error));
    placing->work = work;
    placing->groups = groups;
    placing->place = place;
    placing->bytes = bytes;
    const int code = fill(balanced, placing, error);
    balanced->abandoned = placing->abandoned;
    if (placing->abandoned) return code;
    memory_free(placing->alone);
    memory_free(placing->on);
    costs_close(&placing->costs);
    memory_free(placing->devices);
    memory_free(placing);
    return code;
}
