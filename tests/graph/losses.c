/* Losses: their values and gradients against the formulas in double, what fits which labels, and what
 * guessing costs. */
#include "../../src/device/formulas.h"
#include "../../src/graph/loss.h"
#include "../reference_device.h"

enum { BATCH = 7, MOST = 11 };

/* One loss over a batch, with the gradient of its mean with respect to the outputs. */
struct trial {
    enum loss loss;
    enum task task;
    int outputs;
    float smoothing, spread; /* outputs lie between -spread and spread */
};

struct made {
    float x[BATCH * MOST], labels[BATCH * MOST];
    int classes[BATCH];
};

static void make(struct made *made, const struct trial *t) {
    struct rng rng;
    rng_start(&rng, 5, (uint64_t)t->outputs);
    for (int i = 0; i < BATCH * t->outputs; i++) {
        made->x[i] = t->spread * (2.0f * rng_uniform(&rng) - 1.0f);
        made->labels[i] = t->task == TASK_LABELS ? (float)(rng_next(&rng) & 1) : rng_uniform(&rng);
    }
    for (int i = 0; i < BATCH; i++) made->classes[i] = (i * 5 + 2) % t->outputs;
}

static double log_of_sum(const float *x, int count) {
    double top = -INFINITY, sum = 0.0;
    for (int c = 0; c < count; c++) top = fmax(top, (double)x[c]);
    for (int c = 0; c < count; c++) sum += exp((double)x[c] - top);
    return top + log(sum);
}

/* What class c counts; together 1. */
static double share_of(const struct trial *t, int c, int label) {
    return (c == label ? 1.0 - (double)t->smoothing : 0.0) + (double)t->smoothing / t->outputs;
}

static double sigmoid_of(double x) {
    return 1.0 / (1.0 + exp(-x));
}

/* The loss of example i, and the gradient of its own with respect to each of its outputs. */
static double expected(const struct trial *t, const struct made *made, int i, double *gradient) {
    const float *x = made->x + i * t->outputs, *labels = made->labels + i * t->outputs;
    const double all = log_of_sum(x, t->outputs);
    double loss = 0.0;
    for (int c = 0; c < t->outputs; c++) {
        const double at = (double)x[c], label = (double)labels[c], apart = at - label,
                     share = share_of(t, c, made->classes[i]);
        switch (t->loss) {
        case LOSS_CROSS_ENTROPY:
            loss += share * (all - at);
            gradient[c] = exp(at - all) - share;
            break;
        case LOSS_BINARY_CROSS_ENTROPY: /* -log of the chance that is given to what is so */
            loss += log1p(exp(label > 0.5 ? -at : at)) / t->outputs;
            gradient[c] = (sigmoid_of(at) - label) / t->outputs;
            break;
        case LOSS_MSE:
            loss += apart * apart / t->outputs;
            gradient[c] = 2.0 * apart / t->outputs;
            break;
        default:
            loss += fabs(apart) / t->outputs;
            gradient[c] = (apart < 0.0 ? -1.0 : 1.0) / t->outputs;
        }
    }
    return loss;
}

static void check_trial(const struct trial *t) {
    struct graph g;
    struct session s;
    struct made made;
    make(&made, t);
    graph_open(&g, true, 1);
    const node x = graph_variable(&g, "x", SHAPE(BATCH, t->outputs), (struct initial){.kind = INITIAL_ZERO});
    const node labels = loss_labels(&g, "labels", t->task, BATCH, t->outputs);
    const node losses = loss_build(&g, t->loss, x, labels, t->smoothing);
    node fetched[2] = {losses, NONE};
    graph_gradients(&g, graph_reduce_mean(&g, losses, ALL_AXES, false), &x, 1, &fetched[1]);
    CHECK(graph_check(&g, &(struct error){0}) == OK, "%s", g.error.words);
    session_open(&s, &g, fetched, 2);
    memcpy(s.weights, made.x, sizeof(float) * (size_t)(BATCH * t->outputs));
    session_feed(&s, labels, t->task == TASK_CLASSES ? (void *)made.classes : made.labels);
    session_run(&s);
    for (int i = 0; i < BATCH; i++) {
        double gradient[MOST];
        const double want = expected(t, &made, i, gradient),
                     loss = (double)session_float(&s, losses, (size_t)i);
        CHECK(fabs(loss - want) <= 2e-6 * fmax(1.0, fabs(want)),
              "loss %d, %d outputs, example %d: %.9g, not %.9g", t->loss, t->outputs, i, loss, want);
        for (int c = 0; c < t->outputs; c++) {
            const double found = (double)s.gradients[i * t->outputs + c];
            CHECK(fabs(found - gradient[c] / BATCH) <= 1e-6 * fmax(1.0, (double)t->spread),
                  "loss %d, %d outputs: gradient %d,%d: %.9g, not %.9g", t->loss, t->outputs, i, c, found,
                  gradient[c] / BATCH);
        }
    }
    session_close(&s);
    graph_close(&g);
}

static void test_formulas(void) {
    const int outputs[] = {1, 2, 3, MOST};
    for (int i = 0; i < 4; i++) {
        const int n = outputs[i];
        const struct trial trials[] = {{LOSS_CROSS_ENTROPY, TASK_CLASSES, n, 0.0f, 3.0f},
                                       {LOSS_CROSS_ENTROPY, TASK_CLASSES, n, 0.1f, 3.0f},
                                       {LOSS_CROSS_ENTROPY, TASK_CLASSES, n, 0.9f, 80.0f},
                                       {LOSS_BINARY_CROSS_ENTROPY, TASK_LABELS, n, 0.0f, 3.0f},
                                       {LOSS_BINARY_CROSS_ENTROPY, TASK_LABELS, n, 0.0f, 80.0f},
                                       {LOSS_MSE, TASK_VALUES, n, 0.0f, 3.0f},
                                       {LOSS_MAE, TASK_VALUES, n, 0.0f, 3.0f}};
        for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) check_trial(&trials[t]);
    }
}

/* As far out as floats go, a label that is right costs nothing, a wrong one the distance. */
static void test_far_out(void) {
    const float far[] = {30.0f, 1e4f, 3e38f};
    for (int i = 0; i < 3; i++) {
        const float right = formula_sigmoid_cross_entropy(far[i], 1.0f),
                    wrong = formula_sigmoid_cross_entropy(-far[i], 1.0f);
        CHECK(right >= 0.0f && right < 1e-12f, "%g costs %g", (double)far[i], (double)right);
        CHECK(fabsf(wrong - far[i]) <= 1e-6f * far[i], "%g costs %g", (double)-far[i], (double)wrong);
        CHECK(formula_sigmoid_cross_entropy(-far[i], 0.0f) == right, "another loss of the other label");
    }
    CHECK(isnan(formula_sigmoid_cross_entropy(NAN, 0.0f)), "a loss of no number");
}

/* What always says the same is told apart from what learnt: its loss is that of equal outputs. */
static void test_guessing(void) {
    struct trial t = {LOSS_CROSS_ENTROPY, TASK_CLASSES, MOST, 0.0f, 0.0f};
    struct made made;
    double ignored[MOST];
    make(&made, &t);
    CHECK(fabs(loss_of_guessing(t.loss, MOST) - expected(&t, &made, 0, ignored)) < 1e-12, "cross entropy");
    t.loss = LOSS_BINARY_CROSS_ENTROPY;
    CHECK(fabs(loss_of_guessing(t.loss, MOST) - expected(&t, &made, 0, ignored)) < 1e-12, "of labels");
    CHECK(loss_of_guessing(LOSS_MSE, 3) == 1.0, "squared errors");
    CHECK(fabs(loss_of_guessing(LOSS_MAE, 3) - 0.7978845608) < 1e-9, "absolute errors");
}

static void test_choice(void) {
    static const struct {
        enum task task;
        enum loss asked, chosen;
        double smoothing;
        const char *words; /* NULL: it fits */
    } rows[] = {
        {TASK_CLASSES, LOSS_AUTO, LOSS_CROSS_ENTROPY, 0.1, NULL},
        {TASK_CLASSES, LOSS_MSE, 0, 0, "--loss=mse: D has one class per example, expected cross-entropy"},
        {TASK_LABELS, LOSS_AUTO, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
        {TASK_LABELS, LOSS_CROSS_ENTROPY, 0, 0,
         "--loss=cross-entropy: D has several labels per example, expected binary-cross-entropy"},
        {TASK_VALUES, LOSS_AUTO, LOSS_MSE, 0, NULL},
        {TASK_VALUES, LOSS_MAE, LOSS_MAE, 0, NULL},
        {TASK_VALUES, LOSS_BINARY_CROSS_ENTROPY, 0, 0,
         "--loss=binary-cross-entropy: D has numbers to predict, expected mse or mae"},
        {TASK_VALUES, LOSS_AUTO, 0, 0.1, "--label-smoothing=0.1: found --loss=mse, expected cross-entropy"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {0};
        enum loss loss;
        const int code = loss_choose(&loss, rows[i].asked, rows[i].smoothing, rows[i].task, "D", &error);
        if (!rows[i].words)
            CHECK(code == OK && loss == rows[i].chosen, "row %zu: %d, %s", i, loss, error.words);
        else
            CHECK(code == ERROR_USAGE && strcmp(error.words, rows[i].words) == 0, "\"%s\", expected \"%s\"",
                  error.words, rows[i].words);
    }
}

int main(void) {
    test_formulas();
    test_far_out();
    test_guessing();
    test_choice();
    return check_end();
}
