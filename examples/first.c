/* A graph is put together first; then a session runs what is asked for, and nothing else. */
#include <stdio.h>
#include <trainer.h>

int main(void) {
    struct trainer_graph *graph = NULL;
    struct trainer_session *session = NULL;
    struct trainer_error error = {0};
    if (trainer_graph_open(&graph, false, 1, &error) != TRAINER_OK) goto end;

    /* x = 2, y = 3; nobody asks for `useless`. */
    const trainer_node x = trainer_scalar(graph, 2), y = trainer_scalar(graph, 3);
    const trainer_node add = trainer_add(graph, x, y), mul = trainer_mul(graph, x, y);
    const trainer_node useless = trainer_mul(graph, x, add);
    const trainer_node power = trainer_pow(graph, add, mul);

    /* Placeholders are fed at each run. */
    const trainer_node a = trainer_placeholder(graph, "a", TRAINER_FLOAT, TRAINER_SHAPE(2));
    const trainer_node b = trainer_placeholder(graph, "b", TRAINER_FLOAT, TRAINER_SHAPE(2));
    const trainer_node sum = trainer_add(graph, a, b);

    /* A variable keeps its value from run to run. */
    const trainer_node counter =
        trainer_variable(graph, "counter", TRAINER_SCALAR, (struct trainer_initial){TRAINER_ZERO, 0, NULL});
    const trainer_node count = trainer_assign_add(graph, counter, trainer_scalar(graph, 1));

    if (trainer_session_open(&session, graph, "cpu:0", &error) != TRAINER_OK) goto end;
    float five = 0, six = 0, many = 0;
    const struct trainer_fetch results[] = {
        {add, &five, sizeof five}, {mul, &six, sizeof six}, {power, &many, sizeof many}};
    if (trainer_session_run(session, NULL, 0, results, 3, &error) != TRAINER_OK) goto end;
    printf("add=%g, mul=%g, pow=%g\n", (double)five, (double)six, (double)many);
    printf("the useless node %s\n", trainer_session_ran(session, useless) ? "was run" : "was skipped");

    const float first[][2] = {{3, 1}, {1, 3}}, second[][2] = {{4.5f, 2}, {2, 4}};
    for (int i = 0; i < 2; i++) {
        float both[2];
        const struct trainer_feed feeds[] = {{a, first[i], sizeof first[i]},
                                             {b, second[i], sizeof second[i]}};
        const struct trainer_fetch fetch = {sum, both, sizeof both};
        if (trainer_session_run(session, feeds, 2, &fetch, 1, &error) != TRAINER_OK) goto end;
        printf("[%g, %g] + [%g, %g] = [%g, %g]\n", (double)first[i][0], (double)first[i][1],
               (double)second[i][0], (double)second[i][1], (double)both[0], (double)both[1]);
    }

    float counted = 0;
    for (int i = 0; i < 3; i++) {
        const struct trainer_fetch fetch = {count, &counted, sizeof counted};
        if (trainer_session_run(session, NULL, 0, &fetch, 1, &error) != TRAINER_OK) goto end;
    }
    printf("counter=%g\n", (double)counted);
end:
    if (error.code != TRAINER_OK) fprintf(stderr, "first: %s\n", error.words);
    trainer_session_close(session);
    trainer_graph_close(graph);
    return error.code;
}
