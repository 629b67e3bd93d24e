/* Shards that live on devices: wherever they do, every verb leaves the bits that it leaves in the host's
 * memory; and the mean of a round by the workers' GPUs together is the one by copies, up to the order of
 * additions. One thread drives everything. */
#include <math.h>
#include <string.h>

#include "../../src/base/rng.h"
#include "../../src/device/copy.h"
#include "../../src/store/strategy.h"
#include "../check.h"
#include "../gpu_control.h"

enum { WORKERS = 4, RANGES = 4, FLOATS = 4096, ROUNDS = 3, NO_GPU = -1 };

static const struct range sample[RANGES] = {
    {.floats = 1037, .decay = 0.1f, .rate_multiplier = 1.0f},
    {.floats = 20, .kind = RANGE_STATISTIC, .rate_multiplier = 1.0f},
    {.floats = 70, .rate_multiplier = 2.0f},
    {.floats = 1290, .decay = 0.2f, .rate_multiplier = 0.5f},
};

/* Where the workers are: labels of GPUs, or the CPU. */
struct place {
    int workers, gpu[WORKERS];
};

struct rig {
    struct range ranges[RANGES];
    struct layout layout;
    struct world *world;
    struct roster roster;
    struct choice strategy, optimizer, schedule;
    struct device *devices;
    int device_count;
    struct store store;
    struct gradient gradients[WORKERS];
    float *values[WORKERS];
    struct state own[WORKERS];
    struct error error;
};

static float some(uint64_t a, uint64_t b) {
    return rng_unit(rng_philox(5, a, b).word[0]) - 0.4f;
}

/* Labels of GPUs that are here: on a machine with fewer, several are one. */
static bool open_devices_at(struct rig *rig, const struct place *place, bool deterministic) {
    const struct device_settings settings = {.threads = 1, .deterministic = deterministic};
    char text[200] = "";
    bool shared = false;
    for (int w = 0; w < place->workers; w++) {
        const size_t used = strlen(text);
        if (place->gpu[w] == NO_GPU)
            snprintf(text + used, sizeof text - used, "%scpu:%d", w ? "," : "", w);
        else
            snprintf(text + used, sizeof text - used, "%sgpu:%d", w ? "," : "",
                     place->gpu[w] % gpu_backend_of_build()->count());
    }
    return devices_open(text, &settings, &rig->devices, &rig->device_count, &shared, &rig->error) == OK;
}

static bool open_own(struct rig *rig, int worker) {
    const struct store *store = &rig->store;
    const bool well = store_own_vector(store, worker, &rig->values[worker], "values", &rig->error) == OK &&
                      store_own_state(store, worker, true, &rig->own[worker], &rig->error) == OK;
    CHECK(rig->own[worker].count == store->host.count, "%d own vectors", rig->own[worker].count);
    rig->gradients[worker] =
        (struct gradient){.worker = worker, .values = rig->values[worker], .examples = 8};
    return well;
}

/* place NULL: all in the host's memory, WORKERS workers. */
static bool open_rig(struct rig *rig, const struct place *place, int shards, enum links links,
                     bool deterministic, const char *optimizer) {
    struct error *error = &rig->error;
    *rig = (struct rig){.layout = {.ranges = rig->ranges, .count = RANGES}};
    for (int i = 0; i < RANGES; i++) {
        rig->ranges[i] = sample[i];
        rig->ranges[i].begin = rig->layout.floats;
        rig->layout.floats += (sample[i].floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    }
    bool well = plugin_choose(&rig->strategy, &strategy_kind, "sync", error) == OK;
    well = well && plugin_choose(&rig->optimizer, &optimizer_kind, optimizer, error) == OK;
    well = well && plugin_choose(&rig->schedule, &schedule_kind, "constant", error) == OK;
    well = well && world_open_threads(&rig->world, error) == OK;
    well = well && (!place || open_devices_at(rig, place, deterministic));
    const int workers = place ? place->workers : WORKERS;
    well = well && roster_open(&rig->roster, rig->world, workers, 0, 5.0, error) == OK;
    const struct store_settings settings = {.layout = &rig->layout,
                                            .roster = &rig->roster,
                                            .shards = shards,
                                            .strategy = &rig->strategy,
                                            .optimizer = &rig->optimizer,
                                            .schedule = &rig->schedule,
                                            .total_updates = 100,
                                            .devices = rig->devices,
                                            .on_devices = place != NULL,
                                            .links = links,
                                            .average = 0.9};
    if (well && store_open(&rig->store, &settings, error) != OK) return false;
    for (int w = 0; w < workers; w++) well = well && open_own(rig, w);
    CHECK(well, "%s", error->words);
    if (!well) return false;
    for (int i = 0; i < RANGES; i++)
        for (size_t k = 0; k < rig->ranges[i].floats; k++)
            rig->store.host.vector[0].at[rig->ranges[i].begin + k] = some(99, k + 7 * (size_t)i);
    store_begin_average(&rig->store);
    CHECK(store_send(&rig->store, error) == OK, "%s", error->words);
    return true;
}

static void close_rig(struct rig *rig) {
    for (int w = 0; rig->store.shards && w < rig->roster.workers; w++) {
        store_own_vector_free(&rig->store, w, rig->values[w]);
        store_own_state_free(&rig->store, w, &rig->own[w]);
    }
    store_close(&rig->store);
    roster_close(&rig->roster);
    world_close(rig->world);
    devices_close(rig->devices, rig->device_count);
}

/* New gradients where the workers have theirs. */
static void give(struct rig *rig, long round) {
    static float values[FLOATS];
    for (int w = 0; w < rig->roster.workers; w++) {
        for (size_t i = 0; i < rig->layout.floats; i++) values[i] = 0.0f;
        for (int r = 0; r < RANGES; r++)
            for (size_t k = 0; k < rig->ranges[r].floats; k++)
                values[rig->ranges[r].begin + k] =
                    some((uint64_t)round * 10 + (uint64_t)w, k + 1000 * (size_t)r);
        CHECK(device_copy(store_own_device(&rig->store, w), rig->values[w], NULL, values,
                          rig->layout.floats * sizeof *values, &rig->error) == OK,
              "%s", rig->error.words);
    }
}

enum way { WAY_ROUND, WAY_UNEQUAL, WAY_LEFT_OUT, WAY_APPLY, WAY_RACY, WAY_OWN, WAYS };
static const char *const way_names[WAYS] = {
    "a round",     "a round of unequal batches", "a round without one",
    "shard_apply", "shard_apply_racy",           "own copies"};

/* `workers` of the roster take part, so that what is compared has the same gradients. */
static void step(struct rig *rig, enum way way, int workers, long round) {
    give(rig, round);
    for (int s = 0; s < rig->store.settings.shards; s++) {
        struct shard *shard = &rig->store.shards[s];
        const struct state *sharing[WORKERS] = {0};
        for (int w = 0; w < workers; w++) {
            struct gradient *gradient = &rig->gradients[w];
            atomic_store(&shard->contributed[w], NULL);
            gradient->examples = way == WAY_UNEQUAL ? 8 + w : 8;
            if (way == WAY_LEFT_OUT && w == 1) continue;
            if (way <= WAY_LEFT_OUT) shard_contribute(shard, gradient);
            if (way == WAY_APPLY) shard_apply(shard, gradient);
            if (way == WAY_RACY) shard_apply_racy(shard, gradient);
            if (way != WAY_OWN) continue;
            shard_copy(shard, w, &rig->own[w]);
            shard_step_own(shard, &rig->own[w], gradient, round);
            sharing[w] = &rig->own[w];
        }
        for (int share = workers - 1; share >= 0 && way <= WAY_LEFT_OUT; share--)
            shard_step_share(shard, share, share, workers);
        shard_settle(shard);
        for (int share = 0; share < workers && way == WAY_OWN; share++)
            shard_reduce_share(shard, share, sharing, share, workers);
        shard_end_round(shard, atomic_load(&shard->version) + 1);
    }
    CHECK(store_check(&rig->store, &rig->error) == OK, "%s", rig->error.words);
}

/* The largest difference in a number of any vector, as the host and as a reader have them; 0: the same bits.
 */
static double difference(struct rig *a, struct rig *b) {
    const struct state *x = &a->store.host, *y = &b->store.host;
    static float read[FLOATS];
    double largest = 0.0;
    long version = -1;
    const struct device cpu = {.backend = backends[0], .name = "cpu:0"};
    CHECK(store_fetch(&a->store, &a->error) == OK, "%s", a->error.words);
    CHECK(store_fetch(&b->store, &b->error) == OK, "%s", b->error.words);
    CHECK(x->count == y->count, "%d vectors and %d", x->count, y->count);
    for (int v = 0; v < x->count; v++)
        for (size_t i = 0; i < a->layout.floats; i++) {
            const float one = x->vector[v].at[i], other = y->vector[v].at[i];
            if (memcmp(&one, &other, sizeof one) != 0)
                largest = fmax(largest, fabs((double)one - (double)other) + 1e-30);
        }
    memset(read, 1, sizeof read);
    for (int s = 0; s < a->store.settings.shards; s++, version = -1)
        shard_read(&a->store.shards[s], &cpu, read, &version);
    CHECK(memcmp(read, x->vector[0].at, a->layout.floats * sizeof *read) == 0, "what is read is not there");
    memset(read, 1, sizeof read);
    CHECK(store_copy_weights(&a->store, &cpu, read, &a->error) == OK, "%s", a->error.words);
    CHECK(memcmp(read, x->vector[0].at, a->layout.floats * sizeof *read) == 0, "what is copied is not there");
    return largest;
}

/* The shards are spread over the workers' GPUs, each once, in turn. */
static void check_homes(const struct rig *rig, const struct place *place, const char *what) {
    const struct store *store = &rig->store;
    int labels[WORKERS], count = 0;
    char names[100] = "", said[100];
    for (int w = 0; w < place->workers && count < store->settings.shards; w++) {
        int seen = 0;
        while (seen < count && labels[seen] != rig->devices[w].label) seen++;
        if (place->gpu[w] == NO_GPU || seen < count) continue;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", count ? "," : "",
                 rig->devices[w].name);
        labels[count++] = rig->devices[w].label;
    }
    CHECK(store->home_count == count, "%s: %d homes, expected %d", what, store->home_count, count);
    for (int s = 0; s < store->settings.shards; s++)
        CHECK(store->shards[s].home->device->label == labels[s % count], "%s: shard %d lives on %s", what, s,
              store->shards[s].home->device->name);
    store_name_homes(store, said, sizeof said);
    CHECK(strcmp(said, names) == 0, "%s: '%s', expected '%s'", what, said, names);
    for (int w = 0; w < place->workers; w++) {
        const bool mine = count == 1 && place->gpu[w] != NO_GPU && labels[0] == rig->devices[w].label;
        CHECK(store_shares_memory(store, &rig->devices[w]) == mine, "%s: %s in place", what,
              rig->devices[w].name);
        CHECK(store_own_device(store, w) == (place->gpu[w] == NO_GPU ? &store->processor : &rig->devices[w]),
              "%s: where %s has its own", what, rig->devices[w].name);
    }
}

/* Every verb, on devices and in the host's memory, with the same gradients. */
static void check_place(const struct place *place, int shards, const char *optimizer) {
    static struct rig host, on;
    char what[100];
    if (open_rig(&host, NULL, shards, LINKS_AUTO, false, optimizer) &&
        open_rig(&on, place, shards, LINKS_COPIES, false, optimizer)) {
        snprintf(what, sizeof what, "%d workers from %s on, %d shards, %s", place->workers,
                 on.devices[0].name, shards, optimizer);
        check_homes(&on, place, what);
        CHECK(!on.store.group, "%s: a group, though copies were asked for", what);
        CHECK(difference(&on, &host) == 0.0, "%s: the first weights", what);
        for (long round = 0; round < ROUNDS * WAYS; round++) {
            step(&host, (enum way)(round % WAYS), place->workers, round);
            step(&on, (enum way)(round % WAYS), place->workers, round);
            const double most = difference(&on, &host);
            CHECK(most == 0.0, "%s, %s: %g apart after round %ld", what, way_names[round % WAYS], most,
                  round);
            if (most > 0.0) break;
        }
        CHECK(store_lost_updates(&on.store) == 0, "%s: %ld lost updates", what,
              store_lost_updates(&on.store));
    }
    close_rig(&on);
    close_rig(&host);
}

/* A round by the GPUs together: 1e-5 from the one by copies; the same bits where it is by copies after all:
 * batches are not equal, or a worker is missing. */
static void check_group(const struct place *place, int shards) {
    static struct rig copies, group;
    if (open_rig(&copies, place, shards, LINKS_COPIES, false, "sgd:rate=0.1") &&
        open_rig(&group, place, shards, LINKS_COLLECTIVE, false, "sgd:rate=0.1")) {
        CHECK(group.store.group && strncmp(group.store.mean_by, "NCCL ", 5) == 0, "'%s'",
              group.store.mean_by);
        for (int way = WAY_LEFT_OUT; way > WAY_ROUND && place->workers > 1; way--) {
            step(&copies, (enum way)way, place->workers, way);
            step(&group, (enum way)way, place->workers, way);
            CHECK(difference(&group, &copies) == 0.0, "%d workers, %s: other bits", place->workers,
                  way_names[way]);
        }
        double most = 0.0;
        for (long round = 0; round < ROUNDS; round++) {
            step(&copies, WAY_ROUND, place->workers, round);
            step(&group, WAY_ROUND, place->workers, round);
            most = fmax(most, difference(&group, &copies));
        }
        CHECK(most < 1e-5, "%d workers, %d shards: %g apart", place->workers, shards, most);
        CHECK((most > 0.0) == (place->workers > 2) || !STANDIN,
              "%d workers, %d shards: %g apart, is it another order of additions?", place->workers, shards,
              most);
    }
    close_rig(&group);
    close_rig(&copies);
}

/* Where no group can be: auto does without and says why, and who asks for one is told. */
static void check_no_group(const struct place *place, bool deterministic, const char *why) {
    static struct rig rig;
    char expected[120];
    if (open_rig(&rig, place, 2, LINKS_AUTO, deterministic, "sgd"))
        CHECK(!rig.store.group && strstr(rig.store.mean_by, why), "'%s', expected '%s'", rig.store.mean_by,
              why);
    close_rig(&rig);
    snprintf(expected, sizeof expected, "--links=collective: %s", why);
    CHECK(!open_rig(&rig, place, 2, LINKS_COLLECTIVE, deterministic, "sgd"), "a group, though %s", why);
    CHECK(rig.error.code == ERROR_USAGE && strcmp(rig.error.words, expected) == 0, "%d, '%s'", rig.error.code,
          rig.error.words);
    close_rig(&rig);
}

/* What a GPU fails at is remembered by the store, in words that name all of the group. */
static void check_failure(const struct place *place) {
    static struct rig rig;
    if (!STANDIN) return;
    if (open_rig(&rig, place, 3, LINKS_AUTO, false, "sgd")) {
        give(&rig, 0);
        for (int w = 0; w < place->workers; w++) shard_contribute(&rig.store.shards[1], &rig.gradients[w]);
        standin_break(1);
        shard_step_share(&rig.store.shards[1], 0, 0, place->workers);
        CHECK(store_check(&rig.store, &rig.error) == ERROR_DEVICE &&
                  strncmp(rig.error.words, "gpu:0,gpu:1,gpu:2: ncclReduce(", 30) == 0,
              "'%s'", rig.error.words);
    }
    close_rig(&rig);
}

int main(void) {
    const char *given = getenv("STANDIN_GPUS");
    if (STANDIN && !(given && strcmp(given, "0") == 0)) setenv("STANDIN_GPUS", "4", 1);
    if (STANDIN)
        setenv("STANDIN_PEER", "0", 1); /* what a kernel reads is brought to its GPU, or the test ends */
    gpu_or_skip();
    const int gpus = gpu_backend_of_build()->count();
    static const struct place places[] = {{1, {0}},
                                          {4, {0, 0, 0, 0}},
                                          {2, {1, 0}},
                                          {3, {0, 1, 2}},
                                          {4, {2, 0, 2, 1}},
                                          {3, {NO_GPU, 3, 1}},
                                          {4, {0, NO_GPU, NO_GPU, 0}}};
    static const char *const some_optimizers[] = {"sgd:rate=0.1", "momentum", "adam"};
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (int shards = 1; shards <= 5; shards += 2)
            check_place(&places[p], shards, some_optimizers[(p + (size_t)shards) % 3]);
    const struct place alone = {1, {0}}, two = {2, {1, 0}}, four = {4, {3, 0, 2, 1}};
    const struct place three = {3, {0, 1, 2}}, shared = {2, {0, 0}}, mixed = {2, {0, NO_GPU}};
    if (gpu_backend_of_build()->collective) {
        check_group(&alone, 1);
        if (gpus > 1) check_group(&two, 3);
        if (gpus > 3) check_group(&four, 1);
        if (gpus > 3) check_group(&four, 5);
        if (gpus > 2) check_failure(&three);
        check_no_group(&shared, false, "workers share a device");
        check_no_group(&mixed, false, "not all workers are on devices with memory of their own");
        if (gpus > 1) check_no_group(&two, true, "--deterministic promises roster order");
    }
    CHECK(standin_open(NULL) == 0, "%d things are left", standin_open(NULL));
    return check_end();
}
