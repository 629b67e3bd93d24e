/* A training within a program, on the program's own data: points in a plane, of which a network learns
 * whether they lie inside a circle. Two workers, one per device, share what they learn without waiting. */
#include <stdio.h>
#include <trainer.h>

enum { TRAIN = 2000, TEST = 500 };

/* Example `number`: a point of the square from -1 to 1, and 1 inside the circle of radius 0.75. */
static const char *read_point(void *argument, int number, float *features, void *label) {
    const unsigned *offset = argument;
    unsigned bits = ((unsigned)number + *offset) * 2654435761u;
    for (int i = 0; i < 2; i++) {
        bits = bits * 1664525u + 1013904223u;
        features[i] = (float)(bits >> 8) / 8388608.0f - 1.0f;
    }
    *(int *)label = features[0] * features[0] + features[1] * features[1] < 0.75f * 0.75f;
    return NULL;
}

static bool print_epoch(void *argument, const struct trainer_epoch *epoch) {
    (void)argument;
    if (epoch->epoch % 20 == 0) printf("epoch %d\n", epoch->epoch);
    return true; /* go on */
}

int main(void) {
    unsigned train = 0, test = 1000000;
    struct trainer_training *training = NULL;
    struct trainer_result result = {0};
    struct trainer_error error = {0};
    const struct trainer_data data = {.shape = TRAINER_SHAPE(2),
                                      .task = TRAINER_CLASSES,
                                      .outputs = 2,
                                      .train = {.count = TRAIN, .read = read_point, .argument = &train},
                                      .test = {.count = TEST, .read = read_point, .argument = &test}};
    const struct trainer_watcher watcher = {.epoch = print_epoch};
    static const char *const settings[][2] = {{"model", "mlp:hidden=16-16,activation=relu"},
                                              {"strategy", "async-lockfree"},
                                              {"devices", "cpu:0,cpu:1"},
                                              {"optimizer", "adam:rate=0.005"},
                                              {"schedule", "cosine"},
                                              {"epochs", "40"}};
    if (trainer_training_open(&training, &error) != TRAINER_OK) goto end;
    for (int i = 0; i < 6; i++)
        if (trainer_training_set(training, settings[i][0], settings[i][1], &error) != TRAINER_OK) goto end;
    if (trainer_training_data(training, &data, &error) != TRAINER_OK) goto end;
    trainer_training_watch(training, &watcher);
    if (trainer_training_run(training, &result, &error) != TRAINER_OK) goto end;
    printf("more than 90 %% of the test points are right: %s\n", result.test_score > 0.9 ? "yes" : "no");

    const float points[2][2] = {{0, 0}, {0.9f, -0.9f}};
    float probabilities[2][2];
    if (trainer_training_predict(training, points[0], 2, probabilities[0], &error) != TRAINER_OK) goto end;
    for (int i = 0; i < 2; i++)
        printf("(%g, %g) is %s\n", (double)points[i][0], (double)points[i][1],
               probabilities[i][1] > 0.5f ? "inside" : "outside");
end:
    if (error.code != TRAINER_OK) fprintf(stderr, "embedded: %s\n", error.words);
    trainer_training_close(training);
    return error.code;
}
