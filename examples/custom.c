/* An operation of the program's own, softplus(x) = log(1 + e^x), with its gradient: dy times the sigmoid of
 * x, made of nodes that the library has. */
#include <math.h>
#include <stdio.h>
#include <trainer.h>

static const char *compute(void *argument, const float *const *operands, const struct trainer_shape *shapes,
                           int count, float *result, const struct trainer_shape *result_shape) {
    int elements = 1;
    (void)argument, (void)shapes, (void)count;
    for (int axis = 0; axis < result_shape->rank; axis++) elements *= result_shape->dims[axis];
    for (int i = 0; i < elements; i++) {
        const float x = operands[0][i];
        result[i] = fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
    }
    return NULL;
}

static trainer_node gradient(void *argument, struct trainer_graph *graph, const trainer_node *x, int count,
                             trainer_node y, trainer_node dy, int i) {
    (void)argument, (void)count, (void)y;
    return trainer_mul(graph, dy, trainer_sigmoid(graph, x[i]));
}

static const struct trainer_operation softplus = {
    .name = "softplus", .compute = compute, .gradient = gradient};

int main(void) {
    struct trainer_graph *graph = NULL;
    struct trainer_session *session = NULL;
    struct trainer_error error = {0};
    if (trainer_graph_open(&graph, false, 1, &error) != TRAINER_OK) goto end;

    const trainer_node x = trainer_placeholder(graph, "x", TRAINER_FLOAT, TRAINER_SHAPE(3));
    const trainer_node y = trainer_custom(graph, &softplus, &x, 1);
    trainer_node slope;
    trainer_gradients(graph, trainer_reduce_sum(graph, y, TRAINER_ALL_AXES, false), &x, 1, &slope);

    if (trainer_session_open(&session, graph, NULL, &error) != TRAINER_OK) goto end;
    const float values[] = {-2, 0, 3};
    float results[3], slopes[3];
    const struct trainer_feed feed = {x, values, sizeof values};
    const struct trainer_fetch fetches[] = {{y, results, sizeof results}, {slope, slopes, sizeof slopes}};
    if (trainer_session_run(session, &feed, 1, fetches, 2, &error) != TRAINER_OK) goto end;
    for (int i = 0; i < 3; i++)
        printf("softplus(%g) = %.4f, slope %.4f\n", (double)values[i], (double)results[i], (double)slopes[i]);
end:
    if (error.code != TRAINER_OK) fprintf(stderr, "custom: %s\n", error.words);
    trainer_session_close(session);
    trainer_graph_close(graph);
    return error.code;
}
