/* Fuzzing of ONNX files: clang -fsanitize=fuzzer,address over this file and the library. Starts from models
 * of every operator. What is accepted can be written as text and read as the same; it becomes a graph, whose
 * weights are those of the file, by name and shape. */
#include <string.h>
#include "../src/base/finite.h"
#include "../src/base/memory.h"
#include "../src/graph/layers_text.h"
#include "../src/imports/onnx_model.h"
#include "fuzz.h"
#include "onnx_sample.h"

enum { NETWORKS, GRAPHS };
static const char *const names[] = {"networks", "graphs", NULL};

/* Layers of a text are what they were. */
static void check_text(const struct layer_list *list) {
    struct error error = {0};
    struct layer_list again;
    struct text text[2] = {text_growing(&error), text_growing(&error)};
    layers_write(list, "; ", &text[0]);
    fuzz_require(text_end(&text[0]) == OK);
    fuzz_require(layers_parse(&again, "f", text[0].bytes, text[0].used, ERROR_INTERNAL, &error) == OK);
    layers_write(&again, "; ", &text[1]);
    fuzz_require(text_end(&text[1]) == OK && strcmp(text[0].bytes, text[1].bytes) == 0);
    layers_close(&again);
    for (int i = 0; i < 2; i++) memory_free(text[i].bytes);
}

/* Only the graph: no memory is taken for its values. One that is too large is refused. */
static void check_graph(const struct network_file *file) {
    struct shape shape = {.rank = file->input.rank + 1, .dims = {2}};
    struct graph g;
    memcpy(shape.dims + 1, file->input.dims, (size_t)file->input.rank * sizeof *file->input.dims);
    graph_open(&g, true, 1);
    const node y =
        layers_build(&g, &file->list, graph_placeholder(&g, "x", TYPE_FLOAT, shape), file->classes);
    if (y == NONE) {
        fuzz_require(*g.error.words);
        graph_close(&g);
        return;
    }
    fuzz.accepted[GRAPHS]++;
    fuzz_require(file->count == g.layout.count);
    for (int i = 0; i < file->count; i++) {
        const struct file_array *array = &file->arrays[i];
        const struct range *range = layout_find(&g.layout, array->name);
        fuzz_require(range && shape_equal(&range->shape, &array->shape));
        fuzz_require(all_finite(array->values, range->floats));
    }
    graph_close(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct network_file file = {0};
    struct error error = {0};
    fuzz_count(names);
    const int code = onnx_parse(&file, "f", data, bytes, &error);
    fuzz_require(code == OK || (code == ERROR_FILE && *error.words && !strpbrk(error.words, "\n\r\033")));
    if (code == OK) {
        fuzz.accepted[NETWORKS]++;
        check_text(&file.list);
        check_graph(&file);
    }
    network_file_close(&file);
    return 0;
}

static const struct {
    const char *shape, *nodes;
} samples[] = {
    {"3,8,8", "Conv x c.weight[2,3,3,3] c.bias[2] -> a pads=1,0,1,2 strides=2,1; BatchNormalization a n.w[2] "
              "n.b[2] n.m[2] n.v[2] -> b; "
              "Relu b -> c; MaxPool c -> d kernel_shape=3,3 strides=2,2 pads=1,1,1,1; Shape d -> s; Gather s "
              "{0} -> n; "
              "Concat n {-1} -> t axis=0; Reshape d t -> f; Gemm f g[3,32] h[3] -> y transB=1"},
    {"3,8,8", "Conv x u[4,3,1,1] -> a; Conv x v[4,3,3,3] -> b auto_pad=\"SAME_UPPER\"; Add a b -> c; Concat "
              "c b x -> d axis=1; "
              "LRN d -> e size=5 alpha=0.001; AveragePool e -> f kernel_shape=2,2 strides=2,2; "
              "GlobalAveragePool f -> g; "
              "Squeeze g {2,3} -> h; Gemm h w[11,3] -> i; Softmax i -> y"},
    {"6,6,2",
     "Transpose x -> t perm=0,3,1,2; Pad t {0,0,1,1,0,0,2,0} -> p; Clip p (0.0) -> c; Transpose c -> l "
     "perm=0,2,3,1; "
     "ReduceMean l -> m axes=1,2 keepdims=0; MatMul m w[2,4] -> z; Add z b[4] -> q; Elu q -> y alpha=0.5"},
    {"8", "Unsqueeze x {1,2} -> u; Reshape u {0,1,2,4} -> r; Conv r w[3,1,2,2] -> c; Flatten c -> f; Dropout "
          "f (0.25) -> y"},
    {"8", "Div x (1.41421356) -> a; Erf a -> b; Add b (1.0) -> c; Mul x c -> d; Mul d h(0.5) -> e; Sigmoid e "
          "-> f; Mul e f -> g; "
          "ReduceMean g -> m axes=-1,; Sub g m -> n; Mul n n -> o; ReduceMean o -> p axes=-1,; Add p (0.25) "
          "-> q; Sqrt q -> r; Div n r -> s; "
          "Mul s t.weight[8] -> u; Add u t.bias[8] -> v; LayerNormalization v z.weight[8] z.bias[8] -> y"},
    {"4", "ConstantOfShape {3,4} -> w; Cast w -> w1 to=1; Gemm x w1 -> y transB=1"},
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    static uint8_t made[SAMPLE_BYTES];
    if (seed % 16 == 0) {
        const size_t i = seed / 16 % (sizeof samples / sizeof *samples);
        const size_t count =
            sample_model(made, samples[i].shape, samples[i].nodes, 13 + (int)(seed / 256 % 2) * 7);
        if (count <= most) memcpy(data, made, bytes = count);
        if (seed / 16 % 4 == 0) return bytes;
    }
    return LLVMFuzzerMutate(data, bytes, most);
}
