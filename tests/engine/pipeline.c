/* Pipelines: however micro-batches go through a group, loss and gradient are, bit for bit, those of one
 * device that computes them one after the other: on CPUs and GPUs, with libraries and without, in threads and
 * in any order that the simulated world has for them. Memory is what the schedule says. Sends and computing
 * overlap, so the stages idle as long as the formula says. Parts that would wait for each other are refused,
 * and a part that fails or hangs in the middle is named. */
#include "../../src/base/text.h"
#include "../sides.h"

enum { FEW = 2, THIRDS = 3, MANY = BATCH }; /* micro-batches */

static const char network[] =
    "layers:conv1 = conv 3 3x3 same; norm1 = batch_norm; relu; flatten; dense1 = dense 9 tanh; "
    "dropout 0.4; dense2 = dense 7 relu; dense3 = dense";
/* What goes around a layer crosses, too, and skips a stage. */
static const char around[] =
    "layers:flatten; dense1 = dense 8 tanh; dense2 = dense 8 tanh; dense3 = dense 8; "
    "add dense1; dropout 0.2; dense4 = dense";

struct pair {
    const char *devices, *place, *layers;
    enum pipeline_schedule schedule;
    int microbatches;
    bool mixed, simulated, libraries;
    uint64_t seed; /* of the simulated world */
};

static const char *name_of(const struct pair *pair, char out[300]) {
    snprintf(out, 300, "%s, %s, %s, %d micro-batches, seed %d", pair->devices, pair->place,
             pipeline_name(pair->schedule), pair->microbatches, (int)pair->seed);
    return out;
}

static int open_world(struct world **world, const struct pair *pair, struct error *error) {
    if (pair->simulated) return world_open_simulated(world, pair->seed, error);
    return world_open_threads(world, error);
}

/* A group beside one device. */
static void check(const struct pair *pair) {
    const struct examples examples = side_examples(pair->mixed);
    struct error error = {0};
    struct groups groups = {.place = pair->place,
                            .soft = true,
                            .schedule = pair->schedule,
                            .microbatches = pair->microbatches,
                            .timeout_s = 60.0};
    struct device *opened = NULL;
    struct side one = {0}, group = {0};
    char name[300];
    const int part = BATCH / pair->microbatches, micros = pair->microbatches;
    int code = open_groups(pair->devices, !pair->libraries, &groups, &opened, &error);
    if (code == OK) code = open_world(&groups.world, pair, &error);
    if (code == OK) code = open_side(&one, opened, NULL, pair->layers, &examples, micros, part, &error);
    if (code == OK) code = open_side(&group, opened, &groups, pair->layers, &examples, micros, part, &error);
    CHECK(code == OK, "%s: %s", name_of(pair, name), error.words);
    const bool cpus = strstr(pair->devices, "cpu") != NULL, gpus = strstr(pair->devices, "gpu") != NULL;
    if (code == OK) compare_sides(&one, &group, !(cpus && gpus), name_of(pair, name));
    close_side(&group);
    close_side(&one);
    world_close(groups.world);
    devices_close(opened, groups.workers * groups.size);
}

static const struct {
    const char *devices, *place;
    bool returns; /* from a later stage to an earlier one: not by 1f1b */
} places[] = {{"(cpu:0+cpu:1)", "dense*=cpu:1", false},
              {"(cpu:0+cpu:1)", "*=cpu:1,dense*=cpu:0", true}, /* the first device has the last layers */
              {"(cpu:0+cpu:1)", "*=cpu:1", false},             /* and here nothing but the batches */
              {"(cpu:0+cpu:1+cpu:2)", "dense1=cpu:1,dense[23]=cpu:2", false},
              {"(cpu:0+cpu:1+cpu:2+cpu:3)", "dense1=cpu:1,dense2=cpu:2,dense3=cpu:3", false},
              {"(gpu:0+gpu:1)", "dense*=gpu:1", false},
              {"(gpu:0+gpu:1+gpu:0)", "dense1=gpu:1", false},
              {"(gpu:0+cpu:0)", "dense*=cpu:0", false},
              {"(cpu:0+gpu:0)", "dense[12]=gpu:0,dense3=gpu:0", false}};

static bool has_gpus(void) {
    const struct backend *last = backends[0];
    for (int b = 0; backends[b]; b++) last = backends[b];
    return last != backends[0] && last->count() >= 2;
}

static void check_place(size_t place, int microbatches, enum pipeline_schedule schedule) {
    struct pair pair = {.devices = places[place].devices,
                        .place = places[place].place,
                        .layers = network,
                        .schedule = schedule,
                        .microbatches = microbatches,
                        .mixed = microbatches == THIRDS};
    const bool gpus = strstr(pair.devices, "gpu") != NULL;
    if (gpus && (!has_gpus() || microbatches != THIRDS)) return;
    if (schedule == PIPELINE_1F1B && places[place].returns) return;
    check(&pair);
    pair.libraries = true;
    if (!gpus && microbatches == THIRDS) check(&pair);
}

static void check_places(void) {
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (int schedule = PIPELINE_GPIPE; schedule <= PIPELINE_1F1B; schedule++) {
            check_place(i, FEW, (enum pipeline_schedule)schedule);
            check_place(i, THIRDS, (enum pipeline_schedule)schedule);
            check_place(i, MANY, (enum pipeline_schedule)schedule);
        }
}

/* Orders of all kinds: what is chosen by seed decides who goes on. */
static void check_orders(void) {
    for (uint64_t seed = 1; seed <= 12; seed++) {
        const struct pair pair = {.devices = "(cpu:0+cpu:1+cpu:2)",
                                  .place = "dense2=cpu:1,dense3=cpu:1,dense4=cpu:2",
                                  .layers = around,
                                  .schedule = seed % 2 ? PIPELINE_1F1B : PIPELINE_GPIPE,
                                  .microbatches = MANY,
                                  .simulated = true,
                                  .seed = seed};
        check(&pair);
    }
}

/* --- parts that would wait for each other --- */

static void check_refused(void) {
    const struct examples examples = side_examples(false);
    for (int schedule = PIPELINE_GPIPE; schedule <= PIPELINE_1F1B; schedule++) {
        struct error error = {0};
        struct groups groups = {.place = "conv1=cpu:0,dense1=cpu:1,dense2=cpu:0,dense3=cpu:1",
                                .schedule = (enum pipeline_schedule)schedule,
                                .microbatches = THIRDS,
                                .timeout_s = 60.0};
        struct device *opened = NULL;
        struct side side = {0};
        CHECK(open_groups("(cpu:0+cpu:1)", true, &groups, &opened, &error) == OK &&
                  world_open_threads(&groups.world, &error) == OK,
              "%s", error.words);
        const int code =
            open_side(&side, opened, &groups, network, &examples, THIRDS, BATCH / THIRDS, &error);
        if (schedule == PIPELINE_GPIPE)
            CHECK(code == OK, "gpipe: %s", error.words);
        else
            CHECK(code == ERROR_USAGE &&
                      strstr(error.words,
                             "a pipeline by 1f1b: cpu:0 and cpu:1 would wait for each other, for node ") &&
                      strstr(error.words, "goes from cpu:1 to cpu:0"),
                  "code %d: %s", code, error.words);
        close_side(&side);
        world_close(groups.world);
        devices_close(opened, 2);
    }
}

/* --- time and memory --- */

/* A network of a layer per stage; halves of what lies there do nothing but take a second of the simulated
 * world, or one of them breaks or hangs. */
static struct world *world_of_seconds;
static _Atomic int arenas, calls;
static int breaks_at, hangs_at;            /* a call of the last stage's, from 1; 0: none */
static int middle_calls, middle_breaks_at; /* the same of the stage before it */
static _Atomic bool hangs;

static int run_second(const struct call *call, struct error *error) {
    (void)call, (void)error;
    world_work(world_of_seconds, 1.0);
    return OK;
}
static int run_faulty(const struct call *call, struct error *error) {
    const int number = ++calls;
    if (number == breaks_at) return error_set(error, ERROR_DEVICE, "the multiplier broke");
    while (number == hangs_at && atomic_load(&hangs)) world_sleep(world_of_seconds, 0.005);
    return run_second(call, error);
}
static int run_middle(const struct call *call, struct error *error) {
    if (++middle_calls == middle_breaks_at) return error_set(error, ERROR_DEVICE, "the adder broke");
    return run_second(call, error);
}
static const struct kernel middle_kernel = {.name = "middle", .run = run_middle};
static const struct kernel second_kernel = {.name = "second", .run = run_second};
static const struct kernel faulty_kernel = {.name = "faulty", .run = run_faulty};

static const struct kernel *const *kernels_with(enum op op, const struct kernel *const *own,
                                                const struct device *device) {
    static const struct kernel *const none[] = {NULL};
    if (op == OP_dense) return none; /* else the tanh would be a part of it */
    return op == OP_tanh || op == OP_tanh_grad ? own : backends[0]->kernels(device, op);
}
static const struct kernel *const *second_kernels(const struct device *device, enum op op) {
    static const struct kernel *const own[] = {&second_kernel, NULL};
    return kernels_with(op, own, device);
}
static const struct kernel *const *middle_kernels(const struct device *device, enum op op) {
    static const struct kernel *const own[] = {&middle_kernel, NULL};
    return kernels_with(op, own, device);
}
static const struct kernel *const *faulty_kernels(const struct device *device, enum op op) {
    static const struct kernel *const own[] = {&faulty_kernel, NULL};
    return kernels_with(op, own, device);
}

static int count_arenas(const struct device *device, void **out, size_t bytes, const char *what,
                        struct error *error) {
    arenas += strcmp(what, "arena") == 0;
    return backends[0]->allocate(device, out, bytes, what, error);
}

struct line {
    struct backend seconds, middle, faulty;
    struct examples examples;
    struct groups groups;
    struct device *devices;
    struct side side;
    char place[100];
};

static int open_line(struct line *line, enum pipeline_schedule schedule, int stages, int microbatches,
                     struct world *world, double timeout_s, struct error *error) {
    char names[100], layers[300];
    struct text devices = text_into(names, sizeof names), place = text_into(line->place, sizeof line->place);
    struct text list = text_into(layers, sizeof layers);
    *line = (struct line){.seconds = *backends[0],
                          .middle = *backends[0],
                          .faulty = *backends[0],
                          .examples = side_examples(false)};
    text_add(&list, "layers:flatten");
    for (int s = 0; s < stages; s++) {
        text_item(&devices, "+", "%scpu:%d", s == 0 ? "(" : "", s);
        text_add(&list, "; dense%d = dense %d; tanh", s + 1, CLASSES);
        text_item(&place, ",", "dense%d=cpu:%d", s + 1, s);
    }
    text_add(&devices, ")");
    line->groups = (struct groups){.place = line->place,
                                   .schedule = schedule,
                                   .microbatches = microbatches,
                                   .world = world_of_seconds = world,
                                   .timeout_s = timeout_s};
    RETURN_IF(open_groups(names, true, &line->groups, &line->devices, error));
    line->seconds.kernels = second_kernels;
    line->middle.kernels = middle_kernels;
    line->faulty.kernels = faulty_kernels;
    line->seconds.allocate = line->middle.allocate = line->faulty.allocate = count_arenas;
    for (int s = 0; s < stages; s++)
        line->devices[s].backend = s < stages - 2   ? &line->seconds
                                   : s < stages - 1 ? &line->middle
                                                    : &line->faulty;
    arenas = calls = middle_calls = 0;
    return open_side(&line->side, line->devices, &line->groups, layers, &line->examples, microbatches,
                     BATCH / microbatches, error);
}

static void close_line(struct line *line) {
    close_side(&line->side);
    devices_close(line->devices, line->groups.size);
}

/* The time of a batch, what of it was idle, and the arenas, are those of the schedule. */
static void check_time(enum pipeline_schedule schedule, int stages, int microbatches) {
    const struct pipeline pipeline = {schedule, stages, microbatches};
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    struct error error = {0};
    struct world *world = NULL;
    struct line line;
    float loss;
    const char *name = pipeline_name(schedule);
    CHECK(world_open_simulated(&world, 1, &error) == OK, "%s", error.words);
    int code = open_line(&line, schedule, stages, microbatches, world, 1000.0, &error), expected = 0;
    for (int stage = 0; stage < stages; stage++) expected += pipeline_in_flight(&pipeline, stage);
    CHECK(arenas == expected, "%s: %d arenas, expected %d", name, arenas, expected);
    draw_batch(0);
    for (int step = 0; step < 2 && code == OK; step++) {
        const double began = world_now(world);
        code = run_side(&line.side, 0, step, &indices, &loss, &error);
        const double took = world_now(world) - began;
        const double halves = 2.0 * microbatches / (1.0 - pipeline_bubble(&pipeline));
        CHECK(fabs(took - halves) < 1e-6, "%s, %d stages, %d micro-batches: %g s, expected %g", name, stages,
              microbatches, took, halves);
    }
    CHECK(code == OK, "%s: %s", name, error.words);
    if (code == OK) {
        const double bubble = group_idle(line.side.replicas.replicas[0].group);
        CHECK(fabs(bubble - pipeline_bubble(&pipeline)) < 1e-6, "%s: a bubble of %g, expected %g", name,
              bubble, pipeline_bubble(&pipeline));
    }
    close_line(&line);
    world_close(world);
}

static void check_times(void) {
    for (int schedule = PIPELINE_NONE; schedule <= PIPELINE_1F1B; schedule++)
        for (int stages = 2; stages <= 4; stages++) {
            check_time((enum pipeline_schedule)schedule, stages, FEW);
            check_time((enum pipeline_schedule)schedule, stages, MANY);
        }
}

/* --- faults --- */

/* In the second batch the last stage's kernel breaks or hangs: an error of this code and of these words, not
 * later than it may be; and the group fails from then on. */
static void check_fault(enum pipeline_schedule schedule, int call, bool breaks) {
    const double timeout_s = 30.0;
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    struct error error = {0};
    struct world *world = NULL;
    struct line line;
    float loss;
    breaks_at = breaks ? call : 0;
    hangs_at = breaks ? 0 : call;
    atomic_store(&hangs, true);
    CHECK(world_open_simulated(&world, 1, &error) == OK, "%s", error.words);
    int code = open_line(&line, schedule, 3, THIRDS, world, timeout_s, &error);
    draw_batch(0);
    if (code == OK) code = run_side(&line.side, 0, 0, &indices, &loss, &error);
    CHECK(code == OK, "%s", error.words);
    const double began = world_now(world);
    code = run_side(&line.side, 1, 1, &indices, &loss, &error);
    const double took = world_now(world) - began;
    const char *name = breaks ? "cpu:2: node " : "cpu:2 has not ended node ";
    const char *end = breaks ? "): the multiplier broke" : ") after 30 s";
    CHECK(code == (breaks ? ERROR_DEVICE : ERROR_PEER) && strncmp(error.words, name, strlen(name)) == 0 &&
              strstr(error.words, " (tanh") && strstr(error.words, end),
          "code %d: %s", code, error.words);
    CHECK(breaks ? took < timeout_s : took >= timeout_s && took < 1.05 * timeout_s, "it took %g s", took);
    atomic_store(&hangs, false);
    error = (struct error){0};
    CHECK(run_side(&line.side, 0, 2, &indices, &loss, &error) != OK, "a group that failed goes on");
    close_line(&line);
    world_close(world);
    breaks_at = hangs_at = 0;
}

/* The middle stage breaks after the last one has begun to hang: what failed by itself is said. */
static void check_both(void) {
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    struct error error = {0};
    struct world *world = NULL;
    struct line line;
    float loss;
    hangs_at = 1;
    middle_breaks_at = THIRDS;
    atomic_store(&hangs, true);
    CHECK(world_open_simulated(&world, 1, &error) == OK, "%s", error.words);
    int code = open_line(&line, PIPELINE_GPIPE, 3, THIRDS, world, 30.0, &error);
    draw_batch(0);
    if (code == OK) code = run_side(&line.side, 0, 0, &indices, &loss, &error);
    CHECK(code == ERROR_DEVICE && strncmp(error.words, "cpu:1: node ", 12) == 0 &&
              strstr(error.words, ": the adder broke"),
          "code %d: %s", code, error.words);
    atomic_store(&hangs, false);
    close_line(&line);
    world_close(world);
    middle_breaks_at = hangs_at = 0;
}

int main(void) {
    check_places();
    check_orders();
    check_refused();
    check_times();
    const int batch = 2 * THIRDS; /* halves of the last stage */
    for (int schedule = PIPELINE_GPIPE; schedule <= PIPELINE_1F1B; schedule++)
        for (int call = batch + 1; call <= batch + 4; call += 3) {
            check_fault((enum pipeline_schedule)schedule, call, true);
            check_fault((enum pipeline_schedule)schedule, call, false);
        }
    check_both();
    return check_end();
}
