/* Linear regression by the normal equations, w = inverse(X' X) X' y: a matrix product, an inverse and a
 * determinant are nodes like any other. Here y = 2 + 3 a - b for six points, without noise. */
#include <stdio.h>
#include <trainer.h>

enum { POINTS = 6, COLUMNS = 3 };

int main(void) {
    /* 1, a, b of each point, and y. */
    const float x[POINTS][COLUMNS] = {{1, 0, 1}, {1, 1, 0}, {1, 2, 2}, {1, 3, 1}, {1, 4, 5}, {1, 5, 3}};
    const float y[POINTS] = {1, 5, 6, 10, 9, 14};
    struct trainer_graph *graph = NULL;
    struct trainer_session *session = NULL;
    struct trainer_error error = {0};
    if (trainer_graph_open(&graph, false, 1, &error) != TRAINER_OK) goto end;

    const trainer_node points =
        trainer_placeholder(graph, "points", TRAINER_FLOAT, TRAINER_SHAPE(POINTS, COLUMNS));
    const trainer_node values = trainer_placeholder(graph, "values", TRAINER_FLOAT, TRAINER_SHAPE(POINTS, 1));
    const trainer_node gram = trainer_matmul(graph, points, points, true, false);
    const trainer_node inverse = trainer_inverse(graph, gram), determinant = trainer_determinant(graph, gram);
    const trainer_node right = trainer_matmul(graph, points, values, true, false);
    const trainer_node weights = trainer_matmul(graph, inverse, right, false, false);

    if (trainer_session_open(&session, graph, NULL, &error) != TRAINER_OK) goto end;
    float w[COLUMNS], d = 0;
    const struct trainer_feed feeds[] = {{points, x, sizeof x}, {values, y, sizeof y}};
    const struct trainer_fetch fetches[] = {{weights, w, sizeof w}, {determinant, &d, sizeof d}};
    if (trainer_session_run(session, feeds, 2, fetches, 2, &error) != TRAINER_OK) goto end;
    printf("determinant %.0f\ny = %.3f + %.3f a + %.3f b\n", (double)d, (double)w[0], (double)w[1],
           (double)w[2]);
end:
    if (error.code != TRAINER_OK) fprintf(stderr, "regression: %s\n", error.words);
    trainer_session_close(session);
    trainer_graph_close(graph);
    return error.code;
}
