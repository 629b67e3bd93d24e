/* Layers and lists of them: every row of layers.def is built, differentiated, written and read; what cannot
 * be built says where; docs/networks.md has the table. */
#include "../../src/base/file.h"
#include "../../src/graph/layers_text.h"
#include "../../src/graph/network_file.h"
#include "../reference_device.h"

enum { BATCH = 3, CLASSES = 3, SIDE = 5, CHANNELS = 2, PIXELS = SIDE * SIDE * CHANNELS, TEXT_MOST = 2000 };

static bool parse(struct layer_list *list, const char *text, struct error *error) {
    *error = (struct error){0};
    return layers_parse(list, "text", text, strlen(text), ERROR_USAGE, error) == OK;
}

static void write_list(const struct layer_list *list, char out[TEXT_MOST]) {
    struct text text = text_into(out, TEXT_MOST);
    layers_write(list, "; ", &text);
    CHECK(!text.cut, "the text is longer than %d", TEXT_MOST);
}

/* --- every layer, in small networks --- */

/* What stands before and behind it, so that there is something to differentiate. */
static const struct sample {
    enum layer_kind kind;
    const char *text;
} samples[] = {
    {LAYER_dense, "dense 4 tanh; dense"},
    {LAYER_dense, "dense 4 no_bias normal deviation=0.3 sigmoid; dense he bias=0.5"},
    {LAYER_conv, "conv 3 2x3 stride=2x1 same; flatten; dense"},
    {LAYER_conv, "conv 2 3x3 truncated deviation=0.2 bias=0.1 tanh; conv 2 2 no_bias he; flatten; dense"},
    {LAYER_depthwise, "depthwise 3x2 2 stride=1x2 same tanh; depthwise 2 no_bias he; flatten; dense"},
    {LAYER_depthwise, "d = depthwise 3x3 bias=0.3; maxpool 2; flatten; dense"},
    {LAYER_embedding, "embedding 5 3 normal deviation=0.3 decay=0.1; flatten; dense"},
    {LAYER_batch_norm,
     "conv 2 3x3; batch_norm epsilon=0.3; flatten; dense 4; b = batch_norm epsilon=1; dense"},
    {LAYER_layer_norm, "conv 3 3x3; layer_norm; flatten; dense 4; n = layer_norm epsilon=0.1; dense"},
    {LAYER_maxpool, "conv 2 2x2; maxpool 2; flatten; dense"},
    {LAYER_maxpool, "conv 2 2x2; maxpool 2x1 stride=1 same; flatten; dense"},
    {LAYER_avgpool, "conv 2 2x2; avgpool 2; flatten; dense"},
    {LAYER_avgpool, "conv 2 2x2; avgpool 3x2 stride=2x1 same; flatten; dense"},
    {LAYER_global_avgpool, "conv 4 2x2 tanh; global_avgpool; dense"},
    {LAYER_global_maxpool, "conv 4 2x2 tanh; global_maxpool; dense"},
    {LAYER_lrn, "conv 4 2x2; lrn radius=1 bias=2 alpha=0.1 beta=0.5; flatten; dense"},
    {LAYER_dropout, "dense 8; dropout 0.4; dense"},
    {LAYER_flatten, "conv 2 3x3; flatten; dense"},
    {LAYER_reshape, "dense 8; reshape 2x2x-1; conv 2 2x2; reshape 2; dense"},
    {LAYER_pad, "pad 1x0; conv 2 3x3; pad 1x0x2x1; flatten; dense"},
    {LAYER_add, "a = dense 4 tanh; b = dense 4 a; add a b; dense"},
    {LAYER_multiply, "a = dense 4 tanh; b = dense 4 a; c = dense 4 a; multiply a b c; dense"},
    {LAYER_multiply,
     "a = conv 3 2x2; global_avgpool; dense 3 sigmoid; reshape 1x1x3; multiply a; flatten; dense"},
    {LAYER_concat,
     "a = conv 2 3x3; b = conv 1 3x3 input; concat a b; c = flatten; concat c previous axis=1; dense"},
    {LAYER_relu, "dense 6; relu; dense"},
    {LAYER_relu6, "dense 6; relu6; dense"},
    {LAYER_sigmoid, "dense 4; sigmoid; dense"},
    {LAYER_tanh, "dense 4; tanh; dense"},
    {LAYER_gelu, "dense 4; gelu; dense 4; gelu approximate; dense"},
    {LAYER_silu, "dense 4 silu; silu; dense"},
    {LAYER_hard_sigmoid, "dense 6; hard_sigmoid; dense"},
    {LAYER_hard_swish, "dense 6; hard_swish; dense"},
    {LAYER_leaky_relu, "dense 6; leaky_relu 0.2; dense"},
    {LAYER_elu, "dense 6; elu 0.7; dense"},
    {LAYER_softmax, "dense 4; softmax; dense softmax"},
};
enum { SAMPLES = sizeof samples / sizeof *samples, FETCHES = 24 };

static double loss_of(struct session *s, node loss) {
    session_run(s);
    return (double)session_float(s, loss, 0);
}

static void check_differences(struct session *s, const struct graph *g, node loss, const char *text) {
    const double h = 1.0 / 128;
    for (int r = 0; r < g->layout.count; r++) {
        const struct range *range = &g->layout.ranges[r];
        if (range->kind != RANGE_TRAINABLE) continue;
        for (size_t i = 0; i < range->floats; i++) {
            float *weight = s->weights + range->begin + i;
            const float before = *weight;
            session_run(s);
            const double found = s->gradients[range->begin + i];
            *weight = before + (float)h;
            const double above = loss_of(s, loss);
            *weight = before - (float)h;
            const double below = loss_of(s, loss);
            *weight = before;
            const double want = (above - below) / (2 * h);
            CHECK(fabs(found - want) < 3e-3 * fmax(1, fabs(want)), "%s: %s, element %zu: %g, expected %g",
                  text, range->name, i, found, want);
        }
    }
}

/* The loss of a network made of the list, and its gradient by every weight against differences. An embedding
 * is given whole numbers from 0 to 4. */
static void check_network(const struct layer_list *list, const char *text) {
    struct graph g;
    struct session s;
    float pixels[BATCH * PIXELS];
    node targets[FETCHES], fetches[FETCHES + 1];
    int count = 0;
    graph_open(&g, true, 3);
    fill_between(pixels, BATCH * PIXELS, 31, -1, 1);
    for (int i = 0; i < BATCH * PIXELS && list->layers[0].kind == LAYER_embedding; i++)
        pixels[i] = floorf(2.5f * (pixels[i] + 1));
    const node x = graph_constant(&g, SHAPE(BATCH, SIDE, SIDE, CHANNELS), pixels);
    const node logits = layers_build(&g, list, x, CLASSES);
    CHECK(logits != NONE, "%s: %s", text, g.error.words);
    const node labels = graph_constant_int(&g, SHAPE(BATCH), (int[]){0, 2, 1});
    const node loss = graph_reduce_mean(&g, graph_softmax_cross_entropy(&g, logits, labels), ALL_AXES, false);
    for (node n = 0; n < g.count && count < FETCHES; n++)
        if (g.nodes[n].op == OP_variable &&
            g.layout.ranges[g.nodes[n].attributes.variable].kind == RANGE_TRAINABLE)
            targets[count++] = n;
    fetches[0] = loss;
    graph_gradients(&g, loss, targets, count, fetches + 1);
    CHECK(g.error.code == OK && count < FETCHES, "%s: %s", text, g.error.words);
    if (g.error.code == OK) {
        session_open(&s, &g, fetches, count + 1);
        if (graph_find(&g, "step") != NONE) session_feed(&s, graph_find(&g, "step"), (int[]){3});
        layout_initialize(&g.layout, 7, s.weights);
        check_differences(&s, &g, loss, text);
        session_close(&s);
    }
    graph_close(&g);
}

/* What is written is read as the same; and so is what is written of that. */
static void check_round_trip(const struct layer_list *list, const char *of) {
    struct layer_list again;
    struct error error;
    char first[TEXT_MOST], second[TEXT_MOST];
    write_list(list, first);
    CHECK(parse(&again, first, &error), "%s: %s: %s", of, first, error.words);
    if (error.code != OK) return;
    write_list(&again, second);
    CHECK(strcmp(first, second) == 0 && again.count == list->count, "%s: %s became %s", of, first, second);
    for (int i = 0; i < list->count && i < again.count; i++) {
        const struct layer *a = &list->layers[i], *b = &again.layers[i];
        CHECK(a->kind == b->kind && a->inputs == b->inputs && a->activation == b->activation &&
                  memcmp(a->input, b->input, (size_t)a->inputs * sizeof *a->input) == 0 &&
                  strcmp(a->name, b->name) == 0,
              "%s: layer %d", first, i + 1);
        for (const struct option *row = layer_rows[a->kind].attributes; row->name; row++) {
            char ours[200], theirs[200];
            option_text(row, &a->values, ours, sizeof ours);
            option_text(row, &b->values, theirs, sizeof theirs);
            CHECK(strcmp(ours, theirs) == 0, "%s: layer %d: %s=%s became %s", first, i + 1, row->name, ours,
                  theirs);
        }
    }
    layers_close(&again);
}

static void test_every_layer(void) {
    bool has_sample[LAYER_KINDS] = {false};
    for (int i = 0; i < SAMPLES; i++) {
        struct layer_list list;
        struct error error;
        bool has_kind = false;
        CHECK(parse(&list, samples[i].text, &error), "%s: %s", samples[i].text, error.words);
        if (error.code != OK) continue;
        for (int k = 0; k < list.count; k++) has_kind = has_kind || list.layers[k].kind == samples[i].kind;
        CHECK(has_kind, "%s has no %s", samples[i].text, layer_rows[samples[i].kind].name);
        has_sample[samples[i].kind] = true;
        check_network(&list, samples[i].text);
        check_round_trip(&list, samples[i].text);
        layers_close(&list);
    }
    for (int kind = 0; kind < LAYER_KINDS; kind++)
        CHECK(has_sample[kind], "%s has no sample", layer_rows[kind].name);
}

/* Each attribute at its ends and, of choices, each of them: nothing is lost on the way through a text. */
static void test_every_attribute(void) {
    for (int kind = 0; kind < LAYER_KINDS; kind++) {
        int attributes = 0;
        for (const struct option *row = layer_rows[kind].attributes; row->name; row++, attributes++)
            for (int end = 0; end < 3; end++) {
                struct layer_list list = {0};
                struct error error = {0};
                struct layer *first = layers_add(&list, LAYER_flatten, ERROR_USAGE, &error);
                memcpy(first->name, "a", 2);
                struct layer *layer = layers_add(&list, (enum layer_kind)kind, ERROR_USAGE, &error);
                char value[64];
                const double number = end == 0   ? row->least
                                      : end == 1 ? row->most
                                                 : row->least / 3 + row->most / 7;
                if (row->type == OPTION_REAL)
                    snprintf(value, sizeof value, "%.17g", number);
                else if (row->type == OPTION_CHOICE)
                    snprintf(value, sizeof value, "%.*s", (int)strcspn(strchr(row->choices, '|') + 1, "|"),
                             strchr(row->choices, '|') + 1);
                else
                    snprintf(value, sizeof value, "%.0f", row->type == OPTION_FLAG ? 1.0 : floor(number));
                for (const struct option *other = layer_rows[kind].attributes; other->name; other++)
                    if (other->flags & ATTRIBUTE_NEEDED)
                        CHECK(option_set(layer_rows[kind].attributes, &layer->values, "", other->name, "3",
                                         &error) == OK,
                              "%s", error.words);
                CHECK(option_set(layer_rows[kind].attributes, &layer->values, "", row->name, value, &error) ==
                          OK,
                      "%s", error.words);
                if (layer_rows[kind].joins) {
                    layer->inputs = 2;
                    layer->input[0] = LAYER_INPUT;
                    layer->input[1] = 0;
                }
                check_round_trip(&list, layer_rows[kind].name);
                layers_close(&list);
            }
        CHECK(attributes < 32, "%s has %d attributes, whose bits fit into no int", layer_rows[kind].name,
              attributes);
    }
}

/* A word alone must mean one thing. */
static void test_words_are_unique(void) {
    for (int kind = 0; kind < LAYER_KINDS; kind++) {
        char all[800] = " ", word[64];
        for (const struct option *row = layer_rows[kind].attributes; row->name; row++)
            for (const char *c = row->type == OPTION_CHOICE ? row->choices : row->name; c;) {
                snprintf(word, sizeof word, " %.*s ", (int)strcspn(c, "|"), c);
                CHECK(!strstr(all, word), "%s: %s means two things", layer_rows[kind].name, word);
                CHECK(!layer_name_fits(row->name), "a layer can be called %s", row->name);
                strcat(all, word + 1);
                c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL;
            }
        CHECK(!layer_name_fits(layer_rows[kind].name), "a layer can be called %s", layer_rows[kind].name);
    }
}

/* --- building --- */

/* He's deviation is of the values that an output is computed from: of a depthwise convolution one channel's.
 */
static void test_he(void) {
    static const struct {
        const char *text;
        float inputs;
    } known[] = {{"dense he", SIDE * SIDE * CHANNELS},
                 {"conv 2 3x2 he; flatten; dense", 3 * 2 * CHANNELS},
                 {"depthwise 3x2 4 he; flatten; dense", 3 * 2}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct graph g;
        struct layer_list list;
        struct error error;
        CHECK(parse(&list, known[i].text, &error), "%s", error.words);
        graph_open(&g, true, 1);
        layers_build(&g, &list, graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(BATCH, SIDE, SIDE, CHANNELS)),
                     CLASSES);
        CHECK(g.error.code == OK, "%s: %s", known[i].text, g.error.words);
        const struct initial *initial =
            g.error.code == OK ? &g.layout.ranges[0].initial : &(struct initial){0};
        CHECK(initial->kind == INITIAL_NORMAL && initial->value == sqrtf(2 / known[i].inputs),
              "%s: deviation %g", known[i].text, (double)initial->value);
        graph_close(&g);
        layers_close(&list);
    }
}

static void test_wrong_networks(void) {
    static const char *const wrong[][2] = {
        {"conv 2 3x3; dense",
         "layer 2 (dense): found [3, 3, 3, 2], expected [batch, numbers]: flatten it first"},
        {"conv 2 9x9; flatten; dense", "layer 1 (conv 2 9x9): windows of 9x9 do not fit into images of 5x5"},
        {"a = dense 3; b = dense 4; add a b; dense",
         "layer 3 (add a b): [3, 3] and [3, 4], expected inputs of one shape"},
        {"dense 5", "layer 1 (dense 5): the network has 5 outputs, expected 3, one per class or value of the "
                    "data set: end with dense"},
        {"relu", "layer 1 (relu): it gives [3, 5, 5, 2], expected [batch, 3]"},
        {"a = dense 3; concat a axis=0; dense",
         "layer 2 (concat axis=0 a): axis 0 is the batch, expected another"},
        {"a = dense 3; b = dense 4; multiply a b; dense",
         "layer 3 (multiply a b): [3, 3] and [3, 4] do not broadcast"},
        {"a = flatten; multiply a input; dense",
         "layer 2 (multiply input): [3, 50] and [3, 5, 5, 2], expected inputs of as many dimensions"},
        {"pad 1x2x3; flatten; dense", "layer 1 (pad 1x2x3): found 3 sizes, expected 1, 2 or 4"},
        {"reshape 7x-1; flatten; dense",
         "layer 1 (reshape 7x-1): [3, 5, 5, 2] has 150 elements and does not fit"},
        {"dense 1000000; dense 1000000; dense 1000000 ; dense", NULL},
        {"reshape 1x1x50; conv 1000000 1000x1000 same; flatten; dense",
         "layer 2 (conv 1000000 1000x1000 same): shape [1000, 1000, 50, 1000000] has 5e+13 elements, "
         "expected at most 1e12"},
        {"pad 1000; pad 1000; pad 1000; pad 1000; pad 1000; conv 1 1x1; concat previous previous previous "
         "previous "
         "previous previous previous previous; concat previous previous previous previous previous previous "
         "previous "
         "previous; flatten; dense",
         "layer 9 (flatten): "},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct graph g;
        struct layer_list list;
        struct error error;
        CHECK(parse(&list, wrong[i][0], &error), "%s", error.words);
        graph_open(&g, true, 1);
        const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(BATCH, SIDE, SIDE, CHANNELS));
        const node y = layers_build(&g, &list, x, CLASSES);
        CHECK((y != NONE) == (wrong[i][1] == NULL), "%s: %s", wrong[i][0], g.error.words);
        if (wrong[i][1])
            CHECK(strncmp(g.error.words, wrong[i][1], strlen(wrong[i][1])) == 0, "%s: %s", wrong[i][0],
                  g.error.words);
        graph_close(&g);
        layers_close(&list);
    }
}

/* A list need not come from a text: what could not be written or built is refused. */
static void test_wrong_lists(void) {
    struct layer_list list = {0};
    struct error error = {0};
    layers_add(&list, LAYER_relu, ERROR_FILE, &error);
    layers_add(&list, LAYER_relu, ERROR_FILE, &error);
    struct layer *layer = layers_add(&list, LAYER_tanh, ERROR_FILE, &error);
    const struct layer good = *layer;
    struct layer bad[6];
    for (int i = 0; i < 6; i++) bad[i] = good;
    bad[0].input[0] = 0; /* has no name */
    bad[1].input[0] = 2;
    bad[2].input[0] = -2;
    bad[3].inputs = 2;
    memcpy(bad[4].name, "relu", 5);
    bad[5].kind = LAYER_conv;
    CHECK(layers_check(&list, "list", ERROR_FILE, &error) == OK, "%s", error.words);
    for (int i = 0; i < 6; i++) {
        error = (struct error){0};
        list.layers[2] = bad[i];
        CHECK(layers_check(&list, "list", ERROR_FILE, &error) == ERROR_FILE, "list %d was accepted", i);
    }
    layers_close(&list);
}

/* --- documentation --- */

/* --- names --- */

/* The names of the layers that have weights, in their order. */
static void check_names(const char *layers, const char *expected) {
    struct layer_list list;
    struct error error;
    struct graph g;
    char names[400];
    const char *before = "";
    struct text text = text_into(names, sizeof names);
    CHECK(parse(&list, layers, &error), "%s: %s", layers, error.words);
    graph_open(&g, true, 3);
    layers_build(&g, &list, graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(BATCH, SIDE, SIDE, CHANNELS)),
                 CLASSES);
    CHECK(g.error.code == OK, "%s: %s", layers, g.error.words);
    for (int r = 0; r < g.layout.count; r++) {
        const char *name = g.layout.ranges[r].name;
        const size_t length = (size_t)(strrchr(name, '/') - name);
        if (strlen(before) > length && strncmp(before, name, length + 1) == 0) continue;
        text_item(&text, " ", "%.*s", (int)length, name);
        before = name;
    }
    CHECK(strcmp(names, expected) == 0, "%s: names are %s, expected %s", layers, names, expected);
    graph_close(&g);
    layers_close(&list);
}

/* Numbers pass over names that somebody gave, where both would have the same weights, and over no others. */
static void test_names(void) {
    static const struct {
        const char *layers, *names;
    } known[] = {{"conv 2 1; conv 2 1; flatten; dense 4; dense", "conv1 conv2 dense1 dense2"},
                 {"conv1 = conv 2 1; conv 2 1; conv 2 1; flatten; dense", "conv1 conv2 conv3 dense1"},
                 {"conv 2 1; conv1 = conv 2 1; conv2 = conv 2 1; flatten; dense", "conv3 conv1 conv2 dense1"},
                 {"conv 2 1; conv 2 1; conv2 = depthwise 1; conv5 = conv 2 1; flatten; dense",
                  "conv1 conv3 conv2 conv5 dense1"},
                 {"flatten; dense; dense1 = embedding 5 2; flatten; dense2 = dense", "dense3 dense1 dense2"},
                 {"batch_norm; layer_norm; norm1 = layer_norm; layer_norm1 = batch_norm; flatten; dense",
                  "norm2 layer_norm2 norm1 layer_norm1 dense1"},
                 {"conv 2 1; conv1 = batch_norm; dense1 = relu; flatten; dense", "conv1 dense1"},
                 {"norm1 = conv 2 1; batch_norm; flatten; dense01 = dense 5; dense", "norm1 dense01 dense1"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) check_names(known[i].layers, known[i].names);
}

/* What a file's names become; the list has a layer taken_0. */
static void test_names_of_files(void) {
    static const struct {
        const char *there, *here;
    } known[] = {{"conv1", "conv1"},
                 {"a.b/c-d", "a.b/c-d"},
                 {"_a", "_a"},
                 {"dense", "dense_0"},
                 {"taken_0", "taken_0_0"},
                 {"\xc3\xa4 b", "layer___b"},
                 {" a", "layer_a"},
                 {"/1.a", "a"},
                 {"7", "layer"},
                 {"", "layer"},
                 {"a:b", "a_b"}};
    struct layer_list list = {0};
    struct error error = {0};
    for (int i = 0; i < 2; i++) layers_add(&list, LAYER_dense, ERROR_FILE, &error);
    network_file_name(&list, &list.layers[0], "taken_0");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        list.layers[1].name[0] = '\0';
        network_file_name(&list, &list.layers[1], known[i].there);
        CHECK(strcmp(list.layers[1].name, known[i].here) == 0, "%s became %s, expected %s", known[i].there,
              list.layers[1].name, known[i].here);
    }
    layers_close(&list);
}

/* docs/networks.md has a row for each layer, in the order of layers.def, as it is written here. */
static void test_documented(void) {
    char *docs = NULL;
    size_t bytes = 0;
    struct error error = {0};
    CHECK(file_read("docs/networks.md", 1 << 20, &docs, &bytes, &error) == OK, "%s", error.words);
    const char *at = docs ? docs : "";
    for (int kind = 0; kind < LAYER_KINDS; kind++) {
        char line[600], synopsis[400];
        struct text text = text_into(synopsis, sizeof synopsis);
        const struct layer_row *row = &layer_rows[kind];
        layer_synopsis((enum layer_kind)kind, &text);
        snprintf(line, sizeof line, "\n| `%s` | %s | %s | %s |\n", synopsis, row->help,
                 row->keras[0] ? row->keras : "-", row->onnx);
        const char *found = strstr(at, line);
        CHECK(found, "docs/networks.md lacks, or has in another place: %s", line);
        at = found ? found + 1 : at;
    }
    memory_free(docs);
}

int main(void) {
    test_every_layer();
    test_every_attribute();
    test_words_are_unique();
    test_he();
    test_wrong_networks();
    test_wrong_lists();
    test_names();
    test_names_of_files();
    test_documented();
    return check_end();
}
