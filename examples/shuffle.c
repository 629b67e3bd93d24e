/* Rows in another order, each time another one, and split into parts. A shuffle draws by the seed of the
 * graph and the number that is fed to "step": the same step gives the same order. */
#include <stdio.h>
#include <trainer.h>

enum { ROWS = 6 };

int main(void) {
    struct trainer_graph *graph = NULL;
    struct trainer_session *session = NULL;
    struct trainer_error error = {0};
    if (trainer_graph_open(&graph, false, 1, &error) != TRAINER_OK) goto end;

    const float values[ROWS] = {1, 2, 3, 4, 5, 6};
    const trainer_node rows = trainer_constant(graph, TRAINER_SHAPE(ROWS, 1), values);
    const trainer_node shuffled = trainer_shuffle(graph, rows), step = trainer_graph_find(graph, "step");
    trainer_node halves[2];
    trainer_split(graph, shuffled, 2, 0, halves);
    const trainer_node sum = trainer_reduce_sum(graph, shuffled, TRAINER_ALL_AXES, false);

    if (trainer_session_open(&session, graph, NULL, &error) != TRAINER_OK) goto end;
    float first[2][ROWS / 2], second[2][ROWS / 2], total = 0;
    for (int i = 0; i < 3; i++) {
        const int number = i / 2; /* 0, 0, 1 */
        const struct trainer_feed feed = {step, &number, sizeof number};
        const struct trainer_fetch fetches[] = {{halves[0], first[i > 0], sizeof first[0]},
                                                {halves[1], second[i > 0], sizeof second[0]},
                                                {sum, &total, sizeof total}};
        if (trainer_session_run(session, &feed, 1, fetches, 3, &error) != TRAINER_OK) goto end;
        bool same = i > 0;
        for (int row = 0; row < ROWS / 2 && same; row++)
            same = first[0][row] == first[1][row] && second[0][row] == second[1][row];
        printf("step %d: the sum is %g%s\n", number, (double)total,
               i == 0 ? ""
               : same ? ", the same order"
                      : ", another order");
    }
end:
    if (error.code != TRAINER_OK) fprintf(stderr, "shuffle: %s\n", error.words);
    trainer_session_close(session);
    trainer_graph_close(graph);
    return error.code;
}
