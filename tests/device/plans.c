/* Plans that are kept with a device: made once for a problem, whoever asks; with a problem that outlives who
 * asked first; once though several threads ask at a time; a refusal is kept, an error is not. */
#include "../../src/device/plans.h"

#include "../../src/base/memory.h"
#include "../check.h"

enum { THREADS = 4 };

static _Atomic int made, inside, crowded, released;
static int answer = OK;      /* of `prepare` */
static struct world *slowly; /* in which it takes its time; NULL: it is done at once */

static int prepare(const struct problem *problem, void **plan, struct error *error) {
    if (atomic_fetch_add(&inside, 1) > 0) atomic_fetch_add(&crowded, 1);
    atomic_fetch_add(&made, 1);
    if (slowly) world_sleep(slowly, 2e-3);
    int code = answer;
    if (code == OK) code = memory_zeroed(plan, 1, sizeof(struct problem), "a plan", error);
    if (code == OK) *(struct problem *)*plan = *problem;
    if (code == ERROR_DEVICE) error_set(error, code, "no plan today");
    atomic_fetch_sub(&inside, 1);
    return code;
}

static void release(void *plan) {
    atomic_fetch_add(&released, 1);
    memory_free(plan);
}

static const struct kernel kernel = {.name = "test:one", .prepare = prepare, .release = release},
                           other = {.name = "test:other", .prepare = prepare, .release = release};

static struct problem problem_of(const struct device *device, const struct attributes *attributes, int rows) {
    struct problem problem = {.op = OP_matmul, .attributes = attributes, .inputs = 2, .device = device};
    problem.input[0].shape = SHAPE(rows, 3);
    problem.input[1].shape = SHAPE(3, 5);
    problem.output.shape = SHAPE(rows, 5);
    return problem;
}

/* Asks for a plan; after it `expected` have been made. */
static void *ask(struct plans *plans, const struct kernel *which, const struct problem *problem,
                 int expected) {
    struct error error = {0};
    void *plan = NULL;
    const int code = plans_prepare(plans, which, problem, &plan, &error);
    CHECK(code == answer, "code %d, expected %d: %s", code, answer, error.words);
    CHECK(atomic_load(&made) == expected, "%d plans were made, expected %d", atomic_load(&made), expected);
    return plan;
}

static void test_once(struct plans *plans) {
    struct device device = device_processor(), again = device;
    struct attributes attributes = {0}, turned = {.transpose_b = true};
    struct problem problem = problem_of(&device, &attributes, 2), same = problem_of(&again, &attributes, 2),
                   larger = problem_of(&device, &attributes, 4), others = problem_of(&device, &turned, 2);
    const struct problem *plan = ask(plans, &kernel, &problem, 1);
    CHECK(ask(plans, &kernel, &problem, 1) == plan && ask(plans, &kernel, &same, 1) == plan, "another plan");
    CHECK(ask(plans, &kernel, &larger, 2) != plan && ask(plans, &kernel, &others, 3) != plan &&
              ask(plans, &other, &problem, 4) != plan,
          "one plan for other problems");
    again.precision = PRECISION_BF16;
    ask(plans, &kernel, &same, 5);
    again.precision = PRECISION_FP32;
    again.deterministic = true;
    ask(plans, &kernel, &same, 6);
    others.input[0].type = TYPE_BF16;
    ask(plans, &kernel, &others, 7);
    CHECK(plan->device != &device && plan->attributes != &attributes && plan->input[0].shape.dims[0] == 2,
          "a plan's problem is that of who asked");
    answer = KERNEL_DECLINED;
    struct problem declined = problem_of(&device, &attributes, 7);
    ask(plans, &kernel, &declined, 8);
    ask(plans, &kernel, &declined, 8);
    answer = ERROR_DEVICE;
    struct problem failing = problem_of(&device, &attributes, 9);
    ask(plans, &kernel, &failing, 9);
    ask(plans, &kernel, &failing, 10);
    answer = OK;
}

/* --- threads --- */

struct visitor {
    struct plans *plans;
    void *plan[3];
    int code; /* of the first that failed */
};

static void visit(void *argument) {
    struct visitor *visitor = argument;
    const struct device device = device_processor();
    const struct attributes attributes = {0};
    for (int i = 0; i < 3; i++) {
        const struct problem problem = problem_of(&device, &attributes, 20 + i);
        struct error error = {0};
        const int code = plans_prepare(visitor->plans, &kernel, &problem, &visitor->plan[i], &error);
        if (visitor->code == OK) visitor->code = code;
    }
}

static void test_threads(struct plans *plans) {
    struct world *world = NULL;
    struct error error = {0};
    struct visitor visitors[THREADS] = {0};
    struct world_thread *threads[THREADS] = {0};
    const int before = atomic_load(&made);
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    slowly = world;
    for (int t = 0; t < THREADS; t++) {
        visitors[t].plans = plans;
        CHECK(world_spawn(world, "visitor", NULL, visit, &visitors[t], &threads[t], &error) == OK, "%s",
              error.words);
    }
    for (int t = 0; t < THREADS; t++) {
        world_join(threads[t]);
        CHECK(visitors[t].code == OK, "visitor %d: code %d", t, visitors[t].code);
    }
    slowly = NULL;
    world_close(world);
    CHECK(atomic_load(&made) == before + 3 && atomic_load(&crowded) == 0, "%d made, %d at the same time",
          atomic_load(&made) - before, atomic_load(&crowded));
    for (int t = 1; t < THREADS; t++)
        for (int i = 0; i < 3; i++) CHECK(visitors[t].plan[i] == visitors[0].plan[i], "a plan of one's own");
}

int main(void) {
    struct plans plans = {0};
    struct error error = {0};
    plans_close(&plans);
    CHECK(plans_open(&plans, &error) == OK, "%s", error.words);
    test_once(&plans);
    test_threads(&plans);
    plans_close(&plans);
    CHECK(atomic_load(&released) == 7 + 3, "%d plans were released", atomic_load(&released));
    return check_end();
}
