/* ONNX files as networks: what graphs in their many forms become, and what is refused with which words; how
 * the numbers of each kind of weights lie; and files that trainer export writes, which give the same layers,
 * weights and logits, bit for bit. */
#include <stdlib.h>
#include <unistd.h>

#include "../../src/graph/layers_text.h"
#include "../../src/imports/onnx_model.h"
#include "../../src/infer/export.h"
#include "../onnx_sample.h"
#include "../reference_device.h"

static uint8_t sample[SAMPLE_BYTES];

/* Without the shape of an example, which the file's input says, too. */
static char *list_text(const struct layer_list *list) {
    struct error error = {0};
    struct text text = text_growing(&error);
    struct layer_list layers = *list;
    layers.input.count = 0;
    layers_write(&layers, "; ", &text);
    CHECK(text_end(&text) == OK, "%s", error.words);
    return text.bytes;
}

/* --- graphs --- */

/* The nodes of a file, and the layers that they become, or "! " and some of the words that refuse them. */
static const struct {
    const char *shape, *nodes, *layers;
} graphs[] = {
    /* Names: of the weights, of the node's kind; an activation goes to the layer before it, if nobody else
       has its value. */
    {"4", "Gemm x fc1.weight[5,4] fc1.bias[5] -> a transB=1; Relu a -> b; Gemm b 2.weight[5,3] -> y",
     "fc1 = dense 5 relu; dense_2 = dense 3 no_bias"},
    {"4", "Gemm x w[4,4] -> a; Relu a -> b; Add a b -> c; Gemm c v[4,2] -> y",
     "dense1 = dense 4 no_bias; relu; add dense1 previous; dense2 = dense 2 no_bias"},
    {"4", "MatMul x w[4,5] -> a; Add a b[5] -> y", "dense1 = dense 5"},
    {"4", "MatMul x w[4,5] -> a; Add b[1,5] a -> c; LogSoftmax c -> y axis=1", "dense1 = dense 5"},
    {"4", "Gemm x w[4,5] -> a alpha=2.0", "! found transA 0, alpha 2, beta 1, expected 0, 1, 1"},
    {"4", "Gemm x w[3,5] -> a", "! found [4] per example and weights of [3, 5]"},
    /* Padding: none, same, or a layer of zeros. */
    {"3,8,8", "Conv x c/kernel[2,3,3,3] -> a pads=1,1,1,1; GlobalAveragePool a -> g; Flatten g -> y",
     "c = conv 2 3x3 same no_bias; global_avgpool"},
    {"3,8,8", "Conv x c[2,3,3,3] -> a pads=1,1,1,1 strides=2,2; GlobalAveragePool a -> g; Flatten g -> y",
     "pad 1; conv1 = conv 2 3x3 stride=2 no_bias; global_avgpool"},
    {"3,8,8",
     "Conv x c[2,3,3,3] -> a auto_pad=\"SAME_UPPER\" strides=2,2; GlobalAveragePool a -> g; Flatten g -> y",
     "conv1 = conv 2 3x3 stride=2 same no_bias; global_avgpool"},
    {"3,8,8",
     "Conv x c[2,3,3,3] -> a auto_pad=\"SAME_LOWER\" strides=2,2; GlobalAveragePool a -> g; Flatten g -> y",
     "pad 1x0x1x0; conv1 = conv 2 3x3 stride=2 no_bias; global_avgpool"},
    {"3,8,9", "Conv x c[2,3,3,2] -> a pads=1,0,0,2 strides=1,3; GlobalAveragePool a -> g; Flatten g -> y",
     "pad 1x0x0x2; conv1 = conv 2 3x2 stride=1x3 no_bias; global_avgpool"},
    {"3,8,8", "Conv x c[2,3,3,3] -> a dilations=2,2", "! found dilations of 2, expected 1"},
    {"4,8,8", "Conv x c[2,2,3,3] -> a group=2", "! found group 2, expected 1, or 4 as it has channels"},
    {"4,8,8",
     "Conv x c.weight[8,1,3,3] -> a group=4 pads=1,1,1,1; Add a b[8,1,1] -> c; Clip c (0.0) h(6.0) -> d; "
     "GlobalMaxPool d -> g; Flatten g -> y",
     "c = depthwise 3x3 2 same relu6; global_maxpool"},
    {"3,8,8",
     "GlobalAveragePool x -> a; HardSigmoid a -> b alpha=0.1666667; Mul x b -> c; GlobalAveragePool c -> g; "
     "Flatten g -> y",
     "global_avgpool hard_sigmoid; reshape 1x1x3; multiply input previous; global_avgpool"},
    {"4", "HardSwish x -> a; HardSigmoid a -> b alpha=0.1666667; Mul a b -> c; HardSigmoid c -> y",
     "! found alpha 0.2, beta 0.5, expected 1/6 and 0.5"},
    {"4", "HardSwish x -> a; HardSigmoid a -> b alpha=0.1666667; Mul a b -> y", "hard_swish; hard_swish"},
    {"3,8,8", "Conv x c[2,3,9,3] -> a", "! windows of 9x3 do not fit into 8x8"},
    {"3,8,8", "Conv x c[2,4,3,3] -> a",
     "! found weights of [2, 4, 3, 3], expected [filters, 3, rows, columns]"},
    {"3,7,7",
     "MaxPool x -> a kernel_shape=2,2 strides=2,2 ceil_mode=1; GlobalAveragePool a -> g; Flatten g -> y",
     "maxpool 2 same; global_avgpool"},
    {"3,8,8",
     "Relu x -> r; MaxPool r -> a kernel_shape=3,3 strides=2,2 pads=1,1,1,1; GlobalAveragePool a -> g; "
     "Flatten g -> y",
     "relu; pad 1; maxpool 3 stride=2; global_avgpool"},
    {"3,8,8", "MaxPool x -> a kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
     "! found pads 1, 1, 1, 1 around what may be below 0, expected a relu before it"},
    {"3,8,8", "AveragePool x -> a kernel_shape=2,3 strides=2,3; GlobalAveragePool a -> g; Flatten g -> y",
     "avgpool 2x3; global_avgpool"},
    {"3,8,8",
     "AveragePool x -> a kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1; GlobalAveragePool a -> g; "
     "Flatten g -> y",
     "pad 1; avgpool 3 stride=1; global_avgpool"},
    {"3,8,8", "AveragePool x -> a kernel_shape=3,3 pads=1,1,1,1; GlobalAveragePool a -> g; Flatten g -> y",
     "avgpool 3 stride=1 same; global_avgpool"},
    {"3,8,8", "AveragePool x -> a kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
     "! found pads 1, 1, 1, 1 with ceil_mode 0 and count_include_pad 0"},
    {"3,8,8", "Pad x {0,0,1,0,0,0,2,3} -> a; GlobalAveragePool a -> g; Flatten g -> y",
     "pad 1x2x0x3; global_avgpool"},
    {"3,8,8", "Pad x {0,1,0,0,0,1,0,0} -> a", "! found pads of the batch or of channels"},
    {"3,8,8", "Pad x {0,0,1,0,0,0,2,3} (0.5) -> a", "! found other pads than zeros"},
    /* Averages, and what is one pixel. */
    {"3,8,8", "GlobalAveragePool x -> a; Flatten a -> b; Gemm b w[3,2] -> y",
     "global_avgpool; dense1 = dense 2 no_bias"},
    {"3,8,8", "ReduceMean x {-1,-2} -> b keepdims=0; Gemm b w[3,2] -> y",
     "global_avgpool; dense1 = dense 2 no_bias"},
    {"3,8,8", "ReduceMean x -> b axes=1, keepdims=0",
     "! expected the mean over rows and columns of an image, axes 2 and 3"},
    {"3,8,8", "GlobalAveragePool x -> a; Conv a w[4,3,1,1] -> b; Squeeze b {2,3} -> y",
     "global_avgpool; reshape 1x1x3; conv1 = conv 4 1x1 no_bias; flatten"},
    /* Shapes that exporters compute. */
    {"3,4,4",
     "Shape x -> s; Gather s {0} -> n; Concat n {-1} -> t axis=0; Reshape x t -> a; Gemm a w[48,2] -> y",
     "flatten; dense1 = dense 2 no_bias"},
    {"3,4,4", "Reshape x {-1,48} -> a; Gemm a w[48,2] -> y", "flatten; dense1 = dense 2 no_bias"},
    {"1,4,4", "Reshape x {0,-1} -> y", "flatten"},
    {"3,4,4", "Flatten x -> y", "! output y: found [48] per example, expected one number per class"},
    {"3,4,4", "Reshape x {0,3,16} -> y",
     "! found [3, 4, 4] made [3, 16], which mixes channels with rows or columns"},
    {"3,4,4", "Unsqueeze x {1} -> y",
     "! found [3, 4, 4] made [1, 3, 4, 4], which adds an axis to an image, expected an image to stay one, or "
     "a "
     "row"},
    {"3,1,4", "Squeeze x {2} -> y", "! found [3, 1, 4] made [3, 4], which takes an axis from an image"},
    {"3,4,4", "Reshape x {24,2} -> y",
     "! found a shape that does not keep the batch and [3, 4, 4] per example"},
    {"3,4,4",
     "Flatten x -> a; Reshape a {0,3,4,4} -> b; Conv b w[2,3,4,4] -> c; GlobalAveragePool c -> g; Flatten g "
     "-> y",
     "flatten; reshape 4x4x3; conv1 = conv 2 4x4 no_bias; global_avgpool"},
    {"16", "Reshape x {-1,1,4,4} -> b; Conv b w[2,1,4,4] -> c; GlobalAveragePool c -> g; Flatten g -> y",
     "reshape 4x4x1; conv1 = conv 2 4x4 no_bias; global_avgpool"},
    {"48", "Reshape x {-1,3,4,4} -> b; Conv b w[2,3,4,4] -> c",
     "! has its channels first only by a reshape, expected an image"},
    {"1", "Squeeze x {1} -> y", "! found no axis left but the batch, expected one or more"},
    {"1,1,1", "Squeeze x -> y", "! found no axis left but the batch, expected one or more"},
    {"4", "Mul {2} {} -> t; Reshape x t -> y", "! found 1 and 0 numbers, expected as many"},
    {"4", "Mul {} {2} -> t; Reshape x t -> y", "! found 0 and 1 numbers, expected as many"},
    /* Channels last, turned where an operator wants them. */
    {"4,4,3",
     "Transpose x -> t perm=0,3,1,2; Conv t w[2,3,1,1] -> a; Transpose a -> b perm=0,2,3,1; Flatten b -> y",
     "conv1 = conv 2 1x1 no_bias; flatten"},
    {"3,4,4", "Transpose x -> t perm=0,3,2,1", "! found perm 0, 3, 2, 1, expected 0, 3, 1, 2 or 0, 2, 3, 1"},
    /* Branches. */
    {"3,4,4",
     "Conv x u[2,3,1,1] -> a; Conv x v[4,3,1,1] -> b; Concat a b -> c axis=1; GlobalAveragePool c -> d; "
     "Flatten d -> y",
     "conv1 = conv 2 1x1 no_bias; conv2 = conv 4 1x1 no_bias input; concat conv1 conv2; global_avgpool"},
    {"3,4,4", "Relu x -> a; Concat a x -> c axis=2; GlobalAveragePool c -> g; Flatten g -> y",
     "relu; concat axis=1 input; global_avgpool"},
    {"4", "Relu x -> a; Concat a x a x a x a x a -> y axis=-1",
     "relu1 = relu; concat relu1 input relu1 input relu1 input relu1 input; concat relu1"},
    {"4", "Relu x -> a; Gemm x w[4,3] -> b; Add a b -> y", "! found [4] and [3], expected the same shape"},
    /* Activations, and those that are several nodes. */
    {"4",
     "LeakyRelu x -> a alpha=0.2; Elu a -> b; Tanh b -> c; Gelu c -> d approximate=\"tanh\"; Clip d (0.0) -> "
     "y",
     "leaky_relu 0.2; elu; tanh; gelu approximate; relu"},
    {"4", "Gemm x w[4,4] -> a; Sigmoid a -> b; Mul b a -> y", "dense1 = dense 4 no_bias silu"},
    {"4", "Div x (1.41421356) -> a; Erf a -> b; Add b (1.0) -> c; Mul x c -> d; Mul d (0.5) -> y", "gelu"},
    {"4", "Mul x (0.70710678) -> a; Erf a -> b; Mul b (0.5) -> c; Add h(0.5) c -> d; Mul d x -> y", "gelu"},
    {"4", "Div x (1.5) -> a; Erf a -> b; Add b (1.0) -> c; Mul x c -> d; Mul d (0.5) -> y",
     "! found Div by itself"},
    {"4", "LayerNormalization x n.weight[4] n.bias[4] -> y epsilon=0.001", "n = layer_norm epsilon=0.001"},
    {"4",
     "ReduceMean x -> m axes=-1,; Sub x m -> d; Pow d (2.0) -> p; ReduceMean p -> v axes=-1,; Add v (0.25) "
     "-> e; Sqrt e -> s; "
     "Div d s -> n; Mul n n.weight[4] -> g; Add g n.bias[4] -> y",
     "n = layer_norm epsilon=0.25"},
    {"3,4,4",
     "BatchNormalization x n.weight[3] n.bias[3] n.running_mean[3] n.running_var[3] -> a b c momentum=0.8; "
     "GlobalAveragePool a -> g; Flatten g -> y",
     "n = batch_norm momentum=0.8; global_avgpool"},
    {"3,4,4", "LRN x -> a size=5 alpha=0.0005; GlobalAveragePool a -> g; Flatten g -> y",
     "lrn; global_avgpool"},
    {"3,4,4", "LRN x -> a size=4", "! size: found 4, expected an odd number"},
    {"4", "Dropout x (0.25) -> a; Identity a -> y", "dropout 0.25"},
    {"4", "Softmax x -> a; Gemm a w[4,3] -> b; Softmax b -> y", "softmax; dense1 = dense 3 no_bias"},
    {"3,4,4", "Softmax x -> a axis=1; GlobalAveragePool a -> g; Flatten g -> y", "softmax; global_avgpool"},
    {"3,4,4", "Softmax x -> a",
     "! found axis -1 of [3, 4, 4] per example, expected all numbers, the channels"},
    {"3,4,4", "Softmax x -> a axis=4294967297", "! found axis 4294967297 of [3, 4, 4] per example"},
    {"4,4,3", "Transpose x -> t perm=0,3,1,2; Transpose t -> b perm=0,2,3,1; Softmax b -> c; Flatten c -> y",
     "softmax; flatten"},
    /* Each number by itself is no loss of all of them. */
    {"4", "Reshape x {-1,4,1} -> a; Softmax a -> b; Reshape b {-1,4} -> y", "reshape 4x1; softmax; flatten"},
    {"4", "Reshape x {-1,4,1} -> a; Softmax a -> y", "reshape 4x1; softmax; flatten"},
    {"4", "Reshape x {-1,2,2} -> a; LogSoftmax a -> y", "! found LogSoftmax, expected it at the end only"},
    {"6", "Cast x -> i to=7; Gather e.weight[5,3] i -> a; Flatten a -> b; Gemm b w[18,2] -> y",
     "e = embedding 5 3; flatten; dense1 = dense 2 no_bias"},
    {"6", "Cast x -> i to=10; Gather e.weight[5,3] i -> a; Flatten a -> b; Cast b -> y to=1",
     "e = embedding 5 3; flatten"},
    {"4", "Gemm x w[4,3] -> a; Cast a -> b to=7; Gemm b v[3,2] -> y",
     "! node b: found a Cast to type 7 of what the network computes, expected one to floats"},
    {"6", "Cast x -> i to=7; Gather e.weight[5,3] i -> a; Flatten a -> b; Gemm i w[6,18] -> c; Add b c -> y",
     "! node i: found a Cast to type 7"},
    {"6", "Gather e.weight[5,3] x -> a axis=1", "! found [6] per example and a table of [5, 3], expected"},
    /* What is no network of these layers. */
    {"4", "LSTM x w[4,3] -> y", "! node y: found LSTM, expected one of Conv, Gemm, MatMul, "},
    {"4", "Relu z -> y", "! node y: its input z is made by nobody"},
    {"4", "Relu b -> a; Relu a -> b; Relu b -> y", "! node a: its input b is not computed before it"},
    {"4", "Relu x -> a; Tanh x -> a", "! found the value a twice"},
    {"4", "Relu - -> y", "! node y: input 1 is missing"},
    {"4", "Add x x[4] -> y", "! found no input, expected one"},
    {"4", "Identity x -> y", "! output y: no layer makes it"},
    {"4,4,4,4", "Relu x -> y",
     "! input x: found [N, 4, 4, 4, 4], expected floats or int64 of [batch, numbers]"},
    {"3,-1,4", "Relu x -> y", "! input x: found [N, 3, ?, 4], expected floats or int64 of [batch, numbers]"},
    {"11:3,4,4", "Relu x -> y",
     "! input x: found float64 of [N, 3, 4, 4], expected floats or int64 of [batch, numbers]"},
    {"3,4,4", "Relu x -> y", "! output y: found [3, 4, 4] per example, expected one number per class"},
    {"4", "ConstantOfShape {100000,100000} -> a; Relu a -> y",
     "! its sizes are not a shape that is supported here"},
    {"4", "ConstantOfShape {20000,20000} -> w; Gemm x w -> y",
     "! found constants of more than 512 MB to compute"},
    /* 16 MB that are the weights of seven layers: more than such files have. */
    {"2000",
     "ConstantOfShape {2000,2000} -> w; Gemm x w -> a; Gemm a w -> b; Gemm b w -> c; Gemm c w -> d; "
     "Gemm d w -> e; Gemm e w -> f; Gemm f w -> y",
     "! found weights of 106 MB in files of 15 MB, expected fewer"},
};

static void test_graphs(void) {
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        struct network_file file = {0};
        struct error error = {0};
        const size_t bytes = sample_model(sample, graphs[i].shape, graphs[i].nodes, 13);
        const int code = onnx_parse(&file, "net.onnx", sample, bytes, &error);
        if (graphs[i].layers[0] == '!') {
            CHECK(code == ERROR_FILE && strncmp(error.words, "net.onnx: ", 10) == 0 &&
                      strstr(error.words, graphs[i].layers + 2),
                  "%s: code %d: %s", graphs[i].nodes, code, error.words);
        } else {
            char *text = list_text(&file.list);
            CHECK(code == OK && strcmp(text, graphs[i].layers) == 0, "%s: %s %s", graphs[i].nodes, text,
                  error.words);
            memory_free(text);
        }
        network_file_close(&file);
    }
}

/* --- weights --- */

static const struct file_array *array_of(const struct network_file *file, const char *name) {
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->arrays[i].name, name) == 0) return &file->arrays[i];
    CHECK(false, "no array %s", name);
    return NULL;
}

/* Element `place` of what is written as element i in the file, which counts up from 1 by 1/64. */
static void check_element(const struct file_array *array, size_t place, size_t i) {
    if (!array) return;
    const float wanted = 1.0f + (float)i / 64.0f, found = array->values[place];
    CHECK(found >= wanted && found <= wanted, "%s: element %zu is %g, expected %g", array->name, place,
          (double)found, (double)wanted);
}

/* Kernels OIHW -> HWIO; products after a flatten, and normalisations between, from channels, rows, columns to
 * rows, columns, channels. */
static void test_weights(void) {
    enum { FILTERS = 2, CHANNELS = 3, HEIGHT = 2, WIDTH = 4, OUT = 5, ALL = FILTERS * HEIGHT * WIDTH };
    static const char nodes[] =
        "Conv x c.weight[2,3,1,1] c.bias[2] -> a; Conv a d.weight[2,2,2,3] -> b pads=0,1,1,1; "
        "Flatten b -> f; BatchNormalization f n.weight[16] n.bias[16] n.running_mean[16] n.running_var[16] "
        "-> g; "
        "Relu g -> h; Gemm h e.weight[5,16] e.bias[5] -> y transB=1";
    struct network_file file = {0};
    struct error error = {0};
    const size_t bytes = sample_model(sample, "3,2,4", nodes, 13);
    CHECK(onnx_parse(&file, "net.onnx", sample, bytes, &error) == OK, "%s", error.words);
    CHECK(file.input.rank == 3 && file.input.dims[0] == HEIGHT && file.input.dims[2] == CHANNELS &&
              file.classes == OUT,
          "input or classes");
    const struct file_array *wide = array_of(&file, "d/kernel");
    CHECK(wide && shape_equal(&wide->shape, &SHAPE(2, 3, FILTERS, FILTERS)), "shape of d/kernel");
    for (size_t f = 0; f < FILTERS; f++)
        for (size_t c = 0; c < FILTERS; c++)
            for (size_t at = 0; at < 6; at++)
                check_element(wide, (at * FILTERS + c) * FILTERS + f, (f * FILTERS + c) * 6 + at);
    const struct file_array *dense = array_of(&file, "e/kernel"), *scale = array_of(&file, "n/variance");
    CHECK(dense && shape_equal(&dense->shape, &SHAPE(ALL, OUT)), "shape of e/kernel");
    for (size_t c = 0; c < FILTERS; c++)
        for (size_t at = 0; at < HEIGHT * WIDTH; at++) {
            const size_t there = c * HEIGHT * WIDTH + at, here = at * FILTERS + c;
            check_element(scale, here, there);
            for (size_t o = 0; o < OUT; o++) check_element(dense, here * OUT + o, o * ALL + there);
        }
    network_file_close(&file);
}

/* Becomes float32; of the same sizes as float32 it would be cut short. */
static void test_halves(void) {
    struct network_file file = {0};
    struct error error = {0};
    const size_t bytes = sample_model(sample, "4", "Gemm x w~[4,3] b~[3] -> y", 13);
    CHECK(onnx_parse(&file, "net.onnx", sample, bytes, &error) == OK, "%s", error.words);
    for (size_t i = 0; error.code == OK && i < 12; i++) check_element(array_of(&file, "dense1/kernel"), i, i);
    for (size_t i = 0; error.code == OK && i < 3; i++) check_element(array_of(&file, "dense1/bias"), i, i);
    network_file_close(&file);
}

/* --- there and back --- */

struct built {
    struct graph g;
    node x, logits;
};

static bool build(struct built *built, const struct layer_list *list, const struct shape *input,
                  int classes) {
    struct shape shape = {.rank = input->rank + 1, .dims = {2}};
    memcpy(shape.dims + 1, input->dims, (size_t)input->rank * sizeof *input->dims);
    graph_open(&built->g, false, 1);
    built->x = graph_placeholder(&built->g, "x", TYPE_FLOAT, shape);
    built->logits = layers_build(&built->g, list, built->x, classes);
    CHECK(built->g.error.code == OK, "%s", built->g.error.words);
    return built->g.error.code == OK;
}

/* Weights by name; statistics and all else that are no zeros, so that a wrong one is seen. */
static void fill_weights(const struct graph *g, float *weights) {
    for (int r = 0; r < g->layout.count; r++) {
        const struct range *range = &g->layout.ranges[r];
        fill_between(weights + range->begin, range->floats, (uint64_t)r + 1, 0.1f, 0.9f);
    }
}

static void take_weights(const struct graph *g, const struct network_file *file, float *weights) {
    CHECK(file->count == g->layout.count, "%d arrays, expected %d", file->count, g->layout.count);
    for (int i = 0; i < file->count; i++) {
        const struct file_array *array = &file->arrays[i];
        const struct range *range = layout_find(&g->layout, array->name);
        CHECK(range && shape_equal(&range->shape, &array->shape), "no weights %s of its shape", array->name);
        if (range) memcpy(weights + range->begin, array->values, range->floats * sizeof *weights);
    }
}

/* The file that trainer export writes of a network with these weights. */
static size_t export_sample(const struct built *built, float *weights) {
    const struct format *format = NULL;
    struct restored restored = {.weights = weights};
    const struct network network = {.graph = built->g, .x = built->x, .logits = built->logits};
    struct layers_of layers;
    struct error error = {0};
    CHECK(export_format(&format, "net.onnx", &error) == OK, "%s", error.words);
    CHECK(layers_of_open(&layers, &network, &error) == OK, "%s", error.words);
    FILE *file = tmpfile();
    size_t bytes = 0;
    if (file && format && error.code == OK) {
        const struct exported exported = {.restored = &restored, .layers = &layers};
        CHECK(format->write(file, &exported, &error) == OK, "%s", error.words);
        rewind(file);
        bytes = fread(sample, 1, sizeof sample, file);
    }
    if (file) fclose(file);
    layers_of_close(&layers);
    return bytes;
}

static void check_round_trip(const char *text, const struct shape *input) {
    enum { CLASSES = 4 };
    struct layer_list list;
    struct built first, again;
    struct session before, after;
    struct network_file file = {0};
    struct error error = {0};
    float x[2 * 8 * 8 * 3];
    CHECK(layers_parse(&list, "text", text, strlen(text), ERROR_FILE, &error) == OK, "%s", error.words);
    if (!build(&first, &list, input, CLASSES)) return;
    session_open(&before, &first.g, &first.logits, 1);
    fill_weights(&first.g, before.weights);
    const size_t bytes = export_sample(&first, before.weights);
    CHECK(onnx_parse(&file, "net.onnx", sample, bytes, &error) == OK, "%s: %s", text, error.words);
    char *found = list_text(&file.list);
    CHECK(strcmp(found, text) == 0, "found %s, expected %s", found, text);
    CHECK(file.classes == CLASSES && shape_equal(&file.input, input), "%s: its input or classes", text);
    if (build(&again, &file.list, input, CLASSES)) {
        session_open(&after, &again.g, &again.logits, 1);
        take_weights(&again.g, &file, after.weights);
        CHECK(memcmp(before.weights, after.weights, first.g.layout.floats * sizeof(float)) == 0,
              "%s: weights", text);
        fill_between(x, sizeof x / sizeof *x, 7, -1.0f, 1.0f);
        session_feed(&before, first.x, x);
        session_feed(&after, again.x, x);
        session_run(&before);
        session_run(&after);
        CHECK(memcmp(session_value(&before, first.logits), session_value(&after, again.logits),
                     2 * CLASSES * sizeof(float)) == 0,
              "%s: logits", text);
        session_close(&after);
    }
    graph_close(&again.g);
    session_close(&before);
    graph_close(&first.g);
    memory_free(found);
    network_file_close(&file);
    layers_close(&list);
}

static void test_round_trips(void) {
    static const struct shape image = {3, {8, 8, 3}}, row = {1, {64}};
    check_round_trip("conv1 = conv 5 3x3 same relu; maxpool 2; conv2 = conv 6 2x3 stride=2x1 gelu; avgpool "
                     "2x3 stride=1 same; flatten; "
                     "dense1 = dense 7 tanh; norm1 = batch_norm sigmoid; dense2 = dense 4",
                     &image);
    check_round_trip("stem = conv 4 3x3 same no_bias; norm = batch_norm epsilon=0.001 relu; pad 1x2; conv2 = "
                     "conv 4 3x5 silu; add1 = add norm; "
                     "conv3 = conv 3 1x1 leaky_relu; lrn radius=3 alpha=0.002; concat add1; "
                     "global_avgpool; last = dense 4",
                     &image);
    check_round_trip("dense1 = dense 9 elu; layer_norm1 = layer_norm; dense2 = dense 4 no_bias", &row);
    check_round_trip("depthwise1 = depthwise 3x2 2 same relu6; global_avgpool; dense1 = dense 4 relu; dense2 "
                     "= dense 6 hard_sigmoid; "
                     "reshape 1x1x6; multiply depthwise1; depthwise2 = depthwise 2x2 stride=2 no_bias "
                     "hard_swish; global_maxpool; dense3 = dense 4",
                     &image);
    check_round_trip("conv1 = conv 5 3x3; softmax; flatten; dense1 = dense 4", &image);
    check_round_trip("reshape 4x16; softmax; flatten; dense1 = dense 4", &row);
    check_round_trip("x = dense 5; logits = dense 6 gelu; logits/kernel = dense 7; outputs = dense 8; "
                     "probabilities = dense 4",
                     &row);
    check_round_trip("reshape 8x8x1; conv1 = conv 2 5x5 relu; flatten; dense1 = dense 4", &row);
}

/* --- bytes --- */

/* Cut anywhere, a file is refused or, behind its last field, the same. */
static void test_cut_files(void) {
    static const char nodes[] = "Conv x w[2,3,3,3] -> a; Flatten a -> y";
    const size_t bytes = sample_model(sample, "3,8,8", nodes, 13);
    for (size_t length = 1; length < bytes; length++) {
        struct network_file file = {0};
        struct error error = {0};
        const int code = onnx_parse(&file, "net.onnx", sample, length, &error);
        CHECK(code == ERROR_FILE && *error.words, "%zu of %zu bytes: code %d", length, bytes, code);
        network_file_close(&file);
    }
}

/* A node behind a cast that has no operator: its name is there as a note instead. */
static void test_no_operator(void) {
    enum { OPERATOR = 4 << 3 | 2, NOTE = 6 << 3 | 2 };
    const size_t bytes = sample_model(sample, "4", "Cast x -> a to=7; Gemm a w[4,2] -> y", 13);
    struct network_file file = {0};
    struct error error = {0};
    int changed = 0;
    for (size_t i = 2; i + 4 <= bytes; i++) {
        if (memcmp(sample + i, "Gemm", 4) != 0 || sample[i - 2] != OPERATOR) continue;
        sample[i - 2] = NOTE;
        changed++;
    }
    CHECK(changed == 1, "%d operators", changed);
    CHECK(onnx_parse(&file, "net.onnx", sample, bytes, &error) == ERROR_FILE &&
              strstr(error.words, "found a Cast to type 7"),
          "%s", error.words);
    network_file_close(&file);
}

/* Empty messages, of two bytes each, would take a hundred times as much memory. */
static void test_many_parts(void) {
    enum { PARTS = 4 << 20 };
    struct network_file file = {0};
    struct error error = {0};
    uint8_t *bytes = NULL;
    CHECK(memory_array(&bytes, 2 * PARTS, "parts", &error) == OK, "%s", error.words);
    for (size_t i = 0; bytes && i < PARTS; i++) bytes[2 * i] = 8 << 3 | 2;
    CHECK(onnx_parse(&file, "net.onnx", bytes, 2 * PARTS, &error) == ERROR_FILE &&
              strstr(error.words, "small parts"),
          "%s", error.words);
    network_file_close(&file);
    memory_free(bytes);
}

/* Weights in a file beside the model: only there, and as many as they should be. */
static void test_data_elsewhere(void) {
    static const struct {
        const char *nodes, *words; /* NULL: it is read */
    } known[] = {{"Gemm x w<data[3,2] -> y", NULL},
                 {"Gemm x w<data[3,2] -> a; Gemm a v<data[2,2] -> y", NULL},
                 {"Gemm x w<data[3,3] -> y", "found 36 bytes from 8 on in data of 32, expected 36"},
                 {"Gemm x w<none[3,2] -> y", "the data of tensor w<none: "},
                 {"Gemm x w<../data[3,2] -> y", "found its data in another folder"},
                 {"Gemm x w</data[3,2] -> y", "found its data in another folder"}};
    char folder[] = "/tmp/onnx-XXXXXX", path[60];
    const float data[8] = {9.0f, 9.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
    CHECK(mkdtemp(folder) != NULL, "no folder");
    snprintf(path, sizeof path, "%s/data", folder);
    FILE *made = fopen(path, "wb");
    CHECK(made && fwrite(data, 1, sizeof data, made) == sizeof data && fclose(made) == 0, "no file");
    snprintf(path, sizeof path, "%s/net.onnx", folder);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct network_file file = {0};
        struct error error = {0};
        const size_t bytes = sample_model(sample, "3", known[i].nodes, 13);
        const int code = onnx_parse(&file, path, sample, bytes, &error);
        CHECK(code == (known[i].words ? ERROR_FILE : OK) &&
                  (!known[i].words || strstr(error.words, known[i].words)),
              "%s: %s", known[i].nodes, error.words);
        CHECK(code != OK || memcmp(file.arrays[0].values, data + 2, 6 * sizeof *data) == 0,
              "%s: other numbers", known[i].nodes);
        network_file_close(&file);
    }
    snprintf(path, sizeof path, "%s/data", folder);
    CHECK(remove(path) == 0 && rmdir(folder) == 0, "%s stays", folder);
}

static void test_versions(void) {
    for (int opset = 1; opset < 40; opset++) {
        struct network_file file = {0};
        struct error error = {0};
        const size_t bytes = sample_model(sample, "4", "Relu x -> y", opset);
        const int code = onnx_parse(&file, "net.onnx", sample, bytes, &error);
        CHECK((code == OK) == (opset >= 6 && opset <= 26) && (code == OK || strstr(error.words, "opset")),
              "opset %d: %s", opset, error.words);
        network_file_close(&file);
    }
}

static void test_other_operators(void) {
    struct network_file file = {0};
    struct error error = {0};
    const size_t bytes = sample_model(sample, "4", "Relu x -> y", -3);
    CHECK(onnx_parse(&file, "net.onnx", sample, bytes, &error) == ERROR_FILE &&
              strcmp(error.words,
                     "net.onnx: found operators of the domain ai.onnx.ml, expected those of ONNX "
                     "itself, opset 6 to 26") == 0,
          "%s", error.words);
    network_file_close(&file);
}

/* --- what another program computes --- */

/* A file of so many floats or ints. */
static void read_raw(const char *path, void *out, size_t bytes) {
    FILE *file = fopen(path, "rb");
    CHECK(file && fread(out, 1, bytes, file) == bytes && getc(file) == EOF, "%s: expected %zu bytes", path,
          bytes);
    if (file) fclose(file);
}

/* The largest difference, beside the largest of the numbers that are wanted. */
static double worst(const float *found, const float *wanted, size_t count) {
    double difference = 0.0, largest = 1e-30;
    for (size_t i = 0; i < count; i++) {
        difference = fmax(difference, fabs((double)found[i] - (double)wanted[i]));
        largest = fmax(largest, fabs((double)wanted[i]));
    }
    return difference / largest;
}

/* Logits without training, or the gradients of the mean loss with it, of which `wanted` has the weights'
 * names and layouts. */
static void check_computed(const struct network_file *file, const char *const paths[3], int batch,
                           const struct network_file *gradients) {
    const bool training = gradients != NULL;
    struct shape shape = {.rank = file->input.rank + 1, .dims = {batch}};
    struct graph g;
    struct session s;
    node targets[400], fetches[400];
    int count = 0;
    memcpy(shape.dims + 1, file->input.dims, (size_t)file->input.rank * sizeof *file->input.dims);
    graph_open(&g, training, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, shape),
               labels = graph_placeholder(&g, "labels", TYPE_INT, SHAPE(batch));
    const node y = layers_build(&g, &file->list, x, file->classes);
    const node loss = graph_reduce_mean(&g, graph_softmax_cross_entropy(&g, y, labels), ALL_AXES, false);
    for (node n = 0; n < g.count && count < 400; n++)
        if (g.nodes[n].op == OP_variable &&
            g.layout.ranges[g.nodes[n].attributes.variable].kind == RANGE_TRAINABLE)
            targets[count++] = n;
    if (training) graph_gradients(&g, loss, targets, count, fetches);
    if (!training) count = 1, fetches[0] = y;
    CHECK(g.error.code == OK, "%s", g.error.words);
    session_open(&s, &g, fetches, count);
    take_weights(&g, file, s.weights);
    read_raw(paths[0], arena_address(s.arena, x), shape_count(&shape) * sizeof(float));
    if (training) read_raw(paths[1], arena_address(s.arena, labels), (size_t)batch * sizeof(int));
    session_run(&s);
    for (int i = 0; training && i < gradients->count; i++) {
        const struct file_array *wanted = &gradients->arrays[i];
        const struct range *range = layout_find(&g.layout, wanted->name);
        CHECK(range, "no weights %s", wanted->name);
        if (!range || range->kind != RANGE_TRAINABLE) continue;
        const double off = worst(s.gradients + range->begin, wanted->values, range->floats);
        CHECK(off < 1e-4, "gradient of %s: %g off", wanted->name, off);
    }
    if (!training) {
        const size_t numbers = (size_t)batch * (size_t)file->classes;
        float *wanted = NULL;
        CHECK(memory_array(&wanted, numbers, "logits", &s.error) == OK, "%s", s.error.words);
        read_raw(paths[2], wanted, numbers * sizeof *wanted);
        const double off = worst(session_value(&s, y), wanted, numbers);
        CHECK(off < 1e-5, "logits: %g off", off);
        memory_free(wanted);
    }
    session_close(&s);
    graph_close(&g);
}

/* NET.onnx X LABELS LOGITS BATCH [GRADIENTS.onnx], all but the networks as raw numbers: another program's
 * logits and the first gradients, which it wrote as if they were weights. */
static int check_client(int count, char **arguments) {
    const char *const paths[3] = {arguments[2], arguments[3], arguments[4]};
    struct network_file file, gradients;
    struct error error = {0};
    const int batch = atoi(arguments[5]);
    CHECK(network_file_open(&file, arguments[1], &error) == OK, "%s", error.words);
    if (error.code == OK) check_computed(&file, paths, batch, NULL);
    if (error.code == OK && count > 6) {
        CHECK(network_file_open(&gradients, arguments[6], &error) == OK, "%s", error.words);
        if (error.code == OK) check_computed(&file, paths, batch, &gradients);
        network_file_close(&gradients);
    }
    network_file_close(&file);
    return check_end();
}

int main(int count, char **arguments) {
    if (count > 5) return check_client(count, arguments);
    test_graphs();
    test_weights();
    test_halves();
    test_round_trips();
    test_cut_files();
    test_no_operator();
    test_many_parts();
    test_data_elsewhere();
    test_versions();
    test_other_operators();
    return check_end();
}
