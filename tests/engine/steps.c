/* How far a run is: every model, with each kind of kernel, computes the same bits where its weights come only
 * as it asks for them, and what it calls final of the gradient stays as it is. So weights and gradients can
 * move while it computes. */
#include <math.h>
#include <string.h>

#include "../../src/base/memory.h"
#include "../../src/engine/replica.h"
#include "../../src/graph/model.h"
#include "../check.h"

enum { EXAMPLES = 8, BATCH = 4, CLASSES = 10, LEAST_SIDE = 8, CHANNELS = 3 };

/* Who brings the weights and takes the gradient. */
struct carrier {
    const float *from; /* [floats] the weights, and where they are to go: */
    float *weights;
    const float *gradient;
    float *taken; /* [floats] */
    size_t floats, brought, final;
    int steps;
    size_t first_until, last_from; /* of the first step, and of the last one */
    bool back;                     /* it went back */
};

static int carry(void *argument, size_t until, size_t from, struct error *error) {
    struct carrier *carrier = argument;
    (void)error;
    carrier->back = carrier->back || until < carrier->brought || from > carrier->final;
    if (carrier->steps++ == 0) carrier->first_until = until;
    carrier->last_from = from;
    if (until > carrier->brought)
        memcpy(carrier->weights + carrier->brought, carrier->from + carrier->brought,
               (until - carrier->brought) * sizeof(float));
    if (from < carrier->final)
        memcpy(carrier->taken + from, carrier->gradient + from, (carrier->final - from) * sizeof(float));
    carrier->brought = until > carrier->brought ? until : carrier->brought;
    carrier->final = from < carrier->final ? from : carrier->final;
    return OK;
}

struct run {
    struct network network;
    struct replicas replicas;
    float *weights, *blank, *gradient, *expected, *taken; /* [layout floats] */
};

static int run_once(struct run *run, float *weights, float *gradient, float *loss, struct error *error) {
    static int index[BATCH + 1] = {3, 0, 7, 5, 1};
    static uint64_t key[BATCH + 1];
    const struct indices indices = {.count = BATCH, .index = index, .key = key};
    const struct compute compute = replicas_compute(&run->replicas);
    struct outcome outcome = {0};
    RETURN_IF(compute.load(compute.self, 0, 0, 5, &indices, error));
    RETURN_IF(compute.run(compute.self, 0, 0, weights, gradient, loss, error));
    RETURN_IF(compute.synchronize(compute.self, 0, false, &outcome, error));
    *loss = outcome.loss;
    return OK;
}

static int carry_all(struct run *run, const char *words, bool layers, struct error *error) {
    const size_t floats = run->network.graph.layout.floats;
    float loss = 0.0f, expected = 0.0f;
    for (size_t i = 0; i < floats; i++) run->blank[i] = NAN;
    RETURN_IF(run_once(run, run->weights, run->expected, &expected, error));
    struct carrier carrier = {.from = run->weights,
                              .weights = run->blank,
                              .gradient = run->gradient,
                              .taken = run->taken,
                              .floats = floats,
                              .final = floats};
    CHECK(replicas_set_step(&run->replicas, 0, carry, &carrier), "%s: it does not tell", words);
    RETURN_IF(run_once(run, run->blank, run->gradient, &loss, error));
    memcpy(run->taken, run->gradient, carrier.final * sizeof(float)); /* the rest */
    CHECK(!carrier.back && carrier.steps > 1, "%s: it goes back, or has %d steps", words, carrier.steps);
    CHECK(memcmp(&loss, &expected, sizeof loss) == 0, "%s: loss %g, expected %g", words, (double)loss,
          (double)expected);
    CHECK(memcmp(run->gradient, run->expected, floats * sizeof(float)) == 0, "%s: another gradient", words);
    CHECK(memcmp(run->taken, run->expected, floats * sizeof(float)) == 0, "%s: what was final has changed",
          words);
    /* Nothing would move meanwhile, if each told all. */
    CHECK(!layers || (carrier.first_until < floats && carrier.last_from < floats), "%s: %zu, %zu of %zu",
          words, carrier.first_until, carrier.last_from, floats);
    return OK;
}

static int open_run(struct run *run, const struct choice *model, const struct device *device,
                    const struct examples *examples, int side, struct error *error) {
    const struct network_settings settings = {.model = model,
                                              .shape = SHAPE(side, side, CHANNELS),
                                              .classes = CLASSES,
                                              .batch = BATCH,
                                              .training = true,
                                              .seed = 1,
                                              .decay = 0.01,
                                              .shards = 1};
    RETURN_IF(network_open(&run->network, &settings, error));
    RETURN_IF(replicas_open(&run->replicas, &run->network, device, 1, examples, 1, 1, error));
    const struct compute compute = replicas_compute(&run->replicas);
    RETURN_IF(compute.open(compute.self, 0, error));
    const size_t floats = run->network.graph.layout.floats;
    float **const all[] = {&run->weights, &run->blank, &run->gradient, &run->expected, &run->taken};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        RETURN_IF(memory_array(all[i], floats, "a vector", error));
    layout_initialize(&run->network.graph.layout, 1, run->weights);
    return OK;
}

static void check_model(const struct model *model, const struct device_settings *settings) {
    static float features[EXAMPLES * 32 * 32 * CHANNELS];
    static int labels[EXAMPLES] = {1, 0, 9, 4, 2, 2, 7, 5};
    struct run run = {0};
    struct error error = {0};
    struct choice choice;
    struct device *devices = NULL;
    int count = 0;
    bool shared = false;
    char words[100];
    const bool listed = strcmp(model->plugin.name, "layers") == 0;
    int code = plugin_choose(
        &choice, &model_kind,
        listed ? "layers:conv 8 3x3 same relu; flatten; dense 20 relu; dense" : model->plugin.name, &error);
    int side = model->side_of && code == OK ? model->side_of(choice.settings) : model->side;
    if (side < LEAST_SIDE) side = LEAST_SIDE;
    snprintf(words, sizeof words, "%s, %s kernels, precision %d", model->plugin.name,
             settings->reference_only ? "reference" : "all", (int)settings->precision);
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        features[i] = (float)(i * 37 % 101) / 101.0f;
    const struct examples examples = {
        .count = EXAMPLES, .features = side * side * CHANNELS, .floats = features, .labels = labels};
    CHECK(side <= 32, "%s: images of %d", words, side);
    if (code == OK) code = devices_open("cpu:0", settings, &devices, &count, &shared, &error);
    if (code == OK) code = open_run(&run, &choice, &devices[0], &examples, side, &error);
    if (code == OK) code = carry_all(&run, words, strcmp(model->plugin.name, "softmax") != 0, &error);
    CHECK(code == OK, "%s: %s", words, error.words);
    replicas_close(&run.replicas);
    network_close(&run.network);
    devices_close(devices, count);
    float *const all[] = {run.weights, run.blank, run.gradient, run.expected, run.taken};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) memory_free(all[i]);
}

int main(void) {
    for (int m = 0; models[m]; m++) {
        const struct device_settings reference = {.threads = 1, .reference_only = true},
                                     fast = {.threads = 1},
                                     narrow = {.threads = 1, .precision = PRECISION_BF16};
        check_model(models[m], &reference);
        check_model(models[m], &fast);
        if (TRAINER_ONEDNN) check_model(models[m], &narrow);
    }
    return check_end();
}
