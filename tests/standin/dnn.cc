/* cuDNN's part of the stand-in: convolutions in its graph API, as plain loops, queued on the handle's stream.
 *
 * A descriptor is a table of attributes; one that becomes an attribute of another is copied into it. The
 * heuristics name what real ones name: engines of which no plan can be made, or that turn out to be
 * impossible when run; some that are not deterministic, and here give other bits in every run; some that want
 * more workspace than there is; some that round more than float32 allows, as their notes say; one that says
 * that it is compiled; one that is slow and runs anything; and one without a note whose result is not a
 * number where the operands are bf16, at once. An engine is not what was named without the settings that
 * were. What is refused follows cuDNN's documentation. */
#include "cudnn.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "numbers.hh"

struct cudnnContext {
    int device;
    cudaStream_t stream = nullptr;
};

const char *cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
    case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
        return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case CUDNN_STATUS_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    }
    return "CUDNN_UNKNOWN_STATUS";
}

size_t cudnnGetVersion(void) {
    return 91900;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    int device = 0;
    if (!handle) return CUDNN_STATUS_BAD_PARAM;
    if (cudaGetDevice(&device) != cudaSuccess || standin::forbidden_now())
        return CUDNN_STATUS_NOT_INITIALIZED;
    if (standin::fails("cudnnCreate")) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    *handle = new cudnnContext{device};
    standin::count("cudnn object", 1);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    if (!handle) return CUDNN_STATUS_BAD_PARAM;
    delete handle;
    standin::count("cudnn object", -1);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    if (!handle || standin::device_of(stream) != handle->device) return CUDNN_STATUS_BAD_PARAM;
    if (standin::fails("cudnnSetStream")) return CUDNN_STATUS_INTERNAL_ERROR;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* --- descriptors --- */

namespace {

/* Attributes that are descriptors are finalized, so that copies of one can share them. */
struct object {
    cudnnBackendDescriptorType_t kind;
    bool finalized = false;
    std::map<int, std::vector<char>> values; /* by attribute, the elements one behind the other */
    std::map<int, std::vector<std::shared_ptr<const object>>> parts;
};

std::shared_ptr<const object> shared(const object &o) {
    return std::make_shared<const object>(o);
}

const int OF_DEVICE = -1; /* of a plan: the label of its GPU, which nobody can ask for */

/* What a kind of descriptor may be told: attribute, type, elements at least and at most; 0 at least: it may
 * do without. */
struct row {
    int kind, name;
    cudnnBackendAttributeType_t type;
    int64_t least, most;
};
const int64_t many = 1 << 20;
#define TOLD(kind, name, type, least, most)                                                                  \
    { CUDNN_BACKEND_##kind##_DESCRIPTOR, CUDNN_ATTR_##name, CUDNN_TYPE_##type, least, most }
#define TOLD_OPERATION(kind, name, x, w, y)                                                                  \
    TOLD(kind, OPERATION_CONVOLUTION_##name##_CONV_DESC, BACKEND_DESCRIPTOR, 1, 1),                          \
        TOLD(kind, OPERATION_CONVOLUTION_##name##_##x, BACKEND_DESCRIPTOR, 1, 1),                            \
        TOLD(kind, OPERATION_CONVOLUTION_##name##_##w, BACKEND_DESCRIPTOR, 1, 1),                            \
        TOLD(kind, OPERATION_CONVOLUTION_##name##_##y, BACKEND_DESCRIPTOR, 1, 1),                            \
        TOLD(kind, OPERATION_CONVOLUTION_##name##_ALPHA, FLOAT, 1, 1),                                       \
        TOLD(kind, OPERATION_CONVOLUTION_##name##_BETA, FLOAT, 1, 1)
const row rows[] = {
    TOLD(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE, 1, 1),
    TOLD(TENSOR, TENSOR_DIMENSIONS, INT64, 4, 4),
    TOLD(TENSOR, TENSOR_STRIDES, INT64, 4, 4),
    TOLD(TENSOR, TENSOR_UNIQUE_ID, INT64, 1, 1),
    TOLD(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64, 1, 1),
    TOLD(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN, 0, 1),
    TOLD(CONVOLUTION, CONVOLUTION_SPATIAL_DIMS, INT64, 1, 1),
    TOLD(CONVOLUTION, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, 1),
    TOLD(CONVOLUTION, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, 1),
    TOLD(CONVOLUTION, CONVOLUTION_PRE_PADDINGS, INT64, 2, 2),
    TOLD(CONVOLUTION, CONVOLUTION_POST_PADDINGS, INT64, 2, 2),
    TOLD(CONVOLUTION, CONVOLUTION_DILATIONS, INT64, 2, 2),
    TOLD(CONVOLUTION, CONVOLUTION_FILTER_STRIDES, INT64, 2, 2),
    TOLD(POINTWISE, POINTWISE_MODE, POINTWISE_MODE, 1, 1),
    TOLD(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE, 1, 1),
    TOLD_OPERATION(OPERATION_CONVOLUTION_FORWARD, FORWARD, X, W, Y),
    TOLD_OPERATION(OPERATION_CONVOLUTION_BACKWARD_DATA, BWD_DATA, DX, W, DY),
    TOLD_OPERATION(OPERATION_CONVOLUTION_BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
    TOLD(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, 1),
    TOLD(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, 1),
    TOLD(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 0, 1),
    TOLD(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, 1),
    TOLD(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE, 0, 1),
    TOLD(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, 3),
    TOLD(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, 1),
    TOLD(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE, 1, 1),
    TOLD(ENGINEHEUR, ENGINEHEUR_DEVICEPROP, BACKEND_DESCRIPTOR, 0, 1),
    TOLD(ENGINE, ENGINE_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, 1),
    TOLD(ENGINE, ENGINE_GLOBAL_INDEX, INT64, 1, 1),
    TOLD(ENGINE, ENGINE_DEVICEPROP, BACKEND_DESCRIPTOR, 0, 1),
    TOLD(KNOB_CHOICE, KNOB_CHOICE_KNOB_TYPE, KNOB_TYPE, 1, 1),
    TOLD(KNOB_CHOICE, KNOB_CHOICE_KNOB_VALUE, INT64, 1, 1),
    TOLD(ENGINECFG, ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, 1),
    TOLD(ENGINECFG, ENGINECFG_KNOB_CHOICES, BACKEND_DESCRIPTOR, 0, many),
    TOLD(EXECUTION_PLAN, EXECUTION_PLAN_HANDLE, HANDLE, 0, 1),
    TOLD(EXECUTION_PLAN, EXECUTION_PLAN_DEVICEPROP, BACKEND_DESCRIPTOR, 0, 1),
    TOLD(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, 1),
    TOLD(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, 1, many),
    TOLD(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 1, many),
    TOLD(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, 1),
    TOLD(DEVICEPROP, DEVICEPROP_JSON_REPRESENTATION, CHAR, 1, many),
};

size_t bytes_of(cudnnBackendAttributeType_t type) {
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

template <class T> T at(const object &o, int name, size_t i = 0) {
    T value{};
    const auto found = o.values.find(name);
    if (found != o.values.end() && (i + 1) * sizeof value <= found->second.size())
        memcpy(&value, found->second.data() + i * sizeof value, sizeof value);
    return value;
}
template <class T> void put(object &o, int name, T value) {
    o.values[name].assign(sizeof value, 0);
    memcpy(o.values[name].data(), &value, sizeof value);
}
const object &part(const object &o, int name, size_t i = 0) {
    return *o.parts.at(name).at(i);
}
size_t parts(const object &o, int name) {
    const auto found = o.parts.find(name);
    return found == o.parts.end() ? 0 : found->second.size();
}

/* --- a graph as what it computes --- */

enum direction { FORWARD, DATA, FILTER };
struct tensor {
    bool narrow = false, inner = false;
    int64_t uid = 0, dims[4] = {0, 0, 0, 0}, strides[4] = {0, 0, 0, 0};
};
struct work {
    direction which;
    tensor x, w, y, bias;
    int64_t before[2], after[2], stride[2];
    bool fused = false, relu = false;
};

tensor tensor_of(const object &o) {
    tensor t;
    t.narrow = at<cudnnDataType_t>(o, CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_BFLOAT16;
    t.inner = at<char>(o, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    t.uid = at<int64_t>(o, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    for (size_t i = 0; i < 4; i++) {
        t.dims[i] = at<int64_t>(o, CUDNN_ATTR_TENSOR_DIMENSIONS, i);
        t.strides[i] = at<int64_t>(o, CUDNN_ATTR_TENSOR_STRIDES, i);
    }
    return t;
}

size_t size_of(const tensor &t) {
    return (size_t)(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]);
}

bool channels_last(const tensor &t) {
    const int64_t expected[4] = {t.dims[1] * t.dims[2] * t.dims[3], 1, t.dims[1] * t.dims[3], t.dims[1]};
    return std::equal(expected, expected + 4, t.strides);
}

/* One of the three operations: their attributes have the same order behind alpha. */
bool convolution_of(const object &o, work *c) {
    const int first = o.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
                          ? CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA
                      : o.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                          ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
                      : o.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR
                          ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA
                          : -1;
    if (first < 0 || at<float>(o, first) != 1.0f || at<float>(o, first + 1) != 0.0f) return false;
    c->which = first == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA    ? FORWARD
               : first == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA ? DATA
                                                                          : FILTER;
    c->x = tensor_of(part(o, first + 4));
    c->w = tensor_of(part(o, first + 3));
    c->y = tensor_of(part(o, first + 5));
    const object &windows = part(o, first + 2);
    for (size_t axis = 0; axis < 2; axis++) {
        c->before[axis] = at<int64_t>(windows, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, axis);
        c->after[axis] = at<int64_t>(windows, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, axis);
        c->stride[axis] = at<int64_t>(windows, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, axis);
        if (at<int64_t>(windows, CUDNN_ATTR_CONVOLUTION_DILATIONS, axis) != 1) return false;
    }
    return at<int64_t>(windows, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == 2 &&
           at<cudnnDataType_t>(windows, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT &&
           at<cudnnConvolutionMode_t>(windows, CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION;
}

/* Whether x, the kernel and y fit together. */
bool fits(const work &c) {
    const int64_t *x = c.x.dims, *w = c.w.dims, *y = c.y.dims;
    if (w[1] <= 0 || x[1] % w[1] != 0 || y[0] != x[0] || y[1] != w[0] || y[1] % (x[1] / w[1]) != 0)
        return false;
    for (int axis = 0; axis < 2; axis++) {
        const int64_t padded = x[2 + axis] + c.before[axis] + c.after[axis], length = w[2 + axis];
        if (c.before[axis] < 0 || c.after[axis] < 0 || c.stride[axis] < 1 || padded < length ||
            y[2 + axis] != (padded - length) / c.stride[axis] + 1)
            return false;
    }
    return true;
}

/* The sum with a bias of the result's own type, and the ReLU, behind a convolution whose result is within the
 * graph. */
bool fused_of(const object &graph, work *c) {
    const size_t count = parts(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    tensor before = c->y;
    for (size_t i = 1; i < count; i++) {
        const object &o = part(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
        if (o.kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR || !before.inner || before.narrow)
            return false;
        const object &what = part(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
        const auto mode = at<cudnnPointwiseMode_t>(what, CUDNN_ATTR_POINTWISE_MODE);
        const bool adds = parts(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC) == 1;
        if (mode != (i == 1 ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_RELU_FWD) || adds != (i == 1) ||
            at<cudnnDataType_t>(what, CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_FLOAT ||
            tensor_of(part(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC)).uid != before.uid)
            return false;
        if (adds) c->bias = tensor_of(part(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
        before = tensor_of(part(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
        if (!std::equal(before.dims, before.dims + 4, c->y.dims)) return false;
    }
    c->y = before;
    c->fused = count > 1;
    c->relu = count > 2;
    return !c->fused || (c->which == FORWARD && c->bias.narrow == c->y.narrow &&
                         c->bias.dims[1] == c->y.dims[1] && size_of(c->bias) == (size_t)c->y.dims[1]);
}

/* False: there is no engine for it. */
bool work_of(const object &graph, work *c) {
    return convolution_of(part(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS), c) && fused_of(graph, c) && fits(*c) &&
           !c->x.inner && !c->w.inner && !c->y.inner && c->x.narrow == c->w.narrow &&
           c->x.narrow == c->y.narrow && channels_last(c->x) && channels_last(c->w) && channels_last(c->y);
}

/* --- engines --- */

enum trait { SOUND, REFUSED, IMPOSSIBLE, RANDOM, GREEDY, COARSE, TENSOR, MISMATCHED, PLAIN };
struct engine {
    int64_t number;
    trait is;
    int64_t tile; /* what its knob has to be; 0: it has none */
    size_t workspace;
};
const size_t too_much = (size_t)1 << 50;
const int64_t compiled = 18; /* the engine that is compiled when a plan is made */
/* Mode A's; then those of convolutions with bias. */
const std::vector<engine> best[] = {{{11, GREEDY, 0, too_much},
                                     {12, IMPOSSIBLE, 0, 100},
                                     {13, COARSE, 0, 0},
                                     {14, TENSOR, 2, 777},
                                     {15, SOUND, 2, 777},
                                     {15, SOUND, 3, 1777},
                                     {16, MISMATCHED, 0, 0},
                                     {17, REFUSED, 0, 0},
                                     {18, SOUND, 5, 0},
                                     {18, SOUND, 6, 0},
                                     {18, SOUND, 7, 0},
                                     {0, PLAIN, 0, 0}},
                                    {{21, RANDOM, 0, 0},
                                     {22, COARSE, 0, 0},
                                     {23, IMPOSSIBLE, 0, 100},
                                     {24, TENSOR, 5, 3000},
                                     {25, SOUND, 4, 3000},
                                     {26, REFUSED, 0, 0}},
                                    {{31, RANDOM, 0, 0},
                                     {32, COARSE, 0, 0},
                                     {33, GREEDY, 0, too_much},
                                     {34, TENSOR, 2, 0},
                                     {35, SOUND, 1, 513},
                                     {36, REFUSED, 0, 0}},
                                    {{41, IMPOSSIBLE, 0, 0}, {42, TENSOR, 3, 777}, {43, SOUND, 0, 0}}};
/* Of grouped ones the heuristics know nothing. */
const std::vector<engine> fallback = {{91, REFUSED, 0, 0}, {92, COARSE, 0, 0}, {0, PLAIN, 0, 0}};

std::vector<engine> engines_of(const work &c, cudnnBackendHeurMode_t mode) {
    if (mode == CUDNN_HEUR_MODE_FALLBACK) return fallback;
    if (mode != CUDNN_HEUR_MODE_A || c.x.dims[1] != c.w.dims[1]) return {};
    return best[c.fused ? 3 : c.which];
}

std::vector<cudnnBackendNumericalNote_t> notes_of(const engine &e) {
    switch (e.is) {
    case RANDOM:
        return {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    case COARSE:
        return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS};
    case TENSOR:
        return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
    case PLAIN:
        return {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP};
    default:
        return {};
    }
}

/* Each kind of arithmetic wants another workspace. */
size_t workspace_of(const engine &e, const work &c) {
    return e.workspace > 0 && c.x.narrow ? e.workspace + 300 : e.workspace;
}

object make(cudnnBackendDescriptorType_t kind) {
    object o;
    o.kind = kind;
    o.finalized = true;
    return o;
}

object knob(cudnnBackendKnobType_t type, int64_t value) {
    object o = make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    put(o, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, type);
    put(o, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
    return o;
}

object config_of(const object &graph, const engine &e) {
    object named = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR), config = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    named.parts[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {shared(graph)};
    put(named, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, e.number);
    for (const cudnnBackendNumericalNote_t note : notes_of(e)) {
        std::vector<char> &notes = named.values[CUDNN_ATTR_ENGINE_NUMERICAL_NOTE];
        notes.insert(notes.end(), (const char *)&note, (const char *)(&note + 1));
    }
    if (e.number == compiled)
        put(named, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
    config.parts[CUDNN_ATTR_ENGINECFG_ENGINE] = {shared(named)};
    if (e.tile > 0)
        config.parts[CUDNN_ATTR_ENGINECFG_KNOB_CHOICES] = {shared(knob(CUDNN_KNOB_TYPE_STAGES, 3)),
                                                           shared(knob(CUDNN_KNOB_TYPE_TILE_SIZE, e.tile))};
    return config;
}

/* The engine of a configuration, as it is set; false: there is none. */
bool engine_of(const object &config, const work &c, engine *found) {
    const object &named = part(config, CUDNN_ATTR_ENGINECFG_ENGINE);
    const int64_t number = at<int64_t>(named, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    int64_t tile = 0, stages = 0;
    for (size_t i = 0; i < parts(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES); i++) {
        const object &k = part(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, i);
        const bool is_tile =
            at<cudnnBackendKnobType_t>(k, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) == CUDNN_KNOB_TYPE_TILE_SIZE;
        (is_tile ? tile : stages) = at<int64_t>(k, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    }
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
        for (const engine &e : engines_of(c, mode))
            if (e.number == number && e.tile == tile && stages == (tile > 0 ? 3 : 0)) {
                *found = e;
                return true;
            }
    return false;
}

/* --- the loops --- */

/* One of x, w and y is the sum of the products of the other two: the one that `which` names is cleared and
 * filled. */
UNWATCHED static void convolve(const work &c, std::vector<float> &x, std::vector<float> &w,
                               std::vector<float> &y) {
    const direction which = c.which;
    const int64_t *x_dims = c.x.dims, *w_dims = c.w.dims, *y_dims = c.y.dims;
    const int64_t in = w_dims[1], out = y_dims[1], out_of_group = out / (x_dims[1] / in);
    std::vector<float> &result = which == FORWARD ? y : which == DATA ? x : w;
    result.assign(size_of(which == FORWARD ? c.y : which == DATA ? c.x : c.w), 0.0f);
    for (int64_t n = 0; n < y_dims[0]; n++)
        for (int64_t row = 0; row < y_dims[2]; row++)
            for (int64_t column = 0; column < y_dims[3]; column++)
                for (int64_t i = 0; i < w_dims[2]; i++)
                    for (int64_t j = 0; j < w_dims[3]; j++) {
                        const int64_t h = row * c.stride[0] + i - c.before[0];
                        const int64_t v = column * c.stride[1] + j - c.before[1];
                        if (h < 0 || h >= x_dims[2] || v < 0 || v >= x_dims[3]) continue;
                        float *pixel = &x[(size_t)(((n * x_dims[2] + h) * x_dims[3] + v) * x_dims[1])];
                        float *ys = &y[(size_t)(((n * y_dims[2] + row) * y_dims[3] + column) * out)];
                        for (int64_t o = 0; o < out; o++) {
                            float *ws = &w[(size_t)(((o * w_dims[2] + i) * w_dims[3] + j) * in)];
                            float *xs = pixel + o / out_of_group * in;
                            float sum = 0.0f;
                            for (int64_t k = 0; k < in; k++) {
                                if (which == FORWARD) sum += xs[k] * ws[k];
                                if (which == DATA) xs[k] += ws[k] * ys[o];
                                if (which == FILTER) ws[k] += xs[k] * ys[o];
                            }
                            if (which == FORWARD) ys[o] += sum;
                        }
                    }
}

/* A tensor's numbers as [n][h][w][c], rounded as tensor cores have them. */
std::vector<float> read_tensor(const tensor &t, const void *data, bool rounded) {
    std::vector<float> out(size_of(t));
    for (size_t i = 0; i < out.size(); i++) {
        const float value = standin::read_number(data, t.narrow, i);
        out[i] = rounded ? standin::tf32(value) : value;
    }
    return out;
}

struct places {
    const void *x, *w, *y, *bias;
    void *workspace;
};

std::atomic<unsigned> runs;

void compute(const work &c, const engine &e, const places &p) {
    std::vector<float> xs, ws, ys;
    if (c.which != DATA) xs = read_tensor(c.x, p.x, e.is == TENSOR);
    if (c.which != FILTER) ws = read_tensor(c.w, p.w, e.is == TENSOR);
    if (c.which != FORWARD) ys = read_tensor(c.y, p.y, e.is == TENSOR);
    const bool mismatched = e.is == MISMATCHED && c.x.narrow;
    std::vector<float> &result = c.which == FORWARD ? ys : c.which == DATA ? xs : ws;
    const tensor &to = c.which == FORWARD ? c.y : c.which == DATA ? c.x : c.w;
    void *out = const_cast<void *>(c.which == FORWARD ? p.y : c.which == DATA ? p.x : p.w);
    if (mismatched) result.assign(size_of(to), std::numeric_limits<float>::quiet_NaN());
    if (!mismatched) convolve(c, xs, ws, ys);
    if (e.is == RANDOM || e.is == PLAIN) convolve(c, xs, ws, ys); /* slow */
    const float other = e.is == RANDOM ? 1.0f + 1e-6f * (float)(runs++ % 7) : 1.0f;
    for (size_t i = 0; i < result.size(); i++) {
        float value = other * result[i];
        if (e.is == COARSE) value = bf16_float(bf16_nearest(value));
        if (c.fused) value += standin::read_number(p.bias, c.bias.narrow, i % (size_t)c.y.dims[1]);
        if (c.relu) value = fmaxf(value, 0.0f);
        standin::write_number(out, to.narrow, i, value);
    }
}

bool finalize(object *o) {
    work c;
    engine e;
    switch (o->kind) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: {
        const tensor t = tensor_of(*o);
        const int64_t alignment = at<int64_t>(*o, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
        return std::all_of(t.dims, t.dims + 4, [](int64_t d) { return d > 0; }) && alignment > 0 &&
               (alignment & (alignment - 1)) == 0;
    }
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: {
        const object graph = part(*o, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        auto &results = o->parts[CUDNN_ATTR_ENGINEHEUR_RESULTS];
        if (!work_of(graph, &c)) return true; /* an empty list */
        for (const engine &one : engines_of(c, at<cudnnBackendHeurMode_t>(*o, CUDNN_ATTR_ENGINEHEUR_MODE)))
            results.push_back(shared(config_of(graph, one)));
        return true;
    }
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
        const object &config = part(*o, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        const object &graph =
            part(part(config, CUDNN_ATTR_ENGINECFG_ENGINE), CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
        const auto handle = at<cudnnHandle_t>(*o, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
        if (!handle && parts(*o, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP) == 0) return false;
        put(*o, OF_DEVICE, handle ? handle->device : -1);
        if (!work_of(graph, &c) || !engine_of(config, c, &e) || e.is == REFUSED) return false;
        put(*o, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, (int64_t)workspace_of(e, c));
        return true;
    }
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        return o->values[CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS].size() ==
               o->values[CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS].size();
    default:
        return true;
    }
}

} // namespace

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *out) {
    if (!out) return CUDNN_STATUS_BAD_PARAM;
    if (standin::fails("cudnnBackendCreateDescriptor"))
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    object *made = new object;
    made->kind = kind;
    *out = made;
    standin::count("cudnn object", 1);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    if (!descriptor) return CUDNN_STATUS_BAD_PARAM;
    delete (object *)descriptor;
    standin::count("cudnn object", -1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *elements) {
    object *o = (object *)descriptor;
    if (!o || !elements || o->finalized) return CUDNN_STATUS_BAD_PARAM;
    const row *r = std::find_if(std::begin(rows), std::end(rows),
                                [=](const row &one) { return one.kind == o->kind && one.name == name; });
    if (r == std::end(rows) || r->type != type || count < 1 || count > r->most) return CUDNN_STATUS_BAD_PARAM;
    if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        const char *from = (const char *)elements;
        o->values[name].assign(from, from + (size_t)count * bytes_of(type));
        return CUDNN_STATUS_SUCCESS;
    }
    o->parts[name].clear();
    for (int64_t i = 0; i < count; i++) {
        const object *one = ((const object *const *)elements)[i];
        if (!one || !one->finalized) return CUDNN_STATUS_BAD_PARAM;
        o->parts[name].push_back(shared(*one));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
    object *o = (object *)descriptor;
    if (!o || o->finalized) return CUDNN_STATUS_BAD_PARAM;
    if (standin::fails("cudnnBackendFinalize")) return CUDNN_STATUS_INTERNAL_ERROR;
    for (const row &r : rows) {
        if (r.kind != o->kind || r.least == 0) continue;
        const size_t there = r.type == CUDNN_TYPE_BACKEND_DESCRIPTOR
                                 ? parts(*o, r.name)
                                 : o->values[r.name].size() / bytes_of(r.type);
        if (there < (size_t)r.least) return CUDNN_STATUS_BAD_PARAM;
    }
    if (!finalize(o)) return CUDNN_STATUS_NOT_SUPPORTED;
    if (o->kind == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) standin::contest();
    o->finalized = true;
    return CUDNN_STATUS_SUCCESS;
}

/* Descriptors are copied into those that the caller has made. How many knobs a configuration sets cuDNN 9
 * does not say, without an error. */
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       int64_t requested, int64_t *count, void *elements) {
    const object *o = (const object *)descriptor;
    if (!o || !o->finalized || requested < 0 || (requested > 0 && !elements)) return CUDNN_STATUS_BAD_PARAM;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        const size_t there = parts(*o, name), given = std::min(there, (size_t)requested);
        const bool knobs = name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES;
        for (size_t i = 0; i < given; i++) {
            object *to = ((object **)elements)[i];
            const object &from = part(*o, name, i);
            if (!to || to->kind != from.kind) return CUDNN_STATUS_BAD_PARAM;
            *to = from;
        }
        if (count) *count = requested > 0 ? (int64_t)given : knobs ? 0 : (int64_t)there;
        return CUDNN_STATUS_SUCCESS;
    }
    const auto found = o->values.find(name);
    const size_t there = found == o->values.end() ? 0 : found->second.size() / bytes_of(type);
    const size_t given = std::min(there, (size_t)requested);
    if (given > 0) memcpy(elements, found->second.data(), given * bytes_of(type));
    if (count) *count = (int64_t)(requested > 0 ? given : there);
    return CUDNN_STATUS_SUCCESS;
}

/* Whichever handle of the GPU it was made for. */
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                  cudnnBackendDescriptor_t variantPack) {
    const object *plan = (const object *)executionPlan, *pack = (const object *)variantPack;
    work c;
    engine e;
    if (!handle || !plan || !pack || !plan->finalized || !pack->finalized ||
        plan->kind != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
        pack->kind != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR || at<int>(*plan, OF_DEVICE) != handle->device)
        return CUDNN_STATUS_BAD_PARAM;
    const object &config = part(*plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (!work_of(part(part(config, CUDNN_ATTR_ENGINECFG_ENGINE), CUDNN_ATTR_ENGINE_OPERATION_GRAPH), &c) ||
        !engine_of(config, c, &e) || e.is == IMPOSSIBLE)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (standin::fails("cudnnBackendExecute")) return CUDNN_STATUS_EXECUTION_FAILED;
    std::map<int64_t, const void *> addresses;
    for (size_t i = 0; i < pack->values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size() / 8; i++)
        addresses[at<int64_t>(*pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i)] =
            at<const void *>(*pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
    const places p = {addresses[c.x.uid], addresses[c.w.uid], addresses[c.y.uid],
                      c.fused ? addresses[c.bias.uid] : nullptr,
                      at<void *>(*pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)};
    for (const void *address : {p.x, p.w, p.y, c.fused ? p.bias : p.x}) {
        if (!address || (uintptr_t)address % 16 != 0) return CUDNN_STATUS_BAD_PARAM;
        standin::reach(handle->stream, address, "cudnnBackendExecute");
    }
    const size_t needed = workspace_of(e, c);
    if (needed > 0 && !p.workspace) return CUDNN_STATUS_BAD_PARAM;
    const std::string code = "cudnn " + std::to_string(e.number) + " " + std::to_string((int)c.which) + " " +
                             std::to_string(c.x.narrow) + " " + std::to_string(c.fused);
    if (standin::load(handle->stream, code) != cudaSuccess) return CUDNN_STATUS_EXECUTION_FAILED;
    const cudaError_t queued = standin::queue(handle->stream, "cudnnBackendExecute", [=] {
        if (needed > 0) memset(p.workspace, 0xA5, needed);
        compute(c, e, p);
    });
    return queued == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
