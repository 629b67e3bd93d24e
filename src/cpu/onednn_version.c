/* The one place where oneDNN 2 and 3 differ. In version 2 a memory descriptor is a struct, and an
 * operation is a struct that a primitive's descriptor is made from; in version 3 memory descriptors are
 * created and destroyed, and a primitive's descriptor is made in one call. Each version's half has the
 * same few functions, up to "both versions". */
#include "onednn_version.h"

/* The forms of what an operation reads and writes. */
struct parts {
    dnnl_memory_desc_t x, kernel, bias, y;
};

/* Where a form of memory has its elements. */
struct places {
    bool blocked; /* the rest counts only then */
    dnnl_data_type_t type;
    const dnnl_dim_t *padded, *strides; /* [rank], the library's */
    int blocks;                         /* how many axes have a block innermost; of the first one: */
    dnnl_dim_t block, axis;
};

#if DNNL_VERSION_MAJOR == 2

typedef const dnnl_memory_desc_t *form_seen;

static form_seen seen(const dnnl_memory_desc_t *made) {
    return made;
}

static dnnl_status_t make_form(dnnl_memory_desc_t *made, const struct onednn_form *form) {
    if (form->any)
        return dnnl_memory_desc_init_by_tag(made, form->rank, form->dims, form->type, dnnl_format_tag_any);
    return dnnl_memory_desc_init_by_strides(made, form->rank, form->dims, form->type, form->strides);
}

static void drop_form(dnnl_memory_desc_t *made) {
    *made = (dnnl_memory_desc_t){0};
}

static dnnl_status_t describe(dnnl_primitive_desc_t *description, dnnl_engine_t engine,
                              const struct onednn_operation *o, const struct parts *p,
                              const_dnnl_primitive_attr_t attributes, const_dnnl_primitive_desc_t forward) {
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    const dnnl_memory_desc_t *bias = o->has_bias ? &p->bias : NULL;
    dnnl_matmul_desc_t product;
    dnnl_convolution_desc_t convolution;
    const void *wanted = &convolution;
    dnnl_status_t status = dnnl_invalid_arguments;
    switch (o->kind) {
    case ONEDNN_MATMUL:
        wanted = &product;
        status = dnnl_matmul_desc_init(&product, &p->x, &p->kernel, bias, &p->y);
        break;
    case ONEDNN_CONVOLUTION:
        status = dnnl_convolution_forward_desc_init(&convolution, dnnl_forward_training, direct, &p->x,
                                                    &p->kernel, bias, &p->y, o->strides, o->before, o->after);
        break;
    case ONEDNN_CONVOLUTION_GRAD_X:
        status = dnnl_convolution_backward_data_desc_init(&convolution, direct, &p->x, &p->kernel, &p->y,
                                                          o->strides, o->before, o->after);
        break;
    case ONEDNN_CONVOLUTION_GRAD_KERNEL:
        status = dnnl_convolution_backward_weights_desc_init(&convolution, direct, &p->x, &p->kernel, NULL,
                                                             &p->y, o->strides, o->before, o->after);
        break;
    }
    if (status != dnnl_success) return status;
    return dnnl_primitive_desc_create(description, wanted, attributes, engine, forward);
}

static dnnl_status_t append(dnnl_post_ops_t post_ops, dnnl_alg_kind_t kind) {
    return dnnl_post_ops_append_eltwise(post_ops, 1.0f, kind, 0.0f, 0.0f);
}

static dnnl_status_t append_sum(dnnl_post_ops_t post_ops) {
    return dnnl_post_ops_append_sum(post_ops, 1.0f);
}

static bool find_places(struct places *places, form_seen form) {
    const dnnl_blocking_desc_t *blocking = &form->format_desc.blocking;
    *places = (struct places){.blocked = form->format_kind == dnnl_blocked, .type = form->data_type};
    if (!places->blocked) return true;
    places->padded = form->padded_dims;
    places->strides = blocking->strides;
    places->blocks = blocking->inner_nblks;
    places->block = blocking->inner_blks[0];
    places->axis = blocking->inner_idxs[0];
    return true;
}

dnnl_status_t onednn_set_address(dnnl_memory_t memory, void *address, dnnl_stream_t stream) {
    return dnnl_memory_set_data_handle_v2(memory, address, stream);
}

#else

typedef const_dnnl_memory_desc_t form_seen;

static form_seen seen(const dnnl_memory_desc_t *made) {
    return *made;
}

static dnnl_status_t make_form(dnnl_memory_desc_t *made, const struct onednn_form *form) {
    if (form->any)
        return dnnl_memory_desc_create_with_tag(made, form->rank, form->dims, form->type,
                                                dnnl_format_tag_any);
    return dnnl_memory_desc_create_with_strides(made, form->rank, form->dims, form->type, form->strides);
}

static void drop_form(dnnl_memory_desc_t *made) {
    if (*made) dnnl_memory_desc_destroy(*made);
    *made = NULL;
}

static dnnl_status_t describe(dnnl_primitive_desc_t *description, dnnl_engine_t engine,
                              const struct onednn_operation *o, const struct parts *p,
                              const_dnnl_primitive_attr_t attributes, const_dnnl_primitive_desc_t forward) {
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    const_dnnl_memory_desc_t bias = o->has_bias ? p->bias : NULL;
    switch (o->kind) {
    case ONEDNN_MATMUL:
        return dnnl_matmul_primitive_desc_create(description, engine, p->x, p->kernel, bias, p->y,
                                                 attributes);
    case ONEDNN_CONVOLUTION:
        return dnnl_convolution_forward_primitive_desc_create(description, engine, dnnl_forward_training,
                                                              direct, p->x, p->kernel, bias, p->y, o->strides,
                                                              NULL, o->before, o->after, attributes);
    case ONEDNN_CONVOLUTION_GRAD_X:
        return dnnl_convolution_backward_data_primitive_desc_create(description, engine, direct, p->x,
                                                                    p->kernel, p->y, o->strides, NULL,
                                                                    o->before, o->after, forward, attributes);
    case ONEDNN_CONVOLUTION_GRAD_KERNEL:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            description, engine, direct, p->x, p->kernel, NULL, p->y, o->strides, NULL, o->before, o->after,
            forward, attributes);
    }
    return dnnl_invalid_arguments;
}

static dnnl_status_t append(dnnl_post_ops_t post_ops, dnnl_alg_kind_t kind) {
    return dnnl_post_ops_append_eltwise(post_ops, kind, 0.0f, 0.0f);
}

static dnnl_status_t append_sum(dnnl_post_ops_t post_ops) {
    return dnnl_post_ops_append_sum(post_ops, 1.0f, 0, dnnl_data_type_undef);
}

static bool find_places(struct places *places, form_seen form) {
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    const dnnl_dims_t *padded = NULL, *strides = NULL, *block = NULL, *axis = NULL;
    *places = (struct places){0};
    if (dnnl_memory_desc_query(form, dnnl_query_format_kind, &kind) != dnnl_success) return false;
    if (kind != dnnl_blocked) return true;
    if (dnnl_memory_desc_query(form, dnnl_query_data_type, &places->type) != dnnl_success ||
        dnnl_memory_desc_query(form, dnnl_query_padded_dims, &padded) != dnnl_success ||
        dnnl_memory_desc_query(form, dnnl_query_strides, &strides) != dnnl_success ||
        dnnl_memory_desc_query(form, dnnl_query_inner_nblks_s32, &places->blocks) != dnnl_success)
        return false;
    places->blocked = true;
    places->padded = *padded;
    places->strides = *strides;
    if (places->blocks == 0) return true;
    if (dnnl_memory_desc_query(form, dnnl_query_inner_blks, &block) != dnnl_success ||
        dnnl_memory_desc_query(form, dnnl_query_inner_idxs, &axis) != dnnl_success)
        return false;
    places->block = (*block)[0];
    places->axis = (*axis)[0];
    return true;
}

dnnl_status_t onednn_set_address(dnnl_memory_t memory, void *address, dnnl_stream_t stream) {
    (void)stream;
    return dnnl_memory_set_data_handle(memory, address);
}

#endif

/* --- both versions --- */

static form_seen argument_form(const_dnnl_primitive_desc_t description, int name) {
    if (name == DNNL_ARG_SCRATCHPAD)
        return dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
    return dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, name);
}

static dnnl_status_t make_parts(struct parts *parts, const struct onednn_operation *o) {
    dnnl_status_t status = make_form(&parts->x, &o->x);
    if (status == dnnl_success) status = make_form(&parts->kernel, &o->kernel);
    if (status == dnnl_success && o->has_bias) status = make_form(&parts->bias, &o->bias);
    return status == dnnl_success ? make_form(&parts->y, &o->y) : status;
}

static void drop_parts(struct parts *parts) {
    drop_form(&parts->x);
    drop_form(&parts->kernel);
    drop_form(&parts->bias);
    drop_form(&parts->y);
}

static dnnl_status_t append_activation(dnnl_post_ops_t post_ops, enum activation activation) {
    switch (activation) {
    case ACTIVATION_NONE:
        return dnnl_success;
    case ACTIVATION_RELU:
        return append(post_ops, dnnl_eltwise_relu);
    case ACTIVATION_SIGMOID:
        return append(post_ops, dnnl_eltwise_logistic);
    case ACTIVATION_TANH:
        return append(post_ops, dnnl_eltwise_tanh);
    }
    return dnnl_unimplemented;
}

static dnnl_status_t make_attributes(dnnl_primitive_attr_t *attributes, const struct onednn_operation *o) {
    dnnl_post_ops_t post_ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(attributes);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(*attributes, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) status = dnnl_post_ops_create(&post_ops);
    if (status == dnnl_success && o->adds) status = append_sum(post_ops);
    if (status == dnnl_success) status = append_activation(post_ops, o->activation);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(*attributes, post_ops);
    if (post_ops) dnnl_post_ops_destroy(post_ops);
    return status;
}

/* The convolution that a gradient is of: oneDNN wants to know it, all in the type that is computed in. */
static dnnl_status_t describe_forward(dnnl_primitive_desc_t *description, dnnl_engine_t engine,
                                      const struct onednn_operation *gradient) {
    struct onednn_operation there = *gradient;
    struct parts parts = {0};
    there.kind = ONEDNN_CONVOLUTION;
    there.x.type = there.kernel.type = there.y.type = gradient->computed;
    dnnl_status_t status = make_parts(&parts, &there);
    if (status == dnnl_success) status = describe(description, engine, &there, &parts, NULL, NULL);
    drop_parts(&parts);
    return status;
}

dnnl_status_t onednn_describe_operation(dnnl_primitive_desc_t *description, dnnl_engine_t engine,
                                        const struct onednn_operation *operation) {
    struct parts parts = {0};
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t forward = NULL;
    dnnl_status_t status = make_attributes(&attributes, operation);
    if (status == dnnl_success) status = make_parts(&parts, operation);
    if (status == dnnl_success && operation->kind != ONEDNN_MATMUL && operation->kind != ONEDNN_CONVOLUTION)
        status = describe_forward(&forward, engine, operation);
    if (status == dnnl_success)
        status = describe(description, engine, operation, &parts, attributes, forward);
    if (forward) dnnl_primitive_desc_destroy(forward);
    drop_parts(&parts);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    return status;
}

size_t onednn_argument_bytes(const_dnnl_primitive_desc_t description, int name) {
    return dnnl_memory_desc_get_size(argument_form(description, name));
}

static size_t form_bytes(const struct onednn_form *form) {
    size_t bytes = form->type == dnnl_f32 ? 4 : 2;
    for (int axis = 0; axis < form->rank; axis++) bytes *= (size_t)form->dims[axis];
    return bytes;
}

/* oneDNN writes some plain forms as one block that is the whole of an axis: then that axis is the innermost
 * of both. */
bool onednn_same_places(const_dnnl_primitive_desc_t description, int name, const struct onednn_form *form) {
    const form_seen chosen = argument_form(description, name);
    struct places places;
    if (!find_places(&places, chosen) || !places.blocked || places.type != form->type || places.blocks > 1 ||
        dnnl_memory_desc_get_size(chosen) != form_bytes(form)) /* more: it keeps something behind it */
        return false;
    for (int axis = 0; axis < form->rank; axis++) {
        const bool inner = places.blocks == 1 && axis == places.axis;
        if (places.padded[axis] != form->dims[axis]) return false;
        if (inner && (places.block != form->dims[axis] || form->strides[axis] != 1)) return false;
        if (!inner && form->dims[axis] > 1 && places.strides[axis] != form->strides[axis]) return false;
    }
    return true;
}

dnnl_status_t onednn_argument_memory(dnnl_memory_t *memory, dnnl_engine_t engine,
                                     const_dnnl_primitive_desc_t description, int name, void *address) {
    return dnnl_memory_create(memory, argument_form(description, name), engine, address);
}

dnnl_status_t onednn_form_memory(dnnl_memory_t *memory, dnnl_engine_t engine, const struct onednn_form *form,
                                 void *address) {
    dnnl_memory_desc_t made = {0};
    dnnl_status_t status = make_form(&made, form);
    if (status == dnnl_success) status = dnnl_memory_create(memory, seen(&made), engine, address);
    drop_form(&made);
    return status;
}

dnnl_status_t onednn_make_reorder(dnnl_primitive_t *reorder, dnnl_engine_t engine,
                                  const_dnnl_primitive_desc_t primitive, int name,
                                  const struct onednn_form *form, bool out) {
    const form_seen own = argument_form(primitive, name);
    dnnl_memory_desc_t plain = {0};
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = make_form(&plain, form);
    if (status == dnnl_success)
        status = dnnl_reorder_primitive_desc_create(&description, out ? own : seen(&plain), engine,
                                                    out ? seen(&plain) : own, engine, NULL);
    if (status == dnnl_success) status = dnnl_primitive_create(reorder, description);
    if (description) dnnl_primitive_desc_destroy(description);
    drop_form(&plain);
    return status;
}
