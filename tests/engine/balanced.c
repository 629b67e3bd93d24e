/* --place=auto. In the simulated world kernels and copies take what a table says: there the measured times
 * are these, a prediction is what a group then takes, wherever its layers lie, and no placement takes much
 * less than the chosen one; a cut that is slower than it seems is not chosen. In the real world the chosen
 * places are a list that leaves the bits of one device. */
#include "../../src/base/text.h"
#include "../../src/engine/balanced.h"
#include "../../src/engine/costs.h"
#include "../../src/store/strategy.h"
#include "../sides.h"

enum { DEVICES = 3, LAYERS = 4 };
static const char network[] = "layers:conv1 = conv 3 3x3 same; batch_norm; relu; flatten; "
                              "dense1 = dense 9 tanh; dropout 0.4; dense2 = dense";

/* --- devices that take as long as they should --- */

static struct world *timed_world;
static double fixed_s = 2e-3, byte_s = 1e-6; /* of a copy to or from a device with memory of its own */
static double crowded_s;                     /* more for an operation after one of another device */
static int last_device;
static bool lame; /* cpu:1 has no kernels for tanh, which takes cpu:0 long */

/* Seconds of an operation on cpu:0, cpu:1 and cpu:2: the last layer is for cpu:1, the one before it is not.
 */
static double work_s(enum op op, int device) {
    const bool slow = device == 1 ? op == OP_conv2d || (op == OP_tanh && !lame)
                                  : op == OP_softmax_cross_entropy || (op == OP_tanh && lame);
    return 1e-3 * ((int)op * (5 + 2 * device) % 13 + (slow ? 60 : 0));
}

static int run_timed(const struct call *call, int device, struct error *error) {
    const enum op op = call->problem->op;
    const struct device plain = {.backend = backends[0], .reference_only = true};
    world_work(timed_world, work_s(op, device) + (device != last_device ? crowded_s : 0.0));
    last_device = device;
    return backends[0]->kernels(&plain, op)[0]->run(call, error);
}
static int run_first(const struct call *call, struct error *error) {
    return run_timed(call, 0, error);
}
static int run_second(const struct call *call, struct error *error) {
    return run_timed(call, 1, error);
}
static int run_third(const struct call *call, struct error *error) {
    return run_timed(call, 2, error);
}
static const struct kernel timed[DEVICES] = {{.name = "timed", .run = run_first},
                                             {.name = "timed", .run = run_second},
                                             {.name = "timed", .run = run_third}};

/* Nothing is fused, so that an operation is an instruction. */
static const struct kernel *const *timed_kernels(const struct device *device, enum op op) {
    static const struct kernel *const lists[DEVICES][2] = {{&timed[0]}, {&timed[1]}, {&timed[2]}},
                                      *const none[] = {NULL};
    if (lame && (op == OP_tanh || op == OP_tanh_grad) && strcmp(device->backend->name, "cpu") != 0)
        return none;
    return op == OP_dense || op == OP_conv2d_bias ? none : lists[device->label];
}

static int timed_copy(const struct device *device, void *out, const void *in, size_t bytes,
                      struct error *error) {
    (void)device;
    (void)error;
    world_work(timed_world, fixed_s + (double)bytes * byte_s);
    memcpy(out, in, bytes);
    return OK;
}

/* cpu:2 has memory of its own. */
static struct backend shared, apart;

static void open_timed(struct device *devices) {
    shared = *backends[0];
    shared.kernels = timed_kernels;
    apart = shared;
    apart.own_memory = true;
    apart.copy = timed_copy; /* what is queued is the loss alone */
    for (int d = 0; d < DEVICES; d++) devices[d].backend = d == 2 ? &apart : &shared;
}

/* --- a prediction is what it takes --- */

static struct choice strategy, optimizer, schedule;

/* The training of a network on these groups. */
static struct batch_work work_of(const struct groups *groups, const struct network *of,
                                 const struct examples *examples) {
    struct error error = {0};
    CHECK(plugin_choose(&strategy, &strategy_kind, "sync", &error) == OK, "%s", error.words);
    CHECK(plugin_choose(&optimizer, &optimizer_kind, "adam", &error) == OK, "%s", error.words);
    CHECK(plugin_choose(&schedule, &schedule_kind, "constant", &error) == OK, "%s", error.words);
    return (struct batch_work){.network = of,
                               .examples = examples,
                               .strategy = &strategy,
                               .optimizer = &optimizer,
                               .schedule = &schedule,
                               .on_devices = true,
                               .seed = 1,
                               .microbatches = groups->microbatches,
                               .world = groups->world,
                               .timeout_s = groups->timeout_s};
}

static int place_all(struct balanced *balanced, char *place, size_t bytes, const struct groups *groups,
                     const struct network *of, struct error *error) {
    const struct examples examples = side_examples(false);
    const struct batch_work work = work_of(groups, of, &examples);
    return balanced_place(balanced, place, bytes, groups, &work, error);
}

static void write_places(const struct costs *costs, const int *on, char *out, size_t bytes) {
    struct text list = text_into(out, bytes);
    for (int l = 0; l < costs->balance.layers; l++)
        text_item(&list, ",", "%s=cpu:%d", costs->placeable.name[l], on[l]);
}

/* Seconds of a batch of the group, with such places; NAN: it failed. */
static double batch_of(struct groups *groups, const char *place) {
    const struct examples examples = side_examples(false);
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    struct error error = {0};
    struct side side;
    float loss = 0.0f;
    double began = 0.0, taken = NAN;
    groups->place = place;
    draw_batch(0);
    const int parts = groups->microbatches;
    int code = open_side(&side, groups->devices, groups, network, &examples, parts, BATCH / parts, &error);
    if (code == OK) code = run_side(&side, 0, 0, &indices, &loss, &error);
    began = world_now(groups->world);
    if (code == OK)
        code = side.compute.run(side.compute.self, 0, 0, side.weights, side.gradient, &loss, &error);
    if (code == OK) taken = world_now(groups->world) - began;
    CHECK(code == OK, "%s: %s", place, error.words);
    close_side(&side);
    return taken;
}

static void check_prediction(const struct costs *costs, struct groups *groups, const int *on) {
    struct error error = {0};
    char place[200];
    double expected = NAN;
    write_places(costs, on, place, sizeof place);
    CHECK(balance_predict(&costs->balance, on, &expected, &error) == OK, "%s", error.words);
    const double taken = batch_of(groups, place);
    CHECK(fabs(expected - taken) < 1e-9, "%s: predicted %.9g s, took %.9g s", place, expected, taken);
}

static void check_predictions(struct groups *groups, const struct network *of, double *least) {
    const struct examples examples = side_examples(false);
    const struct batch_work work = work_of(groups, of, &examples);
    struct error error = {0};
    struct costs costs;
    CHECK(costs_open(&costs, &work, groups->devices, DEVICES, &error) == OK, "%s", error.words);
    CHECK(costs.balance.layers == LAYERS, "%d layers", costs.balance.layers);
    *least = INFINITY;
    int on[LAYERS];
    for (int number = 0; number < 81 && costs.balance.layers == LAYERS; number++) { /* all 3 ** 4 of them */
        double expected = INFINITY;
        for (int l = 0, rest = number; l < LAYERS; l++, rest /= DEVICES) on[l] = rest % DEVICES;
        balance_predict(&costs.balance, on, &expected, &error);
        *least = fmin(*least, expected);
        if (number % 5 == 0) check_prediction(&costs, groups, on);
    }
    costs_close(&costs);
}

/* The search's prediction of a pipeline is no walk over all of its micro-batches; what is expected of it, is
 * what it takes. */
static void check_pipeline(struct groups *groups) {
    const struct examples examples = side_examples(false);
    struct error error = {0};
    struct side side; /* for its network */
    groups->microbatches = 4;
    CHECK(open_side(&side, groups->devices, NULL, network, &examples, 4, BATCH / 4, &error) == OK, "%s",
          error.words);
    for (int order = PIPELINE_NONE; order <= PIPELINE_1F1B; order++) {
        struct balanced balanced = {0};
        char place[200];
        groups->schedule = (enum pipeline_schedule)order;
        CHECK(place_all(&balanced, place, sizeof place, groups, &side.network, &error) == OK, "%s",
              error.words);
        const double taken = batch_of(groups, place);
        CHECK(fabs(balanced.expected_s - taken) < 1e-9, "%s, %s: expected %.9g s, took %.9g s",
              pipeline_name(groups->schedule), place, balanced.expected_s, taken);
    }
    groups->microbatches = 1;
    groups->schedule = PIPELINE_NONE;
    close_side(&side);
}

/* What no device shows alone is seen when places are tried. */
static void check_crowded(struct groups *groups, const struct network *of) {
    struct balanced balanced = {0};
    struct error error = {0};
    char place[200];
    crowded_s = 0.5;
    CHECK(place_all(&balanced, place, sizeof place, groups, of, &error) == OK, "%s", error.words);
    const int used = !!strstr(place, "=cpu:0") + !!strstr(place, "=cpu:1") + !!strstr(place, "=cpu:2");
    CHECK(used == 1, "crowded, it chose %s", place);
    const double taken = batch_of(groups, place);
    CHECK(fabs(balanced.expected_s - taken) < 1e-9, "%s: expected %g s, took %g s", place,
          balanced.expected_s, taken);
    crowded_s = 0.0;
}

/* Soft placement moves what cpu:1 has no kernel for back to cpu:0: a cut that looks best, but that 1f1b
 * refuses. One device alone is not refused. */
static void check_refused(struct groups *groups) {
    const struct examples examples = side_examples(false);
    struct error error = {0};
    struct balanced balanced = {0};
    struct backend other = shared;
    struct side side; /* for its network */
    char place[200] = "";
    const struct device plain = groups->devices[1];
    other.name = "npu";
    groups->devices[1].backend = &other;
    groups->size = 2;
    groups->microbatches = 4;
    groups->schedule = PIPELINE_1F1B;
    lame = true;
    CHECK(open_side(&side, groups->devices, NULL, network, &examples, 4, BATCH / 4, &error) == OK, "%s",
          error.words);
    CHECK(place_all(&balanced, place, sizeof place, groups, &side.network, &error) == OK, "%s", error.words);
    CHECK(!strstr(place, "=cpu:0") != !strstr(place, "=cpu:1"), "refused, it chose %s", place);
    CHECK(fabs(balanced.expected_s - batch_of(groups, place)) < 1e-9, "%s: expected %g s", place,
          balanced.expected_s);
    close_side(&side);
    lame = false;
    groups->size = DEVICES;
    groups->microbatches = 1;
    groups->schedule = PIPELINE_NONE;
    groups->devices[1] = plain;
}

static void check_simulated(struct groups *groups, const struct network *of) {
    struct balanced balanced = {0};
    struct error error = {0};
    char place[200];
    double least = 0.0;
    struct device plain[DEVICES];
    CHECK(world_open_simulated(&groups->world, 1, &error) == OK, "%s", error.words);
    timed_world = groups->world;
    memcpy(plain, groups->devices, sizeof plain);
    open_timed(groups->devices);
    check_predictions(groups, of, &least);
    CHECK(place_all(&balanced, place, sizeof place, groups, of, &error) == OK, "%s", error.words);
    CHECK(balanced.expected_s > least - 1e-9 && balanced.expected_s < 1.025 * least,
          "%s: %g s, the least is %g s", place, balanced.expected_s, least);
    const double taken = batch_of(groups, place);
    CHECK(fabs(balanced.expected_s - taken) < 1e-9, "%s: predicted %g s, took %g s", place,
          balanced.expected_s, taken);
    check_pipeline(groups);
    check_crowded(groups, of);
    check_refused(groups);
    CHECK(strstr(place, "dense2=cpu:1") && !strstr(place, "dense1=cpu:1"), "it chose %s", place);
    CHECK(strncmp(balanced.words, "placed by measured times, ", 26) == 0, "it said %s", balanced.words);
    CHECK(place_all(&balanced, place, 9, groups, of, &error) == ERROR_USAGE &&
              strstr(error.words, "longer than 8 bytes"),
          "a list that is too long: %s", error.words);
    memcpy(groups->devices, plain, sizeof plain);
    world_close(groups->world);
}

/* --- the real world --- */

static void check_bits(struct groups *groups, const struct network *of) {
    const struct examples examples = side_examples(false);
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    struct balanced balanced = {0};
    struct error error = {0};
    struct side one, group;
    char place[200];
    float loss = 0.0f, expected = 1.0f;
    CHECK(world_open_threads(&groups->world, &error) == OK, "%s", error.words);
    CHECK(place_all(&balanced, place, sizeof place, groups, of, &error) == OK, "%s", error.words);
    CHECK(balanced.expected_s > 0.0, "%g s expected", balanced.expected_s);
    groups->place = place;
    groups->placed = balanced.words;
    const int code = open_side(&one, groups->devices, NULL, network, &examples, 1, BATCH, &error);
    const int also = open_side(&group, groups->devices, groups, network, &examples, 1, BATCH, &error);
    CHECK(code == OK && also == OK, "%s: %s", place, error.words);
    if (code == OK && also == OK) {
        draw_batch(0);
        run_side(&one, 0, 0, &indices, &expected, &error);
        run_side(&group, 0, 0, &indices, &loss, &error);
        CHECK(error.code == OK && loss == expected, "%s: %s, loss %g, expected %g", place, error.words,
              (double)loss, (double)expected);
        CHECK(memcmp(one.gradient, group.gradient, of->graph.layout.floats * sizeof(float)) == 0,
              "%s: another gradient", place);
        const char *said = group_line(group.replicas.replicas[0].group, 0);
        CHECK(strcmp(said, balanced.words) == 0, "it said %s", said);
    }
    close_side(&group);
    close_side(&one);
    world_close(groups->world);
}

static void check_devices(const char *names, void (*check)(struct groups *, const struct network *)) {
    const struct device_settings settings = {.threads = 1, .reference_only = true, .deterministic = true};
    const struct examples examples = side_examples(false);
    struct error error = {0};
    struct groups groups = {.workers = 1, .soft = true, .microbatches = 1, .timeout_s = 60.0};
    struct side side; /* for its network */
    bool cores_shared = false;
    CHECK(devices_open(names, &settings, &groups.devices, &groups.size, &cores_shared, &error) == OK, "%s",
          error.words);
    CHECK(open_side(&side, groups.devices, NULL, network, &examples, 1, BATCH, &error) == OK, "%s",
          error.words);
    check(&groups, &side.network);
    close_side(&side);
    devices_close(groups.devices, groups.size);
}

int main(void) {
    const struct backend *last = backends[0];
    for (int b = 0; backends[b]; b++) last = backends[b];
    check_devices("cpu:0,cpu:1,cpu:2", check_simulated);
    check_devices("cpu:0,cpu:1", check_bits);
    if (last != backends[0] && last->count() >= 2) check_devices("gpu:0,gpu:1", check_bits);
    return check_end();
}
