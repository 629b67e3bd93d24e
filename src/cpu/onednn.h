/* Private to the oneDNN kernels: what they share, whatever the primitive.
 *
 * A plan holds the primitive, which is constant and may be run by many threads at once; an instance holds
 * what may not: the memory objects that carry the operands' addresses, the scratch memory and the stream. */
#ifndef TRAINER_CPU_ONEDNN_H
#define TRAINER_CPU_ONEDNN_H

#include "../device/device.h"
#include "onednn_version.h"

enum { ONEDNN_OUTPUT = -1, ONEDNN_ARGUMENTS = 4 };

/* Which operand of the call is which argument of the primitive. */
struct onednn_argument {
    int name;    /* DNNL_ARG_SRC, ...; 0 ends the list */
    int operand; /* number of the input, or ONEDNN_OUTPUT */
};

/* What a kernel asks oneDNN for. */
struct onednn_request {
    struct onednn_operation operation;
    const struct onednn_argument *arguments; /* at most ONEDNN_ARGUMENTS, constant */
    double multiply_adds;
    /* The forms that operands have in memory, in the order of `arguments`: where the primitive's are others,
     * they are reordered on the way in or out. */
    struct onednn_form plain[ONEDNN_ARGUMENTS];
};

struct onednn_plan {
    dnnl_engine_t engine;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    /* Of each argument: to the primitive's form or, of the output, from it; NULL: it is that form already. */
    dnnl_primitive_t reorder[ONEDNN_ARGUMENTS];
    struct onednn_form plain[ONEDNN_ARGUMENTS];
    const struct onednn_argument *arguments; /* at most ONEDNN_ARGUMENTS, constant */
    int threads; /* that compute it: the device's, or fewer when there is little to do */
};

/* Makes a plan; takes over nothing. Declines when oneDNN has no fast implementation here. */
int onednn_plan(const struct problem *problem, const struct onednn_request *request, void **plan,
                struct error *error);

/* What a problem's matrix products are computed in, and what an operand is in memory. */
dnnl_data_type_t onednn_compute_type(const struct problem *problem);
dnnl_data_type_t onednn_type(enum type type);
/* Whether the processor computes in bf16; whether it has tiles for that (AMX). */
bool onednn_has_bf16(void);
bool onednn_has_tiles(void);

/* The slots of a kernel, which differ in how they are prepared. */
#define ONEDNN_KERNEL(op, how)                                                                               \
    const struct kernel onednn_##op = {.name = "onednn:" #op,                                                \
                                       .prepare = how,                                                       \
                                       .release = onednn_release,                                            \
                                       .bind = onednn_bind,                                                  \
                                       .unbind = onednn_unbind,                                              \
                                       .describe = onednn_describe,                                          \
                                       .run = onednn_run}
void onednn_release(void *plan);
int onednn_bind(const struct problem *problem, const void *plan, void **instance, struct error *error);
void onednn_unbind(void *instance);
int onednn_run(const struct call *call, struct error *error);
void onednn_describe(const void *plan, char *out, size_t bytes);

#endif
