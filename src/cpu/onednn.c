/* What all oneDNN kernels share: making a primitive, giving it memory objects and scratch, running it.
 *
 * Scratch memory is the instance's (oneDNN's default is one hidden block a thread), so a primitive serves any
 * number of threads and running it takes no memory of ours. oneDNN fixes the number of threads when a
 * primitive is made, from a setting of the calling thread, and expects the same one when it runs. Threads
 * that have little to do wait longer for each other than they compute, so a small operation gets fewer of
 * them. */
#include "onednn.h"

#include <string.h>
#include "../base/memory.h"

/* Of libgomp, whose threads oneDNN runs on; clang has no omp.h for it. */
void omp_set_num_threads(int threads);
int omp_get_max_threads(void);

struct instance {
    dnnl_stream_t stream;
    /* In the order of the plan's arguments, then the scratch memory. */
    dnnl_memory_t memory[ONEDNN_ARGUMENTS + 1];
    dnnl_exec_arg_t arguments[ONEDNN_ARGUMENTS + 1];
    int count;     /* of arguments, without the scratch memory */
    void *scratch; /* owned */
};

static int failed(const struct task *task, const char *what, dnnl_status_t status, struct error *error) {
    return error_set(error, ERROR_DEVICE, "%s: oneDNN could not %s %s (status %d)", task->device->name, what,
                     op_name(task->op), (int)status);
}

static dnnl_status_t make_description(struct onednn_plan *plan, const void *descriptor,
                                      const_dnnl_post_ops_t post_ops) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attributes);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && post_ops) status = dnnl_primitive_attr_set_post_ops(attributes, post_ops);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&plan->description, descriptor, attributes, plan->engine, NULL);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    return status;
}

/* Its plain implementations ("ref:any") are slower than ours by a hundred times. */
static bool is_fast(const_dnnl_primitive_desc_t description) {
    const char *name = NULL;
    return dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&name) ==
               dnnl_success &&
           name && !strstr(name, "ref");
}

static int make_primitive(const struct task *task, const void *descriptor, const_dnnl_post_ops_t post_ops,
                          struct onednn_plan *plan, struct error *error) {
    dnnl_status_t status = dnnl_engine_create(&plan->engine, dnnl_cpu, 0);
    if (status != dnnl_success) return failed(task, "open an engine for", status, error);
    status = make_description(plan, descriptor, post_ops);
    if (status == dnnl_unimplemented) return KERNEL_DECLINED;
    if (status != dnnl_success) return failed(task, "prepare", status, error);
    if (!is_fast(plan->description)) return KERNEL_DECLINED;
    status = dnnl_primitive_create(&plan->primitive, plan->description);
    return status == dnnl_success ? OK : failed(task, "prepare", status, error);
}

/* One thread for each million multiply-adds, which take it some 20 us. */
static int useful_threads(const struct task *task, double multiply_adds) {
    const double threads = multiply_adds / 1e6;
    if (threads < 1.0) return 1;
    return threads < task->device->threads ? (int)threads : task->device->threads;
}

int onednn_plan(const struct task *task, const void *descriptor, double multiply_adds,
                const_dnnl_post_ops_t post_ops, const struct onednn_argument *arguments, void **plan,
                struct error *error) {
    struct onednn_plan *made = NULL;
    RETURN_IF(memory_zeroed((void **)&made, 1, sizeof *made, "a oneDNN plan", error));
    made->arguments = arguments;
    made->threads = useful_threads(task, multiply_adds);
    const int threads = omp_get_max_threads();
    omp_set_num_threads(made->threads);
    const int code = make_primitive(task, descriptor, post_ops, made, error);
    omp_set_num_threads(threads);
    if (code)
        onednn_release(made);
    else
        *plan = made;
    return code;
}

void onednn_release(void *opened) {
    struct onednn_plan *plan = opened;
    if (!plan) return;
    if (plan->primitive) dnnl_primitive_destroy(plan->primitive);
    if (plan->description) dnnl_primitive_desc_destroy(plan->description);
    if (plan->engine) dnnl_engine_destroy(plan->engine);
    memory_free(plan);
}

/* Adds a memory object of the form that the primitive wants for its argument `name`. */
static dnnl_status_t add_argument(struct instance *instance, int at, const struct onednn_plan *plan, int name,
                                  void *address) {
    const dnnl_memory_desc_t *form =
        dnnl_primitive_desc_query_md(plan->description, dnnl_query_exec_arg_md, name);
    const dnnl_status_t status = dnnl_memory_create(&instance->memory[at], form, plan->engine, address);
    instance->arguments[at] = (dnnl_exec_arg_t){.arg = name, .memory = instance->memory[at]};
    return status;
}

int onednn_bind(const struct task *task, const void *prepared, void **out, struct error *error) {
    const struct onednn_plan *plan = prepared;
    struct instance *instance = NULL;
    RETURN_IF(memory_zeroed((void **)&instance, 1, sizeof *instance, "a oneDNN instance", error));
    const dnnl_memory_desc_t *form =
        dnnl_primitive_desc_query_md(plan->description, dnnl_query_scratchpad_md, 0);
    const int code =
        memory_zeroed(&instance->scratch, dnnl_memory_desc_get_size(form), 1, "oneDNN's scratch", error);
    if (code) {
        onednn_unbind(instance);
        return code;
    }
    dnnl_status_t status = dnnl_stream_create(&instance->stream, plan->engine, dnnl_stream_default_flags);
    while (status == dnnl_success && plan->arguments[instance->count].name != 0) {
        status = add_argument(instance, instance->count, plan, plan->arguments[instance->count].name,
                              DNNL_MEMORY_NONE);
        instance->count++;
    }
    if (status == dnnl_success)
        status = add_argument(instance, instance->count, plan, DNNL_ARG_SCRATCHPAD, instance->scratch);
    if (status != dnnl_success) {
        onednn_unbind(instance);
        return failed(task, "bind", status, error);
    }
    *out = instance;
    return OK;
}

void onednn_unbind(void *bound) {
    struct instance *instance = bound;
    if (!instance) return;
    for (int i = 0; i <= ONEDNN_ARGUMENTS; i++)
        if (instance->memory[i]) dnnl_memory_destroy(instance->memory[i]);
    if (instance->stream) dnnl_stream_destroy(instance->stream);
    memory_free(instance->scratch);
    memory_free(instance);
}

int onednn_run(const struct call *call, struct error *error) {
    const struct onednn_plan *plan = call->plan;
    const struct instance *instance = call->instance;
    dnnl_status_t status = dnnl_success;
    if (call->task->device->threads > 1) omp_set_num_threads(plan->threads);
    for (int i = 0; i < instance->count && status == dnnl_success; i++) {
        const int operand = plan->arguments[i].operand;
        void *address = operand == ONEDNN_OUTPUT ? call->output : (void *)call->input[operand];
        status = dnnl_memory_set_data_handle_v2(instance->memory[i], address, instance->stream);
    }
    if (status == dnnl_success)
        status = dnnl_primitive_execute(plan->primitive, instance->stream, instance->count + 1,
                                        instance->arguments);
    return status == dnnl_success ? OK : failed(call->task, "run", status, error);
}
