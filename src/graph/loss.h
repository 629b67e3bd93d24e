/* Losses: what training makes small, from what a network says of each example and what was to be said. */
#ifndef TRAINER_GRAPH_LOSS_H
#define TRAINER_GRAPH_LOSS_H

#include <stdbool.h>
#include "graph.h"

/* What the labels of examples are, and so what the outputs of a network mean. */
enum task {
    TASK_CLASSES, /* int [batch]: the class of each; the outputs are logits, whose softmax is asked for */
    TASK_LABELS,  /* float [batch, outputs]: 1 for each label that it has, else 0; likewise, the sigmoid */
    TASK_VALUES,  /* float [batch, outputs]: numbers, which the outputs are to be: regression */
    TASKS
};

/* As --loss has them. */
enum loss { LOSS_AUTO, LOSS_CROSS_ENTROPY, LOSS_BINARY_CROSS_ENTROPY, LOSS_MSE, LOSS_MAE, LOSSES };

/* *loss = the one that was asked for; for LOSS_AUTO, the usual one of the task. `of`: whose examples they
 * are, for the words. Errors: ERROR_USAGE: one for other labels; label smoothing that it does not know. */
int loss_choose(enum loss *loss, enum loss asked, double smoothing, enum task task, const char *of,
                struct error *error);
/* "classes", "labels", "values"; and back: false: there is none of that name. */
const char *task_name(enum task task);
bool task_named(enum task *task, const char *name);
/* What so many outputs are: "classes", "labels", "value". */
const char *task_outputs(enum task task, int outputs);
/* "mean cross entropy" */
const char *loss_words(enum loss loss);
/* Of always saying what is best said without looking at an example. Of values: of those that were brought to
 * mean 0 and deviation 1, and are normal. */
double loss_of_guessing(enum loss loss, int outputs);

/* The placeholder of the labels of a batch. */
node loss_labels(struct graph *g, const char *name, enum task task, int batch, int outputs);
/* [batch]: the loss of each example; over several outputs, their mean. `smoothing` is of cross entropy. */
node loss_build(struct graph *g, enum loss loss, node logits, node labels, float smoothing);
/* [batch, outputs]: what the network says: probabilities of the classes or of each label, or values. */
node loss_outputs(struct graph *g, enum task task, node logits);

#endif
