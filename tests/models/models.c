/* Models: what each of them promises on small images; then alexnet, whose parameters, first loss and
 * gradients are known from outside: tests/alexnet_gradients.h is a table made with PyTorch. */
#include <stdlib.h>
#include "../alexnet_gradients.h"
#include "../../src/device/update.h"
#include "../../src/graph/model.h"
#include "../../src/engine/network.h"
#include "../reference_device.h"

enum { CLASSES = 10, PIXELS = 64, BATCH = 6, MOST_FETCHES = 40 };

static void open_network(struct network *network, struct choice *choice, const char *model,
                         struct shape shape, int batch, double decay) {
    struct error error = {0};
    CHECK(plugin_choose(choice, &model_kind, model, &error) == OK, "%s", error.words);
    const struct network_settings settings = {.model = choice,
                                              .shape = shape,
                                              .classes = CLASSES,
                                              .batch = batch,
                                              .training = true,
                                              .seed = 1,
                                              .decay = decay,
                                              .shards = 1};
    CHECK(network_open(network, &settings, &error) == OK, "%s: %s", model, error.words);
}

/* The loss as it is reported, and all gradients. */
static int fetches_of(const struct network *network, node *fetches) {
    int count = 0;
    fetches[count++] = network->decayed_loss;
    fetches[count++] = network->loss;
    for (int i = 0; i < network->gradient_count && count < MOST_FETCHES; i++)
        fetches[count++] = network->gradients[i];
    return count;
}

/* --- every model --- */

/* One run on made-up digits; the gradients go to *gradients (the caller's to free). */
static float run_model(const char *model, struct shape shape, double decay, float **gradients,
                       size_t *floats) {
    struct network network;
    struct choice choice;
    struct session s;
    node fetches[MOST_FETCHES];
    float x[BATCH * PIXELS];
    open_network(&network, &choice, model, shape, BATCH, decay);
    const struct layout *layout = &network.graph.layout;
    const int count = fetches_of(&network, fetches);
    int moving = 0;
    for (int r = 0; r < layout->count; r++) moving += layout->ranges[r].kind != RANGE_FROZEN;
    CHECK(count == moving + 2, "%s: %d gradients of %d ranges", model, count - 2, moving);
    for (int i = 0; i < count; i++) CHECK(fetches[i] != NONE, "%s: fetch %d is no node", model, i);
    CHECK(shape_equal(&network.graph.nodes[network.logits].shape, &SHAPE(BATCH, CLASSES)), "%s: logits",
          model);
    fill_between(x, BATCH * PIXELS, 3, 0, 1);
    session_open(&s, &network.graph, fetches, count);
    session_feed(&s, network.x, x);
    session_feed(&s, network.labels, (int[BATCH]){0, 3, 9, 1, 1, 7});
    session_run(&s);
    double squares = 0;
    for (int r = 0; r < layout->count; r++)
        for (size_t i = 0; i < layout->ranges[r].floats && layout->ranges[r].kind != RANGE_FROZEN; i++) {
            const double w = s.weights[layout->ranges[r].begin + i];
            squares += 0.5 * layout->ranges[r].decay * w * w;
        }
    const float loss = session_float(&s, network.loss, 0);
    CHECK(fabs(session_float(&s, network.decayed_loss, 0) - loss - squares) < 1e-5 * (1 + squares),
          "%s: reported %g, expected %g + %g", model, (double)session_float(&s, network.decayed_loss, 0),
          (double)loss, squares);
    CHECK((squares > 0) == (decay > 0 || strcmp(model, "alexnet") == 0) || strcmp(model, "softmax") == 0,
          "%s: L2 %g with decay %g", model, squares, decay);
    *gradients = s.gradients;
    *floats = layout->floats;
    s.gradients = NULL;
    session_close(&s);
    network_close(&network);
    return loss;
}

/* An image and its pixels in a row are the same input; L2 is no part of the graph's gradients. */
static void check_model(const char *model) {
    const struct shape shapes[] = {SHAPE(PIXELS), SHAPE(8, 8, 1), SHAPE(PIXELS)};
    const double decays[] = {0, 0, 0.01};
    float *first = NULL, loss = 0;
    size_t first_floats = 0;
    for (int i = 0; i < 3; i++) {
        float *gradients = NULL;
        size_t floats = 0;
        const float found = run_model(model, shapes[i], decays[i], &gradients, &floats);
        if (i == 0) {
            loss = found;
            first = gradients;
            first_floats = floats;
            continue;
        }
        CHECK(floats == first_floats && memcmp(&found, &loss, sizeof loss) == 0,
              "%s: another loss %g, run %d", model, (double)found, i);
        if (floats == first_floats && gradients && first)
            CHECK(memcmp(gradients, first, floats * sizeof *first) == 0, "%s: other gradients, run %d", model,
                  i);
        memory_free(gradients);
    }
    CHECK(loss > 0.5f && loss < 20.0f, "%s: first loss %g", model, (double)loss);
    memory_free(first);
}

/* Between the layers of an mlp stands what was asked for. */
static void test_activations(void) {
    const struct {
        const char *model;
        enum op op;
    } known[] = {{"mlp:hidden=4-3", OP_sigmoid},
                 {"mlp:hidden=4-3,activation=sigmoid", OP_sigmoid},
                 {"mlp:hidden=4-3,activation=relu", OP_relu},
                 {"mlp:hidden=4-3,activation=tanh", OP_tanh}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct network network;
        struct choice choice;
        int found = 0;
        open_network(&network, &choice, known[i].model, SHAPE(5), 1, 0);
        for (node n = 0; n < network.graph.count; n++) found += network.graph.nodes[n].op == known[i].op;
        CHECK(found == 2, "%s: %d of %s, expected 2", known[i].model, found, op_name(known[i].op));
        network_close(&network);
    }
}

static void test_parameters(void) {
    const struct {
        const char *model;
        struct shape shape;
        size_t parameters;
    } known[] = {{"alexnet", SHAPE(24, 24, 3), 1068298},
                 {"fast", SHAPE(32, 32, 3), 1975178},
                 {"fast", SHAPE(28, 28, 1), 1965642},
                 {"cnn", SHAPE(28, 28, 1), 693962},
                 {"cnn", SHAPE(784), 693962},
                 {"mlp", SHAPE(784), 79510}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct network network;
        struct choice choice;
        open_network(&network, &choice, known[i].model, known[i].shape, 1, 0);
        CHECK(network.graph.layout.parameters == known[i].parameters, "%s: %zu parameters, expected %zu",
              known[i].model, network.graph.layout.parameters, known[i].parameters);
        network_close(&network);
    }
}

/* --- alexnet --- */

static uint32_t mixed(uint32_t salt, size_t position) {
    uint32_t h = (uint32_t)position * 2654435761u + salt * 40503u + 1u;
    for (int i = 0; i < 2; i++) h = (h ^ (h >> 16)) * 73244475u;
    return h ^ (h >> 16);
}

static float made(uint32_t salt, size_t position, float scale, float offset) {
    return ((float)(mixed(salt, position) >> 8) / 16777216.0f - 0.5f) * scale + offset;
}

/* As tests/alexnet_gradients.py does. */
static void make_up(struct session *s, const struct network *network) {
    static float x[TABLE_BATCH * 24 * 24 * 3];
    int labels[TABLE_BATCH];
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = made(100, i, 3.0f, 0.0f);
    for (size_t i = 0; i < TABLE_BATCH; i++) labels[i] = (int)(mixed(101, i) % 10);
    session_feed(s, network->x, x);
    session_feed(s, network->labels, labels);
    for (int a = 0; a < TABLE_ARRAYS; a++) {
        const struct range *range = &network->graph.layout.ranges[a];
        for (size_t i = 0; i < range->floats; i++)
            s->weights[range->begin + i] = made((uint32_t)a, i, table[a].scale, table[a].offset);
    }
}

/* What the optimizers follow: the graph's gradient with the decay that they add. */
static double followed(const struct session *s, const struct range *range, size_t i) {
    return (double)update_decayed(s->gradients[range->begin + i], s->weights[range->begin + i], range->decay);
}

static void check_array(const struct session *s, const struct range *range, int a) {
    double squares = 0, products[2] = {0};
    CHECK(strcmp(range->name, table[a].name) == 0, "array %d is %s, expected %s", a, range->name,
          table[a].name);
    for (size_t i = 0; i < range->floats; i++) {
        const double g = followed(s, range, i);
        squares += g * g;
        for (uint32_t k = 0; k < 2; k++) products[k] += mixed(200 + 100 * k + (uint32_t)a, i) >> 31 ? -g : g;
    }
    const double typical = table[a].norm / sqrt((double)range->floats);
    CHECK(fabs(sqrt(squares) - table[a].norm) < 1e-4 * table[a].norm, "%s: norm %g, expected %g", range->name,
          sqrt(squares), table[a].norm);
    for (int k = 0; k < 2; k++)
        CHECK(fabs(products[k] - table[a].products[k]) < 1e-4 * table[a].norm, "%s: product %g, expected %g",
              range->name, products[k], table[a].products[k]);
    for (int e = 0; e < TABLE_ELEMENTS; e++) {
        const double found = followed(s, range, table[a].at[e]), want = table[a].element[e];
        CHECK(fabs(found - want) < 1e-4 * fmax(fabs(want), typical), "%s[%zu]: %g, expected %g", range->name,
              table[a].at[e], found, want);
    }
}

/* The loss and its gradients by PyTorch, with the kernels of the device. */
static void check_table(const struct device *device) {
    struct network network;
    struct choice choice;
    struct session s;
    node fetches[MOST_FETCHES];
    open_network(&network, &choice, "alexnet", SHAPE(24, 24, 3), TABLE_BATCH, 0);
    session_open_on(&s, &network.graph, fetches, fetches_of(&network, fetches), device);
    make_up(&s, &network);
    session_run(&s);
    CHECK(fabs(session_float(&s, network.decayed_loss, 0) - table_loss) < 1e-5 * table_loss,
          "%s: loss %.9g, expected %.9g", device->name, (double)session_float(&s, network.decayed_loss, 0),
          table_loss);
    CHECK(network.graph.layout.count == TABLE_ARRAYS, "%d arrays", network.graph.layout.count);
    for (int a = 0; a < TABLE_ARRAYS && s.error.code == OK; a++)
        check_array(&s, &network.graph.layout.ranges[a], a);
    session_close(&s);
    network_close(&network);
}

/* Before the first step: ten classes, about equal, and the L2 of weights drawn as they should be. Seeds and
 * noise as images move it by some thousandths, so it is the mean that is looked at. */
static void check_first_loss(const struct device *device) {
    struct network network;
    struct choice choice;
    struct session s;
    enum { EXAMPLES = 16, SEEDS = 4, FEATURES = 24 * 24 * 3 };
    static float x[EXAMPLES * FEATURES];
    int labels[EXAMPLES];
    double mean = 0;
    open_network(&network, &choice, "alexnet", SHAPE(24, 24, 3), EXAMPLES, 0);
    session_open_on(&s, &network.graph, &network.decayed_loss, 1, device);
    for (uint64_t seed = 1; seed <= SEEDS && s.error.code == OK; seed++) {
        fill_between(x, EXAMPLES * FEATURES, seed, -1.732f, 1.732f); /* mean 0, deviation 1 */
        for (int i = 0; i < EXAMPLES; i++) labels[i] = (int)(mixed((uint32_t)seed, (size_t)i) % CLASSES);
        layout_initialize(&network.graph.layout, seed, s.weights);
        session_feed(&s, network.x, x);
        session_feed(&s, network.labels, labels);
        session_run(&s);
        mean += (double)session_float(&s, network.decayed_loss, 0) / SEEDS;
    }
    CHECK(mean >= 4.67 && mean <= 4.68, "loss at step 0 is %.4f, expected 4.67 to 4.68", mean);
    session_close(&s);
    network_close(&network);
}

/* --- fast --- */

/* The first layer and the scales of the norms stay; shifts alone have a rate of their own, which is said. */
static void test_fast_ranges(void) {
    struct network network;
    struct choice choice;
    int frozen = 0, shifts = 0;
    open_network(&network, &choice, "fast:shift-rate=64", SHAPE(32, 32, 3), 1, 0);
    for (int r = 0; r < network.graph.layout.count; r++) {
        const struct range *range = &network.graph.layout.ranges[r];
        const bool stays = strcmp(range->name, "conv1/kernel") == 0 || strstr(range->name, "/scale"),
                   is_shift = strstr(range->name, "/shift") != NULL;
        frozen += stays;
        shifts += is_shift;
        CHECK((range->kind == RANGE_FROZEN) == stays, "fast: %s moves or stays", range->name);
        CHECK(range->rate_multiplier == (is_shift ? 64.0f : 1.0f),
              "fast: %s has a rate of %g times the others'", range->name, (double)range->rate_multiplier);
    }
    CHECK(frozen == 8 && shifts == 7, "fast: %d ranges that stay, %d shifts", frozen, shifts);
    network_close(&network);
}

static void test_first_weights(void) {
    struct network network;
    struct choice choice;
    open_network(&network, &choice, "alexnet", SHAPE(24, 24, 3), 1, 0);
    const struct layout *layout = &network.graph.layout;
    float *weights = calloc(layout->floats, sizeof *weights);
    const double limits[] = {0.05, 0, 0.05, 0, 0.04, 0, 0.04, 0, 1.0 / 192, 0};
    const float biases[] = {0, 0.0f, 0, 0.1f, 0, 0.1f, 0, 0.1f, 0, 0.0f};
    const float decays[] = {0, 0, 0, 0, 0.004f, 0, 0.004f, 0, 0, 0};
    if (weights) layout_initialize(layout, 1, weights);
    for (int r = 0; weights && r < layout->count; r++) {
        const struct range *range = &layout->ranges[r];
        double squares = 0, most = 0;
        for (size_t i = 0; i < range->floats; i++) {
            const double w = weights[range->begin + i];
            squares += w * w;
            most = fmax(most, fabs(w));
            if (range->shape.rank == 1) CHECK((float)w == biases[r], "%s is %g", range->name, w);
        }
        CHECK(range->decay == decays[r], "%s: L2 %g", range->name, (double)range->decay);
        if (range->shape.rank == 1) continue;
        /* A normal distribution cut off at two deviations has 0.8796 of its deviation. */
        const double deviation = sqrt(squares / (double)range->floats) / 0.8796 / limits[r];
        CHECK(most <= 2 * limits[r] && most > 1.9 * limits[r] && fabs(deviation - 1) < 0.05,
              "%s: largest %g, deviation %g of what it should be", range->name, most, deviation);
    }
    free(weights);
    network_close(&network);
}

int main(void) {
    struct device fastest = {.backend = backends[0], .name = "cpu:0", .threads = 1};
    fastest.backend->enter(&fastest);
    for (int i = 0; models[i]; i++) check_model(models[i]->plugin.name);
    test_parameters();
    test_activations();
    test_first_weights();
    test_fast_ranges();
    check_table(&reference_device);
    if (TRAINER_ONEDNN) check_table(&fastest);
    check_first_loss(&fastest);
    return check_end();
}
