/* Groups: a replica over several devices gives, bit for bit, loss and gradient of one on a single device,
 * wherever its layers lie, with micro-batches, dropout, statistics and mixed examples, on CPUs and GPUs and
 * both. A device that fails or hangs is named, in time, and the group closes. */
#include "../harness.h"
#include "../sides.h"

static const char network[] = "layers:conv1 = conv 3 3x3 same; batch_norm; relu; flatten; "
                              "dense1 = dense 9 tanh; dropout 0.4; dense2 = dense";

static void check_group(const char *devices, const char *place, const char *words, int microbatches,
                        bool mixed) {
    const struct examples examples = side_examples(mixed);
    struct error error = {0};
    struct groups groups = {.place = place, .soft = true, .microbatches = microbatches, .timeout_s = 60.0};
    struct device *opened = NULL;
    struct side one, group;
    char name[300];
    const int part = BATCH / microbatches;
    snprintf(name, sizeof name, "%s, %s, %d micro-batches", devices, place, microbatches);
    CHECK(open_groups(devices, true, &groups, &opened, &error) == OK, "%s", error.words);
    CHECK(world_open_threads(&groups.world, &error) == OK, "%s", error.words);
    const int code = open_side(&one, opened, NULL, network, &examples, microbatches, part, &error);
    const int also = open_side(&group, opened, &groups, network, &examples, microbatches, part, &error);
    CHECK(code == OK && also == OK, "%s: %s", name, error.words);
    if (code == OK && also == OK) {
        const char *said = group_line(group.replicas.replicas[0].group, 0);
        CHECK(strncmp(said, words, strlen(words)) == 0, "%s: said %s, expected %s", name, said, words);
        const bool apart = !device_same_memory(&opened[0], &opened[groups.workers]);
        CHECK(!strstr(said, " has room for all weights and gradients (") == !apart, "%s: said %s", name,
              said);
        const bool cpus = strstr(devices, "cpu") != NULL, gpus = strstr(devices, "gpu") != NULL;
        compare_sides(&one, &group, !(cpus && gpus), name);
    }
    close_side(&group);
    close_side(&one);
    world_close(groups.world);
    devices_close(opened, groups.workers * groups.size);
}

static void check_places(void) {
    static const struct {
        const char *devices, *place, *words;
    } cases[] = {
        {"(cpu:0+cpu:1)", "conv*=cpu:0,dense*=cpu:1", "conv1, norm1 on cpu:0; dense1, dense2 on cpu:1; "},
        {"(cpu:0+cpu:1)", "conv1=cpu:1,dense1=cpu:0,dense2/kernel=cpu:1",
         "dense1 on cpu:0; conv1, norm1, dense2 on cpu:1; "},
        {"(cpu:0+cpu:1+cpu:2)", "*=cpu:2,dense[12]=cpu:1,dense2=cpu:0",
         "dense2 on cpu:0; dense1 on cpu:1; conv1, norm1 on cpu:2; "},
        {"(cpu:0+cpu:1),(cpu:2+cpu:3)", "dense1=cpu:3", "conv1, norm1 on cpu:0; dense1, dense2 on cpu:1; "},
        {"(gpu:0+gpu:1)", "conv*=gpu:0,dense*=gpu:1", "conv1, norm1 on gpu:0; dense1, dense2 on gpu:1; "},
        {"(gpu:0+cpu:0)", "dense*=cpu:0", "conv1, norm1 on gpu:0; dense1, dense2 on cpu:0; "},
        {"(cpu:0+gpu:0)", "dense1=gpu:0,dense2=cpu:0", "conv1, norm1, dense2 on cpu:0; dense1 on gpu:0; "},
        {"(gpu:0+gpu:0)", "dense*=gpu:0", "conv1, norm1, dense1, dense2 on gpu:0; no weights on gpu:0; "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool gpus = strstr(cases[i].devices, "gpu") != NULL;
        const struct backend *last = backends[0];
        for (int b = 0; backends[b]; b++) last = backends[b];
        if (gpus && (last == backends[0] || last->count() < 2)) continue;
        check_group(cases[i].devices, cases[i].place, cases[i].words, 1, false);
        check_group(cases[i].devices, cases[i].place, cases[i].words, 3, i % 2 == 0);
    }
}

/* --- a device that does not do its part --- */

static _Atomic int runs;
static int fails_at, hangs_at;
static _Atomic bool hangs;
static struct world *world_of_fault;
static struct backend faulty;

static int run_faulty(const struct call *call, struct error *error) {
    const int run = ++runs;
    (void)call;
    if (run == fails_at) return error_set(error, ERROR_DEVICE, "the multiplier broke");
    while (run == hangs_at && atomic_load(&hangs) && !world_stopped(world_of_fault))
        world_sleep(world_of_fault, 0.005);
    return OK;
}
static const struct kernel faulty_kernel = {.name = "faulty", .run = run_faulty};

static const struct kernel *const *faulty_kernels(const struct device *device, enum op op) {
    static const struct kernel *const own[] = {&faulty_kernel, NULL};
    return op == OP_sigmoid ? own : backends[0]->kernels(device, op);
}

/* An error of this code and of these words, not later than it may be; and the group fails from then on. */
static void check_fault(int fails, int hangs_in, int expected, const char *words, double least_s) {
    const struct examples examples = side_examples(false);
    struct error error = {0};
    struct groups groups = {.place = "dense1=cpu:1,dense2=cpu:0", .microbatches = 1, .timeout_s = 0.3};
    struct device *opened = NULL;
    struct side side;
    float loss;
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    atomic_store(&runs, 0);
    atomic_store(&hangs, true);
    fails_at = fails;
    hangs_at = hangs_in;
    faulty = *backends[0];
    faulty.kernels = faulty_kernels;
    CHECK(open_groups("(cpu:0+cpu:1)", true, &groups, &opened, &error) == OK &&
              world_open_simulated(&groups.world, 1, &error) == OK,
          "%s", error.words);
    world_of_fault = groups.world;
    opened[1].backend = &faulty;
    CHECK(open_side(&side, opened, &groups, "layers:flatten; dense1 = dense 5; tanh; sigmoid; dense2 = dense",
                    &examples, 1, BATCH, &error) == OK,
          "%s", error.words);
    draw_batch(0);
    CHECK(error.code != OK || run_side(&side, 0, 0, &indices, &loss, &error) == OK, "%s", error.words);
    const double began = world_now(groups.world);
    CHECK(run_side(&side, 1, 1, &indices, &loss, &error) == expected, "code %d", error.code);
    const double took = world_now(groups.world) - began;
    CHECK(strstr(error.words, words), "said %s, expected %s", error.words, words);
    CHECK(took >= least_s && took < 1.05 * groups.timeout_s, "it took %g s", took);
    atomic_store(&hangs, false);
    error = (struct error){0};
    CHECK(run_side(&side, 0, 2, &indices, &loss, &error) != OK, "a group that failed goes on");
    close_side(&side);
    world_close(groups.world);
    devices_close(opened, 2);
}

/* A queue that fails when it is waited for: the node that the part had come to is named. */
static int finishes, finish_fails_at;
static int fail_to_finish(const struct device *device, struct error *error) {
    (void)device;
    if (++finishes != finish_fails_at) return OK;
    return error_set(error, ERROR_DEVICE, "the queue broke");
}

static void check_finish(int fails_when) {
    const struct examples examples = side_examples(false);
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    struct error error = {0};
    struct groups groups = {.place = "dense1=cpu:1,dense2=cpu:0", .microbatches = 1, .timeout_s = 3.0};
    struct device *opened = NULL;
    struct side side;
    float loss;
    finishes = 0;
    finish_fails_at = fails_when;
    faulty = *backends[0];
    faulty.own_memory = true;
    faulty.finish = fail_to_finish;
    CHECK(open_groups("(cpu:0+cpu:1)", true, &groups, &opened, &error) == OK &&
              world_open_simulated(&groups.world, 1, &error) == OK,
          "%s", error.words);
    opened[1].backend = &faulty;
    CHECK(open_side(&side, opened, &groups, "layers:flatten; dense1 = dense 5; tanh; dense2 = dense",
                    &examples, 1, BATCH, &error) == OK,
          "%s", error.words);
    draw_batch(0);
    CHECK(run_side(&side, 0, 0, &indices, &loss, &error) == ERROR_DEVICE &&
              strncmp(error.words, "cpu:1: ", 7) == 0 && strstr(error.words, "node ") &&
              strstr(error.words, "): the queue broke"),
          "said %s", error.words);
    close_side(&side);
    world_close(groups.world);
    devices_close(opened, 2);
}

/* --- a device that hangs in a training --- */

static struct examples hanging_examples;
static struct groups hanging_groups;
static struct side hanging_side;

static int open_hanging(void *self, int worker, struct error *error) {
    const struct rig *rig = self;
    (void)worker;
    world_of_fault = hanging_groups.world = rig->world;
    draw_batch(0);
    return open_side(&hanging_side, hanging_groups.devices, &hanging_groups,
                     "layers:flatten; dense1 = dense 5; tanh; sigmoid; dense2 = dense", &hanging_examples, 1,
                     BATCH, error);
}

/* The rig's vector is another one. */
static int run_hanging(void *self, int worker, int buffer, float *weights, float *gradient, float *loss,
                       struct error *error) {
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    struct rig *rig = self;
    (void)buffer;
    RETURN_IF(run_side(&hanging_side, 0, rig->number[worker][buffer], &indices, loss, error));
    return formula_blocks(rig, worker, rig->number[worker][buffer], weights, gradient, loss, error);
}

static void say_hanging(void *self, int worker, char *out, size_t bytes) {
    (void)self;
    hanging_side.compute.say_hanging(hanging_side.compute.self, worker, out, bytes);
}

/* Device and node are named before or when the worker is found silent. */
static void check_training(int device, const char *words) {
    static struct rig rig;
    const struct rig_settings settings = {
        .strategy = "sync",
        .optimizer = "sgd:rate=1",
        .workers = 1,
        .shards = 1,
        .slots = 2,
        .batches = 10,
        .block = 64,
        .simulated = true,
        .seed = 1,
        .timeout_s = 2.0,
        .formula = formula_blocks,
        .compute = {.open = open_hanging, .run = run_hanging, .say_hanging = say_hanging}};
    struct error error = {0};
    struct device *opened = NULL;
    atomic_store(&runs, 0);
    atomic_store(&hangs, true);
    fails_at = 0;
    hangs_at = 3;
    faulty = *backends[0];
    faulty.kernels = faulty_kernels;
    hanging_examples = side_examples(false);
    hanging_groups =
        (struct groups){.place = device == 1 ? "dense1=cpu:1,dense2=cpu:0" : "dense1=cpu:0,dense2=cpu:1",
                        .microbatches = 1,
                        .timeout_s = settings.timeout_s};
    CHECK(open_groups("(cpu:0+cpu:1)", true, &hanging_groups, &opened, &error) == OK, "%s", error.words);
    opened[device].backend = &faulty;
    CHECK(rig_run(&rig, &settings, false) == ERROR_PEER, "%s", rig.error.words);
    CHECK(strstr(rig.error.words, words), "said %s, expected %s", rig.error.words, words);
    close_side(&hanging_side);
    rig_close(&rig);
    devices_close(opened, 2);
}

/* --- one that does not end --- */

/* What it may still use is not freed before it has ended. */
static void check_left_behind(void) {
    const struct examples examples = side_examples(false);
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    struct error error = {0};
    struct groups groups = {.place = "dense1=cpu:1,dense2=cpu:0", .microbatches = 1, .timeout_s = 0.5};
    struct device *opened = NULL;
    struct side side;
    float loss;
    atomic_store(&runs, 0);
    atomic_store(&hangs, true);
    fails_at = 0;
    hangs_at = 1;
    faulty = *backends[0];
    faulty.kernels = faulty_kernels;
    CHECK(open_groups("(cpu:0+cpu:1)", true, &groups, &opened, &error) == OK &&
              world_open_threads(&groups.world, &error) == OK,
          "%s", error.words);
    world_of_fault = groups.world;
    opened[1].backend = &faulty;
    CHECK(open_side(&side, opened, &groups, "layers:flatten; dense1 = dense 5; tanh; sigmoid; dense2 = dense",
                    &examples, 1, BATCH, &error) == OK,
          "%s", error.words);
    draw_batch(0);
    CHECK(run_side(&side, 0, 0, &indices, &loss, &error) == ERROR_PEER, "%s", error.words);
    if (atomic_load(&runs) == 1)
        CHECK(!replicas_close(&side.replicas) && side.replicas.replicas, "closed under a device that hangs");
    atomic_store(&hangs, false);
    while (!replicas_close(&side.replicas)) {
    }
    CHECK(!side.replicas.replicas, "not closed");
    close_side(&side);
    world_close(groups.world);
    devices_close(opened, 2);
}

static void check_text(const char *text, const char *flat, int size) {
    struct error error = {0};
    char out[100];
    int found = -1;
    const int code = groups_read(text, out, sizeof out, &found, &error);
    if (!flat) {
        CHECK(code == ERROR_USAGE && strstr(error.words, "expected groups of equal size"), "%s: %s", text,
              error.words);
        return;
    }
    CHECK(code == OK && strcmp(out, flat) == 0 && found == size, "%s: %s, groups of %d", text, out, found);
}

int main(void) {
    check_text("cpu:0,cpu:1", "cpu:0,cpu:1", 0);
    check_text("auto", "auto", 0);
    check_text("(cpu:0+cpu:1)", "cpu:0,cpu:1", 2);
    check_text("(gpu:0+cpu:1+gpu:2),(gpu:3+gpu:4+cpu:5)", "gpu:0,cpu:1,gpu:2,gpu:3,gpu:4,cpu:5", 3);
    check_text("(cpu:0)", "cpu:0", 1);
    static const char *const wrong[] = {"(",
                                        "()",
                                        "(cpu:0+)",
                                        "(+cpu:0)",
                                        "(cpu:0+cpu:1",
                                        "(cpu:0+cpu:1),",
                                        "(cpu:0+cpu:1)cpu:2",
                                        "(cpu:0+cpu:1),cpu:2",
                                        "cpu:2,(cpu:0+cpu:1)",
                                        "(cpu:0+cpu:1),(cpu:2)",
                                        "cpu:0+cpu:1",
                                        "(cpu:*)",
                                        ")"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) check_text(wrong[i], NULL, 0);
    check_places();
    check_fault(2, 0, ERROR_DEVICE, "(sigmoid): the multiplier broke", 0.0);
    check_fault(0, 2, ERROR_PEER, "cpu:1 has not ended node ", 0.3);
    check_training(1, "cpu:1 has not ended node ");
    check_training(0, " s at step 3: cpu:0 has not ended node ");
    check_left_behind();
    for (int finish = 1; finish <= 3; finish++) check_finish(finish);
    return check_end();
}
