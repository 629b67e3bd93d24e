/* What src/program fuses on a device that launches what it computes: the losses of a batch and their mean,
 * and the slope that the mean has for each of them. Loss and gradient are those of the CPU, which fuses
 * neither. */
#include <math.h>
#include "../../src/device/copy.h"
#include "../../src/program/passes.h"
#include "../gpu_problem.h"

enum { MOST = 1200 * 10, FETCHES = 3 };

/* How the mean is made, and what else is asked for. */
struct loss {
    int batch, classes, axis;
    float smoothing;
    bool losses; /* are fetched, too */
    bool direct; /* the gradient is that of the logits */
    bool wrong;  /* example 3 has a label beyond the classes: what it gives is not a number */
    bool two;    /* the mean of other losses of the same logits is made before it */
};

struct side {
    struct program *program;
    struct arena *arena;
};

static int count(const struct program *program, enum op op) {
    int found = 0;
    for (int s = 0; s < program->instruction_count; s++) found += program->instructions[s].problem.op == op;
    return found;
}

/* values [fetches][MOST] */
static int run_on(const struct device *device, struct side *side, const struct graph *g, const node *fetches,
                  int fetched, node x, node labels, bool wrong, float values[FETCHES][MOST],
                  struct error *error) {
    static float in[MOST];
    static int label[MOST];
    const size_t batch = (size_t)g->nodes[x].shape.dims[0], floats = shape_count(&g->nodes[x].shape);
    const int classes = g->nodes[x].shape.dims[1];
    for (size_t i = 0; i < floats; i++) in[i] = 8.0f * rng_unit(rng_philox(3, 0, i).word[0]) - 4.0f;
    for (size_t i = 0; i < batch; i++) label[i] = (int)(i * 7 % (size_t)classes);
    if (wrong) label[3] = classes;
    RETURN_IF(program_compile(&side->program, g, fetches, fetched, device, error));
    RETURN_IF(arena_open(&side->arena, side->program, error));
    for (int run = 0; run < 3; run++) { /* as it is, recorded, and replayed */
        RETURN_IF(arena_write(side->arena, x, in, floats * sizeof *in, error));
        RETURN_IF(arena_write(side->arena, labels, label, batch * sizeof *label, error));
        RETURN_IF(program_run(side->program, side->arena, NULL, NULL, error));
    }
    for (int f = 0; f < fetched; f++)
        RETURN_IF(arena_read(side->arena, fetches[f], values[f],
                             shape_count(&g->nodes[fetches[f]].shape) * sizeof(float), error));
    return OK;
}

static void check_loss(const struct device *gpu, struct loss l) {
    const struct device cpu = device_processor();
    static float here[FETCHES][MOST], there[FETCHES][MOST];
    struct graph g;
    struct error error = {0};
    struct side on_cpu = {0}, on_gpu = {0};
    node fetches[FETCHES];
    graph_open(&g, true, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(l.batch, l.classes)),
               logits = graph_tanh(&g, x), target = l.direct ? logits : x,
               labels = graph_placeholder(&g, "labels", TYPE_INT, SHAPE(l.batch));
    const node other =
        graph_reduce_mean(&g, graph_smoothed_cross_entropy(&g, logits, labels, 0.5f), 0, false);
    const node losses = graph_smoothed_cross_entropy(&g, logits, labels, l.smoothing);
    fetches[0] = graph_reduce_mean(&g, losses, l.axis, false);
    graph_gradients(&g, fetches[0], &target, 1, &fetches[1]);
    fetches[2] = l.two ? other : losses;
    const int fetched = l.losses || l.two ? 3 : 2;
    int code = graph_check(&g, &error);
    if (code == OK) code = run_on(&cpu, &on_cpu, &g, fetches, fetched, x, labels, false, here, &error);
    if (code == OK) code = run_on(gpu, &on_gpu, &g, fetches, fetched, x, labels, l.wrong, there, &error);
    CHECK(code == OK, "%s", error.words);
    for (int f = 0; f < fetched && code == OK; f++)
        for (size_t i = 0; i < shape_count(&g.nodes[fetches[f]].shape); i++)
            CHECK(l.wrong && (f == 0 || i / (size_t)l.classes == 3)
                      ? isnan(there[f][i])
                      : fabsf(here[f][i] - there[f][i]) <= 1e-5f * fmaxf(1e-3f, fabsf(here[f][i])),
                  "%d x %d, fetch %d, element %zu: %g, expected %g", l.batch, l.classes, f, i,
                  (double)there[f][i], (double)here[f][i]);
    const struct program *there_is = on_gpu.program, *here_is = on_cpu.program;
    if (code == OK) {
        CHECK(count(here_is, OP_reduce_mean) == (l.two ? 2 : 1) && count(here_is, OP_broadcast_to) == 1 &&
                  count(here_is, OP_softmax_cross_entropy_grad) == 1,
              "the CPU's program is fused");
        CHECK(count(there_is, OP_softmax_cross_entropy) == (l.two ? 2 : 1) &&
                  count(there_is, OP_broadcast_to) == 0 &&
                  count(there_is, OP_reduce_mean) == (l.losses ? 1 : 0) &&
                  count(there_is, OP_softmax_cross_entropy_grad) == (l.losses || l.direct ? 1 : 0),
              "%d x %d, losses %d, direct %d: %d instructions", l.batch, l.classes, l.losses, l.direct,
              program_instructions(there_is));
    }
    arena_close(on_cpu.arena);
    arena_close(on_gpu.arena);
    program_close(on_cpu.program);
    program_close(on_gpu.program);
    graph_close(&g);
}

int main(void) {
    gpu_or_skip();
    struct device gpu = open_gpu(PRECISION_FP32);
    for (int kind = 0; kind < 16; kind++) {
        const struct loss l = {.batch = 100,
                               .classes = 10,
                               .axis = kind & 1 ? 0 : ALL_AXES,
                               .smoothing = kind & 2 ? 0.1f : 0.0f,
                               .losses = kind & 4,
                               .direct = kind & 8};
        check_loss(&gpu, l);
    }
    check_loss(&gpu, (struct loss){.batch = 100, .classes = 10, .axis = 0, .two = true});
    check_loss(&gpu, (struct loss){.batch = 100, .classes = 10, .axis = 0, .wrong = true});
    check_loss(&gpu, (struct loss){.batch = 1200, .classes = 10, .axis = 0, .wrong = true});
    check_loss(&gpu, (struct loss){.batch = 1, .classes = 2, .axis = ALL_AXES});
    /* more rows, or longer ones, than a block is given */
    check_loss(&gpu, (struct loss){.batch = 1200, .classes = 10, .axis = ALL_AXES, .smoothing = 0.1f});
    check_loss(&gpu, (struct loss){.batch = 11, .classes = 1009, .axis = ALL_AXES});
    gpu.backend->close(&gpu);
    return check_end();
}
