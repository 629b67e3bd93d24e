/* trainer describe: a model as a table: layers, shapes, parameters, multiply-adds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/page.h"
#include "../base/text.h"
#include "../data/dataset.h"
#include "../graph/model.h"
#include "../engine/network.h"
#include "../record/progress.h"
#include "command.h"

enum { ARRAYS_INDENT = 15 };

struct describe_settings {
    char model[PLUGIN_TEXT_BYTES], dataset[1024], data_dir[1024], input[64];
    int classes;
};

static const struct option rows[] = {
    OPTION_ROW(TEXT, "model", struct describe_settings, model, .fallback = "mlp", .value = "NAME",
               .typed = model_typed,
               .help = "the network, with its settings after a colon, or its layers, as in layers:FILE"),
    OPTION_ROW(TEXT, "dataset", struct describe_settings, dataset, .fallback = "digits", .value = "NAME",
               .help = "the data set, for the shape of the input and the number of classes"),
    OPTION_ROW(TEXT, "data-dir", struct describe_settings, data_dir, .value = "DIR",
               .help = "look for data sets here first"),
    OPTION_ROW(TEXT, "input", struct describe_settings, input, .value = "SHAPE",
               .help = "shape of an example, instead of a data set's, as in 784 or 28x28x1"),
    OPTION_ROW(INT, "classes", struct describe_settings, classes, .fallback = "10", .least = 1,
               .most = 1000000, .help = "number of classes, with --input"),
    {0},
};

static int parse_input(const char *text, struct shape *shape, struct error *error) {
    const char *at = text;
    *shape = (struct shape){0};
    while (*at) {
        char *end = NULL;
        const long dim = strtol(at, &end, 10);
        if (end == at || dim < 1 || dim > 100000 || shape->rank >= MAX_RANK - 1 ||
            (*end != '\0' && *end != 'x'))
            return error_set(error, ERROR_USAGE, "--input=%s: expected sizes joined by 'x', as in 28x28x1",
                             text);
        shape->dims[shape->rank++] = (int)dim;
        at = *end == 'x' ? end + 1 : end;
    }
    return OK;
}

static bool is_variable(const struct graph *g, node n) {
    return g->nodes[n].op == OP_variable;
}

/* Of the operations that a layer normalisation is made of, the one that takes its first variable. */
static bool is_layer_norm(const struct graph *g, const struct node_info *info) {
    return info->op == OP_mul && is_variable(g, info->input[1]);
}

/* The operand that is the first variable of a layer with weights; 0: it is none. */
static int variable_of(const struct graph *g, const struct node_info *info) {
    switch (info->op) {
    case OP_matmul:
    case OP_conv2d:
    case OP_embedding:
        return 1;
    case OP_batch_norm:
        return 2;
    default:
        return is_layer_norm(g, info) ? 1 : 0;
    }
}

/* Operations that are layers by themselves. */
static bool is_named_as_layer(enum op op) {
    static const enum op layers[] = {OP_relu,       OP_sigmoid,    OP_tanh,   OP_gelu,    OP_gelu_tanh,
                                     OP_silu,       OP_leaky_relu, OP_elu,    OP_relu6,   OP_hard_sigmoid,
                                     OP_hard_swish, OP_maxpool,    OP_lrn,    OP_avgpool, OP_dropout,
                                     OP_concat,     OP_pad,        OP_softmax};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (layers[i] == op) return true;
    return false;
}

/* The sum of two branches: a bias is a variable, and has another shape. */
static bool is_sum(const struct graph *g, const struct node_info *info) {
    if (info->op != OP_add) return false;
    const struct node_info *a = &g->nodes[info->input[0]], *b = &g->nodes[info->input[1]];
    return shape_equal(&a->shape, &b->shape) && a->op != OP_variable && b->op != OP_variable;
}

/* The product of two branches; the products of a layer normalisation are none. */
static bool is_product(const struct graph *g, const struct node_info *info) {
    if (info->op != OP_mul || info->input[0] == info->input[1]) return false;
    const struct node_info *a = &g->nodes[info->input[0]], *b = &g->nodes[info->input[1]];
    return a->shape.rank == b->shape.rank && b->op != OP_variable && b->op != OP_pow;
}

/* Over all pixels of a channel: rows and columns are one axis then. */
static bool is_global_pool(const struct graph *g, const struct node_info *info) {
    if (info->op != OP_reduce_mean && info->op != OP_reduce_max) return false;
    const struct node_info *pixels = &g->nodes[info->input[0]];
    return pixels->op == OP_reshape && pixels->shape.rank == 3 && info->shape.rank == 2 &&
           g->nodes[pixels->input[0]].shape.rank == 4;
}

/* Nodes worth a line: those that people call layers. The batch is left out of their shapes. */
static bool is_layer(const struct network *network, node n) {
    const struct graph *g = &network->graph;
    const struct node_info *info = &g->nodes[n];
    if (info->op == OP_placeholder) return n == network->x;
    return variable_of(g, info) > 0 || is_named_as_layer(info->op) || is_sum(g, info) ||
           is_product(g, info) || is_global_pool(g, info);
}

/* On a terminal that is too narrow for them the arrays go on below, in their own column. */
static void print_line(const char *row, const char *arrays) {
    const struct page page = page_of_rows(stdout);
    const int column = (int)strlen(row) + 2;
    if (arrays[0] == '\0')
        puts(row);
    else
        page_row(&page, row, column + (int)strlen(arrays) <= page.columns ? column : ARRAYS_INDENT, arrays);
}

static void print_row(const char *layer, const char *output, size_t parameters, double multiply_adds,
                      const char *arrays) {
    char row[160];
    snprintf(row, sizeof row, "%-14s %-14s %12zu %14.0f", layer, output, parameters, multiply_adds);
    print_line(row, arrays);
}

static const char *layer_name(const struct graph *g, const struct node_info *info, bool depthwise) {
    if (is_layer_norm(g, info)) return "layer_norm";
    switch (info->op) {
    case OP_matmul:
        return "dense";
    case OP_conv2d:
        return depthwise ? "depthwise" : "conv";
    case OP_placeholder:
        return "input";
    case OP_mul:
        return "multiply";
    case OP_reduce_mean:
        return "global_avgpool";
    case OP_reduce_max:
        return "global_maxpool";
    default:
        return op_name(info->op);
    }
}

static void print_layer(const struct graph *g, node n) {
    const struct node_info *info = &g->nodes[n];
    struct shape shape = {.rank = info->shape.rank - 1};
    char text[64], names[160];
    struct text arrays = text_into(names, sizeof names);
    size_t parameters = 0;
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = info->shape.dims[i + 1];
    node variable = variable_of(g, info) > 0 ? info->input[variable_of(g, info)] : NONE;
    const bool depthwise = info->op == OP_conv2d && g->nodes[variable].op == OP_reshape;
    if (depthwise) variable = g->nodes[variable].input[0];
    if (variable != NONE && g->nodes[variable].op == OP_variable) {
        const struct range *kernel = &g->layout.ranges[g->nodes[variable].attributes.variable];
        const char *slash = strrchr(kernel->name, '/');
        const int length = slash ? (int)(slash - kernel->name) : (int)strlen(kernel->name);
        for (int i = 0; i < g->layout.count; i++) {
            const struct range *range = &g->layout.ranges[i];
            if (strncmp(range->name, kernel->name, (size_t)length) != 0 || range->name[length] != '/')
                continue;
            char of[64];
            text_item(&arrays, ", ", "%s %s", range->name, shape_text(&range->shape, of, sizeof of));
            parameters += range->floats;
        }
    }
    print_row(layer_name(g, info, depthwise), shape_text(&shape, text, sizeof text), parameters,
              graph_multiply_adds(g, n), names);
}

/* codes: NULL: there are none. */
static int describe(const struct choice *model, const struct shape *shape, const struct codes *codes,
                    int classes, struct error *error) {
    struct network network;
    const struct network_settings settings = {.model = model,
                                              .shape = *shape,
                                              .codes = codes ? *codes : (struct codes){0},
                                              .classes = classes,
                                              .batch = 1,
                                              .shards = 1,
                                              .training = true /* with dropout */};
    int code = network_open(&network, &settings, error);
    if (code == OK) {
        double multiply_adds = 0.0;
        print_line("layer          output           parameters  multiply-adds", "arrays");
        for (node n = 0; n <= network.logits; n++) {
            multiply_adds += graph_multiply_adds(&network.graph, n);
            if (is_layer(&network, n)) print_layer(&network.graph, n);
        }
        const struct layout *layout = &network.graph.layout;
        char bytes[64];
        snprintf(bytes, sizeof bytes, "%zu bytes as float32", layout->parameters * 4);
        print_row("all", "", layout->parameters, multiply_adds, bytes);
    }
    network_close(&network);
    return code;
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    (void)arguments, (void)argument_count;
    const struct describe_settings *settings = settings_given;
    struct choice model = {0}, choice = {0};
    struct dataset dataset = {0};
    struct shape shape = {0};
    int classes = settings->classes;
    char input[80];
    RETURN_IF(plugin_choose(&model, &model_kind, settings->model, error));
    if (settings->input[0]) {
        RETURN_IF(parse_input(settings->input, &shape, error));
        snprintf(input, sizeof input, "--input=%s", settings->input);
        RETURN_IF(network_fits(&model, &shape, false, input, error));
        return describe(&model, &shape, NULL, classes, error);
    }
    RETURN_IF(plugin_choose(&choice, &dataset_kind, settings->dataset, error));
    int code = dataset_open(&dataset, &choice, settings->data_dir[0] ? settings->data_dir : NULL, error);
    if (code == OK) progress_warn_of(dataset.notice);
    if (code == OK) code = network_fits(&model, &dataset.shape, dataset.measured, settings->dataset, error);
    if (code == OK) code = describe(&model, &dataset.shape, &dataset.codes, dataset.classes, error);
    dataset_close(&dataset);
    return code;
}

const struct command command_describe = {
    .plugin = {.name = "describe",
               .help = "show a model: layers, shapes, parameters, multiply-adds",
               .options = rows,
               .settings_bytes = sizeof(struct describe_settings)},
    .examples = "trainer describe --model=mlp:hidden=100 --input=784 --classes=10\n",
    .run = run,
};
