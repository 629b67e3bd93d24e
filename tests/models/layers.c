/* The networks of models/layers: those that are models in C, too, give the same graph, node by node; the
 * others have as many parameters as they should. */
#include "../../src/engine/network.h"
#include "../../src/graph/model.h"
#include "../reference_device.h"

static bool open_model(struct network *network, char *model, struct shape shape, int classes) {
    static struct choice choice;
    struct error error = {0};
    CHECK(model_resolve(model, PLUGIN_TEXT_BYTES, NULL, &error) == OK, "%s", error.words);
    CHECK(plugin_choose(&choice, &model_kind, model, &error) == OK, "%s", error.words);
    const struct network_settings settings = {.model = &choice,
                                              .shape = shape,
                                              .classes = classes,
                                              .batch = 4,
                                              .training = true,
                                              .seed = 1,
                                              .shards = 1};
    CHECK(network_open(network, &settings, &error) == OK, "%s: %s", model, error.words);
    return error.code == OK;
}

/* Node by node and range by range the same graph, so that everything that is computed has the same bits. */
static void check_same_network(const struct network *a, const struct network *b, const char *model) {
    CHECK(a->graph.count == b->graph.count, "%s: %d nodes and %d", model, a->graph.count, b->graph.count);
    CHECK(layout_hash(&a->graph.layout) == layout_hash(&b->graph.layout), "%s: layouts", model);
    for (node n = 0; n < a->graph.count && n < b->graph.count; n++) {
        const struct node_info *x = &a->graph.nodes[n], *y = &b->graph.nodes[n];
        CHECK(x->op == y->op && shape_equal(&x->shape, &y->shape) &&
                  memcmp(x->input, y->input, sizeof x->input) == 0 &&
                  memcmp(&x->attributes, &y->attributes, sizeof x->attributes) == 0,
              "%s: node %d is %s and %s", model, n, op_name(x->op), op_name(y->op));
    }
    for (int r = 0; r < a->graph.layout.count && r < b->graph.layout.count; r++) {
        const struct range *x = &a->graph.layout.ranges[r], *y = &b->graph.layout.ranges[r];
        CHECK(memcmp(&x->decay, &y->decay, sizeof x->decay) == 0, "%s: decay of %s", model, x->name);
    }
    float *first = NULL, *second = NULL;
    struct error error = {0};
    const size_t floats = a->graph.layout.floats;
    if (memory_array(&first, floats, "weights", &error) == OK &&
        memory_array(&second, floats, "weights", &error) == OK && floats == b->graph.layout.floats) {
        layout_initialize(&a->graph.layout, 5, first);
        layout_initialize(&b->graph.layout, 5, second);
        CHECK(memcmp(first, second, floats * sizeof *first) == 0, "%s: first weights", model);
    }
    memory_free(second);
    memory_free(first);
}

static void test_models_in_c(void) {
    static const struct {
        const char *model;
        struct shape shape;
    } known[] = {
        {"alexnet", {3, {24, 24, 3}}}, {"cnn", {3, {28, 28, 1}}}, {"cnn", {1, {784}}}, {"lenet", {1, {64}}}};
    static char text[2][PLUGIN_TEXT_BYTES];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct network networks[2];
        snprintf(text[0], sizeof text[0], "%s", known[i].model);
        snprintf(text[1], sizeof text[1], "layers:models/layers/%s.txt", known[i].model);
        if (open_model(&networks[0], text[0], known[i].shape, 10) &&
            open_model(&networks[1], text[1], known[i].shape, 10))
            check_same_network(&networks[0], &networks[1], known[i].model);
        for (int k = 0; k < 2; k++) network_close(&networks[k]);
    }
}

/* Parameters without the statistics, as He et al. count them, and 2 x 64 x 16 + 2 x 64 x ... of the
 * shortcuts; of mobilenet 274250 and as many statistics as its normalisations have scales and shifts. */
static void test_others(void) {
    static const struct {
        const char *name;
        size_t parameters;
    } known[] = {{"resnet20", 274042}, {"resnet32", 469370}, {"resnet56", 860026}, {"mobilenet", 278730}};
    static char text[PLUGIN_TEXT_BYTES];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct network network;
        char words[MODEL_SHORT_BYTES];
        snprintf(text, sizeof text, "layers:models/layers/%s.txt", known[i].name);
        if (!open_model(&network, text, SHAPE(32, 32, 3), 10)) continue;
        CHECK(network.graph.layout.parameters == known[i].parameters, "%s: %zu parameters", known[i].name,
              network.graph.layout.parameters);
        CHECK(strlen(model_short(text, words)) < 100 && strstr(words, " layers)"), "%s", words);
        network_close(&network);
    }
}

/* Only a command line may name a file: a checkpoint or another process that does so names a layer. */
static void test_no_file_from_elsewhere(void) {
    static struct choice choice;
    struct error error = {0};
    CHECK(plugin_choose(&choice, &model_kind, "layers:./models/layers/cnn.txt", &error) == ERROR_USAGE,
          "taken");
    CHECK(strstr(error.words, "layers: line 1, column 1: unknown layer"), "%s", error.words);
}

int main(void) {
    test_no_file_from_elsewhere();
    test_models_in_c();
    test_others();
    return check_end();
}
