/* Newton's root of a: a loop that goes on while x * x differs from a, and the derivative of what it computes,
 * which is 1 / (2 sqrt(a)). A condition takes the root of what is below 0 as that of its opposite. */
#include <stdio.h>
#include <trainer.h>

/* State: x, a, and the change of x in the last round, squared. */
static void changes(void *argument, struct trainer_graph *graph, const trainer_node *in, int count,
                    trainer_node *out) {
    (void)argument, (void)count;
    out[0] = trainer_greater(graph, in[2], trainer_scalar(graph, 1e-12f));
}

static void improve(void *argument, struct trainer_graph *graph, const trainer_node *in, int count,
                    trainer_node *out) {
    (void)argument, (void)count;
    const trainer_node sum = trainer_add(graph, in[0], trainer_div(graph, in[1], in[0]));
    out[0] = trainer_mul(graph, sum, trainer_scalar(graph, 0.5f));
    out[1] = in[1];
    const trainer_node change = trainer_sub(graph, out[0], in[0]);
    out[2] = trainer_mul(graph, change, change);
}

static void as_it_is(void *argument, struct trainer_graph *graph, const trainer_node *in, int count,
                     trainer_node *out) {
    (void)argument, (void)graph, (void)count;
    out[0] = in[0];
}

static void opposite(void *argument, struct trainer_graph *graph, const trainer_node *in, int count,
                     trainer_node *out) {
    (void)argument, (void)count;
    out[0] = trainer_sub(graph, trainer_scalar(graph, 0), in[0]);
}

int main(void) {
    struct trainer_graph *graph = NULL;
    struct trainer_session *session = NULL;
    struct trainer_error error = {0};
    if (trainer_graph_open(&graph, false, 1, &error) != TRAINER_OK) goto end;

    const trainer_node a = trainer_placeholder(graph, "a", TRAINER_FLOAT, TRAINER_SCALAR);
    const trainer_node one = trainer_scalar(graph, 1),
                       is_positive = trainer_less(graph, trainer_scalar(graph, 0), a);
    trainer_node size, state[3], slope;
    trainer_cond(graph, is_positive, as_it_is, opposite, NULL, &a, 1, &size, 1);
    trainer_while(graph, changes, improve, NULL, 50, (trainer_node[]){one, size, one}, 3, state);
    trainer_gradients(graph, state[0], &a, 1, &slope);

    if (trainer_session_open(&session, graph, NULL, &error) != TRAINER_OK) goto end;
    const float numbers[] = {2, 9, -16};
    for (int i = 0; i < 3; i++) {
        float root = 0, derivative = 0;
        const struct trainer_feed feed = {a, &numbers[i], sizeof numbers[i]};
        const struct trainer_fetch fetches[] = {{state[0], &root, sizeof root},
                                                {slope, &derivative, sizeof derivative}};
        if (trainer_session_run(session, &feed, 1, fetches, 2, &error) != TRAINER_OK) goto end;
        printf("a = %g: root %.5f, derivative %.5f\n", (double)numbers[i], (double)root, (double)derivative);
    }
end:
    if (error.code != TRAINER_OK) fprintf(stderr, "newton: %s\n", error.words);
    trainer_session_close(session);
    trainer_graph_close(graph);
    return error.code;
}
