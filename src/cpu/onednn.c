/* What all oneDNN kernels share: making a primitive, giving it memory objects and scratch, running it.
 *
 * The instance owns the scratch memory (oneDNN's default is one hidden block per thread), so a primitive
 * serves any number of threads and running it allocates nothing. oneDNN fixes the number of threads when a
 * primitive is made, from a setting of the calling thread, and expects the same one when it runs. Threads
 * with little work wait for each other longer than they compute, so a small operation gets fewer threads.
 *
 * Where oneDNN (2.6) finds no memory for the code that it generates, it ends by a null pointer or an
 * exception that C cannot catch, and libgomp ends the process where it cannot start a thread. So oneDNN is
 * entered only when there is enough room for what it allocates. */
#include "onednn.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include "../base/memory.h"
#include "../base/text.h"

/* Of libgomp, whose threads oneDNN runs on; clang has no omp.h for it. */
void omp_set_num_threads(int threads);
int omp_get_max_threads(void);

struct instance {
    dnnl_stream_t stream;
    /* Of each argument that is reordered: as the graph has it, and its copy in the primitive's form, owned.
     */
    dnnl_memory_t plain[ONEDNN_ARGUMENTS];
    void *reordered[ONEDNN_ARGUMENTS];
    /* In the order of the plan's arguments, then the scratch memory. */
    dnnl_memory_t memory[ONEDNN_ARGUMENTS + 1];
    dnnl_exec_arg_t arguments[ONEDNN_ARGUMENTS + 1];
    int count;     /* of arguments, without the scratch memory */
    bool ran;      /* once, so that what it needs to run is there */
    void *scratch; /* owned */
};

/* With 4 MB it still failed now and then (2.6.3, 3000 x 3000 products and convolutions), with 8 MB no more.
 */
enum { OWN_BYTES = 16 << 20 };

/* `started`: threads that it may have to start. */
static int has_room(int started, struct error *error) {
    struct rlimit stack = {.rlim_cur = RLIM_INFINITY};
    enum { USUAL_STACK = 8 << 20 };
    getrlimit(RLIMIT_STACK, &stack);
    const size_t bytes = stack.rlim_cur == RLIM_INFINITY ? USUAL_STACK : (size_t)stack.rlim_cur;
    return memory_probe(OWN_BYTES + (size_t)started * bytes, "oneDNN", error);
}

static int failed(const struct problem *problem, const char *what, dnnl_status_t status,
                  struct error *error) {
    if (status == dnnl_out_of_memory)
        return error_set(error, ERROR_DEVICE, "memory: nothing left for oneDNN to %s %s on %s", what,
                         op_name(problem->op), problem->device->name);
    return error_set(error, ERROR_DEVICE, "%s: oneDNN could not %s %s (status %d)", problem->device->name,
                     what, op_name(problem->op), (int)status);
}

static const char *implementation(const_dnnl_primitive_desc_t description) {
    const char *name = NULL;
    const dnnl_status_t status =
        dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&name);
    return status == dnnl_success && name ? name : "";
}

/* Its plain implementations ("ref:any") are slower than ours by a hundred times. */
static bool is_fast(const_dnnl_primitive_desc_t description) {
    const char *name = implementation(description);
    return name[0] != '\0' && !strstr(name, "ref");
}

/* The reorders of those arguments whose forms differ from what is in memory. */
static dnnl_status_t make_reorders(struct onednn_plan *plan, const struct onednn_request *request) {
    dnnl_status_t status = dnnl_success;
    for (int i = 0; request->arguments[i].name != 0 && status == dnnl_success; i++) {
        const int name = request->arguments[i].name;
        plan->plain[i] = request->plain[i];
        if (onednn_same_places(plan->description, name, &plan->plain[i])) continue;
        status = onednn_make_reorder(&plan->reorder[i], plan->engine, plan->description, name,
                                     &plan->plain[i], request->arguments[i].operand == ONEDNN_OUTPUT);
    }
    return status;
}

static int make_primitive(const struct problem *problem, const struct onednn_request *request,
                          struct onednn_plan *plan, struct error *error) {
    dnnl_status_t status = dnnl_engine_create(&plan->engine, dnnl_cpu, 0);
    if (status != dnnl_success) return failed(problem, "open an engine for", status, error);
    status = onednn_describe_operation(&plan->description, plan->engine, &request->operation);
    if (status == dnnl_unimplemented || status == dnnl_invalid_arguments) return KERNEL_DECLINED;
    if (status != dnnl_success) return failed(problem, "prepare", status, error);
    if (!is_fast(plan->description)) return KERNEL_DECLINED;
    status = dnnl_primitive_create(&plan->primitive, plan->description);
    if (status == dnnl_success) status = make_reorders(plan, request);
    return status == dnnl_success ? OK : failed(problem, "prepare", status, error);
}

/* One thread for each million multiply-adds, which take it some 20 us. */
static int useful_threads(const struct problem *problem, double multiply_adds) {
    const double threads = multiply_adds / 1e6;
    if (threads < 1.0) return 1;
    return threads < problem->device->threads ? (int)threads : problem->device->threads;
}

int onednn_plan(const struct problem *problem, const struct onednn_request *request, void **plan,
                struct error *error) {
    struct onednn_plan *made = NULL;
    RETURN_IF(has_room(0, error));
    RETURN_IF(memory_array(&made, 1, "a oneDNN plan", error));
    made->arguments = request->arguments;
    made->threads = useful_threads(problem, request->multiply_adds);
    const int threads = omp_get_max_threads();
    omp_set_num_threads(made->threads);
    const int code = make_primitive(problem, request, made, error);
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
    for (int i = 0; i < ONEDNN_ARGUMENTS; i++)
        if (plan->reorder[i]) dnnl_primitive_destroy(plan->reorder[i]);
    if (plan->primitive) dnnl_primitive_destroy(plan->primitive);
    if (plan->description) dnnl_primitive_desc_destroy(plan->description);
    if (plan->engine) dnnl_engine_destroy(plan->engine);
    memory_free(plan);
}

/* Adds a memory object of the form that the primitive wants for its argument `name`. */
static dnnl_status_t add_argument(struct instance *instance, int at, const struct onednn_plan *plan, int name,
                                  void *address) {
    const dnnl_status_t status =
        onednn_argument_memory(&instance->memory[at], plan->engine, plan->description, name, address);
    instance->arguments[at] = (dnnl_exec_arg_t){.arg = name, .memory = instance->memory[at]};
    return status;
}

/* Memory of the instance's own: for scratch, and for arguments in the primitive's form. */
static int add_memory(struct instance *instance, const struct onednn_plan *plan, struct error *error) {
    RETURN_IF(memory_zeroed(&instance->scratch, onednn_argument_bytes(plan->description, DNNL_ARG_SCRATCHPAD),
                            1, "oneDNN's scratch", error));
    for (int i = 0; i < ONEDNN_ARGUMENTS; i++)
        if (plan->reorder[i])
            RETURN_IF(memory_zeroed(&instance->reordered[i],
                                    onednn_argument_bytes(plan->description, plan->arguments[i].name), 1,
                                    "an operand in oneDNN's form", error));
    return OK;
}

static dnnl_status_t add_arguments(struct instance *instance, const struct onednn_plan *plan) {
    dnnl_status_t status = dnnl_stream_create(&instance->stream, plan->engine, dnnl_stream_default_flags);
    while (status == dnnl_success && plan->arguments[instance->count].name != 0) {
        const int i = instance->count;
        void *address = plan->reorder[i] ? instance->reordered[i] : DNNL_MEMORY_NONE;
        status = add_argument(instance, i, plan, plan->arguments[i].name, address);
        if (status == dnnl_success && plan->reorder[i])
            status = onednn_form_memory(&instance->plain[i], plan->engine, &plan->plain[i], DNNL_MEMORY_NONE);
        instance->count++;
    }
    if (status == dnnl_success)
        status = add_argument(instance, instance->count, plan, DNNL_ARG_SCRATCHPAD, instance->scratch);
    return status;
}

int onednn_bind(const struct problem *problem, const void *prepared, void **out, struct error *error) {
    const struct onednn_plan *plan = prepared;
    struct instance *instance = NULL;
    RETURN_IF(memory_array(&instance, 1, "a oneDNN instance", error));
    int code = add_memory(instance, plan, error);
    if (code == OK) code = has_room(0, error);
    if (code == OK) {
        const dnnl_status_t status = add_arguments(instance, plan);
        if (status != dnnl_success) code = failed(problem, "bind", status, error);
    }
    if (code == OK)
        *out = instance;
    else
        onednn_unbind(instance);
    return code;
}

void onednn_unbind(void *bound) {
    struct instance *instance = bound;
    if (!instance) return;
    for (int i = 0; i <= ONEDNN_ARGUMENTS; i++)
        if (instance->memory[i]) dnnl_memory_destroy(instance->memory[i]);
    for (int i = 0; i < ONEDNN_ARGUMENTS; i++) {
        if (instance->plain[i]) dnnl_memory_destroy(instance->plain[i]);
        memory_free(instance->reordered[i]);
    }
    if (instance->stream) dnnl_stream_destroy(instance->stream);
    memory_free(instance->scratch);
    memory_free(instance);
}

/* Between argument i as the graph has it and the instance's copy in the primitive's form. */
static dnnl_status_t reorder(const struct onednn_plan *plan, const struct instance *instance, int i,
                             bool out) {
    const dnnl_memory_t plain = instance->plain[i], own = instance->memory[i];
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, out ? own : plain},
                                         {DNNL_ARG_TO, out ? plain : own}};
    return dnnl_primitive_execute(plan->reorder[i], instance->stream, 2, arguments);
}

/* Gives argument i its address; one that is reordered comes in. */
static dnnl_status_t bring(const struct onednn_plan *plan, const struct instance *instance, int i,
                           void *address) {
    const dnnl_memory_t memory = plan->reorder[i] ? instance->plain[i] : instance->memory[i];
    const dnnl_status_t status = onednn_set_address(memory, address, instance->stream);
    if (status != dnnl_success || !plan->reorder[i] || plan->arguments[i].operand == ONEDNN_OUTPUT)
        return status;
    return reorder(plan, instance, i, false);
}

dnnl_data_type_t onednn_compute_type(const struct problem *problem) {
    return problem->device->precision == PRECISION_BF16 ? dnnl_bf16 : dnnl_f32;
}

dnnl_data_type_t onednn_type(enum type type) {
    return type == TYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

bool onednn_has_bf16(void) {
    const unsigned isa = dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
}

bool onednn_has_tiles(void) {
    const unsigned isa = dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
}

static const char *argument_name(int name) {
    switch (name) {
    case DNNL_ARG_SRC:
        return "x";
    case DNNL_ARG_WEIGHTS:
    case DNNL_ARG_DIFF_WEIGHTS:
        return "kernel";
    case DNNL_ARG_DIFF_DST:
        return "dy";
    default:
        return "y";
    }
}

void onednn_describe(const void *prepared, char *out, size_t bytes) {
    const struct onednn_plan *plan = prepared;
    struct text text = text_into(out, bytes);
    const char *before = ", reordered ";
    text_add(&text, "onednn:%s", implementation(plan->description));
    for (int i = 0; i < ONEDNN_ARGUMENTS; i++) {
        if (!plan->reorder[i]) continue;
        text_add(&text, "%s%s", before, argument_name(plan->arguments[i].name));
        before = "+";
    }
}

int onednn_run(const struct call *call, struct error *error) {
    const struct onednn_plan *plan = call->plan;
    struct instance *instance = call->instance;
    dnnl_status_t status = dnnl_success;
    int output = 0;
    if (!instance->ran) RETURN_IF(has_room(plan->threads - 1, error));
    instance->ran = true;
    if (call->problem->device->threads > 1) omp_set_num_threads(plan->threads);
    for (int i = 0; i < instance->count && status == dnnl_success; i++) {
        const int operand = plan->arguments[i].operand;
        if (operand == ONEDNN_OUTPUT) output = i;
        status =
            bring(plan, instance, i, operand == ONEDNN_OUTPUT ? call->output : (void *)call->input[operand]);
    }
    if (status == dnnl_success)
        status = dnnl_primitive_execute(plan->primitive, instance->stream, instance->count + 1,
                                        instance->arguments);
    if (status == dnnl_success && plan->reorder[output]) status = reorder(plan, instance, output, true);
    return status == dnnl_success ? OK : failed(call->problem, "run", status, error);
}
