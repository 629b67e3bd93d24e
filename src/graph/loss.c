/* See loss.h. */
#include "loss.h"

#include <math.h>
#include <string.h>

/* Their names in files, what examples have, in words, and the losses that fit, the usual one first. */
static const struct {
    const char *name, *have, *expected;
    enum loss fit[2];
} tasks[TASKS] = {
    [TASK_CLASSES] = {"classes", "one class per example", "cross-entropy", {LOSS_CROSS_ENTROPY}},
    [TASK_LABELS] = {"labels",
                     "several labels per example",
                     "binary-cross-entropy",
                     {LOSS_BINARY_CROSS_ENTROPY}},
    [TASK_VALUES] = {"values", "numbers to predict", "mse or mae", {LOSS_MSE, LOSS_MAE}},
};

/* As typed, and in the first lines of a run. */
static const struct {
    const char *name, *words;
} losses[LOSSES] = {
    [LOSS_AUTO] = {"auto", ""},
    [LOSS_CROSS_ENTROPY] = {"cross-entropy", "mean cross entropy"},
    [LOSS_BINARY_CROSS_ENTROPY] = {"binary-cross-entropy", "mean binary cross entropy"},
    [LOSS_MSE] = {"mse", "mean squared error"},
    [LOSS_MAE] = {"mae", "mean absolute error"},
};

int loss_choose(enum loss *loss, enum loss asked, double smoothing, enum task task, const char *of,
                struct error *error) {
    const enum loss *fit = tasks[task].fit;
    *loss = asked == LOSS_AUTO ? fit[0] : asked;
    if (*loss != fit[0] && *loss != fit[1])
        return error_set(error, ERROR_USAGE, "--loss=%s: %.200s has %s, expected %s", losses[asked].name, of,
                         tasks[task].have, tasks[task].expected);
    if (smoothing > 0.0 && *loss != LOSS_CROSS_ENTROPY)
        return error_set(error, ERROR_USAGE, "--label-smoothing=%g: found --loss=%s, expected cross-entropy",
                         smoothing, losses[*loss].name);
    return OK;
}

const char *task_name(enum task task) {
    return tasks[task].name;
}

const char *task_outputs(enum task task, int outputs) {
    static const char *const one[TASKS] = {"class", "label", "value"};
    return outputs == 1 ? one[task] : tasks[task].name;
}

bool task_named(enum task *task, const char *name) {
    for (*task = TASK_CLASSES; *task < TASKS; (*task)++)
        if (strcmp(tasks[*task].name, name) == 0) return true;
    return false;
}

const char *loss_words(enum loss loss) {
    return losses[loss].words;
}

double loss_of_guessing(enum loss loss, int outputs) {
    switch (loss) {
    case LOSS_CROSS_ENTROPY:
        return log((double)outputs);
    case LOSS_BINARY_CROSS_ENTROPY:
        return log(2.0);
    case LOSS_MAE:
        return sqrt(2.0 / acos(-1.0));
    default:
        return 1.0;
    }
}

node loss_labels(struct graph *g, const char *name, enum task task, int batch, int outputs) {
    if (task == TASK_CLASSES) return graph_placeholder(g, name, TYPE_INT, SHAPE(batch));
    return graph_placeholder(g, name, TYPE_FLOAT, SHAPE(batch, outputs));
}

static node squared_errors(struct graph *g, node values, node labels) {
    const node apart = graph_sub(g, values, labels);
    return graph_mul(g, apart, apart);
}

/* A leak of -1 turns what is below 0 around. */
static node absolute_errors(struct graph *g, node values, node labels) {
    return graph_leaky_relu(g, graph_sub(g, values, labels), graph_scalar(g, -1.0f));
}

node loss_build(struct graph *g, enum loss loss, node logits, node labels, float smoothing) {
    switch (loss) {
    case LOSS_BINARY_CROSS_ENTROPY:
        return graph_reduce_mean(g, graph_sigmoid_cross_entropy(g, logits, labels), 1, false);
    case LOSS_MSE:
        return graph_reduce_mean(g, squared_errors(g, logits, labels), 1, false);
    case LOSS_MAE:
        return graph_reduce_mean(g, absolute_errors(g, logits, labels), 1, false);
    default:
        return graph_smoothed_cross_entropy(g, logits, labels, smoothing);
    }
}

node loss_outputs(struct graph *g, enum task task, node logits) {
    return task == TASK_CLASSES  ? graph_softmax(g, logits)
           : task == TASK_LABELS ? graph_sigmoid(g, logits)
                                 : logits;
}
