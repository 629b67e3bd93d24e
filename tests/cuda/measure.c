/* Which of several algorithms is taken: the library's first, or one that is clearly faster and computes the
 * same; where the same bits are promised, the first that can; what declines, fails or cannot have its memory;
 * all given back whatever happens. The algorithms are copies, of which one makes more than the other. */
#include "../../cuda/measure.h"

#include <time.h>

#include "../check.h"
#include "../gpu_control.h"

enum { FLOATS = 1 << 14, WAYS = 4, MOST_RUNS = 22 /* two alone, the others recorded */ };

/* What a way does when it is run. */
enum {
    DECLINES = -1,
    FAILS = -2,
    HAS_NO_MEMORY = -3,
    CANNOT_BE_BOUND = -4,
    MAKES_NAN = -5,
    DIFFERS = -6,
    WRITES_NOTHING = -7,
    SPINS = 1000 /* and so many microseconds more, then copies; only the stand-in can */
};               /* else: copies so often, fewer than SPINS */

struct rig {
    struct device *device;
    int way[WAYS];
    int taken, bound, unbound, runs[WAYS];
};

static struct rig *rig_of(const void *plan) {
    return *(struct rig *const *)plan;
}

static int take(const struct problem *problem, void *plan, int number, struct error *error) {
    (void)problem;
    (void)error;
    rig_of(plan)->taken = number;
    return OK;
}

static int bind(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    struct rig *rig = rig_of(plan);
    if (rig->way[rig->taken] == CANNOT_BE_BOUND) return KERNEL_DECLINED;
    if (rig->way[rig->taken] == HAS_NO_MEMORY)
        return error_set(error, ERROR_DEVICE, "%s: no memory is left", problem->device->name);
    rig->bound++;
    *instance = rig;
    return OK;
}

static void unbind(void *instance) {
    ((struct rig *)instance)->unbound++;
}

#if STANDIN
static void spin(void *us) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < *(const int *)us);
}
static int queue_spin(const struct device *device, int *us, struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    GPU_TRY(device, cudaLaunchHostFunc(queue->stream, spin, us), error);
    return OK;
}
#else
static int queue_spin(const struct device *device, int *us, struct error *error) {
    (void)device, (void)us, (void)error;
    return OK;
}
#endif

static int run(const struct call *call, struct error *error) {
    static int us[WAYS];
    struct rig *rig = call->instance;
    const struct device *device = call->problem->device;
    const struct queue *queue = gpu_queue(device, error);
    const int way = rig->way[rig->taken];
    CHECK(rig->device == device && call->plan, "the call is another's");
    rig->runs[rig->taken]++;
    if (way == DECLINES) return KERNEL_DECLINED;
    if (way == FAILS) return error_set(error, ERROR_DEVICE, "%s: way %d failed", device->name, rig->taken);
    if (way == WRITES_NOTHING) return OK;
    if (!queue) return error->code;
    if (way >= SPINS) {
        us[rig->taken] = way - SPINS;
        RETURN_IF(queue_spin(device, &us[rig->taken], error));
    }
    for (int i = 0; i < (way > 0 && way < SPINS ? way : 1); i++)
        RETURN_IF(
            device->backend->queue_copy(device, call->output, call->input[0], FLOATS * sizeof(float), error));
    if (way == MAKES_NAN) GPU_TRY(device, cudaMemsetAsync(call->output, 0xFF, 4, queue->stream), error);
    if (way == DIFFERS)
        GPU_TRY(device, cudaMemsetAsync((float *)call->output + FLOATS - 100, 0, 400, queue->stream), error);
    return OK;
}

static int run_contest(struct device *device, bool deterministic, const int way[WAYS], struct rig *rig,
                       struct outcome *outcome, struct error *error) {
    struct rig *plan = rig;
    struct problem problem = {.op = OP_relu, .inputs = 1, .device = device};
    *rig = (struct rig){.device = device, .taken = -1};
    *outcome = (struct outcome){0};
    *error = (struct error){0};
    device->deterministic = deterministic;
    problem.output.shape = (struct shape){.rank = 1, .dims = {FLOATS}};
    problem.output.type = TYPE_FLOAT;
    problem.input[0].shape = problem.output.shape;
    problem.input[0].type = problem.output.type;
    memcpy(rig->way, way, sizeof rig->way);
    const struct contest contest = {
        .count = WAYS, .take = take, .bind = bind, .unbind = unbind, .run = run, .outcome = outcome};
    return gpu_measure(&problem, &plan, &contest, error);
}

static void check_given_back(const struct rig *rig, int before) {
    CHECK(rig->bound == rig->unbound, "%d bound, %d unbound", rig->bound, rig->unbound);
    CHECK(standin_open(NULL) == before, "%d things are left", standin_open(NULL) - before);
}

/* expected: the way that is taken, in one of some attempts, as others may need the processor, too; or the
 * code of the error whose words begin so. */
static void check_contest(struct device *device, bool deterministic, const int way[WAYS], int expected,
                          const char *words) {
    struct rig rig;
    struct outcome outcome;
    struct error error;
    const int before = standin_open(NULL);
    int code = OK, impossible = 0, wrong = 0;
    for (int attempt = 0; attempt < 10; attempt++) {
        code = run_contest(device, deterministic, way, &rig, &outcome, &error);
        check_given_back(&rig, before);
        if (words || code != OK || rig.taken == expected) break;
    }
    if (words)
        CHECK(code == expected && strncmp(error.words, words, strlen(words)) == 0, "code %d, '%s', not '%s'",
              code, error.words, words);
    else
        CHECK(code == OK && rig.taken == expected, "way %d, expected %d: %s", rig.taken, expected,
              error.words);
    if (words) return;
    for (int i = 0; i < WAYS; i++) {
        const bool takes_part = (!deterministic || i <= expected) && way[i] != CANNOT_BE_BOUND;
        CHECK((rig.runs[i] > 0) == takes_part, "way %d ran %d times", i, rig.runs[i]);
        CHECK(rig.runs[i] <= (deterministic || way[i] < 0 ? 1 : MOST_RUNS), "way %d ran %d times", i,
              rig.runs[i]);
        if (deterministic && i > expected) continue;
        impossible += way[i] == DECLINES || way[i] == FAILS || way[i] == CANNOT_BE_BOUND;
        wrong += way[i] <= MAKES_NAN;
    }
    CHECK(outcome.impossible == impossible && outcome.wrong == wrong, "%d impossible, %d wrong",
          outcome.impossible, outcome.wrong);
}

/* Wherever the fastest stands, and whatever else does not work. */
static void check_contests(struct device *device) {
    check_contest(device, false, (const int[WAYS]){200, 200, 1, 200}, 2, NULL);
    check_contest(device, false, (const int[WAYS]){1, 200, 200, 200}, 0, NULL);
    check_contest(device, false, (const int[WAYS]){DECLINES, 200, FAILS, 1}, 3, NULL);
    check_contest(device, false, (const int[WAYS]){CANNOT_BE_BOUND, DECLINES, 200, 1}, 3, NULL);
    check_contest(device, true, (const int[WAYS]){200, 1, 1, 1}, 0, NULL);
    check_contest(device, true, (const int[WAYS]){FAILS, DECLINES, 200, 1}, 2, NULL);
    check_contest(device, false, (const int[WAYS]){DECLINES, DECLINES, DECLINES, DECLINES}, KERNEL_DECLINED,
                  "");
    check_contest(device, false, (const int[WAYS]){DECLINES, FAILS, DECLINES, DECLINES}, ERROR_DEVICE,
                  "gpu:0: way 1 failed");
    check_contest(device, false, (const int[WAYS]){1, HAS_NO_MEMORY, 1, 1}, ERROR_DEVICE,
                  "gpu:0: no memory is left");
}

/* What computes something else is not taken, however fast it is. */
static void check_results(struct device *device) {
    check_contest(device, false, (const int[WAYS]){2, MAKES_NAN, 200, DIFFERS}, 0, NULL);
    check_contest(device, false, (const int[WAYS]){200, WRITES_NOTHING, 1, DIFFERS}, 2, NULL);
    check_contest(device, false, (const int[WAYS]){MAKES_NAN, WRITES_NOTHING, 200, DIFFERS}, 2, NULL);
    check_contest(device, true, (const int[WAYS]){MAKES_NAN, WRITES_NOTHING, 200, 1}, 2, NULL);
    check_contest(device, false, (const int[WAYS]){MAKES_NAN, MAKES_NAN, MAKES_NAN, WRITES_NOTHING},
                  KERNEL_DECLINED, "");
}

/* That way is taken, in one of some attempts: others may need the processor, too. */
static void check_taken(struct device *device, const int way[WAYS], int expected) {
    struct rig rig = {0};
    for (int attempt = 0; attempt < 10; attempt++) {
        struct outcome outcome;
        struct error error;
        const int code = run_contest(device, false, way, &rig, &outcome, &error);
        CHECK(code == OK, "%s", error.words);
        if (rig.taken == expected) return;
    }
    CHECK(rig.taken == expected, "way %d, expected %d", rig.taken, expected);
}

/* A little faster than the first is not enough; a little faster than one that is faster is. */
static void check_margin(struct device *device) {
    if (!STANDIN) return;
    check_taken(device, (const int[WAYS]){SPINS + 500, SPINS + 490, SPINS + 900, SPINS + 490}, 0);
    check_taken(device, (const int[WAYS]){SPINS + 500, SPINS + 490, SPINS + 300, SPINS + 294}, 3);
}

/* What takes several times as long as the best, run once, is not recorded. */
static void check_far(struct device *device) {
    const int way[WAYS] = {SPINS + 100, SPINS + 500, SPINS + 100, SPINS + 500};
    struct rig rig = {0};
    if (!STANDIN) return;
    for (int attempt = 0; attempt < 10; attempt++) {
        struct outcome outcome;
        struct error error;
        const int code = run_contest(device, false, way, &rig, &outcome, &error);
        CHECK(code == OK && outcome.wrong == 0 && outcome.impossible == 0, "%s", error.words);
        if (rig.runs[1] == 2 && rig.runs[3] == 2 && rig.runs[2] > 2) return;
    }
    CHECK(false, "ran %d, %d, %d and %d times", rig.runs[0], rig.runs[1], rig.runs[2], rig.runs[3]);
}

/* With the n-th call failing, for every n. */
static void check_failing_calls(struct device *device) {
    const int way[WAYS] = {20, DECLINES, 1, 20}, before = standin_open(NULL);
    bool through = !STANDIN;
    int failures = 0;
    for (long n = 1; !through && n < 2000; n++) {
        struct rig rig;
        struct outcome outcome;
        struct error error;
        standin_fail(n);
        const long called = standin_calls();
        const int code = run_contest(device, false, way, &rig, &outcome, &error);
        through = standin_calls() - called < n;
        standin_fail(0);
        CHECK(code == OK || (code == error.code && strncmp(error.words, "gpu:0: ", 7) == 0), "call %ld: '%s'",
              n, error.words);
        CHECK(code != OK || (rig.taken >= 0 && way[rig.taken] > 0), "call %ld: way %d", n, rig.taken);
        check_given_back(&rig, before);
        failures += code != OK;
    }
    CHECK(through && (!STANDIN || failures > 5), "%d failures", failures);
}

int main(void) {
    const struct device_settings settings = {0};
    struct device *device = NULL;
    struct error error = {0};
    int count = 0;
    bool shared = false;
    gpu_or_skip();
    CHECK(devices_open("gpu:0", &settings, &device, &count, &shared, &error) == OK, "%s", error.words);
    if (!device) return check_end();
    CHECK(gpu_queue(device, &error) != NULL, "%s", error.words); /* which stays, whatever is measured */
    check_contests(device);
    check_results(device);
    check_margin(device);
    check_far(device);
    check_failing_calls(device);
    devices_close(device, count);
    return check_end();
}
