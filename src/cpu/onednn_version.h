/* One interface to oneDNN 2 and oneDNN 3, for what differs between them: memory descriptors, and making a
 * primitive. Only onednn_version.c knows the version. */
#ifndef TRAINER_CPU_ONEDNN_VERSION_H
#define TRAINER_CPU_ONEDNN_VERSION_H

#include <oneapi/dnnl/dnnl.h>
#include "../graph/graph.h"

/* How an array lies in memory, or, with `any`, that oneDNN may choose how. Two floats that are neighbours
 * along axis i are strides[i] elements apart. */
struct onednn_form {
    int rank;                  /* at least 1 */
    dnnl_dims_t dims, strides; /* [rank], in oneDNN's order of axes */
    dnnl_data_type_t type;
    bool any; /* strides count for nothing */
};

enum onednn_kind {
    ONEDNN_MATMUL, /* y = activation(x kernel + bias) */
    ONEDNN_CONVOLUTION,
    ONEDNN_CONVOLUTION_GRAD_X,
    ONEDNN_CONVOLUTION_GRAD_KERNEL,
};

/* The operation that a primitive is to compute; of a gradient, x, kernel and y are those of the convolution
 * that it is of, the result among them. */
struct onednn_operation {
    enum onednn_kind kind;
    bool has_bias; /* forward only */
    struct onednn_form x, kernel, bias, y;
    dnnl_dims_t strides, before, after; /* of a convolution: of the window, and padding at each end */
    dnnl_data_type_t computed;          /* what a gradient's convolution is computed in */
    enum activation activation;         /* forward only */
    bool adds;                          /* to what is in y; a product only */
};

/* Makes what describes a primitive for `operation`, with scratch memory that the caller gives. */
dnnl_status_t onednn_describe_operation(dnnl_primitive_desc_t *description, dnnl_engine_t engine,
                                        const struct onednn_operation *operation);

/* Whether argument `name` of the primitive has each element of `form` in the same place, so that memory of
 * that form needs no reordering. False, too, when it cannot be told. */
bool onednn_same_places(const_dnnl_primitive_desc_t description, int name, const struct onednn_form *form);

/* Bytes of argument `name` of the primitive in the form that it wants; DNNL_ARG_SCRATCHPAD is one. */
size_t onednn_argument_bytes(const_dnnl_primitive_desc_t description, int name);

/* Makes a memory object at `address` (or DNNL_MEMORY_NONE): for argument `name`, as the primitive wants it;
 * of a form of ours. */
dnnl_status_t onednn_argument_memory(dnnl_memory_t *memory, dnnl_engine_t engine,
                                     const_dnnl_primitive_desc_t description, int name, void *address);
dnnl_status_t onednn_form_memory(dnnl_memory_t *memory, dnnl_engine_t engine, const struct onednn_form *form,
                                 void *address);

/* Makes the primitive that brings memory of `form` into what argument `name` wants, or, with `out`, back. */
dnnl_status_t onednn_make_reorder(dnnl_primitive_t *reorder, dnnl_engine_t engine,
                                  const_dnnl_primitive_desc_t description, int name,
                                  const struct onednn_form *form, bool out);

/* Lets a memory object lie at `address`, which nothing in the stream is using. */
dnnl_status_t onednn_set_address(dnnl_memory_t memory, void *address, dnnl_stream_t stream);

#endif
