/* From an ONNX graph to layers: what the files of src/imports/onnx_*.c share that make them. Each operator
 * has one function, which takes the flows of its inputs and gives its output a flow. Images are channels,
 * rows, columns there, and rows, columns, channels here; a flow knows how its elements lie. */
#ifndef TRAINER_IMPORTS_ONNX_LAYERS_H
#define TRAINER_IMPORTS_ONNX_LAYERS_H

#include "../graph/network_file.h"
#include "../graph/window.h"
#include "onnx_graph.h"

/* A layer that takes several nodes there; what begins or lies within it is no layer of its own. */
struct onnx_pattern {
    enum layer_kind kind; /* LAYER_NONE: the node is none's last */
    const onnx_op *first; /* the layer takes its input number `x` */
    size_t x;
    const onnx_op *scale_node; /* layer_norm: its input `scale`; the last node's `shift` */
    size_t scale, shift;
    int64_t axis; /* layer_norm: of means */
    float epsilon;
};

struct onnx_reading {
    struct onnx_graph graph;
    struct network_file *file;
    struct onnx_pattern *patterns; /* [nodes] of their last nodes */
    bool *inside;                  /* [nodes] it is within a pattern */
    size_t length, taken;          /* bytes of the file, and of the arrays that were made */
};

typedef int onnx_layer(struct onnx_reading *reading, const onnx_op *op);

/* Reads the network out of an unpacked model, whose file has so many bytes. Errors: ERROR_FILE; ERROR_DEVICE
 * (memory). */
int onnx_layers_read(struct network_file *file, const Onnx__ModelProto *model, const char *path,
                     size_t length, struct error *error);

/* --- onnx_patterns.c --- */

/* Marks the nodes of all patterns. */
int onnx_find_patterns(struct onnx_reading *reading);

/* Whether a HardSigmoid has the slope that the layer has. */
bool onnx_is_hard_sigmoid(const onnx_op *op);

/* --- onnx_nodes.c --- */

/* The layers of a node; what it is not is said with what it could be. */
onnx_layer onnx_translate;

/* The layer of a pattern, at its last node. */
int onnx_translate_pattern(struct onnx_reading *reading, const onnx_op *op,
                           const struct onnx_pattern *pattern);

/* --- onnx_shapes.c --- */

onnx_layer onnx_flatten, onnx_reshape_node, onnx_squeeze, onnx_unsqueeze, onnx_transpose, onnx_concat,
    onnx_add, onnx_mul;

/* --- onnx_flow.c --- */

/* Input i as a flow. NULL: onnx_wrong. */
const struct onnx_flow *onnx_flow(const struct onnx_reading *reading, const onnx_op *op, size_t i);

/* A layer that takes these; its name is given later. NULL: too many. */
struct layer *onnx_add_layer(struct onnx_reading *reading, const onnx_op *op, enum layer_kind kind,
                             const struct onnx_flow *const *flows, int count);

/* The node's output 0 is what the last layer gives: `flow`, of which `layer`, `sole` and `at_least_zero` are
 * seen to here. Errors: sizes that are too large; an attribute out of its range. */
int onnx_end_layer(struct onnx_reading *reading, const onnx_op *op, const struct onnx_flow *flow);

/* The node's output 0 is the same as a flow. */
int onnx_pass(struct onnx_reading *reading, const onnx_op *op, const struct onnx_flow *flow);

/* A flow with another shape there, of as many elements: a reshape where a row is needed, or nothing. */
int onnx_reshape(struct onnx_reading *reading, const onnx_op *op, const struct onnx_flow *from,
                 const struct shape *theirs);

/* *flow as an image {rows, columns, channels} of what is channels, rows, columns there; as one row of
 * numbers; or as the same shape here and there. A reshape or flatten is added where it is needed. Errors: it
 * is none. */
int onnx_as_image(struct onnx_reading *reading, const onnx_op *op, struct onnx_flow *flow);
int onnx_as_row(struct onnx_reading *reading, const onnx_op *op, struct onnx_flow *flow);
int onnx_as_it_is(struct onnx_reading *reading, const onnx_op *op, struct onnx_flow *flow);

/* Whether it lies here as an image of what is channels, rows, columns there. */
bool onnx_is_image(const struct onnx_flow *flow);

/* *flow = an image of which the elements lie as rows, columns, channels here. */
void onnx_lay_image(struct onnx_flow *flow, int rows, int columns, int channels);

/* Where element i of a row there is here. */
size_t onnx_place(const struct onnx_flow *flow, size_t i);

/* The shortest decimal number that is the float x once it is times `scale`. */
double onnx_shortest(float x, float scale);

/* --- onnx_weights.c --- */

onnx_layer onnx_conv, onnx_gemm, onnx_matmul, onnx_gather, onnx_batch_norm, onnx_layer_norm;

/* The same of a pattern. */
int onnx_layer_norm_of(struct onnx_reading *reading, const onnx_op *op, const struct onnx_pattern *pattern);

/* Whether an Add is of a constant: then it becomes the bias of the layer before it. */
int onnx_add_bias(struct onnx_reading *reading, const onnx_op *op, bool *done);

/* --- onnx_windows.c --- */

/* Windows over an image. */
struct onnx_windows {
    int window[2], stride[2];
    int pads[4]; /* before rows and columns, then after */
    bool ceil;   /* a last window that does not fit whole is there, too; `pads` have what it lacks */
    enum padding padding;
};

/* The attributes of a node over the image x. `kernel`: the windows of weights, which the attributes may
 * repeat; NULL: they are needed. Errors: dilations, windows that do not fit. */
int onnx_read_windows(struct onnx_reading *reading, const onnx_op *op, const int *kernel,
                      const struct onnx_flow *x, struct onnx_windows *windows);

/* Whether the pads are those of TensorFlow's "same", or none at all; then `padding` says so. */
bool onnx_pads_are_usual(struct onnx_windows *windows, const struct onnx_flow *x);

/* Makes other pads a layer of zeros, which *x then is. */
int onnx_add_zeros(struct onnx_reading *reading, const onnx_op *op, struct onnx_windows *windows,
                   struct onnx_flow *x);

/* Gives the layer its windows, strides and padding, and lays out *flow for what it makes of x. */
void onnx_set_windows(const struct onnx_windows *windows, const struct onnx_flow *x, int channels,
                      struct layer *layer, struct onnx_flow *flow);

onnx_layer onnx_maxpool, onnx_avgpool, onnx_pad;

#endif
