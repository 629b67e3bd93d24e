/* Which of several algorithms is taken: the fastest, or, where the same bits are promised, the first that
 * can; what declines, fails or cannot have its memory; all given back whatever happens. The algorithms are
 * copies, of which one makes more than the other. */
#include "../../cuda/measure.h"

#include "../check.h"
#include "../gpu_control.h"

enum { FLOATS = 1 << 18, WAYS = 4 };

/* What a way does when it is run. */
enum { DECLINES = -1, FAILS = -2, HAS_NO_MEMORY = -3 }; /* else: copies */

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
    if (rig->way[rig->taken] == HAS_NO_MEMORY)
        return error_set(error, ERROR_DEVICE, "%s: no memory is left", problem->device->name);
    rig->bound++;
    *instance = rig;
    return OK;
}

static void unbind(void *instance) {
    ((struct rig *)instance)->unbound++;
}

static int run(const struct call *call, struct error *error) {
    struct rig *rig = call->instance;
    const struct device *device = call->problem->device;
    const int way = rig->way[rig->taken];
    CHECK(rig->device == device && call->plan, "the call is another's");
    rig->runs[rig->taken]++;
    if (way == DECLINES) return KERNEL_DECLINED;
    if (way == FAILS) return error_set(error, ERROR_DEVICE, "%s: way %d failed", device->name, rig->taken);
    for (int i = 0; i < way; i++)
        RETURN_IF(
            device->backend->queue_copy(device, call->output, call->input[0], FLOATS * sizeof(float), error));
    return OK;
}

/* expected: the way that is taken, or the code of the error whose words begin so. */
static void check_contest(struct device *device, bool deterministic, const int way[WAYS], int expected,
                          const char *words) {
    struct rig rig = {.device = device, .taken = -1}, *plan = &rig;
    struct error error = {0};
    device->deterministic = deterministic;
    struct problem problem = {.op = OP_relu, .inputs = 1, .device = device};
    problem.output.shape = (struct shape){.rank = 1, .dims = {FLOATS}};
    problem.output.type = TYPE_FLOAT;
    problem.input[0].shape = problem.output.shape;
    problem.input[0].type = problem.output.type;
    memcpy(rig.way, way, sizeof rig.way);
    const struct contest contest = {.count = WAYS, .take = take, .bind = bind, .unbind = unbind, .run = run};
    const int before = standin_open("allocation");
    const int code = gpu_measure(&problem, &plan, &contest, &error);
    if (words)
        CHECK(code == expected && strncmp(error.words, words, strlen(words)) == 0, "code %d, '%s', not '%s'",
              code, error.words, words);
    else
        CHECK(code == OK && rig.taken == expected, "way %d, expected %d: %s", rig.taken, expected,
              error.words);
    CHECK(rig.bound == rig.unbound, "%d bound, %d unbound", rig.bound, rig.unbound);
    for (int i = 0; !words && deterministic && i < WAYS; i++)
        CHECK((rig.runs[i] > 0) == (i <= expected), "way %d ran %d times", i, rig.runs[i]);
    for (int i = 0; !words && !deterministic && i < WAYS; i++)
        CHECK(rig.runs[i] > 0, "way %d did not take part", i);
    CHECK(standin_open("allocation") == before && (!STANDIN || standin_open("event") == 0),
          "%d allocations, %d events are left", standin_open("allocation") - before, standin_open("event"));
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
    /* Wherever the fastest stands, and whatever else does not work. */
    check_contest(device, false, (const int[WAYS]){200, 200, 1, 200}, 2, NULL);
    check_contest(device, false, (const int[WAYS]){1, 200, 200, 200}, 0, NULL);
    check_contest(device, false, (const int[WAYS]){DECLINES, 200, FAILS, 1}, 3, NULL);
    check_contest(device, true, (const int[WAYS]){200, 1, 1, 1}, 0, NULL);
    check_contest(device, true, (const int[WAYS]){FAILS, DECLINES, 200, 1}, 2, NULL);
    check_contest(device, false, (const int[WAYS]){DECLINES, DECLINES, DECLINES, DECLINES}, KERNEL_DECLINED,
                  "");
    check_contest(device, false, (const int[WAYS]){DECLINES, FAILS, DECLINES, DECLINES}, ERROR_DEVICE,
                  "gpu:0: way 1 failed");
    check_contest(device, false, (const int[WAYS]){1, HAS_NO_MEMORY, 1, 1}, ERROR_DEVICE,
                  "gpu:0: no memory is left");
    devices_close(device, count);
    return check_end();
}
