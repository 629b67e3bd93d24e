/* Two matrix products on two devices, at the same time, and their sum. The program pins one of them; the rest
 * follows: what it is fed is there, and its value crosses to the sum. */
#include <stdio.h>
#include <trainer.h>

int main(int argc, char **argv) {
    const char *devices = argc > 1 ? argv[1] : "cpu:0,cpu:1", *second = argc > 2 ? argv[2] : "cpu:1";
    struct trainer_graph *graph = NULL;
    struct trainer_session *session = NULL;
    struct trainer_error error = {0};
    if (trainer_graph_open(&graph, false, 1, &error) != TRAINER_OK) goto end;
    const trainer_node a = trainer_placeholder(graph, "a", TRAINER_FLOAT, TRAINER_SHAPE(2, 2));
    const trainer_node b = trainer_placeholder(graph, "b", TRAINER_FLOAT, TRAINER_SHAPE(2, 2));
    const trainer_node left = trainer_matmul(graph, a, a, false, false);
    const trainer_node right = trainer_matmul(graph, b, b, false, false);
    const trainer_node sum = trainer_add(graph, left, right);

    if (trainer_session_open(&session, graph, devices, &error) != TRAINER_OK) goto end;
    if (trainer_session_pin(session, right, second, &error) != TRAINER_OK) goto end;

    const float one[] = {1, 2, 3, 4}, other[] = {5, 6, 7, 8};
    float result[4];
    const struct trainer_feed feeds[] = {{a, one, sizeof one}, {b, other, sizeof other}};
    const struct trainer_fetch fetch = {sum, result, sizeof result};
    if (trainer_session_run(session, feeds, 2, &fetch, 1, &error) != TRAINER_OK) goto end;
    printf("[%g, %g; %g, %g]\n", (double)result[0], (double)result[1], (double)result[2], (double)result[3]);

    for (trainer_node n = 0; n < trainer_graph_nodes(graph); n++)
        printf("node %d, %s, on %s\n", n, trainer_node_operation(graph, n),
               trainer_session_device(session, n));
    struct trainer_crossing crossing;
    for (int i = 0; trainer_session_crossing(session, i, &crossing); i++)
        printf("node %d crosses from %s to %s: %zu bytes\n", crossing.node, crossing.from, crossing.to,
               crossing.bytes);
end:
    if (error.code != TRAINER_OK) fprintf(stderr, "place: %s\n", error.words);
    trainer_session_close(session);
    trainer_graph_close(graph);
    return error.code;
}
