/* A producer and a consumer: two threads, each with a graph and a session of its own, and a queue between
 * them that holds two values. The consumer ends when the queue was ended and is empty. */
#include <pthread.h>
#include <stdio.h>
#include <trainer.h>

enum { VALUES = 5 };

/* Puts the squares of 1 to VALUES in. */
static void *produce(void *argument) {
    struct trainer_queue *queue = argument;
    struct trainer_graph *graph = NULL;
    struct trainer_session *session = NULL;
    struct trainer_error error = {0};
    if (trainer_graph_open(&graph, false, 1, &error) != TRAINER_OK) goto end;
    const trainer_node x = trainer_placeholder(graph, "x", TRAINER_FLOAT, TRAINER_SCALAR);
    const trainer_node put = trainer_enqueue(graph, queue, trainer_mul(graph, x, x));
    if (trainer_session_open(&session, graph, NULL, &error) != TRAINER_OK) goto end;
    for (int i = 1; i <= VALUES; i++) {
        const float value = (float)i;
        const struct trainer_feed feed = {x, &value, sizeof value};
        const struct trainer_fetch fetch = {put, NULL, 0};
        if (trainer_session_run(session, &feed, 1, &fetch, 1, &error) != TRAINER_OK) goto end;
    }
end:
    if (error.code != TRAINER_OK) fprintf(stderr, "producer: %s\n", error.words);
    trainer_session_close(session);
    trainer_graph_close(graph);
    trainer_queue_end(queue);
    return NULL;
}

int main(void) {
    struct trainer_queue *queue = NULL;
    struct trainer_graph *graph = NULL;
    struct trainer_session *session = NULL;
    struct trainer_error error = {0};
    pthread_t producer;
    bool started = false;
    if (trainer_queue_open(&queue, TRAINER_SCALAR, 2, 10, &error) != TRAINER_OK) goto end;
    if (trainer_graph_open(&graph, false, 1, &error) != TRAINER_OK) goto end;
    const trainer_node taken = trainer_dequeue(graph, queue);
    const trainer_node more = trainer_add(graph, taken, trainer_scalar(graph, 0.5f));
    if (trainer_session_open(&session, graph, NULL, &error) != TRAINER_OK) goto end;
    started = pthread_create(&producer, NULL, produce, queue) == 0;
    for (;;) {
        float value = 0;
        const struct trainer_fetch fetch = {more, &value, sizeof value};
        const int code = trainer_session_run(session, NULL, 0, &fetch, 1, &error);
        if (code == TRAINER_STOPPED) error = (struct trainer_error){0};
        if (code != TRAINER_OK) break;
        printf("took %g\n", (double)value);
    }
end:
    if (error.code != TRAINER_OK) fprintf(stderr, "consumer: %s\n", error.words);
    if (started) pthread_join(producer, NULL);
    trainer_session_close(session);
    trainer_graph_close(graph);
    trainer_queue_close(queue);
    return error.code;
}
