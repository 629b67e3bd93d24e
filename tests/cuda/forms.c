/* Weights in the forms that cuBLASLt and cuDNN want: one launch makes them, bit for bit what a conversion of
 * each number is; and a run, recorded or not, makes them of the weights as they are then. */
#include "../../src/device/bf16.h"
#include "../../src/device/copy.h"
#include "../../src/program/passes.h"
#include "../gpu_problem.h"

enum { ROWS = 5, COLUMNS = 7, FLOATS = ROWS * COLUMNS, BATCH = 2, PIXELS = 6 * 6 * 3, CLASSES = 5 };

/* Number i of a form of which `from` is the operand. */
static float formed(const float *from, const struct form *form, size_t i) {
    const size_t rows = (size_t)form->rows, columns = (size_t)form->columns;
    const float value = from[form->turned ? i % rows * columns + i / rows : i];
    return form->type == TYPE_BF16 ? bf16_float(bf16_nearest(value)) : value;
}

static void check_forms(const struct device *gpu, enum type type) {
    struct reforming list[REFORMINGS];
    float in[FLOATS], out[FLOATS] = {0};
    float *from = NULL;
    char *to = NULL;
    struct error error = {0};
    const size_t room = sizeof in;
    for (int i = 0; i < FLOATS; i++) in[i] = rng_unit(rng_philox(5, 0, (uint64_t)i).word[0]) - 0.5f;
    int code = device_array(gpu, &from, FLOATS, "operands", &error);
    if (code == OK) code = device_array(gpu, &to, REFORMINGS * room, "forms", &error);
    if (code == OK) code = device_copy(gpu, from, NULL, in, sizeof in, &error);
    for (int f = 0; f < REFORMINGS; f++) { /* of other sizes, one as it is, the next one turned */
        const struct form form = {
            .type = type, .turned = f % 2 == 1, .rows = ROWS - f % 3, .columns = COLUMNS - f % 4};
        list[f] = (struct reforming){from, to + (size_t)f * room, form};
    }
    if (code == OK) code = gpu->backend->reform(gpu, list, REFORMINGS, &error);
    for (int f = 0; f < REFORMINGS && code == OK; f++) {
        const struct form *form = &list[f].form;
        const size_t count = (size_t)form->rows * (size_t)form->columns;
        code = device_copy(NULL, out, gpu, list[f].to, room, &error);
        for (size_t i = 0; i < count; i++) {
            const float found = type == TYPE_BF16 ? bf16_float(((const bf16 *)(const void *)out)[i]) : out[i],
                        expected = formed(in, form, i);
            CHECK(memcmp(&found, &expected, sizeof found) == 0, "form %d, number %zu: %g, expected %g", f, i,
                  (double)found, (double)expected);
        }
        const char *behind = (const char *)out + count * type_bytes(type);
        CHECK(count == FLOATS || *behind == 0, "form %d: written behind its end", f);
    }
    CHECK(code == OK, "%s", error.words);
    if (to) gpu->backend->release(gpu, to);
    if (from) gpu->backend->release(gpu, from);
}

static int run(const struct program *program, struct arena *arena, node x, node y, float *weights,
               float out[BATCH * CLASSES], struct error *error) {
    float in[BATCH * PIXELS];
    for (int i = 0; i < BATCH * PIXELS; i++) in[i] = (float)(i % 7) - 3.0f;
    RETURN_IF(arena_write(arena, x, in, sizeof in, error));
    RETURN_IF(program_run(program, arena, weights, NULL, error));
    return arena_read(arena, y, out, BATCH * CLASSES * sizeof *out, error);
}

/* *first, in an arena that has run before with other weights, and *fresh, in one that has not. */
static int run_both(const struct device *gpu, const struct graph *g, node x, node y, const float *other,
                    float *weights, float first[4][BATCH * CLASSES], float *fresh, struct error *error) {
    struct program *program = NULL;
    struct arena *arena = NULL, *second = NULL;
    const size_t bytes = g->layout.floats * sizeof *weights;
    int code = program_compile(&program, g, &y, 1, gpu, error);
    if (code == OK) code = arena_open(&arena, program, error);
    for (int i = 0; i < 3 && code == OK; i++) code = run(program, arena, x, y, weights, first[i], error);
    if (code == OK) code = device_copy(gpu, weights, NULL, other, bytes, error);
    if (code == OK) code = run(program, arena, x, y, weights, first[3], error);
    if (code == OK) code = arena_open(&second, program, error);
    if (code == OK) code = run(program, second, x, y, weights, fresh, error);
    if (code == OK)
        CHECK(program->formed_count == (gpu->precision == PRECISION_BF16 ? 2 : 1), "%d forms in precision %d",
              program->formed_count, gpu->precision);
    if (code == OK && program->formed_count == 2) /* 27 rows and 5 of zeros */
        CHECK(program->formed[1].offset - program->formed[0].offset >= 32 * 8 * sizeof(bf16) &&
                  program->formed[0].form.padded == 32,
              "no room for zeros");
    arena_close(second);
    arena_close(arena);
    program_close(program);
    return code;
}

/* A convolution, whose kernel gets rows of zeros, and a layer with a kernel and a bias. */
static void check_runs(const struct device *gpu) {
    static const struct initial random = {INITIAL_NORMAL, 0.5f, NULL};
    struct graph g;
    struct error error = {0};
    float *weights = NULL, first[4][BATCH * CLASSES], fresh[BATCH * CLASSES];
    void *host = NULL;
    graph_open(&g, false, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(BATCH, 6, 6, 3));
    const struct pooling windows = {{3, 3}, {1, 1}, PADDING_SAME};
    const node image =
        graph_conv_of(&g, x, 8, &windows, &(struct weights){.kernel = random, .no_bias = true});
    const node y = graph_relu(
        &g, graph_dense(&g, graph_reshape(&g, image, SHAPE(BATCH, 6 * 6 * 8)), CLASSES, random, random));
    int code = graph_check(&g, &error);
    const size_t floats = g.layout.floats;
    if (code == OK) code = device_array(gpu, &weights, floats, "weights", &error);
    if (code == OK) code = memory_zeroed(&host, floats, sizeof(float), "weights", &error);
    if (code == OK) layout_initialize(&g.layout, 3, host);
    if (code == OK) code = device_copy(gpu, weights, NULL, host, floats * sizeof(float), &error);
    if (code == OK) layout_initialize(&g.layout, 4, host);
    if (code == OK) code = run_both(gpu, &g, x, y, host, weights, first, fresh, &error);
    CHECK(code == OK, "%s", error.words);
    for (int i = 1; i < 3 && code == OK; i++)
        CHECK(memcmp(first[i], first[0], sizeof first[0]) == 0, "run %d: other values", i);
    if (code == OK) {
        CHECK(memcmp(first[3], first[0], sizeof first[0]) != 0, "other weights give the same values");
        CHECK(memcmp(first[3], fresh, sizeof fresh) == 0, "the forms are those of weights from before");
    }
    memory_free(host);
    if (weights) gpu->backend->release(gpu, weights);
    graph_close(&g);
}

int main(void) {
    static const enum precision precisions[] = {PRECISION_FP32, PRECISION_BF16};
    gpu_or_skip();
    for (int p = 0; p < 2; p++) {
        struct device gpu = open_gpu(precisions[p]);
        gpu.deterministic = true;
        check_forms(&gpu, p == 0 ? TYPE_FLOAT : TYPE_BF16);
        check_runs(&gpu);
        gpu.backend->close(&gpu);
    }
    CHECK(standin_open(NULL) == 0, "%d things are left", standin_open(NULL));
    return check_end();
}
