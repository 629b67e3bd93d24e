/* Private to the kernels that oneDNN computes: what they share, whatever the primitive.
 *
 * A plan holds the primitive, which is constant and may be run by many threads at once; an instance holds
 * what may not: the memory objects that carry the operands' addresses, the scratch memory and the stream. */
#ifndef TRAINER_CPU_ONEDNN_H
#define TRAINER_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include "../device/device.h"

enum { ONEDNN_OUTPUT = -1, ONEDNN_ARGUMENTS = 4 };

/* Which operand of the call is which argument of the primitive. */
struct onednn_argument {
    int name;    /* DNNL_ARG_SRC, ...; 0 ends the list */
    int operand; /* number of the input, or ONEDNN_OUTPUT */
};

struct onednn_plan {
    dnnl_engine_t engine;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    const struct onednn_argument *arguments; /* at most ONEDNN_ARGUMENTS, constant */
    int threads; /* that compute it: the device's, or fewer when there is little to do */
};

/* Makes a plan from an operation's descriptor (dnnl_matmul_desc_t, ...) that makes so many multiply-adds;
 * takes over nothing. `post_ops` may be NULL. Declines when oneDNN has no fast implementation here. */
int onednn_plan(const struct task *task, const void *descriptor, double multiply_adds,
                const_dnnl_post_ops_t post_ops, const struct onednn_argument *arguments, void **plan,
                struct error *error);

/* The slots of a kernel. */
void onednn_release(void *plan);
int onednn_bind(const struct task *task, const void *plan, void **instance, struct error *error);
void onednn_unbind(void *instance);
int onednn_run(const struct call *call, struct error *error);

#endif
