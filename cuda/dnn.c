/* Convolutions in cuDNN's backend API. There everything is a descriptor: one is created, told its attributes
 * and finalized, then it is an attribute of others. Tensors make operations, these a graph; of the graph
 * cuDNN's heuristics name engines with their settings (knobs); an engine makes a plan; a plan runs on a pack
 * of addresses. Source: cuDNN's documentation of its graph API. */
#include "dnn.h"

#include <string.h>
#include "../src/base/memory.h"

enum { MOST_ASKED = 64, MOST_LISTED = 2 * MOST_ASKED, ALIGNMENT = 16 };
/* Configurations of an engine that cuDNN compiles first: each takes as long as some hundred that it has. */
enum { COMPILED_OF_ONE = 2 };
/* With fewer engines that may be taken, the list of what runs anything is asked for, too: it takes some 8 ms,
 * three times as long as the heuristics, and most of what it adds is slow. */
enum { FEW_ENGINES = 2 };
/* How a graph calls its tensors. */
enum uid { UID_X = 1, UID_KERNEL, UID_Y, UID_BIAS, UID_CONVOLVED, UID_SUM };

/* Of cuDNN's statuses, those that say "cannot": bad parameters, not supported. */
static bool is_impossible(cudnnStatus_t status) {
    return (int)status / 1000 == 2 || (int)status / 1000 == 3;
}

/* As DNN_TRY; but KERNEL_DECLINED without words for what cuDNN cannot do. */
#define DNN_CAN(device, call, error)                                                                         \
    do {                                                                                                     \
        const cudnnStatus_t status_ = (call);                                                                \
        if (is_impossible(status_)) return KERNEL_DECLINED;                                                  \
        if (status_ != CUDNN_STATUS_SUCCESS) return DNN_FAILED(device, #call, status_, error);               \
    } while (0)

struct dnn_gpu dnn_gpu_of(const struct device *device, cudnnHandle_t handle) {
    return (struct dnn_gpu){.device = device,
                            .handle = handle,
                            .type = CUDNN_TYPE_HANDLE,
                            .graph = CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
                            .heuristics = DNN_UNTOLD,
                            .engine = DNN_UNTOLD,
                            .plan = CUDNN_ATTR_EXECUTION_PLAN_HANDLE};
}

/* --- descriptors --- */

struct attribute {
    int name; /* DNN_UNTOLD: not told */
    cudnnBackendAttributeType_t type;
    int64_t count;
    const void *values; /* [count] of the type */
};

static void close_objects(struct dnn_objects *objects) {
    while (objects->count > 0) cudnnBackendDestroyDescriptor(objects->made[--objects->count]);
}

/* An empty descriptor, which the objects keep. */
static int create(struct dnn_objects *objects, cudnnBackendDescriptorType_t type,
                  cudnnBackendDescriptor_t *out, struct error *error) {
    if (objects->count == DNN_OBJECTS) return KERNEL_DECLINED;
    DNN_TRY(objects->device, cudnnBackendCreateDescriptor(type, out), error);
    objects->made[objects->count++] = *out;
    return OK;
}

#define MAKE(objects, type, attributes, out, error)                                                          \
    make(objects, type, attributes, (int)(sizeof(attributes) / sizeof *(attributes)), out, error)

static int make(struct dnn_objects *objects, cudnnBackendDescriptorType_t type,
                const struct attribute *attributes, int count, cudnnBackendDescriptor_t *out,
                struct error *error) {
    RETURN_IF(create(objects, type, out, error));
    for (int i = 0; i < count; i++) {
        const struct attribute *a = &attributes[i];
        if (a->name == DNN_UNTOLD || a->count == 0) continue;
        DNN_CAN(objects->device,
                cudnnBackendSetAttribute(*out, (cudnnBackendAttributeName_t)a->name, a->type, a->count,
                                         a->values),
                error);
    }
    DNN_CAN(objects->device, cudnnBackendFinalize(*out), error);
    return OK;
}

/* One number of a finalized descriptor. */
static int get(const struct device *device, cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, void *out, struct error *error) {
    int64_t count = 0;
    DNN_CAN(device, cudnnBackendGetAttribute(from, name, type, 1, &count, out), error);
    return count == 1 ? OK : KERNEL_DECLINED;
}

/* *count descriptors of that type, at most out[most], as `from` has them. How many there are is not asked for
 * first: of a configuration's knobs cuDNN 9 says 0 then, whatever there are. */
static int get_descriptors(struct dnn_objects *objects, cudnnBackendDescriptor_t from,
                           cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                           cudnnBackendDescriptor_t *out, int most, int *count, struct error *error) {
    int64_t got = 0;
    for (int i = 0; i < most; i++) RETURN_IF(create(objects, type, &out[i], error));
    DNN_CAN(objects->device,
            cudnnBackendGetAttribute(from, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &got, out), error);
    *count = got < most ? (int)got : most;
    return OK;
}

/* --- the graph --- */

static cudnnDataType_t data_type(enum type type) {
    return type == TYPE_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

/* `inner`: known within the graph alone, as float32, and nowhere in memory. */
static int make_tensor(struct dnn_objects *objects, enum uid uid, const int64_t dims[4], enum type type,
                       bool inner, cudnnBackendDescriptor_t *out, struct error *error) {
    const int64_t strides[4] = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
    const int64_t name = uid, alignment = ALIGNMENT;
    const cudnnDataType_t numbers = data_type(inner ? TYPE_FLOAT : type);
    const struct attribute attributes[] = {
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &numbers},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides},
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &inner},
    };
    return MAKE(objects, CUDNN_BACKEND_TENSOR_DESCRIPTOR, attributes, out, error);
}

/* What each direction calls its operation and the attributes of it. */
static const struct {
    cudnnBackendDescriptorType_t type;
    int convolution, x, kernel, y, alpha, beta;
} operations[] = {
    [FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [GRAD_X] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [GRAD_KERNEL] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static int make_convolution(struct dnn_objects *objects, const struct dnn_convolution *c,
                            cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t *out, struct error *error) {
    const int64_t axes = 2, ones[2] = {1, 1};
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const float one = 1.0f, zero = 0.0f;
    cudnnBackendDescriptor_t windows, x, kernel;
    const struct attribute of_windows[] = {
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes},
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, c->before},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, c->after},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, c->stride},
    };
    RETURN_IF(MAKE(objects, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, of_windows, &windows, error));
    RETURN_IF(make_tensor(objects, UID_X, c->x, c->type, false, &x, error));
    RETURN_IF(make_tensor(objects, UID_KERNEL, c->kernel, c->type, false, &kernel, error));
    const struct attribute attributes[] = {
        {operations[c->direction].convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &windows},
        {operations[c->direction].x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {operations[c->direction].kernel, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &kernel},
        {operations[c->direction].y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
        {operations[c->direction].alpha, CUDNN_TYPE_FLOAT, 1, &one},
        {operations[c->direction].beta, CUDNN_TYPE_FLOAT, 1, &zero},
    };
    return MAKE(objects, operations[c->direction].type, attributes, out, error);
}

/* y = mode(x), or x + b where there is one, in float32. */
static int make_pointwise(struct dnn_objects *objects, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                          cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y,
                          cudnnBackendDescriptor_t *out, struct error *error) {
    const cudnnDataType_t numbers = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t what;
    const struct attribute of_what[] = {
        {CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &numbers},
    };
    RETURN_IF(MAKE(objects, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, of_what, &what, error));
    const struct attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &what},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, b ? 1 : 0, &b},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
    };
    return MAKE(objects, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, attributes, out, error);
}

/* Convolution, sum with the bias, ReLU: what lies between them is in no memory. */
static int make_fused(struct dnn_objects *objects, const struct dnn_convolution *c,
                      cudnnBackendDescriptor_t *made, int *count, struct error *error) {
    const int64_t channels[4] = {1, c->y[1], 1, 1};
    cudnnBackendDescriptor_t convolved, bias, sum, y;
    RETURN_IF(make_tensor(objects, UID_CONVOLVED, c->y, c->type, true, &convolved, error));
    RETURN_IF(make_tensor(objects, UID_BIAS, channels, c->type, false, &bias, error));
    RETURN_IF(make_tensor(objects, UID_Y, c->y, c->type, false, &y, error));
    RETURN_IF(make_convolution(objects, c, convolved, &made[0], error));
    *count = c->relu ? 3 : 2;
    if (!c->relu) return make_pointwise(objects, CUDNN_POINTWISE_ADD, convolved, bias, y, &made[1], error);
    RETURN_IF(make_tensor(objects, UID_SUM, c->y, c->type, true, &sum, error));
    RETURN_IF(make_pointwise(objects, CUDNN_POINTWISE_ADD, convolved, bias, sum, &made[1], error));
    return make_pointwise(objects, CUDNN_POINTWISE_RELU_FWD, sum, NULL, y, &made[2], error);
}

static int make_graph(const struct dnn_gpu *gpu, struct dnn_objects *objects, const struct dnn_convolution *c,
                      cudnnBackendDescriptor_t *out, struct error *error) {
    cudnnBackendDescriptor_t made[3], y;
    int count = 1;
    if (c->fused) {
        RETURN_IF(make_fused(objects, c, made, &count, error));
    } else {
        RETURN_IF(make_tensor(objects, UID_Y, c->y, c->type, false, &y, error));
        RETURN_IF(make_convolution(objects, c, y, &made[0], error));
    }
    const struct attribute attributes[] = {
        {gpu->graph, gpu->type, 1, &gpu->handle},
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, made},
    };
    return MAKE(objects, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attributes, out, error);
}

/* --- plans --- */

static int make_plan(const struct dnn_gpu *gpu, struct dnn_objects *objects, cudnnBackendDescriptor_t graph,
                     const struct way *way, cudnnBackendDescriptor_t *out, size_t *workspace,
                     struct error *error) {
    cudnnBackendDescriptor_t engine, knobs[DNN_MOST_KNOBS], config;
    int64_t bytes = 0;
    const struct attribute of_engine[] = {
        {CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph},
        {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &way->engine},
        {gpu->engine, gpu->type, 1, &gpu->handle},
    };
    RETURN_IF(MAKE(objects, CUDNN_BACKEND_ENGINE_DESCRIPTOR, of_engine, &engine, error));
    for (int i = 0; i < way->knobs; i++) {
        const struct attribute of_knob[] = {
            {CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &way->knob[i].type},
            {CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &way->knob[i].value},
        };
        RETURN_IF(MAKE(objects, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, of_knob, &knobs[i], error));
    }
    const struct attribute of_config[] = {
        {CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine},
        {CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, way->knobs, knobs},
    };
    RETURN_IF(MAKE(objects, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, of_config, &config, error));
    const struct attribute of_plan[] = {
        {gpu->plan, gpu->type, 1, &gpu->handle},
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config},
    };
    RETURN_IF(MAKE(objects, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, of_plan, out, error));
    RETURN_IF(get(objects->device, *out, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, &bytes,
                  error));
    *workspace = bytes > 0 ? (size_t)bytes : 0;
    return OK;
}

int dnn_plan_open(const struct dnn_gpu *gpu, const struct dnn_convolution *convolution, const struct way *way,
                  struct dnn_plan *plan, size_t *workspace, struct error *error) {
    cudnnBackendDescriptor_t graph;
    *plan = (struct dnn_plan){.objects = {.device = gpu->device}};
    RETURN_IF(make_graph(gpu, &plan->objects, convolution, &graph, error));
    return make_plan(gpu, &plan->objects, graph, way, &plan->plan, workspace, error);
}

void dnn_plan_close(struct dnn_plan *plan) {
    if (plan->pack) cudnnBackendDestroyDescriptor(plan->pack);
    plan->pack = NULL;
    close_objects(&plan->objects);
}

/* A pack cannot be told other addresses once it is finalized: it is made anew. */
static int pack(struct dnn_plan *plan, const struct dnn_convolution *convolution,
                const struct dnn_operands *o, struct error *error) {
    const int64_t uids[] = {UID_X, UID_KERNEL, UID_Y, UID_BIAS};
    const void *addresses[] = {o->x, o->kernel, o->y, o->bias};
    const int64_t count = convolution->fused ? 4 : 3;
    const struct attribute attributes[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &o->workspace},
    };
    struct dnn_objects alone = {.device = plan->objects.device};
    if (plan->pack) cudnnBackendDestroyDescriptor(plan->pack);
    plan->pack = NULL;
    cudnnBackendDescriptor_t made;
    const int code = MAKE(&alone, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, attributes, &made, error);
    if (code != OK) {
        close_objects(&alone);
        return code;
    }
    plan->pack = made;
    plan->packed = *o;
    return OK;
}

int dnn_plan_run(struct dnn_plan *plan, const struct dnn_convolution *convolution, cudnnHandle_t handle,
                 const struct dnn_operands *operands, struct error *error) {
    if (!plan->pack || memcmp(&plan->packed, operands, sizeof *operands) != 0)
        RETURN_IF(pack(plan, convolution, operands, error));
    DNN_CAN(plan->objects.device, cudnnBackendExecute(handle, plan->plan, plan->pack), error);
    return OK;
}

/* --- ways --- */

static int read_behavior(const struct device *device, cudnnBackendDescriptor_t engine, bool *compiled,
                         struct error *error) {
    cudnnBackendBehaviorNote_t notes[DNN_NAMED_NOTES];
    int64_t count = 0;
    DNN_CAN(device,
            cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                     DNN_NAMED_NOTES, &count, notes),
            error);
    *compiled = false;
    for (int i = 0; i < count && i < DNN_NAMED_NOTES; i++)
        if (notes[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) *compiled = true;
    return OK;
}

/* What an engine's configuration says, as plain data. */
static int read_way(struct dnn_objects *objects, cudnnBackendDescriptor_t config, struct way *way,
                    struct error *error) {
    const struct device *device = objects->device;
    cudnnBackendDescriptor_t engine, knobs[DNN_MOST_KNOBS + 1];
    cudnnBackendNumericalNote_t notes[DNN_NAMED_NOTES];
    int64_t count = 0;
    int engines = 0;
    RETURN_IF(get_descriptors(objects, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR,
                              &engine, 1, &engines, error));
    if (engines != 1) return KERNEL_DECLINED;
    RETURN_IF(get(device, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &way->engine, error));
    DNN_CAN(device,
            cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                     DNN_NAMED_NOTES, &count, notes),
            error);
    way->notes = 0;
    for (int i = 0; i < count && i < DNN_NAMED_NOTES; i++)
        if ((int)notes[i] < DNN_NAMED_NOTES) way->notes |= 1u << notes[i];
    RETURN_IF(read_behavior(device, engine, &way->compiled, error));
    RETURN_IF(get_descriptors(objects, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                              CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, knobs, DNN_MOST_KNOBS + 1, &way->knobs,
                              error));
    if (way->knobs > DNN_MOST_KNOBS) return KERNEL_DECLINED; /* and half of them would be another way */
    for (int i = 0; i < way->knobs; i++) {
        RETURN_IF(get(device, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
                      &way->knob[i].type, error));
        RETURN_IF(get(device, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64,
                      &way->knob[i].value, error));
    }
    return OK;
}

/* What one list of cuDNN's names. */
static int ask(const struct dnn_gpu *gpu, struct dnn_objects *objects, cudnnBackendDescriptor_t graph,
               cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t *configs, int *count,
               struct error *error) {
    cudnnBackendDescriptor_t list;
    const struct attribute attributes[] = {
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode},
        {gpu->heuristics, gpu->type, 1, &gpu->handle},
    };
    RETURN_IF(MAKE(objects, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attributes, &list, error));
    return get_descriptors(objects, list, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                           configs, MOST_ASKED, count, error);
}

/* Configurations that may be taken, as cuDNN lists them. */
struct listed {
    int count, engines;
    struct {
        struct way way;
        int round; /* how many of its engine stand before it */
        bool tried;
    } at[MOST_LISTED];
};

static bool same_way(const struct way *a, const struct way *b) {
    if (a->engine != b->engine || a->knobs != b->knobs) return false;
    for (int i = 0; i < a->knobs; i++)
        if (a->knob[i].type != b->knob[i].type || a->knob[i].value != b->knob[i].value) return false;
    return true;
}

/* Adds what the last place of the list has been given, unless it is there, or `once` and its engine is. */
static void keep(struct listed *listed, bool once) {
    const struct way *way = &listed->at[listed->count].way;
    int round = 0;
    for (int i = 0; i < listed->count; i++) {
        if (listed->at[i].way.engine != way->engine) continue;
        if (once || same_way(&listed->at[i].way, way)) return;
        round++;
    }
    listed->engines += round == 0;
    listed->at[listed->count++].round = round;
}

/* Adds what one list has. What keeps one configuration from being read is no reason to give up while there
 * are others; *failure has the words of the last. */
static void list_ways(const struct dnn_gpu *gpu, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode,
                      unsigned forbidden, struct listed *listed, struct error *failure) {
    struct dnn_objects objects = {.device = gpu->device}, ones = {.device = gpu->device};
    cudnnBackendDescriptor_t configs[MOST_ASKED];
    struct error found = {0};
    int asked = 0;
    int code = ask(gpu, &objects, graph, mode, configs, &asked, &found);
    if (code != OK && code != KERNEL_DECLINED) *failure = found;
    for (int i = 0; code == OK && i < asked; i++) {
        struct way *way = &listed->at[listed->count].way;
        const int read = read_way(&ones, configs[i], way, &found);
        close_objects(&ones);
        if (read == OK && !(way->notes & forbidden)) keep(listed, mode == CUDNN_HEUR_MODE_FALLBACK);
        if (read != OK && read != KERNEL_DECLINED) *failure = found;
    }
    close_objects(&objects);
}

/* Whether a plan can be made of it, and its workspace is within the budget. */
static int try_way(const struct dnn_gpu *gpu, cudnnBackendDescriptor_t graph, size_t budget, struct way *way,
                   struct error *error) {
    struct dnn_objects objects = {.device = gpu->device};
    cudnnBackendDescriptor_t plan;
    int code = make_plan(gpu, &objects, graph, way, &plan, &way->workspace, error);
    close_objects(&objects);
    if (code == OK && way->workspace > budget) code = KERNEL_DECLINED;
    return code;
}

/* Adds those of a round, or of any: -1, until there are `most`. What keeps one from being planned is no
 * reason to give up; *failure has the words of the last. */
static void add_round(const struct dnn_gpu *gpu, cudnnBackendDescriptor_t graph, struct listed *listed,
                      int round, size_t budget, struct way *ways, int most, int *count,
                      struct error *failure) {
    for (int i = 0; i < listed->count && *count < most; i++) {
        struct way *way = &listed->at[i].way;
        const int own = listed->at[i].round;
        struct error found = {0};
        if (listed->at[i].tried || (round >= 0 && own != round)) continue;
        if (way->compiled && own >= COMPILED_OF_ONE) continue;
        listed->at[i].tried = true;
        const int tried = try_way(gpu, graph, budget, way, &found);
        if (tried == OK) ways[(*count)++] = *way;
        if (tried != OK && tried != KERNEL_DECLINED) *failure = found;
    }
}

/* One half as cuDNN lists them; the other one of all engines, of each the best that is left, then the next of
 * each, and so on: what the heuristics put behind a dozen settings of one engine may be faster than them. */
static void add_ways(const struct dnn_gpu *gpu, cudnnBackendDescriptor_t graph, struct listed *listed,
                     size_t budget, struct way *ways, int most, int *count, struct error *failure) {
    add_round(gpu, graph, listed, -1, budget, ways, *count + (most - *count) / 2, count, failure);
    for (int round = 0; round < MOST_LISTED; round++)
        add_round(gpu, graph, listed, round, budget, ways, most, count, failure);
}

int dnn_find_ways(const struct dnn_gpu *gpu, const struct dnn_convolution *convolution, unsigned forbidden,
                  size_t budget, struct way *ways, int most, int *count, struct error *error) {
    struct dnn_objects objects = {.device = gpu->device};
    cudnnBackendDescriptor_t graph;
    struct error failure = {0};
    struct listed *listed = NULL;
    const cudnnBackendHeurMode_t lists[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    const int before = *count;
    RETURN_IF(memory_array(&listed, 1, "ways of a convolution", error));
    const int code = make_graph(gpu, &objects, convolution, &graph, &failure);
    for (int i = 0; code == OK && i < 2 && (*count == before || listed->engines < FEW_ENGINES); i++) {
        list_ways(gpu, graph, lists[i], forbidden, listed, &failure);
        add_ways(gpu, graph, listed, budget, ways, most, count, &failure);
    }
    close_objects(&objects);
    memory_free(listed);
    for (int i = before; i < *count; i++) ways[i].fused = convolution->fused;
    if (*count > before || failure.code == OK) return OK;
    *error = failure;
    return failure.code;
}
