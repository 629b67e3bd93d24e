/* What a sweep draws and which run is next, without training: settings by name, repeatable draws, the choices
 * of halving against ones made by hand. */
#include "../../src/compare/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/memory.h"
#include "../../src/store/optimizer.h"
#include "../check.h"

#define IS(condition) CHECK(condition, "so it should be")
#define WORKS(call) CHECK((call) == OK, "%s", error.words)

static void check_with(const char *text, const char *name, const char *value, const char *expected) {
    char made[200];
    struct error error = {0};
    WORKS(plugin_with(&optimizer_kind, text, name, value, made, sizeof made, &error));
    IS(strcmp(made, expected) == 0);
}

static void test_settings_by_name(void) {
    check_with("sgd", "rate", "0.5", "sgd:rate=0.5");
    check_with("sgd:rate=0.1", "rate", "0.5", "sgd:rate=0.5");
    check_with("momentum:rate=0.1,momentum=0.8", "rate", "0.5", "momentum:momentum=0.8,rate=0.5");
    check_with("momentum:momentum=0.8", "rate", "0.5", "momentum:momentum=0.8,rate=0.5");
    char made[12];
    struct error error = {0};
    IS(plugin_with(&optimizer_kind, "sgd", "rat", "1", made, sizeof made, &error) == ERROR_USAGE);
    IS(strstr(error.words, "rate") != NULL);
    error = (struct error){0};
    IS(plugin_with(&optimizer_kind, "sgd", "rate", "0.12345", made, sizeof made, &error) == ERROR_USAGE);
}

/* --- draws --- */

static struct sweep *open_sweep(const char *const *vary, int count, int runs, int method,
                                const struct typed *base) {
    struct sweep *sweep;
    struct error error = {0};
    WORKS(memory_array(&sweep, 1, "a sweep", &error));
    sweep->settings.runs = runs;
    sweep->settings.method = method;
    sweep->settings.keep = 3;
    sweep->settings.first_rung = 1;
    for (int v = 0; v < count; v++)
        WORKS(variation_open(&sweep->variations[sweep->variation_count++], vary[v], base, &error));
    return sweep;
}

static void close_sweep(struct sweep *sweep) {
    sweep_close(sweep);
    memory_free(sweep);
}

static bool same_settings(const struct sweep *a, int run, const struct sweep *b, int other) {
    for (int v = 0; v < a->variation_count; v++)
        if (strcmp(a->runs[run].values[v], b->runs[other].values[v]) != 0) return false;
    return true;
}

static void test_draws(const struct typed *base) {
    static const char *const vary[] = {"optimizer.rate=log:0.001..1", "batch=16..64", "average=0.5,0.9"};
    struct error error = {0};
    struct sweep *few = open_sweep(vary, 3, 20, SWEEP_RANDOM, base);
    struct sweep *many = open_sweep(vary, 3, 400, SWEEP_RANDOM, base);
    struct sweep *other = open_sweep(vary, 3, 20, SWEEP_RANDOM, base);
    WORKS(sweep_draw(few, 7, &error));
    WORKS(sweep_draw(many, 7, &error));
    WORKS(sweep_draw(other, 8, &error));
    IS(few->count == 20 && many->count == 400);
    int differ = 0, low = 0;
    for (int i = 0; i < 20; i++) {
        IS(same_settings(few, i, many, i)); /* more runs begin with the same ones */
        differ += !same_settings(few, i, other, i);
    }
    IS(differ == 20);
    for (int i = 0; i < many->count; i++) {
        const double rate = atof(many->runs[i].values[0]), batch = atof(many->runs[i].values[1]);
        CHECK(rate >= 0.001 && rate <= 1.0, "rate %s", many->runs[i].values[0]);
        CHECK(batch >= 16 && batch <= 64 && batch == floor(batch), "batch %s", many->runs[i].values[1]);
        low += rate < 0.0316; /* half of a logarithmic range, give or take four deviations */
        for (int j = 0; j < i; j++) IS(!same_settings(many, i, many, j));
    }
    IS(low > 160 && low < 240);
    close_sweep(few);
    close_sweep(many);
    close_sweep(other);
}

static void test_lists(const struct typed *base) {
    static const char *const vary[] = {"batch=16,32,64", "optimizer.rate=log:0.01..1/3"};
    static const char *const rates[] = {"0.01", "0.1", "1"};
    struct error error = {0};
    struct sweep *random = open_sweep(vary, 2, 50, SWEEP_RANDOM, base);
    struct sweep *grid = open_sweep(vary, 2, 0, SWEEP_GRID, base);
    WORKS(sweep_draw(random, 1, &error));
    WORKS(sweep_draw(grid, 1, &error));
    IS(random->count == 9 && grid->count == 9); /* there are no more */
    for (int i = 0; i < 9; i++) IS(strcmp(grid->runs[i].values[1], rates[i % 3]) == 0);
    IS(strcmp(grid->runs[0].values[0], "16") == 0 && strcmp(grid->runs[8].values[0], "64") == 0);
    close_sweep(random);
    close_sweep(grid);
}

/* --- halving --- */

static void end_rung(struct sweep *sweep, int run, double metric) {
    struct sweep_run *of = &sweep->runs[run];
    of->metric = of->at_rung[of->rungs++] = metric;
    of->status = of->rungs == sweep->rungs ? SWEEP_FINISHED : SWEEP_STOPPED;
}

static int take(struct sweep *sweep, enum lane_answer expected) {
    int run;
    IS(sweep_next(sweep, &run) == expected);
    if (expected == LANE_TAKE) sweep->runs[run].status = SWEEP_RUNNING;
    return run;
}

static void test_halving(const struct typed *base) {
    static const char *const vary[] = {"batch=1,2,3,4"};
    struct error error = {0};
    struct sweep *sweep = open_sweep(vary, 1, 4, SWEEP_HALVING, base);
    WORKS(sweep_draw(sweep, 1, &error));
    sweep_make_rungs(sweep, 9);
    IS(sweep->rungs == 3 && sweep->rung_epochs[0] == 1 && sweep->rung_epochs[1] == 3 &&
       sweep->rung_epochs[2] == 0);
    for (int i = 0; i < 3; i++) IS(take(sweep, LANE_TAKE) == i);
    end_rung(sweep, 0, 0.5);
    end_rung(sweep, 1, 0.7);
    IS(take(sweep, LANE_TAKE) == 3); /* of two none goes on, so a new one begins */
    IS(take(sweep, LANE_WAIT) == -1);
    end_rung(sweep, 2, 0.6);
    IS(take(sweep, LANE_TAKE) == 1); /* of three the best */
    end_rung(sweep, 1, 0.8);
    sweep->runs[3].status = SWEEP_FAILED; /* a failure counts as ended */
    IS(take(sweep, LANE_TAKE) == 1);      /* none has finished: the best of the last rung goes on */
    end_rung(sweep, 1, 0.9);
    IS(take(sweep, LANE_END) == -1);
    int order[4];
    sweep->runs[3].metric = (double)NAN;
    sweep_rank(sweep, order);
    IS(order[0] == 1 && order[1] == 2 && order[2] == 0 && order[3] == 3 && sweep_best(sweep) == 1);
    sweep->lower = true;
    sweep_rank(sweep, order);
    IS(order[0] == 0 && order[1] == 2 && order[2] == 1 && order[3] == 3);
    close_sweep(sweep);
}

/* Of three that ended a rung one goes on, also when one of them ended it by failing. */
static void test_failed_in_a_rung(const struct typed *base) {
    static const char *const vary[] = {"batch=1,2,3,4"};
    struct error error = {0};
    struct sweep *sweep = open_sweep(vary, 1, 4, SWEEP_HALVING, base);
    WORKS(sweep_draw(sweep, 1, &error));
    sweep_make_rungs(sweep, 9);
    for (int i = 0; i < 3; i++) IS(take(sweep, LANE_TAKE) == i);
    end_rung(sweep, 0, 0.5);
    end_rung(sweep, 1, 0.7);
    sweep->runs[2].status = SWEEP_FAILED;
    IS(take(sweep, LANE_TAKE) == 1);
    close_sweep(sweep);
}

/* A run whose lane is lost is taken by another one, which waits for that; the third time it has failed. */
static void test_lost(const struct typed *base) {
    static const char *const vary[] = {"batch=1,2"};
    struct error error = {0}, why = {0};
    struct sweep *sweep = open_sweep(vary, 1, 2, SWEEP_RANDOM, base);
    WORKS(sweep_draw(sweep, 1, &error));
    sweep_make_rungs(sweep, 9);
    sweep->stopped.code = ERROR_FILE; /* so nothing is written */
    IS(take(sweep, LANE_TAKE) == 0 && take(sweep, LANE_TAKE) == 1);
    error_set(&why, ERROR_PEER, "gone");
    for (int i = 0; i < 3; i++) {
        IS(take(sweep, LANE_WAIT) == -1);
        sweep_lose(sweep, 0, &why);
        if (i < 2) IS(take(sweep, LANE_TAKE) == 0);
    }
    IS(sweep->runs[0].status == SWEEP_FAILED && strstr(sweep->runs[0].reason, "gone") != NULL);
    why = (struct error){.code = ERROR_INTERRUPTED};
    for (int i = 0; i < 5; i++) { /* that the sweep ends is no fault of the run */
        sweep_lose(sweep, 1, &why);
        IS(take(sweep, LANE_TAKE) == 1);
    }
    close_sweep(sweep);
}

int main(void) {
    struct typed *base;
    struct error error = {0};
    WORKS(memory_array(&base, 1, "settings", &error));
    option_defaults(run_options, base);
    test_settings_by_name();
    test_draws(base);
    test_lists(base);
    test_halving(base);
    test_failed_in_a_rung(base);
    test_lost(base);
    memory_free(base);
    return check_end();
}
