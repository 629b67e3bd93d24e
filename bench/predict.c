/* Times what `trainer predict` computes for one example, for as many as share a program of their own, and for
 * one that is put into a whole batch, after the network is there.
 *
 *   bench/predict [THREADS] [MODEL...]      1, and cnn lenet alexnet fast on images of 32x32x3, unless given
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../src/base/memory.h"
#include "../src/graph/model.h"
#include "../src/infer/evaluate.h"

enum { SIDE = 32, CHANNELS = 3, CLASSES = 10, PIXELS = SIDE * SIDE * CHANNELS };

struct bench {
    struct world *world;
    struct device device;
    struct examples examples;
    float *outputs; /* [EVALUATE_BATCH][CLASSES] */
    float *weights; /* [layout floats] */
};

/* *ms: the fastest of half a second. */
static int measure(const struct bench *bench, struct evaluator *evaluator, int count, double *ms,
                   struct error *error) {
    struct examples examples = bench->examples;
    examples.count = count;
    RETURN_IF(evaluator_predict(evaluator, &examples, bench->weights, bench->outputs, NULL, error));
    *ms = (double)INFINITY;
    const double begin = world_now(bench->world);
    double before = begin;
    while (before < begin + 0.5) {
        RETURN_IF(evaluator_predict(evaluator, &examples, bench->weights, bench->outputs, NULL, error));
        const double now = world_now(bench->world);
        *ms = fmin(*ms, 1e3 * (now - before));
        before = now;
    }
    return OK;
}

static int measure_all(struct bench *bench, struct evaluator *evaluator, const char *model,
                       struct error *error) {
    static const int counts[] = {1, EVALUATE_FEW, EVALUATE_BATCH};
    const struct layout *layout = &evaluator->pass[EVALUATE_WHOLE].network.graph.layout;
    double ms[3];
    RETURN_IF(memory_array(&bench->weights, layout->floats, "weights", error));
    layout_initialize(layout, 1, bench->weights);
    for (int i = 0; i < 3; i++) RETURN_IF(measure(bench, evaluator, counts[i], &ms[i], error));
    printf("%-10s %9.3f %14.3f %15.3f\n", model, ms[0], ms[1], ms[2]);
    return OK;
}

static int run_model(struct bench *bench, const char *model, struct error *error) {
    struct choice choice;
    struct evaluator evaluator = {0};
    RETURN_IF(plugin_choose(&choice, &model_kind, model, error));
    const struct network_settings settings = {
        .model = &choice, .shape = SHAPE(SIDE, SIDE, CHANNELS), .classes = CLASSES, .seed = 1, .shards = 1};
    int code = evaluator_open(&evaluator, &settings, &bench->device, error);
    if (code == OK) code = measure_all(bench, &evaluator, model, error);
    evaluator_close(&evaluator);
    memory_free(bench->weights);
    bench->weights = NULL;
    return code;
}

int main(int count, char **arguments) {
    static const char *const usual[] = {"cnn", "lenet", "alexnet", "fast"};
    struct error error = {0};
    struct bench bench = {.device = {.backend = backends[0], .name = "cpu:0", .threads = 1}};
    void *floats = NULL, *outputs = NULL;
    if (count > 1 && atoi(arguments[1]) > 0) bench.device.threads = atoi(arguments[1]);
    int code = world_open_threads(&bench.world, &error);
    if (code == OK) code = memory_zeroed(&floats, EVALUATE_BATCH * PIXELS, sizeof(float), "examples", &error);
    if (code == OK)
        code = memory_zeroed(&outputs, EVALUATE_BATCH * CLASSES, sizeof(float), "outputs", &error);
    bench.examples = (struct examples){.features = PIXELS, .floats = floats, .scale = 1.0f};
    bench.outputs = outputs;
    if (code == OK)
        printf("ms, %d thread%s  1 example   %d examples   a whole batch\n", bench.device.threads,
               bench.device.threads == 1 ? "" : "s", EVALUATE_FEW);
    for (int i = 0; i < 4 && count <= 2 && code == OK; i++) code = run_model(&bench, usual[i], &error);
    for (int i = 2; i < count && code == OK; i++) code = run_model(&bench, arguments[i], &error);
    memory_free(outputs);
    memory_free(floats);
    world_close(bench.world);
    if (code != OK) fprintf(stderr, "%s\n", error.words);
    return code;
}
