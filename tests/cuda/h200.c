/* What cuDNN says of an H200, which need not be here: for every convolution of every model, in each direction
 * and precision, with and without --deterministic, there is an engine that may be used, of which a plan can
 * be made whose workspace is within the budget; no way comes twice; bias and ReLU are cuDNN's. The stand-in's
 * cuDNN is asked the same.
 *
 * cuDNN 9.8 and later answer for a GPU whose properties they are told: tests/cuda/h200.json. TELL=1: prints
 * the first way of each. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/convolution.h"
#include "../../src/base/file.h"
#include "../../src/base/memory.h"
#include "../../src/engine/network.h"
#include "../../src/graph/model.h"
#include "../check.h"

enum { BATCH = 128, MOST_PROBLEMS = 1024 };
/* As cuDNN 9.8's header numbers them; the one that is compiled with may be older. */
enum { PROPERTIES = 38, PROPERTIES_JSON = 2702, OF_HEURISTICS = 204, OF_ENGINE = 1307, OF_PLAN = 407 };

static const struct device first = {.name = "h200"};
static cudnnBackendDescriptor_t properties;

static int skip(const char *why) {
    printf("%s\n", why);
    return 77;
}

/* False: this cuDNN knows GPUs that are here alone. */
static bool open_properties(void) {
    struct error error = {0};
    char *json = NULL;
    size_t bytes = 0;
    CHECK(file_read_plain("tests/cuda/h200.json", 1 << 16, &json, &bytes, &error) == OK, "%s", error.words);
    if (!json) return false;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor((cudnnBackendDescriptorType_t)PROPERTIES, &properties);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendSetAttribute(properties, (cudnnBackendAttributeName_t)PROPERTIES_JSON,
                                          CUDNN_TYPE_CHAR, (int64_t)strlen(json) + 1, json);
    if (status == CUDNN_STATUS_SUCCESS) status = cudnnBackendFinalize(properties);
    memory_free(json);
    return status == CUDNN_STATUS_SUCCESS;
}

/* --- one convolution --- */

static int asked, ways_found, fused_found;
static size_t largest; /* workspace of a way */

static unsigned forbidden(const struct device *device) {
    unsigned notes = 1u << 1 | 1u << 2 | 1u << 7 | 1u << 8; /* converted, sums, large tiles of Winograd's */
    if (device->precision == PRECISION_FP32) notes |= 1u << 0; /* tensor cores */
    if (device->deterministic) notes |= 1u << 4;               /* not deterministic */
    return notes;
}

static void check_way(const struct dnn_gpu *gpu, const struct convolution_plan *plan, int number,
                      const char *text) {
    const struct way *way = &plan->ways[number];
    CHECK(!(way->notes & forbidden(gpu->device)), "%s, way %d: engine %lld: notes %x", text, number,
          (long long)way->engine, way->notes);
    CHECK(way->workspace <= (size_t)256 << 20, "%s, way %d: workspace %zu", text, number, way->workspace);
    if (way->workspace > largest) largest = way->workspace;
}

/* All ways have had a plan; one is enough to see that the same is made again. */
static void check_plan(const struct dnn_gpu *gpu, const struct convolution_plan *plan, int number,
                       const char *text) {
    const struct way *way = &plan->ways[number];
    const struct dnn_convolution told = convolution_told(plan, way);
    struct dnn_plan made = {0};
    struct error error = {0};
    size_t workspace = 0;
    const int code = dnn_plan_open(gpu, &told, way, &made, &workspace, &error);
    CHECK(code == OK, "%s, way %d: engine %lld: %d %s", text, number, (long long)way->engine, code,
          error.words);
    CHECK(workspace == way->workspace, "%s, way %d: workspace %zu, %zu", text, number, workspace,
          way->workspace);
    dnn_plan_close(&made);
}

/* No way comes twice. Of the few ways that are listed where none is measured, the stand-in has an engine for
 * each; and cuDNN compiles two for one engine at most. */
static void check_differ(const struct convolution_plan *plan, const char *text) {
    const int most = STANDIN && plan->device->deterministic ? 1 : plan->count;
    for (int i = 0; i < plan->count; i++) {
        int same = 1;
        for (int k = 0; k < i; k++) {
            const struct way *a = &plan->ways[i], *b = &plan->ways[k];
            same += a->engine == b->engine && a->fused == b->fused;
            CHECK(a->engine != b->engine || a->fused != b->fused || a->knobs != b->knobs ||
                      memcmp(a->knob, b->knob, (size_t)a->knobs * sizeof *a->knob) != 0,
                  "%s: ways %d and %d are the same", text, k, i);
        }
        CHECK(same <= (plan->ways[i].compiled ? 2 : most), "%s: %d ways of engine %lld", text, same,
              (long long)plan->ways[i].engine);
    }
}

static void check_problem(struct problem *problem, enum precision precision, bool deterministic) {
    static struct convolution_plan plan;
    struct device device = {.name = "h200", .precision = precision, .deterministic = deterministic};
    const struct dnn_gpu gpu = {.device = &device,
                                .handle = properties,
                                .type = CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                .graph = DNN_UNTOLD,
                                .heuristics = OF_HEURISTICS,
                                .engine = OF_ENGINE,
                                .plan = OF_PLAN};
    struct error error = {0};
    char a[60], b[60], text[300];
    problem->device = &device;
    memset(&plan, 0, sizeof plan);
    snprintf(text, sizeof text, "%s %s x %s, stride %d, %s%s", op_name(problem->op),
             shape_text(&problem->input[0].shape, a, sizeof a),
             shape_text(&problem->input[1].shape, b, sizeof b), problem->attributes->stride[0],
             precision == PRECISION_FP32   ? "fp32"
             : precision == PRECISION_BF16 ? "bf16"
                                           : "tf32",
             deterministic ? ", deterministic" : "");
    CHECK(convolution_open(problem, &plan) == OK, "%s: declined", text);
    const int code = convolution_find_ways(&gpu, &plan, &error);
    CHECK(code == OK && plan.count > 0, "%s: %d ways, %d %s", text, plan.count, code, error.words);
    for (int i = 0; i < plan.count; i++) check_way(&gpu, &plan, i, text);
    check_differ(&plan, text);
    if (plan.count > 0) check_plan(&gpu, &plan, plan.count - 1, text);
    if (problem->op == OP_conv2d_bias && problem->attributes->activation == ACTIVATION_RELU) {
        CHECK(plan.count > 0 && plan.ways[0].fused, "%s: bias and ReLU are not fused", text);
        CHECK(plan.count > 0 && !plan.ways[plan.count - 1].fused, "%s: all ways are fused", text);
        fused_found++;
    }
    if (getenv("TELL"))
        printf("%s: %d ways; the first: engine %lld, notes %x, workspace %zu\n", text, plan.count,
               (long long)plan.ways[0].engine, plan.ways[0].notes, plan.ways[0].workspace);
    asked++;
    ways_found += plan.count;
}

/* --- all of them --- */

static struct seen {
    enum op op;
    enum activation activation;
    struct dnn_convolution told;
} seen[MOST_PROBLEMS];
static int seen_count;

static bool is_new(const struct problem *problem) {
    struct convolution_plan plan;
    struct seen now;
    memset(&plan, 0, sizeof plan);
    memset(&now, 0, sizeof now);
    CHECK(convolution_open(problem, &plan) == OK, "%s: declined", op_name(problem->op));
    now.op = problem->op;
    now.activation = problem->attributes->activation;
    memcpy(&now.told, &plan.told, sizeof now.told);
    for (int i = 0; i < seen_count; i++)
        if (memcmp(&seen[i], &now, sizeof now) == 0) return false;
    CHECK(seen_count < MOST_PROBLEMS, "more than %d convolutions", seen_count);
    if (seen_count < MOST_PROBLEMS) seen[seen_count++] = now;
    return true;
}

/* In every precision, a bias without ReLU in one; and in one without what differs from run to run. Which one
 * is another for each problem. */
static void check_everywhere(struct problem *problem) {
    const bool alone = problem->op == OP_conv2d_bias && problem->attributes->activation == ACTIVATION_NONE;
    problem->device = &first;
    if (!is_new(problem)) return;
    const enum precision one = (enum precision)(seen_count % (PRECISION_TF32 + 1));
    for (int p = PRECISION_FP32; p <= PRECISION_TF32; p++)
        if (!alone || p == (int)one) check_problem(problem, (enum precision)p, false);
    check_problem(problem, one, true);
}

/* A convolution of a graph, also as fusion makes it: with its bias, and a ReLU. */
static void check_node(const struct graph *g, node n) {
    const struct node_info *info = &g->nodes[n];
    struct attributes attributes = info->attributes;
    struct problem problem = {.op = info->op, .attributes = &attributes, .inputs = 2, .device = &first};
    for (int i = 0; i < 2; i++) problem.input[i].shape = g->nodes[info->input[i]].shape;
    problem.output.shape = info->shape;
    check_everywhere(&problem);
    if (info->op != OP_conv2d) return;
    problem.op = OP_conv2d_bias;
    problem.inputs = 3;
    problem.input[2].shape = SHAPE(info->shape.dims[3]);
    attributes.activation = ACTIVATION_RELU;
    check_everywhere(&problem);
    attributes.activation = ACTIVATION_NONE;
    check_everywhere(&problem);
}

/* Convolutions of the model, forward and backward. */
static int check_model(const char *model, struct shape shape) {
    static char text[PLUGIN_TEXT_BYTES];
    struct network network = {0};
    struct choice choice;
    struct error error = {0};
    int count = 0;
    snprintf(text, sizeof text, "%s", model);
    CHECK(model_resolve(text, sizeof text, NULL, &error) == OK &&
              plugin_choose(&choice, &model_kind, text, &error) == OK,
          "%s: %s", model, error.words);
    const struct network_settings settings = {.model = &choice,
                                              .shape = shape,
                                              .classes = 10,
                                              .batch = BATCH,
                                              .training = true,
                                              .seed = 1,
                                              .shards = 1};
    CHECK(network_open(&network, &settings, &error) == OK, "%s: %s", model, error.words);
    for (node n = 0; n < network.graph.count; n++) {
        const enum op op = network.graph.nodes[n].op;
        if (op != OP_conv2d && op != OP_conv2d_grad_x && op != OP_conv2d_grad_kernel) continue;
        check_node(&network.graph, n);
        count++;
    }
    network_close(&network);
    return count;
}

/* Of images as CIFAR-10 has them, cropped, and of those of MNIST, but for lists of layers. What the stand-in
 * says does not depend on it. */
int main(void) {
    const struct shape shapes[] = {SHAPE(24, 24, 3), SHAPE(28, 28, 1)};
    struct error error = {0};
    int count = 0;
    if (gpu_load(&first, &cublaslt_library, &error) || gpu_load(&first, &cudnn_library, &error))
        return skip("no cuDNN here");
    if (!open_properties()) return skip("no cuDNN here that knows of other GPUs");
    for (int m = 0; models[m]; m++)
        for (int i = 0; i < (STANDIN ? 1 : 2); i++) count += check_model(models[m]->plugin.name, shapes[i]);
    glob_t lists = {0};
    CHECK(glob("models/layers/*.txt", 0, NULL, &lists) == 0 && lists.gl_pathc > 0, "no lists of layers");
    for (size_t i = 0; i < lists.gl_pathc; i++) {
        char model[200];
        snprintf(model, sizeof model, "layers:%s", lists.gl_pathv[i]);
        CHECK(check_model(model, shapes[0]) > 0, "%s has no convolution", model);
    }
    globfree(&lists);
    CHECK(count > 0 && fused_found > 0, "%d convolutions, %d fused", count, fused_found);
    printf("%d problems, %d ways; %d with bias and ReLU; a workspace of at most %.1f MB\n", asked, ways_found,
           fused_found, (double)largest / 1e6);
    CHECK(cudnnBackendDestroyDescriptor(properties) == CUDNN_STATUS_SUCCESS, "the properties");
    return check_end();
}
