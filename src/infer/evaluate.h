/* Evaluation and prediction: a network's forward pass over whole sets, every example once, on all cores of
 * the run. */
#ifndef TRAINER_TRAIN_EVALUATE_H
#define TRAINER_TRAIN_EVALUATE_H

#include "../data/dataset.h"
#include "figures.h"
#include "../program/program.h"
#include "../engine/network.h"

enum { EVALUATE_BATCH = 256, EVALUATE_FEW = 16 };

/* The network for batches of one size. */
struct evaluator_pass {
    int batch;
    struct network network;
    struct program *program;
    struct arena *arena;
};

/* One or a few examples that are asked for alone go through a network for 1 or EVALUATE_FEW of them, which is
 * compiled when it is first needed; all else goes through in batches of EVALUATE_BATCH. */
enum evaluator_size { EVALUATE_ONE, EVALUATE_SOME, EVALUATE_WHOLE, EVALUATE_SIZES };

struct evaluator {
    struct evaluator_pass pass[EVALUATE_SIZES]; /* the network of EVALUATE_WHOLE is always there */
    struct network_settings settings;
    struct device device;
    bool entered;
    int classes;
    enum task task;
    struct units units; /* of values; borrowed, set by who opened it */
    int *index;         /* [EVALUATE_BATCH] */
    float *losses;      /* [EVALUATE_BATCH] of the batch in hand */
    float *outputs;     /* [EVALUATE_BATCH][classes] likewise */
    int *predicted;     /* [EVALUATE_BATCH] likewise */
    float *weights;     /* [layout floats] on a device that has memory of its own; else NULL */
};

struct evaluation {
    int examples;
    double cost;           /* mean loss */
    double score;          /* of the metric that the network is judged by */
    double value[METRICS]; /* of each metric; NAN: it is none of this network's */
};

/* How often each image is looked at, with the mean of the probabilities as what is said of it. FLIP: as it is
 * and mirrored, both alike. SHIFT: both also a pixel up and left, and down and right, which count half as
 * much.
 */
enum views { VIEWS_PLAIN, VIEWS_FLIP, VIEWS_FLIP_SHIFT };
#define VIEWS_CHOICES "plain|flip|flip+shift"
extern const char *const views_titles[]; /* of each, as lines have them: "Flip+Shift" */
/* Errors: ERROR_USAGE: they are no images with one class each, or only scaled. */
int views_check(enum views views, enum task task, const struct examples *examples, struct error *error);

/* settings: batch and training are set here; what they point to is borrowed. The device is copied. Only the
 * network is there: how large its weights are. */
int evaluator_open(struct evaluator *evaluator, const struct network_settings *settings,
                   const struct device *device, struct error *error);
/* Makes it ready to run whole batches; the calling thread enters the device. What is not ready when it is
 * first run is made so then. */
int evaluator_compile(struct evaluator *evaluator, struct error *error);
void evaluator_close(struct evaluator *evaluator); /* safe on a zeroed or half-open one */

/* An evaluation batch by batch, as evaluator_run has it, and as several evaluators share it (evaluators.h).
 * evaluator_begin makes the evaluator ready and sends weights [layout floats] to where its device has them;
 * evaluator_batch runs the EVALUATE_BATCH examples from `first` on, or those that are left, and leaves what
 * they came to in the evaluator. */
int evaluator_begin(struct evaluator *evaluator, float *weights, float **there, struct error *error);
int evaluator_batch(struct evaluator *evaluator, const struct examples *examples, int first, float *there,
                    struct error *error);

/* What batches came to in all. They are added in the order of the examples. */
struct evaluation_sum {
    const struct examples *examples; /* borrowed */
    struct figures figures;
    double cost;
};
int evaluation_open(struct evaluation_sum *sum, const struct evaluator *evaluator,
                    const struct examples *examples, struct error *error);
void evaluation_add(struct evaluation_sum *sum, const struct evaluator *evaluator, int first);
int evaluation_end(struct evaluation_sum *sum, struct evaluation *result, struct error *error);
void evaluation_close(struct evaluation_sum *sum); /* safe on a zeroed one */

/* weights: [layout floats]. */
int evaluator_run(struct evaluator *evaluator, const struct examples *examples, float *weights,
                  struct evaluation *result, struct error *error);
/* The same by such views. Errors: as views_check, too. */
int evaluator_run_views(struct evaluator *evaluator, const struct examples *examples, float *weights,
                        enum views views, struct evaluation *result, struct error *error);
/* outputs[examples->count][classes]: probabilities, or values in their units; predicted[examples->count], the
 * classes that evaluator_run counts, or NULL. */
int evaluator_predict(struct evaluator *evaluator, const struct examples *examples, float *weights,
                      float *outputs, int *predicted, struct error *error);
/* The same of values as the network says them: in units in which they have mean 0 and deviation 1. */
int evaluator_outputs(struct evaluator *evaluator, const struct examples *examples, float *weights,
                      float *outputs, int *predicted, struct error *error);

#endif
