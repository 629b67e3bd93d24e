/* Placement: a graph on several devices is the same graph. Whatever is placed wherever, the values are those
 * of the one-device program, bit for bit, in both worlds and with the parts running as far ahead of each
 * other as they are allowed to. */
#include <stdlib.h>

#include "../../src/graph/model.h"
#include "../../src/program/partition.h"
#include "../../src/engine/network.h"
#include "../reference_device.h"

enum { ROUNDS = 20, BATCH = 6, FEATURES = 9, CLASSES = 4, MOST_PARTS = 3 };

/* --- devices --- */

static struct device *open_devices(const char *text, int *count) {
    struct device *devices = NULL;
    struct error error = {0};
    bool shared = false;
    const struct device_settings settings = {.reference_only = true, .threads = 1};
    CHECK(devices_open(text, &settings, &devices, count, &shared, &error) == OK, "%s", error.words);
    return devices;
}

/* A backend that computes as the CPU does, but refuses some operations, fails in one, and has memory that
 * only its own `copy` gets at. What it did is counted in static variables of the test. */
static enum op refused[2], failing;
static int failing_run, tanh_runs; /* the run of tanh that fails; 0: none */
static _Atomic int copies;

static int run_failing(const struct call *call, struct error *error) {
    if (++tanh_runs == failing_run) return error_set(error, ERROR_DEVICE, "the tanh of fake:0 broke");
    return reference_tanh.run(call, error);
}
static const struct kernel failing_tanh = {.name = "fake:tanh", .run = run_failing};

static int decline(const struct problem *problem, void **plan, struct error *error) {
    (void)problem;
    (void)plan;
    (void)error;
    return KERNEL_DECLINED;
}
static const struct kernel declining = {.name = "fake:declines", .prepare = decline, .run = run_failing};

static const struct kernel *const *fake_kernels(const struct device *device, enum op op) {
    static const struct kernel *const none[] = {NULL}, *const declines[] = {&declining, NULL},
                                      *const fails[] = {&failing_tanh, NULL};
    if (op == refused[0]) return none;
    if (op == refused[1]) return declines;
    if (op == failing) return fails;
    return backends[0]->kernels(device, op);
}

static int fake_copy(const struct device *device, void *out, const void *in, size_t bytes,
                     struct error *error) {
    (void)device;
    (void)error;
    atomic_fetch_add(&copies, 1);
    memcpy(out, in, bytes);
    return OK;
}

/* The first of the devices becomes fake:0. */
static struct backend fake_device(struct device *device) {
    struct backend backend = *backends[0];
    backend.name = "fake";
    backend.kernels = fake_kernels;
    backend.allocate = allocate_rubbish;
    backend.own_memory = true;
    backend.copy = backend.queue_copy = fake_copy;
    snprintf(device->name, sizeof device->name, "fake:0");
    refused[0] = refused[1] = failing = OPS;
    failing_run = tanh_runs = 0;
    atomic_store(&copies, 0);
    return backend;
}

/* --- a network that trains on one device; everything of each step is kept --- */

struct course {
    struct network network;
    struct choice model;
    node fetches[32];
    int count;
    float x[ROUNDS][BATCH * FEATURES];
    int labels[ROUNDS][BATCH];
    float loss[ROUNDS];
    float *weights, *gradients; /* [ROUNDS][floats]: before and of each step */
};

static void step_all(struct course *course, struct session *s) {
    const size_t floats = course->network.graph.layout.floats;
    for (int r = 0; r < ROUNDS && s->error.code == OK; r++) {
        float *weights = course->weights + (size_t)r * floats;
        memcpy(weights, s->weights, floats * sizeof(float));
        session_feed(s, course->network.x, course->x[r]);
        session_feed(s, course->network.labels, course->labels[r]);
        session_run(s);
        course->loss[r] = session_float(s, course->network.loss, 0);
        memcpy(course->gradients + (size_t)r * floats, s->gradients, floats * sizeof(float));
        for (size_t i = 0; i < floats; i++) s->weights[i] -= 0.1f * s->gradients[i];
    }
}

static void course_open(struct course *course, const char *model) {
    struct error error = {0};
    struct session s;
    *course = (struct course){0};
    CHECK(plugin_choose(&course->model, &model_kind, model, &error) == OK, "%s", error.words);
    const struct network_settings settings = {.model = &course->model,
                                              .shape = SHAPE(FEATURES),
                                              .classes = CLASSES,
                                              .batch = BATCH,
                                              .training = true,
                                              .seed = 1,
                                              .shards = 1};
    CHECK(network_open(&course->network, &settings, &error) == OK, "%s", error.words);
    course->fetches[course->count++] = course->network.loss;
    for (int i = 0; i < course->network.gradient_count; i++)
        course->fetches[course->count++] = course->network.gradients[i];
    const size_t floats = course->network.graph.layout.floats;
    course->weights = calloc(ROUNDS * floats, sizeof(float));
    course->gradients = calloc(ROUNDS * floats, sizeof(float));
    for (int r = 0; r < ROUNDS; r++) {
        fill_between(course->x[r], BATCH * FEATURES, (uint64_t)r, -1, 1);
        for (int i = 0; i < BATCH; i++) course->labels[r][i] = (r + i * i) % CLASSES;
    }
    session_open(&s, &course->network.graph, course->fetches, course->count);
    step_all(course, &s);
    CHECK(course->loss[ROUNDS - 1] != course->loss[0], "the loss never changed");
    session_close(&s);
}

static void course_close(struct course *course) {
    free(course->weights);
    free(course->gradients);
    network_close(&course->network);
}

/* --- the same on several devices: each part goes through all steps without waiting for the caller --- */

/* Both halves of a run. */
static int run_part(struct rendezvous *rendezvous, int part, float *weights, float *gradients,
                    struct error *error) {
    RETURN_IF(rendezvous_run(rendezvous, part, false, weights, gradients, error));
    return rendezvous_run(rendezvous, part, true, weights, gradients, error);
}

struct team;
struct player {
    struct team *team;
    int part, rounds; /* how many it runs */
    struct error error;
    struct world_thread *thread;
};

struct team {
    const struct course *course;
    const struct device *devices;
    struct partition *partition;
    struct world *world;
    struct rendezvous *rendezvous;
    struct player players[MOST_PARTS];
    float loss[ROUNDS];
    float *gradients; /* [ROUNDS][floats] */
};

/* Into the part that has the placeholder. */
static void feed(struct player *player, node n, const void *data, size_t bytes) {
    if (partition_device(player->team->partition, n) != player->part) return;
    void *to = rendezvous_address(player->team->rendezvous, 0, n);
    if (to)
        memcpy(to, data, bytes);
    else
        error_set(&player->error, ERROR_INTERNAL, "placeholder %d has no address", n);
}

static void play(void *argument) {
    struct player *player = argument;
    struct team *team = player->team;
    const struct course *course = team->course;
    const struct network *network = &course->network;
    const size_t floats = network->graph.layout.floats;
    const struct device *device = &team->devices[player->part];
    device->backend->enter(device);
    for (int r = 0; r < player->rounds; r++) {
        feed(player, network->x, course->x[r], sizeof course->x[r]);
        feed(player, network->labels, course->labels[r], sizeof course->labels[r]);
        if (run_part(team->rendezvous, player->part, course->weights + (size_t)r * floats,
                     team->gradients + (size_t)r * floats, &player->error) != OK)
            return;
        if (partition_device(team->partition, network->loss) == player->part)
            team->loss[r] = *(const float *)rendezvous_address(team->rendezvous, 0, network->loss);
    }
}

static int team_open(struct team *team, const struct course *course, const struct placement *placement,
                     struct world *world, double timeout_s) {
    struct error error = {0};
    *team = (struct team){.course = course, .devices = placement->devices, .world = world};
    const int code = partition_compile(&team->partition, &course->network.graph, course->fetches,
                                       course->count, placement, &error);
    CHECK(code == OK, "%s", error.words);
    if (code != OK) return code;
    team->gradients = calloc(ROUNDS * course->network.graph.layout.floats, sizeof(float));
    CHECK(rendezvous_open(&team->rendezvous, team->partition, NULL, world, timeout_s, &error) == OK, "%s",
          error.words);
    for (int i = 0; i < placement->count; i++)
        team->players[i] = (struct player){.team = team, .part = i, .rounds = ROUNDS};
    return OK;
}

static void team_play(struct team *team, int parts) {
    struct error error = {0};
    for (int i = 0; i < parts; i++)
        CHECK(world_spawn(team->world, "part", NULL, play, &team->players[i], &team->players[i].thread,
                          &error) == OK,
              "%s", error.words);
    for (int i = 0; i < parts; i++) world_join(team->players[i].thread);
}

static void team_close(struct team *team) {
    rendezvous_close(team->rendezvous);
    partition_close(team->partition);
    free(team->gradients);
}

static void check_same_course(const struct team *team, int parts, const char *what) {
    const struct course *course = team->course;
    const size_t bytes = ROUNDS * course->network.graph.layout.floats * sizeof(float);
    for (int i = 0; i < parts; i++)
        CHECK(team->players[i].error.code == OK, "%s, part %d: %s", what, i, team->players[i].error.words);
    CHECK(memcmp(team->loss, course->loss, sizeof team->loss) == 0, "%s: the losses differ", what);
    CHECK(memcmp(team->gradients, course->gradients, bytes) == 0, "%s: the gradients differ", what);
}

static struct world *open_world(bool simulated, uint64_t seed) {
    struct world *world = NULL;
    struct error error = {0};
    CHECK((simulated ? world_open_simulated(&world, seed, &error) : world_open_threads(&world, &error)) == OK,
          "%s", error.words);
    return world;
}

/* One real world and `seeds` simulated ones. */
static void check_course(const struct course *course, const struct placement *placement, int seeds,
                         const char *what) {
    for (int seed = 0; seed <= seeds; seed++) {
        struct world *world = open_world(seed > 0, (uint64_t)seed);
        struct team team;
        if (team_open(&team, course, placement, world, 20) == OK) {
            team_play(&team, placement->count);
            check_same_course(&team, placement->count, what);
        }
        team_close(&team);
        world_close(world);
    }
}

/* How many steps of a part's program run this operation. */
static int steps_of(const struct partition *partition, int part, enum op op) {
    char text[20000] = "", word[40];
    FILE *file = fmemopen(text, sizeof text, "w");
    program_print(partition_program(partition, part), file);
    fclose(file);
    snprintf(word, sizeof word, " %s ", op_name(op));
    int count = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) count++;
    return count;
}

/* --- tests --- */

/* mlp of three layers: one device per layer, and the gradients with their layers. */
static void test_layers(void) {
    struct course course;
    int count = 0;
    struct device *devices = open_devices("cpu:0,cpu:1,cpu:2", &count);
    course_open(&course, "mlp:hidden=8-7,activation=tanh");
    struct placement placement = {.devices = devices, .count = 2, .layers = "dense1=cpu:0,dense2=cpu:1"};
    check_course(&course, &placement, 30, "two devices");
    placement = (struct placement){
        .devices = devices, .count = 3, .layers = "dense1=cpu:2,dense2=cpu:0,dense3=cpu:1"};
    check_course(&course, &placement, 30, "three devices");

    struct world *world = open_world(false, 0);
    struct team team;
    if (team_open(&team, &course, &placement, world, 20) == OK) {
        const struct graph *g = &course.network.graph;
        static const int home[] = {2, 2, 0, 0, 1, 1}; /* of kernel and bias of each layer */
        int range = 0;
        for (node n = 0; n < g->count; n++)
            if (g->nodes[n].op == OP_variable) {
                CHECK(partition_device(team.partition, n) == home[range], "%s is on device %d",
                      g->nodes[n].name, partition_device(team.partition, n));
                range++;
            }
        for (int i = 0; i < course.network.gradient_count; i++)
            CHECK(partition_device(team.partition, course.network.gradients[i]) == home[i],
                  "the gradient of %s is on device %d", g->layout.ranges[i].name,
                  partition_device(team.partition, course.network.gradients[i]));
        CHECK(partition_device(team.partition, course.network.x) == 2, "x goes to its first reader");
        CHECK(partition_device(team.partition, course.network.labels) == 1, "the labels too");
        CHECK(partition_device(team.partition, course.network.loss) == 1, "the loss follows its operand");
        /* Two activations forward, two gradients back. */
        static const int sends[] = {2, 1, 1};
        for (int part = 0; part < 3; part++)
            CHECK(steps_of(team.partition, part, OP_send) == sends[part] &&
                      steps_of(team.partition, part, OP_receive) == sends[part],
                  "part %d sends %d values and receives %d", part, steps_of(team.partition, part, OP_send),
                  steps_of(team.partition, part, OP_receive));
        /* Pruned: in no part. */
        const node pruned[] = {course.network.predicted, course.network.outputs};
        for (int i = 0; i < 2; i++) {
            CHECK(partition_device(team.partition, pruned[i]) == NONE, "node %d has a device", pruned[i]);
            for (int part = 0; part < 3; part++)
                CHECK(partition_node(team.partition, part, pruned[i]) == NONE, "node %d is in part %d",
                      pruned[i], part);
        }
        CHECK(partition_move(team.partition, 0) == NULL, "%s", partition_move(team.partition, 0));
    }
    team_close(&team);
    world_close(world);
    course_close(&course);
    devices_close(devices, count);
}

static int pin_anywhere(const void *argument, node n) {
    const uint32_t bits = rng_philox(*(const uint64_t *)argument, 0, (uint64_t)n).word[0];
    return (int)(bits % (MOST_PARTS + 1)) - 1; /* some are left to follow */
}

/* Every node on a device of its own choice. */
static void test_anywhere(void) {
    struct course course;
    int count = 0;
    struct device *devices = open_devices("cpu:0,cpu:1,cpu:2", &count);
    course_open(&course, "mlp:hidden=5,activation=relu");
    for (uint64_t seed = 0; seed < 30; seed++) {
        const struct placement placement = {
            .devices = devices, .count = MOST_PARTS, .pin = pin_anywhere, .argument = &seed};
        check_course(&course, &placement, 3, "anywhere");
    }
    const struct placement one = {.devices = devices, .count = 1};
    check_course(&course, &one, 1, "one device");
    const struct placement idle = {.devices = devices, .count = 2}; /* nothing is for the second */
    check_course(&course, &idle, 1, "an idle device");
    course_close(&course);
    devices_close(devices, count);
}

/* For graphs without a network: all parts in their threads, `rounds` times. */
struct solo {
    struct rendezvous *rendezvous;
    int part, rounds;
    float *weights;
    struct error error;
    struct world_thread *thread;
};

static void play_solo(void *argument) {
    struct solo *solo = argument;
    for (int r = 0; r < solo->rounds; r++)
        if (run_part(solo->rendezvous, solo->part, solo->weights, NULL, &solo->error) != OK) return;
}

static void run_parts(struct rendezvous *rendezvous, struct world *world, int parts, int rounds,
                      float *weights) {
    struct solo solos[MOST_PARTS];
    struct error error = {0};
    for (int i = 0; i < parts; i++) {
        solos[i] = (struct solo){.rendezvous = rendezvous, .part = i, .rounds = rounds, .weights = weights};
        CHECK(world_spawn(world, "part", NULL, play_solo, &solos[i], &solos[i].thread, &error) == OK, "%s",
              error.words);
    }
    for (int i = 0; i < parts; i++) world_join(solos[i].thread);
    for (int i = 0; i < parts; i++) CHECK(solos[i].error.code == OK, "%s", solos[i].error.words);
}

static int pin_by_table(const void *argument, node n) {
    return ((const int *)argument)[n];
}

/* The slides' x=2, y=3: sum and product on one device, their power on another; nobody asks for the rest. */
static void test_slides(void) {
    struct graph g;
    struct error error = {0};
    int count = 0;
    struct device *devices = open_devices("cpu:0,cpu:1", &count);
    graph_open(&g, false, 1);
    const node x = graph_scalar(&g, 2), y = graph_scalar(&g, 3);
    const node add = graph_add(&g, x, y), mul = graph_mul(&g, x, y);
    const node useless = graph_mul(&g, x, add), power = graph_pow(&g, add, mul);
    const int where[] = {NONE, NONE, 0, 0, 1, 1};
    const struct placement placement = {
        .devices = devices, .count = count, .pin = pin_by_table, .argument = where};
    struct partition *partition = NULL;
    CHECK(partition_compile(&partition, &g, &power, 1, &placement, &error) == OK, "%s", error.words);
    CHECK(program_instructions(partition_program(partition, 0)) == 4,
          "%d instructions, expected add, send, mul, send",
          program_instructions(partition_program(partition, 0)));
    CHECK(program_instructions(partition_program(partition, 1)) == 3,
          "%d instructions, expected receive, receive, pow",
          program_instructions(partition_program(partition, 1)));
    for (int part = 0; part < 2; part++)
        CHECK(partition_node(partition, part, useless) == NONE, "the useless node is in part %d", part);
    CHECK(partition_device(partition, mul) == 0 && partition_device(partition, power) == 1, "devices");
    for (int simulated = 0; simulated < 2; simulated++) {
        struct world *world = open_world(simulated, 1);
        struct rendezvous *rendezvous = NULL;
        CHECK(rendezvous_open(&rendezvous, partition, NULL, world, 20, &error) == OK, "%s", error.words);
        run_parts(rendezvous, world, 2, 3, NULL);
        const float *value = rendezvous_address(rendezvous, 0, power);
        CHECK(value && *value == 15625.0f, "%g", value ? (double)*value : NAN);
        CHECK(rendezvous_address(rendezvous, 0, useless) == NULL &&
                  rendezvous_address(rendezvous, 0, add) == NULL,
              "what is not fetched has an address");
        rendezvous_close(rendezvous);
        world_close(world);
    }
    partition_close(partition);
    graph_close(&g);
    devices_close(devices, count);
}

/* A variable that is assigned on one device and read on another: before the assign its old value, after it
 * the new one, by whichever name; the same as on one device, from run to run. */
static void test_assign(void) {
    struct graph g;
    int count = 0;
    struct device *devices = open_devices("cpu:0,cpu:1,cpu:2", &count);
    graph_open(&g, false, 1);
    const node v = graph_variable(&g, "v", SHAPE(3), (struct initial){INITIAL_CONSTANT, 10, NULL});
    const node three = graph_scalar(&g, 3);
    node all[8];
    int n = 0;
    all[n++] = graph_mul(&g, v, three);
    all[n++] = graph_assign_add(&g, v, graph_constant(&g, SHAPE(3), (float[]){2.5f, 1, 7}));
    all[n++] = graph_mul(&g, v, three);
    all[n++] = graph_sub(&g, all[1], three);
    all[n++] = graph_assign(&g, v, graph_sub(&g, v, graph_scalar(&g, 1)));
    all[n++] = graph_add(&g, v, all[2]);
    all[n++] = graph_div(&g, all[1], three);
    struct session s;
    session_open(&s, &g, all, n);
    for (int r = 0; r < 5; r++) session_run(&s);
    for (uint64_t seed = 0; seed < 40; seed++) {
        int where[16];
        for (node i = 0; i < g.count; i++) {
            const bool assign = g.nodes[i].op == OP_assign || g.nodes[i].op == OP_assign_add;
            where[i] = assign ? NONE : pin_anywhere(&seed, i);
        }
        const struct placement placement = {
            .devices = devices, .count = count, .pin = pin_by_table, .argument = where};
        struct partition *partition = NULL;
        struct rendezvous *rendezvous = NULL;
        struct error error = {0};
        struct world *world = open_world(seed % 2, seed);
        float weights[LINE_FLOATS];
        layout_initialize(&g.layout, 1, weights);
        CHECK(partition_compile(&partition, &g, all, n, &placement, &error) == OK &&
                  rendezvous_open(&rendezvous, partition, NULL, world, 20, &error) == OK,
              "%s", error.words);
        run_parts(rendezvous, world, count, 5, weights);
        for (int i = 0; i < n; i++) {
            const float *value = rendezvous_address(rendezvous, 0, all[i]);
            CHECK(memcmp(value ? value : weights, session_value(&s, all[i]), 3 * sizeof(float)) == 0,
                  "seed %d, fetch %d: %g, expected %g", (int)seed, i, (double)(value ? value : weights)[0],
                  (double)session_float(&s, all[i], 0));
        }
        rendezvous_close(rendezvous);
        partition_close(partition);
        world_close(world);
    }
    session_close(&s);
    graph_close(&g);
    devices_close(devices, count);
}

/* A part whose thread never runs: the other gives up, and says for what, for whom and how long it waited. */
static void test_dead_part(void) {
    struct course course;
    int count = 0;
    struct device *devices = open_devices("cpu:0,cpu:1", &count);
    course_open(&course, "mlp:hidden=5");
    const struct placement placement = {
        .devices = devices, .count = 2, .layers = "dense1=cpu:0,dense2=cpu:1"};
    for (int simulated = 0; simulated < 2; simulated++)
        for (int dead = 0; dead < 2; dead++)
            for (int after = 0; after < 2; after++) { /* runs before it dies */
                struct world *world = open_world(simulated, 3);
                struct team team;
                if (team_open(&team, &course, &placement, world, 0.125) == OK) {
                    team.players[dead].rounds = after;
                    world_sleep(world, 0.25);
                    const double start = world_now(world);
                    team_play(&team, 2);
                    const double took = world_now(world) - start;
                    const struct error *error = &team.players[1 - dead].error;
                    const char *gave_up = strstr(error->words, "gave up after ");
                    const double said = gave_up ? strtod(gave_up + strlen("gave up after "), NULL) : 0.0;
                    const char *op = dead == 0 ? "(sigmoid) of cpu:0" : "(matmul) of cpu:1";
                    CHECK(error->code == ERROR_PEER && strstr(error->words, op) &&
                              strstr(error->words, dead == 0 ? "cpu:1, waiting" : "cpu:0, waiting") &&
                              (!simulated || strstr(error->words, "gave up after 0.125 s")) &&
                              said >= 0.125 && said <= took + 0.0005,
                          "%d: %s", error->code, error->words);
                    CHECK(team.players[dead].error.code == OK, "%s", team.players[dead].error.words);
                    CHECK(world_now(world) - start >= 0.125, "it gave up too early");
                    CHECK(!simulated || world_now(world) - start == 0.125, "%g s", world_now(world) - start);
                    struct error late = {0}; /* once given up, for good */
                    CHECK(run_part(team.rendezvous, dead, course.weights, team.gradients, &late) ==
                                  ERROR_PEER &&
                              strstr(late.words, dead == 0 ? "cpu:1 has failed" : "cpu:0 has failed"),
                          "%s", late.words);
                }
                team_close(&team);
                world_close(world);
            }
    course_close(&course);
    devices_close(devices, count);
}

/* A sender may be as many runs ahead of its receiver as there is room for; then it waits, no longer than it
 * may. */
static void check_slow_reader(const struct partition *partition, const struct pipeline *pipeline, int room,
                              node x, node z) {
    struct error error = {0};
    struct rendezvous *rendezvous = NULL;
    struct world *world = open_world(true, 1);
    CHECK(rendezvous_open(&rendezvous, partition, pipeline, world, 7, &error) == OK, "%s", error.words);
    for (int run = 0; run < room; run++) {
        *(float *)rendezvous_address(rendezvous, run, x) = (float)run;
        CHECK(rendezvous_run(rendezvous, 0, false, NULL, NULL, &error) == OK, "value %d of %d has room: %s",
              run, room, error.words);
    }
    CHECK(world_now(world) == 0, "the sender waited for %g s", world_now(world));
    CHECK(run_part(rendezvous, 1, NULL, NULL, &error) == OK, "%s", error.words);
    CHECK(*(float *)rendezvous_address(rendezvous, 0, z) == 0, "log exp 0");
    CHECK(rendezvous_run(rendezvous, 0, false, NULL, NULL, &error) == OK, "taken, so there is room: %s",
          error.words);
    CHECK(rendezvous_run(rendezvous, 0, false, NULL, NULL, &error) == ERROR_PEER,
          "sent over what is not taken");
    CHECK(strcmp(error.words, "cpu:0, waiting for cpu:1 to be done with node 1 (exp) of an earlier run, "
                              "gave up after 7 s") == 0,
          "%s", error.words);
    rendezvous_close(rendezvous);
    world_close(world);
}

static void test_slow_reader(void) {
    struct graph g;
    int count = 0;
    struct error error = {0};
    struct device *devices = open_devices("cpu:0,cpu:1", &count);
    graph_open(&g, false, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SCALAR);
    const node y = graph_exp(&g, x), z = graph_log(&g, y);
    const int where[] = {0, 0, 1};
    const struct placement placement = {
        .devices = devices, .count = count, .pin = pin_by_table, .argument = where};
    struct partition *partition = NULL;
    CHECK(partition_compile(&partition, &g, &z, 1, &placement, &error) == OK, "%s", error.words);
    check_slow_reader(partition, NULL, 1, x, z);
    check_slow_reader(partition, &(struct pipeline){PIPELINE_1F1B, 2, 4}, 2, x, z);
    check_slow_reader(partition, &(struct pipeline){PIPELINE_GPIPE, 2, 4}, 4, x, z);
    partition_close(partition);
    graph_close(&g);
    devices_close(devices, count);
}

/* A part that fails has its own words; the others are told at once, long before they would give up. */
static void test_failing_part(void) {
    struct course course;
    int count = 0;
    struct device *devices = open_devices("cpu:0,cpu:1", &count);
    course_open(&course, "mlp:hidden=5,activation=tanh");
    struct backend fake = fake_device(&devices[0]);
    devices[0].backend = &fake;
    failing = OP_tanh;
    refused[0] = OP_dense; /* else the tanh would be fused away */
    const struct placement placement = {
        .devices = devices, .count = 2, .layers = "dense1=fake:0,dense2=cpu:1"};
    for (int simulated = 0; simulated < 2; simulated++) {
        struct world *world = open_world(simulated, 3);
        struct team team;
        failing_run = 4;
        tanh_runs = 0;
        if (team_open(&team, &course, &placement, world, 1000) == OK) {
            team_play(&team, 2);
            CHECK(strstr(team.players[0].error.words, " (tanh): the tanh of fake:0 broke"), "%s",
                  team.players[0].error.words);
            CHECK(team.players[1].error.code == ERROR_PEER &&
                      strstr(team.players[1].error.words, "fake:0 ha"),
                  "%s", team.players[1].error.words);
            CHECK(world_now(world) < 100, "told after %g s", world_now(world));
        }
        team_close(&team);
        world_close(world);
    }
    course_close(&course);
    devices_close(devices, count);
}

static void check_wrong(const struct course *course, const struct placement *placement, int code,
                        const char *words) {
    struct partition *partition = NULL;
    struct error error = {0};
    CHECK(partition_compile(&partition, &course->network.graph, course->fetches, course->count, placement,
                            &error) == code &&
              !partition && strstr(error.words, words),
          "%d '%s', expected %d '%s'", error.code, error.words, code, words);
    partition_close(partition);
}

/* What a device has no kernel for runs on the first CPU device, is reported once an operation, and changes
 * nothing; or it is an error. */
static void test_soft(void) {
    struct course course;
    int count = 0;
    struct device *devices = open_devices("cpu:0,cpu:1,cpu:2", &count);
    course_open(&course, "mlp:hidden=8-7,activation=tanh");
    struct backend fake = fake_device(&devices[0]);
    devices[0].backend = &fake;
    refused[0] = OP_tanh;
    refused[1] = OP_tanh_grad;
    struct placement placement = {.devices = devices, .count = 3, .soft = true};
    check_course(&course, &placement, 10, "soft");
    CHECK(atomic_load(&copies) > 0, "memory of fake:0 was not copied by its backend");

    struct partition *partition = NULL;
    struct error error = {0};
    CHECK(partition_compile(&partition, &course.network.graph, course.fetches, course.count, &placement,
                            &error) == OK,
          "%s", error.words);
    const char *const moves[] = {"tanh: fake:0 has no kernel for it, it runs on cpu:1",
                                 "tanh_grad: fake:0 has no kernel for it, it runs on cpu:1"};
    for (int i = 0; i < 2 && partition; i++) {
        const char *words = partition_move(partition, i);
        CHECK(words && strcmp(words, moves[i]) == 0, "%s", words ? words : "no move");
    }
    CHECK(partition && !partition_move(partition, 2), "a line more than operations");
    /* Who follows what was moved stays. */
    CHECK(partition_device(partition, course.network.loss) == 0, "the loss was moved, too");
    CHECK(steps_of(partition, 1, OP_tanh) == 2 && steps_of(partition, 1, OP_tanh_grad) == 2, "moved steps");
    CHECK(steps_of(partition, 2, OP_tanh) == 0, "not to the first CPU device");
    partition_close(partition);

    placement.soft = false;
    check_wrong(&course, &placement, ERROR_DEVICE, "fake:0 has no kernel for tanh with result [6, 8]");
    placement.soft = true;
    placement.count = 1; /* no CPU device */
    check_wrong(&course, &placement, ERROR_DEVICE, "fake:0 has no kernel for tanh");
    course_close(&course);
    devices_close(devices, count);
}

/* An assign is where its variable was pinned to, whatever its layer says. */
static void test_assign_stays(void) {
    struct graph g;
    int count = 0;
    struct error error = {0};
    struct device *devices = open_devices("cpu:0,cpu:1", &count);
    graph_open(&g, false, 1);
    const node v = graph_variable(&g, "v", SCALAR, (struct initial){0});
    const node more = graph_add(&g, v, graph_scalar(&g, 1)), assign = graph_assign(&g, v, more);
    const int where[] = {0, NONE, NONE, NONE};
    const struct placement placement = {
        .devices = devices, .count = 2, .layers = "v=cpu:1", .pin = pin_by_table, .argument = where};
    struct partition *partition = NULL;
    CHECK(partition_compile(&partition, &g, &assign, 1, &placement, &error) == OK, "%s", error.words);
    CHECK(partition_device(partition, v) == 0 && partition_device(partition, more) == 1 &&
              partition_device(partition, assign) == 0,
          "v on %d, its reader on %d, its assign on %d", partition_device(partition, v),
          partition_device(partition, more), partition_device(partition, assign));
    partition_close(partition);
    graph_close(&g);
    devices_close(devices, count);
}

static int pin_nowhere(const void *argument, node n) {
    (void)argument;
    return n == 0 ? 2 : NONE;
}

static void test_mistakes(void) {
    struct course course;
    int count = 0;
    struct device *devices = open_devices("cpu:0,cpu:1", &count);
    course_open(&course, "mlp:hidden=5");
    struct placement placement = {.devices = devices, .count = 2};
    static const char *const layers[][2] = {
        {"dense1", "'dense1', expected LAYER=DEVICE"},
        {"dense1=cpu:0,", "'', expected LAYER=DEVICE"},
        {"=cpu:0", "'=cpu:0', expected LAYER=DEVICE"},
        {"dense2=cpu:0,dense1=cpu:2", "'dense1=cpu:2' names a device that is not in use"},
        {"dense=cpu:0", "no variables in a layer 'dense'"},
        {"dense10=cpu:0", "no variables in a layer 'dense10'"},
    };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        placement.layers = layers[i][0];
        check_wrong(&course, &placement, ERROR_USAGE, layers[i][1]);
    }
    placement.layers = NULL;
    placement.pin = pin_nowhere;
    check_wrong(&course, &placement, ERROR_USAGE, "node 0 is pinned to device 2 of 2");
    placement = (struct placement){.devices = devices, .count = 0};
    check_wrong(&course, &placement, ERROR_USAGE, "no devices");
    course_close(&course);

    struct graph g;
    graph_open(&g, false, 1);
    const node v = graph_variable(&g, "v", SCALAR, (struct initial){0});
    const node assign = graph_assign(&g, v, graph_scalar(&g, 1));
    const int where[] = {0, NONE, 1};
    placement = (struct placement){.devices = devices, .count = 2, .pin = pin_by_table, .argument = where};
    struct partition *partition = NULL;
    struct error error = {0};
    CHECK(partition_compile(&partition, &g, &assign, 1, &placement, &error) == ERROR_USAGE &&
              strstr(error.words, "assign of v is pinned to cpu:1, its variable is on cpu:0"),
          "%s", error.words);
    partition_close(NULL);
    rendezvous_close(NULL);
    graph_close(&g);
    devices_close(devices, count);
}

/* True when all of it worked. */
static bool build_all(const struct graph *g, const node *fetches, int count,
                      const struct placement *placement, struct world *world) {
    struct partition *partition = NULL;
    struct rendezvous *rendezvous = NULL;
    struct error error = {0};
    const bool built = partition_compile(&partition, g, fetches, count, placement, &error) == OK &&
                       rendezvous_open(&rendezvous, partition, NULL, world, 20, &error) == OK;
    CHECK(built || error.code == ERROR_DEVICE, "code %d: %s", error.code, error.words);
    rendezvous_close(rendezvous);
    partition_close(partition);
    return built;
}

/* The n-th request for memory fails, for every n: an error with words, and nothing is lost. */
static void test_memory_failures(void) {
    struct course course;
    int count = 0, failures = 0;
    long requests = 0;
    bool built = false;
    struct device *devices = open_devices("cpu:0,cpu:1", &count);
    struct world *world = open_world(false, 0);
    course_open(&course, "mlp:hidden=5");
    struct backend fake = fake_device(&devices[0]);
    devices[0].backend = &fake;
    refused[0] = OP_sigmoid;
    const struct placement placement = {
        .devices = devices, .count = 2, .layers = "dense1=fake:0,dense2=cpu:1", .soft = true};
    for (int nth = 1; nth < 300 && !built; nth++) {
        char text[32];
        requests += nth; /* counted over all attempts, each of which ends with the request that failed */
        snprintf(text, sizeof text, "%ld", requests);
        setenv("TRAINER_FAIL_ALLOCATION", text, 1);
        built = build_all(&course.network.graph, course.fetches, course.count, &placement, world);
        failures += !built;
    }
    unsetenv("TRAINER_FAIL_ALLOCATION");
    CHECK(built && failures > 20, "%d failures", failures);
    world_close(world);
    course_close(&course);
    devices_close(devices, count);
}

int main(void) {
    test_layers();
    test_anywhere();
    test_slides();
    test_assign();
    test_dead_part();
    test_slow_reader();
    test_failing_part();
    test_soft();
    test_assign_stays();
    test_mistakes();
    test_memory_failures();
    return check_end();
}
