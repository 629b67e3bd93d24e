/* Figures of what a network says, against their definitions: shares by counting, the area under the curve by
 * all pairs, errors of values in their units. Added in batches of any size, they are the same. */
#include "../../src/infer/figures.h"

#include <math.h>
#include <string.h>
#include "../../src/base/rng.h"
#include "../check.h"

enum { EXAMPLES = 61, MOST = 7 };

static float said[EXAMPLES * MOST], targets[EXAMPLES * MOST];
static int labels[EXAMPLES], predicted[EXAMPLES];

static void add_all(enum task task, int outputs, struct units units, int batch, double *value) {
    const struct examples examples = {.count = EXAMPLES,
                                      .labels = task == TASK_CLASSES ? labels : NULL,
                                      .targets = task == TASK_CLASSES ? NULL : targets,
                                      .outputs = outputs};
    struct figures figures;
    struct error error = {0};
    CHECK(figures_open(&figures, task, outputs, units, EXAMPLES, &error) == OK, "%s", error.words);
    for (int first = 0; first < EXAMPLES; first += batch)
        figures_add(&figures, &examples, first, first + batch > EXAMPLES ? EXAMPLES - first : batch,
                    said + first * outputs, predicted + first);
    CHECK(figures_end(&figures, &examples, value, &error) == OK, "%s", error.words);
    figures_close(&figures);
    figures_close(&figures);
}

/* Only these have a value, and by batches of any size the same. */
static void check_which(enum task task, int outputs, const enum metric *expected, int count, double *value) {
    double again[METRICS];
    const struct units none = {0};
    add_all(task, outputs, none, EXAMPLES, value);
    add_all(task, outputs, none, 7, again);
    for (enum metric m = 0; m < METRICS; m++) {
        bool wanted = false;
        for (int i = 0; i < count; i++) wanted = wanted || expected[i] == m;
        CHECK(!isnan(value[m]) == wanted, "task %d, %d outputs: %s is %g", task, outputs, metric_rows[m].name,
              value[m]);
        CHECK(!wanted || !(fabs(value[m] - again[m]) > 1e-12), "%s: %g, then %g", metric_rows[m].name,
              value[m], again[m]);
    }
}

/* Probabilities of which many are equal. */
static void fill(int outputs, bool coarse) {
    struct rng rng;
    rng_start(&rng, 3, (uint64_t)outputs);
    for (int i = 0; i < EXAMPLES * outputs; i++) {
        said[i] = coarse ? (float)rng_below(&rng, 5) / 4.0f : rng_uniform(&rng);
        targets[i] = (float)rng_below(&rng, 2);
    }
    for (int i = 0; i < EXAMPLES; i++) {
        labels[i] = (int)rng_below(&rng, (uint32_t)outputs);
        predicted[i] = 0;
        for (int c = 1; c < outputs; c++)
            if (said[i * outputs + c] > said[i * outputs + predicted[i]]) predicted[i] = c;
    }
}

/* The share of pairs, one with the label and one without, of which the former is more probable; half of those
 * that are equal. */
static double area_of(int outputs, int o, bool classes) {
    double won = 0.0, pairs = 0.0;
    for (int i = 0; i < EXAMPLES; i++)
        for (int j = 0; j < EXAMPLES; j++) {
            const bool is = classes ? labels[i] == 1 : targets[i * outputs + o] > 0.5f,
                       other = classes ? labels[j] == 1 : targets[j * outputs + o] > 0.5f;
            const float a = said[i * outputs + o], b = said[j * outputs + o];
            if (!is || other) continue;
            pairs += 1.0;
            won += a > b ? 1.0 : a < b ? 0.0 : 0.5;
        }
    return won / pairs;
}

static void test_classes(void) {
    const enum metric many[] = {METRIC_ACCURACY, METRIC_TOP5}, two[] = {METRIC_ACCURACY, METRIC_AUC};
    double value[METRICS];
    fill(MOST, true);
    check_which(TASK_CLASSES, MOST, many, 2, value);
    int right = 0, near = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        int before = 0; /* classes that come first when they are sorted, equal ones in their order */
        for (int c = 0; c < MOST; c++)
            before += said[i * MOST + c] > said[i * MOST + labels[i]] ||
                      (c < labels[i] && said[i * MOST + c] >= said[i * MOST + labels[i]]);
        right += before == 0;
        near += before < 5;
    }
    CHECK(fabs(value[METRIC_ACCURACY] - right / (double)EXAMPLES) < 1e-12, "%g", value[METRIC_ACCURACY]);
    CHECK(fabs(value[METRIC_TOP5] - near / (double)EXAMPLES) < 1e-12, "%g", value[METRIC_TOP5]);
    fill(5, false);
    check_which(TASK_CLASSES, 5, many, 1, value);
    fill(2, true);
    check_which(TASK_CLASSES, 2, two, 2, value);
    CHECK(fabs(value[METRIC_AUC] - area_of(2, 1, true)) < 1e-12, "%g", value[METRIC_AUC]);
}

static void test_labels(void) {
    const enum metric both[] = {METRIC_ACCURACY, METRIC_AUC};
    double value[METRICS], areas = 0.0;
    int right = 0;
    fill(3, true);
    check_which(TASK_LABELS, 3, both, 2, value);
    for (int i = 0; i < EXAMPLES * 3; i++) right += (said[i] >= 0.5f) == (targets[i] > 0.5f);
    for (int o = 0; o < 3; o++) areas += area_of(3, o, false) / 3.0;
    CHECK(fabs(value[METRIC_ACCURACY] - right / (3.0 * EXAMPLES)) < 1e-12, "%g", value[METRIC_ACCURACY]);
    CHECK(fabs(value[METRIC_AUC] - areas) < 1e-12, "%g, not %g", value[METRIC_AUC], areas);
    /* A label that all have says nothing of the order; one that none has neither: then there is no area. */
    for (int i = 0; i < EXAMPLES; i++) targets[i * 3] = 1.0f;
    add_all(TASK_LABELS, 3, (struct units){0}, 10, value);
    CHECK(fabs(value[METRIC_AUC] - 0.5 * (area_of(3, 1, false) + area_of(3, 2, false))) < 1e-12, "%g",
          value[METRIC_AUC]);
    for (int i = 0; i < EXAMPLES * 3; i++) targets[i] = 0.0f;
    add_all(TASK_LABELS, 3, (struct units){0}, 10, value);
    CHECK(isnan(value[METRIC_AUC]), "an area without any label: %g", value[METRIC_AUC]);
}

/* What a network with far too large weights says is no number: no area, nothing near, and an end. */
static void test_no_numbers(void) {
    double value[METRICS];
    fill(2, true);
    said[EXAMPLES] = NAN;
    add_all(TASK_CLASSES, 2, (struct units){0}, 10, value);
    CHECK(isnan(value[METRIC_AUC]), "an area of what has no order: %g", value[METRIC_AUC]);
    fill(MOST, true);
    for (int i = 0; i < EXAMPLES * MOST; i++) said[i] = NAN;
    add_all(TASK_CLASSES, MOST, (struct units){0}, 10, value);
    CHECK(!(value[METRIC_TOP5] > 0.0), "near without a number: %g", value[METRIC_TOP5]);
}

/* In units: errors grow by them, R2 does not. */
static void test_values(void) {
    const enum metric three[] = {METRIC_RMSE, METRIC_MAE, METRIC_R2};
    float mean[2] = {1000.0f, -3.0f}, deviation[2] = {50.0f, 0.25f};
    double value[METRICS], squares = 0.0, absolute = 0.0, explained = 0.0;
    fill(2, false);
    for (int i = 0; i < EXAMPLES * 2; i++) targets[i] = said[i] + 0.3f * (float)(i % 3 - 1);
    check_which(TASK_VALUES, 2, three, 3, value);
    for (int o = 0; o < 2; o++) {
        double sum = 0.0, apart = 0.0, missed = 0.0;
        for (int i = 0; i < EXAMPLES; i++) sum += (double)targets[i * 2 + o] / EXAMPLES;
        for (int i = 0; i < EXAMPLES; i++) {
            const double error = (double)said[i * 2 + o] - (double)targets[i * 2 + o];
            apart += pow((double)targets[i * 2 + o] - sum, 2);
            missed += error * error;
            squares += pow(error * (double)deviation[o], 2);
            absolute += fabs(error) * (double)deviation[o];
        }
        explained += 0.5 * (1.0 - missed / apart);
    }
    CHECK(fabs(value[METRIC_R2] - explained) < 1e-9, "%g, not %g", value[METRIC_R2], explained);
    add_all(TASK_VALUES, 2, (struct units){mean, deviation}, 10, value);
    CHECK(fabs(value[METRIC_RMSE] - sqrt(squares / (2.0 * EXAMPLES))) < 1e-9, "%g", value[METRIC_RMSE]);
    CHECK(fabs(value[METRIC_MAE] - absolute / (2.0 * EXAMPLES)) < 1e-9, "%g", value[METRIC_MAE]);
    CHECK(fabs(value[METRIC_R2] - explained) < 1e-9, "%g, not %g", value[METRIC_R2], explained);
}

static void test_words(void) {
    char out[METRIC_BYTES];
    CHECK(strcmp(metric_text(METRIC_ACCURACY, 0.95124, out), "95.12 %") == 0, "%s", out);
    CHECK(strcmp(metric_figure(METRIC_ACCURACY, 0.95124, out), "95.12 %") == 0, "%s", out);
    CHECK(strcmp(metric_plain(METRIC_ACCURACY, 0.95124, out), "0.9512") == 0, "%s", out);
    CHECK(strcmp(metric_figure(METRIC_RMSE, 51234.5678, out), "RMSE 51234.6") == 0, "%s", out);
    CHECK(strcmp(metric_plain(METRIC_RMSE, 0.00001234, out), "1.234e-05") == 0, "%s", out);
    CHECK(strcmp(metric_figure(METRIC_RMSE, -1.7e308, out), "RMSE -1.7e+308") == 0, "%s", out);
    CHECK(metric_better(METRIC_ACCURACY, 0.9, 0.8) && !metric_better(METRIC_ACCURACY, 0.8, 0.8), "accuracy");
    CHECK(metric_better(METRIC_RMSE, 0.8, 0.9) && !metric_better(METRIC_RMSE, 0.9, 0.8), "RMSE");
    for (enum metric m = 0; m < METRICS; m++) {
        CHECK(!metric_better(m, NAN, 0.5) && metric_named(metric_rows[m].name) == m, "%s",
              metric_rows[m].name);
    }
}

int main(void) {
    test_classes();
    test_labels();
    test_no_numbers();
    test_values();
    test_words();
    return check_end();
}
