/* A network asked about examples: what it says of one does not depend on how many are asked about with it,
 * but for the last bits: products of few rows add in another order than those of many. What views say is the
 * mean of what it says of images that were mirrored and moved by hand. */
#include "../../src/infer/evaluate.h"

#include <math.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/base/rng.h"
#include "../../src/graph/model.h"
#include "../check.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, COUNT = 40 };

static struct device plain = {.name = "cpu:0", .threads = 1, .reference_only = true},
                     fastest = {.name = "cpu:0", .threads = 1};

struct asked {
    struct choice choice;
    struct evaluator evaluator;
    float *weights;
};

static void open_asked(struct asked *asked, const char *model, const struct device *device) {
    struct error error = {0};
    CHECK(plugin_choose(&asked->choice, &model_kind, model, &error) == OK, "%s", error.words);
    const struct network_settings settings = {
        .model = &asked->choice, .shape = SHAPE(SIDE, SIDE, 1), .classes = CLASSES, .seed = 1, .shards = 1};
    CHECK(evaluator_open(&asked->evaluator, &settings, device, &error) == OK, "%s: %s", model, error.words);
    const struct layout *layout = &asked->evaluator.pass[EVALUATE_WHOLE].network.graph.layout;
    CHECK(memory_array(&asked->weights, layout->floats, "weights", &error) == OK, "%s", error.words);
    layout_initialize(layout, 3, asked->weights);
    struct rng rng; /* no layer is left at zero */
    rng_start(&rng, 5, 0);
    for (int r = 0; r < layout->count; r++)
        for (size_t i = 0; i < layout->ranges[r].floats; i++)
            asked->weights[layout->ranges[r].begin + i] += 0.1f * rng_uniform(&rng);
}

static void close_asked(struct asked *asked) {
    evaluator_close(&asked->evaluator);
    memory_free(asked->weights);
}

static uint8_t images[COUNT * PIXELS], moved[COUNT * PIXELS];
static int labels[COUNT];
static const struct augment whole = {
    .height = SIDE, .width = SIDE, .channels = 1, .rows = SIDE, .columns = SIDE, .standardize = 1};

static struct examples examples_of(const uint8_t *bytes, int count) {
    return (struct examples){.count = count,
                             .features = PIXELS,
                             .bytes = bytes,
                             .scale = 1.0f / 255.0f,
                             .labels = labels,
                             .augment = whole};
}

/* --- as many as there are --- */

static void check_counts(const char *model, const struct device *device, float most) {
    static const int counts[] = {1, 2, EVALUATE_FEW, EVALUATE_FEW + 1};
    static float all[COUNT * CLASSES], some[COUNT * CLASSES];
    int all_said[COUNT], said[COUNT];
    struct asked asked;
    struct error error = {0};
    open_asked(&asked, model, device);
    struct examples examples = examples_of(images, COUNT);
    CHECK(evaluator_predict(&asked.evaluator, &examples, asked.weights, all, all_said, &error) == OK, "%s",
          error.words);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        float furthest = 0.0f;
        examples = examples_of(images + 5 * PIXELS, counts[k]);
        CHECK(evaluator_predict(&asked.evaluator, &examples, asked.weights, some, said, &error) == OK, "%s",
              error.words);
        for (int i = 0; i < counts[k] * CLASSES; i++)
            furthest = fmaxf(furthest, fabsf(some[i] - all[5 * CLASSES + i]));
        CHECK(furthest <= most, "%s on %d examples: %g apart from a whole batch", model, counts[k],
              (double)furthest);
        CHECK(memcmp(said, all_said + 5, (size_t)counts[k] * sizeof *said) == 0,
              "%s on %d examples: says others", model, counts[k]);
    }
    const int one = asked.evaluator.pass[EVALUATE_ONE].batch, few = asked.evaluator.pass[EVALUATE_SOME].batch;
    CHECK(one == 1 && few == EVALUATE_FEW, "%s: programs for %d and %d examples", model, one, few);
    close_asked(&asked);
}

/* --- views --- */

/* As a view has it, black from outside. */
static void move_images(int flip, int down, int right) {
    memset(moved, 0, sizeof moved);
    for (int i = 0; i < COUNT; i++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                const int row = y + down, from = (flip ? SIDE - 1 - x : x) + right;
                if (row < 0 || row >= SIDE || from < 0 || from >= SIDE) continue;
                moved[i * PIXELS + y * SIDE + x] = images[i * PIXELS + row * SIDE + from];
            }
}

static void add_moved(struct asked *asked, int flip, int down, int right, float share, float *sum) {
    static float own[COUNT * CLASSES];
    struct error error = {0};
    move_images(flip, down, right);
    const struct examples examples = examples_of(moved, COUNT);
    CHECK(evaluator_predict(&asked->evaluator, &examples, asked->weights, own, NULL, &error) == OK, "%s",
          error.words);
    for (int i = 0; i < COUNT * CLASSES; i++) sum[i] += share * own[i];
}

static void check_views(struct asked *asked, enum views views, const float *sum) {
    struct evaluation result;
    struct error error = {0};
    const struct examples examples = examples_of(images, COUNT);
    double cost = 0.0;
    int right = 0;
    for (int i = 0; i < COUNT; i++) {
        const float *row = sum + i * CLASSES;
        int best = 0;
        for (int c = 1; c < CLASSES; c++) best = row[c] > row[best] ? c : best;
        right += best == labels[i];
        cost -= log((double)row[labels[i]]) / COUNT;
    }
    CHECK(evaluator_run_views(&asked->evaluator, &examples, asked->weights, views, &result, &error) == OK,
          "%s", error.words);
    CHECK(fabs(result.score - (double)right / COUNT) < 1e-9 && fabs(result.cost - cost) < 1e-5,
          "views %d: accuracy %g, cost %.7f, expected %g, %.7f", (int)views, result.score, result.cost,
          (double)right / COUNT, cost);
}

static void test_views(void) {
    static float flip[COUNT * CLASSES], shift[COUNT * CLASSES];
    struct asked asked;
    struct error error = {0};
    struct evaluation result;
    open_asked(&asked, "cnn", &plain);
    for (int mirrored = 0; mirrored < 2; mirrored++) {
        add_moved(&asked, mirrored, 0, 0, 0.5f, flip);
        add_moved(&asked, mirrored, 0, 0, 0.25f, shift);
        add_moved(&asked, mirrored, -1, -1, 0.125f, shift);
        add_moved(&asked, mirrored, 1, 1, 0.125f, shift);
    }
    check_views(&asked, VIEWS_FLIP, flip);
    check_views(&asked, VIEWS_FLIP_SHIFT, shift);
    struct examples scaled = examples_of(images, COUNT);
    scaled.augment = (struct augment){0};
    CHECK(evaluator_run_views(&asked.evaluator, &scaled, asked.weights, VIEWS_FLIP, &result, &error) ==
                  ERROR_USAGE &&
              strstr(error.words, "--views: found examples that are only scaled"),
          "views of scaled bytes: %s", error.words);
    close_asked(&asked);
}

int main(void) {
    plain.backend = fastest.backend = backends[0];
    for (size_t i = 0; i < sizeof images; i++) images[i] = (uint8_t)(rng_philox(3, 0, i).word[0] >> 24);
    for (int i = 0; i < COUNT; i++) labels[i] = i % CLASSES;
    for (int i = 0; models[i]; i++) {
        check_counts(models[i]->plugin.name, &plain, 1e-6f);
        check_counts(models[i]->plugin.name, &fastest, 1e-6f);
    }
    test_views();
    return check_end();
}
