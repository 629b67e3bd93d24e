/* The mean over several GPUs by their collective library: the numbers, whoever is the root; and what is said,
 * how soon, and what is given back when it cannot be: a device that is named twice, a collective that never
 * ends, a rank that is gone, calls that fail; and of a rank whose others are in other processes. On a real
 * GPU only that it loads and computes with the ranks that there are. */
#include <math.h>
#include <string.h>

#include "../../src/base/rng.h"
#include "../../src/world/world.h"
#include "../check.h"
#include "../gpu_control.h"

enum { RANKS = 4, MOST = 100003, GUARD = 64 };

static const struct collective *collective;
static struct world *world;

struct rig {
    struct device *devices;
    int count;
    void *group;
    float *values[RANKS], *out; /* [MOST]; out on the root, between guards */
    struct error error;
};

static int open_rig(struct rig *rig, const char *text, double timeout_s) {
    const struct device_settings settings = {0};
    const struct device *devices[RANKS];
    bool shared = false;
    *rig = (struct rig){0};
    RETURN_IF(devices_open(text, &settings, &rig->devices, &rig->count, &shared, &rig->error));
    for (int i = 0; i < rig->count && i < RANKS; i++) devices[i] = &rig->devices[i];
    return collective->open(devices, rig->count, world, timeout_s, &rig->group, &rig->error);
}

static void close_rig(struct rig *rig) {
    collective->close(rig->group);
    devices_close(rig->devices, rig->count);
    CHECK(standin_open(NULL) == 0, "%d things are left, %d communicators, %d streams", standin_open(NULL),
          standin_open("NCCL communicator"), standin_open("stream"));
}

static int open_vectors(struct rig *rig, int root, size_t floats) {
    struct error *error = &rig->error;
    void *block = NULL;
    for (int i = 0; i < rig->count; i++) {
        const struct device *device = &rig->devices[i];
        RETURN_IF(device->backend->allocate(device, &block, floats * sizeof(float), "values", error));
        rig->values[i] = block;
    }
    const struct device *device = &rig->devices[root];
    RETURN_IF(device->backend->allocate(device, &block, (floats + 2 * GUARD) * sizeof(float), "mean", error));
    rig->out = block;
    return OK;
}

static void close_vectors(struct rig *rig, int root) {
    for (int i = 0; i < rig->count; i++) rig->devices[i].backend->release(&rig->devices[i], rig->values[i]);
    rig->devices[root].backend->release(&rig->devices[root], rig->out);
    memset(rig->values, 0, sizeof rig->values);
    rig->out = NULL;
}

static int try_mean(struct rig *rig, int root, size_t floats) {
    return collective->mean(rig->group, (const float *const *)rig->values, floats, root, rig->out + GUARD,
                            &rig->error);
}

/* Twice, because the second one finds everything in place. */
static void check_mean(struct rig *rig, int root, size_t floats) {
    static float values[RANKS][MOST], back[MOST + 2 * GUARD];
    const struct device *on = &rig->devices[root];
    struct error *error = &rig->error;
    int code = open_vectors(rig, root, floats);
    for (int turn = 0; turn < 2 && code == OK; turn++) {
        double most = 0.0;
        for (int r = 0; r < rig->count && code == OK; r++) {
            for (size_t i = 0; i < floats; i++)
                values[r][i] = rng_unit(rng_philox((uint64_t)r + 1, (uint64_t)turn, i).word[0]) - 0.3f;
            code =
                on->backend->copy(&rig->devices[r], rig->values[r], values[r], floats * sizeof(float), error);
        }
        for (size_t i = 0; i < floats + 2 * GUARD; i++) back[i] = 7.0f;
        const size_t bytes = (floats + 2 * GUARD) * sizeof *back;
        if (code == OK) code = on->backend->copy(on, rig->out, back, bytes, error);
        if (code == OK) code = try_mean(rig, root, floats);
        if (code == OK) code = on->backend->copy(on, back, rig->out, bytes, error);
        for (size_t i = 0; i < floats && code == OK; i++) {
            double sum = 0.0;
            for (int r = 0; r < rig->count; r++) sum += (double)values[r][i];
            most = fmax(most, fabs((double)back[GUARD + i] - sum / (double)rig->count));
        }
        CHECK(code == OK && most < 1e-6, "%d ranks, root %d, %zu floats: %g apart, %s", rig->count, root,
              floats, most, error->words);
        for (size_t i = 0; i < GUARD; i++)
            CHECK(back[i] == 7.0f && back[GUARD + floats + i] == 7.0f, "%zu floats: it wrote outside",
                  floats);
        for (int r = 0; r < rig->count && code == OK; r++) {
            code = on->backend->copy(&rig->devices[r], back, rig->values[r], floats * sizeof(float), error);
            CHECK(memcmp(back, values[r], floats * sizeof(float)) == 0, "the values of rank %d changed", r);
        }
    }
    CHECK(code == OK, "%s", error->words);
    close_vectors(rig, root);
}

static void check_means(const char *text) {
    static struct rig rig;
    static const size_t sizes[] = {0, 1, 16, 1000, MOST};
    char words[100] = "";
    CHECK(open_rig(&rig, text, 30.0) == OK && rig.group, "%s: %s", text, rig.error.words);
    if (rig.group) {
        collective->describe(rig.group, words, sizeof words);
        CHECK(strncmp(words, "NCCL ", 5) == 0 && strcmp(words, "NCCL 0.0.0") != 0, "'%s'", words);
        printf("%s on %s\n", words, text);
        for (int root = 0; root < rig.count; root++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) check_mean(&rig, root, sizes[s]);
    }
    close_rig(&rig);
}

static void expect_words(const struct rig *rig, int code, const char *begin, const char *middle) {
    const char *words = rig->error.words;
    CHECK(code == ERROR_DEVICE && strncmp(words, begin, strlen(begin)) == 0 && strstr(words, middle) &&
              !strchr(words, '\n'),
          "code %d, '%s', expected '%s...%s'", code, words, begin, middle);
}

/* The same, with the seconds that were waited between two words: no fewer than asked, and, but for their
 * rounding, no more than have passed since. */
static void expect_wait(const struct rig *rig, int code, const char *begin, const char *before,
                        double least_s, double began_s, const char *after) {
    const double most_s = world_now(world) - began_s + 0.05;
    expect_words(rig, code, begin, before);
    const char *found = strstr(rig->error.words, before);
    char *end = NULL;
    const double waited_s = found ? strtod(found + strlen(before), &end) : 0.0;
    CHECK(waited_s >= least_s && waited_s <= most_s && strncmp(end, after, strlen(after)) == 0,
          "'%s', expected %g to %g s, then '%s'", rig->error.words, least_s, most_s, after);
}

static void check_twice(void) {
    static struct rig rig;
    expect_words(&rig, open_rig(&rig, "gpu:1,gpu:1", 5.0), "gpu:1,gpu:1: ncclCommInitRankConfig(",
                 ": invalid usage (run with NCCL_DEBUG=WARN");
    CHECK(!rig.group, "a group after a failure");
    close_rig(&rig);
}

/* What never ends does end, in time, and the words say for whom it was waited. */
static void check_no_end(void) {
    static struct rig rig;
    const double timeout_s = 0.2, began_s = world_now(world);
    standin_hang(1);
    expect_wait(&rig, open_rig(&rig, "gpu:0,gpu:2", timeout_s), "gpu:0,gpu:2: ncclCommInitRankConfig(",
                ": not done on gpu:0 after ", timeout_s, began_s, " s (collective.c:");
    close_rig(&rig);
    CHECK(open_rig(&rig, "gpu:2,gpu:0,gpu:1", timeout_s) == OK, "%s", rig.error.words);
    CHECK(open_vectors(&rig, 1, 1000) == OK, "%s", rig.error.words);
    CHECK(try_mean(&rig, 1, 1000) == OK, "%s", rig.error.words);
    standin_hang(1);
    const double again_s = world_now(world);
    expect_wait(&rig, try_mean(&rig, 1, 1000), "gpu:2,gpu:0,gpu:1: ncclReduce(", ": not done on gpu:2 after ",
                timeout_s, again_s, " s (collective.c:");
    const double took_s = world_now(world) - began_s;
    CHECK(took_s >= 2.0 * timeout_s && took_s < 20.0, "two waits of %g s took %g s", timeout_s, took_s);
    rig.error = (struct error){0};
    expect_words(&rig, try_mean(&rig, 1, 1000), "gpu:2,gpu:0,gpu:1: not used again", "after a failure");
    close_vectors(&rig, 1);
    close_rig(&rig);
}

/* A rank that is gone, and a run that was stopped: at once, not after the timeout. */
static void check_broken(void) {
    static struct rig rig;
    const double began_s = world_now(world);
    for (int stopped = 0; stopped < 2; stopped++) {
        CHECK(open_rig(&rig, "gpu:0,gpu:1", 300.0) == OK, "%s", rig.error.words);
        CHECK(open_vectors(&rig, 0, 100) == OK, "%s", rig.error.words);
        if (stopped) {
            standin_hang(1);
            world_stop(world);
        } else {
            standin_break(1);
        }
        expect_words(&rig, try_mean(&rig, 0, 100), "gpu:0,gpu:1: ncclReduce(",
                     stopped ? ": the run was stopped meanwhile (collective.c:"
                             : ": remote process exited or there was a network error (collective.c:");
        close_vectors(&rig, 0);
        close_rig(&rig);
    }
    CHECK(world_now(world) - began_s < 100.0, "it took %g s", world_now(world) - began_s);
}

#if STANDIN
/* A GPU that is lost while it computes. */
static void check_lost(void) {
    static struct rig rig;
    CHECK(open_rig(&rig, "gpu:0,gpu:1,gpu:2", 5.0) == OK, "%s", rig.error.words);
    CHECK(open_vectors(&rig, 0, 100) == OK, "%s", rig.error.words);
    standin_lose(1, cudaErrorIllegalAddress);
    expect_words(&rig, try_mean(&rig, 0, 100), "gpu:0,gpu:1,gpu:2: ncclReduce(",
                 "an illegal memory access was encountered (collective.c:");
    standin_lose(1, cudaSuccess);
    close_vectors(&rig, 0);
    close_rig(&rig);
}
#endif

/* The n-th call of a group's life fails, from joining to its second mean. */
static void check_each_call(void) {
    static struct rig rig;
    int failed = 0;
    for (long n = 1; n < 1000; n++) {
        CHECK(open_rig(&rig, "gpu:0,gpu:1,gpu:2", 5.0) == OK, "%s", rig.error.words);
        CHECK(open_vectors(&rig, 2, 50) == OK, "%s", rig.error.words);
        collective->close(rig.group);
        rig.group = NULL;
        const struct device *devices[] = {&rig.devices[0], &rig.devices[1], &rig.devices[2]};
        const long before = standin_calls();
        standin_fail(n);
        int code = collective->open(devices, 3, world, 5.0, &rig.group, &rig.error);
        CHECK((code == OK) == (rig.group != NULL), "call %ld: code %d", n, code);
        for (int turn = 0; turn < 2 && code == OK; turn++) code = try_mean(&rig, 2, 50);
        standin_fail(0);
        if (code != OK) expect_words(&rig, code, "gpu:", "collective.c:");
        CHECK(code != OK || standin_calls() - before < n, "call %ld failed, and nobody saw it", n);
        failed += code != OK;
        close_vectors(&rig, 2);
        close_rig(&rig);
        if (code == OK) break;
    }
    CHECK(failed > 20, "only %d calls failed", failed);
}

/* --- a rank, whose others would be in other processes --- */

/* Says after so many questions who has gone. */
struct witness {
    int asked, answers_at; /* 0: never */
};

static int look(void *argument, struct error *error) {
    struct witness *witness = argument;
    if (++witness->asked != witness->answers_at) return OK;
    return error_set(error, ERROR_PEER, "worker 1 has gone");
}

static int join_ranks(struct rig *rig, int ranks, double timeout_s, const struct rank_offer *offer,
                      struct witness *witness, void **rank) {
    const struct rank_place place = {.id = offer->id,
                                     .ranks = ranks,
                                     .world = world,
                                     .timeout_s = timeout_s,
                                     .look = look,
                                     .argument = witness};
    return collective->join(&rig->devices[0], &place, rank, &rig->error);
}

static int open_rank_rig(struct rig *rig, const char *text) {
    const struct device_settings settings = {0};
    bool shared = false;
    *rig = (struct rig){0};
    return devices_open(text, &settings, &rig->devices, &rig->count, &shared, &rig->error);
}

static void check_offers(int gpus) {
    static struct rig rig;
    struct rank_offer first, again, second = {0};
    CHECK(open_rank_rig(&rig, gpus > 1 ? "gpu:0,gpu:1" : "gpu:0") == OK, "%s", rig.error.words);
    collective->offer(&rig.devices[0], true, &first);
    collective->offer(&rig.devices[0], true, &again);
    if (rig.count > 1) collective->offer(&rig.devices[1], false, &second);
    CHECK(first.able && strncmp(first.words, "NCCL ", 5) == 0, "'%s'", first.words);
    CHECK(memcmp(first.device, again.device, sizeof first.device) == 0 &&
              memcmp(first.device, second.device, sizeof first.device) != 0,
          "a device is another one, or two are one");
    CHECK(memcmp(first.id, again.id, sizeof first.id) != 0, "two ids are one");
    if (rig.count > 1) CHECK(second.able && second.id[0] == 0, "an id that nobody has asked for");
    close_rig(&rig);
}

/* The sum over one is what it was, window by window; and each call of its life that fails is seen. */
static void check_rank_alone(void) {
    static struct rig rig;
    static float values[1000], back[1000];
    static const struct rank_window windows[] = {{0, 100, 0}, {100, 100, 0}, {100, 1000, 0}};
    struct rank_offer offer;
    for (int i = 0; i < 1000; i++) values[i] = (float)i;
    for (long n = STANDIN ? 1 : 0, code = ERROR_DEVICE; code != OK && n < 100; n++) {
        CHECK(open_rank_rig(&rig, "gpu:0") == OK && open_vectors(&rig, 0, 1000) == OK, "%s", rig.error.words);
        const struct device *device = &rig.devices[0];
        CHECK(device->backend->copy(device, rig.values[0], values, sizeof values, &rig.error) == OK, "%s",
              rig.error.words);
        struct witness witness = {.answers_at = STANDIN}; /* at once, where NCCL has failed */
        void *rank = NULL;
        collective->offer(device, true, &offer);
        standin_fail(n);
        code = join_ranks(&rig, 1, 30.0, &offer, &witness, &rank);
        CHECK((code == OK) == (rank != NULL), "call %ld: code %ld", n, code);
        if (code == OK) code = collective->sum(rank, rig.values[0], windows, 3, &rig.error);
        standin_fail(0);
        if (code != OK && code != ERROR_PEER) expect_words(&rig, (int)code, "gpu:0: ", " (");
        collective->leave(rank, code == OK);
        rig.error = (struct error){0};
        CHECK(device->backend->copy(device, back, rig.values[0], sizeof back, &rig.error) == OK &&
                  (code != OK || memcmp(back, values, sizeof back) == 0),
              "call %ld: the sum over one is another: %s", n, rig.error.words);
        close_vectors(&rig, 0);
        close_rig(&rig);
    }
}

/* Who waits for others asks who has gone, and says that; NCCL's own words come last, after the timeout. */
static void check_rank_waits(void) {
    static struct rig rig;
    struct rank_offer offer;
    for (int named = 0; named < 2; named++) {
        struct witness witness = {.answers_at = named ? 3 : 0};
        void *rank = NULL;
        CHECK(open_rank_rig(&rig, "gpu:0") == OK, "%s", rig.error.words);
        collective->offer(&rig.devices[0], true, &offer);
        const double began_s = world_now(world);
        const int code = join_ranks(&rig, 2, named ? 60.0 : 0.3, &offer, &witness, &rank);
        CHECK(!rank && witness.asked >= 3, "asked %d times", witness.asked);
        if (named)
            CHECK(code == ERROR_PEER && strcmp(rig.error.words, "worker 1 has gone") == 0, "code %d, '%s'",
                  code, rig.error.words);
        else
            expect_wait(&rig, code, "gpu:0: ncclCommInitRankConfig(", ": not done after ", 0.3, began_s,
                        " s (ranks.c:");
        close_rig(&rig);
    }
}

int main(void) {
    struct error error = {0};
    const char *given = getenv("STANDIN_GPUS");
    if (STANDIN && !(given && strcmp(given, "0") == 0)) setenv("STANDIN_GPUS", "4", 1);
    gpu_or_skip();
    collective = gpu_backend_of_build()->collective;
    const int gpus = gpu_backend_of_build()->count();
    if (!collective) {
        printf("no NCCL here\n");
        return 77;
    }
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    check_means("gpu:0");
    if (gpus > 1) check_means("gpu:0,gpu:1");
    if (gpus > 3) check_means("gpu:2,gpu:0,gpu:3,gpu:1");
    check_offers(gpus);
    check_rank_alone();
    if (STANDIN) {
        check_twice();
        check_no_end();
#if STANDIN
        check_lost();
#endif
        check_each_call();
        check_rank_waits();
        check_broken(); /* the world is stopped after it */
    }
    world_close(world);
    return check_end();
}
