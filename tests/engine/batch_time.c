/* The time of a batch. In the simulated world a kernel takes what a table says for each batch, and more after
 * a batch was built or the weights were stepped, as with cold caches: what is measured is exactly the batch
 * in the middle, as it is in training. The weights stay as they are, batches differ, and a device that fails
 * says so. */
#include "../../src/engine/batch_time.h"

#include <sys/wait.h>
#include <unistd.h>

#include "../../src/store/strategy.h"
#include "../sides.h"

enum { BATCHES = 8 };
static const char network[] = "layers:flatten; dense1 = dense 9 tanh; dense2 = dense";

static struct world *timed_world;
static struct backend timed;

/* What a batch takes, from the first; then the time between two, and what follows it. */
struct times {
    double batch_s[BATCHES], building_s, stepping_s, built_s, stepped_s;
};
static struct times times;
static int computed, built, failing; /* failing: the number of the batch that fails, from 1; 0: none */
static int first_example[BATCHES];
static bool cold_input, cold_weights;
static float largest_rate, largest_gradient; /* of all steps */

static int run_tanh(const struct call *call, struct error *error) {
    const struct device plain = {.backend = backends[0], .reference_only = true};
    world_work(timed_world, times.batch_s[computed++ % BATCHES] + (cold_input ? times.built_s : 0.0) +
                                (cold_weights ? times.stepped_s : 0.0));
    cold_input = cold_weights = false;
    if (computed == failing) return error_set(error, ERROR_DEVICE, "batch %d failed", computed);
    return backends[0]->kernels(&plain, OP_tanh)[0]->run(call, error);
}

/* The network has it once, fused with nothing. */
static const struct kernel *const *timed_kernels(const struct device *device, enum op op) {
    static const struct kernel kernel = {.name = "timed", .run = run_tanh};
    static const struct kernel *const list[] = {&kernel, NULL}, *const none[] = {NULL};
    return op == OP_tanh ? list : op == OP_dense ? none : backends[0]->kernels(device, op);
}

static int timed_gather(const struct device *device, const struct examples *examples,
                        const struct indices *indices, float *out, struct error *error) {
    world_work(timed_world, times.building_s);
    first_example[built++ % BATCHES] = indices->index[0];
    cold_input = true;
    return backends[0]->gather(device, examples, indices, out, error);
}

/* The optimizer's: weights that are stepped in the host's memory know no device. */
static void timed_step(const struct update *update, size_t floats, float *weights, float *const *moments,
                       const float *gradient) {
    (void)weights, (void)moments;
    if (!cold_weights) world_work(timed_world, times.stepping_s);
    cold_weights = true;
    largest_rate = fmaxf(largest_rate, update->rate);
    for (size_t i = 0; i < floats; i++) largest_gradient = fmaxf(largest_gradient, fabsf(gradient[i]));
}
static const struct optimizer timed_optimizer = {.plugin = {.name = "timed"}, .step = timed_step};

static void begin(const struct times *taken) {
    times = *taken;
    computed = built = failing = 0;
    cold_input = cold_weights = false;
    largest_rate = largest_gradient = 0.0f;
    timed = *backends[0];
    timed.kernels = timed_kernels;
    timed.gather = timed_gather;
}

/* The first two are not counted, and three of them are enough, however long they take. */
static const struct times slow = {.batch_s = {9.0, 9.0, 0.125, 0.5, 0.25, 99.0, 99.0, 99.0},
                                  .building_s = 20.0,
                                  .stepping_s = 20.0,
                                  .built_s = 3.0,
                                  .stepped_s = 5.0};

static void check_middle(const struct batch_work *work, const struct device *device,
                         const struct groups *groups, const char *name) {
    struct error error = {0};
    double seconds = 0.0;
    bool abandoned = false;
    begin(&slow);
    CHECK(batch_time(work, device, groups, &seconds, &abandoned, &error) == OK, "%s: %s", name, error.words);
    CHECK(fabs(seconds - 8.25) < 1e-9, "%s: %g s, expected 8.25", name, seconds);
    CHECK(computed == 5 && built == 5, "%s: %d batches, %d were built", name, computed, built);
    CHECK(first_example[0] != first_example[1] || first_example[1] != first_example[2],
          "%s: example %d is in all batches", name, first_example[0]);
    CHECK(largest_rate <= 0.0f && largest_gradient > 1e-3f, "%s: learning rate %g, gradient %g", name,
          (double)largest_rate, (double)largest_gradient);
    begin(&(struct times){.batch_s = {9.0, 9.0, 0.125, 0.125, 0.125, 0.125, 99.0, 99.0}});
    CHECK(batch_time(work, device, groups, &seconds, &abandoned, &error) == OK && computed == 6,
          "%s: %d batches in half a second: %s", name, computed, error.words);
    CHECK(fabs(seconds - 0.125) < 1e-9, "%s: %g s, expected 0.125", name, seconds);
    begin(&slow);
    failing = 4;
    CHECK(batch_time(work, device, groups, &seconds, &abandoned, &error) == ERROR_DEVICE &&
              strstr(error.words, "batch 4 failed"),
          "%s: it said: %s", name, error.words);
}

/* Where the weights live is where they are stepped. */
static int steps_on_device;
static int count_update(const struct device *device, const struct update *update,
                        const struct update_slice *slice, struct error *error) {
    steps_on_device++;
    return backends[0]->vectors->update(device, update, slice, error);
}

static void check_homes(const struct batch_work *work, const struct device *device) {
    struct vectors vectors = *backends[0]->vectors;
    struct backend apart;
    struct error error = {0};
    double seconds = 0.0;
    bool abandoned = false;
    vectors.update = count_update;
    for (int on_devices = 0; on_devices < 2; on_devices++) {
        struct batch_work there = *work;
        struct device own = *device;
        begin(&slow);
        apart = timed;
        apart.own_memory = true;
        apart.vectors = &vectors;
        own.backend = &apart;
        there.on_devices = on_devices;
        steps_on_device = 0;
        CHECK(batch_time(&there, &own, NULL, &seconds, &abandoned, &error) == OK, "%s", error.words);
        CHECK((steps_on_device > 0) == there.on_devices, "%d steps on the device", steps_on_device);
    }
}

static void check_clip(const struct batch_work *work, const struct device *device) {
    struct batch_work clipped = *work;
    struct error error = {0};
    double seconds = 0.0;
    bool abandoned = false;
    clipped.clip = 1e-4f;
    begin(&slow);
    CHECK(batch_time(&clipped, device, NULL, &seconds, &abandoned, &error) == OK, "%s", error.words);
    CHECK(largest_gradient <= 1e-4f, "clipped to %g", (double)largest_gradient);
}

/* --- a device that hangs --- */

static int run_hanging(const struct call *call, struct error *error) {
    (void)call, (void)error;
    for (;;) world_sleep(timed_world, 0.01);
    return OK;
}

static const struct kernel *const *hanging_kernels(const struct device *device, enum op op) {
    static const struct kernel kernel = {.name = "hanging", .run = run_hanging};
    static const struct kernel *const list[] = {&kernel, NULL};
    return op == OP_softmax_cross_entropy ? list : backends[0]->kernels(device, op);
}

/* In real threads: who hangs is left behind, with all it may use; who waits for it ends. */
static void hang(struct groups *groups, struct batch_work *work) {
    struct error error = {0};
    double seconds = 0.0;
    bool abandoned = false;
    CHECK(world_open_threads(&timed_world, &error) == OK, "%s", error.words);
    groups->world = work->world = timed_world;
    groups->timeout_s = work->timeout_s = 1.0;
    struct backend hanging = *backends[0];
    hanging.kernels = hanging_kernels;
    for (int d = 0; d < groups->size; d++) groups->devices[d].backend = d == 2 ? &hanging : backends[0];
    groups->place = "dense1=cpu:1,dense2=cpu:2";
    CHECK(batch_time(work, NULL, groups, &seconds, &abandoned, &error) == ERROR_PEER, "code %d: %s",
          error.code, error.words);
    CHECK(abandoned && strstr(error.words, "cpu:2 has not ended node "), "abandoned: %d, it said: %s",
          abandoned, error.words);
}

/* In a process of its own, whose memory nobody misses. */
static void check_hanging(struct groups *groups, struct batch_work *work) {
    int status = 0;
    fflush(stderr);
    const pid_t child = fork();
    if (child == 0) {
        hang(groups, work);
        fflush(stderr);
        _exit(check_end());
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child's status is %d",
          status);
}

static void check_all(const struct groups *groups, struct batch_work *work) {
    struct choice strategy, optimizer = {.plugin = &timed_optimizer.plugin}, schedule;
    struct optimizer_common common = {.rate = 0.5};
    struct error error = {0};
    CHECK(plugin_choose(&strategy, &strategy_kind, "sync", &error) == OK, "%s", error.words);
    memcpy(optimizer.settings, &common, sizeof common);
    CHECK(plugin_choose(&schedule, &schedule_kind, "cosine:warmup=0.1", &error) == OK, "%s", error.words);
    work->strategy = &strategy;
    work->optimizer = &optimizer;
    work->schedule = &schedule;
    check_hanging((struct groups[]){*groups}, (struct batch_work[]){*work});
    for (int d = 0; d < groups->size; d++) groups->devices[d].backend = &timed;
    check_middle(work, groups->devices, NULL, "alone");
    check_middle(work, NULL, groups, "a group");
    check_clip(work, groups->devices);
    check_homes(work, groups->devices);
}

int main(void) {
    const struct examples examples = side_examples(false);
    struct groups groups = {
        .place = "dense1=cpu:0,dense2=cpu:1", .soft = true, .microbatches = 1, .timeout_s = 1e6};
    struct device *devices = NULL;
    struct error error = {0};
    struct side side; /* for its network */
    CHECK(open_groups("(cpu:0+cpu:1+cpu:2)", true, &groups, &devices, &error) == OK, "%s", error.words);
    CHECK(open_side(&side, devices, NULL, network, &examples, 1, BATCH, &error) == OK, "%s", error.words);
    CHECK(world_open_simulated(&timed_world, 1, &error) == OK, "%s", error.words);
    if (error.code == OK) {
        struct batch_work work = {.network = &side.network,
                                  .examples = &examples,
                                  .seed = 1,
                                  .microbatches = 1,
                                  .world = timed_world,
                                  .timeout_s = groups.timeout_s};
        groups.world = timed_world;
        check_all(&groups, &work);
    }
    world_close(timed_world);
    close_side(&side);
    devices_close(devices, groups.size);
    return check_end();
}
